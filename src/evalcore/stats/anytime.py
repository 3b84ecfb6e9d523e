"""Looking at a study after every task, as often as one likes: evidence that stays valid whenever one stops.

It costs sharpness: an anytime-valid interval is wider than a fixed one of the same data. The order of tasks is fixed
beforehand at random, and a task counts when all its repeats have finished.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from typing import Final

from attrs import frozen

from evalcore.stats.checks import check_count, check_not_negative, check_positive, check_share, finite
from evalcore.stats.intervals import DEFAULT_LEVEL, Interval

WARM_UP: Final = 30  # tasks before the asymptotic sequence may be read
ASYMPTOTIC: Final = "asymptotic confidence sequence (valid at every look from 30 tasks on)"
MIXTURE: Final = "normal-mixture confidence sequence (valid at every look)"
TOO_EARLY: Final = "{} tasks: the sequence may be read from 30 on"
NO_VARIATION: Final = "no two tasks differ: no variation to measure"


@frozen
class SignEvidence:
    """A running sign test: its e-value now, the largest so far, and the task (from 1) at which it first sufficed."""

    e_value: float
    largest: float
    rejected_at: int | None


def sign_e_value(first: int, second: int) -> float:
    """The evidence that one arm wins more of the discordant tasks than the other: 2^m B(b+1, c+1) = 2^m/((m+1) C(m,b)).

    An e-value: without a difference its running maximum reaches 1/alpha with a chance of at most alpha (Ville). It bets
    with a uniform prior on the share of wins; 7 to 0 gives 16, 8 to 0 gives 28.4. Raises ValueError for negative
    counts.
    """
    check_count(first, "a number of tasks")
    check_count(second, "a number of tasks")
    m = first + second
    try:
        return float((1 << m) / ((m + 1) * math.comb(m, first)))
    except OverflowError:
        return sys.float_info.max


def sign_evidence(winners: Iterable[int], alpha: float = 0.05) -> SignEvidence:
    """Follow the e-value task by task; each task is +1 (the first arm won), -1 (the second) or 0 (neither).

    Reject equality at the first task where it reaches 1/alpha, and keep to that. Raises ValueError for other values or
    alpha outside (0, 1).
    """
    check_share(alpha, "alpha")
    wins, value, largest, rejected = [0, 0], 1.0, 1.0, None
    for place, winner in enumerate(winners, start=1):
        if winner not in {-1, 0, 1}:
            raise ValueError(f"a task is won by one arm (+1), the other (-1) or neither (0), not {winner!r}")
        if winner:
            wins[winner < 0] += 1
            value = sign_e_value(wins[0], wins[1])
            largest = max(largest, value)
        if rejected is None and largest >= 1.0 / alpha:
            rejected = place
    return SignEvidence(value, largest, rejected)


def asymptotic_radius(n: int, sd: float, *, alpha: float = 0.05, r: float = 0.5) -> float:
    """The half-width after n tasks: sd sqrt(2 (n r^2 + 1)/(n^2 r^2) ln(sqrt(n r^2 + 1)/alpha)), in the unit of sd.

    Waudby-Smith et al. (2021, arXiv 2103.06476); r tunes where it is tightest. Asymptotic: read it from 30
    tasks on. Raises ValueError for no task, a negative sd, r not above 0, or alpha outside (0, 1).
    """
    check_count(n, "the number of tasks", 1)
    check_not_negative(sd, "a spread")
    check_positive(r, "r")
    check_share(alpha, "alpha")
    square = n * r * r + 1.0
    return sd * math.sqrt(2.0 * square / (n * n * r * r) * math.log(math.sqrt(square) / alpha))


def mixture_radius(n: int, *, variance: float, alpha: float = 0.05, rho: float = 10.0) -> float:
    """The half-width after n tasks for any bounded values: sqrt((v+rho) ln((v+rho)/(rho alpha^2)))/n, v = n variance.

    Normal-mixture boundary of Howard et al. (2021, arXiv 1810.08240). `variance` bounds the sub-Gaussian variance: 1/4
    for values in [0, 1], 1 for differences in [-1, 1]. Holds from the first task on. Raises ValueError for no task, a
    variance or rho not above 0, or alpha outside (0, 1).
    """
    check_count(n, "the number of tasks", 1)
    check_positive(variance, "a variance")
    check_positive(rho, "rho")
    check_share(alpha, "alpha")
    v = n * variance
    return math.sqrt((v + rho) * math.log((v + rho) / (rho * alpha * alpha))) / n


def confidence_sequence(
    values: Sequence[float], bounds: tuple[float, float] | None = None, level: float = DEFAULT_LEVEL
) -> Interval:
    """The interval of a mean over the tasks so far, valid at every look: by `bounds`, else asymptotic.

    With `bounds` the variance is at most (high-low)^2/4, and the interval is clipped to them. Without, it needs 30
    tasks that differ. Raises ValueError for no task, a value not finite, or one out of bounds.
    """
    alpha, known = 1.0 - level, finite(values, "values")
    n, value = len(known), math.fsum(known) / len(known)
    if bounds is not None:
        low, high = bounds
        if not all(low <= x <= high for x in known):
            raise ValueError(f"a value outside [{low}, {high}]")
        radius = mixture_radius(n, variance=(high - low) ** 2 / 4.0, alpha=alpha)
        return Interval(value, max(low, value - radius), min(high, value + radius), level, MIXTURE)
    if n < WARM_UP:
        return Interval(value, None, None, level, ASYMPTOTIC, TOO_EARLY.format(n))
    sd = math.sqrt(math.fsum((x - value) ** 2 for x in known) / (n - 1))
    if sd == 0.0:
        return Interval(value, None, None, level, ASYMPTOTIC, NO_VARIATION)
    radius = asymptotic_radius(n, sd, alpha=alpha)
    return Interval(value, value - radius, value + radius, level, ASYMPTOTIC)
