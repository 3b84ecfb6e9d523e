"""From a study to everything a run needs: benchmarks with their tasks, arms with their parts, and the stamp.

Nothing is spent here: tasks are loaded, harnesses probed, graders stamped, and what the run would do is projected.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Mapping
from functools import reduce
from pathlib import Path

from attrs import define, evolve, field, frozen

from evalcore import API_VERSION, __version__
from evalcore.contracts import (
    Adapter,
    Bridge,
    CheckedAdapter,
    CheckedProvider,
    Closable,
    Grader,
    Harness,
    HarnessVersion,
    Provider,
    Transform,
)
from evalcore.engine.arms import Vocabulary, complete_arms
from evalcore.engine.selectors import expand, find_benchmark
from evalcore.engine.services import LocalServices
from evalcore.engine.trial import Cell, with_wall
from evalcore.errors import ConfigError, Fault, InfraError
from evalcore.plugins import Registry
from evalcore.values.arm import Arm, Owner
from evalcore.values.descriptors import (
    AdapterInfo,
    AxisInfo,
    BridgeInfo,
    GraderInfo,
    GroupInfo,
    HarnessInfo,
    ModelInfo,
    TransformInfo,
)
from evalcore.values.faults import nearest
from evalcore.values.json import JSONObject, JSONValue, digest
from evalcore.values.stamp import ArmStamp, BenchmarkStamp, GroupStamp, RunStamp
from evalcore.values.study import BenchmarkChoice, Study
from evalcore.values.task import GoldAnswer, GoldCalls, Limits, Task
from evalcore.values.trial import TrialKey
from evalcore.wires.gateway.prices import VARIABLE as PRICES
from evalcore.wires.gateway.prices import ModelPrice, PriceList


@frozen
class Benchmark:
    """One benchmark of the run, loaded."""

    selector: str
    info: AdapterInfo
    adapter: Adapter
    grader: Grader
    tasks: tuple[Task, ...] = field(repr=False)
    stamp: BenchmarkStamp


@frozen
class Projection:
    """What a run would do. A number that cannot be known is None, and `notes` says why."""

    trials: int
    model_trials: int
    tokens_at_most: int | None
    cost_at_most_usd: float | None
    wall_at_most_s: float | None
    notes: tuple[str, ...] = ()


@frozen
class Plan:
    """Everything a run needs, and what it will be stamped with."""

    study: Study
    stamp: RunStamp
    benchmarks: tuple[Benchmark, ...]
    arms: tuple[Arm, ...]
    cells: Mapping[tuple[str, str], Cell] = field(repr=False)  # (selector, arm digest)
    notes: tuple[str, ...] = ()

    def trials(self) -> Iterator[tuple[Cell, Task, TrialKey]]:
        """Every trial: repeats outermost, arms innermost, so that a run stopped early is balanced over arms."""
        for repeat in range(1, self.study.repeats + 1):
            for benchmark in self.benchmarks:
                cells = [c for a in self.arms if (c := self.cells.get((benchmark.selector, a.digest)))]
                for task in benchmark.tasks:
                    for cell in cells:
                        yield cell, task, TrialKey(benchmark.selector, task.id, cell.arm.digest, repeat)

    def count(self) -> int:
        """How many trials there are."""
        sizes = {b.selector: len(b.tasks) for b in self.benchmarks}
        return self.study.repeats * sum(sizes[selector] for selector, _ in self.cells)

    def projection(self) -> Projection:
        """The most that the run can use, from its limits; nothing is guessed."""
        found = {b.selector: (len(b.tasks) * self.study.repeats, b.stamp.limits) for b in self.benchmarks}
        trials = [(*found[selector], cell) for (selector, _), cell in self.cells.items()]
        models = [(n, limits) for n, limits, cell in trials if cell.provider is not None]
        notes = []
        tokens = _sum_or_none(n * limits.tokens if limits.tokens else None for n, limits in models)
        if tokens is None:
            notes.append("tokens are not bounded: `--max-tokens N` bounds each trial")
        cost = self._cost_at_most() if models else 0.0
        rows = self.stamp.prices.get("models")
        for key, row in rows.items() if isinstance(rows, dict) else ():
            if isinstance(row, dict) and "unknown" in row:
                notes.append(f"no price is known for {key}: {row['unknown']}")
        if cost is None:
            notes.append("money is not bounded: `--budget-usd X` bounds the run")
        wall = _sum_or_none(n * limits.wall_s if limits.wall_s else None for n, limits, _ in trials)
        return Projection(sum(n for n, *_ in trials), sum(n for n, _ in models), tokens, cost, wall, tuple(notes))

    def _cost_at_most(self) -> float | None:
        """The budget; or what all tokens that the limits allow would cost, where that is known and less."""
        limits = {b.selector: (len(b.tasks) * self.study.repeats, b.stamp.limits.tokens) for b in self.benchmarks}
        bounds = [self.study.budget_usd] if self.study.budget_usd is not None else []
        dearest = 0.0
        for (selector, _), cell in self.cells.items():
            if cell.provider is not None:
                trials, tokens = limits[selector]
                if cell.price is None or tokens is None:
                    return min(bounds, default=None)
                dearest += trials * cell.price.at_most(tokens)
        return min([*bounds, dearest])


def _sum_or_none(values: Iterator[float | None]) -> int | None:
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return int(total)


@define
class _Parts:
    """Parts made once and shared between cells."""

    registry: Registry
    services: LocalServices
    bridges: dict[str, Bridge] = field(factory=dict)
    providers: dict[str, Provider] = field(factory=dict)
    made: dict[str, Transform] = field(factory=dict)

    def provider(self, model: str) -> Provider:
        """The provider of `provider/model`."""
        name = model.partition("/")[0]
        if name not in self.providers:
            info = self.registry.get(ModelInfo, "model provider", name)
            self.providers[name] = self.registry.factory(info)(self.services, info)
        return self.providers[name]

    def transforms(self, arm: Arm) -> tuple[tuple[Transform, JSONValue], ...]:
        """What changes assignments for an arm, in order of registration, each with the value of its axis."""
        found = []
        for name, info in self.registry.all(TransformInfo).items():
            value = arm.axes.get(info.axis)
            if value is not None:
                if name not in self.made:
                    self.made[name] = self.registry.factory(info)(self.services, info)
                found.append((self.made[name], value))
        return tuple(found)

    def content(self, axis: str, value: str) -> Mapping[str, str]:
        """Digests of the files behind an axis' value."""
        return self.provider(value).content(value.partition("/")[2]) if axis == "model" else {}


class _Bridges(Mapping[str, Bridge]):
    """Bridges by kind, each made when the first task asks for it."""

    def __init__(self, parts: _Parts) -> None:
        self._parts = parts

    def __getitem__(self, kind: str) -> Bridge:
        made = self._parts.bridges.get(kind)
        if made is None:
            info = self._parts.registry.get(BridgeInfo, "bridge", kind)
            made = self._parts.bridges[kind] = self._parts.registry.factory(info)(self._parts.services, info)
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts.registry.all(BridgeInfo))

    def __len__(self) -> int:
        return len(self._parts.registry.all(BridgeInfo))


async def make_plan(
    study: Study,
    registry: Registry,
    services: LocalServices,
    run: str,
    *,
    to_run: bool = True,
    prices: PriceList | None = None,
) -> Plan:
    """Load, check and stamp everything that the study names. Raises ConfigError, ToolkitError.

    Without `to_run`, no agent will: then nobody asks for a provider's key. `prices` are those of today, unless given.
    """
    prices = prices or PriceList.of(os.environ, services.clock.now())
    parts = _Parts(registry, services)
    arms = complete_arms(study, vocabulary(registry), base=services.base, content=parts.content)
    _check_transforms(arms, registry)
    harnesses = {name: await _harness(parts, name) for name in dict.fromkeys(a.harness for a in arms)}
    _check_money(study, arms, prices)
    if to_run:
        _check_providers(arms, parts)
    benchmarks = [
        await load_benchmark(text, study, registry, services, arms[0]) for text in _selectors(study, registry)
    ]
    for benchmark in benchmarks if to_run else ():
        adapter: object = benchmark.adapter
        if isinstance(adapter, CheckedAdapter):
            adapter.check(benchmark.tasks, arms)
    if any(a.harness == "oracle" for a in arms):
        benchmarks = [await _with_oracle_note(b) for b in benchmarks]
    cells: dict[tuple[str, str], Cell] = {}
    for benchmark in benchmarks:
        for arm in arms:
            info, harness, _ = harnesses[arm.harness]
            if info.name != "oracle" or not benchmark.stamp.oracle_note:
                cells[benchmark.selector, arm.digest] = _cell(
                    benchmark, arm, info, harness, study, parts, _price(arm, prices)
                )
    notes = [f"oracle is not applicable to {b.selector}: {n}" for b in benchmarks if (n := b.stamp.oracle_note)]
    if not cells:
        raise ConfigError("nothing to run", hint=notes[0] if notes else None)
    stamp = await _stamp(study, run, arms, harnesses, benchmarks, registry, services)
    stamp = evolve(stamp, prices=prices.as_json())
    return Plan(study, stamp, tuple(benchmarks), arms, cells, tuple(notes))


def vocabulary(registry: Registry) -> Vocabulary:
    """What arms may say, from everything that is registered."""
    return Vocabulary(
        tuple(registry.all(AxisInfo).values()),
        tuple(registry.all(HarnessInfo).values()),
        tuple(registry.all(ModelInfo).values()),
    )


def _selectors(study: Study, registry: Registry) -> list[str]:
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


def _check_transforms(arms: tuple[Arm, ...], registry: Registry) -> None:
    """A knob that turns nothing would make two equal arms look different."""
    applied = {info.axis for info in registry.all(TransformInfo).values()}
    idle = {axis.name for axis in registry.all(AxisInfo).values() if axis.owner == "transform"} - applied
    for arm in arms:
        for axis in sorted(idle & arm.axes.keys()):
            if arm.axes[axis] != arm.defaults.get(axis):
                fault = Fault(f"$.arms.{arm.handle}.{axis}", "no transform applies this axis")
                raise ConfigError("the study sets an axis that has no effect", faults=[fault])


def _price(arm: Arm, prices: PriceList) -> ModelPrice | None:
    """The price of an arm's model, where it is served."""
    return prices.price(arm.model, _address(arm)) if arm.model else None


def _address(arm: Arm) -> str | None:
    address = arm.axes.get("base_url")
    return address if isinstance(address, str) else None


def _check_money(study: Study, arms: tuple[Arm, ...], prices: PriceList) -> None:
    """A budget in dollars needs a bound on tokens too, where the price of a model is not known."""
    if study.budget_usd is None or study.limits.tokens is not None:
        return
    unknown = {a.model: prices.why(a.model, _address(a)) for a in arms if a.model and _price(a, prices) is None}
    if unknown:
        told = "; ".join(f"no price is known for {model} ({why})" for model, why in unknown.items())
        raise ConfigError(
            f"a budget in dollars needs a bound on tokens as well: {told}",
            hint=f"add `--max-tokens N` (per trial), or `tokens` under [limits]; or prices of your own: {PRICES}=FILE",
        )


def _check_providers(arms: tuple[Arm, ...], parts: _Parts) -> None:
    """Providers that can tell before the first trial that they could not serve an arm are asked, all of them."""
    faults: list[Fault] = []
    for arm in arms:
        provider: object = parts.provider(arm.model) if arm.model else None
        if arm.model is None or not isinstance(provider, CheckedProvider):
            continue
        try:
            provider.check(arm.model.partition("/")[2], _owned(arm, "provider", parts.registry))
        except ConfigError as error:
            faults.append(Fault(f"arm {arm.handle!r}", error.message, error.hint))
    if faults:
        raise ConfigError("models of the study cannot be called", faults=faults)


async def _harness(parts: _Parts, name: str) -> tuple[HarnessInfo, Harness, HarnessVersion]:
    info = parts.registry.get(HarnessInfo, "harness", name)
    harness: Harness = parts.registry.factory(info)(parts.services, info)
    return info, harness, await harness.probe()


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
        tasks=len(tasks),
        clusters=len({t.cluster for t in tasks}),
        tasks_digest=digest([[t.id, t.digest] for t in tasks]),
        grader=adapter.grader,
        grader_stamp=await grader.stamp(),
        limits=with_wall(applied),
        standard_limits=applied == own,
        floor_note=info.floor_note,
        of_tasks=len(every),
        cluster_of={t.id: t.cluster for t in tasks if t.cluster != t.id},
    )
    return Benchmark(text, info, adapter, grader, tasks, stamp)


def _choice(study: Study, text: str, registry: Registry) -> BenchmarkChoice:
    """What of a benchmark runs: as the study says for itself, or else for a group that it is in."""
    groups = registry.all(GroupInfo)
    names = [text, *(g for g in study.benchmarks if g in groups and text in groups[g].members)]
    return next((study.choices[name] for name in names if name in study.choices), BenchmarkChoice())


def choose(tasks: list[Task], choice: BenchmarkChoice, selector: str) -> tuple[Task, ...]:
    """The tasks that run, in the dataset's order. Raises ConfigError for an id that is not there or an empty choice."""
    ids = [t.id for t in tasks]
    if len(set(ids)) < len(ids):
        twice = sorted({i for i in ids if ids.count(i) > 1})
        raise InfraError(f"{selector} has tasks with the same id: {', '.join(twice[:3])}")
    unknown = [i for i in choice.tasks if i not in set(ids)]
    if unknown:
        faults = [Fault(f"{selector} task {i!r}", "no such task", _did_you_mean(i, ids)) for i in unknown]
        raise ConfigError(f"{selector} has no such tasks", faults=faults)
    chosen = [t for t in tasks if t.id in set(choice.tasks)] if choice.tasks else tasks
    if choice.limit is not None:
        chosen = chosen[choice.limit[0] : choice.limit[1]]
    if not chosen:
        raise ConfigError(f"no task of {selector} is left", hint=f"it has {len(tasks)} tasks, numbered from 0")
    return tuple(chosen)


def _did_you_mean(name: str, known: list[str]) -> str | None:
    near = nearest(name, known)
    return f"did you mean {near[0]!r}?" if near else None


async def _with_oracle_note(benchmark: Benchmark) -> Benchmark:
    """The benchmark with the reason why the oracle cannot play it, if it cannot."""
    gold = await benchmark.adapter.gold(benchmark.tasks[0])
    if isinstance(gold, (GoldAnswer, GoldCalls)):
        return benchmark
    form = type(gold).__name__
    why = "its tasks have no gold" if gold is None else f"gold of the form {form} cannot be played yet"
    return evolve(benchmark, stamp=evolve(benchmark.stamp, oracle_note=why))


def _owned(arm: Arm, owner: Owner, registry: Registry) -> dict[str, JSONValue]:
    """The arm's axes of one owner, those that are set."""
    parts = {arm.harness, (arm.model or "").partition("/")[0]}
    mine = {
        axis.name
        for axis in registry.all(AxisInfo).values()
        if axis.owner == owner and (not axis.of or owner not in ("harness", "provider") or axis.of in parts)
    }
    return {k: v for k, v in arm.axes.items() if v is not None and k in mine}


def _cell(
    benchmark: Benchmark,
    arm: Arm,
    info: HarnessInfo,
    harness: Harness,
    study: Study,
    parts: _Parts,
    price: ModelPrice | None,
) -> Cell:
    def owned(owner: Owner) -> dict[str, JSONValue]:
        return _owned(arm, owner, parts.registry)

    return Cell(
        benchmark=benchmark.selector,
        adapter=benchmark.adapter,
        grader=benchmark.grader,
        arm=arm,
        harness=harness,
        provider=parts.provider(arm.model) if arm.model else None,
        bridges=_Bridges(parts),
        options=owned("harness"),
        parameters=owned("gateway"),
        limits=study.limits,
        control=info.control,
        transforms=parts.transforms(arm),
        settings=owned("provider"),
        wire_server=parts.services.wire_server if info.wires == "http" else None,
        price=price,
    )


async def _stamp(
    study: Study,
    run: str,
    arms: tuple[Arm, ...],
    harnesses: Mapping[str, tuple[HarnessInfo, Harness, HarnessVersion]],
    benchmarks: list[Benchmark],
    registry: Registry,
    services: LocalServices,
) -> RunStamp:
    plugins: JSONObject = {p.name: f"{p.distribution} {p.version}" for p in registry.plugins}
    return RunStamp(
        run=run,
        created=services.clock.now(),
        study_name=study.name,
        study_digest=study.digest,
        study=study.as_json(),
        seed=study.seed,
        repeats=study.repeats,
        arms=tuple(_arm_stamp(a, *harnesses[a.harness]) for a in arms),
        benchmarks=tuple(b.stamp for b in benchmarks),
        grading=grading_digest(benchmarks),
        groups=_groups(study, registry),
        versions={"evalcore": __version__, "api": API_VERSION, "python": platform.python_version(), "plugins": plugins},
        toolkits={k: _json(v) for k, v in (await services.toolkit_stamps()).items()},
        host={
            "system": sys.platform,
            "machine": platform.machine(),
            "cpus": os.cpu_count() or 1,
            "base": str(services.base),
        },
    )


def _groups(study: Study, registry: Registry) -> tuple[GroupStamp, ...]:
    known = registry.all(GroupInfo)
    return tuple(GroupStamp(name, dict(known[name].members)) for name in study.benchmarks if name in known)


def _json(value: object) -> JSONValue:
    return value if isinstance(value, dict) else {}


def _arm_stamp(arm: Arm, info: HarnessInfo, _: Harness, version: HarnessVersion) -> ArmStamp:
    return ArmStamp(arm, version.version, version.build, info.control, info.uses_model)


def grading_digest(benchmarks: list[Benchmark]) -> str:
    """Names the grading: graders, their toolkits' digests, and (once there are any) judges. 16 hexadecimal digits."""
    return digest({b.selector: {"grader": b.stamp.grader, "stamp": b.stamp.grader_stamp} for b in benchmarks})[:16]


async def close_plan(plan: Plan) -> None:
    """Close what the parts hold open."""
    parts: list[object] = [c.provider for c in plan.cells.values()]
    parts += [p for b in plan.benchmarks for p in (b.adapter, b.grader)]
    for part in {id(p): p for p in parts}.values():
        if isinstance(part, Closable):
            await part.close()


def base_of(stamp: RunStamp) -> Path:
    """The folder that relative paths of a stored study are relative to."""
    return Path(str(stamp.host.get("base", ".")))
