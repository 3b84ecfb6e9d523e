"""Two arms on the same tasks: pairing, intervals, tests, margins, families."""

from __future__ import annotations

import itertools
import math
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.stats.clusters import cluster_robust
from evalcore.stats.intervals import Interval, clustered_wilson, wilson
from evalcore.stats.margins import margin_level, non_inferiority, tost
from evalcore.stats.mcnemar import NEWCOMBE_10, Discordant, mcnemar_exact, mcnemar_midp, newcombe_10
from evalcore.stats.multiplicity import benjamini_hochberg, holm
from evalcore.stats.paired import (
    MCNEMAR,
    NOTHING_IN_COMMON,
    PAIRED_T,
    UNSEEN,
    difference_interval,
    difference_test,
    pair,
    paired_interval,
    paired_mean,
    paired_t,
)
from evalcore.stats.signflip import (
    EXACT_UP_TO,
    monte_carlo_p,
    sign_flip,
    sign_flip_exact,
    smallest_p,
)
from evalcore.stats.unpaired import newcombe_hybrid

A = {"t1": (1, 1, 1), "t2": (1, 0, 1), "t3": (0, 0, 0), "t4": (1, 1, 0), "t5": (0, 0, 1), "t6": (1, 1, 1)}
B = {"t1": (1, 1, 1), "t2": (0, 0, 1), "t3": (0, 0, 0), "t4": (1, 0, 0), "t5": (0, 0, 0), "t6": (1, 1, 0)}
thirds = st.integers(-3, 3).map(lambda x: x / 3)

# ── pairing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_only_what_both_arms_ran_is_compared_and_the_rest_is_named() -> None:
    found = pair({**A, "only a": (1,), "void": ()}, {**B, "void": (1, 1)}, {"t1": "c", "t2": "c"})
    assert found.keys == ("t1", "t2", "t3", "t4", "t5", "t6")
    assert (found.only_a, found.only_b) == (("only a",), ("void",))  # no graded run is not having run
    assert found.clusters[:3] == ("c", "c", ("task", "t3"))
    assert found.differences == pytest.approx([0, 1 / 3, 0, 1 / 3, 1 / 3, 1 / 3])
    assert not found.single
    with pytest.raises(ValueError, match="single pairs"):
        _ = found.discordant


def test_unequal_repeats_weigh_each_task_the_same() -> None:
    found = pair({"x": (1, 1, 1, 1), "y": (0,)}, {"x": (1, 0), "y": (0, 1)})
    assert found.differences == [0.5, -0.5]


def test_two_runs_with_no_task_in_common_have_no_difference() -> None:
    interval = difference_interval(pair({"x": (1,)}, {"y": (1,)}))
    assert interval == Interval(None, None, None, 0.95, PAIRED_T, NOTHING_IN_COMMON)


def test_nan_is_no_score() -> None:
    with pytest.raises(ValueError, match="finite"):
        pair({"x": (math.nan,)}, {"x": (1,)})


def test_the_order_of_tasks_is_irrelevant() -> None:
    assert pair(A, B) == pair(dict(reversed(A.items())), dict(reversed(B.items())))


# ── the interval ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_repeats_get_t_on_clusters() -> None:
    interval = difference_interval(pair(A, B))
    assert (interval.value, interval.low, interval.high) == pytest.approx((0.22222222, 0.04158014, 0.4028643))
    assert interval.method == PAIRED_T


def test_single_trials_get_newcombes_interval() -> None:
    pairs = [(1, 1)] * 36 + [(1, 0)] * 14 + [(0, 1)] * 3 + [(0, 0)] * 47
    a, b = ({f"{i:03}": (pair_[j],) for i, pair_ in enumerate(pairs)} for j in (0, 1))
    found = pair(a, b)
    assert found.single and found.discordant == Discordant(36, 14, 3, 47)
    interval = difference_interval(found)
    assert (interval.value, interval.low, interval.high) == pytest.approx((0.11, 0.02947721, 0.18734643), abs=1e-6)
    assert interval.method == NEWCOMBE_10
    clustered = pair(a, b, dict.fromkeys(a, "one"))
    assert not clustered.single and difference_interval(clustered).reason == "one cluster"


def test_the_test_fits_the_trials() -> None:
    repeats = pair(A, B)
    assert difference_test(repeats, seed=0).p == 0.125
    assert difference_test(repeats, seed=0).method == "sign flips of clusters, every one of 2^6"
    many = pair({f"{i}": (1, 0) for i in range(25)}, {f"{i}": (0, i % 2) for i in range(25)})
    assert difference_test(many, seed=3).method == "sign flips of clusters (9,999 draws, seed 3)"
    single = pair({f"{i}": (float(i < 20),) for i in range(40)}, {f"{i}": (float(i < 8),) for i in range(40)})
    found = difference_test(single, seed=0)
    assert (found.p, found.method, found.mid_p) == (mcnemar_exact(12, 0), MCNEMAR, mcnemar_midp(12, 0))
    with pytest.raises(ValueError, match="no task in common"):
        difference_test(pair({"x": (1,)}, {"y": (1,)}), seed=0)


def test_clusters_of_several_tasks_count_once() -> None:
    # Three tasks that always move together say no more than one.
    d = [0.0, 0.25, 0.5, 1.0]
    alone = paired_interval(d, bounds=None)
    together = paired_interval([x for x in d for _ in range(3)], [i for i in range(4) for _ in range(3)], bounds=None)
    assert (together.low, together.high) == pytest.approx((alone.low, alone.high))


@pytest.mark.parametrize("same", [0.0, 1 / 3, 1.0, -1.0])
def test_all_ties_are_neither_a_point_nor_unknown(same: float) -> None:
    interval = paired_interval([same] * 20)
    assert interval.low is not None and interval.high is not None
    unseen = 1 - 0.05 ** (1 / 20)  # 0 of 20 clusters are unlike these: .139 at most
    assert (interval.low, interval.high) == pytest.approx((same - unseen * (1 + same), same + unseen * (1 - same)))
    assert interval.low < interval.high and interval.method == UNSEEN
    money = paired_interval([same] * 20, bounds=None)
    assert (money.low, money.high) == (None, None) and money.reason is not None


@given(st.lists(st.tuples(thirds, st.sampled_from("abcdef")), min_size=1, max_size=15))
def test_a_difference_of_rates_stays_within_1(tasks: list[tuple[float, str]]) -> None:
    interval = paired_interval([d for d, _ in tasks], [c for _, c in tasks])
    assert interval.value is not None
    if interval.low is not None and interval.high is not None:
        assert -1.0 <= interval.low <= interval.value + 1e-12
        assert interval.value - 1e-12 <= interval.high <= 1.0
        assert interval.low < interval.high
    else:
        assert interval.reason == "one cluster"


def test_what_cannot_be_a_difference_raises() -> None:
    for d, why in (([], "no differences"), ([1.5], "outside"), ([math.inf], "finite")):
        with pytest.raises(ValueError, match=why):
            paired_interval(d)
    for d, why in (([0.5], "one cluster"), ([0.5, 0.5], "no variation")):
        for function in (paired_mean, paired_t):
            with pytest.raises(ValueError, match=why):
                function(d)


@given(st.lists(thirds, min_size=2, max_size=12), st.lists(thirds, min_size=12, max_size=12))
def test_pairing_is_millers_correlation_formula(a: list[float], rest: list[float]) -> None:
    b = rest[: len(a)]
    if len(set(a)) < 2 or len(set(b)) < 2:
        return
    se_a, se_b = (cluster_robust(arm).se or 0.0 for arm in (a, b))
    r = statistics.correlation(a, b)
    expected = math.sqrt(max(0.0, se_a**2 + se_b**2 - 2 * se_a * se_b * r))
    assert cluster_robust([x - y for x, y in zip(a, b, strict=True)]).se == pytest.approx(expected, abs=1e-7)


# ── sign flips ───────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(thirds, min_size=1, max_size=9))
def test_the_exact_p_counts_every_sign_vector(d: list[float]) -> None:
    observed = abs(sum(d))
    flips = itertools.product((1, -1), repeat=len(d))
    totals = [abs(sum(s * x for s, x in zip(signs, d, strict=True))) for signs in flips]
    assert sign_flip(d, seed=0).p == sum(t >= observed - 1e-9 for t in totals) / len(totals)


def test_ties_count_although_rounding_parts_them() -> None:
    d = [0.1, 0.2, 0.3]  # 0.1 + 0.2 - 0.3 is 5.6e-17 in floating point
    assert sign_flip_exact(d) == 2 / 8
    assert sign_flip_exact([0.1 + 0.2, -0.3]) == 1.0


def test_five_clusters_can_never_reach_five_percent() -> None:
    assert sign_flip([1.0] * 5, seed=0).p == smallest_p(5) == 0.0625
    assert sign_flip([1.0] * 6, seed=0).p == smallest_p(6) == 0.03125
    assert smallest_p(1) == 1.0


def test_no_difference_at_all_is_p_1() -> None:
    assert sign_flip([0.0] * 7, seed=0).p == 1.0
    assert sign_flip([0.0] * 30, seed=0).p == 1.0


def test_single_trials_make_it_the_exact_mcnemar_test() -> None:
    for b, c in ((4, 0), (8, 4), (5, 1), (0, 0)):
        assert sign_flip([1.0] * b + [-1.0] * c + [0.0] * 3, seed=0).p == mcnemar_exact(b, c)


def test_clusters_flip_whole() -> None:
    d, labels = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0], list("aabbcc")
    found = sign_flip(d, labels, seed=0)
    assert (found.p, found.clusters, found.draws, found.seed) == (0.25, 3, None, None)


def test_many_clusters_are_drawn_and_can_be_drawn_again() -> None:
    d = [1 / 3] * 9 + [-1 / 3] * 3 + [0.0] * 10 + [0.7, -0.2]
    found = sign_flip(d, seed=5)
    assert len(d) > EXACT_UP_TO and (found.draws, found.seed, found.clusters) == (9_999, 5, 24)
    assert found == sign_flip(d[::-1], seed=5)
    assert found.p == pytest.approx(sign_flip_exact(d), abs=0.012)
    assert sign_flip([1.0] * 200, seed=1).p == monte_carlo_p(0, 9_999) == 1e-4  # never 0


def test_what_cannot_be_flipped_raises() -> None:
    for call, why in (
        (lambda: sign_flip([], seed=0), "no differences"),
        (lambda: sign_flip([math.nan], seed=0), "finite"),
        (lambda: sign_flip([1.0], seed=0, draws=0), "draws"),
        (lambda: sign_flip_exact([1.0] * 25), "too many"),
        (lambda: smallest_p(0), "clusters"),
        (lambda: monte_carlo_p(3, 2), "3 of 2"),
        (lambda: monte_carlo_p(-1, 2), "at least 0"),
    ):
        with pytest.raises(ValueError, match=why):
            call()


# ── single trials ────────────────────────────────────────────────────────────────────────────────────────────────────

discordant = st.tuples(*[st.integers(0, 12)] * 4).filter(sum).map(lambda c: Discordant(*c))


@given(st.integers(0, 40), st.integers(0, 40))
def test_mid_p_is_smaller_and_both_are_symmetric(b: int, c: int) -> None:
    exact, mid = mcnemar_exact(b, c), mcnemar_midp(b, c)
    assert 0.0 < mid <= exact <= 1.0
    assert (exact, mid) == (mcnemar_exact(c, b), mcnemar_midp(c, b))
    m = b + c
    head = sum(math.comb(m, i) for i in range(min(b, c) + 1)) / 2**m
    assert exact == pytest.approx(min(1.0, 2 * head))


def test_without_discordant_tasks_p_is_1_and_the_interval_no_point() -> None:
    assert mcnemar_exact(0, 0) == mcnemar_midp(0, 0) == 1.0
    for pairs in (Discordant(40, 0, 0, 8), Discordant(48, 0, 0, 0), Discordant(0, 0, 0, 3)):
        low, high = newcombe_10(pairs)
        assert low < 0.0 < high


@given(discordant)
def test_newcombes_interval_holds_the_difference_and_mirrors(pairs: Discordant) -> None:
    low, high = newcombe_10(pairs)
    assert -1.0 <= low <= pairs.difference + 1e-12 and pairs.difference - 1e-12 <= high <= 1.0
    mirrored = newcombe_10(Discordant(pairs.both, pairs.second, pairs.first, pairs.neither))
    assert mirrored == pytest.approx((-high, -low))


def test_newcombes_published_table() -> None:
    # Newcombe 1998 (Stat Med 17:2635), table II, method 10.
    for cells, expected in (
        ((36, 12, 2, 0), (0.0569, 0.3404)),
        ((36, 14, 0, 0), (0.1528, 0.4167)),
        ((0, 30, 0, 0), (0.8395, 1.0)),
    ):
        assert newcombe_10(Discordant(*cells)) == pytest.approx(expected, abs=2e-4)


def test_counts_are_whole_and_there_are_some() -> None:
    for call in (
        lambda: mcnemar_exact(-1, 0),
        lambda: mcnemar_midp(0, -1),
        lambda: newcombe_10(Discordant(0, 0, 0, 0)),
        lambda: newcombe_10(Discordant(-1, 2, 3, 4)),
    ):
        with pytest.raises(ValueError, match="task"):
            call()


# ── unpaired ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_unpaired_difference_uses_the_arms_own_intervals() -> None:
    a, b = clustered_wilson([1.0, 0.5, 1.0], 6), clustered_wilson([0.0, 0.5, 0.0], 6)
    found = newcombe_hybrid(a, b)
    assert found.value == pytest.approx(2 / 3) and "unpaired" in found.method
    assert a.low is not None and b.high is not None and found.low is not None
    assert found.low == pytest.approx(2 / 3 - math.hypot(5 / 6 - a.low, b.high - 1 / 6))


def test_an_arm_without_an_interval_leaves_none() -> None:
    one, fine = clustered_wilson([1.0], 3), wilson(1, 2)
    found = newcombe_hybrid(one, fine)
    assert (found.value, found.low) == (0.5, None) and found.reason == "an arm has no interval: one cluster"
    nothing = Interval(None, None, None, 0.95, "none", "nothing ran")
    assert newcombe_hybrid(fine, nothing).reason == newcombe_hybrid(nothing, fine).reason == "nothing ran"
    with pytest.raises(ValueError, match="levels"):
        newcombe_hybrid(fine, wilson(1, 2, 0.9))


# ── margins ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(thirds, min_size=3, max_size=15).filter(lambda d: len(set(d)) > 1), st.floats(0.01, 1.0))
def test_tests_of_margins_are_their_intervals(d: list[float], margin: float) -> None:
    interval = paired_interval(d, level=margin_level(0.05), bounds=None)
    assert interval.low is not None and interval.high is not None
    assert (tost(d, -margin, margin).p <= 0.05) == (-margin <= interval.low and interval.high <= margin)
    assert (non_inferiority(d, margin) <= 0.05) == (-margin <= interval.low)


def test_margins_respect_clusters() -> None:
    d, labels = [0.0, 0.1, -0.1, 0.05, 0.0, 0.02], list("aabbcc")
    assert non_inferiority(d, 0.2, labels) != non_inferiority(d, 0.2)
    assert tost(d, -0.2, 0.2, labels).p > tost(d, -0.2, 0.2).p or tost(d, -0.2, 0.2, labels).p > 0


def test_what_is_no_margin_raises() -> None:
    for call, why in (
        (lambda: tost([0.1, 0.2], 0.1, 0.1), "not below"),
        (lambda: tost([0.1, 0.1], -0.1, 0.1), "no variation"),
        (lambda: non_inferiority([0.1, 0.2], 0.0), "margin"),
        (lambda: non_inferiority([0.1], 0.1), "one cluster"),
        (lambda: margin_level(0.5), "alpha"),
        (lambda: margin_level(0.05, 0), "claim"),
    ):
        with pytest.raises(ValueError, match=why):
            call()
    assert margin_level(0.05) == pytest.approx(0.9) and margin_level(0.05, 2) == pytest.approx(0.95)


# ── families ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.one_of(st.none(), st.floats(0.0, 1.0)), max_size=12))
def test_holm_keeps_order_and_counts_what_was_not_computed(p: list[float | None]) -> None:
    adjusted = holm(p)
    assert adjusted == holm([1.0 if x is None else x for x in p])
    pairs = [(1.0 if x is None else x, q) for x, q in zip(p, adjusted, strict=True)]
    assert all(x <= q <= min(1.0, len(p) * x) + 1e-15 or q == 1.0 for x, q in pairs)
    assert all(q1 <= q2 for (_, q1), (_, q2) in itertools.pairwise(sorted(pairs)))


def test_a_contrast_that_was_not_computed_still_costs() -> None:
    assert holm([0.02, None, None]) == pytest.approx([0.06, 1.0, 1.0])
    assert holm([0.02]) == [0.02] and holm([]) == [] and benjamini_hochberg([]) == []


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12))
def test_q_values_are_monotone_and_never_above_holm(p: list[float]) -> None:
    q, h = benjamini_hochberg(p), holm(p)
    assert all(x <= y + 1e-12 for x, y in zip(q, h, strict=True))
    assert all(a[1] <= b[1] for a, b in itertools.pairwise(sorted(zip(p, q, strict=True))))


@pytest.mark.parametrize("p", [[-0.1], [1.1], [math.nan]])
def test_a_p_value_is_a_chance(p: list[Any]) -> None:
    for function in (holm, benjamini_hochberg):
        with pytest.raises(ValueError, match="p-value"):
            function(p)
