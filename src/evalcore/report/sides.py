"""One side of a comparison: one arm of one run, its trials by task. From attempts and gradings, in any order.

The rules are those of a report (`build`): a result stands, and otherwise the latest attempt of a trial decides.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypeAlias

from attrs import Factory, frozen

from evalcore.contracts import Metric
from evalcore.errors import ConfigError, RefusedError, UnknownNameError
from evalcore.report.detail import TrialRow
from evalcore.report.tally import CountedTrial, row_of
from evalcore.values.descriptors import MetricInfo
from evalcore.values.faults import nearest
from evalcore.values.measure import NO_MORE, Measure
from evalcore.values.stamp import ArmStamp, RunStamp
from evalcore.values.trial import RESULTS, Attempt, Grading

_RESULTS = frozenset(RESULTS)
Place: TypeAlias = tuple[str, str]  # benchmark, task


@frozen
class Metrics:
    """The metrics of plugins: all that are known, and those that are made because somebody asks for them."""

    known: Mapping[str, Measure] = NO_MORE
    made: tuple[tuple[MetricInfo, Metric], ...] = ()

    def named(self, names: Collection[str]) -> Metrics:
        """The same, with those alone made."""
        return Metrics(self.known, tuple((info, metric) for info, metric in self.made if info.name in names))


NO_METRICS: Final = Metrics()


@frozen
class TaskTrials:
    """One task's trials by this arm: those with a result, by repeat, and how many were tried and have none."""

    benchmark: str
    task: str
    digest: str
    results: tuple[TrialRow, ...]
    missing: int = 0
    ratios: Mapping[str, tuple[float, float]] = Factory(dict)  # by a plugin's metric that has a value of it


@frozen
class Side:
    """One arm of one run. `worlds` are the (provenance, isolation) that its attempts had, `served` who answered it.

    `stops` says of a benchmark that the stopping rule ended after how many tasks that was.
    """

    stamp: RunStamp
    arm: ArmStamp
    tasks: tuple[TaskTrials, ...]
    worlds: tuple[tuple[str, str], ...]
    served: tuple[str, ...] = ()  # the agent's models by their own word; empty: not said
    stops: Mapping[str, int] = Factory(dict)
    metrics: Metrics = NO_METRICS
    failed: Mapping[str, str] = Factory(dict)  # why a plugin's metric has no value at all


class SideBuilder:
    """Counts the attempts of one arm as they are read; those of other arms pass by."""

    def __init__(self, stamp: RunStamp, arm: ArmStamp, metrics: Metrics = NO_METRICS) -> None:
        self._stamp, self._arm, self._metrics = stamp, arm, metrics
        self._whole: dict[tuple[str, str], dict[int, CountedTrial]] = {}  # where a metric needs them
        faults = stamp.study.get("faults")
        self._undisturbed = isinstance(faults, dict) and faults.get("beside") is True  # beside the disturbed ones
        self._digests: dict[tuple[str, str], str] = {}
        self._results: dict[tuple[str, str], dict[int, tuple[int, TrialRow]]] = {}
        self._tried: dict[tuple[str, str], set[int]] = {}
        self._worlds: set[tuple[str, str]] = set()
        self._served: set[str] = set()

    def add(self, attempt: Attempt, grading: Grading | None) -> None:
        """Count one attempt. Raises RefusedError for a task that changed while the run was going on."""
        key = attempt.key
        if key.arm != self._arm.arm.digest or (key.faults and self._undisturbed):
            return
        place = (key.benchmark, key.task)
        if self._digests.setdefault(place, attempt.task_digest) != attempt.task_digest:
            reason = f"its attempts are of two contents: {self._digests[place][:12]}, {attempt.task_digest[:12]}"
            raise RefusedError(f"task {key.task} of run {self._stamp.run} is not one task", reasons=(reason,))
        self._worlds.add((attempt.provenance, attempt.isolation))
        if attempt.served:
            self._served.update(attempt.served.get("agent", ()))
        self._tried.setdefault(place, set()).add(key.repeat)
        if attempt.void is None and grading is not None and grading.verdict.outcome in _RESULTS:
            kept = self._results.setdefault(place, {})
            first = kept.get(key.repeat)
            if first is None or attempt.number < first[0]:
                kept[key.repeat] = (attempt.number, _row(attempt, grading))
                if self._metrics.made:
                    self._whole.setdefault(place, {})[key.repeat] = CountedTrial(attempt, grading)

    def finish(self) -> Side:
        """The side of what has been added; tasks by benchmark and id."""
        tasks = []
        whole = {p: [x for _, x in sorted(self._whole[p].items())] for p in self._whole}
        ratios, failed = ratios_of(self._metrics, whole)
        for place in sorted(self._digests):
            kept = self._results.get(place, {})
            results = tuple(kept[repeat][1] for repeat in sorted(kept))
            missing = len(self._tried[place]) - len(results)
            tasks.append(TaskTrials(*place, self._digests[place], results, missing, ratios.get(place, {})))
        return Side(
            self._stamp, self._arm, tuple(tasks), tuple(sorted(self._worlds)), tuple(sorted(self._served)),
            metrics=self._metrics, failed=failed,
        )  # fmt: skip


def _row(attempt: Attempt, grading: Grading) -> TrialRow:
    verdict = grading.verdict
    return row_of(attempt, verdict.outcome, verdict.harm, verdict.views)


def ratios_of(
    metrics: Metrics, tasks: Mapping[Place, Sequence[CountedTrial]]
) -> tuple[dict[Place, dict[str, tuple[float, float]]], dict[str, str]]:
    """What plugins' metrics say of each task, where they have a value; and why one of them has none at all."""
    found: dict[Place, dict[str, tuple[float, float]]] = {}
    failed: dict[str, str] = {}
    for info, metric in metrics.made:
        try:
            pairs = {place: metric.per_task(trials) for place, trials in tasks.items()}
        except Exception as error:  # noqa: BLE001 - a stranger's code; the other numbers stand
            failed[info.name] = f"the metric {info.name} failed: {type(error).__name__}: {error!s:.200}"
            continue
        for place, pair in pairs.items():
            if pair is not None:
                found.setdefault(place, {})[info.name] = pair
    return found, failed


def choose_arm(stamp: RunStamp, wanted: str | None = None) -> ArmStamp:
    """The arm of that handle, label or digest (or the only one whose label or digest it is a part of).

    By default the run's only arm that is no control. Raises ConfigError where that leaves none or several.
    """
    known = {a.arm.handle: a for a in stamp.arms}
    if wanted is None:
        return _only_agent(stamp)
    exact = [a for a in stamp.arms if wanted in (a.arm.handle, a.arm.label, a.arm.digest)]
    if exact:
        return exact[0]
    part = [a for a in stamp.arms if wanted and (wanted in a.arm.label or a.arm.digest.startswith(wanted))]
    if len(part) == 1:
        return part[0]
    hint = f"run {stamp.run} has {', '.join(known) or 'none'}"
    raise UnknownNameError("arm", wanted, nearest=[a.arm.handle for a in part] or nearest(wanted, known), hint=hint)


def _only_agent(stamp: RunStamp) -> ArmStamp:
    agents = [a for a in stamp.arms if not a.control]
    if len(agents) == 1:
        return agents[0]
    names = ", ".join(a.arm.handle for a in agents or stamp.arms)
    if agents:
        raise ConfigError(f"run {stamp.run} has {len(agents)} arms: {names}", hint="name one of them")
    hint = f"its arms can be named all the same: {names}" if names else None
    raise ConfigError(f"run {stamp.run} has only controls: no agent was measured", hint=hint)
