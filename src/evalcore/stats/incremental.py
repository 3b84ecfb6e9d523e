"""Is the dearer arm worth it? What an extra solve costs, and what that is worth at a declared value of a solve.

Differences are first arm less second, per task (mean over its repeats): solved in [-1, 1], cost in money.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Final, Literal

from attrs import frozen

from evalcore.stats.checks import check_level, check_not_negative, finite, same_length
from evalcore.stats.clusters import ClusterMean, cluster_robust
from evalcore.stats.costs import FIELLER, moments, ratio_roots
from evalcore.stats.distributions import t_two_sided
from evalcore.stats.intervals import DEFAULT_LEVEL, Interval
from evalcore.stats.paired import paired_interval

Quadrant = Literal["dominant", "dominated", "dearer and better", "cheaper and worse", "undecided"]
WorthWord = Literal["buys accuracy", "not worth it", "cheaper, not worse", "dominated", "inconclusive"]
Worth = Literal["worth it", "not worth it", "undecided"]

NO_PRICE: Final = "a price per extra solve needs an arm that is both dearer and better; here: {}"


@frozen
class ValueRange:
    """A range of values of a solve, in money, and whether the first arm is worth it there; `high` None: without end."""

    low: float
    high: float | None
    worth: Worth


@frozen
class Incremental:
    """The verdict on a dearer or cheaper arm, and why."""

    verdict: WorthWord
    reason: str


def price_of_extra_solve(rate_a: float, cost_a: float, rate_b: float, cost_b: float) -> float:
    """The incremental cost-effectiveness ratio from a to b, (cost_b - cost_a)/(rate_b - rate_a), in money per solve.

    Costs per task, rates in [0, 1]. Only where b is dearer and better: elsewhere the ratio means something else in each
    quadrant, and near no difference it means nothing. Raises ValueError there.
    """
    more, dearer = finite([rate_b - rate_a, cost_b - cost_a], "differences")
    if not (more > 0.0 and dearer > 0.0):
        gain = "better" if more > 0 else "worse" if more < 0 else "equally good"
        price = "dearer" if dearer > 0 else "cheaper" if dearer < 0 else "equally dear"
        raise ValueError(NO_PRICE.format(f"{gain} and {price}"))
    return dearer / more


def quadrant(solved: Interval, cost: Interval) -> Quadrant:
    """Where the first arm lies, by the intervals of its differences; "undecided" unless both exclude 0."""
    signs = [_sign(solved), _sign(cost)]
    if 0 in signs:
        return "undecided"
    better, dearer = signs[0] > 0, signs[1] > 0
    if better:
        return "dearer and better" if dearer else "dominant"
    return "dominated" if dearer else "cheaper and worse"


def price_interval(
    d_solved: Sequence[float],
    d_cost: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    level: float = DEFAULT_LEVEL,
) -> Interval:
    """The price of an extra solve with Fieller's interval (1954), where the first arm is shown dearer and better.

    In money per solve. Elsewhere it has no value, and the reason names the quadrant: read the net benefit. Raises
    ValueError for fewer than 2 clusters, different lengths or a value not finite.
    """
    solved = paired_interval(d_solved, clusters, level=level)
    cost = paired_interval(d_cost, clusters, level=level, bounds=None)
    where = quadrant(solved, cost)
    found = ratio_roots(moments(d_cost, d_solved, clusters), level) if where == "dearer and better" else None
    if found is None or found[0] <= 0.0 or solved.value is None or cost.value is None:
        return Interval(None, None, None, level, FIELLER, NO_PRICE.format(where))
    return Interval(cost.value / solved.value, found[1], found[2], level, FIELLER)


def net_benefit(
    d_solved: Sequence[float],
    d_cost: Sequence[float],
    value_per_solve: float,
    clusters: Sequence[Hashable] | None = None,
) -> ClusterMean:
    """Mean per task of lambda × extra solved - extra cost, with its CR1 error, in money (Stinnett and Mullahy 1998).

    lambda, what a solve is worth, is declared beforehand. Test it like any difference (`signflip`). Raises ValueError
    for a negative value of a solve, no task, different lengths or a value not finite.
    """
    return cluster_robust(_benefits(d_solved, d_cost, value_per_solve), clusters)


def net_benefit_interval(
    d_solved: Sequence[float],
    d_cost: Sequence[float],
    value_per_solve: float,
    clusters: Sequence[Hashable] | None = None,
    level: float = DEFAULT_LEVEL,
) -> Interval:
    """The same with t_{G-1} × CR1. One cluster, or clusters that do not differ, have no interval. Raises likewise."""
    benefits = _benefits(d_solved, d_cost, value_per_solve)
    return paired_interval(benefits, clusters, level=level, bounds=None)


def value_ranges(
    d_solved: Sequence[float],
    d_cost: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    level: float = DEFAULT_LEVEL,
) -> list[ValueRange]:
    """For which values of a solve, from 0 up, the net benefit's interval lies above 0, below 0, or holds it.

    Its bounds cross 0 at the roots of Fieller's quadratic for extra cost over extra solved. In money per solve. Raises
    ValueError for fewer than 2 clusters, different lengths or a value not finite.
    """
    check_level(level)
    parts = moments(d_cost, d_solved, clusters)
    found = ratio_roots(parts, level)
    t = t_two_sided(level, parts.clusters - 1)
    crossings = sorted({root for root in (found[1:] if found else ()) if root > 0.0})
    edges: list[float | None] = [0.0, *crossings, None]
    ranges: list[ValueRange] = []
    for low, high in pairwise(edges):
        assert low is not None  # only the last edge is open
        at = low * 2.0 + 1.0 if high is None else (low + high) / 2.0
        mean = at * parts.y - parts.x
        half = t * math.sqrt(max(0.0, at * at * parts.var_y - 2.0 * at * parts.cov + parts.var_x))
        worth: Worth = "worth it" if mean > half else "not worth it" if mean < -half else "undecided"
        if ranges and ranges[-1].worth == worth:
            ranges[-1] = ValueRange(ranges[-1].low, high, worth)
        else:
            ranges.append(ValueRange(low, high, worth))
    return ranges


def is_it_worth_it(
    solved: Interval, cost: Interval, benefit: Interval | None, *, not_worse: bool | None = None
) -> Incremental:
    """The verdict on the first arm, from the intervals of its extra solved, extra cost and net benefit.

    `benefit` is None where no value of a solve was declared; `not_worse` says that non-inferiority was shown within a
    declared margin (`verdicts.Conclusion.not_worse`). In this order:

    buys accuracy        more solved, and the net benefit above 0 (or cheaper too: then at any value of a solve)
    not worth it         more solved, and the net benefit below 0
    cheaper, not worse   cheaper, and not worse by the margin
    dominated            fewer solved and dearer
    inconclusive         otherwise
    """
    more, dearer, worth = _sign(solved), _sign(cost), 0 if benefit is None else _sign(benefit)
    if more > 0 and dearer < 0:
        return Incremental("buys accuracy", "solves more and costs less, whatever a solve is worth")
    if more > 0 and worth > 0:
        return Incremental("buys accuracy", "solves more, and is worth its price at the declared value of a solve")
    if more > 0 and worth < 0:
        return Incremental("not worth it", "solves more, at a price above the declared value of a solve")
    if dearer < 0 and not_worse:
        return Incremental("cheaper, not worse", "costs less, and is not worse by as much as the declared margin")
    if more < 0 and dearer > 0:
        return Incremental("dominated", "solves less and costs more")
    if more > 0 and benefit is None:
        return Incremental("inconclusive", "solves more, but no value of a solve was declared to set against its price")
    return Incremental("inconclusive", "the trials do not show whether it is worth its price")


def _benefits(d_solved: Sequence[float], d_cost: Sequence[float], value_per_solve: float) -> list[float]:
    check_not_negative(value_per_solve, "the value of a solve")
    same_length(d_solved, d_cost, "differences of solved and of cost")
    pairs = zip(finite(d_solved, "differences"), finite(d_cost, "differences"), strict=True)
    return [value_per_solve * s - c for s, c in pairs]


def _sign(interval: Interval) -> int:
    if interval.low is not None and interval.low > 0.0:
        return 1
    return -1 if interval.high is not None and interval.high < 0.0 else 0
