"""Warm spares: stacks opened while other trials run, so that starting a server is in no trial's way.

A spare is used once. It is opened from the same recipe as a cold one, nothing is ever reset, and so nothing has to be
proved about a reset: a trial cannot tell which kind it got.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from evalcore.builtin.mcp.stack import Recipe, Stack
from evalcore.errors import EvalcoreError

LIMIT: Final = 8  # spares at once: each may be a few processes


class Spares:
    """Stacks on their way or ready, by recipe, the oldest first."""

    def __init__(self, make: Callable[[Recipe], Stack], limit: int = LIMIT) -> None:
        self._make = make
        self._limit = limit
        self._waiting: dict[str, deque[tuple[Stack, asyncio.Task[None]]]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def prepare(self, recipe: Recipe) -> None:
        """Begin to open one, unless there are enough; the oldest of another recipe makes room."""
        if self._closed or not recipe.servers:
            return
        if len(self) >= self._limit:
            other = next((key for key in self._waiting if key != recipe.key), None)
            if other is None:
                return
            self._drop(*self._waiting[other].popleft())
            self._tidy(other)
        stack = self._make(recipe)
        self._waiting.setdefault(recipe.key, deque()).append((stack, asyncio.ensure_future(stack.open())))

    async def take(self, recipe: Recipe) -> tuple[Stack, bool]:
        """A stack for one trial, and whether it was a spare. Raises what opening it raises."""
        while self._waiting.get(recipe.key):
            stack, opening = self._waiting[recipe.key].popleft()
            self._tidy(recipe.key)
            try:
                await asyncio.shield(opening)
            except EvalcoreError:
                continue  # it may have been a moment's failure: what the trial gets is opened anew
            except asyncio.CancelledError:
                self._drop(stack, opening)
                raise
            if stack.is_sound():
                return stack, True
            await stack.close()
        stack = self._make(recipe)
        await stack.open()
        return stack, False

    async def settled(self) -> None:
        """Wait until every spare is ready, or has failed."""
        opening = [task for waiting in self._waiting.values() for _, task in waiting]
        await asyncio.gather(*opening, return_exceptions=True)

    async def close(self) -> None:
        """End every spare. Idempotent."""
        self._closed = True
        for waiting in self._waiting.values():
            for stack, opening in waiting:
                self._drop(stack, opening)
        self._waiting.clear()
        if self._closing:
            await asyncio.wait(self._closing)

    def _tidy(self, key: str) -> None:
        if not self._waiting[key]:
            del self._waiting[key]

    def _drop(self, stack: Stack, opening: asyncio.Task[None]) -> None:
        closing = asyncio.ensure_future(_ended(stack, opening))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)


async def _ended(stack: Stack, opening: asyncio.Task[None]) -> None:
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)
    await stack.close()
