"""Money per solved task."""

from __future__ import annotations

import math
from collections.abc import Sequence


def cost_per_solved(costs: Sequence[float], solved: Sequence[float]) -> float:
    """All that was spent on graded trials, failures too, over all that was solved, in the unit of `costs`.

    A ratio of sums, never a mean of ratios. Raises ValueError where nothing was solved: the price is then unknown, not
    0 and not infinite.
    """
    if len(costs) != len(solved):
        raise ValueError(f"{len(costs)} costs but {len(solved)} counts of solved trials")
    total, count = math.fsum(costs), math.fsum(solved)
    if not (math.isfinite(total) and math.isfinite(count)) or count < 0:
        raise ValueError("costs and counts are finite numbers")
    if count == 0:
        raise ValueError("nothing was solved: cost per solve has no value")
    return total / count
