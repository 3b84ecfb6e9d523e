"""What a trial waits for its MCP servers: `python bench/servers.py [--json FILE] [--servers MCP.json]`.

Without a file it is a server in plain Python, the quickest to start that there is; a file of real ones shows what a
spare saves. Cold: started in the trial's way. Warm: a spare that is ready. Nothing passes or
fails; targets stand beside.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from pathlib import Path

from evalcore.builtin.mcp.bridge import McpBridge
from evalcore.builtin.mcp.config import read_file
from evalcore.testing import FakeServices, FakeTrial
from evalcore.values.json import JSONObject
from evalcore.values.task import Assignment, BridgeSpec, Message, Task

RAW = Path(__file__).parents[1] / "tests" / "integration" / "raw_mcp.py"


def main() -> None:
    """Measure, print, perhaps write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--servers", type=Path, help="servers to start, a file like .mcp.json")
    parser.add_argument("--times", type=int, default=20, help="trials of each kind")
    options = parser.parse_args()
    servers: JSONObject = {"raw": {"command": sys.executable, "args": [str(RAW), "put,get"]}}
    base = Path.cwd()
    if options.servers:
        servers, base = dict(read_file(options.servers, str(options.servers))), options.servers.resolve().parent
    figures = asyncio.run(measure(servers, base, options.times))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


async def measure(servers: JSONObject, base: Path, times: int) -> dict[str, float]:
    """Medians by name, in milliseconds; the slowest beside them."""
    figures: dict[str, float] = {}

    def say(name: str, values: list[float], target: str = "") -> None:
        figures[name] = statistics.median(values)
        print(f"{name:<44} {figures[name]:>9.2f} ms  (slowest {max(values):.2f})  {target}", flush=True)

    print(f"calibration: {calibrate():.3f} s CPU for 3,000,000 loop steps; servers: {', '.join(servers)}", flush=True)
    bridge = McpBridge(FakeServices(base=base))
    spec = BridgeSpec("mcp", {"servers": servers, "bases": dict.fromkeys(servers, str(base))})
    await one(bridge, spec)  # imports are paid for once
    cold, ended = zip(*[await one(bridge, spec) for _ in range(times)], strict=True)
    say("open, started in the trial's way", list(cold))
    warm = []
    for _ in range(times):
        bridge.prepare(spec)
        await bridge.spares.settled()
        warm.append((await one(bridge, spec))[0])
    say("open, from a warm spare", warm, "≤ 10")
    say("close", list(ended), "≤ 10, with opening")
    await bridge.close()
    print(f"calibration, at the end: {calibrate():.3f} s CPU", flush=True)
    return figures


async def one(bridge: McpBridge, spec: BridgeSpec) -> tuple[float, float]:
    """Milliseconds to open an episode, and to close it."""
    trial = FakeTrial(Task("t", {}), Assignment((Message("user", "x"),), (spec,)))
    began = time.perf_counter()
    episode = await bridge.open(spec, trial)
    opened = time.perf_counter()
    await episode.close()
    closed = time.perf_counter()
    await bridge.ended()
    return 1000 * (opened - began), 1000 * (closed - opened)


def calibrate() -> float:
    """CPU seconds of a fixed loop."""
    began, total = time.process_time(), 0
    for step in range(3_000_000):
        total += step * step % 7
    return time.process_time() - began


if __name__ == "__main__":
    main()
