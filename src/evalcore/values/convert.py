"""The one strict converter between plain data (JSON, TOML) and values: every fault at once, each with its path.

Nothing is coerced: "3" is no integer, 1 is no boolean; only an integer may stand for a number. Fields typed JSONValue
or JSONObject pass through untouched. cattrs walks (`structuring.py`), and is imported only when something is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, cast

import attrs

from evalcore.errors import ConfigError, Fault
from evalcore.values.faults import ROOT, Faults, faulty
from evalcore.values.json import EXACT, JSONObject, JSONValue, exact_text, from_exact_text
from evalcore.values.task import GoldAnswer, GoldCalls, GoldDialogue, GoldPatch, GoldScript

if TYPE_CHECKING:
    from cattrs import Converter

T = TypeVar("T")


class File(Protocol):
    """Whatever gives its bytes, as a Path does: this package opens nothing, its caller hands it over."""

    def read_bytes(self) -> bytes: ...


_DIGITS: Final = 10**4000  # Python reads and prints no integer of more than 4,300 digits
_SYNTAX: Final = re.compile(r"(?s)(.*) \((?:at line (\d+), column (\d+)|at end of document)\)")
_tags: dict[type, tuple[str, str]] = {}


# ── plain data to values ─────────────────────────────────────────────────────────────────────────────────────────────


def structure(raw: object, kind: type[T], *, where: str = ROOT, source: str | None = None) -> T:
    """The value of `kind` that `raw` says; ConfigError with every fault if it says none."""
    faults = Faults()
    value = attempt(raw, kind, where=where, faults=faults)
    faults.raise_if_any(source or str(getattr(kind, "__name__", "value")))
    return cast(T, value)


def attempt(raw: object, kind: type[T], *, where: str, faults: Faults) -> T | None:
    """As `structure`, for a part of something larger: what is wrong goes to `faults`, and None comes back."""
    from evalcore.values import structuring

    value, found = structuring.faults(_converter(), raw, kind, where)
    faults.extend(found)
    return cast("T | None", value)


def tag_union(members: Mapping[str, type], key: str = "kind") -> None:
    """Tell the classes of a union apart by a key that says which: `{"kind": "answer", …}`."""
    _tags.update({cls: (key, tag) for tag, cls in members.items()})


@cache
def _converter() -> Converter:
    from evalcore.values import structuring

    return structuring.make_converter(_tags)


# ── values to plain data ─────────────────────────────────────────────────────────────────────────────────────────────


def unstructure(value: object) -> JSONValue:
    """Plain data that `structure` turns back: computed fields left out, and fields that are None as by default."""
    cls = type(value)
    if attrs.has(cls):
        plain: JSONObject = dict([_tags[cls]]) if cls in _tags else {}
        fields = [(a, getattr(value, a.name)) for a in attrs.fields(cls)]
        return plain | {a.name: unstructure(v) for a, v in fields if _kept(a, v)}
    if isinstance(value, Mapping):
        return {k: unstructure(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [unstructure(v) for v in value]
    return cast(JSONValue, value)


def _kept(field: attrs.Attribute[object], value: object) -> bool:
    return field.init and not (value is None and field.default is None)


# ── TOML ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def to_toml(value: object) -> str:
    """A value as TOML. What TOML cannot say (null within JSON, a lone surrogate) is in the exact form of `json.py`."""
    import tomli_w

    plain = unstructure(value)
    if not isinstance(plain, dict):
        raise TypeError(f"a TOML document is a table, not {type(value).__name__}")
    return tomli_w.dumps({k: _sayable(v) for k, v in plain.items()})


def from_toml(source: str | File, kind: type[T], *, name: str | None = None) -> T:
    """The value that `to_toml` wrote: from its text, or from a file. `name` is what errors call it."""
    if not isinstance(source, str):
        source, name = read_text(source), name or str(source)
    raw = parse_toml(source, name or "TOML")
    try:
        said = _unsaid(raw)
    except (ValueError, RecursionError) as error:
        raise faulty(name or "TOML", [Fault(ROOT, f"{EXACT} holds no JSON: {error}")]) from None
    return structure(said, kind, source=name)


def parse_toml(text: str, source: str) -> dict[str, object]:
    """TOML text as tables; a syntax error is a fault with its line and column."""
    import tomllib

    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise faulty(source, [_syntax_fault(str(error))]) from None
    except RecursionError:
        raise faulty(source, [Fault(ROOT, "nested too deeply")]) from None
    except ValueError as error:  # an integer of thousands of digits
        raise faulty(source, [Fault(ROOT, str(error))]) from None


def read_text(file: File) -> str:
    """The text of a file that a user named; what keeps it from being read is a ConfigError."""
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise ConfigError(f"no such file: {file}") from None
    except UnicodeDecodeError as error:
        raise faulty(str(file), [Fault(f"byte {error.start}", "not UTF-8 text")]) from None
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from None


def _syntax_fault(said: str) -> Fault:
    """tomllib gives the place as text only, and has attributes for it from Python 3.14."""
    match = _SYNTAX.fullmatch(said)
    if match is None:
        return Fault(ROOT, said)
    where = f"line {match[2]}, column {match[3]}" if match[2] else "end of file"
    return Fault(where, match[1])


def _sayable(value: JSONValue) -> JSONValue:
    """`value` with what TOML cannot hold in the exact form."""
    if isinstance(value, list):
        return [_sayable(v) for v in value]
    if isinstance(value, dict):
        if (len(value) == 1 and EXACT in value) or not all(_is_text(k) for k in value):
            return {EXACT: exact_text(value)}
        return {k: _sayable(v) for k, v in value.items()}
    if isinstance(value, str):
        return value if _is_text(value) else {EXACT: exact_text(value)}
    if value is None or (isinstance(value, int) and not -_DIGITS < value < _DIGITS):
        return {EXACT: exact_text(value)}
    return value


def _unsaid(value: object) -> object:
    """What `_sayable` was given."""
    if isinstance(value, list):
        return [_unsaid(v) for v in value]
    if isinstance(value, dict):
        text = value.get(EXACT)
        if len(value) == 1 and isinstance(text, str):
            return from_exact_text(text)
        return {k: _unsaid(v) for k, v in value.items()}
    return value


def _is_text(text: str) -> bool:
    """Whether it can be encoded: half a surrogate pair cannot."""
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


tag_union(
    {
        "answer": GoldAnswer,
        "calls": GoldCalls,
        "dialogue": GoldDialogue,
        "patch": GoldPatch,
        "script": GoldScript,
    }
)
