"""The report as CSV: one row for each cell and metric, its estimand and the reason of what is missing beside it.

What is not known is empty, and `reason` or `cell_reasons` says why. Numbers stand unquoted and whole, all text is
quoted; text that a spreadsheet would take for a formula begins with an apostrophe (CWE-1236).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from evalcore.report.model import Cell, MetricValue, Report
from evalcore.report.words import safe

Value: TypeAlias = str | float | None  # int, too
COLUMNS: Final = (
    *("run", "study", "grading"),
    *("benchmark", "dataset", "dataset_version", "dataset_status", "grader", "standard_limits"),
    *("handle", "arm", "arm_digest", "harness", "harness_version", "model", "control", "isolation", "provenance"),
    *("kind", "metric", "value", "low", "high", "level", "unit", "n"),
    *("estimand", "reason", "validated", "validation", "bound_low", "bound_high"),  # estimand: the scorecard's `method`
    *("tasks", "clusters", "planned", "trials", "graded", "solved", "infra_error", "grader_error", "ungraded"),
    *("not_run", "voids", "harm", "cell_reasons", "notes"),
)
FORMULA: Final = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # the wide ones begin a formula where they are typed


def encode(report: Report) -> bytes:
    """The file: UTF-8, a head, a line for each row."""
    file = io.StringIO()
    writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_field(row[column]) for column in COLUMNS] for row in rows(report))
    return file.getvalue().encode()


def rows(report: Report) -> Iterator[dict[str, Value]]:
    """Every metric, then every view, of every cell; by column, nothing quoted."""
    for cell in report.cells:
        for name, metric in cell.metrics.items():
            yield _row(report, cell, "metric", name, metric)
        for label, view in cell.views.items():
            yield _row(report, cell, "view", label, view)


def _row(report: Report, cell: Cell, kind: str, name: str, metric: MetricValue) -> dict[str, Value]:
    head = (report.run, report.study_name, report.grading, *_of_cell(cell), kind, name)
    return dict(zip(COLUMNS, (*head, *_of_metric(metric), *_of_trials(cell)), strict=True))


def _of_cell(cell: Cell) -> tuple[Value, ...]:
    """Whose number it is: the boundaries that are never pooled across."""
    benchmark, arm = cell.benchmark, cell.arm.arm
    dataset = benchmark.dataset
    return (
        benchmark.selector,
        dataset.name,
        dataset.version,
        dataset.status,
        benchmark.grader,
        _yes(benchmark.standard_limits),
        arm.handle,
        arm.label,
        arm.digest,
        arm.harness,
        cell.arm.harness_version,
        arm.model,
        _yes(cell.arm.control),
        cell.isolation,
        cell.provenance,
    )


def _of_metric(metric: MetricValue) -> tuple[Value, ...]:
    low, high = metric.bounds or (None, None)
    return (
        metric.value,
        metric.low,
        metric.high,
        metric.level,
        metric.unit,
        metric.n,
        metric.method,
        metric.reason,
        _yes(bool(metric.validated)),
        metric.validated,
        low,
        high,
    )


def _of_trials(cell: Cell) -> tuple[Value, ...]:
    """What the number rests on, the same for all metrics of a cell."""
    return (
        cell.tasks,
        cell.clusters,
        cell.planned,
        cell.trials,
        cell.graded,
        cell.solved,
        cell.excluded["infra_error"],
        cell.excluded["grader_error"],
        cell.excluded["ungraded"],
        cell.not_run,
        cell.voids,
        cell.harm,
        _listed(cell.reasons),
        "; ".join(cell.notes),
    )


def _yes(true: bool) -> str:
    return "true" if true else "false"


def _listed(reasons: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {reason}" for name, reason in reasons.items())


def _field(value: Value) -> Value:
    """Text on one line, and no formula."""
    if not isinstance(value, str):
        return value
    text = safe(value)
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text
