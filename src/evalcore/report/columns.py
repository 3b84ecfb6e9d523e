"""What people are shown of a cell, column by column, and sentences about several; text and Markdown both read it.

A column shows lines of plain text, the first one prominent; None where it has nothing to show. Nothing here is styled
or escaped: that is each renderer's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal, TypeAlias

from attrs import frozen

from evalcore.report.analysis import Composite, ContrastResult, Design, Front, Worth
from evalcore.report.metrics import BUILT_IN
from evalcore.report.model import Cell, GroupValue, Report
from evalcore.report.notes import CONTROL
from evalcore.report.values import MetricValue
from evalcore.report.words import UNKNOWN, counted, dollars, percent, percent_range, plural, seconds

Lines: TypeAlias = "Sequence[str] | None"  # a cell's lines, the first one prominent; None: nothing to show
CONTROL_NAMES: Final = {"oracle": "oracle (ceiling)", "noop": "noop (floor)"}
LIVE: Final = ("live", None)  # provenances that go without saying; None: nothing has run
EXCLUDED: Final = {"infra_error": "void", "grader_error": "grader error", "ungraded": "ungraded"}
_COUNT: Final = re.compile(r"(?:partial: )?[\d,]+ ")  # how a note begins that says how many
FLIPS: Final = 3  # of either direction that a report names
ENDS_ALONE: Final = ("better", "worse", "negligible", "equivalent", "non-inferior")  # verdicts that need no more data


@frozen
class Column:
    """A column of a table: what it shows of a cell. It is left out where no cell has anything to show."""

    title: tuple[str, ...]
    show: Callable[[Cell], Lines]
    metric: str = ""  # the metric whose reason explains a missing value
    justify: Literal["left", "right"] = "right"
    style: str = ""


# ── whose numbers ────────────────────────────────────────────────────────────────────────────────────────────────────


def by_benchmark(report: Report) -> list[tuple[str, list[Cell]]]:
    """The cells of each benchmark, in the report's order."""
    selectors = dict.fromkeys(cell.benchmark.selector for cell in report.cells)
    return [(name, [cell for cell in report.cells if cell.benchmark.selector == name]) for name in selectors]


def name_of(cell: Cell) -> str:
    """The arm by its label, a control by what it is for; with the provenance, unless its trials were live."""
    arm = cell.arm.arm
    name = CONTROL_NAMES.get(arm.harness, arm.label) if cell.arm.control else arm.label
    return name if cell.provenance in LIVE else f"{name}, {cell.provenance}"


def place_of(cell: Cell) -> str:
    """Under which isolation and provenance the numbers were made."""
    place = f"isolation {cell.isolation}"
    return place if cell.provenance in LIVE else f"{place} · {cell.provenance}"


def about_dataset(cells: Sequence[Cell], repeats: int = 1) -> tuple[str, str, str]:
    """Dataset and version, size, and grader."""
    benchmark = cells[0].benchmark
    dataset = benchmark.dataset
    size = plural(benchmark.tasks, "task")
    if benchmark.clusters != benchmark.tasks:
        size += f" in {plural(benchmark.clusters, 'cluster')}"
    if repeats > 1:
        size += f" × {repeats} repeats"
    return f"{dataset.name} {dataset.version} ({dataset.date}, {dataset.status})", size, f"graded by {benchmark.grader}"


def by_whom(
    cells: Sequence[Cell], texts_of: Callable[[Cell], Iterable[str]]
) -> list[tuple[tuple[str, ...], list[str]]]:
    """Texts by whom they are about; no names for what is about all, unless it counts: that is each one's own count."""
    about: dict[str, list[str]] = {}
    for cell in cells:
        for text in texts_of(cell):
            about.setdefault(text, []).append(name_of(cell))
    grouped: dict[tuple[str, ...], list[str]] = {}
    for text, names in about.items():
        several = (*names[:-1], f"{names[-1]}, each") if len(names) > 1 and _COUNT.match(text) else tuple(names)
        whom = () if len(names) == len(cells) and several == tuple(names) else several
        grouped.setdefault(whom, []).append(text)
    return list(grouped.items())


# ── what the columns show ────────────────────────────────────────────────────────────────────────────────────────────


def rate_of(metric: MetricValue) -> list[str]:
    """A rate, and its interval."""
    if metric.value is None:
        return [UNKNOWN]
    if metric.low is None or metric.high is None:
        return [percent(metric.value), "no interval"]
    return [percent(metric.value), percent_range(metric.low, metric.high)]


def trials_of(cell: Cell) -> list[str]:
    """Graded trials of those planned, and where the others are."""
    rest = {EXCLUDED[kind]: n for kind, n in cell.excluded.items()} | {"not run": cell.not_run}
    return [f"{cell.graded:,} of {cell.planned:,}", *counted(rest)]


def ended(cell: Cell) -> Lines:
    """How the agent ended, and by which limits."""
    lines = counted({kind: n for kind, n in cell.exits.items() if kind != "limit"})
    lines += [f"{n:,} limit: {name}" for name, n in cell.limits_hit.items()]
    unnamed = cell.exits.get("limit", 0) - sum(cell.limits_hit.values())
    return [*lines, *([f"{unnamed:,} limit"] if unnamed > 0 else [])] or None


def harm_of(cell: Cell) -> Lines:
    """How many trials did harm; nothing where that is not judged."""
    return None if cell.harm is None else [f"{cell.harm:,}"]


def measured(name: str, form: Callable[[float], str]) -> Callable[[Cell], Lines]:
    """A metric by its name; nothing where it is not known."""

    def show(cell: Cell) -> Lines:
        metric = cell.metrics.get(name)
        return None if metric is None or metric.value is None else [form(metric.value)]

    return show


def known_tries(cell: Cell) -> list[int]:
    """The k for which pass^k is known, from 2 on."""
    known = (name for name, metric in cell.metrics.items() if name.startswith("pass^") and metric.value is not None)
    return [int(name.removeprefix("pass^")) for name in known]


def tries(cells: Sequence[Cell]) -> list[Column]:
    """pass^k for the largest k that every cell with any has: all rows show the same k."""
    depths = [max(ks) for cell in cells if (ks := known_tries(cell))]
    if not depths:
        return []
    k = min(depths)
    return [Column((f"all {k}", "tries"), measured(f"pass^{k}", percent))]


FLAKY: Final = Column(("repeats", "disagree"), measured("flakiness", percent), "flakiness")
EFFORT: Final = (
    Column(("tokens", "per trial"), measured("tokens", lambda x: f"{x:,.0f}"), "tokens"),
    Column(("time", "per trial"), measured("wall_s", seconds), "wall_s"),
    Column(("tool calls", "failed"), measured("tool_error_rate", percent), "tool_error_rate"),
    Column(("cost", "in all"), measured("cost_usd", dollars), "cost_usd"),
    Column(("cost", "per solve"), measured("cost_per_solve_usd", dollars), "cost_per_solve_usd"),
)
CONTROLS: Final = (
    Column(("solved",), lambda cell: rate_of(cell.metrics["pass@1"])[:1], style="bold"),
    Column(("trials", "graded"), trials_of),
    Column(("how the", "control ended"), ended, justify="left"),
)


def from_plugin(name: str) -> bool:
    """Whether a metric is of a plugin."""
    return name not in BUILT_IN and not name.startswith(("pass@", "pass^"))


# ── what must be known beside them ───────────────────────────────────────────────────────────────────────────────────


def about(cell: Cell) -> Iterator[str]:
    """Everything that must be known about one row."""
    yield from (note for note in cell.notes if note != CONTROL)
    metric = cell.metrics["pass@1"]
    if metric.bounds is not None:
        low, high = map(percent, metric.bounds)
        yield f"solved would be {low} if every ungraded trial failed, and {high} if every one passed"
    if cell.flags:
        yield f"flags: {', '.join(counted(cell.flags))}"


def unknown_effort(cell: Cell) -> list[str]:
    """Why a measure of effort has no value, one line for each reason."""
    by_reason: dict[str, list[str]] = {}
    for column in EFFORT:
        metric = cell.metrics[column.metric]
        if metric.value is None and metric.reason and cell.trials:
            by_reason.setdefault(metric.reason, []).append(" ".join(column.title))
    return [f"{' and '.join(titles)} unknown: {reason}" for reason, titles in by_reason.items()]


def group_value(group: GroupValue) -> str:
    """A group's weighted mean."""
    return UNKNOWN if group.value is None else percent(group.value)


# ── several arms ─────────────────────────────────────────────────────────────────────────────────────────────────────


def contrast_title(c: ContrastResult) -> str:
    """`constrained against plain, pass@1 on bfcl-multiple`."""
    return f"{c.a} against {c.b}, {c.metric} on {c.benchmark}"


def contrast_lines(c: ContrastResult) -> Iterator[str]:
    """What is to be said of a contrast: the sentence, what it rests on, what flipped, what would settle it."""
    yield c.sentence
    if c.effect is not None:
        held = (
            f"{plural(c.tasks, 'task')} in {plural(c.clusters, 'cluster')}, {c.trials[0]:,} and {c.trials[1]:,} trials"
        )
        dropped = f"; {plural(c.dropped, 'task')} could not be paired" if c.dropped else ""
        how = "confirmatory" if c.confirmatory else "not confirmatory"
        yield f"{how}; one of {plural(c.family, 'declared claim')}; {held}{dropped}"
    if not c.confirmatory and c.verdict != "refused" and c.reason not in c.sentence:
        yield c.reason
    for title, flips in ((f"solved more often by {c.a}", c.gained), (f"solved more often by {c.b}", c.lost)):
        if flips:
            more = f" and {len(flips) - FLIPS:,} more" if len(flips) > FLIPS else ""
            yield f"{title}: {', '.join(f.task for f in flips[:FLIPS])}{more}"
    if c.worth is not None:
        yield from _worth_lines(c, c.worth)
    if c.verdict not in ENDS_ALONE and c.settle:
        yield c.settle


def _worth_lines(c: ContrastResult, worth: Worth) -> Iterator[str]:
    """Whether it is worth its price, and for which values of a solve."""
    cost = worth.cost
    if cost.value is None:
        return
    extra = f"{'+' if cost.value > 0 else '-'}{dollars(abs(cost.value))} a trial"
    at = "" if worth.value_per_solve_usd is None else f", a solve being worth {dollars(worth.value_per_solve_usd)}"
    yield f"price: {worth.verdict} ({c.a} against {c.b}: {extra}{at}): {worth.reason}"
    bought = [r for r in worth.ranges if r.worth == "worth it"]
    for r in bought:
        if r.low > 0 or r.high is not None:
            upper = "" if r.high is None else f" and at most {dollars(r.high)}"
            yield f"price: {c.a} is worth it where a solve is worth at least {dollars(r.low)}{upper}"


def design_lines(d: Design) -> Iterator[str]:
    """What was declared, who has looked, and which other runs there are of the plan."""
    looks = f" at {', '.join(f'{x:.0%}' for x in d.looks)} of the tasks" if d.looks else ""
    yield f"{d.proves}."
    yield f"alpha {d.alpha:g} over {plural(d.claims, 'claim')}; stopping rule: {d.stopping}{looks}"
    if d.why_not:
        yield f"not kept to yet: {d.why_not}"
    yield from (stopped.sentence for stopped in d.stops)
    if d.peeks:
        times = "once" if len(d.peeks) == 1 else f"{len(d.peeks)} times"
        trials = ", ".join(f"{p.trials:,}" for p in d.peeks[:5])
        yield f"the contrasts were read {times} before the end, at {trials} graded trials: a look, which is told"
    for sibling in d.siblings:
        other = f", with {sibling.difference}" if sibling.difference else ""
        yield f"another run of this plan: {sibling.run} of {sibling.created}{other}. It is another look at the question"


def front_lines(front: Front) -> Iterator[str]:
    """Which arms no other beats on accuracy and cost."""
    if front.reason:
        yield f"accuracy and cost: {front.reason}"
        return
    on = [m for m in front.members if m.on_front and m.accuracy is not None and m.cost_usd is not None]
    named = [
        f"{m.handle} ({percent(m.accuracy)} at {dollars(m.cost_usd)})"
        for m in on
        if m.accuracy is not None and m.cost_usd is not None
    ]
    near = [m.handle for m in front.members if m.plausible and not m.on_front]
    if named:
        yield f"no arm beats these on both accuracy and cost a trial: {', '.join(named)}"
    if near:
        yield f"resampling does not rule out: {', '.join(near)}"
    for member in front.members:
        if member.cost_usd is None and member.reason:
            yield f"{member.handle} is on no front: {member.reason}"


def composite_lines(c: Composite) -> Iterator[str]:
    """One score, with its weights, its anchors and what other weights say."""
    yield f"{c.sentence}."
    weights = ", ".join(f"{d.name} {d.weight:g} ({d.worst:g} to {d.best:g})" for d in c.dimensions)
    if weights:
        yield f"weights, each scaled from worst to best: {weights}"
    for name, why in c.left_out.items():
        yield f"{name} is left out: {why}"
    for arm in c.arms:
        if arm.score is None and c.dimensions:
            yield f"{arm.handle} has no composite: {arm.reason}"
    if c.sensitivity is not None:
        alone = {n: " and ".join(c.handle(w) for w in winners) for n, winners in c.sensitivity.alone.items()}
        relative = [f"{a.handle} {a.min_max:.3f}" for a in c.arms if a.min_max is not None]
        if relative:
            yield f"by min–max of these arms, which depends on who else ran, for comparison only: {', '.join(relative)}"
        yield f"if one dimension were all that counts: {', '.join(f'{n}: {who}' for n, who in alone.items())}"
