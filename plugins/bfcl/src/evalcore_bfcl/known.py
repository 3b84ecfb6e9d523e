"""Upstream's tasks that no right answer passes, or none within reach. Their verdicts stand; trials carry the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_UNTYPED: Final = "no answer passes: the ground truth holds numbers or truth values where the checker reads only text"
_NO_ALTERNATIVE: Final = "no answer passes: the ground truth accepts no value at all for a required array"

KNOWN_BAD: Final[Mapping[str, str]] = {
    "simple_java_36": f"{_UNTYPED} (`parts`)",
    "simple_java_64": "the right answer fails: `meta` expects one letter of epoch_millis; an empty map passes",
    "simple_java_65": f"{_UNTYPED} (`params`)",
    "live_simple_106-63-0": f"{_NO_ALTERNATIVE} (`auto_loan_payment_start` and others)",
    "live_simple_112-68-0": f"{_NO_ALTERNATIVE} (`acc_routing_start` and others)",
    "live_multiple_862-181-3": "no answer passes: the ground truth demands `journey_start_time`, the schema has none",
    "live_multiple_964-207-0": "no answer passes: the schema requires `statement`, the ground truth has `question`",
}

OUT_OF_REACH: Final[Mapping[str, str]] = {
    "multi_turn_miss_func_49": "the ground truth calls `tail` two turns before it is offered; an agent cannot",
}
"""Tasks whose ground truth passes, by what no agent is offered."""


def flags_of(task: str) -> tuple[str, ...]:
    """The flags of a task, by its id: none, or the defect."""
    why = KNOWN_BAD.get(task) or OUT_OF_REACH.get(task)
    return (f"upstream: {why}",) if why else ()
