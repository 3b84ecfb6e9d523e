"""Runs a plan's trials on one event loop: schedule, attempts, voids and retries, grading, and how a run is stopped."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

from attrs import define, field, frozen

from evalcore.contracts import Clock
from evalcore.engine.fault import MAX_ATTEMPTS, UNCOUNTED, backoff_s
from evalcore.engine.ledger import Ledger
from evalcore.engine.plan import Plan
from evalcore.engine.store import TraceStore
from evalcore.engine.trial import Cell, deliverable_of, execute, grade
from evalcore.errors import ConfigError, EvalcoreError, FatalInfraError, InfraError
from evalcore.values.task import Task
from evalcore.values.trial import Attempt, Grading, TrialKey, Verdict, Void
from evalcore.wires.meter import RunBudget

StopReason: TypeAlias = Literal["done", "interrupted", "budget", "fatal"]
Observer: TypeAlias = Callable[[Attempt, Grading | None], None]

DEFAULT_CONCURRENCY: Final = 16


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

    @property
    def exit_code(self) -> int:
        """0 done, 2 a bad file met while running, 4 infrastructure, 5 budget, 130 interrupted."""
        codes = {"done": 0, "interrupted": 130, "budget": 5, "fatal": self.error.exit_code if self.error else 4}
        return codes[self.reason]


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
        spent_usd: float = 0.0,
    ) -> None:
        self._plan = plan
        self._run = run
        self._ledger = ledger
        self._clock = clock
        self._concurrency = max(1, concurrency)
        self._standing = standing or {}
        self._observers = observers
        self._budget = RunBudget(plan.study.budget_usd, spent_usd)
        self._traces = TraceStore(run)
        self._work = self._todo()
        self._draining = False
        self._reason: StopReason = "done"
        self._error: EvalcoreError | None = None
        self._voids_left = 0
        self._workers: list[asyncio.Task[None]] = []
        self.progress = Progress(total=plan.count())

    async def run(self) -> RunEnd:
        """Run and grade all that is missing. Never raises for what happens inside a trial."""
        self._workers = [asyncio.create_task(self._serve()) for _ in range(self._concurrency)]
        try:
            results = await asyncio.gather(*self._workers, return_exceptions=True)
        except asyncio.CancelledError:
            for worker in self._workers:
                worker.cancel()
            await asyncio.gather(*self._workers, return_exceptions=True)
            raise
        finally:
            self._traces.close()
        for result in results:
            if isinstance(result, Exception) and self._reason == "done":
                self._reason, self._error = "fatal", _deliberate(result)
        return RunEnd(self._reason, self._error, self._voids_left)

    def stop(self) -> None:
        """First call: begin nothing new, finish what runs. Second call: stop now."""
        if self._draining:
            for worker in self._workers:
                worker.cancel()
        self._halt("interrupted")

    def _halt(self, reason: StopReason, error: EvalcoreError | None = None) -> None:
        self._draining = True
        if self._reason == "done":
            self._reason, self._error = reason, error

    def _todo(self) -> Iterator[tuple[Cell, Task, TrialKey, Standing]]:
        """Trials that lack a result or a verdict, in the plan's order."""
        for cell, task, key in self._plan.trials():
            standing = self._standing.get(key)
            if standing is None:
                yield cell, task, key, Standing()
            elif standing.graded:
                self.progress.done += 1
            elif standing.executed is not None or standing.voids < MAX_ATTEMPTS:
                yield cell, task, key, standing
            else:
                self.progress.done += 1
                self._voids_left += 1

    async def _serve(self) -> None:
        for cell, task, key, standing in self._work:
            if self._draining:
                return
            await self._finish(cell, task, key, standing)
            self.progress.done += 1

    async def _finish(self, cell: Cell, task: Task, key: TrialKey, standing: Standing) -> None:
        """One trial to its verdict, or to its last void."""
        if standing.executed is not None:
            await self._grade_stored(cell, task, standing.executed)
            return
        number, voids = standing.attempts + 1, standing.voids
        while True:
            attempt = await self._attempt(cell, task, key, number)
            if attempt.void is None:
                return
            self.progress.count(key, "void")
            self._stop_for(attempt.void)
            voids += attempt.void.kind not in UNCOUNTED
            if self._draining:
                return
            if voids >= MAX_ATTEMPTS:
                self._voids_left += 1
                return
            await self._clock.sleep(backoff_s(voids, random.random))
            number += 1

    async def _attempt(self, cell: Cell, task: Task, key: TrialKey, number: int) -> Attempt:
        """Execute, commit, grade, commit."""
        seed = trial_seed(self._plan.study.seed, key)
        executed = await execute(cell, task, key, number, seed, self._clock, self._budget)
        attempt = await self._ledger.executed(executed.attempt, executed.lines)
        if attempt.void is not None and attempt.void.kind == "interrupted":
            raise asyncio.CancelledError  # what it used is on record; now stop, as was asked
        grading = None
        if executed.deliverable is not None and executed.evidence is not None:
            grading = await grade(cell.grader, task, attempt, executed.deliverable, executed.evidence, executed.reader)
            await self._ledger.graded(grading)
            self.progress.count(key, grading.verdict.outcome)
        self._tell(attempt, grading)
        return attempt

    async def _grade_stored(self, cell: Cell, task: Task, attempt: Attempt) -> None:
        """Grade what an earlier process executed."""
        grading = await grade_stored(self._traces, cell, task, attempt)
        await self._ledger.graded(grading)
        self.progress.count(attempt.key, grading.verdict.outcome)
        self._tell(attempt, grading)

    def _stop_for(self, void: Void) -> None:
        if void.kind == "budget":
            self._halt("budget")
        elif void.fatal:
            kind = ConfigError if void.kind == "config" else FatalInfraError
            self._halt("fatal", kind(void.message))

    def _tell(self, attempt: Attempt, grading: Grading | None) -> None:
        for observer in self._observers:
            observer(attempt, grading)


async def grade_stored(traces: TraceStore, cell: Cell, task: Task, attempt: Attempt) -> Grading:
    """Grade an attempt from its trace alone: the same input as at the time, so the same verdict."""
    try:
        reader = traces.read(attempt.trace)
        left = deliverable_of(reader)
    except (InfraError, ValueError) as error:
        return Grading(attempt.id, Verdict("grader_error"), 0.0, f"the trace cannot be read: {error}")
    if left is None:
        return Grading(attempt.id, Verdict("grader_error"), 0.0, "the trace holds no deliverable")
    return await grade(cell.grader, task, attempt, *left, reader)


def trial_seed(seed: int, key: TrialKey) -> int:
    """A trial's own seed: fixed by the study's seed, the task and the repeat, the same for every arm. 31 bits."""
    return random.Random(f"{seed}/{key.benchmark}/{key.task}/{key.repeat}").getrandbits(31)


def _deliberate(error: Exception) -> EvalcoreError:
    return error if isinstance(error, EvalcoreError) else InfraError(f"bug: {type(error).__name__}: {error}")
