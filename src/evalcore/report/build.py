"""From attempts and gradings, one pair at a time and in any order, to a Report.

A trial's latest attempt decides, and a result (pass, fail, declined, fabricated) stands: what comes before it is
superseded, what comes after it is left out, and said. Void attempts are counted and never enter a score; a trial is
lost to infrastructure only if its latest attempt is void. Attempts of one arm that differ in provenance or isolation
land in separate cells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from attrs import Factory, evolve, frozen

from evalcore.contracts import Metric
from evalcore.engine.stopping import Stop
from evalcore.errors import RefusedError
from evalcore.report import metrics as measures
from evalcore.report import notes
from evalcore.report.analysis import Look, Sibling, Stopped
from evalcore.report.claims import analysis_of, claims_of
from evalcore.report.contrasts import contrasts, design
from evalcore.report.detail import Detail, TaskRow, TrialRow
from evalcore.report.groups import group_values
from evalcore.report.model import EXCLUSIONS, Cell, Exclusion, MetricValue, Note, Report
from evalcore.report.sides import Metrics, Place, Side, TaskTrials, ratios_of
from evalcore.report.tally import CountedTrial, Spent, World, row_of
from evalcore.report.together import Weighting, comparable, front, one_score
from evalcore.values.descriptors import MetricInfo
from evalcore.values.floor import Floor
from evalcore.values.measure import measures_of
from evalcore.values.stamp import ArmStamp, BenchmarkStamp, RunStamp, price_key
from evalcore.values.task import ROLES, Role
from evalcore.values.trial import RESULTS, Attempt, Grading

_RESULTS = frozenset(RESULTS)
LONGEST_REASON: Final = 160
_NOT_SAID = "no answer said which model it came from"
_UNTOLD = "no cost known for {}: calls reported no usage, or one that its price does not apply to"


@frozen
class Context:
    """What is known of a run beside its trials: who has looked while it was running, and other runs of its plan."""

    peeks: tuple[Look, ...] = ()
    siblings: tuple[Sibling, ...] = ()
    stops: Mapping[str, Stop] = Factory(dict)  # of the stopping rule, by selector
    floors: Mapping[str, Floor] = Factory(dict)  # measured beside the run, by selector


class ReportBuilder:
    """Counts trials as they are read; `finish` may be called at any time, and again."""

    def __init__(
        self,
        stamp: RunStamp,
        metrics: Sequence[tuple[MetricInfo, Metric]] = (),
        *,
        context: Context = Context(),
        weights: Mapping[str, float] | None = None,
    ) -> None:
        self._stamp, self._context, self._weights = stamp, context, weights
        self._metrics = tuple(metrics)
        self._pairs = {
            (b.selector, a.arm.digest, faults): _Pair(b, a, bool(metrics))
            for b in stamp.benchmarks
            for a in stamp.arms
            for faults in _sides(stamp, a)
            if a.arm.harness != "oracle" or not b.oracle_note  # not applicable there: no cell, and a note says why
        }

    def add(self, attempt: Attempt, grading: Grading | None) -> None:
        """Count one attempt. Raises RefusedError for one of a benchmark or arm that the stamp does not have."""
        key = attempt.key
        pair = self._pairs.get((key.benchmark, key.arm, key.faults))
        if pair is None:
            raise RefusedError(
                f"attempt {attempt.id} ({key}) belongs to no benchmark and arm of run {self._stamp.run}",
                reasons=("the run's stamp and its attempts disagree",),
                hint="the files of two runs were mixed; run `evalcore report` on each run's own directory",
            )
        pair.add(attempt, grading)

    def finish(self) -> Report:
        """The report of what has been added."""
        stamp, context = self._stamp, self._context
        cells = tuple(cell for pair in self._pairs.values() for cell in self._cells(pair))
        compared = _undisturbed(stamp, cells)
        found = contrasts(stamp, self._sides(compared)) if stamp.study.get("contrasts") else ()
        missing = sum(max(0, p.benchmark.tasks * stamp.repeats - p.trials) for p in self._pairs.values())
        groups = comparable(compared)
        weighting = Weighting.of(analysis_of(stamp), self._weights)
        return Report(
            stamp.run,
            stamp.study_name,
            stamp.study_digest,
            stamp.created,
            stamp.grading,
            stamp.repeats,
            tuple(self._with_floor(cell) for cell in cells),
            groups=group_values(stamp, cells),
            contrasts=found,
            budget_usd=_budget(stamp),
            design=design(stamp, found, context.peeks, context.siblings, missing, self._stopped()),
            fronts=tuple(front(group, stamp.seed) for group in groups),
            composites=tuple(one_score(group, weighting, stamp.seed) for group in groups),
            notes=(*notes.of_run(stamp, {cell.isolation for cell in cells}, context.floors), *self._left_out(cells)),
        )

    def _stopped(self) -> tuple[Stopped, ...]:
        """Every stop, with how many trials ended after it, whether under way at it or asked for later."""
        found = []
        for selector, stop in self._context.stops.items():
            pairs = [p for p in self._pairs.values() if p.benchmark.selector == selector]
            counted = len(pairs) * stop.tasks * self._stamp.repeats
            found.append(Stopped(stop, max(0, sum(p.trials for p in pairs) - counted)))
        return tuple(found)

    def _with_floor(self, cell: Cell) -> Cell:
        floor = self._context.floors.get(cell.benchmark.selector)
        return cell if floor is None or cell.arm.control else evolve(cell, floor=floor)

    def _sides(self, cells: Iterable[Cell]) -> dict[str, Side]:
        """Each arm as a comparison needs it. A task whose attempts were of two contents is in no side."""
        tasks: dict[str, list[TaskTrials]] = {}
        metrics = self._claimed()
        failed: dict[str, dict[str, str]] = {}
        worlds: dict[str, set[tuple[str, str]]] = {}
        served: dict[str, set[str]] = {}
        for cell in cells:
            arm, selector = cell.arm.arm.digest, cell.benchmark.selector
            if cell.provenance is not None:
                worlds.setdefault(arm, set()).add((cell.provenance, cell.isolation))
            served.setdefault(arm, set()).update(cell.served.get("agent", ()))
            ratios, why = ratios_of(metrics, self._kept(cell) if metrics.made else {})
            failed.setdefault(arm, {}).update(why)
            for row in cell.detail.tasks:
                if row.digest is not None:
                    results = tuple(row.results)
                    missing = len(row.trials) - len(results)
                    tasks.setdefault(arm, []).append(
                        TaskTrials(
                            selector, row.task, row.digest, results, missing, ratios.get((selector, row.task), {})
                        )
                    )
        return {
            digest: Side(
                self._stamp,
                x,
                tuple(tasks[digest]),
                tuple(sorted(worlds[digest])),
                tuple(sorted(served[digest])),
                {selector: stop.tasks for selector, stop in self._context.stops.items()},
                metrics,
                failed[digest],
            )
            for x in self._stamp.arms
            if (digest := x.arm.digest) in tasks
        }

    def _claimed(self) -> Metrics:
        """The plugins' metrics that contrasts are declared by."""
        made = Metrics(measures_of(info for info, _ in self._metrics), self._metrics)
        return made.named({claim.metric for claim in claims_of(self._stamp)})

    def _kept(self, cell: Cell) -> dict[Place, list[CountedTrial]]:
        """The graded trials of a cell, whole."""
        selector, faults = cell.benchmark.selector, cell.provenance == "fault-injected"
        pair = self._pairs.get((selector, cell.arm.arm.digest, faults))
        world = None if pair is None or cell.provenance is None else pair.worlds.get((cell.provenance, cell.isolation))
        kept = {} if world is None else world.kept
        return {(selector, task): sorted(trials, key=_repeat) for task, trials in kept.items()}

    def _cells(self, pair: _Pair) -> Iterable[Cell]:
        """One cell per world; an empty one where nothing has run."""
        if not pair.worlds:
            yield self._cell(pair, None, self._stamp.isolation, World())
        for (provenance, isolation), world in sorted(pair.worlds.items()):
            yield self._cell(pair, provenance, isolation, world)

    def _cell(self, pair: _Pair, provenance: str | None, isolation: str, world: World) -> Cell:
        stamp, benchmark, arm = self._stamp, pair.benchmark, pair.arm
        pending = [p for p in pair.pending.values() if p.world is world]
        executed, excluded = _executed(world, pending), _excluded(pending)
        unpriced_why = _unpriced_why(stamp, arm)
        graded = measures.Graded(
            world.tasks,
            pair.clusters,
            _ungraded(pending),
            _open_views(pending),
            stamp.repeats,
            pair.rows(world, pending),
            executed,
            world.settled,
            executed.usage(unpriced_why),
            arm.uses_model,
            unpriced_why,
            stamp.seed,
        )
        detail = Detail(graded.rows, measures.curve(graded), measures.latency(graded), measures.unstable_share(graded))
        trials, planned = graded.runs + len(pending), benchmark.tasks * stamp.repeats
        return Cell(
            benchmark,
            arm,
            isolation,
            provenance,
            planned,
            trials,
            not_run=max(0, planned - pair.trials),
            tasks=len(world.tasks),
            clusters=len({pair.clusters.get(t, t) for t in world.tasks}),
            outcomes=dict(world.outcomes),
            harm=world.harm if world.harm_judged else None,
            excluded=excluded,
            voids=world.voids,
            void_kinds=dict(sorted(world.void_kinds.items())),
            exits=dict(executed.exits),
            limits_hit=dict(sorted(executed.limits.items())),
            usage=graded.usage,
            wasted=world.wasted.usage(unpriced_why),
            metrics=self._values(graded, detail, world),
            views=measures.views(graded),
            flags=dict(sorted(executed.flags.items())),
            notes=notes.of_cell(
                arm,
                provenance=provenance,
                isolation=isolation,
                split=len(pair.worlds) > 1,
                excluded=excluded,
                voids=world.voids,
                why=_most_often(f"{v.kind}: {v.message}" for p in pending if (v := p.attempt.void) is not None),
                grader_why=_most_often(p.grading.error for p in pending if p.grading and p.grading.error),
                unseen=max(0, planned - pair.trials),
                not_yet_graded=sum(p.grading is None and p.attempt.void is None for p in pending),
                repeated=world.repeated,
                executed=executed.trials,
                usage=graded.usage,
            ),
            toolkits=stamp.toolkits,
            served={role: tuple(sorted(models)) for role, models in executed.served.items()},
            detail=detail,
            reasons=_reasons(pair, provenance, world, graded),
        )

    def _values(self, graded: measures.Graded, detail: Detail, world: World) -> dict[str, MetricValue]:
        """The built-in metrics, then the plugins'; a plugin's never takes the place of a built-in one."""
        own = measures.built_in(graded, detail)
        kept = {task: sorted(trials, key=_repeat) for task, trials in world.kept.items()}
        added = {
            i.name: measures.from_plugin(i, metric, kept, graded.clusters)
            for i, metric in self._metrics
            if i.name not in own
        }
        return own | added

    def _left_out(self, cells: Iterable[Cell]) -> Iterable[Note]:
        """Plugins' metrics that no cell has, because a built-in one has their name."""
        named = {name for cell in cells for name in cell.metrics} if self._metrics else set()
        twice = [i.name for i, _ in self._metrics if i.name in named & measures.BUILT_IN]
        return [Note(f"metric {name} of a plugin has the name of a built-in one, and was left out") for name in twice]


def _sides(stamp: RunStamp, arm: ArmStamp) -> tuple[bool, ...]:
    """Without faults, with them, or both: as the study says for arms that use a model."""
    faults = stamp.study.get("faults")
    if not isinstance(faults, dict) or arm.control or not arm.uses_model:
        return (False,)
    return (False, True) if faults.get("beside", True) else (True,)


def _undisturbed(stamp: RunStamp, cells: Sequence[Cell]) -> list[Cell]:
    """The cells that comparisons are about: those with faults on purpose only where there are no others."""
    return [c for c in cells if c.provenance != "fault-injected" or _sides(stamp, c.arm) == (True,)]


class _Pending:
    """A trial without a result so far, by its latest attempt."""

    __slots__ = ("attempt", "grading", "world")

    def __init__(self, attempt: Attempt, grading: Grading | None, world: World) -> None:
        self.attempt, self.grading, self.world = attempt, grading, world

    @property
    def exclusion(self) -> Exclusion:
        """Why it does not count."""
        if self.attempt.void is not None:
            return "infra_error"
        return "grader_error" if self.grading and self.grading.verdict.outcome == "grader_error" else "ungraded"


class _Pair:
    """One benchmark × one arm: which of its trials have a result, and the worlds that they fall into."""

    __slots__ = ("_keep", "_settled", "arm", "benchmark", "clusters", "digests", "pending", "worlds")

    def __init__(self, benchmark: BenchmarkStamp, arm: ArmStamp, keep: bool) -> None:
        self.benchmark, self.arm = benchmark, arm
        self.clusters = benchmark.cluster_of  # tasks that are not in it are clusters of their own
        self.worlds: dict[tuple[str, str], World] = {}
        self.pending: dict[tuple[str, int], _Pending] = {}
        self.digests: dict[str, str | None] = {}  # task -> its content; None where attempts were of two contents
        self._settled: dict[str, int] = {}  # task -> a bit per repeat that has a result
        self._keep = keep

    @property
    def trials(self) -> int:
        """Trials with at least one attempt."""
        return len(self.pending) + sum(bits.bit_count() for bits in self._settled.values())

    def add(self, attempt: Attempt, grading: Grading | None) -> None:
        """Count one attempt, by the rules at the top of this module."""
        place = (attempt.provenance, attempt.isolation)
        world = self.worlds.get(place)
        if world is None:
            world = self.worlds[place] = World()
        task, repeat = attempt.key.task, attempt.key.repeat
        if self.digests.setdefault(task, attempt.task_digest) != attempt.task_digest:
            self.digests[task] = None
        bits = self._settled.get(task, 0)
        if attempt.void is not None:
            world.add_void(attempt, attempt.void.kind)
            if not bits >> repeat & 1:
                self._wait(_Pending(attempt, None, world))
        elif bits >> repeat & 1:
            world.repeated += 1
            world.wasted.add(attempt)
        elif grading is not None and grading.verdict.outcome in _RESULTS:
            self._settled[task] = bits | 1 << repeat
            if self.pending:
                self._supersede(self.pending.pop((task, repeat), None), attempt)
            world.add_result(attempt, grading.verdict)
            if self._keep:
                world.kept.setdefault(task, []).append(CountedTrial(attempt, grading))
        else:
            self._wait(_Pending(attempt, grading, world))

    def rows(self, world: World, pending: Iterable[_Pending]) -> tuple[TaskRow, ...]:
        """Every trial of a world, by task and repeat."""
        found = {task: list(count.rows) for task, count in world.tasks.items()}
        for trial in pending:
            found.setdefault(trial.attempt.key.task, []).append(row_of(trial.attempt, trial.exclusion))
        return tuple(
            TaskRow(task, self.clusters.get(task, task), self.digests[task], tuple(sorted(found[task], key=_by_repeat)))
            for task in sorted(found)
        )

    def _wait(self, new: _Pending) -> None:
        """Keep the later of two attempts without a result."""
        place = (new.attempt.key.task, new.attempt.key.repeat)
        old = self.pending.get(place)
        if old is None or old.attempt.number <= new.attempt.number:
            self.pending[place] = new
            self._supersede(old, new.attempt)
        else:
            self._supersede(new, old.attempt)

    @staticmethod
    def _supersede(old: _Pending | None, by: Attempt) -> None:
        """What an attempt used that another one replaced is wasted; voids were counted when they came."""
        if old is not None and old.attempt.void is None and old.attempt.id != by.id:
            old.world.wasted.add(old.attempt)


def _executed(world: World, pending: Iterable[_Pending]) -> Spent:
    """What all trials used whose agent ran, graded or not."""
    spent = world.settled.copy()
    for trial in pending:
        if trial.attempt.void is None:
            spent.add(trial.attempt, trial.grading.verdict.flags if trial.grading else ())
    return spent


def _excluded(pending: Iterable[_Pending]) -> dict[Exclusion, int]:
    counts: dict[Exclusion, int] = dict.fromkeys(EXCLUSIONS, 0)
    for trial in pending:
        counts[trial.exclusion] += 1
    return counts


def _ungraded(pending: Iterable[_Pending]) -> dict[str, list[tuple[float, float]]]:
    """By task, the lowest and highest score of each ungraded trial: 0 and 1 where the grader does not say."""
    scores: dict[str, list[tuple[float, float]]] = {}
    for trial in pending:
        if trial.exclusion == "ungraded":
            bounds = trial.grading.verdict.bounds if trial.grading else None
            scores.setdefault(trial.attempt.key.task, []).append(bounds or (0.0, 1.0))
    return scores


def _open_views(pending: Iterable[_Pending]) -> dict[str, list[Mapping[str, bool]]]:
    """By task, what the grader could say of each ungraded trial."""
    found: dict[str, list[Mapping[str, bool]]] = {}
    for trial in pending:
        if trial.exclusion == "ungraded" and trial.grading and trial.grading.verdict.views:
            found.setdefault(trial.attempt.key.task, []).append(trial.grading.verdict.views)
    return found


def _unpriced_why(stamp: RunStamp, arm: ArmStamp) -> dict[Role, str]:
    """What to say of each role's model where a cost is missing: no price is known, or a call told too little."""
    names: dict[Role, str] = {role: f"the {role}'s model" for role in ROLES}
    chosen = stamp.study.get("roles")
    for role, choice in chosen.items() if isinstance(chosen, dict) else ():
        if role in ROLES and isinstance(choice, dict) and isinstance(choice.get("model"), str):
            names[role] = str(choice["model"])
    if arm.arm.model is not None:
        names["agent"] = arm.arm.model
    texts = {role: f"no price known for {name}" for role, name in names.items()}
    rows = stamp.prices.get("models")
    row = rows.get(price_key(names["agent"], arm.arm.axes.get("base_url"))) if isinstance(rows, dict) else None
    if isinstance(row, dict):
        unknown = row.get("unknown")
        texts["agent"] = f"{texts['agent']} ({unknown})" if unknown else _UNTOLD.format(names["agent"])
    return texts


def _most_often(reasons: Iterable[str]) -> str:
    """The most frequent of them, on one line; empty where there is none."""
    counts = Counter(reasons)
    line = " ".join(counts.most_common(1)[0][0].split()) if counts else ""
    return line if len(line) <= LONGEST_REASON else f"{line[: LONGEST_REASON - 1]}…"


def _reasons(pair: _Pair, provenance: str | None, world: World, graded: measures.Graded) -> dict[str, str]:
    """Why a field of the cell is None."""
    reasons = {
        "mode": "no part of this arm has a mode",
        "model_served": _NOT_SAID if pair.arm.uses_model else measures.NO_MODEL,
    }
    if graded.executed.served.get("agent"):
        del reasons["model_served"]
    if "mode" in pair.arm.arm.axes:
        del reasons["mode"]
    if provenance is None:
        reasons["provenance"] = measures.NOTHING_RAN
    if not world.harm_judged:
        reasons["harm"] = "this benchmark does not judge harm" if graded.runs else measures.NOTHING_GRADED
    return reasons


def _budget(stamp: RunStamp) -> float | None:
    head = stamp.study.get("study")
    value = head.get("budget_usd") if isinstance(head, dict) else None
    return float(value) if isinstance(value, (int, float)) else None


def _by_repeat(row: TrialRow) -> int:
    return row.repeat


def _repeat(trial: CountedTrial) -> int:
    return trial.attempt.key.repeat
