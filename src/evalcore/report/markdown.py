"""The report as Markdown (GitHub's dialect): whole as a page, or short with folded details as a step summary.

Every text in it, ours too, goes through `escaped`: what a stamp, a task or an agent says is shown and does nothing.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from evalcore.report.model import Cell, MetricValue, Report
from evalcore.report.notes import CONTROL
from evalcore.report.text import CONTROL_NAMES, CONTROLS, EFFORT, Column
from evalcore.report.words import UNKNOWN, counted, dollars, percent, percent_range, plural, safe

SUMMARY_LIMIT: Final = 1_000_000  # bytes; GitHub refuses a step's summary above 1 MiB, and others may write to it
BREAK: Final = "<br>"
_JOINER: Final = "\N{WORD JOINER}"
_PUNCTUATION: Final = re.compile(r"[\\`*_{}\[\]|~#$!]")
_LINK: Final = re.compile(r"(?i)(?<=\w)(?=://)|(?<=www)(?=\.)|(?<=mailto)(?=:)|(?<=xmpp)(?=:)")
_AT: Final = re.compile(r"(?<!\w)@(?=\w)|@(?=[\w-]+\.)")
_LIST: Final = re.compile(r"^([-+=]|[0-9]+(?=[.)](?:\s|$)))")


def escaped(text: str) -> str:
    """`text` on one line, of which Markdown makes nothing: no markup, no HTML, no link, no mention, no table cell."""
    text = html.escape(safe(text).strip(), quote=False)
    text = _PUNCTUATION.sub(r"\\\g<0>", text)
    text = _LIST.sub(lambda m: f"{m[1]}\\" if m[1].isdigit() else f"\\{m[1]}", text)
    text = _LINK.sub(_JOINER, text)  # these are found in the text itself, where a backslash hides nothing
    return _AT.sub(f"@{_JOINER}", text)


def page(report: Report) -> str:
    """The whole report."""
    lines = [f"# Scorecard: {escaped(report.study_name)}", "", _made(report)]
    if not report.cells:
        lines += ["", "This run has no benchmark and no arm: there is nothing to report."]
    for selector, cells in _benchmarks(report):
        lines += ["", f"## {escaped(selector)}", *_benchmark(report, cells)]
    if report.groups:
        lines += ["", "## Groups", *_groups(report)]
    if report.cells:
        lines += ["", "## How to read this", "", *_legend(report)]
    return _joined(lines)


def summary(report: Report, limit: int = SUMMARY_LIMIT) -> str:
    """A short table, and the rest folded away; details that would go beyond `limit` bytes are left out, and said."""
    short = [
        Column(("benchmark",), lambda cell: [cell.benchmark.selector], justify="left"),
        Column(("configuration",), _configuration, justify="left"),
        *RESULTS,
        Column(("cost per solve",), _cost_per_solve),
    ]
    lines = [f"### Scorecard: {escaped(report.study_name)}", ""]
    lines += _cells_table(report.cells, short) if report.cells else ["This run has nothing to report."]
    lines += ["", _made(report)]
    folded = [(selector, _benchmark(report, cells)) for selector, cells in _benchmarks(report)]
    if report.groups:
        folded.append(("Groups", _groups(report)))
    if report.cells:
        folded.append(("How to read this", ["", *_legend(report)]))
    room, left_out = limit - len(_joined(lines).encode()) - 200, 0
    for title, inner in folded:
        block = ["", f"<details><summary>{html.escape(safe(title))}</summary>", *inner, "", "</details>"]
        size = len(_joined(block).encode())
        if size > room:
            left_out += 1
        else:
            room -= size
            lines += block
    if left_out:
        lines += ["", f"Left out for its size: {plural(left_out, 'section')}. `--format markdown` has everything."]
    return _joined(lines)


# ── the parts of the page ────────────────────────────────────────────────────────────────────────────────────────────


def _made(report: Report) -> str:
    repeats = plural(report.repeats, "repeat")
    return escaped(f"Run {report.run} of {report.created}, {repeats}, grading {report.grading[:12]}")


def _benchmarks(report: Report) -> list[tuple[str, list[Cell]]]:
    selectors = dict.fromkeys(cell.benchmark.selector for cell in report.cells)
    return [(name, [cell for cell in report.cells if cell.benchmark.selector == name]) for name in selectors]


def _benchmark(report: Report, cells: Sequence[Cell]) -> list[str]:
    """What was measured on one benchmark, and all that must be known beside it."""
    benchmark = cells[0].benchmark
    dataset = benchmark.dataset
    size = plural(benchmark.tasks, "task")
    if benchmark.clusters != benchmark.tasks:
        size += f" in {plural(benchmark.clusters, 'cluster')}"
    version = f"{dataset.name} {dataset.version} ({dataset.date}, {dataset.status})"
    lines = ["", escaped(f"{version}; {size}; graded by {benchmark.grader}")]
    agents = [cell for cell in cells if not cell.arm.control]
    controls = [cell for cell in cells if cell.arm.control]
    who = Column(("configuration",), _configuration, justify="left")
    if agents:
        lines += ["", *_cells_table(agents, (who, *RESULTS, *_tries(agents), *ENDS, *EFFORT))]
    if controls:
        lines += ["", "**Controls**: is the rig sound? These are no scores.", ""]
        lines += _cells_table(controls, (Column(("control",), _configuration, justify="left"), *CONTROLS))
    texts = [note.text for note in report.notes if note.benchmark == benchmark.selector]
    notes = [*map(escaped, texts), *_by_whom(cells)]
    if notes:
        lines += ["", *(f"- {note}" for note in notes)]
    return [*lines, "", "**Every number**", "", *_numbers(cells)]


def _numbers(cells: Iterable[Cell]) -> list[str]:
    """Each metric with what it takes to read it."""
    head = ("configuration", "metric", "value", "interval", "n", "what it is", "validated", "missing or limited, why")
    rows = [
        (
            _shown(_configuration(cell)),
            escaped(name),
            escaped(UNKNOWN if metric.value is None else f"{metric.value:.6g} {metric.unit}"),
            escaped(_interval_of(metric)),
            f"{metric.n:,}",
            escaped(metric.method),
            escaped(metric.validated or "no"),
            escaped(metric.reason or ""),
        )
        for cell in cells
        for name, metric in (*cell.metrics.items(), *cell.views.items())
    ]
    return _table(head, rows, right=(2, 3, 4))


def _interval_of(metric: MetricValue) -> str:
    if metric.low is None or metric.high is None or metric.level is None:
        return UNKNOWN
    return f"{metric.low:.4g} to {metric.high:.4g} ({100 * metric.level:.4g} %)"


def _groups(report: Report) -> list[str]:
    rows = [
        (
            escaped(group.title),
            escaped(group.arm),
            UNKNOWN if group.value is None else escaped(percent(group.value)),
            escaped(", ".join(f"{name} × {weight:g}" for name, weight in group.members.items())),
            escaped(group.reason or ""),
        )
        for group in report.groups
    ]
    head = ("group", "configuration", "solved (weighted mean)", "of", "missing or limited, why")
    return ["", *_table(head, rows, right=(2,))]


def _by_whom(cells: Sequence[Cell]) -> list[str]:
    """What is to be said of cells, with whom it is about unless that is all of them."""
    about: dict[str, list[str]] = {}
    for cell in cells:
        for text in _about(cell):
            about.setdefault(text, []).append(_name(cell))
    return [
        escaped(text) if len(names) == len(cells) else f"**{escaped(', '.join(names))}**: {escaped(text)}"
        for text, names in about.items()
    ]


def _about(cell: Cell) -> Iterable[str]:
    yield from (note for note in cell.notes if note != CONTROL)
    bounds = cell.metrics["pass@1"].bounds
    if bounds is not None:
        low, high = map(percent, bounds)
        yield f"solved would be {low} if every ungraded trial failed, and {high} if every one passed"
    if cell.flags:
        yield f"flags: {', '.join(counted(cell.flags))}"


def _legend(report: Report) -> list[str]:
    """For somebody who sees a scorecard for the first time, and what holds for all of it."""
    solved = (
        "solved: the share of trials that passed, or rightly declined; every task weighs the same. The interval holds "
        "the rates that these trials are compatible with. Two intervals, compared by eye, show neither a difference "
        "nor a tie."
    )
    texts = [solved]
    if any(_known_tries(cell) for cell in report.cells if not cell.arm.control):
        texts.append("all k tries: the chance that k tries at the same task are all solved (pass^k).")
    if any(cell.voids for cell in report.cells):
        texts.append("void: infrastructure failed, not the agent: counts neither for nor against.")
    texts += [note.text for note in report.notes if note.benchmark is None]
    return [f"- {escaped(text)}" for text in texts]


# ── what the columns show ────────────────────────────────────────────────────────────────────────────────────────────


def _configuration(cell: Cell) -> list[str]:
    """Which arm, and under which isolation and provenance its numbers were made."""
    place = f"isolation {cell.isolation}"
    if cell.provenance not in ("live", None):
        place += f", {cell.provenance}"
    return [_name(cell), place]


def _name(cell: Cell) -> str:
    arm = cell.arm.arm
    return CONTROL_NAMES.get(arm.harness, arm.label) if cell.arm.control else arm.label


def _solved(cell: Cell) -> list[str]:
    metric = cell.metrics["pass@1"]
    return [UNKNOWN, metric.reason or ""] if metric.value is None else [percent(metric.value)]


def _interval(cell: Cell) -> list[str] | None:
    metric = cell.metrics["pass@1"]
    if metric.value is None:
        return None
    if metric.low is None or metric.high is None or metric.level is None:
        return [metric.reason or UNKNOWN]
    return [f"{percent_range(metric.low, metric.high)} ({100 * metric.level:.4g} %)"]


def _trials(cell: Cell) -> list[str]:
    """Graded trials of those planned, and where the others are."""
    names = {"infra_error": "void", "grader_error": "grader error", "ungraded": "ungraded"}
    rest = {names[kind]: n for kind, n in cell.excluded.items()} | {"not run": cell.not_run}
    return [f"{cell.graded:,} of {cell.planned:,}", *counted(rest)]


def _cost_per_solve(cell: Cell) -> list[str] | None:
    metric = cell.metrics["cost_per_solve_usd"]
    if metric.value is None:
        return None if cell.arm.control else [UNKNOWN, metric.reason or ""]
    return [dollars(metric.value)]


def _harm(cell: Cell) -> list[str] | None:
    return None if cell.harm is None else [f"{cell.harm:,}"]


def _tries(cells: Sequence[Cell]) -> list[Column]:
    """pass^k for the largest k that every cell with any has."""
    depths = [max(ks) for cell in cells if (ks := _known_tries(cell))]
    if not depths:
        return []
    k = min(depths)
    return [Column((f"all {k} tries",), _value_of(f"pass^{k}"))]


def _known_tries(cell: Cell) -> list[int]:
    known = (name for name, metric in cell.metrics.items() if name.startswith("pass^") and metric.value is not None)
    return [int(name.removeprefix("pass^")) for name in known]


def _value_of(name: str) -> Callable[[Cell], list[str] | None]:
    def show(cell: Cell) -> list[str] | None:
        metric = cell.metrics.get(name)
        return None if metric is None or metric.value is None else [percent(metric.value)]

    return show


RESULTS: Final = (
    Column(("solved (pass@1)",), _solved),
    Column(("interval",), _interval),
    Column(("trials graded",), _trials),
)
ENDS: Final = (Column(("harm",), _harm), Column(("how the agent ended",), CONTROLS[-1].show, justify="left"))


# ── Markdown, and only here ──────────────────────────────────────────────────────────────────────────────────────────


def _cells_table(cells: Sequence[Cell], columns: Sequence[Column]) -> list[str]:
    """One row for each cell; columns that have nothing to show are left out."""
    kept = [column for column in columns if any(column.show(cell) is not None for cell in cells)]
    head = [" ".join(column.title) for column in kept]
    rows = [[_shown(column.show(cell)) for column in kept] for cell in cells]
    return _table(head, rows, right=[i for i, column in enumerate(kept) if column.justify == "right"])


def _shown(lines: Sequence[str] | None) -> str:
    return UNKNOWN if lines is None else BREAK.join(escaped(line) for line in lines if line)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int]) -> list[str]:
    """A table of cells that are Markdown already."""
    rules = ["--:" if i in right else ":--" for i in range(len(head))]
    return [f"| {' | '.join(row)} |" for row in (list(map(escaped, head)), rules, *rows)]


def _joined(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"
