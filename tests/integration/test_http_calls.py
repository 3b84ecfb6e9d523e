"""Calls over HTTP as MCP's own client makes them: every revision, progress, changes of what is on offer, hanging up."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from attrs import frozen

from evalcore.engine.services import SystemClock
from evalcore.testing import FakeTrial
from evalcore.values.json import JSONObject
from evalcore.values.task import Limits
from evalcore.wires.http import Door
from evalcore.wires.meter import Meter, RunBudget
from evalcore.wires.recorder import AttemptRecorder
from evalcore.wires.tools import RecordedTools
from tests.integration.test_http_tools import Session, until
from tests.integration.test_mcp_bridge import opened, raw
from tests.integration.wire_rig import MODERN, client, modern, on_loop, open_wires, serving, stdio

HANDSHAKES: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


@frozen
class Served:
    """A real server behind our tool wire."""

    door: Door
    recorder: AttemptRecorder
    trial: FakeTrial

    def events(self, kind: str) -> list[JSONObject]:
        return list(self.recorder.reader().events(kind))


@asynccontextmanager
async def served(servers: JSONObject, limits: Limits | None = None) -> AsyncIterator[Served]:
    async with opened(servers) as here, serving() as server:
        recorder, meter = AttemptRecorder(SystemClock()), Meter(RunBudget(None))
        meter.bind(limits or Limits(), {})
        tools = RecordedTools("mcp", here.episode, recorder, meter)
        yield Served(await server.serve_tools(tools, recorder), recorder, here.trial)


# ── every revision ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("revision", [*HANDSHAKES, MODERN])
def test_mcps_own_client_lists_and_calls_in_every_revision(revision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcp import Client
    from mcp.client import session

    mode = MODERN
    if revision != MODERN:
        mode = "legacy"
        monkeypatch.setattr(session, "LATEST_HANDSHAKE_VERSION", revision)

    async def look() -> None:
        async with served({"raw": raw("put,get,see,fail")}) as here:
            async with Client(here.door.url, mode=mode) as agent:
                assert agent.session.protocol_version == revision
                listed = (await agent.list_tools()).tools
                assert [tool.name for tool in listed] == ["put", "get", "see", "fail"]
                assert listed[0].annotations is not None and listed[0].annotations.read_only_hint is True
                await agent.call_tool("put", {"value": ["x", None]})
                got = await agent.call_tool("get", {})
                assert got.structured_content == {"value": ["x", None]}
                seen = await agent.call_tool("see", {})
                assert [part.type for part in seen.content] == ["image", "resource_link", "resource", "text"]
                assert (await agent.call_tool("fail", {})).is_error
            assert [event["protocol"] for event in here.events("wire.client")] == [revision]
            assert [event["tool"] for event in here.events("tool.call")] == ["put", "get", "see", "fail"]

    asyncio.run(asyncio.wait_for(look(), 60))


# ── progress ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", [MODERN, "legacy"])
def test_progress_of_a_server_reaches_an_agent_that_asks_for_it(mode: str) -> None:
    from mcp import Client

    heard: list[tuple[float, float | None]] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total))

    async def look() -> None:
        async with served({"raw": raw("steps,where")}) as here, Client(here.door.url, mode=mode) as agent:
            done = await agent.call_tool("steps", {}, progress_callback=listen)
            assert done.content[0].type == "text" and done.content[0].text == "done"
            assert heard == [(1, 3), (2, 3), (3, 3)]
            await agent.call_tool("steps", {})
            await agent.call_tool("where", {}, progress_callback=listen)
            assert len(heard) == 3

    asyncio.run(asyncio.wait_for(look(), 60))


@on_loop
async def test_a_reply_is_a_stream_only_where_something_is_said_before_its_end() -> None:
    async with served({"raw": raw("steps,where")}) as here, client() as http:
        for name, token, accept, kind in (
            ("steps", 7, "application/json, text/event-stream", "text/event-stream"),
            ("where", 7, "application/json, text/event-stream", "application/json"),
            ("steps", None, "application/json, text/event-stream", "application/json"),
            ("steps", 7, "application/json", "application/json"),
        ):
            meta: JSONObject = {} if token is None else {"progressToken": token}
            headers, body = modern("tools/call", {"name": name, "arguments": {}, "_meta": meta})
            answer = await http.post(here.door.url, headers=headers | {"Accept": accept}, content=body)
            assert answer.status_code == 200 and answer.headers["content-type"].startswith(kind)
            if kind == "text/event-stream":
                data = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
                messages = [json.loads(one) for one in data]
                assert [m.get("method") for m in messages] == ["notifications/progress"] * 3 + [None]
                assert [m["params"]["progressToken"] for m in messages[:3]] == [7, 7, 7]
                assert messages[3]["result"]["content"] == [{"type": "text", "text": "done"}]


@pytest.mark.parametrize("mode", [MODERN, "legacy"])
def test_progress_passes_through_the_shim_to_stdio_too(mode: str) -> None:
    from mcp import Client, StdioServerParameters

    heard: list[float] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    async def look() -> None:
        async with served({"raw": raw("steps")}) as here:
            shim = StdioServerParameters(
                command=sys.executable,
                args=["-m", "evalcore.wires.stdio_shim"],
                env={"EVALCORE_MCP_URL": here.door.url},
            )
            async with Client(stdio(shim), mode=mode) as agent:
                await agent.call_tool("steps", {}, progress_callback=listen)
        assert heard == [1, 2, 3]

    asyncio.run(asyncio.wait_for(look(), 60))


# ── changes ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@on_loop
async def test_a_client_of_the_handshake_era_is_told_that_there_are_other_tools() -> None:
    from mcp import Client

    told = asyncio.Event()

    async def hear(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            told.set()

    async with (
        served({"raw": raw("grow")}) as here,
        Client(here.door.url, mode="legacy", message_handler=hear) as agent,
    ):
        capabilities = agent.session.server_capabilities
        assert capabilities is not None and capabilities.tools is not None and capabilities.tools.list_changed
        await asyncio.sleep(0.2)  # the client opens its stream beside its first requests
        await agent.call_tool("grow", {})
        await asyncio.wait_for(told.wait(), 20)
        assert [tool.name for tool in (await agent.list_tools()).tools] == ["grow", "fail"]


@on_loop
async def test_a_client_of_the_newest_revision_that_listens_is_told_that_there_are_other_tools() -> None:
    from mcp import Client

    async with served({"raw": raw("grow")}) as here, Client(here.door.url, mode=MODERN) as agent:
        async with agent.listen(tools_list_changed=True) as changes:
            await agent.call_tool("grow", {})
            event = await asyncio.wait_for(anext(aiter(changes)), 20)
        assert type(event).__name__ == "ToolsListChanged"
        assert [tool.name for tool in (await agent.list_tools(cache_mode="bypass")).tools] == ["grow", "fail"]


# ── hanging up ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("version", [MODERN, "2025-06-18"])
@on_loop
async def test_a_call_ends_when_its_client_hangs_up(version: str) -> None:
    async with serving() as server, client() as http:
        wires = await open_wires(server)
        if version == MODERN:
            headers, body = modern("tools/call", {"name": "hang", "arguments": {}})
            under_way = asyncio.ensure_future(http.post(wires.tool_door.url, headers=headers, content=body))
        else:
            session = Session(http, wires.tool_door.url, version)
            await session.open()
            under_way = asyncio.ensure_future(session.call("hang", {}))
        await until(lambda: wires.episode.seen)
        under_way.cancel()
        await until(lambda: wires.episode.cancelled)
        await until(lambda: wires.events("wire.hung_up"))
        headers, body = modern("tools/call", {"name": "echo", "arguments": {"a": 1}})
        answer = await http.post(wires.tool_door.url, headers=headers, content=body)
        assert answer.json()["result"]["content"][0]["text"] == '{"a":1}'  # its turn is another's now
    assert wires.meter.failure is None


# ── deadlines ────────────────────────────────────────────────────────────────────────────────────────────────────────


@on_loop
async def test_the_studys_deadline_holds_for_real_servers_as_long_as_they_live() -> None:
    async with served({"raw": raw("hang,where")}, Limits(tool_call_s=0.3)) as here, client() as http:
        for name, error in (("hang", True), ("where", False)):
            headers, body = modern("tools/call", {"name": name, "arguments": {}})
            answer = (await http.post(here.door.url, headers=headers, content=body)).json()
            assert answer["result"]["isError"] is error
    (late,) = here.trial.recorder.reader().events("env.timeout")
    assert (late["server"], late["tool"], late["after_s"]) == ("raw", "hang", 0.3)
