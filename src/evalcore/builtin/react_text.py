"""`react` for models without native tool calling: tools, calls and results as plain text.

The system message lists the tools with their JSON Schemas and asks for calls in this form, any number in one reply:

    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Bern"}}
    </tool_call>

Results come back in one user message, a `<tool_result>` block per call in the order of the calls, its content JSON:
what a tool says can so not be mistaken for a block of its own. A reply without a call is the answer. A block that is
never closed, or holds no JSON object with a `name`, counts as a malformed call: the model is told, and the tool-error
rate counts it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from attrs import frozen

from evalcore.values.json import JSONObject, JSONValue, parse
from evalcore.values.task import Call, ToolSpec

OPENING: Final = "<tool_call>"
CLOSING: Final = "</tool_call>"

_HOW: Final = """You can call tools. To call one, write

<tool_call>
{"name": "the tool's name", "arguments": {...}}
</tool_call>

with `arguments` an object that fits the tool's schema. Several calls in one reply are several such blocks. After your \
reply you get their results; until then, do not guess them. When you need no further call, reply with your answer and \
no such block.

The tools, one a line, as JSON:
"""


@frozen
class TextReply:
    """A reply taken apart: what it calls, and the text around the calls."""

    calls: tuple[Call, ...]
    text: str


def instructions(tools: Sequence[ToolSpec]) -> str:
    """The part of the system message that offers the tools."""
    lines = [
        json.dumps({"name": t.name, "description": t.description, "parameters": t.input_schema}, ensure_ascii=False)
        for t in tools
    ]
    return _HOW + "\n".join(lines)


def with_offer(messages: list[JSONValue], offer: str) -> list[JSONValue]:
    """The messages with `offer` at the end of the system message, or in one put before them."""
    if not offer:
        return messages
    first = messages[0] if messages else None
    if isinstance(first, dict) and first.get("role") == "system" and isinstance(first.get("content"), str):
        return [{**first, "content": f"{first['content']}\n\n{offer}"}, *messages[1:]]
    system: JSONObject = {"role": "system", "content": offer}
    return [system, *messages]


def read_reply(text: str) -> TextReply:
    """Every call block of a reply, in order. Never raises: a block that is none becomes a call with `raw` set."""
    calls: list[Call] = []
    around: list[str] = []
    position = 0
    while (start := text.find(OPENING, position)) >= 0:
        around.append(text[position:start])
        begin = start + len(OPENING)
        end = text.find(CLOSING, begin)
        inside = text[begin:] if end < 0 else text[begin:end]
        calls.append(_call(inside, closed=end >= 0))
        position = len(text) if end < 0 else end + len(CLOSING)
    around.append(text[position:])
    return TextReply(tuple(calls), "".join(around).strip())


def _call(inside: str, *, closed: bool) -> Call:
    try:
        value = parse(inside)
    except ValueError:
        return Call("", None, inside)
    if not closed or not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return Call("", None, inside)
    return Call(str(value["name"]), value.get("arguments", {}))


def results_message(results: Sequence[tuple[str, str, bool]]) -> JSONObject:
    """The user message that hands back results, given as (tool, text, whether it is an error)."""
    blocks = []
    for name, text, error in results:
        content: JSONObject = {"tool": name, "error" if error else "result": text}
        # `<` is escaped so that no result can close its block or open another
        body = json.dumps(content, ensure_ascii=False).replace("<", "\\u003c")
        blocks.append(f"<tool_result>\n{body}\n</tool_result>")
    return {"role": "user", "content": "\n".join(blocks)}


def render_call(name: str, arguments: JSONValue) -> str:
    """A call block, as a model would write it; for playbooks and tests."""
    return f"{OPENING}\n{json.dumps({'name': name, 'arguments': arguments}, ensure_ascii=False)}\n{CLOSING}"
