"""The trials to come: while some run, environments of the next ones that take time to start are made ready."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from evalcore.contracts import PreparingBridge
from evalcore.engine.trial import Cell, assigned
from evalcore.values.task import BridgeSpec, Task
from evalcore.values.trial import TrialKey

if TYPE_CHECKING:
    from evalcore.engine.runner import Standing

Work: TypeAlias = "tuple[Cell, Task, TrialKey, Standing]"

DEPTH: Final = 4  # trials that are made ready for at once, at most: each may hold a few processes


class Ahead:
    """Hands out the work in order; several workers may ask. `look` begins to make ready for what comes next."""

    def __init__(self, work: Iterator[Work], depth: int) -> None:
        self._work = work
        self._depth = min(depth, DEPTH)
        self._next: deque[Work] = deque()
        self._looking: set[asyncio.Task[None]] = set()
        self._known: set[int] = set()  # cells of which it is known whether they have anything to make ready
        self._worth = False
        self._stopped = False

    def __iter__(self) -> Iterator[Work]:
        return self

    def __next__(self) -> Work:
        return self._next.popleft() if self._next else next(self._work)

    def look(self, cell: Cell, task: Task) -> None:
        """This one begins. Most benchmarks have nothing to make ready: that is found out once, from a cell's first."""
        if id(cell) not in self._known:
            self._known.add(id(cell))
            self._begin(self._find_out(cell, task))
        elif self._worth:
            self._fill()

    def stop(self) -> None:
        """Make ready for nothing more."""
        self._stopped = True
        for looking in self._looking:
            looking.cancel()

    def _fill(self) -> None:
        while not self._stopped and len(self._next) < self._depth:
            found = next(self._work, None)
            if found is None:
                return
            self._next.append(found)
            cell, task, _, standing = found
            if standing.executed is None:
                self._begin(_make_ready(cell, task))

    async def _find_out(self, cell: Cell, task: Task) -> None:
        if any(isinstance(bridge, PreparingBridge) for bridge, _ in await _bridges(cell, task)):
            self._worth = True
            self._fill()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        looking = asyncio.create_task(work)
        self._looking.add(looking)
        looking.add_done_callback(self._looking.discard)


async def _make_ready(cell: Cell, task: Task) -> None:
    for bridge, spec in await _bridges(cell, task):
        if isinstance(bridge, PreparingBridge):
            bridge.prepare(spec)


async def _bridges(cell: Cell, task: Task) -> list[tuple[object, BridgeSpec]]:
    """What a trial will open; nothing where that cannot be known."""
    try:
        return [(cell.bridges[spec.kind], spec) for spec in (await assigned(cell, task)).bridges]
    except Exception:  # noqa: BLE001 - whatever it is, the trial will meet it, and is where it is told
        return []
