"""When a tool call is the one that was expected, and when a value holds what was expected: the suite format's rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from evalcore.builtin.toolset_values import same
from evalcore.values.faults import key_path, literal
from evalcore.values.json import JSONObject, JSONValue, exact_text, parse
from evalcore.values.task import Call

_SHOWN: Final = 80  # characters of a value that a reason repeats
_PUNCTUATION: Final = str.maketrans("", "", " ,./-_*^")
_SPACE: Final = re.compile(r"\s+")


# ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def call_fits(call: Call, wanted: JSONObject) -> bool:
    """The same name, and every expected argument given with an accepted value; others may be given, too."""
    if call.name != wanted["name"]:
        return False
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    expected = wanted.get("args")
    if not isinstance(expected, dict):
        return True
    return all(name in arguments and argument_fits(arguments[name], value) for name, value in expected.items())


def call_is(call: Call, forbidden: JSONObject) -> bool:
    """As `call_fits`, but that `*` in the name stands for anything."""
    name = str(forbidden["name"])
    pattern = ".*".join(map(re.escape, name.split("*")))
    return re.fullmatch(pattern, call.name, re.DOTALL) is not None and call_fits(call, {**forbidden, "name": call.name})


def argument_fits(given: JSONValue, accepted: JSONValue) -> bool:
    """One of the accepted values; an array is several of them (so an array itself is written within another)."""
    return any(_fits(given, one) for one in (accepted if isinstance(accepted, list) else [accepted]))


def _fits(given: JSONValue, wanted: JSONValue) -> bool:
    if isinstance(given, bool) or isinstance(wanted, bool):
        return given is wanted
    if isinstance(given, (int, float)) and isinstance(wanted, (int, float)):
        return given == wanted
    if isinstance(given, str) and isinstance(wanted, str):
        return _standard(given) == _standard(wanted) or _formula(given) == _formula(wanted)
    if isinstance(given, list) and isinstance(wanted, list):
        return len(given) == len(wanted) and all(_fits(a, b) for a, b in zip(given, wanted, strict=True))
    if isinstance(given, dict) and isinstance(wanted, dict):
        return _table_fits(given, wanted)
    return given is None and wanted is None


def _table_fits(given: JSONObject, wanted: JSONObject) -> bool:
    """No key that is not expected; an expected one may be missing where "" is accepted for it."""
    if not given.keys() <= wanted.keys():
        return False
    for key, value in wanted.items():
        if key not in given:
            if value == "" or (isinstance(value, list) and "" in value):
                continue
            return False
        if isinstance(value, list) and not any(isinstance(v, (list, dict)) for v in value):
            if not any(_fits(given[key], v) for v in value if v != ""):
                return False
        elif not _fits(given[key], value):
            return False
    return True


def _standard(text: str) -> str:
    """As BFCL compares text: without case, spaces and punctuation, and with one kind of quotes."""
    return text.translate(_PUNCTUATION).lower().replace("'", '"')


def _formula(text: str) -> str:
    """As BFCL compares formulas."""
    return _SPACE.sub("", text.strip().removeprefix("lambda x:").replace("^", "**"))


def in_order(calls: Sequence[Call], wanted: Sequence[JSONObject]) -> int:
    """How many of the wanted calls were made in this order, others between them or not."""
    found = 0
    for call in calls:
        if found < len(wanted) and call_fits(call, wanted[found]):
            found += 1
    return found


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def first_difference(actual: JSONValue, wanted: JSONValue, where: str) -> str | None:
    """Where `actual` does not hold what is wanted; None if it does.

    Of an object only the wanted keys count; an array has as many items; all else is equal.
    """
    if isinstance(wanted, dict):
        if not isinstance(actual, dict):
            return f"{where} is {_shown(actual)}, not an object"
        for key, value in wanted.items():
            if key not in actual:
                return f"{key_path(where, key)} is missing"
            if (found := first_difference(actual[key], value, key_path(where, key))) is not None:
                return found
        return None
    if isinstance(wanted, list):
        if not isinstance(actual, list) or len(actual) != len(wanted):
            return f"{where} is {_shown(actual)}, expected {_shown(wanted)}"
        pairs = enumerate(zip(actual, wanted, strict=True))
        return next((d for i, (a, w) in pairs if (d := first_difference(a, w, f"{where}[{i}]")) is not None), None)
    return None if same(actual, wanted) else f"{where} is {_shown(actual)}, expected {_shown(wanted)}"


def answer_fault(check: JSONObject, answer: JSONObject) -> str | None:
    """Why a server's recorded answer is not the one that was wanted; None if it is, but for its `regex`."""
    text = str(answer["text"])
    if answer["error"] is not bool(check.get("error", False)):
        return f"answered {'an error' if answer['error'] else 'no error'}: {text[:_SHOWN]}"
    exact, contains = check.get("exact"), check.get("contains")
    if isinstance(exact, str) and text.strip() != exact.strip():
        return f"answered {literal(text)}, not {literal(exact)}"
    for one in contains if isinstance(contains, list) else [contains] if contains is not None else []:
        if str(one) not in text:
            return f"{literal(one)} is not in its answer"
    wanted = check.get("json")
    if wanted is None:
        return None
    found = [answer["structured"]] if "structured" in answer else []
    try:
        found.append(parse(text))
    except ValueError:
        if not found:
            return "its answer is no JSON"
    differences = [first_difference(value, wanted, "$") for value in found]
    return None if None in differences else differences[-1]


def _shown(value: JSONValue) -> str:
    """A value as JSON, cut where it is long."""
    text = exact_text(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
