"""How two sides differ on one benchmark, and what may be said of it under the study's rules.

First the evidence: an interval of A less B, and the p of no difference. Then, when the p-values of the whole declared
family are known, the conclusion. Planned looks and anytime reading change the evidence, never the words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from attrs import evolve, field, frozen

from evalcore.report.outcomes import Paired, pair_tasks
from evalcore.report.sides import Side
from evalcore.report.words import plural
from evalcore.stats.anytime import WARM_UP, asymptotic_radius, confidence_sequence, mixture_radius
from evalcore.stats.distributions import normal_tail
from evalcore.stats.intervals import Interval
from evalcore.stats.margins import margin_level
from evalcore.stats.multiplicity import holm
from evalcore.stats.paired import (
    OF_RATES,
    PAIRED_T,
    SIGN_FLIP_DRAWN,
    SIGN_FLIP_EXACT,
    DifferenceTest,
    difference_interval,
    difference_test,
    paired_interval,
    paired_t,
)  # fmt: skip
from evalcore.stats.signflip import sign_flip
from evalcore.stats.spending import Spending, look_bounds
from evalcore.stats.verdicts import Conclusion, conclude
from evalcore.values.measure import Measure
from evalcore.values.stamp import BenchmarkStamp
from evalcore.values.study import Analysis, task_order

SPENDING: Final[dict[str, Spending]] = {"obrien-fleming": "O'Brien-Fleming", "pocock": "Pocock"}
RATIO_TEST: Final = "paired t on clusters (delta method)"
SEQUENCE: Final = "the level at which the confidence sequence reaches 0"
LEAST_ALPHA: Final = 1e-12


@frozen
class Rules:
    """How one claim is decided: by the study's analysis, as one of `claims`, of which `margins` are of a margin."""

    analysis: Analysis = Analysis()
    claims: int = 1
    margins: int = 1
    margin: float | None = None
    declared: bool = False

    @property
    def fixed(self) -> bool:
        """Whether there is one look, at the end: so it is for what nobody declared."""
        return not self.declared or self.analysis.stopping == "fixed"


@frozen
class Evidence:
    """What the tasks hold at one look. `alpha` is what this claim may spend at it; `kept` whether the rule was kept."""

    paired: Paired
    interval: Interval
    test: DifferenceTest | None
    alpha: float
    kept: bool = True
    why_not: str | None = None
    look: int | None = field(default=None)


def gather(a: Side, b: Side, ours: BenchmarkStamp, theirs: BenchmarkStamp, measure: Measure, rules: Rules) -> Evidence:
    """The evidence on one benchmark, as the rules let it be read now."""
    why_not = unfinished(a, b, ours, theirs) if rules.declared else None
    if rules.fixed:
        paired = pair_tasks(a, b, ours, theirs, measure)
        return evolve(_at(paired, a.stamp.seed, rules.analysis.alpha), kept=why_not is None, why_not=why_not)
    finished = _finished(a, b, ours)[: a.stops.get(ours.selector) if a.stamp.run == b.stamp.run else None]
    if rules.analysis.stopping == "anytime":
        return _anytime(pair_tasks(a, b, ours, theirs, measure, finished), rules)
    return _planned(a, b, ours, theirs, measure, rules, finished)


def unfinished(a: Side, b: Side, ours: BenchmarkStamp, theirs: BenchmarkStamp) -> str | None:
    """What of the plan has not run yet; None where all has, void or not."""
    missing = 0
    for side, benchmark in ((a, ours), (b, theirs)):
        tried = sum(len(t.results) + t.missing for t in side.tasks if t.benchmark == benchmark.selector)
        missing += max(0, benchmark.tasks * side.stamp.repeats - tried)
    return f"{plural(missing, 'planned trial')} not run: the study is not at its end" if missing else None


def _at(paired: Paired, seed: int, alpha: float) -> Evidence:
    """The default interval and test."""
    return Evidence(paired, interval_of(paired, 1.0 - alpha), _test(paired, seed), alpha)


def interval_of(paired: Paired, level: float) -> Interval:
    """The interval of the mean difference, in the measure's unit."""
    pairing = paired.pairing
    if not pairing.keys:
        missing = difference_interval(pairing, level)
        return missing if paired.unknown is None else Interval(None, None, None, level, PAIRED_T, paired.unknown)
    if paired.measure.rate:
        return difference_interval(pairing, level)
    return paired_interval(pairing.differences, pairing.clusters, level=level, bounds=None)


def _test(paired: Paired, seed: int) -> DifferenceTest | None:
    pairing = paired.pairing
    if not pairing.keys:
        return None
    if paired.measure.rate:
        return difference_test(pairing, seed=seed)
    if paired.measure.ratio or paired.measure.name == "cost_per_solve_usd":
        if interval_of(paired, 0.95).low is None:
            return None
        return DifferenceTest(paired_t(pairing.differences, pairing.clusters).p, RATIO_TEST)
    found = sign_flip(pairing.differences, pairing.clusters, seed=seed)
    if found.draws is None:
        return DifferenceTest(found.p, SIGN_FLIP_EXACT.format(found.clusters))
    return DifferenceTest(found.p, SIGN_FLIP_DRAWN.format(f"{found.draws:,}", seed))


# ── looks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _finished(a: Side, b: Side, benchmark: BenchmarkStamp) -> list[str]:
    """The tasks whose repeats have all been tried by both sides, in the order fixed beforehand, up to the first gap."""
    tried = [
        {t.task: len(t.results) + t.missing for t in side.tasks if t.benchmark == benchmark.selector} for side in (a, b)
    ]
    done = []
    for task in task_order(a.stamp.seed, {*tried[0], *tried[1]}):
        if any(side.get(task, 0) < s.stamp.repeats for side, s in zip(tried, (a, b), strict=True)):
            break
        done.append(task)
    return done


def _planned(
    a: Side, b: Side, ours: BenchmarkStamp, theirs: BenchmarkStamp, measure: Measure, rules: Rules, done: Sequence[str]
) -> Evidence:
    """The first look that rejects, else the latest that was reached; without any, all there is and nothing to say."""
    looks = rules.analysis.planned_looks
    each = rules.analysis.alpha / rules.claims
    bounds = _bounds(looks, each, SPENDING[rules.analysis.stopping])
    latest = None
    for number, (share, bound) in enumerate(zip(looks, bounds, strict=True), start=1):
        tasks = math.ceil(share * ours.tasks - 1e-9)
        if len(done) < tasks:
            break
        alpha = 2.0 * normal_tail(bound)
        paired = pair_tasks(a, b, ours, theirs, measure, set(done[:tasks]))
        latest = evolve(_at(paired, a.stamp.seed, alpha), look=number)
        if _rejects(latest):
            return latest
    if latest is not None:
        return latest
    first = math.ceil(looks[0] * ours.tasks - 1e-9)
    why_not = f"{len(done)} of {ours.tasks} tasks are finished, and the first planned look is at {first}"
    paired = pair_tasks(a, b, ours, theirs, measure, set(done))
    return evolve(_at(paired, a.stamp.seed, 2.0 * normal_tail(bounds[0])), kept=False, why_not=why_not)


@lru_cache(maxsize=64)
def _bounds(looks: tuple[float, ...], alpha: float, spending: Spending) -> tuple[float, ...]:
    """They are asked for at every look of every claim, and take longer than all the rest."""
    return tuple(look_bounds(looks, alpha, spending))


def _rejects(found: Evidence) -> bool:
    low, high = found.interval.low, found.interval.high
    excludes = (low is not None and low > 0.0) or (high is not None and high < 0.0)
    return excludes and found.test is not None and found.test.p <= found.alpha


def _anytime(paired: Paired, rules: Rules) -> Evidence:
    """A confidence sequence over clusters in their order; its p is the level at which it would just reach 0."""
    each = rules.analysis.alpha / rules.claims
    values = _cluster_means(paired)
    bounds = OF_RATES if paired.measure.rate else None
    if not values:
        return Evidence(paired, interval_of(paired, 1.0 - each), None, each)
    interval = confidence_sequence(values, bounds, 1.0 - each)
    p = None if interval.low is None else DifferenceTest(_sequence_p(values, bounds), SEQUENCE)
    return Evidence(paired, interval, p, each)


def _cluster_means(paired: Paired) -> list[float]:
    sums: dict[object, list[float]] = {}
    for difference, cluster in zip(paired.pairing.differences, paired.pairing.clusters, strict=True):
        sums.setdefault(cluster, []).append(difference)
    return [math.fsum(values) / len(values) for values in sums.values()]


def _sequence_p(values: Sequence[float], bounds: tuple[float, float] | None) -> float:
    """The largest alpha at which the sequence's interval holds 0, by bisection: it is wider for a smaller alpha."""
    n, mean = len(values), abs(math.fsum(values) / len(values))
    sd = math.sqrt(math.fsum((x - math.fsum(values) / n) ** 2 for x in values) / (n - 1)) if n > 1 else 0.0

    def holds_zero(alpha: float) -> bool:
        if bounds is not None:
            return mixture_radius(n, variance=((bounds[1] - bounds[0]) / 2.0) ** 2, alpha=alpha) >= mean
        return n < WARM_UP or asymptotic_radius(n, sd, alpha=alpha) >= mean

    low, high = math.log(LEAST_ALPHA), math.log(0.999)
    if holds_zero(math.exp(high)):
        return 1.0
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if holds_zero(math.exp(middle)) else (low, middle)
    return math.exp(high)


# ── the conclusion ───────────────────────────────────────────────────────────────────────────────────────────────────


def adjusted_p(found: Evidence, rules: Rules, others: Sequence[float | None] = ()) -> float | None:
    """The p over the declared family. `others` are the p-values of its other claims; those not given count as 1.

    One look: Holm. Several: each claim spends its share of alpha (Bonferroni), and p is told against what its look may
    spend, so that it is at most alpha exactly where the look rejects.
    """
    if found.test is None:
        return None
    if rules.fixed:
        family = [found.test.p, *others]
        return holm([*family, *[None] * (rules.claims - len(family))])[0]
    return min(1.0, found.test.p * rules.analysis.alpha / found.alpha)


def concluded(found: Evidence, rules: Rules, p_adjusted: float | None) -> tuple[Conclusion, Interval | None]:
    """The verdict, and the interval that decides about the margin, where there is one."""
    within, margin = None, rules.margin if found.kept else None
    measure = found.paired.measure
    if margin is not None:
        level = margin_level(rules.analysis.alpha, max(1, rules.margins))
        within = interval_of(found.paired, level) if rules.fixed else found.interval
    verdict = conclude(
        oriented(found.interval, measure),
        p_adjusted,
        clusters=found.paired.clusters,
        void_rates=found.paired.void_rates,
        boundary=found.paired.unknown,
        confirmatory=rules.declared and found.kept,
        alpha=rules.analysis.alpha,
        margin=margin,
        margin_interval=None if within is None else oriented(within, measure),
    )
    if verdict.verdict == "candidate":  # its reason names a direction, which an exploratory contrast has not earned
        said = found.why_not or "not declared before the first trial: worth a study of its own, and no finding yet"
        verdict = evolve(verdict, reason=said)
    elif not measure.higher_is_better and verdict.verdict != "refused":
        verdict = evolve(verdict, reason=f"{verdict.reason} (with the sign changed: less is better)")
    return verdict, within


def oriented(interval: Interval, measure: Measure) -> Interval:
    """The interval such that more is better."""
    if measure.higher_is_better or interval.value is None:
        return interval
    low, high = interval.low, interval.high
    return evolve(
        interval,
        value=-interval.value,
        low=None if high is None else -high,
        high=None if low is None else -low,
    )
