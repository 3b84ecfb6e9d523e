"""A comparison in sentences for somebody without statistics, and as JSON; every renderer takes its words from here."""

from __future__ import annotations

import math
import re
from typing import Final

from evalcore.report.analysis import Flip
from evalcore.report.compare import Comparison, Outcome
from evalcore.report.differences import Difference
from evalcore.report.outcomes import PASS_AT_1, Delta, Settle
from evalcore.report.sides import Side
from evalcore.report.words import UNKNOWN, dollars, percent, plural, seconds
from evalcore.stats.intervals import Interval
from evalcore.values.json import JSONObject
from evalcore.values.measure import Measure

SCHEMA: Final = "evalcore.comparison/1"
_LETTER: Final = re.compile(r"\b[AB]\b")
KINDS: Final = {
    "treatment": "what this is about",
    "boundary": "A BOUNDARY, overridden",
    "told": "told, refuses nothing",
}


def points(difference: float) -> str:
    """`+12.5 points`: a difference of two rates, which is no percentage of either."""
    return f"{100.0 * difference:+.1f} points"


def amount(value: float, measure: Measure, *, signed: bool = False) -> str:
    """A value of a measure in its unit; a rate's difference in points is `points`."""
    if measure.rate:
        return points(value) if signed else percent(value)
    size = {"USD": dollars, "s": seconds}.get(measure.unit, lambda x: f"{x:,.4g} {measure.unit}".rstrip())(abs(value))
    return f"{'-' if value < 0 else '+' if value > 0 and signed else ''}{size}"


def span(interval: Interval, measure: Measure = PASS_AT_1) -> str:
    """`95 % interval -3.0 to +21.0 points`, or why there is none."""
    if interval.low is None or interval.high is None:
        return f"no interval: {interval.reason}"
    low, high = interval.low, interval.high
    if measure.rate:
        ends = f"{100 * low:+.1f} to {100 * high:+.1f} points"
    else:
        ends = f"{amount(low, measure, signed=True)} to {amount(high, measure, signed=True)}"
    return f"{100 * interval.level:.4g} % interval {ends}"


def width(size: float, measure: Measure) -> str:
    """A margin, or a half-width: `5 points`, `$0.02`."""
    return f"{100 * size:g} points" if measure.rate else amount(size, measure)


def measured(outcome: Outcome) -> str:
    """How much was seen, and how sure it is."""
    value, measure = outcome.interval.value, outcome.measure
    if value is None:
        why = outcome.paired.unknown or "no task has a result on both sides"
        return f"there is nothing to compare: {why}"
    test = outcome.test
    p = "no p-value" if test is None else f"p = {test.p:.3g}"
    if test is not None and outcome.p_adjusted is not None and not math.isclose(outcome.p_adjusted, test.p):
        p += f", adjusted {outcome.p_adjusted:.3g}"
    return f"{_seen(value, measure)} ({span(outcome.interval, measure)}; {p})"


def _seen(value: float, measure: Measure) -> str:
    if measure.name == "pass@1":
        size = f"{100 * abs(value):.1f} points"
        return f"A solved {size} {'more' if value > 0 else 'less'} than B" if value else "A and B solved equally much"
    if not value:
        return f"A and B have the same {measure.word}"
    size = f"{100 * abs(value):.1f} points" if measure.rate else amount(abs(value), measure)
    return f"A's {measure.word} is {size} {'higher' if value > 0 else 'lower'} than B's"


def verdict(outcome: Outcome) -> str:
    """The verdict in one sentence."""
    word, margin, measure = outcome.conclusion.verdict, outcome.margin, outcome.measure
    within = "" if margin is None else f"the declared margin of {width(margin, measure)}"
    by = "" if measure.name == "pass@1" else f" by {measure.word}"
    said = {
        "better": f"A is better than B{by}, as declared beforehand",
        "worse": f"A is worse than B{by}, as declared beforehand",
        "negligible": f"A and B differ{by}, but by less than {within}",
        "equivalent": f"A and B are equivalent{by}: whatever differs is less than {within}",
        "non-inferior": f"A is not worse than B{by} by as much as {within}",
        "candidate": f"a difference is suggested, {outcome.conclusion.reason}",
        "inconclusive": "these trials show neither a difference nor that there is none",
        "refused": f"no verdict: {outcome.conclusion.reason}",
    }[word]
    at = f" (at planned look {outcome.look})" if outcome.look and outcome.confirmatory else ""
    return f"{said}{at}."


def named(sentence: str, a: str, b: str) -> str:
    """A sentence about A and B with their names in it."""
    return _LETTER.sub(lambda m: a if m[0] == "A" else b, sentence)


def settling(settle: Settle, measure: Measure = PASS_AT_1) -> str:
    """What to buy, in one sentence."""
    found = settle.need
    if found is None:
        return f"What would settle it cannot be said: {settle.reason}."
    aim = f"To know the difference to within ±{width(settle.half_width, measure)}"
    if not settle.declared:
        aim += " (the default; --margin names another)"
    trials = "" if settle.trials is None else f", {plural(settle.trials, 'trial')} of either side"
    if found.buy == "nothing":
        return f"{aim}, these trials are enough."
    if found.buy == "clusters":
        text = f"{aim}, buy more tasks: {plural(found.clusters or 0, 'cluster')} of tasks in all{trials}."
        repeats = f" {plural(found.repeats, 'repeat')} of the same tasks would do too." if found.repeats else ""
        return text + repeats
    if found.buy == "repeats":
        return f"{aim}, buy repeats: {found.repeats} in all of each task{trials}; there are no more tasks."
    if found.buy == "clusters and repeats":
        return f"{aim}, buy both: every task there is, and {found.repeats_with_all} repeats of each{trials}."
    clusters = "more than ten million" if found.clusters is None else f"{found.clusters:,}"
    return f"{aim}, it takes {clusters} clusters of tasks: more than this benchmark is known to have."


def _fine_seconds(value: float) -> str:
    """To three figures where it is short, so that two times and their difference agree."""
    return f"{value:.3g} s" if 0.0095 <= value < 10.0 else seconds(value)


def shown(delta: Delta, value: float | None, *, signed: bool = False) -> str:
    """One value of a delta, in its unit."""
    if value is None:
        return UNKNOWN
    if delta.unit == "share":
        return points(value) if signed else percent(value)
    size = {"USD": dollars, "s": _fine_seconds}.get(delta.unit, lambda x: f"{x:,.1f}".removesuffix(".0"))(abs(value))
    return f"{'-' if value < 0 else '+' if value > 0 else ''}{size}" if signed else size


# ── as JSON ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def to_json(comparison: Comparison) -> JSONObject:
    """The comparison as other programs read it: differences are A less B; what is not known is null, with a reason."""
    return {
        "schema": SCHEMA,
        "a": _side(comparison.a),
        "b": _side(comparison.b),
        "metric": comparison.metric,
        "treatment": list(comparison.treatment),
        "confirmatory": comparison.declared and all(o.confirmatory for o in comparison.outcomes),
        "cross_world": comparison.cross_world,
        "differences": [_difference(d) for d in comparison.differences],
        "outcomes": [_outcome(o) for o in comparison.outcomes],
        "notes": list(comparison.notes),
    }


def _side(side: Side) -> JSONObject:
    arm = side.arm.arm
    return {
        "run": side.stamp.run,
        "grading": side.stamp.grading,
        "arm": {"handle": arm.handle, "label": arm.label, "digest": arm.digest, "control": side.arm.control},
        "study": {"name": side.stamp.study_name, "digest": side.stamp.study_digest},
    }


def _difference(d: Difference) -> JSONObject:
    return {"field": d.field, "a": d.a, "b": d.b, "kind": d.kind}


def _outcome(outcome: Outcome) -> JSONObject:
    paired, test = outcome.paired, outcome.test
    measure = outcome.measure
    return {
        "benchmark": outcome.benchmark,
        "metric": measure.name,
        "unit": measure.unit,
        "higher_is_better": measure.higher_is_better,
        "tasks": len(paired.a),
        "clusters": paired.clusters,
        "trials": list(paired.runs),
        "rates": list(paired.rates or (None, None)),
        "values": list(paired.values or (None, None)),
        "effect": interval_json(outcome.interval),
        "p": None if test is None else test.p,
        "p_adjusted": outcome.p_adjusted,
        "family": outcome.family,
        "test": None if test is None else test.method,
        "margin": outcome.margin,
        "margin_interval": None if outcome.margin_interval is None else interval_json(outcome.margin_interval),
        "verdict": outcome.conclusion.verdict,
        "confirmatory": outcome.confirmatory,
        "look": outcome.look,
        "reason": outcome.conclusion.reason,
        "sentence": f"{measured(outcome)}: {verdict(outcome)}",
        "void_rates": list(paired.void_rates),
        "gained": [flip_json(f) for f in outcome.gained],
        "lost": [flip_json(f) for f in outcome.lost],
        "dropped": {
            "only_a": list(paired.only_a),
            "only_b": list(paired.only_b),
            "without_result": list(paired.without_result),
        },
        "deltas": {
            d.name: {"unit": d.unit, "a": d.a, "b": d.b, "difference": d.difference, "reason": d.reason}
            for d in outcome.deltas
        },
        "settle": settle_json(outcome.settle, measure),
    }


def interval_json(interval: Interval) -> JSONObject:
    """An interval by field."""
    names = ("value", "low", "high", "level", "method", "reason")
    return {name: getattr(interval, name) for name in names}


def flip_json(flip: Flip) -> JSONObject:
    """A flip by field."""
    return {
        "task": flip.task,
        "a": {"solved": flip.a[0], "trials": flip.a[1], "attempt": flip.look_a},
        "b": {"solved": flip.b[0], "trials": flip.b[1], "attempt": flip.look_b},
    }


def settle_json(settle: Settle, measure: Measure = PASS_AT_1) -> JSONObject:
    """What would settle it, by field and as a sentence."""
    found = settle.need
    return {
        "half_width": settle.half_width,
        "asked_for": settle.declared,
        "buy": None if found is None else found.buy,
        "clusters": None if found is None else found.clusters,
        "repeats": None if found is None else found.repeats,
        "repeats_with_all": None if found is None else found.repeats_with_all,
        "trials": settle.trials,
        "reason": settle.reason,
        "sentence": settling(settle, measure),
    }
