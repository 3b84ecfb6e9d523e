"""A report says what its trials hold, and no more: counts, rates, what is left out and why."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import jsonschema
import pytest
from attrs import evolve

from evalcore.contracts import GradedTrial
from evalcore.errors import RefusedError
from evalcore.report import notes, scorecard
from evalcore.report.build import ReportBuilder
from evalcore.report.columns import by_whom, name_of
from evalcore.report.model import MetricValue
from evalcore.values.descriptors import MetricInfo
from evalcore.values.trial import Attempt, Exit, Grading, Verdict
from evalcore.values.usage import Usage
from tests.unit.report_samples import (
    BFCL,
    CONSTRAINED,
    F1,
    LIMITED,
    NOOP,
    ORACLE,
    REACT,
    Pair,
    attempt,
    cell,
    flat,
    graded,
    report,
    shown,
    stamp,
    trials,
    void,
)

ONCE = stamp(repeats=1)

# ── rates ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_repeated_tasks_get_the_clustered_interval() -> None:
    one = cell(trials(F1))
    solved = one.metrics["pass@1"]
    assert solved.value == pytest.approx(11 / 18)
    assert (solved.low, solved.high) == (pytest.approx(0.248568, abs=1e-6), pytest.approx(0.881868, abs=1e-6))
    assert (solved.level, solved.n, solved.reason) == (0.95, 18, None)
    assert solved.method.startswith("mean over tasks") and "clustered Wilson" in solved.method
    assert (one.tasks, one.clusters, one.trials, one.planned, one.graded, one.solved) == (6, 6, 18, 18, 18, 11)
    assert dict(one.outcomes) == {"pass": 11, "fail": 7, "declined": 0, "fabricated": 0}


def test_tasks_that_share_a_cluster_widen_the_interval() -> None:
    shared = {"t1": "a", "t2": "a", "t3": "b", "t4": "b", "t5": "b", "t6": "c"}
    one = cell(trials(F1), stamp(benchmarks=[evolve(BFCL, clusters=3, cluster_of=shared)]))
    assert one.clusters == 3
    solved = one.metrics["pass@1"]
    # Residuals by hand: a 13/18, b -5/6 - 0 ... summed per cluster; see test_stats for the formula over runs.
    means = {"a": 1 + 2 / 3, "b": 0 + 2 / 3 + 1 / 3, "c": 1.0}
    theta, sizes = 11 / 18, {"a": 2, "b": 3, "c": 1}
    se = math.sqrt(3 / 2 * sum((means[g] - sizes[g] * theta) ** 2 for g in means)) / 6
    n, t = min(18.0, theta * (1 - theta) / se**2), 4.302652730  # t with 2 degrees of freedom
    half = t / (1 + t * t / n) * math.sqrt(theta * (1 - theta) / n + t * t / (4 * n * n))
    centre = (theta + t * t / (2 * n)) / (1 + t * t / n)
    assert (solved.low, solved.high) == (pytest.approx(centre - half), pytest.approx(centre + half))


def test_what_a_model_is_stands_beside_its_numbers() -> None:
    small = evolve(REACT, model_note="a demonstration model")
    assert "a demonstration model" in cell(trials(F1), stamp(arms=[small])).notes
    assert "a demonstration model" in flat(shown(report(trials(F1), stamp(arms=[small]))))


def test_an_oracle_that_does_not_apply_has_no_cell_and_a_note_says_why() -> None:
    run = stamp(arms=[REACT, ORACLE], benchmarks=[evolve(BFCL, oracle_note="its tasks have no gold")])
    whole = report(trials(F1), run)
    assert [c.arm.arm.harness for c in whole.cells] == ["react"]
    assert any("its tasks have no gold" in note.text for note in whole.notes)


def test_one_cluster_has_a_value_but_no_interval() -> None:
    whole = report(trials({"t1": (1, 0, 1)}), stamp(benchmarks=[evolve(BFCL, tasks=1, clusters=1)]))
    solved = whole.cells[0].metrics["pass@1"]
    assert (solved.value, solved.low, solved.high, solved.level) == (pytest.approx(2 / 3), None, None, None)
    assert solved.reason == "no interval: one cluster"
    assert "no interval: one cluster" in flat(shown(whole))


def test_single_runs_of_independent_tasks_get_the_plain_interval() -> None:
    solved = cell(trials({f"t{i}": (int(i < 8),) for i in range(10)}), ONCE).metrics["pass@1"]
    assert (solved.low, solved.high) == (pytest.approx(0.490162, abs=1e-6), pytest.approx(0.943318, abs=1e-6))
    assert solved.method.endswith("; Wilson")


def test_declining_rightly_is_success_and_fabricating_is_not() -> None:
    pairs = [graded(attempt("t1"), "declined"), graded(attempt("t2"), "fabricated")]
    one = cell(pairs, ONCE)
    assert one.metrics["pass@1"].value == 0.5
    assert one.outcomes["declined"] == one.outcomes["fabricated"] == 1


def test_pass_hat_k_goes_as_far_as_every_task_allows() -> None:
    metrics = cell(trials(F1)).metrics
    assert metrics["pass^2"].value == pytest.approx((1 + 1 / 3 + 0 + 1 / 3 + 0 + 1) / 6)
    assert metrics["pass^3"].value == pytest.approx(2 / 6)
    pair = metrics["pass^2"]
    assert pair.low is not None and pair.high is not None
    assert 0 < pair.low < 4 / 9 < pair.high < 1 and "clustered Wilson" in pair.method
    short = cell(trials({**F1, "t6": (1, 1)})).metrics
    assert short["pass^3"].value is None
    assert short["pass^3"].reason == "a task has only 2 graded trials"
    assert not [name for name in cell(trials({"t1": (1,)}), ONCE).metrics if name.startswith("pass^")]


def test_unequal_repeats_weigh_tasks_not_trials() -> None:
    assert cell(trials({"t1": (1, 1, 1), "t2": (0,)})).metrics["pass@1"].value == 0.5


def test_views_are_second_rates_with_their_label() -> None:
    label = "all calls of the loop"
    pairs = [graded(attempt(f"t{i}"), "fail", views={label: i < 2}) for i in range(3)]
    one = cell(pairs, ONCE)
    assert one.metrics["pass@1"].value == 0.0
    assert one.views[label].value == pytest.approx(2 / 3)
    assert one.views[label].low is not None
    assert label in shown(report(pairs, ONCE))


# ── what counts ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_later_attempt_supersedes_a_void_one() -> None:
    pairs = [void("t1"), void("t1", number=2, kind="disk"), graded(attempt("t1", number=3), "pass"), void("t2")]
    one = cell(pairs, ONCE)
    assert (one.trials, one.graded, one.voids, one.excluded["infra_error"]) == (2, 1, 3, 1)
    assert dict(one.void_kinds) == {"disk": 1, "provider": 2}
    assert one.metrics["pass@1"].value == 1.0
    assert one.wasted["agent"].usage.input == 300
    assert one.usage["agent"].usage.input == 100  # voids never enter what counts
    assert one.exits["completed"] == 1
    said = "3 void attempts (infrastructure failed, not the agent): 1 trial ended without a result, and is not counted"
    assert f"{said}; most often: provider: 503" in one.notes
    assert len([note for note in one.notes if "void" in note]) == 1


def test_void_attempts_that_were_tried_again_cost_no_trial() -> None:
    one = cell([void("t1"), graded(attempt("t1", number=2), "pass")], ONCE)
    assert "1 void attempt (infrastructure failed, not the agent): each was tried again" in one.notes


def test_what_counts_is_said_of_each_arm_by_name() -> None:
    a, b = cell([void("t1")], ONCE), cell([void("t1")], ONCE)
    counts = ["2 trials lost", "partial: 1 planned trial not run", "a note of all"]
    assert by_whom([a, b], lambda _: counts) == [
        ((name_of(a), f"{name_of(b)}, each"), counts[:2]),
        ((), counts[2:]),
    ]
    assert by_whom([a], lambda _: counts) == [((), counts)]


def test_void_and_result_may_arrive_in_any_order() -> None:
    pairs = [void("t1"), graded(attempt("t1", number=2), "pass")]
    assert report(pairs, ONCE) == report(pairs[::-1], ONCE)


def test_a_trial_without_a_result_is_excluded_by_its_reason() -> None:
    pairs: list[Pair] = [
        (attempt("t1"), None),
        graded(attempt("t2"), "grader_error"),
        graded(attempt("t3"), "ungraded"),
        graded(attempt("t4"), "pass"),
    ]
    one = cell(pairs, ONCE)
    assert dict(one.excluded) == {"infra_error": 0, "grader_error": 1, "ungraded": 2}
    assert (one.trials, one.graded, one.executed) == (4, 1, 4)
    assert one.exits["completed"] == 4
    assert [note for note in one.notes if "not counted" in note] == [
        "1 trial not counted: the grader failed; `evalcore regrade` tries again",
        "1 trial not counted yet: run but not graded; `evalcore resume` grades",
        "1 trial not counted: ungraded, for want of a judge or a reference",
    ]


def test_why_a_grader_failed_stands_beside_how_often() -> None:
    why = "BadJudge: the reply\ncannot be read"
    ones = [attempt(f"t{i}") for i in range(2)]
    broken = [(one, Grading(one.id, Verdict("grader_error"), 0.0, why)) for one in ones]
    (note,) = [note for note in cell(broken, ONCE).notes if "the grader failed" in note]
    assert note.startswith("2 trials not counted") and note.endswith("most often: BadJudge: the reply cannot be read")


def test_a_view_is_read_of_ungraded_trials_too() -> None:
    pairs = [graded(attempt(f"t{i}"), "fail", views={"database only": i < 1}) for i in range(3)]
    pairs += [graded(attempt(f"t{i}"), "ungraded", views={"database only": True}) for i in range(3, 5)]
    pairs += [graded(attempt("t5"), "ungraded")]  # of which nothing can be said
    one = cell(pairs, ONCE)
    view = one.views["database only"]
    assert one.graded == 3 and view.n == 5
    assert view.value == pytest.approx(3 / 5)
    assert "among the trials of which it can be said, ungraded ones too" in view.method


def test_ungraded_trials_bound_the_rate() -> None:
    pairs = [
        graded(attempt("t1"), "pass"),
        graded(attempt("t2"), "fail"),
        graded(attempt("t3"), "ungraded"),
        graded(attempt("t4"), "ungraded", bounds=(0.5, 0.75)),
    ]
    whole = report(pairs, ONCE)
    solved = whole.cells[0].metrics["pass@1"]
    assert (solved.value, solved.n) == (0.5, 2)
    assert solved.bounds == (pytest.approx(1.5 / 4), pytest.approx(2.75 / 4))
    assert "solved would be 37.5 % if every ungraded trial failed, and 68.8 % if every one passed" in flat(shown(whole))


def test_bounds_stand_where_nothing_is_graded() -> None:
    solved = cell([graded(attempt("t1"), "ungraded")], ONCE).metrics["pass@1"]
    assert (solved.value, solved.reason, solved.bounds) == (None, "nothing has been graded", (0.0, 1.0))


def test_grading_what_was_read_ungraded_replaces_it() -> None:
    first = attempt("t1")
    one = cell([(first, None), graded(first, "pass")], ONCE)
    assert (one.trials, one.graded, one.excluded["ungraded"]) == (1, 1, 0)
    assert one.wasted["agent"].usage.calls == 0


def test_an_ungraded_trial_that_ran_again_counts_once_and_its_cost_is_wasted() -> None:
    pairs = [graded(attempt("t1"), "ungraded"), graded(attempt("t1", number=2), "fail")]
    for order in (pairs, pairs[::-1]):
        one = cell(order, ONCE)
        assert (one.trials, one.graded, one.usage["agent"].usage.input) == (1, 1, 100)
    assert cell(pairs, ONCE).wasted["agent"].usage.input == 100


def test_a_second_result_of_a_trial_is_left_out_and_said() -> None:
    one = cell([graded(attempt("t1"), "pass"), graded(attempt("t1", number=2), "fail")], ONCE)
    assert (one.graded, one.metrics["pass@1"].value) == (1, 1.0)
    assert "1 attempt left out: the trial already had a result" in one.notes


def test_harm_stands_beside_the_outcome() -> None:
    pairs = [
        graded(attempt("t1"), "pass", harm=True),
        graded(attempt("t2"), "fail", harm=True),
        graded(attempt("t3"), "fail", harm=False),
    ]
    one = cell(pairs, ONCE)
    assert (one.harm, one.outcomes["pass"]) == (2, 1)
    unjudged = cell(trials({"t1": (1,)}), ONCE)
    assert (unjudged.harm, unjudged.reasons["harm"]) == (None, "this benchmark does not judge harm")


def test_an_empty_run_has_cells_that_say_so() -> None:
    whole = report([], stamp([REACT, ORACLE]))
    one = whole.cells[0]
    assert (one.trials, one.planned, one.provenance, one.reasons["provenance"]) == (0, 18, None, "nothing has run")
    assert "partial: 18 planned trials not run" in one.notes
    for name, metric in one.metrics.items():
        assert metric.value is None, name
        assert metric.reason, name
    jsonschema.validate(scorecard.to_json(whole), scorecard.schema())
    assert "0 of 18" in shown(whole)


def test_a_run_without_benchmarks_or_arms_is_an_empty_report() -> None:
    whole = report([], stamp([], []))
    assert whole.cells == ()
    assert "nothing to report" in shown(whole)
    jsonschema.validate(scorecard.to_json(whole), scorecard.schema())


def test_different_worlds_are_never_pooled() -> None:
    pairs = trials({"t1": (1,), "t2": (1,)})
    pairs += [
        graded(attempt("t3", isolation="container"), "fail"),
        graded(attempt("t4", provenance="replayed"), "fail"),
    ]
    whole = report(pairs, ONCE)
    assert [(c.provenance, c.isolation, c.metrics["pass@1"].value) for c in whole.cells] == [
        ("live", "container", 0.0),
        ("live", "none", 1.0),
        ("replayed", "none", 0.0),
    ]
    assert [(c.trials, c.planned, c.not_run) for c in whole.cells] == [(1, 6, 2), (2, 6, 2), (1, 6, 2)]
    assert "provenance replayed: not from live trials" in whole.cells[2].notes
    assert all(any("not pooled" in note for note in c.notes) for c in whole.cells)
    assert "isolation none · replayed" in flat(shown(whole).replace("·", "|")).replace("|", "·")


def test_a_void_made_good_in_another_world_is_lost_in_neither() -> None:
    retried = graded(attempt("t1", number=2, isolation="container"), "pass")
    spoilt, good = sorted(report([void("t1"), retried], ONCE).cells, key=lambda c: c.graded)
    assert (spoilt.voids, spoilt.trials, good.trials) == (1, 0, 1)


def test_a_stranger_s_attempt_is_refused() -> None:
    with pytest.raises(RefusedError, match="belongs to no benchmark and arm of run run-1"):
        report(trials({"t1": (1,)}, CONSTRAINED), ONCE)


# ── measures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_effort_by_hand() -> None:
    pairs = [
        graded(
            attempt("t1", wall_s=1.0, tool_calls=4, tool_errors=1, usage={"agent": Usage(2, 90, 10, cost_usd=0.2)}),
            "pass",
        ),
        graded(
            attempt("t2", wall_s=2.0, tool_calls=4, tool_errors=0, usage={"agent": Usage(1, 50, 0, cost_usd=0.1)}),
            "fail",
        ),
        graded(attempt("t3", wall_s=6.0, tool_calls=0, usage={"agent": Usage(1, 10, 5, cost_usd=0.3)}), "pass"),
    ]
    metrics = cell(pairs, ONCE).metrics
    expected = {
        "tokens": 165 / 3,
        "tool_error_rate": 1 / 8,
        "wall_s": 3.0,
        "wall_s_p50": 2.0,
        "cost_usd": 0.6,
        "cost_per_solve_usd": 0.3,
    }
    for name, value in expected.items():
        assert metrics[name].value == pytest.approx(value), name
        assert metrics[name].low is None
        assert metrics[name].reason, name


def test_an_unknown_price_is_never_zero() -> None:
    free, unpriced = Usage(1, 10, 0, cost_usd=0.0), Usage(1, 10, 0)
    pairs = [
        graded(attempt("t1", usage={"agent": free}), "pass"),
        graded(attempt("t2", usage={"agent": unpriced}), "pass"),
    ]
    whole = report(pairs, ONCE)
    one = whole.cells[0]
    reason = "no price known for openai/gpt-5.2 in 1 of 2 trials ($0 in the others)"
    for name in ("cost_usd", "cost_per_solve_usd"):
        assert (one.metrics[name].value, one.metrics[name].reason) == (None, reason)
    assert (one.usage["agent"].usage.cost_usd, one.usage["agent"].unpriced) == (None, 1)
    assert "cost in all and cost per solve unknown: no price known" in flat(shown(whole))
    assert cell([graded(attempt("t1", usage={"agent": free}), "pass")], ONCE).metrics["cost_usd"].value == 0.0


def test_the_price_of_a_user_s_model_is_missed_by_its_name() -> None:
    both = {"agent": Usage(1, 1, 1, cost_usd=0.1), "user": Usage(1, 1, 1)}
    run = evolve(ONCE, study={"roles": {"user": {"model": "openai/gpt-9"}}})
    one = cell([graded(attempt("t1", usage=both), "pass")], run)
    assert one.metrics["cost_usd"].reason == "no price known for openai/gpt-9"
    assert one.metrics["cost_per_solve_usd"].value == 0.1  # the agent's alone


def test_nothing_solved_has_no_cost_per_solve() -> None:
    metric = cell(trials({"t1": (0,), "t2": (0,)}), ONCE).metrics["cost_per_solve_usd"]
    assert (metric.value, metric.reason) == (
        None,
        "spent $0.02, solved 0: a solve costs at least $0.013 (95 % one-sided)",
    )


def test_calls_without_usage_make_tokens_a_lower_bound() -> None:
    pairs = [graded(attempt("t1", usage={"agent": Usage(3, 10, 5, unreported=2)}), "pass")]
    one = cell(pairs, ONCE)
    assert (one.metrics["tokens"].value, one.metrics["tokens"].n) == (15.0, 1)
    assert str(one.metrics["tokens"].reason).startswith("a lower bound: 2 of 3 model calls reported no usage")
    assert "2 model calls without reported usage (role agent): tokens are lower bounds" in one.notes


def test_controls_have_no_model_and_are_no_score() -> None:
    run = stamp([REACT, ORACLE, NOOP], repeats=1)
    pairs = trials({"t1": (0,)}) + trials({"t1": (1,)}, ORACLE) + trials({"t1": (0,)}, NOOP)
    whole = report(pairs, run)
    oracle = whole.cells[1]
    for name in ("tokens", "cost_usd", "cost_per_solve_usd"):
        assert (oracle.metrics[name].value, oracle.metrics[name].reason) == (None, "no model")
    assert notes.CONTROL in oracle.notes
    assert notes.CONTROLS in map(str, whole.notes)
    assert notes.NO_AGENT not in map(str, whole.notes)
    text = flat(shown(whole))
    assert "Controls: is the rig sound? These are no scores." in text
    assert text.index("react × openai/gpt-5.2") < text.index("Controls:") < text.index("oracle (ceiling)")
    assert "noop (floor)" in text


def test_controls_alone_say_that_no_agent_was_measured() -> None:
    assert notes.NO_AGENT in map(str, report([], stamp([ORACLE, NOOP])).notes)


def test_exits_limits_and_flags_are_counted() -> None:
    pairs = [
        graded(attempt("t1", exit=Exit("limit", "tokens"), flags=("slow",)), "fail", flags=("known-defect", "slow")),
        graded(attempt("t2", exit=Exit("limit", "wall_s")), "fail", flags=("known-defect",)),
        graded(attempt("t3", exit=Exit("crashed")), "fail"),
    ]
    whole = report(pairs, ONCE)
    one = whole.cells[0]
    assert dict(one.exits) == {"completed": 0, "limit": 2, "refused": 0, "crashed": 1}
    assert dict(one.limits_hit) == {"tokens": 1, "wall_s": 1}
    assert dict(one.flags) == {"known-defect": 2, "slow": 1}
    assert "1 limit: tokens" in shown(whole)
    assert "flags: 2 known-defect, 1 slow" in flat(shown(whole))


class Calls:
    """Tool calls per trial, as a plugin would count them."""

    def per_task(self, trials: Sequence[GradedTrial]) -> tuple[float, float] | None:
        assert [t.attempt.key.repeat for t in trials] == sorted(t.attempt.key.repeat for t in trials)
        if trials[0].attempt.key.task == "t3":
            return None
        return sum(t.attempt.tool_calls for t in trials), len(trials)


class Broken:
    def per_task(self, trials: Sequence[GradedTrial]) -> tuple[float, float] | None:
        raise KeyError("no such thing")


class Infinite:
    def per_task(self, trials: Sequence[GradedTrial]) -> tuple[float, float] | None:
        return math.inf, 1.0


def test_plugins_metrics_see_counted_trials_and_cannot_break_the_report() -> None:
    info = MetricInfo("calls", "tool calls per trial", "some.plugin:Calls", unit="calls", validated="docs/calls.md")
    extra = [
        (info, Calls()),
        (MetricInfo("broken", "breaks", "some.plugin:Broken"), Broken()),
        (MetricInfo("infinite", "has no end", "some.plugin:Infinite"), Infinite()),
        (MetricInfo("tokens", "an impostor", "some.plugin:Broken"), Broken()),
    ]
    pairs = [void("t1"), *trials({"t1": (1, 1), "t2": (0,), "t3": (1,)})]
    random.Random(5).shuffle(pairs)
    whole = report(pairs, metrics=extra)
    metrics = whole.cells[0].metrics
    assert (metrics["calls"].value, metrics["calls"].n, metrics["calls"].validated) == (1.0, 4, "docs/calls.md")
    assert str(metrics["broken"].reason).startswith("the metric failed: KeyError")
    assert metrics["infinite"].reason == "a task's value is not finite"
    assert metrics["tokens"].value == 120.0
    assert "metric tokens of a plugin has the name of a built-in one, and was left out" in map(str, whole.notes)
    assert "not validated" in shown(whole)


def test_a_metric_without_a_reason_for_what_is_missing_cannot_be_made() -> None:
    for wrong in ({"value": math.nan}, {"value": None}, {"value": 1.0, "low": 0.0, "high": None}, {"value": 1.0}):
        with pytest.raises(ValueError, match=r"finite|two ends|has a reason"):
            MetricValue(**{"method": "", "n": 1, **wrong})  # type: ignore[arg-type]


# ── notes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_a_reader_must_know_about_a_benchmark_is_said() -> None:
    old = evolve(BFCL.dataset, status="superseded", status_note="by v5, in 2027")
    bench = evolve(LIMITED, dataset=old, floor_note="doing nothing is right here: the floor is 100 %")
    texts = [str(note) for note in report([], stamp(benchmarks=[bench])).notes]
    limits = "limits are stricter than the benchmark's own (tokens 200,000, wall_s 600)"
    limits += ": not comparable with published results"
    assert texts == [
        notes.NO_ISOLATION,
        "bfcl-simple-python: doing nothing is right here: the floor is 100 %",
        "bfcl-simple-python: dataset BFCL v4 is superseded: by v5, in 2027",
        f"bfcl-simple-python: {limits}",
    ]


# ── building ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_finish_may_be_called_while_trials_come_in() -> None:
    builder = ReportBuilder(stamp())
    for one, grading in [*trials(F1), (attempt("t9"), None)]:
        builder.add(one, grading)
        assert builder.finish() == builder.finish()
    assert builder.finish() == report([*trials(F1), (attempt("t9"), None)])


def test_attempts_are_not_kept() -> None:
    import gc

    def living() -> int:
        gc.collect()
        return sum(isinstance(one, Attempt) for one in gc.get_objects())  # other tests may have left some

    builder, before = ReportBuilder(ONCE), living()
    for i in range(50):
        builder.add(*graded(attempt(f"t{i}"), "pass"))
    assert living() <= before


def test_a_model_that_was_not_called_is_not_what_was_measured() -> None:
    silent = [graded(attempt(f"t{i}", usage={}), "pass") for i in range(2)]
    one = cell([*silent, graded(attempt("t2"), "pass")], ONCE)
    assert "no answer of the model's in 2 of 3 trials: they say little about it" in one.notes
    assert not [note for note in cell([graded(attempt("t2"), "pass")], ONCE).notes if "no answer" in note]
    control = cell([graded(attempt("t1", arm=ORACLE), "pass")], stamp([ORACLE], repeats=1))
    assert not [note for note in control.notes if "no answer" in note]


def test_rows_that_differ_by_provenance_alone_are_told_apart_wherever_they_stand() -> None:
    pairs = [
        graded(attempt(f"t{i}", provenance=provenance), "pass", views={"by the book": True})
        for i, provenance in enumerate(("live", "replayed"))
    ]
    text = flat(shown(report(pairs, ONCE)))
    name = ONCE.arms[0].arm.label
    assert f"by the book {name} 1 100.0 %" in text and f"by the book {name}, replayed 1 100.0 %" in text
