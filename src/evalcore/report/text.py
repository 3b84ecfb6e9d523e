"""The scorecard as a table for people, readable at 80 columns and up, on a terminal or in a file.

Everything that comes from an arm, an agent or a dataset is shown as `rich.text.Text` of cleaned text: neither markup nor a
terminal escape in it has any effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from attrs import frozen

from evalcore.report.model import Cell, MetricValue, Report
from evalcore.report.notes import CONTROL
from evalcore.report.words import UNKNOWN, counted, dollars, percent, percent_range, safe, seconds

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

Lines: TypeAlias = "Sequence[str] | None"  # a cell's lines, the first one prominent; None: nothing to show
WIDE: Final = 112  # columns from which results and effort share one table
CONTROL_NAMES: Final = {"oracle": "oracle (ceiling)", "noop": "noop (floor)"}


@frozen
class Column:
    """A column of the table: what it shows of a cell. It is left out where no cell has anything to show."""

    title: tuple[str, ...]
    show: Callable[[Cell], Lines]
    metric: str = ""  # the metric whose reason explains a missing value
    justify: Literal["left", "right"] = "right"
    style: str = ""


def render(report: Report, console: Console) -> None:
    """Print the report."""
    _title(report, console)
    for selector in dict.fromkeys(cell.benchmark.selector for cell in report.cells):
        cells = [cell for cell in report.cells if cell.benchmark.selector == selector]
        _benchmark(report, cells, console)
    _footer(report, console)


# ── the parts of the page ────────────────────────────────────────────────────────────────────────────────────────────


def _title(report: Report, console: Console) -> None:
    console.print()
    console.print(_text(("Scorecard", "bold"), (f"  study {report.study_name} · run {report.run}", "")))
    if not report.cells:
        console.print(_text(("This run has no benchmark and no arm: there is nothing to report.", "")))


def _benchmark(report: Report, cells: Sequence[Cell], console: Console) -> None:
    benchmark = cells[0].benchmark
    dataset = benchmark.dataset
    console.print()
    console.rule(_text((f" {benchmark.selector} ", "bold")), align="left", characters="─", style="dim")
    repeats = f" × {report.repeats} repeats" if report.repeats > 1 else ""
    facts = [
        f"{dataset.name} {dataset.version} ({dataset.date}, {dataset.status})",
        f"{_plural(benchmark.tasks, 'task')}{repeats}",
        *([f"{_plural(benchmark.clusters, 'cluster')}"] if benchmark.clusters != benchmark.tasks else []),
        f"graded by {benchmark.grader}",
    ]
    console.print(_text((" · ".join(facts), "dim")))
    agents = [cell for cell in cells if not cell.arm.control]
    if agents:
        _agents(agents, console)
    controls = [cell for cell in cells if cell.arm.control]
    if controls:
        _controls(controls, console)
    _views(cells, console)
    _notes(report, cells, console)


def _agents(cells: Sequence[Cell], console: Console) -> None:
    parts = [(*RESULTS, *EFFORT)] if console.width >= WIDE else [RESULTS, EFFORT]
    for columns in parts:
        shown = [c for c in columns if any(c.show(cell) is not None for cell in cells)]
        if not shown:
            continue
        table = _table(console)
        table.add_column(_head("configuration"), ratio=1, overflow="fold", min_width=16)
        for column in shown:
            table.add_column(_head(*column.title), justify=column.justify, no_wrap=True)
        for cell in cells:
            table.add_row(_configuration(cell), *(_lines(column.show(cell), column.style) for column in shown))
        console.print(table)


def _controls(cells: Sequence[Cell], console: Console) -> None:
    console.print()
    console.print(_text(("Controls", "bold"), (": is the rig sound? These are no scores.", "")))
    table = _table(console)
    table.add_column(_head("control"), ratio=1, overflow="fold", min_width=16)
    columns = [c for c in RESULTS if c.metric != "pass^k" and any(c.show(cell) is not None for cell in cells)]
    for column in columns:
        table.add_column(_head(*column.title), justify=column.justify, no_wrap=True)
    for cell in cells:
        table.add_row(_configuration(cell), *(_lines(column.show(cell), "") for column in columns))
    console.print(table)


def _views(cells: Sequence[Cell], console: Console) -> None:
    """Second readings of the same trials, one row each."""
    rows = [(label, cell, value) for cell in cells for label, value in cell.views.items()]
    if not rows:
        return
    console.print()
    console.print(_text(("The same trials, read another way", "bold")))
    table = _table(console)
    table.add_column(_head("reading"), overflow="fold", min_width=16)
    table.add_column(_head("configuration"), ratio=1, overflow="fold", min_width=16)
    table.add_column(_head("yes"), justify="right", no_wrap=True)
    for label, cell, value in sorted(rows, key=lambda row: row[0]):
        table.add_row(_text((label, "")), _text((_name(cell), "")), _lines(_rate(value), ""))
    console.print(table)


def _notes(report: Report, cells: Sequence[Cell], console: Console) -> None:
    """What must be known beside the numbers above."""
    selector = cells[0].benchmark.selector
    texts = [note.text for note in report.notes if note.benchmark == selector]
    texts += _per_cell(cells, lambda cell: [note for note in cell.notes if note != CONTROL])
    agents = [cell for cell in cells if not cell.arm.control]
    texts += _per_cell(agents, _missing)
    texts += _per_cell(cells, lambda cell: [f"flags: {', '.join(counted(dict(cell.flags)))}"] if cell.flags else [])
    _bullets(texts, console)


def _footer(report: Report, console: Console) -> None:
    """How to read the page, for somebody who sees one for the first time, and what holds for all of it."""
    if not report.cells:
        return
    console.print()
    console.print(_text(("How to read this", "bold")))
    texts = [f"{term}: {meaning}" for term, meaning in _legend(report)]
    texts += [note.text for note in report.notes if note.benchmark is None]
    _bullets(texts, console)
    console.print()


def _legend(report: Report) -> Iterable[tuple[str, str]]:
    cells = report.cells
    yield (
        "solved",
        "the share of trials that passed, or rightly declined; every task weighs the same. The range is the 95 % interval: "
        "rates in it are compatible with these trials, so overlapping ranges are no proof of a difference, nor of a tie",
    )
    if report.repeats > 1:
        yield "every try", "the chance that this many tries at the same task are all solved (pass^k)"
    if any(cell.voids or cell.trials > cell.graded for cell in cells):
        yield (
            "left out",
            "trials without a result; they count neither for nor against. Void: infrastructure failed, not the agent",
        )


# ── cells of the table ───────────────────────────────────────────────────────────────────────────────────────────────


def _solved(cell: Cell) -> Lines:
    return _rate(cell.metrics["pass@1"])


def _rate(metric: MetricValue) -> Lines:
    """The rate, its interval (or why there is none), and its bounds while something is ungraded."""
    if metric.value is None:
        lines = [UNKNOWN, metric.reason or ""]
    elif metric.low is None or metric.high is None:
        lines = [percent(metric.value), metric.reason or ""]
    else:
        lines = [percent(metric.value), percent_range(metric.low, metric.high)]
    if metric.bounds is not None:
        lines += ["all graded:", percent_range(*metric.bounds)]
    return lines


def _every_try(cell: Cell) -> Lines:
    """pass^k for the largest k that every task can give."""
    known = [
        (int(name[5:]), m.value) for name, m in cell.metrics.items() if name.startswith("pass^") and m.value is not None
    ]
    if not known:
        return None
    k, value = max(known)
    return [percent(value), f"{k} of {k}"]


def _trials(cell: Cell) -> Lines:
    """Graded trials, of how many."""
    return [f"{cell.graded:,}", f"of {cell.planned:,}"]


def _ended(cell: Cell) -> Lines:
    """How the agent ended, and by which limits."""
    lines = counted({kind: n for kind, n in cell.exits.items() if kind != "limit"})
    lines += [f"{n:,} limit: {name}" for name, n in cell.limits_hit.items()]
    unnamed = cell.exits.get("limit", 0) - sum(cell.limits_hit.values())
    return [*lines, *([f"{unnamed:,} limit"] if unnamed > 0 else [])] or None


def _left_out(cell: Cell) -> Lines:
    names = {"infra_error": "void", "grader_error": "grader error", "ungraded": "ungraded"}
    lines = counted({names[kind]: n for kind, n in cell.excluded.items()})
    retried = cell.voids - cell.excluded["infra_error"]
    return [*lines, *([f"{_plural(retried, 'void attempt')}", "made good"] if retried > 0 else [])] or None


def _harm(cell: Cell) -> Lines:
    return None if cell.harm is None else [f"{cell.harm:,}"]


def _measured(name: str, form: Callable[[float], str]) -> Callable[[Cell], Lines]:
    def show(cell: Cell) -> Lines:
        value = cell.metrics[name].value
        return None if value is None else [form(value)]

    return show


RESULTS: Final = (
    Column(("solved", "(pass@1)"), _solved, style="bold"),
    Column(("every", "try"), _every_try, metric="pass^k"),
    Column(("trials", "graded"), _trials),
    Column(("harm",), _harm),
    Column(("how the", "agent ended"), _ended, justify="left"),
    Column(("left out",), _left_out, justify="left"),
)
EFFORT: Final = (
    Column(("tokens", "per trial"), _measured("tokens", lambda x: f"{x:,.0f}"), "tokens"),
    Column(("time", "per trial"), _measured("wall_s", seconds), "wall_s"),
    Column(("tool calls", "failed"), _measured("tool_error_rate", percent), "tool_error_rate"),
    Column(("cost", "in all"), _measured("cost_usd", dollars), "cost_usd"),
    Column(("cost", "per solve"), _measured("cost_per_solve_usd", dollars), "cost_per_solve_usd"),
)


def _missing(cell: Cell) -> list[str]:
    """Why a measure of effort has no value, one line for each reason."""
    by_reason: dict[str, list[str]] = {}
    for column in EFFORT:
        metric = cell.metrics[column.metric]
        if metric.value is None and metric.reason and cell.trials:
            by_reason.setdefault(metric.reason, []).append(" ".join(column.title))
    return [f"{' and '.join(titles)}: unknown, {reason}" for reason, titles in by_reason.items()]


def _configuration(cell: Cell) -> Text:
    """Which arm, and under which isolation and provenance its numbers were made."""
    world = f"isolation {cell.isolation}"
    if cell.provenance not in ("live", None):
        world += f" · {cell.provenance}"
    return _text((_name(cell), "" if cell.arm.control else "cyan"), (f"\n{world}", "dim"))


def _name(cell: Cell) -> str:
    arm = cell.arm.arm
    return CONTROL_NAMES.get(arm.harness, arm.label) if cell.arm.control else arm.label


def _per_cell(cells: Sequence[Cell], texts_of: Callable[[Cell], Iterable[str]]) -> list[str]:
    """Each text once, with whom it is about unless it is about all."""
    about: dict[str, list[str]] = {}
    for cell in cells:
        for text in texts_of(cell):
            about.setdefault(text, []).append(_name(cell))
    return [text if len(names) == len(cells) else f"{', '.join(names)}: {text}" for text, names in about.items()]


# ── rich, and only here ──────────────────────────────────────────────────────────────────────────────────────────────


def _text(*parts: tuple[str, str]) -> Text:
    """Styled text with nothing in it but printable characters, and the line breaks that stand in our own parts."""
    from rich.text import Text

    text = Text()
    for part, style in parts:
        text.append("\n".join(safe(line) for line in part.split("\n")), style)
    return text


def _head(*lines: str) -> Text:
    return _text(("\n".join(lines), "dim"))


def _lines(lines: Lines, style: str) -> Text:
    if lines is None:
        return _text((UNKNOWN, "dim"))
    return _text((safe(lines[0]), style), *((f"\n{safe(line)}", "dim") for line in lines[1:]))


def _table(console: Console) -> Table:
    from rich import box
    from rich.table import Table

    return Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, width=min(console.width, 140), padding=(0, 2, 0, 0)
    )


def _bullets(texts: Iterable[str], console: Console) -> None:
    from rich.table import Table

    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for text in texts:
        grid.add_row(_text(("·", "dim")), _text((safe(text), "")))
    if grid.row_count:
        console.print()
        console.print(grid)


def _plural(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s")
