"""Resampling of whole clusters. Tasks of a cluster, and repeats of a task, always stay together."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from evalcore.stats.checks import check_count, check_level, finite
from evalcore.stats.clusters import columns_by_cluster, rounding, sums_by_cluster
from evalcore.stats.distributions import normal_tail, z_quantile
from evalcore.stats.intervals import DEFAULT_LEVEL, ONE_CLUSTER, Interval

if TYPE_CHECKING:
    from numpy import float64, int64
    from numpy.typing import NDArray

DRAWS: Final = 9_999
BCA: Final = "BCa bootstrap of clusters ({} draws, seed {})"
CELLS: Final = 2_000_000  # numbers held at a time: 16 MB

NO_VARIATION_BETWEEN_CLUSTERS: Final = "every cluster has the same value: no variation to draw from"


def resamples(clusters: int, draws: int, seed: int) -> Iterator[NDArray[int64]]:
    """How often each cluster is in each replicate: rows of `clusters` counts, in pieces that fit in memory.

    The rows are the same whatever the pieces. Raises ValueError for no cluster or no draw.
    """
    import numpy as np

    check_count(clusters, "the number of clusters", 1)
    check_count(draws, "the number of draws", 1)
    random, step = np.random.default_rng(seed), max(1, CELLS // clusters)
    for start in range(0, draws, step):
        rows = min(step, draws - start)
        drawn = random.integers(0, clusters, size=(rows, clusters))
        drawn += np.arange(rows)[:, None] * clusters
        # Several times faster than drawing multinomial counts.
        yield np.bincount(drawn.ravel(), minlength=rows * clusters).reshape(rows, clusters)


def bootstrap_means(
    means: Sequence[float], clusters: Sequence[Hashable] | None = None, *, seed: int, draws: int = DRAWS
) -> list[float]:
    """The mean over tasks in each of `draws` resamples of whole clusters, ascending, in the unit of `means`.

    Their standard deviation tends to CR1 sqrt((G-1)/G) where clusters are of one size. Raises ValueError for no task or
    a value not finite.
    """
    sums, counts = sums_by_cluster(finite(means, "task means"), clusters)
    return sorted(float(x) for x in _means([sums], counts, draws, seed)[:, 0])


def _means(sums: Sequence[Sequence[float]], counts: Sequence[int], draws: int, seed: int) -> NDArray[float64]:
    """The mean over tasks of each column in each resample: draws × columns."""
    import numpy as np

    above, below = np.asarray(sums, dtype=np.float64).T, np.asarray(counts, dtype=np.float64)
    return np.concatenate([(piece @ above) / (piece @ below)[:, None] for piece in resamples(len(counts), draws, seed)])


def bca(
    means: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    *,
    seed: int,
    level: float = DEFAULT_LEVEL,
    draws: int = DRAWS,
) -> Interval:
    """The bias-corrected and accelerated interval of a mean over tasks, by resampling whole clusters (Efron 1987).

    z0 = Phi^-1(share of replicates below the mean, ties half); a from leaving out one cluster at a time; bounds are the
    replicates at Phi(z0 + (z0+z)/(1 - a (z0+z))). In the unit of `means`; at least 1,000 draws. One cluster, or
    clusters that do not differ, have no interval. It covers too little below 20 clusters or so; `means.mean_interval`
    refuses it below 10. Raises ValueError for no task, a value not finite, or fewer draws.
    """
    import numpy as np

    check_level(level)
    check_count(draws, "the number of draws", 1000)
    sums, counts = sums_by_cluster(finite(means, "task means"), clusters)
    method = BCA.format(f"{draws:,}", seed)
    total, tasks = math.fsum(sums), sum(counts)
    value, groups = total / tasks, len(sums)
    if groups < 2:
        return Interval(value, None, None, level, method, ONE_CLUSTER)
    left_out = [(total - s) / (tasks - n) for s, n in zip(sums, counts, strict=True)]
    if max(left_out) - min(left_out) <= rounding(means):
        return Interval(value, None, None, level, method, NO_VARIATION_BETWEEN_CLUSTERS)
    values = np.sort(_means([sums], counts, draws, seed)[:, 0])
    near = rounding(means)
    below = np.searchsorted(values, value - near, "left") + np.searchsorted(values, value + near, "right")
    z0 = z_quantile(min(max(float(below) / 2.0, 0.5), draws - 0.5) / draws)
    acceleration = _acceleration(left_out)
    bounds = []
    for p in ((1.0 - level) / 2.0, (1.0 + level) / 2.0):
        z = z0 + z_quantile(p)
        bend = 1.0 - acceleration * z
        shifted = z0 + z / bend if bend > 0.0 else math.copysign(math.inf, z)
        rank = normal_tail(-shifted) * (draws + 1) - 1.0  # as numpy's quantile of type 6: rank p (B+1), from 0
        bounds.append(float(np.interp(rank, np.arange(draws), values)))
    return Interval(value, bounds[0], bounds[1], level, method)


def percentile_bounds(ordered: Sequence[float], level: float) -> tuple[float, float]:
    """The percentile bounds of ascending replicates, which may end in infinities; ranks p (B+1), rounded outwards.

    Raises ValueError for fewer than 100 replicates.
    """
    check_level(level)
    draws = len(ordered)
    check_count(draws, "the number of draws", 100)
    tail = (1.0 - level) / 2.0
    low = max(0, math.floor(tail * (draws + 1)) - 1)
    high = min(draws - 1, math.ceil((1.0 - tail) * (draws + 1)) - 1)
    return ordered[low], ordered[high]


def resampled_columns(
    columns: Sequence[Sequence[float]], clusters: Sequence[Hashable] | None = None, *, seed: int, draws: int = DRAWS
) -> NDArray[float64]:
    """Several means over the same tasks, resampled together: draws × columns, each row one resample.

    Raises ValueError for no task, values of different lengths, or one not finite.
    """
    sums, counts = columns_by_cluster([finite(column, "task means") for column in columns], clusters)
    return _means(sums, counts, draws, seed)


def _acceleration(left_out: Sequence[float]) -> float:
    centre = math.fsum(left_out) / len(left_out)
    deviations = [centre - x for x in left_out]
    squares = math.fsum(d * d for d in deviations)
    return math.fsum(d * d * d for d in deviations) / (6.0 * squares * math.sqrt(squares))
