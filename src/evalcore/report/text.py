"""The scorecard as tables for people, on a terminal or in a file. A table that does not fit is stacked, never cut.

Everything that comes from an arm, an agent or a dataset is shown as `rich.text.Text` of cleaned text: neither markup
nor a terminal escape in it has any effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, Literal

from attrs import frozen

from evalcore.report import columns as shown
from evalcore.report.analysis import Composite
from evalcore.report.columns import CONTROLS, EFFORT, FLAKY, Column, Lines, name_of
from evalcore.report.model import Cell, MetricValue, Report
from evalcore.report.words import UNKNOWN, safe

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

WIDE: Final = 140  # columns from which results and effort share one table
PROSE: Final = 110  # columns that running text keeps to
NAMED: Final = 16  # columns that a name has at least
GAP: Final = 2  # between columns


@frozen
class Head:
    """The head of a column; a `name` may be wrapped, a number never is."""

    title: tuple[str, ...]
    justify: Literal["left", "right"] = "right"
    name: bool = False


def render(report: Report, console: Console) -> None:
    """Print the report."""
    _title(report, console)
    for _, cells in shown.by_benchmark(report):
        _benchmark(report, cells, console)
    _groups(report, console)
    _together(report, console)
    _footer(report, console)


# ── the parts of the page ────────────────────────────────────────────────────────────────────────────────────────────


def _title(report: Report, console: Console) -> None:
    console.print()
    console.print(_text(("Scorecard", "bold"), (f"  study {report.study_name} · run {report.run}", "")))
    if not report.cells:
        console.print(_text(("This run has no benchmark and no arm: there is nothing to report.", "")))


def _benchmark(report: Report, cells: Sequence[Cell], console: Console) -> None:
    console.print()
    _rule(cells[0].benchmark.selector, console)
    console.print(_text((" · ".join(shown.about_dataset(cells, report.repeats)), "dim")))
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


def _results(agents: Sequence[Cell]) -> tuple[Column, ...]:
    return (
        Column(("solved", "(pass@1)"), lambda cell: shown.rate_of(cell.metrics["pass@1"]), style="bold"),
        *shown.tries(agents),
        FLAKY,
        Column(("trials", "graded"), shown.trials_of),
        Column(("harm",), shown.harm_of),
        Column(("how the", "agent ended"), shown.ended, justify="left"),
    )


def _cells_table(
    cells: Sequence[Cell], columns: Sequence[Column], head: str, console: Console, *, world: bool = True
) -> None:
    """One row for each cell, with its `world` or without; columns that have nothing to show are left out."""
    kept = [c for c in columns if any(c.show(cell) is not None for cell in cells)]
    if not kept:
        return
    heads = [Head((head,), "left", name=True), *(Head(c.title, c.justify) for c in kept)]
    rows = [[_configuration(cell, world=world), *(_lines(c.show(cell), c.style) for c in kept)] for cell in cells]
    _print_table(heads, rows, console)


def _further(cells: Sequence[Cell], console: Console) -> None:
    """Second readings of the same trials, and the metrics of plugins."""
    found: list[tuple[str, Cell, int, Sequence[str]]]
    found = [(label, cell, value.n, shown.rate_of(value)) for cell in cells for label, value in cell.views.items()]
    found += [(n, cell, m.n, _plain(m)) for cell in cells for n, m in cell.metrics.items() if shown.from_plugin(n)]
    if not found:
        return
    console.print()
    console.print(_text(("The same trials, read another way", "bold")))
    heads = [
        Head(("reading",), "left", name=True),
        Head(("configuration",), "left", name=True),
        Head(("trials",)),
        Head(("value",)),
        Head(("",)),
    ]
    rows = [
        [*(_text((text, "")) for text in (safe(label), safe(name_of(cell)), f"{trials:,}", *lines))]
        for label, cell, trials, lines in sorted(found, key=lambda row: row[0])
    ]
    _print_table(heads, rows, console)


def _plain(metric: MetricValue) -> Sequence[str]:
    """A plugin's value, with its unit, and whether it has been shown to measure what it claims."""
    value = UNKNOWN if metric.value is None else f"{metric.value:.4g} {metric.unit}".rstrip()
    return [value, "validated" if metric.validated else "not validated"]


def _groups(report: Report, console: Console) -> None:
    """Weighted means over several benchmarks."""
    if not report.groups:
        return
    console.print()
    _rule("Groups", console)
    heads = [
        Head(("group",), "left", name=True),
        Head(("configuration",), "left", name=True),
        Head(("solved", "(weighted mean)")),
    ]
    rows = [
        [_text((safe(g.title), "")), _text((safe(g.arm), "cyan")), _text((shown.group_value(g), ""))]
        for g in report.groups
    ]
    _print_table(heads, rows, console)
    reasons = dict.fromkeys(f"{g.name}, {g.arm}: {g.reason}" for g in report.groups if g.reason)
    if reasons:
        console.print()
        _bullets([("", text) for text in reasons], console)


def _together(report: Report, console: Console) -> None:
    """Declared contrasts first; then what is only shown."""
    if report.contrasts and report.design is not None:
        console.print()
        _rule("Contrasts, as declared", console)
        for contrast in report.contrasts:
            console.print()
            console.print(
                _text((safe(contrast.verdict.upper()), "bold"), (f"  {safe(shown.contrast_title(contrast))}", ""))
            )
            _bullets([("", text) for text in shown.contrast_lines(contrast)], console)
        console.print()
        _bullets([("", text) for text in shown.design_lines(report.design)], console)
    lines = [
        *((f.benchmark, "accuracy and cost", text) for f in report.fronts for text in shown.front_lines(f)),
        *((c.benchmark, "composite", text) for c in report.composites for text in _one_score(c)),
    ]
    if lines:
        console.print()
        _rule("Side by side", console)
        several = len({benchmark for benchmark, *_ in lines}) > 1
        console.print()
        _bullets([(f"{b}, {what}" if several else what, text) for b, what, text in lines], console)


def _one_score(composite: Composite) -> Iterable[str]:
    """All of it where somebody chose the weights; else no more than who is ahead, and under how many weightings."""
    if composite.declared:
        return shown.composite_lines(composite)
    return [
        f"{composite.sentence}. Weights are a choice: --weights success=1,cost=1 makes it yours, and shows the rest."
    ]


def _notes(report: Report, cells: Sequence[Cell], console: Console) -> None:
    """What must be known beside the numbers above."""
    selector = cells[0].benchmark.selector
    texts = [note.text for note in report.notes if note.benchmark == selector]
    for names, said in shown.by_whom(cells, _about):
        texts.append(": ".join(filter(None, (", ".join(names), "; ".join(said)))))
    if texts:
        console.print()
        _bullets([("", text) for text in texts], console)


def _about(cell: Cell) -> Iterator[str]:
    """What must be known about one row; why it has no interval, too."""
    yield from shown.about(cell)
    metric = cell.metrics["pass@1"]
    if metric.value is not None and metric.low is None:
        yield f"solved: {metric.reason}"
    if not cell.arm.control:
        yield from shown.unknown_effort(cell)


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
    if any(shown.known_tries(cell) for cell in cells):
        yield "all k tries", "the chance that k tries at the same task are all solved (pass^k)."
    if any(cell.metrics["flakiness"].value is not None for cell in cells if not cell.arm.control):
        yield "repeats disagree", "the chance that two repeats of the same task come out differently (flakiness)."
    if any(cell.voids for cell in cells):
        yield "void", "infrastructure failed, not the agent: counts neither for nor against."


# ── rich, and only here ──────────────────────────────────────────────────────────────────────────────────────────────


def _configuration(cell: Cell, *, world: bool) -> Text:
    """Which arm, and under which isolation and provenance (its `world`) its numbers were made."""
    name = (safe(name_of(cell)), "" if cell.arm.control else "cyan")
    return _text(name, (f"\n{shown.place_of(cell)}", "dim")) if world else _text(name)


def _text(*parts: tuple[str, str]) -> Text:
    """Styled text with nothing in it but printable characters, and the line breaks that stand in our own parts."""
    from rich.text import Text

    text = Text()
    for part, style in parts:
        text.append("\n".join(safe(line) for line in part.split("\n")), style)
    return text


def _lines(lines: Lines, style: str) -> Text:
    if lines is None:
        return _text((UNKNOWN, "dim"))
    return _text((safe(lines[0]), style), *((f"\n{safe(line)}", "dim") for line in lines[1:]))


def _rule(title: str, console: Console) -> None:
    from rich.rule import Rule

    rule = Rule(_text((f"{safe(title)} ", "bold")), align="left", characters="─", style="dim")
    console.print(rule, width=min(console.width, PROSE))


def _print_table(heads: Sequence[Head], rows: Sequence[Sequence[Text]], console: Console) -> None:
    """A table; where the page is too narrow for its numbers, each row as a block of its own."""
    console.print()
    if _least_width(heads, rows) <= console.width:
        console.print(_table(heads, rows))
    else:
        _stacked(heads, rows, console)


def _least_width(heads: Sequence[Head], rows: Sequence[Sequence[Text]]) -> int:
    """The columns of a page that a table needs: its numbers whole, its names folded."""
    widths = [NAMED if head.name else max(map(len, head.title)) for head in heads]
    for row in rows:
        for place, (head, value) in enumerate(zip(heads, row, strict=True)):
            if not head.name:
                widths[place] = max(widths[place], *(line.cell_len for line in value.split("\n")))
    return sum(widths) + GAP * (len(widths) - 1)


def _table(heads: Sequence[Head], rows: Iterable[Sequence[Text]]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, GAP, 0, 0))
    for head in heads:
        title = _text(("\n".join(head.title), "dim"))
        if head.name:
            table.add_column(title, overflow="fold", min_width=NAMED)
        else:
            table.add_column(title, justify=head.justify, no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _stacked(heads: Sequence[Head], rows: Iterable[Sequence[Text]], console: Console) -> None:
    """The names of a row, then a line for each number, with its title; long lines are wrapped."""
    for place, row in enumerate(rows):
        if place:
            console.print()
        for head, value in zip(heads, row, strict=True):
            if head.name:
                console.print(value, overflow="fold")
                continue
            title = _text((f"  {' '.join(filter(None, head.title))}: " if any(head.title) else "  ", "dim"))
            lines = value.split("\n")
            console.print(title + lines[0], overflow="fold")
            for line in lines[1:]:
                console.print(_text(("    ", "")) + line, overflow="fold")


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
