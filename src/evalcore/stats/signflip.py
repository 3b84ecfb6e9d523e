"""The sign-flip test: were the arms alike, each cluster's difference could as well have come out the other way round.

It needs no distribution, and no cluster outweighs what it shows. Its smallest p with G clusters is 2^(1-G): five
clusters can never reach .05.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Final

from attrs import frozen

from evalcore.stats.checks import check_count, finite
from evalcore.stats.clusters import sums_by_cluster

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

EXACT_UP_TO: Final = 20  # clusters: 2^20 sign vectors
DRAWS: Final = 9_999
TIE: Final = 1e-12  # a mean this close to the observed one is as extreme


@frozen
class SignFlip:
    """The two-sided p over `clusters`; `draws` and `seed` are None where every sign vector was counted."""

    p: float
    clusters: int
    draws: int | None
    seed: int | None


def sign_flip(
    differences: Sequence[float], clusters: Sequence[Hashable] | None = None, *, seed: int, draws: int = DRAWS
) -> SignFlip:
    """The two-sided p that the mean difference is 0, flipping whole clusters: exact up to 20, else drawn.

    Exact: the share of all 2^G sign vectors whose |sum| reaches the observed (within rounding). Drawn: (b+1)/(B+1)
    (Phipson and Smyth 2010), the observed one among them. Zeros stay in. The order of tasks does not matter. Raises
    ValueError for no task, a value not finite, or no draw.
    """
    check_count(draws, "the number of draws", 1)
    sums, _ = sums_by_cluster(finite(differences, "differences"), clusters)
    if len(sums) <= EXACT_UP_TO:
        return SignFlip(sign_flip_exact(sums), len(sums), None, None)
    reached = _drawn(sums, seed, draws)
    return SignFlip(monte_carlo_p(reached, draws), len(sums), draws, seed)


def sign_flip_exact(sums: Sequence[float]) -> float:
    """The exact p from each cluster's summed difference, by all 2^G sign vectors (Fisher 1935).

    A zero only doubles every count, so it is skipped. Raises ValueError for no cluster, a value not finite, or more
    than 24 clusters whose sum is not 0.
    """
    import numpy as np

    flips = [x for x in finite(sums, "differences") if x != 0.0]
    if len(flips) > 24:
        raise ValueError(f"{len(flips)} clusters are too many to count every sign vector")
    totals = np.zeros(1)
    for x in flips[1:]:  # the first sign only mirrors the rest
        totals = np.concatenate([totals + x, totals - x])
    totals += flips[0] if flips else 0.0
    return float(np.mean(np.abs(totals) >= _threshold(sums)))


def smallest_p(clusters: int) -> float:
    """The smallest two-sided p that `clusters` can reach: 2^(1-G). Raises ValueError for none."""
    check_count(clusters, "the number of clusters", 1)
    return math.ldexp(1.0, 1 - clusters)


def monte_carlo_p(reached: int, draws: int) -> float:
    """(b+1)/(B+1) for b of B draws at least as extreme: never 0, and valid (Phipson and Smyth 2010).

    Raises ValueError unless 0 <= b <= B and B >= 1.
    """
    check_count(draws, "the number of draws", 1)
    check_count(reached, "the number of draws that reach it")
    if reached > draws:
        raise ValueError(f"{reached} of {draws} draws")
    return (reached + 1) / (draws + 1)


def _drawn(sums: Sequence[float], seed: int, draws: int) -> int:
    """How many random sign vectors reach the observed |sum|.

    Clusters with the same |difference| flip together as one binomial number: few distinct values, few draws.
    """
    import numpy as np

    sizes, times = np.unique(np.abs(np.asarray(sums, dtype=np.float64)), return_counts=True)
    random = np.random.default_rng(seed)
    totals: NDArray[float64] = np.zeros(draws)
    for size, count in zip(sizes.tolist(), times.tolist(), strict=True):
        if size:
            totals += size * (2.0 * random.binomial(count, 0.5, size=draws) - count)
    return int(np.count_nonzero(np.abs(totals) >= _threshold(sums)))


def _threshold(sums: Sequence[float]) -> float:
    """The observed |sum|, less what rounding can take from an equal one."""
    return abs(math.fsum(sums)) - TIE * max(1.0, math.fsum(map(abs, sums)))
