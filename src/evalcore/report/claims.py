"""What a study declared before its first trial: its claims one by one, and how they are to be decided.

A contrast is one claim for each benchmark, and over a sweep for each pair of arms that have the same swept values.
Every declared claim counts in the family, also one that cannot be computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import frozen

from evalcore.engine.arms import points, swept_handle
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.stamp import ArmStamp, RunStamp
from evalcore.values.study import STOPPING, Analysis


@frozen
class Claim:
    """One declared comparison, `a` against `b`, by handle. `problem` says why it cannot be computed."""

    a: str
    b: str
    digest_a: str | None
    digest_b: str | None
    benchmark: str
    metric: str
    margin: float | None
    problem: str | None = None

    def is_about(self, a: ArmStamp, b: ArmStamp, metric: str) -> bool:
        """Whether it is about these two arms, in either order."""
        return self.metric == metric and {self.digest_a, self.digest_b} == {a.arm.digest, b.arm.digest}


def claims_of(stamp: RunStamp) -> tuple[Claim, ...]:
    """Every claim of the run's study, in the order of its file."""
    return tuple(claim for one in _contrasts(stamp) for claim in _expanded(one, stamp))


def analysis_of(stamp: RunStamp) -> Analysis:
    """How the run's study is to be analysed; the defaults for what it does not say."""
    table = stamp.study.get("analysis")
    found: JSONObject = table if isinstance(table, dict) else {}
    plain = Analysis()
    stopping, worth = found.get("stopping"), found.get("value_per_solve_usd")
    return Analysis(
        _number(found.get("alpha"), plain.alpha),
        _number(found.get("power"), plain.power),
        stopping if stopping in STOPPING else plain.stopping,
        tuple(_number(x, 0.0) for x in _list(found.get("looks"))),
        None if worth is None else _number(worth, 0.0),
        {name: _number(x, 0.0) for name, x in _dict(found.get("weights")).items()},
        {
            n: (_number(e[0], 0.0), _number(e[1], 0.0))
            for n, x in _dict(found.get("anchors")).items()
            if (e := _list(x))
        },
    )


def _expanded(contrast: JSONObject, stamp: RunStamp) -> Iterator[Claim]:
    names = str(contrast.get("a")), str(contrast.get("b"))
    metric, margin = str(contrast.get("metric", "pass@1")), contrast.get("margin")
    arms = {x.arm.handle: x.arm.digest for x in stamp.arms}
    pairs = list(dict.fromkeys(_matched(*names, arms, _dict(stamp.study.get("sweep")))))
    for a, b in pairs or [names]:
        problem = _problem(a, b, arms)
        for benchmark in stamp.benchmarks:
            yield Claim(
                a, b, arms.get(a), arms.get(b), benchmark.selector, metric,
                None if margin is None else _number(margin, 0.0), problem,
            )  # fmt: skip


def _problem(a: str, b: str, arms: Mapping[str, str]) -> str | None:
    gone = [name for name in (a, b) if name not in arms]
    if gone:
        return f"the run has no arm {' and no arm '.join(gone)}"
    if arms[a] == arms[b]:
        return "both names are the same configuration"
    return None


def _matched(a: str, b: str, arms: Mapping[str, str], sweep: Mapping[str, JSONValue]) -> Iterator[tuple[str, str]]:
    """The pairs of arms at the same point of the sweep; a control may keep out of it, and is the same at each."""
    if not sweep:
        yield from [(a, b)] if a in arms and b in arms else []
        return
    for point in points({axis: tuple(_list(values)) for axis, values in sweep.items()}):
        shown = {axis: value for axis, (_, value) in point.items()}
        found_a, found_b = (_at(name, shown, arms) for name in (a, b))
        if found_a is not None and found_b is not None:
            yield found_a, found_b


def _at(name: str, point: Mapping[str, JSONValue], arms: Mapping[str, str]) -> str | None:
    """The arm that a contrast's name means at one point of the sweep: a name with its values means one point only."""
    handle, _, values = name.partition("@")
    whole = set(swept_handle(handle, point).partition("@")[2].split(","))
    if values and not set(values.split(",")) <= whole:
        return None
    fitting = [
        x for x in arms if x.partition("@")[0] == handle and set(filter(None, x.partition("@")[2].split(","))) <= whole
    ]
    return max(fitting, key=len, default=None)


def _contrasts(stamp: RunStamp) -> list[JSONObject]:
    return [one for one in _list(stamp.study.get("contrasts")) if isinstance(one, dict)]


def _list(value: JSONValue) -> list[JSONValue]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _dict(value: JSONValue) -> JSONObject:
    return value if isinstance(value, dict) else {}


def _number(value: JSONValue, otherwise: float) -> float:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else otherwise
