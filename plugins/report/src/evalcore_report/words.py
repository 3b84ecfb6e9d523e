"""Sentences and names for people who have no statistics: what a page says first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from evalcore.report.model import Cell, MetricValue
from evalcore.report.words import UNKNOWN, dollars, percent, plural, seconds

FITS = 24  # characters of a name beside a chart
CONTROL_NAMES = {"oracle": "oracle (ceiling)", "noop": "noop (floor)"}


def name_of(cell: Cell) -> str:
    """An arm as people know it."""
    arm = cell.arm.arm
    return CONTROL_NAMES.get(arm.harness, arm.label) if cell.arm.control else arm.label


def short_names(
    cells: Sequence[Cell], clean: Callable[[str], str] | None = None, *, handles: bool = False
) -> list[str]:
    """A name for each cell that fits a chart and that no other has, without what `clean` takes out.

    With `handles`, arms go by their handles in the study, as its comparisons name them.
    """
    names = [clean(_short(cell, handles)) if clean else _short(cell, handles) for cell in cells]
    if len(set(names)) < len(names):
        names = [
            f"{name} ({cell.provenance or 'not run'}, {cell.isolation})" if names.count(name) > 1 else name
            for name, cell in zip(names, cells, strict=True)
        ]
    return [f"{name} #{i + 1}" if names.count(name) > 1 else name for i, name in enumerate(names)]


def _short(cell: Cell, handles: bool) -> str:
    label, handle = name_of(cell), cell.arm.arm.handle
    if cell.arm.control or (not handles and len(label) <= FITS) or not handle:
        return label
    return handle if len(handle) <= FITS else handle[: FITS - 1] + "…"


def whole_percent(rate: float) -> str:
    """`62 %`; nothing but 0 and 1 themselves reads as 0 or 100 %."""
    if 0.0 < rate < 0.005:
        return "<1\N{NO-BREAK SPACE}%"
    if 0.995 <= rate < 1.0:
        return ">99\N{NO-BREAK SPACE}%"
    return f"{100.0 * rate:.0f}\N{NO-BREAK SPACE}%"


def whole_range(low: float, high: float) -> str:
    """`52 % to 71 %`."""
    return f"{whole_percent(low)} to {whole_percent(high)}"


def shown(metric: MetricValue | None) -> str:
    """A metric's value in its unit."""
    if metric is None or metric.value is None:
        return UNKNOWN
    value = metric.value
    if metric.unit == "USD":
        return dollars(value)
    if metric.unit == "s":
        return seconds(value)
    if metric.unit == "tokens":
        return f"{value:,.0f}"
    if metric.unit:
        return f"{value:,.4g} {metric.unit}"
    return percent(value)


def sentence(text: str) -> str:
    """A line as a sentence: it begins with a capital and ends."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def listed(names: Iterable[str]) -> str:
    """`a, b and c`."""
    *rest, last = list(names) or [""]
    return f"{', '.join(rest)} and {last}" if rest else last


def worlds(cell: Cell) -> str:
    """What every number of a cell has to be read with."""
    return f"isolation {cell.isolation}, {cell.provenance or 'nothing has run'}"


def size(cells: Sequence[Cell], repeats: int) -> str:
    """How much data there is: `460 tasks × 3 repeats`."""
    tasks = cells[0].benchmark.tasks
    clusters = cells[0].benchmark.clusters
    text = plural(tasks, "task")
    if clusters != tasks:
        text += f" in {plural(clusters, 'cluster')}"
    return text + (f" × {repeats} repeats" if repeats > 1 else "")
