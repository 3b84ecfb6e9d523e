"""A trial as steps: what was said in any dialect, by whom, and each word of a dialogue once."""

from __future__ import annotations

from typing import Any

import pytest

from evalcore.values.json import JSONObject, dumps
from evalcore.values.redaction import MARK, NOTHING, Redaction
from evalcore.values.trace import TraceReader
from evalcore_report.transcript import Step, shortened, spoken, steps


def told(*events: JSONObject, redaction: Redaction = NOTHING) -> list[tuple[str, str]]:
    """Heads and texts of the steps of these events."""
    reader = TraceReader([dumps({"t": 0.5, **event}) for event in events])
    return [(step.head, step.text) for step in steps(reader, redaction)]


CHAT = {"content": "hi", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}
BLOCKS = [{"type": "text", "text": "hi"}, {"type": "tool_use", "name": "f", "input": {}}]
ITEMS = [
    {"type": "message", "content": [{"type": "output_text", "text": "hi"}]},
    {"type": "function_call", "name": "f"},
]


@pytest.mark.parametrize("body, said", [
    ({"choices": [{"message": CHAT}]}, ("hi", ["f"])),
    ({"content": BLOCKS}, ("hi", ["f"])),
    ({"output": ITEMS}, ("hi", ["f"])),
    ({"choices": "nonsense", "content": 3}, ("", [])),
    ("not an object", ("", [])),
    (None, ("", [])),
])  # fmt: skip
def test_every_dialect_is_read(body: Any, said: tuple[str, list[str]]) -> None:
    assert spoken(body) == said


def test_a_dialogue_is_told_once() -> None:
    reply = {"choices": [{"message": {"content": "Which flight?"}}]}
    found = told(
        {"e": "trial.start", "messages": [{"role": "system", "content": "policy"}]},
        {"e": "dialogue.turn", "turn": 1, "messages": [{"role": "user", "content": "Cancel it."}], "tools": ["cancel"]},
        {"e": "model.response", "role": "agent", "call": 1, "body": reply},
        {"e": "dialogue.reply", "turn": 1, "claim": "completed", "answer": "Which flight?"},
        {"e": "env.call", "requestor": "user", "tool": "lookup", "arguments": {"id": 7}},
        {"e": "env.result", "requestor": "user", "tool": "lookup", "content": "none", "error": True},
        {"e": "dialogue.end", "reason": "user_stop", "limit": None, "fault": None},
    )
    assert found == [
        ("system", "policy"),
        ("user, turn 1", "Cancel it."),
        ("tools from now on", "cancel"),
        ("agent", "Which flight?"),
        ("user calls lookup", '{\n  "id": 7\n}'),
        ("result for user, an error", "none"),
        ("the dialogue ends", "user_stop"),
    ]


def test_what_is_withheld_says_so_at_its_place() -> None:
    found = told(
        {"e": "trial.start", "messages": [{"role": "user", "content": "secret"}]},
        {"e": "model.response", "role": "agent", "call": 1, "body": {"choices": [{"message": {"content": "secret"}}]}},
        {"e": "tool.call", "call": 1, "tool": "search", "arguments": {"q": "secret"}},
        {"e": "tool.result", "call": 1, "error": False, "content": "secret"},
        {"e": "harness.exit", "answer": "secret", "evidence": {"said": "secret"}},
        redaction=Redaction(frozenset({"questions"})),
    )
    assert [head for head, _ in found] == ["the task", "agent", "calls search", "result", "answer", "the harness says"]
    assert {text for _, text in found} == {MARK}


def test_events_that_nobody_knows_are_shown_as_they_are() -> None:
    assert told({"e": "env.event", "note": "x"}) == [("env.event", '{\n  "note": "x"\n}')]
    assert list(steps(TraceReader([]), NOTHING)) == []
    assert Step(None, "a", "b", "other").at is None


def test_a_long_text_says_how_much_more_there_is() -> None:
    assert shortened("a" * 10, 10) == "a" * 10
    assert shortened("a" * 1_010, 10) == "aaaaaaaaaa\n… 1,000 more characters"
