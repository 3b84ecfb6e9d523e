"""Runs of suites for tests, and a harness that ends as its option says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import psutil
from attrs import frozen

from evalcore.contracts import HarnessVersion, Job
from evalcore.engine.plan import Plan, close_plan, make_plan
from evalcore.engine.run import RunOptions, start
from evalcore.engine.runner import RunEnd
from evalcore.engine.services import LocalServices
from evalcore.engine.store import read_attempts, read_gradings, read_stamp
from evalcore.hookspecs import AxisInfo, HarnessInfo, hookimpl
from evalcore.plugins import PluginRef, Registry, load
from evalcore.report.load import load_report
from evalcore.report.model import Cell
from evalcore.values.json import JSONValue
from evalcore.values.study import Study
from evalcore.values.task import Limits
from evalcore.values.trial import Attempt, HarnessExit, Verdict

CONTROLS: Mapping[str, Mapping[str, JSONValue]] = {"oracle": {"harness": "oracle"}, "noop": {"harness": "noop"}}

NO_LIMITS: Final = Limits()
PLAINLY: Final = RunOptions()


class Ending:
    """A plugin: the harness `ending` makes every call it can, answers, and ends with the exit code of its option."""

    @hookimpl
    def evalcore_harnesses(self) -> list[HarnessInfo]:
        """The harness."""
        factory = "tests.integration.suite_parts:EndingHarness"
        return [HarnessInfo("ending", "ends as told", factory, uses_model=False, axes=("code",))]

    @hookimpl
    def evalcore_axes(self) -> list[AxisInfo]:
        """Its option."""
        return [AxisInfo("code", "the exit code", "harness", "integer", of="ending")]


class EndingHarness:
    """Says that it used up its tokens, with an exit code."""

    def __init__(self, services: object, info: object) -> None:
        pass

    async def probe(self) -> HarnessVersion:
        """A test's own."""
        return HarnessVersion("1")

    async def run(self, job: Job) -> HarnessExit:
        """No call."""
        code = job.options["code"]
        assert isinstance(code, int)
        return HarnessExit("x", "limit", code, {"limit": "tokens"})


@frozen
class Ran:
    """A run, read back."""

    path: Path
    plan: Plan
    end: RunEnd

    def attempts(self, task: str | None = None) -> list[Attempt]:
        """Its attempts in order."""
        return [a for a in read_attempts(self.path) if task is None or a.key.task == task]

    def verdicts(self, arm: str) -> dict[str, list[Verdict]]:
        """By task, in the order of the repeats."""
        stamp = read_stamp(self.path)
        digest = next(a.arm.digest for a in stamp.arms if a.arm.handle == arm)
        verdicts = {g.attempt: g.verdict for g in read_gradings(self.path, stamp.grading)}
        found: dict[str, list[Verdict]] = {}
        for attempt in sorted(self.attempts(), key=lambda a: a.key.repeat):
            if attempt.key.arm == digest and attempt.id in verdicts:
                found.setdefault(attempt.key.task, []).append(verdicts[attempt.id])
        return found

    def outcomes(self, arm: str) -> dict[str, list[str]]:
        """By task, in the order of the repeats."""
        return {task: [v.outcome for v in verdicts] for task, verdicts in self.verdicts(arm).items()}

    def cell(self) -> Cell:
        """The scorecard's first."""
        return load_report(self.path).cells[0]


def registry(*parts: object) -> Registry:
    """The built-ins, the harness above, and further parts."""
    found = load(only=())
    for number, part in enumerate(parts):
        found.add(PluginRef(f"part-{number}", f"part-{number}", "1", "tests"), part)
    found.add(PluginRef("ending", "ending", "1", "tests.integration.suite_parts"), Ending())
    assert found.failures == []
    return found


def children() -> set[psutil.Process]:
    """What this process has started, and what that has, as far as it still runs."""
    return {p for p in psutil.Process().children(recursive=True) if p.status() != psutil.STATUS_ZOMBIE}


def write(path: Path, lines: Sequence[Any]) -> Path:
    """A file of JSON lines."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def scripted(folder: Path, *replies: Any) -> dict[str, JSONValue]:
    """An arm that answers from these replies."""
    write(folder / "play.jsonl", replies)
    return {"harness": "react", "model": "scripted/play.jsonl"}


def planned(suite: str, folder: Path, arms: Mapping[str, Mapping[str, JSONValue]], **more: Any) -> Plan:
    """The plan alone."""
    what = Study(name="s", benchmarks=(suite,), arms=arms, **more)
    found = registry()
    return asyncio.run(make_plan(what, found, LocalServices(found, folder), "r"))


def ran(
    suite: str,
    folder: Path,
    arms: Mapping[str, Mapping[str, JSONValue]] = CONTROLS,
    *,
    name: str = "r",
    limits: Limits = NO_LIMITS,
    repeats: int = 1,
    options: RunOptions = PLAINLY,
    parts: Sequence[object] = (),
) -> Ran:
    """A whole run of a suite, which is named from `folder`."""
    what = Study(name="s", benchmarks=(suite,), arms=arms, repeats=repeats, limits=limits)

    async def carry_out() -> tuple[Plan, RunEnd]:
        found = registry(*parts)
        services = LocalServices(found, folder)
        plan = await make_plan(what, found, services, name)
        try:
            end = await start(plan, folder / name, found, services, options)
        finally:
            await close_plan(plan)
            await services.close()
        return plan, end

    plan, end = asyncio.run(carry_out())
    return Ran(folder / name, plan, end)
