"""What may be said about a contrast: one word, and why. Architecture §8 in one function."""

from __future__ import annotations

from typing import Final, Literal

from attrs import frozen

from evalcore.stats.checks import check_count, check_positive, check_rate, check_share
from evalcore.stats.intervals import Interval
from evalcore.stats.signflip import smallest_p

VerdictWord = Literal[
    "better", "worse", "non-inferior", "equivalent", "negligible", "candidate", "inconclusive", "refused"
]

ALPHA: Final = 0.05
FEWEST_CLUSTERS: Final = 6  # the sign-flip test of 5 can reach no p below .0625
VOID_TOLERANCE: Final = 0.02  # evalcore's choice: trials that are missing can move a rate by no more than their share
SLACK: Final = 1e-9  # levels are computed, and must not differ by rounding


@frozen
class Conclusion:
    """A verdict word, and one sentence that says why.

    `not_worse` says whether the margin interval's lower bound is above -margin, whatever the word: what a gate asks. It
    is None where there is no margin or bound, and where the verdict is refused.
    """

    verdict: VerdictWord
    reason: str
    not_worse: bool | None = None


def conclude(
    interval: Interval,
    p_adjusted: float | None,
    *,
    clusters: int,
    void_rates: tuple[float, float],
    confirmatory: bool,
    alpha: float = ALPHA,
    margin: float | None = None,
    margin_interval: Interval | None = None,
    boundary: str | None = None,
    void_tolerance: float = VOID_TOLERANCE,
) -> Conclusion:
    """The verdict on a difference a - b, oriented so that more is better; a cost is given with its sign changed.

    `interval` has level 1 - alpha or more. `p_adjusted` is adjusted over the declared family (Holm), or a q-value where
    the contrast is exploratory; None if there is none. `margin` was declared before the first trial, else None;
    `margin_interval` has level 1 - 2 alpha or more, alpha shared among the claims of margins (`margins.margin_level`);
    without it `interval` serves, which is stricter. `void_rates` are the shares of trials of either arm that never
    became results. `boundary` names what else differs between the arms and makes them incomparable. In this order:

    refused       a boundary; fewer than 6 clusters; void rates further apart than `void_tolerance`
    negligible    better or worse, and the margin interval lies within the margin
    better, worse confirmatory, the interval excludes 0, and p_adjusted <= alpha
    equivalent    the margin interval lies within (-margin, margin)
    candidate     the same as better or worse, but exploratory
    non-inferior  the margin interval's lower bound is above -margin
    inconclusive  otherwise

    Raises ValueError for a level too low, a margin not above 0, or a rate or p outside [0, 1].
    """
    _check(interval, p_adjusted, clusters, void_rates, alpha, margin, margin_interval)
    refusal = _refusal(boundary, clusters, void_rates, void_tolerance)
    if refusal:
        return Conclusion("refused", refusal)
    within = interval if margin_interval is None else margin_interval
    not_worse = None if margin is None or within.low is None else within.low > -margin
    inside = margin is not None and _inside(within, margin)
    spread, direction = _spread(interval), _direction(interval)
    different = direction is not None and p_adjusted is not None and p_adjusted <= alpha
    if direction is not None and different and confirmatory:
        said = f"{spread} excludes 0, adjusted p = {p_adjusted:.3g}"
        if inside:
            return Conclusion("negligible", f"{direction}, but within the margin of {margin:.3g}: {said}", not_worse)
        return Conclusion(direction, said, not_worse)
    if inside:
        return Conclusion("equivalent", f"{_spread(within)} lies within the margin of ±{margin:.3g}", not_worse)
    if different:
        said = f"exploratory: {direction}, worth a study of its own; {spread} excludes 0, q = {p_adjusted:.3g}"
        return Conclusion("candidate", said, not_worse)
    if not_worse:
        return Conclusion("non-inferior", f"{_spread(within)} lies above -{margin:.3g}", not_worse)
    return Conclusion("inconclusive", _why_inconclusive(interval, p_adjusted, margin, within, direction), not_worse)


def _refusal(boundary: str | None, clusters: int, void_rates: tuple[float, float], tolerance: float) -> str | None:
    if boundary:
        return f"not comparable: {boundary}"
    if clusters < FEWEST_CLUSTERS:
        reach = f"no p below {smallest_p(clusters):.3g} is possible" if clusters else "there is nothing to compare"
        counted = "1 cluster" if clusters == 1 else f"{clusters} clusters"
        return f"{counted}, and a verdict needs {FEWEST_CLUSTERS}: {reach}"
    a, b = void_rates
    if abs(a - b) > tolerance:
        return (
            f"void trials are {a:.1%} of one arm and {b:.1%} of the other: what is missing may not be missing by chance"
        )
    return None


def _direction(interval: Interval) -> Literal["better", "worse"] | None:
    if interval.low is not None and interval.low > 0.0:
        return "better"
    if interval.high is not None and interval.high < 0.0:
        return "worse"
    return None


def _inside(interval: Interval, margin: float) -> bool:
    return interval.low is not None and interval.high is not None and -margin < interval.low and interval.high < margin


def _why_inconclusive(
    interval: Interval, p: float | None, margin: float | None, within: Interval, direction: str | None
) -> str:
    if interval.low is None or interval.high is None:
        return f"no interval: {interval.reason}"
    if direction is not None:
        why = "no p-value" if p is None else f"adjusted p = {p:.3g} is not small enough"
        return f"{_spread(interval)} excludes 0, but {why}"
    said = f"not distinguishable; compatible with {interval.low:+.3g} to {interval.high:+.3g}"
    if margin is None:
        return f"{said}; no margin was declared"
    return f"{said}; {_spread(within)} is not within the margin of {margin:.3g}"


def _spread(interval: Interval) -> str:
    low, high = ("open" if bound is None else f"{bound:+.3g}" for bound in (interval.low, interval.high))
    return f"the {100 * interval.level:.4g} % interval [{low}, {high}]"


def _check(
    interval: Interval,
    p_adjusted: float | None,
    clusters: int,
    void_rates: tuple[float, float],
    alpha: float,
    margin: float | None,
    margin_interval: Interval | None,
) -> None:
    check_share(alpha, "alpha")
    check_count(clusters, "the number of clusters")
    for rate in void_rates:
        check_rate(rate, "a void rate")
    if p_adjusted is not None:
        check_rate(p_adjusted, "a p-value")
    if margin is not None:
        check_positive(margin, "a margin")
    if interval.level < 1.0 - alpha - SLACK:
        raise ValueError(f"an interval at {interval.level} cannot decide at alpha {alpha}")
    if margin_interval is not None and margin_interval.level < 1.0 - 2.0 * alpha - SLACK:
        raise ValueError(f"an interval at {margin_interval.level} cannot decide a margin at alpha {alpha}")
