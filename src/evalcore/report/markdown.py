"""The report as Markdown (GitHub's dialect): whole as a page, or short with folded details as a step summary.

Every text in it, ours too, goes through `escaped`: what a stamp, a task or an agent says is shown and does nothing.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Final

from evalcore.report import columns as shown
from evalcore.report.columns import CONTROLS, EFFORT, FLAKY, Column
from evalcore.report.model import Cell, MetricValue, Report
from evalcore.report.words import UNKNOWN, dollars, percent, percent_range, plural, safe

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
    for selector, cells in shown.by_benchmark(report):
        lines += ["", f"## {escaped(selector)}", *_benchmark(report, cells)]
    if report.groups:
        lines += ["", "## Groups", *_groups(report)]
    if report.contrasts:
        lines += ["", "## Contrasts, as declared", *_contrasts(report)]
    if report.fronts or report.composites:
        lines += ["", "## Side by side", *_side_by_side(report)]
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
    lines += (
        ["", *(f"- **{escaped(c.verdict)}**: {escaped(c.sentence)}" for c in report.contrasts)]
        if report.contrasts
        else []
    )
    folded = [(selector, _benchmark(report, cells)) for selector, cells in shown.by_benchmark(report)]
    if report.groups:
        folded.append(("Groups", _groups(report)))
    if report.contrasts:
        folded.append(("Contrasts, as declared", _contrasts(report)))
    if report.fronts or report.composites:
        folded.append(("Side by side", _side_by_side(report)))
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


def _benchmark(report: Report, cells: Sequence[Cell]) -> list[str]:
    """What was measured on one benchmark, and all that must be known beside it."""
    benchmark = cells[0].benchmark
    lines = ["", escaped("; ".join(shown.about_dataset(cells)))]
    agents = [cell for cell in cells if not cell.arm.control]
    controls = [cell for cell in cells if cell.arm.control]
    who = Column(("configuration",), _configuration, justify="left")
    if agents:
        lines += ["", *_cells_table(agents, (who, *RESULTS, *shown.tries(agents), FLAKY, *ENDS, *EFFORT))]
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
            escaped(shown.group_value(group)),
            escaped(", ".join(f"{name} × {weight:g}" for name, weight in group.members.items())),
            escaped(group.reason or ""),
        )
        for group in report.groups
    ]
    head = ("group", "configuration", "solved (weighted mean)", "of", "missing or limited, why")
    return ["", *_table(head, rows, right=(2,))]


def _contrasts(report: Report) -> list[str]:
    """Each declared contrast, and what its declaration is worth."""
    lines: list[str] = []
    for contrast in report.contrasts:
        title = f"**{escaped(contrast.verdict.upper())}** {escaped(shown.contrast_title(contrast))}"
        lines += ["", title, "", *(f"- {escaped(text)}" for text in shown.contrast_lines(contrast))]
    if report.design is not None:
        lines += ["", *(f"- {escaped(text)}" for text in shown.design_lines(report.design))]
    return lines


def _side_by_side(report: Report) -> list[str]:
    """Accuracy and cost, and the composite of every arm, never without what other weights say."""
    lines: list[str] = []
    for front in report.fronts:
        lines += ["", escaped(f"Accuracy and cost, {front.benchmark}"), ""]
        lines += [f"- {escaped(text)}" for text in shown.front_lines(front)]
    for one in report.composites:
        lines += ["", escaped(f"Composite, {one.benchmark}"), ""]
        lines += [f"- {escaped(text)}" for text in shown.composite_lines(one)]
        head = ("configuration", "composite", "wins under", "by min–max of these arms")
        rows = [
            (
                escaped(arm.label),
                UNKNOWN if arm.score is None else f"{arm.score:.3f}",
                UNKNOWN if arm.wins is None else escaped(f"{percent(arm.wins)} of weightings"),
                UNKNOWN if arm.min_max is None else f"{arm.min_max:.3f}",
            )
            for arm in one.arms
        ]
        lines += ["", *_table(head, rows, right=(1, 2, 3))]
    return lines


def _by_whom(cells: Sequence[Cell]) -> list[str]:
    """What is to be said of cells, with whom it is about unless that is all of them."""
    return [
        f"**{escaped(', '.join(names))}**: {escaped(text)}" if names else escaped(text)
        for names, texts in shown.by_whom(cells, shown.about)
        for text in texts
    ]


def _legend(report: Report) -> list[str]:
    """For somebody who sees a scorecard for the first time, and what holds for all of it."""
    solved = (
        "solved: the share of trials that passed, or rightly declined; every task weighs the same. The interval holds "
        "the rates that these trials are compatible with. Two intervals, compared by eye, show neither a difference "
        "nor a tie."
    )
    texts = [solved]
    if any(shown.known_tries(cell) for cell in report.cells if not cell.arm.control):
        texts.append("all k tries: the chance that k tries at the same task are all solved (pass^k).")
    if any(cell.metrics["flakiness"].value is not None for cell in report.cells if not cell.arm.control):
        texts.append("repeats disagree: the chance that two repeats of the same task come out differently (flakiness).")
    if any(cell.voids for cell in report.cells):
        texts.append("void: infrastructure failed, not the agent: counts neither for nor against.")
    texts += [note.text for note in report.notes if note.benchmark is None]
    return [f"- {escaped(text)}" for text in texts]


# ── what the columns show ────────────────────────────────────────────────────────────────────────────────────────────


def _configuration(cell: Cell) -> list[str]:
    """Which arm, and under which isolation and provenance its numbers were made."""
    return [shown.name_of(cell), shown.place_of(cell)]


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


def _cost_per_solve(cell: Cell) -> list[str] | None:
    metric = cell.metrics["cost_per_solve_usd"]
    if metric.value is None:
        return None if cell.arm.control else [UNKNOWN, metric.reason or ""]
    return [dollars(metric.value)]


RESULTS: Final = (
    Column(("solved (pass@1)",), _solved),
    Column(("interval",), _interval),
    Column(("trials graded",), shown.trials_of),
)
ENDS: Final = (Column(("harm",), shown.harm_of), Column(("how the agent ended",), CONTROLS[-1].show, justify="left"))


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
