"""Real MCP servers behind the tool wire: unchanged, recorded, bounded, and gone with their trial."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from evalcore.builtin.mcp import bridge as bridge_module
from evalcore.builtin.mcp import connection as connection_module
from evalcore.builtin.mcp.bridge import McpBridge, McpEpisode
from evalcore.builtin.mcp.stack import read_recipe
from evalcore.contracts import PROGRESS, ToolResult
from evalcore.errors import ConfigError, EvalcoreError, InfraError
from evalcore.testing import FakeServices, FakeTrial
from evalcore.values.json import JSONObject, exact_text
from evalcore.values.task import Assignment, BridgeSpec, Message, Task
from tests.integration.wire_rig import MODERN, TOOLS, on_loop, open_wires, serving

RAW: Final = str(Path(__file__).parent / "raw_mcp.py")


def raw(tools: str, *more: str, **env: str) -> JSONObject:
    return {"command": sys.executable, "args": [RAW, tools, *more], "env": dict(env)}


def spec_of(servers: JSONObject, **more: Any) -> BridgeSpec:
    return BridgeSpec("mcp", {"servers": servers, **more})


def trial_of(spec: BridgeSpec) -> FakeTrial:
    return FakeTrial(Task("t", {}), Assignment((Message("user", "x"),), (spec,)))


class Opened:
    """An episode, its trial and its bridge."""

    def __init__(self, bridge: McpBridge, trial: FakeTrial, episode: McpEpisode) -> None:
        self.bridge, self.trial, self.episode = bridge, trial, episode

    async def call(self, name: str, **arguments: Any) -> ToolResult:
        return await self.episode.call(name, arguments)

    def events(self, kind: str) -> list[JSONObject]:
        return list(self.trial.recorder.reader().events(kind))


@asynccontextmanager
async def opened(servers: JSONObject, environ: dict[str, str] | None = None, **more: Any) -> AsyncIterator[Opened]:
    bridge = McpBridge(FakeServices(base=Path.cwd()), environ=environ)
    spec = spec_of(servers, **more)
    trial = trial_of(spec)
    episode = await bridge.open(spec, trial)
    try:
        yield Opened(bridge, trial, episode)
    finally:
        await episode.close()
        await bridge.close()


async def refused(servers: JSONObject, **more: Any) -> EvalcoreError:
    with pytest.raises(EvalcoreError) as caught:
        async with opened(servers, **more):
            pass
    return caught.value


# ── over HTTP ────────────────────────────────────────────────────────────────────────────────────────────────────────


@on_loop
async def test_a_server_at_an_address_is_passed_through_as_it_is() -> None:
    async with serving() as server:
        behind = await open_wires(server)
        async with opened({"odd": {"url": behind.tool_door.url}}) as here:
            offered = {spec.name: spec for spec in here.episode.tools()}
            assert tuple(offered) == TOOLS
            assert [s.as_json() for s in here.episode.tools()] == [s.as_json() for s in behind.tools.list()]
            odd = {"a": None, "b": [1, 5.0, True], "ü": "\U0001f600", "big": 2**70}
            assert (await here.call("echo", **odd)).text == exact_text(odd)
            assert behind.episode.seen[-1] == ("echo", odd)
            failed = await here.call("fail")
            assert failed.error and failed.text == "no such city: Atlantis ✗"
            structured = await here.call("structured")
            assert structured.structured == {"none": None, "five": 5.0, "big": 2**70} and structured.text == "{}"
            picture = await here.call("picture")
            assert picture.content[0] == {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
            (said,) = here.events("env.server")
            assert (said["server"], said["implementation"], said["protocol"]) == ("odd", "evalcore", MODERN)
            assert said["tools"] == len(TOOLS)


@on_loop
async def test_a_dead_or_wrong_address_is_one_clear_line() -> None:
    dead = await refused({"search": {"url": "http://127.0.0.1:9/mcp?token=hidden"}})
    assert isinstance(dead, InfraError) and dead.message.startswith("MCP server 'search' at http://127.0.0.1:9/mcp ")
    assert "hidden" not in dead.message and "\n" not in dead.message
    async with serving() as server:
        wires = await open_wires(server)
        wrong = await refused({"search": {"url": wires.tool_door.url.replace("/mcp", "/nothing")}})
        assert isinstance(wrong, InfraError) and "MCP server 'search' at http://127.0.0.1:" in wrong.message
        nobody = await refused({"search": {"url": wires.tool_door.url.partition("/e/")[0]}})
        assert isinstance(nobody, InfraError) and "\n" not in nobody.message


def test_an_address_and_its_headers_are_filled_from_the_environment_and_kept_secret() -> None:
    services = FakeServices()
    server = {"url": "${BASE:-http://127.0.0.1:1}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}
    place = read_recipe({"servers": {"a": server}}).place("a", Path(), services, {"TOKEN": "token-0123456789"})
    assert (place.url, place.headers) == ("http://127.0.0.1:1/mcp", {"Authorization": "Bearer token-0123456789"})
    assert services.hidden == ["token-0123456789"]
    with pytest.raises(ConfigError, match=r"^MCP server 'a': 'file:///etc/mcp' is no address$"):
        read_recipe({"servers": {"a": server}}).place("a", Path(), services, {"TOKEN": "x", "BASE": "file:///etc"})


@on_loop
async def test_a_server_that_goes_away_is_no_fault_of_the_agents() -> None:
    async with serving() as server:
        behind = await open_wires(server)
        async with opened({"odd": {"url": behind.tool_door.url}}) as here:
            await behind.tool_door.close()
            with pytest.raises(InfraError, match=r"^MCP server 'odd' at http://\S+ answered with HTTP status 404$"):
                await here.call("echo")


@on_loop
async def test_an_answer_over_the_cap_is_dropped_as_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "MESSAGE_CAP", 50_000)
    async with serving() as server:
        behind = await open_wires(server)
        async with opened({"odd": {"url": behind.tool_door.url}}) as here:
            assert len((await here.call("long", size=10_000)).text) == 10_000
            dropped = await here.call("long", size=60_000)
            assert (
                dropped.error and dropped.text == "[evalcore: the answer was larger than 50000 bytes, and is dropped]"
            )
            assert (await here.call("echo", a=1)).text == '{"a":1}'


# ── programs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@on_loop
async def test_a_program_works_in_a_folder_of_its_trial_with_the_files_of_its_task() -> None:
    files = {"state.json": "7", "deep/er/notes.txt": "x"}
    async with opened({"raw": raw("where,get")}, files=files) as here:
        root = here.episode.sandbox.root if here.episode.sandbox else Path()
        assert json.loads((await here.call("where")).text)["cwd"] == str(root)
        assert (await here.call("get")).structured == {"value": 7}
        assert (root / "deep/er/notes.txt").read_text() == "x"
    assert not root.exists()


@on_loop
async def test_what_a_tool_is_listed_with_and_answers_is_kept_whole() -> None:
    async with opened({"raw": raw("see")}) as here:
        (listed,) = [spec.as_json() for spec in here.episode.tools()]
        assert listed["annotations"] == {"readOnlyHint": True, "x-unknown": [1, None]} and listed["title"] == "Odd"
        schema = listed["inputSchema"]
        assert isinstance(schema, dict) and schema["x-extra"] == [1, 5.0, None] and "$defs" in schema
        seen = await here.call("see")
        assert [part["type"] for part in seen.content] == ["image", "resource_link", "resource", "text"]
        assert seen.structured == {"n": 1} and seen.text == "seen"


@on_loop
async def test_a_program_sees_an_allow_list_and_what_its_file_gives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-0123456789")
    monkeypatch.setenv("MY_TOKEN", "token-0123456789")
    async with opened({"raw": raw("environment", GIVEN="${MY_TOKEN}", PLAIN="p", DIR="${EVALCORE_MCP_DIR}")}) as here:
        seen = json.loads((await here.call("environment")).text)
        assert "OPENAI_API_KEY" not in seen and "MY_TOKEN" not in seen
        assert (seen["GIVEN"], seen["PLAIN"], seen["DIR"]) == ("token-0123456789", "p", str(Path.cwd()))
        services = here.bridge._services
        assert isinstance(services, FakeServices) and "token-0123456789" in services.hidden


@pytest.mark.parametrize("more", [(), ("stubborn",)])
def test_a_programs_whole_tree_is_gone_with_its_trial(more: tuple[str, ...]) -> None:
    async def look() -> list[int]:
        async with opened({"raw": raw("where", *more)}) as here:
            said = json.loads((await here.call("where")).text)
            pids: list[int] = [said["pid"], *said["children"]]
            assert all(psutil.pid_exists(pid) for pid in pids)
        return pids

    pids = asyncio.run(asyncio.wait_for(look(), 60))
    assert len(pids) == 1 + len(more)
    assert not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in pids)


@on_loop
async def test_what_a_program_writes_to_standard_error_is_kept_and_capped() -> None:
    async with opened({"raw": raw("where", RAW_NOISE="300000")}) as here:
        await here.call("where")
    (said,) = here.events("env.stderr")
    assert said["bytes"] == 300_006 and str(said["text"]).startswith("ready\neee")
    assert "[evalcore: cut here, " in str(said["text"]) and len(str(said["text"])) < 66_000


@on_loop
async def test_a_program_that_ends_says_how_and_its_last_words() -> None:
    async with opened({"raw": raw("die,where")}) as here:
        with pytest.raises(InfraError, match=r"^MCP server 'raw' ended with exit code 3: RuntimeError: out of ideas$"):
            await here.call("die")
        with pytest.raises(InfraError, match="MCP server 'raw' ended with exit code 3"):
            await here.call("where")


@on_loop
async def test_a_program_that_never_was_one_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    missing = await refused({"a": {"command": "no-such-server"}})
    assert isinstance(missing, ConfigError) and missing.message == "MCP server 'a': no program 'no-such-server'"
    variable = await refused({"a": {"command": "x", "args": ["${NO_SUCH_VARIABLE}"]}})
    assert variable.message == "MCP server 'a': args[0] needs the variable NO_SUCH_VARIABLE, which is not set"
    ended = await refused({"a": {"command": sys.executable, "args": ["-c", "raise SystemExit('no key')"]}})
    assert isinstance(ended, InfraError) and ended.message == "MCP server 'a' ended with exit code 1: no key"


@on_loop
async def test_a_server_of_a_revision_that_nobody_knows_is_told_so() -> None:
    unknown = await refused({"raw": raw("get", RAW_PROTOCOL="1999-01-01")})
    assert unknown.message.startswith("MCP server 'raw' cannot be used: ") and "1999-01-01" in unknown.message


@on_loop
async def test_a_program_that_never_answers_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "START_S", 0.5)
    silent = await refused({"a": {"command": sys.executable, "args": ["-c", "import time; time.sleep(600)"]}})
    assert silent.message == "MCP server 'a' was not ready within 0.5 s"


@on_loop
async def test_a_line_over_the_cap_is_dropped_as_it_comes_and_the_server_lives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_module, "MESSAGE_CAP", 50_000)
    async with opened({"raw": raw("long,where")}) as here:
        assert len((await here.call("long", size=40_000)).text) == 40_000
        dropped = await here.call("long", size=5_000_000)
        assert dropped.error and "is dropped]" in dropped.text
        assert not (await here.call("where")).error


@on_loop
async def test_a_call_that_is_not_answered_is_an_error_to_the_agent_while_its_server_lives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bridge_module, "CALL_S", 0.3)
    async with opened({"raw": raw("hang,where")}) as here:
        late = await here.call("hang")
        assert late.error and late.text == "the tool did not answer within 0.3 s"
        assert [e["tool"] for e in here.events("env.timeout")] == ["hang"]
        assert not (await here.call("where")).error


@on_loop
async def test_a_server_that_has_hung_is_no_fault_of_the_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge_module, "CALL_S", 0.3)
    monkeypatch.setattr(connection_module, "ALIVE_S", 0.3)
    async with opened({"raw": raw("hang", "deaf")}) as here:
        with pytest.raises(InfraError, match=r"did not answer a call within 0\.3 s, nor a ping after it"):
            await here.call("hang")


@on_loop
async def test_progress_reaches_whoever_asked_for_it() -> None:
    heard: list[tuple[float, float | None]] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total))

    async with opened({"raw": raw("steps")}) as here:
        token = PROGRESS.set(listen)
        assert (await here.call("steps")).text == "done"
        PROGRESS.reset(token)
        assert heard == [(1, 3), (2, 3), (3, 3)]


@on_loop
async def test_tools_that_a_server_adds_are_offered() -> None:
    async with opened({"raw": raw("grow")}) as here:
        await here.call("grow")
        assert [spec.name for spec in here.episode.tools()] == ["grow", "fail"]
        assert (await here.call("fail")).text == "it failed"


@on_loop
async def test_servers_with_tools_of_one_name_are_refused_by_name() -> None:
    both = await refused({"a": raw("get,put"), "b": raw("put")})
    assert both.message == "tool 'put' is offered by MCP servers 'a' and 'b'"


@on_loop
async def test_arguments_that_are_no_json_never_reach_a_server() -> None:
    async with opened({"raw": raw("where")}) as here:
        for wrong in ({"a": float("nan")}, {"a": "\ud800"}, {"\udfff": 1}):
            answer = await here.call("where", **wrong)
            assert answer.error and "cannot be sent as JSON" in answer.text
        assert (await here.episode.call("where", None)).text == "arguments must be an object, not NoneType"


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_servers_of_every_older_revision_are_spoken_to(revision: str) -> None:
    async def look() -> None:
        async with opened({"raw": raw("put,get", RAW_PROTOCOL=revision)}) as here:
            assert [e["protocol"] for e in here.events("env.server")] == [revision]
            await here.call("put", value="x")
            assert (await here.call("get")).text == '"x"'

    asyncio.run(asyncio.wait_for(look(), 60))


# ── what a server wants of its client ────────────────────────────────────────────────────────────────────────────────


@on_loop
async def test_input_that_a_tool_of_the_newest_revision_wants_is_declined_and_on_record() -> None:
    async with opened({"raw": raw("ask,hang", "modern")}) as here:
        assert [e["protocol"] for e in here.events("env.server")] == [MODERN]
        answer = await here.call("ask")
        assert json.loads(answer.text) == [{"who": {"action": "decline"}}, "as it was"]
        (asked,) = here.events("env.elicitation")
        assert (asked["server"], asked["message"], asked["answer"]) == ("raw", "Your name?", "decline")
        assert asked["schema"] == {"type": "object", "properties": {}}


@on_loop
async def test_what_a_server_logs_is_on_record_and_a_flood_is_counted() -> None:
    async with opened({"raw": raw("chatter")}) as here:
        await here.call("chatter", times=260)
        await here.call("chatter", times=0)
    logged = here.events("env.log")
    assert len(logged) == bridge_module.MAX_EVENTS
    assert (logged[0]["server"], logged[0]["level"], logged[0]["text"]) == ("raw", "info", "line 0")
    (dropped,) = here.events("env.dropped")
    assert (dropped["kind"], dropped["count"]) == ("env.log", 60)


@on_loop
async def test_what_cannot_be_declined_is_an_error_to_the_agent() -> None:
    async with opened({"raw": raw("ask", "modern", "sample")}) as here:
        answer = await here.call("ask")
        assert answer.error
        assert answer.text == "the tool asks its client for sampling/createMessage, which is not offered here"


@on_loop
async def test_a_server_without_ping_is_alive_if_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge_module, "CALL_S", 0.3)
    async with opened({"raw": raw("hang,where", "modern")}) as here:
        assert (await here.call("hang")).text == "the tool did not answer within 0.3 s"
        assert not (await here.call("where")).error


# ── spares ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def pid_of(episode: McpEpisode) -> int:
    return int(json.loads((await episode.call("where", {})).text)["pid"])


@on_loop
async def test_a_spare_is_used_once_and_begins_where_a_cold_start_does() -> None:
    bridge = McpBridge(FakeServices())
    spec = spec_of({"raw": raw("put,get,where")}, files={"state.json": "1"})
    pids = set()
    for number in range(3):
        trial = trial_of(spec)
        episode = await bridge.open(spec, trial)
        assert [e["spare"] for e in trial.recorder.reader().events("env.server")] == [number > 0]
        assert (await episode.call("get", {})).text == "1"
        await episode.call("put", {"value": 2})
        pids.add(await pid_of(episode))
        bridge.prepare(spec)
        await episode.close()
    assert len(pids) == 3
    assert len(bridge.spares) == 1
    await bridge.close()
    assert len(bridge.spares) == 0


@on_loop
async def test_a_spare_that_died_while_it_waited_is_replaced() -> None:
    bridge = McpBridge(FakeServices())
    spec = spec_of({"raw": raw("where,die")})
    bridge.prepare(spec)
    ((stack, opening),) = bridge.spares._waiting[read_recipe(spec.config).key]
    await opening
    program = stack.connections["raw"].program
    assert program is not None
    psutil.Process(program.pid).kill()
    assert await program.how_it_ended() == "ended with signal 9: ready"
    trial = trial_of(spec)
    episode = await bridge.open(spec, trial)
    assert [e["spare"] for e in trial.recorder.reader().events("env.server")] == [False]
    assert not (await episode.call("where", {})).error
    await episode.close()
    await bridge.close()


@on_loop
async def test_spares_are_few_and_the_oldest_of_another_kind_makes_room() -> None:
    bridge = McpBridge(FakeServices())
    specs = [spec_of({"raw": raw("where")}, files={"n": str(n)}) for n in range(10)]
    for spec in specs:
        bridge.prepare(spec)
    assert len(bridge.spares) == 8
    for spec, warm in ((specs[9], True), (specs[0], False)):
        trial = trial_of(spec)
        await (await bridge.open(spec, trial)).close()
        assert [e["spare"] for e in trial.recorder.reader().events("env.server")] == [warm]
    await bridge.close()


@on_loop
async def test_a_spare_that_cannot_start_fails_the_trial_that_needs_it_with_its_own_words() -> None:
    bridge = McpBridge(FakeServices())
    spec = spec_of({"a": {"command": sys.executable, "args": ["-c", "raise SystemExit('no key')"]}})
    bridge.prepare(spec)
    with pytest.raises(InfraError, match="ended with exit code 1: no key"):
        await bridge.open(spec, trial_of(spec))
    await bridge.close()
