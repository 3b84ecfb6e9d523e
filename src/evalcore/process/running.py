"""A child process with pipes, in a session of its own, that can be ended with all its descendants."""

from __future__ import annotations

import asyncio
import signal
from asyncio.subprocess import PIPE
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import attrs

from evalcore.errors import InfraError
from evalcore.process.environment import clean_environment
from evalcore.process.tree import GRACE_S, Tree, kill_tree_async, new_mark, tree_of

_STREAM_LIMIT = 1 << 18


@attrs.frozen
class Exit:
    """How a process ended: an exit code, or the number of the signal that ended it."""

    exit_code: int | None
    signal: int | None


class Running:
    """A live child. `stdout` and `stderr` can be read where no callback takes them; who spawns it must `close` it."""

    def __init__(self, transport: asyncio.SubprocessTransport, protocol: _Protocol, tree: Tree) -> None:
        self.pid = tree.pid
        self.tree = tree
        self.stdout = protocol.readers[1]
        self.stderr = protocol.readers[2]
        self._transport = transport
        self._protocol = protocol
        self._swept = False

    def write(self, data: bytes) -> None:
        """Queue bytes for its standard input; they are lost, as on any pipe, once it no longer reads."""
        pipe = self._stdin()
        if pipe is not None and not pipe.is_closing():
            pipe.write(data)

    def close_stdin(self) -> None:
        """End its standard input after what was written."""
        pipe = self._stdin()
        if pipe is not None and not pipe.is_closing():
            pipe.write_eof()

    def unsent(self) -> int:
        """Bytes written that it has not taken yet."""
        pipe = self._stdin()
        return 0 if pipe is None else pipe.get_write_buffer_size()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the first process only."""
        if not self._protocol.exited.done():
            self._transport.send_signal(number)

    @property
    def exit(self) -> Exit | None:
        """How it ended, or None while it runs."""
        code = self._transport.get_returncode()
        if code is None or not self._protocol.exited.done():
            return None
        return Exit(None, -code) if code < 0 else Exit(code, None)

    async def wait(self) -> Exit:
        """Wait for the first process to end; descendants may still hold its pipes."""
        await asyncio.wait({self._protocol.exited})
        ended = self.exit
        assert ended is not None
        return ended

    async def drained(self, timeout_s: float) -> bool:
        """Wait up to `timeout_s` seconds until nobody holds its standard output and error any more."""
        _, pending = await asyncio.wait(self._protocol.ended.values(), timeout=timeout_s)
        return not pending

    async def kill_tree(self, grace_s: float = GRACE_S) -> None:
        """End it and all its descendants; returns when they are gone, even if the caller is cancelled meanwhile."""
        if not self._swept:
            await uncancelled(self._sweep(grace_s))

    async def close(self, grace_s: float = GRACE_S) -> None:
        """Kill the tree and release the pipes. Idempotent."""
        try:
            await self.kill_tree(grace_s)
        finally:
            self._transport.close()

    async def _sweep(self, grace_s: float) -> None:
        await kill_tree_async(self.tree, grace_s)
        # Not earlier: a sweep that failed may be tried again. Afterwards the pid can be anybody's.
        await asyncio.wait({self._protocol.exited}, timeout=1.0)
        self._swept = True

    def _stdin(self) -> asyncio.WriteTransport | None:
        return cast("asyncio.WriteTransport | None", self._transport.get_pipe_transport(0))


class _Protocol(asyncio.SubprocessProtocol):
    """Passes output on. `process_exited` is used since `Process.wait` of some releases waits for the pipes as well."""

    def __init__(self, callbacks: Mapping[int, Callable[[bytes], None] | None]) -> None:
        loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[None] = loop.create_future()
        self.ended: dict[int, asyncio.Future[None]] = {fd: loop.create_future() for fd in callbacks}
        self.readers = {fd: asyncio.StreamReader(limit=_STREAM_LIMIT) for fd in callbacks}
        self._callbacks = callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        for fd, reader in self.readers.items():
            pipe = cast(asyncio.SubprocessTransport, transport).get_pipe_transport(fd)
            if pipe is not None:
                reader.set_transport(pipe)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        callback = self._callbacks[fd]
        if callback is None:
            self.readers[fd].feed_data(data)
        else:
            callback(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        ended = self.ended.get(fd)
        if ended is not None and not ended.done():
            self.readers[fd].feed_eof()
            ended.set_result(None)

    def process_exited(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)


async def spawn(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None,
    stdin: bool = True,
    on_stdout: Callable[[bytes], None] | None = None,
    on_stderr: Callable[[bytes], None] | None = None,
) -> Running:
    """Start `argv` in a new session; `env` is all it sees (None: the allow-list). Raises InfraError if it cannot start.

    A callback gets each piece of output as it comes and must not raise; without one, read the stream, or it fills up.
    """
    mark, environment = new_mark(clean_environment() if env is None else env)
    protocol = _Protocol({1: on_stdout, 2: on_stderr})
    start = asyncio.get_running_loop().subprocess_exec(
        lambda: protocol,
        *argv,
        stdin=PIPE if stdin else asyncio.subprocess.DEVNULL,
        cwd=cwd,
        env=environment,
        start_new_session=True,
    )
    # Cancelled between the fork and here, a child would be nobody's: the start is brought to its end first.
    task = asyncio.ensure_future(start)
    try:
        transport, _ = await asyncio.shield(task)
    except asyncio.CancelledError:
        await uncancelled(_abandon(task, mark))
        raise
    except (OSError, ValueError) as error:
        raise InfraError(f"cannot start {argv[0]!r}{_where(cwd)}: {error}") from error
    return Running(transport, protocol, tree_of(transport.get_pid(), mark))


async def uncancelled(work: Coroutine[Any, Any, None]) -> None:
    """Finish `work` even if this task is cancelled meanwhile, then let the cancellation through."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled


async def _abandon(start: asyncio.Future[tuple[asyncio.SubprocessTransport, _Protocol]], mark: str) -> None:
    try:
        transport, protocol = await start
    except (OSError, ValueError):
        return  # it never started
    await Running(transport, protocol, tree_of(transport.get_pid(), mark)).close(grace_s=0.0)


def _where(cwd: Path | None) -> str:
    return f" in {cwd}" if cwd is not None and not cwd.is_dir() else ""
