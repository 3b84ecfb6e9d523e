"""What is said of several arms together, as plain frozen values: contrasts, the design behind them, fronts, composites.

Arms are named by their handle in the study and identified by their digest. What is None has a reason beside it.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import Factory, frozen

from evalcore.engine.stopping import Stop
from evalcore.report.words import plural
from evalcore.stats.composite import Dimension, Sensitivity
from evalcore.stats.incremental import ValueRange, WorthWord
from evalcore.stats.intervals import Interval
from evalcore.stats.verdicts import VerdictWord


@frozen
class Flip:
    """A task that one side solved more often: the shares, and a trial of each side to look at."""

    task: str
    a: tuple[int, int]  # solved, of trials with a result
    b: tuple[int, int]
    look_a: str  # an attempt that shows how it went
    look_b: str

    @property
    def size(self) -> float:
        """The difference of shares."""
        return self.a[0] / self.a[1] - self.b[0] / self.b[1]


@frozen
class Worth:
    """Whether arm `a` is worth its price against `b`: net benefit a task, at a declared value of a solve.

    `cost` is the extra cost of a trial, `solved` the extra share solved, both a less b with their intervals; `benefit`
    is value × solved - cost, and None where no value was declared. `ranges` say for which values it is worth it.
    """

    verdict: WorthWord
    reason: str
    value_per_solve_usd: float | None
    solved: Interval
    cost: Interval
    benefit: Interval | None
    ranges: tuple[ValueRange, ...] = ()


@frozen
class ContrastResult:
    """One claim of the study: arm `a` against arm `b` by `metric` on one benchmark. Differences are a less b.

    `values`, `effect`, `low` and `high` are in `unit`. `p_adjusted` is Holm's over the declared `family`; under planned
    looks it counts them, too. `look` says at which planned look the verdict was reached. `reason` says why the verdict
    is what it is, and `sentence` all of it in words; `settle` what more data would settle it.
    """

    a: str
    b: str
    digest_a: str | None  # None: the study names an arm that the run does not have
    digest_b: str | None
    benchmark: str
    metric: str
    unit: str
    higher_is_better: bool
    treatment: tuple[str, ...]
    verdict: VerdictWord
    confirmatory: bool
    reason: str
    sentence: str
    values: tuple[float | None, float | None] = (None, None)
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    method: str = ""
    p: float | None = None
    p_adjusted: float | None = None
    test: str = ""
    family: int = 1
    margin: float | None = None
    margin_interval: tuple[float | None, float | None] | None = None
    tasks: int = 0
    clusters: int = 0
    trials: tuple[int, int] = (0, 0)
    dropped: int = 0  # tasks of either side that could not be paired
    look: int | None = None
    settle: str = ""
    gained: tuple[Flip, ...] = ()  # tasks that `a` solved more often
    lost: tuple[Flip, ...] = ()
    worth: Worth | None = None  # of pass@1, where all costs are known; a second reading, never a confirmatory one


@frozen
class Look:
    """A report that was made while a confirmatory study was running, as the run recorded it."""

    at: str  # RFC 3339
    trials: int  # graded by then
    planned: bool = False  # one of the looks that the study declares


@frozen
class Sibling:
    """Another run of the same plan in the same folder; `difference` says where its tasks or repeats are others."""

    run: str
    created: str
    difference: str | None = None


@frozen
class Stopped:
    """A benchmark that the stopping rule ended; `after` trials ended later, and no contrast counts them."""

    stop: Stop
    after: int = 0

    @property
    def sentence(self) -> str:
        """Where it was ended, and what was decided there."""
        stop = self.stop
        where = "the stopping rule" if stop.look is None else f"planned look {stop.look}"
        said = f"{stop.benchmark} was ended by {where} after {stop.tasks:,} of {plural(stop.of, 'task')}: {stop.reason}"
        if self.after:
            said += f"; {plural(self.after, 'trial')} that ended later are in no contrast: they are exploratory"
        return said


@frozen
class Design:
    """What the study declared before the first trial, and whether it was kept to.

    `proves` says what that shows, and no more. `kept` is False while planned trials have not run, and after a change of
    plan; `why_not` says which.
    """

    digest: str
    alpha: float
    stopping: str
    claims: int  # contrasts × matched pairs × benchmarks: the family
    proves: str
    kept: bool
    why_not: str | None = None
    looks: tuple[float, ...] = ()  # as planned, shares of the tasks
    peeks: tuple[Look, ...] = ()
    siblings: tuple[Sibling, ...] = ()
    stops: tuple[Stopped, ...] = ()


@frozen
class FrontMember:
    """One arm on the plane of accuracy and cost (of the agent, mean over tasks, US dollars a trial).

    `share` of resamples of clusters have it on the front; `plausible`: on it, or in at least 5 % of them.
    """

    handle: str
    label: str
    digest: str
    accuracy: float | None
    cost_usd: float | None
    on_front: bool = False
    on_hull: bool = False
    share: float | None = None
    plausible: bool = False
    reason: str | None = None


@frozen
class Front:
    """Which arms no other beats on both accuracy and cost, over the `tasks` that all priced arms have results of."""

    benchmark: str
    members: tuple[FrontMember, ...]
    tasks: int
    seed: int
    reason: str | None = None  # why no arm is placed


@frozen
class CompositeArm:
    """An arm's composite: dimensions as measured and scaled, and the share of all weightings under which it wins."""

    handle: str
    label: str
    digest: str
    score: float | None
    raw: Mapping[str, float | None]
    scaled: Mapping[str, float | None]
    wins: float | None = None
    min_max: float | None = None  # the score by min-max of the arms present: depends on who else ran
    reason: str | None = None


@frozen
class Composite:
    """One score from several dimensions, with what other weights say. `sensitivity` is None where no arm has one."""

    benchmark: str
    declared: bool  # the study or the caller named the weights; else they are the default
    dimensions: tuple[Dimension, ...]
    arms: tuple[CompositeArm, ...]
    sensitivity: Sensitivity | None
    sentence: str
    left_out: Mapping[str, str] = Factory(dict)  # dimension -> why no arm has it

    def handle(self, digest: str) -> str:
        """The arm that the sensitivity names by its digest."""
        return next(arm.handle for arm in self.arms if arm.digest == digest)
