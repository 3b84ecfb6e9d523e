"""Two arms that each ran every task once, with pass or fail: McNemar's tests and Newcombe's paired interval.

Only for single trials of tasks that share no cause; never on runs of repeated trials.
"""

from __future__ import annotations

import math
from typing import Final

from attrs import frozen

from evalcore.stats.checks import check_count
from evalcore.stats.distributions import z_two_sided
from evalcore.stats.intervals import DEFAULT_LEVEL, wilson_bounds

NEWCOMBE_10: Final = "Newcombe's paired score interval (method 10)"


@frozen
class Discordant:
    """Numbers of tasks: both arms passed, only the first, only the second, neither."""

    both: int
    first: int
    second: int
    neither: int

    @property
    def tasks(self) -> int:
        """All of them."""
        return self.both + self.first + self.second + self.neither

    @property
    def difference(self) -> float:
        """The first arm's pass rate less the second's. Raises ValueError for no task."""
        if not self.tasks:
            raise ValueError("no task: there is nothing to compare")
        return (self.first - self.second) / self.tasks


def mcnemar_exact(first: int, second: int) -> float:
    """The exact two-sided p of McNemar's test: 2 P(B <= min), B ~ Bin(first + second, 1/2), at most 1 (McNemar 1947).

    `first` and `second` count the tasks that only that arm solved; without any p is 1. Raises ValueError for negative
    counts.
    """
    _check(first, second)
    m = first + second
    return min(1.0, 2 * _head(min(first, second), m) / 2**m) if m else 1.0


def mcnemar_midp(first: int, second: int) -> float:
    """The mid-p version: the exact p less P(B = min); less conservative, not guaranteed (Fagerland et al. 2013).

    Without discordant tasks p is 1. Raises ValueError for negative counts.
    """
    _check(first, second)
    m, k = first + second, min(first, second)
    return min(1.0, (2 * _head(k, m) - math.comb(m, k)) / 2**m) if m else 1.0


def newcombe_10(pairs: Discordant, level: float = DEFAULT_LEVEL) -> tuple[float, float]:
    """Bounds of the difference of two paired rates: Newcombe's method 10 (1998, Stat Med 17:2635).

    Square-and-add of the two Wilson intervals, with the correlation phi of the pairs, its numerator ad - bc lowered by
    n/2 where it is positive (not below 0), and phi = 0 where a margin is 0. Never a point. Raises ValueError for no
    task or negative counts.
    """
    a, b, c, d = pairs.both, pairs.first, pairs.second, pairs.neither
    for count in (a, b, c, d):
        check_count(count, "a number of tasks")
    n, difference = pairs.tasks, pairs.difference
    z = z_two_sided(level)
    rate_1, rate_2 = (a + b) / n, (a + c) / n
    low_1, high_1 = wilson_bounds(rate_1, n, z)
    low_2, high_2 = wilson_bounds(rate_2, n, z)
    margins = (a + b) * (c + d) * (a + c) * (b + d)
    product = float(a * d - b * c)
    if product > 0:
        product = max(0.0, product - n / 2)
    phi = product / math.sqrt(margins) if margins else 0.0
    down = _combine(rate_1 - low_1, high_2 - rate_2, phi)
    up = _combine(high_1 - rate_1, rate_2 - low_2, phi)
    return max(-1.0, difference - down), min(1.0, difference + up)


def _combine(x: float, y: float, phi: float) -> float:
    return math.sqrt(max(0.0, x * x - 2.0 * phi * x * y + y * y))


def _head(k: int, m: int) -> int:
    """2^m P(B <= k) for B ~ Bin(m, 1/2), as an exact integer."""
    term = total = 1
    for i in range(k):
        term = term * (m - i) // (i + 1)
        total += term
    return total


def _check(first: int, second: int) -> None:
    for count in (first, second):
        check_count(count, "a number of tasks")
