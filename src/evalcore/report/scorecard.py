"""`scorecard.json`: the report as other programs read it. Its schema is `scorecard.schema.json`, beside this module.

Within version 1 fields are only added. What is not known is null, and a `reason` beside it, or an entry of `reasons`,
says why. There is no NaN and no Infinity: where a stranger's JSON in the stamp holds one, it is written as text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final, cast

from evalcore.report import scorecard_parts as parts
from evalcore.report.model import Cell, GroupValue, MetricValue, Report, RoleUsage
from evalcore.report.schemas import schema as published
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.stamp import BenchmarkStamp
from evalcore.values.task import Role

SCHEMA: Final = "evalcore.scorecard/1"


def to_json(report: Report) -> JSONObject:
    """The report in the shape of the published schema."""
    return {
        "schema": SCHEMA,
        "run": report.run,
        "study": {"name": report.study_name, "digest": report.study_digest},
        "created": report.created,
        "grading": report.grading,
        "repeats": report.repeats,
        "cells": [_cell(cell) for cell in report.cells],
        "groups": [_group(group) for group in report.groups],
        "contrasts": [parts.contrast(contrast) for contrast in report.contrasts],
        "design": parts.design(report.design),
        "fronts": [parts.front(one) for one in report.fronts],
        "composites": [parts.composite(one) for one in report.composites],
        "notes": [str(note) for note in report.notes],
    }


def encode(report: Report) -> bytes:
    """The file: indented UTF-8, ending in a newline. A lone surrogate is written as JSON's escape."""
    text = json.dumps(to_json(report), ensure_ascii=False, indent=2, allow_nan=False)
    return (text + "\n").encode("utf-8", "backslashreplace")  # only surrogates fail, and \udcff is how JSON escapes one


def schema() -> JSONObject:
    """The JSON Schema of `to_json`, as published."""
    return published(SCHEMA)


def _group(group: GroupValue) -> JSONObject:
    return {
        "name": group.name,
        "arm": {"label": group.arm, "digest": group.digest},
        "value": group.value,
        "complete": group.complete,
        "reason": group.reason,
        "members": dict(group.members),
    }


def _cell(cell: Cell) -> JSONObject:
    arm = cell.arm.arm
    reasons = {k: v for k, v in cell.reasons.items() if k not in _STAMPED}
    return {
        "benchmark": cell.benchmark.selector,
        "dataset": _dataset(cell.benchmark),
        "arm": {
            "handle": arm.handle,
            "label": arm.label,
            "digest": arm.digest,
            "axes": _finite(arm.axes),
            "control": cell.arm.control,
        },
        "stamp": _stamp(cell),
        "tasks": cell.tasks,
        "tasks_planned": cell.benchmark.tasks,
        "trials": cell.trials,
        "planned": cell.planned,
        "not_run": cell.not_run,
        "graded": cell.graded,
        "clusters": cell.clusters,
        "outcomes": _counts(cell.outcomes),
        "harm": cell.harm,
        "excluded": _counts(cell.excluded),
        "voids": cell.voids,
        "void_kinds": _counts(cell.void_kinds),
        "exits": _counts(cell.exits),
        "limits_hit": _counts(cell.limits_hit),
        "usage": _usage(cell.usage),
        "wasted": _usage(cell.wasted),
        "metrics": {name: _metric(value) for name, value in cell.metrics.items()},
        "views": {label: _metric(value) for label, value in cell.views.items()},
        "flags": _counts(cell.flags),
        **parts.detail(cell.detail, _metric),
        "floor": None if cell.floor is None else cell.floor.as_json(),
        "notes": list(cell.notes),
        "reasons": cast(JSONObject, reasons),
    }


_STAMPED: Final = frozenset({"mode", "model_served", "provenance"})


def _dataset(benchmark: BenchmarkStamp) -> JSONObject:
    dataset = benchmark.dataset
    return {
        "name": dataset.name,
        "version": dataset.version,
        "date": dataset.date,
        "status": dataset.status,
        "status_note": dataset.status_note,
        "licence": dataset.licence,
        "source": dataset.source,
        "digest": dataset.digest,
        "tasks_digest": benchmark.tasks_digest,
    }


def _stamp(cell: Cell) -> JSONObject:
    benchmark = cell.benchmark
    return {
        "harness": {
            "name": cell.arm.arm.harness,
            "version": cell.arm.harness_version,
            "build": cell.arm.harness_build,
        },
        "mode": _finite(cell.arm.arm.axes.get("mode")),
        "model_served": _served(cell.served.get("agent", ())),
        "grader": {"name": benchmark.grader, "stamp": _finite(benchmark.grader_stamp)},
        "toolkits": _finite(cell.toolkits),
        "isolation": cell.isolation,
        "provenance": cell.provenance,
        "limits": cast(JSONObject, benchmark.limits.as_json()),
        "standard_limits": benchmark.standard_limits,
        "reasons": {name: reason for name, reason in cell.reasons.items() if name in _STAMPED},
    }


def _served(models: tuple[str, ...]) -> JSONValue:
    """The model that answered; all of them where there were several."""
    return list(models) if len(models) > 1 else models[0] if models else None


def _counts(counts: Mapping[Any, int]) -> JSONObject:
    return dict(counts)


def _usage(roles: Mapping[Role, RoleUsage]) -> JSONObject:
    return {
        role: {
            **used.usage.as_json(),
            "trials": used.trials,
            "unpriced_trials": used.unpriced,
            "known_usd": used.known_usd,
            "reason": used.reason,
        }
        for role, used in roles.items()
    }


def _metric(metric: MetricValue) -> JSONObject:
    return {
        "value": metric.value,
        "low": metric.low,
        "high": metric.high,
        "level": metric.level,
        "method": metric.method,
        "n": metric.n,
        "unit": metric.unit,
        "validated": bool(metric.validated),
        "validation": metric.validated,
        "bounds": None if metric.bounds is None else list(metric.bounds),
        "reason": metric.reason,
    }


def _finite(value: object) -> JSONValue:
    """Stamped JSON without NaN and infinities, which JSON does not have: they become text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    return cast(JSONValue, value)
