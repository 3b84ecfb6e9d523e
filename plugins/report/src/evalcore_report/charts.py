"""What is drawn of a report, one function a picture. Each takes cells with their names and computes no number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from attrs import frozen

from evalcore.report.analysis import Front
from evalcore.report.model import Cell, MetricValue
from evalcore_report.draw import NAME_PX, WIDTH, percent_axis, rows, series
from evalcore_report.words import whole_percent

OUTCOMES: Final[Mapping[str, str]] = {
    "pass": "passed",
    "declined": "rightly declined",
    "fail": "failed",
    "fabricated": "fabricated",
    "excluded": "not counted",
    "not run": "not run",
}
EXITS: Final[Mapping[str, str]] = {
    "completed": "completed", "limit": "stopped by a limit", "refused": "refused", "crashed": "crashed"
}  # fmt: skip
OUTCOME_COLOURS: Final = (
    "var(--pass)",
    "var(--declined)",
    "var(--fail)",
    "var(--fabricated)",
    "var(--void)",
    "var(--line)",
)
EXIT_COLOURS: Final = ("var(--pass)", "var(--limit)", "var(--declined)", "var(--fail)")


@frozen
class Named:
    """A cell, the name it goes by on this page, and the number of its colour."""

    cell: Cell
    name: str
    number: int

    @property
    def colour(self) -> str:
        """Its colour."""
        return series(self.number)


DOLLARS: Final = "'$' + format(datum.value, '.3~r')"
WIDE: Final = WIDTH + NAME_PX - 80
TALL: Final = 250
SHARE: Final = "solved in so many % of all tries"
GLYPH: Final = 7.2  # pixels of a letter, on average


def beside(points: Sequence[tuple[float, float]], names: Sequence[str], width: float) -> list[tuple[int, int]]:
    """Where each point's name goes, as an offset: where it covers no point and no name placed before it, if it can."""
    taken = [(x - 8, y - 8, x + 8, y + 8) for x, y in points]
    found = []
    for (x, y), name in zip(points, names, strict=True):
        best, least, chosen = (10, -10), math.inf, (x, y, x, y)
        for dx, dy in ((10, -10), (10, 14), (-10, -10), (-10, 14), (10, -26), (-10, -26), (10, 30), (-10, 30)):
            left = x + dx if dx > 0 else x + dx - GLYPH * len(name)
            box = (left, y + dy - 8, left + GLYPH * len(name), y + dy + 6)
            cost = sum(_overlap(box, other) for other in taken) + 50 * max(0.0, -left) + 50 * max(0.0, box[2] - width)
            if cost < least:
                best, least, chosen = (dx, dy), cost, box
        taken.append(chosen)
        found.append(best)
    return found


Box: TypeAlias = tuple[float, float, float, float]


def _overlap(a: Box, b: Box) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def _names_axis(names: Sequence[str], most: int = NAME_PX) -> Any:
    """Room for names at the side, whatever the reader's font."""
    import altair as alt

    return alt.Axis(title=None, minExtent=min(most, 8.0 * max(map(len, names)) + 8), labelLimit=most)


def _colours(named: Sequence[Named]) -> Any:
    import altair as alt

    return alt.Color(
        "name:N", legend=None, scale=alt.Scale(domain=[n.name for n in named], range=[n.colour for n in named])
    )


def _legend(named: Sequence[Named]) -> Any:
    """Colours that a legend names: where no name stands beside what is coloured."""
    import altair as alt

    return alt.Color("name:N", scale=alt.Scale(domain=[n.name for n in named], range=[n.colour for n in named]))


def _bare(metric: MetricValue | None) -> dict[str, Any]:
    if metric is None:
        return {"value": None, "low": None, "high": None}
    return {"value": metric.value, "low": metric.low, "high": metric.high}


def accuracy_by_cost(named: Sequence[Named], front: Front | None) -> Any | None:
    """Solved against what a trial costs, with intervals and the front; None where no arm has both."""
    import altair as alt

    on = {m.digest for m in front.members if m.on_front} if front else set()
    values: list[dict[str, Any]] = []
    for n in named:
        rate, cost = _bare(n.cell.metrics.get("pass@1")), _bare(n.cell.metrics.get("cost_per_trial_usd"))
        if rate["value"] is not None and cost["value"] is not None:
            row = {"name": n.name, "rate": rate["value"], "rlow": rate["low"], "rhigh": rate["high"]}
            row |= {"cost": cost["value"], "clow": cost["low"], "chigh": cost["high"]}
            values.append(row | {"front": n.cell.arm.arm.digest in on})
    if not any(v["cost"] for v in values):  # nothing has a price, or all of it is free: no picture of cost
        return None
    most = 1.15 * max(v["chigh"] or v["cost"] for v in values) or 1.0
    scale = alt.Scale(domain=[0, most], nice=False)
    x = alt.X("cost:Q", scale=scale, axis=alt.Axis(labelExpr=DOLLARS, title="cost of a trial", tickCount=5))
    y = alt.Y("rate:Q", scale=alt.Scale(domain=[0, 1]), axis=percent_axis(None, grid=True))
    base = alt.Chart(rows(values)).encode(color=_colours(named))
    layers = []
    members = sorted((v for v in values if v["front"]), key=lambda v: v["cost"])
    if len(members) > 1:
        line = alt.Chart(rows(members)).mark_line(strokeDash=[5, 4], strokeWidth=1.5)
        layers.append(line.encode(x=x, y=y, color=alt.value("var(--quiet)")))
    if any(v["clow"] is not None for v in values):
        across = base.mark_rule(strokeWidth=4, opacity=0.35, strokeCap="round")
        layers.append(across.encode(y=y, x=alt.X("clow:Q", scale=scale), x2="chigh:Q"))
    if any(v["rlow"] is not None for v in values):
        bars = base.mark_rule(strokeWidth=4, opacity=0.35, strokeCap="round")
        layers.append(bars.encode(x=x, y=alt.Y("rlow:Q"), y2="rhigh:Q"))
    layers.append(base.mark_point(filled=True, size=110, opacity=1).encode(x=x, y=y))
    points = [(WIDE * v["cost"] / most, TALL * (1 - v["rate"])) for v in values]
    for value, (dx, dy) in zip(values, beside(points, [v["name"] for v in values], WIDE), strict=True):
        text = alt.Chart(rows([value])).mark_text(align="left" if dx > 0 else "right", dx=dx, dy=dy, fontSize=13)
        layers.append(text.encode(x=x, y=y, text="name:N", color=alt.value("var(--ink)")))
    return alt.layer(*layers).properties(width=WIDE, height=TALL)


def flakiness(named: Sequence[Named]) -> Any | None:
    """The chance that two tries at a task come out differently, with its interval."""
    import altair as alt

    values: list[dict[str, Any]] = [{"name": n.name, **_bare(n.cell.metrics.get("flakiness"))} for n in named]
    values = [v for v in values if v["value"] is not None]
    if not values:
        return None
    top = max(0.5, *(v["high"] or v["value"] for v in values))
    return _intervals(values, named, alt.Scale(domain=[0, top]), percent_axis())


def latency(named: Sequence[Named]) -> Any | None:
    """The median and the 95th percentile of the wall time; what is not known is left out."""
    import altair as alt

    values = []
    for n in named:
        for q in n.cell.detail.latency:
            if q.value is not None and q.q in (0.5, 0.95):
                low, high = (q.low, q.high) if q.low is not None and q.high is not None else (None, None)
                values.append({"name": n.name, "value": q.value, "low": low, "high": high})
    if not values:
        return None
    return _intervals(
        values,
        named,
        alt.Scale(zero=True),
        alt.Axis(title="seconds", tickCount=5, labelExpr="format(datum.value, '.3~r')"),
    )


def _intervals(values: Sequence[Mapping[str, Any]], named: Sequence[Named], scale: Any, axis: Any) -> Any:
    import altair as alt

    y = alt.Y("name:N", sort=[n.name for n in named], axis=_names_axis([n.name for n in named]))
    base = alt.Chart(rows(values)).encode(y=y, color=_colours(named))
    points = base.mark_point(filled=True, size=110, opacity=1).encode(x=alt.X("value:Q", scale=scale, axis=axis))
    layers = [points]
    if any(v["low"] is not None for v in values):
        bar = base.mark_rule(strokeWidth=6, opacity=0.35, strokeCap="round")
        layers.insert(0, bar.encode(x=alt.X("low:Q", scale=scale, axis=axis), x2="high:Q"))
    return alt.layer(*layers).properties(width=WIDTH, height=alt.Step(30))


def reliability(named: Sequence[Named]) -> Any | None:
    """pass^k by k, with the floor of equally hard tasks; None where only one try was made."""
    import altair as alt

    values: list[dict[str, Any]] = [
        {"name": n.name, "k": p.k, "value": p.pass_hat.value, "floor": p.floor}
        for n in named
        if len(n.cell.detail.curve) > 1
        for p in n.cell.detail.curve
        if p.pass_hat.value is not None
    ]
    if not values:
        return None
    most = max(v["k"] for v in values)
    x = alt.X("k:O", axis=alt.Axis(title="tries that must all be solved", labelAngle=0))
    whole = alt.Scale(domain=[0, 1])
    y = alt.Y("value:Q", scale=whole, axis=percent_axis(grid=True))
    base = alt.Chart(rows(values)).encode(x=x, color=_colours(named))
    floors = base.mark_line(strokeWidth=1.5, strokeDash=[4, 4], opacity=0.7).encode(y=alt.Y("floor:Q", scale=whole))
    last = [{**v, "label": whole_percent(v["value"])} for v in values if v["k"] == most]
    texts = alt.Chart(rows(last)).mark_text(align="left", dx=9, fontSize=13).encode(x=x, y=y, text="label:N")
    lines = base.mark_line(strokeWidth=2.5).encode(y=y)
    points = base.mark_point(filled=True, size=70, opacity=1).encode(y=y)
    layers = [floors, lines, points, texts.encode(color=alt.value("var(--ink)"))]
    return alt.layer(*layers).properties(width=WIDTH, height=200)


def outcomes(named: Sequence[Named]) -> Any | None:
    """What became of every planned trial, stacked."""
    counts = []
    for n in named:
        cell = n.cell
        parts = {**cell.outcomes, "excluded": sum(cell.excluded.values()), "not run": cell.not_run}
        counts.append((n.name, parts))
    return _stacked(counts, OUTCOMES, OUTCOME_COLOURS, "trials")


def exits(named: Sequence[Named]) -> Any | None:
    """How the agents ended, stacked."""
    return _stacked(
        [(n.name, {str(k): v for k, v in n.cell.exits.items()}) for n in named], EXITS, EXIT_COLOURS, "trials"
    )


def _stacked(
    counts: Sequence[tuple[str, Mapping[str, int]]], words: Mapping[str, str], colours: Sequence[str], unit: str
) -> Any | None:
    import altair as alt

    present = [kind for kind in words if any(parts.get(kind) for _, parts in counts)]
    if not present:
        return None
    values = [
        {"name": name, "kind": words[kind], "n": parts[kind], "order": order}
        for name, parts in counts
        for order, kind in enumerate(words)
        if parts.get(kind)
    ]
    named_colours = dict(zip(words, colours, strict=True))
    scale = alt.Scale(domain=[words[kind] for kind in present], range=[named_colours[kind] for kind in present])
    bar = alt.Chart(rows(values)).mark_bar(height=18).encode(
        y=alt.Y("name:N", sort=[name for name, _ in counts], axis=_names_axis([name for name, _ in counts])),
        x=alt.X("n:Q", stack="zero", axis=alt.Axis(title=unit, tickCount=5, format="~s")),
        color=alt.Color("kind:N", scale=scale),
        order=alt.Order("order:Q"),
    )  # fmt: skip
    return bar.properties(width=WIDTH, height=alt.Step(30))


def forest(contrasts: Sequence[Mapping[str, Any]]) -> Any | None:
    """Differences with their intervals around zero: `name`, `effect`, `low`, `high`, perhaps `margin`."""
    import altair as alt

    if not contrasts:
        return None
    y = alt.Y(
        "name:N", sort=[c["name"] for c in contrasts], axis=_names_axis([c["name"] for c in contrasts], 2 * NAME_PX)
    )
    axis = alt.Axis(title="difference in points: the first less the second", format="+.0%", tickCount=6)
    base = alt.Chart(rows(contrasts)).encode(y=y)
    colour = alt.Color("sign:N", legend=None, scale=alt.Scale(
        domain=["real", "open"], range=["var(--s1)", "var(--quiet)"]
    ))  # fmt: skip
    zero = alt.Chart(rows([{"at": 0}])).mark_rule(strokeDash=[4, 4]).encode(x="at:Q", color=alt.value("var(--ink)"))
    bars = base.mark_rule(strokeWidth=6, opacity=0.35, strokeCap="round").encode(
        x=alt.X("low:Q", axis=axis), x2="high:Q", color=colour
    )
    points = base.mark_point(filled=True, size=110, opacity=1).encode(x=alt.X("effect:Q", axis=axis), color=colour)
    layers = [zero, bars, points] if any(c.get("low") is not None for c in contrasts) else [zero, points]
    return alt.layer(*layers).properties(width=1.6 * WIDTH, height=alt.Step(34))


def clusters(shares: Sequence[Mapping[str, Any]], named: Sequence[Named]) -> Any | None:
    """The share of each arm in each cluster, a line a cluster. Rows with `cluster`, `name` and `share`, in order."""
    import altair as alt

    if not shares:
        return None
    names = list(dict.fromkeys(str(s["cluster"]) for s in shares))
    x = alt.X("share:Q", scale=alt.Scale(domain=[0, 1]), axis=percent_axis(grid=True))
    base = alt.Chart(rows(shares)).encode(y=alt.Y("cluster:N", sort=names, axis=_names_axis(names)))
    apart = base.mark_rule(strokeWidth=2, opacity=0.35).encode(
        x=alt.X("min(share):Q"), x2="max(share):Q", color=alt.value("var(--quiet)")
    )
    dots = base.mark_point(filled=True, size=90, opacity=0.9).encode(x=x, color=_legend(named))
    return alt.layer(apart, dots).properties(width=WIDTH, height=alt.Step(24))


def difficulty(tasks: Sequence[Mapping[str, Any]]) -> Any | None:
    """Clusters by the share that all arms solved together: how many are that hard. Rows with `share` and `n`."""
    import altair as alt

    if not tasks:
        return None
    return (
        alt.Chart(rows(tasks))
        .mark_bar(color="var(--s1)")
        .encode(
            x=alt.X("band:O", sort=[t["band"] for t in tasks], axis=alt.Axis(title=SHARE, labelAngle=0)),
            y=alt.Y("n:Q", axis=alt.Axis(title=None, grid=True, tickMinStep=1, format="d")),
        )
        .properties(width=WIDTH, height=180)
    )  # fmt: skip
