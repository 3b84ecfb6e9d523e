"""A door: one wire of one trial, at an unguessable address that ends with the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AsyncExitStack
from typing import Any, Final, TypeVar

from evalcore.contracts import Recorder
from evalcore.wires.http.exchange import Exchange

T = TypeVar("T")

GRACE_S: Final = 5.0  # what a cancelled call gets to clean up before it is left behind
MAX_EVENTS: Final = 100  # of the transport, in one trace and door: a flood of bad requests is told, not stored


class DoorClosed(Exception):
    """The trial's agent has ended: its calls are over."""


class Door:
    """What a trial has on the wire server. Whoever opens it closes it; afterwards its token is unknown."""

    def __init__(self, url: str, forget: Callable[[], None], events: Recorder | None) -> None:
        self.url = url
        self._forget = forget
        self._events = events
        self._told: set[tuple[object, ...]] = set()
        self._calls: set[asyncio.Task[Any]] = set()
        self._closed = False

    async def serve(self, exchange: Exchange) -> None:
        """Answer one request."""
        raise NotImplementedError

    async def close(self) -> None:
        """Forget the token, cancel the calls under way, and wait for them to end. Idempotent."""
        self._closed = True
        self._forget()
        calls = tuple(self._calls)
        for call in calls:
            call.cancel()
        if calls:
            await asyncio.wait(calls, timeout=GRACE_S)

    async def carry_out(self, work: Coroutine[Any, Any, T]) -> T:
        """Await `work` as a call that ends with the door. Raises DoorClosed, and what `work` raises."""
        if self._closed:
            work.close()
            raise DoorClosed
        call = asyncio.ensure_future(work)
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        try:
            return await call
        except asyncio.CancelledError:
            waiting = asyncio.current_task()
            if self._is_closed() and (waiting is None or not waiting.cancelling()):
                raise DoorClosed from None
            raise

    def _is_closed(self) -> bool:
        return self._closed  # asked anew: while a call was awaited, it may have changed

    def tell(self, kind: str, **fields: str | int | bool) -> None:
        """Record an event of the transport, each different one once."""
        event = (kind, *fields.items())
        if self._events is None or self._closed or event in self._told or len(self._told) >= MAX_EVENTS:
            return
        self._told.add(event)
        self._events.record(kind, **fields)


async def close_all(doors: Iterable[Door]) -> None:
    """Close each, whatever the closing of another raises or is cut short by; then that goes on."""
    async with AsyncExitStack() as stack:
        for door in doors:
            stack.push_async_callback(door.close)
