"""A group's mean is weighted as its owner weighs it, and bears the group's name only when it is whole."""

from __future__ import annotations

import pytest
from attrs import evolve

from evalcore.report import scorecard
from evalcore.report.model import Report
from evalcore.values.stamp import BenchmarkStamp, GroupStamp, RunStamp
from evalcore.values.trial import TrialKey
from tests.unit.report_samples import BFCL, REACT, Pair, report, shown, stamp, trials

OTHER = evolve(BFCL, selector="bfcl-multiple", tasks=2, clusters=2, of_tasks=2)
FIRST = evolve(BFCL, tasks=2, clusters=2, of_tasks=2)
GROUP = GroupStamp("bfcl", {"bfcl-simple-python": 3.0, "bfcl-multiple": 1.0})


def run(*benchmarks: BenchmarkStamp) -> RunStamp:
    return evolve(stamp(benchmarks=benchmarks, repeats=1), groups=(GROUP,))


def of(benchmark: BenchmarkStamp, scores: dict[str, tuple[int, ...]]) -> list[Pair]:
    """Trials of another benchmark than the samples'."""
    moved = []
    for attempt, grading in trials(scores):
        key = TrialKey(benchmark.selector, attempt.key.task, attempt.key.arm, attempt.key.repeat)
        identity = f"{benchmark.selector}/{attempt.id}"
        moved.append((evolve(attempt, id=identity, key=key), grading and evolve(grading, attempt=identity)))
    return moved


def whole() -> Report:
    pairs = [*of(FIRST, {"t1": (1,), "t2": (0,)}), *of(OTHER, {"u1": (1,), "u2": (1,)})]
    return report(pairs, run(FIRST, OTHER))


def test_the_mean_is_weighted() -> None:
    (group,) = whole().groups
    assert group.value == pytest.approx((3 * 0.5 + 1 * 1.0) / 4)
    assert (group.title, group.complete, group.reason) == ("bfcl", True, None)
    assert group.arm == REACT.arm.label


def test_a_missing_member_leaves_no_value() -> None:
    (group,) = report(of(FIRST, {"t1": (1,), "t2": (0,)}), run(FIRST, OTHER)).groups
    assert (group.value, group.complete) == (None, False)
    assert group.reason == "no one value for bfcl-multiple"


def test_a_part_of_the_tasks_is_not_called_by_the_name() -> None:
    part = evolve(FIRST, of_tasks=400)
    pairs = [*of(part, {"t1": (1,), "t2": (0,)}), *of(OTHER, {"u1": (1,), "u2": (1,)})]
    (group,) = report(pairs, run(part, OTHER)).groups
    assert group.value is not None
    assert (group.title, group.complete) == ("bfcl (part)", False)
    assert group.reason == "not every trial of bfcl-simple-python counts"


def test_groups_are_in_the_scorecard_and_on_the_page() -> None:
    found = whole()
    (group,) = scorecard.to_json(found)["groups"]  # type: ignore[misc,union-attr]
    assert isinstance(group, dict)
    assert (group["name"], group["value"], group["complete"]) == ("bfcl", 0.625, True)
    assert "62.5 %" in shown(found)
