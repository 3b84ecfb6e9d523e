"""Two sides on one benchmark: tasks paired by content, which flipped, what else changed, what would settle it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Final

from attrs import field, frozen

from evalcore.report.analysis import Flip
from evalcore.report.detail import TrialRow
from evalcore.report.measures import Scored, scored
from evalcore.report.sides import Side, TaskTrials
from evalcore.report.words import plural
from evalcore.stats.clusters import cluster_robust
from evalcore.stats.intervals import DEFAULT_LEVEL
from evalcore.stats.mcnemar import Discordant, newcombe_10
from evalcore.stats.paired import Pairing, pair
from evalcore.stats.settle import MOST_CLUSTERS, Buy, Need, need
from evalcore.stats.variance import repeat_share
from evalcore.values.measure import Measure, find_measure
from evalcore.values.stamp import BenchmarkStamp

PASS_AT_1: Final = find_measure("pass@1")
NO_PAIRS: Final = "no task in common has a result on both sides"


@frozen
class Paired:
    """The tasks that count, side by side in the order of `pairing.keys`, and those that were dropped.

    Where the measure is `unknown` the pairing is empty, and `a` and `b` are the tasks with a result on both sides: what
    else is said of them stands.
    `only_a` and `only_b` were run by one side alone (or changed in between: another content is another task);
    `without_result` were run by both, and a side has no value of them. A void rate is the share of trials that never
    became results, of the tasks that both tried.
    """

    a: tuple[TaskTrials, ...]
    b: tuple[TaskTrials, ...]
    pairing: Pairing = field(repr=False)
    clusters: int
    void_rates: tuple[float, float]
    measure: Measure = PASS_AT_1
    unknown: str | None = None  # why a side has no value as a whole
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    without_result: tuple[str, ...] = ()

    @property
    def runs(self) -> tuple[int, int]:
        """Trials with a result that count, of either side."""
        return sum(len(t.results) for t in self.a), sum(len(t.results) for t in self.b)

    @property
    def values(self) -> tuple[float, float] | None:
        """What is compared: either side's mean over the common tasks, in the measure's unit."""
        if not self.pairing.keys:
            return None
        a, b = (_mean([_mean(runs) for runs in side]) for side in (self.pairing.a, self.pairing.b))
        return a, b

    @property
    def rates(self) -> tuple[float, float] | None:
        """Mean over the common tasks of each task's share of successes."""
        if not self.a:
            return None
        a, b = (_mean([_share(t) for t in side]) for side in (self.a, self.b))
        return a, b


@frozen
class Delta:
    """A point value of each side and their difference, without an interval; what is None has a reason."""

    name: str
    unit: str
    a: float | None
    b: float | None
    reason: str | None = None

    @property
    def difference(self) -> float | None:
        """A less B."""
        return None if self.a is None or self.b is None else self.a - self.b


@frozen
class Settle:
    """How much data would make the interval's half-width at most `half_width`; None with a reason where none can say.

    `declared` says whether that width was asked for, or is only the default.
    """

    half_width: float
    declared: bool
    need: Need | None
    repeats: float = 1.0  # so far
    trials: int | None = None  # of either side in all, by the way that is to be bought
    reason: str | None = None


def pair_tasks(
    a: Side,
    b: Side,
    ours: BenchmarkStamp,
    theirs: BenchmarkStamp,
    measure: Measure = PASS_AT_1,
    among: Collection[str] | None = None,
) -> Paired:
    """Pair the tasks of one benchmark by their digest; `among` names the tasks (of A) that take part, if not all.

    A digest that was not recorded equals no other, except within one run, where a task is itself.
    """
    known = a.stamp.run == b.stamp.run
    x, y = _by_digest(a, ours.selector, known), _by_digest(b, theirs.selector, known)
    if among is not None:  # what lies beyond a look is not dropped: it is not asked for yet
        x, y = ({d: t for d, t in tasks.items() if t.task in among} for tasks in (x, y))
    both = x.keys() & y.keys()
    failed = a.failed.get(measure.name) or b.failed.get(measure.name)
    found = scored(measure, {d: x[d] for d in both}, {d: y[d] for d in both})
    if failed is not None:
        found = Scored({}, {}, failed)
    clusters = {d: ours.cluster_of.get(x[d].task, x[d].task) for d in both}
    pairing = pair(found.a, found.b, clusters)
    keys = pairing.keys
    if found.unknown is not None:
        keys = tuple(sorted(d for d in both if x[d].results and y[d].results))
    return Paired(
        tuple(x[d] for d in keys),
        tuple(y[d] for d in keys),
        pairing,
        len({clusters[d] for d in keys}),
        (_void_rate([x[d] for d in both]), _void_rate([y[d] for d in both])),
        measure,
        found.unknown,
        _names(x, x.keys() - y.keys()),
        _names(y, y.keys() - x.keys()),
        _names(x, both - set(keys)),
    )


def _by_digest(side: Side, selector: str, one_run: bool) -> dict[str, TaskTrials]:
    tasks = [t for t in side.tasks if t.benchmark == selector]
    if one_run:
        return {f"{t.digest} {t.task}": t for t in tasks}
    # an unknown content is keyed by side and place, so that it meets no other
    return {t.digest or f"unknown {id(side)} {n}": t for n, t in enumerate(tasks)}


def _names(tasks: Mapping[str, TaskTrials], digests: set[str]) -> tuple[str, ...]:
    return tuple(sorted(tasks[d].task for d in digests))


def _void_rate(tasks: Sequence[TaskTrials]) -> float:
    missing, trials = sum(t.missing for t in tasks), sum(t.missing + len(t.results) for t in tasks)
    return missing / trials if trials else 0.0


def _share(task: TaskTrials) -> float:
    return sum(r.success for r in task.results) / len(task.results)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


# ── what changed ─────────────────────────────────────────────────────────────────────────────────────────────────────


def flips(paired: Paired) -> tuple[tuple[Flip, ...], tuple[Flip, ...]]:
    """The tasks that A solved more often, and those that B did; the largest differences first."""
    found = [_flip(x, y) for x, y in zip(paired.a, paired.b, strict=True)]
    found.sort(key=lambda f: (-abs(f.size), f.task))
    return tuple(f for f in found if f.size > 0), tuple(f for f in found if f.size < 0)


def _flip(x: TaskTrials, y: TaskTrials) -> Flip:
    a, b = ((sum(r.success for r in t.results), len(t.results)) for t in (x, y))
    up = a[0] * b[1] > b[0] * a[1]
    return Flip(x.task, a, b, _look(x, success=up), _look(y, success=not up))


def _look(task: TaskTrials, *, success: bool) -> str:
    """The first trial that ended like that; any other where none did."""
    return next((r.attempt for r in task.results if r.success is success), task.results[0].attempt)


def deltas(paired: Paired) -> tuple[Delta, ...]:
    """Harm, trials without a result, and the agents' effort in what counts: means over tasks of task means."""
    harm = _delta(paired, "harm", "share", lambda r: None if r.harm is None else float(r.harm), "not judged")
    tokens = _delta(paired, "tokens per trial", "tokens", lambda r: float(r.tokens), "")
    lower = [sum(r.unreported > 0 for t in side for r in t.results) for side in (paired.a, paired.b)]
    if any(lower):
        why = f"lower bounds: calls reported no usage in {lower[0]} trials of A and {lower[1]} of B"
        tokens = Delta(tokens.name, tokens.unit, tokens.a, tokens.b, why)
    cost = _delta(paired, "cost per trial", "USD", lambda r: r.cost_usd, "a price is not known")
    seconds = _delta(paired, "time per trial", "s", lambda r: r.wall_s, "the time is not known")
    without = Delta("trials without a result", "share", *paired.void_rates)
    return harm, without, tokens, cost, seconds


def _delta(paired: Paired, name: str, unit: str, of: Callable[[TrialRow], float | None], unknown: str) -> Delta:
    """A side's value is not known where any trial's is not."""
    if not paired.a:
        return Delta(name, unit, None, None, NO_PAIRS)
    values: list[float | None] = []
    missing = []
    for letter, side in (("A", paired.a), ("B", paired.b)):
        read = [[of(r) for r in t.results] for t in side]
        known = [[v for v in task if v is not None] for task in read]
        gone = sum(len(r) - len(k) for r, k in zip(read, known, strict=True))
        values.append(None if gone else _mean([_mean(task) for task in known]))
        if gone:
            missing.append(f"{unknown} in {gone:,} of {plural(sum(map(len, read)), 'trial')} of {letter}")
    return Delta(name, unit, values[0], values[1], "; ".join(missing) or None)


# ── what would settle it ─────────────────────────────────────────────────────────────────────────────────────────────


def settle(
    paired: Paired, half_width: float | None, benchmark: BenchmarkStamp, *, declared: bool, level: float = DEFAULT_LEVEL
) -> Settle:
    """How many clusters or repeats would make the half-width of the interval at `level` at most `half_width`."""
    pairing, clusters = paired.pairing, paired.clusters
    if half_width is None:
        return Settle(0.0, declared, None, reason="no margin was named, and a difference in this unit has no default")
    if not pairing.keys:
        return Settle(half_width, declared, None, reason=paired.unknown or NO_PAIRS)
    repeats = max(1.0, sum(paired.runs) / 2 / len(pairing.keys))
    if clusters < 2:
        return Settle(half_width, declared, None, repeats, reason="one cluster: how clusters differ cannot be seen")
    available = _available(paired, benchmark)
    se = cluster_robust(pairing.differences, pairing.clusters).se
    if se:
        share = _repeat_share(pairing)
        found = need(se, clusters, repeats, half_width, share_from_repeats=share, available=available, level=level)
    elif not paired.measure.rate:
        return Settle(half_width, declared, None, repeats, reason="no two clusters differ: there is no spread to go by")
    else:
        found = _need_of_ties(pairing, clusters, half_width, level, available)
    return Settle(half_width, declared, found, repeats, _trials(found, paired, repeats, available))


def _trials(found: Need, paired: Paired, repeats: float, available: int | None) -> int | None:
    """What the need comes to in trials, with as many tasks in a cluster as now."""
    clusters: int | None = paired.clusters
    if found.buy == "clusters":
        clusters = found.clusters
    elif found.buy == "clusters and repeats":
        clusters = available
    elif found.buy == "out of reach":
        return None
    each = found.repeats_with_all if found.buy == "clusters and repeats" else None
    each = found.repeats if found.buy == "repeats" else each
    if clusters is None:
        return None
    return math.ceil(clusters * len(paired.pairing.keys) / paired.clusters * (each or repeats) - 1e-9)


def _available(paired: Paired, benchmark: BenchmarkStamp) -> int | None:
    """How many clusters there are in all; None where it is not known."""
    if not benchmark.of_tasks:
        return None
    if benchmark.of_tasks <= len(paired.pairing.keys):
        return paired.clusters
    return None if benchmark.cluster_of else benchmark.of_tasks


def _repeat_share(pairing: Pairing) -> float | None:
    if any(len(runs) < 2 for runs in (*pairing.a, *pairing.b)):
        return None
    labels: Sequence[Hashable] = pairing.clusters
    return repeat_share([pairing.a, pairing.b], labels)


def _need_of_ties(pairing: Pairing, clusters: int, half_width: float, level: float, available: int | None) -> Need:
    """Where every cluster differs by the same: how many such clusters it takes until few enough can be unlike them."""
    low, high = 0, 1
    while _reach(pairing, high, level) >= half_width and high <= MOST_CLUSTERS:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _reach(pairing, middle, level) >= half_width else (low, middle)
    enough = high <= clusters
    reachable = available is None or high <= available
    buy: Buy = "nothing" if enough else "clusters" if reachable else "out of reach"
    return Need(half_width, clusters if enough else high, None, buy)


def _reach(pairing: Pairing, clusters: int, level: float) -> float:
    """How far below its middle the interval of that many clusters alike would reach."""
    middle: float = pairing.differences[0]
    if pairing.single:
        seen, n = pairing.discordant, max(2, clusters)
        if middle:
            return middle - newcombe_10(Discordant(0, n * (seen.first > 0), n * (seen.second > 0), 0), level)[0]
        both = round(n * seen.both / seen.tasks)
        return middle - newcombe_10(Discordant(both, 0, 0, n - both), level)[0]
    unseen = -math.expm1(math.log1p(-level) / clusters)
    return unseen * (middle + 1.0)
