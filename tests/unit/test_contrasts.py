"""Declared contrasts are decided together, by the rules that the study was stamped with, and by no others."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import jsonschema
import pytest
from attrs import evolve

from evalcore.report import scorecard
from evalcore.report.analysis import ContrastResult
from evalcore.report.claims import analysis_of, claims_of
from evalcore.report.deciding import Rules, gather
from evalcore.report.model import Report
from evalcore.report.sides import Side, SideBuilder
from evalcore.report.stopping import decided, looks_at
from evalcore.stats.anytime import mixture_radius
from evalcore.stats.paired import paired_interval
from evalcore.values.arm import Arm
from evalcore.values.measure import find_measure
from evalcore.values.stamp import ArmStamp, RunStamp
from evalcore.values.study import Analysis, Stopping, task_order
from evalcore.values.usage import Usage
from tests.unit.compare_samples import run as sample
from tests.unit.compare_samples import side
from tests.unit.report_samples import BFCL, CONSTRAINED, ORACLE, REACT, attempt, graded, report, stamp, void

Scores = Mapping[str, Sequence[int]]
ONE = {"a": "constrained", "b": "plain", "metric": "pass@1"}


def planned(tasks: int, *contrasts: Mapping[str, Any], repeats: int = 1, **study: Any) -> RunStamp:
    """A run of two arms on so many tasks, with what its study declares."""
    benchmark = evolve(BFCL, tasks=tasks, clusters=tasks, of_tasks=tasks)
    run = stamp([REACT, CONSTRAINED], [benchmark], repeats)
    return evolve(run, study={"contrasts": [dict(c) for c in contrasts or (ONE,)], **study})


def many(scores: Sequence[int]) -> Scores:
    return {f"t{n:03}": (score,) for n, score in enumerate(scores)}


def made(run: RunStamp, a: Scores, b: Scores, **usage: Any) -> Report:
    """The report of both arms' trials: `constrained` has `a`; -1 is void."""
    pairs = []
    for arm, scores in ((CONSTRAINED, a), (REACT, b)):
        for task, repeats in scores.items():
            for repeat, score in enumerate(repeats, start=1):
                if score < 0:
                    lost, _ = void(task, repeat)
                    pairs.append(
                        (evolve(lost, key=evolve(lost.key, arm=arm.arm.digest), id=f"{arm.arm.handle}{task}"), None)
                    )
                else:
                    changes = usage.get(arm.arm.handle, {})
                    pairs.append(graded(attempt(task, repeat, arm, **changes), "pass" if score else "fail"))
    return report(pairs, run)


def one(run: RunStamp, a: Scores, b: Scores, **usage: Any) -> ContrastResult:
    whole = made(run, a, b, **usage)
    jsonschema.validate(scorecard.to_json(whole), scorecard.schema())
    (contrast,) = whole.contrasts
    return contrast


# ── the family ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_declared_contrast_has_a_verdict_in_the_report() -> None:
    found = one(planned(20), many([1] * 20), many([1] * 10 + [0] * 10))
    assert (found.verdict, found.confirmatory, found.effect, found.values) == ("better", True, 0.5, (1.0, 0.5))
    assert found.p == pytest.approx(2 * 0.5**10)  # McNemar: ten discordant tasks, all one way
    assert found.p_adjusted == found.p and found.family == 1
    assert found.treatment == ("tool_protocol",)
    assert found.sentence.startswith("constrained solved 50.0 points more than plain (95 % interval ")
    assert "constrained is better than plain, as declared beforehand" in found.sentence
    assert [f.task for f in found.gained] == [f"t{n:03}" for n in range(10, 20)] and not found.lost


def test_the_whole_family_is_adjusted_at_once_by_holm() -> None:
    third = ArmStamp(Arm("third", {"harness": "react", "model": "openai/gpt-5.2", "tool_protocol": "json"}), "0.1.0")
    run = planned(20, ONE, {"a": "third", "b": "plain"}, {"a": "gone", "b": "plain"})
    run = evolve(run, arms=(*run.arms, third))
    scores = [(REACT, many([0] * 20)), (CONSTRAINED, many([1] * 20)), (third, many([1] * 8 + [0] * 12))]
    pairs = [
        graded(attempt(task, 1, arm), "pass" if score[0] else "fail")
        for arm, mine in scores
        for task, score in mine.items()
    ]
    first, second, gone = report(pairs, run).contrasts
    assert first.p_adjusted == pytest.approx(3 * 2 * 0.5**20)
    assert second.p_adjusted == pytest.approx(2 * 2 * 0.5**8)
    assert (first.verdict, second.verdict, gone.verdict) == ("better", "better", "refused")
    assert gone.reason == "the run has no arm gone" and gone.digest_a is None
    assert {c.family for c in (first, second, gone)} == {3}


def test_over_a_sweep_each_matched_pair_is_a_claim() -> None:
    def at(handle: str, effort: str, **axes: str) -> ArmStamp:
        return ArmStamp(Arm(f"{handle}@effort={effort}", {"harness": "react", "effort": effort, **axes}), "1")

    arms = [at(h, e, mode=h) for h in ("a", "b") for e in ("low", "high")]
    oracle = ArmStamp(Arm("gold", {"harness": "oracle"}), "1", control=True, uses_model=False)
    sweep = {"effort": ["low", "high"]}
    listed = [{"a": "a", "b": "b"}, {"a": "a@effort=high", "b": "b"}, {"a": "a", "b": "gold"}]
    run = evolve(stamp([*arms, oracle]), study={"contrasts": listed, "sweep": sweep})
    assert [(c.a, c.b) for c in claims_of(run)] == [
        ("a@effort=low", "b@effort=low"),
        ("a@effort=high", "b@effort=high"),
        ("a@effort=high", "b@effort=high"),
        ("a@effort=low", "gold"),
        ("a@effort=high", "gold"),
    ]
    assert all(c.problem is None for c in claims_of(run))


def test_a_study_that_is_not_at_its_end_confirms_nothing() -> None:
    run = planned(30, {**ONE, "margin": 0.3})
    whole = made(run, many([1] * 20), many([0] * 20))
    (early,) = whole.contrasts
    assert (early.verdict, early.confirmatory, early.margin_interval) == ("candidate", False, None)
    assert early.reason == "20 planned trials not run: the study is not at its end"
    assert whole.design is not None and not whole.design.kept
    ended = made(run, many([1] * 20 + [-1] * 10), many([0] * 20 + [-1] * 10))
    assert ended.design is not None and ended.design.kept  # void to the last attempt is not missing
    assert (ended.contrasts[0].verdict, ended.contrasts[0].tasks) == ("better", 20)


def test_what_the_declaration_proves_is_said_and_no_more() -> None:
    whole = made(planned(20), many([1] * 20), many([0] * 20))
    assert whole.design is not None
    assert whole.design.proves.startswith("declared before this run")
    assert "shows nothing about other runs" in whole.design.proves
    assert report([], stamp()).design is None


def test_two_worlds_in_an_arm_refuse_the_contrast_and_not_the_report() -> None:
    run = planned(20)
    pairs = [graded(attempt(f"t{n:03}", 1, REACT), "pass") for n in range(20)]
    pairs += [
        graded(attempt(f"t{n:03}", 1, CONSTRAINED, isolation="none" if n else "container"), "pass") for n in range(20)
    ]
    (found,) = report(pairs, run).contrasts
    assert found.verdict == "refused"
    assert "trials of live, isolation container and live, isolation none" in found.reason


def test_arms_that_another_boundary_keeps_apart_are_not_compared() -> None:
    run = planned(20)
    there = [graded(attempt(f"t{n:03}", 1, CONSTRAINED, isolation="container"), "pass") for n in range(20)]
    here = [graded(attempt(f"t{n:03}", 1, REACT), "fail") for n in range(20)]
    (found,) = report([*there, *here], run).contrasts
    assert (found.verdict, found.confirmatory) == ("refused", False)
    assert found.reason == "not comparable: isolation: container in A, none in B"
    other = [
        graded(attempt(f"t{n:03}", 1, arm, served={"agent": (f"build-{arm.arm.handle}",)}), "pass")
        for n in range(20)
        for arm in (CONSTRAINED, REACT)
    ]
    (built,) = report(other, run).contrasts  # one model was asked for, two answered
    assert built.verdict == "refused" and "model as served" in built.reason


def test_a_task_of_two_contents_is_compared_with_nothing() -> None:
    run = planned(7, repeats=2)
    pairs = [
        graded(attempt(f"t{n}", repeat, arm, task_digest=f"{n}{repeat if n == 6 and arm is REACT else ''}"), "pass")
        for n in range(7)
        for arm in (REACT, CONSTRAINED)
        for repeat in (1, 2)
    ]
    (found,) = report(pairs, run).contrasts
    assert (found.tasks, found.dropped) == (6, 1)


# ── other measures ───────────────────────────────────────────────────────────────────────────────────────────────────


def used(tokens: int, cost: float | None = 0.01) -> dict[str, Any]:
    return {"usage": {"agent": Usage(1, tokens, 0, cost_usd=cost)}}


def test_fewer_tokens_are_better() -> None:
    run = planned(20, {**ONE, "metric": "tokens", "margin": 50})
    pairs = []
    for n in range(20):
        for arm, tokens in ((CONSTRAINED, 100 + n), (REACT, 300 + 3 * n)):
            pairs.append(graded(attempt(f"t{n:03}", 1, arm, **used(tokens)), "pass"))
    (found,) = report(pairs, run).contrasts
    differences = [100 + n - 300 - 3 * n for n in range(20)]
    interval = paired_interval(differences, bounds=None)
    assert (found.effect, found.low, found.high) == (interval.value, interval.low, interval.high)
    assert (found.verdict, found.unit, found.higher_is_better) == ("better", "tokens", False)
    assert found.sentence.startswith("constrained's tokens per trial is 219 tokens lower than plain's")
    assert "(with the sign changed: less is better)" in found.reason


def test_cost_per_solve_is_a_ratio_paired_by_task() -> None:
    run = planned(12, {**ONE, "metric": "cost_per_solve_usd"})
    pairs, a, b = [], [], []
    for n in range(12):
        cost_a, cost_b, won_a, won_b = 0.02 + 0.001 * n, 0.05 + 0.002 * (n % 5), n % 4 != 0, n % 3 != 0
        a.append((cost_a, won_a))
        b.append((cost_b, won_b))
        pairs.append(graded(attempt(f"t{n:03}", 1, CONSTRAINED, **used(1, cost_a)), "pass" if won_a else "fail"))
        pairs.append(graded(attempt(f"t{n:03}", 1, REACT, **used(1, cost_b)), "pass" if won_b else "fail"))
    (found,) = report(pairs, run).contrasts
    ratios = [sum(c for c, _ in side) / sum(s for _, s in side) for side in (a, b)]
    assert found.values == (pytest.approx(ratios[0]), pytest.approx(ratios[1]))
    linear = [
        [r + (c - r * s) / (sum(x for _, x in side) / 12) for c, s in side]
        for r, side in zip(ratios, (a, b), strict=True)
    ]
    interval = paired_interval([x - y for x, y in zip(*linear, strict=True)], bounds=None)
    assert (found.low, found.high) == (pytest.approx(interval.low), pytest.approx(interval.high))
    assert found.verdict == "better" and "delta method" in found.test


def test_a_side_that_solved_nothing_has_no_cost_per_solve_to_compare() -> None:
    run = planned(8, {**ONE, "metric": "cost_per_solve_usd"})
    found = one(run, many([1] * 8), many([0] * 8))
    assert (found.effect, found.p, found.verdict) == (None, None, "refused")
    assert found.sentence.startswith("there is nothing to compare: plain solved nothing: it has no cost per solve")


def test_an_unknown_price_is_told_and_never_zero() -> None:
    run = planned(8, {**ONE, "metric": "cost_per_trial_usd"})
    found = one(run, many([1] * 8), many([1] * 8), plain=used(10, None))
    assert found.effect is None
    assert "a price is not known in 8 of 8 trials of plain" in found.sentence


def test_pass_hat_k_and_flakiness_are_values_of_a_task() -> None:
    a = {f"t{n}": (1, 1, 1) for n in range(8)}
    b = {f"t{n}": (1, 1, 0) if n < 4 else (1, 1, 1) for n in range(8)}
    together = one(planned(8, {**ONE, "metric": "pass^2"}, repeats=3), a, b)
    assert together.values == (1.0, pytest.approx((4 * 1 / 3 + 4) / 8))
    flaky = one(planned(8, {**ONE, "metric": "flakiness"}, repeats=3), a, b)
    assert flaky.values == (0.0, pytest.approx(4 * (2 / 3) / 8)) and not flaky.higher_is_better
    short = one(planned(8, {**ONE, "metric": "pass^4"}, repeats=3), a, b)
    assert (short.tasks, short.verdict, short.dropped) == (0, "refused", 8)


# ── looks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def in_order(run: RunStamp, scores: Sequence[int], tasks: int) -> Scores:
    """The first tasks of the order that the study fixed, with these scores."""
    order = task_order(run.seed, [f"t{n:03}" for n in range(tasks)])
    return {task: (score,) for task, score in zip(order, scores, strict=False)}


def test_a_planned_look_has_its_own_bound() -> None:
    run = planned(20, analysis={"stopping": "obrien-fleming"})
    (early,) = made(run, in_order(run, [1] * 10, 20), in_order(run, [0] * 10, 20)).contrasts
    assert (early.verdict, early.confirmatory, early.look, early.tasks) == ("better", True, 1, 10)
    assert early.p == pytest.approx(2 * 0.5**10)
    assert early.p_adjusted == pytest.approx(early.p * 0.05 / 0.003051, rel=1e-3)  # what O'Brien-Fleming spends by half
    assert "(at planned look 1)" in early.sentence
    scores = [1] * 7 + [0] * 3
    (undecided,) = made(run, in_order(run, scores, 20), in_order(run, [0] * 10, 20)).contrasts
    assert (undecided.verdict, undecided.look) == ("inconclusive", 1)  # p = .016 is not enough at half
    (before,) = made(run, in_order(run, [1] * 9, 20), in_order(run, [0] * 9, 20)).contrasts
    assert (before.verdict, before.confirmatory, before.look) == ("inconclusive", False, None)
    assert "9 of 20 tasks are finished, and the first planned look is at 10" in before.reason


def test_tasks_beyond_a_look_do_not_count_at_it() -> None:
    run = planned(20, analysis={"stopping": "pocock"})
    scores = [1] * 10 + [0] * 5
    (found,) = made(run, in_order(run, scores, 20), in_order(run, [0] * 15, 20)).contrasts
    assert (found.tasks, found.effect) == (10, 1.0)


def test_anytime_reading_is_a_confidence_sequence_at_every_size() -> None:
    run = planned(60, analysis={"stopping": "anytime", "alpha": 0.1})
    (found,) = made(run, in_order(run, [1] * 40, 60), in_order(run, [0] * 40, 60)).contrasts
    assert (found.verdict, found.confirmatory, found.tasks) == ("better", True, 40)
    assert found.low == pytest.approx(1.0 - mixture_radius(40, variance=1.0, alpha=0.1))
    assert found.p is not None and mixture_radius(40, variance=1.0, alpha=found.p) == pytest.approx(1.0)
    (early,) = made(run, in_order(run, [1] * 6, 60), in_order(run, [0] * 6, 60)).contrasts
    assert early.verdict == "inconclusive"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("stopping", ["obrien-fleming", "pocock", "anytime"])
def test_looks_err_no_more_often_than_alpha(stopping: Stopping) -> None:
    """300 studies of two equal arms, read at every look that their rule plans: .05 and three Monte Carlo errors."""
    rng, wrong = random.Random(5), 0
    benchmark = evolve(BFCL, tasks=60, clusters=60, of_tasks=60)
    run = sample("r", (REACT, CONSTRAINED), benchmarks=(benchmark,), repeats=1)
    rules = Rules(Analysis(stopping=stopping), declared=True)
    for _ in range(300):
        sides = [
            side({f"t{n:02}": (int(rng.random() < 0.5),) for n in range(60)}, run, arm) for arm in (CONSTRAINED, REACT)
        ]
        found = gather(sides[0], sides[1], benchmark, benchmark, find_measure("pass@1"), rules)
        low, high = found.interval.low, found.interval.high
        excludes = low is not None and high is not None and not low <= 0.0 <= high
        wrong += excludes and found.test is not None and found.test.p <= found.alpha
    assert wrong / 300 <= 0.05 + 3 * (0.05 * 0.95 / 300) ** 0.5


def test_the_analysis_is_read_from_the_stamp() -> None:
    table = {
        "alpha": 0.01,
        "stopping": "pocock",
        "looks": [0.3, 1.0],
        "weights": {"cost": 1},
        "anchors": {"cost": [2, 0]},
    }
    found = analysis_of(planned(6, analysis=table))
    assert (found.alpha, found.stopping, found.planned_looks) == (0.01, "pocock", (0.3, 1.0))
    assert (found.weights, found.anchors) == ({"cost": 1.0}, {"cost": (2.0, 0.0)})
    strict = one(planned(20, analysis={"alpha": 0.001}), many([1] * 20), many([0] * 9 + [1] * 11))
    assert (strict.level, strict.verdict) == (0.999, "inconclusive")  # p = .004


# ── is it worth its price ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_dearer_arm_is_weighed_at_the_declared_value_of_a_solve() -> None:
    def at(value: float | None) -> ContrastResult:
        study = {} if value is None else {"analysis": {"value_per_solve_usd": value}}
        run = planned(40, **study)
        pairs = []
        for n in range(40):
            cost = 0.05 + 0.001 * (n % 7)
            pairs.append(graded(attempt(f"t{n:03}", 1, CONSTRAINED, **used(1, cost)), "pass" if n % 8 else "fail"))
            pairs.append(graded(attempt(f"t{n:03}", 1, REACT, **used(1, 0.01)), "pass" if n % 2 else "fail"))
        (found,) = report(pairs, run).contrasts
        return found

    dear, rich, silent = at(0.02).worth, at(5.0).worth, at(None).worth
    assert dear is not None and rich is not None and silent is not None
    assert (dear.verdict, rich.verdict, silent.verdict) == ("not worth it", "buys accuracy", "inconclusive")
    extra = sum(0.05 + 0.001 * (n % 7) for n in range(40)) / 40 - 0.01
    gain = 35 / 40 - 20 / 40
    assert rich.cost.value == pytest.approx(extra) and rich.solved.value == pytest.approx(gain)
    assert rich.benefit is not None and rich.benefit.value == pytest.approx(5.0 * gain - extra)
    assert silent.benefit is None and [r.worth for r in silent.ranges] == ["not worth it", "undecided", "worth it"]


def test_without_prices_nothing_is_weighed() -> None:
    run = planned(8)
    assert one(run, many([1] * 8), many([1] * 8), plain=used(10, None)).worth is None
    free = used(10, 0.0)
    assert one(run, many([1] * 8), many([0] * 8), plain=free, constrained=free).worth is None


# ── at the edges ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_arm_that_has_not_run_yet_is_told() -> None:
    whole = report([graded(attempt("t000", 1, REACT), "pass")], planned(6))
    (found,) = whole.contrasts
    assert (found.verdict, found.reason) == ("refused", "an arm has no trial yet")
    jsonschema.validate(scorecard.to_json(whole), scorecard.schema())


def test_costs_and_scores_that_are_no_numbers_are_unknown() -> None:
    run = planned(6, {**ONE, "metric": "cost_per_trial_usd"})
    pairs = [graded(attempt(f"t{n:03}", 1, arm, **used(1, float("nan"))), "pass", score=float("nan"))
             for n in range(6) for arm in (REACT, CONSTRAINED)]  # fmt: skip
    whole = report(pairs, run)
    (found,) = whole.contrasts
    assert found.effect is None and "a price is not known" in found.sentence
    assert whole.cells[0].metrics["cost_per_solve_usd"].value is None
    scorecard.encode(whole)


def test_a_control_may_be_an_arm_of_a_contrast() -> None:
    run = planned(8, {"a": "plain", "b": "oracle"})
    run = evolve(run, arms=(*run.arms, ORACLE))
    pairs = [graded(attempt(f"t{n:03}", 1, arm), "pass") for n in range(8) for arm in (REACT, ORACLE)]
    (found,) = report(pairs, run).contrasts
    assert (found.effect, found.verdict) == (0.0, "inconclusive") and found.worth is not None


# ── where a rule ends a run ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_can_end_at_the_looks_before_its_last_task() -> None:
    def at(tasks: int, **analysis: Any) -> list[tuple[int | None, int]]:
        return list(looks_at(planned(tasks, analysis=analysis), tasks))

    assert at(20, stopping="obrien-fleming") == [(1, 10)]
    assert at(7, stopping="pocock", looks=[0.3, 0.5, 1.0]) == [(1, 3), (2, 4)]
    assert at(5, stopping="anytime") == [(None, n) for n in (1, 2, 3, 4)]
    late = [n for _, n in at(200, stopping="anytime") if n > 100]
    assert late[:2] == [102, 104] and late[-1] == 198


def test_a_benchmark_ends_when_every_one_of_its_claims_is_decided() -> None:
    two = (ONE, {**ONE, "metric": "tokens"})
    run = planned(24, *two, analysis={"stopping": "obrien-fleming"})
    won, lost = in_order(run, [1] * 12, 24), in_order(run, [0] * 12, 24)

    def sides(tokens: Sequence[int]) -> dict[str, Side]:
        built = {}
        for arm, scores in ((CONSTRAINED, won), (REACT, lost)):
            one_side = SideBuilder(run, arm)
            for n, (task, (score,)) in enumerate(scores.items()):
                used = {"agent": Usage(1, tokens[n] if arm is CONSTRAINED else 100, 0)}
                one_side.add(*graded(attempt(task, 1, arm, usage=used), "pass" if score else "fail"))
            built[arm.arm.digest] = one_side.finish()
        return built

    assert decided(run, sides([100] * 12), BFCL.selector, 12) is None  # by tokens nothing is shown
    said = decided(run, sides([10 + n for n in range(12)]), BFCL.selector, 12)
    assert said is not None and said.count("constrained is better than plain") == 2
    assert "of 0.00082 that this look may spend" in said  # what the first look of two may, at alpha .025 each
    assert decided(run, sides([10 + n for n in range(12)]), BFCL.selector, 11) is None  # no look there


def studies(stopping: Stopping, tasks: int, repeats: int, runs: int, seed: int) -> int:
    """How many of so many studies of two equal arms the rule ends, or decides at the end, for one of the arms."""
    rng, wrong = random.Random(seed), 0
    run = planned(tasks, analysis={"stopping": stopping}, repeats=repeats)
    names = [f"t{n:03}" for n in range(tasks)]
    stops = [n for _, n in looks_at(run, tasks)] + [tasks]
    stops = stops if stopping != "anytime" else sorted({n for n in stops if n % 5 == 0 or n == tasks})
    for _ in range(runs):
        chance = {name: rng.betavariate(1.0, 1.0) for name in names}
        sides = {
            arm.arm.digest: side(
                {n: tuple(int(rng.random() < chance[n]) for _ in range(repeats)) for n in names}, run, arm
            )
            for arm in (CONSTRAINED, REACT)
        }
        wrong += any(decided(run, sides, BFCL.selector, n) for n in stops)
    return wrong


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("stopping, repeats", [("obrien-fleming", 1), ("pocock", 1), ("pocock", 3), ("anytime", 1)])
def test_ending_at_looks_errs_no_more_often_than_alpha(stopping: Stopping, repeats: int) -> None:
    """10,000 studies of two equal arms on tasks of every difficulty, through the function that ends runs."""
    runs = 10_000
    wrong = studies(stopping, 24, repeats, runs, seed=7)
    assert wrong / runs <= 0.05 + 2 * (0.05 * 0.95 / runs) ** 0.5


def test_the_simulation_can_fail_two_arms_that_differ_are_told_apart() -> None:
    run = planned(24, analysis={"stopping": "pocock"})
    names = [f"t{n:03}" for n in range(24)]
    sides = {
        arm.arm.digest: side(dict.fromkeys(names, (score,)), run, arm) for arm, score in ((CONSTRAINED, 1), (REACT, 0))
    }
    assert decided(run, sides, BFCL.selector, 12) is not None


def test_a_view_of_trials_is_a_rate_like_any_other() -> None:
    run = planned(12, {**ONE, "metric": "view:strict"})
    pairs = []
    for arm, good in ((CONSTRAINED, 12), (REACT, 2)):
        for n in range(12):
            views = {} if n == 11 else {"strict": n < good}  # of the last task it was not taken
            pairs.append(graded(attempt(f"t{n:03}", 1, arm), "pass", views=views))
    (found,) = report(pairs, run).contrasts
    assert (found.tasks, found.dropped, found.unit) == (11, 1, "share")
    assert found.values == (1.0, pytest.approx(2 / 11)) and found.verdict == "better"
    assert "view 'strict'" in found.sentence
