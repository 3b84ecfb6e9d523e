"""Measures the floor of benchmarks that ask for it: the noop control plays their planned tasks once, beside the run.

A run that has noop among its arms has its floor there. Noop uses no model, and nobody is asked to judge it, so this
costs no money. What was measured is kept in the cache, by what it depends on; failing to measure fails no run.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Final

from attrs import evolve

from evalcore.contracts import Clock
from evalcore.datasets.cache import cache_root
from evalcore.engine.arms import complete_arms
from evalcore.engine.benchmarks import Benchmark
from evalcore.engine.parts import make_cell, vocabulary
from evalcore.engine.plan import Plan
from evalcore.engine.runner import grade_recorded, trial_seed
from evalcore.engine.store import write_durably
from evalcore.engine.trial import Cell, execute
from evalcore.errors import EvalcoreError
from evalcore.values.floor import Floor
from evalcore.values.json import JSONObject, digest, dumps, parse
from evalcore.values.study import Study
from evalcore.values.task import Limits, Task
from evalcore.values.trial import SUCCESSES, TrialKey
from evalcore.wires.meter import RunBudget

FLOORS: Final = "floors.json"
SCHEMA: Final = "evalcore.floors/1"
_NOOP: Final = "noop"
_log = logging.getLogger("evalcore")


async def measure_floors(plan: Plan, path: Path, clock: Clock, concurrency: int) -> None:
    """Write `floors.json` into a run that needs one. Never raises but for cancellation."""
    wanted = [b for b in plan.benchmarks if _wants(plan, b)]
    if not wanted:
        return
    found: dict[str, Floor] = {}
    for benchmark in wanted:
        try:
            found[benchmark.selector] = await _floor(plan, benchmark, clock, concurrency)
        except Exception as error:  # noqa: BLE001 - the run is measured, whatever became of its floor
            why = error.message if isinstance(error, EvalcoreError) else f"{type(error).__name__}: {error}"
            found[benchmark.selector] = Floor(why=why)
    floors: JSONObject = {selector: floor.as_json() for selector, floor in found.items()}
    try:
        write_durably(path / FLOORS, dumps({"schema": SCHEMA, "floors": floors}))
    except OSError as error:
        _log.warning("cannot write %s: %s", path / FLOORS, error.strerror)


def read_floors(path: Path) -> dict[str, Floor]:
    """The measured floors of a run, by selector; none where none was measured. One that cannot be read says why."""
    file = path / FLOORS
    if not file.is_file():
        return {}
    try:
        value = parse(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        value = None
    floors = value.get("floors") if isinstance(value, dict) and value.get("schema") == SCHEMA else None
    if not isinstance(floors, dict):
        _log.warning("%s is no file of floors: it is left out", file)
        return {}
    return {selector: _read(floor) or Floor(why=f"{FLOORS} does not tell it") for selector, floor in floors.items()}


def _read(value: object) -> Floor | None:
    """A floor as `as_json` wrote it; None for what is none."""
    if not isinstance(value, dict) or not isinstance(value.get("why"), str):
        return None
    numbers = [value.get(name) for name in ("tasks", "solved", "ungraded", "lost")]
    counts = [n for n in numbers if type(n) is int and n >= 0]
    if len(counts) < len(numbers) or sum(counts[1:]) > counts[0] or (counts[0] == 0 and not value["why"]):
        return None
    tasks, solved, ungraded, lost = counts
    return Floor(tasks, solved, ungraded, lost, value["why"])


def _wants(plan: Plan, benchmark: Benchmark) -> bool:
    """Whether an agent was measured on it, and no noop beside that agent."""
    cells = [cell for (selector, _), cell in plan.cells.items() if selector == benchmark.selector]
    cells += [cell for (selector, _), cell in plan.faulted.items() if selector == benchmark.selector]
    controls_only = all(cell.control for cell in cells)
    return benchmark.info.measured_floor and not controls_only and all(c.arm.harness != _NOOP for c in cells)


async def _floor(plan: Plan, benchmark: Benchmark, clock: Clock, concurrency: int) -> Floor:
    """From the cache, or played now and kept there. One that is not whole is not kept."""
    kept = cache_root() / "floors" / f"{_name(benchmark)}.json"
    try:
        known = _read(parse(kept.read_bytes()))
    except (OSError, ValueError, RecursionError):
        known = None
    if known is not None and not known.why:
        return known
    floor = await _play_all(plan, benchmark, clock, concurrency)
    if floor.lost == 0 and not floor.why:
        try:
            kept.parent.mkdir(exist_ok=True)
            write_durably(kept, dumps(floor.as_json()))
        except OSError as error:
            _log.warning("cannot keep a floor in %s: %s", kept.parent, error.strerror)
    return floor


def _name(benchmark: Benchmark) -> str:
    """What a floor depends on: the data, the tasks that are planned, and what grades them."""
    stamp = benchmark.stamp
    return digest(
        {
            "schema": SCHEMA,
            "dataset": stamp.dataset.digest,
            "tasks": stamp.tasks_digest,
            "grader": stamp.grader,
            "stamp": stamp.grader_stamp,
        }
    )


async def _play_all(plan: Plan, benchmark: Benchmark, clock: Clock, concurrency: int) -> Floor:
    if any(task.requires for task in benchmark.tasks):
        return Floor(why="its tasks go on from what others have left, which doing nothing does not")
    cell = await _cell(plan, benchmark)
    slots = asyncio.Semaphore(concurrency)

    async def one(task: Task) -> str:
        async with slots:
            return await _play(cell, task, plan.study.seed, clock)

    try:
        async with asyncio.TaskGroup() as group:  # where one raises, none goes on beside the run
            trials = [group.create_task(one(task)) for task in benchmark.tasks]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    results = [trial.result() for trial in trials]
    return Floor(
        tasks=len(results),
        solved=sum(r in SUCCESSES for r in results),
        ungraded=results.count("ungraded"),
        lost=results.count("lost"),
    )


async def _cell(plan: Plan, benchmark: Benchmark) -> Cell:
    """Noop on a benchmark, within the benchmark's own limits, and with nobody for any other role."""
    study = Study("floor", (benchmark.selector,), {_NOOP: {"harness": _NOOP}}, seed=plan.study.seed, limits=Limits())
    [arm] = complete_arms(study, vocabulary(plan.parts.registry), base=plan.parts.services.base)
    info, harness, _ = await plan.parts.harness(_NOOP)
    return evolve(make_cell(benchmark, arm, info, harness, study, plan.parts, None, {}), recordings=None)


async def _play(cell: Cell, task: Task, seed: int, clock: Clock) -> str:
    """The outcome of one trial; `lost` where there is none. Cancellation passes through."""
    key = TrialKey(cell.benchmark, task.id, cell.arm.digest, 1)
    done = await execute(cell, task, key, 1, trial_seed(seed, key), clock, RunBudget(None))
    if done.attempt.void is not None:
        if done.attempt.void.kind == "interrupted":
            raise asyncio.CancelledError
        return "lost"
    grading = await grade_recorded(cell.grader, task, done.attempt, done.reader)
    return "lost" if grading.verdict.outcome == "grader_error" else grading.verdict.outcome
