"""Runs of τ²-bench through the whole rig, and simulations in a worker: what the tests here start from."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias, TypeVar

from attrs import frozen

from evalcore.contracts import CallContext, ToolkitHandle
from evalcore.engine.plan import Plan, make_plan
from evalcore.engine.run import RunOptions, start
from evalcore.engine.runner import RunEnd
from evalcore.engine.services import LocalServices
from evalcore.engine.store import TraceStore, read_attempts, read_gradings, read_stamp
from evalcore.engine.trial import deliverable_of
from evalcore.hookspecs import ModelInfo, hookimpl
from evalcore.plugins import PluginRef, Registry, load
from evalcore.values.study import BenchmarkChoice, RoleChoice, Study
from evalcore.values.trace import TraceReader
from evalcore.values.trial import Attempt, Deliverable, Grading, Verdict

T = TypeVar("T")

CONTROLS: Mapping[str, Mapping[str, Any]] = {"oracle": {"harness": "oracle"}, "noop": {"harness": "noop"}}
SLOW_S = 120.0  # for what must happen, on however busy a machine


class Judges:
    """A judge that gives the opinion that it is named for on every assertion that upstream shows it."""

    dialect = "openai-chat"

    def __init__(self, services: object = None, info: object = None) -> None:
        pass

    async def complete(self, model: str, body: dict[str, Any], context: CallContext) -> dict[str, Any]:
        asked = body["messages"][-1]["content"].rpartition("expectedOutcomes:")[2]
        outcomes: list[str] = eval(asked.strip(), {"__builtins__": {}})  # upstream writes a Python list
        met = model == "yes"
        results = [{"expectedOutcome": o, "reasoning": "so it is", "metExpectation": met} for o in outcomes]
        text = {"yes": None, "no": None, "nothing": '{"results": []}', "prose": "I think so."}[model]
        content = text or json.dumps({"results": results})
        message = {"role": "assistant", "content": content}
        usage = {"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 55}
        return {"model": model, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}

    def content(self, model: str) -> Mapping[str, str]:
        return {}

    async def close(self) -> None:
        pass


@hookimpl
def evalcore_models() -> list[ModelInfo]:
    return [ModelInfo("judges", "opinions for tests", f"{__name__}:Judges")]


@frozen
class Trial:
    """What one trial left."""

    attempt: Attempt
    grading: Grading
    left: Deliverable
    trace: TraceReader

    @property
    def verdict(self) -> Verdict:
        return self.grading.verdict

    @property
    def simulation(self) -> dict[str, Any]:
        found: Any = self.left.data["simulation"]
        return dict(found)


Trials: TypeAlias = dict[tuple[str, str, str], Trial]  # by benchmark, arm's handle and task


def registry() -> Registry:
    """The core, this plugin, and a judge."""
    found = load(only=("tau2",))
    found.add(PluginRef("judges", "judges", "1", __name__), SimpleNamespace(evalcore_models=evalcore_models))
    assert found.failures == []
    return found


def study(
    benchmarks: tuple[str, ...],
    arms: Mapping[str, Mapping[str, Any]] = CONTROLS,
    *,
    limit: int | None = None,
    tasks: tuple[str, ...] = (),
    judge: str | None = None,
    user: str | None = None,
    **changes: Any,
) -> Study:
    """A study of the first `limit` tasks of each benchmark, or of those named."""
    choice = BenchmarkChoice(tasks=tasks, limit=None if limit is None else (0, limit))
    named = {"judge": judge, "user": user}
    roles: Any = {role: RoleChoice(model=model) for role, model in named.items() if model is not None}
    return Study("tau2", benchmarks, arms, choices=dict.fromkeys(benchmarks, choice), roles=roles, **changes)


async def carry_out(what: Study, folder: Path, found: Registry | None = None) -> tuple[Plan, RunEnd]:
    """Run a study into `folder`/r."""
    found = found or registry()
    services = LocalServices(found, folder)
    try:
        plan = await make_plan(what, found, services, "r")
        return plan, await start(plan, folder / "r", found, services, RunOptions())
    finally:
        await services.close()


def run(what: Study, folder: Path, found: Registry | None = None) -> Path:
    """Run a study to its end, nothing lost; returns the run's directory."""
    _, end = asyncio.run(carry_out(what, folder, found))
    assert end == RunEnd("done")
    return folder / "r"


def trials(path: Path) -> Trials:
    """Every trial of a run of one repeat."""
    stamp, store = read_stamp(path), TraceStore(path)
    handles = {a.arm.digest: a.arm.handle for a in stamp.arms}
    graded = {g.attempt: g for g in read_gradings(path, stamp.grading)}
    found = {}
    for attempt in read_attempts(path):
        if attempt.void is not None:
            continue
        trace = store.read(attempt.trace)
        left = deliverable_of(trace)
        assert left is not None
        key = attempt.key
        found[key.benchmark, handles[key.arm], key.task] = Trial(attempt, graded[attempt.id], left[0], trace)
    store.close()
    return found


class Bench:
    """One worker for all tests that only ask one: it starts once, as in a run."""

    _open: tuple[asyncio.Runner, LocalServices] | None = None

    @classmethod
    def use(cls, work: Callable[[ToolkitHandle], Awaitable[T]]) -> T:
        """What `work` returns, given the toolkit."""
        if cls._open is None:
            cls._open = asyncio.Runner(), LocalServices(registry(), Path())
        runner, services = cls._open

        async def ask() -> T:
            return await work(await services.toolkit("tau2"))

        return runner.run(ask())

    @classmethod
    def close(cls) -> None:
        """End the worker."""
        if cls._open is not None:
            runner, services = cls._open
            runner.run(services.close())
            runner.close()
            cls._open = None


with_toolkit = Bench.use


async def task_of(toolkit: ToolkitHandle, domain: str, identifier: str) -> dict[str, Any]:
    """A task as it stands in upstream's file."""
    served: Any = await toolkit.request("tasks", {"domain": domain, "split": "base"}, SLOW_S)
    return next(dict(t) for t in served["tasks"] if t["id"] == identifier)
