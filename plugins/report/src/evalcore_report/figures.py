"""The pictures of one benchmark, each with a heading and a sentence that says how to read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from evalcore.report.analysis import ContrastResult, Front
from evalcore.report.words import plural
from evalcore_report import charts
from evalcore_report.charts import Named
from evalcore_report.draw import svg
from evalcore_report.markup import Html, Markup
from evalcore_report.words import listed

CLUSTERS: Final = 30  # named on one picture; more are counted
BANDS: Final = ("0", "1–24", "25–49", "50–74", "75–99", "100")


def figures(h: Html, named: Sequence[Named], front: Front | None) -> Markup:
    """All pictures of a benchmark that have something to show."""
    return h("div", _all(h, named, front), class_="figures")


def _all(h: Html, named: Sequence[Named], front: Front | None) -> Iterator[Markup | None]:
    yield _figure(
        h, charts.accuracy_by_cost(named, front), "Accuracy and cost", _on_the_front(named, front),
    )  # fmt: skip
    yield _figure(
        h, charts.reliability(named), "Reliability",
        "How likely all of several tries at one task are solved. The dashed line is what equally hard tasks would "
        "give: tasks differ, so the truth lies on it or above.",
    )  # fmt: skip
    yield _figure(
        h, charts.outcomes(named), "What became of the trials",
        "Trials that infrastructure or a grader spoilt count neither for nor against.",
    )  # fmt: skip
    yield _figure(h, charts.exits(named), "How the agents ended", "Apart from whether the task was solved.")
    yield _figure(
        h, charts.flakiness(named), "Flakiness", "How often two tries at the same task come out differently.",
    )  # fmt: skip
    yield _figure(
        h, charts.latency(named), "Time for a trial",
        "Half of the trials are done by the first dot, 95 % by the second. Trials that a time limit cut off count as "
        "longer.",
    )  # fmt: skip
    clusters = by_cluster(named)
    yield _figure(
        h, charts.clusters(clusters, named), "Difficulty by cluster",
        "What each arm solved of a cluster's tasks, the easiest first. Dots apart on one line: the arms differ there.",
    )  # fmt: skip
    bands = [] if clusters else difficulty(named)
    yield _figure(
        h, charts.difficulty(bands), f"Difficulty of the {'clusters' if _clustered(named) else 'tasks'}",
        "How many are solved how often by all arms. Much at 0 or 100 %, and little between, tells arms apart badly.",
    )  # fmt: skip


def _figure(h: Html, chart: Any | None, title: str, text: str, *, wide: bool = False) -> Markup | None:
    if chart is None:
        return None
    picture = h("div", svg(chart, f"{title}. {text} The numbers are in the tables below.", h.clean), class_="chart-box")
    return h("figure", h("figcaption", h("h3", title), h("p", text)), picture, class_="wide" if wide else None)


def _on_the_front(named: Sequence[Named], front: Front | None) -> str:
    """Which arms no other beats on both."""
    text = "Up is better, left is cheaper."
    if front is None or front.reason or len(named) < 2:
        return text
    names = {n.cell.arm.arm.digest: n.name for n in named}
    on = [names[m.digest] for m in front.members if m.on_front and m.digest in names]
    near = [names[m.digest] for m in front.members if m.plausible and not m.on_front and m.digest in names]
    if on:
        text += f" No other arm is both better and cheaper than {listed(on)} (the line)."
    if near:
        text += f" {listed(near)} may belong there too: the trials cannot tell."
    return text


def _clustered(named: Sequence[Named]) -> bool:
    benchmark = named[0].cell.benchmark
    return benchmark.clusters != benchmark.tasks


def by_cluster(named: Sequence[Named]) -> list[Mapping[str, Any]]:
    """The share that each arm solved in each cluster, where clusters hold several tasks and are few enough to name.

    Over all graded tries of a cluster's tasks; the clusters that were solved most come first.
    """
    if not _clustered(named):
        return []
    tries: dict[str, dict[str, list[int]]] = {}
    for n in named:
        for row in n.cell.detail.tasks:
            graded, solved = row.counts
            if graded:
                counts = tries.setdefault(row.cluster, {}).setdefault(n.name, [0, 0])
                counts[0], counts[1] = counts[0] + graded, counts[1] + solved
    if not 1 < len(tries) <= CLUSTERS:
        return []

    def all_solved(cluster: str) -> float:
        return sum(s for _, s in tries[cluster].values()) / sum(g for g, _ in tries[cluster].values())

    ordered = sorted(tries, key=lambda cluster: (-all_solved(cluster), cluster))
    return [
        {"cluster": cluster, "name": name, "share": solved / graded, "n": graded}
        for cluster in ordered
        for name, (graded, solved) in tries[cluster].items()
    ]


def difficulty(named: Sequence[Named]) -> list[Mapping[str, Any]]:
    """How many clusters of tasks all arms together solved how often: a picture of counts, and no estimate."""
    graded: dict[str, int] = {}
    solved: dict[str, int] = {}
    for n in named:
        for row in n.cell.detail.tasks:
            counts = row.counts
            graded[row.cluster] = graded.get(row.cluster, 0) + counts[0]
            solved[row.cluster] = solved.get(row.cluster, 0) + counts[1]
    bands = dict.fromkeys(BANDS, 0)
    for cluster, tries in graded.items():
        if tries:
            bands[_band(solved[cluster] / tries)] += 1
    return [{"band": band, "n": count} for band, count in bands.items()] if any(bands.values()) else []


def _band(share: float) -> str:
    if share in (0.0, 1.0):
        return BANDS[0] if share == 0.0 else BANDS[-1]
    return BANDS[1 + int(4 * share)]


# ── comparisons ──────────────────────────────────────────────────────────────────────────────────────────────────────


def contrasts(h: Html, found: Sequence[ContrastResult]) -> Markup | None:
    """A forest plot of the declared comparisons, and each of them in words."""
    if not found:
        return None
    several = len({c.benchmark for c in found}) > 1
    drawn = [
        {
            "name": _title(h, c) + (f", {c.benchmark}" if several else ""),
            "effect": c.effect,
            "low": c.low,
            "high": c.high,
            "sign": "real" if _real(c) else "open",
        }
        for c in found
        if c.effect is not None and c.metric == "pass@1"
    ]
    text = "Right of the dashed line the first is better, left of it the second. A bar across it: it could be either."
    figure = _figure(h, charts.forest(drawn), "Differences in solved tasks", text, wide=True)
    rows = [_row(h, c) for c in found]
    heads = ("comparison", "benchmark", "measure", "difference", "verdict", "in words")
    head = h("tr", [h("th", title, scope="col") for title in heads])
    caption = h(
        "caption", f"{plural(len(found), 'comparison')}, declared before the first trial unless it says exploratory."
    )
    table = h("table", caption, h("thead", head), h("tbody", rows), data_sort=True, id="contrasts-table")
    box = h("div", table, class_="scroll", role="region", aria_label="comparisons", tabindex=0)
    return h.join([h("div", figure, class_="figures") if figure else "", box])


def _real(c: ContrastResult) -> bool:
    return c.verdict in ("better", "worse", "negligible")


def _title(h: Html, c: ContrastResult) -> str:
    text = f"{c.a} – {c.b}"
    return h.clean(text) if h.clean else text


def _row(h: Html, c: ContrastResult) -> Markup:
    effect = h("td", "–", title=c.reason, data_v="")
    if c.effect is not None:
        ends = None if c.low is None or c.high is None else h("small", f"{_amount(c, c.low)} to {_amount(c, c.high)}")
        effect = h("td", _amount(c, c.effect), ends, data_v=f"{c.effect:.6g}", title=c.method)
    kind = "confirmatory" if c.confirmatory else "exploratory"
    return h(
        "tr", h("th", _title(h, c), scope="row"), h("td", c.benchmark), h("td", c.metric), effect,
        h("td", h("strong", c.verdict), h("small", kind)), h("td", c.sentence or c.reason, class_="words"),
    )  # fmt: skip


def _amount(c: ContrastResult, value: float) -> str:
    if not c.unit or c.unit == "share":
        return f"{100 * value:+.1f} points"
    return f"{value:+,.4g} {c.unit}"
