"""Over generated scripts, an agent in memory and the same agent over HTTP leave the same trace."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from evalcore.contracts import OpenTrial
from evalcore.engine.plan import make_plan
from evalcore.engine.run import RunOptions, start
from evalcore.engine.services import LocalServices
from evalcore.engine.store import TraceStore, read_attempts, read_stamp
from evalcore.engine.trial import standard_deliverable
from evalcore.hookspecs import AdapterInfo, hookimpl
from evalcore.plugins import PluginRef, Registry, load
from evalcore.testing import toy
from evalcore.values.arm import Arm
from evalcore.values.json import JSONObject, JSONValue, exact_text
from evalcore.values.study import Study
from evalcore.values.task import Assignment, BridgeSpec, Dataset, Limits, Message, Task
from evalcore.values.trial import Deliverable, Evidence
from tests.integration import wire_rig

SCRIPTS: Final = 24
Call = dict[str, JSONValue]

# What each script holds beside random turns, so that every kind of thing happens in some script.
LIMITS: Final = {3: Limits(model_calls=2), 5: Limits(tool_calls=2), 7: Limits(tokens=250), 9: Limits(turns=1)}
CALLS: Final[Mapping[int, list[Call]]] = {
    3: [{"name": "echo"}],
    5: [{"name": "echo", "arguments": {"same": 1}}] * 5,
    7: [{"name": "slow"}],
    9: [{"name": "echo"}],
    11: [{"name": "echo", "arguments": '{"cut": '}, {"name": "echo", "arguments": "not JSON \ud800"}],
    12: [{"name": "echo", "arguments": "[1, 2.0, 1e2]"}, {"name": "echo", "arguments": '"text"'}],
    13: [{"name": "echo", "arguments": "null"}, {"name": "echo", "arguments": " "}, {"name": "echo", "arguments": "5"}],
    14: [{"name": "echo", "arguments": '{"big": 123456789012345678901234567890, "five": 5.0, "tiny": 1e-9, "n": NaN}'}],
    15: [{"name": "echo", "arguments": '{"lone": "\\ud800", "pair": "\\ud83d\\ude00", "": {"ü": [[]]}}'}],
    16: [{"name": "no such tool"}, {"name": "größe"}, {"name": ""}],
    17: [{"name": "fail"}, {"name": "words"}, {"name": "structured"}, {"name": "picture"}, {"name": "empty"}],
    18: [{"name": "ask", "arguments": {"a": 1}}],
    19: [{"name": "slow", "arguments": {"n": n}} for n in range(8)],
}
ENDS: Final[Mapping[int, JSONObject]] = {
    1: {},  # neither text nor call
    2: {"text": ""},
    4: {"refusal": "I would rather not."},
    6: {"text": "cut", "finish": "length"},
    8: {"text": "no usage", "usage": None},
    10: {"error": {"status": 400, "message": "too long ü"}},
    20: {"text": "\ud800 lone", "usage": {"input": 3, "output": 4, "cache_read": 2, "reasoning": 1, "cost_usd": 0.5}},
}


def script(number: int) -> Iterator[JSONObject]:
    """The replies of one task: some turns of calls, then an end."""
    random = Random(number)
    turns = 3 if number in LIMITS else random.randrange(1, 4)
    for call in range(1, turns + 1):
        calls: list[Any] = CALLS.get(number, []) if call == 1 and number in CALLS else list(_random_calls(random))
        yield {
            "match": {"task": f"s{number}", "call": call},
            "text": random.choice([None, "", "Let me see. ü \U0001f600"]),
            "tool_calls": calls,
            "usage": {"input": 100, "output": random.randrange(50)},
        }
    end = ENDS.get(number, {"text": f"done {number}"})
    yield {"match": {"task": f"s{number}", "call": turns + 1}, **end}


def _random_calls(random: Random) -> Iterator[Call]:
    for _ in range(random.choice([1, 1, 2, 5])):
        values: list[JSONValue] = [
            1,
            5.0,
            -0.0,
            None,
            True,
            "x",
            "日本",
            "\U0001f600",
            [],
            {},
            {"a": [1, {"b": None}]},
            2**53,
        ]
        arguments: JSONObject = {random.choice("abcé"): random.choice(values) for _ in range(random.randrange(4))}
        yield {"name": random.choice(["echo", "fail", "words", "slow", "structured"]), "arguments": arguments}


class ScriptsAdapter:
    """One task per script."""

    grader = "toy"

    def __init__(self, services: Any, info: Any, selector: Any) -> None:
        pass

    async def dataset(self) -> Dataset:
        return Dataset("scripts", "1", "2026-01-01", "CC0-1.0", "made up")

    async def tasks(self) -> AsyncIterator[Task]:
        for number in range(SCRIPTS):
            yield Task(f"s{number}", {"number": number}, "done")

    async def assign(self, task: Task, arm: Arm) -> Assignment:
        limits = LIMITS.get(int(task.id[1:]), Limits())
        return Assignment((Message("user", f"{task.id} · ü"),), (BridgeSpec("odd"),), limits=limits)

    async def capture(self, trial: OpenTrial) -> Deliverable:
        return standard_deliverable(trial, {"seen": str(await trial.episodes[0].state())})

    async def collect(self, trial: OpenTrial) -> Evidence:
        return Evidence()

    async def gold(self, task: Task) -> None:
        return None


@hookimpl
def evalcore_adapters() -> list[AdapterInfo]:
    return [AdapterInfo("scripts", "generated scripts", "tests.integration.test_wire_parity:ScriptsAdapter")]


def registry() -> Registry:
    found = load(only=())
    from tests.integration import test_wire_parity as own  # its hooks, under its full name

    for module in (toy, wire_rig, own):
        name = module.__name__.rpartition(".")[2].replace("_", "-")
        found.add(PluginRef(name, name, "1", module.__name__), module)
    assert found.failures == []
    return found


async def carry_out(folder: Path) -> None:
    lines = [json.dumps(reply) for number in range(SCRIPTS) for reply in script(number)]
    (folder / "play.jsonl").write_text("\n".join(lines))
    arms = {name: {"harness": name, "model": "scripted/play.jsonl"} for name in ("react", "http-react")}
    found = registry()
    services = LocalServices(found, folder)
    try:
        plan = await make_plan(Study(name="parity", benchmarks=("scripts",), arms=arms), found, services, "r")
        end = await start(plan, folder / "r", found, services, RunOptions(concurrency=4))
        assert end.reason == "done"
    finally:
        await services.close()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of every script in both forms."""
    folder = tmp_path_factory.mktemp("parity")
    asyncio.run(carry_out(folder))
    return folder / "r"


@pytest.fixture(scope="module")
def traces(run: Path) -> dict[tuple[str, str], list[JSONObject]]:
    """Events by harness and task."""
    harness = {a.arm.digest: a.arm.harness for a in read_stamp(run).arms}
    store = TraceStore(run)
    found = {(harness[a.key.arm], a.key.task): list(store.read(a.trace).events()) for a in read_attempts(run)}
    store.close()
    return found


def plain(events: list[JSONObject]) -> list[str]:
    """The trace without times, numbers of calls, names of arms, and what only the transport did.

    Calls that ran side by side arrive in any order over HTTP: each with its result, they are put in order.
    """
    told: list[str] = []
    calls: dict[JSONValue, list[str]] = {}
    for event in events:
        kind = str(event["e"])
        named = ("t", "wall_s", "queue_s", "arm", *(("id",) if event["e"] == "trial.start" else ()))
        shown = exact_text({k: v for k, v in event.items() if k not in named})
        if kind.startswith("tool."):
            without = exact_text({k: v for k, v in event.items() if k not in ("t", "wall_s", "queue_s", "call")})
            calls.setdefault(event["call"], []).append(without)
        elif not kind.startswith("wire."):
            told += sorted(" -> ".join(call) for call in calls.values())
            calls.clear()
            told.append(shown if kind != "deliverable" else _deliverable(event))
    return told


def _deliverable(event: JSONObject) -> str:
    calls = event["calls"]
    assert isinstance(calls, list)
    return exact_text(
        {"answer": event.get("answer"), "data": event.get("data"), "calls": sorted(map(exact_text, calls))}
    )


@pytest.mark.parametrize("number", range(SCRIPTS))
def test_both_forms_of_the_wires_leave_the_same_trace(
    traces: dict[tuple[str, str], list[JSONObject]], number: int
) -> None:
    in_memory, over_http = (traces[harness, f"s{number}"] for harness in ("react", "http-react"))

    assert plain(over_http) == plain(in_memory)
    assert any(e["e"] == "wire.client" for e in over_http)


def test_the_scripts_hold_what_they_are_meant_to(traces: dict[tuple[str, str], list[JSONObject]]) -> None:
    events = [event for (harness, _), trace in traces.items() if harness == "react" for event in trace]
    exits = {(e["kind"], e.get("limit")) for e in events if e["e"] == "exit"}
    limits = {("limit", name) for name in ("model_calls", "tool_calls", "tokens", "turns")}
    assert exits >= limits | {("completed", None), ("refused", None), ("crashed", None)}
    assert any("raw" in e for e in events if e["e"] == "tool.call")
    assert any(e["error"] for e in events if e["e"] == "tool.result")
    assert {e["tool"] for e in events if e["e"] == "tool.call"} >= {"no such tool", "größe", ""}


def test_both_forms_count_the_same(run: Path) -> None:
    harness = {a.arm.digest: a.arm.harness for a in read_stamp(run).arms}
    counted: dict[str, dict[str, object]] = {}
    for attempt in read_attempts(run):
        counts = (attempt.usage, attempt.tool_calls, attempt.tool_errors, attempt.exit, attempt.void)
        counted.setdefault(harness[attempt.key.arm], {})[attempt.key.task] = counts
    assert counted["http-react"] == counted["react"]
    assert len(counted["react"]) == SCRIPTS


def test_no_token_of_a_wire_is_stored(run: Path) -> None:
    store = TraceStore(run)
    for attempt in read_attempts(run):
        assert b"/mcp" not in b"".join(store.read(attempt.trace)._lines)
    store.close()
    assert all(b"127.0.0.1" not in f.read_bytes() for f in run.rglob("*") if f.is_file())
