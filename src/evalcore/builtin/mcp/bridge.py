"""Bridge `mcp`: real MCP servers behind the tool wire (docs/mcp.md).

The configuration: `servers`, by name, each as `.mcp.json` declares one; `bases`, the folder of the file that each is
from; `files`, put into the trial's folder before a server starts; `folder`, true where there is to be one all the same.
One stack of processes for each trial, from a warm spare where there is one. Tools, arguments and results pass through
as they are.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from evalcore.builtin.mcp.connection import CallFailed, Connection, NotAnswered
from evalcore.builtin.mcp.spares import Spares
from evalcore.builtin.mcp.stack import Recipe, Stack, read_recipe
from evalcore.builtin.sandbox_none import FolderSandbox
from evalcore.contracts import DEADLINE_S, PROGRESS, Driver, OpenTrial, Services, ToolResult, text_result
from evalcore.errors import InfraError
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import BridgeSpec, ToolSpec

CALL_S: Final = 120.0  # a call's own deadline, where the study has none: an error to the agent, if the server is alive
MAX_EVENTS: Final = 200  # of each kind that servers cause: a flood is counted, not stored


class McpBridge:
    """Opens episodes, and keeps spares for those to come."""

    def __init__(self, services: Services, info: Any = None, environ: Mapping[str, str] | None = None) -> None:
        self._services = services
        self._environ = os.environ if environ is None else environ
        self._starting = asyncio.Semaphore(8 * (os.cpu_count() or 1))
        self.spares = Spares(self._stack)
        self._ending: set[asyncio.Task[None]] = set()

    def prepare(self, spec: BridgeSpec) -> None:
        """Begin to make ready for a trial that will be opened soon."""
        try:
            self.spares.prepare(read_recipe(spec.config))
        except InfraError:
            return  # opening it says what is wrong

    async def open(self, spec: BridgeSpec, trial: OpenTrial) -> McpEpisode:
        """An episode with every server's tools. Raises InfraError, ConfigError, each with one clear line."""
        recipe = read_recipe(spec.config)
        stack, warm = await self.spares.take(recipe)
        try:
            return McpEpisode(stack, trial, self._end, warm=warm)
        except BaseException:
            await stack.close()
            raise

    async def ended(self) -> None:
        """Wait until nothing is left of the trials that are over."""
        if self._ending:
            await asyncio.wait(set(self._ending))

    async def close(self) -> None:
        """End every spare, and wait for all that is ending."""
        await self.spares.close()
        await self.ended()

    def _end(self, stack: Stack) -> None:
        """A trial is over: its programs are killed now; finding and removing all that is left is in no trial's way."""
        stack.kill()
        ending = asyncio.ensure_future(stack.close())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    def _stack(self, recipe: Recipe) -> Stack:
        return Stack(recipe, self._services, self._environ, self._starting)


class McpEpisode:
    """The servers of one trial. `revision` counts the changes of what they offer."""

    keeps_deadline = True

    def __init__(self, stack: Stack, trial: OpenTrial, end: Callable[[Stack], None], *, warm: bool) -> None:
        self._stack = stack
        self._end = end
        self._recorder = trial.recorder
        self._told: Counter[str] = Counter()
        self._closed = False
        self.revision = 0
        self._specs: tuple[ToolSpec, ...] = ()
        self._owners: dict[str, Connection] = {}
        for connection in stack.connections.values():
            connection.events = self._event
            fields: JSONObject = {"server": connection.name, **_prefixed(connection.server)}
            self._recorder.record("env.server", **fields, tools=len(connection.tools), spare=warm)
        self._offer()

    @property
    def sandbox(self) -> FolderSandbox | None:
        """The folder that the servers work in, if any is a program."""
        return self._stack.sandbox

    def tools(self) -> Sequence[ToolSpec]:
        """Every server's tools, as each lists them."""
        return self._specs

    async def call(self, name: str, arguments: JSONValue) -> ToolResult:
        """What the server answers. Raises InfraError for one that is gone, hung or was never there."""
        if self._closed:
            return text_result("the trial is over", error=True)
        connection = self._owners.get(name)
        if connection is None:
            return text_result(f"unknown tool: {name}", error=True)
        return await self._made(connection, name, arguments)

    async def ask(self, name: str, arguments: JSONObject, server: str = "") -> ToolResult:
        """A call of the grader's side, after the agent is gone. Raises InfraError."""
        connection = self._stack.connections.get(server) if server else self._owners.get(name)
        if connection is None:
            return text_result(f"unknown {'server' if server else 'tool'}: {server or name}", error=True)
        return await self._made(connection, name, arguments)

    async def _made(self, connection: Connection, name: str, arguments: JSONValue) -> ToolResult:
        if not isinstance(arguments, dict):
            return text_result(f"arguments must be an object, not {type(arguments).__name__}", error=True)
        if (why := _unsendable(name, arguments)) is not None:
            return text_result(why, error=True)
        allowed_s = DEADLINE_S.get() or CALL_S
        try:
            result = await connection.call(name, arguments, allowed_s, PROGRESS.get())
        except CallFailed as error:
            return text_result(str(error), error=True)
        except NotAnswered:
            self._event("env.timeout", {"server": connection.name, "tool": name, "after_s": allowed_s})
            return text_result(f"the tool did not answer within {allowed_s:g} s", error=True)
        if await self._changed(connection):
            self._offer()
        return _result(result)

    async def _changed(self, connection: Connection) -> bool:
        before = connection.tools
        return await connection.fresh_tools() is not before

    def _offer(self) -> None:
        """The tools of all servers. Raises InfraError where two have one name."""
        specs: list[ToolSpec] = []
        owners: dict[str, Connection] = {}
        for connection in self._stack.connections.values():
            for listed in connection.tools:
                spec = _spec(listed)
                owner = owners.setdefault(spec.name, connection)
                if owner is not connection:
                    raise InfraError(
                        f"tool {spec.name!r} is offered by MCP servers {owner.name!r} and {connection.name!r}"
                    )
                specs.append(spec)
        self._specs, self._owners = tuple(specs), owners
        self.revision += 1

    def _event(self, kind: str, fields: JSONObject) -> None:
        self._told[kind] += 1
        if self._told[kind] <= MAX_EVENTS:
            self._recorder.record(kind, **fields)

    def driver(self) -> Driver | None:
        """No dialogue."""
        return None

    async def state(self) -> JSONValue:
        """Nothing: what servers hold is theirs, and is asked for by calls (`ask`)."""
        return None

    async def close(self) -> None:
        """End the servers, and keep what they wrote to standard error. From now on, calls are refused. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._end(self._stack)
        for kind, count in self._told.items():
            if count > MAX_EVENTS:
                self._recorder.record("env.dropped", kind=kind, count=count - MAX_EVENTS)
        for connection in self._stack.connections.values():
            said = connection.program.stderr if connection.program is not None else None
            if said is not None and said.total:
                self._recorder.record("env.stderr", server=connection.name, text=said.text(), bytes=said.total)


def _prefixed(server: JSONObject) -> JSONObject:
    """What a server says of itself, under names that an event can hold."""
    return {{"name": "implementation"}.get(key, key): value for key, value in server.items()}


def _spec(listed: JSONObject) -> ToolSpec:
    """A tool as it was listed: what a ToolSpec has no field for is kept in `more`."""
    own = ("name", "description", "inputSchema", "outputSchema")
    description, schema, output = listed.get("description"), listed.get("inputSchema"), listed.get("outputSchema")
    return ToolSpec(
        str(listed.get("name", "")),
        description if isinstance(description, str) else "",
        schema if isinstance(schema, dict) else {},
        output if isinstance(output, dict) else None,
        {key: value for key, value in listed.items() if key not in own},
    )


def _result(result: JSONObject) -> ToolResult:
    content = result.get("content")
    parts = tuple(part for part in content if isinstance(part, dict)) if isinstance(content, list) else ()
    return ToolResult(parts, result.get("isError") is True, result.get("structuredContent"))


def _unsendable(name: str, arguments: JSONObject) -> str | None:
    """Why it cannot be put into UTF-8 JSON; None if it can."""
    import json

    try:
        json.dumps([name, arguments], ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:  # NaN, an infinity, a lone surrogate
        return f"the call cannot be sent as JSON: {error}"
    return None
