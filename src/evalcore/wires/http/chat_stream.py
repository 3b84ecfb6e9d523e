"""A whole Chat Completions response as the chunks of a stream, for a client that asked for one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from evalcore.values.json import JSONObject, JSONValue
from evalcore.wires.http.exchange import write_json

DONE: Final = b"data: [DONE]\n\n"
WAITING: Final = b": waiting for the model\n\n"  # a comment: keeps a client's read time-out from running out

_OF_CHUNK: Final = ("id", "created", "model", "system_fingerprint", "service_tier")


def sse(value: JSONValue) -> bytes:
    """One event."""
    return b"data: " + write_json(value) + b"\n\n"


def chunks(response: JSONObject, *, with_usage: bool) -> Iterator[JSONObject]:
    """The chunks in order: role, content and other fields, each tool call, finish, and usage if asked for."""
    head: JSONObject = {k: response[k] for k in _OF_CHUNK if k in response}
    head["object"] = "chat.completion.chunk"
    if with_usage:
        head["usage"] = None
    choices = response.get("choices")
    for place, choice in enumerate(choices if isinstance(choices, list) else ()):
        if isinstance(choice, dict):
            for part in _parts(choice, place):
                yield {**head, "choices": [part]}
    if with_usage:
        yield {**head, "choices": [], "usage": response.get("usage")}


def _parts(choice: JSONObject, place: int) -> Iterator[JSONObject]:
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
