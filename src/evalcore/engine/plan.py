"""From a study to everything a run needs: benchmarks with their tasks, arms with their parts, and the stamp.

Nothing is spent here: tasks are loaded, harnesses probed, graders stamped, and what the run would do is projected.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from attrs import evolve, field, frozen

from evalcore.contracts import CheckedAdapter, CheckedTransform, Executes
from evalcore.engine.arms import complete_arms
from evalcore.engine.benchmarks import Benchmark, load_benchmark, selectors_of, with_oracle_note
from evalcore.engine.context import check_context
from evalcore.engine.parts import (
    Parts,
    check_providers,
    check_transforms,
    close_all,
    make_cell,
    prepare_providers,
    vocabulary,
    with_faults,
)
from evalcore.engine.replay import Recordings, Replay
from evalcore.engine.roles import check_roles, role_models
from evalcore.engine.services import LocalServices
from evalcore.engine.stamping import make_stamp
from evalcore.engine.trial import Cell
from evalcore.errors import ConfigError
from evalcore.plugins import Registry
from evalcore.values.arm import Arm
from evalcore.values.json import JSONValue
from evalcore.values.stamp import RunStamp
from evalcore.values.study import Study, task_order
from evalcore.values.task import Task
from evalcore.values.trial import TrialKey
from evalcore.wires.gateway.prices import VARIABLE as PRICES
from evalcore.wires.gateway.prices import ModelPrice, PriceList
from evalcore.wires.injection import Injector

Cells: TypeAlias = dict[tuple[str, str], Cell]  # by selector and arm digest


@frozen
class Projection:
    """What a run would do. A number that cannot be known is None, and `notes` says why."""

    trials: int
    model_trials: int
    tokens_at_most: int | None
    cost_at_most_usd: float | None
    wall_at_most_s: float | None  # of all trials one after the other
    longest_trial_s: float | None
    notes: tuple[str, ...] = ()


@frozen
class Plan:
    """Everything a run needs, and what it will be stamped with."""

    study: Study
    stamp: RunStamp
    benchmarks: tuple[Benchmark, ...]
    arms: tuple[Arm, ...]
    cells: Mapping[tuple[str, str], Cell] = field(repr=False)  # (selector, arm digest)
    parts: Parts = field(repr=False)
    notes: tuple[str, ...] = ()
    faulted: Mapping[tuple[str, str], Cell] = field(factory=dict, repr=False)  # the same, with faults injected

    def every_cell(self) -> list[Cell]:
        """All, those with faults after those without."""
        return [*self.cells.values(), *self.faulted.values()]

    def trials(self) -> Iterator[tuple[Cell, Task, TrialKey]]:
        """Every trial: repeats outermost, arms innermost, so that a run stopped early is balanced over arms.

        A study with looks runs task by task, all repeats of it, in the random order that it fixed: a look is at whole
        tasks.
        """
        if self.study.analysis.in_random_order:
            yield from self._task_by_task()
            return
        for repeat in range(1, self.study.repeats + 1):
            for benchmark in self.benchmarks:
                cells = self._cells_of(benchmark)
                for task in benchmark.tasks:
                    for cell in cells:
                        faults = cell.injector is not None
                        yield cell, task, TrialKey(benchmark.selector, task.id, cell.arm.digest, repeat, faults)

    def role_models(self) -> list[str]:
        """The models of users and judges."""
        return sorted({role.model for cell in self.cells.values() for role in cell.roles.values()})

    def _task_by_task(self) -> Iterator[tuple[Cell, Task, TrialKey]]:
        for benchmark in self.benchmarks:
            cells = self._cells_of(benchmark)
            tasks = {task.id: task for task in benchmark.tasks}
            for name in _required_first(task_order(self.study.seed, tasks), tasks):
                for repeat in range(1, self.study.repeats + 1):
                    for cell in cells:
                        faults = cell.injector is not None
                        yield cell, tasks[name], TrialKey(benchmark.selector, name, cell.arm.digest, repeat, faults)

    def _cells_of(self, benchmark: Benchmark) -> list[Cell]:
        """Arm by arm, without faults and with them."""
        places = [(benchmark.selector, arm.digest) for arm in self.arms]
        both = (side.get(place) for place in places for side in (self.cells, self.faulted))
        return [cell for cell in both if cell is not None]

    def count(self) -> int:
        """How many trials there are."""
        sizes = {b.selector: len(b.tasks) for b in self.benchmarks}
        return self.study.repeats * sum(sizes[cell.benchmark] for cell in self.every_cell())

    def projection(self) -> Projection:
        """The most that the run can use, from its limits; nothing is guessed."""
        found = {b.selector: (len(b.tasks) * self.study.repeats, b.stamp.limits) for b in self.benchmarks}
        trials = [(*found[cell.benchmark], cell) for cell in self.every_cell()]
        models = [(n, limits) for n, limits, cell in trials if cell.upstream is not None or cell.roles]
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
        bounds = [limits.wall_s for *_, limits, _ in trials]
        longest = None if None in bounds else max(b for b in bounds if b is not None)
        wall = _sum_or_none(n * limits.wall_s if limits.wall_s else None for n, limits, _ in trials)
        return Projection(
            sum(n for n, *_ in trials), sum(n for n, _ in models), tokens, cost, wall, longest, tuple(notes)
        )

    def _cost_at_most(self) -> float | None:
        """The budget; or what all tokens that the limits allow would cost, where that is known and less."""
        limits = {b.selector: (len(b.tasks) * self.study.repeats, b.stamp.limits.tokens) for b in self.benchmarks}
        bounds = [self.study.budget_usd] if self.study.budget_usd is not None else []
        dearest = 0.0
        for cell in self.every_cell():
            priced = [role.price for role in cell.roles.values()]
            if cell.upstream is not None:
                priced.append(cell.price)
            if priced:
                trials, tokens = limits[cell.benchmark]
                known = [price.at_most(tokens) for price in priced if price is not None and tokens is not None]
                if len(known) < len(priced):
                    return min(bounds, default=None)
                dearest += trials * max(known)
        return min([*bounds, dearest])


def _required_first(order: Iterable[str], tasks: Mapping[str, Task]) -> dict[str, None]:
    """The same order, but that a task comes after those that it requires: whoever waits for them holds a place."""
    found: dict[str, None] = {}
    for name in order:
        for required in tasks[name].requires:
            found |= _required_first([required], tasks)
        found.setdefault(name)
    return found


def _sum_or_none(values: Iterator[float | None]) -> int | None:
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return int(total)


async def make_plan(
    study: Study,
    registry: Registry,
    services: LocalServices,
    run: str,
    *,
    to_run: bool = True,
    prices: PriceList | None = None,
    replay: Replay | None = None,
) -> Plan:
    """Load, check and stamp everything that the study names. Raises ConfigError, ToolkitError.

    Without `to_run`, no agent will: then nobody asks for a provider's key. `prices` are those of today, unless given.
    """
    prices = prices or PriceList.of(os.environ, services.clock.now())
    parts = _parts(study, registry, services, replay)
    arms = complete_arms(study, vocabulary(registry), base=services.base, content=parts.content)
    check_transforms(arms, registry)
    harnesses = {name: await parts.harness(name) for name in dict.fromkeys(a.harness for a in arms)}
    _check_money(study, arms, prices)
    if to_run:
        check_providers(arms, parts)
        await prepare_providers(arms, parts)
    benchmarks = [
        await load_benchmark(text, study, registry, services, arms[0]) for text in selectors_of(study, registry)
    ]
    benchmarks, notes = _that_can_run(benchmarks, study, arms, to_run=to_run)
    if to_run:
        check_context(benchmarks, arms)
        notes += check_roles(benchmarks, arms, {n: i for n, (i, *_) in harnesses.items()}, parts)
    if any(a.harness == "oracle" for a in arms):
        benchmarks = [await with_oracle_note(b) for b in benchmarks]
    cells: dict[tuple[str, str], Cell] = {}
    for benchmark in benchmarks:
        for arm in arms:
            info, harness, _ = harnesses[arm.harness]
            if info.name != "oracle" or not benchmark.stamp.oracle_note:
                roles = role_models(benchmark, arm, info, parts, prices)
                cells[benchmark.selector, arm.digest] = make_cell(
                    benchmark, arm, info, harness, study, parts, _price(arm, prices), roles
                )
    notes += [f"oracle is not applicable to {b.selector}: {n}" for b in benchmarks if (n := b.stamp.oracle_note)]
    if not cells:
        raise ConfigError("nothing to run", hint=notes[0] if notes else None)
    _check_files(cells.values(), to_run=to_run)
    _check_roles_money(study, cells, prices)
    cells, faulted = _disturbed(study, cells, parts)
    plan_notes = _missing(study, benchmarks, cells, parts.recordings) if parts.recordings else []
    stamp = await make_stamp(study, run, arms, harnesses, benchmarks, registry, services, prices.as_json())
    if replay is not None:
        stamp = evolve(stamp, replay=replay.as_json())
    return Plan(study, stamp, tuple(benchmarks), arms, cells, parts, (*notes, *plan_notes), faulted)


def _parts(study: Study, registry: Registry, services: LocalServices, replay: Replay | None) -> Parts:
    """None made yet; with what stands between them and the world. Raises ConfigError."""
    if replay is not None and study.faults is not None:
        raise ConfigError("a replay injects no faults", hint="leave [faults] out, or --replay")
    injector = None if study.faults is None else Injector(study.faults)
    return Parts(registry, services, recordings=Recordings(replay) if replay else None, injector=injector)


def _check_files(cells: Iterable[Cell], *, to_run: bool) -> None:
    """Files that axes name, and what those name, are read here: a bad one is told before anything runs."""
    for cell in cells:
        for transform, value in cell.transforms if to_run else ():
            turned: object = transform
            if isinstance(turned, CheckedTransform):
                turned.check(value)
        commands_of(cell)


def _disturbed(study: Study, cells: Cells, parts: Parts) -> tuple[Cells, Cells]:
    """The cells without faults and those with them. Controls use no model, and are never disturbed."""
    if study.faults is None:
        return cells, {}
    faulted = {k: with_faults(cell, parts) for k, cell in cells.items() if cell.upstream and not cell.control}
    return cells if study.faults.beside else {k: c for k, c in cells.items() if k not in faulted}, faulted


def _missing(
    study: Study, benchmarks: Sequence[Benchmark], cells: Mapping[tuple[str, str], Cell], recordings: Recordings
) -> list[str]:
    """A note of how many trials have no recording. Raises ConfigError if none has one."""
    keys = [
        (TrialKey(b.selector, task.id, cell.arm.digest, repeat), cell.arm)
        for b in benchmarks
        for cell in cells.values()
        if cell.benchmark == b.selector and cell.upstream is not None
        for task in b.tasks
        for repeat in range(1, study.repeats + 1)
    ]
    missing = sum(not recordings.has(key, arm) for key, arm in keys)
    if keys and missing == len(keys):
        raise ConfigError(
            f"run {recordings.run} holds no recording of any of these trials",
            hint="a trial is known by its benchmark, task, configuration and repeat: `evalcore show RUN` lists them",
        )
    then = "the model is asked" if recordings.replay.record_missing else "they will be void: `--record-missing` asks"
    return [f"{missing:,} of {len(keys):,} trials have no recording: {then}"] if missing else []


def _that_can_run(
    benchmarks: list[Benchmark], study: Study, arms: tuple[Arm, ...], *, to_run: bool
) -> tuple[list[Benchmark], list[str]]:
    """Those that can run here, and a note for each that cannot. Raises ConfigError.

    One that the study names itself is refused, where it is `to_run`; one that only a group brings is left out of it,
    and the group is no longer called by its name.
    """
    kept, notes, refusals = [], [], []
    for benchmark in benchmarks:
        adapter: object = benchmark.adapter
        try:
            if isinstance(adapter, CheckedAdapter):
                adapter.check(benchmark.tasks, arms)
        except ConfigError as error:
            if benchmark.selector in study.benchmarks:
                if to_run:
                    raise
                kept.append(benchmark)
                notes.append(f"it would be refused here: {error.message}")
                continue
            refusals.append(error)
            notes.append(f"left out of its group: {error.message}")
        else:
            kept.append(benchmark)
    if not kept:
        raise refusals[0]
    return kept, notes


def commands_of(cell: Cell) -> list[Sequence[str]]:
    """What the files of a cell's parts would have executed or reached on this machine. Raises ConfigError."""
    parts: list[tuple[object, Mapping[str, JSONValue]]] = [(cell.harness, cell.options), (cell.adapter, cell.arm.axes)]
    parts += [(transform, cell.arm.axes) for transform, _ in cell.transforms]
    return [argv for part, given in parts if isinstance(part, Executes) for argv in part.commands(given)]


def _price(arm: Arm, prices: PriceList) -> ModelPrice | None:
    """The price of an arm's model, where it is served."""
    return prices.price(arm.model, _address(arm)) if arm.model else None


def _address(arm: Arm) -> str | None:
    address = arm.axes.get("base_url")
    return address if isinstance(address, str) else None


def _check_money(study: Study, arms: tuple[Arm, ...], prices: PriceList) -> None:
    """A bound in dollars needs one on tokens too, where the price of a model is not known."""
    if (study.budget_usd is None and study.limits.cost_usd is None) or study.limits.tokens is not None:
        return
    unknown = {a.model: prices.why(a.model, _address(a)) for a in arms if a.model and _price(a, prices) is None}
    if unknown:
        raise _money_needs_tokens(study, unknown)


def _check_roles_money(study: Study, cells: Mapping[tuple[str, str], Cell], prices: PriceList) -> None:
    """The same for the models of users and judges."""
    if (study.budget_usd is None and study.limits.cost_usd is None) or study.limits.tokens is not None:
        return
    roles = [role for cell in cells.values() for role in cell.roles.values()]
    unknown = {role.model: prices.why(role.model) for role in roles if role.price is None}
    if unknown:
        raise _money_needs_tokens(study, unknown)


def _money_needs_tokens(study: Study, unknown: Mapping[str, str | None]) -> ConfigError:
    told = "; ".join(f"no price is known for {model} ({why})" for model, why in unknown.items())
    bound = "limit" if study.budget_usd is None else "budget"
    return ConfigError(
        f"a {bound} in dollars needs a bound on tokens as well: {told}",
        hint=f"add `--max-tokens N` (per trial), or `tokens` under [limits]; or prices of your own: {PRICES}=FILE",
    )


async def close_plan(plan: Plan) -> None:
    """Close what benchmarks and parts hold open."""
    await close_all([part for b in plan.benchmarks for part in (b.adapter, b.grader)])
    await plan.parts.close()
