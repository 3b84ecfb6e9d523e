"""Small parts that keep every promise: what the broken ones are made from, each by one change."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from evalcore.contracts import Driver, GradedTrial, OpenTrial, ToolResult, text_result
from evalcore.errors import ConfigError, InfraError
from evalcore.hookspecs import BridgeInfo, MetricInfo, hookimpl
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import BridgeSpec, ToolSpec

HERE = "tests.conformance.parts"
THING: JSONObject = {"type": "object", "properties": {"thing": {"type": "string"}}, "required": ["thing"]}


@hookimpl
def evalcore_bridges() -> list[BridgeInfo]:
    return [BridgeInfo("shelf", "a shelf to put things on", f"{HERE}:ShelfBridge")]


@hookimpl
def evalcore_metrics() -> list[MetricInfo]:
    return [MetricInfo("error-share", "failed tool calls over all tool calls", f"{HERE}:ErrorShare")]


class ShelfEpisode:
    """Things on a shelf."""

    def __init__(self, things: list[str]) -> None:
        self.things = things
        self.closed = False

    def tools(self) -> Sequence[ToolSpec]:
        return [ToolSpec("put", "Put a thing on the shelf.", THING), ToolSpec("look", "See what is there.", _no())]

    async def call(self, name: str, arguments: JSONValue) -> ToolResult:
        await asyncio.sleep(0)
        if self.closed:
            raise InfraError("the shelf is gone")
        if not isinstance(arguments, dict):
            return text_result("arguments must be an object", error=True)
        if name == "look":
            return text_result(", ".join(self.things) or "nothing")
        if name != "put":
            return text_result(f"unknown tool: {name}", error=True)
        thing = arguments.get("thing")
        if not isinstance(thing, str):
            return text_result("`thing` must be a text", error=True)
        self.things.append(thing)
        return text_result("done")

    def driver(self) -> Driver | None:
        return None

    async def state(self) -> JSONValue:
        return {"things": list(self.things)}

    async def close(self) -> None:
        self.closed = True


def _no() -> JSONObject:
    return {"type": "object", "properties": {}}


class ShelfBridge:
    """Opens a shelf with the `things` of its configuration."""

    episode: Any = ShelfEpisode

    def __init__(self, services: Any = None, info: Any = None) -> None:
        pass

    async def open(self, spec: BridgeSpec, trial: OpenTrial) -> Any:
        things = spec.config.get("things", [])
        if not isinstance(things, list) or not all(isinstance(t, str) for t in things):
            raise ConfigError("bridge shelf: `things` is a list of texts")
        return self.episode([str(t) for t in things])


class ErrorShare:
    """Failed tool calls over all."""

    def __init__(self, services: Any = None, info: Any = None) -> None:
        pass

    def per_task(self, trials: Sequence[GradedTrial]) -> Any:
        if not trials:
            return None
        return float(sum(t.attempt.tool_errors for t in trials)), float(sum(t.attempt.tool_calls for t in trials))
