"""The tables of the page: every number with what it takes to read it, and every task trial by trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from attrs import frozen

from evalcore.report.analysis import Composite
from evalcore.report.detail import TaskRow
from evalcore.report.model import Cell, MetricValue
from evalcore.report.words import UNKNOWN, counted, percent, percent_range
from evalcore_report.charts import Named
from evalcore_report.markup import Html, Markup
from evalcore_report.trials import WORDS
from evalcore_report.words import sentence, shown, worlds


@frozen
class Links:
    """Where transcripts are: of an attempt by its id, and, where there are too many for one page, of a task and arm."""

    attempt: Callable[[str], str | None]
    cell: Callable[[Cell, str], str] | None = None


@frozen
class Column:
    """A metric's column."""

    name: str
    title: str


EFFORT = (
    Column("cost_per_solve_usd", "cost per solve"),
    Column("cost_usd", "cost in all"),
    Column("tokens", "tokens a trial"),
    Column("wall_s_p50", "time, median"),
    Column("wall_s_p95", "time, 95 %"),
    Column("tool_error_rate", "tool errors"),
)
_OWN = frozenset({
    "pass@1", "wall_s", "wall_s_p99", "cost_per_trial_usd", "tool_calls", "harm_rate", "flakiness",
    *(column.name for column in EFFORT),
})  # fmt: skip


def numbers(h: Html, named: Sequence[Named], identity: str) -> Markup:
    """Every arm's numbers, with intervals, isolation and provenance in the row."""
    columns = [c for c in EFFORT if any(_has(n.cell, c.name) for n in named)]
    tries = sorted(
        {int(m[5:]) for n in named for m, v in n.cell.metrics.items() if m.startswith("pass^") and v.value is not None}
    )
    columns = [*(Column(f"pass^{k}", f"all {k} tries") for k in tries[-2:]), *columns, *_others(named)]
    harm = any(n.cell.harm is not None for n in named)
    heads = [
        "configuration",
        "solved",
        "trials",
        *(c.title for c in columns),
        *(["harm"] if harm else []),
        "how it ended",
    ]
    head = h(
        "tr",
        [
            h("th", title, scope="col", class_=None if i in (0, len(heads) - 1) else "n")
            for i, title in enumerate(heads)
        ],
    )
    rows = [_numbers_row(h, n, columns, harm) for n in named]
    caption = h(
        "caption", "Every number with its interval; a dash is a number that is not known, and its reason shows on it."
    )
    return _scroll(
        h,
        h("table", caption, h("thead", head), h("tbody", rows), data_sort=True, id=identity),
        f"numbers of {named[0].cell.benchmark.selector}",
    )


def _others(named: Sequence[Named]) -> list[Column]:
    """What plugins measured, and what the core has besides."""
    names = dict.fromkeys(m for n in named for m, v in n.cell.metrics.items() if v.value is not None)
    return [Column(name, name) for name in names if name not in _OWN and not name.startswith(("pass^", "pass@"))]


def _has(cell: Cell, name: str) -> bool:
    metric = cell.metrics.get(name)
    return metric is not None and (metric.value is not None or not cell.arm.control)


def _numbers_row(h: Html, n: Named, columns: Sequence[Column], harm: bool) -> Markup:
    cell = n.cell
    label = cell.arm.arm.label
    full = h("small", label) if label != n.name and not cell.arm.control else None
    name = h("th", n.name, full, h("small", worlds(cell)), scope="row")
    cells = [name, _metric(h, cell.metrics["pass@1"]), _trials(h, cell)]
    cells += [_metric(h, cell.metrics.get(column.name)) for column in columns]
    if harm:
        cells.append(h("td", UNKNOWN if cell.harm is None else f"{cell.harm:,}", class_="n"))
    ends = counted({str(k): v for k, v in cell.exits.items()})
    limits = [f"{count:,} by {name}" for name, count in cell.limits_hit.items()]
    cells.append(h("td", ", ".join(ends) or UNKNOWN, h("small", ", ".join(limits)) if limits else None))
    return h("tr", cells)


def _metric(h: Html, metric: MetricValue | None) -> Markup:
    if metric is None or metric.value is None:
        return h("td", UNKNOWN, class_="n", data_v="", title=metric.reason if metric else None)
    interval = None
    if metric.low is not None and metric.high is not None:
        ends = percent_range(metric.low, metric.high) if not metric.unit else _ends(metric)
        interval = h("small", ends)
    method = metric.method + (f"; {metric.reason}" if metric.reason else "")
    return h("td", shown(metric), interval, class_="n", data_v=f"{metric.value:.6g}", title=method)


def _ends(metric: MetricValue) -> str:
    from attrs import evolve

    low, high = (
        shown(evolve(metric, value=end, low=None, high=None, reason="an end")) for end in (metric.low, metric.high)
    )
    return f"{low} to {high}"


def _trials(h: Html, cell: Cell) -> Markup:
    names = {"infra_error": "void", "grader_error": "grader error", "ungraded": "ungraded"}
    rest = counted({names[kind]: n for kind, n in cell.excluded.items()} | {"not run": cell.not_run})
    more = h("small", ", ".join(rest)) if rest else None
    return h("td", f"{cell.graded:,} of {cell.planned:,}", more, class_="n", data_v=cell.graded)


def _scroll(h: Html, table: Markup, label: str, *, tall: bool = False) -> Markup:
    """A table in a box that scrolls by itself, also from the keyboard."""
    return h("div", table, class_="scroll tall" if tall else "scroll", role="region", aria_label=label, tabindex=0)


def composite(h: Html, score: Composite, identity: str) -> Markup | None:
    """One score from several dimensions, never without what other weights would say."""
    if not any(arm.score is not None for arm in score.arms):
        return None
    dimensions = [d.name for d in score.dimensions]
    heads = ["configuration", "score", "first under", *dimensions]
    head = h("tr", [h("th", title, scope="col", class_="n" if i else None) for i, title in enumerate(heads)])
    rows = [
        h(
            "tr",
            h("th", arm.handle, scope="row"),
            _number(h, arm.score, "{:.3f}", arm.reason),
            h(
                "td",
                UNKNOWN if arm.wins is None else f"{percent(arm.wins)} of all weights",
                class_="n",
                data_v="" if arm.wins is None else f"{arm.wins:.6g}",
            ),
            [_number(h, arm.scaled.get(name), "{:.3f}", score.left_out.get(name)) for name in dimensions],
        )
        for arm in score.arms
    ]
    weights = ", ".join(f"{d.name} {d.weight:g}" for d in score.dimensions)
    whose = "declared" if score.declared else "the default"
    caption = h("caption", f"Each dimension scaled from 0 to 1 by fixed anchors. Weights ({whose}): {weights}.")
    table = h("table", caption, h("thead", head), h("tbody", rows), data_sort=True, id=identity)
    title = h("h3", "One score from several measures")
    return h.join(
        [title, h("p", sentence(score.sentence), class_="quiet"), _scroll(h, table, f"composite of {score.benchmark}")]
    )


def _number(h: Html, value: float | None, form: str, reason: str | None) -> Markup:
    if value is None:
        return h("td", UNKNOWN, class_="n", data_v="", title=reason)
    return h("td", form.format(value), class_="n", data_v=f"{value:.6g}")


# ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────

KINDS = {
    "differ": "arms differ",
    "unstable": "repeats disagree",
    "never": "never solved",
    "always": "always solved",
    "harm": "harm",
    "lost": "not counted",
}


def tasks(h: Html, named: Sequence[Named], links: Links, identity: str) -> Markup | None:
    """One row a task, one column an arm: solved tries of those made. Filters by name and by what is worth a look."""
    by_task: dict[str, dict[int, TaskRow]] = {}
    for i, n in enumerate(named):
        for row in n.cell.detail.tasks:
            by_task.setdefault(row.task, {})[i] = row
    if not by_task:
        return None
    clustered = any(row.cluster != row.task for rows in by_task.values() for row in rows.values())
    heads = ["task", *(["cluster"] if clustered else []), *(n.name for n in named)]
    head = h("tr", [h("th", title, scope="col") for title in heads])
    kinds = {task: list(_kinds(found, len(named))) for task, found in by_task.items()}
    rows = [_task_row(h, task, found, named, clustered, links, kinds[task]) for task, found in by_task.items()]
    caption = h("caption", "Solved tries of those that count, by task. A link shows what happened in a trial.")
    table = h("table", caption, h("thead", head), h("tbody", rows), data_sort=True, id=identity)
    present = {kind for some in kinds.values() for kind in some}
    return h.join(
        [_controls(h, identity, present), _scroll(h, table, f"tasks of {named[0].cell.benchmark.selector}", tall=True)]
    )


def _controls(h: Html, identity: str, present: set[str]) -> Markup:
    """What filters the table; a page without scripts shows all of it, and no controls."""
    options = [h("option", "all tasks", value="")]
    options += [h("option", words, value=kind) for kind, words in KINDS.items() if kind in present]
    find = h("label", "Find ", h("input", type="search", placeholder="part of a task's name"))
    show = h("label", "Show ", h("select", options))
    count = h("output", aria_live="polite", class_="small quiet")
    return h("div", find, show, count, class_="controls", data_for=identity, hidden=True)


def _task_row(
    h: Html, task: str, found: dict[int, TaskRow], named: Sequence[Named], clustered: bool, links: Links,
    kinds: Sequence[str],
) -> Markup:  # fmt: skip
    cells = [h("th", task, scope="row")]
    if clustered:
        cells.append(h("td", next(iter(found.values())).cluster))
    cells += [_task_cell(h, n.cell, found.get(i), links) for i, n in enumerate(named)]
    return h("tr", cells, data_kinds=" ".join(kinds))


def _kinds(found: dict[int, TaskRow], arms: int) -> Iterator[str]:
    """What makes a task worth a look."""
    counts = [(graded, solved) for row in found.values() for graded, solved in (row.counts,) if graded]
    shares = {solved / graded for graded, solved in counts}
    if len(shares) > 1 and len(counts) > 1:
        yield "differ"
    if any(row.flaky for row in found.values()):
        yield "unstable"
    if shares == {0.0}:
        yield "never"
    if shares == {1.0} and len(found) == arms:
        yield "always"
    if any(t.harm for row in found.values() for t in row.trials):
        yield "harm"
    if any(not t.counted for row in found.values() for t in row.trials):
        yield "lost"


def _task_cell(h: Html, cell: Cell, row: TaskRow | None, links: Links) -> Markup:
    if row is None or not row.trials:
        return h("td", "not run", class_="none", data_v="")
    graded, solved = row.counts
    lost = len(row.trials) - graded
    text = f"{solved}/{graded}" if graded else "no result"
    kind = "none" if not graded else "all" if solved == graded else "nil" if not solved else "mix"
    share = f"{solved / graded:.4f}" if graded else ""
    marks = [_mark(h, t.attempt, t.outcome, t.harm, links) for t in row.trials]
    more = h("small", h.join(m for m in marks if m))
    lost_note = h("small", f"{lost} not counted") if lost and graded else None
    shown = h("a", text, href=links.cell(cell, row.task)) if links.cell else text
    return h("td", shown, more if any(marks) else None, lost_note, class_=kind, data_v=share)


def _mark(h: Html, attempt: str, outcome: str, harm: bool | None, links: Links) -> Markup | None:
    """A link to one trial."""
    where = links.attempt(attempt)
    if where is None:
        return None
    word = WORDS.get(outcome, outcome) + (", harm" if harm else "")
    return h.join([h("a", word, href=where), " "])
