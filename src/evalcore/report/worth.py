"""Is the dearer arm worth it? Extra solves against extra cost, task by task, as a second reading of a contrast."""

from __future__ import annotations

import math
from collections.abc import Sequence

from evalcore.report.analysis import Worth
from evalcore.report.detail import TrialRow
from evalcore.report.outcomes import Paired
from evalcore.stats.incremental import ValueRange, is_it_worth_it, net_benefit_interval, value_ranges
from evalcore.stats.paired import paired_interval


def worth(paired: Paired, value_per_solve_usd: float | None, *, alpha: float, not_worse: bool | None) -> Worth | None:
    """The verdict of `stats.incremental` on a pass@1 contrast; None where a cost is not known, or clusters are few.

    Money in US dollars a trial, the agent's. `not_worse` is what the contrast's margin decided.
    """
    rows = [[*x.results, *y.results] for x, y in zip(paired.a, paired.b, strict=True)]
    if paired.clusters < 2 or any(r.cost_usd is None for row in rows for r in row):
        return None
    costs = [_cost(x.results) - _cost(y.results) for x, y in zip(paired.a, paired.b, strict=True)]
    solved, clusters, level = paired.pairing.differences, paired.pairing.clusters, 1.0 - alpha
    if not any(costs):
        return None  # nothing was paid, or the same for every task: there is no price to weigh
    more = paired_interval(solved, clusters, level=level)
    dearer = paired_interval(costs, clusters, level=level, bounds=None)
    benefit = None
    if value_per_solve_usd is not None:
        benefit = net_benefit_interval(solved, costs, value_per_solve_usd, clusters, level)
    ranges: tuple[ValueRange, ...] = tuple(value_ranges(solved, costs, clusters, level))
    found = is_it_worth_it(more, dearer, benefit, not_worse=not_worse)
    return Worth(found.verdict, found.reason, value_per_solve_usd, more, dearer, benefit, ranges)


def _cost(results: Sequence[TrialRow]) -> float:
    return math.fsum(r.cost_usd or 0.0 for r in results) / len(results)
