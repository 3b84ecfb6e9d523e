"""The one mapping from the function names of `statistics.json` to evalcore's functions; its `about` asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from evalcore.stats.clusters import cluster_robust, effective_runs
from evalcore.stats.costs import cost_per_solved
from evalcore.stats.distributions import t_two_sided, z_two_sided
from evalcore.stats.intervals import clustered_wilson, wilson, wilson_bounds
from evalcore.stats.passk import pass_at_k, pass_at_k_mean, pass_hat_k, pass_hat_k_mean
from evalcore.stats.quantiles import quantile

Fixture = Mapping[str, Sequence[float]]


def _means(fixture: Fixture) -> list[float]:
    return [fmean(scores) for scores in fixture.values()]


def _runs(fixture: Fixture) -> int:
    return sum(map(len, fixture.values()))


def _mean(fixture: Fixture) -> float:
    return cluster_robust(_means(fixture)).value


def _se_cluster_cr1(fixture: Fixture) -> float | None:
    return cluster_robust(_means(fixture)).se


def _n_effective(fixture: Fixture) -> float:
    return effective_runs(cluster_robust(_means(fixture)), _runs(fixture))


def _pair(low: float | None, high: float | None) -> tuple[float, float] | None:
    return None if low is None or high is None else (low, high)


def _ci_wilson(successes: int, n: int, conf: float) -> tuple[float, float] | None:
    interval = wilson(successes, n, conf)
    return _pair(interval.low, interval.high)


def _ci_wilson_neff(fixture: Fixture, conf: float) -> tuple[float, float]:
    mean = cluster_robust(_means(fixture))
    return wilson_bounds(mean.value, effective_runs(mean, _runs(fixture)), z_two_sided(conf))


def _ci_wilson_neff_t(fixture: Fixture, conf: float) -> tuple[float, float] | None:
    interval = clustered_wilson(_means(fixture), _runs(fixture), level=conf)
    return _pair(interval.low, interval.high)


def _cost_per_solved(cost: Sequence[float], solved: Sequence[float]) -> float:
    return cost_per_solved(cost, solved)


def _quantile_type7(x: Sequence[float], q: float) -> float:
    return quantile(x, q)


# In these, None or a ValueError is what the oracle calls "undefined".
FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "ci_wilson": _ci_wilson,
    "ci_wilson_neff": _ci_wilson_neff,
    "ci_wilson_neff_t": _ci_wilson_neff_t,
    "cost_per_solved": _cost_per_solved,
    "mean": _mean,
    "n_effective": _n_effective,
    "pass_at_k": pass_at_k,
    "pass_at_k_mean": lambda n_c, k: pass_at_k_mean(((n, c) for n, c in n_c), k),
    "pass_hat_k": pass_hat_k,
    "pass_hat_k_mean": lambda n_c, k: pass_hat_k_mean(((n, c) for n, c in n_c), k),
    "quantile_type7": _quantile_type7,
    "se_cluster_cr1": _se_cluster_cr1,
    "se_task_means": _se_cluster_cr1,  # the same where no tasks share a cluster
    "t_crit": lambda df, conf: t_two_sided(conf, df),
    "z_crit": lambda alpha: z_two_sided(1.0 - alpha),
}
