"""Doors on the wire server."""

from __future__ import annotations

import asyncio

import pytest

from evalcore.wires.http import Door, close_all


class Stuck(Door):
    """Its closing is cut short."""

    async def close(self) -> None:
        await super().close()
        raise asyncio.CancelledError


def test_a_door_whose_closing_is_cut_short_leaves_no_other_open() -> None:
    known = {"first", "second", "third"}
    doors = [
        kind(name, lambda n=name: known.discard(n), None)
        for name, kind in (("first", Door), ("second", Stuck), ("third", Door))
    ]
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(close_all(doors))
    assert known == set()
