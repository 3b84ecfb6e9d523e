"""Exact, Bayesian, resampled and reliability intervals; standard errors of others; where variance comes from."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcore.stats import bootstrap
from evalcore.stats.binomial import (
    clopper_pearson,
    clopper_pearson_lower,
    clopper_pearson_upper,
    jeffreys,
    uniform,
)
from evalcore.stats.bootstrap import bca, bootstrap_means, percentile_bounds, resampled_columns, resamples
from evalcore.stats.clusters import cluster_robust, columns_by_cluster, sums_by_cluster
from evalcore.stats.distributions import (
    beta_quantile,
    binomial_cdf,
    noncentral_t_tail,
    normal_tail,
    solve,
    t_quantile,
    t_tail,
    z_quantile,
)
from evalcore.stats.hierarchical import hierarchical
from evalcore.stats.intervals import Interval, clustered_wilson, wilson
from evalcore.stats.means import T_ON_CLUSTERS, mean_interval, t_interval
from evalcore.stats.reliability import independent_floor, largest_k, reliability
from evalcore.stats.standard_errors import errors_of_runs
from evalcore.stats.variance import (
    components,
    design_effect,
    difference_components,
    icc,
    mean_squares,
    repeat_share,
)

F1 = [(1, 1, 1), (1, 0, 1), (0, 0, 0), (1, 1, 0), (0, 0, 1), (1, 1, 1)]
F1B = [(1, 1, 1), (0, 0, 1), (0, 0, 0), (1, 0, 0), (0, 0, 0), (1, 1, 0)]
counts = st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))

# ── exact and Bayesian ───────────────────────────────────────────────────────────────────────────────────────────────


@given(counts, st.sampled_from([0.8, 0.95, 0.99]))
def test_clopper_pearson_leaves_at_most_half_the_error_in_each_tail(case: tuple[int, int], level: float) -> None:
    s, n = case
    interval = clopper_pearson(s, n, level)
    assert interval.low is not None and interval.high is not None
    if s:
        assert 1 - binomial_cdf(s - 1, n, interval.low) == pytest.approx((1 - level) / 2, rel=1e-6)
    if s < n:
        assert binomial_cdf(s, n, interval.high) == pytest.approx((1 - level) / 2, rel=1e-6)
    assert (interval.low == 0) == (s == 0) and (interval.high == 1) == (s == n)


@given(counts)
def test_exact_intervals_hold_the_others(case: tuple[int, int]) -> None:
    s, n = case
    exact, others = clopper_pearson(s, n), [jeffreys(s, n), uniform(s, n)]
    for other in others:
        assert exact.low is not None and exact.high is not None and other.low is not None and other.high is not None
        assert 0.0 <= other.low < other.high <= 1.0
        if 0 < s < n:
            assert exact.low <= other.low + 1e-9 and other.high <= exact.high + 1e-9


def test_no_success_in_30_is_no_proof_of_0() -> None:
    assert clopper_pearson_upper(0, 30) == pytest.approx(1 - 0.05 ** (1 / 30))
    assert clopper_pearson_upper(30, 30) == 1.0
    assert clopper_pearson_lower(30, 30) == pytest.approx(0.05 ** (1 / 30))
    assert clopper_pearson_lower(0, 30) == 0.0


@pytest.mark.parametrize("function", [clopper_pearson, clopper_pearson_upper, jeffreys, uniform])
@pytest.mark.parametrize("case", [(0, 0), (3, 2), (-1, 2)])
def test_impossible_counts_raise(function: Callable[..., Any], case: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="runs"):
        function(*case)


@given(counts)
@settings(max_examples=10)
def test_single_trials_make_the_hierarchical_interval_the_uniform_one(case: tuple[int, int]) -> None:
    s, n = case
    interval, plain = hierarchical([(1, 1)] * s + [(1, 0)] * (n - s)), uniform(s, n)
    assert (interval.low, interval.high) == pytest.approx((plain.low, plain.high), abs=1e-3)


def test_repeats_that_agree_widen_the_hierarchical_interval() -> None:
    same, apart = [(5, 5)] * 8 + [(5, 0)] * 2, [(1, 1)] * 40 + [(1, 0)] * 10
    wide, narrow = hierarchical(same), hierarchical(apart)
    assert wide.low is not None and wide.high is not None and narrow.low is not None and narrow.high is not None
    assert wide.high - wide.low > 1.8 * (narrow.high - narrow.low)
    assert hierarchical(same) == wide  # no sampling


@pytest.mark.parametrize("case", [[], [(0, 0)], [(2, 3)], [(2, -1)]])
def test_the_hierarchical_interval_needs_possible_counts(case: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="runs"):
        hierarchical(case)


# ── resampling ───────────────────────────────────────────────────────────────────────────────────────────────────────

SKEWED = [0.1, 0.2, 0.2, 0.3, 0.3, 0.3, 0.4, 0.5, 0.7, 0.9, 1.4, 2.2, 3.5, 5.1, 9.0]


def test_the_bootstrap_error_tends_to_its_ideal() -> None:
    means = bootstrap_means([statistics.fmean(task) for task in F1], seed=1, draws=20_000)
    ideal = 0.14522581  # the oracle's F1/se_bootstrap_ideal
    assert statistics.pstdev(means) == pytest.approx(ideal, rel=0.02)
    assert means == sorted(means)


def test_a_seed_is_all_that_a_bootstrap_depends_on() -> None:
    one = bca(SKEWED, seed=7, draws=2000)
    assert bca(SKEWED, seed=7, draws=2000) == one
    assert bca(SKEWED[::-1], list("abcdefghijklmno"), seed=7, draws=2000) == one
    assert bca(SKEWED, seed=8, draws=2000) != one


def test_resamples_are_the_same_in_whatever_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    whole = np.concatenate(list(resamples(7, 50, 3)))
    monkeypatch.setattr(bootstrap, "CELLS", 20)
    pieces = list(resamples(7, 50, 3))
    assert len(pieces) == 25
    assert (np.concatenate(pieces) == whole).all()
    assert (whole.sum(axis=1) == 7).all()


def test_bca_leans_to_the_long_tail_and_agrees_with_scipys() -> None:
    from scipy.stats import bootstrap as scipy_bootstrap

    ours = bca(SKEWED, seed=1)
    theirs = scipy_bootstrap((SKEWED,), statistics.fmean, n_resamples=9999, method="BCa", vectorized=False, rng=2)
    assert ours.low is not None and ours.high is not None and ours.value is not None
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs.confidence_interval), rel=0.05)
    assert ours.high - ours.value > 1.3 * (ours.value - ours.low)


def test_whole_clusters_are_resampled() -> None:
    # Ten clusters of five equal tasks are ten observations, not fifty.
    tasks = [x for x in SKEWED[:10] for _ in range(5)]
    labels = [i for i in range(10) for _ in range(5)]
    alone = bca(SKEWED[:10], seed=4)
    together = bca(tasks, labels, seed=4)
    assert (together.low, together.high) == pytest.approx((alone.low, alone.high))


def test_columns_are_resampled_together() -> None:
    import numpy as np

    values = resampled_columns([SKEWED, [2 * x for x in SKEWED]], seed=1, draws=100)
    assert np.allclose(values[:, 1], 2 * values[:, 0])
    assert values[:, 0].std() > 0


@pytest.mark.parametrize("values, why", [([3.0], "one cluster"), ([2.0] * 15, "every cluster has the same value")])
def test_what_does_not_vary_has_no_bca_interval(values: list[float], why: str) -> None:
    interval = bca(values, seed=1)
    assert (interval.value, interval.low, interval.high) == (values[0], None, None)
    assert interval.reason is not None and why in interval.reason


def test_percentile_bounds_round_outwards_and_may_be_infinite() -> None:
    assert percentile_bounds([float(i) for i in range(1, 1000)], 0.95) == (25.0, 975.0)
    assert percentile_bounds([1.0] * 90 + [math.inf] * 10, 0.9) == (1.0, math.inf)
    with pytest.raises(ValueError, match="draws"):
        percentile_bounds([1.0], 0.9)
    with pytest.raises(ValueError, match="draws"):
        bca(SKEWED, seed=1, draws=10)


def test_a_mean_of_money_or_time_gets_what_its_clusters_allow() -> None:
    few, some, many = SKEWED[:9], SKEWED[:10], [*SKEWED, *SKEWED]
    refused = mean_interval(few, seed=1)
    assert (refused.low, refused.high) == (None, None)
    assert refused.reason is not None and refused.reason.startswith("9 clusters: below 10")
    assert mean_interval(some, seed=1).method.startswith("BCa bootstrap of clusters (9,999 draws, seed 1)")
    assert mean_interval(many, seed=1) == t_interval(many)
    assert mean_interval([5.0], seed=1).reason == "one cluster"
    assert mean_interval([5.0] * 5, seed=1).reason == "every cluster has the same value: no variation to measure"


def test_the_t_interval_is_never_a_point() -> None:
    assert t_interval([5.0] * 40).low is None
    interval = t_interval([1.0, 2.0, 3.0])
    half = 4.302652729911275 / math.sqrt(3)
    assert (interval.low, interval.high) == pytest.approx((2 - half, 2 + half))
    assert (interval.value, interval.method) == (2.0, T_ON_CLUSTERS)
    large = t_interval([1e9, 1e9 + 1e-4, 1e9])  # rounding of large values is no variation
    assert large.low is None


def test_sums_of_clusters_do_not_depend_on_order_or_names() -> None:
    assert sums_by_cluster([1.0, 2.0, 4.0], ["b", "a", "b"]) == ([2.0, 5.0], [1, 2])
    assert sums_by_cluster([4.0, 1.0, 2.0], ["x", "x", "y"]) == ([2.0, 5.0], [1, 2])
    assert columns_by_cluster([[1, 2], [3, 4]]) == ([[1.0, 2.0], [3.0, 4.0]], [1, 1])
    with pytest.raises(ValueError, match="labels"):
        sums_by_cluster([1.0], ["a", "b"])
    with pytest.raises(ValueError, match="no task"):
        sums_by_cluster([])
    with pytest.raises(ValueError, match="same tasks"):
        columns_by_cluster([[1.0], [1.0, 2.0]])


# ── reliability ──────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.integers(2, 6).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), min_size=1, max_size=12))
def test_reliability_lies_within_its_interval_and_falls_with_k(tasks: list[tuple[int, int]]) -> None:
    values = []
    for k in range(1, largest_k(tasks) + 1):
        found = reliability("pass^k", tasks, k).interval
        assert found.value is not None
        if found.low is not None and found.high is not None:
            assert 0.0 <= found.low <= found.value + 1e-12 and found.value - 1e-12 <= found.high <= 1.0
            assert found.low < found.high
        values.append(found.value)
    assert all(a >= b - 1e-12 for a, b in itertools.pairwise(values))


def test_pass_hat_k_is_judged_by_how_tasks_differ() -> None:
    tasks = [(4, 4), (4, 3), (4, 2), (4, 0), (4, 4)]
    found = reliability("pass^k", tasks, 3)
    assert found.interval.value == pytest.approx(0.45)
    expected = clustered_wilson([1.0, 0.25, 0.0, 0.0, 1.0], 5)  # one disjoint group of 3 in 4 runs
    assert found.interval == expected
    assert reliability("pass@k", tasks, 3).interval.value == pytest.approx(0.8)
    assert reliability("pass^k", [(1, 1)] * 8 + [(1, 0)] * 2, 1).interval == wilson(8, 10)


def test_a_short_task_is_refused_or_dropped_and_counted_never_guessed() -> None:
    tasks = [(4, 4), (4, 0), (2, 2), (4, 2)]
    assert largest_k(tasks) == 2 and largest_k([]) == 0
    with pytest.raises(ValueError, match="undefined for k = 3 with 2 runs"):
        reliability("pass^k", tasks, 3)
    found = reliability("pass^k", tasks, 3, list("abcd"), short="drop")
    assert (found.tasks, found.dropped) == (3, 1)
    assert found.interval.value == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="no task ran 5 times"):
        reliability("pass^k", tasks, 5, short="drop")
    with pytest.raises(ValueError, match="no task"):
        reliability("pass^k", [], 1)
    with pytest.raises(ValueError, match="labels"):
        reliability("pass^k", tasks, 1, ["a"])


def test_ninety_percent_does_not_mean_57_at_8() -> None:
    alike, mixed = [(100, 90)] * 10, [(100, 100)] * 6 + [(100, 75)] * 4
    assert independent_floor(alike, 8) == pytest.approx(0.43046721)
    assert independent_floor(mixed, 8) == pytest.approx(0.43046721)  # a floor, no prediction
    found = reliability("pass^k", mixed, 8).interval
    assert found.value is not None and found.value > 0.63
    for case, k in (([], 1), ([(0, 0)], 1), ([(1, 1)], 0)):
        with pytest.raises(ValueError, match=r"task|k is"):
            independent_floor(case, k)


# ── what others print, and where variance comes from ─────────────────────────────────────────────────────────────────


def test_the_error_of_runs_is_ours_only_where_repeats_are_equal() -> None:
    assert errors_of_runs(F1).cr1 == pytest.approx(cluster_robust([statistics.fmean(t) for t in F1]).se)
    unequal = [(1, 1, 1, 1), (0,), (1, 0)]
    assert errors_of_runs(unequal).cr1 != pytest.approx(cluster_robust([1.0, 0.0, 0.5]).se)
    clustered = errors_of_runs(F1, list("aabbcc"))
    assert clustered.cr1 == pytest.approx(cluster_robust([statistics.fmean(t) for t in F1], list("aabbcc")).se)
    assert errors_of_runs([(0, 1)]).cr1 is None
    for scores, labels in (([(1,)], None), ([], None), ([(1, 0)], ["a", "b"]), ([(1, math.nan)], None)):
        with pytest.raises(ValueError, match=r"2 runs|scores|labels"):
            errors_of_runs(scores, labels)


@given(
    st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=6), min_size=2, max_size=8).filter(
        lambda tasks: sum(map(len, tasks)) > len(tasks)
    )
)
def test_mean_squares_split_the_whole_variance(tasks: list[list[int]]) -> None:
    squares = mean_squares(tasks)
    runs = [x for task in tasks for x in task]
    whole = sum((x - statistics.fmean(runs)) ** 2 for x in runs)
    n, t = len(runs), len(tasks)
    assert squares.between * (t - 1) + squares.within * (n - t) == pytest.approx(whole, abs=1e-9)
    sizes = [len(task) for task in tasks]
    assert min(sizes) - 1e-9 <= squares.repeats <= max(sizes) + 1e-9


def test_icc_by_hand_with_unequal_repeats() -> None:
    # Means 1, .5, 0 of 2, 4, 2 runs; grand mean .5: SSB = 2(.25) + 0 + 2(.25) = 1, MSB = .5; SSW = 1, MSW = 1/5;
    # K0 = (8 - 24/8)/2 = 2.5; ICC = (.5 - .2)/(.5 + 1.5 × .2) = .375.
    tasks = [(1, 1), (1, 1, 0, 0), (0, 0)]
    squares = mean_squares(tasks)
    assert (squares.between, squares.within, squares.repeats) == pytest.approx((0.5, 0.2, 2.5))
    assert icc(tasks) == pytest.approx(0.375)
    parts = components(tasks)
    assert (parts.between, parts.within, parts.share_from_repeats) == pytest.approx((0.12, 0.2, 0.4))


def test_icc_at_its_ends() -> None:
    assert icc([(1, 1), (0, 0)]) == 1.0
    assert icc([(1, 0), (1, 0)]) == -1.0  # repeats that disagree more than chance: shown as it is
    assert components([(1, 0), (1, 0, 0), (1, 1, 0)]).between >= 0.0
    for tasks, why in (
        ([(1, 1), (1, 1)], "no two runs differ"),
        ([(1,), (0,)], "every task ran once"),
        ([(1, 0)], "one task"),
        ([(1, 0), ()], "without a run"),
    ):
        with pytest.raises(ValueError, match=why):
            icc(tasks)
    with pytest.raises(ValueError, match="no two tasks differ"):
        components([(1, 0), (1, 0)])
    assert design_effect(0.5, 1) == 1.0
    for correlation, size in ((0.5, 0), (2.0, 3)):
        with pytest.raises(ValueError, match=r"cluster|correlation"):
            design_effect(correlation, size)


def test_what_repeats_could_remove() -> None:
    assert repeat_share([F1]) == pytest.approx(components(F1).share_from_repeats)
    # Of the difference: by hand, sum of s^2/K over arms and tasks, over T^2 SE^2.
    within = sum(statistics.variance(runs) / 3 for arm in (F1, F1B) for runs in arm)
    differences = [statistics.fmean(a) - statistics.fmean(b) for a, b in zip(F1, F1B, strict=True)]
    se = cluster_robust(differences).se
    assert se is not None
    assert repeat_share([F1, F1B]) == pytest.approx(min(1.0, within / (6 * se) ** 2))
    assert 0.0 < repeat_share([F1], list("aabbcc")) < 1.0
    for arms, labels, why in (
        ([F1, F1B, F1], None, "difference of two"),
        ([[(1,), (0,)]], None, "ran once"),
        ([F1], ["a"] * 6, "one cluster"),
        ([[(1, 0), (1, 0)]], None, "no two clusters differ"),
        ([F1, F1B[:3]], None, "tasks of the arms"),
    ):
        with pytest.raises(ValueError, match=why):
            repeat_share(arms, labels)


def test_a_pilot_gives_the_variances_of_a_plan() -> None:
    a, b = [(1, 1), (1, 0), (0, 0)], [(0, 0), (1, 1), (0, 1)]
    found = difference_components(a, b)
    assert (found.sigma2_a, found.sigma2_b) == pytest.approx((1 / 6, 1 / 6))
    assert found.omega2 == pytest.approx(statistics.variance([1, -0.5, -0.5]) - 1 / 6)
    assert difference_components([(1, 0)] * 3, [(1, 0)] * 3).omega2 == 0.0
    for x, y in ((a, b[:2]), (a[:1], b[:1]), ([(1,), (0,)], [(1,), (0,)])):
        with pytest.raises(ValueError, match=r"arms|pilot|ran once"):
            difference_components(x, y)


# ── distributions ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_quantiles_and_tails_are_each_others_inverse() -> None:
    assert normal_tail(z_quantile(0.975)) == pytest.approx(0.025)
    assert normal_tail(30.0) > 0.0
    assert t_tail(t_quantile(0.9, 4), 4) == pytest.approx(0.1)
    assert noncentral_t_tail(1.7, 12, 0.0) == pytest.approx(t_tail(1.7, 12))
    assert beta_quantile(0.5, 3, 3) == pytest.approx(0.5)
    assert [binomial_cdf(k, 2, 0.5) for k in (-1, 0, 1, 2, 3)] == [0.0, 0.25, 0.75, 1.0, 1.0]
    assert solve(lambda x: x * x - 2, 0.0, 2.0) == pytest.approx(math.sqrt(2))


def test_what_is_no_probability_or_parameter_raises() -> None:
    for call in (
        lambda: z_quantile(0.0),
        lambda: t_quantile(1.0, 3),
        lambda: t_quantile(0.5, 0.5),
        lambda: beta_quantile(0.5, 0, 1),
        lambda: binomial_cdf(1, -1, 0.5),
        lambda: binomial_cdf(1, 2, 1.5),
        lambda: solve(lambda x: x, 1.0, 2.0),
    ):
        with pytest.raises(ValueError, match=r"lies|freedom|distribution|whole|rate|solution"):
            call()


def test_an_interval_can_have_no_value() -> None:
    assert Interval(None, None, None, 0.95, "none", "nothing ran").value is None
