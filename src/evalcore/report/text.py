"""The scorecard as tables for people, readable at 80 columns and up, on a terminal or in a file.

Everything that comes from an arm, an agent or a dataset is shown as `rich.text.Text` of cleaned text: neither markup
nor a terminal escape in it has any effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from attrs import frozen

from evalcore.report.metrics import BUILT_IN
from evalcore.report.model import Cell, MetricValue, Report
from evalcore.report.notes import CONTROL
from evalcore.report.words import UNKNOWN, counted, dollars, percent, percent_range, plural, safe, seconds

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

Lines: TypeAlias = "Sequence[str] | None"  # a cell's lines, the first one prominent; None: nothing to show
WIDE: Final = 140  # columns from which results and effort share one table
PROSE: Final = 110  # columns that running text keeps to
CONTROL_NAMES: Final = {"oracle": "oracle (ceiling)", "noop": "noop (floor)"}


@frozen
class Column:
    """A column of a table: what it shows of a cell. It is left out where no cell has anything to show."""

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
    _groups(report, console)
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
    _rule(benchmark.selector, console)
    size = plural(benchmark.tasks, "task")
    if benchmark.clusters != benchmark.tasks:
        size += f" in {plural(benchmark.clusters, 'cluster')}"
    if report.repeats > 1:
        size += f" × {report.repeats} repeats"
    version = f"{dataset.name} {dataset.version} ({dataset.date}, {dataset.status})"
    console.print(_text((f"{version} · {size} · graded by {benchmark.grader}", "dim")))
    agents = [cell for cell in cells if not cell.arm.control]
    controls = [cell for cell in cells if cell.arm.control]
    results = _results(agents)
    if agents and console.width >= WIDE:
        _cells_table(agents, (*results, *EFFORT), "configuration", console)
    elif agents:
        _cells_table(agents, results, "configuration", console)
        _cells_table(agents, EFFORT, "configuration", console, world=False)
    if controls:
        console.print()
        console.print(_text(("Controls", "bold"), (": is the rig sound? These are no scores.", "")))
        _cells_table(controls, CONTROLS, "control", console)
    _further(cells, console)
    _notes(report, cells, console)


def _cells_table(
    cells: Sequence[Cell], columns: Sequence[Column], head: str, console: Console, *, world: bool = True
) -> None:
    """One row for each cell, with its `world` or without; columns that have nothing to show are left out."""
    shown = [c for c in columns if any(c.show(cell) is not None for cell in cells)]
    if not shown:
        return
    console.print()
    table = _table()
    table.add_column(_head(head), overflow="fold", min_width=16)
    for column in shown:
        table.add_column(_head(*column.title), justify=column.justify, no_wrap=True)
    for cell in cells:
        table.add_row(_configuration(cell, world=world), *(_lines(column.show(cell), column.style) for column in shown))
    console.print(table)


def _further(cells: Sequence[Cell], console: Console) -> None:
    """Second readings of the same trials, and the metrics of plugins."""
    rows: list[tuple[str, Cell, Sequence[str]]]
    rows = [(label, cell, _rate(value)) for cell in cells for label, value in cell.views.items()]
    rows += [(name, cell, _plain(m)) for cell in cells for name, m in cell.metrics.items() if _from_plugin(name)]
    if not rows:
        return
    console.print()
    console.print(_text(("The same trials, read another way", "bold")))
    console.print()
    table = _table()
    table.add_column(_head("reading"), overflow="fold", min_width=16)
    table.add_column(_head("configuration"), overflow="fold", min_width=16)
    table.add_column(_head("value"), justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    for label, cell, lines in sorted(rows, key=lambda row: row[0]):
        table.add_row(_text((safe(label), "")), _text((safe(_name(cell)), "")), *(_text((line, "")) for line in lines))
    console.print(table)


def _groups(report: Report, console: Console) -> None:
    """Weighted means over several benchmarks."""
    if not report.groups:
        return
    console.print()
    _rule("Groups", console)
    console.print()
    table = _table()
    table.add_column(_head("group"), overflow="fold", min_width=16)
    table.add_column(_head("configuration"), overflow="fold", min_width=16)
    table.add_column(_head("solved", "(weighted mean)"), justify="right", no_wrap=True)
    for group in report.groups:
        value = UNKNOWN if group.value is None else f"{100 * group.value:.1f} %"
        table.add_row(_text((safe(group.title), "")), _text((safe(group.arm), "cyan")), _text((value, "")))
    console.print(table)
    reasons = dict.fromkeys(f"{g.name}, {g.arm}: {g.reason}" for g in report.groups if g.reason)
    if reasons:
        console.print()
        _bullets([("", text) for text in reasons], console)


def _notes(report: Report, cells: Sequence[Cell], console: Console) -> None:
    """What must be known beside the numbers above."""
    selector = cells[0].benchmark.selector
    texts = [note.text for note in report.notes if note.benchmark == selector]
    texts += _per_cell(cells, _about)
    if texts:
        console.print()
        _bullets([("", text) for text in texts], console)


def _footer(report: Report, console: Console) -> None:
    """How to read the page, for somebody who sees one for the first time, and what holds for all of it."""
    if not report.cells:
        return
    console.print()
    console.print(_text(("How to read this", "bold")))
    console.print()
    _bullets([*_legend(report), *(("", note.text) for note in report.notes if note.benchmark is None)], console)
    console.print()


def _legend(report: Report) -> Iterable[tuple[str, str]]:
    cells = report.cells
    yield (
        "solved",
        (
            "the share of trials that passed, or rightly declined; every task weighs the same. Below it the 95 % "
            "interval: rates that these trials are compatible with. Two intervals, compared by eye, show neither a "
            "difference nor a tie."
        ),
    )
    for method in sorted({cell.metrics["pass@1"].method for cell in cells if cell.metrics["pass@1"].low is not None}):
        yield "method", f"{method}."
    if any(_depth(cell) for cell in cells):
        yield "all k tries", "the chance that k tries at the same task are all solved (pass^k)."
    if any(cell.voids for cell in cells):
        yield "void", "infrastructure failed, not the agent: counts neither for nor against."


# ── what the columns show ────────────────────────────────────────────────────────────────────────────────────────────


def _results(agents: Sequence[Cell]) -> tuple[Column, ...]:
    """The columns of results. All rows show pass^k for the same k: the largest that each of them can give."""
    k = min((depth for cell in agents if (depth := _depth(cell))), default=0)
    return (
        Column(("solved", "(pass@1)"), lambda cell: _rate(cell.metrics["pass@1"]), style="bold"),
        *([Column((f"all {k}", "tries"), _measured(f"pass^{k}", percent))] if k else []),
        Column(("trials", "graded"), _trials),
        Column(("harm",), lambda cell: None if cell.harm is None else [f"{cell.harm:,}"]),
        Column(("how the", "agent ended"), _ended, justify="left"),
    )


def _depth(cell: Cell) -> int:
    """The largest k that pass^k is known for, or 0."""
    known = (name for name, metric in cell.metrics.items() if name.startswith("pass^") and metric.value is not None)
    return max((int(name.removeprefix("pass^")) for name in known), default=0)


def _rate(metric: MetricValue) -> Sequence[str]:
    """The rate and its interval."""
    if metric.value is None:
        return [UNKNOWN]
    if metric.low is None or metric.high is None:
        return [percent(metric.value), "no interval"]
    return [percent(metric.value), percent_range(metric.low, metric.high)]


def _plain(metric: MetricValue) -> Sequence[str]:
    """A plugin's value, with its unit, and whether it has been shown to measure what it claims."""
    value = UNKNOWN if metric.value is None else f"{metric.value:.4g} {metric.unit}".rstrip()
    return [value, "validated" if metric.validated else "not validated"]


def _trials(cell: Cell) -> Lines:
    """Graded trials of those planned, and where the others are."""
    names = {"infra_error": "void", "grader_error": "grader error", "ungraded": "ungraded"}
    rest = {names[kind]: n for kind, n in cell.excluded.items()}
    rest["not run"] = cell.not_run
    return [f"{cell.graded:,} of {cell.planned:,}", *counted(rest)]


def _ended(cell: Cell) -> Lines:
    """How the agent ended, and by which limits."""
    lines = counted({kind: n for kind, n in cell.exits.items() if kind != "limit"})
    lines += [f"{n:,} limit: {name}" for name, n in cell.limits_hit.items()]
    unnamed = cell.exits.get("limit", 0) - sum(cell.limits_hit.values())
    return [*lines, *([f"{unnamed:,} limit"] if unnamed > 0 else [])] or None


def _measured(name: str, form: Callable[[float], str]) -> Callable[[Cell], Lines]:
    def show(cell: Cell) -> Lines:
        metric = cell.metrics.get(name)
        return None if metric is None or metric.value is None else [form(metric.value)]

    return show


EFFORT: Final = (
    Column(("tokens", "per trial"), _measured("tokens", lambda x: f"{x:,.0f}"), "tokens"),
    Column(("time", "per trial"), _measured("wall_s", seconds), "wall_s"),
    Column(("tool calls", "failed"), _measured("tool_error_rate", percent), "tool_error_rate"),
    Column(("cost", "in all"), _measured("cost_usd", dollars), "cost_usd"),
    Column(("cost", "per solve"), _measured("cost_per_solve_usd", dollars), "cost_per_solve_usd"),
)


CONTROLS: Final = (
    Column(("solved",), lambda cell: _rate(cell.metrics["pass@1"])[:1], style="bold"),
    Column(("trials", "graded"), _trials),
    Column(("how the", "control ended"), _ended, justify="left"),
)


def _about(cell: Cell) -> list[str]:
    """Everything that must be known about one row."""
    texts = [note for note in cell.notes if note != CONTROL] + _about_solved(cell)
    if not cell.arm.control:
        texts += _unknown_effort(cell)
    return [*texts, *([f"flags: {', '.join(counted(cell.flags))}"] if cell.flags else [])]


def _about_solved(cell: Cell) -> list[str]:
    """Why there is no interval, and what the ungraded trials could change."""
    metric, texts = cell.metrics["pass@1"], []
    if metric.value is not None and metric.low is None:
        texts.append(f"solved: {metric.reason}")
    if metric.bounds is not None:
        low, high = (percent(bound) for bound in metric.bounds)
        texts.append(f"solved would be {low} if every ungraded trial failed, and {high} if every one passed")
    return texts


def _unknown_effort(cell: Cell) -> list[str]:
    """Why a measure of effort has no value, one line for each reason."""
    by_reason: dict[str, list[str]] = {}
    for column in EFFORT:
        metric = cell.metrics[column.metric]
        if metric.value is None and metric.reason and cell.trials:
            by_reason.setdefault(metric.reason, []).append(" ".join(column.title))
    return [f"{' and '.join(titles)} unknown: {reason}" for reason, titles in by_reason.items()]


def _from_plugin(name: str) -> bool:
    return name not in BUILT_IN and not name.startswith(("pass@", "pass^"))


def _configuration(cell: Cell, *, world: bool) -> Text:
    """Which arm, and under which isolation and provenance (its `world`) its numbers were made."""
    name = (safe(_name(cell)), "" if cell.arm.control else "cyan")
    if not world:
        return _text(name)
    place = f"isolation {cell.isolation}"
    if cell.provenance not in ("live", None):
        place += f" · {cell.provenance}"
    return _text(name, (f"\n{place}", "dim"))


def _name(cell: Cell) -> str:
    arm = cell.arm.arm
    return CONTROL_NAMES.get(arm.harness, arm.label) if cell.arm.control else arm.label


def _per_cell(cells: Sequence[Cell], texts_of: Callable[[Cell], Iterable[str]]) -> list[str]:
    """Texts by whom they are about; those about all without a name."""
    about: dict[str, list[str]] = {}
    for cell in cells:
        for text in texts_of(cell):
            about.setdefault(text, []).append(_name(cell))
    grouped: dict[tuple[str, ...], list[str]] = {}
    for text, names in about.items():
        grouped.setdefault(() if len(names) == len(cells) else tuple(names), []).append(text)
    return [": ".join(filter(None, (", ".join(names), "; ".join(texts)))) for names, texts in grouped.items()]


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


def _rule(title: str, console: Console) -> None:
    from rich.rule import Rule

    rule = Rule(_text((f"{safe(title)} ", "bold")), align="left", characters="─", style="dim")
    console.print(rule, width=min(console.width, PROSE))


def _table() -> Table:
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 2, 0, 0))


def _bullets(texts: Iterable[tuple[str, str]], console: Console) -> None:
    """A list; the term before a text, if any, stands out."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for term, text in texts:
        head = (f"{term}: ", "bold") if term else ("", "")
        grid.add_row(_text(("·", "dim")), _text(head, (safe(text), "")))
    console.print(grid, width=min(console.width, PROSE))
