"""The page of a run: the sentence first, then what it rests on. The file and the live view are the same page."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from evalcore.report.model import Cell, Report
from evalcore.report.words import UNKNOWN, percent, plural
from evalcore_report import figures, hero, tables
from evalcore_report.charts import Named
from evalcore_report.document import document
from evalcore_report.markup import Child, Html, Markup
from evalcore_report.tables import Links
from evalcore_report.words import sentence, short_names, size, whole_percent

READING = (
    "solved: the share of trials that passed, or rightly declined an unanswerable task. Every task weighs the same.",
    "interval: the rates that fit what was seen. Two intervals compared by eye show neither a difference nor a tie.",
    "all k tries: the chance that k tries at the same task are all solved (pass^k).",
    "not counted: infrastructure or a grader failed, not the agent; these trials are for nobody and against nobody.",
    "isolation: what stood between the agent and the rest of the machine. provenance: whether trials were live.",
)


@frozen
class Shown:
    """What surrounds the report on its page: links to trials, the transcripts of a file, the live view's own parts."""

    links: Links
    transcripts: Markup | None = None
    nav: Child = None
    live: str | None = None
    status: str = ""
    withheld: Sequence[str] = ()


def page(h: Html, report: Report, shown: Shown) -> bytes:
    """The document."""
    sections = list(_sections(h, report, shown))
    toc = [h("li", h("a", title, href=f"#{name}")) for name, title, _ in sections if title]
    parts = [_part(h, name, content) for name, _, content in sections]
    theme = h("button", "Colours: auto", type="button", id="theme", hidden=True)
    about = h("span", f"study {report.study_name} · run {report.run} · {report.created[:10]}")
    running = h("span", shown.status, class_="live") if shown.status else ""
    status = h("span", running, id="status", data_part=shown.status or "ended")
    head = h(
        "header", h("strong", "evalcore"), shown.nav, about, status, h("span", class_="spacer"), theme, class_="top"
    )
    nav = h("nav", h("ul", toc, class_="toc"), aria_label="on this page")
    main = h("main", parts[0], nav, parts[1:], id="main", tabindex=-1)
    return document(h, f"{report.study_name}: {report.run}", head, main, _footer(h, report), live=shown.live)


def _part(h: Html, name: str, content: Markup) -> Markup:
    """A section that can be brought up to date alone: it carries a digest of what it holds."""
    mark = hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()[:16]
    return h("section", content, id=name, data_part=mark)


def _sections(h: Html, report: Report, shown: Shown) -> Iterator[tuple[str, str, Markup]]:
    """(anchor, title in the list of contents, content) of each section."""
    selectors = list(dict.fromkeys(cell.benchmark.selector for cell in report.cells))
    by_benchmark = {s: _named(h, [c for c in report.cells if c.benchmark.selector == s], report) for s in selectors}
    yield "verdict", "", _hero(h, report, by_benchmark, shown)
    compared = figures.contrasts(h, report.contrasts)
    if compared is not None:
        yield "comparisons", "Comparisons", h.join([h("h2", "Comparisons"), _design(h, report), compared])
    for number, (selector, named) in enumerate(by_benchmark.items()):
        yield (
            f"b{number}",
            selector,
            _benchmark(h, report, selector, named, shown.links, number, alone=len(selectors) == 1),
        )
    if report.groups:
        yield "groups", "Groups", _groups(h, report)
    if shown.transcripts is not None:
        yield "transcripts", "Transcripts", shown.transcripts
    yield "reading", "How to read this", _reading(h, report)


def _named(h: Html, cells: Sequence[Cell], report: Report) -> list[Named]:
    """Each cell with a name, and the colour that its arm has everywhere."""
    arms = list(dict.fromkeys(c.arm.arm.digest for c in report.cells if not c.arm.control))
    numbers = {digest: i for i, digest in enumerate(arms)}
    names = short_names(cells, h.clean, handles=bool(report.contrasts))
    return [Named(c, name, numbers.get(c.arm.arm.digest, 7)) for c, name in zip(cells, names, strict=True)]


# ── the first screen ─────────────────────────────────────────────────────────────────────────────────────────────────


def _hero(h: Html, report: Report, by_benchmark: Mapping[str, Sequence[Named]], shown: Shown) -> Markup:
    title, leads = hero.headline(report)
    parts = [h("h1", title), *(h("p", h.prose(lead), class_="lead") for lead in leads)]
    if shown.withheld:
        parts.append(h("p", f"Published copy. {' '.join(shown.withheld)}", class_="quiet"))
    if len(by_benchmark) == 1:
        (named,) = by_benchmark.values()
        agents = [n for n in named if not n.cell.arm.control]
        parts.append(hero.arms(h, agents or named))
    elif by_benchmark:
        parts.append(_overview(h, by_benchmark))
    return h.join(parts)


def _overview(h: Html, by_benchmark: Mapping[str, Sequence[Named]]) -> Markup:
    """Benchmarks by arms."""
    agents = any(not n.cell.arm.control for named in by_benchmark.values() for n in named)
    digests: dict[str, str] = {}
    for named in by_benchmark.values():
        for n in named:
            if not (agents and n.cell.arm.control):
                digests.setdefault(n.cell.arm.arm.digest, n.name)
    head = h(
        "tr", h("th", "benchmark", scope="col"), [h("th", name, scope="col", class_="n") for name in digests.values()]
    )
    rows = []
    for number, (selector, named) in enumerate(by_benchmark.items()):
        cells = [h("th", h("a", selector, href=f"#b{number}"), scope="row")]
        cells += [_overview_cell(h, [n for n in named if n.cell.arm.arm.digest == digest]) for digest in digests]
        rows.append(h("tr", cells))
    caption = h("caption", "Solved, with the rates that fit what was seen. Benchmarks are never pooled.")
    table = h("table", caption, h("thead", head), h("tbody", rows), data_sort=True, id="overview")
    return h("div", table, class_="scroll", role="region", aria_label="benchmarks by configuration", tabindex=0)


def _overview_cell(h: Html, found: Sequence[Named]) -> Markup:
    if not found:
        return h("td", UNKNOWN, class_="n", data_v="")
    lines: list[Child] = []
    for n in found:
        metric = n.cell.metrics["pass@1"]
        lines.append(h("div", UNKNOWN if metric.value is None else percent(metric.value), title=metric.reason))
        if metric.low is not None and metric.high is not None:
            lines.append(h("small", f"{whole_percent(metric.low)} to {whole_percent(metric.high)}"))
        lines.append(h("small", f"isolation {n.cell.isolation}, {n.cell.provenance or 'not run'}"))
    value = found[0].cell.metrics["pass@1"].value
    return h("td", lines, class_="n", data_v="" if value is None else f"{value:.6g}")


# ── below it ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _benchmark(
    h: Html, report: Report, selector: str, named: Sequence[Named], links: Links, number: int, *, alone: bool
) -> Markup:
    """Everything about one benchmark."""
    cells = [n.cell for n in named]
    agents = [n for n in named if not n.cell.arm.control]
    dataset = cells[0].benchmark.dataset
    about = f"{dataset.name} {dataset.version} ({dataset.date}, {dataset.status}) · {size(cells, report.repeats)}"
    parts: list[Child] = [
        h("h2", selector),
        h("p", f"{about} · graded by {cells[0].benchmark.grader}", class_="quiet small"),
    ]
    if not alone:
        parts.append(hero.arms(h, agents or named))
    front = next((f for f in report.fronts if f.benchmark == selector), None)
    parts.append(figures.figures(h, agents or named, front))
    parts.append(tables.numbers(h, named, f"numbers-{number}"))
    score = next((c for c in report.composites if c.benchmark == selector), None)
    if score is not None:
        parts.append(tables.composite(h, score, f"composite-{number}"))
    found = tables.tasks(h, named, links, f"tasks-{number}")
    if found is not None:
        parts += [h("h3", "Task by task"), found]
    notes = [*(note.text for note in report.notes if note.benchmark == selector), *_cell_notes(named)]
    if notes:
        parts.append(h("ul", [h("li", h.prose(note)) for note in notes], class_="notes"))
    return h.join(parts)


def _cell_notes(named: Sequence[Named]) -> Iterator[str]:
    """What has to be known about single arms; what holds for several of them is said once."""
    about: dict[str, list[str]] = {}
    for n in named:
        for note in n.cell.notes:
            about.setdefault(note, []).append(n.name)
    for note, names in about.items():
        yield note if len(names) == len(named) > 1 else f"{', '.join(names)}: {note}"


def _design(h: Html, report: Report) -> Markup | None:
    """What was declared before the first trial."""
    design = report.design
    if design is None:
        return None
    kept = "The plan was kept to." if design.kept else f"Not as planned, or not yet: {design.why_not or 'unknown why'}."
    lines = [
        sentence(design.proves),
        f"{kept} {plural(design.claims, 'claim')}, alpha {design.alpha:g}, stopping rule: {design.stopping}.",
    ]
    if design.peeks:
        lines.append(f"{plural(len(design.peeks), 'report')} looked at the numbers while the study ran.")
    if design.siblings:
        lines.append(f"The same plan was run before or besides: {', '.join(s.run for s in design.siblings)}.")
    return h.join(h("p", line, class_="quiet") for line in lines if line)


def _groups(h: Html, report: Report) -> Markup:
    rows = [
        h("tr", h("th", g.title, scope="row"), h("td", g.arm), h("td", UNKNOWN if g.value is None else percent(g.value),
          title=g.reason, class_="n", data_v="" if g.value is None else f"{g.value:.6g}"))
        for g in report.groups
    ]  # fmt: skip
    heads = (
        h("th", "group", scope="col"),
        h("th", "configuration", scope="col"),
        h("th", "solved", scope="col", class_="n"),
    )
    caption = h("caption", "Weighted means over benchmarks, by the group's own weights.")
    table = h("table", caption, h("thead", h("tr", heads)), h("tbody", rows), data_sort=True, id="groups-table")
    return h.join([h("h2", "Groups"), h("div", table, class_="scroll", role="region", aria_label="groups", tabindex=0)])


def _reading(h: Html, report: Report) -> Markup:
    notes = [*READING, *(note.text for note in report.notes if note.benchmark is None)]
    return h.join([h("h2", "How to read this"), h("ul", [h("li", h.prose(note)) for note in notes], class_="notes")])


def _footer(h: Html, report: Report) -> Markup:
    """What this page was made from."""
    digests = f"study {report.study_digest[:16]} · grading {report.grading[:16]}"
    return h("footer", h("p", f"Made by evalcore from run {report.run} ({report.created}). {digests}."))
