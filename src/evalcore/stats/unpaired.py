"""Two arms that did not run the same tasks. Exploratory only: nothing cancels what the tasks differ in."""

from __future__ import annotations

import math
from typing import Final

from evalcore.stats.intervals import Interval

NEWCOMBE_HYBRID: Final = "unpaired: Newcombe's hybrid of the arms' intervals"
ARM_WITHOUT_INTERVAL: Final = "an arm has no interval: {}"


def newcombe_hybrid(a: Interval, b: Interval) -> Interval:
    """The difference a - b of two independent rates, from each arm's own interval (Newcombe 1998, Stat Med 17:873).

    Low = d - sqrt((a-l_a)^2 + (u_b-b)^2), high = d + sqrt((u_a-a)^2 + (b-l_b)^2), within [-1, 1]: method 10 there for
    plain Wilson intervals; with clustered ones it respects clusters and repeats. No interval where an arm has none.
    Raises ValueError for different levels.
    """
    if a.level != b.level:
        raise ValueError(f"intervals of different levels, {a.level} and {b.level}")
    if a.value is None or b.value is None:
        return Interval(None, None, None, a.level, NEWCOMBE_HYBRID, a.reason if a.value is None else b.reason)
    difference = a.value - b.value
    if a.low is None or a.high is None or b.low is None or b.high is None:
        reason = ARM_WITHOUT_INTERVAL.format(a.reason or b.reason)
        return Interval(difference, None, None, a.level, NEWCOMBE_HYBRID, reason)
    down = math.hypot(a.value - a.low, b.high - b.value)
    up = math.hypot(a.high - a.value, b.value - b.low)
    return Interval(difference, max(-1.0, difference - down), min(1.0, difference + up), a.level, NEWCOMBE_HYBRID)
