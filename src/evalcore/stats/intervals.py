"""Intervals for a rate in [0, 1]: the default ones. Exact and Bayesian ones are in `binomial` and `hierarchical`."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Final

from attrs import frozen

from evalcore.stats.checks import check_level
from evalcore.stats.clusters import cluster_robust, effective_runs
from evalcore.stats.distributions import t_two_sided, z_two_sided

DEFAULT_LEVEL: Final = 0.95
WILSON: Final = "Wilson"
CLUSTERED_WILSON: Final = "clustered Wilson (effective runs, t with clusters - 1 degrees of freedom)"
ONE_CLUSTER: Final = "one cluster"


@frozen
class Interval:
    """A value and its interval, both bounds at `level` two-sided; whatever is None, `reason` says why.

    Rates have both bounds or neither. The cost of a solve can have a lower bound and no upper one.
    """

    value: float | None
    low: float | None
    high: float | None
    level: float
    method: str
    reason: str | None = None


def wilson_bounds(p: float, n: float, quantile: float) -> tuple[float, float]:
    """Wilson's score bounds for a rate p from n runs (Wilson 1927), with any quantile in the place of z.

    centre = (p + q^2/2n) / (1 + q^2/n);  half = q / (1 + q^2/n) * sqrt(p(1-p)/n + q^2/4n^2). Clipped to [0, 1].
    Raises ValueError for n <= 0, p outside [0, 1], or a quantile that is not finite and positive.
    """
    if not (n > 0 and math.isfinite(n)):
        raise ValueError(f"an interval needs runs, not {n!r}")
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{p!r} is no rate")
    if not (quantile > 0 and math.isfinite(quantile)):
        raise ValueError(f"{quantile!r} is no quantile")
    square = quantile * quantile
    shrink = 1.0 + square / n
    centre = (p + square / (2.0 * n)) / shrink
    half = quantile / shrink * math.sqrt(p * (1.0 - p) / n + square / (4.0 * n * n))
    # At p = 0 and 1 a bound is exactly p; rounding would leave it a few 1e-17 beside it.
    low = 0.0 if p == 0.0 else max(0.0, centre - half)
    high = 1.0 if p == 1.0 else min(1.0, centre + half)
    return low, high


def wilson(successes: float, n: int, level: float = DEFAULT_LEVEL) -> Interval:
    """The plain Wilson interval: for independent tasks that each ran once. Raises ValueError for n < 1."""
    if n < 1:
        raise ValueError(f"an interval needs runs, not {n!r}")
    p = successes / n
    low, high = wilson_bounds(p, n, z_two_sided(level))
    return Interval(p, low, high, level, WILSON)


def clustered_wilson(
    means: Sequence[float], runs: int, clusters: Sequence[Hashable] | None = None, level: float = DEFAULT_LEVEL
) -> Interval:
    """The default interval of a rate over tasks with repeats and clusters; `means` holds each task's mean over runs.

    Wilson's formula with the effective number of runs and t with G-1 degrees of freedom in the place of z (Korn and
    Graubard 1998). At nominal 95 % it covered .933 to .984 in simulations where Wald on runs covered .655 to .867
    (shared/facts/statistics-mcp.md 2.2). One cluster has no interval. Raises ValueError for no task, a mean outside
    [0, 1], or fewer runs than tasks.
    """
    check_level(level)
    if runs < len(means):
        raise ValueError(f"{len(means)} tasks cannot have run {runs} times in all")
    if not all(0.0 <= x <= 1.0 for x in means):
        raise ValueError("a task mean outside [0, 1] is no rate")
    mean = cluster_robust(means, clusters)
    if mean.se is None:
        return Interval(mean.value, None, None, level, CLUSTERED_WILSON, ONE_CLUSTER)
    quantile = t_two_sided(level, mean.clusters - 1)
    low, high = wilson_bounds(min(1.0, mean.value), effective_runs(mean, runs), quantile)
    return Interval(mean.value, low, high, level, CLUSTERED_WILSON)


def rate_interval(
    means: Sequence[float], runs: int, clusters: Sequence[Hashable] | None = None, level: float = DEFAULT_LEVEL
) -> Interval:
    """What a scorecard prints: the clustered interval, or the plain one where tasks are independent and each ran once.

    With one run per task and no shared clusters the variance of a pass rate is p(1-p)/n, known from p alone; there is
    nothing for t to make up for, and the plain interval is the one that every reader can check.
    """
    check_level(level)
    apart = clusters is None or len(set(clusters)) == len(means)
    if apart and runs == len(means) >= 2 and all(x in (0.0, 1.0) for x in means):
        return wilson(math.fsum(means), runs, level)
    return clustered_wilson(means, runs, clusters, level)
