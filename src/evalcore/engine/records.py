"""Ledger lines, written and read by hand: a converter costs ten times as much, and there are many of them."""

from __future__ import annotations

from typing import cast

from evalcore.values.json import JSONObject, JSONValue, dumps, loads
from evalcore.values.task import Role
from evalcore.values.trial import Attempt, Exit, Grading, TraceRef, TrialKey, Verdict, Void
from evalcore.values.usage import Usage

INJECTED = "fault-injected"  # the provenance of trials with faults, and so a part of their key
_USAGE = ("calls", "input", "output", "cache_read", "cache_write", "reasoning", "unreported")


def attempt_line(a: Attempt) -> bytes:
    """One attempt as a line of attempts.jsonl, newline included. Fields at their default are left out."""
    key, trace = a.key, a.trace
    value: JSONObject = {
        "id": a.id,
        "benchmark": key.benchmark,
        "task": key.task,
        "arm": key.arm,
        "repeat": key.repeat,
        "task_digest": a.task_digest,
        "number": a.number,
        "started": a.started,
        "wall_s": a.wall_s,
        "tool_calls": a.tool_calls,
        "tool_errors": a.tool_errors,
        "trace": [trace.segment, trace.offset, trace.length],
        "provenance": a.provenance,
        "isolation": a.isolation,
    }
    if a.exit is not None:
        value["exit"] = _present(kind=a.exit.kind, limit=a.exit.limit, detail=a.exit.detail, code=a.exit.code)
    if a.void is not None:
        value["void"] = {"kind": a.void.kind, "message": a.void.message, "fatal": a.void.fatal}
    if a.usage:
        value["usage"] = {role: _usage(usage) for role, usage in a.usage.items()}
    if a.flags:
        value["flags"] = list(a.flags)
    if a.served:
        value["served"] = {role: list(models) for role, models in a.served.items()}
    return dumps(value) + b"\n"


def read_attempt(line: bytes) -> Attempt:
    """The attempt behind a line. Raises ValueError, KeyError or TypeError for a line that is none."""
    v = cast("dict[str, JSONValue]", loads(line))
    exit_, void, trace = v.get("exit"), v.get("void"), cast("list[JSONValue]", v["trace"])
    return Attempt(
        id=_text(v["id"]),
        key=TrialKey(
            _text(v["benchmark"]),
            _text(v["task"]),
            _text(v["arm"]),
            _count(v["repeat"]),
            v["provenance"] == INJECTED,
        ),
        task_digest=_text(v["task_digest"]),
        number=_count(v["number"]),
        exit=Exit(**cast("dict[str, str]", exit_)) if exit_ else None,  # type: ignore[arg-type]
        void=Void(**cast("dict[str, str]", void)) if void else None,  # type: ignore[arg-type]
        started=_text(v["started"]),
        wall_s=_number(v["wall_s"]),
        usage=_usages(v.get("usage")),
        tool_calls=_count(v["tool_calls"]),
        tool_errors=_count(v["tool_errors"]),
        trace=TraceRef(*trace),  # type: ignore[arg-type]
        provenance=v["provenance"],  # type: ignore[arg-type]
        isolation=v["isolation"],  # type: ignore[arg-type]
        flags=tuple(cast("list[str]", v.get("flags", ()))),
        served={role: tuple(models) for role, models in cast("dict[Role, list[str]]", v.get("served", {})).items()},
    )


def grading_line(g: Grading) -> bytes:
    """One verdict as a line of gradings/<digest>.jsonl, newline included."""
    v = g.verdict
    value: JSONObject = {"attempt": g.attempt, "outcome": v.outcome, "wall_s": g.wall_s}
    value |= _present(score=v.score, harm=v.harm, error=g.error)
    if v.details:
        value["details"] = v.details
    if v.flags:
        value["flags"] = list(v.flags)
    if v.views:
        value["views"] = dict(v.views)
    if v.bounds is not None:
        value["bounds"] = list(v.bounds)
    if g.usage:
        value["usage"] = {role: _usage(usage) for role, usage in g.usage.items()}
    if g.judge:
        value["judge"] = list(g.judge)
    return dumps(value) + b"\n"


def read_grading(line: bytes) -> Grading:
    """The grading behind a line. Raises ValueError, KeyError or TypeError for a line that is none."""
    v = cast("dict[str, JSONValue]", loads(line))
    bounds = cast("list[float] | None", v.get("bounds"))
    verdict = Verdict(
        outcome=v["outcome"],  # type: ignore[arg-type]
        score=cast("float | None", v.get("score")),
        harm=cast("bool | None", v.get("harm")),
        details=cast(JSONObject, v.get("details", {})),
        flags=tuple(cast("list[str]", v.get("flags", ()))),
        views=cast("dict[str, bool]", v.get("views", {})),
        bounds=None if bounds is None else (bounds[0], bounds[1]),
    )
    return Grading(
        _text(v["attempt"]),
        verdict,
        _number(v["wall_s"]),
        cast("str | None", v.get("error")),
        _usages(v.get("usage")),
        tuple(cast("list[JSONObject]", v.get("judge", ()))),
    )


def _present(**fields: JSONValue) -> JSONObject:
    return {k: v for k, v in fields.items() if v is not None}


def _usages(value: JSONValue) -> dict[Role, Usage]:
    found = cast("dict[Role, JSONObject]", value or {})
    for usage in found.values():
        for name, amount in usage.items():
            if not isinstance(amount, int | float):
                raise TypeError(f"usage: {name} is no number")
    return {role: Usage(**usage) for role, usage in found.items()}  # type: ignore[arg-type]


def _text(value: JSONValue) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _count(value: JSONValue) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is no whole number")
    return value


def _number(value: JSONValue) -> float:
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return value


def _usage(usage: Usage) -> JSONObject:
    value: JSONObject = {name: count for name in _USAGE if (count := getattr(usage, name))}
    if usage.cost_usd is not None:
        value["cost_usd"] = usage.cost_usd
    return value
