"""Servers that mean harm, and files of strangers: what they say reaches nobody's terminal, report or memory raw."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from evalcore.cli import consent
from tests.integration.conftest import Called
from tests.integration.suite_parts import write
from tests.integration.test_mcp_bridge import opened, raw

Cli = Callable[..., Called]

NAME: Final = "\x1b[2J\x07<img src=x onerror=alert(1)>\u202eevil"
CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
PLAY: Final = [
    {"match": {"call": 1}, "tool_calls": [{"name": NAME, "arguments": {NAME: NAME}}]},
    {"match": {"call": 2}, "tool_calls": [{"name": "hostile", "arguments": {}}]},
    {"text": "done"},
]
TASK: Final[dict[str, Any]] = {
    "id": "t",
    "instruction": "Do.",
    "grade": {"mcp_state": [{"tool": NAME, "contains": "nothing of it"}]},
}


def servers(folder: Path, **declared: Any) -> None:
    (folder / "servers.json").write_text(json.dumps({"mcpServers": declared}))


def test_a_servers_names_and_words_cannot_steer_a_terminal_or_a_page(cli: Cli, tmp_path: Path) -> None:
    servers(tmp_path, raw=raw(f"{NAME},hostile"))
    write(tmp_path / "mine.jsonl", [TASK])
    write(tmp_path / "play.jsonl", PLAY)
    flags = ("--model", "scripted/play.jsonl", "--set", "mcp_servers=servers.json", "--yes", "--name", "r")
    ran = cli("run", "mine.jsonl", *flags)
    assert ran.exit_code == 0, ran.stderr
    (trial,) = [json.loads(line) for line in cli("trace", "r", "--json").stdout.splitlines()]
    assert (trial["outcome"], trial["tool_calls"]) == ("fail", 2)
    said = [ran, cli("trace", "r", "t/"), cli("trace", "r", "t/", "--full"), cli("report", "r")]
    assert "evil" in said[1].stdout and "owned" in said[1].stdout and "reason" in said[1].stdout
    for called in said:
        assert CONTROLS.search(called.stdout + called.stderr) is None
    for name in ("markdown", "github", "junit", "csv"):
        called = cli("report", "r", "--format", name, "--out", str(tmp_path / name))
        assert called.exit_code == 0, called.stderr
        for page in (tmp_path / name).rglob("*"):
            text = page.read_text() if page.is_file() else ""
            assert CONTROLS.search(text.replace("\r\n", "\n")) is None and "<img" not in text and "<script" not in text


def test_the_last_words_of_a_server_cannot_steer_a_terminal(cli: Cli, tmp_path: Path) -> None:
    words = "raise SystemExit('\\x1b]0;owned\\x07<b>\\u202ebad')"
    servers(tmp_path, raw={"command": sys.executable, "args": ["-c", words]})
    write(tmp_path / "mine.jsonl", [TASK])
    called = cli("run", "mine.jsonl", "--harness", "noop", "--set", "mcp_servers=servers.json", "--yes", "--name", "r")
    assert called.exit_code == 4
    told = cli("trace", "r", "t/")
    assert "MCP server 'raw' ended with exit code 1: " in told.stdout
    for one in (called, told):
        assert CONTROLS.search(one.stdout + one.stderr) is None


def test_a_result_of_100_mb_is_dropped_as_it_comes() -> None:
    async def look() -> None:
        async with opened({"raw": raw("long,where")}) as here:
            await here.call("where")
            before = psutil.Process().memory_info().rss
            dropped = await here.call("long", size=100_000_000)
            assert dropped.error and "is dropped]" in dropped.text
            assert psutil.Process().memory_info().rss - before < 60_000_000
            assert not (await here.call("where")).error

    asyncio.run(asyncio.wait_for(look(), 100))


def test_standard_error_of_100_mb_is_read_and_not_kept() -> None:
    async def look() -> None:
        async with opened({"raw": raw("where", RAW_NOISE="100000000")}) as here:
            before = psutil.Process().memory_info().rss
            await here.call("where")
            assert psutil.Process().memory_info().rss - before < 60_000_000
        (said,) = here.events("env.stderr")
        assert said["bytes"] == 100_000_006 and len(str(said["text"])) < 70_000

    asyncio.run(asyncio.wait_for(look(), 100))


# ── asking ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_a_strangers_suite_starts_and_reaches_is_shown_and_nothing_happens_without_a_yes(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "key-0123456789")
    servers(
        tmp_path,
        mine={"command": "bin/\x1b[31mserver", "args": ["--key", "${SECRET_KEY}"], "env": {"A": "${OTHER:-x}"}},
        other={"url": "https://example.org/mcp"},
    )
    line = {**TASK, "grade": {"command": {"run": "touch ran; echo '\x1b[2J'"}}, "mcp": ["web=http://127.0.0.1:9/mcp"]}
    write(tmp_path / "mine.jsonl", [line])
    asked = cli("run", "mine.jsonl", "--harness", "noop", "--sandbox", "none", "--set", "mcp_servers=servers.json")
    assert asked.exit_code == 2 and not (tmp_path / "runs").exists()
    assert "This executes 2 commands:" in asked.stderr and "This connects to 2 servers:" in asked.stderr
    for shown in (
        "touch ran",
        "--key '${SECRET_KEY}' # passes on OTHER, SECRET_KEY",
        "  https://example.org/mcp",
        "  http://127.0.0.1:9/mcp",
    ):
        assert shown in asked.stderr
    assert str(tmp_path / "bin") in asked.stderr and CONTROLS.search(asked.stderr) is None
    assert "key-0123456789" not in asked.stderr
    assert "nobody is here to be asked" in asked.stderr


def test_a_suite_with_many_commands_is_shown_in_part_and_counted(cli: Cli, tmp_path: Path) -> None:
    lines = [{**TASK, "id": f"t{n}", "grade": {"command": {"run": f"echo {n}"}}} for n in range(50)]
    write(tmp_path / "mine.jsonl", lines)
    asked = cli("run", "mine.jsonl", "--harness", "noop", "--sandbox", "none")
    assert "This executes 50 commands:" in asked.stderr and "  … and 10 more" in asked.stderr
    assert asked.stderr.count("/bin/sh -c") == consent.SHOWN


def test_a_suite_that_names_nothing_asks_nothing(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path / "mine.jsonl", [{"id": "t", "instruction": "Say x.", "grade": {"contains": "x"}}])
    called = cli("run", "mine.jsonl", "--harness", "noop", "--name", "r")
    assert called.exit_code == 0 and "executes" not in called.stderr


def test_a_secret_that_a_server_is_given_is_in_no_file_of_the_run(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVER_KEY", "key-0123456789abcdef")
    servers(tmp_path, raw=raw("environment", GIVEN="${SERVER_KEY}"))
    line = {**TASK, "grade": {"mcp_state": [{"tool": "environment", "contains": "GIVEN"}]}}
    write(tmp_path / "mine.jsonl", [line])
    called = cli("run", "mine.jsonl", "--harness", "noop", "--set", "mcp_servers=servers.json", "--yes", "--name", "r")
    assert called.exit_code == 0, called.stderr
    assert "pass" in cli("trace", "r", "--json").stdout
    told = cli("trace", "r", "t/", "--full").stdout
    assert "key-0123456789abcdef" not in told + called.stdout + called.stderr
    import zstandard

    for file in (tmp_path / "runs").rglob("*"):
        data = file.read_bytes() if file.is_file() else b""
        if file.suffix == ".zst":
            with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
                data = reader.read()
        assert b"key-0123456789abcdef" not in data, file
