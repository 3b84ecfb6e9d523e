"""Values, places in a state, and conditions: what the steps of `toolset_effects.py` are made of.

States are never changed in place: a change makes a new state that shares what it does not touch. So a declaration can
be the first state of every episode, and a call that ends in an error leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol, TypeAlias

from attrs import frozen

from evalcore.values.json import JSONObject, JSONValue, exact_text

Lookup: TypeAlias = "tuple[bool, JSONValue]"  # whether it is there, and what it is

NOT_THERE: Final[Lookup] = (False, None)
_BIGGEST_KEY: Final = 10**18  # an integer that names a key; Python would not even print one of 5,000 digits


class Denied(Exception):
    """The tool's own error, as the agent gets it."""


@frozen
class Scope:
    """What an expression can see: the state as it is now, and the arguments of the call."""

    state: JSONValue
    arguments: Mapping[str, JSONValue]


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Expression(Protocol):
    """Something that has a value in a scope. Raises Denied."""

    def value(self, scope: Scope) -> JSONValue: ...


@frozen
class Literal:
    """The value itself."""

    content: JSONValue

    def value(self, scope: Scope) -> JSONValue:
        """As written."""
        return self.content


@frozen
class Argument:
    """An argument of the call with its own type; null where it was not given."""

    name: str

    def value(self, scope: Scope) -> JSONValue:
        """As given."""
        return scope.arguments.get(self.name)


@frozen
class AllArguments:
    """The whole object of arguments."""

    def value(self, scope: Scope) -> JSONValue:
        """As given."""
        return dict(scope.arguments)


@frozen
class Text:
    """Text with arguments in it."""

    parts: tuple[str | Argument, ...]

    def value(self, scope: Scope) -> str:
        """The text. Raises Denied for an argument that is missing."""
        return "".join(p if isinstance(p, str) else said(_given(p.name, scope)) for p in self.parts)


@frozen
class Path:
    """A place in the state. A segment is a key or an index; one with arguments in it is still one segment."""

    text: str
    segments: tuple[str | Text, ...]

    def keys(self, scope: Scope) -> list[str]:
        """The segments with their arguments filled in. Raises Denied for an argument that can be no key."""
        return [s if isinstance(s, str) else _key(s, scope) for s in self.segments]

    def find(self, scope: Scope) -> Lookup:
        """What is there."""
        return lookup(scope.state, self.keys(scope))


@frozen
class StateValue:
    """What stands at a path; null where nothing does."""

    path: Path

    def value(self, scope: Scope) -> JSONValue:
        """As it is now."""
        return self.path.find(scope)[1]


@frozen
class Items:
    """An array of expressions."""

    items: tuple[Expression, ...]

    def value(self, scope: Scope) -> JSONValue:
        """Each in turn."""
        return [item.value(scope) for item in self.items]


@frozen
class Fields:
    """An object of expressions."""

    fields: Mapping[str, Expression]

    def value(self, scope: Scope) -> JSONValue:
        """Each in turn."""
        return {name: one.value(scope) for name, one in self.fields.items()}


def _given(name: str, scope: Scope) -> JSONValue:
    if name not in scope.arguments:
        raise Denied(f"missing argument {name!r}")
    return scope.arguments[name]


def said(value: JSONValue) -> str:
    """A value as text: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else exact_text(value)


def _key(text: Text, scope: Scope) -> str:
    """A segment that holds arguments. Only what names something can be a key: text and whole numbers."""
    parts: list[str] = []
    for part in text.parts:
        if isinstance(part, str):
            parts.append(part)
            continue
        value = _given(part.name, scope)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise Denied(f"argument {part.name!r} must be text or a whole number")
        if isinstance(value, int) and not -_BIGGEST_KEY < value < _BIGGEST_KEY:
            raise Denied(f"argument {part.name!r} is too large")
        parts.append(str(value))
    key = "".join(parts)
    if not key:
        raise Denied("an empty text names nothing")
    return key


# ── places in a state ────────────────────────────────────────────────────────────────────────────────────────────────


def lookup(state: JSONValue, keys: Sequence[str]) -> Lookup:
    """What stands at a path: keys of objects, indices of arrays."""
    for key in keys:
        if isinstance(state, dict):
            if key not in state:
                return NOT_THERE
            state = state[key]
        elif isinstance(state, list) and (index := index_of(key, len(state))) is not None:
            state = state[index]
        else:
            return NOT_THERE
    return True, state


def index_of(key: str, length: int) -> int | None:
    """A segment as an index of an array of that length."""
    if not (key.isascii() and key.isdigit() and len(key) < 10):
        return None
    index = int(key)
    return index if index < length else None


def stored(state: JSONValue, keys: Sequence[str], value: JSONValue) -> JSONValue:
    """The state with `value` at a path. What stands in the way and holds nothing becomes an object. Raises Denied."""
    if not keys:
        return value
    key, rest = keys[0], keys[1:]
    if isinstance(state, list):
        index = index_of(key, len(state))
        if index is None:
            raise Denied(f"there is no item {key!r}")
        return [*state[:index], stored(state[index], rest, value), *state[index + 1 :]]
    table: JSONObject = state if isinstance(state, dict) else {}
    return {**table, key: stored(table.get(key), rest, value)}


def removed(state: JSONValue, keys: Sequence[str]) -> JSONValue:
    """The state without what stands at a path; the same state if nothing does."""
    key, rest = keys[0], keys[1:]
    if isinstance(state, list):
        index = index_of(key, len(state))
        if index is None:
            return state
        inner = [removed(state[index], rest)] if rest else []
        return [*state[:index], *inner, *state[index + 1 :]]
    if not isinstance(state, dict) or key not in state:
        return state
    if rest:
        return {**state, key: removed(state[key], rest)}
    return {k: v for k, v in state.items() if k != key}


def same(one: JSONValue, other: JSONValue) -> bool:
    """Whether two values are equal: 1 and 1.0 are, 1 and true are not. Never overflows the stack."""
    pairs = [(one, other)]
    while pairs:
        a, b = pairs.pop()
        if isinstance(a, dict) and isinstance(b, dict):
            if a.keys() != b.keys():
                return False
            pairs += [(a[k], b[k]) for k in a]
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            pairs += zip(a, b, strict=True)
        elif isinstance(a, bool) is not isinstance(b, bool) or a != b:
            return False
    return True


# ── conditions ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Condition(Protocol):
    """True or false in a scope. Raises Denied."""

    def holds(self, scope: Scope) -> bool: ...


@frozen
class Comparison:
    """A place in the state, or an argument, against one or more comparisons; all of them must hold."""

    subject: Path | Argument
    tests: tuple[tuple[str, Expression], ...]

    def holds(self, scope: Scope) -> bool:
        """Whether all do."""
        if isinstance(self.subject, Path):
            found = self.subject.find(scope)
        else:
            found = (self.subject.name in scope.arguments, scope.arguments.get(self.subject.name))
        return all(_compare(name, found, wanted.value(scope)) for name, wanted in self.tests)


@frozen
class All:
    """Every one of several."""

    conditions: tuple[Condition, ...]

    def holds(self, scope: Scope) -> bool:
        """Whether all do; none is all."""
        return all(c.holds(scope) for c in self.conditions)


@frozen
class AnyOf:
    """One of several at least."""

    conditions: tuple[Condition, ...]

    def holds(self, scope: Scope) -> bool:
        """Whether one does."""
        return any(c.holds(scope) for c in self.conditions)


@frozen
class Not:
    """The opposite."""

    condition: Condition

    def holds(self, scope: Scope) -> bool:
        """Whether it does not."""
        return not self.condition.holds(scope)


COMPARISONS: Final = (
    "exists",
    "equals",
    "not_equals",
    "in",
    "not_in",
    "contains",
    "less_than",
    "at_most",
    "more_than",
    "at_least",
)


def _compare(name: str, found: Lookup, wanted: JSONValue) -> bool:
    there, value = found
    if name == "exists":
        return (there and value is not None) is bool(wanted)
    if name in ("equals", "not_equals"):
        return same(value, wanted) is (name == "equals")
    if name in ("in", "not_in"):
        return _holds(wanted, value) is (name == "in")
    if name == "contains":
        return _holds(value, wanted)
    return _ordered(name, value, wanted)


def _holds(container: JSONValue, item: JSONValue) -> bool:
    """An array holds its items, an object its keys, a text its parts."""
    if isinstance(container, list):
        return any(same(item, inner) for inner in container)
    if isinstance(container, (dict, str)):
        return isinstance(item, str) and item in container
    return False


def _ordered(name: str, value: JSONValue, wanted: JSONValue) -> bool:
    order = _order(value, wanted)
    if order is None:
        return False
    return {"less_than": order < 0, "at_most": order <= 0, "more_than": order > 0, "at_least": order >= 0}[name]


def _order(a: JSONValue, b: JSONValue) -> int | None:
    """Below 0, 0 or above 0 for two numbers or two texts; None for others, and for what is no number."""
    if isinstance(a, bool) or isinstance(b, bool):
        return None
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return (a > b) - (a < b) if a == a and b == b else None  # noqa: PLR0124 - NaN is the value that differs from itself
    if isinstance(a, str) and isinstance(b, str):
        return (a > b) - (a < b)
    return None
