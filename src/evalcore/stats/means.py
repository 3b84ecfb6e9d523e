"""Intervals for means that are no rates: money, tokens, seconds, calls."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from evalcore.stats.bootstrap import DRAWS, bca
from evalcore.stats.checks import check_level
from evalcore.stats.clusters import cluster_robust
from evalcore.stats.distributions import t_two_sided
from evalcore.stats.intervals import DEFAULT_LEVEL, ONE_CLUSTER, Interval

T_ON_CLUSTERS: Final = "t on clusters (CR1, clusters - 1 degrees of freedom)"
NO_VARIATION: Final = "every cluster has the same value: no variation to measure"
ENOUGH_FOR_T: Final = 30  # clusters
ENOUGH_FOR_BOOTSTRAP: Final = 10
TOO_FEW: Final = "{} clusters: below 10 a bootstrap promises more than it holds, and nothing else fits a skewed mean"


def t_interval(
    means: Sequence[float], clusters: Sequence[Hashable] | None = None, level: float = DEFAULT_LEVEL
) -> Interval:
    """Mean over tasks ± t_{G-1} × CR1, not clipped, in the unit of `means` (Miller 2024, with t for z).

    One cluster, or clusters that do not differ, have no interval: never a point. Raises ValueError for no task or a
    value not finite.
    """
    check_level(level)
    mean = cluster_robust(means, clusters)
    if not mean.se:
        reason = ONE_CLUSTER if mean.se is None else NO_VARIATION
        return Interval(mean.value, None, None, level, T_ON_CLUSTERS, reason)
    half = t_two_sided(level, mean.clusters - 1) * mean.se
    return Interval(mean.value, mean.value - half, mean.value + half, level, T_ON_CLUSTERS)


def mean_interval(
    means: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    *,
    seed: int,
    level: float = DEFAULT_LEVEL,
    draws: int = DRAWS,
) -> Interval:
    """The default for a mean that is no rate: t from 30 clusters on, BCa bootstrap from 10 on, refused below.

    In the unit of `means`, one value a task. A mean of costs or times is skewed, so t needs many clusters, and a
    bootstrap of few covers too little (.66 to .90 at nominal .95, shared/facts/statistics-mcp.md 2.2). `t_interval` can
    still be asked for by name. Raises ValueError for no task or a value not finite.
    """
    mean = cluster_robust(means, clusters)
    if mean.clusters >= ENOUGH_FOR_T:
        return t_interval(means, clusters, level)
    if mean.clusters >= ENOUGH_FOR_BOOTSTRAP:
        return bca(means, clusters, seed=seed, level=level, draws=draws)
    plain = t_interval(means, clusters, level)
    if plain.low is None:  # one cluster, or no variation: the plainer reason
        return plain
    return Interval(mean.value, None, None, level, "none", TOO_FEW.format(mean.clusters))
