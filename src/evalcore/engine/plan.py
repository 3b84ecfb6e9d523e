"""From a study to everything a run needs: benchmarks with their tasks, arms with their parts, and the stamp.

Nothing is spent here: tasks are loaded, harnesses probed, graders stamped, and what the run would do is projected.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from attrs import field, frozen

from evalcore.contracts import CheckedAdapter, Executes
from evalcore.engine.arms import complete_arms
from evalcore.engine.benchmarks import Benchmark, load_benchmark, selectors_of, with_oracle_note
from evalcore.engine.context import check_context
from evalcore.engine.parts import Parts, check_providers, check_transforms, close_all, make_cell, vocabulary
from evalcore.engine.roles import check_roles, role_models
from evalcore.engine.services import LocalServices
from evalcore.engine.stamping import make_stamp
from evalcore.engine.trial import Cell
from evalcore.errors import ConfigError
from evalcore.plugins import Registry
from evalcore.values.arm import Arm
from evalcore.values.stamp import RunStamp
from evalcore.values.study import Study
from evalcore.values.task import Task
from evalcore.values.trial import TrialKey
from evalcore.wires.gateway.prices import VARIABLE as PRICES
from evalcore.wires.gateway.prices import ModelPrice, PriceList


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

    def trials(self) -> Iterator[tuple[Cell, Task, TrialKey]]:
        """Every trial: repeats outermost, arms innermost, so that a run stopped early is balanced over arms."""
        for repeat in range(1, self.study.repeats + 1):
            for benchmark in self.benchmarks:
                cells = [c for a in self.arms if (c := self.cells.get((benchmark.selector, a.digest)))]
                for task in benchmark.tasks:
                    for cell in cells:
                        yield cell, task, TrialKey(benchmark.selector, task.id, cell.arm.digest, repeat)

    def role_models(self) -> list[str]:
        """The models of users and judges."""
        return sorted({role.model for cell in self.cells.values() for role in cell.roles.values()})

    def count(self) -> int:
        """How many trials there are."""
        sizes = {b.selector: len(b.tasks) for b in self.benchmarks}
        return self.study.repeats * sum(sizes[selector] for selector, _ in self.cells)

    def projection(self) -> Projection:
        """The most that the run can use, from its limits; nothing is guessed."""
        found = {b.selector: (len(b.tasks) * self.study.repeats, b.stamp.limits) for b in self.benchmarks}
        trials = [(*found[selector], cell) for (selector, _), cell in self.cells.items()]
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
        for (selector, _), cell in self.cells.items():
            priced = [role.price for role in cell.roles.values()]
            if cell.upstream is not None:
                priced.append(cell.price)
            if priced:
                trials, tokens = limits[selector]
                known = [price.at_most(tokens) for price in priced if price is not None and tokens is not None]
                if len(known) < len(priced):
                    return min(bounds, default=None)
                dearest += trials * max(known)
        return min([*bounds, dearest])


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
) -> Plan:
    """Load, check and stamp everything that the study names. Raises ConfigError, ToolkitError.

    Without `to_run`, no agent will: then nobody asks for a provider's key. `prices` are those of today, unless given.
    """
    prices = prices or PriceList.of(os.environ, services.clock.now())
    parts = Parts(registry, services)
    arms = complete_arms(study, vocabulary(registry), base=services.base, content=parts.content)
    check_transforms(arms, registry)
    harnesses = {name: await parts.harness(name) for name in dict.fromkeys(a.harness for a in arms)}
    _check_money(study, arms, prices)
    if to_run:
        check_providers(arms, parts)
    benchmarks = [
        await load_benchmark(text, study, registry, services, arms[0]) for text in selectors_of(study, registry)
    ]
    for benchmark in benchmarks if to_run else ():
        adapter: object = benchmark.adapter
        if isinstance(adapter, CheckedAdapter):
            adapter.check(benchmark.tasks, arms)
    if to_run:
        check_context(benchmarks, arms)
    notes = check_roles(benchmarks, arms, {n: i for n, (i, *_) in harnesses.items()}, parts) if to_run else []
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
    for cell in cells.values():
        agent: object = cell.harness
        if isinstance(agent, Executes):  # its file is read here, so that a bad one is told before anything runs
            agent.commands(cell.options)
    if not cells:
        raise ConfigError("nothing to run", hint=notes[0] if notes else None)
    _check_roles_money(study, cells, prices)
    stamp = await make_stamp(study, run, arms, harnesses, benchmarks, registry, services, prices.as_json())
    return Plan(study, stamp, tuple(benchmarks), arms, cells, parts, tuple(notes))


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
