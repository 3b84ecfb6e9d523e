"""How much more data would settle a contrast, and of what: more clusters of tasks, or more repeats of the same.

From the spread that was seen, never from the difference that was seen: it asks for an interval of a given half-width.
"""

from __future__ import annotations

import math
from typing import Final, Literal

from attrs import frozen

from evalcore.stats.checks import check_count, check_level, check_positive, check_rate
from evalcore.stats.distributions import t_two_sided
from evalcore.stats.intervals import DEFAULT_LEVEL

Buy = Literal["nothing", "clusters", "repeats", "clusters and repeats", "out of reach"]
MOST_CLUSTERS: Final = 10_000_000


@frozen
class Need:
    """What an interval of half-width `half_width` takes in all, not in addition.

    `clusters` at the same repeats (None: more than ten million); `repeats` at the same clusters (None: no number would
    do, or their share is not known); what to `buy`; and where that is both, `repeats_with_all` the repeats with every
    cluster that there is.
    """

    half_width: float
    clusters: int | None
    repeats: int | None
    buy: Buy
    repeats_with_all: int | None = None


def need(
    se: float,
    clusters: int,
    repeats: float,
    half_width: float,
    *,
    share_from_repeats: float | None = None,
    available: int | None = None,
    level: float = DEFAULT_LEVEL,
) -> Need:
    """What makes the interval's half-width t_{G-1} × SE at most `half_width` (a declared margin, usually).

    SE^2 falls as 1/G with clusters, and as (1-s) + s K/K' with repeats, s = `share_from_repeats`
    (`variance.repeat_share`; None where tasks ran once). A run of a new task always buys at least as much as another
    run of an old one; repeats are the answer only where the benchmark has no more than `available` clusters. All in the
    unit of the difference. Raises ValueError for a standard error or half-width not above 0, fewer than 2 clusters or 1
    repeat, or fewer available than used.
    """
    check_level(level)
    check_positive(se, "a standard error")
    check_positive(half_width, "a half-width")
    check_count(clusters, "the number of clusters", 2)
    if not repeats >= 1:
        raise ValueError("a task runs at least once")
    if share_from_repeats is not None:
        check_rate(share_from_repeats, "the share of repeats")
    if available is not None and available < clusters:
        raise ValueError(f"{clusters} clusters were used, and only {available} are available")
    needed = _clusters(se, clusters, half_width, level)
    more = _repeats(se, clusters, clusters, repeats, half_width, share_from_repeats, level)
    if needed is not None and needed <= clusters:
        return Need(half_width, clusters, math.ceil(repeats), "nothing")
    if needed is not None and (available is None or needed <= available):
        return Need(half_width, needed, more, "clusters")
    if available is None:
        return Need(half_width, needed, more, "out of reach")
    if available == clusters:
        return Need(half_width, needed, more, "out of reach" if more is None else "repeats")
    both = _repeats(se, clusters, available, repeats, half_width, share_from_repeats, level)
    return Need(half_width, needed, more, "out of reach" if both is None else "clusters and repeats", both)


def _half(se: float, level: float, clusters: int) -> float:
    return t_two_sided(level, clusters - 1) * se


def _clusters(se: float, clusters: int, half_width: float, level: float) -> int | None:
    """The fewest clusters at the same repeats."""

    def short(count: int) -> bool:
        return _half(se * math.sqrt(clusters / count), level, count) > half_width

    low, high = 1, 2
    while short(high):
        low, high = high, 2 * high
        if high > MOST_CLUSTERS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if short(middle) else (low, middle)
    return high


def _repeats(
    se: float, clusters: int, use: int, repeats: float, half_width: float, share: float | None, level: float
) -> int | None:
    """The fewest repeats with `use` clusters; None where the rest of the variance alone is too much, or not known."""
    if share is None or share == 0.0:
        return None
    whole = se * se * clusters / use
    allowed = (half_width / t_two_sided(level, use - 1)) ** 2
    left = allowed / whole - (1.0 - share)
    return max(1, math.ceil(repeats * share / left - 1e-9)) if left > 0.0 else None
