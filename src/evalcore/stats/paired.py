"""Two arms on the same tasks: the difference per task, its mean, and how sure it is. Positive: the first arm is higher.

The unit is the cluster. The estimand is the mean over the tasks that both arms ran of the difference of task means.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Final

from attrs import frozen

from evalcore.stats.checks import check_level, finite
from evalcore.stats.clusters import ClusterMean, cluster_robust
from evalcore.stats.distributions import t_tail, t_two_sided
from evalcore.stats.intervals import DEFAULT_LEVEL, ONE_CLUSTER, Interval
from evalcore.stats.mcnemar import NEWCOMBE_10, Discordant, mcnemar_exact, mcnemar_midp, newcombe_10
from evalcore.stats.signflip import DRAWS, sign_flip

PAIRED_T: Final = "paired t on clusters (CR1, clusters - 1 degrees of freedom)"
MCNEMAR: Final = "exact McNemar"
SIGN_FLIP_EXACT: Final = "sign flips of clusters, every one of 2^{}"
SIGN_FLIP_DRAWN: Final = "sign flips of clusters ({} draws, seed {})"
UNSEEN: Final = "no two clusters differ: exact bound on how many could, 1 - (1-level)^(1/clusters)"
NOTHING_IN_COMMON: Final = "no task in common"
NO_VARIATION: Final = "every cluster differs by the same amount: no variation to measure"
OF_RATES: Final = (-1.0, 1.0)


@frozen
class Pairing:
    """The tasks that both arms ran: their keys, each arm's runs of them, their clusters; and what only one arm ran."""

    keys: tuple[str, ...]
    a: tuple[tuple[float, ...], ...]
    b: tuple[tuple[float, ...], ...]
    clusters: tuple[Hashable, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]

    @property
    def differences(self) -> list[float]:
        """Each task's mean in the first arm less its mean in the second."""
        means = ((math.fsum(x) / len(x), math.fsum(y) / len(y)) for x, y in zip(self.a, self.b, strict=True))
        return [a - b for a, b in means]

    @property
    def single(self) -> bool:
        """Whether every task is its own cluster and ran once in each arm, with a 0 or a 1."""
        runs = [*self.a, *self.b]
        once = all(len(task) == 1 and task[0] in {0.0, 1.0} for task in runs)
        return bool(runs) and once and len(set(self.clusters)) == len(self.keys)

    @property
    def discordant(self) -> Discordant:
        """How often both passed, only one did, and neither. Raises ValueError unless `single`."""
        if not self.single:
            raise ValueError("repeats, clusters or partial credit: tasks are not single pairs of pass and fail")
        pairs = [(x[0], y[0]) for x, y in zip(self.a, self.b, strict=True)]
        return Discordant(*(pairs.count(kind) for kind in ((1.0, 1.0), (1.0, 0.0), (0.0, 1.0), (0.0, 0.0))))


@frozen
class DifferenceTest:
    """The two-sided p of no difference, and by which test; `mid_p` is McNemar's mid-p, for single trials only."""

    p: float
    method: str
    mid_p: float | None = None


@frozen
class TTest:
    """A t statistic, its degrees of freedom, and the two-sided p."""

    statistic: float
    df: int
    p: float


def pair(
    a: Mapping[str, Sequence[float]],
    b: Mapping[str, Sequence[float]],
    clusters: Mapping[str, Hashable] | None = None,
) -> Pairing:
    """Pair two arms by task; each maps a task's key to the scores of its graded runs.

    The key is a digest of the task's content and grader, never a position. A task without a graded run in an arm counts
    as not run there. A task that `clusters` does not name is its own. Keys are sorted. Raises ValueError for a score
    not finite.
    """
    ran_a, ran_b = ({key for key, runs in arm.items() if len(runs)} for arm in (a, b))
    keys = tuple(sorted(ran_a & ran_b))
    named = clusters or {}
    return Pairing(
        keys,
        tuple(tuple(finite(a[key], "scores")) for key in keys),
        tuple(tuple(finite(b[key], "scores")) for key in keys),
        tuple(named.get(key, ("task", key)) for key in keys),
        tuple(sorted(ran_a - ran_b)),
        tuple(sorted(ran_b - ran_a)),
    )


def difference_interval(pairing: Pairing, level: float = DEFAULT_LEVEL) -> Interval:
    """The default interval of a difference of scores in [0, 1], in their unit.

    Newcombe's method 10 where tasks are single pairs of pass and fail; else t on clusters. No task in common has no
    value, and one cluster no interval. Raises ValueError for a level outside (0, 1).
    """
    check_level(level)
    if not pairing.keys:
        return Interval(None, None, None, level, PAIRED_T, NOTHING_IN_COMMON)
    if pairing.single and len(pairing.keys) > 1:
        low, high = newcombe_10(pairing.discordant, level)
        return Interval(pairing.discordant.difference, low, high, level, NEWCOMBE_10)
    return paired_interval(pairing.differences, pairing.clusters, level=level)


def difference_test(pairing: Pairing, *, seed: int, draws: int = DRAWS) -> DifferenceTest:
    """The default test that two arms do not differ: by flipping the signs of whole clusters' differences.

    Of single pairs of pass and fail that is the exact McNemar test, which needs no draws. Raises ValueError for no task
    in common.
    """
    if pairing.single:
        pairs = pairing.discordant
        mid_p = mcnemar_midp(pairs.first, pairs.second)
        return DifferenceTest(mcnemar_exact(pairs.first, pairs.second), MCNEMAR, mid_p)
    if not pairing.keys:
        raise ValueError(NOTHING_IN_COMMON)
    found = sign_flip(pairing.differences, pairing.clusters, seed=seed, draws=draws)
    if found.draws is None:
        return DifferenceTest(found.p, SIGN_FLIP_EXACT.format(found.clusters))
    return DifferenceTest(found.p, SIGN_FLIP_DRAWN.format(f"{found.draws:,}", seed))


def paired_interval(
    differences: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    *,
    level: float = DEFAULT_LEVEL,
    bounds: tuple[float, float] | None = OF_RATES,
) -> Interval:
    """Mean difference over tasks ± t_{G-1} × CR1 (Miller 2024, with t for z), clipped to `bounds`, in their unit.

    Where no two clusters differ, t would make a point. Then, if differences are bounded: with confidence `level` at
    most u = 1 - (1-level)^(1/G) of all clusters are unlike the G seen (the exact bound for 0 of G), and each of those
    lies within `bounds`; for differences without bounds (money, seconds) there is no interval. Nor is there for one
    cluster. Raises ValueError for no task, or a value not finite or out of bounds.
    """
    check_level(level)
    mean = cluster_robust(finite(differences, "differences"), clusters)
    if bounds is not None and not all(bounds[0] <= d <= bounds[1] for d in differences):
        raise ValueError(f"a difference outside [{bounds[0]}, {bounds[1]}]")
    if mean.se is None:
        return Interval(mean.value, None, None, level, PAIRED_T, ONE_CLUSTER)
    if mean.se == 0.0:
        if bounds is None:
            return Interval(mean.value, None, None, level, PAIRED_T, NO_VARIATION)
        unseen = 1.0 - (1.0 - level) ** (1.0 / mean.clusters)
        low, high = (mean.value + unseen * (bound - mean.value) for bound in bounds)
        return Interval(mean.value, low, high, level, UNSEEN)
    half = t_two_sided(level, mean.clusters - 1) * mean.se
    low, high = mean.value - half, mean.value + half
    if bounds is not None:
        low, high = max(bounds[0], low), min(bounds[1], high)
    return Interval(mean.value, low, high, level, PAIRED_T)


def paired_mean(differences: Sequence[float], clusters: Sequence[Hashable] | None = None) -> ClusterMean:
    """The mean difference over tasks and its CR1 error, for tests that need a spread.

    Without shared clusters the error is sd(d)/sqrt(G), which is sqrt(SE_A^2 + SE_B^2 - 2 r SE_A SE_B) (Miller 2024).
    Raises ValueError for one cluster, clusters that do not differ, no task, or a value not finite.
    """
    mean = cluster_robust(finite(differences, "differences"), clusters)
    if not mean.se:
        raise ValueError(ONE_CLUSTER if mean.se is None else NO_VARIATION)
    return mean


def paired_t(differences: Sequence[float], clusters: Sequence[Hashable] | None = None) -> TTest:
    """Student's paired t on clusters: mean/CR1 with G-1 degrees of freedom, two-sided.

    A secondary number: verdicts use the sign-flip test. Raises ValueError as `paired_mean` does.
    """
    mean = paired_mean(differences, clusters)
    assert mean.se is not None  # paired_mean raises otherwise
    statistic, df = mean.value / mean.se, mean.clusters - 1
    return TTest(statistic, df, 2.0 * t_tail(abs(statistic), df))
