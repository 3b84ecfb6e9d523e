"""The tool wire over MCP: the SDK's low-level server and streamable HTTP, both protocol eras, before recorded tools.

Calls and listings are answered in a server middleware, from the message as it came: the SDK's own handlers would check
arguments against a model first, refuse what is no object, and sieve schemas. The middleware interface is provisional in
mcp 2.x; this module alone knows it.
"""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final

from evalcore.contracts import PROGRESS, Recorder, ToolResult, Tools
from evalcore.errors import EvalcoreError, InfraError, LimitReached
from evalcore.values.json import JSONObject, JSONValue, parse
from evalcore.wires.http.door import GRACE_S, Door, DoorClosed
from evalcore.wires.http.exchange import Event, Exchange, Send, TooLarge, write_json
from evalcore.wires.http.progress import Progressive
from evalcore.wires.results import outgoing
from evalcore.wires.tools import ConnectionDropped, RecordedTools

if TYPE_CHECKING:
    from mcp.server import Server, ServerRequestContext
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

BODY_CAP: Final = 4 << 20
MAX_SESSIONS: Final = 64  # of one agent: handshake-era clients open one a connection
LIMIT_CODE: Final = -32000  # JSON-RPC leaves -32000 to -32099 to servers
RAW: Final = "evalcore/raw-arguments"  # in `_meta`: arguments that were no JSON, as a harness of our own reports them

_DOOR: Final = "evalcore.door"
_DROPPED: Final = "evalcore.dropped"
_ARGUMENTS: Final = "evalcore.arguments"
_REPLY: Final = "evalcore.reply"
_MODERN: Final = "2026-07-28"
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
_CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"


class ToolDoor(Door):
    """One bridge's tools at `/e/{token}/mcp`. `open` before use. Raises InfraError for tools that MCP cannot list."""

    def __init__(
        self, url: str, forget: Callable[[], None], events: Recorder | None, tools: Tools, server: Server[Any]
    ) -> None:
        super().__init__(url, forget, events)
        _refuse_unlistable(tools)
        self._tools = tools
        self._manager = _manager(server)
        self._ended = asyncio.Event()
        self._sessions: asyncio.Task[None] | None = None
        self._client = ""
        self._met: list[Any] = []  # the handshake era's sessions, to which changes are told
        self._listening: ListenHandler | None = None
        self._bus: InMemorySubscriptionBus | None = None
        self._telling: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Begin to hold the door's MCP sessions: a manager of its own, so that they all end with the door."""
        if isinstance(self._tools, RecordedTools):
            self._tools.watch(self._changed)
        ready = asyncio.Event()
        self._sessions = asyncio.create_task(self._hold_sessions(ready))
        await ready.wait()

    async def _hold_sessions(self, ready: asyncio.Event) -> None:
        async with self._manager.run():
            ready.set()
            await self._ended.wait()

    async def close(self) -> None:
        """End the calls under way, then the sessions."""
        await super().close()
        self._ended.set()
        if self._sessions is not None:
            await asyncio.gather(self._sessions, return_exceptions=True)  # whatever broke in them, they are over

    async def serve(self, exchange: Exchange) -> None:
        """One MCP request."""
        if exchange.rest != "mcp":
            await exchange.reply(404, _error(-32600, "not found"))
            return
        try:
            body = await exchange.body(BODY_CAP) if exchange.method == "POST" else b""
        except TooLarge:
            await exchange.reply(413, _error(-32600, f"the request is larger than {BODY_CAP} bytes"))
            return
        if _SURROGATE.search(body) is not None:
            body = self._set_aside(exchange, body)
        exchange.scope[_DOOR] = self
        exchange.scope[_REPLY] = reply = Progressive(exchange)
        await self._manager.handle_request(exchange.scope, exchange.replay(body), self._unless_dropped(reply))

    @staticmethod
    def _unless_dropped(reply: Progressive) -> Send:
        """Sends what the SDK answers; of a connection that is to be dropped only the head, and then it is closed."""
        exchange = reply.exchange

        async def send(message: Event) -> None:
            if _DROPPED not in exchange.scope:
                await reply.send(message)
            elif message["type"] == "http.response.start":
                await exchange.send({**message, "headers": [(b"content-length", b"1000000")]})

        return send

    @staticmethod
    def _set_aside(exchange: Exchange, body: bytes) -> bytes:
        """The body without a call's arguments, which are kept aside: the SDK's parser refuses lone surrogates."""
        try:
            message = parse(body)
        except ValueError:
            return body
        params = message.get("params") if isinstance(message, dict) and message.get("method") == "tools/call" else None
        if not isinstance(params, dict) or "arguments" not in params:
            return body
        exchange.scope[_ARGUMENTS] = params.pop("arguments")
        return write_json(message)

    # ── what the middleware asks ─────────────────────────────────────────────────────────────────────────────────────

    def listed(self, ctx: ServerRequestContext[Any, Any]) -> dict[str, Any]:
        """The tools on offer, their schemas untouched."""
        self._note_client(ctx)
        tools: list[JSONValue] = [spec.as_json() for spec in self._tools.list()]
        return {"tools": tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}

    async def called(self, ctx: ServerRequestContext[Any, Any]) -> dict[str, Any]:
        """One call, its arguments as they came. Raises MCPError where the answer is no result."""
        self._note_client(ctx)
        params: Mapping[str, Any] = ctx.params or {}
        name = params.get("name")
        if not isinstance(name, str):
            raise _mcp_error(-32602, "a call needs `name`, a text")
        reply: Progressive | None = ctx.request.scope.get(_REPLY) if ctx.request is not None else None
        try:
            made = self._made(name, params, ctx, reply)
            result = await (self.carry_out(made) if reply is None else self._while_heard(made, name, reply))
        except LimitReached as error:
            raise _mcp_error(LIMIT_CODE, error.message, {"limit": error.limit}) from None
        except ConnectionDropped:
            if ctx.request is not None:
                ctx.request.scope[_DROPPED] = True
            raise _mcp_error(-32603, "the tool server failed") from None
        except (EvalcoreError, DoorClosed):  # the meter knows; the agent need not know how the machine is built
            raise _mcp_error(-32603, "the tool server failed") from None
        return self._wire_form(name, result, modern=ctx.protocol_version >= _MODERN)

    async def _while_heard(self, work: Coroutine[Any, Any, ToolResult], name: str, reply: Progressive) -> ToolResult:
        """A call that ends when its client hangs up: nobody would read its answer, and its turn is another's."""
        call = asyncio.ensure_future(self.carry_out(work))
        gone = asyncio.ensure_future(reply.exchange.hung_up())
        try:
            await asyncio.wait((call, gone), return_when=asyncio.FIRST_COMPLETED)
            if call.done():
                return call.result()
            self.tell("wire.hung_up", bridge=self._tools.bridge, tool=name)
            raise DoorClosed
        finally:
            gone.cancel()
            if not call.done():
                call.cancel()
                await asyncio.wait((call,), timeout=GRACE_S)

    async def _made(
        self, name: str, params: Mapping[str, Any], ctx: ServerRequestContext[Any, Any], reply: Progressive | None
    ) -> ToolResult:
        meta = params.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        if isinstance(token, (str, int)) and reply is not None and reply.can_stream():
            PROGRESS.set(functools.partial(reply.progress, token))  # of this call alone: it is a task of its own
        raw = meta.get(RAW) if isinstance(meta, dict) else None
        if isinstance(raw, str):
            return self._tools.refuse(name, raw, "malformed")
        scope = ctx.request.scope if ctx.request is not None else {}
        return await self._tools.call(name, scope[_ARGUMENTS] if _ARGUMENTS in scope else params.get("arguments", {}))

    def _wire_form(self, name: str, result: ToolResult, *, modern: bool) -> dict[str, Any]:
        out = outgoing(result)
        if out.mended:
            self.tell("wire.mended", bridge=self._tools.bridge, tool=name)
        value: dict[str, Any] = {"content": out.content, "isError": result.error, "resultType": "complete"}
        if out.structured is not None and (modern or isinstance(out.structured, dict)):  # older revisions: objects only
            value["structuredContent"] = out.structured
        return value

    def meet(self, ctx: ServerRequestContext[Any, Any]) -> None:
        """Remember who says `initialize`: later messages of that era do not repeat it."""
        self._met.append(ctx.session)
        self._client = _name_of((ctx.params or {}).get("clientInfo"))

    async def listen(self, ctx: ServerRequestContext[Any, Any], params: Any) -> Any:
        """A stream of the newest revision, on which changes are told until the client has enough."""
        if self._listening is None:
            from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

            self._bus = InMemorySubscriptionBus()
            self._listening = ListenHandler(self._bus, max_subscriptions=MAX_SESSIONS)
        return await self.carry_out(self._listening(ctx, params))

    def _changed(self) -> None:
        """What is on offer has changed: whoever listens is told."""
        if self._is_closed():
            return
        telling = asyncio.ensure_future(self._tell_of_change())
        self._telling.add(telling)
        telling.add_done_callback(self._telling.discard)

    async def _tell_of_change(self) -> None:
        for session in self._met:
            await session.send_tool_list_changed()
        if self._bus is not None:
            from mcp.server.subscriptions import ToolsListChanged

            await self._bus.publish(ToolsListChanged())

    def _note_client(self, ctx: ServerRequestContext[Any, Any]) -> None:
        meta = (ctx.params or {}).get("_meta")
        info = meta.get(_CLIENT_INFO) if isinstance(meta, dict) else None
        client = _name_of(info) if info is not None else self._client
        self.tell("wire.client", wire="tools", bridge=self._tools.bridge, protocol=ctx.protocol_version, client=client)


def _refuse_unlistable(tools: Tools) -> None:
    """A schema that clients refuse costs an agent every tool, and would be counted as its failure."""
    for spec in tools.list():
        if spec.input_schema.get("type") != "object":
            raise InfraError(f"tool {spec.name!r} of bridge {tools.bridge!r}: MCP needs an input schema of type object")


def make_server(version: str) -> Server[Any]:
    """The MCP server behind every tool door of a process; each request carries its door."""
    from mcp.server import Server
    from mcp.server.lowlevel.server import NotificationOptions

    server: Server[Any] = Server(
        "evalcore",
        version=version,
        # With None there is nothing to check arguments' header copies against, and no extra `tools/list` to find out.
        get_tool_input_schema=lambda _: None,
        on_list_tools=_unreached,
        on_call_tool=_unreached,
        on_subscriptions_listen=_listened,
    )
    # Who asks for it is told of changes; the handshake era's clients must be told beforehand that they may be.
    options = functools.partial(server.create_initialization_options, NotificationOptions(tools_changed=True))
    server.create_initialization_options = options  # type: ignore[method-assign]
    info = {"name": "evalcore", "version": version}

    async def answer(ctx: ServerRequestContext[Any, Any], call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        """Answer listings and calls from the door that the request came through; the SDK does the rest."""
        door = ctx.request.scope.get(_DOOR) if ctx.request is not None else None
        if not isinstance(door, ToolDoor) or ctx.method not in ("tools/call", "tools/list"):
            if isinstance(door, ToolDoor) and ctx.method == "initialize":
                door.meet(ctx)
            return await call_next(ctx)
        result = door.listed(ctx) if ctx.method == "tools/list" else await door.called(ctx)
        if ctx.protocol_version >= _MODERN:
            result["_meta"] = {_SERVER_INFO: info}
        return result

    server.middleware[:] = [answer]  # without the SDK's tracing: the recorder sees it all, and spans cost time
    return server


async def _listened(ctx: ServerRequestContext[Any, Any], params: Any) -> Any:
    door = ctx.request.scope.get(_DOOR) if ctx.request is not None else None
    if not isinstance(door, ToolDoor):
        raise _mcp_error(-32601, "nothing to listen to")
    try:
        return await door.listen(ctx, params)
    except DoorClosed:
        raise _mcp_error(-32603, "the trial is over") from None


async def _unreached(_ctx: ServerRequestContext[Any, Any], _params: object) -> Any:
    """Registered so that the server announces tools; the middleware answers before it."""
    raise RuntimeError("the middleware answers this")


def _manager(server: Server[Any]) -> StreamableHTTPSessionManager:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.server.transport_security import TransportSecuritySettings

    return StreamableHTTPSessionManager(
        server,
        json_response=True,  # a third of the cost of an event stream for each reply
        security_settings=TransportSecuritySettings(allowed_hosts=["127.0.0.1:*", "localhost:*"], allowed_origins=[]),
        session_idle_timeout=None,  # the door's end is the sessions' end
        max_request_body_size=BODY_CAP,
        max_sessions=MAX_SESSIONS,
    )


def _mcp_error(code: int, message: str, data: JSONObject | None = None) -> Exception:
    from mcp.shared.exceptions import MCPError

    return MCPError(code=code, message=message, data=data)


def _error(code: int, message: str) -> bytes:
    return write_json({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}})


def _name_of(info: object) -> str:
    """`name version` of an MCP implementation, as far as it says."""
    if not isinstance(info, dict):
        return ""
    return f"{str(info.get('name', ''))[:100]} {str(info.get('version', ''))[:100]}".strip()
