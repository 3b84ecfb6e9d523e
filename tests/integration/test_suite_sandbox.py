"""Sandbox `none`: only where it is demanded by name, and nothing of it is left; and the grades that need it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from evalcore.builtin.sandbox_none import FolderSandbox, FolderSandboxes, PathRefused
from evalcore.engine.runner import RunEnd
from evalcore.errors import ConfigError, InfraError
from evalcore.values.task import SandboxSpec
from tests.integration.conftest import Called
from tests.integration.suite_parts import planned, ran, scripted, write

NONE = {"oracle": {"harness": "oracle", "sandbox": "none"}, "noop": {"harness": "noop", "sandbox": "none"}}
FILES: dict[str, Any] = {
    "files": {"sum.py": "def add(a, b):\n    return a - b\n", "notes/a.txt": "keep\n"},
    "tools": [{"name": "read", "builtin": "read_file"}, {"name": "write", "builtin": "write_file"}],
}
FIXED = "def add(a, b):\n    return a + b\n"
MEND: dict[str, Any] = {
    "id": "mend",
    "instruction": "Mend sum.py.",
    "tool_server": FILES,
    "grade": {
        "files": {"sum.py": {"contains": "a + b"}, "notes/a.txt": {"exact": "keep\n"}},
        "command": {"run": "python3 -c 'from sum import add; assert add(2, 3) == 5'"},
    },
    "gold": {"calls": [{"name": "write", "args": {"path": "sum.py", "content": FIXED}}]},
}
ANSWER = {"id": "answer", "instruction": "Say x.", "grade": {"exact": "x"}, "gold": {"answer": "x"}}


def commanded(run: str, **more: Any) -> dict[str, Any]:
    return {"id": "c", "instruction": "Do.", "grade": {"command": {"run": run, **more}}, "gold": {"answer": ""}}


def with_sandbox(work: Callable[[FolderSandbox], Any]) -> Any:
    async def use() -> Any:
        sandbox = await FolderSandboxes().open(SandboxSpec("none"))
        try:
            return await work(sandbox)
        finally:
            await sandbox.close()
            assert not sandbox.root.parent.exists()

    return asyncio.run(use())


def ended(pid: int) -> bool:
    """Whether a process runs no more. What a container's first process does not fetch stays as a zombie."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


# ── demanded by name ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_a_sandbox_a_task_that_needs_one_is_refused_when_the_run_is_planned(tmp_path: Path) -> None:
    write(tmp_path / "mine.jsonl", [ANSWER, MEND, commanded("true")])
    with pytest.raises(ConfigError) as refused:
        planned("mine.jsonl", tmp_path, {"noop": {"harness": "noop"}})
    assert refused.value.exit_code == 2
    assert refused.value.message == "mine.jsonl: 2 of 3 tasks work on files or commands, and no sandbox is named"
    assert [str(fault) for fault in refused.value.faults] == [
        "line 2: $.tool_server.files: needs a sandbox",
        "line 3: $.grade.command: needs a sandbox",
    ]
    assert refused.value.hint is not None and refused.value.hint.startswith("--sandbox none ")


def test_a_suite_that_needs_none_needs_no_demand(tmp_path: Path) -> None:
    write(tmp_path / "mine.jsonl", [ANSWER])
    assert ran("mine.jsonl", tmp_path).outcomes("oracle") == {"answer": ["pass"]}


def test_the_demand_is_an_axis_of_the_command_line(cli: Callable[..., Called], tmp_path: Path) -> None:
    write(tmp_path / "mine.jsonl", [MEND])
    (tmp_path / "study.toml").write_text(
        '[study]\nname = "s"\nbenchmarks = ["mine.jsonl"]\n[arms.noop]\nharness = "noop"\n'
    )
    refused = cli("run", "study.toml")
    assert refused.exit_code == 2
    assert "line 1: $.tool_server.files: needs a sandbox" in refused.stderr
    assert "hint: --sandbox none" in refused.stderr

    asked = cli("run", "./mine.jsonl", "--sandbox", "none")
    assert asked.exit_code == 2 and "nobody is here to be asked" in asked.stderr
    assert "This executes 1 command:\n  /bin/sh -c" in asked.stderr and not (tmp_path / "runs").exists()
    made = cli("run", "./mine.jsonl", "--sandbox", "none", "--name", "r", "--yes")
    assert made.exit_code == 0 and "oracle (ceiling)" in made.stdout
    assert 'sandbox = "none"' in (tmp_path / "runs" / "r" / "run.toml").read_text()
    wrong = cli("run", "mine.jsonl", "--set", "sandbox=docker")
    assert wrong.exit_code == 2 and "expected 'none', got the text 'docker'" in wrong.stderr


# ── grades of files and commands ─────────────────────────────────────────────────────────────────────────────────────


def left_over() -> set[str]:
    return {name for name in os.listdir(os.environ.get("TMPDIR", "/tmp")) if name.startswith("evalcore-none-")}  # noqa: PTH208


def test_files_and_commands_are_graded_and_nothing_is_left(tmp_path: Path) -> None:
    before = left_over()
    write(tmp_path / "mine.jsonl", [MEND, ANSWER])
    done = ran("mine.jsonl", tmp_path, NONE, repeats=2)
    assert done.end == RunEnd("done")
    assert done.outcomes("oracle") == {"mend": ["pass", "pass"], "answer": ["pass", "pass"]}
    assert done.outcomes("noop") == {"mend": ["fail", "fail"], "answer": ["fail", "fail"]}
    (verdict, _) = done.verdicts("noop")["mend"]
    assert verdict.details["checks"] == {"files": False, "command": False}
    assert "AssertionError" in str(verdict.details["failed"][1])  # type: ignore[index,call-overload] # a list of texts
    assert {a.isolation for a in done.attempts()} == {"none"}
    assert left_over() == before


def test_each_trial_and_each_retry_begins_with_the_files_as_written(tmp_path: Path) -> None:
    line = {**MEND, "grade": {"files": {"log": {"exact": "x"}, "sum.py": {"contains": "a - b"}}}}
    write(tmp_path / "mine.jsonl", [line])
    spoil = {"name": "write", "arguments": {"path": "sum.py", "content": "spoilt"}}
    keep = {"name": "write", "arguments": {"path": "log", "content": "x"}}
    arm = scripted(
        tmp_path,
        {"match": {"attempt": 1, "call": 1}, "tool_calls": [spoil]},
        {"match": {"attempt": 1}, "error": {"status": 503}},
        {"match": {"call": 1}, "tool_calls": [keep, {"name": "read", "arguments": {"path": "sum.py"}}]},
        {"text": "Done."},
    )
    done = ran("mine.jsonl", tmp_path, {"m": {**arm, "sandbox": "none"}})
    assert [a.void is not None for a in done.attempts()] == [True, False]
    assert done.outcomes("m") == {"mend": ["pass"]}


def test_paths_that_lead_outside_are_the_agents_errors(tmp_path: Path) -> None:
    write(tmp_path / "mine.jsonl", [{**MEND, "grade": {"files": {"sum.py": {}}}}])
    paths = ["/etc/passwd", "../x", "notes/../../x", "", "notes", "sum.py/x", "no", "a\0b", "x" * 300, 3, None]
    tools = [{"name": "read", "arguments": {"path": path}} for path in paths]
    tools += [{"name": "write", "arguments": {"path": path, "content": "x"}} for path in paths if path != "no"]
    tools += [{"name": "write", "arguments": {"path": "a"}}]
    arm = scripted(tmp_path, {"match": {"call": 1}, "tool_calls": tools}, {"text": "Done."})
    done = ran("mine.jsonl", tmp_path, {"m": {**arm, "sandbox": "none"}})
    (attempt,) = done.attempts()
    assert (attempt.void, attempt.tool_calls, attempt.tool_errors) == (None, len(tools), len(tools))
    assert done.outcomes("m") == {"mend": ["pass"]}


def reason_of(line: dict[str, Any], folder: Path) -> str | None:
    write(folder / "mine.jsonl", [line])
    ((verdict,),) = ran("mine.jsonl", folder, {"noop": NONE["noop"]}).verdicts("noop").values()
    reason = verdict.details.get("reason")
    return None if reason is None else str(reason)


def test_a_command_is_ended_with_all_it_started_when_its_time_is_over(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    line = commanded(f"sleep 300 & echo $! > {mark}; sleep 300", timeout_s=0.5)
    began = time.monotonic()
    assert reason_of(line, tmp_path) == "command: did not end within 0.5 s"
    assert time.monotonic() - began < 60
    assert ended(int(mark.read_text()))


def test_a_command_sees_an_allow_listed_environment_and_its_output_is_capped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-a-test")
    run = 'test -z "$OPENAI_API_KEY" && test "$HOME" = "$PWD" && head -c 9000000 /dev/zero && echo x > "$TMPDIR/y"'
    assert reason_of(commanded(run), tmp_path) is None


def test_a_command_that_ends_otherwise_says_how_and_what(tmp_path: Path) -> None:
    assert reason_of(commanded("echo oh no >&2; exit 3"), tmp_path) == "command: ended with exit 3, not 0: oh no"


# ── the sandbox itself ───────────────────────────────────────────────────────────────────────────────────────────────


def test_what_was_written_is_read_back() -> None:
    async def work(sandbox: FolderSandbox) -> None:
        await sandbox.write("a/b/c.bin", b"\0\xff", 0o700)
        assert await sandbox.read("a/b/c.bin", 100) == b"\0\xff"
        assert await sandbox.read("a/b/c.bin", 1) == b"\0"
        assert (sandbox.root / "a/b/c.bin").stat().st_mode & 0o700 == 0o700
        await sandbox.write("a/b/c.bin", b"x")
        assert await sandbox.read("./a/b/c.bin", 9) == b"x"
        with pytest.raises(FileNotFoundError):
            await sandbox.read("a/none", 9)

    with_sandbox(work)


def test_links_and_pipes_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")

    async def work(sandbox: FolderSandbox) -> None:
        (sandbox.root / "file").symlink_to(tmp_path / "secret")
        (sandbox.root / "folder").symlink_to(tmp_path)
        os.mkfifo(sandbox.root / "pipe")
        for path in ("file", "folder/secret", "pipe", "."):
            with pytest.raises(PathRefused):
                await sandbox.read(path, 9)
            with pytest.raises(PathRefused):
                await sandbox.write(path, b"x")

    with_sandbox(work)
    assert (tmp_path / "secret").read_text() == "secret"


def test_every_process_is_ended_before_evidence_is_collected() -> None:
    async def work(sandbox: FolderSandbox) -> None:
        script, pid = "sleep 300 & echo $! > started; mv started pid; sleep 300", sandbox.root / "pid"
        running = asyncio.create_task(sandbox.exec(("/bin/sh", "-c", script), timeout_s=300))
        for _ in range(3000):
            await asyncio.sleep(0.01)
            if pid.exists():
                break
        await sandbox.kill_all()
        with pytest.raises(InfraError, match="was ended with its sandbox"):
            await running
        assert ended(int(pid.read_text()))

    with_sandbox(work)


def test_a_folder_that_shuts_everybody_out_is_removed_all_the_same() -> None:
    async def work(sandbox: FolderSandbox) -> None:
        await sandbox.write("a/b/c", b"x")
        (sandbox.root / "a" / "b").chmod(0)
        (sandbox.root / "a").chmod(0)

    with_sandbox(work)
