"""Standard errors of a mean over single runs, as others compute them: for comparison with what they print.

evalcore itself reports the error of the mean over tasks (`clusters.cluster_robust`), which is CR1 here when every task
ran equally often. The naive one takes repeats for new tasks, and is too small.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

from attrs import frozen

from evalcore.stats.checks import finite, same_length


@frozen
class RunErrors:
    """Standard errors of one mean over runs, in the unit of the scores; `cr1` is None for one cluster."""

    naive: float
    cr0: float
    miller: float
    cr1: float | None


def errors_of_runs(scores: Sequence[Sequence[float]], clusters: Sequence[Hashable] | None = None) -> RunErrors:
    """Naive, CR0, Miller's and CR1 standard errors of the mean over all runs; `scores` holds each task's runs.

    With e = score - mean over the n runs and G clusters (by default the tasks): naive = sd(ddof 1)/sqrt(n); CR0 =
    sqrt(sum_g (sum e)^2)/n; Miller (2024, arXiv 2411.00640) = sqrt(naive^2 + sum_g sum_{i!=j} e_i e_j / n^2); CR1 =
    CR0 sqrt(G/(G-1)), which is statsmodels' and inspect's. Raises ValueError for fewer than 2 runs.
    """
    if clusters is not None:
        same_length(scores, clusters, "tasks and cluster labels")
    runs = finite([x for task in scores for x in task], "scores")
    n = len(runs)
    if n < 2:
        raise ValueError("a standard error needs 2 runs")
    mean = math.fsum(runs) / n
    sums: dict[Hashable, float] = {}
    for task, label in zip(scores, range(len(scores)) if clusters is None else clusters, strict=True):
        sums[label] = sums.get(label, 0.0) + math.fsum(x - mean for x in task)
    squares = math.fsum((x - mean) ** 2 for x in runs)
    between = math.fsum(e * e for e in sums.values())
    naive = math.sqrt(squares / (n - 1) / n)
    cr0 = math.sqrt(between) / n
    # The cross products of a cluster are the square of its sum less the squares of its parts.
    miller = math.sqrt(max(0.0, naive * naive + (between - squares) / (n * n)))
    count = len(sums)
    return RunErrors(naive, cr0, miller, cr0 * math.sqrt(count / (count - 1)) if count > 1 else None)
