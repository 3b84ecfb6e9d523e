"""What the HTTP wires cost the process that serves them: `python bench/wires.py [--json FILE] [--quick]`.

The server is this process; agents are bare sockets in a second one, so that nearly all the CPU time counted here is the
server's: HTTP, protocol, limits, recording. Nothing passes or fails: targets stand beside the figures. The calibration
loop says how figures of two machines, or of a busy and a quiet one, compare.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import TypeAlias

from evalcore.builtin.scripted import ScriptedProvider
from evalcore.builtin.toolset import ToolsetBridge
from evalcore.engine.services import SystemClock
from evalcore.values.json import JSONObject
from evalcore.values.task import BridgeSpec
from evalcore.values.trial import TrialKey
from evalcore.wires.gateway.channel import MemoryChannel
from evalcore.wires.gateway.upstream import Upstream
from evalcore.wires.http import Door, WireServer
from evalcore.wires.meter import Meter, RunBudget
from evalcore.wires.recorder import AttemptRecorder
from evalcore.wires.tools import RecordedTools

WAYS = 32
TOOL: JSONObject = {
    "name": "get_weather",
    "description": "Weather of a city today.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "result": "19 degrees",
}
PLAYBOOK = '[[reply]]\ntext = "It is 19 degrees in Bern."\nusage = { input = 100, output = 12 }\n'
MODERN, LEGACY = "2026-07-28", "2025-06-18"


def main() -> None:
    """Measure, print, perhaps write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--quick", action="store_true", help="a fifth of the calls")
    parser.add_argument("--agents", action="store_true", help=argparse.SUPPRESS)  # the second process
    options = parser.parse_args()
    if options.agents:
        asyncio.run(Agents().serve())
        return
    with tempfile.TemporaryDirectory(prefix="evalcore-bench-") as name:
        figures = asyncio.run(measure(Path(name), 0.2 if options.quick else 1.0))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


async def measure(folder: Path, scale: float) -> dict[str, float]:
    """All figures by name."""
    figures: dict[str, float] = {}

    def say(name: str, value: float, unit: str, target: str = "") -> None:
        figures[name] = value
        print(f"{name:<58} {value:>10.4g} {unit:<8} {target}", flush=True)

    say("calibration: 3,000,000 loop steps", calibrate(), "s CPU")
    server, agents = WireServer(), Remote()
    bench = Bench(server, agents, folder)
    await bench.trials(["modern call"], count=50)  # imports and caches are paid for once
    rate, cpu = await bench.calls(int(10_000 * scale))
    say(f"tool wire, {WAYS} ways", rate, "calls/s", "≥ 500")
    say("tool wire, server CPU of a call", cpu, "ms")
    for name, steps, target in (
        (f"{MODERN}: trial with one call", ["modern call"], "≤ 2.5"),
        (f"{MODERN}: trial with one listing and one call", ["modern list", "modern call"], ""),
        (f"{LEGACY}: trial with handshake and one call", ["legacy hello", "legacy ready", "legacy call"], "≤ 5"),
        (f"{LEGACY}: the same and one listing", ["legacy hello", "legacy ready", "legacy list", "legacy call"], ""),
    ):
        say(name, await bench.trials(steps, int(1_000 * scale)), "ms", target)
    say(
        "gateway, non-streaming call of a fresh trial",
        await bench.model(int(2_000 * scale), streamed=False),
        "ms",
        "≤ 2",
    )
    say("gateway, streamed call of a fresh trial", await bench.model(int(2_000 * scale), streamed=True), "ms")
    agents.close()
    await server.close()
    say("calibration, at the end", calibrate(), "s CPU")
    return figures


def calibrate() -> float:
    """CPU seconds of a fixed loop."""
    began, total = time.process_time(), 0
    for step in range(3_000_000):
        total += step * step % 7
    return time.process_time() - began


# ── this process: the server ─────────────────────────────────────────────────────────────────────────────────────────


class Bench:
    """Opens the wires of one trial after another, and lets agents use them."""

    def __init__(self, server: WireServer, agents: Remote, folder: Path) -> None:
        self._server = server
        self._agents = agents
        self._upstream = Upstream("scripted", ScriptedProvider(), SystemClock(), Random(0))
        self._playbook = folder / "play.toml"
        self._playbook.write_text(PLAYBOOK)

    async def calls(self, count: int) -> tuple[float, float]:
        """Calls a second through one door, and the server's CPU milliseconds for each."""
        door = await self._tools()
        job = {"url": door.url, "steps": ["modern call"], "ways": WAYS, "count": count}
        await self._agents.ask({**job, "count": 200})
        began, cpu = time.perf_counter(), time.process_time()
        await self._agents.ask(job)
        result = count / (time.perf_counter() - began), 1000 * (time.process_time() - cpu) / count
        await door.close()
        return result

    async def trials(self, steps: list[str], count: int) -> float:
        """CPU milliseconds of a trial: its door opened, used by an agent of its own connection, closed."""
        return await self._each(self._tools, steps, count)

    async def model(self, count: int, *, streamed: bool) -> float:
        """CPU milliseconds of a model call with its door and its recording."""
        return await self._each(self._channel, ["chat stream" if streamed else "chat"], count)

    async def _each(self, open_door: Callable[[], Awaitable[Door]], steps: list[str], count: int) -> float:
        total = 0.0
        for _ in range(count // WAYS + 1):
            began = time.process_time()
            doors = [await open_door() for _ in range(WAYS)]
            await self._agents.ask({"urls": [d.url for d in doors], "steps": steps})
            for door in doors:
                await door.close()
            total += time.process_time() - began
        return 1000 * total / ((count // WAYS + 1) * WAYS)

    async def _tools(self) -> Door:
        recorder, meter = AttemptRecorder(SystemClock()), Meter(RunBudget(None))
        episode = await ToolsetBridge().open(BridgeSpec("toolset", {"tools": [TOOL]}), None)  # type: ignore[arg-type]
        return await self._server.serve_tools(RecordedTools("toolset", episode, recorder, meter), recorder)

    async def _channel(self) -> Door:
        recorder, meter = AttemptRecorder(SystemClock()), Meter(RunBudget(None))
        model = f"scripted/{self._playbook}"
        key = TrialKey("bench", "t", "arm", 1)
        channel = MemoryChannel("agent", model, self._upstream, {"temperature": 0.0}, recorder, meter, key, 1, 0)
        return await self._server.serve_channel(channel, recorder)


class Remote:
    """The second process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--agents"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    async def ask(self, job: dict[str, object]) -> None:
        """Have a job done; the loop goes on serving meanwhile."""
        answer = await asyncio.to_thread(self._exchange, json.dumps(job))
        if answer != "done":
            raise RuntimeError(answer)

    def _exchange(self, line: str) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)


# ── the second process: agents on bare sockets ───────────────────────────────────────────────────────────────────────


class Agents:
    """Does the jobs that come in on standard input, one JSON line each."""

    async def serve(self) -> None:
        """Until the input ends."""
        while line := await asyncio.to_thread(sys.stdin.readline):
            try:
                await self._do(json.loads(line))
                print("done", flush=True)
            except Exception as error:  # noqa: BLE001 - told to the first process, which raises it
                print(f"{type(error).__name__}: {error}", flush=True)

    async def _do(self, job: dict[str, object]) -> None:
        steps: list[str] = job["steps"]  # type: ignore[assignment]
        if "urls" in job:
            urls: list[str] = job["urls"]  # type: ignore[assignment]
            await asyncio.gather(*(_agent(url, steps, 1) for url in urls))
            return
        ways, count = int(str(job["ways"])), int(str(job["count"]))
        await asyncio.gather(*(_agent(str(job["url"]), steps, count // ways) for _ in range(ways)))


async def _agent(url: str, steps: list[str], times: int) -> None:
    """One connection that does the steps in turn."""
    host, _, path = url.removeprefix("http://").partition("/")
    reader, writer = await asyncio.open_connection(*host.split(":"))
    session = ""
    for _ in range(times):
        for step in steps:
            session = await _post(reader, writer, host, "/" + path, _request(step, session)) or session
    writer.close()


Request: TypeAlias = tuple[str, dict[str, str], object]  # what is added to the URL, headers, body


async def _post(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, path: str, request: Request
) -> str:
    """Send one request, read its answer; the session that it names, if any."""
    suffix, headers, value = request
    body = json.dumps(value).encode()
    lines = [
        f"POST {path}{suffix} HTTP/1.1",
        f"Host: {host}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    lines += ["Accept: application/json, text/event-stream", *(f"{k}: {v}" for k, v in headers.items())]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    if head[9:12] not in ("200", "202"):
        raise RuntimeError(head.splitlines()[0])
    found = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head.splitlines()[1:])}
    answer = await reader.readexactly(int(found.get("content-length", "0")))
    if b'"error":' in answer:
        raise RuntimeError(answer.decode()[:300])
    return found.get("mcp-session-id", "")


def _request(step: str, session: str) -> Request:
    """The HTTP request of a step."""
    call = {"name": "get_weather", "arguments": {"city": "Bern"}}
    info = {"name": "bench", "version": "1"}
    if step.startswith("chat"):
        body = {"model": "m", "messages": [{"role": "user", "content": "What is the weather in Bern? " * 20}]}
        return "/chat/completions", {}, {**body, "stream": True} if step == "chat stream" else body
    if step == "legacy hello":
        hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": info}
        return "", {}, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    old = {"Mcp-Session-Id": session, "MCP-Protocol-Version": LEGACY}
    if step == "legacy ready":
        return "", old, {"jsonrpc": "2.0", "method": "notifications/initialized"}
    method = "tools/list" if step.endswith("list") else "tools/call"
    params: dict[str, object] = dict(call) if method == "tools/call" else {}
    if step.startswith("legacy"):
        return "", old, {"jsonrpc": "2.0", "id": 2, "method": method, "params": params}
    prefix = "io.modelcontextprotocol/"
    meta = {f"{prefix}protocolVersion": MODERN, f"{prefix}clientInfo": info, f"{prefix}clientCapabilities": {}}
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    headers |= {"Mcp-Name": "get_weather"} if method == "tools/call" else {}
    return "", headers, {"jsonrpc": "2.0", "id": 2, "method": method, "params": {**params, "_meta": meta}}


if __name__ == "__main__":
    main()
