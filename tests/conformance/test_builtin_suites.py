"""Suites of one's own: adapter, bridge and grader keep their promises, over the examples and a task with files."""

from __future__ import annotations

from typing import ClassVar

from evalcore.testing import AdapterConformance, BridgeConformance, GraderConformance
from evalcore.values.json import JSONObject
from evalcore.values.task import Call
from tests.oracles import ROOT

EXAMPLES = ROOT / "examples" / "suites"
NOTE: JSONObject = {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}}


class TestAnswers(AdapterConformance):
    benchmark = f"suite:{EXAMPLES / 'answer.jsonl'}"


class TestToolCalling(AdapterConformance):
    benchmark = f"suite:{EXAMPLES / 'tool-calling.jsonl'}"


class TestStateful(AdapterConformance):
    benchmark = f"suite:{EXAMPLES / 'stateful.jsonl'}"


class TestGradingAnswers(GraderConformance):
    grader = "suite"
    benchmark = TestAnswers.benchmark


class TestGradingCalls(GraderConformance):
    grader = "suite"
    benchmark = TestToolCalling.benchmark


class TestGradingStates(GraderConformance):
    grader = "suite"
    benchmark = TestStateful.benchmark


class TestFolder(BridgeConformance):
    kind = "suite"
    config: ClassVar[JSONObject] = {
        "tools": [
            {"name": "read", "description": "Read a file.", "input_schema": NOTE},
            {"name": "write", "description": "Write a file.", "input_schema": NOTE},
            {"name": "ring", "description": "Ring a bell.", "effect": [{"append": "log", "value": "rang"}]},
        ],
        "folder": {
            "sandbox": "none",
            "files": {"note.txt": "Feed the otter."},
            "builtins": {"read": "read_file", "write": "write_file"},
        },
    }
    calls = (
        Call("read", {"path": "note.txt"}),
        Call("write", {"path": "note.txt", "content": "Done."}),
        Call("ring", {}),
    )
