"""One attempt, in one straight line: assign, open, run, capture, collect; then, once that is durable, grade.

Nothing here retries, schedules or writes to disk. Each stage takes and returns frozen values.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
import types
from collections.abc import Coroutine, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from attrs import define, field, frozen

from evalcore.contracts import (
    Adapter,
    Bridge,
    Clock,
    Episode,
    Grader,
    Harness,
    Job,
    JudgeReplies,
    OpenTrial,
    Provider,
    Tools,
)
from evalcore.engine.fault import as_infra, decide, void_of
from evalcore.errors import EvalcoreError, InfraError
from evalcore.values.arm import Arm
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import Assignment, Call, Gold, Limits, Task
from evalcore.values.trace import TraceReader, tool_calls
from evalcore.values.trial import (
    Attempt,
    BlobRef,
    Deliverable,
    Evidence,
    Exit,
    Grading,
    HarnessExit,
    TraceRef,
    TrialKey,
    Verdict,
    Void,
)
from evalcore.wires.gateway.channel import MemoryChannel
from evalcore.wires.meter import Meter, RunBudget, limits_json
from evalcore.wires.recorder import AttemptRecorder
from evalcore.wires.tools import RecordedTools

T = TypeVar("T")

STAGE_S: Final = 600.0  # a stage other than the harness that takes longer has hung
GRACE_S: Final = 10.0  # what a cancelled harness gets to clean up before it is left behind
NOWHERE: Final = TraceRef("", 0, 0)


@frozen
class Cell:
    """The parts of one benchmark × arm, made once per run."""

    benchmark: str
    adapter: Adapter
    grader: Grader
    arm: Arm
    harness: Harness
    provider: Provider | None
    bridges: Mapping[str, Bridge]
    options: Mapping[str, JSONValue]  # the arm's harness-owned axes
    parameters: Mapping[str, JSONValue]  # and its gateway-owned ones
    limits: Limits  # the study's; the stricter of these and the assignment's applies
    control: bool


@define
class LiveTrial:
    """One attempt while it is open; what bridges and adapters see of it."""

    key: TrialKey
    attempt: int
    task: Task
    arm: Arm
    assignment: Assignment
    limits: Limits
    recorder: AttemptRecorder
    seed: int
    episodes: list[Episode] = field(factory=list)
    exit: HarnessExit | None = None
    _workdir: Path | None = None

    def workdir(self) -> Path:
        """A folder of the trial's own, made when first asked for and removed at the end."""
        if self._workdir is None:
            self._workdir = Path(tempfile.mkdtemp(prefix="evalcore-"))
        return self._workdir

    def remove_workdir(self) -> None:
        """Remove the folder, if it was made."""
        if self._workdir is not None:
            shutil.rmtree(self._workdir, ignore_errors=True)


@frozen
class Executed:
    """What an attempt leaves for the ledger and the grader. `deliverable` is None if it is void."""

    attempt: Attempt
    lines: list[bytes]
    reader: TraceReader
    deliverable: Deliverable | None
    evidence: Evidence | None


async def execute(
    cell: Cell, task: Task, key: TrialKey, number: int, seed: int, clock: Clock, budget: RunBudget
) -> Executed:
    """Run one attempt. What is not its doing comes back as a void attempt, also cancellation (`interrupted`)."""
    recorder = AttemptRecorder(clock)
    meter = Meter(budget)
    started = clock.now()
    deliverable = evidence = None
    outcome: Exit | Void
    try:
        outcome, deliverable, evidence = await _line(cell, task, key, number, seed, recorder, meter)
    except Exception as error:  # noqa: BLE001 - whatever it is: it must end up in the ledger, as a void
        outcome = void_of(meter.failure or error)
    except asyncio.CancelledError:
        outcome = Void("interrupted", "stopped before it ended")
    if isinstance(outcome, Void):
        recorder.record("void", kind=outcome.kind, message=outcome.message)
        deliverable = evidence = None
    recorder.seal()
    attempt = Attempt(
        id=f"{key}/{number}",
        key=key,
        task_digest=task.digest,
        number=number,
        exit=outcome if isinstance(outcome, Exit) else None,
        void=outcome if isinstance(outcome, Void) else None,
        started=started,
        wall_s=round(recorder.elapsed(), 6),
        usage=meter.usage(),
        tool_calls=meter.tool_calls,
        tool_errors=meter.tool_errors,
        trace=NOWHERE,
        flags=task.flags,
    )
    return Executed(attempt, recorder.lines(), recorder.reader(), deliverable, evidence)


async def _line(
    cell: Cell, task: Task, key: TrialKey, number: int, seed: int, recorder: AttemptRecorder, meter: Meter
) -> tuple[Exit | Void, Deliverable | None, Evidence | None]:
    """The straight line itself. Who opens closes, on every path."""
    assignment = await _stage("assign", cell.adapter.assign(task, cell.arm))
    limits = assignment.limits.stricter(cell.limits)
    meter.bind(limits, {role: spec.limits for role, spec in assignment.roles.items()})
    trial = LiveTrial(key, number, task, cell.arm, assignment, limits, recorder, seed)
    _record_start(trial)
    try:
        wires = await _stage("open", _open(cell, trial, meter))
        gold = await cell.adapter.gold(task) if cell.control else None
        outcome = await _run(cell, trial, meter, wires, gold)
        if isinstance(outcome, Void):
            return outcome, None, None
        deliverable = await _stage("capture", cell.adapter.capture(trial))
        recorder.record("deliverable", **deliverable.as_json())
        evidence = await _stage("collect", cell.adapter.collect(trial))
        recorder.record("evidence", **evidence.as_json())
        return outcome, deliverable, evidence
    finally:
        await _close(trial)


async def _stage(name: str, work: Coroutine[Any, Any, T]) -> T:
    """One stage other than the harness: bounded in time, and whatever escapes it is infrastructure."""
    try:
        return await _bounded(work)
    except TimeoutError as error:
        raise InfraError(f"{name} did not end within {STAGE_S:g} s") from error
    except Exception as error:
        raise as_infra(error, name) from error


async def _bounded(work: Coroutine[Any, Any, T]) -> T:
    """Await `work` for STAGE_S at most. Most stages never wait, and pay for no timer. Raises TimeoutError."""
    try:
        waiting = work.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    async with asyncio.timeout(STAGE_S):
        return await _continued(work, waiting)


@types.coroutine
def _continued(work: Coroutine[Any, Any, T], waiting: Any) -> Generator[Any, Any, T]:
    """Go on with a coroutine that has begun and now waits for `waiting`."""
    try:
        while True:
            try:
                answer = yield waiting
            except BaseException as error:  # noqa: BLE001 - cancellation goes where it would have gone
                waiting = work.throw(error)
            else:
                waiting = work.send(answer)
    except StopIteration as done:
        value: T = done.value
        return value


def _record_start(trial: LiveTrial) -> None:
    trial.recorder.record(
        "trial.start",
        task=trial.task.id,
        arm=trial.arm.label,
        repeat=trial.key.repeat,
        attempt=trial.attempt,
        seed=trial.seed,
        messages=[m.as_json() for m in trial.assignment.messages],
        bridges=[b.kind for b in trial.assignment.bridges],
        limits=limits_json(trial.limits),
    )


async def _open(cell: Cell, trial: LiveTrial, meter: Meter) -> tuple[Tools, ...]:
    """Open an episode per bridge and put the tool wire before each."""
    wires: list[RecordedTools] = []
    for spec in trial.assignment.bridges:
        episode = await cell.bridges[spec.kind].open(spec, trial)
        trial.episodes.append(episode)
        wires.append(RecordedTools(spec.kind, episode, trial.recorder, meter))
    if len(wires) > 1:
        _refuse_collisions(wires)
    return tuple(wires)


def _refuse_collisions(wires: Sequence[RecordedTools]) -> None:
    owner: dict[str, str] = {}
    for wire in wires:
        for spec in wire.list():
            if spec.name in owner:
                raise InfraError(f"tool {spec.name!r} is offered by {owner[spec.name]!r} and by {wire.bridge!r}")
            owner[spec.name] = wire.bridge


async def _run(cell: Cell, trial: LiveTrial, meter: Meter, wires: tuple[Tools, ...], gold: Gold | None) -> Exit | Void:
    """Let the harness work, within the trial's time, and decide how it ended."""
    job = Job(
        messages=trial.assignment.messages,
        tools=wires,
        model=_channel(cell, trial, meter),
        options=cell.options,
        limits=trial.limits,
        workdir=trial.workdir,
        gold=gold,
        seed=trial.seed,
    )
    claim: HarnessExit | None = None
    failure: BaseException | None = None
    task = asyncio.ensure_future(cell.harness.run(job))
    out_of_time = not await _finished(task, trial.limits.wall_s)
    if task.done() and not task.cancelled():
        failure = task.exception()
        claim = None if failure else task.result()
    trial.exit = claim
    outcome = decide(meter, claim, failure, out_of_time)
    _record_exit(trial.recorder, claim, outcome)
    return outcome


async def _finished(task: asyncio.Future[HarnessExit], wall_s: float | None) -> bool:
    """Wait for the harness; when its time is over, cancel it, and leave it behind if it ignores even that."""
    try:
        done, _ = await asyncio.wait((task,), timeout=wall_s)
        if done:
            return True
        task.cancel()
        await asyncio.wait((task,), timeout=GRACE_S)
        return False
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait((task,), timeout=GRACE_S)
        raise


def _channel(cell: Cell, trial: LiveTrial, meter: Meter) -> MemoryChannel | None:
    if cell.provider is None or cell.arm.model is None:
        return None
    return MemoryChannel(
        "agent",
        cell.arm.model,
        cell.provider,
        cell.parameters,
        trial.recorder,
        meter,
        trial.key,
        trial.attempt,
        trial.seed,
    )


def _record_exit(recorder: AttemptRecorder, claim: HarnessExit | None, outcome: Exit | Void) -> None:
    if claim is not None:
        fields: JSONObject = {"claim": claim.claim, "evidence": claim.evidence}
        recorder.record("harness.exit", **fields, **_set(answer=claim.answer, exit_code=claim.exit_code))
    if isinstance(outcome, Exit):
        recorder.record("exit", kind=outcome.kind, **_set(limit=outcome.limit, detail=outcome.detail))


def _set(**fields: JSONValue) -> JSONObject:
    return {k: v for k, v in fields.items() if v is not None}


async def _close(trial: LiveTrial) -> None:
    """Close every episode, last opened first; a failure to close is recorded and fails nothing that was measured."""
    for episode in reversed(trial.episodes):
        try:
            await _stage("close", episode.close())
        except EvalcoreError as error:
            trial.recorder.record("env.close_failed", message=error.message)
    trial.remove_workdir()


def standard_deliverable(trial: OpenTrial, data: JSONObject | None = None) -> Deliverable:
    """The usual deliverable: the harness's answer, every call of the trace, and what the adapter adds."""
    answer = trial.exit.answer if trial.exit else None
    return Deliverable(answer, tuple(tool_calls(trial.recorder.reader())), data or {})


async def grade(
    cell_grader: Grader,
    task: Task,
    attempt: Attempt,
    deliverable: Deliverable,
    evidence: Evidence,
    reader: TraceReader,
    judge: JudgeReplies | None = None,
) -> Grading:
    """The native grader's verdict; its failure is a grader_error, never a failed task. Only cancellation is raised."""
    began = time.perf_counter()
    verdict: object = None
    fault = None
    try:
        verdict = await _bounded(cell_grader.grade(task, deliverable, evidence, reader, judge))
    except TimeoutError:
        fault = f"did not answer within {STAGE_S:g} s"
    except Exception as error:  # noqa: BLE001 - whatever the grader did, it is no failed task
        fault = error.message if isinstance(error, EvalcoreError) else f"{type(error).__name__}: {error}"
    if not isinstance(verdict, Verdict):
        fault = fault or f"returned {type(verdict).__name__}, no verdict"
        verdict = Verdict("grader_error")
    return Grading(attempt.id, verdict, round(time.perf_counter() - began, 6), fault)


def deliverable_of(reader: TraceReader) -> tuple[Deliverable, Evidence] | None:
    """What a stored trace holds for the grader; None for a void attempt."""
    left = next(reader.events("deliverable"), None)
    seen = next(reader.events("evidence"), None)
    if left is None or seen is None:
        return None
    return _deliverable(left), Evidence(_object(seen.get("data")), _blobs(seen.get("blobs")))


def _deliverable(event: JSONObject) -> Deliverable:
    answer, calls = event.get("answer"), event.get("calls")
    return Deliverable(
        answer if isinstance(answer, str) else None,
        tuple(_call(c) for c in calls if isinstance(c, dict)) if isinstance(calls, list) else (),
        _object(event.get("data")),
        _blobs(event.get("blobs")),
    )


def _call(value: JSONObject) -> Call:
    raw = value.get("raw")
    return Call(str(value["name"]), value.get("arguments"), raw if isinstance(raw, str) else None)


def _blobs(value: JSONValue) -> dict[str, BlobRef]:
    refs = _object(value)
    return {k: BlobRef(str(r["sha256"]), int(str(r["size"]))) for k, r in refs.items() if isinstance(r, dict)}


def _object(value: JSONValue) -> JSONObject:
    return value if isinstance(value, dict) else {}
