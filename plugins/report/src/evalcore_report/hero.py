"""The first screen: one sentence that says what came out, how sure it is, and a bar for each arm."""

from __future__ import annotations

from collections.abc import Sequence

from evalcore.report.analysis import ContrastResult
from evalcore.report.model import Cell, Report
from evalcore.report.words import plural
from evalcore_report.charts import Named
from evalcore_report.draw import SERIES
from evalcore_report.markup import Html, Markup
from evalcore_report.words import listed, name_of, sentence, shown, whole_percent, whole_range, worlds

# ── sentences ────────────────────────────────────────────────────────────────────────────────────────────────────────


def headline(report: Report) -> tuple[str, list[str]]:
    """What came out, in one sentence, and what a reader has to know with it."""
    agents = [cell for cell in report.cells if not cell.arm.control]
    graded = [cell for cell in agents if cell.metrics["pass@1"].value is not None]
    if not agents:
        return _controls(report)
    if not graded:
        return "Nothing has been graded yet.", [_progress(agents)]
    first = next((c for c in report.contrasts if c.effect is not None and c.metric == "pass@1"), None)
    if first is not None:
        title, leads = _contrast(first, len(report.contrasts) - 1)
    elif len(graded) == 1:
        title, leads = _alone(graded[0])
    elif len({cell.benchmark.selector for cell in graded}) == 1:
        title, leads = _ranked(graded)
    else:
        title, leads = _several(graded)
    if any(cell.not_run for cell in agents):
        leads.append(_progress(agents))
    return title, leads


def _controls(report: Report) -> tuple[str, list[str]]:
    """Only oracle and noop."""
    if not any(cell.trials for cell in report.cells):
        return "Nothing has run yet.", []
    means = "The oracle plays each task's known solution, noop does nothing: together they show that the rig is sound."
    sound = all(cell.metrics["pass@1"].value == 1.0 for cell in report.cells if cell.arm.arm.harness == "oracle")
    found = "The oracle solved every task." if sound else "The oracle did not solve every task: look at the failures."
    return "No agent was measured: only the controls ran.", [f"{means} {found}"]


def _progress(cells: Sequence[Cell]) -> str:
    done, planned = sum(cell.trials for cell in cells), sum(cell.planned for cell in cells)
    return f"Partial: {done:,} of {plural(planned, 'planned trial')} have run, and the numbers can still move."


def _alone(cell: Cell) -> tuple[str, list[str]]:
    metric = cell.metrics["pass@1"]
    assert metric.value is not None
    title = f"{name_of(cell)} solved {whole_percent(metric.value)} of {cell.benchmark.selector}."
    return title, [_how_sure(cell)]


def _how_sure(cell: Cell) -> str:
    metric = cell.metrics["pass@1"]
    trials = plural(cell.graded, "trial")
    if metric.low is None or metric.high is None or metric.level is None:
        return f"That is what {trials} showed; there is no interval: {metric.reason}."
    fits = whole_range(metric.low, metric.high)
    return f"After {trials}, every rate from {fits} fits what was seen ({100 * metric.level:.4g} % interval)."


def _ranked(cells: Sequence[Cell]) -> tuple[str, list[str]]:
    """Several arms, one benchmark, and nothing declared about them."""
    first, second = sorted(cells, key=_rate, reverse=True)[:2]
    benchmark = first.benchmark.selector
    if _rate(first) == _rate(second):
        names = listed(name_of(c) for c in cells if _rate(c) == _rate(first))
        title = f"{names} solved the same share of {benchmark}: {whole_percent(_rate(first))}."
    else:
        title = f"{name_of(first)} solved the most of {benchmark}: {whole_percent(_rate(first))}."
    gap = f"The next is {name_of(second)} with {whole_percent(_rate(second))}. " if _rate(first) > _rate(second) else ""
    return title, [gap + UNDECLARED]


UNDECLARED = (
    "No comparison was declared before this run, so an order seen here is a lead to follow, and no finding: "
    "`evalcore compare` says what these trials can hold."
)


def _several(cells: Sequence[Cell]) -> tuple[str, list[str]]:
    """Several benchmarks, and nothing declared."""
    arms = list(dict.fromkeys(name_of(cell) for cell in cells))
    benchmarks = list(dict.fromkeys(cell.benchmark.selector for cell in cells))
    if len(arms) == 1:
        low, high = min(cells, key=_rate), max(cells, key=_rate)
        title = f"{arms[0]} on {plural(len(benchmarks), 'benchmark')}: from {whole_percent(_rate(low))} solved "
        return title + f"({low.benchmark.selector}) to {whole_percent(_rate(high))} ({high.benchmark.selector}).", []
    firsts: dict[str, int] = {}
    for benchmark in benchmarks:
        there = [cell for cell in cells if cell.benchmark.selector == benchmark]
        for cell in there:
            if _rate(cell) == max(map(_rate, there)):
                firsts[name_of(cell)] = firsts.get(name_of(cell), 0) + 1
    best = max(firsts, key=lambda name: firsts[name])
    title = f"{plural(len(arms), 'configuration')} on {plural(len(benchmarks), 'benchmark')}: "
    return f"{title}{best} is first, alone or with others, on {firsts[best]}.", [UNDECLARED]


def _rate(cell: Cell) -> float:
    value = cell.metrics["pass@1"].value
    return -1.0 if value is None else value


def _contrast(c: ContrastResult, others: int) -> tuple[str, list[str]]:
    """The first declared contrast, as somebody with no statistics would say it."""
    a, b = c.a, c.b
    one, two = c.values
    rates = "" if one is None or two is None else f" ({whole_percent(one)} against {whole_percent(two)} solved)"
    margin = "" if c.margin is None else f"{100 * c.margin:g} points"
    sentences = {
        "better": f"{a} solves more of {c.benchmark} than {b}{rates}.",
        "worse": f"{a} solves less of {c.benchmark} than {b}{rates}.",
        "negligible": f"{a} and {b} differ on {c.benchmark}, by less than the {margin} that would matter{rates}.",
        "equivalent": f"{a} and {b} solve equally much of {c.benchmark}, to within {margin}{rates}.",
        "non-inferior": f"{a} is not worse than {b} on {c.benchmark} by {margin} or more{rates}.",
        "candidate": f"{a} and {b} may differ on {c.benchmark}: a lead, and no finding yet{rates}.",
        "inconclusive": f"These trials cannot say whether {a} or {b} is better on {c.benchmark}{rates}.",
        "refused": f"{a} and {b} cannot be compared on {c.benchmark}.",
    }
    leads = [_gap(c)]
    if c.settle and c.verdict in ("inconclusive", "candidate"):
        leads.append(c.settle)
    if others > 0:
        leads.append(f"{plural(others, 'further comparison')} below.")
    return sentences.get(c.verdict, c.sentence), leads


def _gap(c: ContrastResult) -> str:
    """How large the difference is, and what may be made of it, without a word of statistics."""
    if c.verdict == "refused" or c.effect is None:
        return sentence(c.reason)
    seen = f"The gap seen is {_points(c.effect)} points"
    if c.low is None or c.high is None:
        return f"{seen}."
    fits = f"{seen}, and everything from {_points(c.low)} to {_points(c.high)} fits the trials"
    meaning = {
        "better": "no difference does not. The comparison was declared before the first trial.",
        "worse": "no difference does not. The comparison was declared before the first trial.",
        "inconclusive": "so it could be real, and it could be none."
        if c.low <= 0 <= c.high
        else "but chance alone does as much too often for a verdict.",
        "candidate": "but it was not declared before the first trial: test it in a study of its own.",
    }
    return f"{fits}: {meaning[c.verdict]}" if c.verdict in meaning else f"{fits}."


def _points(value: float) -> str:
    return f"{100 * value:+.0f}".replace("-", "\N{MINUS SIGN}")


# ── a bar for each arm ───────────────────────────────────────────────────────────────────────────────────────────────


def arms(h: Html, named: Sequence[Named]) -> Markup:
    """One row an arm: its name, what it solved, and the interval drawn."""
    depths = [max(ks) for n in named if (ks := [p.k for p in n.cell.detail.curve if p.pass_hat.value is not None])]
    tries = min(depths, default=1)  # the same for all, so that the shares can be read side by side
    return h("ul", [_arm(h, n, _say(n.cell, tries)) for n in named], class_="arms")


def _arm(h: Html, n: Named, words: str) -> Markup:
    cell, metric = n.cell, n.cell.metrics["pass@1"]
    value = "–" if metric.value is None else whole_percent(metric.value)
    gauge = h(
        "div", _bar(h, n, words), h("div", h("span", "0 %"), h("span", "100 % solved"), class_="scale"), class_="gauge"
    )
    chips = [h("li", f"isolation {cell.isolation}", class_="chip" + (" warn" if cell.isolation == "none" else ""))]
    provenance = cell.provenance or "nothing has run"
    chips.append(h("li", provenance, class_="chip" + ("" if cell.provenance == "live" else " warn")))
    graded = f"{cell.graded:,} of {cell.planned:,} trials graded"
    chips.append(h("li", graded, class_="chip" + ("" if cell.graded == cell.planned else " warn")))
    label = cell.arm.arm.label
    full = h("div", label, class_="small quiet") if label != n.name and not cell.arm.control else None
    name = h("div", h("div", n.name, class_="name"), full, h("ul", chips, class_="chips"))
    say = h("p", words, class_="say")
    return h("li", name, h("div", value, class_="big"), gauge, say, class_=f"arm s{n.number % SERIES + 1}")


def _say(cell: Cell, tries: int) -> str:
    """What else a reader asks first: how sure, how reliable, at what cost."""
    metric, parts = cell.metrics["pass@1"], []
    if metric.value is None:
        return f"No value: {metric.reason}."
    if metric.low is not None and metric.high is not None and metric.level is not None:
        parts.append(f"{whole_range(metric.low, metric.high)} fits what was seen ({100 * metric.level:.4g} % interval)")
    else:
        parts.append(metric.reason or "no interval")
    every = next((p.pass_hat.value for p in cell.detail.curve if p.k == tries and tries > 1), None)
    if every is not None:
        parts.append(f"{whole_percent(every)} when all of {tries} tries must succeed")
    cost = cell.metrics.get("cost_per_solve_usd")
    if cost is not None and cost.value is not None:
        parts.append(f"{shown(cost)} per solved trial")
    if cell.harm:
        parts.append(f"harm in {plural(cell.harm, 'trial')}")
    return " · ".join(parts)


def _bar(h: Html, n: Named, words: str) -> Markup:
    """0 to 100 %, the interval as a band, the value as a line."""
    metric = n.cell.metrics["pass@1"]
    fill = f"f{n.number % SERIES + 1}"
    parts = [h("rect", x=0, y=9, width=1000, height=8, rx=4, class_="track")]
    if metric.low is not None and metric.high is not None:
        low, high = round(1000 * metric.low, 1), round(1000 * metric.high, 1)
        parts.append(
            h("rect", x=low, y=5, width=max(4.0, round(high - low, 1)), height=16, rx=6, class_=f"range {fill}")
        )
    if metric.value is not None:
        at = min(994.0, max(0.0, round(1000 * metric.value - 3, 1)))
        parts.append(h("rect", x=at, y=1, width=6, height=24, rx=3, class_=fill))
    label = f"{n.name}: {words}; {worlds(n.cell)}"
    return h(
        "svg", parts, viewBox="0 0 1000 26", preserveAspectRatio="none", class_="bar", role="img", aria_label=label
    )
