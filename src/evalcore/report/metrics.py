"""The built-in metrics of a cell, each with its estimand in words. What has no interval yet says so."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from attrs import frozen

from evalcore.contracts import Metric
from evalcore.report.model import MetricValue, RoleUsage
from evalcore.report.tally import CountedTrial, Spent, TaskCount
from evalcore.stats.costs import cost_per_solved
from evalcore.stats.intervals import DEFAULT_LEVEL, Interval, rate_interval
from evalcore.stats.passk import pass_hat_k_mean
from evalcore.stats.quantiles import quantile
from evalcore.values.descriptors import MetricInfo
from evalcore.values.task import Role

NOTHING_GRADED: Final = "nothing has been graded"
NOTHING_RAN: Final = "nothing has run"
NO_MODEL: Final = "no model"
LATER: Final = "intervals for {} come with the statistics release"
RATE: Final = "mean over tasks of each task's share of {} among its graded trials"
BUILT_IN: Final = frozenset({
    "tokens", "tool_error_rate", "wall_s", "wall_s_p50", "cost_usd", "cost_per_solve_usd",
})  # fmt: skip
VALIDATED: Final = "against reference values in tests/unit/test_stats.py"


@frozen
class Graded:
    """What the metrics of a cell are made from. Tasks without a cluster are their own."""

    tasks: Mapping[str, TaskCount]
    clusters: Mapping[str, str]  # task -> cluster
    ungraded: Mapping[str, Sequence[tuple[float, float]]]  # task -> (lowest, highest) score of each ungraded trial
    repeats: int  # as planned
    executed: Spent  # every trial whose agent ran
    settled: Spent  # the graded ones alone
    usage: Mapping[Role, RoleUsage]  # of the executed ones
    uses_model: bool
    unpriced_why: Mapping[Role, str]  # why a cost would be missing, by role

    @property
    def runs(self) -> int:
        """Graded trials."""
        return sum(task.graded for task in self.tasks.values())

    @property
    def solved(self) -> int:
        """Solved trials."""
        return sum(task.solved for task in self.tasks.values())


def built_in(cell: Graded) -> dict[str, MetricValue]:
    """Every built-in metric by name."""
    return {
        "pass@1": pass_at_1(cell),
        **pass_hat(cell),
        "tokens": tokens(cell),
        "tool_error_rate": tool_error_rate(cell),
        "wall_s": wall(cell),
        "wall_s_p50": wall_median(cell),
        "cost_usd": cost(cell),
        "cost_per_solve_usd": cost_per_solve(cell),
    }


def pass_at_1(cell: Graded) -> MetricValue:
    """The share of solved trials, tasks weighing the same, with the default interval for rates."""
    counts = {name: (task.graded, task.solved) for name, task in cell.tasks.items()}
    return _rate(counts, cell, RATE.format("solved (pass or declined)"), _bounds(cell))


def views(cell: Graded) -> dict[str, MetricValue]:
    """The same for each second, labelled reading of the trials, by label."""
    labels = sorted({label for task in cell.tasks.values() for label in task.views or ()})
    return {label: _view(label, cell) for label in labels}


def _view(label: str, cell: Graded) -> MetricValue:
    pairs = {name: task.views[label] for name, task in cell.tasks.items() if task.views and label in task.views}
    return _rate({name: (n, true) for name, (n, true) in pairs.items()}, cell, RATE.format("yes"), None)


def _rate(
    counts: Mapping[str, tuple[int, int]], cell: Graded, estimand: str, bounds: tuple[float, float] | None
) -> MetricValue:
    """A rate over tasks given as (trials, of them true)."""
    runs = sum(n for n, _ in counts.values())
    if not runs:
        return MetricValue(None, estimand, 0, validated=VALIDATED, reason=NOTHING_GRADED, bounds=bounds)
    means = [true / n for n, true in counts.values()]
    interval = rate_interval(means, runs, [cell.clusters.get(name, name) for name in counts])
    return _with_interval(interval, estimand, runs, bounds)


def _with_interval(interval: Interval, estimand: str, runs: int, bounds: tuple[float, float] | None) -> MetricValue:
    known = interval.low is not None
    return MetricValue(
        interval.value,
        f"{estimand}; {interval.method}",
        runs,
        interval.low,
        interval.high,
        DEFAULT_LEVEL if known else None,
        validated=VALIDATED,
        reason=None if known else f"no interval: {interval.reason}",
        bounds=bounds,
    )


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


def pass_hat(cell: Graded) -> dict[str, MetricValue]:
    """pass^k for every k from 2 to the planned repeats; undefined beyond the fewest graded repeats of a task."""
    counts = [(task.graded, task.solved) for task in cell.tasks.values()]
    fewest = min((n for n, _ in counts), default=0)
    values = {}
    for k in range(2, max(cell.repeats, fewest) + 1):
        method = f"mean over tasks of the chance that all of {k} of its graded trials are solved, C(c,k)/C(n,k)"
        if k <= fewest:
            value, reason = pass_hat_k_mean(counts, k), LATER.format("pass^k")
        else:
            value, reason = None, f"a task has only {fewest} graded trials" if counts else NOTHING_GRADED
        values[f"pass^{k}"] = MetricValue(value, method, cell.runs, validated=VALIDATED, reason=reason)
    return values


def tokens(cell: Graded) -> MetricValue:
    """Input and output tokens of the agent."""
    method = "mean over executed trials of the agent's input and output tokens"
    if not cell.uses_model:
        return _missing(method, "tokens", NO_MODEL)
    usage = cell.usage["agent"].usage
    reasons = [LATER.format("means")]
    if usage.unreported:
        reasons.insert(0, f"a lower bound: {usage.unreported} of {usage.calls} model calls reported no usage")
    return _mean(usage.tokens, cell.executed.trials, method, "tokens", "; ".join(reasons))


def tool_error_rate(cell: Graded) -> MetricValue:
    """Tool calls that failed, or never reached a tool, among all."""
    method = "failed tool calls over all tool calls, of executed trials"
    spent = cell.executed
    if not spent.tool_calls:
        return _missing(method, "", "no tool was called" if spent.trials else NOTHING_RAN)
    value = spent.tool_errors / spent.tool_calls
    return MetricValue(value, method, spent.trials, reason=LATER.format("ratios"))


def wall(cell: Graded) -> MetricValue:
    """Seconds from the start of a trial to its end."""
    spent = cell.executed
    return _mean(
        math.fsum(spent.walls), spent.trials, "mean over executed trials of the wall time", "s", LATER.format("means")
    )


def wall_median(cell: Graded) -> MetricValue:
    """The median of the same."""
    method, walls = "median over executed trials of the wall time (linear interpolation)", cell.executed.walls
    if not walls:
        return _missing(method, "s", NOTHING_RAN)
    return MetricValue(quantile(walls, 0.5), method, len(walls), unit="s", reason=LATER.format("quantiles"))


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
    if not cell.solved:
        return _missing(method, "USD", f"spent ${agent.known_usd:.4g}, solved 0", cell.runs)
    value = cost_per_solved([agent.known_usd], [cell.solved])
    return MetricValue(value, method, cell.runs, unit="USD", reason=LATER.format("cost per solve"))


def from_plugin(info: MetricInfo, metric: Metric, kept: Mapping[str, Sequence[CountedTrial]]) -> MetricValue:
    """A plugin's metric: the ratio of sums over tasks of what it returns. Its failure is its own, and is told."""
    method = f"ratio of sums over tasks ({info.summary})"
    value: float | None = None
    try:
        pairs = [pair for _, trials in sorted(kept.items()) if (pair := metric.per_task(trials)) is not None]
        value, reason = _ratio_of_sums(pairs)
    except Exception as error:  # noqa: BLE001  a stranger's code; the other numbers stand
        reason = f"the metric failed: {type(error).__name__}: {error!s:.200}"
    n = sum(map(len, kept.values()))
    return MetricValue(value, method, n, unit=info.unit, validated=info.validated, reason=reason)


def _ratio_of_sums(pairs: Sequence[tuple[float, float]]) -> tuple[float | None, str]:
    """The ratio, with why it has no interval; or None, with why it has no value."""
    if not pairs:
        return None, "no task has a value"
    above, below = (math.fsum(pair[i] for pair in pairs) for i in (0, 1))
    if not (math.isfinite(above) and math.isfinite(below)):
        return None, "a task's value is not finite"
    if below == 0:
        return None, "the denominators add up to 0"
    value = above / below
    return (value, LATER.format("plugins' metrics")) if math.isfinite(value) else (None, "the ratio is not finite")


def _mean(total: float, trials: int, method: str, unit: str, reason: str) -> MetricValue:
    if not trials:
        return _missing(method, unit, NOTHING_RAN)
    return MetricValue(total / trials, method, trials, unit=unit, reason=reason)


def _missing(method: str, unit: str, reason: str, n: int = 0) -> MetricValue:
    return MetricValue(None, method, n, unit=unit, reason=reason)
