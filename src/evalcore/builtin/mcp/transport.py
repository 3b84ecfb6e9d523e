"""The two ways to a server, as transports of the MCP SDK's client: a program of our own runner's, and capped HTTP.

What a server sends is bounded before it is in memory: a message over the cap becomes an error of the request that it
should have answered (a trial's calls are made one at a time, so that is known), and its bytes are dropped as they come.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from evalcore.process.running import Running, spawn
from evalcore.values.json import parse

if TYPE_CHECKING:
    import httpx2

MESSAGE_CAP: Final = 16 << 20  # bytes of one message: over it, a result is dropped and said to be
STDERR_CAP: Final = 64 << 10  # bytes of a server's standard error that the trace keeps, from its two ends
TOO_LARGE_TEXT: Final = "evalcore: larger than allowed:"
TOO_LARGE: Final = -32070  # the code of the error that stands for a dropped message; JSON-RPC leaves it to us
CONNECT_S: Final = 10.0
SILENT_S: Final = 3600.0  # between two bytes of an answer: the call's own deadline ends it earlier
END_S: Final = 0.25  # what a server gets between SIGTERM and SIGKILL: the trial is over, and nobody reads it any more


class Kept:
    """The first and the last bytes of a stream, and how many there were."""

    def __init__(self, cap: int = STDERR_CAP) -> None:
        self.total = 0
        self._half = cap // 2
        self._head = bytearray()
        self._tail = bytearray()

    def feed(self, data: bytes) -> None:
        """Some more of it."""
        self.total += len(data)
        room = max(self._half - len(self._head), 0)
        self._head += data[:room]
        self._tail += data[room:]
        del self._tail[: -self._half]

    def text(self) -> str:
        """What is kept, with a mark where something is missing."""
        missing = self.total - len(self._head) - len(self._tail)
        mark = f"\n[evalcore: cut here, {missing} bytes]\n".encode() if missing > 0 else b""
        return (bytes(self._head) + mark + bytes(self._tail)).decode(errors="replace")

    def last_line(self) -> str:
        """The last line that says something, for an error's text."""
        lines = [line.strip() for line in self.text().splitlines() if line.strip()]
        return lines[-1][:300] if lines else ""


@frozen
class Dropped:
    """A message that was too large, of this many bytes."""

    size: int


async def lines_of(reader: asyncio.StreamReader, cap: int) -> AsyncIterator[bytes | Dropped]:
    """The lines of a stream; of one over the cap, only its size."""
    line, size = bytearray(), 0
    while data := await reader.read(1 << 16):
        *ends, rest = data.split(b"\n")
        for piece in ends:
            size += len(piece)
            if size > cap:
                yield Dropped(size)
            elif size:
                yield bytes(line) + piece
            line, size = bytearray(), 0
        size += len(rest)
        if size > cap:
            line = bytearray()
        else:
            line += rest


class Program:
    """A server's process. `transport` is what the SDK's client is given; `close` ends it with all that it started."""

    def __init__(self, running: Running, stderr: Kept, cap: int) -> None:
        self.pid = running.pid
        self.stderr = stderr
        self._running = running
        self._cap = cap
        self._asked: Any = None  # the id of the request that waits for its answer

    @classmethod
    async def start(cls, argv: tuple[str, ...], env: Mapping[str, str], cwd: Path, cap: int) -> Program:
        """Start it; `cap` bounds each of its messages, in bytes. Raises InfraError."""
        stderr = Kept()
        return cls(await spawn(argv, cwd=cwd, env=env, on_stderr=stderr.feed), stderr, cap)

    def runs(self) -> bool:
        """Whether its first process has not ended."""
        return self._running.exit is None

    async def how_it_ended(self) -> str | None:
        """In words; None while it runs. A pipe closes a moment before its process is seen to end."""
        try:
            ended = await asyncio.wait_for(self._running.wait(), 0.5)
        except TimeoutError:
            return None
        await self._running.drained(0.2)
        how = f"exit code {ended.exit_code}" if ended.signal is None else f"signal {ended.signal}"
        said = self.stderr.last_line()
        return f"ended with {how}" + (f": {said}" if said else "")

    def kill(self) -> None:
        """Signal the process and its group at once, waiting for nothing: `close` finds what is left of its tree."""
        if self.runs():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    async def close(self) -> None:
        """End the process and its descendants; returns when they are gone. Idempotent."""
        await self._running.close(END_S)

    @contextlib.asynccontextmanager
    async def transport(self) -> AsyncIterator[tuple[Any, Any]]:
        """Messages from it and to it, as the SDK's client takes them."""
        import anyio

        to_client, read = anyio.create_memory_object_stream[Any](0)
        write, from_client = anyio.create_memory_object_stream[Any](0)
        async with to_client, read, write, from_client, anyio.create_task_group() as group:
            group.start_soon(self._incoming, to_client)
            group.start_soon(self._outgoing, from_client)
            try:
                yield read, write
            finally:
                group.cancel_scope.cancel()

    async def _incoming(self, stream: Any) -> None:
        """Pass on what it says until it ends; the client sees the end of the stream then."""
        import anyio
        from mcp.shared.message import SessionMessage

        async with stream:
            async for line in lines_of(self._running.stdout, self._cap):
                message = self._message(line)
                if message is None:
                    continue  # what a server prints between its messages: clients go on
                try:
                    await stream.send(SessionMessage(message))
                except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                    return

    def _message(self, line: bytes | Dropped) -> Any:
        from mcp_types import ErrorData, JSONRPCError, jsonrpc_message_adapter
        from pydantic import ValidationError

        if isinstance(line, Dropped):
            said = ErrorData(code=TOO_LARGE, message="too large", data=line.size)
            return None if self._asked is None else JSONRPCError(jsonrpc="2.0", id=self._asked, error=said)
        try:
            return jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError:
            pass
        try:  # lone surrogates, which the fast parser refuses
            return jsonrpc_message_adapter.validate_python(parse(line), by_name=False)
        except (ValidationError, ValueError, RecursionError):
            return None

    async def _outgoing(self, stream: Any) -> None:
        async with stream:
            async for message in stream:
                plain = message.message
                if getattr(plain, "method", None) is not None and getattr(plain, "id", None) is not None:
                    self._asked = plain.id
                self._running.write(plain.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")


# ── HTTP ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def http_client(
    headers: Mapping[str, str], *, local: bool, cap: int, on_status: Callable[[int], None]
) -> httpx2.AsyncClient:
    """A client whose answers are capped. `local`: to this machine, past any proxy and without certificates."""
    import httpx2

    class Counted(httpx2.AsyncByteStream):
        """Ends an answer that grows over the cap."""

        def __init__(self, inner: Any) -> None:
            self._inner = inner

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for part in self._inner:
                size += len(part)
                if size > cap:
                    raise httpx2.StreamError(f"{TOO_LARGE_TEXT} {size} bytes")
                yield part

        async def aclose(self) -> None:
            await self._inner.aclose()

    async def bounded(response: httpx2.Response) -> None:
        on_status(response.status_code)
        response.headers.pop("content-encoding", None)  # none was accepted: what is sent all the same stays as it is
        if "text/event-stream" not in response.headers.get("content-type", ""):  # there the SDK caps each event
            response.stream = Counted(response.stream)

    return httpx2.AsyncClient(
        headers={**headers, "accept-encoding": "identity"},
        timeout=httpx2.Timeout(CONNECT_S, read=SILENT_S),
        event_hooks={"response": [bounded]},
        verify=not local,
        trust_env=not local,
    )
