"""pass@k: at least one of k tries succeeds. pass^k: all of k tries succeed. Unbiased, from n runs with c successes.

pass@k = 1 - C(n-c, k) / C(n, k)   (Chen et al. 2021, arXiv 2107.03374)
pass^k = C(c, k) / C(n, k)         (Yao et al. 2024, tau-bench, arXiv 2406.12045)

Neither has a value for n < k, and neither is ever guessed from a rate: (c/n)^k is biased upwards for p^k, and the
pass@1 of tasks that differ in difficulty says little about their pass^k.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable


def pass_at_k(n: int, c: int, k: int) -> float:
    """The chance that at least one of k runs, drawn from n with c successes, succeeds. ValueError where undefined."""
    _check(n, c, k)
    whole = math.comb(n, k)
    return (whole - math.comb(n - c, k)) / whole  # one division of exact integers


def pass_hat_k(n: int, c: int, k: int) -> float:
    """The chance that all of k runs, drawn from n with c successes, succeed. ValueError where undefined."""
    _check(n, c, k)
    return math.comb(c, k) / math.comb(n, k)


def pass_at_k_mean(tasks: Iterable[tuple[int, int]], k: int) -> float:
    """The mean of pass@k over tasks given as (n, c). ValueError if any task has n < k, or if there is none."""
    return _mean(pass_at_k, tasks, k)


def pass_hat_k_mean(tasks: Iterable[tuple[int, int]], k: int) -> float:
    """The mean of pass^k over tasks given as (n, c). ValueError if any task has n < k, or if there is none."""
    return _mean(pass_hat_k, tasks, k)


def _mean(function: Callable[[int, int, int], float], tasks: Iterable[tuple[int, int]], k: int) -> float:
    kinds = Counter(tasks)  # thousands of tasks share a handful of (n, c)
    if not kinds:
        raise ValueError("no task: there is nothing to average")
    return math.fsum(function(n, c, k) * count for (n, c), count in kinds.items()) / kinds.total()


def _check(n: int, c: int, k: int) -> None:
    if k < 1:
        raise ValueError(f"k is at least 1, not {k}")
    if not 0 <= c <= n:
        raise ValueError(f"{c} successes of {n} runs")
    if n < k:
        raise ValueError(f"undefined for k = {k} with {n} runs")
