"""Sample quantiles."""

from __future__ import annotations

import math
from collections.abc import Iterable


def quantile(values: Iterable[float], q: float) -> float:
    """The q-quantile by linear interpolation (type 7 of Hyndman and Fan 1996, numpy's default).

    Raises ValueError for no value, a value that is NaN, or q outside [0, 1].
    """
    ordered = sorted(values)
    if not ordered or any(map(math.isnan, ordered)):
        raise ValueError("a quantile needs values, and none of them NaN")
    if not 0.0 <= q <= 1.0:
        raise ValueError(f"a quantile lies between 0 and 1, not {q!r}")
    place = q * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    if ordered[below] == ordered[above]:
        return ordered[below]  # also where both are infinite
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
