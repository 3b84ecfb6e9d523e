"""The tool wire over HTTP: every MCP revision, arguments and schemas as they are, limits, and who is refused."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from evalcore.contracts import ToolResult, text_result
from evalcore.engine.plan import make_plan
from evalcore.engine.run import RunOptions, start
from evalcore.engine.services import LocalServices, SystemClock
from evalcore.engine.store import read_attempts
from evalcore.errors import InfraError
from evalcore.plugins import PluginRef, load
from evalcore.testing import toy
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.study import Study
from evalcore.values.task import Limits, ToolSpec
from evalcore.wires.http import WireServer
from evalcore.wires.meter import Meter, RunBudget
from evalcore.wires.recorder import AttemptRecorder
from evalcore.wires.results import capped, outgoing
from evalcore.wires.tools import RecordedTools
from tests.integration import wire_rig
from tests.integration.wire_rig import (
    MODERN,
    TOOLS,
    OddEpisode,
    Wires,
    client,
    modern,
    on_loop,
    open_wires,
    serving,
    until,
)

HANDSHAKE: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
ODD: Final[list[JSONValue]] = [
    {"big": 2**80, "five": 5.0, "lone": "\ud800", "pair": "\U0001f600", "": {"none": None}},
    [1, 2.0],
    "text",
    None,
    7,
]


async def post(http: httpx2.AsyncClient, url: str, method: str, params: JSONObject | None = None) -> Any:
    """The JSON answer to one request of the newest revision."""
    headers, body = modern(method, params)
    answer = await http.post(url, headers=headers, content=body)
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


class Session:
    """A session of a handshake revision, by hand."""

    def __init__(self, http: httpx2.AsyncClient, url: str, version: str) -> None:
        self._http = http
        self._url = url
        self.headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        self._version = version

    async def open(self) -> Any:
        params = {"protocolVersion": self._version, "capabilities": {}, "clientInfo": {"name": "old", "version": "0"}}
        answer = await self.send("initialize", params)
        self.headers |= {"Mcp-Session-Id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": self._version}
        body = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await self._http.post(self._url, headers=self.headers, json=body)).status_code == 202
        return answer.json()["result"]

    async def send(self, method: str, params: object = None) -> httpx2.Response:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
        return await self._http.post(self._url, headers=self.headers, content=json.dumps(message))

    async def call(self, name: str, arguments: JSONValue) -> Any:
        return (await self.send("tools/call", {"name": name, "arguments": arguments})).json()


# ── what agents get ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", ["auto", "legacy", MODERN])
@on_loop
async def test_the_sdks_client_lists_and_calls_in_both_eras(mode: str) -> None:
    from mcp import Client

    async with serving() as server:
        wires = await open_wires(server)
        async with Client(wires.tool_door.url, mode=mode, cache=None) as session:
            listed = (await session.list_tools()).tools
            answer: Any = await session.call_tool("echo", {"x": 5.0})
            failed = await session.call_tool("fail", {})
    assert [t.name for t in listed] == list(TOOLS)
    assert listed[0].input_schema == wires.episode.tools()[0].input_schema
    assert (answer.is_error, answer.content[0].text) == (False, '{"x":5.0}')
    assert failed.is_error
    assert [e["tool"] for e in wires.events("tool.call")] == ["echo", "fail"]
    assert (wires.meter.tool_calls, wires.meter.tool_errors) == (2, 1)


@pytest.mark.parametrize("version", HANDSHAKE)
@on_loop
async def test_every_handshake_revision_is_spoken(version: str) -> None:
    async with serving() as server, client() as http:
        wires = await open_wires(server)
        session = Session(http, wires.tool_door.url, version)
        hello = await session.open()
        answer = await session.call("structured", {})
    assert hello["protocolVersion"] == version and "tools" in hello["capabilities"]
    assert answer["result"]["content"] == [{"type": "text", "text": "{}"}]
    assert answer["result"]["structuredContent"] == {"none": None, "five": 5.0, "big": 2**70}
    (met,) = wires.events("wire.client")
    assert (met["protocol"], met["client"]) == (version, "old 0")


@pytest.mark.parametrize("version", [MODERN, "2025-06-18"])
@on_loop
async def test_arguments_reach_the_environment_as_they_were_sent(version: str) -> None:
    async with serving() as server, client() as http:
        wires = await open_wires(server)
        if version == MODERN:
            for value in ODD:
                await post(http, wires.tool_door.url, "tools/call", {"name": "echo", "arguments": value})
            await post(http, wires.tool_door.url, "tools/call", {"name": "echo"})
        else:
            session = Session(http, wires.tool_door.url, version)
            await session.open()
            for value in ODD:
                await session.call("echo", value)
            await session.send("tools/call", {"name": "echo"})
    assert [repr(arguments) for _, arguments in wires.episode.seen] == [repr(v) for v in [*ODD, {}]]
    assert [repr(e["arguments"]) for e in wires.events("tool.call")] == [repr(v) for v in [*ODD, {}]]


@on_loop
async def test_an_unknown_tool_is_an_error_that_the_model_may_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as server, client() as http:
        wires = await open_wires(server)
        answer = await post(http, wires.tool_door.url, "tools/call", {"name": "nope", "arguments": {}})
    assert answer["result"]["isError"] is True
    assert answer["result"]["content"][0]["text"] == "unknown tool: nope"


@on_loop
async def test_a_call_runs_no_listing_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as server, client() as http:
        wires = await open_wires(server)
        listings = 0

        def count() -> tuple[ToolSpec, ...]:
            nonlocal listings
            listings += 1
            return ()

        monkeypatch.setattr(wires.tools, "list", count)
        await post(http, wires.tool_door.url, "tools/call", {"name": "echo", "arguments": {"city": "Bern"}})
    assert listings == 0


@on_loop
async def test_calls_run_side_by_side_and_each_gets_its_own_answer() -> None:
    async with serving() as server, client() as http:
        wires = await open_wires(server)
        url = wires.tool_door.url
        calls = (post(http, url, "tools/call", {"name": "slow", "arguments": {"n": n}}) for n in range(32))
        answers = await asyncio.gather(*calls)
    assert [json.loads(a["result"]["content"][0]["text"])["n"] for a in answers] == list(range(32))


@on_loop
async def test_a_limit_is_an_error_of_the_protocol_that_names_it() -> None:
    async with serving() as server, client() as http:
        wires = await open_wires(server, limits=Limits(tool_calls=1))
        url = wires.tool_door.url
        await post(http, url, "tools/call", {"name": "echo", "arguments": {}})
        answer = await post(http, url, "tools/call", {"name": "echo", "arguments": {}})
    assert answer["error"]["code"] == -32000 and answer["error"]["data"] == {"limit": "tool_calls"}
    assert wires.meter.limit is not None and wires.meter.limit.limit == "tool_calls"
    assert len(wires.episode.seen) == 1


@on_loop
async def test_a_failing_environment_is_noted_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(name: str, arguments: JSONValue) -> ToolResult:
        raise OSError("/secret/path is gone")

    async with serving() as server, client() as http:
        wires = await open_wires(server)
        monkeypatch.setattr(wires.episode, "call", fail)
        answer = await post(http, wires.tool_door.url, "tools/call", {"name": "echo", "arguments": {}})
    assert answer["error"]["code"] == -32603 and "secret" not in json.dumps(answer)
    assert isinstance(wires.meter.failure, InfraError) and "/secret/path" in wires.meter.failure.message


@pytest.mark.parametrize("version", [MODERN, "2025-06-18"])
@on_loop
async def test_a_result_beyond_the_cap_is_cut_with_a_visible_mark(version: str) -> None:
    async with serving() as server, client() as http:
        wires = await open_wires(server, cap=1000)
        if version == MODERN:
            params: JSONObject = {"name": "long", "arguments": {"size": 50_000}}
            answer = await post(http, wires.tool_door.url, "tools/call", params)
        else:
            session = Session(http, wires.tool_door.url, version)
            await session.open()
            answer = await session.call("long", {"size": 50_000})
    first, mark = (part["text"] for part in answer["result"]["content"])
    assert first == "x" * 1000
    assert mark == "[evalcore: cut here; 1000 of 50034 bytes are shown]"
    (result,) = wires.events("tool.result")
    assert result["content"] == [{"type": "text", "text": "x" * 50_000}]  # what the environment said stays on record
    assert result["cut"] == {"bytes": 50_034, "cap": 1000}


def test_what_no_parser_reads_is_replaced_on_the_way_out() -> None:
    content: tuple[JSONObject, ...] = ({"type": "text", "text": "a\ud800b"}, {"type": "text", "text": "ü"})
    out = outgoing(ToolResult(content, structured={"n": float("nan"), "k\udfff": [float("inf"), 2**70]}))
    assert out.content == [{"type": "text", "text": "a\ufffdb"}, {"type": "text", "text": "ü"}]
    assert out.structured == {"n": None, "k\ufffd": [None, 2**70]}
    assert out.mended


def test_parts_that_do_not_fit_are_left_out_behind_the_mark() -> None:
    image: JSONObject = {"type": "image", "data": "A" * 900, "mimeType": "image/png"}
    given, size = capped(ToolResult((*text_result("short").content, image, image)), cap=1200)
    assert [p["type"] for p in given.content] == ["text", "image", "text"] and size == 1939
    assert capped(text_result("x" * 100), cap=1200) == (text_result("x" * 100), 0)


@on_loop
async def test_tools_that_no_client_can_list_are_refused_at_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OddEpisode, "tools", lambda _: [ToolSpec("odd", "", {})])
    async with serving() as server:
        with pytest.raises(InfraError, match="tool 'odd' of bridge 'odd': MCP needs an input schema of type object"):
            await open_wires(server)


# ── doors ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("version", [MODERN, "2025-06-18"])
@on_loop
async def test_closing_a_door_ends_the_calls_under_way(version: str) -> None:
    async with serving() as server, client() as http:
        wires = await open_wires(server)
        if version == MODERN:
            under_way = asyncio.create_task(
                post(http, wires.tool_door.url, "tools/call", {"name": "hang", "arguments": {}})
            )
        else:
            session = Session(http, wires.tool_door.url, version)
            await session.open()
            under_way = asyncio.create_task(session.call("hang", {}))
        await until(lambda: wires.episode.seen)
        await wires.tool_door.close()
        assert wires.episode.cancelled == 1
        answer = await under_way
        assert "error" in answer
        await wires.tool_door.close()  # again does nothing
    assert wires.meter.failure is None


@on_loop
async def test_a_closed_door_and_a_foreign_token_are_not_found() -> None:
    async with serving() as server, client() as http:
        mine, other = await open_wires(server), await open_wires(server)
        session = Session(http, other.tool_door.url, "2025-06-18")
        await session.open()
        await other.tool_door.close()
        headers, body = modern("tools/call", {"name": "echo", "arguments": {}})
        base, token = mine.tool_door.url.removesuffix("/mcp").rsplit("/", 1)
        for url in (
            other.tool_door.url,
            f"{base}/{'0' * 32}/mcp",
            f"{base}/{token[:-1]}/mcp",
            mine.tool_door.url.replace("/e/", "/m/"),
            f"{base}/{token}",
            f"{base}/{token}/other",
            base,
        ):
            assert (await http.post(url, headers=headers, content=body)).status_code == 404
        assert (await http.post(other.tool_door.url, headers=session.headers, content=b"{}")).status_code == 404
        assert (await http.post(mine.tool_door.url, headers=headers, content=body)).status_code == 200
    assert mine.episode.seen == [("echo", {})] and other.episode.seen == []


@on_loop
async def test_a_session_of_one_trial_is_nothing_to_another() -> None:
    async with serving() as server, client() as http:
        mine, other = await open_wires(server), await open_wires(server)
        session = Session(http, other.tool_door.url, "2025-06-18")
        await session.open()
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {}}}
        answer = await http.post(mine.tool_door.url, headers=session.headers, json=body)
    assert answer.status_code == 404
    assert mine.episode.seen == other.episode.seen == []


@on_loop
async def test_a_foreign_host_and_any_origin_are_refused() -> None:
    async with serving() as server, client() as http:
        wires = await open_wires(server)
        headers, body = modern("tools/call", {"name": "echo", "arguments": {}})
        port = wires.tool_door.url.split(":")[2].split("/")[0]
        statuses: dict[str, set[int]] = {}
        for name, value in (
            ("Host", "evil.example"),
            ("Host", "127.0.0.1"),
            ("Host", f"127.0.0.1:{port}.evil.example"),
            ("Origin", "https://evil.example"),
            ("Origin", "null"),
            ("Host", f"localhost:{port}"),
        ):
            for url in (wires.tool_door.url, f"{wires.model_door.url}/chat/completions"):
                answer = await http.post(url, headers={**headers, name: value}, content=body)
                statuses.setdefault(value, set()).add(answer.status_code)
        seen = len(wires.episode.seen)
    assert statuses.pop(f"localhost:{port}") == {200, 400}  # the tool call is made; it is no chat request
    assert statuses == {
        "evil.example": {421},
        "127.0.0.1": {421},
        f"127.0.0.1:{port}.evil.example": {421},
        "https://evil.example": {403},
        "null": {403},
    }
    assert seen == 1


@on_loop
async def test_a_body_of_5_mb_is_refused_however_it_is_sent() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(50):
            yield b" " * 100_000

    async with serving() as server, client() as http:
        wires = await open_wires(server)
        headers, _ = modern("tools/call", {"name": "echo"})
        whole = await http.post(wires.tool_door.url, headers=headers, content=b" " * 5_000_000)
        assert whole.status_code == 413
        with contextlib.suppress(httpx2.TransportError):  # the server need not read on after it has refused
            assert (await http.post(wires.tool_door.url, headers=headers, content=pieces())).status_code == 413
        answer = await post(http, wires.tool_door.url, "tools/call", {"name": "echo", "arguments": {}})
    assert "result" in answer and len(wires.episode.seen) == 1
    assert [e["status"] for e in wires.events("wire.refused")] == [413]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"\xff\xfe", b'{"jsonrpc":"2.0","id":1}', b"[" * 100_000])
@on_loop
async def test_a_body_that_is_no_request_is_the_senders_error(body: bytes) -> None:
    async with serving() as server, client() as http:
        wires = await open_wires(server)
        headers, _ = modern("tools/call", {"name": "echo"})
        for version in (MODERN, "2025-06-18"):
            sent = headers | {"MCP-Protocol-Version": version}
            answer = await http.post(wires.tool_door.url, headers=sent, content=body)
            assert 400 <= answer.status_code < 500 and "error" in answer.json()
    assert wires.episode.seen == [] and wires.meter.failure is None


# ── the server ───────────────────────────────────────────────────────────────────────────────────────────────────────


@on_loop
async def test_tokens_are_long_all_different_and_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving() as server, client() as http:
        doors = [await open_wires(server) for _ in range(4)]
        urls = [url for w in doors for url in (w.tool_door.url, w.model_door.url)]
        for wires in doors:
            await _use(http, wires)
        await doors[0].tool_door.close()
        await _use(http, doors[0])
    tokens = {re.findall(r"/[em]/([0-9a-f]{32})/", url)[0] for url in urls}
    assert len(tokens) == len(urls) == 8
    clients = ("httpx2", "httpcore2", "mcp.client")  # an agent's own log is its own
    text = "\n".join(r.getMessage() for r in caplog.records if not r.name.startswith(clients))
    assert text and not [t for t in tokens if t in text]


async def _use(http: httpx2.AsyncClient, wires: Wires) -> None:
    headers, body = modern("tools/call", {"name": "echo", "arguments": {}})
    await http.post(wires.tool_door.url, headers=headers, content=body)
    await http.post(wires.tool_door.url, headers=headers, content=b"{")
    await http.post(f"{wires.model_door.url}/chat/completions", content=b"{}")


@on_loop
async def test_signals_stay_with_the_program_and_replies_are_not_delayed() -> None:
    before = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
    async with serving() as server, client() as http:
        wires = await open_wires(server)
        await post(http, wires.tool_door.url, "tools/list")
        assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)] == before
        assert server._uvicorn is not None
        (connection,) = server._uvicorn.server_state.connections
        accepted = connection.transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@on_loop
async def test_closing_the_server_closes_its_doors_and_its_port() -> None:
    async with client() as http:
        server = WireServer()
        wires = await open_wires(server)
        await server.start()  # again does nothing
        headers, body = modern("tools/call", {"name": "hang", "arguments": {}})
        under_way = asyncio.create_task(http.post(wires.tool_door.url, headers=headers, content=body))
        await until(lambda: wires.episode.seen)
        await server.close()
        await server.close()
        await asyncio.gather(under_way, return_exceptions=True)
        assert wires.episode.cancelled == 1
        with pytest.raises(httpx2.ConnectError):
            await http.post(wires.tool_door.url, headers=headers, content=body)


@on_loop
async def test_the_doors_of_a_trial_end_with_its_agent(tmp_path: Path) -> None:
    (tmp_path / "play.toml").write_text('[[reply]]\ntext = "x"\n')
    found = load(only=())
    for name, module in (("toy", toy), ("rig", wire_rig)):
        found.add(PluginRef(name, name, "1", module.__name__), module)
    services = LocalServices(found, tmp_path)
    what = Study(
        name="stuck",
        benchmarks=("toy-weather:1",),
        arms={"a": {"harness": "http-stuck", "model": "scripted/play.toml"}},
        limits=Limits(wall_s=0.2),
    )
    wire_rig.Stuck.met.clear()
    try:
        plan = await make_plan(what, found, services, "r")
        await start(plan, tmp_path / "r", found, services, RunOptions())
        async with client() as http:
            headers, body = modern("tools/list")
            statuses = [(await http.post(u, headers=headers, content=body)).status_code for u in wire_rig.Stuck.met]
    finally:
        await services.close()
    (attempt,) = read_attempts(tmp_path / "r")
    assert attempt.exit is not None and attempt.exit.limit == "wall_s"
    assert statuses == [404, 404]


@on_loop
async def test_a_stream_that_a_client_holds_open_ends_with_the_door() -> None:
    async with serving() as server, client() as http:
        wires = await open_wires(server)
        session = Session(http, wires.tool_door.url, "2025-06-18")
        await session.open()
        headers = session.headers | {"Accept": "text/event-stream"}
        async with http.stream("GET", wires.tool_door.url, headers=headers) as stream:
            assert stream.status_code == 200
            await wires.tool_door.close()
            assert [part async for part in stream.aiter_bytes()] == []


@on_loop
async def test_a_recorder_need_not_hear_of_the_transport() -> None:
    recorder = AttemptRecorder(SystemClock())
    tools = RecordedTools("odd", OddEpisode(), recorder, Meter(RunBudget(None)))
    async with serving() as server, client() as http:
        door = await server.serve_tools(tools)
        await post(http, door.url, "tools/call", {"name": "echo", "arguments": {}})
    assert not [line for line in recorder.lines() if b'"wire.' in line]


def test_what_runs_in_memory_loads_no_server() -> None:
    heavy = "'mcp', 'uvicorn', 'starlette', 'httpx2', 'anyio'"
    code = f"import sys, evalcore.engine.run, evalcore.builtin.react; print([m for m in ({heavy}) if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
