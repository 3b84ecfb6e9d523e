"""Runs a plan's trials on one event loop: schedule, attempts, voids and retries, grading, and how a run is stopped."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from attrs import define, evolve, field, frozen

from evalcore.contracts import Clock, Grader
from evalcore.engine.ahead import Ahead
from evalcore.engine.fault import FINAL, MAX_ATTEMPTS, UNCOUNTED, backoff_s
from evalcore.engine.judging import Judge
from evalcore.engine.ledger import Ledger
from evalcore.engine.plan import Plan
from evalcore.engine.stopping import Stop, StopsRuns, keep_stop
from evalcore.engine.store import TraceStore
from evalcore.engine.trial import Cell, Executed, deliverable_of, execute, grade, unbegun
from evalcore.errors import ConfigError, EvalcoreError, FatalInfraError, InfraError
from evalcore.values.json import JSONObject
from evalcore.values.task import Task
from evalcore.values.trace import TraceReader
from evalcore.values.trial import Attempt, Deliverable, Grading, TrialKey, Verdict, Void
from evalcore.wires.meter import RunBudget

StopReason: TypeAlias = Literal["done", "rule", "interrupted", "budget", "fatal"]
Observer: TypeAlias = Callable[[Attempt, Grading | None], None]

DEFAULT_CONCURRENCY: Final = 16
FINISHING: Final = 64  # executed trials that may wait for their commit and their verdict


@define
class Standing:
    """What the ledgers already hold of one trial."""

    attempts: int = 0  # lines, voids of every kind included: numbers the next attempt
    voids: int = 0  # those that use up a retry
    executed: Attempt | None = None  # the attempt that counts
    graded: bool = False


@define
class Progress:
    """Running counts for whoever watches; by cell, then by outcome or `void`."""

    total: int = 0
    done: int = 0
    graded: dict[tuple[str, str], dict[str, int]] = field(factory=dict)
    notices: Callable[[], Sequence[str]] = tuple  # what the run is waiting for

    def count(self, key: TrialKey, outcome: str) -> None:
        """One more outcome in a cell."""
        cell = self.graded.setdefault((key.benchmark, key.arm), {})
        cell[outcome] = cell.get(outcome, 0) + 1


@frozen
class RunEnd:
    """Why a run ended; `error` is the failure that stopped it, if one did."""

    reason: StopReason
    error: EvalcoreError | None = None
    voids_left: int = 0  # trials that have no result after every retry
    asked_to_stop: bool = False  # of a run that is done all the same: it came when the last trials had begun
    stops: tuple[Stop, ...] = ()  # of the stopping rule, where it left trials out

    @property
    def exit_code(self) -> int:
        """0 done, by the rule too, 2 a bad file met while running, 4 infrastructure, 5 budget, 130 interrupted."""
        codes = {"done": 0, "rule": 0, "interrupted": 130, "budget": 5}
        return codes.get(self.reason, self.error.exit_code if self.error else 4)


class Runner:
    """One execution of a plan into a run's directory. `stop` may be called from a signal handler."""

    def __init__(
        self,
        plan: Plan,
        run: Path,
        ledger: Ledger,
        clock: Clock,
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        standing: Mapping[TrialKey, Standing] | None = None,
        observers: tuple[Observer, ...] = (),
        budget: RunBudget | None = None,
        replies: Mapping[str, tuple[JSONObject, ...]] | None = None,
        rule: StopsRuns | None = None,
        stops: Mapping[str, Stop] | None = None,
    ) -> None:
        self._plan = plan
        self._run = run
        self._ledger = ledger
        self._clock = clock
        self._concurrency = max(1, concurrency)
        self._standing = standing or {}
        self._observers = observers
        self._budget = budget or RunBudget(plan.study.budget_usd)
        self._traces = TraceStore(run)
        self._wanted = {b.selector: {name for t in b.tasks for name in t.requires} for b in plan.benchmarks}
        self._left: dict[TrialKey, asyncio.Future[Deliverable | None]] = {}
        self._replies = replies or {}
        self._rule = rule
        self._stops = dict(stops or {})  # benchmarks of which nothing more is begun
        self._left_out = 0
        self._looking = asyncio.Lock()  # while the rule looks, nothing is begun
        self._to_come = self._todo()
        self._work = Ahead(self._to_come, self._concurrency)
        self._draining = False
        self._stopping = False
        self._reason: StopReason = "done"
        self._error: EvalcoreError | None = None
        self._voids_left = 0
        self._workers: list[asyncio.Task[None]] = []
        self._finishing: set[asyncio.Task[None]] = set()
        self._finishing_slots = asyncio.Semaphore(max(FINISHING, self._concurrency))
        self.progress = Progress(total=plan.count(), notices=self._notices)

    async def run(self) -> RunEnd:
        """Run and grade all that is missing. Never raises for what happens inside a trial."""
        if self._budget.is_spent():
            return RunEnd("budget", None, self._voids_left)
        await self._look_back()
        self._workers = [asyncio.create_task(self._serve()) for _ in range(self._concurrency)]
        try:
            self._note(await asyncio.gather(*self._workers, return_exceptions=True))
            self._note(await asyncio.gather(*self._finishing, return_exceptions=True))
        except asyncio.CancelledError:
            await self._abandon()
            raise
        finally:
            self._traces.close()
        if self._reason == "interrupted" and self._all_done():
            return RunEnd("done", None, self._voids_left, asked_to_stop=True)
        if self._reason == "done" and self._left_out:
            return RunEnd("rule", None, self._voids_left, stops=tuple(self._stops.values()))
        return RunEnd(self._reason, self._error, self._voids_left)

    async def _look_back(self) -> None:
        """Whether what earlier processes did is enough."""
        for key, standing in self._standing.items() if self._rule else ():
            if standing.graded or (standing.executed is None and standing.voids >= MAX_ATTEMPTS):
                self._settle(key)
        for benchmark in self._plan.benchmarks if self._standing else ():
            await self._look(benchmark.selector)

    def _settle(self, key: TrialKey) -> None:
        if self._rule is not None:
            self._rule.settle(key)

    async def _look(self, benchmark: str) -> None:
        """Ask the stopping rule. What runs is finished; of a benchmark that has ended nothing more is begun."""
        if self._rule is None or benchmark in self._stops:
            return
        async with self._looking:
            stop = None if benchmark in self._stops else await self._rule.check(benchmark)
            if stop is not None:
                self._stops[benchmark] = stop
                keep_stop(self._run, stop)

    def _is_over(self, key: TrialKey, standing: Standing) -> bool:
        """Whether a trial is left out, since its benchmark has ended. What was executed is graded all the same."""
        if key.benchmark not in self._stops or standing.executed is not None:
            return False
        self._left_out += 1
        self.progress.total -= 1
        return True

    def _all_done(self) -> bool:
        """Whether nothing is left to do; what an earlier process did is counted as it is come to."""
        return next(self._to_come, None) is None and self.progress.done >= self.progress.total

    def _notices(self) -> list[str]:
        upstreams = self._plan.parts.upstreams.values()
        return [notice for upstream in upstreams if (notice := upstream.notice())]

    def stop(self) -> None:
        """First call: begin nothing new, wait for no provider, finish what runs. Second call: stop now."""
        if self._stopping:
            for task in (*self._workers, *self._finishing):
                task.cancel()
        self._stopping = True
        for upstream in self._plan.parts.upstreams.values():
            upstream.stop()
        self._halt("interrupted")

    async def _abandon(self) -> None:
        tasks = [*self._workers, *self._finishing]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _note(self, results: list[BaseException | None]) -> None:
        for result in results:
            if isinstance(result, Exception):
                self._halt("fatal", _deliberate(result))

    def _nothing_new(self) -> bool:
        return self._draining

    def _halt(self, reason: StopReason, error: EvalcoreError | None = None) -> None:
        self._draining = True
        self._work.stop()
        if self._reason == "done":
            self._reason, self._error = reason, error

    def _todo(self) -> Iterator[tuple[Cell, Task, TrialKey, Standing]]:
        """Trials that lack a result or a verdict, in the plan's order."""
        for cell, task, key in self._plan.trials():
            standing = self._standing.get(key)
            if standing is None:
                if not self._is_over(key, fresh := Standing()):
                    yield cell, task, key, fresh
            elif standing.graded or (standing.executed is not None and not task.scored):
                self.progress.done += 1
            elif standing.executed is not None or standing.voids < MAX_ATTEMPTS:
                if not self._is_over(key, standing):
                    yield cell, task, key, standing
            else:
                self.progress.done += 1
                self._voids_left += 1

    async def _serve(self) -> None:
        for cell, task, key, standing in self._work:
            if self._looking.locked():
                async with self._looking:
                    pass
            if self._draining:
                return
            if self._is_over(key, standing):  # it was made ready for before the benchmark ended
                continue
            self._work.look(cell, task)
            if standing.executed is not None:
                await self._grade_stored(cell, task, standing.executed)
                self.progress.done += 1
                await self._settled(key)
            else:
                await self._try(cell, task, key, standing)

    async def _try(self, cell: Cell, task: Task, key: TrialKey, standing: Standing) -> None:
        """Attempts of one trial, up to the one that counts or the last void."""
        try:
            await self._attempts(cell, task, key, standing)
        finally:
            self._leave(key, None)  # where there was no result

    async def _attempts(self, cell: Cell, task: Task, key: TrialKey, standing: Standing) -> None:
        number, voids = standing.attempts + 1, standing.voids
        seed = trial_seed(self._plan.study.seed, key)
        required = await self._required(cell, task, key) if task.requires else {}
        if isinstance(required, Void):
            await self._give_up(cell, task, key, number, required)
            return
        while True:
            executed = await execute(cell, task, key, number, seed, self._clock, self._budget, required)
            void = executed.attempt.void
            if void is None:
                if key.task in self._wanted[key.benchmark]:
                    left = deliverable_of(executed.reader)
                    self._leave(key, None if left is None else left[0])
                await self._hand_over(cell, task, executed)
                return
            self._tell(await self._ledger.executed(executed.attempt, executed.lines), None)
            if void.kind == "interrupted":
                raise asyncio.CancelledError  # what it used is on record; now stop, as was asked
            self.progress.count(key, "void")
            self._stop_for(void)
            voids += void.kind not in UNCOUNTED
            if self._draining:
                return
            if voids >= MAX_ATTEMPTS or void.kind in FINAL:
                self._voids_left += 1
                self.progress.done += 1
                await self._settled(key)
                return
            await self._clock.sleep(backoff_s(voids, random.random))
            if self._nothing_new():
                return
            number += 1

    async def _give_up(self, cell: Cell, task: Task, key: TrialKey, number: int, void: Void) -> None:
        """Put on record that a trial could not even begin."""
        executed = unbegun(task, key, number, self._clock, void)
        self._tell(await self._ledger.executed(executed.attempt, executed.lines), None)
        self.progress.count(key, "void")
        self._voids_left += 1
        self.progress.done += 1
        await self._settled(key)

    async def _hand_over(self, cell: Cell, task: Task, executed: Executed) -> None:
        """Commit and grade beside the next trial: a slot is for agents, not for the disk. Waits if many are due."""
        await self._finishing_slots.acquire()
        finishing = asyncio.create_task(self._finish(cell, task, executed))
        self._finishing.add(finishing)
        finishing.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._finishing_slots.release()
        self._finishing.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._note([error])

    async def _finish(self, cell: Cell, task: Task, executed: Executed) -> None:
        """Commit, grade, commit."""
        attempt = await self._ledger.executed(executed.attempt, executed.lines)
        if not task.scored:
            self.progress.done += 1
            self._tell(attempt, None)
            return
        judge = self._judge(cell, attempt)
        grading = await grade_recorded(cell.grader, task, attempt, executed.reader, judge)
        await self._ledger.graded(grading)
        self.progress.count(attempt.key, grading.verdict.outcome)
        self.progress.done += 1
        self._tell(attempt, grading)
        await self._settled(attempt.key)

    async def _grade_stored(self, cell: Cell, task: Task, attempt: Attempt) -> None:
        """Grade what an earlier process executed."""
        grading = await grade_stored(self._traces, cell.grader, task, attempt, self._judge(cell, attempt))
        await self._ledger.graded(grading)
        self.progress.count(attempt.key, grading.verdict.outcome)
        self._tell(attempt, grading)

    async def _settled(self, key: TrialKey) -> None:
        self._settle(key)
        await self._look(key.benchmark)

    def _judge(self, cell: Cell, attempt: Attempt) -> Judge | None:
        """Whom the grader may ask about this attempt; what was said of it before is not asked again."""
        served = cell.roles.get("judge")
        if served is None:
            return None
        known, asked = self._replies.get(attempt.id, ()), True
        if cell.recordings is not None:
            known = (*known, *cell.recordings.judged(attempt.key, cell.arm))
            asked = cell.recordings.replay.record_missing
        seed = trial_seed(self._plan.study.seed, attempt.key)
        return Judge(served.model, served if asked else None, attempt, self._clock, self._budget, known, seed)

    async def _required(self, cell: Cell, task: Task, key: TrialKey) -> dict[str, Deliverable] | Void:
        """What the tasks before this one have left, waiting for those under way; or why there is nothing to go on."""
        found: dict[str, Deliverable] = {}
        for name in task.requires:
            needed = evolve(key, task=name)
            left = await self._result_of(needed)
            if left is None:
                return Void("required", f"task {name!r}, which it requires, has no result")
            found[name] = left
        return found

    async def _result_of(self, key: TrialKey) -> Deliverable | None:
        standing = self._standing.get(key)
        if standing is not None and standing.executed is None and standing.voids >= MAX_ATTEMPTS:
            return None
        if standing is not None and standing.executed is not None:
            left = deliverable_of(self._traces.of(standing.executed))
            return None if left is None else left[0]
        return await self._left.setdefault(key, asyncio.get_running_loop().create_future())

    def _leave(self, key: TrialKey, left: Deliverable | None) -> None:
        """Let those that require this trial go on; only those are told that there are."""
        if key.task in self._wanted[key.benchmark]:
            future = self._left.setdefault(key, asyncio.get_running_loop().create_future())
            if not future.done():
                future.set_result(left)

    def _stop_for(self, void: Void) -> None:
        if void.kind == "budget":
            self._halt("budget")
        elif void.fatal:
            kind = ConfigError if void.kind == "config" else FatalInfraError
            self._halt("fatal", kind(void.message))

    def _tell(self, attempt: Attempt, grading: Grading | None) -> None:
        if self._rule is not None:
            self._rule.add(attempt, grading)
        for observer in self._observers:
            observer(attempt, grading)


async def grade_stored(
    traces: TraceStore, grader: Grader, task: Task, attempt: Attempt, judge: Judge | None = None
) -> Grading:
    """Grade an attempt that an earlier process executed."""
    try:
        reader = traces.of(attempt)
    except InfraError as error:
        return Grading(attempt.id, Verdict("grader_error"), 0.0, error.message)
    return await grade_recorded(grader, task, attempt, reader, judge)


async def grade_recorded(
    grader: Grader, task: Task, attempt: Attempt, reader: TraceReader, judge: Judge | None = None
) -> Grading:
    """Grade from the trace alone, at once or years later: the same input, so the same verdict."""
    try:
        left = deliverable_of(reader)
    except (ValueError, KeyError, TypeError) as error:
        return Grading(attempt.id, Verdict("grader_error"), 0.0, f"the trace cannot be read: {error}")
    if left is None:
        return Grading(attempt.id, Verdict("grader_error"), 0.0, "the trace holds no deliverable")
    return await grade(grader, task, attempt, *left, reader, judge)


def trial_seed(seed: int, key: TrialKey) -> int:
    """A trial's own seed: fixed by the study's seed, the task and the repeat, the same for every arm. 31 bits."""
    name = f"{seed}/{key.benchmark}/{key.task}/{key.repeat}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(name).digest()[:4], "big") >> 1


def _deliberate(error: Exception) -> EvalcoreError:
    return error if isinstance(error, EvalcoreError) else InfraError(f"bug: {type(error).__name__}: {error}")
