"""Live progress of a run on standard error: bars on a terminal, now and then a line elsewhere, nothing when quiet."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from attrs import define, evolve, field, frozen

from evalcore.cli.output import tell
from evalcore.engine.plan import Plan
from evalcore.engine.runner import Progress
from evalcore.report.words import safe, seconds
from evalcore.values.trial import SUCCESSES

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

CellKey: TypeAlias = tuple[str, str]  # selector, arm digest
Counts: TypeAlias = Mapping[CellKey, Mapping[str, int]]  # by outcome, or `void`

REFRESH_S: Final = 0.25
FIRST_LINE_S: Final = 2.0
LINE_S: Final = 5.0  # between two lines, later as long as a tenth of what has passed
LONGEST_LINE_S: Final = 60.0
NOTICE_S: Final = 1.0  # how soon it is told that the run waits
WINDOW_S: Final = 30.0  # over which the rate is taken
LABEL: Final = 36  # columns for a cell's name


@frozen
class CellState:
    """One benchmark × one arm, as far as it has come."""

    label: str
    total: int
    passed: int
    failed: int
    void: int
    other: int  # ungraded, or a grader error

    @property
    def done(self) -> int:
        """Trials that need nothing more now."""
        return self.passed + self.failed + self.other


@frozen
class State:
    """A run as far as it has come. Seconds; `rate` in trials a second and `left_s` are None until they can be told."""

    cells: tuple[CellState, ...]
    done: int
    total: int
    elapsed_s: float
    rate: float | None = None
    left_s: float | None = None
    notices: tuple[str, ...] = ()  # what the run is waiting for

    def line(self) -> str:
        """All of it in one line."""
        words = {"pass": sum(c.passed for c in self.cells), "fail": sum(c.failed for c in self.cells)}
        words |= {"void attempts": sum(c.void for c in self.cells), "ungraded": sum(c.other for c in self.cells)}
        counted = [f"{n:,} {word}" for word, n in words.items() if n]
        return " · ".join([f"{self.done:,}/{self.total:,} trials", *counted, *self.pace(), *map(safe, self.notices)])

    def pace(self) -> list[str]:
        """How fast, how long, and how much longer."""
        rate = [] if self.rate is None else [f"{self.rate:,.1f}/s" if self.rate >= 0.1 else f"{60 * self.rate:.1f}/min"]
        left = [] if self.left_s is None else [f"{seconds(self.left_s)} left"]
        return [*rate, seconds(self.elapsed_s), *left]


class View(Protocol):
    """A way to show it."""

    every_s: float

    def show(self, state: State) -> None: ...
    def message(self, text: str) -> None: ...
    def close(self, state: State) -> None: ...


@define
class Watcher:
    """What `RunOptions.watch` and `on_stop` call. `before` is what earlier processes counted."""

    resume: str  # the command that goes on with this run
    quiet: bool = False
    before: Counts = field(factory=dict)
    view: View | None = None
    _began: float = field(factory=time.monotonic)

    async def watch(self, plan: Plan, progress: Progress) -> None:
        """Show the run until cancelled."""
        self._began = time.monotonic()
        pace = _Pace(self._began)
        if self.quiet:
            return
        self.view = view = _Bars() if sys.stderr.isatty() else _Lines()
        try:
            while True:
                view.show(pace.of(self._state(plan, progress)))
                await _sleep(view.every_s, progress)
        finally:
            view.close(self._state(plan, progress))

    def stopping(self, presses: int) -> None:
        """Say what Ctrl-C does."""
        if presses == 1:
            text = f"finishing what runs; Ctrl-C again stops it now. To go on later: {self.resume}"
        else:
            text = f"stopping now. To go on later: {self.resume}"
        if self.view is not None:
            self.view.message(text)
        else:
            tell(text)

    def _state(self, plan: Plan, progress: Progress) -> State:
        labels = {arm.digest: arm.label for arm in plan.arms}
        sizes = {b.selector: len(b.tasks) * plan.study.repeats for b in plan.benchmarks}
        places = dict.fromkeys((*plan.cells, *plan.faulted))
        several = len(plan.benchmarks) > 1
        cells = tuple(
            _cell(
                f"{selector} · {labels[arm]}" if several else labels[arm],
                sizes[selector] * (((selector, arm) in plan.cells) + ((selector, arm) in plan.faulted)),
                self.before.get((selector, arm), {}),
                progress.graded.get((selector, arm), {}),
            )
            for selector, arm in places
        )
        done = max(progress.done, sum(c.done for c in cells))
        elapsed_s = time.monotonic() - self._began
        notices = tuple(progress.notices())
        return State(cells, min(done, progress.total), progress.total, elapsed_s, notices=notices)


async def _sleep(seconds: float, progress: Progress) -> None:
    """Until it is time for the next view: at once where the run begins to wait for a provider."""
    until, waited = time.monotonic() + seconds, bool(progress.notices())
    while (left := until - time.monotonic()) > 0:
        await asyncio.sleep(min(left, NOTICE_S))
        waits = bool(progress.notices())
        if waits and not waited:
            return
        waited = waits


def _cell(label: str, total: int, *counts: Mapping[str, int]) -> CellState:
    sums: dict[str, int] = {}
    for outcome, n in (pair for part in counts for pair in part.items()):
        sums[outcome] = sums.get(outcome, 0) + n
    passed = sum(sums.pop(o, 0) for o in SUCCESSES)
    failed = sums.pop("fail", 0) + sums.pop("fabricated", 0)
    return CellState(label, total, passed, failed, sums.pop("void", 0), sum(sums.values()))


@define
class _Pace:
    """The rate over the last while."""

    began: float
    seen: deque[tuple[float, int]] = field(factory=deque)

    def of(self, state: State) -> State:
        """The state, with its rate."""
        self.seen.append((state.elapsed_s, state.done))
        while len(self.seen) > 2 and state.elapsed_s - self.seen[1][0] >= WINDOW_S:
            self.seen.popleft()
        since, before = self.seen[0]
        passed, new = state.elapsed_s - since, state.done - before
        if passed < 0.5 or new <= 0:
            return state
        rate = new / passed
        return evolve(state, rate=rate, left_s=(state.total - state.done) / rate)


class _Lines:
    """A line now and then, for logs."""

    def __init__(self, write: Callable[[str], None] = tell) -> None:
        self.every_s = FIRST_LINE_S
        self._write = write
        self._first = True

    def show(self, state: State) -> None:
        """The line, but not before there is something to say."""
        if not self._first:
            self._write(state.line())
            self.every_s = min(LONGEST_LINE_S, max(LINE_S, state.elapsed_s / 10))
        self._first = False

    def message(self, text: str) -> None:
        """At once."""
        self._write(text)

    def close(self, state: State) -> None:
        """The last line."""
        self._write(state.line())


class _Bars:
    """A bar for each cell, redrawn in place."""

    every_s = REFRESH_S

    def __init__(self, console: Console | None = None) -> None:
        from rich.console import Console

        self._console = console or Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._live: Live | None = None
        self._message = ""
        self._last: State | None = None

    def show(self, state: State) -> None:
        """Draw."""
        from rich.live import Live

        self._last = state
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(self._drawn(state), refresh=True)

    def message(self, text: str) -> None:
        """Below the bars from now on."""
        self._message = text
        if self._last is not None:
            self.show(self._last)

    def close(self, state: State) -> None:
        """Take the bars away and leave one line."""
        if self._live is not None:
            self._live.stop()
        tell(state.line())

    def _drawn(self, state: State) -> Table:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        page = Table.grid()
        grid = Table.grid(padding=(0, 2, 0, 0))
        for _ in range(4):
            grid.add_column(no_wrap=True)
        room = max(3, self._console.height - 5)
        for cell in state.cells[:room]:
            bar = ProgressBar(total=max(1, cell.total), completed=cell.done, width=24)
            counts = Text.assemble(*_counts(cell))
            grid.add_row(Text(_short(cell.label)), bar, Text(f"{cell.done:,}/{cell.total:,}", justify="right"), counts)
        page.add_row(grid)
        if len(state.cells) > room:
            page.add_row(Text(f"… and {len(state.cells) - room} more", style="dim"))
        page.add_row(Text(" · ".join([f"{state.done:,}/{state.total:,} trials", *state.pace()]), style="dim"))
        for notice in state.notices:
            page.add_row(Text(safe(notice), style="yellow"))
        if self._message:
            page.add_row(Text(safe(self._message), style="yellow"))
        return page


def _counts(cell: CellState) -> Iterable[tuple[str, str]]:
    """Each count in its colour; what is nought is left out."""
    parts = ((cell.passed, "pass", "green"), (cell.failed, "fail", ""), (cell.void, "void attempts", "yellow"))
    for n, word, style in (*parts, (cell.other, "ungraded", "yellow")):
        if n:
            yield f"{n:,} {word}  ", style


def _short(label: str) -> str:
    label = safe(label)
    return label if len(label) <= LABEL else f"{label[: LABEL - 1]}…"
