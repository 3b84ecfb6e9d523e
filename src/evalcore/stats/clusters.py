"""Means over tasks, with standard errors that know that some tasks share a cause and that repeats are not new tasks.

The estimand is the mean over tasks of each task's mean over its repeats: a task weighs the same however often it ran.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

from attrs import frozen

# Below this a standard error is rounding, not variation: scores in [0, 1] cannot have one so small and not 0.
NO_VARIATION = 1e-12


@frozen
class ClusterMean:
    """A mean over tasks. `se` is its cluster-robust standard error (CR1), None where there is only one cluster."""

    value: float
    se: float | None
    tasks: int
    clusters: int


def cluster_robust(means: Sequence[float], clusters: Sequence[Hashable] | None = None) -> ClusterMean:
    """The mean of task means, with its CR1 standard error; a task is its own cluster unless `clusters` names another.

    With residuals e_g = sum of (x_t - theta) over the tasks of cluster g, SE = sqrt(G/(G-1) * sum_g e_g^2) / T. This is
    statsmodels' cluster covariance of a mean, and sd(task means)/sqrt(T) where no tasks share a cluster (Miller 2024,
    arXiv 2411.00640, with the G/(G-1) that the paper leaves out). Raises ValueError for no task or a value not finite.
    """
    tasks = len(means)
    if tasks == 0:
        raise ValueError("no task: there is nothing to average")
    if clusters is not None and len(clusters) != tasks:
        raise ValueError(f"{tasks} tasks but {len(clusters)} cluster labels")
    if not all(map(math.isfinite, means)):
        raise ValueError("a task mean that is not a finite number")
    value = math.fsum(means) / tasks
    residuals = _residuals(means, clusters, value)
    count = len(residuals)
    if count < 2:
        return ClusterMean(value, None, tasks, count)
    se = math.sqrt(count / (count - 1) * math.fsum(e * e for e in residuals)) / tasks
    return ClusterMean(value, se if se > NO_VARIATION else 0.0, tasks, count)


def effective_runs(mean: ClusterMean, runs: int) -> float:
    """How many independent runs would pin a rate down as well: p(1-p)/SE^2, at most `runs`.

    Without any variation between clusters (all solved, none solved) it is the number of clusters, not of runs: repeats
    of tasks that always go the same way teach nothing new. Raises ValueError for one cluster, or a mean outside [0, 1].
    """
    if mean.se is None:
        raise ValueError("one cluster: no variation between clusters can be seen")
    if not 0.0 <= mean.value <= 1.0:
        raise ValueError(f"{mean.value!r} is no rate")
    spread = mean.value * (1.0 - mean.value)
    if mean.se == 0.0 or spread <= 0.0:
        return float(mean.clusters)
    return min(float(runs), spread / (mean.se * mean.se))


def _residuals(means: Sequence[float], clusters: Sequence[Hashable] | None, value: float) -> list[float]:
    """The summed residual of each cluster."""
    if clusters is None:
        return [x - value for x in means]
    members: dict[Hashable, list[float]] = {}
    for x, cluster in zip(means, clusters, strict=True):
        members.setdefault(cluster, []).append(x - value)
    return [math.fsum(values) for values in members.values()]
