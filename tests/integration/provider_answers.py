"""One answer in the words of each provider, whole and streamed: a thought, a text, two calls at once."""

from __future__ import annotations

from typing import Final

from evalcore.values.json import JSONObject
from tests.integration.upstreams import Stream, chat_events, named_events

CALL_A: Final[JSONObject] = {"city": "Bern"}
CALL_B: Final[JSONObject] = {"city": "Zürich", "days": 2}

CHAT: Final[JSONObject] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1700000000,
    "model": "served-name-2026",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "Let me look.",
                "refusal": None,
                "tool_calls": [
                    {
                        "id": "call_a",
                        "type": "function",
                        "function": {"name": "weather", "arguments": '{"city":"Bern"}'},
                    },
                    {
                        "id": "call_b",
                        "type": "function",
                        "function": {"name": "forecast", "arguments": '{"city":"Zürich","days":2}'},
                    },
                ],
            },
            "logprobs": None,
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {
        "prompt_tokens": 100,
        "completion_tokens": 40,
        "total_tokens": 140,
        "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens_details": {"reasoning_tokens": 10},
    },
    "x_new_field": {"kept": [1, 2.5]},
}


def _chunk(delta: JSONObject, finish: str | None = None) -> JSONObject:
    return {
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": "served-name-2026",
        "x_new_field": {"kept": [1, 2.5]}, "usage": None,
        "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
    }  # fmt: skip


def _call(index: int, arguments: str, **head: str) -> JSONObject:
    named: JSONObject = {"id": head["id"], "type": "function"} if head else {}
    function: JSONObject = {"arguments": arguments, **({"name": head["name"]} if head else {})}
    return {"tool_calls": [{"index": index, **named, "function": function}]}


CHAT_STREAM: Final = Stream(
    chat_events(
        _chunk({"role": "assistant", "content": "", "refusal": None}),
        _chunk({"content": "Let me"}),
        _chunk({"content": " look."}),
        _chunk(_call(0, "", id="call_a", name="weather")),
        _chunk(_call(0, '{"city":')),
        _chunk(_call(0, '"Bern"}')),
        _chunk(_call(1, "", id="call_b", name="forecast")),
        _chunk(_call(1, '{"city":"Zürich","days":2}')),
        _chunk({}, "tool_calls"),
        {**_chunk({}), "choices": [], "usage": CHAT["usage"]},
    )
)

MESSAGES: Final[JSONObject] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "served-name-2026",
    "content": [
        {"type": "thinking", "thinking": "They want two places.", "signature": "c2lnbmF0dXJl"},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "call_a", "name": "weather", "input": CALL_A},
        {"type": "tool_use", "id": "call_b", "name": "forecast", "input": CALL_B},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 30,
        "cache_read_input_tokens": 60,
        "cache_creation_input_tokens": 10,
        "output_tokens": 40,
        "output_tokens_details": {"thinking_tokens": 10},
        "service_tier": "standard",
    },
    "x_new_field": {"kept": [1, 2.5]},
}


def _delta(index: int, kind: str, name: str, text: str) -> JSONObject:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, name: text}}


def _block(index: int, block: JSONObject, *deltas: JSONObject) -> list[JSONObject]:
    start: JSONObject = {"type": "content_block_start", "index": index, "content_block": block}
    return [start, *deltas, {"type": "content_block_stop", "index": index}]


_BEGUN: Final[JSONObject] = {
    **MESSAGES,
    "content": [],
    "stop_reason": None,
    "usage": {**MESSAGES["usage"], "output_tokens": 1},  # type: ignore[dict-item]
}

MESSAGES_STREAM: Final = Stream(
    named_events(
        {"type": "message_start", "message": _BEGUN},
        {"type": "ping"},
        *_block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            _delta(0, "thinking_delta", "thinking", "They want"),
            _delta(0, "thinking_delta", "thinking", " two places."),
            _delta(0, "signature_delta", "signature", "c2lnbmF0dXJl"),
        ),
        *_block(
            1,
            {"type": "text", "text": ""},
            _delta(1, "text_delta", "text", "Let me"),
            _delta(1, "text_delta", "text", " look."),
        ),
        *_block(
            2,
            {"type": "tool_use", "id": "call_a", "name": "weather", "input": {}},
            _delta(2, "input_json_delta", "partial_json", ""),
            _delta(2, "input_json_delta", "partial_json", '{"city": '),
            _delta(2, "input_json_delta", "partial_json", '"Bern"}'),
        ),
        *_block(
            3,
            {"type": "tool_use", "id": "call_b", "name": "forecast", "input": {}},
            _delta(3, "input_json_delta", "partial_json", '{"city": "Zürich", "days": 2}'),
        ),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {"output_tokens": 40, "output_tokens_details": {"thinking_tokens": 10}},
        },
        {"type": "message_stop"},
    )
)

_ITEMS: Final[list[JSONObject]] = [
    {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "They want two places."}],
        "encrypted_content": "gAAAAB",
    },
    {
        "id": "msg_1",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Let me look.", "annotations": [], "logprobs": []}],
    },
    {
        "id": "fc_1",
        "type": "function_call",
        "status": "completed",
        "call_id": "call_a",
        "name": "weather",
        "arguments": '{"city":"Bern"}',
    },
    {
        "id": "fc_2",
        "type": "function_call",
        "status": "completed",
        "call_id": "call_b",
        "name": "forecast",
        "arguments": '{"city":"Zürich","days":2}',
    },
]

RESPONSES: Final[JSONObject] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1700000000,
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "metadata": {},
    "model": "served-name-2026",
    "output": list(_ITEMS),
    "parallel_tool_calls": True,
    "temperature": 1.0,
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "usage": {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 0},
        "output_tokens": 40,
        "output_tokens_details": {"reasoning_tokens": 10},
        "total_tokens": 140,
    },
    "x_new_field": {"kept": [1, 2.5]},
}


def _responses_events() -> list[JSONObject]:
    begun: JSONObject = {**RESPONSES, "status": "in_progress", "output": [], "usage": None}
    events: list[JSONObject] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    thought, text, *calls = _ITEMS
    at: JSONObject = {"item_id": "rs_1", "output_index": 0, "summary_index": 0}
    said: JSONObject = {"type": "summary_text", "text": "They want two places."}
    events += [
        {"type": "response.output_item.added", "output_index": 0, "item": {**thought, "summary": []}},
        {"type": "response.reasoning_summary_part.added", **at, "part": {**said, "text": ""}},
        {"type": "response.reasoning_summary_text.delta", **at, "delta": "They want"},
        {"type": "response.reasoning_summary_text.delta", **at, "delta": " two places."},
        {"type": "response.reasoning_summary_text.done", **at, "text": said["text"]},
        {"type": "response.reasoning_summary_part.done", **at, "part": said},
        {"type": "response.output_item.done", "output_index": 0, "item": thought},
    ]
    at = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
    part = text["content"][0]  # type: ignore[index,call-overload]
    events += [
        {
            "type": "response.output_item.added",
            "output_index": 1,
            "item": {**text, "status": "in_progress", "content": []},
        },
        {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},  # type: ignore[dict-item]
        {"type": "response.output_text.delta", **at, "delta": "Let me", "logprobs": []},
        {"type": "response.output_text.delta", **at, "delta": " look.", "logprobs": []},
        {"type": "response.output_text.done", **at, "text": "Let me look.", "logprobs": []},
        {"type": "response.content_part.done", **at, "part": part},
        {"type": "response.output_item.done", "output_index": 1, "item": text},
    ]
    for place, call in enumerate(calls, 2):
        at = {"item_id": call["id"], "output_index": place}
        arguments = str(call["arguments"])
        events += [
            {"type": "response.output_item.added", "output_index": place, "item": {**call, "arguments": ""}},
            {"type": "response.function_call_arguments.delta", **at, "delta": arguments[:7]},
            {"type": "response.function_call_arguments.delta", **at, "delta": arguments[7:]},
            {"type": "response.function_call_arguments.done", **at, "name": call["name"], "arguments": arguments},
            {"type": "response.output_item.done", "output_index": place, "item": call},
        ]
    events.append({"type": "response.completed", "response": RESPONSES})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


RESPONSES_STREAM: Final = Stream(named_events(*_responses_events()))
