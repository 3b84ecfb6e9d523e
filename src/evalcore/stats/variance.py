"""Where the variance of a mean comes from: tasks that differ, and runs of one task that differ.

It answers what to buy. More repeats make only the second part smaller; more tasks make both smaller.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

from attrs import frozen

from evalcore.stats.checks import check_positive, finite, same_length
from evalcore.stats.clusters import cluster_robust


@frozen
class MeanSquares:
    """One-way analysis of variance: mean squares between and within tasks, and the repeats that balance them."""

    between: float
    within: float
    repeats: float
    tasks: int


@frozen
class Components:
    """Variances of single runs: `between` tasks, `within` tasks; and the share of SE^2 that repeats could remove."""

    between: float
    within: float
    share_from_repeats: float


@frozen
class DifferenceComponents:
    """Variances behind a paired difference: of tasks' true differences, and of one run within a task of each arm."""

    omega2: float
    sigma2_a: float
    sigma2_b: float


def mean_squares(scores: Sequence[Sequence[float]]) -> MeanSquares:
    """Mean squares between and within tasks, in the square of the scores' unit; `scores` holds each task's runs.

    MSB = sum_t K_t (x_t - x)^2 / (T-1), MSW = sum_t sum_k (s_tk - x_t)^2 / (N-T), x the mean over the N runs. Unequal
    repeats are balanced by K0 = (N - sum K_t^2 / N) / (T-1) (Donner 1986). Raises ValueError for fewer than 2 tasks, a
    task without a run, or no task with two.
    """
    if any(len(task) == 0 for task in scores):
        raise ValueError("a task without a run")
    runs = finite([x for task in scores for x in task], "scores")
    tasks, n = len(scores), len(runs)
    if tasks < 2:
        raise ValueError("one task: no variance between tasks can be seen")
    if n == tasks:
        raise ValueError("every task ran once: no variance within tasks can be seen")
    mean = math.fsum(runs) / n
    means = [math.fsum(task) / len(task) for task in scores]
    between = math.fsum(len(task) * (x - mean) ** 2 for task, x in zip(scores, means, strict=True)) / (tasks - 1)
    within = math.fsum((s - x) ** 2 for task, x in zip(scores, means, strict=True) for s in task) / (n - tasks)
    repeats = (n - math.fsum(len(task) ** 2 for task in scores) / n) / (tasks - 1)
    return MeanSquares(between, within, repeats, tasks)


def icc(scores: Sequence[Sequence[float]]) -> float:
    """How alike two runs of a task are, ICC(1): (MSB - MSW) / (MSB + (K-1) MSW) (Shrout and Fleiss 1979).

    1: runs of a task always agree. 0: they agree no more than runs of different tasks. Chance can make it negative.
    Raises ValueError as `mean_squares` does, and where no two runs differ.
    """
    squares = mean_squares(scores)
    whole = squares.between + (squares.repeats - 1.0) * squares.within
    if whole <= 0.0:
        raise ValueError("no two runs differ: there is no variance to share out")
    return (squares.between - squares.within) / whole


def components(scores: Sequence[Sequence[float]]) -> Components:
    """Between max(0, (MSB-MSW)/K), within MSW, and the share MSW/MSB of SE^2 that endless repeats would remove.

    The share is at most 1. Raises ValueError as `mean_squares` does, and where task means do not differ.
    """
    squares = mean_squares(scores)
    if squares.between <= 0.0:
        raise ValueError("no two tasks differ: the standard error has no parts")
    between = max(0.0, (squares.between - squares.within) / squares.repeats)
    return Components(between, squares.within, min(1.0, squares.within / squares.between))


def design_effect(correlation: float, size: float) -> float:
    """How many times more runs a clustered sample needs: 1 + (m-1) ICC, for `size` m runs in a cluster (Kish 1965)."""
    check_positive(size, "the size of a cluster")
    if not -1.0 <= correlation <= 1.0:
        raise ValueError(f"an intraclass correlation lies in [-1, 1], not {correlation!r}")
    return 1.0 + (size - 1.0) * correlation


def repeat_share(arms: Sequence[Sequence[Sequence[float]]], clusters: Sequence[Hashable] | None = None) -> float:
    """The share of SE^2 that endless repeats would remove, for one arm's mean or for two arms' paired difference.

    `arms` holds one or two arms, each the runs of the same tasks. The part of repeats is sum_t s_t^2/K_t / T^2, summed
    over arms, s_t^2 the sample variance within a task; the whole is CR1^2. Works for unequal repeats and for clusters
    of several tasks, and is Miller's (2024) split where there are none. At most 1. Raises ValueError for tasks that ran
    once, one cluster, or no variation.
    """
    if len(arms) not in {1, 2}:
        raise ValueError(f"the mean of one arm or the difference of two, not {len(arms)}")
    same_length(arms[0], arms[-1], "tasks of the arms")
    if any(len(runs) < 2 for arm in arms for runs in arm):
        raise ValueError("a task ran once: no variance within it can be seen")
    means = [[math.fsum(finite(runs, "scores")) / len(runs) for runs in arm] for arm in arms]
    values = means[0] if len(arms) == 1 else [a - b for a, b in zip(*means, strict=True)]
    whole = cluster_robust(values, clusters).se
    if not whole:
        raise ValueError("one cluster" if whole is None else "no two clusters differ: the standard error has no parts")
    within = math.fsum(_sample_variance(runs) / len(runs) for arm in arms for runs in arm)
    return min(1.0, within / (len(values) * whole) ** 2)


def difference_components(a: Sequence[Sequence[float]], b: Sequence[Sequence[float]]) -> DifferenceComponents:
    """The variances that a power calculation needs, from a pilot of two arms on the same tasks, each run twice or more.

    sigma^2 of an arm is the mean over tasks of the sample variance within; omega^2 = max(0, var(d_t) - mean(s_A^2/K_A +
    s_B^2/K_B)), d_t the difference of task means (Miller 2024, section 3). Raises ValueError for fewer than 2 tasks, or
    a task that ran once.
    """
    same_length(a, b, "tasks of the arms")
    if len(a) < 2:
        raise ValueError("a pilot needs 2 tasks")
    if any(len(runs) < 2 for arm in (a, b) for runs in arm):
        raise ValueError("a task ran once: no variance within it can be seen")
    differences = [
        math.fsum(finite(x, "scores")) / len(x) - math.fsum(finite(y, "scores")) / len(y)
        for x, y in zip(a, b, strict=True)
    ]
    noise = math.fsum(_sample_variance(runs) / len(runs) for arm in (a, b) for runs in arm) / len(a)
    omega2 = max(0.0, _sample_variance(differences) - noise)
    within = [math.fsum(map(_sample_variance, arm)) / len(arm) for arm in (a, b)]
    return DifferenceComponents(omega2, within[0], within[1])


def _sample_variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((x - mean) ** 2 for x in values) / (len(values) - 1)
