"""Sample quantiles, and which observations bound a quantile of what they were drawn from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from attrs import frozen

from evalcore.stats.checks import check_count, check_level, check_share
from evalcore.stats.distributions import binomial_cdf
from evalcore.stats.intervals import DEFAULT_LEVEL


@frozen
class Ranks:
    """The observations, counted from 1 in ascending order, that bound a quantile; None: no observation does.

    `coverage` is the exact chance that the two bounds hold it, at least the level asked for.
    """

    low: int | None
    high: int | None
    coverage: float


def quantile(values: Iterable[float], q: float) -> float:
    """The q-quantile by linear interpolation (type 7 of Hyndman and Fan 1996, numpy's default).

    Raises ValueError for no value, a value that is NaN, or q outside [0, 1].
    """
    ordered = sorted(values)
    if not ordered or any(map(math.isnan, ordered)):
        raise ValueError("a quantile needs values, and none of them NaN")
    if not 0.0 <= q <= 1.0:
        raise ValueError(f"a quantile lies between 0 and 1, not {q!r}")
    place = q * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    if ordered[below] == ordered[above] or place == below:
        return ordered[below]  # also where both are infinite, or only the next one
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def quantile_ranks(n: int, q: float, level: float = DEFAULT_LEVEL) -> Ranks:
    """The order statistics that bound the q-quantile of n independent values, whatever their distribution.

    Low: the largest l with P(B <= l-1) <= a/2; high: the smallest u with P(B >= u) <= a/2; B ~ Bin(n, q), a = 1 - level
    (Thompson 1936; Conover 1999). p95 has no upper bound below 72 values. Raises ValueError for no value, or q or level
    outside (0, 1).
    """
    check_level(level)
    check_share(q, "a quantile")
    check_count(n, "the number of values", 1)
    tail = (1.0 - level) / 2.0 * (1.0 + 1e-12)
    low = _first(lambda rank: binomial_cdf(rank - 1, n, q) > tail, n + 1) - 1
    high = _first(lambda rank: 1.0 - binomial_cdf(rank - 1, n, q) <= tail, n + 1)
    below = binomial_cdf(low - 1, n, q) if low >= 1 else 0.0
    within = binomial_cdf(high - 1, n, q) if high <= n else 1.0
    return Ranks(low if low >= 1 else None, high if high <= n else None, within - below)


def fewest_for_upper_bound(q: float, tail: float) -> int:
    """The fewest independent values whose largest bounds the q-quantile from above with error `tail`: q^n <= tail.

    72 for p95 at .025, 59 at .05. Raises ValueError for q or tail outside (0, 1).
    """
    check_share(q, "a quantile")
    check_share(tail, "an error")
    n = max(1, math.floor(math.log(tail) / math.log(q)) - 1)
    while q**n > tail * (1.0 + 1e-12):
        n += 1
    return n


def _first(holds: Callable[[int], bool], last: int) -> int:
    """The smallest whole number from 1 where `holds`, which stays true once it is; `last` where it never is before."""
    low, high = 0, last
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
