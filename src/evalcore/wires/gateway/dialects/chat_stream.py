"""Chat Completions, streamed: chunks read, gathered, written, and cut from a whole response."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from attrs import evolve

from evalcore.values.json import JSONObject, JSONValue
from evalcore.wires.gateway.dialects.chat import (
    finish_reason,
    read_response,
    refusal_of,
    sealed_by_details,
    thoughts_json,
    thoughts_of,
    usage_json,
)
from evalcore.wires.gateway.dialects.deltas import Began, Closed, Delta, Finished, Grew, Opened
from evalcore.wires.gateway.dialects.neutral import Part, Reasoning, Refusal, Text, ToolUse, moment

_OF_CHUNK: Final = ("id", "created", "model", "system_fingerprint", "service_tier")
_THOUGHT: Final = ("reasoning_content", "reasoning")
_FIELDS: Final[Mapping[type[Part], str]] = {Text: "content", Refusal: "refusal", Reasoning: "reasoning_content"}


class ChatStream:
    """Chunks as they come. The first choice is what an agent of another dialect sees; all are gathered."""

    def __init__(self) -> None:
        self.ended = False
        self._head: JSONObject = {}
        self._choices: dict[int, JSONObject] = {}
        self._calls: dict[int, list[_Call]] = {}  # by choice
        self._parts = _Parts()

    def add(self, event: JSONObject) -> list[Delta]:
        """One chunk."""
        made: list[Delta] = []
        first = not self._head
        for key, value in event.items():
            if key != "choices" and (value is not None or key not in self._head):
                self._head[key] = value
        if first:
            made.append(
                Began(
                    str(self._head.get("id") or "chatcmpl-0"),
                    str(self._head.get("model") or ""),
                    moment(self._head.get("created")),
                )
            )
        choices = event.get("choices")
        if not choices and event.get("usage") is not None:
            self.ended = True  # what comes last of all; some servers give no reason before it
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                made += self._choice(choice)
        return made

    def _choice(self, choice: JSONObject) -> list[Delta]:
        index = choice.get("index")
        index = index if isinstance(index, int) else 0
        whole = self._choices.setdefault(
            index, {"index": index, "message": {"role": "assistant", "content": None}, "finish_reason": None}
        )
        message, delta = whole["message"], choice.get("delta")
        assert isinstance(message, dict)
        made: list[Delta] = []
        if isinstance(delta, dict):
            calls = delta.get("tool_calls")
            for call in calls if isinstance(calls, list) else ():
                if isinstance(call, dict):
                    made += self._call(index, message, call)
            for key, value in delta.items():
                if key != "tool_calls":
                    _gather(message, key, value)
            if index == 0:
                made = self._parts.said(delta) + made
        for key, value in choice.items():
            if key == "finish_reason" and value is not None:
                self.ended = True
                whole[key] = value
            elif key not in ("index", "delta", "finish_reason"):
                _gather(whole, key, value)
        return made

    def _call(self, index: int, message: JSONObject, piece: JSONObject) -> list[Delta]:
        """A piece of a call. Some servers leave `index` out, or number every call 0: a new id is a new call."""
        calls = self._calls.setdefault(index, [])
        place, name = piece.get("index"), piece.get("id")
        if not isinstance(place, int):
            place = len(calls) if name else len(calls) - 1
        function = piece.get("function")
        function = function if isinstance(function, dict) else {}
        text = function.get("arguments")
        text = text if isinstance(text, str) else ""
        number = next((n for n, c in reversed(tuple(enumerate(calls))) if c.is_meant(place, name)), None)
        opened = number is None
        if number is None:
            number = len(calls)
            calls.append(_Call(place, piece, function))
            message["tool_calls"] = [c.whole for c in calls]
        calls[number].add(text)
        return [] if index else self._parts.call(number, calls[number].use(), text, opened=opened)

    def whole(self) -> JSONObject:
        """The response as it would have come whole."""
        return {**self._head, "object": "chat.completion", "choices": list(self._choices.values())}

    def close(self) -> list[Delta]:
        """What follows the last chunk."""
        return [*self._parts.close(), Finished(read_response(self.whole()))]


class _Call:
    """One tool call of a choice, as it grows."""

    def __init__(self, place: int, piece: JSONObject, function: JSONObject) -> None:
        self._place = place
        self._id = piece.get("id") or ""
        self._function: JSONObject = {**function, "name": function.get("name") or "", "arguments": ""}
        rest = {k: v for k, v in piece.items() if k != "index"}
        self.whole: JSONObject = {
            **rest, "id": self._id, "type": piece.get("type") or "function", "function": self._function
        }  # fmt: skip

    def is_meant(self, place: int, name: JSONValue) -> bool:
        """Whether a piece at this place, with this id if it has one, is of this call."""
        return self._place == place and (not name or name == self._id)

    def add(self, text: str) -> None:
        """More of its arguments."""
        self._function["arguments"] = str(self._function["arguments"]) + text

    def use(self) -> ToolUse:
        """The call as it begins: its arguments come in pieces."""
        return ToolUse(str(self._id), str(self._function["name"]), "")


class _Parts:
    """The parts of one message, of which one is open at a time."""

    def __init__(self) -> None:
        self._count = 0
        self._open: Part | None = None
        self._calls: dict[int, int] = {}  # number of each call's part
        self._details: list[JSONValue] = []  # that seal the thought

    def said(self, delta: JSONObject) -> list[Delta]:
        """Words of a chunk: thought, text, refusal."""
        made: list[Delta] = []
        thought = next((t for name in _THOUGHT if isinstance(t := delta.get(name), str) and t), None)
        for kind, text in ((Reasoning, thought), (Text, delta.get("content")), (Refusal, delta.get("refusal"))):
            if isinstance(text, str) and text:
                if not isinstance(self._open, kind):
                    made += self._next(kind(""))
                made.append(Grew(self._count - 1, text))
                assert isinstance(self._open, (Reasoning, Text, Refusal))
                self._open = evolve(self._open, text=self._open.text + text)
            if kind is Reasoning and isinstance(details := delta.get("reasoning_details"), list) and details:
                if not self._count:
                    made += self._next(Reasoning())
                self._details += details
        return made

    def call(self, place: int, use: ToolUse, text: str, *, opened: bool) -> list[Delta]:
        """A piece of the call at this place."""
        made: list[Delta] = self._next(use) if opened else []
        if opened:
            self._calls[place] = self._count - 1
        number = self._calls[place]
        if number != self._count - 1 or not isinstance(self._open, ToolUse):
            raise ValueError("pieces of several tool calls came mixed")
        if text:
            made.append(Grew(number, text))
            self._open = evolve(self._open, arguments=self._open.arguments + text)
        return made

    def close(self) -> list[Delta]:
        """End the part that is open."""
        part, self._open = self._open, None
        if isinstance(part, Reasoning) and self._details:
            known = list(thoughts_of({"reasoning_content": part.text, "reasoning_details": self._details}))
            part = known[0] if len(known) == 1 else sealed_by_details(part.text, self._details)
        return [] if part is None else [Closed(self._count - 1, part)]

    def _next(self, part: Part) -> list[Delta]:
        made = self.close()
        self._open = part
        self._count += 1
        return [*made, Opened(self._count - 1, part)]


def _gather(whole: JSONObject, key: str, value: JSONValue) -> None:
    """Add a piece: texts and lists grow, `logprobs` by their lists, anything else is replaced."""
    before = whole.get(key)
    if key == "role" or value is None:
        whole.setdefault(key, value)
    elif isinstance(before, str) and isinstance(value, str):
        whole[key] = before + value
    elif isinstance(before, list) and isinstance(value, list):
        whole[key] = [*before, *value]
    elif key == "logprobs" and isinstance(before, dict) and isinstance(value, dict):
        for name, inner in value.items():
            _gather(before, name, inner)
    else:
        whole[key] = value


class ChatWriter:
    """Chunks for an agent."""

    def __init__(self, *, with_usage: bool) -> None:
        self._with_usage = with_usage
        self._head: JSONObject = {}
        self._fields: dict[int, str] = {}  # part → field that its words go to
        self._calls: dict[int, int] = {}  # part → index of its call

    def write(self, delta: Delta) -> list[JSONObject]:
        """The chunks that say it."""
        if isinstance(delta, Began):
            self._head = {
                "id": delta.id,
                "object": "chat.completion.chunk",
                "created": delta.created,
                "model": delta.model,
                **({"usage": None} if self._with_usage else {}),
            }
            return [self._chunk({"role": "assistant", "content": ""})]
        if isinstance(delta, Opened):
            return self._opened(delta.number, delta.part)
        if isinstance(delta, Grew):
            return [self._chunk(self._grown(delta))]
        return [] if isinstance(delta, Closed) else self._finished(delta)

    def _opened(self, number: int, part: Part) -> list[JSONObject]:
        if not isinstance(part, ToolUse):
            self._fields[number] = _FIELDS[type(part)]
            return []
        index = len(self._calls)
        self._calls[number] = index
        function: JSONObject = {"name": part.name, "arguments": ""}
        return [
            self._chunk({"tool_calls": [{"index": index, "id": part.id, "type": "function", "function": function}]})
        ]

    def _grown(self, delta: Grew) -> JSONObject:
        if delta.number in self._calls:
            call: JSONObject = {"index": self._calls[delta.number], "function": {"arguments": delta.text}}
            return {"tool_calls": [call]}
        return {self._fields[delta.number]: delta.text}

    def _finished(self, delta: Finished) -> list[JSONObject]:
        answer = delta.answer
        last: JSONObject = {}
        if details := thoughts_json(answer.parts).get("reasoning_details"):
            last["reasoning_details"] = details
        if answer.stop == "refusal" and "refusal" not in self._fields.values():
            last["refusal"] = refusal_of(answer)
        made = [self._chunk(last)] if last else []
        made.append(self._chunk({}, finish_reason(answer)))
        if self._with_usage and not answer.usage.unreported:
            made.append({**self._head, "choices": [], "usage": usage_json(answer.usage)})
        return made

    def _chunk(self, delta: JSONObject, finish: str | None = None) -> JSONObject:
        return {**self._head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}


def without_usage(chunk: JSONObject) -> JSONObject | None:
    """A provider's chunk for an agent that did not ask for usage; None if it held nothing else."""
    if "usage" not in chunk:
        return chunk
    if chunk.get("usage") is not None and not chunk.get("choices"):
        return None
    return {k: v for k, v in chunk.items() if k != "usage"}


# ── a whole response, cut ────────────────────────────────────────────────────────────────────────────────────────────


def cut(response: JSONObject, *, with_usage: bool) -> Iterator[JSONObject]:
    """The chunks in order: role, content and other fields, each tool call, finish, and usage if asked for."""
    head: JSONObject = {k: response[k] for k in _OF_CHUNK if k in response}
    head["object"] = "chat.completion.chunk"
    if with_usage:
        head["usage"] = None
    choices = response.get("choices")
    for place, choice in enumerate(choices if isinstance(choices, list) else ()):
        if isinstance(choice, dict):
            for part in _pieces(choice, place):
                yield {**head, "choices": [part]}
    if with_usage:
        yield {**head, "choices": [], "usage": response.get("usage")}


def _pieces(choice: JSONObject, place: int) -> Iterator[JSONObject]:
    """One choice as deltas. What a choice holds beside its message (logprobs) goes with the content."""
    index = choice.get("index", place)
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    beside = {k: v for k, v in choice.items() if k not in ("index", "message", "finish_reason")}
    calls = message.get("tool_calls")

    def part(delta: JSONObject, **more: JSONValue) -> JSONObject:
        return {"index": index, "delta": delta, "finish_reason": None, **more}

    yield part(
        {"role": message.get("role", "assistant"), "content": "" if message.get("content") is not None else None}
    )
    said: JSONObject = {k: v for k, v in message.items() if k not in ("role", "tool_calls") and v is not None}
    if said or beside:
        yield part(said, **beside)
    for number, call in enumerate(calls if isinstance(calls, list) else ()):
        if isinstance(call, dict):
            for delta in _call_deltas(call, number):
                yield part({"tool_calls": [delta]})
    yield {"index": index, "delta": {}, "finish_reason": choice.get("finish_reason")}


def _call_deltas(call: JSONObject, number: int) -> Iterator[JSONObject]:
    """A tool call as a client expects it: first who is called, then the arguments' text."""
    function = call.get("function")
    if not isinstance(function, dict):
        yield {**call, "index": number}
        return
    yield {**call, "index": number, "function": {**function, "arguments": ""}}
    arguments = function.get("arguments")
    if isinstance(arguments, str) and arguments:
        yield {"index": number, "function": {"arguments": arguments}}
