"""Harness `react`: the reference agent. Ask the model, make the calls it wants, hand it the results.

`tool_protocol` says how calls travel: `native` is the provider's own tool calling in Chat Completions, `text` is plain
text for models without it (`react_text`), `constrained` is JSON held to a schema of the tools, for servers with
structured output (`react_constrained`). Calls of one reply run side by side.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

from evalcore.builtin import react_constrained
from evalcore.builtin.react_text import instructions, read_reply, results_message, with_offer
from evalcore.contracts import HarnessVersion, Job, ToolResult, Tools, text_result
from evalcore.errors import AgentError
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import Call, Message, ToolSpec
from evalcore.values.trace import assistant_message, call_of
from evalcore.values.trial import HarnessExit

MAX_TURNS: Final = 50


class ReactHarness:
    """One conversation per trial."""

    def __init__(self, services: Any = None, info: Any = None) -> None:
        pass

    async def probe(self) -> HarnessVersion:
        """The core's own."""
        return HarnessVersion("2")

    async def run(self, job: Job) -> HarnessExit:
        """Converse until the model makes no more calls. Raises AgentError where there is no model."""
        return await ReactSession(job).answer()

    @asynccontextmanager
    async def session(self, job: Job) -> AsyncIterator[ReactSession]:
        """One conversation through all turns of a dialogue. Raises AgentError where there is no model."""
        yield ReactSession(job)


class ReactSession:
    """A conversation; the bound on model calls holds for each of its turns."""

    def __init__(self, job: Job) -> None:
        if job.model is None:
            raise AgentError("react needs a model")
        self._model = job.model
        self._tools = job.tools
        self._protocol: ToolProtocol = _PROTOCOLS[str(job.options.get("tool_protocol", "native"))](job)
        self._doors = _doors(job.tools)
        given = job.options.get("max_turns")
        self._turns = given if isinstance(given, int) else MAX_TURNS

    async def turn(self, messages: tuple[Message, ...], *, tools_changed: bool = False) -> HarnessExit:
        """What is new joins the conversation, and the model answers."""
        if tools_changed:
            self._protocol.offer(self._tools)
            self._doors = _doors(self._tools)
        self._protocol.hear(messages)
        return await self.answer()

    async def answer(self) -> HarnessExit:
        """Converse until the model makes no more calls."""
        protocol = self._protocol
        for _ in range(self._turns):
            response = await self._model.complete(protocol.body)
            message = assistant_message(response)
            calls = protocol.read(message)
            if not calls:
                return _ended(message, response, protocol.answer(message))
            protocol.give(calls, await _results(calls, self._doors, self._tools))
        detail = f"react stops after {self._turns} turns"
        return HarnessExit(claim="limit", evidence={"limit": "turns", "detail": detail})


def _specs(tools: tuple[Tools, ...]) -> list[ToolSpec]:
    return [spec for door in tools for spec in door.list()]


def _doors(tools: tuple[Tools, ...]) -> dict[str, Tools]:
    return {spec.name: door for door in tools for spec in door.list()}


class ToolProtocol(Protocol):
    """How tools, calls and results travel in a conversation."""

    body: JSONObject

    def offer(self, tools: tuple[Tools, ...]) -> None: ...
    def hear(self, messages: Sequence[Message]) -> None: ...
    def read(self, message: JSONObject) -> Sequence[Call]: ...
    def answer(self, message: JSONObject) -> str | None: ...
    def give(self, calls: Sequence[Call], results: Sequence[ToolResult]) -> None: ...


class NativeProtocol:
    """Chat Completions: `tools` in the request, `tool_calls` in the reply, a `tool` message per result."""

    def __init__(self, job: Job) -> None:
        assert job.model is not None
        self._messages: list[JSONValue] = [m.as_json() for m in job.messages]
        self._ids: list[JSONValue] = []
        self.body: JSONObject = {"model": job.model.model, "messages": self._messages}
        self.offer(job.tools)

    def offer(self, tools: tuple[Tools, ...]) -> None:
        """These tools from now on."""
        offered: list[JSONValue] = [
            {
                "type": "function",
                "function": {"name": s.name, "description": s.description, "parameters": s.input_schema},
            }
            for door in tools
            for s in door.list()
        ]
        self.body.pop("tools", None)
        if offered:
            self.body["tools"] = offered

    def hear(self, messages: Sequence[Message]) -> None:
        """What is said to the agent."""
        self._messages.extend(m.as_json() for m in messages)

    def read(self, message: JSONObject) -> Sequence[Call]:
        """The calls of a reply, which joins the conversation as it is."""
        self._messages.append(message)
        calls = message.get("tool_calls")
        wanted = [c for c in calls if isinstance(c, dict)] if isinstance(calls, list) else []
        self._ids = [c.get("id", "") for c in wanted]  # as the model gave them, whatever they are
        return [call_of(c) for c in wanted]

    def answer(self, message: JSONObject) -> str | None:
        """The reply's text."""
        return _text(message.get("content"))

    def give(self, calls: Sequence[Call], results: Sequence[ToolResult]) -> None:
        """One tool message per call, in the order of the calls."""
        for identifier, result in zip(self._ids, results, strict=True):
            self._messages.append({"role": "tool", "tool_call_id": identifier, "content": result.text})


class TextProtocol:
    """Plain text, for models without tool calling."""

    _instructions = staticmethod(instructions)

    def __init__(self, job: Job) -> None:
        assert job.model is not None
        self._first: list[JSONValue] = [m.as_json() for m in job.messages]
        self._messages: list[JSONValue] = []
        self._head = 0  # messages with which the conversation began: the tools stand in the first
        self.body: JSONObject = {"model": job.model.model, "messages": self._messages}
        self.offer(job.tools)

    def offer(self, tools: tuple[Tools, ...]) -> None:
        """These tools from now on: the system message lists what there is."""
        specs = _specs(tools)
        head = with_offer(self._first, self._instructions(specs) if specs else "")
        self._messages[: self._head] = head
        self._head = len(head)

    def hear(self, messages: Sequence[Message]) -> None:
        """What is said to the agent."""
        self._messages.extend(m.as_json() for m in messages)

    def read(self, message: JSONObject) -> Sequence[Call]:
        """The call blocks of a reply; only its text joins the conversation."""
        text = _text(message.get("content")) or ""
        self._messages.append({"role": "assistant", "content": text})
        return read_reply(text).calls

    def answer(self, message: JSONObject) -> str | None:
        """The reply's text."""
        return _text(message.get("content"))

    def give(self, calls: Sequence[Call], results: Sequence[ToolResult]) -> None:
        """All results in one user message."""
        pairs = zip(calls, results, strict=True)
        self._messages.append(results_message([(c.name, r.text, r.error) for c, r in pairs]))


class ConstrainedProtocol(TextProtocol):
    """JSON held to a schema of the tools on offer."""

    _instructions = staticmethod(react_constrained.instructions)

    def offer(self, tools: tuple[Tools, ...]) -> None:
        """These tools from now on: listed in the system message, and in the schema. Without any, text is free."""
        super().offer(tools)
        self.body.pop("response_format", None)
        if specs := _specs(tools):
            self.body["response_format"] = react_constrained.response_format(specs)

    def read(self, message: JSONObject) -> Sequence[Call]:
        """The call of a reply; only its text joins the conversation."""
        text = _text(message.get("content")) or ""
        self._messages.append({"role": "assistant", "content": text})
        if message.get("refusal") or "response_format" not in self.body:
            return ()
        call = react_constrained.read_reply(text).call
        return () if call is None else (call,)

    def answer(self, message: JSONObject) -> str | None:
        """The answer inside the reply."""
        text = super().answer(message)
        return react_constrained.read_reply(text).answer if text and "response_format" in self.body else text


_PROTOCOLS: Final[dict[str, type[NativeProtocol | TextProtocol]]] = {
    "native": NativeProtocol,
    "text": TextProtocol,
    "constrained": ConstrainedProtocol,
}


def _ended(message: JSONObject, response: JSONObject, answer: str | None) -> HarnessExit:
    """The exit of a reply without calls: an answer, or a refusal by the model itself."""
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        return HarnessExit(refusal, "refused", evidence={"detail": "the model refused"})
    choices = response.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    reason = first.get("finish_reason") if isinstance(first, dict) else None
    return HarnessExit(answer, evidence={"finish_reason": reason})


def _text(content: JSONValue) -> str | None:
    if isinstance(content, list):
        parts = [p.get("text") for p in content if isinstance(p, dict)]
        return "".join(p for p in parts if isinstance(p, str))
    return content if isinstance(content, str) else None


async def _results(calls: Sequence[Call], doors: dict[str, Tools], tools: tuple[Tools, ...]) -> list[ToolResult]:
    """The results, in the order of the calls."""
    if len(calls) == 1:
        return [await _make(calls[0], doors, tools)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_make(call, doors, tools)) for call in calls]
    return [t.result() for t in tasks]


async def _make(call: Call, doors: dict[str, Tools], tools: tuple[Tools, ...]) -> ToolResult:
    door = doors.get(call.name) or (tools[0] if tools else None)
    if door is None:
        return text_result(f"unknown tool: {call.name}", error=True)
    if call.raw is not None:
        return door.refuse(call.name, call.raw, "malformed")
    return await door.call(call.name, call.arguments)
