"""Servers of the test's own that speak a provider's dialect, and the wires of a trial before them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any, Final, TypeAlias

from attrs import Factory, define

from evalcore.builtin import evalcore_models
from evalcore.builtin.anthropic import AnthropicProvider
from evalcore.builtin.openai_compatible import AzureProvider, OpenAICompatibleProvider, OpenAIProvider
from evalcore.builtin.provider_http import HttpProvider
from evalcore.engine.services import SystemClock
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import Limits
from evalcore.values.trace import TraceReader
from evalcore.values.trial import TrialKey
from evalcore.wires.gateway.channel import MemoryChannel
from evalcore.wires.gateway.upstream import Upstream
from evalcore.wires.http import Door, WireServer
from evalcore.wires.meter import Meter, RunBudget
from evalcore.wires.recorder import AttemptRecorder

PROVIDERS: Final[Mapping[str, type[HttpProvider]]] = {
    "openai": OpenAIProvider,
    "openai-compatible": OpenAICompatibleProvider,
    "azure": AzureProvider,
    "anthropic": AnthropicProvider,
}


@define
class Stream:
    """Events to send one by one; before an event that is None, the server waits for `gate`; CUT ends the connection."""

    pieces: Sequence[bytes | None]


CUT: Final = b"\0cut"
Answer: TypeAlias = JSONObject | Stream | tuple[int, JSONObject]


@define
class FakeUpstream:
    """Gives each request the next of its answers, the last one for ever; keeps what it was asked."""

    answers: list[Answer]
    url: str = ""
    asked: list[tuple[str, dict[str, str], Any]] = Factory(list)
    gate: asyncio.Event = Factory(asyncio.Event)
    left: asyncio.Event = Factory(asyncio.Event)  # a client hung up while it was being answered
    tasks: set[asyncio.Task[Any]] = Factory(set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        own = asyncio.current_task()
        assert own is not None
        self.tasks.add(own)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode().split("\r\n")
                headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines if line)}
                body = json.loads(await reader.readexactly(int(headers.get("content-length", 0))))
                self.asked.append((first, headers, body))
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                if isinstance(answer, Stream):
                    await self._stream(answer, reader, writer)
                else:
                    status, value = answer if isinstance(answer, tuple) else (200, answer)
                    data = json.dumps(value).encode()
                    head = b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                    writer.write(head % (status, len(data)) + data)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client is gone, or the test is over
        finally:
            writer.close()
            self.tasks.discard(own)

    async def _stream(self, answer: Stream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in answer.pieces:
            if piece == CUT:
                writer.close()
                raise ConnectionError
            if piece is None:
                await self._wait(reader)
                continue
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    async def _wait(self, reader: asyncio.StreamReader) -> None:
        """Until the test opens the gate, or the client is gone."""
        gone = asyncio.ensure_future(reader.read(1))
        opened = asyncio.ensure_future(self.gate.wait())
        await asyncio.wait((gone, opened), return_when=asyncio.FIRST_COMPLETED)
        opened.cancel()
        if gone.done():
            self.left.set()
            raise ConnectionError
        gone.cancel()


@asynccontextmanager
async def upstream(*answers: Answer) -> AsyncIterator[FakeUpstream]:
    """A provider's server, as long as it is needed."""
    server = FakeUpstream(list(answers))
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        listener.close()
        for task in tuple(server.tasks):
            task.cancel()
        await asyncio.gather(*server.tasks, return_exceptions=True)


def chat_events(*chunks: JSONObject) -> list[bytes]:
    """Chunks of Chat Completions, and the mark that ends them."""
    return [*(b"data: " + json.dumps(c).encode() + b"\n\n" for c in chunks), b"data: [DONE]\n\n"]


def named_events(*events: JSONObject) -> list[bytes]:
    """Events named by their type, as the other two dialects have them."""
    return [b"event: %s\ndata: %s\n\n" % (str(e["type"]).encode(), json.dumps(e).encode()) for e in events]


class QuietServices:
    """What a provider may use."""

    clock = SystemClock()

    def __init__(self) -> None:
        self.hidden: list[str] = []

    def hide(self, secret: str) -> None:
        self.hidden.append(secret)


def provider(name: str, **environ: str) -> HttpProvider:
    info = next(m for m in evalcore_models() if m.name == name)
    assert info.factory.endswith(f":{PROVIDERS[name].__name__}")
    return PROVIDERS[name](QuietServices(), info, environ)  # type: ignore[arg-type]


@define
class Wire:
    """A channel to a fake provider, and a door to it."""

    channel: MemoryChannel
    recorder: AttemptRecorder
    meter: Meter
    door: Door

    @property
    def url(self) -> str:
        """The door's address, up to and with /v1."""
        return self.door.url

    @property
    def root(self) -> str:
        """The same without /v1."""
        return self.door.url.removesuffix("/v1")

    def events(self, kind: str | None = None) -> list[JSONObject]:
        return list(TraceReader(self.recorder.lines()).events(kind))


@asynccontextmanager
async def wired(
    name: str,
    server: FakeUpstream,
    parameters: Mapping[str, JSONValue] | None = None,
    limits: Limits | None = None,
    settings: Mapping[str, JSONValue] | None = None,
) -> AsyncIterator[Wire]:
    """The model wire of a trial before a provider's fake server."""
    made, wires = provider(name), WireServer()
    recorder, meter = AttemptRecorder(SystemClock()), Meter(RunBudget(None))
    meter.bind(limits or Limits(), {})
    asking, key = Upstream(name, made, SystemClock(), Random(0)), TrialKey("b", "t", "arm", 1)
    channel = MemoryChannel(
        "agent", f"{name}/served-name", asking, parameters or {}, recorder, meter, key, 1, 0,
        {"base_url": server.url, **(settings or {})},
    )  # fmt: skip
    door = await wires.serve_channel(channel, recorder)
    try:
        yield Wire(channel, recorder, meter, door)
    finally:
        await door.close()
        await wires.close()
        await made.close()
