"""What stands behind a cell's numbers, as plain frozen values: its tasks, trial by trial, and its curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from attrs import frozen

from evalcore.report.values import MetricValue
from evalcore.stats.flakiness import Unstable
from evalcore.stats.latency import TimeQuantile
from evalcore.values.trial import RESULTS, SUCCESSES, ExitKind

_RESULTS = frozenset(RESULTS)
NO_VIEWS: Final[Mapping[str, bool]] = MappingProxyType({})


@frozen
class TrialRow:
    """One trial by the attempt that decides it.

    `outcome` is a result, or why there is none: `infra_error`, `grader_error`, `ungraded`. Tokens and cost are the
    agent's. A cost or a time of None is not known; `unreported` calls told no usage, and make `tokens` a lower bound.
    """

    repeat: int
    attempt: str
    outcome: str
    harm: bool | None
    exit: ExitKind | None  # None: void
    limit: str | None
    wall_s: float | None
    tokens: int
    unreported: int
    cost_usd: float | None
    tool_calls: int
    tool_errors: int
    views: Mapping[str, bool] = NO_VIEWS

    @property
    def counted(self) -> bool:
        """Whether it has a verdict that is a result."""
        return self.outcome in _RESULTS

    @property
    def success(self) -> bool:
        """Whether it passed, or rightly declined."""
        return self.outcome in SUCCESSES

    @property
    def executed(self) -> bool:
        """Whether the agent ran to an end of its own, graded or not."""
        return self.exit is not None


@frozen
class TaskRow:
    """One task of a cell with its trials by repeat; trials that never began are not in it.

    `digest` is of the task's content; None where its attempts were of two contents, and it is then no one task.
    """

    task: str
    cluster: str
    digest: str | None
    trials: tuple[TrialRow, ...]

    @property
    def results(self) -> list[TrialRow]:
        """The trials that count."""
        return [t for t in self.trials if t.counted]

    @property
    def executed(self) -> list[TrialRow]:
        """The trials whose agent ran."""
        return [t for t in self.trials if t.executed]

    @property
    def counts(self) -> tuple[int, int]:
        """(graded, solved)."""
        results = self.results
        return len(results), sum(t.success for t in results)

    @property
    def flaky(self) -> bool:
        """Whether its graded trials came out in more than one way."""
        return len({t.outcome for t in self.results}) > 1


@frozen
class CurvePoint:
    """pass^k and pass@k at one k, and the floor of pass^k.

    `floor` is pass@1 to the power k: what pass^k would be were all tasks equally hard. Tasks differ, so the true pass^k
    is at least the true floor: it is no prediction. None where pass@1 is not known.
    """

    k: int
    pass_hat: MetricValue
    pass_at: MetricValue
    floor: float | None


@frozen
class Detail:
    """What a cell holds beyond its numbers.

    `curve` goes from k = 1 to the repeats of the task with the fewest; `unstable` is None unless all tasks have the
    same number of graded trials, two or more; `latency` are quantiles of the wall time of all executed trials, by which
    a run that the time limit cut off counts as longer.
    """

    tasks: tuple[TaskRow, ...] = ()
    curve: tuple[CurvePoint, ...] = ()
    latency: tuple[TimeQuantile, ...] = ()
    unstable: Unstable | None = None

    def flipping(self) -> Iterator[TaskRow]:
        """The tasks whose repeats disagree."""
        return (task for task in self.tasks if task.flaky)
