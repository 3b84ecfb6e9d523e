"""Statistics against the reference values, against their definitions, and at their edges."""

from __future__ import annotations

import itertools
import json
import math
import statistics
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.stats.clusters import cluster_robust, effective_runs
from evalcore.stats.costs import cost_per_solved
from evalcore.stats.distributions import t_two_sided, z_two_sided
from evalcore.stats.intervals import (
    CLUSTERED_WILSON,
    WILSON,
    clustered_wilson,
    rate_interval,
    wilson,
    wilson_bounds,
)
from evalcore.stats.passk import pass_at_k, pass_at_k_mean, pass_hat_k, pass_hat_k_mean
from evalcore.stats.quantiles import quantile
from tests.oracles import oracle_path
from tests.unit.statistics_functions import FUNCTIONS, NOT_COMPUTED

F1 = {"t1": (1, 1, 1), "t2": (1, 0, 1), "t3": (0, 0, 0), "t4": (1, 1, 0), "t5": (0, 0, 1), "t6": (1, 1, 1)}
F1_MEANS = [statistics.fmean(scores) for scores in F1.values()]

# ── the reference values ─────────────────────────────────────────────────────────────────────────────────────────────


def _oracle() -> dict[str, Any]:
    return json.loads(oracle_path("oracles", "statistics.json").read_text(encoding="utf-8"))


def _value(function: Callable[..., Any], inputs: dict[str, Any], fixtures: dict[str, Any]) -> Any:
    arguments = {name: fixtures.get(v, v) if name.startswith("fixture") else v for name, v in inputs.items()}
    try:
        value = function(**arguments)
    except ValueError:
        return "undefined"
    return "undefined" if value is None else value


def test_every_reference_function_is_computed_or_left_out_on_purpose() -> None:
    rows = _oracle()["rows"]
    named = {row["function"] for row in rows}
    assert named == FUNCTIONS.keys() | NOT_COMPUTED
    assert not {row["function"] for row in rows if row["kind"] == "product"} & NOT_COMPUTED


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_reference_values(name: str) -> None:
    oracle = _oracle()
    rows = [row for row in oracle["rows"] if row["function"] == name]
    assert rows
    for row in rows:
        value = _value(FUNCTIONS[name], row["inputs"], oracle["fixtures"])
        assert _agrees(value, row["expected"], oracle["tolerance"]), (row["id"], value, row["expected"])


def _agrees(value: Any, expected: Any, tolerance: float) -> bool:
    """Within the tolerance, at any depth; null and words exactly."""
    if isinstance(expected, dict):
        return value.keys() == expected.keys() and all(_agrees(value[k], expected[k], tolerance) for k in expected)
    if isinstance(expected, list):
        return len(value) == len(expected) and all(map(_agrees, value, expected, itertools.repeat(tolerance)))
    if isinstance(expected, str) or expected is None or isinstance(value, str) or value is None:
        return value == expected
    return math.isfinite(value) and value == pytest.approx(expected, rel=tolerance, abs=tolerance)


# ── pass@k and pass^k ────────────────────────────────────────────────────────────────────────────────────────────────

counts = st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))


@given(counts)
def test_both_are_the_share_of_k_subsets(case: tuple[int, int, int]) -> None:
    n, c, k = case
    draws = list(itertools.combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, draws)) / len(draws))
    assert pass_hat_k(n, c, k) == pytest.approx(sum(map(all, draws)) / len(draws))


@given(counts)
def test_both_are_chances_and_equal_the_rate_at_k_1(case: tuple[int, int, int]) -> None:
    n, c, k = case
    assert 0.0 <= pass_hat_k(n, c, k) <= c / n <= pass_at_k(n, c, k) <= 1.0
    assert pass_hat_k(n, c, 1) == pass_at_k(n, c, 1) == c / n


def test_huge_counts_stay_exact() -> None:
    assert pass_hat_k(20_000, 19_999, 10_000) == 0.5
    assert pass_at_k(20_000, 1, 10_000) == 0.5


@pytest.mark.parametrize("n, c, k", [(3, 3, 4), (0, 0, 1), (3, 4, 1), (3, -1, 1), (3, 1, 0), (3, 1, -2), (-1, 0, 1)])
def test_where_there_is_no_value_it_raises(n: int, c: int, k: int) -> None:
    for function in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match=r"k|successes|runs"):
            function(n, c, k)


def test_one_short_task_leaves_the_mean_undefined() -> None:
    with pytest.raises(ValueError, match="undefined for k = 3 with 2 runs"):
        pass_hat_k_mean([(3, 3), (2, 2)], 3)
    with pytest.raises(ValueError, match="no task"):
        pass_at_k_mean([], 1)


def test_equal_rates_do_not_mean_equal_reliability() -> None:
    mixed = pass_hat_k_mean([(100, 100)] * 6 + [(100, 75)] * 4, 8)
    assert pass_hat_k_mean([(100, 90)] * 10, 8) < 0.43
    assert mixed > 0.63


# ── clusters ─────────────────────────────────────────────────────────────────────────────────────────────────────────

rates = st.floats(0.0, 1.0, allow_nan=False)


@given(st.lists(rates, min_size=2, max_size=30))
def test_without_shared_clusters_it_is_the_standard_error_of_the_mean(means: list[float]) -> None:
    mean = cluster_robust(means)
    assert mean.value == pytest.approx(statistics.fmean(means))
    assert mean.se == pytest.approx(statistics.stdev(means) / math.sqrt(len(means)), abs=1e-9)


def _cr1_of_runs(scores: dict[str, tuple[int, ...]], clusters: dict[str, str]) -> float:
    """CR1 over single runs (statsmodels' formula), right where repeats are equal."""
    runs = [(clusters[t], s) for t, values in scores.items() for s in values]
    mean = statistics.fmean(s for _, s in runs)
    sums: dict[str, float] = {}
    for cluster, score in runs:
        sums[cluster] = sums.get(cluster, 0.0) + score - mean
    return math.sqrt(len(sums) / (len(sums) - 1) * sum(e * e for e in sums.values())) / len(runs)


def test_shared_clusters_against_the_formula_over_runs() -> None:
    clusters = {"t1": "a", "t2": "a", "t3": "b", "t4": "b", "t5": "b", "t6": "c"}
    mean = cluster_robust(F1_MEANS, list(clusters.values()))
    assert (mean.clusters, mean.tasks) == (3, 6)
    assert mean.se == pytest.approx(_cr1_of_runs(F1, clusters))


def test_unequal_repeats_weigh_tasks_not_runs() -> None:
    # t1 ran ten times and always passed, t2 once and failed: half, not ten elevenths. Residuals are +-1/2.
    mean = cluster_robust([1.0, 0.0])
    assert mean.value == 0.5
    assert mean.se == pytest.approx(math.sqrt(2 / 1 * (0.25 + 0.25)) / 2)


@given(st.lists(st.tuples(rates, st.sampled_from("abc")), min_size=1, max_size=20), st.randoms())
def test_the_order_of_tasks_is_irrelevant(tasks: list[tuple[float, str]], random: Any) -> None:
    one = cluster_robust([x for x, _ in tasks], [c for _, c in tasks])
    random.shuffle(tasks)
    other = cluster_robust([x for x, _ in tasks], [c for _, c in tasks])
    assert other.value == pytest.approx(one.value)
    assert (other.se is None) == (one.se is None) == (one.clusters < 2)
    if one.se is not None:
        assert other.se == pytest.approx(one.se, abs=1e-9)


def test_rounding_is_no_variation() -> None:
    mean = cluster_robust([1 / 3] * 7)
    assert mean.se == 0.0
    assert effective_runs(mean, 21) == 7


@pytest.mark.parametrize(
    "means, clusters", [([], None), ([math.nan], None), ([math.inf, 0], None), ([0.5], ["a", "b"])]
)
def test_what_cannot_be_averaged_raises(means: list[float], clusters: list[str] | None) -> None:
    with pytest.raises(ValueError, match=r"no task|finite|labels"):
        cluster_robust(means, clusters)


# ── intervals ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_default_interval_of_f1() -> None:
    interval = clustered_wilson(F1_MEANS, 18)
    assert interval.value == pytest.approx(11 / 18)
    assert (interval.low, interval.high) == (pytest.approx(0.248568, abs=1e-6), pytest.approx(0.881868, abs=1e-6))
    assert (interval.level, interval.method, interval.reason) == (0.95, CLUSTERED_WILSON, None)


@pytest.mark.parametrize("rate", [0.0, 1.0, 1 / 3])
def test_without_variation_the_clusters_count_not_the_runs(rate: float) -> None:
    interval = clustered_wilson([rate] * 5, 100)  # 5 tasks, 20 repeats each
    expected = wilson_bounds(rate, 5, t_two_sided(0.95, 4))
    assert (interval.low, interval.high) == pytest.approx(expected)
    assert interval.low != interval.high


def test_variation_smaller_than_chance_counts_no_more_than_the_runs() -> None:
    interval = clustered_wilson([0.5, 0.5, 0.5, 0.49], 16)
    assert (interval.low, interval.high) == wilson_bounds(interval.value, 16, t_two_sided(0.95, 3))


@pytest.mark.parametrize("means, clusters", [([0.7], None), ([1.0, 0.0, 1.0], ["a", "a", "a"])])
def test_one_cluster_has_no_interval(means: list[float], clusters: list[str] | None) -> None:
    for function in (clustered_wilson, rate_interval):
        interval = function(means, len(means), clusters)
        assert interval.value == pytest.approx(statistics.fmean(means))
        assert (interval.low, interval.high, interval.reason) == (None, None, "one cluster")


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 5), st.sampled_from("abcde")), min_size=1, max_size=12),
    st.sampled_from([0.8, 0.95, 0.99]),
)
def test_an_interval_lies_in_0_to_1_and_around_the_rate(tasks: list[tuple[int, int, str]], level: float) -> None:
    means = [min(c, n) / n for n, c, _ in tasks]
    interval = clustered_wilson(means, sum(n for n, _, _ in tasks), [g for _, _, g in tasks], level)
    if interval.low is not None and interval.high is not None:
        assert 0.0 <= interval.low <= interval.value + 1e-12
        assert interval.value - 1e-12 <= interval.high <= 1.0
        assert interval.high - interval.low > 0.0


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_solves_its_equation(case: tuple[int, int]) -> None:
    successes, n = case
    interval, z = wilson(successes, n), z_two_sided(0.95)
    for bound in (interval.low, interval.high):
        assert bound is not None
        assert (successes / n - bound) ** 2 == pytest.approx(z * z * bound * (1 - bound) / n, abs=1e-9)


def test_single_independent_runs_get_the_plain_interval() -> None:
    means = [1.0] * 8 + [0.0] * 2
    plain = rate_interval(means, 10)
    assert plain == wilson(8, 10)
    assert rate_interval(means, 10, list("abcdefghij")).method == WILSON
    assert rate_interval(means, 10, list("aabbccddee")).method == CLUSTERED_WILSON
    assert rate_interval(means, 20).method == CLUSTERED_WILSON
    assert rate_interval([0.25, 0.5], 2).method == CLUSTERED_WILSON  # partial credit: the variance is not p(1-p)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, -1.0, math.nan])
def test_a_level_is_a_share(level: float) -> None:
    with pytest.raises(ValueError, match="confidence level"):
        wilson(1, 2, level)
    with pytest.raises(ValueError, match="confidence level"):
        clustered_wilson([0.5], 1, level=level)


def test_what_is_no_rate_raises() -> None:
    with pytest.raises(ValueError, match="needs runs"):
        wilson(0, 0)
    with pytest.raises(ValueError, match="no rate"):
        wilson(3, 2)
    with pytest.raises(ValueError, match="no rate"):
        clustered_wilson([0.5, 1.5], 2)
    with pytest.raises(ValueError, match="no rate"):
        clustered_wilson([0.5, math.nan], 2)
    with pytest.raises(ValueError, match="cannot have run"):
        clustered_wilson([0.5, 0.5], 1)
    with pytest.raises(ValueError, match="no task"):
        clustered_wilson([], 0)
    with pytest.raises(ValueError, match="no quantile"):
        wilson_bounds(0.5, 2, math.inf)
    with pytest.raises(ValueError, match="one cluster"):
        effective_runs(cluster_robust([0.5]), 1)
    with pytest.raises(ValueError, match="no rate"):
        effective_runs(cluster_robust([1.5, 2.5]), 2)
    with pytest.raises(ValueError, match="degree of freedom"):
        t_two_sided(0.95, 0)


# ── quantiles and costs ──────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=40))
def test_quantiles_agree_with_the_standard_library(values: list[float]) -> None:
    quarters = statistics.quantiles(values, n=4, method="inclusive")
    assert [quantile(values, q) for q in (0.25, 0.5, 0.75)] == pytest.approx(quarters, abs=1e-6)
    assert (quantile(values, 0.0), quantile(values, 1.0)) == (min(values), max(values))


@pytest.mark.parametrize("values, q", [([], 0.5), ([1.0, math.nan], 0.5), ([1.0], 1.5), ([1.0], math.nan)])
def test_a_quantile_needs_values_and_a_share(values: list[float], q: float) -> None:
    with pytest.raises(ValueError, match="quantile"):
        quantile(values, q)


def test_cost_per_solved_is_never_zero_or_infinite_for_want_of_a_solve() -> None:
    assert cost_per_solved([0.0, 0.0], [1, 0]) == 0.0
    with pytest.raises(ValueError, match="nothing was solved"):
        cost_per_solved([1.0], [0])
    with pytest.raises(ValueError, match="finite"):
        cost_per_solved([math.nan], [1])
    with pytest.raises(ValueError, match="costs but"):
        cost_per_solved([1.0], [])


def test_statistics_load_neither_scipy_nor_numpy_until_they_are_needed() -> None:
    program = (
        "import importlib, pkgutil, sys; import evalcore.stats as stats;"
        "[importlib.import_module(f'evalcore.stats.{m.name}') for m in pkgutil.iter_modules(stats.__path__)];"
        "from evalcore.stats import intervals;"
        "intervals.rate_interval([1.0, 0.0], 2);"
        "assert not {'scipy', 'numpy'} & set(sys.modules); intervals.clustered_wilson([1.0, 0.5], 4);"
        "assert 'scipy.special' in sys.modules and 'scipy.stats' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
