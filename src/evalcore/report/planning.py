"""What a study could find, before it is run: the smallest difference that it finds with the power asked for.

Clusters are what is drawn, so they are counted as tasks are; the tasks in one, and their repeats, are its runs. The
variances are declared, and printed, or come from a pilot; never from the run that is being planned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from attrs import frozen

from evalcore.errors import ConfigError
from evalcore.report.claims import Claim
from evalcore.report.measures import scored
from evalcore.report.sides import Side, TaskTrials
from evalcore.stats.distributions import noncentral_t_tail, t_quantile
from evalcore.stats.power import Design, detectable_difference_t, within_variance
from evalcore.stats.variance import difference_components, icc
from evalcore.values.measure import Measure, find_measure
from evalcore.values.study import Analysis

RATE: Final = 0.5
CORRELATION: Final = 0.3
HETEROGENEITY: Final = 0.01
SCALES: Final = (0.5, 1.0, 2.0, 4.0)  # of the planned tasks
FEWEST: Final = 2


@frozen
class Spread:
    """The variances behind a paired difference: of true differences, and of one run in each arm; and their `source`."""

    omega2: float
    sigma2_a: float
    sigma2_b: float
    source: str

    def design(self, runs: float) -> Design:
        """With so many runs of each drawn unit in either arm."""
        return Design(self.omega2, self.sigma2_a, self.sigma2_b, runs, runs)


@frozen
class Option:
    """One size that the study could have: what it finds and takes. `reachable`: the benchmark has the tasks."""

    tasks: int
    repeats: int
    trials: int  # of both arms
    detectable: float | None  # None: fewer than two clusters
    margin_power: float | None  # the chance to show that equal arms are within the margin
    cost_usd: float | None
    reachable: bool
    planned: bool = False


@frozen
class Power:
    """What a claim of the study can find; `alpha` is its share of the family's."""

    claim: Claim
    measure: Measure
    alpha: float
    power: float
    tasks: int
    clusters: int
    spread: Spread | None
    options: tuple[Option, ...]
    reason: str | None = None  # why nothing can be said

    @property
    def as_planned(self) -> Option | None:
        """The study as it is written."""
        return next((o for o in self.options if o.planned), None)


@frozen
class Size:
    """How much of a benchmark the study runs, and how much there is."""

    tasks: int
    clusters: int
    of_tasks: int


def assumed(rate: float = RATE, correlation: float = CORRELATION, heterogeneity: float = HETEROGENEITY) -> Spread:
    """Declared variances of a pass rate: sigma^2 = p(1-p)(1-ICC). Raises ValueError for what is none."""
    sigma2 = within_variance(rate, correlation)
    if not (math.isfinite(heterogeneity) and heterogeneity >= 0.0):
        raise ValueError("the variance of true differences is a number of at least 0")
    source = (
        f"assumed, not measured: pass rate {rate:g}, likeness of runs (ICC) {correlation:g}, variance of tasks' true "
        f"differences {heterogeneity:g}"
    )
    return Spread(heterogeneity, sigma2, sigma2, source)


def piloted(a: Side, b: Side, selector: str, measure: Measure) -> Spread:
    """From a pilot of both arms, tasks paired, each run twice or more. Raises ConfigError where it holds too little."""
    mine, theirs = ({t.digest or t.task: t for t in side.tasks if t.benchmark == selector} for side in (a, b))
    found = scored(measure, mine, theirs)
    keys = sorted(k for k in found.a.keys() & found.b.keys() if len(found.a[k]) > 1 and len(found.b[k]) > 1)
    if found.unknown or len(keys) < FEWEST:
        why = found.unknown or f"{len(keys)} tasks have two or more scores in both arms"
        raise ConfigError(
            f"the pilot says too little about {measure.name} on {selector}: {why}",
            hint="a pilot runs both arms on the same tasks, each task twice or more",
        )
    runs_a, runs_b = [found.a[k] for k in keys], [found.b[k] for k in keys]
    parts = difference_components(runs_a, runs_b)
    likeness = _likeness(runs_a)
    source = f"from the pilot {a.stamp.run}: {len(keys)} tasks of both arms{likeness}"
    return Spread(parts.omega2, parts.sigma2_a, parts.sigma2_b, source)


def _likeness(runs: Sequence[Sequence[float]]) -> str:
    try:
        return f", ICC {icc(runs):.2f}"
    except ValueError:
        return ""


def cost_of_trial(side: Side, selector: str) -> float | None:
    """What a trial of an arm cost in the pilot, all tasks weighing the same; None where a price is not known."""
    tasks: list[TaskTrials] = [t for t in side.tasks if t.benchmark == selector and t.results]
    costs = [[r.cost_usd for r in t.results] for t in tasks]
    if not costs or any(c is None for row in costs for c in row):
        return None
    return math.fsum(math.fsum(c or 0.0 for c in row) / len(row) for row in costs) / len(costs)


def power_of(
    claim: Claim,
    claims: int,
    size: Size,
    repeats: int,
    analysis: Analysis,
    spread: Spread | None,
    *,
    trial_usd: float | None = None,
    tasks: Sequence[int] = (),
    other_repeats: Sequence[int] = (),
    reason: str | None = None,
    measure: Measure | None = None,
) -> Power:
    """What a claim can find at the planned size, and at others: `trial_usd` is of one trial of both arms."""
    measure = measure or find_measure(claim.metric)
    alpha = analysis.alpha / claims
    options: list[Option] = []
    if spread is not None and not size.tasks:
        reason = "no task"
    elif spread is not None:
        per_cluster = size.tasks / size.clusters
        sizes = sorted({*(tasks or (max(1, round(size.tasks * s)) for s in SCALES)), size.tasks})
        for count in sizes:
            for k in sorted({*(other_repeats or (1, 3, 5)), repeats}):
                clusters = max(1, round(count / per_cluster))
                found = _one(clusters, per_cluster * k, spread, alpha, analysis.power, claim.margin)
                trials = 2 * count * k
                cost = None if trial_usd is None else trial_usd * count * k
                reachable = not size.of_tasks or count <= size.of_tasks
                planned = count == size.tasks and k == repeats
                options.append(Option(count, k, trials, *found, cost, reachable, planned))
    return Power(
        claim, measure, alpha, analysis.power, size.tasks, size.clusters, spread, tuple(options), reason
    )  # fmt: skip


def _one(
    clusters: int, runs: float, spread: Spread, alpha: float, power: float, margin: float | None
) -> tuple[float | None, float | None]:
    """The detectable difference, and the power to show that equal arms are within the margin on the worse side."""
    design = spread.design(max(1.0, runs))
    if clusters < FEWEST or spread.omega2 + spread.sigma2_a + spread.sigma2_b == 0.0:
        return None, None
    found = detectable_difference_t(clusters, design, alpha=alpha, power=power)
    if margin is None:
        return found, None
    shift = margin * math.sqrt(clusters / design.variance)
    critical = t_quantile(1.0 - alpha, clusters - 1)
    return found, noncentral_t_tail(critical, clusters - 1, shift)


def sides_of(claim: Claim, sides: Mapping[str, Side]) -> tuple[Side, Side] | None:
    """The claim's arms in a pilot: by digest, else by handle."""
    by_handle = {side.arm.arm.handle: side for side in sides.values()}
    a = sides.get(claim.digest_a or "") or by_handle.get(claim.a)
    b = sides.get(claim.digest_b or "") or by_handle.get(claim.b)
    return None if a is None or b is None else (a, b)
