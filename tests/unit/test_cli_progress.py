"""Progress: what is counted, how it is shown with and without a terminal, and what Ctrl-C says."""

from __future__ import annotations

import asyncio
import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from evalcore.cli import progress
from evalcore.cli.progress import CellState, State, Watcher
from evalcore.engine.runner import Progress
from evalcore.values.arm import Arm

ORACLE, NOOP = Arm("oracle", {"harness": "oracle"}), Arm("noop", {"harness": "no\x1bop"})


def plan(tasks: int = 10, repeats: int = 2) -> Any:
    """As much of a plan as progress looks at."""
    return SimpleNamespace(
        arms=(ORACLE, NOOP),
        benchmarks=(SimpleNamespace(selector="toy", tasks=tuple(range(tasks))),),
        study=SimpleNamespace(repeats=repeats),
        cells={("toy", ORACLE.digest): None, ("toy", NOOP.digest): None},
        faulted={},
    )


def counted(**outcomes: int) -> Progress:
    """Outcomes of the oracle, as the engine counts them."""
    done = sum(n for outcome, n in outcomes.items() if outcome != "void")
    return Progress(40, done, {("toy", ORACLE.digest): {k.replace("_", " "): n for k, n in outcomes.items()}})


def state(**changes: Any) -> State:
    """A run at some point."""
    cells = (CellState("oracle", 20, 9, 1, 2, 1), CellState("no\x1bop", 20, 0, 4, 0, 0))
    fields: dict[str, Any] = {"cells": cells, "done": 15, "total": 40, "elapsed_s": 12.0}
    return State(**(fields | changes))


def test_a_line_says_all() -> None:
    assert state(rate=2.5, left_s=10.0).line() == (
        "15/40 trials · 9 pass · 5 fail · 2 void attempts · 1 ungraded · 2.5/s · 12.0 s · 10.0 s left"
    )


def test_a_slow_run_is_counted_by_the_minute() -> None:
    assert "1.2/min" in state(rate=0.02).line()


def test_outcomes_are_counted_by_what_they_mean() -> None:
    watcher = Watcher("resume")
    counts = counted(
        **{"pass": 3, "declined": 1, "fail": 2, "fabricated": 1, "void": 5, "grader_error": 1, "ungraded": 1}
    )
    cell = watcher._state(plan(), counts).cells[0]
    assert (cell.passed, cell.failed, cell.void, cell.other, cell.done, cell.total) == (4, 3, 5, 2, 9, 20)


def test_what_earlier_processes_did_counts_too() -> None:
    watcher = Watcher(
        "resume", before={("toy", ORACLE.digest): {"pass": 5, "void": 1}, ("toy", NOOP.digest): {"fail": 7}}
    )
    now = watcher._state(plan(), counted(fail=2))
    assert [(c.passed, c.failed, c.void) for c in now.cells] == [(5, 2, 1), (0, 7, 0)]
    assert now.done == 14


def test_the_rate_is_that_of_the_last_while() -> None:
    pace = progress._Pace(0.0)
    assert pace.of(state(done=0, elapsed_s=0.0)).rate is None
    assert pace.of(state(done=5, elapsed_s=10.0)).rate == 0.5
    for second in range(20, 100, 10):
        last = pace.of(state(done=5 + second, elapsed_s=float(second)))
    assert last.rate == pytest.approx(1.0, abs=0.01)
    assert last.left_s == pytest.approx((40 - 95) / last.rate)


def test_without_a_terminal_there_is_a_line_now_and_then() -> None:
    lines: list[str] = []
    view = progress._Lines(lines.append)
    view.show(state())
    assert lines == [] and view.every_s == progress.FIRST_LINE_S
    view.show(state())
    assert len(lines) == 1 and view.every_s == progress.LINE_S
    view.show(state(elapsed_s=3600.0))
    assert view.every_s == progress.LONGEST_LINE_S
    view.message("stopping")
    view.close(state())
    assert lines[2:] == ["stopping", state().line()]


def bars(height: int = 20) -> tuple[progress._Bars, io.StringIO]:
    """Bars on a terminal that is a string."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=90, height=height, color_system=None, legacy_windows=False)
    return progress._Bars(console), out


def test_on_a_terminal_each_cell_has_a_bar() -> None:
    view, out = bars()
    view.show(state(rate=2.0, left_s=12.5))
    view.message("finishing what runs\x1b[2J")
    view.show(state())
    view.close(state())
    text = out.getvalue()
    assert "oracle" in text and "11/20" in text and "9 pass  1 fail  2 void attempts  1 ungraded" in text
    assert "15/40 trials · 2.0/s · 12.0 s · 12.5 s left" in text
    assert "finishing what runs\N{REPLACEMENT CHARACTER}[2J" in text
    assert "no\N{REPLACEMENT CHARACTER}op" in text


def test_more_cells_than_lines_are_counted() -> None:
    view, out = bars(height=10)
    view.show(state(cells=tuple(CellState(f"arm {n}", 1, 0, 0, 0, 0) for n in range(30))))
    view.close(state())
    assert "… and 25 more" in out.getvalue()


@pytest.mark.parametrize("quiet", [True, False])
def test_a_watcher_shows_until_it_is_cancelled(quiet: bool, capsys: pytest.CaptureFixture[str]) -> None:
    async def watch() -> None:
        watching = asyncio.ensure_future(Watcher("resume", quiet).watch(plan(), counted(**{"pass": 40})))
        await asyncio.sleep(0.01)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

    asyncio.run(watch())
    err = capsys.readouterr().err
    assert err == "" if quiet else err.startswith("40/40 trials · 40 pass · ")


def test_ctrl_c_says_what_it_does_and_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    watcher = Watcher("evalcore resume runs/r", quiet=True)
    watcher.stopping(1)
    watcher.stopping(2)
    assert capsys.readouterr().err == (
        "finishing what runs; Ctrl-C again stops it now. To go on later: evalcore resume runs/r\n"
        "stopping now. To go on later: evalcore resume runs/r\n"
    )
