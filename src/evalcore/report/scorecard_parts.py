"""The parts of `scorecard.json` that are about several arms, and what stands behind a cell."""

from __future__ import annotations

from collections.abc import Callable

from attrs import asdict

from evalcore.report.analysis import Composite, CompositeArm, ContrastResult, Design, Front, Worth
from evalcore.report.comparison_words import flip_json, interval_json
from evalcore.report.detail import CurvePoint, Detail, TaskRow
from evalcore.report.values import MetricValue
from evalcore.stats.composite import Sensitivity
from evalcore.stats.latency import TimeQuantile
from evalcore.values.json import JSONObject, JSONValue


def contrast(c: ContrastResult) -> JSONObject:
    """A declared contrast with its verdict."""
    plain = (
        "a", "b", "benchmark", "metric", "unit", "higher_is_better", "verdict", "confirmatory", "reason", "sentence",
        "effect", "low", "high", "level", "method", "p", "p_adjusted", "test", "family", "margin", "tasks", "clusters",
        "dropped", "look", "settle",
    )  # fmt: skip
    return {
        **{name: getattr(c, name) for name in plain},
        "digests": [c.digest_a, c.digest_b],
        "treatment": list(c.treatment),
        "values": list(c.values),
        "trials": list(c.trials),
        "margin_interval": None if c.margin_interval is None else list(c.margin_interval),
        "gained": [flip_json(f) for f in c.gained],
        "lost": [flip_json(f) for f in c.lost],
        "worth": None if c.worth is None else _worth(c.worth),
    }


def _worth(w: Worth) -> JSONObject:
    return {
        "verdict": w.verdict,
        "reason": w.reason,
        "value_per_solve_usd": w.value_per_solve_usd,
        "solved": interval_json(w.solved),
        "cost_usd": interval_json(w.cost),
        "net_benefit_usd": None if w.benefit is None else interval_json(w.benefit),
        "ranges": [{"low": r.low, "high": r.high, "worth": r.worth} for r in w.ranges],
    }


def design(d: Design | None) -> JSONObject | None:
    """What was declared, and whether it was kept to."""
    if d is None:
        return None
    plain = ("digest", "alpha", "stopping", "claims", "proves", "kept", "why_not")
    return {
        **{name: getattr(d, name) for name in plain},
        "looks": list(d.looks),
        "peeks": [{"at": p.at, "trials": p.trials, "planned": p.planned} for p in d.peeks],
        "siblings": [{"run": s.run, "created": s.created, "difference": s.difference} for s in d.siblings],
        "stops": [{**asdict(s.stop), "trials_after": s.after} for s in d.stops],
    }


def front(f: Front) -> JSONObject:
    """Accuracy and cost."""
    names = (
        "handle", "label", "digest", "accuracy", "cost_usd", "on_front", "on_hull", "share", "plausible", "reason",
    )  # fmt: skip
    return {
        "benchmark": f.benchmark,
        "tasks": f.tasks,
        "seed": f.seed,
        "reason": f.reason,
        "members": [{name: getattr(m, name) for name in names} for m in f.members],
    }


def composite(c: Composite) -> JSONObject:
    """One score, with its weights and what other weights say."""
    return {
        "benchmark": c.benchmark,
        "declared": c.declared,
        "scaling": "absolute anchors",
        "sentence": c.sentence,
        "dimensions": [
            {"name": d.name, "weight": d.weight, "worst": d.worst, "best": d.best, "unit": UNITS.get(d.name, "")}
            for d in c.dimensions
        ],
        "left_out": dict(c.left_out),
        "arms": [_composite_arm(arm) for arm in c.arms],
        "sensitivity": None if c.sensitivity is None else _sensitivity(c.sensitivity, c.handle),
    }


UNITS = {"success": "share", "harm": "share", "abstention": "share", "cost": "USD a solve", "time": "s a trial"}


def _composite_arm(arm: CompositeArm) -> JSONObject:
    return {
        "handle": arm.handle,
        "label": arm.label,
        "digest": arm.digest,
        "score": arm.score,
        "wins": arm.wins,
        "min_max": arm.min_max,
        "raw": dict(arm.raw),
        "scaled": dict(arm.scaled),
        "reason": arm.reason,
    }


def _sensitivity(s: Sensitivity, handle: Callable[[str], str]) -> JSONObject:
    return {
        "shares": {handle(name): share for name, share in s.shares.items()},
        "error": s.error,
        "draws": s.draws,
        "seed": s.seed,
        "alone": {name: [handle(w) for w in winners] for name, winners in s.alone.items()},
        "along": {
            name: [{"low": x.low, "high": x.high, "winners": [handle(w) for w in x.winners]} for x in stretches]
            for name, stretches in s.along.items()
        },
    }


# ── behind a cell ────────────────────────────────────────────────────────────────────────────────────────────────────


def detail(d: Detail, metric: Callable[[MetricValue], JSONObject]) -> JSONObject:
    """Tasks by repeat, curves and quantiles. Attempts, times and costs of single trials are in the ledgers."""
    u = d.unstable
    return {
        "per_task": [_task(t) for t in d.tasks],
        "curve": [_point(p, metric) for p in d.curve],
        "latency": [_quantile(q) for q in d.latency],
        "unstable": None if u is None else {"share": u.share, "k": u.k, "tasks": u.tasks},
    }


def _task(t: TaskRow) -> JSONObject:
    outcomes: list[JSONValue] = [trial.outcome for trial in t.trials]
    repeats: list[JSONValue] = [trial.repeat for trial in t.trials]
    return {"task": t.task, "cluster": t.cluster, "digest": t.digest, "repeats": repeats, "outcomes": outcomes}


def _point(p: CurvePoint, metric: Callable[[MetricValue], JSONObject]) -> JSONObject:
    return {"k": p.k, "pass^k": metric(p.pass_hat), "pass@k": metric(p.pass_at), "floor": p.floor}


def _quantile(q: TimeQuantile) -> JSONObject:
    names = ("q", "value", "low", "high", "level", "method", "runs", "cut", "beyond", "reason")
    return {name: getattr(q, name) for name in names}
