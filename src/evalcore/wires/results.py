"""What a tool answered, as an agent gets it: within the cap on every wire, and over HTTP readable by every parser."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Final

import orjson
from attrs import frozen

from evalcore.contracts import ToolResult
from evalcore.values.json import JSONObject, JSONValue, has_odd_float

OUTPUT_CAP: Final = 1 << 20  # bytes of one result: more than any model reads
RECORD_CAP: Final = 8 << 20  # bytes of one result that the trace keeps whole; beyond, it keeps what the agent got
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_MAX_DEPTH: Final = 200
_ESCAPED: Final = 6  # bytes that one character can become in JSON


@frozen
class Outgoing:
    """A result in a form that JSON can hold; `mended`: something was replaced."""

    content: list[JSONValue]
    structured: JSONValue
    mended: bool = False


def capped(result: ToolResult, cap: int = OUTPUT_CAP) -> tuple[ToolResult, int]:
    """The result, or its first `cap` bytes with a visible mark; and how large it is where it was cut, else 0."""
    if _is_small(result, cap):
        return result, 0
    size = _size([list(result.content), result.structured])
    if size <= cap:
        return result, 0
    return ToolResult(tuple(_cut(result.content, cap, size)), result.error), size


def outgoing(result: ToolResult) -> Outgoing:
    """The result as it is, or with what has no UTF-8 or no JSON replaced: lone surrogates, NaN, infinities."""
    content: list[JSONValue] = list(result.content)
    structured = result.structured
    if _plain_json(content, structured) is not None:
        return Outgoing(content, structured)
    mended = [_mend(part, _MAX_DEPTH) for part in content], _mend(structured, _MAX_DEPTH)
    return Outgoing(*mended, mended=list(mended) != [content, structured])  # integers of any size are JSON, and stay


def _is_small(result: ToolResult, cap: int) -> bool:
    """Whether it is plainly within the cap: nearly every result is, and costs no encoding to find out."""
    if result.structured is not None or len(result.content) > 8:
        return False
    room = cap // _ESCAPED - 100 * len(result.content)
    for part in result.content:
        text = part.get("text")
        if len(part) != 2 or not isinstance(text, str):
            return False
        room -= len(text)
    return room >= 0


def _size(value: JSONValue) -> int:
    """Bytes of a value as JSON."""
    try:
        return len(orjson.dumps(value))
    except (TypeError, ValueError):
        return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _plain_json(content: list[JSONValue], structured: JSONValue) -> bytes | None:
    """The result encoded; None if something in it is beyond the fast encoder."""
    try:
        encoded = orjson.dumps([content, structured])
    except (TypeError, ValueError):
        return None
    return None if b"null" in encoded and has_odd_float([content, structured]) else encoded


def _mend(value: JSONValue, depth: int) -> JSONValue:
    """The value with lone surrogates, NaN and infinities replaced: they have no UTF-8 and no JSON."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if not isinstance(value, (list, dict)):
        return value
    if depth == 0:
        return _REPLACEMENT
    if isinstance(value, list):
        return [_mend(v, depth - 1) for v in value]
    return {str(_mend(k, depth)): _mend(v, depth - 1) for k, v in value.items()}


def _cut(content: Sequence[JSONObject], cap: int, whole: int) -> list[JSONObject]:
    """The first `cap` bytes of the parts, and a part that says so."""
    kept: list[JSONObject] = []
    left = cap
    for part in content:
        size = _size(part)
        if size <= left:
            kept.append(part)
            left -= size
            continue
        text = part.get("text") if part.get("type") == "text" else None
        if isinstance(text, str):
            cut = text.encode("utf-8", "surrogatepass")[:left].decode("utf-8", "ignore")
            kept.append({"type": "text", "text": cut})
            left = 0
        break
    mark = f"[evalcore: cut here; {cap - left} of {whole} bytes are shown]"
    return [*kept, {"type": "text", "text": mark}]
