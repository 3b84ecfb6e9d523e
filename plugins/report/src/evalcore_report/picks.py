"""Which transcripts a file holds: what a reader wants to see first, as much of it as fits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

from evalcore.report.detail import TrialRow
from evalcore.report.model import Cell, Report

MOST: Final = 80
EACH: Final = 12  # of one kind

KINDS: Final = {
    "harm": "harm",
    "flip": "one arm solved it, the other did not",
    "unstable": "the tries at one task disagree",
    "fabricated": "fabricated",
    "fail": "failed",
    "pass": "solved",
}


def picks(report: Report) -> dict[str, str]:
    """Attempts by id with the kind that they were chosen as: harms, flips, then a sample of the others."""
    found: dict[str, str] = {}
    agents = [cell for cell in report.cells if not cell.arm.control] or list(report.cells)
    for kind, attempts in (
        ("harm", _from_each(agents, lambda t: t.harm is True)),
        ("flip", _flips(report, agents)),
        ("unstable", _unstable(agents)),
        ("fabricated", _from_each(agents, lambda t: t.outcome == "fabricated")),
        ("fail", _from_each(agents, lambda t: t.outcome == "fail")),
        ("pass", _from_each(agents, lambda t: t.success)),
    ):
        taken = 0
        for attempt in attempts:
            if len(found) >= MOST or taken >= (EACH if kind not in ("harm", "flip") else 2 * EACH):
                break
            if attempt not in found:
                found[attempt] = kind
                taken += 1
    return found


def _from_each(cells: Sequence[Cell], wanted: object) -> Iterator[str]:
    """The first that are wanted, one of each cell in turn."""
    assert callable(wanted)
    lists = [[t.attempt for row in cell.detail.tasks for t in row.trials if wanted(t)][: 2 * EACH] for cell in cells]
    yield from _in_turn(lists)


def _unstable(cells: Sequence[Cell]) -> Iterator[str]:
    """Of a task whose repeats disagree, one that was solved and one that was not."""
    lists = []
    for cell in cells:
        pairs = [pair for row in cell.detail.tasks if row.flaky and (pair := _one_of_each(row.results))]
        lists.append([attempt for pair in pairs[:EACH] for attempt in pair])
    yield from _in_turn(lists)


def _one_of_each(trials: Sequence[TrialRow]) -> tuple[str, str] | None:
    solved = next((t.attempt for t in trials if t.success), None)
    other = next((t.attempt for t in trials if not t.success), None)
    return None if solved is None or other is None else (solved, other)


def _flips(report: Report, agents: Sequence[Cell]) -> Iterator[str]:
    """Both sides of the tasks that flipped: in declared contrasts, else between the first two arms of a benchmark."""
    declared = [flip for c in report.contrasts for flip in (*c.gained[:EACH], *c.lost[:EACH])]
    for flip in declared:
        yield flip.look_a
        yield flip.look_b
    if declared:
        return
    for benchmark in dict.fromkeys(cell.benchmark.selector for cell in agents):
        yield from _flips_between(*[cell for cell in agents if cell.benchmark.selector == benchmark][:2])


def _flips_between(*cells: Cell) -> Iterator[str]:
    if len(cells) < 2:
        return
    ours, theirs = ({row.task: row for row in cell.detail.tasks} for cell in cells)
    for task, row in ours.items():
        other = theirs.get(task)
        if other is None or not row.results or not other.results:
            continue
        (n, a), (m, b) = row.counts, other.counts
        if a * m != b * n:
            up = a * m > b * n
            yield next(t.attempt for t in row.results if t.success is up)
            yield next(t.attempt for t in other.results if t.success is not up)


def _in_turn(lists: Iterable[Sequence[str]]) -> Iterator[str]:
    for group in zip_longest(*lists):
        yield from (attempt for attempt in group if attempt is not None)
