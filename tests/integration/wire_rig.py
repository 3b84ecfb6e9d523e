"""What the tests of the wires share: a bridge with tools of every kind, wires without an engine, agents over HTTP."""

from __future__ import annotations

import asyncio
import functools
import json
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any, ClassVar, Final

import httpx2
from attrs import evolve, frozen

from evalcore.builtin.react import ReactHarness
from evalcore.contracts import (
    CallContext,
    Driver,
    HarnessVersion,
    InputRequired,
    Job,
    OpenTrial,
    Provider,
    ToolResult,
    Tools,
    text_result,
)
from evalcore.engine.services import SystemClock
from evalcore.errors import AgentError
from evalcore.hookspecs import BridgeInfo, HarnessInfo, hookimpl
from evalcore.values.json import JSONObject, JSONValue, exact_text
from evalcore.values.task import BridgeSpec, Limits, ToolSpec
from evalcore.values.trace import TraceReader
from evalcore.values.trial import HarnessExit, TrialKey
from evalcore.wires.gateway.channel import MemoryChannel
from evalcore.wires.gateway.upstream import Upstream
from evalcore.wires.http import Door, WireServer
from evalcore.wires.http.tool_door import RAW
from evalcore.wires.meter import Meter, RunBudget
from evalcore.wires.recorder import AttemptRecorder
from evalcore.wires.results import OUTPUT_CAP
from evalcore.wires.tools import RecordedTools

ANYTHING: Final[JSONObject] = {"type": "object", "properties": {}, "additionalProperties": True}
TOOLS: Final = ("echo", "fail", "words", "structured", "picture", "empty", "slow", "long", "ask", "hang")
MODERN: Final = "2026-07-28"


# ── an environment ───────────────────────────────────────────────────────────────────────────────────────────────────


class OddEpisode:
    """Tools that answer in every way a tool can."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, JSONValue]] = []
        self.cancelled = 0

    def tools(self) -> Sequence[ToolSpec]:
        schema: JSONObject = {**ANYTHING, "$comment": "kept as it is", "x-extra": [1, 5.0, None]}
        return [ToolSpec(name, f"the tool {name} · ü", schema) for name in TOOLS]

    async def call(self, name: str, arguments: JSONValue) -> ToolResult | InputRequired:
        self.seen.append((name, arguments))
        if name == "slow":
            await asyncio.sleep(0.01)
        if name == "hang":
            await self._hang()
        if name == "ask":
            return InputRequired("may I?", {"type": "object"})
        if name == "long":
            size = arguments.get("size") if isinstance(arguments, dict) else 0
            return text_result("x" * int(str(size)))
        return RESULTS.get(name) or text_result(exact_text(arguments))

    async def _hang(self) -> None:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    def driver(self) -> Driver | None:
        return None

    async def state(self) -> JSONValue:
        return len(self.seen)

    async def close(self) -> None:
        pass


RESULTS: Final[Mapping[str, ToolResult]] = {
    "fail": text_result("no such city: Atlantis ✗", error=True),
    "words": text_result("naïve \U0001f600 \u202eright\u202c \u0000 \u2028 日本語 \x1b[31m"),
    "structured": ToolResult(({"type": "text", "text": "{}"},), structured={"none": None, "five": 5.0, "big": 2**70}),
    "picture": ToolResult(
        ({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}, {"type": "text", "text": "a picture"})
    ),
    "empty": ToolResult(()),
}


class OddBridge:
    """Opens it."""

    def __init__(self, services: Any = None, info: Any = None) -> None:
        pass

    async def open(self, spec: BridgeSpec, trial: OpenTrial) -> OddEpisode:
        return OddEpisode()


@hookimpl
def evalcore_bridges() -> list[BridgeInfo]:
    return [BridgeInfo("odd", "tools that answer in every way", "tests.integration.wire_rig:OddBridge")]


@hookimpl
def evalcore_harnesses() -> list[HarnessInfo]:
    return [
        HarnessInfo(
            "http-react",
            "react, reaching both wires over HTTP from a thread of its own",
            "tests.integration.wire_rig:HttpReact",
            axes=("max_turns",),
            wires="http",
        ),
        HarnessInfo("http-stuck", "never returns", "tests.integration.wire_rig:Stuck", wires="http"),
    ]


# ── wires without an engine ──────────────────────────────────────────────────────────────────────────────────────────


class Says:
    """A provider that gives the same answer, or raises the same error, and keeps what it was asked."""

    dialect = "openai-chat"

    def __init__(self, answer: JSONObject | Exception | None = None, *, wait: asyncio.Event | None = None) -> None:
        self.answer = answer if answer is not None else said("hello")
        self.asked: list[tuple[str, JSONObject, CallContext]] = []
        self.wait = wait

    def content(self, model: str) -> Mapping[str, str]:
        return {}

    async def complete(self, model: str, body: JSONObject, context: CallContext) -> JSONObject:
        self.asked.append((model, body, context))
        if self.wait is not None:
            await self.wait.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def close(self) -> None:
        pass


def said(text: str | None, **message: JSONValue) -> JSONObject:
    """A Chat Completions response."""
    finish = "tool_calls" if "tool_calls" in message else "stop"
    return {
        "id": "r1",
        "object": "chat.completion",
        "created": 7,
        "model": "upstream-model",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14},
    }


@frozen
class Wires:
    """One attempt's wires, and the doors to them."""

    recorder: AttemptRecorder
    meter: Meter
    episode: OddEpisode
    tools: RecordedTools
    channel: MemoryChannel
    tool_door: Door
    model_door: Door

    def events(self, kind: str | None = None) -> list[JSONObject]:
        return list(TraceReader(self.recorder.lines()).events(kind))


async def open_wires(
    server: WireServer, provider: Provider | None = None, limits: Limits | None = None, cap: int = OUTPUT_CAP
) -> Wires:
    """Wires of a trial of their own, served over HTTP."""
    recorder, meter = AttemptRecorder(SystemClock()), Meter(RunBudget(None))
    meter.bind(limits or Limits(), {})
    episode = OddEpisode()
    tools = RecordedTools("odd", episode, recorder, meter, cap=cap)
    key = TrialKey("odd", "t", "arm", 1)
    upstream = Upstream("says", provider or Says(), SystemClock(), Random(0))
    channel = MemoryChannel("agent", "says/it", upstream, {}, recorder, meter, key, 1, 0)
    return Wires(
        recorder,
        meter,
        episode,
        tools,
        channel,
        await server.serve_tools(tools, recorder),
        await server.serve_channel(channel, recorder),
    )


@asynccontextmanager
async def serving() -> AsyncIterator[WireServer]:
    """A wire server for one test."""
    server = WireServer()
    try:
        yield server
    finally:
        await server.close()


def client(**options: Any) -> httpx2.AsyncClient:
    """An HTTP client that keeps to this machine."""
    return httpx2.AsyncClient(verify=False, trust_env=False, timeout=60, **options)


def stdio(program: Any) -> Any:
    """A program's transport for MCP's own client, which else keeps the standard error that it was loaded with."""
    from mcp.client.stdio import stdio_client

    return stdio_client(program, errlog=sys.__stderr__)


def modern(method: str, params: JSONObject | None = None, number: int = 1) -> tuple[dict[str, str], bytes]:
    """Headers and body of a request of the 2026-07-28 revision, of any content."""
    prefix = "io.modelcontextprotocol/"
    own = params or {}
    given = own.get("_meta")
    meta: JSONObject = {
        f"{prefix}protocolVersion": MODERN,
        f"{prefix}clientInfo": {"name": "raw", "version": "1"},
        f"{prefix}clientCapabilities": {},
        **(given if isinstance(given, dict) else {}),
    }
    headers = {
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": method,
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
    }
    if method == "tools/call":
        headers["Mcp-Name"] = str(own.get("name"))
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**own, "_meta": meta}}
    return headers, json.dumps(message).encode()


# ── an agent over HTTP ───────────────────────────────────────────────────────────────────────────────────────────────


class HttpReact:
    """The reference loop in a thread and an event loop of its own, with nothing of evalcore's but two addresses."""

    def __init__(self, services: Any = None, info: Any = None) -> None:
        pass

    async def probe(self) -> HarnessVersion:
        return HarnessVersion("1")

    async def run(self, job: Job) -> HarnessExit:
        return await asyncio.to_thread(asyncio.run, self._converse(job))

    async def _converse(self, job: Job) -> HarnessExit:
        from mcp import Client

        assert job.model is not None and job.model.url is not None
        url = job.tools[0].url
        assert url is not None
        async with client() as http, Client(url, cache=None) as session:
            listed = (await session.list_tools()).tools
            specs = [ToolSpec(t.name, t.description or "", t.input_schema, t.output_schema) for t in listed]
            tools: tuple[Tools, ...] = (RemoteTools(url, specs, session, http),)
            remote = evolve(job, tools=tools, model=RemoteChannel(job.model.url, job.model.model, http))
            return await ReactHarness().run(remote)


class Stuck:
    """Leaves its addresses, and never returns."""

    met: ClassVar[list[str]] = []

    def __init__(self, services: Any = None, info: Any = None) -> None:
        pass

    async def probe(self) -> HarnessVersion:
        return HarnessVersion("1")

    async def run(self, job: Job) -> HarnessExit:
        assert job.model is not None
        self.met.extend([str(url) for url in (*(t.url for t in job.tools), job.model.url)])
        await asyncio.sleep(600)
        raise AssertionError


class RemoteTools:
    """Tools at an address: the SDK's client, but for what it would refuse to send."""

    bridge = "odd"

    def __init__(self, url: str, specs: Sequence[ToolSpec], session: Any, http: httpx2.AsyncClient) -> None:
        self.url: str | None = url
        self._specs = specs
        self._session = session
        self._http = http

    def list(self) -> Sequence[ToolSpec]:
        return self._specs

    async def call(self, name: str, arguments: JSONValue) -> ToolResult:
        if isinstance(arguments, dict) and _is_plain(arguments):
            return await self._through_sdk(name, arguments)
        assert self.url is not None
        headers, body = modern("tools/call", {"name": name, "arguments": arguments})
        return _result_of((await self._http.post(self.url, headers=_wire(headers), content=body)).json())

    async def _through_sdk(self, name: str, arguments: JSONObject) -> ToolResult:
        from mcp.shared.exceptions import MCPError

        try:
            result = await self._session.call_tool(name, arguments)
        except MCPError as error:
            raise AgentError(error.message) from error
        content = tuple(part.model_dump(by_alias=True, exclude_none=True) for part in result.content)
        return ToolResult(content, error=result.is_error, structured=result.structured_content)

    def refuse(self, name: str, raw: str, reason: str) -> ToolResult:
        assert self.url is not None
        headers, body = modern("tools/call", {"name": name, "arguments": {}, "_meta": {RAW: raw}})
        with httpx2.Client(verify=False, trust_env=False, timeout=60) as http:
            return _result_of(http.post(self.url, headers=_wire(headers), content=body).json())


def _wire(headers: dict[str, str]) -> dict[str, str]:
    """A name beyond ASCII goes into a header in the SDK's own coding."""
    from mcp.shared.inbound import encode_header_value

    return {k: encode_header_value(v) if k == "Mcp-Name" else v for k, v in headers.items()}


def _is_plain(value: JSONValue) -> bool:
    """Whether the SDK's client sends it as it is: it writes NaN as null, and fails at lone surrogates."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return False
    return True


def _result_of(message: Any) -> ToolResult:
    if "error" in message:
        raise AgentError(message["error"]["message"])
    result = message["result"]
    return ToolResult(tuple(result["content"]), error=result["isError"], structured=result.get("structuredContent"))


class RemoteChannel:
    """A model at an address, in OpenAI Chat Completions."""

    role: Any = "agent"
    dialect = "openai-chat"
    parameters: Mapping[str, JSONValue] = {}

    def __init__(self, url: str, model: str, http: httpx2.AsyncClient) -> None:
        self.url: str | None = url
        self.model = model
        self._http = http

    async def complete(self, body: JSONObject) -> JSONObject:
        headers = {"Content-Type": "application/json", "Authorization": "Bearer any"}
        answer = await self._http.post(f"{self.url}/chat/completions", content=json.dumps(body), headers=headers)
        value = json.loads(answer.content)
        if answer.status_code != 200:
            raise AgentError(value["error"]["message"])
        value.pop("created", None)  # filled in for clients that insist on it; the trace has what the provider said
        return value  # type: ignore[no-any-return]


async def until(holds: Callable[[], object]) -> None:
    """Wait for what another task brings about."""
    while not holds():  # noqa: ASYNC110 - what is waited for need not know that a test waits
        await asyncio.sleep(0.005)


def on_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A coroutine as a test: on an event loop of its own."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run
