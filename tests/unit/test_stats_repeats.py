"""Flakiness of repeats, and quantiles of times that were partly cut off."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcore.stats.flakiness import (
    RAN_ONCE,
    disagreement,
    expected_unstable,
    flakiness,
    fleiss_kappa,
    unstable,
)
from evalcore.stats.intervals import clustered_wilson
from evalcore.stats.latency import time_quantiles
from evalcore.stats.quantiles import fewest_for_upper_bound, quantile, quantile_ranks

F2 = [("ok", "ok", "ok"), ("ok", "wrong", "ok"), ("refuse", "wrong", "ok"), ("wrong", "wrong", "wrong")]
outcomes = st.lists(st.sampled_from("abcd"), min_size=2, max_size=7)

# ── flakiness ────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(outcomes)
def test_disagreement_is_the_share_of_pairs_that_differ(runs: list[str]) -> None:
    pairs = list(itertools.combinations(runs, 2))
    assert disagreement(runs) == pytest.approx(sum(a != b for a, b in pairs) / len(pairs))


@given(st.lists(st.integers(0, 1), min_size=2, max_size=9))
def test_of_pass_and_fail_it_is_twice_the_variance(runs: list[int]) -> None:
    import statistics

    assert disagreement(runs) == pytest.approx(2 * statistics.variance(runs))


@given(st.lists(st.lists(st.integers(0, 1), min_size=3, max_size=3), min_size=1, max_size=9))
def test_at_three_binary_runs_any_is_one_and_a_half_times_pairwise(tasks: list[list[int]]) -> None:
    found = flakiness(tasks)
    assert found.interval.value is not None
    assert unstable(tasks).share == pytest.approx(1.5 * found.interval.value)


def test_flakiness_has_the_interval_of_its_tasks() -> None:
    found = flakiness(F2)
    assert found.interval.value == pytest.approx(5 / 12)
    expected = clustered_wilson([0, 2 / 3, 1, 0], 4)  # one disjoint pair in three runs
    assert (found.interval.low, found.interval.high) == (expected.low, expected.high)
    assert flakiness(F2, ["a"] * 4).interval.reason == "one cluster"


def test_tasks_that_ran_once_say_nothing_about_it() -> None:
    found = flakiness([*F2, ("ok",), ()])
    assert (found.tasks, found.left_out) == (4, 2) and found.interval.value == pytest.approx(5 / 12)
    nothing = flakiness([("ok",), ("wrong",)])
    assert nothing.interval.value is None and nothing.interval.reason == RAN_ONCE
    for call, why in (
        (lambda: flakiness([]), "no task"),
        (lambda: disagreement(["ok"]), "2 runs"),
        (lambda: flakiness(F2, ["a"]), "labels"),
    ):
        with pytest.raises(ValueError, match=why):
            call()


def test_the_share_of_unstable_tasks_never_goes_without_its_k() -> None:
    assert [round(expected_unstable(0.8, k), 3) for k in (2, 3, 5, 10)] == [0.32, 0.48, 0.672, 0.893]
    assert expected_unstable(0.8, 1) == expected_unstable(1.0, 5) == 0.0
    found = unstable(F2)
    assert (found.share, found.k, found.tasks) == (0.5, 3, 4)
    for tasks in ([], [("a", "b"), ("a", "b", "c")], [("a",)]):
        with pytest.raises(ValueError, match="same number of runs"):
            unstable(tasks)
        with pytest.raises(ValueError, match="same number of runs"):
            fleiss_kappa(tasks)
    with pytest.raises(ValueError, match="number of runs"):
        expected_unstable(0.5, 0)


def test_kappa_at_its_ends() -> None:
    assert fleiss_kappa([("a", "a"), ("b", "b")]) == pytest.approx(1.0)
    assert fleiss_kappa([("a", "b"), ("a", "b")]) == pytest.approx(-1.0)
    with pytest.raises(ValueError, match="only one outcome"):
        fleiss_kappa([("a", "a"), ("a", "a")])


# ── ranks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.integers(1, 120), st.floats(0.02, 0.98), st.sampled_from([0.8, 0.9, 0.95]))
@settings(max_examples=60)
def test_ranks_are_the_tightest_that_hold_the_level(n: int, q: float, level: float) -> None:
    tail = (1 - level) / 2 * (1 + 1e-12)
    pmf = [math.comb(n, i) * q**i * (1 - q) ** (n - i) for i in range(n + 1)]
    low = max((rank for rank in range(1, n + 1) if sum(pmf[:rank]) <= tail), default=None)
    high = min((rank for rank in range(1, n + 1) if sum(pmf[rank:]) <= tail), default=None)
    found = quantile_ranks(n, q, level)
    assert (found.low, found.high) == (low, high)
    assert found.coverage >= level - 1e-9


def test_p95_needs_72_independent_runs() -> None:
    assert quantile_ranks(71, 0.95).high is None
    assert quantile_ranks(72, 0.95).high == 72
    assert (fewest_for_upper_bound(0.95, 0.025), fewest_for_upper_bound(0.95, 0.05)) == (72, 59)
    assert fewest_for_upper_bound(0.5, 0.25) == 2 and fewest_for_upper_bound(0.5, 0.9) == 1
    found = quantile_ranks(60, 0.95)
    assert found.low is not None and found.high is None and found.coverage > 0.95
    for call, why in (
        (lambda: quantile_ranks(0, 0.5), "values"),
        (lambda: quantile_ranks(5, 1.0), "quantile"),
        (lambda: fewest_for_upper_bound(1.0, 0.1), "quantile"),
        (lambda: fewest_for_upper_bound(0.5, 0.0), "error"),
    ):
        with pytest.raises(ValueError, match=why):
            call()


# ── times ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _times(times: list[float], cut: list[bool] | None = None, clusters: Any = None, **given_: Any) -> list[Any]:
    return time_quantiles(times, cut or [False] * len(times), clusters or range(len(times)), seed=1, **given_)


def test_one_run_a_task_gets_order_statistics() -> None:
    times = [float(i) for i in range(1, 101)]
    median, p95, p99 = _times(times)
    assert (median.value, median.low, median.high) == (50.5, 40.0, 61.0)
    assert (p95.low, p95.high, p95.reason) == (90.0, 100.0, None)
    assert p99.high is None and p99.reason == "p99 upper bound unavailable: 100 independent runs are too few"
    (tiny,) = _times([3.0], qs=(0.5,))
    assert (tiny.value, tiny.low, tiny.high) == (3.0, None, None)
    assert "lower" in tiny.reason and "upper" in tiny.reason


def test_a_quantile_among_the_cut_is_only_known_to_lie_beyond() -> None:
    times, cut = [float(i) for i in range(1, 91)] + [600.0] * 10, [False] * 90 + [True] * 10
    median, p95, _ = _times(times, cut)
    assert (median.value, median.low, median.high, median.beyond) == (50.5, 40.0, 61.0, 600.0)
    assert (p95.value, p95.high, p95.cut, p95.beyond) == (None, None, 10, 600.0)
    assert p95.low == 90.0 and p95.reason == "value, high above 600, where runs were cut off"
    (edge,) = _times([1.0, 2.0, 600.0], [False, False, True], qs=(0.5,))
    assert edge.value == 2.0  # no interpolation into the unknown


def test_what_ran_longer_than_the_lowest_limit_is_beyond_it_too() -> None:
    # A run cut at 10 may have taken longer than one that finished at 50: their order is not known.
    (median,) = _times([1.0, 2.0, 10.0, 50.0, 60.0], [False, False, True, False, False], qs=(0.6,))
    assert (median.value, median.beyond) == (None, 10.0)


def test_without_cuts_there_is_no_limit() -> None:
    (found,) = _times([1.0, 2.0, 3.0], qs=(0.5,))
    assert (found.cut, found.beyond) == (0, None)


def test_repeats_are_resampled_by_cluster_from_20_on() -> None:
    times = [float(1 + (7 * i) % 60) for i in range(60)]
    clusters = [i // 3 for i in range(60)]
    (found,) = _times(times, clusters=clusters, qs=(0.5,))
    assert found.value == quantile(times, 0.5) and found.low < found.value < found.high
    assert "bootstrap of clusters (1,999 draws, seed 1)" in found.method
    assert _times(times[::-1], clusters=clusters[::-1], qs=(0.5,)) == [found]
    (few,) = _times(times[:57], clusters=clusters[:57], qs=(0.5,))
    assert few.low is None and few.reason == "19 clusters with repeats: a bootstrap of quantiles needs 20"


def test_the_bootstrap_sees_cut_runs() -> None:
    times = [float(i % 30) for i in range(60)]
    cut = [x >= 25 for x in times]
    (p90,) = _times([min(x, 25.0) for x in times], cut, [i // 2 for i in range(60)], qs=(0.9,))
    assert (p90.value, p90.high, p90.beyond) == (None, None, 25.0)


def test_resampled_quantiles_are_those_of_the_resample() -> None:
    import numpy as np

    from evalcore.stats.bootstrap import resamples
    from evalcore.stats.latency import _replicates

    groups = {0: [1.0, 5.0], 1: [2.0], 2: [7.0, 7.0, 9.0], 3: [3.0]}
    known, labels = [x for g in groups.values() for x in g], [i for i, g in groups.items() for _ in g]
    found = _replicates(known, labels, [0.5, 0.9], 3, 40)
    ordered = sorted(map(sorted, groups.values()))
    (counts,) = resamples(4, 40, 3)
    for place, q in enumerate((0.5, 0.9)):
        expected = sorted(
            float(np.quantile([x for i, n in enumerate(row) for x in ordered[i] * n], q)) for row in counts
        )
        assert found[place] == pytest.approx(expected)


@pytest.mark.parametrize(
    "times, cut, clusters, qs, why",
    [
        ([], [], [], (0.5,), "needs times"),
        ([-1.0], [False], [0], (0.5,), "needs times"),
        ([math.nan], [False], [0], (0.5,), "needs times"),
        ([1.0], [False, True], [0], (0.5,), "marks"),
        ([1.0], [False], [0, 1], (0.5,), "labels"),
        ([1.0], [False], [0], (1.0,), "quantile"),
    ],
)
def test_what_is_no_time_raises(times: Any, cut: Any, clusters: Any, qs: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        time_quantiles(times, cut, clusters, qs, seed=1)
