"""Harness `react`: the reference agent. Ask the model, make the calls it wants, hand it the results."""

from __future__ import annotations

import asyncio
from typing import Any

from evalcore.contracts import HarnessVersion, Job, ToolResult, Tools, text_result
from evalcore.errors import AgentError
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.trace import assistant_message, call_of
from evalcore.values.trial import HarnessExit


class ReactHarness:
    """Native tool calling in the Chat Completions message protocol; calls of one response run side by side."""

    def __init__(self, services: Any = None, info: Any = None) -> None:
        pass

    async def probe(self) -> HarnessVersion:
        """The core's own."""
        return HarnessVersion("1")

    async def run(self, job: Job) -> HarnessExit:
        """One conversation. Raises AgentError where it has no model."""
        if job.model is None:
            raise AgentError("react needs a model")
        doors = {spec.name: tools for tools in job.tools for spec in tools.list()}
        messages: list[JSONValue] = [m.as_json() for m in job.messages]
        body: JSONObject = {"model": job.model.model, "messages": messages}
        if doors:
            body["tools"] = [
                _offered(spec.name, spec.description, spec.input_schema) for t in job.tools for spec in t.list()
            ]
        turns = job.options.get("max_turns")
        for _ in range(turns if isinstance(turns, int) else 50):
            response = await job.model.complete(body)
            message = assistant_message(response)
            messages.append(message)
            calls = message.get("tool_calls")
            if not calls or not isinstance(calls, list):
                return _ended(message, response)
            messages.extend(await _answers(calls, doors, job.tools))
        return HarnessExit(claim="limit", evidence={"limit": "turns", "detail": f"react stops after {turns} turns"})


def _offered(name: str, description: str, schema: JSONObject) -> JSONObject:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def _ended(message: JSONObject, response: JSONObject) -> HarnessExit:
    """The exit of a response without calls: an answer, or a refusal by the model itself."""
    content, refusal = message.get("content"), message.get("refusal")
    if isinstance(refusal, str) and refusal:
        return HarnessExit(refusal, "refused", evidence={"detail": "the model refused"})
    choices = response.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    reason = first.get("finish_reason") if isinstance(first, dict) else None
    return HarnessExit(_text(content), evidence={"finish_reason": reason})


def _text(content: JSONValue) -> str | None:
    if isinstance(content, list):
        parts = [p.get("text") for p in content if isinstance(p, dict)]
        return "".join(p for p in parts if isinstance(p, str))
    return content if isinstance(content, str) else None


async def _answers(calls: list[JSONValue], doors: dict[str, Tools], tools: tuple[Tools, ...]) -> list[JSONObject]:
    """One tool message per call, in the order of the calls."""
    wanted = [c for c in calls if isinstance(c, dict)]
    if len(wanted) == 1:
        results = [await _make(wanted[0], doors, tools)]
    else:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_make(c, doors, tools)) for c in wanted]
        results = [t.result() for t in tasks]
    return [
        {"role": "tool", "tool_call_id": str(c.get("id", "")), "content": r.text}
        for c, r in zip(wanted, results, strict=True)
    ]


async def _make(tool_call: JSONObject, doors: dict[str, Tools], tools: tuple[Tools, ...]) -> ToolResult:
    call = call_of(tool_call)
    door = doors.get(call.name) or (tools[0] if tools else None)
    if door is None:
        return text_result(f"unknown tool: {call.name}", error=True)
    if call.raw is not None:
        return door.refuse(call.name, call.raw, "malformed")
    return await door.call(call.name, call.arguments)
