"""What stood together in one message of the model's, read off the model wire, in each dialect of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalcore.engine.services import SystemClock
from evalcore.wires.recorder import AttemptRecorder
from evalcore_tau2.bridge import without_fixed
from evalcore_tau2.spoken import Listener, last_spoken

LOOK: dict[str, Any] = {"order_id": "#W1"}

CHAT = {
    "choices": [
        {
            "message": {
                "role": "assistant",
                "content": "One moment.",
                "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "look", "arguments": json.dumps(LOOK)}},
                    {"id": "2", "type": "function", "function": {"name": "mcp__tau2__list", "arguments": ""}},
                ],
            }
        }
    ]
}
MESSAGES = {
    "content": [
        {"type": "text", "text": "One moment."},
        {"type": "tool_use", "id": "1", "name": "look", "input": LOOK},
        {"type": "tool_use", "id": "2", "name": "mcp__tau2__list", "input": {}},
    ]
}
RESPONSES = {
    "output": [
        {"type": "reasoning", "summary": []},
        {"type": "message", "content": [{"type": "output_text", "text": "One moment."}]},
        {"type": "function_call", "call_id": "1", "name": "look", "arguments": json.dumps(LOOK)},
        {"type": "function_call", "call_id": "2", "name": "mcp__tau2__list", "arguments": "{}"},
    ]
}
DIALECTS = {"openai-chat": CHAT, "anthropic-messages": MESSAGES, "openai-responses": RESPONSES}


def recorder(*bodies: tuple[str, str, Any]) -> AttemptRecorder:
    """Responses on the wire, each of a role and in a dialect."""
    made = AttemptRecorder(SystemClock())
    for number, (role, dialect, body) in enumerate(bodies, 1):
        more = {} if dialect == "openai-chat" else {"dialect": dialect}
        made.record("model.response", role=role, call=number, body=body, **more)
    return made


@pytest.mark.parametrize("dialect", DIALECTS)
def test_calls_of_one_message_open_it_once_with_its_text_in_every_dialect(dialect: str) -> None:
    wire, listener = recorder(("agent", dialect, DIALECTS[dialect])).reader(), Listener()
    assert listener.opens(wire, "look", LOOK) == {"content": "One moment.", "names": ["look", "mcp__tau2__list"]}
    assert listener.opens(wire, "list", {}) is None
    assert listener.hidden == 0


def test_they_may_come_in_another_order_but_each_only_once() -> None:
    wire, listener = recorder(("agent", "openai-chat", CHAT)).reader(), Listener()
    assert listener.opens(wire, "list", {}) == {"content": "One moment.", "names": ["look", "list"]}
    assert listener.opens(wire, "look", LOOK) is None
    assert listener.opens(wire, "look", LOOK) == {"content": None, "names": ["look"]}
    assert listener.hidden == 1


@pytest.mark.parametrize("name, arguments", [("look", {"order_id": "#W2"}), ("cook", LOOK), ("ook", LOOK)])
def test_a_call_that_was_not_asked_for_so_stands_alone_and_is_counted(name: str, arguments: Any) -> None:
    wire, listener = recorder(("agent", "openai-chat", CHAT)).reader(), Listener()
    assert listener.opens(wire, name, arguments) == {"content": None, "names": [name]}
    assert listener.hidden == 1


def test_what_the_users_model_says_is_not_the_agents() -> None:
    assert last_spoken(recorder(("agent", "openai-chat", CHAT), ("user", "openai-chat", CHAT)).reader()) is None
    assert last_spoken(recorder().reader()) is None


def test_a_second_response_opens_a_message_of_its_own() -> None:
    listener = Listener()
    first = recorder(("agent", "openai-chat", CHAT))
    assert listener.opens(first.reader(), "look", LOOK) is not None
    second = recorder(("agent", "openai-chat", CHAT), ("agent", "openai-chat", CHAT))
    assert listener.opens(second.reader(), "look", LOOK) == {
        "content": "One moment.",
        "names": ["look", "mcp__tau2__list"],
    }


@pytest.mark.parametrize(
    "model, kept",
    [
        ("openai/gpt-4.1", True),
        ("openai/gpt-5.2", False),
        ("openai/o3", False),
        ("x/openai/o4-mini", False),
        (None, True),
    ],
)
def test_models_that_refuse_a_temperature_are_asked_without(model: str | None, kept: bool) -> None:
    body: Any = {"messages": [], "temperature": 0.0}
    assert ("temperature" in without_fixed(body, model)) is kept
