"""Groups of benchmarks: one weighted mean of pass@1 per arm, called by the group's name only when it is whole."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from evalcore.report.model import Cell, GroupValue
from evalcore.values.stamp import GroupStamp, RunStamp


def group_values(stamp: RunStamp, cells: Sequence[Cell]) -> tuple[GroupValue, ...]:
    """Every group of the run for every arm that ran any of it."""
    return tuple(_value(group, digest, cells) for group in stamp.groups for digest in _arms(cells))


def _arms(cells: Iterable[Cell]) -> list[str]:
    return list(dict.fromkeys(c.arm.arm.digest for c in cells))


def _value(group: GroupStamp, digest: str, cells: Sequence[Cell]) -> GroupValue:
    mine = [c for c in cells if c.arm.arm.digest == digest]
    mine = [c for c in mine if c.provenance != "fault-injected"] or mine
    found = {m: [c for c in mine if c.benchmark.selector == m] for m in group.members}
    missing = [m for m, some in found.items() if len(some) != 1 or some[0].metrics["pass@1"].value is None]
    part = [m for m, some in found.items() if m not in missing and not _whole(some[0])]
    value = None if missing else _mean(group, {m: some[0] for m, some in found.items()})
    reason = None
    if missing:
        reason = f"no one value for {', '.join(missing)}"
    elif part:
        reason = f"not every trial of {', '.join(part)} counts"
    return GroupValue(
        group.name, mine[0].arm.arm.label, digest, value, not missing and not part, reason, dict(group.members)
    )


def _whole(cell: Cell) -> bool:
    """Whether every task of the benchmark has a counted trial."""
    benchmark = cell.benchmark
    return cell.tasks == benchmark.tasks == benchmark.of_tasks and cell.graded == cell.planned


def _mean(group: GroupStamp, cells: dict[str, Cell]) -> float:
    total = math.fsum(group.members.values())
    return math.fsum(w * _solved(cells[m]) for m, w in group.members.items()) / total


def _solved(cell: Cell) -> float:
    value = cell.metrics["pass@1"].value
    assert value is not None  # the caller has seen to it
    return value
