"""Runs of BFCL tasks through the whole rig, and what they leave: what the tests here start from."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from attrs import frozen

from evalcore.contracts import ToolkitHandle
from evalcore.engine.plan import Plan, make_plan
from evalcore.engine.run import RunOptions, start
from evalcore.engine.runner import RunEnd
from evalcore.engine.services import LocalServices
from evalcore.engine.store import TraceStore, read_attempts, read_gradings, read_stamp
from evalcore.engine.trial import deliverable_of
from evalcore.plugins import Registry, load
from evalcore.values.study import BenchmarkChoice, Study
from evalcore.values.trial import Attempt, Deliverable, Grading, Verdict
from evalcore_bfcl.plugin import CATEGORIES, DIALOGUES

T = TypeVar("T")

CONTROLS: Mapping[str, Mapping[str, Any]] = {"oracle": {"harness": "oracle"}, "noop": {"harness": "noop"}}
REACT: Mapping[str, Mapping[str, Any]] = {"react": {"harness": "react", "model": "scripted/play.jsonl"}}

UNAVAILABLE: Final = frozenset({"memory_vector"})  # what its toolkit does not hold, nor any package index
HERE: Final = tuple(c for c in (*CATEGORIES, *DIALOGUES) if c not in UNAVAILABLE)


@frozen
class Trial:
    """What one trial left."""

    attempt: Attempt
    grading: Grading
    left: Deliverable

    @property
    def verdict(self) -> Verdict:
        return self.grading.verdict


Trials: TypeAlias = dict[tuple[str, str, str], Trial]  # by benchmark, arm's handle and task


def registry() -> Registry:
    """The core and this plugin."""
    found = load(only=("bfcl",))
    assert found.failures == []
    return found


def study(
    benchmarks: tuple[str, ...],
    arms: Mapping[str, Mapping[str, Any]] = CONTROLS,
    *,
    limit: int | None = None,
    tasks: Mapping[str, tuple[str, ...]] | None = None,
    **changes: Any,
) -> Study:
    """A study of the first `limit` tasks of each benchmark, or of those named."""
    choices = {name: BenchmarkChoice(limit=None if limit is None else (0, limit)) for name in benchmarks}
    choices |= {name: BenchmarkChoice(tasks=ids) for name, ids in (tasks or {}).items()}
    return Study("bfcl", benchmarks, arms, choices=choices, **changes)


Beside: TypeAlias = Callable[[LocalServices], Awaitable[None]]


async def carry_out(
    what: Study, folder: Path, found: Registry | None = None, beside: Beside | None = None
) -> tuple[Plan, RunEnd]:
    """Run a study into `folder`/r. `beside` begins before the first trial, and goes on side by side with them."""
    found = found or registry()
    services = LocalServices(found, folder)
    try:
        plan = await make_plan(what, found, services, "r")
        if beside is None:
            end = await start(plan, folder / "r", found, services, RunOptions())
        else:
            _, end = await asyncio.gather(beside(services), start(plan, folder / "r", found, services, RunOptions()))
    finally:
        await services.close()
    return plan, end


def run(what: Study, folder: Path, found: Registry | None = None) -> Path:
    """Run a study to its end, nothing lost; returns the run's directory."""
    _, end = asyncio.run(carry_out(what, folder, found))
    assert end == RunEnd("done")
    return folder / "r"


def trials(path: Path) -> Trials:
    """Every graded trial of a run of one repeat: all but the sessions that others require."""
    stamp, store = read_stamp(path), TraceStore(path)
    handles = {a.arm.digest: a.arm.handle for a in stamp.arms}
    graded = {g.attempt: g for g in read_gradings(path, stamp.grading)}
    found = {}
    for attempt in read_attempts(path):
        if attempt.id not in graded:
            continue
        left = deliverable_of(store.read(attempt.trace))
        assert left is not None
        key = attempt.key
        found[key.benchmark, handles[key.arm], key.task] = Trial(attempt, graded[attempt.id], left[0])
    store.close()
    return found


def with_toolkit(work: Callable[[ToolkitHandle], Awaitable[T]], name: str = "bfcl") -> T:
    """What `work` returns, given a toolkit."""

    async def ask() -> T:
        services = LocalServices(registry(), Path())
        try:
            return await work(await services.toolkit(name))
        finally:
            await services.close()

    return asyncio.run(ask())


async def gold_of(toolkit: ToolkitHandle, category: str, task: str) -> list[dict[str, Any]]:
    """The calls that solve a task, as a playbook has them."""
    gold: Any = await toolkit.request("gold", {"category": category, "id": task}, 60)
    return gold["calls"] or []


async def gold_turns_of(toolkit: ToolkitHandle, category: str, task: str) -> list[list[dict[str, Any]]]:
    """The calls that solve a task, turn by turn."""
    gold: Any = await toolkit.request("dialogue_gold", {"category": category, "id": task}, 60)
    return list(gold["turns"])


def write_playbook(folder: Path, replies: list[dict[str, Any]]) -> None:
    """The replies of the arm `react`, in order of precedence."""
    (folder / "play.jsonl").write_text("".join(json.dumps(reply) + "\n" for reply in replies), encoding="utf-8")
