"""Reads the effects of bridge `toolset` (docs/suites.md), and tells everything wrong with one, each with its path."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, TypeVar

from evalcore.builtin.toolset_effects import Answer, Append, Branch, Delete, Effect, Fail, Set, Step
from evalcore.builtin.toolset_values import (
    COMPARISONS,
    All,
    AllArguments,
    AnyOf,
    Argument,
    Comparison,
    Condition,
    Expression,
    Fields,
    Items,
    Literal,
    Not,
    Path,
    StateValue,
    Text,
)
from evalcore.values.faults import Faults, Wrong, described, did_you_mean, item_path, key_path, literal, one_of
from evalcore.values.json import JSONObject, JSONValue

T = TypeVar("T")
Arguments: TypeAlias = "frozenset[str] | None"  # the names that a tool's schema lists; None: it lists none, any will do

MAX_DEPTH: Final = 100  # of branches, conditions and values within each other
VERBS: Final = ("set", "append", "delete", "return", "respond", "error", "then")
_TAKES: Final[Mapping[str, frozenset[str]]] = {
    "set": frozenset({"value", "value_arg"}),
    "append": frozenset({"value", "value_arg"}),
    "then": frozenset({"else"}),
}
_STEP_KEYS: Final = (*VERBS, "if", "else", "value", "value_arg")
_GROUPS: Final = ("all", "any", "not")
_CONDITION_KEYS: Final = (*_GROUPS, "path", "arg", *COMPARISONS)
_SPECIAL: Final = ("$arg", "$path", "$literal")
_BRACES: Final = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_.-]*)\}|[{}]")


def read_effect(raw: JSONValue, *, where: str, faults: Faults, arguments: Arguments = None) -> Effect:
    """An effect: one step, or several in an array. What is wrong goes to `faults`, and is left out."""
    return Effect(_Reader(faults, arguments).steps(raw, where, MAX_DEPTH))


class _Reader:
    """Reads one tool's effect."""

    def __init__(self, faults: Faults, arguments: Arguments) -> None:
        self._faults = faults
        self._arguments = arguments

    def steps(self, raw: JSONValue, where: str, depth: int) -> tuple[Step, ...]:
        """One step or an array of them."""
        if isinstance(raw, list):
            if not raw:
                self._faults.add(where, "has no step")
            found = [self._step(one, item_path(where, index), depth) for index, one in enumerate(raw)]
        else:
            found = [self._step(raw, where, depth)]
        return tuple(step for step in found if step is not None)

    def _step(self, raw: JSONValue, where: str, depth: int) -> Step | None:
        if depth <= 0:
            self._faults.add(where, f"nested deeper than {MAX_DEPTH} levels")
            return None
        if not isinstance(raw, dict):
            self._faults.add(where, f"expected a step, got {described(raw)}", 'for example {"set": "path"}')
            return None
        verb = self._verb(raw, where)
        if verb is None:
            return None
        for key in raw:
            if key not in (verb, "if") and key not in _TAKES.get(verb, ()):
                self._unexpected(key, verb, where)
        if verb == "then":
            return self._branch(raw, where, depth)
        made = self._made(verb, raw, where, depth)
        if "if" not in raw:
            return made
        condition = self.condition(raw["if"], key_path(where, "if"), depth - 1)
        return None if made is None or condition is None else Branch(condition, (made,))

    def _verb(self, raw: JSONObject, where: str) -> str | None:
        verbs = [key for key in VERBS if key in raw]
        if len(verbs) == 1:
            return verbs[0]
        if verbs:
            words = " and ".join(verbs)
            self._faults.add(where, f"{words} in one step", "one step does one thing: make an array of several")
            return None
        unknown = [key for key in raw if key not in _STEP_KEYS]
        hint = next((h for key in unknown if (h := did_you_mean(key, VERBS))), None)
        self._faults.add(where, f"does nothing: expected one of {', '.join(VERBS)}", hint)
        return None

    def _unexpected(self, key: str, verb: str, where: str) -> None:
        if key in _STEP_KEYS:
            self._faults.add(key_path(where, key), f"does not belong to {verb!r}")
        else:
            known = (verb, "if", *_TAKES.get(verb, ()))
            self._faults.add(key_path(where, key), "unknown key", did_you_mean(key, known))

    def _branch(self, raw: JSONObject, where: str, depth: int) -> Step | None:
        then = self.steps(raw["then"], key_path(where, "then"), depth - 1)
        otherwise = self.steps(raw["else"], key_path(where, "else"), depth - 1) if "else" in raw else ()
        if "if" not in raw:
            self._faults.add(key_path(where, "if"), "missing: expected a condition")
            return None
        condition = self.condition(raw["if"], key_path(where, "if"), depth - 1)
        return None if condition is None else Branch(condition, then, otherwise)

    def _made(self, verb: str, raw: JSONObject, where: str, depth: int) -> Step | None:
        place = key_path(where, verb)
        if verb in ("respond", "error"):
            content = self.expression(raw[verb], place, depth - 1)
            return Answer(content) if verb == "respond" else Fail(content)
        content = self._content(raw, where, depth) if verb in ("set", "append") else Literal(None)
        path = self._attempt(self._path, raw[verb], place)
        if path is None:
            return None
        if verb == "delete":
            return Delete(path)
        if verb == "return":
            return Answer(StateValue(path))
        return Set(path, content) if verb == "set" else Append(path, content)

    def _content(self, raw: JSONObject, where: str, depth: int) -> Expression:
        """What set and append store: `value`, the argument that `value_arg` names, or all arguments."""
        if "value" in raw and "value_arg" in raw:
            self._faults.add(where, "has both value and value_arg", "value: '{name}' is the argument `name`, too")
        if "value" in raw:
            return self.expression(raw["value"], key_path(where, "value"), depth - 1)
        if "value_arg" in raw:
            place = key_path(where, "value_arg")
            return self._attempt(self._argument, raw["value_arg"], place) or Literal(None)
        return AllArguments()

    # ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def expression(self, raw: JSONValue, where: str, depth: int) -> Expression:
        """A value in which text may name arguments, and `$arg`, `$path` and `$literal` stand for what they say."""
        if depth <= 0:
            self._faults.add(where, f"nested deeper than {MAX_DEPTH} levels")
        elif isinstance(raw, str):
            return self._attempt(self._text, raw, where) or Literal(None)
        elif isinstance(raw, list):
            items = tuple(self.expression(v, item_path(where, i), depth - 1) for i, v in enumerate(raw))
            constants = [e.content for e in items if isinstance(e, Literal)]
            return Literal(constants) if len(constants) == len(items) else Items(items)
        elif isinstance(raw, dict):
            if any(key.startswith("$") for key in raw):
                return self._special(raw, where)
            fields = {k: self.expression(v, key_path(where, k), depth - 1) for k, v in raw.items()}
            table = {k: e.content for k, e in fields.items() if isinstance(e, Literal)}
            return Literal(table) if len(table) == len(fields) else Fields(fields)
        return Literal(raw)

    def _special(self, raw: JSONObject, where: str) -> Expression:
        key = next(iter(raw))
        if len(raw) != 1 or key not in _SPECIAL:
            hint = 'an object with a key that begins with $ is written {"$literal": …}'
            self._faults.add(where, f"expected {one_of(_SPECIAL)} alone", hint)
            return Literal(None)
        place = key_path(where, key)
        if key == "$literal":
            return Literal(raw[key])
        if key == "$arg":
            return self._attempt(self._argument, raw[key], place) or Literal(None)
        path = self._attempt(self._path, raw[key], place)
        return Literal(None) if path is None else StateValue(path)

    def _argument(self, raw: JSONValue) -> Argument:
        if not isinstance(raw, str) or not raw:
            raise Wrong(f"expected an argument's name, got {described(raw)}")
        if self._arguments is not None and raw not in self._arguments:
            hint = did_you_mean(raw, self._arguments) or f"the schema has {', '.join(sorted(self._arguments))}"
            raise Wrong(f"no argument {literal(raw)} in the tool's schema", hint)
        return Argument(raw)

    def _text(self, raw: str) -> Expression:
        """`{name}` alone is the argument with its own type; within text it is written out; `{{` is a brace."""
        text = Text(self._parts(raw))
        if len(text.parts) == 1 and isinstance(text.parts[0], Argument):
            return text.parts[0]
        return text if any(isinstance(p, Argument) for p in text.parts) else Literal("".join(map(str, text.parts)))

    def _parts(self, raw: str) -> tuple[str | Argument, ...]:
        parts: list[str | Argument] = []
        plain, end = "", 0
        for found in _BRACES.finditer(raw):
            plain += raw[end : found.start()]
            end = found.end()
            if found[0] in ("{{", "}}"):
                plain += found[0][0]
            elif found[1] is None:
                raise Wrong(f"a brace that names no argument in {literal(raw)}", "a brace itself is written twice: {{")
            else:
                parts += [plain, self._argument(found[1])]
                plain = ""
        return tuple(p for p in (*parts, plain + raw[end:]) if not isinstance(p, str) or p)

    def _path(self, raw: JSONValue) -> Path:
        """`orders.{id}.items.0`, or the same as an array where a key holds a dot."""
        if isinstance(raw, list) and all(isinstance(one, str) for one in raw):
            texts = [str(one) for one in raw]
        elif isinstance(raw, str):
            texts = _split(raw)
        else:
            raise Wrong(f"expected a path, got {described(raw)}", 'for example "orders.{id}.status"')
        if not texts or not all(texts):
            raise Wrong("a path, and each part of it, is at least one character long")
        return Path(".".join(texts), tuple(self._segment(text) for text in texts))

    def _segment(self, raw: str) -> str | Text:
        parts = self._parts(raw)
        return Text(parts) if any(isinstance(p, Argument) for p in parts) else "".join(map(str, parts))

    # ── conditions ───────────────────────────────────────────────────────────────────────────────────────────────────

    def condition(self, raw: JSONValue, where: str, depth: int) -> Condition | None:
        """A comparison, a group, or an array of which all must hold."""
        if depth <= 0:
            self._faults.add(where, f"nested deeper than {MAX_DEPTH} levels")
            return None
        if isinstance(raw, list):
            return self._group("all", raw, where, depth)
        if not isinstance(raw, dict):
            example = 'for example {"path": "orders.{id}", "exists": true}'
            self._faults.add(where, f"expected a condition, got {described(raw)}", example)
            return None
        for key in raw:
            if key not in _CONDITION_KEYS:
                self._faults.add(key_path(where, key), "unknown key", did_you_mean(key, _CONDITION_KEYS))
        heads = [key for key in (*_GROUPS, "path", "arg") if key in raw]
        if len(heads) != 1:
            self._faults.add(where, "expected exactly one of path, arg, all, any and not")
            return None
        if heads[0] in _GROUPS:
            for key in raw:
                if key in COMPARISONS:
                    self._faults.add(key_path(where, key), f"does not belong to {heads[0]!r}")
            return self._group(heads[0], raw[heads[0]], key_path(where, heads[0]), depth)
        return self._comparison(heads[0], raw, where, depth)

    def _group(self, kind: str, raw: JSONValue, where: str, depth: int) -> Condition | None:
        if kind == "not":
            inner = self.condition(raw, where, depth - 1)
            return None if inner is None else Not(inner)
        if not isinstance(raw, list) or not raw:
            self._faults.add(where, "expected an array of conditions")
            return None
        found = [self.condition(one, item_path(where, index), depth - 1) for index, one in enumerate(raw)]
        sound = tuple(one for one in found if one is not None)
        return All(sound) if kind == "all" else AnyOf(sound)

    def _comparison(self, head: str, raw: JSONObject, where: str, depth: int) -> Condition | None:
        place = key_path(where, head)
        subject: Path | Argument | None
        subject = self._attempt(self._path, raw[head], place) if head == "path" else None
        if head == "arg":
            subject = self._attempt(self._argument, raw[head], place)
        names = [key for key in raw if key in COMPARISONS]
        if not names:
            self._faults.add(where, f"compares nothing: expected one of {', '.join(COMPARISONS)}")
        if "exists" in names and not isinstance(raw["exists"], bool):
            self._faults.add(key_path(where, "exists"), f"expected true or false, got {described(raw['exists'])}")
        tests = tuple((name, self.expression(raw[name], key_path(where, name), depth - 1)) for name in names)
        return None if subject is None or not tests else Comparison(subject, tests)

    def _attempt(self, read: Callable[[JSONValue], T] | Callable[[str], T], raw: JSONValue, where: str) -> T | None:
        """What `read` makes of it; what is wrong with it becomes a fault."""
        try:
            return read(raw)  # type: ignore[arg-type] # text is passed where text is taken
        except Wrong as wrong:
            self._faults.add(where, wrong.message, wrong.hint)
            return None


def _split(path: str) -> list[str]:
    """Segments by dots; a dot in the name of an argument is none."""
    return re.split(r"\.(?![^{}]*\})", path)
