"""What a task's trials say by one measure, for a comparison: scores of single trials, or one value of the task.

The names, units and directions are in `values.measure`. Tasks are paired, and what is compared is always a mean over
the tasks that both sides have a value of.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from attrs import frozen

from evalcore.report.detail import TrialRow
from evalcore.report.sides import TaskTrials
from evalcore.report.words import plural
from evalcore.stats.flakiness import disagreement
from evalcore.stats.passk import pass_at_k, pass_hat_k
from evalcore.values.measure import VIEW, Measure

Scores: TypeAlias = Mapping[str, Sequence[float]]  # a task's key -> its scores; empty: it has no value
Tasks: TypeAlias = Mapping[str, TaskTrials]
PRICE: Final = "cost_per_solve_usd"


@frozen
class Scored:
    """Both sides' scores by task; where they are not known for a side as a whole, there are none, and `unknown` why."""

    a: Scores
    b: Scores
    unknown: str | None = None


def scored(measure: Measure, a: Tasks, b: Tasks) -> Scored:
    """The scores of the tasks that both sides tried."""
    both = a.keys() & b.keys()
    mine, theirs = ({key: side[key] for key in sorted(both)} for side in (a, b))
    if measure.name == PRICE:
        return _prices(mine, theirs)
    if measure.name in _OF_TRIALS:
        read, unknown = _OF_TRIALS[measure.name]
        return _known(mine, theirs, read, unknown)
    if measure.ratio:
        return _ratios(measure.name, mine, theirs)
    if measure.name.startswith(VIEW):
        return _views(measure.name.removeprefix(VIEW), mine, theirs)
    of = _of_task(measure)
    return Scored({k: of(t.results) for k, t in mine.items()}, {k: of(t.results) for k, t in theirs.items()})


def _of_task(measure: Measure) -> Callable[[Sequence[TrialRow]], list[float]]:
    """For a rate: each trial's score, or one value of the task; empty where the task has none."""
    if measure.name == "pass@1":
        return lambda results: [float(r.success) for r in results]
    if measure.name == "harm_rate":
        return lambda results: [float(r.harm) for r in results if r.harm is not None]
    if measure.name == "flakiness":
        return lambda results: [disagreement([r.outcome for r in results])] if len(results) > 1 else []
    if measure.name == "tool_error_rate":
        return _tool_errors
    return lambda results: _of_k(measure, results)


def _of_k(measure: Measure, results: Sequence[TrialRow]) -> list[float]:
    if len(results) < measure.k:
        return []
    function = pass_hat_k if "^" in measure.name else pass_at_k
    return [function(len(results), sum(r.success for r in results), measure.k)]


def _tool_errors(results: Sequence[TrialRow]) -> list[float]:
    calls = sum(r.tool_calls for r in results)
    return [sum(r.tool_errors for r in results) / calls] if calls else []


_OF_TRIALS: Final[Mapping[str, tuple[Callable[[TrialRow], float | None], str]]] = {
    "tokens": (
        lambda r: None if r.unreported else float(r.tokens),
        "tokens are not known (calls reported no usage)",
    ),
    "tool_calls": (lambda r: float(r.tool_calls), "tool calls are not known"),
    "wall_s": (lambda r: r.wall_s, "the time is not known"),
    "cost_per_trial_usd": (lambda r: r.cost_usd, "a price is not known"),
}


def _known(a: Tasks, b: Tasks, of: Callable[[TrialRow], float | None], unknown: str) -> Scored:
    """Values of single trials; unknown altogether where any trial's is."""
    missing = []
    sides: list[dict[str, list[float]]] = []
    for letter, side in (("A", a), ("B", b)):
        read = {key: [of(r) for r in task.results] for key, task in side.items()}
        known = {key: [v for v in values if v is not None] for key, values in read.items()}
        gone = sum(len(values) - len(known[key]) for key, values in read.items())
        if gone:
            trials = sum(map(len, read.values()))
            missing.append(f"{unknown} in {gone:,} of {plural(trials, 'trial')} of {letter}")
        sides.append(known)
    return Scored({}, {}, "; ".join(missing)) if missing else Scored(sides[0], sides[1])


def _prices(a: Tasks, b: Tasks) -> Scored:
    """Cost per solve as one value a task whose mean over tasks is the ratio: R + (c_t - R s_t) / mean(s).

    That is the delta method's linearisation (Cochran 1977), so that two ratios can be paired by task like two means.
    """
    costs = _known(a, b, lambda r: r.cost_usd, "a price is not known")
    if costs.unknown:
        return costs
    keys = [key for key in costs.a if costs.a[key] and costs.b[key]]
    sides = []
    for letter, side, spent in (("A", a, costs.a), ("B", b, costs.b)):
        pairs = {k: (_mean(spent[k]), _mean([float(r.success) for r in side[k].results])) for k in keys}
        found = _linearised(pairs)
        if found is None:
            return Scored({}, {}, f"{letter} solved nothing: it has no cost per solve")
        sides.append(found)
    return Scored(sides[0], sides[1])


def _linearised(pairs: Mapping[str, tuple[float, float]]) -> dict[str, list[float]] | None:
    """R + (x - R y) / mean(y) of every (x, y), where R = sum x / sum y; None where the y add up to 0."""
    above, below = (math.fsum(pair[i] for pair in pairs.values()) for i in (0, 1))
    if below == 0.0:
        return None
    ratio, mean = above / below, below / len(pairs)
    return {key: [ratio + (x - ratio * y) / mean] for key, (x, y) in pairs.items()}


def _ratios(name: str, a: Tasks, b: Tasks) -> Scored:
    """A plugin's metric in the same way. A task of which a side has no value is left out."""
    keys = [key for key in a if name in a[key].ratios and name in b[key].ratios]
    sides = []
    for letter, side in (("A", a), ("B", b)):
        pairs = {key: side[key].ratios[name] for key in keys}
        if not pairs:
            return Scored({}, {}, f"{name} has a value of no task in common")
        if not all(math.isfinite(x) for pair in pairs.values() for x in pair):
            return Scored({}, {}, f"{name} is not finite in a task of {letter}")
        found = _linearised(pairs)
        if found is None:
            return Scored({}, {}, f"{name} has no value for {letter}: its denominators add up to 0")
        sides.append(found)
    return Scored(sides[0], sides[1])


def _views(label: str, a: Tasks, b: Tasks) -> Scored:
    """A second reading of trials: those of which it was not taken are left out."""
    labels = sorted({x for side in (a, b) for task in side.values() for r in task.results for x in r.views})
    if (a or b) and label not in labels:
        return Scored({}, {}, f"no trial has the view {label!r}; there are: {', '.join(labels) or 'none'}")
    mine, theirs = (
        {key: [float(r.views[label]) for r in task.results if label in r.views] for key, task in side.items()}
        for side in (a, b)
    )
    return Scored(mine, theirs)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
