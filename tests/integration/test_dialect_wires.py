"""The model wire before real providers' dialects: passing on, translating, streaming, hanging up, refusing."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import httpx2
import pytest

from evalcore.errors import FatalInfraError, InfraError
from evalcore.values.json import JSONObject
from evalcore.values.task import Limits
from evalcore.wires.gateway.dialects.chat_stream import cut
from evalcore.wires.http import model_stream
from tests.integration import provider_answers as given
from tests.integration.upstreams import CUT, Answer, Stream, Wire, chat_events, named_events, upstream, wired
from tests.integration.wire_rig import client, on_loop, until

PATHS: Final = {
    "openai-chat": "/chat/completions",
    "openai-responses": "/responses",
    "anthropic-messages": "/messages",
}
BODIES: Final[dict[str, JSONObject]] = {
    "openai-chat": {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    "openai-responses": {"model": "m", "input": "hi"},
    "anthropic-messages": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
}
OWN: Final[dict[str, tuple[str, Answer, Stream]]] = {
    "openai-chat": ("openai", given.CHAT, given.CHAT_STREAM),
    "openai-responses": ("openai", given.RESPONSES, given.RESPONSES_STREAM),
    "anthropic-messages": ("anthropic", given.MESSAGES, given.MESSAGES_STREAM),
}


async def post(http: httpx2.AsyncClient, wire: Wire, dialect: str, more: JSONObject | None = None) -> httpx2.Response:
    return await http.post(wire.url + PATHS[dialect], json={**BODIES[dialect], **(more or {})})


def streaming(http: httpx2.AsyncClient, wire: Wire, dialect: str) -> Any:
    return http.stream("POST", wire.url + PATHS[dialect], json={**BODIES[dialect], "stream": True})


def payloads(stream: bytes) -> list[bytes]:
    return [line.removeprefix(b"data: ") for line in stream.split(b"\n") if line.startswith(b"data: ")]


@pytest.mark.parametrize("dialect", PATHS)
@on_loop
async def test_the_same_dialect_in_and_out_passes_untouched(dialect: str) -> None:
    name, whole, streamed = OWN[dialect]
    strange: JSONObject = {"x_strange": {"kept": [1, 2.5, None, 2**70, "\u2028"]}, "temperature": 0.5}
    async with client() as http:
        async with upstream(whole) as server, wired(name, server) as wire:
            answer = await post(http, wire, dialect, strange)
            assert answer.json() == whole
            assert server.asked[0][2] == {**BODIES[dialect], **strange, "model": "served-name"}
            assert wire.events("model.response")[0]["body"] == whole
        async with upstream(streamed) as server, wired(name, server) as wire:
            more: JSONObject = (
                {"stream": True, "stream_options": {"include_usage": True}} if "chat" in dialect else {"stream": True}
            )
            answer = await post(http, wire, dialect, {**strange, **more})
            sent = [p for piece in streamed.pieces for p in payloads(piece or b"")]
            assert [json.loads(p) for p in payloads(answer.content) if p != b"[DONE]"] == [
                json.loads(p) for p in sent if p != b"[DONE]"
            ]
            assert server.asked[0][2] == {**BODIES[dialect], **strange, "model": "served-name", **more}
            (recorded,) = wire.events("model.response")
            assert recorded["body"] == whole
            assert isinstance(recorded["first_s"], float)


@on_loop
async def test_an_agent_that_did_not_ask_for_usage_gets_none_and_is_measured_all_the_same() -> None:
    async with client() as http, upstream(given.CHAT_STREAM) as server, wired("openai", server) as wire:
        answer = await post(http, wire, "openai-chat", {"stream": True})
        chunks = [json.loads(p) for p in payloads(answer.content) if p != b"[DONE]"]
        assert all(chunk["choices"] and "usage" not in chunk for chunk in chunks)
        assert wire.meter.usage()["agent"].input == 100


@pytest.mark.parametrize("dialect", PATHS)
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@on_loop
async def test_the_first_piece_is_passed_on_before_the_last_has_come(provider: str, dialect: str) -> None:
    streamed = given.MESSAGES_STREAM if provider == "anthropic" else given.CHAT_STREAM
    if (provider, dialect) == ("openai", "openai-responses"):
        streamed = given.RESPONSES_STREAM
    halves = Stream([*streamed.pieces[:6], None, *streamed.pieces[6:]])
    async with client() as http, upstream(halves) as server, wired(provider, server) as wire:
        async with streaming(http, wire, dialect) as answer:
            came = answer.aiter_bytes()
            first = await asyncio.wait_for(anext(came), 30)
            assert first.startswith((b"data: ", b"event: "))
            server.gate.set()
            rest = b"".join([first, *[piece async for piece in came]])
        assert b"Let me" in rest and b"weather" in rest
        assert len(wire.events("model.response")) == 1


@pytest.mark.parametrize("dialect", PATHS)
@on_loop
async def test_an_agent_that_hangs_up_ends_the_providers_work_and_what_came_is_kept(dialect: str) -> None:
    cut = Stream([*given.MESSAGES_STREAM.pieces[:9], None])
    async with client() as http, upstream(cut) as server, wired("anthropic", server) as wire:
        async with streaming(http, wire, dialect) as answer:
            await anext(answer.aiter_bytes())
        await asyncio.wait_for(server.left.wait(), 30)
        await until(lambda: bool(wire.events("model.response")))
        (recorded,) = wire.events("model.response")
        assert recorded["partial"] is True
        assert "Let me" in json.dumps(recorded["body"])
        assert [e["e"] for e in wire.events("wire.hangup")] == ["wire.hangup"]
        usage = wire.meter.usage()["agent"]
        assert (usage.calls, usage.input, usage.unreported) == (1, 100, 1)
        assert wire.meter.failure is None


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("dialect", PATHS)
@on_loop
async def test_an_agent_that_hangs_up_before_anything_came_ends_the_providers_work_and_what_it_cost_is_unknown(
    dialect: str, streamed: bool
) -> None:
    silent = Stream([None, *given.MESSAGES_STREAM.pieces])
    async with client() as http, upstream(silent) as server, wired("anthropic", server) as wire:
        body = {**BODIES[dialect], **({"stream": True} if streamed else {})}
        asking = asyncio.ensure_future(http.post(f"{wire.url}{PATHS[dialect]}", json=body))
        await until(lambda: bool(server.asked))
        asking.cancel()
        await asyncio.wait_for(server.left.wait(), 30)
        await until(lambda: bool(wire.events("model.error")))
        (told,) = wire.events("model.error")
        assert told["kind"] == "unheard"
        assert [e["e"] for e in wire.events("wire.hangup")] == ["wire.hangup"]
        usage = wire.meter.usage()["agent"]
        assert (usage.calls, usage.unreported, usage.cost_usd) == (1, 1, None)
        assert wire.meter.failure is None and len(server.asked) == 1  # and nobody tries again


@pytest.mark.parametrize("dialect", PATHS)
@on_loop
async def test_a_stream_that_is_cut_is_the_machines_failure_and_the_agent_gets_an_error_event(dialect: str) -> None:
    for pieces in ([*given.MESSAGES_STREAM.pieces[:8], CUT], list(given.MESSAGES_STREAM.pieces[:8])):
        async with client() as http, upstream(Stream(pieces)) as server, wired("anthropic", server) as wire:
            answer = await post(http, wire, dialect, {"stream": True})
            assert answer.status_code == 200
            last = json.loads(payloads(answer.content)[-1])
            told = last["error"]["message"] if dialect != "openai-responses" else last["message"]
            assert told == "the model provider failed"
            assert last.get("type") == {"openai-chat": None}.get(dialect, "error")
            assert isinstance(wire.meter.failure, InfraError)
            assert wire.events("model.response") == []
            assert len(wire.events("model.error")) == 1
            assert len(server.asked) == 1  # what was passed on cannot be taken back


@on_loop
async def test_an_error_that_a_provider_sends_in_its_stream_means_what_its_status_would() -> None:
    overloaded = named_events({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    refused = named_events({"type": "error", "error": {"type": "invalid_request_error", "message": "too long"}})
    keyless = named_events({"type": "error", "error": {"type": "authentication_error", "message": "who?"}})
    async with client() as http:
        async with upstream(Stream(overloaded), given.MESSAGES_STREAM) as server, wired("anthropic", server) as wire:
            answer = await post(http, wire, "anthropic-messages", {"stream": True})
            assert b"message_stop" in answer.content
            (retry,) = wire.events("model.retry")
            assert "Overloaded" in str(retry["message"]) and len(server.asked) == 2
        async with upstream(Stream(refused)) as server, wired("anthropic", server) as wire:
            answer = await post(http, wire, "openai-chat", {"stream": True})
            assert (answer.status_code, "too long" in answer.text, wire.meter.failure) == (400, True, None)
        async with upstream(Stream(keyless)) as server, wired("anthropic", server) as wire:
            answer = await post(http, wire, "anthropic-messages", {"stream": True})
            assert answer.status_code == 502
            assert isinstance(wire.meter.failure, FatalInfraError)


@on_loop
async def test_a_response_that_failed_is_no_answer() -> None:
    error: JSONObject = {"code": "server_error", "message": "broke"}
    failed: JSONObject = {**given.RESPONSES, "status": "failed", "output": [], "error": error}
    event = named_events({"type": "response.failed", "sequence_number": 0, "response": failed})
    async with client() as http:
        for answer, streamed in ((failed, given.RESPONSES), (Stream(event), given.RESPONSES_STREAM)):
            async with upstream(answer, streamed) as server, wired("openai", server) as wire:
                more: JSONObject = {"stream": True} if isinstance(answer, Stream) else {}
                assert b"Let me look." in (await post(http, wire, "openai-responses", more)).content
                assert "broke" in str(wire.events("model.retry")[0]["message"])


@on_loop
async def test_a_server_that_does_not_stream_after_all_is_understood() -> None:
    async with client() as http, upstream(given.CHAT) as server, wired("openai-compatible", server) as wire:
        answer = await post(http, wire, "anthropic-messages", {"stream": True})
        assert b"input_json_delta" in answer.content and b"message_stop" in answer.content
        assert wire.meter.usage()["agent"].input == 100


@on_loop
async def test_what_a_translation_left_out_and_put_in_is_in_the_trace() -> None:
    async with client() as http, upstream(given.MESSAGES) as server, wired("anthropic", server) as wire:
        answer = await post(http, wire, "openai-chat", {"seed": 1, "user": "u", "store": True, "x_new": 1})
        assert answer.json()["choices"][0]["message"]["content"] == "Let me look."
        (request,), (response,) = wire.events("model.request"), wire.events("model.response")
        assert request["hints_dropped"] == ["seed", "user", "store", "x_new"]
        assert request["added"] == {"max_tokens": 32_000}
        assert request["rest"] == {"model": "m", "seed": 1, "user": "u", "store": True, "x_new": 1}
        assert response["upstream"] == {"dialect": "anthropic-messages", "usage": given.MESSAGES["usage"]}
        assert server.asked[0][2] == {
            "model": "served-name",
            "max_tokens": 32_000,
            "messages": [{"role": "user", "content": "hi"}],
        }


@pytest.mark.parametrize("streamed", [False, True])
@on_loop
async def test_what_a_server_puts_beside_a_call_comes_back_to_it_through_any_agent(streamed: bool) -> None:
    signed: JSONObject = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
    calls: list[Any] = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}, **signed}]
    message: JSONObject = {"role": "assistant", "content": None, "tool_calls": calls}
    whole: JSONObject = {
        "id": "x",
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
    }
    first: Answer = Stream(chat_events(*cut(whole, with_usage=True))) if streamed else whole
    turn = {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "1"}]}
    asked: list[Any] = [{"role": "user", "content": "hi"}]
    more: JSONObject = {"stream": True} if streamed else {}
    async with client() as http, upstream(first, given.CHAT_STREAM if streamed else given.CHAT) as server:
        async with wired("openai-compatible", server) as wire:
            await post(http, wire, "anthropic-messages", {"messages": asked, **more})
            await post(http, wire, "anthropic-messages", {"messages": [*asked, turn, result], **more})
        (again,) = server.asked[1][2]["messages"][1]["tool_calls"]
        assert again == calls[0]


@pytest.mark.parametrize(
    "dialect, provider, more, shape",
    [
        ("openai-responses", "anthropic", {"previous_response_id": "r"}, ("error", "code", "not_translatable")),
        ("anthropic-messages", "openai-compatible", {"top_k": 5}, ("error", "type", "invalid_request_error")),
        ("openai-chat", "anthropic", {"logprobs": True}, ("error", "param", "logprobs")),
    ],
)
@on_loop
async def test_what_cannot_be_said_is_refused_in_the_agents_own_words(
    dialect: str, provider: str, more: JSONObject, shape: tuple[str, str, str]
) -> None:
    async with client() as http, upstream({}) as server, wired(provider, server) as wire:
        for streamed in ({}, {"stream": True}):
            answer = await post(http, wire, dialect, {**more, **streamed})
            assert answer.status_code == 400
            value = answer.json()
            assert value[shape[0]][shape[1]] == shape[2]
            assert f"`{next(iter(more))}` cannot be translated" in value["error"]["message"]
        assert server.asked == []
        assert wire.meter.failure is None
        assert [e["kind"] for e in wire.events("model.error")] == ["RefusedRequest"] * 2


@on_loop
async def test_betas_travel_as_a_header_to_their_own_provider_and_are_dropped_elsewhere() -> None:
    headers = {"anthropic-beta": "one-2025-01-01, two-2026-01-01", "anthropic-version": "2023-06-01"}
    body = BODIES["anthropic-messages"]
    async with client() as http:
        async with upstream(given.MESSAGES) as server, wired("anthropic", server) as wire:
            await http.post(f"{wire.url}/messages", json=body, headers=headers)
            ((_, sent, asked),) = server.asked
            assert sent["anthropic-beta"] == "one-2025-01-01,two-2026-01-01"
            assert "betas" not in asked
        async with upstream(given.CHAT) as server, wired("openai-compatible", server) as wire:
            await http.post(f"{wire.url}/messages", json=body, headers=headers)
            assert wire.events("model.request")[0]["hints_dropped"] == ["betas"]


@pytest.mark.parametrize("dialect", PATHS)
@on_loop
async def test_only_declared_names_are_served_where_names_are_declared(dialect: str) -> None:
    name, whole, _ = OWN[dialect]
    names: JSONObject = {"model_aliases": "m, small"}
    async with client() as http, upstream(whole) as server, wired(name, server, names) as wire:
        assert (await post(http, wire, dialect)).status_code == 200
        answer = await post(http, wire, dialect, {"model": "large"})
        assert answer.status_code == 404
        assert "'large' does not exist" in answer.json()["error"]["message"]
        assert "model_aliases" not in server.asked[0][2]
        listed = (await http.get(f"{wire.url}/models")).json()
        assert [m["id"] for m in listed["data"]] == ["m", "small"]
        assert (await http.get(f"{wire.url}/models/small")).status_code == 200
        assert (await http.get(f"{wire.url}/models/large")).status_code == 404
        (asked, other) = wire.events("model.request")
        whole_asked: Any = other["rest"]
        assert asked["rest"]["model"] == "m" and whole_asked["model"] == "large"  # type: ignore[index,call-overload]


@pytest.mark.parametrize("dialect", PATHS)
@on_loop
async def test_a_limit_is_told_in_the_agents_own_words(dialect: str) -> None:
    name, whole, _ = OWN[dialect]
    async with client() as http, upstream(whole) as server, wired(name, server, limits=Limits(model_calls=1)) as wire:
        assert (await post(http, wire, dialect)).status_code == 200
        for streamed in ({}, {"stream": True}):
            answer = await post(http, wire, dialect, streamed)
            assert (answer.status_code, answer.headers["x-should-retry"]) == (429, "false")
            kind = "rate_limit_error" if "messages" in dialect else "insufficient_quota"
            assert answer.json()["error"]["type"] == kind
        assert wire.meter.limit is not None and wire.meter.limit.limit == "model_calls"


@pytest.mark.parametrize("provider, wanted", [("openai", "max_completion_tokens"), ("anthropic", "max_tokens")])
@on_loop
async def test_the_arms_parameters_reach_a_provider_in_its_own_words(provider: str, wanted: str) -> None:
    whole = given.MESSAGES if provider == "anthropic" else given.CHAT
    arms: JSONObject = {"max_output_tokens": 50, "temperature": 0.0}
    async with client() as http, upstream(whole) as server, wired(provider, server, arms) as wire:
        await post(http, wire, "openai-chat", {"max_tokens": 7, "temperature": 1.0})
        body = server.asked[0][2]
        assert (body[wanted], body["temperature"]) == (50, 0.0)
        assert "max_output_tokens" not in body
        assert wire.events("model.request")[0]["applied"] == {"max_output_tokens": 50, "temperature": 0.0}


@on_loop
async def test_what_the_arm_sets_anyway_need_not_be_translated() -> None:
    arm: JSONObject = {"max_output_tokens": 50, "temperature": 0.5}
    async with client() as http, upstream(given.MESSAGES) as server, wired("anthropic", server, arm) as wire:
        answer = await post(http, wire, "openai-chat", {"temperature": 1.5})
        assert answer.status_code == 200
        assert (server.asked[0][2]["temperature"], server.asked[0][2]["max_tokens"]) == (0.5, 50)
        (request,) = wire.events("model.request")
        assert "added" not in request
        assert request["rest"] == {"model": "m", "temperature": 1.5}


@on_loop
async def test_a_conversation_in_any_dialect_is_stored_once_and_read_back_whole() -> None:
    from evalcore.values.trace import TraceReader

    items: list[Any] = [{"role": "user", "content": "one"}]
    async with client() as http, upstream(given.RESPONSES) as server, wired("openai", server) as wire:
        bodies: list[JSONObject] = [{"model": "m", "input": "only text"}, {"model": "m", "input": [*items]}]
        items.append({"role": "user", "content": "two"})
        bodies.append({"model": "m", "input": [*items]})
        for body in bodies:
            await http.post(f"{wire.url}/responses", json=body)
        assert TraceReader(wire.recorder.lines()).requests() == bodies
        assert [e.get("add") for e in wire.events("model.request")] == [None, items[:1], items[1:]]


@on_loop
async def test_a_silent_provider_does_not_starve_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_stream, "PATIENCE_S", 0.02)
    waits = Stream([None, *given.MESSAGES_STREAM.pieces])
    async with (
        client() as http,
        upstream(waits) as server,
        wired("anthropic", server) as wire,
        http.stream("POST", f"{wire.url}/messages", json={**BODIES["anthropic-messages"], "stream": True}) as got,
    ):
        came = got.aiter_bytes()
        assert await asyncio.wait_for(anext(came), 30) == model_stream.WAITING
        server.gate.set()
        assert b"message_stop" in b"".join([piece async for piece in came])


@on_loop
async def test_a_door_that_closes_ends_a_stream_under_way() -> None:
    stuck = Stream([*given.MESSAGES_STREAM.pieces[:8], None])
    async with client() as http, upstream(stuck) as server, wired("anthropic", server) as wire:
        async with http.stream(
            "POST", f"{wire.url}/messages", json={**BODIES["anthropic-messages"], "stream": True}
        ) as got:
            await anext(got.aiter_bytes())
            await wire.door.close()
            await asyncio.wait_for(server.left.wait(), 30)
        assert len(wire.events("model.response")) == 1
