"""A trace: its events by kind, and the calls that model responses and tool wires hold."""

from __future__ import annotations

import math
from typing import Any

import pytest

from evalcore.values.json import JSONObject, JSONValue, dumps
from evalcore.values.task import Call
from evalcore.values.trace import (
    TraceReader,
    assistant_message,
    call_of,
    calls_of_message,
    calls_of_response,
    exit_kind,
    first_response_calls,
    message_of_response,
    text_of_response,
    tool_calls,
)


def trace(*events: dict[str, Any]) -> TraceReader:
    return TraceReader([dumps({"t": float(n), **event}) for n, event in enumerate(events)])


def response(*calls: dict[str, Any], role: str = "agent") -> dict[str, Any]:
    return {"e": "model.response", "role": role, "body": {"choices": [{"message": {"tool_calls": list(calls)}}]}}


def wanted(name: Any, arguments: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}}


def test_events_of_a_kind_are_found_in_order() -> None:
    reader = trace({"e": "a", "n": 1}, {"e": "b"}, {"e": "a", "n": 2})
    assert [e["n"] for e in reader.events("a")] == [1, 2]
    assert [e["e"] for e in reader.events()] == ["a", "b", "a"]
    assert list(reader.events("c")) == []
    assert len(reader) == 3


def test_an_event_with_values_beyond_encoders_is_found_by_its_kind_too() -> None:
    reader = trace({"e": "a", "n": 10**30}, {"e": "b", "n": math.inf}, {"e": "a", "n": "\ud800"})
    assert [e["n"] for e in reader.events("a")] == [10**30, "\ud800"]


def test_a_line_that_is_no_event_is_an_error() -> None:
    for line in (b"[]", b"5", b"", b"{"):
        with pytest.raises(ValueError, match=r"."):
            list(TraceReader([line]).events())


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_request_is_put_together_from_what_it_adds() -> None:
    reader = trace(
        {"e": "model.request", "role": "agent", "call": 1, "add": ["a"], "rest": {"model": "m"}},
        {"e": "model.request", "role": "agent", "call": 2, "base": 1, "add": ["b"]},
        {"e": "model.request", "role": "agent", "call": 3, "base": 2, "add": [], "rest": {"model": "n"}},
        {"e": "model.request", "role": "agent", "call": 5, "add": ["z"], "rest": {}},
        {"e": "model.request", "role": "agent", "call": 6, "base": 3, "add": ["c"]},
    )
    assert reader.requests() == [
        {"model": "m", "messages": ["a"]},
        {"model": "m", "messages": ["a", "b"]},
        {"model": "n", "messages": ["a", "b"]},
        {"messages": ["z"]},
        {"model": "n", "messages": ["a", "b", "c"]},
    ]


def test_requests_of_another_role_are_not_mixed_in() -> None:
    reader = trace(
        {"e": "model.request", "role": "agent", "call": 1, "add": ["a"], "rest": {}},
        {"e": "model.request", "role": "user", "call": 1, "add": ["u"], "rest": {}},
        {"e": "model.request", "role": "agent", "call": 2, "base": 1, "add": ["b"]},
    )
    assert reader.requests("agent")[1]["messages"] == ["a", "b"]
    assert reader.requests("user") == [{"messages": ["u"]}]
    assert reader.requests("judge") == []


# ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "sent, expected",
    [
        ('{"city": "Bern"}', Call("f", {"city": "Bern"})),
        ("", Call("f", {})),
        (" \n", Call("f", {})),
        ("[1]", Call("f", [1])),
        ("null", Call("f", None)),
        ("5.0", Call("f", 5.0)),
        ("123456789012345678901234567890", Call("f", 123456789012345678901234567890)),
        ('{"city": ', Call("f", None, '{"city": ')),
        ("9" * 5000, Call("f", None, "9" * 5000)),
        ("[" * 100_000, Call("f", None, "[" * 100_000)),
        ({"city": "Bern"}, Call("f", {"city": "Bern"})),
        (None, Call("f", None)),
        (5, Call("f", 5)),
    ],
    ids=["object", "empty", "blank", "list", "null", "float", "huge", "torn", "digits", "deep", "dict", "none", "int"],
)
def test_arguments_are_what_was_sent(sent: Any, expected: Call) -> None:
    found = call_of(wanted("f", sent))
    assert found == expected
    assert type(found.arguments) is type(expected.arguments)


@pytest.mark.parametrize("name", [None, 5, [], {}])
def test_a_name_that_is_no_text_is_no_name(name: Any) -> None:
    assert call_of(wanted(name, "{}")) == Call("", {})


def test_a_call_without_its_function_is_a_call_of_nothing() -> None:
    for shape in ({}, {"function": None}, {"function": "f"}, {"function": []}):
        assert call_of(shape) == Call("", None)  # type: ignore[arg-type]


def test_calls_of_a_message_skip_what_is_no_call() -> None:
    assert calls_of_message({"tool_calls": [5, None, wanted("f", "{}"), "x"]}) == [Call("f", {})]
    for message in (None, "x", [], {}, {"tool_calls": None}, {"tool_calls": "f"}, {"tool_calls": {"f": 1}}):
        assert calls_of_message(message) == []  # type: ignore[arg-type]


def test_a_response_of_any_shape_has_a_message_or_an_empty_one() -> None:
    assert assistant_message({"choices": [{"message": {"content": "x"}}]}) == {"content": "x"}
    for body in (
        None,
        [],
        "x",
        {},
        {"choices": []},
        {"choices": {}},
        {"choices": [5]},
        {"choices": [{"message": "x"}]},
    ):
        assert assistant_message(body) == {}  # type: ignore[arg-type]


def test_the_first_response_counts_and_only_the_agents() -> None:
    reader = trace(
        response(wanted("u", "{}"), role="user"),
        response(wanted("a", "{}"), wanted("b", "{}")),
        response(wanted("c", "{}")),
    )
    assert [c.name for c in first_response_calls(reader)] == ["a", "b"]


def test_without_a_model_all_calls_count_as_one_response() -> None:
    reader = trace({"e": "tool.call", "tool": "a", "arguments": {}}, {"e": "tool.call", "tool": "b", "raw": "{"})
    assert first_response_calls(reader) == tool_calls(reader) == [Call("a", {}), Call("b", None, "{")]


def test_a_first_response_without_calls_has_none_whatever_came_later() -> None:
    asked = {"e": "model.request", "role": "agent", "call": 2, "add": []}
    made = {"e": "tool.call", "tool": "late", "arguments": {}}
    assert first_response_calls(trace(response(), asked, response(wanted("late", "{}")), made)) == []


def test_calls_that_travel_as_text_are_those_made_before_the_model_is_asked_again() -> None:
    asked = {"e": "model.request", "role": "agent", "call": 2, "add": []}
    one, two = ({"e": "tool.call", "tool": name, "arguments": {}} for name in ("one", "two"))
    assert first_response_calls(trace(response(), one, asked, two)) == [Call("one", {})]


def test_how_an_attempt_ended_is_in_its_trace() -> None:
    assert exit_kind(trace({"e": "exit", "kind": "limit", "limit": "tokens"})) == "limit"
    assert exit_kind(trace({"e": "void", "kind": "infra"})) is None


@pytest.mark.parametrize(
    "dialect, body",
    [
        (
            "anthropic-messages",
            {
                "content": [
                    {"type": "text", "text": "hi"},
                    {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
                ]
            },
        ),
        (
            "openai-responses",
            {
                "output": [
                    {"type": "message", "content": [{"type": "output_text", "text": "hi"}]},
                    {"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"x": 1}'},
                ]
            },
        ),
    ],
)
def test_words_and_calls_are_read_from_a_response_in_any_dialect(dialect: str, body: JSONObject) -> None:
    event: JSONObject = {"e": "model.response", "role": "agent", "dialect": dialect, "body": body}
    assert calls_of_response(event) == [Call("f", {"x": 1})]
    assert message_of_response(event)["content"] == [{"type": "text", "text": "hi"}]
    assert first_response_calls(trace(event)) == [Call("f", {"x": 1})]


def test_a_refusal_is_read_from_a_response_of_openai() -> None:
    part = {"type": "refusal", "refusal": "no"}
    body: JSONObject = {"output": [{"type": "message", "content": [part]}, {"type": "function_call", "arguments": "{"}]}
    event: JSONObject = {"e": "model.response", "dialect": "openai-responses", "body": body}
    assert message_of_response(event)["refusal"] == "no"
    assert calls_of_response(event) == [Call("", None, "{")]


TEXT_A: JSONObject = {"type": "text", "text": "a"}
TEXT_B: JSONObject = {"type": "text", "text": "b"}


@pytest.mark.parametrize(
    "event",
    [
        {"body": {"choices": [{"message": {"content": "ab"}}]}},
        {
            "body": {
                "choices": [{"message": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}}]
            }
        },
        {
            "dialect": "anthropic-messages",
            "body": {"content": [{"type": "thinking", "thinking": "?"}, {"type": "text", "text": "ab"}]},
        },
        {
            "dialect": "openai-responses",
            "body": {"output": [{"type": "message", "content": [{"type": "output_text", "text": "ab"}]}]},
        },
        {"body": "ab"},  # as a redaction leaves it
    ],
)
def test_the_text_of_a_response_is_read_in_every_dialect(event: JSONObject) -> None:
    assert text_of_response(event) == "ab"


def test_parts_are_joined_by_what_is_asked_for() -> None:
    parts: list[JSONValue] = [TEXT_A, {"type": "image"}, TEXT_B]
    event: JSONObject = {"body": {"choices": [{"message": {"content": parts}}]}}
    assert text_of_response(event, "\n") == "a\nb"
    assert text_of_response({"body": {"choices": []}}) == ""
