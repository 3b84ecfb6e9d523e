"""Which arms are worth choosing at all: none that another beats on both accuracy and cost.

A point is (accuracy, cost); more accuracy and less cost are better. An arm whose cost is not known is on no front.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final

from attrs import frozen

from evalcore.stats.bootstrap import DRAWS, resampled_columns
from evalcore.stats.checks import finite, same_length

Point = tuple[float | None, float | None]
SURE_ENOUGH: Final = 0.05


@frozen
class Membership:
    """Whether an arm is on the front as measured, and the share of resamples in which it is.

    `plausible`: on it, or on it in at least 5 % of resamples: the data do not rule the arm out.
    """

    name: str
    on_front: bool
    share: float
    plausible: bool


def pareto_front(points: Mapping[str, Point]) -> list[str]:
    """The arms that no other beats: none has accuracy >= and cost <= with one of them strict. In the order given.

    Arms with the same point are both kept, arms without a cost or accuracy never. Raises ValueError for a value not
    finite.
    """
    known = _known(points)
    return [name for name, point in known.items() if not any(_dominates(other, point) for other in known.values())]


def pareto_hull(points: Mapping[str, Point]) -> list[str]:
    """The arms of the front that no random mixture of two others beats: the upper left convex hull. In the order given.

    Running one agent on a share of tasks and another on the rest gives any point between them (Kapoor et al. 2024,
    arXiv 2407.01502). Arms exactly between two others are kept. Raises ValueError for a value not finite.
    """
    known = _known(points)
    front = sorted({known[name] for name in pareto_front(points)}, key=lambda point: (point[1], point[0]))
    hull: list[tuple[float, float]] = []
    for accuracy, cost in front:
        while len(hull) >= 2 and _below(hull[-2], hull[-1], (accuracy, cost)):
            hull.pop()
        hull.append((accuracy, cost))
    corners = set(hull)
    return [name for name, point in known.items() if point in corners]


def front_membership(
    solved: Mapping[str, Sequence[float]],
    costs: Mapping[str, Sequence[float] | None],
    clusters: Sequence[Hashable] | None = None,
    *,
    seed: int,
    draws: int = DRAWS,
) -> list[Membership]:
    """How surely each arm is on the front of mean accuracy and mean cost, by resampling the tasks that all arms ran.

    Each arm has one value a task, in the same order of tasks; whole clusters are resampled, for all arms together. An
    arm whose costs are None is on no front. Raises ValueError for no task, different lengths, or a value not finite.
    """
    import numpy as np

    priced = [name for name in solved if costs.get(name) is not None]
    columns: list[Sequence[float]] = []
    for name in priced:
        cost = costs[name]
        assert cost is not None  # priced
        same_length(solved[name], cost, f"solved and costs of {name}")
        columns += [finite(solved[name], "scores"), finite(cost, "costs")]
    if not priced:
        return [Membership(name, False, 0.0, False) for name in solved]
    values = resampled_columns(columns, clusters, seed=seed, draws=draws)
    accuracy, cost_of = values[:, 0::2], values[:, 1::2]
    shares: dict[str, float] = {}
    for place, name in enumerate(priced):
        up, down = accuracy - accuracy[:, [place]], cost_of - cost_of[:, [place]]
        beaten = ((up >= 0.0) & (down <= 0.0) & ((up > 0.0) | (down < 0.0))).any(axis=1)
        shares[name] = 1.0 - float(np.mean(beaten))
    means = {name: (_mean(columns[2 * i]), _mean(columns[2 * i + 1])) for i, name in enumerate(priced)}
    front = set(pareto_front(means))
    return [
        Membership(name, name in front, share, name in front or share >= SURE_ENOUGH)
        for name in solved
        for share in [shares.get(name, 0.0)]
    ]


def _known(points: Mapping[str, Point]) -> dict[str, tuple[float, float]]:
    known = {}
    for name, (accuracy, cost) in points.items():
        if accuracy is not None and cost is not None:
            finite([accuracy, cost], f"accuracy and cost of {name}")
            known[name] = (accuracy, cost)
    return known


def _dominates(a: tuple[float, float], b: tuple[float, float]) -> bool:
    return a[0] >= b[0] and a[1] <= b[1] and a != b


def _below(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Whether b lies strictly below the segment from a to c (accuracy over cost)."""
    return (b[0] - a[0]) * (c[1] - a[1]) < (c[0] - a[0]) * (b[1] - a[1])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
