"""Exact and Bayesian intervals for a rate from independent runs: tasks that share no cause and ran once each.

For repeated trials use `intervals.clustered_wilson` or `hierarchical`: these take every run for a new task.
"""

from __future__ import annotations

from typing import Final

from evalcore.stats.checks import check_level
from evalcore.stats.distributions import beta_quantile
from evalcore.stats.intervals import DEFAULT_LEVEL, Interval

CLOPPER_PEARSON: Final = "Clopper-Pearson (exact)"
JEFFREYS: Final = "Jeffreys: Beta(1/2, 1/2) prior, equal tails"
UNIFORM: Final = "uniform prior: Beta(1, 1), equal tails"


def clopper_pearson(successes: int, n: int, level: float = DEFAULT_LEVEL) -> Interval:
    """The exact interval: both tails of the binomial at most (1-level)/2 (Clopper and Pearson 1934).

    It never covers less than `level`, and usually more. Bounds are quantiles of Beta(s, n-s+1) and Beta(s+1, n-s).
    Raises ValueError for n < 1 or successes outside [0, n].
    """
    _check(successes, n, level)
    tail = (1.0 - level) / 2.0
    low = beta_quantile(tail, successes, n - successes + 1) if successes else 0.0
    high = beta_quantile(1.0 - tail, successes + 1, n - successes) if successes < n else 1.0
    return Interval(successes / n, low, high, level, CLOPPER_PEARSON)


def clopper_pearson_upper(successes: int, n: int, level: float = DEFAULT_LEVEL) -> float:
    """The exact one-sided upper bound of a rate; for no success in n it is 1 - (1-level)^(1/n), about 3/n at 95 %.

    Raises ValueError for n < 1 or successes outside [0, n].
    """
    _check(successes, n, level)
    return beta_quantile(level, successes + 1, n - successes) if successes < n else 1.0


def clopper_pearson_lower(successes: int, n: int, level: float = DEFAULT_LEVEL) -> float:
    """The exact one-sided lower bound of a rate: the mirror image of the upper one. Raises ValueError likewise."""
    return 1.0 - clopper_pearson_upper(n - successes, n, level)


def jeffreys(successes: int, n: int, level: float = DEFAULT_LEVEL) -> Interval:
    """The equal-tailed interval of Beta(s + 1/2, n - s + 1/2) (Brown, Cai and DasGupta 2001, without their end rule).

    Raises ValueError for n < 1 or successes outside [0, n].
    """
    return _posterior(successes, n, 0.5, level, JEFFREYS)


def uniform(successes: int, n: int, level: float = DEFAULT_LEVEL) -> Interval:
    """The equal-tailed interval of Beta(s + 1, n - s + 1) (Laplace; Bowyer et al. 2025, arXiv 2503.01747).

    Raises ValueError for n < 1 or successes outside [0, n].
    """
    return _posterior(successes, n, 1.0, level, UNIFORM)


def _posterior(successes: int, n: int, prior: float, level: float, method: str) -> Interval:
    _check(successes, n, level)
    a, b, tail = successes + prior, n - successes + prior, (1.0 - level) / 2.0
    return Interval(successes / n, beta_quantile(tail, a, b), beta_quantile(1.0 - tail, a, b), level, method)


def _check(successes: int, n: int, level: float) -> None:
    check_level(level)
    if n < 1:
        raise ValueError(f"an interval needs runs, not {n!r}")
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n} runs")
