"""JSON as evalcore reads, writes and digests it: nothing an agent can send is lost or silently changed.

`dumps` and `loads` take the fast road for ordinary values. Values that JSON libraries garble (integers beyond 64 bits,
NaN and infinities, lone surrogates) go into an *exact form*, `{"$exact": "<text>"}`, which every JSON reader can still
parse. `canonical` is the byte form that digests are made of; it keeps 5 and 5.0, NaN and null, and every code point
apart.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Final, TypeAlias, cast

import orjson

JSONValue: TypeAlias = "None | bool | int | float | str | list[JSONValue] | dict[str, JSONValue]"
JSONObject: TypeAlias = dict[str, JSONValue]

EXACT: Final = "$exact"
_HEX_INT: Final = "$int16"
_UNENCODABLE: Final = "$unencodable"
_MAX_DEPTH: Final = 200  # orjson refuses past 254; the standard library overflows its stack near 1,000
_DECIMAL_SAFE: Final = 10**4299  # Python refuses to print integers of more than 4,300 digits


def has_odd_float(value: object) -> bool:
    """Whether NaN or an infinity is anywhere in a JSON value: what the fast encoder writes as null without a word."""
    stack: list[object] = [[value]]
    while stack:
        item = stack.pop()
        for inner in item.values() if type(item) is dict else cast("list[object]", item):
            kind = type(inner)
            if kind is dict or kind is list or kind is tuple:
                stack.append(inner)
            elif kind is float and not math.isfinite(cast(float, inner)):
                return True
    return False


def dumps(value: object) -> bytes:
    """One line of JSON that `loads` turns back into an equal value. Never raises on any value an agent can make."""
    try:
        fast = orjson.dumps(value)
    except (TypeError, ValueError):  # an integer beyond 64 bits, a lone surrogate, too deep, a foreign type
        return orjson.dumps({EXACT: exact_text(value)})
    if fast.startswith(b'{"$exact"') or (b"null" in fast and has_odd_float(value)):
        return orjson.dumps({EXACT: exact_text(value)})
    return fast


def loads(data: bytes | str) -> JSONValue:
    """The value that `dumps` wrote. Raises ValueError for text that is no JSON."""
    value = orjson.loads(data)
    if type(value) is dict and len(value) == 1 and type(text := value.get(EXACT)) is str:
        return from_exact_text(text)
    return cast(JSONValue, value)


def exact_text(value: object) -> str:
    """ASCII JSON text (with NaN, and tags for what JSON cannot say) that `from_exact_text` turns back."""
    return json.dumps(_tame(value, _MAX_DEPTH), ensure_ascii=True, separators=(",", ":"))


def from_exact_text(text: str) -> JSONValue:
    """The value behind `exact_text`."""
    return cast(JSONValue, json.loads(text, object_hook=_untag))


def parse(text: str | bytes) -> JSONValue:
    """JSON text from outside, parsed without losing a digit. Raises ValueError, also for text nested too deeply."""
    try:
        return cast(JSONValue, json.loads(text))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def canonical(value: object) -> bytes:
    """The one byte form of `value`: sorted keys, ASCII, no spaces; equal bytes mean equal values and types."""
    try:
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"), sort_keys=True).encode("ascii")
    except (TypeError, ValueError, RecursionError):
        tagged = json.dumps(_tame(value, _MAX_DEPTH), ensure_ascii=True, separators=(",", ":"), sort_keys=True)
        return b"$" + tagged.encode("ascii")  # no JSON begins so: a tag never passes for an object that looks like it


def digest(value: object) -> str:
    """The sha256 of `canonical(value)`, 64 hexadecimal digits."""
    return hashlib.sha256(canonical(value)).hexdigest()


def _tame(value: object, depth: int) -> JSONValue:
    """`value` with what the standard encoder refuses replaced by tagged objects."""
    if value is None or isinstance(value, (bool, float, str)):
        return value
    if isinstance(value, int):
        return value if -_DECIMAL_SAFE < value < _DECIMAL_SAFE else {_HEX_INT: hex(value)}
    if depth <= 0:
        return {_UNENCODABLE: f"nested deeper than {_MAX_DEPTH} levels"}
    if isinstance(value, dict):
        if len(value) == 1 and _is_tag(key := next(iter(value))):  # an agent's own, that only looks like ours
            return {f"${key}": _tame(value[key], depth - 1)}
        return {
            k if isinstance(k, str) else f"{_UNENCODABLE}:{k!r:.100}": _tame(v, depth - 1) for k, v in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_tame(v, depth - 1) for v in value]
    return {_UNENCODABLE: type(value).__name__}


def _untag(value: dict[str, JSONValue]) -> JSONValue:
    if len(value) == 1 and _is_tag(key := next(iter(value))):
        inner = value[key]
        if key != _HEX_INT:
            return {key[1:]: inner}
        if isinstance(inner, str):
            return int(inner, 16)
    return value


def _is_tag(key: object) -> bool:
    """Whether a lone key is `$int16`, or that with more dollars: how what merely looks like a tag is quoted."""
    return isinstance(key, str) and key.endswith(_HEX_INT) and key.strip("$") == _HEX_INT[1:]
