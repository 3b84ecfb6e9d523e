"""One attempt, in one straight line: assign, open, run, capture, collect; then, once that is durable, grade.

Nothing here retries, schedules or writes to disk. Each stage takes and returns frozen values.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, TypeVar

from attrs import Factory, evolve, frozen

from evalcore.contracts import (
    Adapter,
    Bridge,
    Clock,
    Grader,
    Harness,
    Job,
    OpenTrial,
    Tools,
    Transform,
)
from evalcore.engine.dialogue import converse, driver_of
from evalcore.engine.fault import as_infra, decide, void_of
from evalcore.engine.judging import Judge
from evalcore.engine.live import LiveTrial, RoleModel
from evalcore.engine.replay import Recordings
from evalcore.errors import AgentError, EvalcoreError, InfraError
from evalcore.process.bounded import HungError, bounded
from evalcore.values.arm import Arm
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import Assignment, Call, Limits, Role, Task
from evalcore.values.trace import TraceReader, tool_calls
from evalcore.values.trial import (
    RESULTS,
    Attempt,
    BlobRef,
    Deliverable,
    Evidence,
    Exit,
    Grading,
    HarnessExit,
    Provenance,
    TraceRef,
    TrialKey,
    Verdict,
    Void,
)
from evalcore.wires.gateway.channel import MemoryChannel
from evalcore.wires.gateway.prices import ModelPrice
from evalcore.wires.gateway.upstream import Upstream
from evalcore.wires.http import Door, WireServer, close_all
from evalcore.wires.injection import Injector
from evalcore.wires.meter import Meter, RunBudget, limits_json, text_of
from evalcore.wires.recorder import AttemptRecorder
from evalcore.wires.tools import RecordedTools

T = TypeVar("T")

STAGE_S: Final = 600.0  # a stage other than the harness that takes longer has hung
WALL_S: Final = 3600.0  # a trial without any limit on time would let one hung agent hold a run for ever
GRACE_S: Final = 10.0  # what a cancelled harness gets to clean up before it is left behind
_TICK_S: Final = 0.1  # how finely the time of a trial is looked at while a provider keeps it waiting
NOWHERE: Final = TraceRef("", 0, 0)


@frozen
class Cell:
    """The parts of one benchmark × arm, made once per run."""

    benchmark: str
    adapter: Adapter
    grader: Grader
    arm: Arm
    harness: Harness
    upstream: Upstream | None  # what stands before the provider of the arm's model; None: no model
    bridges: Mapping[str, Bridge]
    options: Mapping[str, JSONValue]  # the arm's harness-owned axes
    parameters: Mapping[str, JSONValue]  # and its gateway-owned ones
    limits: Limits  # the study's; the stricter of these and the assignment's applies
    control: bool
    transforms: tuple[tuple[Transform, JSONValue], ...] = ()  # what changes the assignment, each by its axis' value
    settings: Mapping[str, JSONValue] = Factory(dict)  # the arm's provider-owned axes
    wire_server: Callable[[], Awaitable[WireServer]] | None = None  # None: the harness takes its wires in memory
    price: ModelPrice | None = None  # of the arm's model; None: not known
    roles: Mapping[Role, RoleModel] = Factory(dict)  # who speaks for the roles other than the agent's
    role_limits: Mapping[Role, Limits] = Factory(dict)  # the study's
    provenance: Provenance = "live"
    recordings: Recordings | None = None  # where models' answers come from, in a replay
    injector: Injector | None = None  # of faults, on purpose
    varies: tuple[str, ...] = ()  # what of the requests varies from run to run


@frozen
class Executed:
    """What an attempt leaves for the ledger and the grader."""

    attempt: Attempt
    lines: list[bytes]
    reader: TraceReader


async def execute(
    cell: Cell,
    task: Task,
    key: TrialKey,
    number: int,
    seed: int,
    clock: Clock,
    budget: RunBudget,
    required: Mapping[str, Deliverable] | None = None,
) -> Executed:
    """Run one attempt. What is not its doing comes back as a void attempt, also cancellation (`interrupted`).

    `required` is what the tasks that this one requires have left, by their id.
    """
    recorder = AttemptRecorder(clock)
    meter = Meter(budget)
    started = clock.now()
    outcome: Exit | Void
    try:
        outcome = await _line(cell, task, key, number, seed, recorder, meter, required or {})
    except Exception as error:  # noqa: BLE001 - whatever it is: it must end up in the ledger, as a void
        outcome = void_of(meter.failure or error)
    except asyncio.CancelledError:
        outcome = Void("interrupted", "stopped before it ended")
    if isinstance(outcome, Void):
        recorder.record("void", kind=outcome.kind, message=outcome.message)
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
        provenance=cell.provenance,
        flags=task.flags if not meter.flags else (*task.flags, *sorted(meter.flags)),
        served={role: tuple(sorted(models)) for role, models in meter.served.items()},
    )
    return Executed(attempt, recorder.lines(), recorder.reader())


def unbegun(task: Task, key: TrialKey, number: int, clock: Clock, void: Void) -> Executed:
    """The attempt of a trial that could not begin."""
    recorder = AttemptRecorder(clock)
    recorder.record("void", kind=void.kind, message=void.message)
    recorder.seal()
    attempt = Attempt(
        f"{key}/{number}", key, task.digest, number, None, void, clock.now(), 0.0, {}, 0, 0, NOWHERE, flags=task.flags
    )
    return Executed(attempt, recorder.lines(), recorder.reader())


async def _line(
    cell: Cell,
    task: Task,
    key: TrialKey,
    number: int,
    seed: int,
    recorder: AttemptRecorder,
    meter: Meter,
    required: Mapping[str, Deliverable],
) -> Exit | Void:
    """The straight line itself. Who opens closes, on every path."""
    assignment = await _stage("assign", assigned(cell, task))
    limits = with_wall(assignment.limits.stricter(cell.limits))
    meter.bind(limits, _role_limits(cell, assignment))
    trial = LiveTrial(
        key, number, task, cell.arm, assignment, limits, recorder, meter, seed, cell.control, cell.roles, required
    )
    if cell.recordings is not None:
        trial.tape = cell.recordings.tape(key, cell.arm, cell.varies)
    _record_start(trial)
    try:
        if cell.control:
            trial.gold = await _stage("gold", cell.adapter.gold(task))
        wires = await _stage("open", _open(cell, trial, meter))
        outcome = await _run(cell, trial, meter, wires)
        if isinstance(outcome, Void):
            return outcome
        deliverable = await _stage("capture", cell.adapter.capture(trial))
        recorder.record("deliverable", **deliverable.as_json())
        evidence = await _stage("collect", cell.adapter.collect(trial))
        recorder.record("evidence", **evidence.as_json())
        return outcome
    finally:
        await _close(trial)


def _role_limits(cell: Cell, assignment: Assignment) -> dict[Role, Limits]:
    """Each role's own bounds: the stricter of the benchmark's and the study's."""
    own = {role: spec.limits for role, spec in assignment.roles.items()}
    return own | {role: limits.stricter(own.get(role, Limits())) for role, limits in cell.role_limits.items()}


def with_wall(limits: Limits) -> Limits:
    """The limits, with a bound on time where neither benchmark nor study has one."""
    return limits if limits.wall_s is not None else evolve(limits, wall_s=WALL_S)


async def assigned(cell: Cell, task: Task) -> Assignment:
    """What the adapter assigns, as the arm's transforms change it."""
    assignment = await cell.adapter.assign(task, cell.arm)
    for transform, value in cell.transforms:
        assignment = await transform.apply(assignment, value)
    return assignment


async def _stage(name: str, work: Coroutine[Any, Any, T]) -> T:
    """One stage other than the harness: bounded in time, and whatever escapes it is infrastructure."""
    try:
        return await bounded(work, STAGE_S)
    except HungError as error:
        raise InfraError(f"{name} did not end within {STAGE_S:g} s") from error
    except Exception as error:
        raise as_infra(error, name) from error


def _record_start(trial: LiveTrial) -> None:
    trial.recorder.record(
        "trial.start",
        id=f"{trial.key}/{trial.attempt}",
        task=trial.task.id,
        arm=trial.arm.label,
        repeat=trial.key.repeat,
        attempt=trial.attempt,
        seed=trial.seed,
        messages=[m.as_json() for m in trial.assignment.messages],
        bridges=[b.kind for b in trial.assignment.bridges],
        limits=limits_json(trial.limits),
    )


async def _open(cell: Cell, trial: LiveTrial, meter: Meter) -> tuple[RecordedTools, ...]:
    """Open an episode per bridge and put the tool wire before each."""
    wires: list[RecordedTools] = []
    faults = None if cell.injector is None else cell.injector.of_tools(trial.key, trial.recorder)
    for spec in trial.assignment.bridges:
        episode = await cell.bridges[spec.kind].open(spec, trial)
        trial.episodes.append(episode)
        wires.append(RecordedTools(spec.kind, episode, trial.recorder, meter, faults))
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


async def _run(cell: Cell, trial: LiveTrial, meter: Meter, wires: tuple[RecordedTools, ...]) -> Exit | Void:
    """Let the harness work, within the trial's time, and decide how it ended."""
    channel = _channel(cell, trial)
    driver = driver_of(trial.episodes)
    job = Job(
        messages=trial.assignment.messages,
        tools=wires,
        model=channel,
        options=cell.options,
        limits=trial.limits,
        workdir=trial.workdir,
        gold=trial.gold,
        seed=trial.seed,
    )
    claim: HarnessExit | None = None
    failure: BaseException | None = None
    doors = await _stage("wires", _open_doors(cell, trial, wires, channel)) if cell.wire_server else []
    work = cell.harness.run(job) if driver is None else converse(cell.harness, job, driver, trial, wires)
    task = asyncio.ensure_future(_contained(work, meter))
    try:
        out_of_time = not await _finished(task, trial, meter)
    finally:
        await close_all(doors)
    if task.done() and not task.cancelled():
        failure = task.exception()
        claim = None if failure else task.result()
    trial.exit = claim or trial.exit  # of a dialogue that was cut off, what the agent said last
    outcome = decide(meter, claim, failure, out_of_time)
    _record_exit(trial.recorder, claim, outcome)
    return outcome


async def _open_doors(
    cell: Cell, trial: LiveTrial, wires: Sequence[Tools], channel: MemoryChannel | None
) -> list[Door]:
    """Put the wires where a harness that wants them over HTTP finds them."""
    assert cell.wire_server is not None
    server = await cell.wire_server()
    doors: list[Door] = []
    try:
        for tools in wires:
            doors.append(await server.serve_tools(tools, trial.recorder))
            tools.url = doors[-1].url
        if channel is not None:
            doors.append(await server.serve_channel(channel, trial.recorder))
            channel.url = doors[-1].url
    except BaseException:
        await close_all(doors)
        raise
    return doors


async def _contained(work: Coroutine[Any, Any, HarnessExit], meter: Meter) -> HarnessExit:
    """A harness that exits ends itself; out of a task it would end the program. The wires close behind it."""
    try:
        return await work
    except (SystemExit, KeyboardInterrupt) as error:
        raise AgentError(f"the harness raised {type(error).__name__}: {error}") from error
    finally:
        meter.close()


async def _finished(task: asyncio.Future[HarnessExit], trial: LiveTrial, meter: Meter) -> bool:
    """Wait for the harness; when its time is over, cancel it, and leave it behind if it ignores even that.

    Its time does not run while a provider that is busy or down is waited for.
    """
    left, excused_s = trial.limits.wall_s, 0.0
    try:
        while left is None or left > 0:
            done, _ = await asyncio.wait((task,), timeout=None if left is None else max(left, _TICK_S))
            if done:
                return True
            left = meter.excused_s(trial.recorder.elapsed()) - excused_s
            excused_s += left
        meter.close()
        task.cancel()
        await asyncio.wait((task,), timeout=GRACE_S)
        return False
    except asyncio.CancelledError:
        meter.close()
        task.cancel()
        await asyncio.wait((task,), timeout=GRACE_S)
        raise


def _channel(cell: Cell, trial: LiveTrial) -> MemoryChannel | None:
    if cell.upstream is None or cell.arm.model is None:
        return None
    served = RoleModel(cell.arm.model, cell.upstream, cell.parameters, cell.settings, cell.price)
    return trial.channel("agent", served)


def _record_exit(recorder: AttemptRecorder, claim: HarnessExit | None, outcome: Exit | Void) -> None:
    if isinstance(claim, HarnessExit):
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
    judge: Judge | None = None,
) -> Grading:
    """The native grader's verdict; its failure is a grader_error, never a failed task. Only cancellation is raised."""
    began = time.perf_counter()
    verdict: object = None
    fault = None
    try:
        verdict = await bounded(cell_grader.grade(task, deliverable, evidence, reader, judge), STAGE_S)
    except HungError:
        fault = f"did not answer within {STAGE_S:g} s"
    except Exception as error:  # noqa: BLE001 - whatever the grader did, it is no failed task
        fault = text_of(error) if isinstance(error, EvalcoreError) else f"{type(error).__name__}: {text_of(error)}"
    fault = fault or _no_verdict(verdict)
    given = verdict if isinstance(verdict, Verdict) and fault is None else Verdict("grader_error")
    said = (judge.usage, tuple(judge.replies)) if judge is not None else ({}, ())
    return Grading(attempt.id, given, round(time.perf_counter() - began, 6), fault, *said)


def _no_verdict(verdict: object) -> str | None:
    """What is wrong with what a grader returned; None if nothing is."""
    if not isinstance(verdict, Verdict):
        return f"returned {type(verdict).__name__}, no verdict"
    if verdict.outcome not in (*RESULTS, "ungraded", "grader_error"):
        return f"returned the outcome {verdict.outcome!r}, which is none"
    if verdict.score is not None and not 0 <= verdict.score <= 1:
        return f"returned the score {verdict.score}, which is not within 0 and 1"
    return None


def deliverable_of(reader: TraceReader) -> tuple[Deliverable, Evidence] | None:
    """What a stored trace holds for the grader; None for a void attempt."""
    left, seen = reader.last("deliverable"), reader.last("evidence")
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
