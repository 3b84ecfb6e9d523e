"""A Bayesian interval for repeated trials: tasks differ in difficulty, and each task's runs share its own rate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from evalcore.stats.checks import check_level
from evalcore.stats.intervals import DEFAULT_LEVEL, Interval

HIERARCHICAL: Final = "hierarchical: p_t ~ Beta(d m, d(1-m)), uniform priors on m and on the ICC 1/(d+1), equal tails"
GRID_MEAN: Final = 2000
GRID_ICC: Final = 200


def hierarchical(counts: Sequence[tuple[int, int]], level: float = DEFAULT_LEVEL) -> Interval:
    """The equal-tailed interval of the mean rate m where p_t ~ Beta(d m, d(1-m)); `counts` holds (runs, successes).

    Give one pair per cluster: runs of tasks that share a cause are pooled. Priors are uniform on m and on the
    intraclass correlation 1/(d+1). The posterior of m is the beta-binomial likelihood summed over midpoints of a grid
    of 2,000 means and 200 correlations: no sampling, no seed, the same each time, to about 0.0005. The value is the
    posterior median. With one run per cluster it is the uniform-prior interval. Raises ValueError for no run or
    impossible counts.
    """
    import numpy as np
    from scipy.special import betaln

    check_level(level)
    kinds = Counter(counts)
    if not counts or any(not 0 <= c <= n for n, c in kinds):
        raise ValueError("counts of (runs, successes), with 0 <= successes <= runs, at least one")
    if not any(n for n, _ in kinds):
        raise ValueError("an interval needs runs")
    means = (np.arange(GRID_MEAN) + 0.5) / GRID_MEAN
    strengths = 1.0 / ((np.arange(GRID_ICC) + 0.5) / GRID_ICC) - 1.0
    a, b = np.outer(strengths, means), np.outer(strengths, 1.0 - means)
    log_prior = betaln(a, b)
    log = np.zeros_like(a)
    for (n, c), times in kinds.items():
        log += times * (betaln(a + c, b + n - c) - log_prior)
    weights = np.exp(log - log.max()).sum(axis=0)
    cumulative = np.concatenate([[0.0], np.cumsum(weights)])
    edges = np.arange(GRID_MEAN + 1) / GRID_MEAN
    tail = (1.0 - level) / 2.0
    low, middle, high = np.interp([tail, 0.5, 1.0 - tail], cumulative / cumulative[-1], edges)
    return Interval(float(middle), float(low), float(high), level, HIERARCHICAL)
