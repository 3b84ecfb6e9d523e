"""Several arms of one benchmark side by side: the front of accuracy and cost, and one score from several dimensions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from attrs import frozen

from evalcore.report.analysis import Composite, CompositeArm, Front, FrontMember
from evalcore.report.model import Cell
from evalcore.report.words import percent
from evalcore.stats.composite import Dimension, Score, Sensitivity, composite, min_max, sensitivity
from evalcore.stats.pareto import front_membership, pareto_front, pareto_hull
from evalcore.values.study import Analysis

DRAWS: Final = 1_999  # resamples for the front: a share is read to a few points
WEIGHTS: Final = {"success": 0.35, "harm": 0.25, "abstention": 0.15, "cost": 0.15, "time": 0.10}
ANCHORS: Final = {  # (worst, best), in the dimension's unit; evalcore's choice, declared before any trial by being here
    "success": (0.0, 1.0),
    "harm": (1.0, 0.0),
    "abstention": (0.0, 1.0),
    "cost": (1.0, 0.0),  # US dollars a solve
    "time": (600.0, 0.0),  # seconds a trial
}
NOBODY: Final = {
    "harm": "this benchmark does not judge harm",
    "abstention": "no task of this benchmark has to be declined, or none was graded",
    "cost": "no arm has a known cost per solve",
    "time": "no arm has a known time",
    "success": "no arm has a graded trial",
}
TIE: Final = 1e-9


@frozen
class Weighting:
    """Weights and anchors by dimension; `declared`: by the study or the caller, and not the defaults."""

    weights: Mapping[str, float]
    anchors: Mapping[str, tuple[float, float]]
    declared: bool

    @staticmethod
    def of(analysis: Analysis, weights: Mapping[str, float] | None = None) -> Weighting:
        """Of a study, or with other weights."""
        chosen = weights or analysis.weights
        return Weighting(chosen or WEIGHTS, {**ANCHORS, **analysis.anchors}, bool(chosen or analysis.anchors))


def comparable(cells: Sequence[Cell]) -> list[list[Cell]]:
    """The agents of each benchmark with a graded trial, where there are two; an arm in several worlds is left out."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        if not cell.arm.control:
            groups.setdefault(cell.benchmark.selector, []).append(cell)
    found = []
    for group in groups.values():
        digests = [c.arm.arm.digest for c in group]
        alone = [c for c in group if digests.count(c.arm.arm.digest) == 1 and c.graded]
        if len(alone) > 1 and len({(c.provenance, c.isolation) for c in alone}) == 1:
            found.append(alone)
    return found


# ── the front ────────────────────────────────────────────────────────────────────────────────────────────────────────


def front(cells: Sequence[Cell], seed: int) -> Front:
    """Accuracy and mean cost of the agent, on the tasks of which every priced arm has graded trials."""
    solved, costs, clusters = _columns(cells)
    names = [c.arm.arm.digest for c in cells]
    selector = cells[0].benchmark.selector
    if not clusters:
        nowhere = tuple(_member(c, None, None, "no task in common") for c in cells)
        return Front(selector, nowhere, 0, seed, "no task has a graded trial of every arm whose cost is known")
    points = {n: (_mean(solved[n]), None if (c := costs[n]) is None else _mean(c)) for n in names if n in solved}
    found = {m.name: m for m in front_membership(solved, costs, clusters, seed=seed, draws=DRAWS)}
    on, hull = set(pareto_front(points)), set(pareto_hull(points))
    members = []
    for cell in cells:
        digest = cell.arm.arm.digest
        accuracy, cost = points[digest]
        priced, one = cost is not None, found[digest]
        reason = None if priced else cell.metrics["cost_per_trial_usd"].reason
        members.append(
            FrontMember(
                cell.arm.arm.handle, cell.arm.arm.label, digest, accuracy, cost, digest in on, digest in hull,
                one.share if priced else None, one.plausible, reason,
            )
        )  # fmt: skip
    return Front(selector, tuple(members), len(clusters), seed)


def _columns(cells: Sequence[Cell]) -> tuple[dict[str, list[float]], dict[str, list[float] | None], list[str]]:
    """Each arm's share solved and mean cost of every common task, and the tasks' clusters."""
    tables = {c.arm.arm.digest: {row.task: row for row in c.detail.tasks if row.results} for c in cells}
    common = sorted(set.intersection(*(set(t) for t in tables.values())))
    solved: dict[str, list[float]] = {}
    costs: dict[str, list[float] | None] = {}
    for digest, table in tables.items():
        rows = [table[task].results for task in common]
        solved[digest] = [_mean([float(r.success) for r in row]) for row in rows]
        known = [[r.cost_usd for r in row if r.cost_usd is not None] for row in rows]
        whole = all(len(k) == len(row) for k, row in zip(known, rows, strict=True))
        costs[digest] = [_mean(k) for k in known] if whole else None
    first = next(iter(tables.values()))
    return solved, costs, [first[task].cluster for task in common]


def _member(cell: Cell, accuracy: float | None, cost: float | None, reason: str) -> FrontMember:
    arm = cell.arm.arm
    return FrontMember(arm.handle, arm.label, arm.digest, accuracy, cost, reason=reason)


# ── the composite ────────────────────────────────────────────────────────────────────────────────────────────────────


def one_score(cells: Sequence[Cell], weighting: Weighting, seed: int) -> Composite:
    """The composite of every arm, with who wins under other weights, and by min-max for comparison."""
    raw = {c.arm.arm.digest: _raw(c) for c in cells}
    wanted = [name for name, weight in weighting.weights.items() if weight > 0]
    left_out = {name: NOBODY[name] for name in wanted if all(values[name] is None for values in raw.values())}
    kept = [n for n in wanted if n not in left_out]
    dimensions = [Dimension(n, weighting.weights[n], *weighting.anchors[n]) for n in kept]
    selector = cells[0].benchmark.selector
    if not dimensions:
        arms = tuple(_arm(c, raw, {}, None, {}, {}) for c in cells)
        said = "no composite: none of its dimensions is known"
        return Composite(selector, weighting.declared, (), arms, None, said, left_out)
    scores = {s.arm: s for s in composite(raw, dimensions)}
    relative = {s.arm: s.value for s in composite(raw, min_max(raw, dimensions))}
    known = [s for s in scores.values() if s.value is not None]
    found = sensitivity(known, dimensions, seed=seed) if len(known) > 1 else None  # nobody wins alone
    shares = found.shares if found else {}
    arms = tuple(_arm(c, raw, scores, scores[c.arm.arm.digest].reason, shares, relative) for c in cells)
    handles = {c.arm.arm.digest: c.arm.arm.handle for c in cells}
    said = _sentence(known, found, handles, weighting)
    return Composite(selector, weighting.declared, tuple(dimensions), arms, found, said, left_out)


def _arm(
    cell: Cell,
    raw: Mapping[str, Mapping[str, float | None]],
    scores: Mapping[str, Score],
    reason: str | None,
    shares: Mapping[str, float],
    relative: Mapping[str, float | None],
) -> CompositeArm:
    arm = cell.arm.arm
    score = scores.get(arm.digest)
    return CompositeArm(
        arm.handle, arm.label, arm.digest, score.value if score else None, raw[arm.digest],
        score.scaled if score else {}, shares.get(arm.digest), relative.get(arm.digest),
        reason if score else "no dimension is known",
    )  # fmt: skip


def _raw(cell: Cell) -> dict[str, float | None]:
    """The dimensions as measured. Abstention: the share declined of the trials that had to be (specificity)."""
    declined, made_up = cell.outcomes.get("declined", 0), cell.outcomes.get("fabricated", 0)
    metrics = cell.metrics
    return {
        "success": metrics["pass@1"].value,
        "harm": metrics["harm_rate"].value,
        "abstention": declined / (declined + made_up) if declined + made_up else None,
        "cost": metrics["cost_per_solve_usd"].value,
        "time": metrics["wall_s"].value,
    }


def _sentence(known: Sequence[Score], found: Sensitivity | None, handles: Mapping[str, str], by: Weighting) -> str:
    """Who is ahead, and how much of that is the weights."""
    if not known:
        return "no arm has a composite: each lacks a dimension"
    top = max(s.value for s in known if s.value is not None)
    winners = [handles[s.arm] for s in known if s.value is not None and s.value >= top - TIE]
    whose = "the declared weights" if by.declared else "the default weights"
    if len(winners) > 1:
        return f"under {whose} {' and '.join(winners)} are level at {top:.3f}"
    if found is None:
        return f"only {winners[0]} has a composite, {top:.3f} under {whose}: without a rival nobody wins"
    share = max(found.shares[s.arm] for s in known if handles[s.arm] == winners[0])
    said = f"under {whose} {winners[0]} is ahead at {top:.3f}; it wins under {percent(share)} of all weightings"
    others = sorted(((x, n) for n, x in found.shares.items() if handles[n] != winners[0] and x > 0), reverse=True)
    if others:
        said += f", {handles[others[0][1]]} under {percent(others[0][0])}"
    return f"{said}. No test stands behind a composite: differences may be chance"


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
