"""The core's own harnesses keep the promises of harnesses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from evalcore.builtin.react_text import CLOSING, OPENING, render_call
from evalcore.testing import HarnessConformance, said
from evalcore.values.json import JSONObject, JSONValue


class TestReact(HarnessConformance):
    harness = "react"


class TestReactOverText(HarnessConformance):
    harness = "react"
    options: ClassVar[Mapping[str, JSONValue]] = {"tool_protocol": "text"}

    def wants(self, *calls: tuple[str, JSONValue]) -> JSONObject:
        """Call blocks, as a model without tool calling writes them."""
        return said("\n".join(_block(name, arguments) for name, arguments in calls))


def _block(name: str, arguments: JSONValue) -> str:
    if isinstance(arguments, str):
        return f'{OPENING}{{"name": "{name}", "arguments": {arguments}}}{CLOSING}'
    return render_call(name, arguments)


class TestOracle(HarnessConformance):
    harness = "oracle"


class TestNoop(HarnessConformance):
    harness = "noop"
