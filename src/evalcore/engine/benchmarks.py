"""Benchmarks of a study, loaded: which of their tasks run, under which limits, and what grades them."""

from __future__ import annotations

from asyncio import gather
from functools import reduce
from typing import Final

from attrs import evolve, field, frozen

from evalcore.contracts import Adapter, GoldByTask, Grader
from evalcore.engine.selectors import expand, find_benchmark
from evalcore.engine.services import LocalServices
from evalcore.engine.trial import with_wall
from evalcore.errors import ConfigError, Fault, InfraError
from evalcore.plugins import Registry
from evalcore.values.arm import Arm
from evalcore.values.descriptors import AdapterInfo, GraderInfo, GroupInfo
from evalcore.values.faults import nearest
from evalcore.values.json import digest
from evalcore.values.stamp import BenchmarkStamp
from evalcore.values.study import BenchmarkChoice, Study
from evalcore.values.task import PLAYABLE, Limits, Task

GOLDS: Final = 64  # asked for at once


@frozen
class Benchmark:
    """One benchmark of the run, loaded."""

    selector: str
    info: AdapterInfo
    adapter: Adapter
    grader: Grader
    tasks: tuple[Task, ...] = field(repr=False)
    stamp: BenchmarkStamp


def selectors_of(study: Study, registry: Registry) -> list[str]:
    """The selectors of a study, groups replaced by their members. Raises ConfigError with all that are not there."""
    selectors = expand(registry, study.benchmarks)
    faults = []
    for text in selectors:
        try:
            find_benchmark(registry, text)
        except ConfigError as error:
            faults.append(Fault("benchmarks", error.message, error.hint))
    if faults:
        raise ConfigError("the study names benchmarks that are not there", faults=faults)
    return selectors


async def load_benchmark(text: str, study: Study, registry: Registry, services: LocalServices, arm: Arm) -> Benchmark:
    """Load a benchmark's tasks and its grader, and stamp both."""
    info, selector = find_benchmark(registry, text)
    adapter: Adapter = registry.factory(info)(services, info, selector)
    every = [task async for task in adapter.tasks()]
    tasks = choose(every, _choice(study, text, registry), text)
    grader_info = registry.get(GraderInfo, "grader", adapter.grader)
    grader: Grader = registry.factory(grader_info)(services, grader_info)
    own = reduce(Limits.looser, [(await adapter.assign(task, arm)).limits for task in tasks])
    applied = own.stricter(study.limits)
    stamp = BenchmarkStamp(
        selector=text,
        dataset=await adapter.dataset(),
        tasks=sum(t.scored for t in tasks),
        clusters=len({t.cluster for t in tasks if t.scored}),
        tasks_digest=digest([[t.id, t.digest] for t in tasks]),
        grader=adapter.grader,
        grader_stamp=await grader.stamp(),
        limits=with_wall(applied),
        standard_limits=applied == own,
        floor_note=info.floor_note,
        of_tasks=sum(t.scored for t in every),
        roles=dict(info.roles),
        unscored=tuple(t.id for t in tasks if not t.scored),
        cluster_of={t.id: t.cluster for t in tasks if t.cluster != t.id},
    )
    return Benchmark(text, info, adapter, grader, tasks, stamp)


def _choice(study: Study, text: str, registry: Registry) -> BenchmarkChoice:
    """What of a benchmark runs: as the study says for itself, or else for a group that it is in."""
    groups = registry.all(GroupInfo)
    names = [text, *(g for g in study.benchmarks if g in groups and text in groups[g].members)]
    return next((study.choices[name] for name in names if name in study.choices), BenchmarkChoice())


def choose(tasks: list[Task], choice: BenchmarkChoice, selector: str) -> tuple[Task, ...]:
    """The tasks that run, in the dataset's order, and before them those that they require.

    A range counts scored tasks only. Raises ConfigError for an id that is not there or an empty choice, InfraError for
    a dataset that requires what it does not have, or has later.
    """
    ids = [t.id for t in tasks]
    if len(set(ids)) < len(ids):
        twice = sorted({i for i in ids if ids.count(i) > 1})
        raise InfraError(f"{selector} has tasks with the same id: {', '.join(twice[:3])}")
    unknown = [i for i in choice.tasks if i not in set(ids)]
    if unknown:
        faults = [Fault(f"{selector} task {i!r}", "no such task", _did_you_mean(i, ids)) for i in unknown]
        raise ConfigError(f"{selector} has no such tasks", faults=faults)
    scored = [t for t in tasks if t.scored]
    chosen = [t for t in scored if t.id in set(choice.tasks)] if choice.tasks else scored
    if choice.limit is not None:
        chosen = chosen[choice.limit[0] : choice.limit[1]]
    if not chosen:
        raise ConfigError(f"no task of {selector} is left", hint=f"it has {len(scored)} tasks, numbered from 0")
    if not any(t.requires for t in chosen):
        return tuple(chosen)
    return _with_required(chosen, tasks, selector)


def _with_required(chosen: list[Task], tasks: list[Task], selector: str) -> tuple[Task, ...]:
    """The chosen tasks and all that they require, and so on."""
    places = {t.id: place for place, t in enumerate(tasks)}
    needed = {t.id for t in chosen}
    waiting = list(chosen)
    while waiting:
        task = waiting.pop()
        for name in task.requires:
            if places.get(name, len(tasks)) >= places[task.id]:
                raise InfraError(f"{selector}: task {task.id!r} requires {name!r}, which does not come before it")
            if name not in needed:
                needed.add(name)
                waiting.append(tasks[places[name]])
    return tuple(t for t in tasks if t.id in needed)


def _did_you_mean(name: str, known: list[str]) -> str | None:
    near = nearest(name, known)
    return f"did you mean {near[0]!r}?" if near else None


async def with_oracle_note(benchmark: Benchmark) -> Benchmark:
    """The benchmark with the reason why the oracle cannot play it, if it cannot play all of it."""
    why = await _no_oracle(benchmark)
    return evolve(benchmark, stamp=evolve(benchmark.stamp, oracle_note=why)) if why else benchmark


async def _no_oracle(benchmark: Benchmark) -> str:
    """Which of the tasks have no gold, or none that can be played; empty if all can. Asked as far as it is in doubt."""
    adapter: object = benchmark.adapter
    asked = benchmark.tasks if isinstance(adapter, GoldByTask) and adapter.gold_by_task else benchmark.tasks[:1]
    some_can, cannot, first = False, "", ""
    for start in range(0, len(asked), GOLDS):
        tasks = asked[start : start + GOLDS]
        for task, gold in zip(tasks, await gather(*map(benchmark.adapter.gold, tasks)), strict=True):
            if isinstance(gold, PLAYABLE):
                some_can = True
            elif not cannot:
                form = f"gold of the form {type(gold).__name__}"
                each = "have no gold" if gold is None else f"have {form}, which cannot be played yet"
                every = "its tasks have no gold" if gold is None else f"{form} cannot be played yet"
                cannot, first = every, f"some of its tasks {each}; task {task.id!r} is the first"
            if some_can and cannot:
                return first
    return cannot


def grading_digest(benchmarks: list[Benchmark]) -> str:
    """Names the grading: graders, their toolkits' digests, and (once there are any) judges. 16 hexadecimal digits."""
    return digest({b.selector: {"grader": b.stamp.grader, "stamp": b.stamp.grader_stamp} for b in benchmarks})[:16]
