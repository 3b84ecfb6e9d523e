"""Bridge `toolset`: tools declared as data. Each call gets the declared result, or a plain acknowledgement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evalcore.contracts import Driver, OpenTrial, ToolResult, text_result
from evalcore.errors import InfraError
from evalcore.values.json import JSONObject, JSONValue, exact_text
from evalcore.values.task import BridgeSpec, ToolSpec


class ToolsetBridge:
    """Opens episodes from `{"tools": [{name, description, input_schema, result?}], "default_result"?}`."""

    def __init__(self, services: Any = None, info: Any = None) -> None:
        pass

    async def open(self, spec: BridgeSpec, trial: OpenTrial) -> ToolsetEpisode:
        """An episode with the declared tools. Raises InfraError for a declaration that is none."""
        tools = spec.config.get("tools")
        if not isinstance(tools, list):
            raise InfraError("bridge toolset needs `tools`, a list")
        return ToolsetEpisode([_declared(t) for t in tools], spec.config.get("default_result", "ok"))


class ToolsetEpisode:
    """The calls of one trial so far."""

    def __init__(self, declared: Sequence[tuple[ToolSpec, JSONValue]], default: JSONValue) -> None:
        self._specs = [spec for spec, _ in declared]
        self._results = {spec.name: result for spec, result in declared if result is not None}
        self._default = default
        self._calls: list[JSONValue] = []

    def tools(self) -> Sequence[ToolSpec]:
        """The declared tools."""
        return self._specs

    async def call(self, name: str, arguments: JSONValue) -> ToolResult:
        """The declared result of a tool, as text; arguments that are no object are the caller's error."""
        if not isinstance(arguments, dict):
            return text_result(f"arguments must be an object, not {type(arguments).__name__}", error=True)
        self._calls.append({"name": name, "arguments": arguments})
        result = self._results.get(name, self._default)
        return text_result(result if isinstance(result, str) else exact_text(result))

    def driver(self) -> Driver | None:
        """No dialogue."""
        return None

    async def state(self) -> JSONValue:
        """The calls made."""
        return self._calls

    async def close(self) -> None:
        """Nothing to release."""


def _declared(value: JSONValue) -> tuple[ToolSpec, JSONValue]:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise InfraError("bridge toolset: each tool needs a `name`")
    schema = value.get("input_schema")
    spec = ToolSpec(
        str(value["name"]), str(value.get("description", "")), schema if isinstance(schema, dict) else _no_arguments()
    )
    return spec, value.get("result")


def _no_arguments() -> JSONObject:
    return {"type": "object", "properties": {}}
