"""The one mapping from the function names of `statistics.json` to evalcore's functions; its `about` asks for it."""
# ruff: noqa: PLW0108  a lambda here gives arguments the oracle's names

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from evalcore.stats.anytime import asymptotic_radius, mixture_radius, sign_e_value
from evalcore.stats.binomial import clopper_pearson, clopper_pearson_upper, jeffreys, uniform
from evalcore.stats.clusters import ClusterMean, cluster_robust, effective_runs
from evalcore.stats.costs import cost_per_solved, cost_per_solved_se, fieller_interval, log_interval
from evalcore.stats.distributions import t_two_sided, z_two_sided
from evalcore.stats.flakiness import disagreement, expected_unstable, flakiness, fleiss_kappa, unstable
from evalcore.stats.incremental import net_benefit, price_of_extra_solve
from evalcore.stats.intervals import Interval, clustered_wilson, wilson, wilson_bounds
from evalcore.stats.margins import non_inferiority, tost
from evalcore.stats.mcnemar import Discordant, mcnemar_exact, mcnemar_midp, newcombe_10
from evalcore.stats.means import t_interval
from evalcore.stats.multiplicity import benjamini_hochberg, holm
from evalcore.stats.paired import paired_t
from evalcore.stats.pareto import pareto_front, pareto_hull
from evalcore.stats.passk import pass_at_k, pass_at_k_mean, pass_hat_k, pass_hat_k_mean
from evalcore.stats.power import Design, detectable_by_cores, detectable_difference, power_t, tasks_needed
from evalcore.stats.power_mcnemar import mcnemar_detectable, mcnemar_power_exact, mcnemar_tasks_needed
from evalcore.stats.quantiles import fewest_for_upper_bound, quantile, quantile_ranks
from evalcore.stats.signflip import monte_carlo_p, sign_flip_exact, smallest_p
from evalcore.stats.spending import look_bounds, spent_obrien_fleming, spent_pocock
from evalcore.stats.standard_errors import errors_of_runs
from evalcore.stats.unpaired import newcombe_hybrid
from evalcore.stats.variance import components, design_effect, icc, mean_squares

Fixture = Mapping[str, Sequence[Any]]
Bounds = tuple[float | None, float | None] | None
LEVEL: Final = 0.95


def _runs(fixture: Fixture) -> list[Sequence[Any]]:
    return list(fixture.values())


def _means(fixture: Fixture) -> list[float]:
    return [fmean(scores) for scores in fixture.values()]


def _robust(fixture: Fixture) -> ClusterMean:
    return cluster_robust(_means(fixture))


def _count(fixture: Fixture) -> int:
    return sum(map(len, fixture.values()))


def _bounds(interval: Interval) -> Bounds:
    """None where there is no interval at all; a bound alone may be open."""
    return None if interval.low is None and interval.high is None else (interval.low, interval.high)


def _differences(d: Sequence[float] | None, fixture: Mapping[str, float] | None) -> list[float]:
    """A list, or a fixture of per-task differences such as F1-F1B."""
    return list(d if d is not None else (fixture or {}).values())


def _of_counts(function: Callable[[int, int, float], Interval]) -> Callable[..., Bounds]:
    return lambda successes, n, conf: _bounds(function(successes, n, conf))


def _of_differences(function: Callable[[list[float]], Any]) -> Callable[..., Any]:
    return lambda d=None, fixture=None: function(_differences(d, fixture))


def _of_costs(function: Callable[..., Interval]) -> Callable[..., Bounds]:
    return lambda cost, solved, conf: _bounds(function(cost, solved, level=conf))


def _ci_wilson_neff(fixture: Fixture, conf: float) -> tuple[float, float]:
    mean = _robust(fixture)
    return wilson_bounds(mean.value, effective_runs(mean, _count(fixture)), z_two_sided(conf))


def _variance_components(fixture: Fixture) -> dict[str, float]:
    parts = components(_runs(fixture))
    return {"between": parts.between, "within": parts.within, "share_of_se2_from_repeats": parts.share_from_repeats}


def _anova(fixture: Fixture) -> tuple[float, float]:
    squares = mean_squares(_runs(fixture))
    return squares.between, squares.within


def _ci_diff_newcombe(a: int, na: int, b: int, nb: int, conf: float) -> Bounds:
    return _bounds(newcombe_hybrid(wilson(a, na, conf), wilson(b, nb, conf)))


def _newcombe_paired(n11: int, n10: int, n01: int, n00: int, conf: float) -> tuple[float, float]:
    return newcombe_10(Discordant(n11, n10, n01, n00), conf)


def _paired_t(d: list[float]) -> tuple[float, float]:
    test = paired_t(d)
    return test.statistic, test.p


def _tost(d: Sequence[float], low: float, high: float) -> dict[str, float]:
    test = tost(d, low, high)
    names = ("p", "t_low", "p_low", "t_high", "p_high")
    return {name: getattr(test, name) for name in names}


def _design(omega2: float, sigma2_a: float, sigma2_b: float, k_a: float, k_b: float) -> Design:
    return Design(omega2, sigma2_a, sigma2_b, k_a, k_b)


def _mde_paired(n: int, alpha: float, power: float, **variances: float) -> float:
    return detectable_difference(n, _design(**variances), alpha=alpha, power=power)


def _n_paired(delta: float, alpha: float, power: float, **variances: float) -> float:
    return tasks_needed(delta, _design(**variances), alpha=alpha, power=power)


def _mde_cores(interaction: bool = False) -> Callable[..., float]:
    def function(icc: float, baseline: float, **design: Any) -> float:
        return detectable_by_cores(rate=baseline, correlation=icc, interaction=interaction, **design)

    return function


def _quantile_ci_ranks(n: int, q: float, conf: float) -> tuple[int | None, int | None, float]:
    ranks = quantile_ranks(n, q, conf)
    return ranks.low, ranks.high, ranks.coverage


def _net_benefit(d_solved: Sequence[float], d_cost: Sequence[float], value_per_solve: float) -> Any:
    mean = net_benefit(d_solved, d_cost, value_per_solve)
    return None if mean.se is None else (mean.value, mean.se)


# In these, None or a ValueError is what the oracle calls "undefined".
FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    # pass@k and pass^k
    "pass_at_k": pass_at_k,
    "pass_at_k_mean": lambda n_c, k: pass_at_k_mean(((n, c) for n, c in n_c), k),
    "pass_hat_k": pass_hat_k,
    "pass_hat_k_mean": lambda n_c, k: pass_hat_k_mean(((n, c) for n, c in n_c), k),
    # means, standard errors, variance
    "mean": lambda fixture: _robust(fixture).value,
    "se_clt": lambda fixture: errors_of_runs(_runs(fixture)).naive,
    "se_cluster_cr0": lambda fixture: errors_of_runs(_runs(fixture)).cr0,
    "se_cluster_miller": lambda fixture: errors_of_runs(_runs(fixture)).miller,
    "se_cluster_statsmodels": lambda fixture: errors_of_runs(_runs(fixture)).cr1,
    "se_cluster_cr1": lambda fixture: _robust(fixture).se,
    "se_task_means": lambda fixture: _robust(fixture).se,  # the same where no tasks share a cluster
    "n_effective": lambda fixture: effective_runs(_robust(fixture), _count(fixture)),
    "anova_ms": _anova,
    "icc1": lambda fixture: icc(_runs(fixture)),
    "variance_components": _variance_components,
    "design_effect": lambda icc, m: design_effect(icc, m),
    "within_task_variance": lambda fixture: mean_squares(_runs(fixture)).within,
    # intervals
    "ci_wilson": _of_counts(wilson),
    "ci_wilson_neff": _ci_wilson_neff,
    "ci_wilson_neff_t": lambda fixture, conf: _bounds(clustered_wilson(_means(fixture), _count(fixture), level=conf)),
    "ci_task_means_t": lambda fixture, conf: _bounds(t_interval(_means(fixture), level=conf)),
    "ci_clopper_pearson": _of_counts(clopper_pearson),
    "cp_upper_one_sided": lambda successes, n, conf: clopper_pearson_upper(successes, n, conf),
    "ci_jeffreys": _of_counts(jeffreys),
    "ci_beta_uniform": _of_counts(uniform),
    "ci_diff_newcombe": _ci_diff_newcombe,
    "t_crit": lambda df, conf: t_two_sided(conf, df),
    "z_crit": lambda alpha: z_two_sided(1.0 - alpha),
    # two arms
    "task_diffs": _of_differences(list),
    "paired_mean": _of_differences(lambda d: cluster_robust(d).value),
    "paired_se": _of_differences(lambda d: cluster_robust(d).se),
    "paired_t": _of_differences(_paired_t),
    "paired_t_ci": _of_differences(lambda d: _bounds(t_interval(d, level=LEVEL))),
    "paired_t_ci90": _of_differences(lambda d: _bounds(t_interval(d, level=0.9))),
    "signflip_exact": _of_differences(sign_flip_exact),
    "signflip_min_p": lambda G: smallest_p(G),  # noqa: N803  the oracle's name
    "mc_p_value": lambda exceed, draws: monte_carlo_p(exceed, draws),
    "mcnemar_exact": lambda b, c: mcnemar_exact(b, c),
    "mcnemar_midp": lambda b, c: mcnemar_midp(b, c),
    "ci_paired_diff_newcombe10": _newcombe_paired,
    "tost_paired": _tost,
    "noninferiority_paired": lambda d, margin: non_inferiority(d, margin),
    "holm": lambda p: holm(p),
    "bh": lambda p: benjamini_hochberg(p),
    # planning
    "mde_paired": _mde_paired,
    "n_paired": _n_paired,
    "mde_core_paired": _mde_cores(),
    "mde_core_paired_interaction": _mde_cores(interaction=True),
    "n_mcnemar": lambda discordant, diff, alpha, power: mcnemar_tasks_needed(
        discordant, diff, alpha=alpha, power=power
    ),
    "mde_mcnemar": lambda n, discordant, alpha, power: mcnemar_detectable(n, discordant, alpha=alpha, power=power),
    "power_mcnemar_exact": lambda n, p10, p01, alpha: mcnemar_power_exact(n, p10, p01, alpha=alpha),
    "power_paired_t": lambda n, effect, sd, alpha: power_t(n, effect, sd, alpha=alpha),
    # looks
    "alpha_spend_obf": lambda t, alpha, sides=2: spent_obrien_fleming(t, alpha, sides),
    "alpha_spend_pocock": lambda t, alpha: spent_pocock(t, alpha),
    "obf_bounds": lambda t, alpha: look_bounds(t, alpha),
    "pocock_bounds": lambda t, alpha: look_bounds(t, alpha, "Pocock"),
    "sign_evalue_uniform_mixture": lambda b, c: sign_e_value(b, c),
    "cs_radius_asymptotic": lambda n, sd, alpha, rho: asymptotic_radius(n, sd, alpha=alpha, r=rho),
    "cs_radius_subgaussian": lambda n, alpha, rho, sigma2: mixture_radius(n, variance=sigma2, alpha=alpha, rho=rho),
    # flakiness and times
    "frac_tasks_disagree": lambda fixture: unstable(_runs(fixture)).share,
    "pairwise_disagreement": lambda fixture: flakiness(_runs(fixture)).interval.value,
    "expected_any_disagreement": lambda p, k: [expected_unstable(p, each) for each in k],
    "any3_to_pair": lambda any3: any3 * disagreement([0, 0, 1]),  # a binary task of three runs: all or two thirds
    "fleiss_kappa": lambda table: fleiss_kappa(
        [[j for j, count in enumerate(row) for _ in range(count)] for row in table]
    ),
    "quantile_type7": lambda x, q: quantile(x, q),
    "quantile_ci_ranks": _quantile_ci_ranks,
    "min_n_upper_bound": lambda q, tail: fewest_for_upper_bound(q, tail),
    # money
    "cost_per_solved": lambda cost, solved: cost_per_solved(cost, solved),
    "cost_per_solved_se_delta": lambda cost, solved: cost_per_solved_se(cost, solved),
    "cost_per_solved_ci_log": _of_costs(log_interval),
    "cost_per_solved_ci_fieller": _of_costs(fieller_interval),
    "icer": lambda acc_a, cost_a, acc_b, cost_b: price_of_extra_solve(acc_a, cost_a, acc_b, cost_b),
    "net_benefit": _net_benefit,
    "pareto_front": lambda points: pareto_front({name: tuple(point) for name, point in points.items()}),
    "pareto_hull": lambda points: pareto_hull({name: tuple(point) for name, point in points.items()}),
}

# In the oracle for context: what evalcore does not compute, because something better stands in its place.
NOT_COMPUTED: Final = frozenset({
    "barnard_exact", "beta_pass_hat_k", "beta_strength_for", "bonferroni", "boschloo_exact", "by",
    "chi2_nocorr", "chi2_yates", "ci_agresti_coull", "ci_diff_agresti_caffo", "ci_wald", "diff", "fisher_exact",
    "iid_any_failure", "iid_p_for", "iid_pass_hat_k", "mix_pass_hat_k", "n_per_arm_two_prop_arcsine",
    "paired_se_from_corr", "power_two_prop_arcsine", "prob_superior_beta", "prob_superior_paired", "se_bernoulli",
    "se_bootstrap_ideal", "signflip_scipy", "two_prop_ztest", "unpaired_se",
})  # fmt: skip
