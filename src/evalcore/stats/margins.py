"""Tests against a margin declared beforehand: equivalence (TOST) and non-inferiority.

That a difference was not found is no sign that there is none. These turn the burden round: they reject that the
difference is as large as the margin.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from attrs import frozen

from evalcore.stats.checks import check_positive, check_share
from evalcore.stats.distributions import t_tail
from evalcore.stats.paired import paired_mean


@frozen
class Tost:
    """Two one-sided tests; `p` is the larger of the two, and small means: the difference lies within the margins."""

    p: float
    t_low: float
    p_low: float
    t_high: float
    p_high: float


def tost(differences: Sequence[float], low: float, high: float, clusters: Sequence[Hashable] | None = None) -> Tost:
    """Two one-sided t tests that the mean difference lies within (low, high), by cluster (Schuirmann 1987).

    p <= alpha exactly when the 1 - 2 alpha t interval lies inside. Margins in the unit of the differences. Raises
    ValueError unless low < high, and for one cluster or clusters that do not differ.
    """
    if not low < high:
        raise ValueError(f"the lower margin {low!r} is not below the upper {high!r}")
    mean = paired_mean(differences, clusters)
    assert mean.se is not None  # paired_mean raises otherwise
    df = mean.clusters - 1
    t_low, t_high = (mean.value - low) / mean.se, (mean.value - high) / mean.se
    p_low, p_high = t_tail(t_low, df), t_tail(-t_high, df)
    return Tost(max(p_low, p_high), t_low, p_low, t_high, p_high)


def non_inferiority(differences: Sequence[float], margin: float, clusters: Sequence[Hashable] | None = None) -> float:
    """The one-sided p that the mean difference is at most -margin: small means not worse by as much as the margin.

    A t test by cluster; p <= alpha exactly when the lower bound of the 1 - 2 alpha interval is above -margin. Raises
    ValueError for a margin not above 0, one cluster, or clusters that do not differ.
    """
    check_positive(margin, "a margin")
    mean = paired_mean(differences, clusters)
    assert mean.se is not None  # paired_mean raises otherwise
    return t_tail((mean.value + margin) / mean.se, mean.clusters - 1)


def margin_level(alpha: float, claims: int = 1) -> float:
    """The two-sided level whose interval decides a margin at `alpha`, shared among `claims` (Bonferroni): 1 - 2a/m.

    Raises ValueError for alpha outside (0, 0.5) or no claim.
    """
    check_share(2.0 * alpha, "twice alpha")
    if claims < 1:
        raise ValueError("a family has at least one claim")
    return 1.0 - 2.0 * alpha / claims
