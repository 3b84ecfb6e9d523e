"""OpenAI Responses, streamed: events read, gathered, written, and cut from a whole response."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from attrs import evolve

from evalcore.values.json import JSONObject, JSONValue
from evalcore.wires.gateway.dialects.deltas import Began, Closed, Delta, Finished, Grew, Opened
from evalcore.wires.gateway.dialects.neutral import Part, Reasoning, Refusal, Text, ToolUse, moment
from evalcore.wires.gateway.dialects.responses import (
    content_part,
    output_item,
    read_response,
    response_head,
    write_response,
)

_LAST: Final = ("response.completed", "response.incomplete", "response.failed")
_DELTAS: Final[Mapping[str, type[Text | Refusal | Reasoning]]] = {
    "response.output_text.delta": Text,
    "response.refusal.delta": Refusal,
    "response.reasoning_text.delta": Reasoning,
    "response.reasoning_summary_text.delta": Reasoning,
}


class ResponsesStream:
    """Events as they come."""

    def __init__(self) -> None:
        self.ended = False
        self._response: JSONObject = {}
        self._done: dict[int, JSONObject] = {}  # output items that are whole
        self._items: dict[int, JSONObject] = {}  # those that have begun
        self._open: dict[int, tuple[int, Part]] = {}  # part that an item is in: number, so far
        self._count = 0

    def add(self, event: JSONObject) -> list[Delta]:
        """One event."""
        kind = str(event.get("type"))
        if kind == "response.created":
            return self._created(event.get("response"))
        if kind in _LAST:
            response = event.get("response")
            if not isinstance(response, dict):
                raise ValueError(f"{kind} without a response")
            self._response, self.ended = response, True
            return []
        index = event.get("output_index")
        if not isinstance(index, int):
            return []
        if kind == "response.output_item.added":
            return self._added(index, event.get("item"))
        if kind in _DELTAS:
            return self._said(index, _DELTAS[kind], str(event.get("delta") or ""))
        if kind == "response.reasoning_summary_part.added" and index in self._open:
            return self._grown(index, "\n\n")
        if kind == "response.function_call_arguments.delta":
            return self._grown(index, str(event.get("delta") or ""))
        if kind == "response.output_item.done":
            return self._item_done(index, event.get("item"))
        return []

    def _created(self, response: JSONValue) -> list[Delta]:
        if not isinstance(response, dict):
            raise ValueError("response.created without a response")
        self._response = response
        began = moment(response.get("created_at"))
        return [Began(str(response.get("id") or "resp_0"), str(response.get("model") or ""), began)]

    def _added(self, index: int, item: JSONValue) -> list[Delta]:
        if not isinstance(item, dict):
            raise ValueError("response.output_item.added without an item")
        self._items[index] = item
        if item.get("type") != "function_call":
            return []
        return self._next(index, ToolUse(str(item.get("call_id") or ""), str(item.get("name") or ""), ""))

    def _said(self, index: int, kind: type[Text | Refusal | Reasoning], text: str) -> list[Delta]:
        """Words of an item; where they change their kind, another part begins."""
        made: list[Delta] = []
        if index not in self._open or not isinstance(self._open[index][1], kind):
            made = [*self._closed(index), *self._next(index, kind(""))]
        return made + self._grown(index, text)

    def _grown(self, index: int, text: str) -> list[Delta]:
        if index not in self._open:
            raise ValueError("a delta of no item")
        number, part = self._open[index]
        if isinstance(part, ToolUse):
            part = evolve(part, arguments=part.arguments + text)
        elif isinstance(part, (Text, Refusal, Reasoning)):
            part = evolve(part, text=part.text + text)
        self._open[index] = number, part
        return [Grew(number, text)] if text else []

    def _item_done(self, index: int, item: JSONValue) -> list[Delta]:
        if not isinstance(item, dict):
            raise ValueError("response.output_item.done without an item")
        self._done[index] = item
        if item.get("type") != "reasoning":
            return self._closed(index)
        thought = read_response({"output": [item]}).parts[0]
        assert isinstance(thought, Reasoning)
        made: list[Delta] = []
        if index not in self._open:
            if not thought.text and thought.seal is None:
                return []  # it thought, and shows nothing of it
            made = self._next(index, Reasoning(seal=thought.seal, redacted=thought.redacted))
            made += self._grown(index, thought.text)
        number, _ = self._open.pop(index)
        return [*made, Closed(number, thought)]

    def _next(self, index: int, part: Part) -> list[Delta]:
        self._open[index] = self._count, part
        self._count += 1
        return [Opened(self._count - 1, part)]

    def _closed(self, index: int) -> list[Delta]:
        if index not in self._open:
            return []
        number, part = self._open.pop(index)
        return [Closed(number, part)]

    def whole(self) -> JSONObject:
        """The response as it would have come whole; cut, what of it is there."""
        if self.ended:
            return self._response
        begun = {**self._items, **self._done}
        return {**self._response, "status": "incomplete", "output": [begun[i] for i in sorted(begun)]}

    def close(self) -> list[Delta]:
        """What follows the last event."""
        return [Finished(read_response(self.whole()))]


class Numbered:
    """Events in order, numbered as the dialect wants."""

    def __init__(self) -> None:
        self._number = -1

    def event(self, kind: str, **fields: JSONValue) -> JSONObject:
        """The next event."""
        self._number += 1
        return {"type": f"response.{kind}", "sequence_number": self._number, **fields}


class ResponsesWriter:
    """Events for an agent."""

    def __init__(self) -> None:
        self._numbered = Numbered()
        self._id = ""
        self._names: dict[int, tuple[str, Part]] = {}  # of parts that have begun: their item, and its kind

    def write(self, delta: Delta) -> list[JSONObject]:
        """The events that say it."""
        event = self._numbered.event
        if isinstance(delta, Began):
            self._id = delta.id
            head = response_head(delta.id, delta.model, delta.created)
            return [event("created", response=head), event("in_progress", response=head)]
        if isinstance(delta, Opened):
            return list(self._opened(delta.number, delta.part))
        if isinstance(delta, Grew):
            return [self._grown(delta)]
        if isinstance(delta, Closed):
            return list(self._closed(delta.number, delta.part))
        whole = write_response(delta.answer)
        return [event(str(whole["status"]), response=whole)]

    def _opened(self, number: int, part: Part) -> Iterator[JSONObject]:
        event = self._numbered.event
        item = output_item(part, f"{self._id}_{number}", done=False)
        name = str(item["id"])
        self._names[number] = name, part
        yield event("output_item.added", output_index=number, item=item)
        where: JSONObject = {"item_id": name, "output_index": number, "content_index": 0}
        if isinstance(part, (Text, Refusal)):
            yield event("content_part.added", **where, part=content_part(part, done=False))

    def _grown(self, delta: Grew) -> JSONObject:
        name, part = self._names[delta.number]
        where: JSONObject = {"item_id": name, "output_index": delta.number}
        if isinstance(part, ToolUse):
            return self._numbered.event("function_call_arguments.delta", **where, delta=delta.text)
        kind = (
            "refusal"
            if isinstance(part, Refusal)
            else "reasoning_text"
            if isinstance(part, Reasoning)
            else "output_text"
        )
        more: JSONObject = {"logprobs": []} if kind == "output_text" else {}
        return self._numbered.event(f"{kind}.delta", **where, content_index=0, delta=delta.text, **more)

    def _closed(self, number: int, part: Part) -> Iterator[JSONObject]:
        item = output_item(part, f"{self._id}_{number}", done=True)
        yield from _endings(self._numbered, number, item)
        yield self._numbered.event("output_item.done", output_index=number, item=item)


def _endings(numbered: Numbered, number: int, item: JSONObject) -> Iterator[JSONObject]:
    """The events that say of an item's parts that they are whole."""
    where: JSONObject = {"item_id": str(item.get("id") or ""), "output_index": number}
    if item.get("type") == "function_call":
        yield numbered.event(
            "function_call_arguments.done", **where, name=item.get("name"), arguments=item.get("arguments")
        )
    content = item.get("content")
    for index, part in enumerate(content if isinstance(content, list) else ()):
        if not isinstance(part, dict):
            continue
        if part.get("type") == "output_text":
            text: JSONObject = {"text": part.get("text"), "logprobs": part.get("logprobs") or []}
            yield numbered.event("output_text.done", **where, content_index=index, **text)
        elif part.get("type") == "refusal":
            yield numbered.event("refusal.done", **where, content_index=index, refusal=part.get("refusal"))
        elif part.get("type") == "reasoning_text":
            yield numbered.event("reasoning_text.done", **where, content_index=index, text=part.get("text"))
            continue
        yield numbered.event("content_part.done", **where, content_index=index, part=part)


# ── a whole response, cut ────────────────────────────────────────────────────────────────────────────────────────────


def cut(response: JSONObject) -> Iterator[JSONObject]:
    """The events in order; items of every kind, and the response itself, are there as they are."""
    numbered = Numbered()
    output = response.get("output")
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    yield numbered.event("created", response=begun)
    yield numbered.event("in_progress", response=begun)
    for index, item in enumerate(output if isinstance(output, list) else ()):
        if isinstance(item, dict):
            yield from _item_events(numbered, index, item)
    status = response.get("status")
    last = status if status in ("completed", "incomplete", "failed") else "completed"
    yield numbered.event(str(last), response=response)


def _item_events(numbered: Numbered, index: int, item: JSONObject) -> Iterator[JSONObject]:
    """One item: begun empty, filled, ended."""
    where: JSONObject = {"item_id": str(item.get("id") or ""), "output_index": index}
    kind, content = item.get("type"), item.get("content")
    start: JSONObject = {**item, "status": "in_progress"}
    if kind == "message":
        start["content"] = []
    elif kind == "function_call":
        start["arguments"] = ""
    elif kind == "reasoning":
        start |= {"summary": [], **({"content": []} if content else {})}
    yield numbered.event("output_item.added", output_index=index, item=start)
    if kind == "function_call" and item.get("arguments"):
        yield numbered.event("function_call_arguments.delta", **where, delta=item["arguments"])
    for place, part in enumerate(content if kind in ("message", "reasoning") and isinstance(content, list) else ()):
        if isinstance(part, dict):
            yield from _part_events(numbered, where, place, part)
    summary = item.get("summary")
    for place, part in enumerate(summary if kind == "reasoning" and isinstance(summary, list) else ()):
        yield from _summary_events(numbered, where, place, part)
    yield from _endings(numbered, index, item)
    yield numbered.event("output_item.done", output_index=index, item=item)


def _summary_events(numbered: Numbered, where: JSONObject, place: int, part: JSONValue) -> Iterator[JSONObject]:
    """One paragraph of what is shown of a thought."""
    text = part.get("text") if isinstance(part, dict) else None
    at: JSONObject = {**where, "summary_index": place}
    yield numbered.event("reasoning_summary_part.added", **at, part={"type": "summary_text", "text": ""})
    yield numbered.event("reasoning_summary_text.delta", **at, delta=text)
    yield numbered.event("reasoning_summary_text.done", **at, text=text)
    yield numbered.event("reasoning_summary_part.done", **at, part=part)


def _part_events(numbered: Numbered, where: JSONObject, place: int, part: JSONObject) -> Iterator[JSONObject]:
    kind = part.get("type")
    if kind == "output_text":
        yield numbered.event("content_part.added", **where, content_index=place, part={**part, "text": ""})
        if part.get("text"):
            yield numbered.event("output_text.delta", **where, content_index=place, delta=part["text"], logprobs=[])
    elif kind == "refusal":
        yield numbered.event("content_part.added", **where, content_index=place, part={**part, "refusal": ""})
        yield numbered.event("refusal.delta", **where, content_index=place, delta=part.get("refusal"))
    elif kind == "reasoning_text":
        yield numbered.event("reasoning_text.delta", **where, content_index=place, delta=part.get("text"))
