"""The report of a run, as plain frozen values. A number that is not known is None with a reason, never 0 or NaN."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from attrs import Factory, frozen

from evalcore.report.analysis import Composite, ContrastResult, Design, Front
from evalcore.report.detail import Detail
from evalcore.report.values import MetricValue
from evalcore.values.floor import Floor
from evalcore.values.json import JSONObject
from evalcore.values.stamp import ArmStamp, BenchmarkStamp
from evalcore.values.task import Role
from evalcore.values.trial import SUCCESSES, ExitKind
from evalcore.values.usage import Usage

__all__ = [
    "EXCLUSIONS",
    "Cell",
    "Exclusion",
    "GroupValue",
    "MetricValue",
    "Note",
    "Report",
    "RoleUsage",
]

Exclusion: TypeAlias = Literal["infra_error", "grader_error", "ungraded"]
EXCLUSIONS: Final[tuple[Exclusion, ...]] = ("infra_error", "grader_error", "ungraded")


@frozen
class RoleUsage:
    """What one role used over all executed trials. `usage.cost_usd` is None where a trial's price is unknown."""

    usage: Usage
    trials: int = 0  # that called a model in this role
    unpriced: int = 0  # of these, trials whose price is unknown
    known_usd: float = 0.0  # what the priced ones cost
    reason: str | None = None  # why the cost is None


@frozen
class Cell:
    """One benchmark × one arm, in one world: attempts that differ in provenance or isolation are never pooled.

    `trials` = graded + excluded. `tasks` and `clusters` are those with a graded trial. Exits and usage are of all
    executed trials (the agent ran, graded or not); `wasted` is what void and superseded attempts used on top.
    """

    benchmark: BenchmarkStamp
    arm: ArmStamp
    isolation: str
    provenance: str | None  # None: nothing has run yet
    planned: int
    trials: int
    not_run: int  # planned for this benchmark and arm, without an attempt in any world
    tasks: int
    clusters: int
    outcomes: Mapping[str, int]
    harm: int | None  # None: this benchmark does not judge harm
    excluded: Mapping[Exclusion, int]
    voids: int
    void_kinds: Mapping[str, int]
    exits: Mapping[ExitKind, int]
    limits_hit: Mapping[str, int]
    usage: Mapping[Role, RoleUsage]
    wasted: Mapping[Role, RoleUsage]
    metrics: Mapping[str, MetricValue]
    views: Mapping[str, MetricValue] = Factory(dict)  # second, labelled readings of the same trials
    flags: Mapping[str, int] = Factory(dict)
    notes: tuple[str, ...] = ()
    toolkits: JSONObject = Factory(dict)
    served: Mapping[Role, tuple[str, ...]] = Factory(dict)  # the models that answered, by their own word
    floor: Floor | None = None  # measured beside the run; None: it was not, or noop is an arm of it
    detail: Detail = Detail()  # tasks trial by trial, and curves
    reasons: Mapping[str, str] = Factory(dict)  # field -> why it is None

    @property
    def graded(self) -> int:
        """Trials that count: those with a verdict that is a result."""
        return sum(self.outcomes.values())

    @property
    def solved(self) -> int:
        """Graded trials that passed or rightly declined."""
        return sum(n for outcome, n in self.outcomes.items() if outcome in SUCCESSES)

    @property
    def executed(self) -> int:
        """Trials in which the agent ran to an end of its own, graded or not."""
        return self.trials - self.excluded["infra_error"]


@frozen
class Note:
    """Something that a reader must know; about one benchmark, or about the whole run."""

    text: str
    benchmark: str | None = None

    def __str__(self) -> str:
        return f"{self.benchmark}: {self.text}" if self.benchmark else self.text


@frozen
class GroupValue:
    """A group's value for one arm; None where a member has no value, and `reason` says which."""

    name: str
    arm: str  # the arm's label
    digest: str
    value: float | None
    complete: bool
    reason: str | None
    members: Mapping[str, float]

    @property
    def title(self) -> str:
        """The group's name, or what it is short of."""
        return self.name if self.complete else f"{self.name} (part)"


@frozen
class Report:
    """Everything that is said about a run. Computed once; the same trials in any order give the same report."""

    run: str
    study_name: str
    study_digest: str
    created: str  # when the run was, RFC 3339: a report made again is the same report
    grading: str
    repeats: int
    cells: tuple[Cell, ...]
    groups: tuple[GroupValue, ...] = ()
    contrasts: tuple[ContrastResult, ...] = ()  # those that the study declares, one for each matched pair and benchmark
    notes: tuple[Note, ...] = ()
    budget_usd: float | None = None
    design: Design | None = None  # what was declared before the first trial, and whether it was kept to
    fronts: tuple[Front, ...] = ()  # accuracy × cost, one for each benchmark
    composites: tuple[Composite, ...] = ()  # one score from several dimensions, one for each benchmark
