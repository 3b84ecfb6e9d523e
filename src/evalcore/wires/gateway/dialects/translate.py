"""From an agent's dialect to its provider's and back: a request, a response, a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol, TypeAlias

from attrs import evolve, frozen

from evalcore.errors import ConfigError
from evalcore.values.json import JSONObject, JSONValue
from evalcore.wires.gateway.dialects import (
    chat,
    chat_stream,
    messages,
    messages_stream,
    responses,
    responses_stream,
)
from evalcore.wires.gateway.dialects.deltas import Closed, Delta, Finished, Writer
from evalcore.wires.gateway.dialects.fields import CHAT, MESSAGES, RESPONSES
from evalcore.wires.gateway.dialects.neutral import Answer, Notes, Part, Refusal, Request

Cut: TypeAlias = Callable[[JSONObject, bool], Iterator[JSONObject]]


class StreamReader(Protocol):
    """A reader that can say what follows its last event."""

    ended: bool

    def add(self, event: JSONObject) -> list[Delta]: ...
    def whole(self) -> JSONObject: ...
    def close(self) -> list[Delta]: ...


@frozen
class Dialect:
    """One dialect, whole. `conversation` names the request's field that holds what was said so far."""

    name: str
    conversation: str
    answers: str  # field that every response has
    read_request: Callable[[JSONObject, Notes], Request]
    write_request: Callable[[Request, Notes], JSONObject]
    read_response: Callable[[JSONObject], Answer]
    write_response: Callable[[Answer], JSONObject]
    reader: Callable[[], StreamReader]
    writer: Callable[[bool], Writer]  # whether the agent asked for usage
    cut: Cut
    apply: Callable[[JSONObject, Mapping[str, JSONValue]], JSONObject]


def apply_chat(body: JSONObject, parameters: Mapping[str, JSONValue]) -> JSONObject:
    """The arm's parameters over a body; the provider has the last word on what `max_output_tokens` is called."""
    return {**body, **parameters}


def apply_responses(body: JSONObject, parameters: Mapping[str, JSONValue]) -> JSONObject:
    """The arm's parameters over a body."""
    applied = {**body, **parameters}
    if (effort := applied.pop("reasoning_effort", None)) is not None:
        before = body.get("reasoning")
        applied["reasoning"] = {**(before if isinstance(before, dict) else {}), "effort": effort}
    return applied


def apply_messages(body: JSONObject, parameters: Mapping[str, JSONValue]) -> JSONObject:
    """The arm's parameters over a body. Raises ConfigError for an effort that the dialect does not know."""
    applied = {**body, **parameters}
    if (bound := applied.pop("max_output_tokens", None)) is not None:
        applied["max_tokens"] = bound
    effort = applied.pop("reasoning_effort", None)
    if effort == "none":
        applied["thinking"] = {"type": "disabled"}
    elif effort == "minimal":
        raise ConfigError("reasoning_effort=minimal is unknown to models of Anthropic", hint="none, low, medium, high")
    elif effort is not None:
        before = body.get("output_config")
        applied["output_config"] = {**(before if isinstance(before, dict) else {}), "effort": effort}
    return applied


SPOKEN: Final[Mapping[str, Dialect]] = {
    CHAT: Dialect(
        CHAT,
        "messages",
        "choices",
        chat.read_request,
        chat.write_request,
        chat.read_response,
        chat.write_response,
        chat_stream.ChatStream,
        lambda usage: chat_stream.ChatWriter(with_usage=usage),
        lambda response, usage: chat_stream.cut(response, with_usage=usage),
        apply_chat,
    ),
    RESPONSES: Dialect(
        RESPONSES,
        "input",
        "output",
        responses.read_request,
        responses.write_request,
        responses.read_response,
        responses.write_response,
        responses_stream.ResponsesStream,
        lambda _: responses_stream.ResponsesWriter(),
        lambda response, _: responses_stream.cut(response),
        apply_responses,
    ),
    MESSAGES: Dialect(
        MESSAGES,
        "messages",
        "content",
        messages.read_request,
        messages.write_request,
        messages.read_response,
        messages.write_response,
        messages_stream.MessagesStream,
        lambda _: messages_stream.MessagesWriter(),
        lambda response, _: messages_stream.cut(response),
        apply_messages,
    ),
}


def translate_request(body: JSONObject, source: str, target: str) -> tuple[JSONObject, Notes]:
    """The request in another dialect, without `model`; what was left out and added. Raises RefusedRequest."""
    notes = Notes(source, target)
    request = SPOKEN[source].read_request(body, notes)
    return SPOKEN[target].write_request(request, notes), notes


def translate_response(body: JSONObject, source: str, target: str) -> JSONObject:
    """A response in another dialect."""
    return SPOKEN[target].write_response(SPOKEN[source].read_response(body))


class StreamRelay:
    """A provider's stream on its way to an agent: gathered, and translated where their dialects differ."""

    def __init__(self, provider: str, agent: str, *, with_usage: bool = True) -> None:
        self._reader = SPOKEN[provider].reader()
        self._agent = SPOKEN[agent]
        self._same = provider == agent
        self._stripped = self._same and agent == CHAT and not with_usage
        self._writer = None if self._same else self._agent.writer(with_usage)
        self._parts: list[Part] = []
        self._answer: Answer | None = None

    @property
    def ended(self) -> bool:
        """Whether the answer came to its end."""
        return self._reader.ended

    def add(self, event: JSONObject) -> list[JSONObject]:
        """What the agent gets for one event of the provider's."""
        deltas = self._reader.add(event)
        if self._writer is not None:
            return [made for delta in deltas for made in self._said(self._writer, delta)]
        if self._stripped:
            kept = chat_stream.without_usage(event)
            return [] if kept is None else [kept]
        return [event]

    def close(self) -> list[JSONObject]:
        """What the agent gets once the provider's stream has ended."""
        if self._writer is None:
            return []
        return [made for delta in self._reader.close() for made in self._said(self._writer, delta)]

    def upstream(self) -> JSONObject:
        """The provider's response, whole."""
        return self._reader.whole()

    def whole(self) -> JSONObject:
        """The agent's response, whole: as it was streamed."""
        if self._writer is None:
            return self._reader.whole()
        if self._answer is not None:
            return self._agent.write_response(self._answer)
        finished = next(d for d in reversed(self._reader.close()) if isinstance(d, Finished))
        return self._agent.write_response(finished.answer)

    def _said(self, writer: Writer, delta: Delta) -> list[JSONObject]:
        if isinstance(delta, Closed):
            self._parts.append(delta.part)
        elif isinstance(delta, Finished):  # with its parts as they were streamed, and a refusal that was not
            late = () if any(isinstance(p, Refusal) for p in self._parts) else delta.answer.parts
            parts = (*self._parts, *(p for p in late if isinstance(p, Refusal)))
            self._answer = evolve(delta.answer, parts=parts)
            delta = Finished(self._answer)
        return writer.write(delta)
