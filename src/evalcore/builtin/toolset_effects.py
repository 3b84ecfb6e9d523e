"""What a declared tool does to the state of an episode: a small language of data, never of code (docs/suites.md).

`toolset_syntax.py` reads it and finds what is wrong with it; here it is carried out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from attrs import field, frozen

from evalcore.builtin.toolset_values import Condition, Denied, Expression, Path, Scope, lookup, removed, said, stored
from evalcore.values.json import JSONValue


class Step(Protocol):
    """One thing that a call does. Raises Denied."""

    def run(self, outcome: Outcome) -> Outcome: ...


@frozen
class Outcome:
    """Where a call stands: the state so far, and the answer so far (null: none)."""

    state: JSONValue
    arguments: Mapping[str, JSONValue]
    answer: JSONValue = None
    error: str | None = None

    def scope(self) -> Scope:
        """What the next step sees."""
        return Scope(self.state, self.arguments)

    def with_state(self, state: JSONValue) -> Outcome:
        """The same with another state."""
        return Outcome(state, self.arguments, self.answer)

    def with_answer(self, answer: JSONValue) -> Outcome:
        """The same with another answer; null leaves the one before."""
        return self if answer is None else Outcome(self.state, self.arguments, answer)


@frozen
class Set:
    """Put a value at a path."""

    path: Path
    content: Expression

    def run(self, outcome: Outcome) -> Outcome:
        """Put it."""
        scope = outcome.scope()
        return outcome.with_state(stored(outcome.state, self.path.keys(scope), self.content.value(scope)))


@frozen
class Append:
    """Add a value to the array at a path; what is no array there is replaced by one."""

    path: Path
    content: Expression

    def run(self, outcome: Outcome) -> Outcome:
        """Add it."""
        scope = outcome.scope()
        keys = self.path.keys(scope)
        before = lookup(outcome.state, keys)[1]
        items = before if isinstance(before, list) else []
        return outcome.with_state(stored(outcome.state, keys, [*items, self.content.value(scope)]))


@frozen
class Delete:
    """Remove what stands at a path, if anything does."""

    path: Path

    def run(self, outcome: Outcome) -> Outcome:
        """Remove it."""
        return outcome.with_state(removed(outcome.state, self.path.keys(outcome.scope())))


@frozen
class Answer:
    """What the agent gets back; null leaves the answer as it was."""

    content: Expression

    def run(self, outcome: Outcome) -> Outcome:
        """Answer it."""
        return outcome.with_answer(self.content.value(outcome.scope()))


@frozen
class Fail:
    """End the call with an error of the tool."""

    message: Expression

    def run(self, outcome: Outcome) -> Outcome:
        """Always raises Denied."""
        raise Denied(said(self.message.value(outcome.scope())))


@frozen
class Branch:
    """Steps for when a condition holds, and others for when it does not."""

    condition: Condition
    then: tuple[Step, ...]
    otherwise: tuple[Step, ...] = field(default=())

    def run(self, outcome: Outcome) -> Outcome:
        """Run those of the two that apply."""
        return run(self.then if self.condition.holds(outcome.scope()) else self.otherwise, outcome)


def run(steps: Sequence[Step], outcome: Outcome) -> Outcome:
    """Every step in order. Raises Denied; the state before is then still the state."""
    for step in steps:
        outcome = step.run(outcome)
    return outcome


@frozen
class Effect:
    """What one tool does: all of its steps, or none of them."""

    steps: tuple[Step, ...]

    def apply(self, state: JSONValue, arguments: Mapping[str, JSONValue]) -> Outcome:
        """The state afterwards and the answer; with an error, the state as it was."""
        try:
            return run(self.steps, Outcome(state, arguments))
        except Denied as denied:
            return Outcome(state, arguments, error=str(denied))
