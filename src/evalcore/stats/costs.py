"""Money per solved task: all that was spent on graded trials over all that was solved, with its interval.

A ratio of sums, never a mean of ratios, never of solved trials only. What void trials cost stands apart. Values are in
the unit of the costs; each number given is the sum over the graded trials of one task.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Final

from attrs import frozen

from evalcore.stats.binomial import clopper_pearson_upper
from evalcore.stats.bootstrap import DRAWS, percentile_bounds, resamples
from evalcore.stats.checks import check_count, check_level, check_not_negative, finite, same_length
from evalcore.stats.clusters import columns_by_cluster, rounding
from evalcore.stats.distributions import t_two_sided
from evalcore.stats.intervals import DEFAULT_LEVEL, ONE_CLUSTER, Interval

LOG_DELTA: Final = "delta method on the logarithm, by cluster, t with clusters - 1 degrees of freedom"
FIELLER: Final = "Fieller, by cluster, t with clusters - 1 degrees of freedom"
BOOTSTRAP: Final = "percentile bootstrap of clusters ({} draws, seed {})"
UNSURE_DENOMINATOR: Final = 0.3  # relative error of the mean solved, above which the delta method is not to be trusted
NOTHING_SOLVED: Final = "spent {:.4g}, solved 0"
NO_UPPER_BOUND: Final = "no upper bound: the number solved cannot be told from 0"
NOTHING_PAID: Final = "nothing was paid: no variation to measure"
NO_VARIATION: Final = "every cluster has the same cost per solve: no variation to measure"
UNKNOWN: Final = "cost covers {} of {} tasks"


@frozen
class Moments:
    """Two means over tasks, the variances (CR1) and the covariance of these means by cluster, and the clusters."""

    x: float
    y: float
    var_x: float
    var_y: float
    cov: float
    clusters: int

    @property
    def ratio_se(self) -> float:
        """The delta-method error of x/y: sqrt(var x - 2 R cov + R^2 var y)/|y|. Raises ValueError for y = 0."""
        if self.y == 0.0:
            raise ValueError("a ratio to 0 has no value")
        ratio = self.x / self.y
        return math.sqrt(max(0.0, self.var_x - 2.0 * ratio * self.cov + ratio * ratio * self.var_y)) / abs(self.y)


def moments(x: Sequence[float], y: Sequence[float], clusters: Sequence[Hashable] | None = None) -> Moments:
    """Means over tasks of two values, with their cluster-robust (CR1) variances and covariance.

    Raises ValueError for fewer than 2 clusters, different lengths, or a value not finite.
    """
    xs, ys = finite(x, "values"), finite(y, "values")
    (sums_x, sums_y), sizes = columns_by_cluster([xs, ys], clusters)
    groups, tasks = len(sizes), len(xs)
    if groups < 2:
        raise ValueError(f"{ONE_CLUSTER}: no variation between clusters can be seen")
    mean_x, mean_y = math.fsum(xs) / tasks, math.fsum(ys) / tasks
    dx = [total - n * mean_x for total, n in zip(sums_x, sizes, strict=True)]
    dy = [total - n * mean_y for total, n in zip(sums_y, sizes, strict=True)]
    scale = groups / (groups - 1) / tasks**2
    return Moments(
        mean_x,
        mean_y,
        scale * math.fsum(d * d for d in dx),
        scale * math.fsum(d * d for d in dy),
        scale * math.fsum(a * b for a, b in zip(dx, dy, strict=True)),
        groups,
    )


def ratio_roots(ratio: Moments, level: float) -> tuple[float, float, float] | None:
    """(A, r1, r2) of Fieller's quadratic A r^2 - 2 B r + C = 0, r1 <= r2, by which |x - r y| = t SE(x - r y).

    A = y^2 - t^2 var y, B = x y - t^2 cov, C = x^2 - t^2 var x (Fieller 1954). A > 0: the set between the roots; A < 0:
    the set outside them. None where there is no root, that is where every r is in the set. For A = 0 the one root is
    given twice.
    """
    square = t_two_sided(level, ratio.clusters - 1) ** 2
    a = ratio.y**2 - square * ratio.var_y
    b = ratio.x * ratio.y - square * ratio.cov
    c = ratio.x**2 - square * ratio.var_x
    if a == 0.0:
        return (a, c / (2.0 * b), c / (2.0 * b)) if b else None
    inner = b * b - a * c
    if inner < 0.0:
        # With A > 0 the ratio itself is in the set, so there are roots; rounding may say otherwise.
        return (a, b / a, b / a) if a > 0.0 else None
    roots = sorted(((b - math.sqrt(inner)) / a, (b + math.sqrt(inner)) / a))
    return a, roots[0], roots[1]


def cost_per_solved(costs: Sequence[float], solved: Sequence[float]) -> float:
    """All that was spent on graded trials, failures too, over all that was solved, in the unit of `costs`.

    A ratio of sums, never a mean of ratios. Raises ValueError where nothing was solved: the price is then unknown, not
    0 and not infinite.
    """
    if len(costs) != len(solved):
        raise ValueError(f"{len(costs)} costs but {len(solved)} counts of solved trials")
    total, count = math.fsum(costs), math.fsum(solved)
    if not (math.isfinite(total) and math.isfinite(count)) or count < 0:
        raise ValueError("costs and counts are finite numbers")
    if count == 0:
        raise ValueError("nothing was solved: cost per solve has no value")
    return total / count


def cost_per_solved_se(
    costs: Sequence[float], solved: Sequence[float], clusters: Sequence[Hashable] | None = None
) -> float:
    """Its delta-method standard error by cluster: sqrt(sum_g (c_g - R s_g)^2/(G-1)/G)/mean(s) (Cochran 1977).

    Raises ValueError for fewer than 2 clusters or nothing solved.
    """
    cost_per_solved(costs, solved)
    return moments(costs, solved, clusters).ratio_se


def log_interval(
    costs: Sequence[float],
    solved: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    level: float = DEFAULT_LEVEL,
) -> Interval:
    """R exp(± t_{G-1} SE/R): the delta method on the logarithm, so that no bound is negative.

    One cluster, clusters of one price, or no cost at all have no interval. Raises ValueError where nothing was solved.
    """
    check_level(level)
    value, missing = _value(costs, solved, clusters)
    if missing:
        return Interval(value, None, None, level, LOG_DELTA, missing)
    ratio = moments(costs, solved, clusters)
    wide = math.exp(min(700.0, t_two_sided(level, ratio.clusters - 1) * ratio.ratio_se / value))
    return Interval(value, value / wide, value * wide, level, LOG_DELTA)


def fieller_interval(
    costs: Sequence[float],
    solved: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    level: float = DEFAULT_LEVEL,
) -> Interval:
    """Every price r at which the mean of c_g - r s_g is not distinguishable from 0 (Fieller 1954), from 0 up.

    Exact where the delta method is only near. Where the number solved cannot be told from 0 there is no upper bound:
    None, with a reason. One cluster, clusters of one price, or no cost at all have no interval. Raises ValueError where
    nothing was solved.
    """
    check_level(level)
    value, missing = _value(costs, solved, clusters)
    if missing:
        return Interval(value, None, None, level, FIELLER, missing)
    found = ratio_roots(moments(costs, solved, clusters), level)
    if found is not None and found[0] > 0.0:
        return Interval(value, max(0.0, found[1]), found[2], level, FIELLER)
    # Unbounded above. Where the set also begins again at 0, the bound that holds for all of it is 0.
    low = 0.0 if found is None or (found[1] > 0.0 and found[0] < 0.0) else max(0.0, found[2])
    return Interval(value, min(low, value), None, level, FIELLER, NO_UPPER_BOUND)


def bootstrap_interval(
    costs: Sequence[float],
    solved: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    *,
    seed: int,
    level: float = DEFAULT_LEVEL,
    draws: int = DRAWS,
) -> Interval:
    """The percentile bootstrap by cluster; a resample without a solve counts as endlessly dear.

    Where more than (1-level)/2 of resamples solve nothing there is no upper bound. One cluster, clusters of one price,
    or no cost at all have no interval. Raises ValueError where nothing was solved.
    """
    import numpy as np

    method = BOOTSTRAP.format(f"{draws:,}", seed)
    value, missing = _value(costs, solved, clusters)
    if missing:
        return Interval(value, None, None, level, method, missing)
    (c, s), _ = columns_by_cluster([finite(costs, "costs"), finite(solved, "counts")], clusters)
    values: list[float] = []
    for piece in resamples(len(c), draws, seed):
        spent, count = piece @ np.asarray(c, dtype=np.float64), piece @ np.asarray(s, dtype=np.float64)
        values += [x / n if n > 0 else math.inf for x, n in zip(spent.tolist(), count.tolist(), strict=True)]
    low, high = percentile_bounds(sorted(values), level)
    if math.isinf(high):
        return Interval(value, None if math.isinf(low) else low, None, level, method, NO_UPPER_BOUND)
    return Interval(value, low, high, level, method)


def cost_per_solve(
    costs: Sequence[float | None],
    solved: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    *,
    level: float = DEFAULT_LEVEL,
) -> Interval:
    """The default: the ratio with its log interval, or Fieller's where the mean solved is uncertain by more than 30 %.

    An unknown cost (None) leaves no value, and says how many tasks are covered; nothing solved leaves none either, and
    says what was spent. Raises ValueError for no task, a negative cost or count, or different lengths.
    """
    check_level(level)
    same_length(costs, solved, "costs and counts of solved trials")
    known = [cost for cost in costs if cost is not None]
    for number in (*known, *solved):
        check_not_negative(number, "a cost or a count")
    if not costs:
        raise ValueError("no task: there is nothing to compute from")
    if len(known) < len(costs):
        return Interval(None, None, None, level, LOG_DELTA, UNKNOWN.format(len(known), len(costs)))
    if math.fsum(solved) == 0.0:
        return Interval(None, None, None, level, LOG_DELTA, NOTHING_SOLVED.format(math.fsum(known)))
    if _value(known, solved, clusters)[1] is None:
        ratio = moments(known, solved, clusters)
        if math.sqrt(ratio.var_y) > UNSURE_DENOMINATOR * ratio.y:
            return fieller_interval(known, solved, clusters, level)
    return log_interval(known, solved, clusters, level)


def least_cost_per_solve(spent: float, tasks: int, repeats: int = 1, level: float = DEFAULT_LEVEL) -> float:
    """Where nothing was solved: what a solve costs at least, with one-sided confidence `level`, in the unit of `spent`.

    Spent over the most that could have been solved: tasks × repeats × the exact upper bound for 0 of `tasks`
    independent ones (give clusters where tasks share a cause). Raises ValueError for a negative sum or counts below 1.
    """
    check_not_negative(spent, "what was spent")
    check_count(repeats, "the number of repeats", 1)
    return spent / (tasks * repeats * clopper_pearson_upper(0, tasks, level))


def _value(
    costs: Sequence[float], solved: Sequence[float], clusters: Sequence[Hashable] | None
) -> tuple[float, str | None]:
    """The ratio, and why it has no interval."""
    value = cost_per_solved(costs, solved)
    if value == 0.0:
        return value, NOTHING_PAID
    (c, s), _ = columns_by_cluster([costs, solved], clusters)
    if len(c) < 2:
        return value, ONE_CLUSTER
    residuals = [x - value * y for x, y in zip(c, s, strict=True)]
    return value, None if max(map(abs, residuals)) > rounding(c) else NO_VARIATION
