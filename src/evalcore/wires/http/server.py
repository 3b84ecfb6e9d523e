"""The wire server: one loopback HTTP server per process, started when first needed, with a door per wire of a trial.

    /e/{token}/mcp          the tool wire: MCP, streamable HTTP, every revision that the SDK serves
    /m/{token}/v1/...       the model wire: OpenAI Chat Completions and Responses, Anthropic Messages

Tokens are 128 random bits, live as long as their door, and are never logged. A foreign Host or any Origin is refused
before a token is looked at: no page in a browser on this machine may reach a wire.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from evalcore.contracts import Recorder, ServedChannel, Tools
from evalcore.errors import InfraError
from evalcore.wires.http.door import Door, DoorClosed
from evalcore.wires.http.exchange import Exchange, Receive, Scope, Send, header

if TYPE_CHECKING:
    import uvicorn
    from mcp.server import Server

HOST: Final = "127.0.0.1"
KEEP_ALIVE_S: Final = 900  # longer than an agent thinks: a connection closed under its next request would be our fault
STOP_S: Final = 2  # what connections still open get to end when the server stops

NOT_FOUND: Final = b'{"error":{"message":"not found","type":"invalid_request_error","param":null,"code":"not_found"}}'

_log = logging.getLogger("evalcore")


class WireServer:
    """Serves the wires of a process's trials. `start` may be called by everybody who needs it; `close` ends it all."""

    def __init__(self, *, version: str = "") -> None:
        self._version = version
        self._doors: dict[tuple[str, str], Door] = {}
        self._hosts: frozenset[bytes] = frozenset()
        self._base = ""
        self._uvicorn: uvicorn.Server | None = None
        self._task: asyncio.Task[None] | None = None
        self._mcp: Server[Any] | None = None
        self._starting = asyncio.Lock()

    async def start(self) -> None:
        """Listen, on a port of the system's choice. Raises InfraError. Once started, does nothing."""
        async with self._starting:
            if self._task is None:
                await self._listen()

    async def serve_tools(self, tools: Tools, events: Recorder | None = None) -> Door:
        """Open a door to one bridge's tools. What the transport itself does is told to `events`."""
        from evalcore.wires.http.tool_door import ToolDoor, make_server

        await self.start()
        async with self._starting:
            if self._mcp is None:  # the SDK takes seconds to import: trials that run meanwhile go on
                self._mcp = await asyncio.to_thread(make_server, self._version)
        token, forget = self._token("e")
        door = ToolDoor(f"{self._base}/e/{token}/mcp", forget, events, tools, self._mcp)
        await door.open()
        self._doors["e", token] = door
        return door

    async def serve_channel(self, channel: ServedChannel, events: Recorder | None = None) -> Door:
        """Open a door to one role's model."""
        from evalcore.wires.http.model_door import ModelDoor

        await self.start()
        token, forget = self._token("m")
        door = ModelDoor(f"{self._base}/m/{token}/v1", forget, events, channel)
        self._doors["m", token] = door
        return door

    def serve_done(self, over: Callable[[str | None], bool]) -> Door:
        """Open an address at which a person says that a turn is over: `over` is given the answer. Once started."""
        from evalcore.wires.http.done_door import DoneDoor

        token, forget = self._token("d")
        door = DoneDoor(f"{self._base}/d/{token}", forget, over)
        self._doors["d", token] = door
        return door

    async def close(self) -> None:
        """Close every door, and stop listening. Idempotent."""
        for door in tuple(self._doors.values()):
            await door.close()
        if self._uvicorn is not None and self._task is not None:
            self._uvicorn.should_exit = True
            await asyncio.gather(self._task, return_exceptions=True)
        self._uvicorn = self._task = None

    def _token(self, kind: str) -> tuple[str, Callable[[], None]]:
        """A new token, and what forgets it."""
        token = secrets.token_hex(16)

        def forget() -> None:
            self._doors.pop((kind, token), None)

        return token, forget

    async def _listen(self) -> None:
        try:
            # With protocol 0, asyncio leaves Nagle's algorithm on, and each reply waits 40 ms for a delayed ACK.
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            listener.bind((HOST, 0))
        except OSError as error:
            raise InfraError(f"the wires cannot listen on {HOST}: {error.strerror}") from error
        port = listener.getsockname()[1]
        self._base = f"http://{HOST}:{port}"
        self._hosts = frozenset({f"{HOST}:{port}".encode(), f"localhost:{port}".encode()})
        self._uvicorn = _server(self._answer)
        self._task = asyncio.create_task(self._uvicorn.serve(sockets=[listener]))
        while not self._uvicorn.started:
            if self._task.done():
                raise InfraError("the wire server ended before it began")
            await asyncio.sleep(0.005)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application. Nothing that happens in it reaches the server's own log, which would show addresses."""
        if scope["type"] != "http":
            return
        kind, _, rest = str(scope["path"])[1:].partition("/")
        token, _, rest = rest.partition("/")
        exchange = Exchange(scope, receive, send, rest)
        refusal = self._refusal(scope)
        door = self._doors.get((kind, token))
        if refusal is not None or door is None:
            await exchange.reply(*(refusal or (404, NOT_FOUND)))
            return
        try:
            await door.serve(exchange)
        except DoorClosed:
            if not exchange.status:
                await exchange.reply(404, NOT_FOUND)
        except Exception as error:  # noqa: BLE001 - a bug in a door must not end the server
            _log.exception("a request on a wire failed: %s", type(error).__name__)
            if not exchange.status:
                await exchange.reply(500, b'{"error":{"message":"internal error"}}')
        if exchange.status >= 400:
            door.tell("wire.refused", wire="tools" if kind == "e" else "model", status=exchange.status)

    def _refusal(self, scope: Scope) -> tuple[int, bytes] | None:
        """Why a request is not even looked at."""
        if header(scope, b"host") not in self._hosts:
            return 421, b'{"error":{"message":"misdirected: this server is for agents on this machine"}}'
        if header(scope, b"origin") is not None:
            return 403, b'{"error":{"message":"forbidden: no page in a browser may call this"}}'
        return None


def _server(app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> uvicorn.Server:
    """A uvicorn server that leaves signals and logging to the program it is part of."""
    import uvicorn

    class Quiet(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    config = uvicorn.Config(
        app,
        interface="asgi3",
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=STOP_S,
    )
    return Quiet(config)
