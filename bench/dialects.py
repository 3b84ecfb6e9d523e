"""What the model wire costs in each dialect, before a provider that streams: `python bench/dialects.py [--quick]`.

The process that is measured serves the wires. A second one holds the provider's server and the agents, all on bare
sockets, so that nearly all the CPU time counted is the gateway's: HTTP on both sides, events, translation, recording.
Nothing passes or fails: targets stand beside the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from wires import TOOL, calibrate

from evalcore.builtin import evalcore_models
from evalcore.builtin.anthropic import AnthropicProvider
from evalcore.builtin.openai_compatible import OpenAIProvider
from evalcore.builtin.provider_http import HttpProvider
from evalcore.builtin.scripted import ScriptedProvider
from evalcore.builtin.toolset import ToolsetBridge
from evalcore.engine.services import SystemClock
from evalcore.values.json import JSONObject
from evalcore.values.task import BridgeSpec
from evalcore.values.trial import TrialKey
from evalcore.wires.gateway.channel import MemoryChannel
from evalcore.wires.gateway.dialects.translate import SPOKEN, translate_response
from evalcore.wires.gateway.upstream import Upstream
from evalcore.wires.http import Door, WireServer
from evalcore.wires.meter import Meter, RunBudget
from evalcore.wires.recorder import AttemptRecorder
from evalcore.wires.tools import RecordedTools

CHUNKS = 400  # of a streamed answer
CALLS = 5  # of an agent, on one connection
PATHS = {"openai-chat": "chat/completions", "openai-responses": "responses", "anthropic-messages": "messages"}
WORD = "weather "
SAID: JSONObject = {
    "id": "a", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": WORD * CHUNKS}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 100, "completion_tokens": CHUNKS, "total_tokens": 100 + CHUNKS},
}  # fmt: skip
PLAY = """
[[reply]]
match = { call = 1 }
tool_calls = [{ name = "get_weather", arguments = { city = "Bern" } }]
[[reply]]
text = "It is 19 degrees in Bern."
"""


def main() -> None:
    """Measure, print, perhaps write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--quick", action="store_true", help="a fifth of the calls")
    parser.add_argument("--others", action="store_true", help=argparse.SUPPRESS)  # the second process
    options = parser.parse_args()
    if options.others:
        asyncio.run(Others().serve())
        return
    figures = asyncio.run(measure(0.2 if options.quick else 1.0))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


async def measure(scale: float) -> dict[str, float]:
    """All figures by name."""
    figures: dict[str, float] = {}

    def say(name: str, value: float, unit: str, target: str = "") -> None:
        figures[name] = value
        print(f"{name:<66} {value:>10.4g} {unit:<10} {target}", flush=True)

    say("calibration: 3,000,000 loop steps", calibrate(), "s CPU")
    bench = Bench()
    await bench.start()
    calls, streams = int(1000 * scale), int(100 * scale)
    for dialect in PATHS:
        for provider in ("openai", "anthropic"):
            await bench.cpu_ms(dialect, provider, 20, ways=4, streamed=False)
            cost = await bench.cpu_ms(dialect, provider, calls, ways=8, streamed=False)
            say(f"{dialect} → {bench.spoken(provider, dialect)}: a call", cost, "ms CPU", "≤ 2")
    for dialect in PATHS:
        for provider in ("openai", "anthropic"):
            cost = await bench.cpu_ms(dialect, provider, streams, ways=8, streamed=True) / CHUNKS
            say(f"{dialect} → {bench.spoken(provider, dialect)}: a streamed chunk", cost, "ms CPU", "≤ 0.25")
    say("calibration, between", calibrate(), "s CPU")
    idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    await bench.cpu_ms("openai-chat", "openai", 200 * CALLS, ways=200, streamed=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    say("peak memory with 200 concurrent streams", peak, "MiB", "< 100")
    say("of which the streams", peak - idle, "MiB")
    say("trials a second, both wires over HTTP, 16 ways", await bench.trials(int(600 * scale), 16), "/s", "≥ 60")
    await bench.close()
    say("calibration, at the end", calibrate(), "s CPU")
    return figures


class Services:
    """What a provider may use."""

    clock = SystemClock()

    def hide(self, secret: str) -> None:
        """There is none."""


class Bench:
    """The wires, and the second process."""

    def __init__(self) -> None:
        self._server = WireServer()
        self._process: Any = None
        self._url = ""
        self._providers: dict[str, HttpProvider] = {}

    async def start(self) -> None:
        """Start the second process."""
        self._process = subprocess.Popen(  # noqa: ASYNC220 - nothing else runs yet
            [sys.executable, __file__, "--others"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._url = (await asyncio.to_thread(self._process.stdout.readline)).strip()
        kinds: Mapping[str, type[HttpProvider]] = {"openai": OpenAIProvider, "anthropic": AnthropicProvider}
        for info in evalcore_models():
            if info.name in kinds:
                self._providers[info.name] = kinds[info.name](Services(), info, {})  # type: ignore[arg-type]

    def spoken(self, provider: str, dialect: str) -> str:
        """What the provider is asked in."""
        known = getattr(self._providers[provider], "dialects", (self._providers[provider].dialect,))
        return dialect if dialect in known else known[0]

    async def cpu_ms(self, dialect: str, provider: str, count: int, *, ways: int, streamed: bool) -> float:
        """CPU milliseconds of a call in this process, with its recording and its share of a door and a connection."""
        began = time.process_time()
        for start in range(0, count // CALLS, ways):
            doors = [await self._channel(provider) for _ in range(min(ways, count // CALLS - start))]
            await self._ask({"do": "ask", "urls": [d.url for d in doors], "dialect": dialect, "stream": streamed})
            for door in doors:
                await door.close()
        return 1000 * (time.process_time() - began) / count

    async def trials(self, count: int, ways: int) -> float:
        """Trials a second: each lists its tools, asks, calls, asks again, over doors of its own."""
        with tempfile.TemporaryDirectory(prefix="evalcore-bench-") as folder:
            playbook = Path(folder) / "play.toml"
            playbook.write_text(PLAY)
            upstream = Upstream("scripted", ScriptedProvider(), SystemClock(), Random(0))
            warm = await self._trial(upstream, playbook)
            await self._ask({"do": "trial", "urls": [[d.url for d in warm]]})
            began = time.perf_counter()
            for _ in range(count // ways):
                sets = [await self._trial(upstream, playbook) for _ in range(ways)]
                await self._ask({"do": "trial", "urls": [[d.url for d in doors] for doors in sets]})
                for doors in sets:
                    for door in doors:
                        await door.close()
            return count // ways * ways / (time.perf_counter() - began)

    async def _trial(self, upstream: Upstream, playbook: Path) -> list[Door]:
        recorder, meter = AttemptRecorder(SystemClock()), Meter(RunBudget(None))
        key = TrialKey("bench", "t", "arm", 1)
        channel = MemoryChannel("agent", f"scripted/{playbook}", upstream, {}, recorder, meter, key, 1, 0)
        episode = await ToolsetBridge().open(BridgeSpec("toolset", {"tools": [TOOL]}), None)  # type: ignore[arg-type]
        tools = RecordedTools("toolset", episode, recorder, meter)
        return [await self._server.serve_channel(channel, recorder), await self._server.serve_tools(tools, recorder)]

    async def _channel(self, provider: str) -> Door:
        recorder, meter = AttemptRecorder(SystemClock()), Meter(RunBudget(None))
        upstream = Upstream(provider, self._providers[provider], SystemClock(), Random(0))
        key, settings = TrialKey("bench", "t", "arm", 1), {"base_url": self._url}
        channel = MemoryChannel("agent", f"{provider}/m", upstream, {}, recorder, meter, key, 1, 0, settings)  # type: ignore[arg-type]
        return await self._server.serve_channel(channel, recorder)

    async def _ask(self, job: dict[str, object]) -> None:
        answer = await asyncio.to_thread(self._exchange, json.dumps(job))
        if answer != "done":
            raise RuntimeError(answer)

    def _exchange(self, line: str) -> str:
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return str(self._process.stdout.readline().strip())

    async def close(self) -> None:
        """End it all."""
        self._process.stdin.close()
        self._process.wait(10)
        for provider in self._providers.values():
            await provider.close()
        await self._server.close()


# ── the second process: a provider's server, and agents ──────────────────────────────────────────────────────────────


class Others:
    """Answers as a provider does, and does the jobs that come in on standard input."""

    def __init__(self) -> None:
        self._whole = {name: json.dumps(translate_response(SAID, "openai-chat", name)).encode() for name in PATHS}
        self._streams = {name: list(_stream(name)) for name in PATHS}

    async def serve(self) -> None:
        """Until the input ends."""
        server = await asyncio.start_server(self._provide, "127.0.0.1", 0)
        print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            try:
                await self._do(json.loads(line))
                print("done", flush=True)
            except Exception as error:  # noqa: BLE001 - told to the first process, which raises it
                print(f"{type(error).__name__}: {error}", flush=True)

    async def _provide(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                size = next(int(h.split(":")[1]) for h in head.split("\r\n") if h.lower().startswith("content-length"))
                body = await reader.readexactly(size)
                dialect = next(name for name, path in PATHS.items() if f"/{path} " in head.partition("\r\n")[0])
                if b'"stream":true' not in body:
                    data = self._whole[dialect]
                    kind = b"application/json\r\nContent-Length: %d" % len(data)
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\n\r\n%s" % (kind, data))
                else:
                    kind = b"text/event-stream\r\nTransfer-Encoding: chunked"
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\n\r\n" % kind)
                    for piece in self._streams[dialect]:
                        writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                        await writer.drain()
                        await asyncio.sleep(0)  # so that each piece is a packet of its own, as from a real model
                    writer.write(b"0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the gateway is gone, or the end is near
        finally:
            writer.close()

    async def _do(self, job: dict[str, Any]) -> None:
        if job["do"] == "ask":
            one = {"model": "m", "max_tokens": 900, "messages": [{"role": "user", "content": "What? " * 50}]}
            body = {"model": "m", "input": "What? " * 50} if job["dialect"] == "openai-responses" else one
            body = {**body, "stream": True} if job["stream"] else body
            await asyncio.gather(*(_once(f"{url}/{PATHS[job['dialect']]}", body) for url in job["urls"]))
        else:
            await asyncio.gather(*(_trial(model, tools) for model, tools in job["urls"]))


def _stream(dialect: str) -> Any:
    """An answer in pieces of one word each."""
    whole = translate_response(SAID, "openai-chat", dialect)
    for event in SPOKEN[dialect].cut(whole, True):
        text = json.dumps(event)
        several = [text]
        if text.count(WORD) == CHUNKS and ("delta" in event or '"delta"' in text) and ".done" not in text:
            several = [text.replace(WORD * CHUNKS, WORD)] * CHUNKS
        for one in several:
            named = b"" if dialect == "openai-chat" else b"event: %s\n" % str(event["type"]).encode()
            yield named + b"data: " + one.encode() + b"\n\n"
    if dialect == "openai-chat":
        yield b"data: [DONE]\n\n"


async def _once(url: str, body: object) -> None:
    host, _, path = url.removeprefix("http://").partition("/")
    reader, writer = await asyncio.open_connection(*host.split(":"))
    for _ in range(CALLS):
        await _post(reader, writer, host, f"/{path}", body)
    writer.close()


async def _trial(model: str, tools: str) -> None:
    """What an agent does: one connection to each wire's server, four requests."""
    host = model.removeprefix("http://").partition("/")[0]
    reader, writer = await asyncio.open_connection(*host.split(":"))
    where = {"model": "/" + model.partition("//")[2].partition("/")[2] + "/chat/completions"}
    where["tools"] = "/" + tools.partition("//")[2].partition("/")[2]
    meta: dict[str, object] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }

    async def rpc(method: str, **params: object) -> bytes:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        more = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
        if "name" in params:
            more["Mcp-Name"] = str(params["name"])
        return await _post(reader, writer, host, where["tools"], body, more)

    await rpc("tools/list")
    messages: list[object] = [{"role": "user", "content": "What is the weather in Bern?"}]
    for _ in range(2):
        answer = json.loads(await _post(reader, writer, host, where["model"], {"model": "m", "messages": messages}))
        message = answer["choices"][0]["message"]
        messages.append(message)
        for call in message.get("tool_calls", ()):
            await rpc("tools/call", name="get_weather", arguments={"city": "Bern"})
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": "19 degrees"})
    if "19" not in str(messages[-1]):
        raise RuntimeError(str(messages))
    writer.close()


async def _post(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    host: str,
    path: str,
    value: object,
    more: Mapping[str, str] | None = None,
) -> bytes:
    body = json.dumps(value).encode()
    lines = [f"POST {path} HTTP/1.1", f"Host: {host}", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += ["Accept: application/json, text/event-stream", *(f"{k}: {v}" for k, v in (more or {}).items())]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    if head[9:12] != "200":
        raise RuntimeError(head.splitlines()[0])
    if "transfer-encoding: chunked" in head:
        parts = []
        while size := int((await reader.readuntil(b"\r\n")).strip(), 16):
            parts.append((await reader.readexactly(size + 2))[:-2])
        await reader.readexactly(2)
        answer = b"".join(parts)
    else:
        size = next(int(h.split(":")[1]) for h in head.split("\r\n") if h.startswith("content-length"))
        answer = await reader.readexactly(size)
    if b'"error":{' in answer:
        raise RuntimeError(answer[-300:].decode())
    return answer


if __name__ == "__main__":
    main()
