"""How often repeats of one task disagree. Outcomes are classes fixed beforehand: pass, wrong, refused, harm, limit, …

The headline is pairwise disagreement: the chance that two runs of the same task come out differently. It does not
depend on how many repeats there are. "The share of tasks that ever disagreed" does, so it always carries its K.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Final

from attrs import frozen

from evalcore.stats.checks import check_count, check_rate, same_length
from evalcore.stats.intervals import DEFAULT_LEVEL, Interval, clustered_wilson

RAN_ONCE: Final = "every task ran once: whether repeats agree cannot be seen"
METHOD: Final = "clustered Wilson on each task's disagreement"


@frozen
class Flakiness:
    """Pairwise disagreement over `tasks`; `left_out` tasks had fewer than two graded runs."""

    interval: Interval
    tasks: int
    left_out: int


@frozen
class Unstable:
    """The share of tasks with more than one outcome among their K runs; only comparable at the same `k`."""

    share: float
    k: int
    tasks: int


def disagreement(outcomes: Sequence[Hashable]) -> float:
    """The share of pairs of a task's runs that differ: 1 - sum_j n_j(n_j-1) / (n(n-1)), unbiased for 1 - sum p_j^2.

    For pass or fail it is twice the sample variance. Raises ValueError for fewer than 2 runs.
    """
    n = len(outcomes)
    if n < 2:
        raise ValueError("whether repeats agree needs 2 runs")
    alike = sum(count * (count - 1) for count in Counter(outcomes).values())
    return (n * (n - 1) - alike) / (n * (n - 1))


def flakiness(
    tasks: Sequence[Sequence[Hashable]],
    clusters: Sequence[Hashable] | None = None,
    level: float = DEFAULT_LEVEL,
) -> Flakiness:
    """Mean disagreement over the tasks with at least two runs, with its clustered interval, in [0, 1].

    `tasks` holds each task's outcomes. The effective number is at most the number of disjoint pairs of runs. To compare
    arms, pair each task's `disagreement` as any score. No task with two runs has no value. Raises ValueError for no
    task.
    """
    labels: Sequence[Hashable] = range(len(tasks)) if clusters is None else clusters
    same_length(tasks, labels, "tasks and cluster labels")
    if not tasks:
        raise ValueError("no task: there is nothing to average")
    kept = [(runs, label) for runs, label in zip(tasks, labels, strict=True) if len(runs) >= 2]
    if not kept:
        return Flakiness(Interval(None, None, None, level, METHOD, RAN_ONCE), 0, len(tasks))
    values, pairs = [disagreement(runs) for runs, _ in kept], sum(len(runs) // 2 for runs, _ in kept)
    inner = clustered_wilson(values, pairs, [label for _, label in kept], level)
    interval = Interval(inner.value, inner.low, inner.high, level, METHOD, inner.reason)
    return Flakiness(interval, len(kept), len(tasks) - len(kept))


def unstable(tasks: Sequence[Sequence[Hashable]]) -> Unstable:
    """The share of tasks whose runs did not all come out the same, with the K that it holds for.

    It grows with K, so every task must have the same number of runs, at least 2. Raises ValueError otherwise.
    """
    repeats = {len(runs) for runs in tasks}
    if len(repeats) != 1 or min(repeats) < 2:
        raise ValueError("the share of unstable tasks needs the same number of runs for every task, at least 2")
    share = sum(len(set(runs)) > 1 for runs in tasks) / len(tasks)
    return Unstable(share, repeats.pop(), len(tasks))


def expected_unstable(rate: float, k: int) -> float:
    """The chance that k runs of a task with this pass rate do not all agree: 1 - p^k - (1-p)^k; it grows with k.

    Raises ValueError for a rate outside [0, 1] or k < 1.
    """
    check_rate(rate, "a pass rate")
    check_count(k, "the number of runs", 1)
    return max(0.0, 1.0 - rate**k - (1.0 - rate) ** k)


def fleiss_kappa(tasks: Sequence[Sequence[Hashable]]) -> float:
    """Agreement of repeats beyond what the outcomes' overall shares would give by chance (Fleiss 1971): 1 is full.

    (P - Pe)/(1 - Pe), P the mean agreement of pairs within a task, Pe the sum of squared shares. Raises ValueError
    unless every task has the same number of runs, at least 2, and where only one outcome occurs.
    """
    repeats = {len(runs) for runs in tasks}
    if len(repeats) != 1 or min(repeats) < 2:
        raise ValueError("Fleiss' kappa needs the same number of runs for every task, at least 2")
    counts = Counter(outcome for runs in tasks for outcome in runs)
    chance = math.fsum((count / counts.total()) ** 2 for count in counts.values())
    if len(counts) < 2:
        raise ValueError("only one outcome occurs: agreement beyond chance has no value")
    agreement = 1.0 - math.fsum(map(disagreement, tasks)) / len(tasks)
    return (agreement - chance) / (1.0 - chance)
