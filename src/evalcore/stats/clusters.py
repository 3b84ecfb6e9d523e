"""Means over tasks, with standard errors that know that some tasks share a cause and that repeats are not new tasks.

The estimand is the mean over tasks of each task's mean over its repeats: a task weighs the same however often it ran.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

from attrs import frozen

from evalcore.stats.checks import same_length

# Below this a standard error is rounding, not variation: scores in [0, 1] cannot have one so small and not 0. Large
# values (tokens, seconds) are measured against their own size.
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
    _labels(tasks, clusters)
    if not all(map(math.isfinite, means)):
        raise ValueError("a task mean that is not a finite number")
    value = math.fsum(means) / tasks
    residuals = _residuals(means, clusters, value)
    count = len(residuals)
    if count < 2:
        return ClusterMean(value, None, tasks, count)
    se = math.sqrt(count / (count - 1) * math.fsum(e * e for e in residuals)) / tasks
    return ClusterMean(value, se if se > rounding(means) else 0.0, tasks, count)


def rounding(values: Sequence[float]) -> float:
    """How small a difference between such values is rounding and not variation, in their unit."""
    return NO_VARIATION * max(1.0, *map(abs, values))


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


def sums_by_cluster(
    values: Sequence[float], clusters: Sequence[Hashable] | None = None
) -> tuple[list[float], list[int]]:
    """Each cluster's sum and its number of tasks; a task is its own cluster unless `clusters` names another.

    Sorted by sum and number, so that nothing drawn from them depends on the order of tasks or the names of clusters.
    Raises ValueError where the numbers of values and of labels differ.
    """
    (sums, *_), counts = columns_by_cluster([values], clusters)
    return sums, counts


def columns_by_cluster(
    columns: Sequence[Sequence[float]], clusters: Sequence[Hashable] | None = None
) -> tuple[list[list[float]], list[int]]:
    """The same for several values of each task at once: a list of cluster sums for each column, and the numbers.

    Raises ValueError where lengths differ, or there is no task.
    """
    tasks = len(columns[0])
    for column in columns:
        same_length(column, columns[0], "values of the same tasks")
    if tasks == 0:
        raise ValueError("no task: there is nothing to average")
    labels = _labels(tasks, clusters)
    members: dict[Hashable, list[int]] = {}
    for place, label in enumerate(labels):
        members.setdefault(label, []).append(place)
    rows = sorted(
        (*(math.fsum(column[i] for i in places) for column in columns), len(places)) for places in members.values()
    )
    return [[row[j] for row in rows] for j in range(len(columns))], [int(row[-1]) for row in rows]


def _labels(tasks: int, clusters: Sequence[Hashable] | None) -> Sequence[Hashable]:
    if clusters is None:
        return range(tasks)
    if len(clusters) != tasks:
        raise ValueError(f"{tasks} tasks but {len(clusters)} cluster labels")
    return clusters


def _residuals(means: Sequence[float], clusters: Sequence[Hashable] | None, value: float) -> list[float]:
    """The summed residual of each cluster."""
    if clusters is None:
        return [x - value for x in means]
    members: dict[Hashable, list[float]] = {}
    for x, cluster in zip(means, clusters, strict=True):
        members.setdefault(cluster, []).append(x - value)
    return [math.fsum(values) for values in members.values()]
