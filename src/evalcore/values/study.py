"""A study: benchmarks × arms × repeats, contrasts, margins and budget, fixed before the first trial."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

from attrs import Factory, frozen

from evalcore.values.injection import Injection
from evalcore.values.json import JSONObject, JSONValue, digest
from evalcore.values.task import Limits, Role


@frozen
class BenchmarkChoice:
    """What of a benchmark runs: a half-open, 0-based range of the dataset's order, or named tasks."""

    limit: tuple[int, int | None] | None = None
    tasks: tuple[str, ...] = ()


@frozen
class RoleChoice:
    """The model and limits of a role other than the agent's default."""

    model: str | None = None
    limits: Limits = Limits()


@frozen
class Contrast:
    """A comparison declared beforehand: arm `a` against arm `b` (handles)."""

    a: str
    b: str
    metric: str = "pass@1"
    margin: float | None = None


Stopping: TypeAlias = Literal["fixed", "obrien-fleming", "pocock", "anytime"]
STOPPING: Final[tuple[Stopping, ...]] = ("fixed", "obrien-fleming", "pocock", "anytime")
DEFAULT_LOOKS: Final = (0.5, 1.0)


@frozen
class Analysis:
    """How the study is to be analysed, fixed before the first trial: the table `[analysis]`.

    `stopping`: fixed (one look, at the planned end), planned looks (`looks`, shares of the tasks, the last one 1) with
    their spending, or anytime. `weights` and `anchors` (worst, best) are of the composite's dimensions, by name;
    `value_per_solve_usd` is what a solved task is worth.
    """

    alpha: float = 0.05
    power: float = 0.8
    stopping: Stopping = "fixed"
    looks: tuple[float, ...] = ()
    value_per_solve_usd: float | None = None
    weights: Mapping[str, float] = Factory(dict)
    anchors: Mapping[str, tuple[float, float]] = Factory(dict)

    @property
    def planned_looks(self) -> tuple[float, ...]:
        """The looks with planned looks, the default two where none is named; else none."""
        return (self.looks or DEFAULT_LOOKS) if self.stopping in ("obrien-fleming", "pocock") else ()

    @property
    def in_random_order(self) -> bool:
        """Whether tasks run whole and in a random order: what is seen at a look is then a sample of all."""
        return self.stopping != "fixed"

    def as_json(self) -> JSONObject:
        """What is not at its default, as the file has it."""
        value: JSONObject = {}
        for name in ("alpha", "power", "stopping"):
            if (given := getattr(self, name)) != getattr(_PLAIN, name):
                value[name] = given
        if self.looks:
            value["looks"] = list(self.looks)
        if self.value_per_solve_usd is not None:
            value["value_per_solve_usd"] = self.value_per_solve_usd
        if self.weights:
            value["weights"] = dict(self.weights)
        if self.anchors:
            value["anchors"] = {name: list(ends) for name, ends in self.anchors.items()}
        return value


_PLAIN: Final = Analysis()


def task_order(seed: int, tasks: Iterable[str]) -> list[str]:
    """Tasks in the random order that a study with looks fixes beforehand, by its seed and their ids alone."""
    return sorted(tasks, key=lambda task: (digest([seed, task]), task))


@frozen
class Study:
    """One TOML file, or the same from flags. Arms are as written: `extends` resolved, defaults not yet filled in."""

    name: str
    benchmarks: tuple[str, ...]
    arms: Mapping[str, Mapping[str, JSONValue]]
    repeats: int = 1
    seed: int = 0
    budget_usd: float | None = None
    choices: Mapping[str, BenchmarkChoice] = Factory(dict)  # by selector
    limits: Limits = Limits()
    roles: Mapping[Role, RoleChoice] = Factory(dict)
    sweep: Mapping[str, tuple[JSONValue, ...]] = Factory(dict)
    contrasts: tuple[Contrast, ...] = ()
    analysis: Analysis = Analysis()
    faults: Injection | None = None  # injected on purpose; None: none

    def as_json(self) -> JSONObject:
        """The study as its TOML file has it (without nulls), sweep not expanded."""
        head: JSONObject = {
            "name": self.name,
            "benchmarks": list(self.benchmarks),
            "repeats": self.repeats,
            "seed": self.seed,
        }
        if self.budget_usd is not None:
            head["budget_usd"] = self.budget_usd
        whole: JSONObject = {"study": head}
        if self.choices:
            whole["benchmarks"] = {k: _choice(c) for k, c in self.choices.items()}
        if limits := _present(self.limits):
            whole["limits"] = limits
        if self.roles:
            whole["roles"] = {k: _role(r) for k, r in self.roles.items()}
        whole["arms"] = {k: dict(a) for k, a in self.arms.items()}
        if self.sweep:
            whole["sweep"] = {k: list(v) for k, v in self.sweep.items()}
        if self.faults is not None:
            whole["faults"] = self.faults.as_json()
        if self.contrasts:
            whole["contrasts"] = [_contrast(c) for c in self.contrasts]
        if analysis := self.analysis.as_json():
            whole["analysis"] = analysis
        return whole

    @property
    def digest(self) -> str:
        """sha256 of the study as written, without its name and its budget: neither changes a result."""
        whole = self.as_json()
        head = whole["study"]
        assert isinstance(head, dict)
        return digest({**whole, "study": {k: v for k, v in head.items() if k not in ("name", "budget_usd")}})


def _present(limits: Limits) -> JSONObject:
    return {k: v for k, v in limits.as_json().items() if v is not None}


def _choice(choice: BenchmarkChoice) -> JSONObject:
    value: JSONObject = {}
    if choice.limit is not None:
        start, stop = choice.limit
        value["limit"] = f"{start}-{'' if stop is None else stop}"
    if choice.tasks:
        value["tasks"] = list(choice.tasks)
    return value


def _role(role: RoleChoice) -> JSONObject:
    value: JSONObject = {} if role.model is None else {"model": role.model}
    return value | _present(role.limits)


def _contrast(contrast: Contrast) -> JSONObject:
    value: JSONObject = {"a": contrast.a, "b": contrast.b, "metric": contrast.metric}
    if contrast.margin is not None:
        value["margin"] = contrast.margin
    return value
