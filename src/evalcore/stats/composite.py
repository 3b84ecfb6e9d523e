"""One score from several dimensions. The weights are a choice, so the score never comes without what other weights say.

Each dimension is scaled by two anchors declared beforehand, its worst and its best value. Scaling by the arms that
happen to be present (min-max) makes a score depend on who else was run: it is offered for comparison only, and
labelled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

from attrs import frozen

from evalcore.stats.checks import check_count, check_not_negative, finite

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

DRAWS: Final = 20_000
TIE: Final = 1e-9

Scaling = Literal["absolute anchors", "min-max of the arms present"]


@frozen
class Dimension:
    """A dimension with its weight and anchors, in its own unit; `best` is below `worst` where less is better."""

    name: str
    weight: float
    worst: float
    best: float


@frozen
class Score:
    """An arm's composite in [0, 1] and its scaled dimensions; None where a dimension is not known, with the reason."""

    arm: str
    value: float | None
    scaled: Mapping[str, float | None]
    reason: str | None = None


@frozen
class Stretch:
    """Which arms win while a dimension's weight lies in [low, high], the others keeping their proportions."""

    low: float
    high: float
    winners: tuple[str, ...]


@frozen
class Sensitivity:
    """Who wins under other weights.

    `shares`: of all weights, each as likely as any other, the share under which an arm wins (ties are split), exact or
    from `draws` samples with `seed`; `error` is the largest standard error of a share. `alone`: who wins where a
    dimension is all that counts. `along`: who wins as one dimension's weight goes from 0 to 1.
    """

    shares: Mapping[str, float]
    error: float
    draws: int | None
    seed: int | None
    alone: Mapping[str, tuple[str, ...]]
    along: Mapping[str, tuple[Stretch, ...]]


def scale(value: float, dimension: Dimension) -> float:
    """(value - worst)/(best - worst), clipped to [0, 1]. Raises ValueError for a value not finite or equal anchors."""
    finite([value, dimension.worst, dimension.best], f"the dimension {dimension.name}")
    if dimension.worst == dimension.best:
        raise ValueError(f"the dimension {dimension.name} has one anchor: worst and best are {dimension.best}")
    return min(1.0, max(0.0, (value - dimension.worst) / (dimension.best - dimension.worst)))


def min_max(arms: Mapping[str, Mapping[str, float | None]], dimensions: Sequence[Dimension]) -> list[Dimension]:
    """The dimensions with the arms' own extremes as anchors, in the direction declared: for comparison only.

    A dimension in which all arms are equal or unknown keeps its declared anchors. Raises ValueError for a value not
    finite.
    """
    anchored = []
    for dimension in dimensions:
        known = [value for values in arms.values() if (value := values.get(dimension.name)) is not None]
        low, high = (min(known), max(known)) if finite([*known, 0.0], dimension.name) and known else (0.0, 0.0)
        if low == high:
            anchored.append(dimension)
            continue
        worst, best = (low, high) if dimension.best > dimension.worst else (high, low)
        anchored.append(Dimension(dimension.name, dimension.weight, worst, best))
    return anchored


def composite(arms: Mapping[str, Mapping[str, float | None]], dimensions: Sequence[Dimension]) -> list[Score]:
    """Each arm's weighted mean of scaled dimensions, weights divided by their sum; arms in the order given.

    An arm with an unknown dimension has no score: what is not known is neither 0 nor left out of the weights. Raises
    ValueError for no dimension, one named twice, negative weights or only zeros, equal anchors, a value not finite.
    """
    weights = _weights(dimensions)
    scores = []
    for arm, values in arms.items():
        raw = {dimension.name: values.get(dimension.name) for dimension in dimensions}
        scaled = {d.name: None if (x := raw[d.name]) is None else scale(x, d) for d in dimensions}
        missing = [name for name, x in scaled.items() if x is None]
        if missing:
            scores.append(Score(arm, None, scaled, f"not known: {', '.join(missing)}"))
        else:
            value = math.fsum(w * x for w, x in zip(weights, scaled.values(), strict=True) if x is not None)
            scores.append(Score(arm, value, scaled))
    return scores


def sensitivity(
    scores: Sequence[Score], dimensions: Sequence[Dimension], *, seed: int, draws: int = DRAWS
) -> Sensitivity:
    """Who wins under which weights, among the arms that have a score.

    With one or two dimensions the shares are exact; with more they are sampled uniformly over the simplex of weights
    (Dirichlet of ones: exponential numbers over their sum). `alone` and `along` are exact always. Raises ValueError as
    `composite` does, for no scored arm, or fewer than 1,000 draws.
    """
    check_count(draws, "the number of draws", 1000)
    weights = _weights(dimensions)
    names = [score.arm for score in scores if score.value is not None]
    rows = [[x for x in score.scaled.values() if x is not None] for score in scores if score.value is not None]
    if not names:
        raise ValueError("no arm has a score")
    alone, along = {}, {}
    for j, dimension in enumerate(dimensions):
        best = [row[j] for row in rows]
        rest = [_rest(row, weights, j) for row in rows]
        alone[dimension.name] = _winners(names, best)
        along[dimension.name] = tuple(_envelope(names, rest, best))
    if len(dimensions) <= 2:
        stretches = along[dimensions[0].name]
        shares = {
            name: math.fsum((s.high - s.low) / len(s.winners) for s in stretches if name in s.winners) for name in names
        }
        return Sensitivity(shares, 0.0, None, None, alone, along)
    found = _sampled(rows, seed, draws)
    error = max(math.sqrt(p * (1.0 - p) / draws) for p in found)
    return Sensitivity(dict(zip(names, found, strict=True)), error, draws, seed, alone, along)


def _weights(dimensions: Sequence[Dimension]) -> list[float]:
    if not dimensions or len({dimension.name for dimension in dimensions}) < len(dimensions):
        raise ValueError("a composite needs dimensions, each named once")
    for dimension in dimensions:
        check_not_negative(dimension.weight, f"the weight of {dimension.name}")
    whole = math.fsum(dimension.weight for dimension in dimensions)
    if whole == 0.0:
        raise ValueError("all weights are 0")
    return [dimension.weight / whole for dimension in dimensions]


def _rest(row: Sequence[float], weights: Sequence[float], j: int) -> float:
    """The weighted mean of the other dimensions, in their own proportions; plain if they have no weight."""
    others = [i for i in range(len(row)) if i != j]
    if not others:
        return row[j]
    whole = math.fsum(weights[i] for i in others)
    if whole == 0.0:
        return math.fsum(row[i] for i in others) / len(others)
    return math.fsum(weights[i] * row[i] for i in others) / whole


def _winners(names: Sequence[str], values: Sequence[float]) -> tuple[str, ...]:
    top = max(values)
    return tuple(name for name, value in zip(names, values, strict=True) if value >= top - TIE)


def _envelope(names: Sequence[str], at_0: Sequence[float], at_1: Sequence[float]) -> list[Stretch]:
    """Who has the largest of several values that change linearly from `at_0` to `at_1`, stretch by stretch."""
    crossings = {0.0, 1.0}
    for i in range(len(names)):
        for j in range(i):
            start, slope = at_0[i] - at_0[j], (at_1[i] - at_0[i]) - (at_1[j] - at_0[j])
            if slope and 0.0 < -start / slope < 1.0:
                crossings.add(-start / slope)
    edges, stretches = sorted(crossings), list[Stretch]()
    for low, high in pairwise(edges):
        middle = (low + high) / 2.0
        winners = _winners(names, [(1.0 - middle) * a + middle * b for a, b in zip(at_0, at_1, strict=True)])
        if stretches and stretches[-1].winners == winners:
            stretches[-1] = Stretch(stretches[-1].low, high, winners)
        else:
            stretches.append(Stretch(low, high, winners))
    return stretches


def _sampled(rows: Sequence[Sequence[float]], seed: int, draws: int) -> list[float]:
    import numpy as np

    random = np.random.default_rng(seed)
    weights = random.standard_exponential(size=(draws, len(rows[0])))
    weights /= weights.sum(axis=1, keepdims=True)
    values: NDArray[float64] = weights @ np.asarray(rows, dtype=np.float64).T
    top = values >= values.max(axis=1, keepdims=True) - TIE
    return [float(x) for x in (top / top.sum(axis=1, keepdims=True)).mean(axis=0)]
