"""pass@k and pass^k of a benchmark, with their intervals.

Both are means over tasks of a value per task, so their intervals come from how tasks differ, never from single runs.
Nothing here is derived from pass@1. "90 % pass@1 means 57 % at k = 8" is wrong: were every task the same and every run
independent it would be 43 % (0.9^8), and tasks that differ can only raise that: mean(p^k) >= mean(p)^k (Jensen 1906).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Final, Literal

from attrs import frozen

from evalcore.stats.checks import check_rate, same_length
from evalcore.stats.intervals import DEFAULT_LEVEL, Interval, clustered_wilson, rate_interval
from evalcore.stats.passk import pass_at_k, pass_hat_k

Kind = Literal["pass@k", "pass^k"]
Short = Literal["refuse", "drop"]
DROPPED_ALL: Final = "no task ran {} times"


@frozen
class Reliability:
    """pass@k or pass^k over `tasks`; `dropped` tasks had fewer than k graded runs and are not in it."""

    kind: Kind
    k: int
    interval: Interval
    tasks: int
    dropped: int


def largest_k(counts: Sequence[tuple[int, int]]) -> int:
    """The largest k that every task allows: the fewest graded runs of a task, given as (n, c); 0 without tasks."""
    return min((n for n, _ in counts), default=0)


def reliability(
    kind: Kind,
    counts: Sequence[tuple[int, int]],
    k: int,
    clusters: Sequence[Hashable] | None = None,
    *,
    level: float = DEFAULT_LEVEL,
    short: Short = "refuse",
) -> Reliability:
    """pass@k or pass^k with its clustered Wilson interval; `counts` holds each task's (graded runs n, successes c).

    A task with n < k has no value: `short="refuse"` raises ValueError (choose k up to `largest_k`), `short="drop"`
    leaves such tasks out and counts them. The effective number in Wilson's formula is at most the number of disjoint
    groups of k runs, sum of floor(n/k): pass^k from n = k runs is one 0 or 1. For k = 1 it is the default interval of a
    rate. n >= 2k is advisable. Also raises ValueError for impossible counts, k < 1, or no task.
    """
    labels: Sequence[Hashable] = range(len(counts)) if clusters is None else clusters
    same_length(counts, labels, "tasks and cluster labels")
    if not counts:
        raise ValueError("no task: there is nothing to average")
    function = pass_at_k if kind == "pass@k" else pass_hat_k
    kept = [(n, c, label) for (n, c), label in zip(counts, labels, strict=True) if n >= k or short == "refuse"]
    if not kept:
        raise ValueError(DROPPED_ALL.format(k))
    values = [function(n, c, k) for n, c, _ in kept]
    groups = sum(n // k for n, _, _ in kept)
    interval = (rate_interval if k == 1 else clustered_wilson)(values, groups, [label for _, _, label in kept], level)
    return Reliability(kind, k, interval, len(kept), len(counts) - len(kept))


def independent_floor(counts: Sequence[tuple[int, int]], k: int) -> float:
    """(mean over tasks of c/n)^k: what pass^k would be were all tasks alike. A floor to show beside it, no estimate.

    `counts` holds each task's (n, c). The true pass^k is at least the k-th power of the true pass@1, because tasks
    differ (Jensen); sampling can put a measured value below. Raises ValueError for no task, no run, or k < 1.
    """
    if not counts:
        raise ValueError("no task: there is nothing to average")
    if k < 1:
        raise ValueError(f"k is at least 1, not {k}")
    if any(n < 1 for n, _ in counts):
        raise ValueError("a task without a run")
    rate = math.fsum(c / n for n, c in counts) / len(counts)
    check_rate(rate, "pass@1")
    return float(rate**k)
