"""The built-in metrics of a cell, each with its estimand in words and its interval, or why it has none."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from attrs import field, frozen

from evalcore.contracts import Metric
from evalcore.report.detail import CurvePoint, Detail, TaskRow, TrialRow
from evalcore.report.model import RoleUsage
from evalcore.report.tally import CountedTrial, Spent, TaskCount
from evalcore.report.values import MetricValue
from evalcore.stats import costs
from evalcore.stats.clusters import rounding
from evalcore.stats.distributions import t_two_sided
from evalcore.stats.flakiness import Unstable, flakiness, unstable
from evalcore.stats.intervals import DEFAULT_LEVEL, Interval, rate_interval
from evalcore.stats.latency import TimeQuantile, time_quantiles
from evalcore.stats.means import mean_interval
from evalcore.stats.reliability import Kind, independent_floor, reliability
from evalcore.values.descriptors import MetricInfo
from evalcore.values.task import Role

NOTHING_GRADED: Final = "nothing has been graded"
NOTHING_RAN: Final = "nothing has run"
NO_MODEL: Final = "no model"
RATE: Final = "mean over tasks of each task's share of {} among its graded trials"
VIEW: Final = "mean over tasks of each task's share of yes among the trials of which it can be said, ungraded ones too"
MEAN: Final = "mean over tasks of each task's mean over its executed trials of {}"
BUILT_IN: Final = frozenset({
    "flakiness", "harm_rate", "tokens", "tool_calls", "tool_error_rate", "wall_s", "wall_s_p50", "wall_s_p95",
    "wall_s_p99", "cost_usd", "cost_per_trial_usd", "cost_per_solve_usd",
})  # fmt: skip
VALIDATED: Final = "against reference values in tests/unit/test_stats.py"
QUANTILES: Final = (0.5, 0.95, 0.99)
TIME_LIMIT: Final = "wall_s"  # the limit that cuts times off
LINEAR: Final = "ratio of sums; delta method by cluster, t with clusters - 1 degrees of freedom"
FEWEST_FOR_RATIOS: Final = 10  # clusters, as for means that are skewed


@frozen
class Graded:
    """What the metrics of a cell are made from. Tasks without a cluster are their own."""

    tasks: Mapping[str, TaskCount]
    clusters: Mapping[str, str]  # task -> cluster
    ungraded: Mapping[str, Sequence[tuple[float, float]]]  # task -> (lowest, highest) score of each ungraded trial
    open_views: Mapping[str, Sequence[Mapping[str, bool]]]  # task -> the views of each ungraded trial
    repeats: int  # as planned
    rows: tuple[TaskRow, ...]
    executed: Spent  # every trial whose agent ran
    settled: Spent  # the graded ones alone
    usage: Mapping[Role, RoleUsage]  # of the executed ones
    uses_model: bool
    unpriced_why: Mapping[Role, str]  # why a cost would be missing, by role
    seed: int
    counted: list[tuple[TaskRow, list[TrialRow]]] = field(
        init=False, repr=False
    )  # tasks with a graded trial, and those

    @property
    def runs(self) -> int:
        """Graded trials."""
        return sum(task.graded for task in self.tasks.values())

    @property
    def solved(self) -> int:
        """Solved trials."""
        return sum(task.solved for task in self.tasks.values())

    @counted.default
    def _counted(self) -> list[tuple[TaskRow, list[TrialRow]]]:
        return [(row, row.results) for row in self.rows if row.task in self.tasks]

    @property
    def counts(self) -> list[tuple[int, int]]:
        """(graded, solved) of each of those."""
        return [(len(results), sum(t.success for t in results)) for _, results in self.counted]

    @property
    def labels(self) -> list[str]:
        """The cluster of each of those."""
        return [row.cluster for row, _ in self.counted]


def built_in(cell: Graded, detail: Detail) -> dict[str, MetricValue]:
    """Every built-in metric by name."""
    return {
        "pass@1": pass_at_1(cell),
        **pass_hat(cell, detail),
        "flakiness": flaky(cell),
        "harm_rate": harm_rate(cell),
        "tokens": tokens(cell),
        "tool_calls": _mean(cell, lambda row: row.tool_calls, "tool calls", "calls"),
        "tool_error_rate": tool_error_rate(cell),
        "wall_s": _mean(cell, lambda row: row.wall_s, "wall time", "s"),
        **{f"wall_s_p{100 * q:g}": _quantile(cell, q, detail.latency) for q in QUANTILES},
        "cost_usd": cost(cell),
        "cost_per_trial_usd": cost_per_trial(cell),
        "cost_per_solve_usd": cost_per_solve(cell),
    }


# ── rates ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def pass_at_1(cell: Graded) -> MetricValue:
    """The share of solved trials, tasks weighing the same, with the default interval for rates."""
    counts = {name: (task.graded, task.solved) for name, task in cell.tasks.items()}
    return _rate(counts, cell, RATE.format("solved (pass or declined)"), _bounds(cell))


def harm_rate(cell: Graded) -> MetricValue:
    """The share of graded trials that did harm, of those judged."""
    judged = {row.task: [t.harm for t in results if t.harm is not None] for row, results in cell.counted}
    counts = {task: (len(harms), sum(harms)) for task, harms in judged.items() if harms}
    if not counts:
        reason = "this benchmark does not judge harm" if cell.runs else NOTHING_GRADED
        return _missing(RATE.format("harmful"), "", reason)
    return _rate(counts, cell, RATE.format("harmful"), None)


def views(cell: Graded) -> dict[str, MetricValue]:
    """The same for each second, labelled reading of the trials, by label: also of those that were left ungraded."""
    counts: dict[str, dict[str, tuple[int, int]]] = {}
    for name, task in cell.tasks.items():
        for label, (trials, true) in (task.views or {}).items():
            counts.setdefault(label, {})[name] = (trials, true)
    for name, several in cell.open_views.items():
        for label, yes in ((label, yes) for one in several for label, yes in one.items()):
            trials, true = counts.setdefault(label, {}).get(name, (0, 0))
            counts[label][name] = (trials + 1, true + yes)
    return {label: _rate(counts[label], cell, VIEW, None) for label in sorted(counts)}


def _rate(
    counts: Mapping[str, tuple[int, int]], cell: Graded, estimand: str, bounds: tuple[float, float] | None
) -> MetricValue:
    """A rate over tasks given as (trials, of them true)."""
    runs = sum(n for n, _ in counts.values())
    if not runs:
        return MetricValue(None, estimand, 0, validated=VALIDATED, reason=NOTHING_GRADED, bounds=bounds)
    means = [true / n for n, true in counts.values()]
    interval = rate_interval(means, runs, [cell.clusters.get(name, name) for name in counts])
    return _with_interval(interval, estimand, runs, bounds=bounds)


def _bounds(cell: Graded) -> tuple[float, float] | None:
    """pass@1 if every ungraded trial came out at its worst, and at its best; None where nothing is ungraded."""
    if not cell.ungraded:
        return None
    ends = []
    for end in (0, 1):
        means = []
        for name in cell.tasks.keys() | cell.ungraded.keys():
            task, open_ = cell.tasks.get(name), cell.ungraded.get(name, ())
            graded, solved = (task.graded, task.solved) if task else (0, 0)
            means.append((solved + math.fsum(bounds[end] for bounds in open_)) / (graded + len(open_)))
        ends.append(math.fsum(means) / len(means))
    return ends[0], ends[1]


# ── reliability ──────────────────────────────────────────────────────────────────────────────────────────────────────


def curve(cell: Graded) -> tuple[CurvePoint, ...]:
    """pass^k and pass@k for every k that all tasks allow."""
    counts, labels = cell.counts, cell.labels
    if not counts:
        return ()
    runs = cell.runs

    def at(kind: Kind, k: int) -> MetricValue:
        return _reliable(counts, labels, runs, kind, k)

    return tuple(
        CurvePoint(k, at("pass^k", k), at("pass@k", k), independent_floor(counts, k))
        for k in range(1, min(n for n, _ in counts) + 1)
    )


def _reliable(counts: Sequence[tuple[int, int]], labels: Sequence[str], runs: int, kind: Kind, k: int) -> MetricValue:
    found = reliability(kind, counts, k, labels)
    chance, formula = {
        "pass^k": (f"all of {k}", "C(c,k)/C(n,k)"),
        "pass@k": (f"at least one of {k}", "1 - C(n-c,k)/C(n,k)"),
    }[kind]
    method = f"mean over tasks of the chance that {chance} of its graded trials are solved, {formula}"
    return _with_interval(found.interval, method, runs)


def pass_hat(cell: Graded, detail: Detail) -> dict[str, MetricValue]:
    """pass^k for every k from 2 to the planned repeats; undefined beyond the fewest graded repeats of a task."""
    known = {point.k: point.pass_hat for point in detail.curve}
    fewest = max(known, default=0)
    values = {}
    for k in range(2, max(cell.repeats, fewest) + 1):
        method = f"mean over tasks of the chance that all of {k} of its graded trials are solved, C(c,k)/C(n,k)"
        reason = f"a task has only {fewest} graded trials" if known else NOTHING_GRADED
        missing = MetricValue(None, method, cell.runs, validated=VALIDATED, reason=reason)
        values[f"pass^{k}"] = known.get(k, missing)
    return values


def flaky(cell: Graded) -> MetricValue:
    """The chance that two graded trials of one task come out differently."""
    method = "mean over tasks of the chance that two of its graded trials come out differently"
    rows = cell.counted
    if not rows:
        return _missing(method, "", NOTHING_GRADED)
    found = flakiness([[t.outcome for t in results] for _, results in rows], cell.labels)
    value = _with_interval(found.interval, method, sum(len(results) for _, results in rows if len(results) > 1))
    if found.left_out and found.tasks:
        return _also(value, f"{found.left_out} of {len(rows)} tasks have one graded trial and are left out")
    return value


def unstable_share(cell: Graded) -> Unstable | None:
    """The share of tasks with more than one outcome, where all have as many graded trials, two or more."""
    outcomes = [[t.outcome for t in results] for _, results in cell.counted]
    lengths = {len(runs) for runs in outcomes}
    return unstable(outcomes) if len(lengths) == 1 and min(lengths) >= 2 else None


# ── effort ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def tokens(cell: Graded) -> MetricValue:
    """Input and output tokens of the agent."""
    if not cell.uses_model:
        return _missing(MEAN.format("the agent's input and output tokens"), "tokens", NO_MODEL)
    value = _mean(cell, lambda row: row.tokens, "the agent's input and output tokens", "tokens")
    usage = cell.usage["agent"].usage
    if not usage.unreported or value.value is None:
        return value
    return _also(value, f"a lower bound: {usage.unreported} of {usage.calls} model calls reported no usage")


def _mean(cell: Graded, of: Callable[[TrialRow], float | None], what: str, unit: str) -> MetricValue:
    """A mean over tasks of task means over executed trials; not known where it is not for any of them."""
    method = MEAN.format(what)
    means, clusters, runs, unknown = list[float](), list[str](), 0, 0
    for row in cell.rows:
        read = [of(trial) for trial in row.trials if trial.executed]
        known = [value for value in read if value is not None]
        runs, unknown = runs + len(read), unknown + len(read) - len(known)
        if known:
            means.append(math.fsum(known) / len(known))
            clusters.append(row.cluster)
    if not runs:
        return _missing(method, unit, NOTHING_RAN)
    if unknown:
        return _missing(method, unit, f"{what} is not known in {unknown} of {runs} trials", runs)
    interval = mean_interval(means, clusters, seed=cell.seed)
    return _with_interval(interval, method, runs, unit=unit, validated="")


def latency(cell: Graded) -> tuple[TimeQuantile, ...]:
    """Quantiles of the wall times of executed trials; those that the time limit ended are longer than they look."""
    trials = [(t, row.cluster) for row in cell.rows for t in row.executed]
    times = [t.wall_s for t, _ in trials if t.wall_s is not None]
    if not trials or len(times) < len(trials):
        return ()
    cut = [t.limit == TIME_LIMIT for t, _ in trials]
    return tuple(time_quantiles(times, cut, [cluster for _, cluster in trials], QUANTILES, seed=cell.seed))


def _quantile(cell: Graded, q: float, found: Sequence[TimeQuantile]) -> MetricValue:
    one = next((x for x in found if x.q == q), None)
    method = f"p{100 * q:g} of the wall time of all executed trials"
    if one is None:
        runs = cell.executed.trials
        return _missing(method, "s", "wall time is not known in all trials" if runs else NOTHING_RAN, runs)
    whole = one.low is not None and one.high is not None and one.value is not None
    return MetricValue(
        one.value,
        f"{method}; {one.method}",
        one.runs,
        one.low if whole else None,
        one.high if whole else None,
        one.level if whole else None,
        unit="s",
        reason=one.reason or (None if whole else "no interval"),
    )


def tool_error_rate(cell: Graded) -> MetricValue:
    """Tool calls that failed, or never reached a tool, among all."""
    method = "failed tool calls over all tool calls, of executed trials"
    spent = cell.executed
    if not spent.tool_calls:
        return _missing(method, "", "no tool was called" if spent.trials else NOTHING_RAN)
    ran = [row.executed for row in cell.rows]
    pairs = [(float(sum(t.tool_errors for t in some)), float(sum(t.tool_calls for t in some))) for some in ran]
    interval = _ratio(pairs, [row.cluster for row in cell.rows], (0.0, 1.0))
    return _with_interval(interval, method, spent.trials, validated="")


def cost(cell: Graded) -> MetricValue:
    """All that the executed trials cost, whoever spoke to a model."""
    method = "sum over executed trials and all roles; what void attempts cost stands apart"
    if not cell.uses_model and not any(role.trials for role in cell.usage.values()):
        return _missing(method, "USD", NO_MODEL)
    if not cell.executed.trials:
        return _missing(method, "USD", NOTHING_RAN)
    unknown = [role.reason for role in cell.usage.values() if role.reason]
    if unknown:
        return _missing(method, "USD", "; ".join(unknown))
    total = math.fsum(role.known_usd for role in cell.usage.values())
    return MetricValue(total, method, cell.executed.trials, unit="USD", reason="a sum, exact: it has no interval")


def cost_per_trial(cell: Graded) -> MetricValue:
    """What the agent spent in a trial."""
    what = "the agent's cost"
    if not cell.uses_model:
        return _missing(MEAN.format(what), "USD", NO_MODEL)
    if why := cell.usage["agent"].reason:
        return _missing(MEAN.format(what), "USD", why, cell.executed.trials)
    return _mean(cell, lambda row: row.cost_usd, what, "USD")


def cost_per_solve(cell: Graded) -> MetricValue:
    """What the agent spent in graded trials, failures too, per solved trial."""
    method = "the agent's cost in all graded trials over the number of solved ones"
    if not cell.uses_model:
        return _missing(method, "USD", NO_MODEL)
    if not cell.runs:
        return _missing(method, "USD", NOTHING_GRADED)
    agent = cell.settled.usage(cell.unpriced_why)["agent"]
    if agent.reason:
        return _missing(method, "USD", agent.reason)
    clusters = cell.labels
    if not cell.solved:
        told = f"spent ${agent.known_usd:.4g}, solved 0"
        if groups := agent.known_usd and len(set(clusters)):
            least = costs.least_cost_per_solve(agent.known_usd, int(groups), max(1, cell.runs // int(groups)))
            told += f": a solve costs at least ${least:.2g} (95 % one-sided)"
        return _missing(method, "USD", told, cell.runs)
    spent = [math.fsum(t.cost_usd or 0.0 for t in results) for _, results in cell.counted]
    interval = costs.cost_per_solve(spent, [float(solved) for _, solved in cell.counts], clusters)
    return _with_interval(interval, method, cell.runs, unit="USD")


# ── plugins ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def from_plugin(
    info: MetricInfo, metric: Metric, kept: Mapping[str, Sequence[CountedTrial]], clusters: Mapping[str, str]
) -> MetricValue:
    """A plugin's metric: the ratio of sums over tasks of what it returns. Its failure is its own, and is told."""
    method = f"ratio of sums over tasks ({info.summary})"
    n = sum(map(len, kept.values()))
    try:
        found = {task: metric.per_task(trials) for task, trials in sorted(kept.items())}
        pairs = {task: pair for task, pair in found.items() if pair is not None}
        above, below = (math.fsum(pair[i] for pair in pairs.values()) for i in (0, 1))
        interval = _ratio(list(pairs.values()), [clusters.get(task, task) for task in pairs], None)
    except Exception as error:  # noqa: BLE001  a stranger's code; the other numbers stand
        told = f"the metric failed: {type(error).__name__}: {error!s:.200}"
        return MetricValue(None, method, n, unit=info.unit, validated=info.validated, reason=told)
    reason = _no_ratio(bool(pairs), above, below)
    if reason:
        return MetricValue(None, method, n, unit=info.unit, validated=info.validated, reason=reason)
    return _with_interval(interval, method, n, unit=info.unit, validated=info.validated)


def _no_ratio(any_task: bool, above: float, below: float) -> str | None:
    """Why a ratio of sums has no value."""
    if not any_task:
        return "no task has a value"
    if not (math.isfinite(above) and math.isfinite(below)):
        return "a task's value is not finite"
    if below == 0:
        return "the denominators add up to 0"
    return None if math.isfinite(above / below) else "the ratio is not finite"


def _ratio(
    pairs: Sequence[tuple[float, float]], clusters: Sequence[str], within: tuple[float, float] | None
) -> Interval:
    """A ratio of sums over tasks with its linearised interval, clipped to `within`; none where there is no value."""
    above, below = (math.fsum(pair[i] for pair in pairs) for i in (0, 1))
    if _no_ratio(bool(pairs), above, below):
        return Interval(None, None, None, DEFAULT_LEVEL, LINEAR, "no value")
    value, groups = above / below, len(set(clusters))
    if groups < FEWEST_FOR_RATIOS:
        reason = "one cluster" if groups == 1 else f"{groups} clusters: a ratio needs {FEWEST_FOR_RATIOS}"
        return Interval(value, None, None, DEFAULT_LEVEL, LINEAR, reason)
    se = costs.moments([x for x, _ in pairs], [y for _, y in pairs], clusters).ratio_se
    if se <= rounding([value]):
        return Interval(value, None, None, DEFAULT_LEVEL, LINEAR, "no variation between clusters to measure")
    half = t_two_sided(DEFAULT_LEVEL, groups - 1) * se
    low, high = value - half, value + half
    if within is not None:
        low, high = max(within[0], low), min(within[1], high)
    return Interval(value, low, high, DEFAULT_LEVEL, LINEAR)


# ── as values ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _with_interval(
    interval: Interval,
    estimand: str,
    runs: int,
    *,
    unit: str = "",
    validated: str = VALIDATED,
    bounds: tuple[float, float] | None = None,
) -> MetricValue:
    """An interval has both ends here; one that is open on a side is told in the reason."""
    low, high, reason = interval.low, interval.high, interval.reason
    whole = low is not None and high is not None
    if low is not None and high is None:
        reason = f"at least {low:.4g} ({100 * interval.level:.4g} %): {reason}"
    return MetricValue(
        interval.value,
        f"{estimand}; {interval.method}",
        runs,
        low if whole else None,
        high if whole else None,
        interval.level if whole else None,
        unit,
        validated,
        None if whole else reason if interval.value is None else f"no interval: {reason}",
        bounds,
    )


def _also(value: MetricValue, text: str) -> MetricValue:
    """The same, with something else to know about it first."""
    from attrs import evolve

    return evolve(value, reason=f"{text}; {value.reason}" if value.reason else text)


def _missing(method: str, unit: str, reason: str, n: int = 0) -> MetricValue:
    return MetricValue(None, method, n, unit=unit, reason=reason)
