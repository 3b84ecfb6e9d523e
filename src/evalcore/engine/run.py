"""The verbs on runs, as functions: start, resume, rerun, regrade, and reading one back."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from attrs import evolve, frozen

from evalcore.contracts import Clock
from evalcore.engine.benchmarks import Benchmark, grading_digest, load_benchmark
from evalcore.engine.execution import Execution, keep_execution, read_execution
from evalcore.engine.fault import UNCOUNTED
from evalcore.engine.floors import measure_floors
from evalcore.engine.judging import Judge, replies_of
from evalcore.engine.ledger import Ledger
from evalcore.engine.plan import Plan, close_plan, make_plan
from evalcore.engine.replay import Replay
from evalcore.engine.roles import model_of
from evalcore.engine.runner import (
    FINISHING,
    Observer,
    Progress,
    RunEnd,
    Runner,
    Standing,
    grade_stored,
)
from evalcore.engine.services import LocalServices
from evalcore.engine.stamping import base_of
from evalcore.engine.store import (
    FileBlobs,
    RunLock,
    TraceStore,
    create_run,
    every_grading,
    lost_segments,
    read_attempts,
    read_gradings,
    read_stamp,
    repair,
    write_grading_stamp,
)
from evalcore.engine.study_file import parse_study
from evalcore.errors import FatalInfraError, RefusedError
from evalcore.plugins import Registry
from evalcore.values.arm import Arm
from evalcore.values.stamp import RunStamp
from evalcore.values.study import Study
from evalcore.values.trial import Attempt, Grading, TrialKey
from evalcore.wires.gateway.prices import PriceList
from evalcore.wires.meter import RunBudget

_log = logging.getLogger("evalcore")


@frozen
class RunOptions:
    """How a run is carried out; nothing here changes a result."""

    concurrency: int | None = None  # trials at a time; None: as the run was carried out before, or as is usual
    watch: Callable[[Plan, Progress], Awaitable[None]] | None = None  # runs beside the trials until it is cancelled
    budget_usd: float | None = None  # of a resumed run: in the place of the study's
    outage_s: float | None = None  # how long a provider that is down is waited for; None: likewise
    on_stop: Callable[[int], None] | None = None  # told of each Ctrl-C: 1, then 2

    def over(self, before: Execution) -> Execution:
        """How it is carried out now, where it was so before."""
        return Execution(self.concurrency or before.concurrency, self.outage_s or before.outage_s)


async def start(plan: Plan, path: Path, registry: Registry, services: LocalServices, options: RunOptions) -> RunEnd:
    """Make the run's directory and run the plan. The services stay the caller's to close."""
    create_run(path, plan.stamp)
    return await _carry_out(plan, path, registry, services, options, {}, RunBudget(plan.study.budget_usd))


async def resume(
    path: Path, registry: Registry, options: RunOptions, *, only_errors: bool = False
) -> tuple[Plan, RunEnd, list[str]]:
    """Go on with a run: grade what was executed, run what is missing or void. Returns the repairs made.

    Raises RefusedError if tasks, arms or graders are no longer those of the stamp.
    """
    stamp = read_stamp(path)
    lock = RunLock(path)
    try:
        notes = repair(path)
        services = LocalServices(registry, base_of(stamp), stamp.seed)
        try:
            plan = await remake(stamp, registry, services)
            standing = standing_of(path, stamp.grading, refill=only_errors)
            allowed = plan.study.budget_usd if options.budget_usd is None else options.budget_usd
            budget = _what_is_left(path, allowed)
            notes += [
                f"traces/{name} is gone: its trials can be neither shown nor graded again"
                for name in lost_segments(path)
            ]
            end = await _carry_out(plan, path, registry, services, options, standing, budget, lock)
            await close_plan(plan)
        finally:
            await services.close()
    finally:
        lock.release()
    return plan, end, notes


def _what_is_left(path: Path, allowed: float | None) -> RunBudget:
    """The budget after what the ledger says was spent; also how dear a call can be is known from there."""
    used: Iterator[Attempt | Grading] = chain(read_attempts(path), every_grading(path))
    priced = [u for one in used for u in one.usage.values() if u.cost_usd is not None and u.calls]
    costs = [(u.cost_usd or 0.0, u.calls) for u in priced]
    return RunBudget(allowed, sum(c for c, _ in costs), max((c / n for c, n in costs), default=0.0))


async def remake(stamp: RunStamp, registry: Registry, services: LocalServices) -> Plan:
    """The plan of a stored run, made anew from its study and held against its stamp. Raises RefusedError."""
    prices = PriceList.stamped(stamp.prices)
    replay = Replay.of(stamp.replay)
    plan = await make_plan(study_of(stamp), registry, services, stamp.run, prices=prices, replay=replay)
    reasons = list(_changes(stamp, plan.stamp))
    if reasons:
        raise RefusedError(
            f"run {stamp.run} cannot go on: it would no longer be the same run",
            reasons=reasons,
            hint="`evalcore rerun` makes a new run of the same study",
        )
    return evolve(plan, stamp=stamp)


def study_of(stamp: RunStamp) -> Study:
    """The study that a run was made from. Raises RefusedError for an imported one, which has none."""
    if stamp.imported is not None:
        raise RefusedError(
            f"run {stamp.run} was imported from {stamp.imported}: it can be neither resumed, run nor graded again",
            hint="what it was made with is not here; report, compare and trace show it",
        )
    return parse_study(stamp.study, f"the study of run {stamp.run}")


def _changes(then: RunStamp, now: RunStamp) -> Iterator[str]:
    """What of the stamp no longer holds, one line each."""
    selectors, others = ([b.selector for b in stamp.benchmarks] for stamp in (then, now))
    if selectors != others:
        apart = sorted({*selectors} ^ {*others})
        yield f"other benchmarks can run here than then: {', '.join(apart) or 'in another order'}"
        return
    for old, new in zip(then.benchmarks, now.benchmarks, strict=True):
        if old.tasks_digest != new.tasks_digest:
            yield f"the tasks of {old.selector} have changed ({old.dataset.version}, now {new.dataset.version})"
        if (old.grader, old.grader_stamp) != (new.grader, new.grader_stamp):
            yield f"the grader of {old.selector} has changed"
    old_arms, new_arms = [a.arm.digest for a in then.arms], [a.arm.digest for a in now.arms]
    if old_arms != new_arms:
        gone = [a.arm.label for a in then.arms if a.arm.digest not in new_arms]
        yield f"arms have changed: {', '.join(gone) or 'another order'}"
    for old_arm, new_arm in zip(then.arms, now.arms, strict=False):
        if (old_arm.harness_version, old_arm.harness_build) != (new_arm.harness_version, new_arm.harness_build):
            yield f"harness {old_arm.arm.harness} was {old_arm.harness_version}, is {new_arm.harness_version}"


def standing_of(path: Path, grading: str, *, refill: bool = False) -> dict[TrialKey, Standing]:
    """What the ledgers hold, by trial. With `refill`, used-up voids and ungraded verdicts count as missing."""
    verdicts = {g.attempt: g.verdict.outcome for g in read_gradings(path, grading)}
    standing: dict[TrialKey, Standing] = {}
    for attempt in read_attempts(path):
        trial = standing.setdefault(attempt.key, Standing())
        trial.attempts += 1
        if attempt.void is not None:
            trial.voids += attempt.void.kind not in UNCOUNTED
            continue
        outcome = verdicts.get(attempt.id)
        trial.executed = attempt
        trial.graded = outcome is not None and outcome != "grader_error" and not (refill and outcome == "ungraded")
    if refill:
        for trial in standing.values():
            if trial.executed is None:
                trial.voids = 0
    return standing


async def regrade(path: Path, registry: Registry) -> tuple[RunStamp, str, int]:
    """Grade every executed attempt again, from the traces alone, into a new grading if the graders have changed.

    Returns the stamp, the grading's digest and how many were graded. No agent and no model is called, so neither has to
    be there any more. Raises RefusedError if the tasks have changed.
    """
    stamp = read_stamp(path)
    lock = RunLock(path)
    services = LocalServices(registry, base_of(stamp), stamp.seed)
    try:
        repair(path)
        services.blobs = FileBlobs(path)
        study, arm = study_of(stamp), stamp.arms[0].arm
        found = [await load_benchmark(b.selector, study, registry, services, arm) for b in stamp.benchmarks]
        arms = {a.arm.digest: a.arm for a in stamp.arms}
        _refuse_other_tasks(stamp, found)
        grading = grading_digest(found)
        if grading != stamp.grading:
            write_grading_stamp(path, grading, {b.selector: b.stamp.grader_stamp for b in found})
        count = await _regrade_all(path, grading, found, arms, services.clock)
    finally:
        await services.close()
        lock.release()
    return stamp, grading, count


def _refuse_other_tasks(stamp: RunStamp, found: list[Benchmark]) -> None:
    for old, new in zip(stamp.benchmarks, found, strict=True):
        if old.tasks_digest != new.stamp.tasks_digest:
            raise RefusedError(f"run {stamp.run} cannot be regraded: the tasks of {old.selector} have changed")


async def _regrade_all(path: Path, grading: str, found: list[Benchmark], arms: Mapping[str, Arm], clock: Clock) -> int:
    """Grade side by side, and commit each verdict. A judge's replies are those on record."""
    tasks = {(b.selector, t.id): (b, t) for b in found for t in b.tasks}
    replies = replies_of(every_grading(path))
    good = {g.attempt for g in read_gradings(path, grading) if g.verdict.outcome != "grader_error"}
    ledger, traces = Ledger(path, grading), TraceStore(path)
    slots = asyncio.Semaphore(FINISHING)
    count = 0

    async def one(attempt: Attempt) -> None:
        benchmark, task = tasks[attempt.key.benchmark, attempt.key.task]
        model = model_of("judge", benchmark.info, arms[attempt.key.arm]) if replies else None
        known = replies.get(attempt.id, ())
        judge = Judge(model, None, attempt, clock, RunBudget(None), known) if model is not None else None
        try:
            verdict = await grade_stored(traces, benchmark.grader, task, attempt, judge)
            if (
                verdict.verdict.outcome != "grader_error" or attempt.id not in good
            ):  # a lost trace takes no verdict away
                await ledger.graded(verdict)
        finally:
            slots.release()

    try:
        async with asyncio.TaskGroup() as group:
            for attempt in read_attempts(path):
                if attempt.void is None and tasks[attempt.key.benchmark, attempt.key.task][1].scored:
                    count += 1
                    await slots.acquire()
                    group.create_task(one(attempt))
    finally:
        await ledger.close()
        traces.close()
    return count


async def _carry_out(
    plan: Plan,
    path: Path,
    registry: Registry,
    services: LocalServices,
    options: RunOptions,
    standing: dict[TrialKey, Standing],
    budget: RunBudget,
    lock: RunLock | None = None,
) -> RunEnd:
    """Run what is missing, with signals handled and watchers told."""
    services.blobs = FileBlobs(path)
    held = lock or RunLock(path)
    try:
        ledger = Ledger(path, plan.stamp.grading, services.redactor)
    except FatalInfraError:
        if lock is None:
            held.release()
        raise
    execution = options.over(read_execution(path))
    keep_execution(path, execution)
    for upstream in plan.parts.upstreams.values():
        upstream.gate.breaker.patience_s = execution.outage_s
    runner = Runner(
        plan,
        path,
        ledger,
        services.clock,
        concurrency=execution.concurrency,
        standing=standing,
        observers=_observers(registry),
        budget=budget,
        replies=replies_of(every_grading(path)) if standing else {},
    )
    watcher = asyncio.ensure_future(options.watch(plan, runner.progress)) if options.watch else None
    try:
        with _signals(runner, options.on_stop):
            end = await runner.run()
        if end.reason == "done" and not end.asked_to_stop:
            await measure_floors(plan, path, services.clock, execution.concurrency)
    finally:
        if watcher is not None:
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)
        await ledger.close()
        if lock is None:
            held.release()
    try:
        registry.manager.hook.evalcore_run_finished(run=path)
    except Exception as error:  # noqa: BLE001 - an observer only watches
        _log.warning("a run observer failed: %s: %s", type(error).__name__, error)
    return end


def _observers(registry: Registry) -> tuple[Observer, ...]:
    """The plugins that watch trials; none is the usual case, and then nothing is called."""
    hook = registry.manager.hook.evalcore_trial_finished
    if not hook.get_hookimpls():
        return ()

    def tell(attempt: Attempt, grading: Grading | None) -> None:
        try:
            hook(attempt=attempt, grading=grading)
        except Exception as error:  # noqa: BLE001 - an observer only watches
            _log.warning("a trial observer failed: %s: %s", type(error).__name__, error)

    return (tell,)


@contextmanager
def _signals(runner: Runner, told: Callable[[int], None] | None) -> Iterator[None]:
    """Ctrl-C once: finish what runs; twice: stop now. Both leave a run that can be resumed."""
    loop = asyncio.get_running_loop()
    presses = 0

    def press() -> None:
        nonlocal presses
        presses += 1
        if told is not None:
            told(presses)
        runner.stop()

    signals = (signal.SIGINT, signal.SIGTERM)
    try:
        for number in signals:
            loop.add_signal_handler(number, press)
    except (ValueError, RuntimeError):  # not the main thread: whoever embeds us has the signals
        yield
        return
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
