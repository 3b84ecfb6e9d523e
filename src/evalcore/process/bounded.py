"""Awaiting somebody else's code: bounded in time, and unable to end more than itself."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


class HungError(Exception):
    """A part did not end in time. A TimeoutError of its own is a failure like any other."""


async def bounded(work: Coroutine[Any, Any, T], seconds: float) -> T:
    """Await `work` for `seconds` at most. Raises HungError; what would end more than the work becomes a RuntimeError.

    Most work never waits, and pays for no timer.
    """
    try:
        try:
            waiting = work.send(None)
        except StopIteration as done:
            value: T = done.value
            return value
        timer = asyncio.timeout(seconds)
        try:
            async with timer:
                return await _continued(work, waiting)
        except TimeoutError as error:
            raise (HungError() if timer.expired() else error) from error
    except SystemExit as error:
        raise RuntimeError(f"SystemExit: {error}") from error
    except asyncio.CancelledError as error:
        me = asyncio.current_task()
        if me is None or me.cancelling():
            raise
        raise RuntimeError("a cancellation that nobody asked for") from error


@types.coroutine
def _continued(work: Coroutine[Any, Any, T], waiting: Any) -> Generator[Any, Any, T]:
    """Go on with a coroutine that has begun and now waits for `waiting`."""
    try:
        while True:
            try:
                answer = yield waiting
            except BaseException as error:  # noqa: BLE001 - cancellation goes where it would have gone
                waiting = work.throw(error)
            else:
                waiting = work.send(answer)
    except StopIteration as done:
        value: T = done.value
        return value
