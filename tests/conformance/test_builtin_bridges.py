"""The core's own bridges keep the promises of bridges."""

from __future__ import annotations

import sys
from typing import ClassVar

from evalcore.testing import BridgeConformance
from evalcore.values.json import JSONObject
from evalcore.values.task import Call
from tests.oracles import ROOT


class TestToolset(BridgeConformance):
    kind = "toolset"
    config: ClassVar[JSONObject] = {
        "tools": [
            {
                "name": "get_weather",
                "description": "Weather of a city today.",
                "input_schema": {
                    "type": "object",
                    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                    "required": ["city"],
                },
                "result": {"degrees": 10, "sky": ["clear", "🌙"]},
            },
            {"name": "ring", "description": "Ring a bell."},
        ],
        "default_result": "done",
    }
    calls = (Call("get_weather", {"city": "Bern"}), Call("ring", {}))


class TestToolsetWithEffects(BridgeConformance):
    kind = "toolset"
    config: ClassVar[JSONObject] = {
        "state": {"books": {"b1": {"lent_to": None}}, "log": []},
        "tools": [
            {
                "name": "lend",
                "description": "Lend a book to a member.",
                "input_schema": {
                    "type": "object",
                    "properties": {"book": {"type": "string"}, "member": {"type": "string"}},
                    "required": ["book", "member"],
                },
                "effect": [
                    {"if": {"path": "books.{book}", "exists": False}, "error": "there is no book {book}"},
                    {"set": "books.{book}.lent_to", "value": "{member}"},
                    {"append": "log", "value": "{book} to {member}"},
                    {"respond": "{book} is lent to {member}"},
                ],
            },
        ],
    }
    calls = (Call("lend", {"book": "b1", "member": "m1"}), Call("lend", {"book": "b1", "member": "m2"}))


class TestMcp(BridgeConformance):
    kind = "mcp"
    config: ClassVar[JSONObject] = {
        "servers": {"raw": {"command": sys.executable, "args": [str(ROOT / "tests/integration/raw_mcp.py"), "put,get"]}}
    }
    calls = (Call("put", {"value": {"a": [1, None]}}), Call("get", {}))
    stateful = False
