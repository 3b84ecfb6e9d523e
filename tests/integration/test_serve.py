"""`evalcore serve`: a person plays a task through the real wires, with the official MCP client, and is graded."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from evalcore.engine.store import TraceStore, read_attempts, read_gradings, read_stamp
from evalcore.values.trial import Attempt, Grading
from tests.oracles import ROOT

SUITE: Final = str(ROOT / "examples" / "suites" / "tool-calling.jsonl")
TOOL_URL: Final = re.compile(r"^tools +(http://127\.0\.0\.1:\d+/e/[0-9a-f]{32}/mcp)$", re.MULTILINE)
MODEL_URL: Final = re.compile(r"^model +(http://127\.0\.0\.1:\d+/m/[0-9a-f]{32}/v1)$", re.MULTILINE)
DONE_URL: Final = re.compile(r"(http://127\.0\.0\.1:\d+/d/[0-9a-f]{32})$", re.MULTILINE)


class Served:
    """The program while it waits; `said` is what it has printed so far."""

    def __init__(self, process: subprocess.Popen[str], until: str) -> None:
        self.process = process
        self.said = ""
        assert process.stdout is not None
        for line in process.stdout:
            self.said += line
            if until in line:
                return
        process.wait(60)
        assert process.stderr is not None
        raise AssertionError(f"it ended early: {self.said}\n{process.stderr.read()}")

    def url(self, pattern: re.Pattern[str]) -> str:
        found = pattern.search(self.said)
        assert found is not None, self.said
        return found[1]

    def rest(self) -> tuple[int, str]:
        """Exit code and what else it prints."""
        out, error = self.process.communicate(timeout=100)
        assert "Traceback" not in error
        return self.process.returncode, out


@contextmanager
def serving(folder: Path, *arguments: str, until: str = "What will the weather be") -> Iterator[Served]:
    command = [str(Path(sys.executable).with_name("evalcore")), "serve", SUITE, "--task", "weather", "--name", "r"]
    with subprocess.Popen(
        [*command, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Served(process, until)
        finally:
            process.kill()


def stored(folder: Path) -> tuple[Attempt, Grading, list[dict[str, Any]]]:
    run = folder / "runs" / "r"
    (attempt,) = read_attempts(run)
    (grading,) = read_gradings(run, read_stamp(run).grading)
    store = TraceStore(run)
    events: list[Any] = list(store.read(attempt.trace).events())
    store.close()
    return attempt, grading, events


async def call(url: str, name: str, arguments: dict[str, Any]) -> tuple[list[str], str]:
    """The tools that the official client is offered, and the text of a call's result."""
    from mcp import Client

    async with Client(url, cache=None) as session:
        listed = [tool.name for tool in (await session.list_tools()).tools]
        result: Any = await session.call_tool(name, arguments)
        return listed, result.content[0].text


def test_a_person_plays_a_task_with_any_client_and_is_graded(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        tools, done = served.url(TOOL_URL), served.url(DONE_URL)
        assert f"claude mcp add --transport http evalcore-toolset {tools}" in served.said
        config = json.loads(next(line for line in served.said.splitlines() if "mcpServers" in line))
        assert config == {"mcpServers": {"evalcore-toolset": {"type": "http", "url": tools}}}
        assert f"EVALCORE_MCP_URL={tools} evalcore mcp-stdio" in served.said
        assert MODEL_URL.search(served.said) is None
        listed, text = asyncio.run(call(tools, "get_weather", {"city": "Lisbon", "day": "tomorrow"}))
        assert listed == ["get_weather", "convert"] and "clear" in text
        with httpx2.Client(trust_env=False) as http:
            assert http.get(done).status_code == 405
            assert http.post(done[:-1] + ("0" if done[-1] != "0" else "1"), content=b"x").status_code == 404
            assert http.post(done, content="Clear, 21 °C.".encode()).json() == {"taken": True}
        code, shown = served.rest()
    assert code == 0 and "person" in shown and shown.endswith("outcome  pass\n")
    attempt, grading, _ = stored(tmp_path)
    assert (attempt.provenance, attempt.exit and attempt.exit.kind, attempt.tool_calls) == ("person", "completed", 1)
    assert grading.verdict.outcome == "pass"


def test_ctrl_c_ends_it_and_what_was_done_is_graded(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        asyncio.run(call(served.url(TOOL_URL), "convert", {"amount": 1}))
        served.process.send_signal(signal.SIGINT)
        code, shown = served.rest()
    assert code == 0 and "Scorecard" in shown
    attempt, grading, events = stored(tmp_path)
    assert attempt.void is None and attempt.tool_calls == 1
    assert grading.verdict.outcome == "fail"
    assert [e["tool"] for e in events if e["e"] == "tool.call"] == ["convert"]


def test_it_waits_for_nobody_for_ever(tmp_path: Path) -> None:
    with serving(tmp_path, "--for", "1s") as served:
        code, _ = served.rest()
    assert code == 0
    attempt, grading, _ = stored(tmp_path)
    assert attempt.exit is not None and (attempt.exit.kind, attempt.exit.limit) == ("limit", "wall_s")
    assert grading.verdict.outcome == "fail"


def test_an_answer_given_beforehand_is_graded_at_once(tmp_path: Path) -> None:
    with serving(tmp_path, "--answer", "21 degrees") as served:
        assert "/d/" not in served.said
        assert served.rest()[0] == 0
    _, _, events = stored(tmp_path)
    (left,) = [e for e in events if e["e"] == "deliverable"]
    assert left["answer"] == "21 degrees"


def test_a_model_is_served_too_and_what_it_says_is_in_the_trace(tmp_path: Path) -> None:
    (tmp_path / "play.toml").write_text('[[reply]]\ntext = "Ask the tool."\n')
    with serving(tmp_path, "--model", "scripted/play.toml", until="What will the weather be") as served:
        url = served.url(MODEL_URL)
        assert f"export OPENAI_BASE_URL={url} OPENAI_API_KEY=unused" in served.said
        assert f"export ANTHROPIC_BASE_URL={url.removesuffix('/v1')} ANTHROPIC_API_KEY=unused" in served.said
        body = {"model": "any", "messages": [{"role": "user", "content": "What now?"}]}
        with httpx2.Client(trust_env=False) as http:
            said = http.post(f"{url}/chat/completions", json=body).json()
            assert said["choices"][0]["message"]["content"] == "Ask the tool."
            http.post(served.url(DONE_URL))
        assert served.rest()[0] == 0
    attempt, _, events = stored(tmp_path)
    assert attempt.usage["agent"].calls == 1
    assert [e["e"] for e in events if e["e"].startswith("model.")] == ["model.request", "model.response"]


@pytest.mark.parametrize(
    "arguments, told",
    [
        (["--task", "nope"], "no such task"),
        (["--for", "soon"], "2h"),
        (["--for", "0s"], "2h"),
        (["--for", "9999h"], "7 days"),
        (["--model", "nobody/x"], "nobody"),
    ],
)
def test_what_is_wrong_is_told_before_anything_waits(tmp_path: Path, arguments: list[str], told: str) -> None:
    command = [str(Path(sys.executable).with_name("evalcore")), "serve", SUITE, "--task", "weather", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 2 and told in done.stderr
    assert "Traceback" not in done.stderr and not (tmp_path / "runs").exists()
