"""One task through a whole trial in memory, by the engine's own code: no run, no ledger, no command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from attrs import frozen

from evalcore.builtin.controls import OracleHarness
from evalcore.contracts import Adapter, Bridge, Clock, Grader, Harness, Services
from evalcore.engine.trial import Cell, deliverable_of, execute, grade
from evalcore.errors import InfraError
from evalcore.plugins import Registry
from evalcore.testing.fakes import ANYBODY, FakeTrial
from evalcore.values.arm import Arm
from evalcore.values.descriptors import BridgeInfo
from evalcore.values.json import JSONValue
from evalcore.values.task import Assignment, Limits, Task
from evalcore.values.trace import TraceReader
from evalcore.values.trial import Attempt, Deliverable, Evidence, Grading, TrialKey, Verdict
from evalcore.wires.meter import RunBudget

PLAYER: Final = Arm("conformance", {"harness": "oracle"})


@frozen
class Played:
    """What one trial left."""

    attempt: Attempt
    deliverable: Deliverable
    evidence: Evidence
    trace: TraceReader
    grading: Grading

    @property
    def verdict(self) -> Verdict:
        """The grader's."""
        return self.grading.verdict


class Bridges(Mapping[str, Bridge]):
    """Every registered bridge by kind, made when first asked for."""

    def __init__(self, registry: Registry, services: Services) -> None:
        self._registry = registry
        self._services = services
        self._made: dict[str, Bridge] = {}

    def __getitem__(self, kind: str) -> Bridge:
        if kind not in self._made:
            info = self._registry.get(BridgeInfo, "bridge", kind)
            self._made[kind] = self._registry.factory(info)(self._services, info)
        return self._made[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self._registry.all(BridgeInfo))

    def __len__(self) -> int:
        return len(self._registry.all(BridgeInfo))


async def play(
    adapter: Adapter,
    grader: Grader,
    task: Task,
    harness: Harness,
    *,
    registry: Registry,
    services: Services,
    clock: Clock | None = None,
    arm: Arm = ANYBODY,
    options: Mapping[str, JSONValue] | None = None,
) -> Played:
    """Let a harness work on a task, without a model, and grade what it leaves. The harness gets the gold.

    The tasks that it requires are played before. Raises InfraError where the attempt is void: whatever is wrong then is
    no agent's doing.
    """
    if arm is ANYBODY and isinstance(harness, OracleHarness):  # who plays decides what a scripted user does
        arm = PLAYER
    cell = Cell(
        benchmark="conformance",
        adapter=adapter,
        grader=grader,
        arm=arm,
        harness=harness,
        upstream=None,
        bridges=Bridges(registry, services),
        options=options or {},
        parameters={},
        limits=Limits(wall_s=600.0),
        control=True,
    )
    key = TrialKey("conformance", task.id, arm.digest, 1)
    required: dict[str, Deliverable] = {}
    if task.requires:
        known = {t.id: t for t in await load(adapter)}
        for name in task.requires:
            before = await play(
                adapter, grader, known[name], harness, registry=registry, services=services, arm=arm, options=options
            )
            required[name] = before.deliverable
    done = await execute(cell, task, key, 1, 0, clock or services.clock, RunBudget(None), required)
    left = deliverable_of(done.reader)
    if left is None:
        void = done.attempt.void
        raise InfraError(f"the attempt at {task.id!r} is void: {void.message if void else 'nothing was captured'}")
    if not task.scored:
        return Played(done.attempt, *left, done.reader, Grading(done.attempt.id, Verdict("ungraded"), 0.0))
    return Played(done.attempt, *left, done.reader, await grade(grader, task, done.attempt, *left, done.reader))


async def opened(assignment: Assignment, task: Task, bridges: Mapping[str, Bridge], arm: Arm = ANYBODY) -> FakeTrial:
    """A trial with an episode open for each bridge of an assignment. The caller closes it."""
    trial = FakeTrial(task, assignment, arm)
    try:
        for spec in assignment.bridges:
            trial.episodes.append(await bridges[spec.kind].open(spec, trial))
    except BaseException:
        await trial.close()
        raise
    return trial


async def load(adapter: Adapter) -> tuple[Task, ...]:
    """All tasks of a benchmark."""
    return tuple([task async for task in adapter.tasks()])


def spread(tasks: Sequence[Task], count: int) -> tuple[Task, ...]:
    """At most `count` tasks, evenly over all, the first and the last among them."""
    if len(tasks) <= count:
        return tuple(tasks)
    if count <= 1:
        return tuple(tasks[:count])
    return tuple(tasks[round(i * (len(tasks) - 1) / (count - 1))] for i in range(count))
