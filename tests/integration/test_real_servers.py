"""Other people's MCP servers, as published: the example suite on them, and what is theirs reaches an agent whole."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Final

import pytest

from evalcore.builtin.mcp.config import read_file
from evalcore.engine.run import RunOptions
from evalcore.engine.runner import RunEnd
from tests.integration.suite_parts import children, ran
from tests.integration.test_http_calls import served
from tests.integration.test_mcp_bridge import Opened, opened
from tests.integration.test_mcp_suite import arms, traces
from tests.integration.wire_rig import on_loop
from tests.oracles import ROOT, needs

VARIABLE: Final = "EVALCORE_MCP_SERVERS"
SUITE: Final = ROOT / "examples" / "suites" / "servers.jsonl"
SERVERS: Final = ROOT / "examples" / "mcp" / "servers.json"
NAMES: Final = ("files", "memory", "everything", "git", "time", "sqlite")


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where they are installed."""
    found = Path(os.environ.get(VARIABLE) or ROOT / ".mcp-servers").absolute()
    if not (found / "installed").is_file():
        needs(f"MCP servers in {found}: `python tools/install_mcp_servers.py .mcp-servers` installs them")
    monkeypatch.setenv(VARIABLE, str(found))
    return found


def declared(*names: str) -> dict[str, Any]:
    return {name: server for name, server in read_file(SERVERS, "servers.json").items() if name in names}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_example_suite_can_be_solved_and_does_not_solve_itself(tmp_path: Path) -> None:
    ids = [json.loads(line)["id"] for line in SUITE.read_text().splitlines() if line.startswith("{")]
    before = children()
    done = ran(str(SUITE), tmp_path, arms(mcp_servers=str(SERVERS), sandbox="none"), options=RunOptions(concurrency=2))
    assert done.end == RunEnd("done")
    assert done.outcomes("oracle") == {task: ["pass"] for task in ids}
    assert done.outcomes("noop") == {task: ["fail"] for task in ids}
    for events in traces(done, "env.server"):
        assert tuple(event["server"] for event in events) == NAMES
    spares = [events[0]["spare"] for events in traces(done, "env.server")]
    assert sum(map(bool, spares)) >= len(spares) - 4
    assert children() <= before


@on_loop
async def test_servers_of_both_eras_say_what_they_are() -> None:
    async with opened(declared(*NAMES)) as here:
        said = {event["server"]: event for event in here.events("env.server")}
    assert {name: said[name]["protocol"] for name in NAMES} == {
        "files": "2025-11-25",
        "memory": "2025-11-25",
        "everything": "2025-11-25",
        "git": "2026-07-28",
        "time": "2026-07-28",
        "sqlite": "2025-11-25",
    }
    assert {name: said[name]["tools"] for name in ("files", "memory", "git", "time", "sqlite")} == {
        "files": 14, "memory": 9, "git": 12, "time": 2, "sqlite": 6,
    }  # fmt: skip
    assert str(said["everything"]["instructions"]).startswith("# Everything Server")


@on_loop
async def test_a_server_keeps_to_the_folder_of_its_trial() -> None:
    async with opened(declared("files"), files={"in.txt": "hello"}) as here:
        assert (await here.call("read_text_file", path="in.txt")).structured == {"content": "hello"}
        outside = await here.call("read_text_file", path="/etc/passwd")
        assert outside.error and "Access denied" in outside.text


async def everything(here: Opened) -> None:
    """What the reference server shows of the protocol's results."""
    picture = await here.call("get-tiny-image")
    assert [part["type"] for part in picture.content] == ["text", "image", "text"]
    assert picture.content[1]["mimeType"] == "image/png"
    structured = await here.call("get-structured-content", location="New York")
    assert isinstance(structured.structured, dict) and json.loads(structured.text) == structured.structured
    reference = await here.call("get-resource-reference", resourceType="Text", resourceId=1)
    held = next(part for part in reference.content if part["type"] == "resource")["resource"]
    assert isinstance(held, dict) and str(held["uri"]).startswith("demo://")
    links = await here.call("get-resource-links", count=2)
    assert [part["type"] for part in links.content].count("resource_link") == 2


@on_loop
async def test_every_kind_of_content_passes() -> None:
    async with opened(declared("everything")) as here:
        await everything(here)


@on_loop
async def test_what_a_server_asks_its_user_is_declined_and_on_record() -> None:
    async with opened(declared("everything")) as here:
        answer = await here.call("trigger-elicitation-request")
        assert not answer.error and '"action": "decline"' in answer.text
        (asked,) = here.events("env.elicitation")
        assert asked["server"] == "everything" and asked["answer"] == "decline"
        assert isinstance(asked["schema"], dict) and "name" in asked["schema"]["properties"]


def test_the_page_and_the_examples_name_what_is_installed() -> None:
    page = (ROOT / "docs" / "mcp.md").read_text()
    for path in re.findall(r"examples/[\w./-]+", page):
        assert (ROOT / path).exists(), path
    block = re.search(r"^```json servers.json\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert block is not None and set(json.loads(block[1])) == {"mcpServers"}


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
@on_loop
async def test_progress_of_a_real_server_reaches_an_agent(mode: str) -> None:
    from mcp import Client

    heard: list[tuple[float, float | None]] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total))

    async with served(declared("everything")) as here, Client(here.door.url, mode=mode) as agent:
        wanted = {"duration": 1, "steps": 4}
        done = await agent.call_tool("trigger-long-running-operation", wanted, progress_callback=listen)
        assert not done.is_error
    assert heard == [(1, 4), (2, 4), (3, 4), (4, 4)]
