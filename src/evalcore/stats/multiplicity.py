"""Several comparisons at once: what a small p is worth when many were tried.

Results keep the order of what was given, never decrease where p increases, and stop at 1.
"""

from __future__ import annotations

from collections.abc import Sequence


def holm(p: Sequence[float | None]) -> list[float]:
    """Adjusted p of every member of the *declared* family; one that was not computed (None) counts as p = 1.

    Step-down: the i-th smallest of m is multiplied by m - i + 1, and raised to the largest before it (Holm 1979). It
    keeps the chance of any false claim within alpha, whatever the dependence. Raises ValueError for a p outside [0, 1].
    """
    known = _checked([1.0 if x is None else x for x in p])
    adjusted, reached = [1.0] * len(known), 0.0
    for place, i in enumerate(sorted(range(len(known)), key=known.__getitem__)):
        reached = max(reached, min(1.0, (len(known) - place) * known[i]))
        adjusted[i] = reached
    return adjusted


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """q-values for exploration: among claims with q <= x, at most a share x is false on average.

    Step-up: the i-th smallest of m is multiplied by m/i, and lowered to the smallest after it (Benjamini and Hochberg
    1995; independent or positively dependent tests). Raises ValueError for a p outside [0, 1].
    """
    known = _checked(p)
    adjusted, reached = [1.0] * len(known), 1.0
    for place, i in reversed(list(enumerate(sorted(range(len(known)), key=known.__getitem__)))):
        reached = min(reached, known[i] * len(known) / (place + 1))
        adjusted[i] = reached
    return adjusted


def _checked(p: Sequence[float]) -> list[float]:
    if not all(0.0 <= x <= 1.0 for x in p):
        raise ValueError("a p-value lies in [0, 1]")
    return list(p)
