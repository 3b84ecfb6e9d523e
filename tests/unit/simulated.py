"""A clock on which time passes when nothing else can happen: what waits side by side ends in the order of its time."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
_TURNS = 50  # of the loop after which whatever could go on without time passing has gone on


class SimulatedClock:
    """Seconds from 0. Only work that `run` carries out may sleep on it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._due: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = itertools.count()

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> str:
        return "2026-01-01T00:00:00.000Z"

    async def sleep(self, seconds: float) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._due, (self.seconds + seconds, next(self._count), done))
        await done

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Carry out the work, however much time it takes. Raises RuntimeError if it waits for ever."""

        async def drive() -> T:
            task = asyncio.ensure_future(work)
            while not task.done():
                for _ in range(_TURNS):
                    await asyncio.sleep(0)
                if task.done():
                    break
                while self._due and self._due[0][2].done():
                    heapq.heappop(self._due)
                if not self._due:
                    task.cancel()
                    raise RuntimeError("nothing is left that time could bring on")
                self.seconds, _, due = heapq.heappop(self._due)
                due.set_result(None)
            return task.result()

        return asyncio.run(drive())
