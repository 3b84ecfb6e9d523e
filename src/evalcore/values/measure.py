"""What a contrast can be about: the built-in metrics by name, with their unit and which direction is better.

Here are only names, because a study has to be checked before there is anything to measure. How a task's value is made
is said in `evalcore.report.measures`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from attrs import frozen

from evalcore.values.descriptors import MetricInfo
from evalcore.values.faults import Wrong, did_you_mean, literal

PASS_K: Final = re.compile(r"pass([@^])([1-9][0-9]{0,3})", re.ASCII)


@frozen
class Measure:
    """A metric of one task's trials. A `rate` lies in [0, 1], and its differences are told in points.

    `word` names what is measured, as in "A's time per trial is 2.0 s lower than B's"; `k` belongs to pass^k and pass@k.
    `ratio` marks a plugin's metric, a ratio of sums over tasks. `problem` says why it can be measured, not compared.
    """

    name: str
    unit: str
    word: str
    higher_is_better: bool
    rate: bool = False
    k: int = 1
    ratio: bool = False
    problem: str = ""


FIXED: Final = (
    Measure("flakiness", "share", "flakiness", higher_is_better=False, rate=True),
    Measure("harm_rate", "share", "harm rate", higher_is_better=False, rate=True),
    Measure("tool_error_rate", "share", "tool error rate", higher_is_better=False, rate=True),
    Measure("tokens", "tokens", "tokens per trial", higher_is_better=False),
    Measure("tool_calls", "calls", "tool calls per trial", higher_is_better=False),
    Measure("wall_s", "s", "time per trial", higher_is_better=False),
    Measure("cost_per_trial_usd", "USD", "cost per trial", higher_is_better=False),
    Measure("cost_per_solve_usd", "USD", "cost per solve", higher_is_better=False),
)
VIEW: Final = "view:"  # a second reading that graders give of a trial, by its label
NO_MORE: Final[Mapping[str, Measure]] = MappingProxyType({})
DIMENSIONS: Final = ("success", "harm", "abstention", "cost", "time")  # of the composite
NAMES: Final = ("pass@1", "pass^K", "pass@K", *(m.name for m in FIXED))


def measures_of(infos: Iterable[MetricInfo]) -> dict[str, Measure]:
    """The metrics of plugins, by name. One with the name of a built-in one is none."""
    found = {}
    for info in infos:
        if not _is_built_in(info.name):
            word = f"{info.name} ({'validated' if info.validated else 'not validated'})"
            problem = "" if info.higher_is_better is not None else "its plugin does not say whether more is better"
            found[info.name] = Measure(
                info.name, info.unit, word, bool(info.higher_is_better), ratio=True, problem=problem
            )
    return found


def is_plugins(name: str) -> bool:
    """Whether a metric can only be one that a plugin provides."""
    return not _is_built_in(name) and not name.startswith(VIEW)


def _is_built_in(name: str) -> bool:
    return PASS_K.fullmatch(name) is not None or any(name == m.name for m in FIXED)


def find_measure(name: str, more: Mapping[str, Measure] = NO_MORE) -> Measure:
    """The measure of that name; `more` are those of plugins. Wrong for what cannot be compared, with what can be.

    A view is a rate of which more is better: the share of trials of which it says yes.
    """
    found = PASS_K.fullmatch(name)
    if found is not None:
        k = int(found[2])
        if k == 1:
            return Measure("pass@1", "share", "pass rate", higher_is_better=True, rate=True)
        return Measure(name, "share", name, higher_is_better=True, rate=True, k=k)
    if name.startswith(VIEW) and name != VIEW:
        return Measure(name, "share", f"view {name.removeprefix(VIEW)!r}", higher_is_better=True, rate=True)
    known = {**more, **{m.name: m for m in FIXED}}
    if name in known and not known[name].problem:
        return known[name]
    why = f": {known[name].problem}" if name in known else ""
    usable = [other for other, measure in more.items() if not measure.problem]
    raise Wrong(f"{literal(name)} cannot be compared{why}", _hint(name, usable))


def _hint(name: str, plugins: Iterable[str]) -> str:
    near = did_you_mean(name, ["pass@1", *(m.name for m in FIXED), *plugins])
    return near or f"compared are: {', '.join((*NAMES, 'view:LABEL', *plugins))}"
