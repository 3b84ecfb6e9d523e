"""Anthropic Messages, streamed: events read, gathered, written, and cut from a whole response."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import evolve

from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.usage import Usage, usage_from_messages
from evalcore.wires.gateway.dialects.deltas import Began, Closed, Delta, Finished, Grew, Opened
from evalcore.wires.gateway.dialects.messages import (
    read_response,
    stop_details,
    stop_of,
    usage_json,
)
from evalcore.wires.gateway.dialects.neutral import Part, Reasoning, Text, ToolUse, arguments_of, input_of

_GROWS: Final = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


class MessagesStream:
    """Events as they come."""

    def __init__(self) -> None:
        self.ended = False
        self._message: JSONObject = {"type": "message", "role": "assistant", "content": []}
        self._blocks: dict[int, JSONObject] = {}
        self._json: dict[int, str] = {}  # of calls: their input, as text
        self._parts: dict[int, tuple[int, Part]] = {}  # of blocks that other dialects know: number, part so far
        self._count = 0

    def add(self, event: JSONObject) -> list[Delta]:
        """One event."""
        kind = event.get("type")
        if kind == "message_start":
            return [self._started(event.get("message"))]
        if kind == "content_block_start":
            return self._block(_index(event), event.get("content_block"))
        if kind == "content_block_delta":
            return self._grown(_index(event), event.get("delta"))
        if kind == "content_block_stop":
            return self._stopped(_index(event))
        if kind == "message_delta":
            self._amend(event)
        elif kind == "message_stop":
            self.ended = True
        return []

    def _started(self, message: JSONValue) -> Began:
        if not isinstance(message, dict):
            raise ValueError("message_start without a message")
        self._message = {**message, "content": []}
        usage = usage_from_messages(message)
        return Began(str(message.get("id") or "msg_0"), str(message.get("model") or ""), usage=usage)

    def _block(self, index: int, block: JSONValue) -> list[Delta]:
        if not isinstance(block, dict):
            raise ValueError("content_block_start without a block")
        self._blocks[index] = dict(block)
        part = _part_of(block)
        if part is None:
            return []
        self._parts[index] = self._count, part
        self._count += 1
        return [Opened(self._count - 1, part)]

    def _grown(self, index: int, delta: JSONValue) -> list[Delta]:
        block = self._blocks.get(index)
        if block is None or not isinstance(delta, dict):
            raise ValueError("content_block_delta of no block")
        kind = str(delta.get("type"))
        if kind == "input_json_delta":
            piece = str(delta.get("partial_json") or "")
            self._json[index] = self._json.get(index, "") + piece
            return self._added(index, piece)
        if kind in _GROWS:
            name = _GROWS[kind]
            piece = str(delta.get(name) or "")
            block[name] = str(block.get(name) or "") + piece
            return [] if name == "signature" else self._added(index, piece)
        if kind == "citations_delta":
            cited = block.get("citations")
            block["citations"] = [*(cited if isinstance(cited, list) else ()), delta.get("citation")]
        return []

    def _added(self, index: int, piece: str) -> list[Delta]:
        if index not in self._parts or not piece:
            return []
        number, part = self._parts[index]
        if isinstance(part, ToolUse):
            part = evolve(part, arguments=part.arguments + piece)
        elif isinstance(part, (Text, Reasoning)):
            part = evolve(part, text=part.text + piece)
        self._parts[index] = number, part
        return [Grew(number, piece)]

    def _stopped(self, index: int) -> list[Delta]:
        block = self._blocks.get(index)
        if block is None:
            raise ValueError("content_block_stop of no block")
        if index in self._json:
            block["input"] = input_of(self._json[index])
        if index not in self._parts:
            return []
        number, part = self._parts.pop(index)
        seal = block.get("signature")
        if isinstance(part, Reasoning) and isinstance(seal, str) and seal:
            part = evolve(part, seal=seal)
        return [Closed(number, part)]

    def _amend(self, event: JSONObject) -> None:
        """What is known at the end: the reason, and the usage, which is a total."""
        delta, usage = event.get("delta"), event.get("usage")
        if isinstance(delta, dict):
            self._message.update(delta)
        if isinstance(usage, dict):
            before = self._message.get("usage")
            known = before if isinstance(before, dict) else {}
            self._message["usage"] = {**known, **{k: v for k, v in usage.items() if v is not None}}

    def whole(self) -> JSONObject:
        """The response as it would have come whole."""
        return {**self._message, "content": [self._blocks[i] for i in sorted(self._blocks)]}

    def close(self) -> list[Delta]:
        """What follows the last event."""
        return [Finished(read_response(self.whole()))]


def _index(event: JSONObject) -> int:
    index = event.get("index")
    if not isinstance(index, int):
        raise ValueError("an event of a block without its index")
    return index


def _part_of(block: JSONObject) -> Part | None:
    """The part that a block begins."""
    kind = block.get("type")
    if kind == "text":
        return Text(str(block.get("text") or ""))
    if kind == "thinking":
        return Reasoning(str(block.get("thinking") or ""))
    if kind == "redacted_thinking":
        return Reasoning(seal=str(block.get("data") or ""), redacted=True)
    if kind == "tool_use":
        given = block.get("input")
        return ToolUse(
            str(block.get("id") or ""),
            str(block.get("name") or ""),
            arguments_of(given) if given and isinstance(given, dict) else "",
        )
    return None


class MessagesWriter:
    """Events for an agent."""

    def __init__(self) -> None:
        self._kinds: dict[int, str] = {}

    def write(self, delta: Delta) -> list[JSONObject]:
        """The events that say it."""
        if isinstance(delta, Began):
            return [{"type": "message_start", "message": _beginning(delta.id, delta.model, delta.usage)}]
        if isinstance(delta, Opened):
            return [self._opened(delta.number, delta.part)]
        if isinstance(delta, Grew):
            return [_delta(delta.number, self._kinds[delta.number], delta.text)]
        if isinstance(delta, Closed):
            return [*self._sealed(delta.number, delta.part), {"type": "content_block_stop", "index": delta.number}]
        reason, sequence = stop_of(delta.answer)
        return [
            _ending(reason, sequence, stop_details(delta.answer), usage_json(delta.answer.usage)),
            {"type": "message_stop"},
        ]

    def _opened(self, number: int, part: Part) -> JSONObject:
        if isinstance(part, ToolUse):
            self._kinds[number] = "input_json_delta"
            block: JSONObject = {"type": "tool_use", "id": part.id, "name": part.name, "input": {}}
        elif isinstance(part, Reasoning) and part.redacted:
            block = {"type": "redacted_thinking", "data": part.seal}
        elif isinstance(part, Reasoning):
            self._kinds[number] = "thinking_delta"
            block = {"type": "thinking", "thinking": "", "signature": ""}
        else:
            self._kinds[number] = "text_delta"
            block = {"type": "text", "text": "", "citations": None}
        return {"type": "content_block_start", "index": number, "content_block": block}

    def _sealed(self, number: int, part: Part) -> Iterator[JSONObject]:
        if isinstance(part, Reasoning) and part.seal is not None and not part.redacted:
            yield _delta(number, "signature_delta", part.seal)


def _beginning(name: str, model: str, usage: Usage) -> JSONObject:
    return {
        "id": name,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage_json(usage),
    }


def _delta(index: int, kind: str, text: str) -> JSONObject:
    name = _GROWS.get(kind, "partial_json")
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, name: text}}


def _ending(reason: JSONValue, sequence: JSONValue, details: JSONValue, usage: JSONValue) -> JSONObject:
    delta: JSONObject = {"stop_reason": reason, "stop_sequence": sequence, "stop_details": details}
    return {"type": "message_delta", "delta": delta, "usage": usage}


# ── a whole response, cut ────────────────────────────────────────────────────────────────────────────────────────────


def cut(response: JSONObject) -> Iterator[JSONObject]:
    """The events in order, every field of the response in one of them."""
    content = response.get("content")
    late = ("stop_reason", "stop_sequence", "stop_details", "container")
    start = {**response, "content": [], "stop_reason": None, "stop_sequence": None}
    yield {"type": "message_start", "message": start}
    for index, block in enumerate(content if isinstance(content, list) else ()):
        if isinstance(block, dict):
            yield from _block_events(index, block)
    yield {
        "type": "message_delta",
        "delta": {k: response[k] for k in late if k in response},
        "usage": response.get("usage"),
    }
    yield {"type": "message_stop"}


def _block_events(index: int, block: JSONObject) -> Iterator[JSONObject]:
    """One block: begun empty, filled, ended."""
    kind = block.get("type")
    pieces: list[tuple[str, str]] = []
    start = dict(block)
    if kind == "text":
        pieces = [("text_delta", str(block.get("text") or ""))]
        start["text"] = ""
    elif kind == "thinking":
        pieces = [
            ("thinking_delta", str(block.get("thinking") or "")),
            ("signature_delta", str(block.get("signature") or "")),
        ]
        start |= {"thinking": "", "signature": ""}
    elif kind == "tool_use" and isinstance(given := block.get("input"), dict):
        pieces = [("input_json_delta", arguments_of(given))]
        start["input"] = {}
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for name, text in pieces:
        if text:
            yield _delta(index, name, text)
    yield {"type": "content_block_stop", "index": index}
