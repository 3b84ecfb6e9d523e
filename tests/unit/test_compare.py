"""Two arms compared: what differs in the set-up refuses or is told, and no word says more than the trials hold."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from attrs import evolve

from evalcore.errors import ConfigError, RefusedError, UnknownNameError
from evalcore.report.compare import Comparison, compare
from evalcore.report.comparison_words import measured, shown, to_json, verdict
from evalcore.report.contrasts import gather_claims, p_values
from evalcore.report.outcomes import Delta
from evalcore.report.sides import Side, SideBuilder, choose_arm
from evalcore.values.arm import Arm
from evalcore.values.stamp import ArmStamp, RunStamp
from evalcore.values.task import Limits
from evalcore.values.trial import Void
from evalcore.values.usage import Usage
from tests.unit.compare_samples import OTHER_MODEL, only, run, side, tasks, two
from tests.unit.report_samples import BFCL, CONSTRAINED, ORACLE, REACT, attempt, graded

# ── outcomes ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_effect_and_flips_by_hand() -> None:
    # A solves t0-t6 of 8, B solves t0-t1 and t7: b = 5, c = 1, so 4/8 more, and p = 2 (1 + 6) / 64
    outcome = only(two(tasks([1, 1, 1, 1, 1, 1, 1, 0]), tasks([1, 1, 0, 0, 0, 0, 0, 1])))
    assert outcome.interval.value == pytest.approx(0.5)
    assert outcome.test is not None and outcome.test.p == pytest.approx(14 / 64)
    assert [f.task for f in outcome.gained] == ["t02", "t03", "t04", "t05", "t06"]
    assert [(f.task, f.a, f.b) for f in outcome.lost] == [("t07", (0, 1), (1, 1))]
    assert outcome.lost[0].look_a == "plain/t07/0/1"
    assert outcome.paired.rates == (pytest.approx(7 / 8), pytest.approx(3 / 8))
    assert outcome.conclusion.verdict == "inconclusive"


def test_repeats_and_the_trial_to_look_at() -> None:
    a = {f"t{n}": (0, 1, 1) for n in range(6)}
    outcome = only(two(a, dict.fromkeys(a, (1, 0, 0))))
    assert outcome.interval.value == pytest.approx(1 / 3)
    flip = outcome.gained[0]
    assert (flip.a, flip.b) == ((2, 3), (1, 3))
    assert (flip.look_a, flip.look_b) == ("plain/t0/1/1", "plain/t0/1/1")


def test_tasks_are_paired_by_content_and_the_others_are_named() -> None:
    a = side(tasks([1] * 7), run("new"))
    changed = evolve(a.tasks[0], digest="another content")
    unknown = evolve(a.tasks[1], digest="")
    outcome = only(compare(evolve(a, tasks=(changed, unknown, *a.tasks[2:])), side(tasks([0] * 8), run("old"))))
    assert outcome.paired.only_a == ("t00", "t01")
    assert outcome.paired.only_b == ("t00", "t01", "t07")
    assert len(outcome.paired.pairing.keys) == 5


def test_unknown_contents_never_meet() -> None:
    outcome = only(compare(*(side(tasks([1] * 6), run(name), task_digest="") for name in ("new", "old"))))
    assert outcome.conclusion.verdict == "refused"
    assert "nothing to compare" in outcome.conclusion.reason
    assert outcome.interval.value is None and json.dumps(to_json(two(tasks([1]), {"other": (1,)})))


def test_fewer_than_six_clusters_are_refused() -> None:
    made = two(tasks([1] * 5), tasks([0] * 5))
    assert made.refused and "a verdict needs 6" in only(made).conclusion.reason


def test_unequal_void_rates_are_refused_and_void_tasks_count() -> None:
    made = two(tasks([1] * 10 + [-1] * 2), tasks([1] * 12))
    outcome = only(made)
    assert outcome.paired.void_rates == (pytest.approx(2 / 12), 0.0)
    assert outcome.paired.without_result == ("t10", "t11")
    assert made.refused and "void trials" in outcome.conclusion.reason


def test_a_result_stands_and_what_came_after_is_left_out() -> None:
    builder = SideBuilder(run("r"), REACT)
    first = attempt("t", task_digest="d")
    builder.add(evolve(first, id="void", exit=None, void=Void("provider", "503")), None)
    builder.add(*graded(evolve(first, id="second", number=2), "fail"))
    builder.add(*graded(evolve(first, id="third", number=3), "pass"))
    (task,) = builder.finish().tasks
    assert [r.attempt for r in task.results] == ["second"] and task.missing == 0


def test_a_task_that_changed_within_a_run_is_refused() -> None:
    builder = SideBuilder(run("r"), REACT)
    builder.add(attempt("t", task_digest="d"), None)
    with pytest.raises(RefusedError, match="not one task"):
        builder.add(attempt("t", 1, task_digest="e"), None)


def test_effort_is_a_point_value_and_an_unknown_price_is_not_zero() -> None:
    a = side(tasks([1] * 6), run("new"), usage={"agent": Usage(1, 100, 20, cost_usd=0.02)})
    b = side(tasks([1] * 6), run("old"), usage={"agent": Usage(1, 50, 10, unreported=1)})
    deltas = {d.name: d for d in only(compare(a, b)).deltas}
    assert deltas["tokens per trial"].difference == 60
    assert "lower bounds" in str(deltas["tokens per trial"].reason)
    cost = deltas["cost per trial"]
    assert (cost.a, cost.b, cost.difference) == (pytest.approx(0.02), None, None)
    assert cost.reason == "a price is not known in 6 of 6 trials of B"
    assert deltas["harm"].a is None and "not judged" in str(deltas["harm"].reason)


def test_a_few_missing_prices_are_the_reason_and_leave_the_rest_alone() -> None:
    known, gone = ({"agent": Usage(1, 100, 20, cost_usd=cost)} for cost in (0.02, None))
    partly = SideBuilder(run("new"), REACT)
    for n in range(10):
        one = attempt(f"t{n:02}", task_digest=f"digest of t{n:02}", usage=gone if n < 2 else known)
        partly.add(*graded(one, "pass"))
    a, b = partly.finish(), side(tasks([1] * 9 + [0]), run("old"), usage=known)
    for metric in ("cost_per_trial_usd", "cost_per_solve_usd"):
        outcome = only(compare(a, b, metric=metric))
        assert "a price is not known in 2 of 10 trials of A" in outcome.conclusion.reason
        assert (outcome.conclusion.verdict, outcome.paired.without_result) == ("refused", ())
        assert (outcome.paired.runs, outcome.paired.rates) == ((10, 10), (1.0, 0.9))
        assert [f.task for f in outcome.gained] == ["t09"]
        deltas = {d.name: d for d in outcome.deltas}
        assert (deltas["tokens per trial"].a, deltas["time per trial"].reason) == (120.0, None)
        assert deltas["cost per trial"].reason == "a price is not known in 2 of 10 trials of A"


def test_tokens_that_were_not_reported_are_no_number_to_compare() -> None:
    a = side(tasks([1] * 8), run("new"), usage={"agent": Usage(2, 100, 20, unreported=1)})
    b = side(tasks([1] * 8), run("old"), usage={"agent": Usage(1, 50, 10)})
    outcome = only(compare(a, b, metric="tokens"))
    assert outcome.conclusion.verdict == "refused" and "in 8 of 8 trials of A" in outcome.conclusion.reason


def test_short_times_and_their_difference_agree_and_means_of_tokens_keep_their_half() -> None:
    time, tokens = Delta("time per trial", "s", 0.0243, 0.0381), Delta("tokens per trial", "tokens", 268.5, 268.0)
    assert [shown(time, x) for x in (time.a, time.b)] == ["0.0243 s", "0.0381 s"]
    assert shown(time, time.difference, signed=True) == "-0.0138 s"
    assert [shown(tokens, x) for x in (tokens.a, tokens.b)] == ["268.5", "268"]


def test_exploratory_never_says_better_or_worse() -> None:
    for a, b in ((1, 0), (0, 1)):
        made = two(tasks([a] * 20), tasks([b] * 20), margin=0.05)
        outcome = only(made)
        assert outcome.conclusion.verdict == "candidate" and not made.declared
        said = json.dumps(to_json(made)).replace("higher_is_better", "") + measured(outcome) + verdict(outcome)
        assert "better" not in said and "worse" not in said


def test_a_margin_named_afterwards_shows_no_tie() -> None:
    outcome = only(two(tasks([1] * 200), tasks([1] * 200), margin=0.05))
    assert outcome.conclusion.verdict == "inconclusive" and outcome.margin is None
    assert outcome.settle.half_width == 0.05


def test_what_would_settle_it() -> None:
    mixed = [1, 0] * 20
    outcome = only(two(tasks(mixed), tasks([*mixed[1:], 1])))
    need = outcome.settle.need
    assert need is not None and need.buy == "clusters"
    assert need.clusters is not None and need.clusters > 40 and outcome.settle.trials == need.clusters


# ── declared beforehand ──────────────────────────────────────────────────────────────────────────────────────────────


def declared(name: str, **contrast: Any) -> RunStamp:
    """A run of two arms whose study declares their contrast."""
    one = {"a": "constrained", "b": "plain", "metric": "pass@1", **contrast}
    return run(name, (REACT, CONSTRAINED), study={"contrasts": [one]})


def contrast_of(stamps: tuple[RunStamp, RunStamp], a: Iterable[int], b: Iterable[int], **options: Any) -> Comparison:
    return compare(side(tasks(a), stamps[0], CONSTRAINED), side(tasks(b), stamps[1], REACT), **options)


def test_a_declared_contrast_is_confirmatory_without_a_treatment() -> None:
    both = declared("r")
    made = contrast_of((both, both), [1] * 20, [0] * 20)
    assert made.declared and made.treatment == ("tool_protocol",)
    assert only(made).conclusion.verdict == "better"
    assert only(contrast_of((both, both), [0] * 20, [1] * 20)).conclusion.verdict == "worse"


def test_every_declared_contrast_counts_in_the_adjustment() -> None:
    rest = [{"a": "plain", "b": f"x{n}", "metric": "pass@1"} for n in range(3)]
    whole = declared("r")
    whole = evolve(whole, study={"contrasts": [*whole.study["contrasts"], *rest]})
    outcome = only(contrast_of((whole, whole), [1] * 6, [0] * 6))
    assert outcome.family == 4
    assert outcome.p_adjusted == pytest.approx(4 * 2 / 2**6)
    assert outcome.conclusion.verdict == "inconclusive"


def test_a_declared_margin_decides_and_another_is_a_mistake() -> None:
    both = declared("r", margin=0.05)
    made = contrast_of((both, both), [1] * 100, [1] * 100)
    assert only(made).conclusion.verdict == "equivalent"
    with pytest.raises(ConfigError, match="declared a margin of 5pp"):
        contrast_of((both, both), [1] * 100, [1] * 100, margin=0.1)


def test_two_runs_are_confirmatory_only_if_both_studies_say_the_same() -> None:
    assert contrast_of((declared("a"), declared("b")), [1] * 20, [0] * 20).declared
    silent = run("b", (REACT, CONSTRAINED))
    made = contrast_of((declared("a"), silent), [1] * 20, [0] * 20, treatment=["tool_protocol"])
    assert not made.declared and only(made).conclusion.verdict == "candidate"


# ── the set-up ───────────────────────────────────────────────────────────────────────────────────────────────────────

DATASET = BFCL.dataset
BOUNDARIES: list[tuple[str, dict[str, Any]]] = [
    ("dataset version", {"benchmarks": (evolve(BFCL, dataset=evolve(DATASET, version="v5")),)}),
    ("dataset digest", {"benchmarks": (evolve(BFCL, dataset=evolve(DATASET, files={"simple.json": "00"})),)}),
    ("grader", {"benchmarks": (evolve(BFCL, grader="another"),)}),
    ("grader's stamp", {"benchmarks": (evolve(BFCL, grader_stamp={"bfcl-eval": "2027"}),)}),
    ("limits", {"benchmarks": (evolve(BFCL, limits=Limits(tokens=5)),)}),
    ("limits", {"benchmarks": (evolve(BFCL, standard_limits=False),)}),
    ("cluster of t00", {"benchmarks": (evolve(BFCL, cluster_of={"t00": "other"}),)}),
    ("user's model", {"study": {"roles": {"user": {"model": "openai/x"}}}}),
    ("judge's model", {"study": {"roles": {"judge": {"model": "openai/x"}}}}),
    ("toolkit bfcl: source", {"toolkits": {"bfcl": {"source": "another"}}}),
]


@pytest.mark.parametrize("field, changes", BOUNDARIES, ids=[f"{n} {field}" for n, (field, _) in enumerate(BOUNDARIES)])
def test_every_boundary_of_a_run_refuses_and_no_treatment_lifts_it(field: str, changes: dict[str, Any]) -> None:
    clusters = {"benchmarks": (evolve(BFCL, cluster_of={"t00": "one"}),)} if field.startswith("cluster") else {}
    base = {"toolkits": {"bfcl": {"source": "pinned"}}} | clusters
    a, b = side(tasks([1] * 6), run("new", **base | changes)), side(tasks([1] * 6), run("old", **base))
    with pytest.raises(RefusedError) as refused:
        compare(a, b, treatment=["model", "harness"])
    assert refused.value.exit_code == 3
    assert any(field in reason for reason in refused.value.reasons), refused.value.reasons


@pytest.mark.parametrize("field, value", [("provenance", "replayed"), ("isolation", "container")])
def test_another_world_refuses(field: str, value: str) -> None:
    a, b = side(tasks([1] * 6), run("new"), **{field: value}), side(tasks([1] * 6), run("old"))
    with pytest.raises(RefusedError) as refused:
        compare(a, b)
    assert refused.value.reasons == (f"{field}: {value} in A, {'live' if field == 'provenance' else 'none'} in B",)


def test_a_side_of_two_worlds_is_refused_even_across_worlds() -> None:
    builder = SideBuilder(run("new"), REACT)
    for n, isolation in enumerate(("none", "container")):
        builder.add(*graded(attempt(f"t{n}", task_digest="d", isolation=isolation), "pass"))
    with pytest.raises(RefusedError, match="not of one kind"):
        compare(builder.finish(), side(tasks([1] * 6), run("old")), allow_cross_world=True)


ARMS = [
    (OTHER_MODEL, "model"),
    (CONSTRAINED, "tool_protocol"),
    (evolve(REACT, harness_version="0.2.0"), "harness"),
    (evolve(REACT, harness_build="abc"), "harness"),
    (evolve(REACT, arm=evolve(REACT.arm, content={"playbook": "ab" * 32})), "model"),
]


@pytest.mark.parametrize("arm, treatment", ARMS, ids=["model", "axis", "version", "build", "content"])
def test_a_treatment_lifts_exactly_its_own(arm: ArmStamp, treatment: str) -> None:
    a, b = side(tasks([1] * 6), run("new", (arm,)), arm), side(tasks([1] * 6), run("old"))
    others = [name for name in ("model", "harness", "tool_protocol") if name in {*arm.arm.axes} and name != treatment]
    for names in ([], others):
        with pytest.raises(RefusedError) as refused:
            compare(a, b, treatment=names)
        assert f"--treatment {treatment}" in refused.value.reasons[0]
    found = compare(a, b, treatment=[treatment]).differences
    assert [d.kind for d in found if d.kind != "told"] == ["treatment"]


def test_every_reason_is_told_at_once() -> None:
    arm = ArmStamp(Arm("both", {"harness": "react", "model": "openai/gpt-6", "tool_protocol": "constrained"}), "9")
    with pytest.raises(RefusedError) as refused:
        compare(side(tasks([1] * 6), run("new", (arm,)), arm), side(tasks([1] * 6), run("old")))
    assert [r.partition(":")[0] for r in refused.value.reasons] == ["model", "tool_protocol", "harness version"]
    assert "--treatment harness,model,tool_protocol" in str(refused.value.hint)


def test_axes_of_another_harness_belong_to_it() -> None:
    other = ArmStamp(Arm("cmd", {"harness": "command", "model": "openai/gpt-5.2", "agent": "a.toml"}), "1")
    found = compare(
        side(tasks([1] * 6), run("new", (other,)), other), side(tasks([1] * 6), run("old")), treatment=["harness"]
    ).differences
    assert {d.field for d in found if d.kind == "treatment"} == {"harness", "agent", "harness version"}


def test_an_axis_at_its_default_is_no_difference() -> None:
    newer = evolve(REACT, arm=Arm("plain", {**REACT.arm.axes, "memory": "off"}, {"memory": "off"}))
    made = compare(side(tasks([1] * 6), run("new", (newer,)), newer), side(tasks([1] * 6), run("old")))
    assert not made.treatment and "memory" not in {d.field for d in made.differences}


def test_unknown_is_not_equal_between_runs_and_is_within_one() -> None:
    nameless = evolve(REACT, harness_version="")
    twin = evolve(CONSTRAINED, harness_version="")
    unstamped = {"benchmarks": (evolve(BFCL, grader_stamp={}),)}
    runs = [run(name, (nameless, twin), **unstamped) for name in ("new", "old")]
    sides = [side(tasks([1] * 6), one, nameless) for one in runs]
    with pytest.raises(RefusedError) as refused:
        compare(*sides)
    assert refused.value.reasons == (
        "harness version: unknown in A, unknown in B (--treatment harness)",
        "bfcl-simple-python: grader's stamp: unknown in A, unknown in B (--treatment grader)",
    )
    assert compare(sides[0], side(tasks([1] * 6), runs[0], twin), treatment=["tool_protocol"]).boundaries == ()


def test_what_is_no_boundary_is_told() -> None:
    versions: Any = {"evalcore": "0.2.0", "python": "3.11.7", "plugins": {"bfcl": "2", "more": "1"}}
    a = side(tasks([1] * 6), run("new", versions=versions, seed=7, repeats=1, host={"cpus": 2}))
    found = {d.field: (d.a, d.b) for d in compare(a, side(tasks([1] * 6), run("old"))).differences}
    assert found["evalcore version"] == ("0.2.0", "0.1.0")
    assert found["plugin bfcl"] == ("2", "1") and found["plugin more"] == ("1", "not installed")
    assert found["seed"] == ("7", "1") and found["repeats"] == ("1", "3") and found["host cpus"] == ("2", None)
    assert found["model as served"] == (None, None)


def test_across_worlds_is_visible_and_exploratory_only() -> None:
    both = declared("r")
    other = evolve(declared("s"), benchmarks=(evolve(BFCL, grader="another"),))
    made = contrast_of((both, other), [1] * 20, [0] * 20, allow_cross_world=True)
    assert made.cross_world and not made.declared
    assert [d.field for d in made.boundaries] == ["bfcl-simple-python: grader"]
    assert only(made).conclusion.verdict == "candidate"
    assert to_json(made)["cross_world"] is True
    assert not contrast_of((both, both), [1] * 20, [0] * 20, allow_cross_world=True).cross_world


def test_what_is_no_comparison() -> None:
    one = side(tasks([1] * 6), run("r"))
    with pytest.raises(ConfigError, match="with itself"):
        compare(one, one)
    with pytest.raises(UnknownNameError, match="unknown metric 'speed'"):
        two(tasks([1]), tasks([1]), metric="speed")
    with pytest.raises(UnknownNameError, match="did you mean 'model'"):
        two(tasks([1]), tasks([1]), treatment=["modell"])
    elsewhere = evolve(BFCL, selector="tau2", dataset=evolve(DATASET, name="tau2"))
    with pytest.raises(RefusedError, match="no benchmark in common") as refused:
        compare(one, side(tasks([1] * 6), run("old", benchmarks=(elsewhere,))))
    assert refused.value.reasons == ("A ran bfcl-simple-python", "B ran tau2")


def test_arms_are_found_by_handle_label_and_digest() -> None:
    both = run("r", (REACT, CONSTRAINED, ORACLE))
    for name in ("constrained", CONSTRAINED.arm.label, CONSTRAINED.arm.digest[:8], "tool_protocol=constrained"):
        assert choose_arm(both, name) == CONSTRAINED
    assert choose_arm(run("r", (REACT, ORACLE))) == REACT
    with pytest.raises(ConfigError, match="has 2 arms: plain, constrained"):
        choose_arm(both)
    with pytest.raises(ConfigError, match="only controls"):
        choose_arm(run("r", (ORACLE,)))
    with pytest.raises(UnknownNameError, match="did you mean 'plain'"):
        choose_arm(both, "plian")


# ── by another measure ───────────────────────────────────────────────────────────────────────────────────────────────


def test_another_grading_of_the_same_trials_is_a_treatment_that_has_to_be_named() -> None:
    old, new = (
        run("r"),
        evolve(run("r"), grading="34" * 32, benchmarks=(evolve(BFCL, grader_stamp={"bfcl-eval": "9"}),)),
    )
    a, b = side(tasks([1] * 8), new), side(tasks([1] * 4 + [0] * 4), old)
    with pytest.raises(RefusedError) as refused:
        compare(a, b)
    (reason,) = refused.value.reasons
    assert "grader's stamp" in reason and "--treatment grader" in reason
    made = compare(a, b, treatment=["grader"])
    assert (only(made).interval.value, made.cross_world) == (0.5, False)


def test_tokens_are_compared_in_their_unit() -> None:
    a = side(tasks([1] * 8), run("new"), usage={"agent": Usage(1, 100, 20, cost_usd=0.02)})
    b = side(tasks([1] * 8), run("old"), usage={"agent": Usage(1, 50, 10, cost_usd=0.01)})
    outcome = only(compare(a, b, metric="tokens"))
    assert (outcome.interval.value, outcome.paired.values) == (60.0, (120.0, 60.0))
    assert outcome.interval.low is None  # every task differs by the same amount
    assert "A's tokens per trial is 60 tokens higher than B's" in measured(outcome)
    assert json.loads(json.dumps(to_json(compare(a, b, metric="tokens"))))["outcomes"][0]["unit"] == "tokens"


def test_what_cannot_be_compared_is_refused_by_name() -> None:
    for name in ("speed", "pass^", "pass^0", "pass@x", "cost_usd", ""):
        with pytest.raises(UnknownNameError):
            two(tasks([1] * 6), tasks([1] * 6), metric=name)


def test_several_benchmarks_share_the_false_finds_among_them() -> None:
    more = evolve(BFCL, selector="bfcl-multiple")
    sides = []
    for name, scores in (("new", [1] * 8), ("old", [0] * 8)):
        stamped = run(name, benchmarks=(BFCL, more))
        builder = SideBuilder(stamped, REACT)
        for selector in (BFCL.selector, more.selector):
            for n, score in enumerate(scores):
                one = attempt(f"t{n}", task_digest=f"{selector}{n}", id=f"{selector}{n}")
                one = evolve(one, key=evolve(one.key, benchmark=selector))
                first = score if selector == BFCL.selector else int(n < 5)
                builder.add(*graded(one, "pass" if first else "fail"))
        sides.append(builder.finish())
    first, second = compare(*sides).outcomes
    assert first.p_adjusted == pytest.approx(2 * 2 * 0.5**8)  # the smaller of two, times two
    assert second.p_adjusted == 1.0


def test_the_other_claims_of_the_family_count_with_the_p_that_they_have() -> None:
    rest = [{"a": "plain", "b": "x", "metric": "pass@1"}, {"a": "plain", "b": "constrained", "metric": "tokens"}]
    whole = declared("r")
    whole = evolve(whole, study={"contrasts": [*whole.study["contrasts"], *rest]})
    a, b = side(tasks([1] * 8), whole, CONSTRAINED), side(tasks([0] * 8), whole, REACT)
    family = p_values(gather_claims(whole, {s.arm.arm.digest: s for s in (a, b)}))
    assert sorted(family.values(), key=lambda p: p is None) == [2 * 0.5**8, 1.0, None]
    outcome = only(compare(a, b, family=family))
    assert (outcome.family, outcome.p_adjusted) == (3, pytest.approx(3 * 2 * 0.5**8))


# ── at the edges ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_two_runs_without_a_task_in_common_are_refused_in_plain_words() -> None:
    a, b = side({"x": (1,)}, run("new")), side({"y": (1,)}, run("old"))
    outcome = only(compare(a, b))
    assert (outcome.conclusion.verdict, outcome.paired.only_a, outcome.paired.only_b) == ("refused", ("x",), ("y",))
    assert measured(outcome) == "there is nothing to compare: no task has a result on both sides"


def test_unequal_repeats_weigh_tasks_and_not_trials() -> None:
    a = {f"t{n}": (1, 1, 1, 0) if n == 0 else (1,) for n in range(8)}
    b = {f"t{n}": (0,) for n in range(8)}
    assert only(two(a, b)).interval.value == pytest.approx((0.75 + 7) / 8)


def test_all_ties_have_an_interval_and_are_no_tie() -> None:
    outcome = only(two(tasks([1] * 10), tasks([1] * 10)))
    assert (outcome.interval.value, outcome.conclusion.verdict) == (0.0, "inconclusive")
    assert outcome.interval.low is not None and outcome.interval.low < 0 < (outcome.interval.high or 0)
    assert outcome.test is not None and outcome.test.p == 1.0


def test_one_cluster_has_no_verdict() -> None:
    one = {"benchmarks": (evolve(BFCL, clusters=1, cluster_of={f"t{n:02}": "core" for n in range(8)}),)}
    outcome = only(compare(side(tasks([1] * 8), run("new", **one)), side(tasks([0] * 8), run("old", **one))))
    assert (outcome.conclusion.verdict, outcome.interval.low) == ("refused", None)
    assert "1 cluster, and a verdict needs 6" in outcome.conclusion.reason


def test_nothing_paid_is_no_difference_of_cost() -> None:
    free = {"usage": {"agent": Usage(1, 1, 1, cost_usd=0.0)}}
    made = compare(
        side(tasks([1] * 8), run("new"), **free), side(tasks([1] * 8), run("old"), **free), metric="cost_per_solve_usd"
    )
    outcome = only(made)
    assert (outcome.interval.value, outcome.interval.low, outcome.test) == (0.0, None, None)
    assert outcome.conclusion.verdict == "inconclusive"


def test_another_build_under_one_name_is_another_model() -> None:
    def answered(name: str, *models: str) -> Side:
        return side(tasks([1] * 8), run(name), served={"agent": models})

    same = compare(answered("new", "gpt-5.2-2026-01-01"), answered("old", "gpt-5.2-2026-01-01"))
    assert "model as served" not in {d.field for d in same.differences}
    with pytest.raises(RefusedError) as refused:
        compare(answered("new", "gpt-5.2-2026-02-02"), answered("old", "gpt-5.2-2026-01-01"))
    assert refused.value.reasons == (
        "model as served: gpt-5.2-2026-02-02 in A, gpt-5.2-2026-01-01 in B (--treatment model)",
    )
    untold = compare(answered("new", "gpt-5.2-2026-02-02"), side(tasks([1] * 8), run("old")))
    assert [(d.a, d.b, d.kind) for d in untold.differences if d.field == "model as served"] == [
        ("gpt-5.2-2026-02-02", None, "told")
    ]
