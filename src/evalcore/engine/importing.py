"""Writes down a run that another tool made: the same ledgers as ours, each attempt of provenance `imported`.

Such a run is reported and compared as any other. It can be neither resumed nor graded again: what it was made with is
not here.
"""

from __future__ import annotations

import asyncio
import shutil
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Final

from evalcore import API_VERSION, __version__
from evalcore.engine.ledger import Ledger
from evalcore.engine.store import create_run
from evalcore.errors import ConfigError, Fault
from evalcore.values.arm import Arm
from evalcore.values.faults import faulty
from evalcore.values.imported import ImportedBenchmark, ImportedRun, ImportedTrial
from evalcore.values.json import JSONObject, digest, dumps
from evalcore.values.stamp import ArmStamp, BenchmarkStamp, RunStamp
from evalcore.values.task import Limits, Task
from evalcore.values.trial import Attempt, Grading, TraceRef, TrialKey

MAX_FAULTS: Final = 20
_AT_ONCE: Final = 200
_NOWHERE: Final = TraceRef("", 0, 0)


async def write_imported(run: ImportedRun, path: Path) -> int:
    """Write a run's directory; returns how many trials it holds.

    Raises ConfigError for a run that contradicts itself or is there already; what was begun is removed.
    """
    arms = {a.handle: Arm(a.handle, dict(a.axes)) for a in run.arms}
    if len({arm.digest for arm in arms.values()}) != len(run.arms):
        raise ConfigError(f"{run.name}: two of its configurations are one: {', '.join(a.handle for a in run.arms)}")
    tasks = {
        (b.name, t.id): Task(t.id, {"content": t.content}, cluster=t.cluster) for b in run.benchmarks for t in b.tasks
    }
    stamp = _stamp(run, path.name, arms, tasks)
    create_run(path, stamp)
    try:
        return await _write_trials(run, path, stamp.grading, arms, tasks)
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise


async def _write_trials(
    run: ImportedRun, path: Path, grading: str, arms: dict[str, Arm], tasks: dict[tuple[str, str], Task]
) -> int:
    ledger = Ledger(path, grading)
    seen: set[str] = set()
    faults: list[Fault] = []
    batch: list[tuple[Attempt, ImportedTrial]] = []
    try:
        for number, trial in enumerate(run.trials, 1):
            fault = _fault(trial, arms, tasks)
            key = TrialKey(
                trial.benchmark, trial.task, arms[trial.arm].digest if trial.arm in arms else "", trial.repeat
            )
            name = f"{key}/{trial.number}"
            if fault is None and name in seen:
                fault = f"task {trial.task!r}, repeat {trial.repeat}, attempt {trial.number} stands there twice"
            if fault is not None:
                faults.append(Fault(f"trial {number}", fault))
                if len(faults) >= MAX_FAULTS:
                    break
                continue
            seen.add(name)
            batch.append((_attempt(trial, key, tasks[trial.benchmark, trial.task].digest), trial))
            if len(batch) >= _AT_ONCE:
                await _commit(ledger, batch)
                batch = []
        await _commit(ledger, batch)
    finally:
        await ledger.close()
    if faults:
        raise faulty(run.name, faults)
    if not seen:
        raise ConfigError(f"{run.name} holds no trial")
    return len(seen)


async def _commit(ledger: Ledger, batch: list[tuple[Attempt, ImportedTrial]]) -> None:
    """Commit trials together, so that they share a sync."""
    await asyncio.gather(*(ledger.executed(a, [dumps(event) for event in t.events]) for a, t in batch))
    graded = [Grading(a.id, t.verdict, 0.0) for a, t in batch if t.verdict is not None]
    await asyncio.gather(*(ledger.graded(grading) for grading in graded))


def _attempt(trial: ImportedTrial, key: TrialKey, task_digest: str) -> Attempt:
    return Attempt(
        id=f"{key}/{trial.number}",
        key=key,
        task_digest=task_digest,
        number=trial.number,
        exit=trial.exit,
        void=trial.void,
        started=trial.started,
        wall_s=trial.wall_s,
        usage=dict(trial.usage),
        tool_calls=trial.tool_calls,
        tool_errors=trial.tool_errors,
        trace=_NOWHERE,
        provenance="imported",
    )


def _fault(trial: ImportedTrial, arms: dict[str, Arm], tasks: dict[tuple[str, str], Task]) -> str | None:
    """Why a trial cannot be one of its run's."""
    if trial.arm not in arms:
        return f"there is no configuration {trial.arm!r}"
    if (trial.benchmark, trial.task) not in tasks:
        return f"there is no task {trial.task!r} of {trial.benchmark!r}"
    if (trial.exit is None) == (trial.void is None):
        return "it neither ended nor is void, or both"
    if trial.void is not None and trial.verdict is not None:
        return "it is void, and was graded"
    if trial.repeat < 1 or trial.number < 1:
        return "repeats and attempts count from 1"
    if not isfinite(trial.wall_s) or trial.wall_s < 0:
        return f"its time is {trial.wall_s} seconds"
    return None if _is_moment(trial.started) else f"it began at {trial.started!r}, which is no time of RFC 3339"


def _is_moment(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _stamp(run: ImportedRun, name: str, arms: dict[str, Arm], tasks: dict[tuple[str, str], Task]) -> RunStamp:
    study: JSONObject = {
        "study": {"name": run.name, "benchmarks": [b.name for b in run.benchmarks], "repeats": run.repeats},
        "arms": {handle: dict(arm.axes) for handle, arm in arms.items()},
        "imported": run.source,
    }
    return RunStamp(
        run=name,
        created=run.created,
        study_name=run.name,
        study_digest=digest(study),
        study=study,
        seed=run.seed,
        repeats=run.repeats,
        arms=tuple(
            ArmStamp(arms[a.handle], a.version, "", a.control, a.axes.get("model") is not None) for a in run.arms
        ),
        benchmarks=tuple(_benchmark(b, tasks) for b in run.benchmarks),
        grading=digest({b.name: {"grader": b.grader, "stamp": b.grader_stamp} for b in run.benchmarks})[:16],
        versions={"evalcore": __version__, "api": API_VERSION},
        host={"imported": run.source},
    )


def _benchmark(benchmark: ImportedBenchmark, tasks: dict[tuple[str, str], Task]) -> BenchmarkStamp:
    mine = [tasks[benchmark.name, t.id] for t in benchmark.tasks]
    return BenchmarkStamp(
        selector=benchmark.name,
        dataset=benchmark.dataset,
        tasks=len(mine),
        clusters=len({t.cluster for t in mine}),
        tasks_digest=digest([[t.id, t.digest] for t in mine]),
        grader=benchmark.grader,
        grader_stamp=benchmark.grader_stamp,
        limits=Limits(),
        of_tasks=len(mine),
        cluster_of={t.id: t.cluster for t in mine if t.cluster != t.id},
    )
