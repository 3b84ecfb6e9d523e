"""What a tool answered, as it goes over the wire: within the cap, and readable by every JSON parser."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Final

import orjson
from attrs import frozen

from evalcore.contracts import ToolResult
from evalcore.values.json import JSONValue, has_odd_float

OUTPUT_CAP: Final = 1 << 20  # bytes of one result: more than any model reads
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_MAX_DEPTH: Final = 200


@frozen
class Outgoing:
    """A result for the wire. `whole` is its size where it was cut, else 0; `mended`: something was replaced."""

    content: list[JSONValue]
    structured: JSONValue
    whole: int = 0
    mended: bool = False


def outgoing(result: ToolResult, cap: int = OUTPUT_CAP) -> Outgoing:
    """The result as it is, or what is left of it: cut to `cap` bytes with a visible mark, unreadable values replaced.

    What the environment answered stays in the trace as it was.
    """
    content: list[JSONValue] = list(result.content)
    structured, mended = result.structured, False
    encoded = _plain_json(content, structured)
    if encoded is None:
        before = [content, structured]
        content, structured = [_mend(part, _MAX_DEPTH) for part in content], _mend(structured, _MAX_DEPTH)
        mended = [content, structured] != before  # integers of any size are JSON, and stay
        encoded = json.dumps([content, structured], ensure_ascii=False).encode()
    if len(encoded) <= cap:
        return Outgoing(content, structured, mended=mended)
    return Outgoing(_cut(content, cap, len(encoded)), None, len(encoded), mended)


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


def _cut(content: Sequence[JSONValue], cap: int, whole: int) -> list[JSONValue]:
    """The first `cap` bytes of the parts, and a part that says so."""
    kept: list[JSONValue] = []
    left = cap
    for part in content:
        size = len(json.dumps(part, ensure_ascii=False).encode())
        if size <= left:
            kept.append(part)
            left -= size
            continue
        text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
        if isinstance(text, str):
            kept.append({"type": "text", "text": text.encode()[:left].decode(errors="ignore")})
            left = 0
        break
    mark = f"[evalcore: cut here; {cap - left} of {whole} bytes are shown]"
    return [*kept, {"type": "text", "text": mark}]
