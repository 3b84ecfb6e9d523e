"""Run a command to its end: bounded in time and memory, and nothing of it is left behind."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import attrs

from evalcore.errors import FatalInfraError
from evalcore.process.running import Running, spawn
from evalcore.process.tree import GRACE_S

_LONGEST_LINE = 1 << 16
_DRAIN_S = 2.0  # after the tree is dead only a process that escaped it can still hold a pipe


@attrs.frozen
class Completed:
    """What a command left. Truncated output keeps its first and last halves; `wall_s` is in seconds."""

    argv: tuple[str, ...]
    exit_code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    truncated: bool
    timed_out: bool
    wall_s: float


async def run(
    argv: Sequence[str],
    *,
    stdin: bytes = b"",
    timeout_s: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None,
    max_output_bytes: int = 1 << 20,
    stdout_to: Path | None = None,
    max_file_bytes: int = 1 << 30,
    on_line: Callable[[str], None] | None = None,
    grace_s: float = GRACE_S,
) -> Completed:
    """Run `argv` and end whatever it leaves, on every path: exit, timeout (`timed_out`), cancellation, an error here.

    Each output is kept up to `max_output_bytes`, or standard output in the file `stdout_to` up to `max_file_bytes`; the
    rest is read and dropped. `on_line` gets the lines of both as they come. Raises InfraError if it cannot start.
    """
    failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    file = _open(stdout_to) if stdout_to else None
    try:
        out = _Output(max_file_bytes if file else max_output_bytes, file, on_line, failure)
        err = _Output(max_output_bytes, None, on_line, failure)
        began = time.monotonic()
        child = await spawn(argv, cwd=cwd, env=env, stdin=bool(stdin), on_stdout=out.feed, on_stderr=err.feed)
        try:
            if stdin:
                child.write(stdin)
                child.close_stdin()
            timed_out = not await _exited(child, failure, timeout_s)
            wall_s = time.monotonic() - began
            await child.kill_tree(grace_s)
            await child.drained(_DRAIN_S)
        finally:
            await child.close(grace_s)
        out.finish()
        err.finish()
        if failure.done():
            failure.result()
    finally:
        if not failure.cancel():
            failure.exception()  # seen: another error may be on its way
        if file:
            file.close()
    ended = child.exit
    return Completed(
        argv=tuple(argv),
        exit_code=ended.exit_code if ended else None,
        signal=ended.signal if ended else None,
        stdout=out.kept(),
        stderr=err.kept(),
        truncated=out.truncated or err.truncated,
        timed_out=timed_out,
        wall_s=wall_s,
    )


async def _exited(child: Running, failure: asyncio.Future[None], timeout_s: float) -> bool:
    exited = asyncio.ensure_future(child.wait())
    try:
        watched: set[asyncio.Future[Any]] = {exited, failure}
        done, _ = await asyncio.wait(watched, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        exited.cancel()
    if failure in done:
        failure.result()
    return exited in done


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("wb")
    except OSError as error:
        raise FatalInfraError(f"cannot write {path}: {error.strerror}") from error


class _Output:
    """One stream of output: kept within a bound, or written to a file within a bound, and passed on line by line."""

    def __init__(
        self, limit: int, file: BinaryIO | None, on_line: Callable[[str], None] | None, failure: asyncio.Future[None]
    ) -> None:
        self.truncated = False
        self._limit = limit
        self._file = file
        self._on_line = on_line
        self._failure = failure
        self._written = 0
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._line = bytearray()

    def feed(self, data: bytes) -> None:
        """Take one piece; an error of a callback or the disk goes to `failure`, since the event loop calls this."""
        try:
            if self._file:
                self._store(self._file, data)
            else:
                self._keep(data)
            if self._on_line:
                self._split(data, self._on_line)
        except Exception as error:  # noqa: BLE001 - `run` raises it again, whatever it is
            self._on_line = None
            if not self._failure.done():
                self._failure.set_exception(error)

    def finish(self) -> None:
        """Pass on a last line that has no end."""
        if self._line and self._on_line:
            self._on_line(self._line.decode(errors="replace"))
            self._line.clear()

    def kept(self) -> bytes:
        """What was kept in memory: all of it, or its first and last halves."""
        tail = b"".join(self._tail)
        allowed = self._limit - len(self._head)
        return bytes(self._head) + tail[max(0, len(tail) - allowed) :]

    def _store(self, file: BinaryIO, data: bytes) -> None:
        room = self._limit - self._written
        self.truncated = self.truncated or len(data) > room
        try:
            self._written += file.write(data[:room])
        except OSError as error:
            raise FatalInfraError(f"cannot write the output of a command: {error.strerror}") from error

    def _keep(self, data: bytes) -> None:
        room = self._limit // 2 - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        self._tail.append(data)
        self._tail_size += len(data)
        allowed = self._limit - len(self._head)
        self.truncated = self.truncated or self._tail_size > allowed
        while self._tail and self._tail_size - len(self._tail[0]) >= allowed:
            self._tail_size -= len(self._tail.popleft())

    def _split(self, data: bytes, on_line: Callable[[str], None]) -> None:
        self._line += data
        *lines, rest = self._line.split(b"\n")
        if len(rest) > _LONGEST_LINE:
            lines.append(rest)
            rest = bytearray()
        self._line = rest
        for line in lines:
            on_line(line.removesuffix(b"\r").decode(errors="replace"))
