"""One connection to one MCP server: the SDK's client, held open by a task of its own, with nothing lost on the way.

Listings and results are taken as they came over the wire; the SDK checks them against the revision and drops nothing.
A server's requests to its client are answered as those of a client without a person: elicitation is declined, sampling
and roots are not offered. All of them go to `events`, which the trial sets when it takes the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit

from attrs import Factory, frozen

from evalcore import __version__
from evalcore.builtin.mcp.transport import MESSAGE_CAP, TOO_LARGE, TOO_LARGE_TEXT, Program, http_client
from evalcore.contracts import Progress
from evalcore.errors import InfraError
from evalcore.values.json import JSONObject, JSONValue
from evalcore.wires.meter import short

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

START_S: Final = 60.0  # a server that is not ready by then is broken
LIST_S: Final = 30.0
ALIVE_S: Final = 10.0  # a server that does not answer a ping by then has hung
ROUNDS: Final = 5  # of input that a server asks for, and does not get
MAX_TOOLS: Final = 2_000
MAX_PAGES: Final = 100

Events: TypeAlias = Callable[[str, JSONObject], None]
# What the SDK says in place of an answer that is none of the protocol's.
_OF_HTTP: Final = ("Not Found", "Session terminated", "Server returned an error response")

logging.getLogger("mcp").addHandler(logging.NullHandler())  # what it warns of is told where it matters


class CallFailed(Exception):
    """The server answered a call with an error of the protocol, or with what is none: the text is for the agent."""


class NotAnswered(Exception):
    """A call whose deadline passed while its server is alive."""


@frozen
class Place:
    """Where a server is: a program, or an address."""

    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = Factory(dict)
    cwd: Path = Path()
    url: str = ""
    headers: Mapping[str, str] = Factory(dict)


class Connection:
    """A server, connected. `open` before use; whoever opens it closes it."""

    def __init__(self, name: str, place: Place) -> None:
        self.name = name
        self.tools: list[JSONObject] = []
        self.server: JSONObject = {}  # what it says of itself: name, version, protocol, instructions
        self.events: Events = _nobody
        self.program: Program | None = None
        self._place = place
        self._session: ClientSession | None = None
        self._ready: asyncio.Future[None] | None = None
        self._end = asyncio.Event()
        self._holder: asyncio.Task[None] | None = None
        self._relist = False
        self._status = 0  # of the last answer over HTTP

    # ── opening and closing ──────────────────────────────────────────────────────────────────────────────────────────

    async def open(self) -> None:
        """Start or reach the server, agree on a revision, list its tools. Raises InfraError with one clear line."""
        self._ready = asyncio.get_running_loop().create_future()
        self._ready.add_done_callback(lambda ready: ready.cancelled() or ready.exception())  # seen, whoever still waits
        # The SDK's scopes must be left by the task that entered them: a trial and a spare's keeper are different ones.
        self._holder = asyncio.create_task(self._hold(self._ready))
        try:
            await asyncio.wait_for(asyncio.shield(self._ready), START_S)
        except TimeoutError:
            await self.close()
            raise self._broken(f"was not ready within {START_S:g} s") from None
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Leave the server; a program is ended with all that it started. Idempotent."""
        self._end.set()
        if self.program is not None:  # first: nothing of a trial outlives it, whatever a polite goodbye would take
            await self.program.close()
        if self._holder is not None:
            _, pending = await asyncio.wait({self._holder}, timeout=2.0)
            if pending:
                self._holder.cancel()
                await asyncio.wait({self._holder}, timeout=2.0)

    async def _hold(self, ready: asyncio.Future[None]) -> None:
        try:
            async with contextlib.AsyncExitStack() as stack:
                try:
                    await self._connect(stack)
                except Exception as error:  # explained while its program is as the error left it
                    raise await self._explained(error) from error
                ready.set_result(None)
                await self._end.wait()
        except BaseException as error:
            self._session = None
            if ready.done():
                if isinstance(error, asyncio.CancelledError):
                    raise
                return  # it was in use: the call under way tells what happened
            told = _innermost(error)
            ready.set_exception(told if isinstance(told, InfraError) else await self._explained(error))
            if isinstance(error, (asyncio.CancelledError, SystemExit, KeyboardInterrupt)):
                raise

    async def _connect(self, stack: contextlib.AsyncExitStack) -> None:
        await asyncio.to_thread(_load)  # a second of imports: trials that run meanwhile go on
        import mcp_types as types
        from mcp.client.client import Client

        client = Client(
            await self._transport(stack),
            client_info=types.Implementation(name="evalcore", version=__version__),
            elicitation_callback=self._declined,
            logging_callback=self._logged,
            message_handler=self._notified,
            cache=None,
        )
        await stack.enter_async_context(client)
        self._session = session = client.session
        info = session.server_info
        self.server = {
            "name": info.name if info else "",
            "version": info.version if info else "",
            "protocol": session.protocol_version or "",
        }
        if session.instructions:
            self.server["instructions"] = short(session.instructions)
        capabilities = session.server_capabilities
        self.tools = await self._listed() if capabilities is None or capabilities.tools is not None else []

    async def _transport(self, stack: contextlib.AsyncExitStack) -> Any:
        if self._place.argv:
            place = self._place
            self.program = await Program.start(place.argv, place.env, place.cwd, MESSAGE_CAP)
            stack.push_async_callback(self.program.close)
            return self.program.transport()
        from mcp.client.streamable_http import streamable_http_client

        local = urlsplit(self._place.url).hostname in ("127.0.0.1", "localhost", "::1")
        secure = urlsplit(self._place.url).scheme == "https"
        client = http_client(
            self._place.headers, local=local and not secure, cap=MESSAGE_CAP, on_status=self._note_status
        )
        await stack.enter_async_context(client)
        return streamable_http_client(self._place.url, http_client=client, max_sse_event_size=MESSAGE_CAP)

    # ── using it ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def fresh_tools(self) -> list[JSONObject]:
        """The tools as they are now: listed anew where the server said that they changed."""
        if self._relist:
            self._relist = False
            self.tools = await self._listed()
        return self.tools

    async def call(
        self, name: str, arguments: JSONObject, timeout_s: float, progress: Progress | None = None
    ) -> JSONObject:
        """A call's result as it came. Raises CallFailed, NotAnswered, InfraError."""
        import mcp_types as types

        responses: Any = None
        state: str | None = None
        for _ in range(ROUNDS):
            params = types.CallToolRequestParams(
                name=name, arguments=arguments, input_responses=responses, request_state=state
            )
            result = await self._asked(types.CallToolRequest(params=params), timeout_s, progress)
            if result.get("resultType") != "input_required":
                return result
            asked = result.get("inputRequests")
            responses = self._refused(asked if isinstance(asked, dict) else {})
            given = result.get("requestState")
            state = given if isinstance(given, str) else None
        raise CallFailed(f"tool {name!r} asks for input again and again, and nobody is here to give it")

    async def _asked(self, request: Any, timeout_s: float, progress: Progress | None = None) -> JSONObject:
        """One request of the agent's. Raises CallFailed, NotAnswered, InfraError."""
        from mcp.shared.exceptions import MCPError
        from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT
        from pydantic import ValidationError

        if self._session is None:
            raise await self._explained(None)
        try:
            return await self._request(request, timeout_s, progress)
        except MCPError as error:
            said = error.error
            if said.code == TOO_LARGE or TOO_LARGE_TEXT in said.message or "exceeded" in said.message:
                raise CallFailed(
                    f"[evalcore: the answer was larger than {MESSAGE_CAP} bytes, and is dropped]"
                ) from None
            if said.code == CONNECTION_CLOSED:
                raise await self._explained(error) from None
            if said.code == REQUEST_TIMEOUT:
                await self._check_alive(timeout_s)
                raise NotAnswered from None
            if self._status >= 400 and said.message in _OF_HTTP:
                raise self._broken(f"answered with HTTP status {self._status}") from None
            raise CallFailed(f"error {said.code}: {short(said.message)}") from None
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            raise CallFailed(f"the server's answer breaks the protocol: {first['loc']}: {first['msg']}") from None

    async def _request(self, request: Any, timeout_s: float, progress: Progress | None = None) -> JSONObject:
        from pydantic import TypeAdapter

        session: Any = self._session  # its types want a model for every result; the adapter gives it as it came
        raw: JSONObject = await session.send_request(
            request,
            TypeAdapter(dict[str, Any]),
            request_read_timeout_seconds=timeout_s,
            progress_callback=progress,
        )
        return raw

    async def _check_alive(self, waited_s: float) -> None:
        """A server that answers is slow; one that does not has hung, and that is no fault of the agent's."""
        import mcp_types as types
        from mcp.shared.exceptions import MCPError

        try:
            await self._request(types.PingRequest(), ALIVE_S)
        except MCPError as error:
            if error.error.code == types.METHOD_NOT_FOUND:
                return  # the newest revision has no ping; it did answer
            raise self._broken(f"did not answer a call within {waited_s:g} s, nor a ping after it") from None

    async def _listed(self) -> list[JSONObject]:
        """Every tool, page by page, as listed."""
        import mcp_types as types

        tools: list[JSONObject] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self._request(
                types.ListToolsRequest(params=types.PaginatedRequestParams(cursor=cursor)), LIST_S
            )
            listed = page.get("tools")
            tools += [tool for tool in listed if isinstance(tool, dict)] if isinstance(listed, list) else []
            following = page.get("nextCursor")
            if not isinstance(following, str) or not following or len(tools) > MAX_TOOLS:
                break
            cursor = following
        if len(tools) > MAX_TOOLS:
            raise self._broken(f"offers more than {MAX_TOOLS} tools")
        return tools

    # ── what a server asks of its client ─────────────────────────────────────────────────────────────────────────────

    def _refused(self, asked: Mapping[str, JSONValue]) -> dict[str, Any]:
        """Every request for input, declined. Raises CallFailed for what cannot be declined."""
        import mcp_types as types

        answers: dict[str, Any] = {}
        for key, request in asked.items():
            method = request.get("method") if isinstance(request, dict) else None
            params = request.get("params") if isinstance(request, dict) else None
            if method != "elicitation/create":
                raise CallFailed(f"the tool asks its client for {method}, which is not offered here")
            self._note_elicitation(params if isinstance(params, dict) else {})
            answers[key] = types.ElicitResult(action="decline")
        return answers

    async def _declined(self, context: Any, params: Any) -> Any:
        import mcp_types as types

        self._note_elicitation(params.model_dump(by_alias=True, mode="json", exclude_none=True))
        return types.ElicitResult(action="decline")

    def _note_elicitation(self, params: Mapping[str, JSONValue]) -> None:
        fields: JSONObject = {"message": short(str(params.get("message", ""))), "answer": "decline"}
        if isinstance(params.get("requestedSchema"), dict):
            fields["schema"] = params["requestedSchema"]
        self.events("env.elicitation", {"server": self.name, **fields})

    async def _logged(self, params: Any) -> None:
        text = params.data if isinstance(params.data, str) else str(params.data)
        self.events("env.log", {"server": self.name, "level": str(params.level), "text": short(text)})

    async def _notified(self, message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            self._relist = True
            self.events("env.tools_changed", {"server": self.name})

    def _note_status(self, status: int) -> None:
        self._status = status

    # ── what went wrong ──────────────────────────────────────────────────────────────────────────────────────────────

    async def _explained(self, error: BaseException | None) -> InfraError:
        """One clear line about a server that cannot be used."""
        if isinstance(error, InfraError):
            return error
        if self.program is not None:
            ended = await self.program.how_it_ended()
            if ended is not None:
                return self._broken(ended)
        inner = _innermost(error) if error is not None else None
        if inner is None:
            return self._broken("is no longer connected")
        said = short(str(inner)).strip()
        return self._broken(f"cannot be used: {said or type(inner).__name__}")

    def _broken(self, why: str) -> InfraError:
        at = f" at {self._place.url.partition('?')[0]}" if self._place.url else ""
        return InfraError(f"MCP server {self.name!r}{at} {why}")


def _nobody(_kind: str, _fields: JSONObject) -> None:
    """Nobody listens yet: the server is a spare."""


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


def _load() -> None:
    import mcp.client.client  # noqa: F401
