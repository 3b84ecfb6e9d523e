"""The model wire over HTTP: Chat Completions as JSON and as a stream, errors in the dialect's own form, limits."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.contracts import CallContext
from evalcore.errors import AgentError, BudgetExceeded, FatalInfraError, InfraError
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import Limits
from evalcore.wires.gateway.dialects.chat_stream import cut
from evalcore.wires.gateway.refused import RefusedRequest
from evalcore.wires.http import model_door, model_stream
from tests.integration.wire_rig import Says, Wires, client, on_loop, open_wires, said, serving, until

HELLO: JSONObject = {"model": "gpt-x", "messages": [{"role": "user", "content": "hello ü"}], "temperature": 0.0}


async def chat(http: httpx2.AsyncClient, wires: Wires, body: object = HELLO) -> httpx2.Response:
    """One request, as an agent sends it."""
    headers = {"Authorization": "Bearer agents-own-key", "Content-Type": "application/json", "User-Agent": "agent/1"}
    content = body if isinstance(body, bytes) else json.dumps(body)
    return await http.post(f"{wires.model_door.url}/chat/completions", content=content, headers=headers)


def put_together(stream: bytes) -> JSONObject:
    """What an official client makes of a stream: message, finish and usage. Checks the form of each event."""
    events = stream.decode().split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    message: dict[str, Any] = {}
    calls: list[dict[str, Any]] = []
    whole: dict[str, Any] = {"usage": None}
    for event in events[:-2]:
        assert event.startswith("data: {")
        chunk = json.loads(event.removeprefix("data: "))
        assert chunk["object"] == "chat.completion.chunk" and "id" in chunk and "created" in chunk
        whole["usage"] = chunk.get("usage") or whole["usage"]
        for choice in chunk["choices"]:
            delta = dict(choice["delta"])
            for call in delta.pop("tool_calls", []):
                _add_call(calls, call)
            for key, value in delta.items():
                message[key] = (
                    (message.get(key) or "") + value if key == "content" and value else message.get(key, value)
                )
            whole["finish"] = choice["finish_reason"]
    if calls:
        message["tool_calls"] = calls
    return {**whole, "message": message}


def _add_call(calls: list[dict[str, Any]], delta: dict[str, Any]) -> None:
    index = delta.pop("index")
    if index == len(calls):
        calls.append({**delta, "function": dict(delta["function"])})
    else:
        calls[index]["function"]["arguments"] += delta["function"]["arguments"]


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@on_loop
async def test_an_answer_comes_back_as_the_provider_gave_it_and_is_recorded() -> None:
    provider = Says({**said("ü \U0001f600 \ud800"), "big": 2**70, "five": 5.0})
    async with serving() as server, client() as http:
        wires = await open_wires(server, provider)
        answer = await chat(http, wires)
    assert answer.status_code == 200 and answer.headers["content-type"] == "application/json"
    assert json.loads(answer.content) == provider.answer
    assert repr(json.loads(answer.content)["five"]) == "5.0"
    ((model, body, context),) = provider.asked
    assert (model, body) == ("it", HELLO)  # the arm's model, whatever was asked for; recorded as asked
    assert (context.role, context.call) == ("agent", 1)
    (request,) = wires.events("model.request")
    assert request["rest"] == {"model": "gpt-x", "temperature": 0.0}
    assert [e["body"] for e in wires.events("model.response")] == [provider.answer]
    assert wires.meter.usage()["agent"].input == 10
    assert b"agents-own-key" not in b"".join(wires.recorder.lines())


@on_loop
async def test_a_streamed_answer_puts_together_to_the_same() -> None:
    calls: list[JSONValue] = [
        {"id": f"c{n}", "type": "function", "function": {"name": "get", "arguments": text}}
        for n, text in enumerate(['{"a": "ü"}', "", "not JSON"])
    ]
    provider = Says(said("Let me see.", tool_calls=calls, reasoning_content="hm"))
    async with serving() as server, client() as http:
        wires = await open_wires(server, provider)
        plain = (await chat(http, wires)).json()
        asked = {**HELLO, "stream": True, "stream_options": {"include_usage": True}}
        streamed = await chat(http, wires, asked)
        unasked = await chat(http, wires, {**HELLO, "stream": True})
    assert streamed.headers["content-type"] == "text/event-stream"
    whole = put_together(streamed.content)
    assert whole["message"] == plain["choices"][0]["message"]
    assert (whole["finish"], whole["usage"]) == ("tool_calls", plain["usage"])
    assert put_together(unasked.content)["usage"] is None
    assert [body for _, body, _ in provider.asked] == [HELLO] * 3  # the model is asked the same either way
    assert [e["stream"] for e in wires.events("wire.client")] == [False, True]


_texts = st.text(st.characters(codec="utf-8"), max_size=20)
_calls = st.lists(st.tuples(_texts, _texts), max_size=4)


@given(st.none() | _texts, _calls, st.none() | _texts)
def test_any_answer_survives_being_cut_into_chunks(
    text: str | None, calls: list[tuple[str, str]], refusal: str | None
) -> None:
    message: JSONObject = {} if refusal is None else {"refusal": refusal}
    if calls:
        message["tool_calls"] = [
            {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for n, (name, arguments) in enumerate(calls)
        ]
    response = said(text, **message)
    parts = b"".join(b"data: " + json.dumps(c).encode() + b"\n\n" for c in cut(response, with_usage=True))
    whole = put_together(parts + b"data: [DONE]\n\n")
    choices: Any = response["choices"]
    assert whole["message"] == choices[0]["message"]
    assert whole["usage"] == response["usage"]


@on_loop
async def test_a_stream_shows_signs_of_life_while_the_model_thinks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_stream, "PATIENCE_S", 0.01)
    ready = asyncio.Event()
    async with serving() as server, client() as http:
        good = await open_wires(server, Says(wait=ready))
        bad = await open_wires(server, Says(InfraError("HTTP 500"), wait=ready))
        waiting = [asyncio.create_task(chat(http, w, {**HELLO, "stream": True})) for w in (good, bad)]
        await asyncio.sleep(0.1)
        ready.set()
        answer, failed = [await w for w in waiting]
    assert answer.content.startswith(b": waiting for the model\n\n")
    assert put_together(answer.content[answer.content.index(b"data:") :])["finish"] == "stop"
    assert failed.status_code == 200  # it was too late for another
    last = failed.content.split(b"\n\n")[-2]
    assert json.loads(last.removeprefix(b"data: "))["error"]["code"] == "provider_failure"


@on_loop
async def test_what_strict_clients_need_is_filled_in_for_them_only() -> None:
    bare: JSONObject = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}}]}
    async with serving() as server, client() as http:
        wires = await open_wires(server, Says(bare))
        answer = (await chat(http, wires)).json()
    assert answer == {"object": "chat.completion", "created": 0, **bare}
    assert [e["body"] for e in wires.events("model.response")] == [bare]


@on_loop
async def test_models_are_listed_and_every_name_is_served() -> None:
    async with serving() as server, client() as http:
        wires = await open_wires(server)
        listed = (await http.get(f"{wires.model_door.url}/models")).json()
        one = (await http.get(f"{wires.model_door.url}/models/any/name")).json()
    assert [m["id"] for m in listed["data"]] == ["says/it"] and listed["object"] == "list"
    assert (one["id"], one["object"]) == ("any/name", "model")


@on_loop
async def test_calls_side_by_side_keep_their_numbers() -> None:
    class Slow(Says):
        async def complete(self, model: str, body: JSONObject, context: CallContext) -> JSONObject:
            await asyncio.sleep(0.05 - 0.01 * context.call)
            return said(str(context.call))

    async with serving() as server, client() as http:
        wires = await open_wires(server, Slow())
        await asyncio.gather(*(chat(http, wires) for _ in range(4)))
    answers: Any = {e["call"]: e["body"] for e in wires.events("model.response")}
    assert {n: a["choices"][0]["message"]["content"] for n, a in answers.items()} == {n: str(n) for n in range(1, 5)}


# ── errors ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "error, status, kind, code",
    [
        (AgentError("odd request"), 400, "invalid_request_error", None),
        (
            RefusedRequest("too long", status=400, code="context_length_exceeded", param="messages"),
            400,
            "invalid_request_error",
            "context_length_exceeded",
        ),
        (RefusedRequest("unprocessable", status=422), 422, "invalid_request_error", None),
        (InfraError("HTTP 500 from 10.0.0.1"), 502, "server_error", "provider_failure"),
        (FatalInfraError("bad key in OPENAI_API_KEY"), 502, "server_error", "provider_failure"),
        (ValueError("a bug"), 502, "server_error", "provider_failure"),
    ],
)
@on_loop
async def test_failures_have_the_dialects_own_form(
    streamed: bool, error: Exception, status: int, kind: str, code: str | None
) -> None:
    async with serving() as server, client() as http:
        wires = await open_wires(server, Says(error))
        answer = await chat(http, wires, {**HELLO, "stream": streamed})
    told = answer.json()["error"]
    assert (answer.status_code, told["type"], told["code"]) == (status, kind, code)
    assert set(told) == {"message", "type", "param", "code"}
    assert answer.headers["x-should-retry"] == "false"
    if status == 502:
        assert str(error) not in told["message"] and wires.meter.failure is not None
    else:
        assert told["message"] == str(error) and wires.meter.failure is None


@on_loop
async def test_a_limit_is_what_a_spent_quota_is_to_an_agent() -> None:
    async with serving() as server, client() as http:
        wires = await open_wires(server, limits=Limits(model_calls=1))
        assert (await chat(http, wires)).status_code == 200
        answer = await chat(http, wires)
    assert answer.status_code == 429
    assert answer.json()["error"]["type"] == answer.json()["error"]["code"] == "insufficient_quota"
    assert "model_calls" in answer.json()["error"]["message"]
    assert wires.meter.limit is not None and wires.meter.limit.limit == "model_calls"
    assert [e["status"] for e in wires.events("wire.refused")] == [429]


@on_loop
async def test_a_spent_budget_is_told_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as server, client() as http:
        wires = await open_wires(server)

        def spent(role: str) -> float:
            raise BudgetExceeded("the run's budget of $1 is spent")

        monkeypatch.setattr(type(wires.meter), "begin_model_call", lambda _, role, *__: spent(role))
        answer = await chat(http, wires)
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "insufficient_quota")


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"7", b"\xff", b"[" * 100_000, b'{"model": "x"}', b'{"messages": "hello"}']
)
@on_loop
async def test_a_body_that_is_no_request_is_the_agents_error(body: bytes) -> None:
    provider = Says()
    async with serving() as server, client() as http:
        wires = await open_wires(server, provider)
        answer = await chat(http, wires, body)
    assert answer.status_code == 400 and answer.json()["error"]["type"] == "invalid_request_error"
    assert provider.asked == [] and wires.meter.failure is None


@on_loop
async def test_a_parameter_that_the_arm_sets_is_not_the_agents_to_answer_for() -> None:
    refused = RefusedRequest("temperature does not work here", param="temperature")
    async with serving() as server, client() as http:
        agents = await open_wires(server, Says(refused))
        arms = await open_wires(server, Says(refused))
        arms.channel.parameters = {"temperature": 0.0}
        assert (await chat(http, agents)).status_code == 400
        assert (await chat(http, arms)).status_code == 502
    assert agents.meter.failure is None
    assert isinstance(arms.meter.failure, FatalInfraError) and "temperature" in arms.meter.failure.message


# ── doors ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@on_loop
async def test_closed_doors_other_paths_and_large_bodies_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_door, "BODY_CAP", 1000)
    async with serving() as server, client() as http:
        wires, other = await open_wires(server), await open_wires(server)
        await other.model_door.close()
        base = wires.model_door.url
        assert (await chat(http, other)).status_code == 404
        assert (await http.get(f"{other.model_door.url}/models")).status_code == 404
        assert (await http.get(f"{base}/chat/completions")).status_code == 405
        assert (await http.post(f"{base}/embeddings", content=b"{}")).status_code == 404
        assert (await chat(http, wires, b" " * 1001)).status_code == 413
        assert (await chat(http, wires)).status_code == 200


@on_loop
async def test_closing_a_door_ends_the_model_call_under_way() -> None:
    provider = Says(wait=asyncio.Event())
    async with serving() as server, client() as http:
        wires = await open_wires(server, provider)
        under_way = [asyncio.create_task(chat(http, wires, {**HELLO, "stream": s})) for s in (False, True)]
        await until(lambda: len(provider.asked) == 2)
        await wires.model_door.close()
        assert [(await u).status_code for u in under_way] == [404, 404]
    assert wires.meter.failure is None and wires.events("model.response") == []
