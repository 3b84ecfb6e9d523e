"""Several arms side by side: the front of accuracy and cost, one score from many, and what stands behind a cell."""

from __future__ import annotations

from io import StringIO

import jsonschema
import pytest
from attrs import evolve
from rich.console import Console

from evalcore.report import scorecard
from evalcore.report.model import Report
from evalcore.report.text import render
from evalcore.values.arm import Arm
from evalcore.values.stamp import ArmStamp, RunStamp
from evalcore.values.trial import Exit
from evalcore.values.usage import Usage
from tests.unit.report_samples import BFCL, F1, ORACLE, Pair, attempt, cell, graded, report, stamp, trials, void

CHEAP, DEAR, BAD = (
    ArmStamp(Arm(name, {"harness": "react", "model": f"openai/{name}"}), "0.1.0") for name in ("cheap", "dear", "bad")
)


def priced(arm: ArmStamp, solved: int, cost: float | None, tasks: int = 12, wall: float = 60.0) -> list[Pair]:
    """One trial a task: the first so many are solved, each at the same cost."""
    use = {"usage": {"agent": Usage(1, 10, 1, cost_usd=cost)}, "wall_s": wall}
    return [graded(attempt(f"t{n:02}", 1, arm, **use), "pass" if n < solved else "fail") for n in range(tasks)]


def whole(*pairs: list[Pair], run: RunStamp | None = None) -> Report:
    arms = [CHEAP, DEAR, BAD]
    made = report([pair for some in pairs for pair in some], run or stamp(arms, [evolve(BFCL, tasks=12)], 1))
    jsonschema.validate(scorecard.to_json(made), scorecard.schema())
    return made


# ── the front ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_front_keeps_what_no_arm_beats_on_both() -> None:
    (front,) = whole(priced(CHEAP, 6, 0.01), priced(DEAR, 10, 0.05), priced(BAD, 3, 0.06)).fronts
    assert {m.handle: (m.accuracy, m.cost_usd, m.on_front) for m in front.members} == {
        "cheap": (0.5, pytest.approx(0.01), True),
        "dear": (pytest.approx(10 / 12), pytest.approx(0.05), True),
        "bad": (0.25, pytest.approx(0.06), False),
    }
    shares = {m.handle: m.share for m in front.members}
    assert shares["cheap"] == 1.0 and shares["bad"] == pytest.approx(0.0, abs=0.01)
    assert front.tasks == 12


def test_an_arm_without_a_price_is_on_no_front_and_says_why() -> None:
    (front,) = whole(priced(CHEAP, 6, 0.01), priced(DEAR, 12, None)).fronts
    dear = next(m for m in front.members if m.handle == "dear")
    assert (dear.on_front, dear.cost_usd, dear.share, dear.accuracy) == (False, None, None, 1.0)
    assert dear.reason == "no price known for openai/dear"


def test_arms_without_a_task_in_common_are_on_no_plane() -> None:
    there = [graded(attempt(f"x{n}", 1, DEAR), "pass") for n in range(6)]
    (front,) = whole(priced(CHEAP, 6, 0.01), there).fronts
    assert front.reason == "no task has a graded trial of every arm whose cost is known"
    assert all(m.accuracy is None and m.reason == "no task in common" for m in front.members)


def test_one_arm_and_controls_have_no_front() -> None:
    run = stamp([CHEAP, ORACLE], [evolve(BFCL, tasks=12)], 1)
    made = whole(priced(CHEAP, 6, 0.01), trials({f"t{n:02}": (1,) for n in range(12)}, ORACLE), run=run)
    assert made.fronts == made.composites == ()


# ── the composite ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_composite_scales_by_absolute_anchors_and_says_who_else_would_win() -> None:
    made = whole(priced(CHEAP, 6, 0.01, wall=60.0), priced(DEAR, 10, 0.05, wall=300.0))
    (one,) = made.composites
    assert set(one.left_out) == {"harm", "abstention"} and [d.name for d in one.dimensions] == [
        "success",
        "cost",
        "time",
    ]
    by = {arm.handle: arm for arm in one.arms}
    weights = {"success": 0.35, "cost": 0.15, "time": 0.10}
    scaled = {"success": 0.5, "cost": 1 - 0.02, "time": 0.9}  # 6 solved for $0.12: $0.02 a solve
    assert by["cheap"].scaled == pytest.approx(scaled)
    assert by["cheap"].score == pytest.approx(sum(weights[n] * x for n, x in scaled.items()) / 0.6)
    assert by["dear"].scaled == pytest.approx({"success": 10 / 12, "cost": 1 - 0.06, "time": 0.5})
    assert one.sensitivity is not None and one.sensitivity.draws == 20_000
    assert one.sensitivity.alone["time"] == (by["cheap"].digest,)
    assert by["cheap"].wins is not None and by["dear"].wins is not None
    assert by["cheap"].wins + by["dear"].wins == pytest.approx(1.0)
    assert by["dear"].min_max == pytest.approx(0.35 / 0.6)  # best by success alone, worst by the others
    assert "of all weightings" in one.sentence and "may be chance" in one.sentence


@pytest.mark.parametrize("chosen", [False, True])
def test_the_table_shows_all_of_a_composite_to_whom_chose_its_weights(chosen: bool) -> None:
    made = whole(priced(CHEAP, 6, 0.01), priced(DEAR, 10, 0.05))
    made = evolve(made, composites=(evolve(made.composites[0], declared=chosen),))
    console = Console(file=StringIO(), width=400)
    render(made, console)
    said = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    assert "of all weightings" in said and "may be chance" in said  # never without its sensitivity
    assert ("if one dimension were all that counts" in said) == ("each scaled from worst" in said) == chosen
    assert ("--weights" in said) != chosen


def test_a_score_does_not_depend_on_who_else_ran() -> None:
    two = whole(priced(CHEAP, 6, 0.01), priced(DEAR, 10, 0.05)).composites[0]
    three = whole(priced(CHEAP, 6, 0.01), priced(DEAR, 10, 0.05), priced(BAD, 1, 0.9)).composites[0]
    scores = [{a.handle: a.score for a in one.arms} for one in (two, three)]
    assert scores[0]["cheap"] == scores[1]["cheap"] and scores[0]["dear"] == scores[1]["dear"]


def test_an_arm_that_lacks_a_dimension_has_no_composite() -> None:
    (one,) = whole(priced(CHEAP, 6, 0.01), priced(DEAR, 0, 0.05)).composites
    dear = next(a for a in one.arms if a.handle == "dear")
    assert (dear.score, dear.reason, dear.raw["cost"]) == (None, "not known: cost", None)
    assert "only cheap has a composite" in one.sentence and "without a rival" in one.sentence
    assert one.sensitivity is None and "wins under" not in one.sentence


def test_the_study_names_other_weights_and_anchors() -> None:
    run = stamp([CHEAP, DEAR], [evolve(BFCL, tasks=12)], 1)
    table = {"weights": {"success": 1.0, "cost": 1.0}, "anchors": {"cost": [0.1, 0.0]}}
    (one,) = whole(
        priced(CHEAP, 6, 0.01), priced(DEAR, 10, 0.05), run=evolve(run, study={"analysis": table})
    ).composites
    assert one.declared and [d.name for d in one.dimensions] == ["success", "cost"]
    cheap = next(a for a in one.arms if a.handle == "cheap")
    assert cheap.score == pytest.approx((0.5 + 0.8) / 2)
    assert one.sensitivity is not None and one.sensitivity.draws is None  # two dimensions: exact


def test_equal_arms_are_level() -> None:
    (one,) = whole(priced(CHEAP, 6, 0.01), priced(DEAR, 6, 0.01)).composites
    assert "cheap and dear are level" in one.sentence


# ── behind a cell ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_trial_stands_in_its_task_by_repeat() -> None:
    pairs = [
        graded(attempt("t1", 2), "fail", harm=True),
        graded(attempt("t1", 1), "pass"),
        void("t1", 3),
        graded(attempt("t2", 1), "ungraded"),
    ]
    one = cell(pairs)
    first, second = one.detail.tasks
    assert [(t.repeat, t.outcome, t.harm) for t in first.trials] == [
        (1, "pass", None), (2, "fail", True), (3, "infra_error", None),
    ]  # fmt: skip
    assert (first.counts, first.flaky, first.cluster) == ((2, 1), True, "t1")
    assert [t.outcome for t in second.trials] == ["ungraded"] and second.counts == (0, 0)
    assert [t.task for t in one.detail.flipping()] == ["t1"]


def test_the_curve_shows_the_floor_that_is_no_prediction() -> None:
    curve = cell(trials(F1)).detail.curve
    assert [p.k for p in curve] == [1, 2, 3]
    assert [p.floor for p in curve] == pytest.approx([11 / 18, (11 / 18) ** 2, (11 / 18) ** 3])
    assert curve[2].pass_hat.value == pytest.approx(2 / 6) and curve[2].pass_at.value == pytest.approx(5 / 6)
    assert curve[2].pass_hat.value > curve[2].floor  # type: ignore[operator]  # tasks differ, so it lies above


def test_flakiness_is_the_chance_that_two_repeats_differ() -> None:
    one = cell(trials(F1))
    assert one.metrics["flakiness"].value == pytest.approx(3 * (2 / 3) / 6)
    unstable = one.detail.unstable
    assert unstable is not None and (unstable.share, unstable.k) == (0.5, 3)
    assert cell(trials({"t1": (1,), "t2": (0,)}), stamp(repeats=1)).metrics["flakiness"].value is None
    uneven = cell(trials({"t1": (1, 0), "t2": (0,)}))
    assert uneven.detail.unstable is None
    assert "1 of 2 tasks have one graded trial" in str(uneven.metrics["flakiness"].reason)


def test_a_time_that_the_limit_cut_off_is_longer_than_it_looks() -> None:
    pairs = [graded(attempt(f"t{n:02}", 1, wall_s=float(n)), "pass") for n in range(1, 9)]
    pairs += [graded(attempt(f"t{n:02}", 1, wall_s=10.0, exit=Exit("limit", "wall_s")), "fail") for n in range(9, 13)]
    one = cell(pairs, stamp(benchmarks=[evolve(BFCL, tasks=12)], repeats=1))
    half, high, _ = one.detail.latency
    assert (half.value, half.cut) == (6.5, 4)
    assert (high.value, high.beyond) == (None, 10.0)
    assert one.metrics["wall_s_p50"].value == 6.5
    p95 = one.metrics["wall_s_p95"]
    assert p95.value is None and "above 10, where runs were cut off" in str(p95.reason)


def test_times_that_are_no_numbers_are_unknown() -> None:
    pairs = [graded(attempt("t1", 1, wall_s=float("nan")), "pass"), graded(attempt("t2", 1), "pass")]
    made = report(pairs, stamp(repeats=1))
    metrics = made.cells[0].metrics
    assert metrics["wall_s"].value is None and metrics["wall_s_p50"].value is None
    assert metrics["wall_s"].reason == "wall time is not known in 1 of 2 trials"
    assert metrics["pass@1"].value == 1.0
    scorecard.encode(made)


def test_means_have_intervals_where_clusters_are_enough() -> None:
    pairs = [
        graded(
            attempt(f"t{n:02}", 1, wall_s=float(n), usage={"agent": Usage(1, 100 + n, 0, cost_usd=0.01 * n)}), "pass"
        )
        for n in range(1, 13)
    ]
    metrics = cell(pairs, stamp(benchmarks=[evolve(BFCL, tasks=12)], repeats=1)).metrics
    for name, mean in (("wall_s", 6.5), ("tokens", 106.5), ("cost_per_trial_usd", 0.065)):
        metric = metrics[name]
        assert metric.value == pytest.approx(mean)
        assert metric.low is not None and metric.high is not None and metric.low < mean < metric.high
        assert "BCa" in metric.method
    few = cell(pairs[:9], stamp(benchmarks=[evolve(BFCL, tasks=12)], repeats=1)).metrics["wall_s"]
    assert few.low is None and "9 clusters" in str(few.reason)


def test_unequal_repeats_weigh_tasks_and_not_trials_in_means_too() -> None:
    pairs = [graded(attempt("t1", k, wall_s=1.0), "pass") for k in (1, 2, 3)]
    pairs.append(graded(attempt("t2", 1, wall_s=3.0), "pass"))
    assert cell(pairs).metrics["wall_s"].value == 2.0
