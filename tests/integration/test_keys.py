"""Keys stay with the gateway: no agent sees one, no file holds one, and our own memory is closed to other programs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from evalcore.process.shield import shield
from tests.integration.conftest import Called
from tests.integration.test_openai_compatible import Server, good, serving
from tests.integration.wire_rig import on_loop

KEY: Final = "sk-of-the-users-own-0123456789"
NOBODY: Final = 54321  # a user that need not exist
linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc and prctl are Linux's")

# An agent that looks for keys wherever it can: its environment, its arguments, what it may read, and its parents.
SPY: Final = """
import json, os, sys
from pathlib import Path

def readable(root):
    for folder, _, names in os.walk(root):
        for name in names:
            try:
                yield Path(folder, name).read_bytes().decode("latin-1")
            except OSError:
                pass

def of_process(pid):
    for name in ("environ", "cmdline"):
        try:
            yield Path("/proc", str(pid), name).read_bytes().decode("latin-1")
        except OSError:
            yield ""

urls = os.environ["OPENAI_BASE_URL"]
import urllib.request
body = json.dumps({"messages": [{"role": "user", "content": "hi"}]}).encode()
request = urllib.request.Request(urls + "/chat/completions", body, {"Content-Type": "application/json"})
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
reply = opener.open(request, timeout=60).read().decode()
seen = {
    "environment": json.dumps(dict(os.environ)),
    "argv": json.dumps(sys.argv),
    "own": "".join(of_process("self")),
    "files": "".join(t for r in (os.getcwd(), os.environ["HOME"], os.environ["TMPDIR"]) for t in readable(r)),
    "reply": reply,
    "parent": "".join(of_process(os.getppid())),
}
Path(AWAY).write_text(json.dumps(seen))
print("done")
"""


@on_loop
async def _served(work: Callable[[Server], Any]) -> None:
    async with serving(good("hello")) as server:
        await work(server)


def test_an_agent_finds_no_key_wherever_it_looks_and_the_run_holds_none(
    tmp_path: Path, cli: Callable[..., Called]
) -> None:
    away = tmp_path / "seen.json"
    (tmp_path / "spy.py").write_text(SPY.replace("AWAY", repr(str(away))))
    (tmp_path / "spy.toml").write_text('argv = ["{python}", "{agent_dir}/spy.py"]\nprompt = "stdin"\n')

    async def work(server: Server) -> None:
        arguments = (
            "run", "toy-echo", "--limit", "1", "--harness", "command", "--set", "agent=spy.toml", "--model",
            "openai-compatible/m", "--base-url", server.url, "--max-tokens", "1000", "--yes", "--name", "r",
        )  # fmt: skip
        called = await asyncio.to_thread(cli, *arguments, OPENAI_COMPATIBLE_API_KEY=KEY, ANTHROPIC_API_KEY=f"{KEY}-2")
        assert called.exit_code == 0, called.stderr
        assert KEY not in called.stdout + called.stderr
        assert [headers["authorization"] for _, headers, _ in server.asked] == [f"Bearer {KEY}"]

    _served(work)
    seen = json.loads(away.read_text())
    assert "hello" in seen["reply"]
    for place in ("environment", "argv", "own", "files", "reply"):
        assert KEY not in seen[place], place
    if os.geteuid() != 0:  # root may read everything
        assert KEY not in seen["parent"]
    for file in (f for f in (tmp_path / "runs" / "r").rglob("*") if f.is_file()):
        assert KEY.encode() not in file.read_bytes(), file


# ── our own memory ───────────────────────────────────────────────────────────────────────────────────────────────────


def _as_nobody() -> None:
    """Another user, where we may become one; after that, as after an exec, the process can be looked into."""
    import ctypes

    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)


def _forked(work: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        with suppress(BaseException):
            work()
            code = 0
        os._exit(code)
    return pid


def _reads(victim: int, name: str) -> bool:
    """Whether a process of the same user can read a file of the victim's /proc."""

    def work() -> None:
        _as_nobody()
        with open(f"/proc/{victim}/{name}", "rb") as file:  # noqa: PTH123 - nothing is imported in a forked child
            if name == "environ":
                file.read(1)

    return os.waitstatus_to_exitcode(os.waitpid(_forked(work), 0)[1]) == 0


@linux
@pytest.mark.parametrize("name", ["environ", "mem"])
@pytest.mark.parametrize("shielded", [True, False])
def test_a_program_of_the_same_user_cannot_read_a_shielded_process(name: str, shielded: bool) -> None:
    ready, told = os.pipe()

    def work() -> None:
        _as_nobody()
        if shielded:
            shield()
        os.write(told, b".")
        signal.pause()

    victim = _forked(work)
    try:
        assert os.read(ready, 1) == b"."
        assert _reads(victim, name) is not shielded
    finally:
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
        os.close(ready)
        os.close(told)


@linux
def test_a_verb_that_runs_agents_is_shielded_and_what_it_starts_is_as_ever(tmp_path: Path) -> None:
    code = """
import ctypes, os, subprocess, sys
from evalcore.engine.loop import run_to_end
async def work():
    own = ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)
    child = subprocess.run([sys.executable, "-c", "import ctypes; print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"],
        capture_output=True, text=True)
    return own, child.stdout.strip()
print(run_to_end(work()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "(0, '1')"
