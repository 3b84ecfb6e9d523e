"""The official `openai` and `anthropic` clients, unmodified, before the model wire: every dialect, every provider.

Each asks a provider's fake server through the wire, whole and streamed, and must see the same answer whatever the
server speaks. Whole trials run in processes of their own, with the MCP SDK's client beside, in both protocol eras.
"""

from __future__ import annotations

import asyncio
import json
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from evalcore.builtin.openai_compatible import OpenAIProvider
from evalcore.values.json import JSONObject
from tests.integration import provider_answers as given
from tests.integration import upstreams
from tests.integration.test_command import trial
from tests.integration.upstreams import Answer, Wire, upstream, wired
from tests.integration.wire_rig import on_loop

openai: Any = import_module("openai")  # their types are large, and no test's subject
anthropic: Any = import_module("anthropic")


class ResponsesOnly(OpenAIProvider):
    """A provider that speaks Responses alone."""

    dialect = "openai-responses"
    dialects = ("openai-responses",)


SERVERS: Final[dict[str, tuple[str, Answer, Answer, bool]]] = {  # provider, whole, streamed, whether it shows thoughts
    "chat": ("openai-compatible", given.CHAT, given.CHAT_STREAM, False),
    "messages": ("anthropic", given.MESSAGES, given.MESSAGES_STREAM, True),
    "responses": ("openai", given.RESPONSES, given.RESPONSES_STREAM, True),
}
TOOL: Final[JSONObject] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CALLS: Final = [("call_a", "weather", given.CALL_A), ("call_b", "forecast", given.CALL_B)]


@pytest.fixture(autouse=True)
def _responses_only(monkeypatch: pytest.MonkeyPatch) -> None:
    real = upstreams.provider

    def made(name: str, **environ: str) -> Any:
        if name != "openai":
            return real(name, **environ)
        one: Any = real(name, **environ)
        one.__class__ = ResponsesOnly
        return one

    monkeypatch.setattr(upstreams, "provider", made)


def check_chat(reply: Any, *, thoughts: bool) -> None:
    (choice,) = reply.choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "Let me look."
    calls = [(c.id, c.function.name, json.loads(c.function.arguments)) for c in choice.message.tool_calls]
    assert calls == CALLS
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.total_tokens) == (100, 40, 140)
    assert reply.usage.prompt_tokens_details.cached_tokens == 60
    assert reply.usage.completion_tokens_details.reasoning_tokens == 10
    assert (getattr(choice.message, "reasoning_content", None) == "They want two places.") is thoughts


def check_responses(reply: Any, *, thoughts: bool) -> None:
    assert reply.status == "completed"
    assert reply.output_text == "Let me look."
    assert [(c.call_id, c.name, json.loads(c.arguments)) for c in reply.output if c.type == "function_call"] == CALLS
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.total_tokens) == (100, 40, 140)
    assert reply.usage.input_tokens_details.cached_tokens == 60
    assert reply.usage.output_tokens_details.reasoning_tokens == 10
    shown = [part.text for item in reply.output if item.type == "reasoning" for part in (item.content or item.summary)]
    assert shown == (["They want two places."] if thoughts else [])


def check_messages(reply: Any, *, thoughts: bool) -> None:
    assert reply.stop_reason == "tool_use"
    assert [b.text for b in reply.content if b.type == "text"] == ["Let me look."]
    assert [(b.id, b.name, b.input) for b in reply.content if b.type == "tool_use"] == CALLS
    usage = reply.usage
    read, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    assert (usage.input_tokens + read + written, read, usage.output_tokens) == (100, 60, 40)
    assert [b.thinking for b in reply.content if b.type == "thinking"] == (
        ["They want two places."] if thoughts else []
    )


def openai_request(client: str) -> dict[str, Any]:
    if client == "chat":
        tools: Any = [{"type": "function", "function": {"name": "weather", "parameters": TOOL}}]
        return {"model": "gpt-any", "messages": [{"role": "user", "content": "hi"}], "tools": tools}
    tools = [{"type": "function", "name": "weather", "parameters": TOOL, "strict": True}]
    return {"model": "gpt-any", "input": "hi", "tools": tools, "store": False}


MESSAGES_REQUEST: Final[dict[str, Any]] = {
    "model": "claude-any",
    "max_tokens": 99,
    "messages": [{"role": "user", "content": "hi"}],
    "tools": [{"name": "weather", "input_schema": TOOL}],
}


def openai_client(wire: Wire, kind: Any) -> Any:
    return kind(base_url=wire.url, api_key="none", max_retries=0)


def anthropic_client(wire: Wire, kind: Any) -> Any:
    return kind(base_url=wire.root, api_key="none", max_retries=0)


def blocking(wire: Wire, client: str) -> Any:
    if client == "messages":
        return anthropic_client(wire, anthropic.Anthropic)
    return openai_client(wire, openai.OpenAI)


def waiting(wire: Wire, client: str) -> Any:
    if client == "messages":
        return anthropic_client(wire, anthropic.AsyncAnthropic)
    return openai_client(wire, openai.AsyncOpenAI)


def part(made: Any, client: str) -> Any:
    """The part of a client that speaks the dialect."""
    if client == "chat":
        return made.chat.completions
    return made.responses if client == "responses" else made.messages


def request(client: str, *, streaming: bool = False) -> dict[str, Any]:
    if client == "messages":
        return MESSAGES_REQUEST
    usage = {"stream_options": {"include_usage": True}} if streaming and client == "chat" else {}
    return {**openai_request(client), **usage}


async def ask_sync(wire: Wire, client: str) -> Any:
    """One whole answer, by the blocking client."""

    def ask() -> Any:
        with blocking(wire, client) as made:
            return part(made, client).create(**request(client))

    return await asyncio.to_thread(ask)


async def ask_async(wire: Wire, client: str) -> Any:
    """One whole answer, by the other."""
    async with waiting(wire, client) as made:
        return await part(made, client).create(**request(client))


async def ask_streaming(wire: Wire, client: str) -> Any:
    """The answer that the client's own helper puts together from the stream."""
    async with waiting(wire, client) as made, part(made, client).stream(**request(client, streaming=True)) as events:
        if client == "messages":
            assert "".join([piece async for piece in events.text_stream]) == "Let me look."
            return await events.get_final_message()
        kind = "content.delta" if client == "chat" else "response.output_text.delta"
        assert "".join([e.delta async for e in events if e.type == kind]) == "Let me look."
        return await (events.get_final_completion() if client == "chat" else events.get_final_response())


async def ask_streaming_sync(wire: Wire, client: str) -> Any:
    """The same by the blocking client."""

    def ask() -> Any:
        with blocking(wire, client) as made, part(made, client).stream(**request(client, streaming=True)) as events:
            last = {"chat": "completion", "responses": "response", "messages": "message"}[client]
            return getattr(events, f"get_final_{last}")()

    return await asyncio.to_thread(ask)


ASK: Final = {
    "sync": ask_sync,
    "async": ask_async,
    "streaming": ask_streaming,
    "streaming-sync": ask_streaming_sync,
}
CHECK: Final = {"chat": check_chat, "responses": check_responses, "messages": check_messages}


@pytest.mark.parametrize("how", ASK)
@pytest.mark.parametrize("client", CHECK)
@pytest.mark.parametrize("speaks", SERVERS)
@on_loop
async def test_an_official_client_sees_the_same_answer_whatever_the_provider_speaks(
    speaks: str, client: str, how: str
) -> None:
    name, whole, streamed, thoughts = SERVERS[speaks]
    async with upstream(streamed if how.startswith("streaming") else whole) as server, wired(name, server) as wire:
        reply = await ASK[how](wire, client)
        CHECK[client](reply, thoughts=thoughts)
        ((line, _, body),) = server.asked
        assert (
            line.split()[1]
            == {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}[speaks]
        )
        assert body["model"] == "served-name"
        (request,), (response,) = wire.events("model.request"), wire.events("model.response")
        assert request["rest"]["model"] in ("gpt-any", "claude-any")  # type: ignore[index,call-overload]
        assert ("upstream" in response) is (speaks != client)
        usage = wire.meter.usage()["agent"]
        assert (usage.input, usage.output, usage.cache_read, usage.reasoning) == (100, 40, 60, 10)
        assert usage.unreported == 0


@pytest.mark.parametrize("client", ["chat", "responses", "messages"])
@on_loop
async def test_an_official_client_raises_its_own_error_for_what_the_provider_refuses(client: str) -> None:
    refused = (400, {"error": {"message": "too long", "type": "invalid_request_error"}, "type": "error"})
    async with upstream(refused) as server, wired("anthropic", server) as wire:
        for ask in (ask_async, ask_streaming):
            with pytest.raises((openai.BadRequestError, anthropic.BadRequestError), match="too long"):
                await ask(wire, client)


@on_loop
async def test_models_are_listed_in_the_words_of_whoever_asks() -> None:
    async with upstream(given.CHAT) as server, wired("openai-compatible", server) as wire:
        async with waiting(wire, "chat") as client:
            listed = await client.models.list()
        assert [m.id for m in listed.data] == ["openai-compatible/served-name"]
        async with waiting(wire, "messages") as client:
            theirs = await client.models.list()
        assert [(m.type, m.id) for m in theirs.data] == [("model", "openai-compatible/served-name")]


@on_loop
async def test_tokens_are_counted_where_the_provider_counts_and_refused_where_not() -> None:
    asked = {"model": "claude-any", "messages": MESSAGES_REQUEST["messages"]}
    async with upstream({"input_tokens": 77}) as server, wired("anthropic", server) as wire:
        async with waiting(wire, "messages") as client:
            assert (await client.messages.count_tokens(**asked)).input_tokens == 77
        assert server.asked[0][0].split()[1] == "/v1/messages/count_tokens"
        assert server.asked[0][2] == {**asked, "model": "served-name"}
        assert wire.meter.usage() == {}
    async with upstream({}) as server, wired("openai-compatible", server) as wire:
        async with waiting(wire, "messages") as client:
            with pytest.raises(anthropic.NotFoundError):
                await client.messages.count_tokens(**asked)
        assert server.asked == []


@pytest.mark.parametrize(
    "dialect, style, era",
    [
        ("chat", "sync", "auto"),
        ("chat", "stream", "legacy"),
        ("responses", "async", "legacy"),
        ("responses", "stream", "auto"),
        ("messages", "sync", "legacy"),
        ("messages", "stream", "auto"),
    ],
)
@on_loop
async def test_an_agent_on_an_official_client_passes_a_trial(
    dialect: str, style: str, era: str, tmp_path: Path
) -> None:
    import tomli_w

    agent = Path(__file__).parent / "sdk_agents" / "agent.py"
    file = tmp_path / "agent.toml"
    file.write_text(tomli_w.dumps({"argv": ["{python}", str(agent), "{prompt}", dialect, style, era]}))
    attempt, outcome, events = await trial(tmp_path, file)
    assert outcome == "pass", [e for e in events if e["e"] == "harness.exit"]
    usage = attempt.usage["agent"]
    assert (usage.calls, usage.input, usage.output) == (2, 250, 30)
    assert [e["arguments"] for e in events if e["e"] == "tool.call"] == [{"city": "Bern"}]
    clients = {e["wire"]: e for e in events if e["e"] == "wire.client"}
    assert clients["model"]["dialect"] == {
        "chat": "openai-chat", "responses": "openai-responses", "messages": "anthropic-messages"
    }[dialect]  # fmt: skip
    assert clients["model"]["stream"] is (style == "stream")
    assert (str(clients["tools"]["protocol"]) >= "2026") is (era == "auto")
