"""The process runner: bounded output, whole trees ended on every path, and an environment without our keys."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from evalcore.errors import InfraError
from evalcore.process.environment import clean_environment
from evalcore.process.runner import Completed, run
from evalcore.process.running import spawn
from evalcore.process.tree import MARK, kill_tree, members, tree_of

LONG_S = 60.0
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

# Starts a child, a grandchild in a session of its own that ignores SIGTERM, and an orphan whose parent has exited; each
# writes its process id. Then it does what it is told.
FAMILY = """
import os, signal, subprocess, sys, time
folder, then = sys.argv[1:]
stay = "import os, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
stay += "open(sys.argv[1] + '.part', 'w').write(str(os.getpid())); os.rename(sys.argv[1] + '.part', sys.argv[1]);"
stay += "time.sleep(600)"
middle = "import subprocess, sys;"
middle += "subprocess.Popen([sys.executable, '-c', sys.argv[1], sys.argv[2]], start_new_session=True)"
subprocess.Popen([sys.executable, "-c", stay, folder + "/child"])
subprocess.Popen([sys.executable, "-c", stay, folder + "/setsid"], start_new_session=True)
subprocess.Popen([sys.executable, "-c", middle, stay, folder + "/orphan"])
while not all(os.path.exists(folder + "/" + name) for name in ("child", "setsid", "orphan")):
    time.sleep(0.01)
open(folder + "/ready", "w").close()
if then == "stay":
    time.sleep(600)
"""


def complete(*argv: str, timeout_s: float = LONG_S, **options: object) -> Completed:
    return asyncio.run(run(argv, timeout_s=timeout_s, env=None, **options))  # type: ignore[arg-type]


def python(code: str, *arguments: str, timeout_s: float = LONG_S, **options: object) -> Completed:
    return complete(sys.executable, "-c", code, *arguments, timeout_s=timeout_s, **options)


def alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for yet does not."""
    try:
        return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False


def family(folder: Path) -> list[int]:
    return [int((folder / name).read_text()) for name in ("child", "setsid", "orphan")]


def end(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_output_input_and_exit_code_come_back() -> None:
    done = python("import sys; print(sys.stdin.read()[::-1]); print('no', file=sys.stderr); sys.exit(3)", stdin=b"abc")
    assert (done.stdout, done.stderr, done.exit_code, done.signal) == (b"cba\n", b"no\n", 3, None)
    assert (done.truncated, done.timed_out) == (False, False)
    assert done.argv[0] == sys.executable


def test_a_signal_is_told_from_an_exit_code() -> None:
    done = python("import os; os.kill(os.getpid(), 9)")
    assert (done.exit_code, done.signal) == (None, 9)


def test_a_child_that_does_not_read_a_large_input_is_no_error() -> None:
    assert python("print('done')", stdin=b"x" * 10_000_000).stdout == b"done\n"


def test_a_flood_is_drained_and_its_two_ends_are_kept() -> None:
    done = python("import sys; print('first' + 'x' * 5_000_000 + 'last')", max_output_bytes=1000)
    assert done.truncated
    assert len(done.stdout) == 1000
    assert done.stdout.startswith(b"firstx")
    assert done.stdout.endswith(b"xlast\n")


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9])
def test_output_is_whole_up_to_the_bound_and_marked_beyond(size: int) -> None:
    done = python("import sys; sys.stdout.write('abcdefgh')", max_output_bytes=size)
    assert done.truncated == (size < 8)
    assert done.stdout == b"abcdefgh"[: size // 2] + b"abcdefgh"[8 - (size - size // 2) :] if size < 8 else b"abcdefgh"


def test_output_to_a_file_is_bounded_too(tmp_path: Path) -> None:
    whole = python("print('x' * 3_000_000)", stdout_to=tmp_path / "whole")
    cut = python("print('x' * 3_000_000)", stdout_to=tmp_path / "cut", max_file_bytes=1000)
    assert ((tmp_path / "whole").stat().st_size, whole.truncated, whole.stdout) == (3_000_001, False, b"")
    assert ((tmp_path / "cut").stat().st_size, cut.truncated) == (1000, True)


def test_lines_are_told_as_they_come_however_they_end() -> None:
    lines: list[str] = []
    python(r"import sys; sys.stdout.buffer.write(b'one\r\ntwo\n\xff\nlast')", on_line=lines.append)
    assert lines == ["one", "two", "�", "last"]


def test_what_on_line_raises_ends_the_command_and_comes_through() -> None:
    def refuse(line: str) -> None:
        raise LookupError(line)

    with pytest.raises(LookupError, match="no"):
        python("import time; print('no', flush=True); time.sleep(600)", on_line=refuse)


@pytest.mark.parametrize("argv", [("/no/such/program",), ("a\0b",)])
def test_what_cannot_start_is_an_infra_error_that_names_it(argv: tuple[str, ...]) -> None:
    with pytest.raises(InfraError, match="cannot start"):
        complete(*argv)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="gone"):
        python("pass", cwd=tmp_path / "gone")


@linux
@pytest.mark.parametrize("then", ["stay", "exit"])
def test_nothing_of_the_tree_is_left_after_a_timeout_or_an_exit(tmp_path: Path, then: str) -> None:
    async def scenario() -> Completed:
        return await run(
            [sys.executable, "-c", FAMILY, str(tmp_path), then],
            timeout_s=5.0 if then == "stay" else LONG_S,
            env=None,
            grace_s=0.2,
        )

    done = asyncio.run(scenario())
    pids = family(tmp_path)
    try:
        assert [pid for pid in pids if alive(pid)] == []
        assert done.timed_out == (then == "stay")
    finally:
        end(pids)


@linux
def test_nothing_of_the_tree_is_left_after_a_cancellation_even_a_repeated_one(tmp_path: Path) -> None:
    async def scenario() -> None:
        command = [sys.executable, "-c", FAMILY, str(tmp_path), "stay"]
        task = asyncio.create_task(run(command, timeout_s=600, env=None, grace_s=0.2))
        while not (tmp_path / "ready").exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    pids = family(tmp_path)
    try:
        assert [pid for pid in pids if alive(pid)] == []
    finally:
        end(pids)


@linux
def test_a_child_that_cleared_its_environment_is_found_in_its_session(tmp_path: Path) -> None:
    code = """
import os, subprocess, sys
child = subprocess.Popen(["/bin/sleep", "600"], env={})
open(sys.argv[1], "w").write(str(child.pid))
"""
    python(code, str(tmp_path / "pid"))
    pid = int((tmp_path / "pid").read_text())
    try:
        assert not alive(pid)
    finally:
        end([pid])


@linux
def test_a_stopped_child_dies_too() -> None:
    done = python("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", timeout_s=1.0, grace_s=0.1)
    assert (done.timed_out, done.signal) == (True, signal.SIGKILL)


@linux
def test_siblings_of_a_tree_are_left_alone() -> None:
    async def scenario() -> None:
        one, two = [await spawn(["/bin/sleep", "600"], env=None) for _ in range(2)]
        try:
            await one.kill_tree()
            assert not alive(one.pid)
            assert alive(two.pid)
        finally:
            await one.close()
            await two.close()

    asyncio.run(scenario())


@linux
def test_trees_nest_so_that_an_outer_one_reaches_what_an_inner_one_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, "outer")
    done = python(f"import os; print(os.environ[{MARK!r}])")
    outer, inner = done.stdout.decode().strip().split(":")
    assert outer == "outer"
    assert inner


@linux
def test_kill_tree_of_a_bare_pid_blocks_until_it_is_gone() -> None:
    async def scenario() -> None:
        child = await spawn(["/bin/sh", "-c", "sleep 600 & sleep 600"], env=None)
        deadline = time.monotonic() + LONG_S
        while len(found := members(tree_of(child.pid))) < 3 and time.monotonic() < deadline:  # noqa: ASYNC110 - the same
            await asyncio.sleep(0.01)
        assert await asyncio.to_thread(kill_tree, child.pid) == set()
        assert [pid for pid in found if alive(pid)] == []
        await child.close()

    asyncio.run(scenario())


def test_a_running_child_is_written_to_and_read_from() -> None:
    async def scenario() -> None:
        child = await spawn([sys.executable, "-uc", "print(input()[::-1]); print(input())"], env=None)
        try:
            child.write(b"olleh\n")
            assert await child.stdout.readline() == b"hello\n"
            assert child.exit is None
            child.write(b"bye")
            child.close_stdin()
            assert await child.stdout.read() == b"bye\n"
            assert (await child.wait()).exit_code == 0
        finally:
            await child.close()
        await child.close()

    asyncio.run(scenario())


def test_the_environment_is_an_allow_list() -> None:
    ours = {
        "PATH": "/bin",
        "HOME": "/h",
        "LC_ALL": "C",
        "OPENAI_API_KEY": "k",
        "AWS_SECRET": "k",
        "PYTHONPATH": "x",
        "https_proxy": "http://user:pass@proxy",
        "SSL_CERT_FILE": "c",
        "PIP_INDEX_URL": "i",
        "PIP_TARGET": "t",
    }
    plain = {"PATH": "/bin", "HOME": "/h", "LC_ALL": "C"}
    assert clean_environment(source=ours) == plain
    assert clean_environment({"A": "b", "PATH": "/x"}, source=ours) == {**plain, "A": "b", "PATH": "/x"}
    with_network = {**plain, "https_proxy": "http://user:pass@proxy", "SSL_CERT_FILE": "c"}
    assert clean_environment(source=ours, network=True) == with_network
    assert clean_environment(source=ours, network=True, pip=True) == {**with_network, "PIP_INDEX_URL": "i"}


def test_a_child_sees_no_more_than_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    assert b"secret" not in complete("/usr/bin/env").stdout
    given = asyncio.run(run(["/usr/bin/env"], timeout_s=LONG_S, env={"ONLY": "this"})).stdout.decode().splitlines()
    assert sorted(line.partition("=")[0] for line in given) == [MARK, "ONLY"]
