"""What a contrast can be about: the built-in metrics by name, with their unit and which direction is better.

Here are only names, because a study has to be checked before there is anything to measure. How a task's value is made
is said in `evalcore.report.measures`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from attrs import frozen

from evalcore.values.faults import Wrong, did_you_mean, literal

PASS_K: Final = re.compile(r"pass([@^])([1-9][0-9]{0,3})", re.ASCII)


@frozen
class Measure:
    """A metric of one task's trials. A `rate` lies in [0, 1], and its differences are told in points.

    `word` names what is measured, as in "A's time per trial is 2.0 s lower than B's"; `k` belongs to pass^k and pass@k.
    """

    name: str
    unit: str
    word: str
    higher_is_better: bool
    rate: bool = False
    k: int = 1


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
DIMENSIONS: Final = ("success", "harm", "abstention", "cost", "time")  # of the composite
NAMES: Final = ("pass@1", "pass^K", "pass@K", *(m.name for m in FIXED))


def find_measure(name: str) -> Measure:
    """The measure of that name. Wrong for one that cannot be compared, with what can be."""
    found = PASS_K.fullmatch(name)
    if found is not None:
        k = int(found[2])
        if k == 1:
            return Measure("pass@1", "share", "pass rate", higher_is_better=True, rate=True)
        return Measure(name, "share", name, higher_is_better=True, rate=True, k=k)
    fixed = {m.name: m for m in FIXED}
    if name in fixed:
        return fixed[name]
    raise Wrong(f"{literal(name)} cannot be compared", _hint(name, fixed))


def _hint(name: str, known: Iterable[str]) -> str:
    near = did_you_mean(name, ["pass@1", *known])
    return near or f"compared are: {', '.join(NAMES)}"
