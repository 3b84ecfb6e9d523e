from __future__ import annotations

import json
from contextlib import suppress
from itertools import permutations
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcore.errors import ConfigError
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.usage import Usage, usage_of
from evalcore.wires.gateway.dialects import CHAT, DIALECTS, MESSAGES, RESPONSES
from evalcore.wires.gateway.dialects.fields import TABLE
from evalcore.wires.gateway.dialects.neutral import Notes, Reasoning, Request, ToolOutput, ToolUse, Turn
from evalcore.wires.gateway.dialects.translate import SPOKEN, translate_request, translate_response
from evalcore.wires.gateway.refused import RefusedRequest
from tests.unit.dialect_samples import PIXEL, SCHEMA, answers, requests

PAIRS = list(permutations(DIALECTS, 2))
BARE: dict[str, JSONObject] = {
    CHAT: {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    RESPONSES: {"model": "m", "input": "hi"},
    MESSAGES: {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
}
EXACT: dict[str, dict[str, tuple[JSONValue, ...]]] = {  # a value of each exact field, that must not vanish
    CHAT: {
        "messages": ([{"role": "user", "content": "marked"}],),
        "tools": ([{"type": "function", "function": {"name": "marked"}}],),
        "tool_choice": ({"type": "function", "function": {"name": "marked"}},),
        "parallel_tool_calls": (False,),
        "max_tokens": (7,),
        "max_completion_tokens": (7,),
        "temperature": (0.25,),
        "top_p": (0.25,),
        "stop": ("marked", ["marked"]),
        "reasoning_effort": ("high",),
        "verbosity": ("low",),
        "response_format": ({"type": "json_schema", "json_schema": {"name": "n", "schema": {"title": "marked"}}},),
    },
    RESPONSES: {
        "input": ("marked", [{"role": "user", "content": [{"type": "input_text", "text": "marked"}]}]),
        "instructions": ("marked",),
        "tools": ([{"type": "function", "name": "marked", "parameters": None, "strict": None}],),
        "tool_choice": ({"type": "function", "name": "marked"},),
        "parallel_tool_calls": (False,),
        "max_output_tokens": (7,),
        "temperature": (0.25,),
        "top_p": (0.25,),
        "reasoning": ({"effort": "high"},),
        "text": ({"format": {"type": "json_schema", "name": "n", "schema": {"title": "marked"}}},),
    },
    MESSAGES: {
        "messages": ([{"role": "user", "content": "marked"}],),
        "system": ("marked", [{"type": "text", "text": "marked"}]),
        "tools": ([{"name": "marked", "input_schema": {"type": "object"}}],),
        "tool_choice": ({"type": "tool", "name": "marked"},),
        "max_tokens": (7,),
        "temperature": (0.25,),
        "top_p": (0.25,),
        "stop_sequences": (["marked"],),
        "output_config": ({"effort": "high"}, {"format": {"type": "json_schema", "schema": {"title": "marked"}}}),
    },
}
SOME_KEYS = ("role", "content", "type", "text", "tool_calls", "function", "name", "id", "input", "image_url", "source")
ANSWERED = ("id", "model", "created", "created_at", "usage", "stop_reason", "stop_details", "incomplete_details")
HANDLED_ELSEWHERE = {"model", "stream", "stream_options"}  # the channel's, and the door's


def written(request: Request, dialect: str) -> JSONObject:
    return SPOKEN[dialect].write_request(request, Notes("test", dialect))


def read(body: JSONObject, dialect: str) -> Request:
    notes = Notes(dialect, "test")
    for table in TABLE.values():  # any other dialect will do: what is written is exact in all
        for row in table.values():
            assert set(row.to) < set(DIALECTS)
    notes.target = next(d for d in DIALECTS if d != dialect)
    request = SPOKEN[dialect].read_request(body, notes)
    assert notes.dropped in ([], ["store"])
    return request


def gathered(turns: tuple[Turn, ...]) -> list[tuple[str, Any]]:
    """The conversation without where one message ends and the next of the same speaker begins; arguments by value."""
    flat: list[tuple[str, Any]] = []
    for turn in turns:
        for part in turn.parts:
            if isinstance(part, ToolUse):
                with suppress(ValueError):
                    part = evolve(part, arguments=json.dumps(json.loads(part.arguments), sort_keys=True))
            flat.append((turn.speaker, part))
    return flat


def same(one: Request, other: Request) -> bool:
    plain = {"turns": (), "sealed": False, "format": None}
    formats = [r.format and (r.format.schema, r.format.strict) for r in (one, other)]
    return (
        gathered(one.turns) == gathered(other.turns)
        and formats[0] == formats[1]
        and evolve(one, **plain) == evolve(other, **plain)
    )


# ── properties ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dialect", DIALECTS)
@given(request=requests())
@settings(max_examples=40)
def test_a_request_survives_being_written_and_read(dialect: str, request: Request) -> None:
    if dialect == RESPONSES:  # takes back only what it sealed itself
        request = sealed_by_responses(request)
    assert same(read(written(request, dialect), dialect), request)


def sealed_by_responses(request: Request) -> Request:
    turns = [
        evolve(
            turn,
            parts=tuple(evolve(p, seal=f"item:rs_1:{p.seal}") if isinstance(p, Reasoning) else p for p in turn.parts),
        )
        for turn in request.turns
    ]
    return evolve(request, turns=tuple(turns))


@pytest.mark.parametrize("source, target", PAIRS)
@given(request=requests())
@settings(max_examples=25)
def test_a_request_survives_the_way_there_and_back(source: str, target: str, request: Request) -> None:
    request = sealed_by_responses(request)
    there, notes = translate_request(written(request, source), source, target)
    back, notes_back = translate_request(there, target, source)
    assert same(read(back, source), request)
    assert [*notes.dropped, *notes_back.dropped] in ([], ["store"])


@pytest.mark.parametrize("source, target", PAIRS)
@given(answer=answers())
@settings(max_examples=25)
def test_an_answer_survives_the_way_there_and_back(source: str, target: str, answer: Any) -> None:
    body = SPOKEN[source].write_response(answer)
    back = translate_response(translate_response(body, source, target), target, source)
    known = SPOKEN[source].read_response(back)
    assert gathered((Turn("assistant", known.parts),)) == gathered((Turn("assistant", answer.parts),))
    assert evolve(known, parts=()) == evolve(answer, parts=())


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(SOME_KEYS), inner, max_size=4),
    max_leaves=8,
)


@pytest.mark.parametrize("source, target", PAIRS)
@given(field=st.sampled_from(sorted(set().union(*TABLE.values()))), value=anything)
@settings(max_examples=60)
def test_whatever_an_agent_sends_is_translated_or_refused(
    source: str, target: str, field: str, value: JSONValue
) -> None:
    try:
        body, _ = translate_request({**BARE[source], field: value}, source, target)
    except RefusedRequest as refused:
        body = {"told": refused.message}
    assert body


@pytest.mark.parametrize("source, target", PAIRS)
@given(value=anything, more=st.dictionaries(st.sampled_from(ANSWERED), anything, max_size=3))
@settings(max_examples=60)
def test_whatever_a_provider_answers_is_translated(
    source: str, target: str, value: JSONValue, more: JSONObject
) -> None:
    answered: dict[str, list[JSONValue]] = {
        CHAT: [value, [{"message": value}], [{"message": {"content": value, "tool_calls": value}}]],
        RESPONSES: [value, [{"type": "message", "content": value}], [{"type": "function_call", "call_id": value}]],
        MESSAGES: [value, [{"type": "text", "text": value}], [{"type": "tool_use", "input": value}]],
    }
    for one in answered[source]:
        told = translate_response({**more, SPOKEN[source].answers: one}, source, target)
        assert isinstance(told[SPOKEN[target].answers], list)


ODD: tuple[JSONValue, ...] = (5, 1.5, True, "x", [], {}, [5], [None], [[]], [{}], {"type": 5}, [{"type": 5}])


@pytest.mark.parametrize("source, target", PAIRS)
def test_odd_values_of_every_field_are_translated_or_refused(source: str, target: str) -> None:
    offered = {"tools": EXACT[source]["tools"][0]}
    for field in TABLE[source]:
        for value in ODD:
            try:
                body, _ = translate_request({**BARE[source], **offered, field: value}, source, target)
            except RefusedRequest as refused:
                body = {"told": refused.message}
            assert body, (field, value)


@pytest.mark.parametrize(
    "source, target, more",
    [
        (CHAT, MESSAGES, {"max_tokens": "7"}),
        (CHAT, RESPONSES, {"max_completion_tokens": 7.5}),
        (RESPONSES, CHAT, {"max_output_tokens": True}),
        (MESSAGES, CHAT, {"max_tokens": [7]}),
        (MESSAGES, CHAT, {"stop_sequences": "x"}),
        (CHAT, MESSAGES, {"reasoning_effort": 5}),
        (CHAT, MESSAGES, {"messages": "hi"}),
    ],
)
def test_a_value_that_is_none_of_its_kind_is_refused_and_not_lost(source: str, target: str, more: JSONObject) -> None:
    with pytest.raises(RefusedRequest, match="must be a") as refused:
        translate_request({**BARE[source], **more}, source, target)
    assert str(refused.value.param).startswith(next(iter(more)))


def test_a_choice_among_no_tools_is_not_said_where_it_would_be_refused() -> None:
    body, _ = translate_request({**BARE[RESPONSES], "tools": [], "tool_choice": "auto"}, RESPONSES, CHAT)
    assert "tool_choice" not in body


def test_a_picture_in_a_chat_tool_message_is_kept() -> None:
    picture = {"type": "image_url", "image_url": {"url": PIXEL}}
    messages: list[JSONValue] = [{"role": "tool", "tool_call_id": "a", "content": [picture]}]
    body, _ = translate_request({"messages": messages}, CHAT, MESSAGES)
    assert "iVBORw0KGgo=" in json.dumps(body["messages"])


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("source, target", PAIRS)
def test_every_exact_field_is_said_in_the_other_dialect(source: str, target: str) -> None:
    for field, row in TABLE[source].items():
        if row.to[target] != "exact" or field in HANDLED_ELSEWHERE:
            continue
        for value in EXACT[source][field]:
            offered = {"tools": EXACT[source]["tools"][0]} if field in ("tool_choice", "parallel_tool_calls") else {}
            body, notes = translate_request({**BARE[source], **offered, field: value}, source, target)
            without, _ = translate_request({**BARE[source], **offered}, source, target)
            assert body != without, field
            if "marked" in json.dumps(value):
                assert json.dumps(body).count("marked") > json.dumps(without).count("marked")
            assert field not in notes.dropped


@pytest.mark.parametrize("source, target", PAIRS)
def test_every_dropped_field_is_named_and_changes_nothing(source: str, target: str) -> None:
    without, _ = translate_request(BARE[source], source, target)
    for field, row in TABLE[source].items():
        if row.to[target] == "dropped":
            body, notes = translate_request({**BARE[source], field: "said"}, source, target)
            assert notes.dropped == [field]
            assert body == without


@pytest.mark.parametrize("source, target", PAIRS)
def test_every_refused_field_is_refused_by_name_unless_it_says_nothing(source: str, target: str) -> None:
    for field, row in TABLE[source].items():
        if row.to[target] != "refused":
            continue
        with pytest.raises(RefusedRequest) as refusal:
            translate_request({**BARE[source], field: "said"}, source, target)
        assert refusal.value.param == field
        assert f"`{field}` cannot be translated from {source} to {target}" in refusal.value.message
        for harmless in (None, *row.harmless):
            body, notes = translate_request({**BARE[source], field: harmless}, source, target)
            assert (body, notes.dropped) == (translate_request(BARE[source], source, target)[0], [])


def test_a_field_that_nobody_knows_is_dropped_and_named() -> None:
    _, notes = translate_request({**BARE[CHAT], "chat_template_kwargs": {"thinking": True}}, CHAT, MESSAGES)
    assert notes.dropped == ["chat_template_kwargs"]


# ── one by one ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_parallel_calls_and_their_results_in_each_dialect() -> None:
    calls = [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
        {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{broken"}},
    ]
    chat: JSONObject = {
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "well", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "a", "content": "one"},
            {"role": "tool", "tool_call_id": "b", "content": "two"},
            {"role": "user", "content": "and?"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}],
        "max_completion_tokens": 50,
    }
    body, notes = translate_request(chat, CHAT, MESSAGES)
    assert body == {
        "max_tokens": 50,
        "system": "be brief",
        "messages": [
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "well"},
                    {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
                    {"type": "tool_use", "id": "b", "name": "g", "input": {"INVALID_JSON": "{broken"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "one"},
                    {"type": "tool_result", "tool_use_id": "b", "content": "two"},
                    {"type": "text", "text": "and?"},
                ],
            },
        ],
        "tools": [{"name": "f", "input_schema": SCHEMA}],
    }
    assert (notes.dropped, notes.added) == ([], {})
    body, _ = translate_request(chat, CHAT, RESPONSES)
    assert body["input"] == [
        {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "be brief"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "well", "annotations": []}],
        },
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"x": 1}'},
        {"type": "function_call", "call_id": "b", "name": "g", "arguments": "{broken"},
        {"type": "function_call_output", "call_id": "a", "output": "one"},
        {"type": "function_call_output", "call_id": "b", "output": "two"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "and?"}]},
    ]
    assert body["store"] is False


def test_a_bound_that_the_dialect_demands_is_added_and_said() -> None:
    body, notes = translate_request(BARE[CHAT], CHAT, MESSAGES)
    assert body["max_tokens"] == 32_000
    assert notes.added == {"max_tokens": 32_000}


def test_cache_marks_are_dropped_once_each_and_the_content_stays() -> None:
    mark: JSONObject = {"cache_control": {"type": "ephemeral"}}
    body, notes = translate_request(
        {
            "max_tokens": 5,
            "system": [{"type": "text", "text": "s", **mark}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "u", **mark}]}],
            "tools": [{"name": "f", "input_schema": SCHEMA, **mark}],
            "metadata": {"user_id": "u"},
        },
        MESSAGES,
        CHAT,
    )
    assert sorted(notes.dropped) == ["cache_control", "metadata"]
    assert body["messages"] == [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]


def test_images_in_each_dialect() -> None:
    picture = {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}}
    chat: JSONObject = {"role": "user", "content": [picture]}
    body, notes = translate_request({"messages": [chat], "max_tokens": 5}, CHAT, MESSAGES)
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    assert body["messages"] == [{"role": "user", "content": [{"type": "image", "source": source}]}]
    assert notes.dropped == ["image.detail"]
    body, notes = translate_request({"messages": [chat]}, CHAT, RESPONSES)
    part = {"type": "input_image", "image_url": PIXEL, "detail": "low"}
    assert body["input"] == [{"type": "message", "role": "user", "content": [part]}]


def test_an_image_that_a_tool_gave_is_kept_where_a_result_may_hold_it_and_refused_elsewhere() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    result = {
        "type": "tool_result",
        "tool_use_id": "a",
        "content": [{"type": "text", "text": "see"}, image],
        "is_error": True,
    }
    request: JSONObject = {"max_tokens": 5, "messages": [{"role": "user", "content": [result]}]}
    body, notes = translate_request(request, MESSAGES, RESPONSES)
    shown = [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": PIXEL, "detail": "auto"}]
    assert body["input"] == [{"type": "function_call_output", "call_id": "a", "output": shown}]
    assert notes.dropped == ["tool result.is_error"]
    with pytest.raises(RefusedRequest, match="holds an image"):
        translate_request(request, MESSAGES, CHAT)


@pytest.mark.parametrize(
    "source, target, more, what",
    [
        (CHAT, MESSAGES, {"temperature": 1.5}, "temperature"),
        (CHAT, MESSAGES, {"response_format": {"type": "json_object"}}, "response_format.type=json_object"),
        (CHAT, MESSAGES, {"reasoning_effort": "minimal"}, "reasoning_effort"),
        (CHAT, RESPONSES, {"stop": ["x"]}, "stop"),
        (CHAT, RESPONSES, {"tools": [{"type": "custom", "custom": {"name": "c"}}]}, "tools[].type=custom"),
        (RESPONSES, CHAT, {"input": [{"type": "item_reference", "id": "x"}]}, "input[].type=item_reference"),
        (RESPONSES, CHAT, {"tools": [{"type": "web_search"}]}, "tools[].type=web_search"),
        (MESSAGES, CHAT, {"tools": [{"type": "bash_20250124", "name": "bash"}]}, "tools[].type=bash_20250124"),
        (
            MESSAGES,
            CHAT,
            {"messages": [{"role": "user", "content": [{"type": "server_tool_use"}]}]},
            "messages[].content[].type=server_tool_use",
        ),
    ],
)  # fmt: skip
def test_content_that_cannot_be_said_is_refused_by_name(source: str, target: str, more: JSONObject, what: str) -> None:
    with pytest.raises(RefusedRequest) as refusal:
        translate_request({**BARE[source], **more}, source, target)
    assert (refusal.value.param, refusal.value.status) == (what, 400)


def test_a_thought_and_its_seal_come_back_to_the_model_that_had_it_through_any_agent() -> None:
    block = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    hidden = {"type": "redacted_thinking", "data": "b3BhcXVl"}
    call = {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}
    answer: JSONObject = {"id": "m", "model": "c", "content": [block, hidden, call], "stop_reason": "tool_use"}
    chat = translate_response(answer, MESSAGES, CHAT)
    message = chat["choices"][0]["message"]  # type: ignore[index,call-overload]
    assert message["reasoning_content"] == "hm"  # type: ignore[index,call-overload]
    again, _ = translate_request({"messages": [message]}, CHAT, MESSAGES)
    assert again["messages"] == [{"role": "assistant", "content": [block, hidden, call]}]
    output = translate_response(answer, MESSAGES, RESPONSES)["output"]
    again, _ = translate_request({"input": output}, RESPONSES, MESSAGES)
    assert again["messages"] == [{"role": "assistant", "content": [block, hidden, call]}]


def test_a_reasoning_item_comes_back_to_openai_with_its_id() -> None:
    item = {
        "type": "reasoning",
        "id": "rs_9",
        "summary": [{"type": "summary_text", "text": "hm"}],
        "encrypted_content": "gAAA",
    }
    call = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": "{}"}
    blocks = translate_response({"id": "r", "output": [item, call]}, RESPONSES, MESSAGES)["content"]
    again, _ = translate_request({"messages": [{"role": "assistant", "content": blocks}]}, MESSAGES, RESPONSES)
    assert again["input"][0] == item  # type: ignore[index]


def test_details_of_another_gateway_come_back_as_they_were() -> None:
    details: list[JSONValue] = [
        {"type": "reasoning.encrypted", "data": "x", "format": "anthropic-claude-v1", "index": 0}
    ]
    message: JSONObject = {"role": "assistant", "content": "yes", "reasoning": "hm", "reasoning_details": details}
    body: JSONObject = {"choices": [{"message": message, "finish_reason": "stop"}]}
    blocks = translate_response(body, CHAT, MESSAGES)["content"]
    again, _ = translate_request({"messages": [{"role": "assistant", "content": blocks}]}, MESSAGES, CHAT)
    assert again["messages"][0]["reasoning_details"] == details  # type: ignore[index,call-overload]


@pytest.mark.parametrize(
    "stop, chat, responses",
    [
        ("end_turn", "stop", ("completed", None)),
        ("max_tokens", "length", ("incomplete", "max_output_tokens")),
        ("stop_sequence", "stop", ("completed", None)),
        ("refusal", "content_filter", ("incomplete", "content_filter")),
        ("model_context_window_exceeded", "length", ("incomplete", "max_output_tokens")),
    ],
)
def test_how_an_answer_of_anthropic_ended(stop: str, chat: str, responses: tuple[str, str | None]) -> None:
    body: JSONObject = {"id": "m", "model": "c", "content": [{"type": "text", "text": "so"}], "stop_reason": stop}
    assert translate_response(body, MESSAGES, CHAT)["choices"][0]["finish_reason"] == chat  # type: ignore[index,call-overload]
    told = translate_response(body, MESSAGES, RESPONSES)
    details = told["incomplete_details"]
    assert (told["status"], details and details["reason"]) == responses  # type: ignore[index,call-overload]


def test_a_model_that_declines_says_so_in_every_dialect() -> None:
    message: JSONObject = {"role": "assistant", "content": None, "refusal": "I would rather not."}
    body: JSONObject = {"choices": [{"message": message, "finish_reason": "stop"}]}
    told = translate_response(body, CHAT, MESSAGES)
    assert told["stop_reason"] == "refusal"
    assert told["stop_details"] == {"type": "refusal", "category": None, "explanation": "I would rather not."}
    output = translate_response(body, CHAT, RESPONSES)["output"]
    assert output[0]["content"] == [{"type": "refusal", "refusal": "I would rather not."}]  # type: ignore[index,call-overload]
    stopped: JSONObject = {"content": [{"type": "text", "text": "I can't"}], "stop_reason": "refusal"}
    back = translate_response(stopped, MESSAGES, CHAT)["choices"][0]["message"]  # type: ignore[index,call-overload]
    assert (back["content"], back["refusal"]) == (None, "I can't")  # type: ignore[index,call-overload]


def test_usage_means_the_same_whoever_reports_it() -> None:
    usage = Usage(calls=1, input=1000, output=50, cache_read=700, cache_write=100, reasoning=20)
    assert usage == usage_of(
        {
            "usage": {
                "input_tokens": 200,
                "cache_read_input_tokens": 700,
                "cache_creation_input_tokens": 100,
                "output_tokens": 50,
                "output_tokens_details": {"thinking_tokens": 20},
            }
        },
        MESSAGES,
    )
    assert usage == usage_of(
        {
            "usage": {
                "input_tokens": 1000,
                "input_tokens_details": {"cached_tokens": 700, "cache_write_tokens": 100},
                "output_tokens": 50,
                "output_tokens_details": {"reasoning_tokens": 20},
            }
        },
        RESPONSES,
    )
    assert usage_of({}, MESSAGES) == usage_of({}, RESPONSES) == Usage(calls=1, unreported=1)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_arms_parameters_win_in_every_dialect(dialect: str) -> None:
    request, _ = (BARE[CHAT], None) if dialect == CHAT else translate_request(BARE[CHAT], CHAT, dialect)
    applied = SPOKEN[dialect].apply(request, {"temperature": 0.5, "max_output_tokens": 77, "reasoning_effort": "low"})
    wanted: dict[str, JSONObject] = {
        CHAT: {"temperature": 0.5, "max_output_tokens": 77, "reasoning_effort": "low"},
        RESPONSES: {"temperature": 0.5, "max_output_tokens": 77, "reasoning": {"effort": "low"}},
        MESSAGES: {"temperature": 0.5, "max_tokens": 77, "output_config": {"effort": "low"}},
    }
    assert {k: applied[k] for k in wanted[dialect]} == wanted[dialect]


def test_an_effort_that_anthropic_does_not_know_is_a_mistake_in_the_arm() -> None:
    with pytest.raises(ConfigError, match="minimal"):
        SPOKEN[MESSAGES].apply(BARE[MESSAGES], {"reasoning_effort": "minimal"})


def test_a_result_alone_is_a_message_of_its_own() -> None:
    notes = Notes("test", CHAT)
    turn = Turn("user", (ToolOutput("a", ()),))
    body = SPOKEN[CHAT].write_request(Request((turn,)), notes)
    assert body["messages"] == [{"role": "tool", "tool_call_id": "a", "content": ""}]
