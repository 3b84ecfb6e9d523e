from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings

from evalcore.values.json import JSONObject, JSONValue
from evalcore.wires.gateway.dialects import CHAT, DIALECTS, MESSAGES, RESPONSES
from evalcore.wires.gateway.dialects.neutral import Answer
from evalcore.wires.gateway.dialects.translate import SPOKEN, StreamRelay, translate_response
from tests.unit.dialect_samples import answers

HEAD: JSONObject = {"id": "c1", "object": "chat.completion.chunk", "created": 7, "model": "m"}


def relayed(response: JSONObject, source: str, target: str) -> tuple[list[JSONObject], StreamRelay]:
    """What an agent of `target` gets of a response that is streamed in `source`."""
    return through(SPOKEN[source].cut(response, True), source, target)


def through(events: Any, source: str, target: str, *, with_usage: bool = True) -> tuple[list[JSONObject], StreamRelay]:
    relay = StreamRelay(source, target, with_usage=with_usage)
    got = [made for event in events for made in relay.add(event)]
    return [*got, *relay.close()], relay


def gathered(events: list[JSONObject], dialect: str) -> JSONObject:
    """The whole response, as a client of the dialect puts it together."""
    reader = SPOKEN[dialect].reader()
    for event in events:
        reader.add(event)
    assert reader.ended
    return reader.whole()


@pytest.mark.parametrize("source, target", list(product(DIALECTS, DIALECTS)))
@given(answer=answers())
@settings(max_examples=25)
def test_a_streamed_answer_says_what_the_whole_one_says(source: str, target: str, answer: Answer) -> None:
    whole = SPOKEN[source].write_response(answer)
    events, relay = relayed(whole, source, target)
    assert relay.ended
    upstream = relay.upstream()
    assert SPOKEN[source].read_response(upstream) == SPOKEN[source].read_response(whole)
    told = SPOKEN[target].read_response(gathered(events, target))
    expected = SPOKEN[target].read_response(translate_response(whole, source, target))
    if MESSAGES in (source, target) and CHAT not in (source, target):
        expected = evolve(expected, created=told.created)  # of an event's response; Messages have no date
    assert told == expected
    assert SPOKEN[target].read_response(relay.whole()) == expected


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_that_stops_before_its_end_has_not_ended_and_what_came_is_kept(dialect: str) -> None:
    said: JSONObject = {"message": {"content": "one two"}, "finish_reason": "stop"}
    response = translate_response({"id": "x", "model": "m", "choices": [said]}, CHAT, dialect)
    events = list(SPOKEN[dialect].cut(response, True))
    cut = next(n for n, e in enumerate(events) if "one two" in str(e)) + 1
    _, relay = through(events[:cut], dialect, dialect)
    assert not relay.ended
    assert "one two" in str(relay.upstream()) or dialect == RESPONSES
    assert relay.upstream()["id"] == "x"


def chunk(delta: JSONObject, finish: str | None = None, **more: JSONValue) -> JSONObject:
    return {**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": finish, **more}]}


def test_chunks_of_parallel_calls_become_blocks_one_after_the_other() -> None:
    def call(index: int, **function: JSONValue) -> JSONObject:
        named: JSONObject = {"id": f"c{index}", "type": "function"} if "name" in function else {}
        return chunk({"tool_calls": [{"index": index, **named, "function": function}]})

    chunks = [
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning_content": "hm"}),
        chunk({"content": "let "}),
        chunk({"content": "me"}),
        call(0, name="f", arguments=""),
        call(0, arguments='{"x":'),
        call(0, arguments="1}"),
        call(1, name="g", arguments="{}"),
        chunk({}, "tool_calls"),
        {**HEAD, "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 3}},
    ]
    events, relay = through(chunks, CHAT, MESSAGES)
    told = [(e["type"], e.get("index"), e.get("delta") or e.get("content_block")) for e in events[1:]]
    text: JSONObject = {"type": "text", "text": "", "citations": None}
    assert told == [
        ("content_block_start", 0, {"type": "thinking", "thinking": "", "signature": ""}),
        ("content_block_delta", 0, {"type": "thinking_delta", "thinking": "hm"}),
        ("content_block_stop", 0, None),
        ("content_block_start", 1, text),
        ("content_block_delta", 1, {"type": "text_delta", "text": "let "}),
        ("content_block_delta", 1, {"type": "text_delta", "text": "me"}),
        ("content_block_stop", 1, None),
        ("content_block_start", 2, {"type": "tool_use", "id": "c0", "name": "f", "input": {}}),
        ("content_block_delta", 2, {"type": "input_json_delta", "partial_json": '{"x":'}),
        ("content_block_delta", 2, {"type": "input_json_delta", "partial_json": "1}"}),
        ("content_block_stop", 2, None),
        ("content_block_start", 3, {"type": "tool_use", "id": "c1", "name": "g", "input": {}}),
        ("content_block_delta", 3, {"type": "input_json_delta", "partial_json": "{}"}),
        ("content_block_stop", 3, None),
        ("message_delta", None, {"stop_reason": "tool_use", "stop_sequence": None, "stop_details": None}),
        ("message_stop", None, None),
    ]
    assert relay.upstream()["choices"] == [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "let me",
                "reasoning_content": "hm",
                "tool_calls": [
                    {"id": "c0", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}},
                    {"id": "c1", "type": "function", "function": {"name": "g", "arguments": "{}"}},
                ],
            },
            "finish_reason": "tool_calls",
        }
    ]


def test_calls_that_a_server_numbers_alike_or_not_at_all_are_told_apart_by_their_ids() -> None:
    for numbered in ({"index": 0}, {}):
        calls = [
            chunk({"tool_calls": [{**numbered, "id": name, "function": {"name": name, "arguments": "{}"}}]})
            for name in ("a", "b")
        ]
        _, relay = through([*calls, chunk({}, "tool_calls")], CHAT, RESPONSES)
        assert [(i["call_id"], i["arguments"]) for i in relay.whole()["output"]] == [("a", "{}"), ("b", "{}")]  # type: ignore[union-attr,index,call-overload]


def test_fields_that_nobody_knows_survive_being_gathered() -> None:
    chunks = [
        chunk({"role": "assistant", "content": "a", "x_new": "1"}, logprobs={"content": [{"token": "a"}]}),
        chunk({"content": "b", "x_new": "2"}, logprobs={"content": [{"token": "b"}]}),
        {**chunk({}, "stop"), "x_top": [1]},
        {**HEAD, "choices": [], "usage": {"prompt_tokens": 1, "x_cost": 2}},
    ]
    got, relay = through(chunks, CHAT, CHAT)
    assert got == chunks
    whole = relay.whole()
    assert whole["x_top"] == [1]
    assert whole["usage"] == {"prompt_tokens": 1, "x_cost": 2}
    choice: Any = whole["choices"][0]  # type: ignore[index,call-overload]
    assert choice["message"] == {"role": "assistant", "content": "ab", "x_new": "12"}
    assert choice["logprobs"] == {"content": [{"token": "a"}, {"token": "b"}]}


def test_an_agent_that_did_not_ask_for_usage_gets_no_chunk_of_it() -> None:
    chunks: list[JSONObject] = [
        {**chunk({"content": "a"}), "usage": None},
        {**chunk({}, "stop"), "usage": None},
        {**HEAD, "choices": [], "usage": {"prompt_tokens": 1}},
    ]
    got, relay = through(chunks, CHAT, CHAT, with_usage=False)
    assert got == [chunk({"content": "a"}), chunk({}, "stop")]
    assert relay.upstream()["usage"] == {"prompt_tokens": 1}


def test_blocks_of_other_kinds_pass_untouched_in_their_own_dialect() -> None:
    response: JSONObject = {
        "id": "m", "type": "message", "role": "assistant", "model": "c", "x_new": 1,
        "content": [
            {"type": "server_tool_use", "id": "s", "name": "search", "input": {}},
            {"type": "text", "text": "so"},
        ],
        "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 2},
    }  # fmt: skip
    events, _ = relayed(response, MESSAGES, MESSAGES)
    assert gathered(events, MESSAGES) == response
    assert [
        p["text"] for p in gathered(relayed(response, MESSAGES, RESPONSES)[0], RESPONSES)["output"][0]["content"]
    ] == ["so"]  # type: ignore[index,call-overload,union-attr]


def test_a_signature_and_a_refusal_arrive_at_the_end() -> None:
    response: JSONObject = {
        "id": "m", "model": "c",
        "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "I"}],
        "stop_reason": "refusal", "stop_details": {"type": "refusal", "category": "bio", "explanation": "no"},
        "usage": {"input_tokens": 1, "output_tokens": 2},
    }  # fmt: skip
    events, relay = relayed(response, MESSAGES, CHAT)
    message: Any = gathered(events, CHAT)["choices"][0]["message"]  # type: ignore[index,call-overload]
    assert message["reasoning_details"][0]["signature"] == "s"
    assert message["refusal"] == "no"
    assert relay.whole()["choices"][0]["message"]["refusal"] == "no"  # type: ignore[index,call-overload]


@pytest.mark.parametrize(
    "dialect, event",
    [
        (MESSAGES, {"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta", "text": "x"}}),
        (MESSAGES, {"type": "message_start"}),
        (RESPONSES, {"type": "response.completed"}),
        (RESPONSES, {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "x"}),
    ],
)
def test_events_that_make_no_sense_are_an_error_of_the_provider(dialect: str, event: JSONObject) -> None:
    with pytest.raises(ValueError, match=r"without|no "):
        SPOKEN[dialect].reader().add(event)
