"""Cost per solve, what an extra solve is worth, who is on the front, and what weights decide."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.stats.composite import Dimension, Score, composite, min_max, scale, sensitivity
from evalcore.stats.costs import (
    FIELLER,
    LOG_DELTA,
    NO_UPPER_BOUND,
    bootstrap_interval,
    cost_per_solve,
    cost_per_solved,
    cost_per_solved_se,
    fieller_interval,
    least_cost_per_solve,
    log_interval,
    moments,
)
from evalcore.stats.distributions import t_two_sided
from evalcore.stats.incremental import (
    WorthWord,
    is_it_worth_it,
    net_benefit,
    net_benefit_interval,
    price_interval,
    price_of_extra_solve,
    quadrant,
    value_ranges,
)
from evalcore.stats.intervals import Interval
from evalcore.stats.pareto import front_membership, pareto_front, pareto_hull

COST = [0.3, 0.42, 0.55, 0.38, 0.61, 0.29]
SOLVED = [3.0, 2.0, 0.0, 2.0, 1.0, 3.0]

# ── cost per solve ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_fixture_by_every_method() -> None:
    assert cost_per_solved(COST, SOLVED) == pytest.approx(0.23181818)
    assert cost_per_solved_se(COST, SOLVED) == pytest.approx(0.08768077)
    log, fieller = log_interval(COST, SOLVED), fieller_interval(COST, SOLVED)
    assert (log.low, log.high) == pytest.approx((0.08767881, 0.61291516))
    assert (fieller.low, fieller.high) == pytest.approx((0.09590073, 0.90868906))
    boot = bootstrap_interval(COST, SOLVED, seed=1)
    assert boot.low is not None and boot.high is not None
    assert 0.10 < boot.low < 0.2318 < boot.high < 0.8


@given(
    st.lists(st.tuples(st.floats(0.01, 5.0), st.integers(0, 3)), min_size=2, max_size=15).filter(
        lambda rows: any(s for _, s in rows)
    )
)
def test_fiellers_bounds_are_where_the_difference_vanishes(rows: list[tuple[float, int]]) -> None:
    costs, solved = [c for c, _ in rows], [float(s) for _, s in rows]
    found = fieller_interval(costs, solved)
    assert found.value is not None
    t = t_two_sided(0.95, len(rows) - 1)
    m = moments(costs, solved)
    for bound in (found.low, found.high):
        if bound:  # neither open nor clipped to 0
            spread = math.sqrt(max(0.0, m.var_x - 2 * bound * m.cov + bound * bound * m.var_y))
            assert abs(m.x - bound * m.y) == pytest.approx(t * spread, rel=1e-5, abs=1e-7)
    if found.low is not None:
        assert found.low <= found.value + 1e-12
        assert found.high is None or found.high >= found.value - 1e-12
        assert (found.high is None) == (found.reason == NO_UPPER_BOUND)


def test_where_solving_cannot_be_told_from_never_there_is_no_upper_bound() -> None:
    costs, solved = [1.0, 1.1, 0.9, 1.0, 1.2], [1.0, 0.0, 0.0, 0.0, 0.0]
    found = fieller_interval(costs, solved)
    assert found.low is not None and found.low > 0 and (found.high, found.reason) == (None, NO_UPPER_BOUND)
    assert cost_per_solve(costs, solved) == found  # the default sees it: the mean solved is known to ±100 %
    boot = bootstrap_interval(costs, solved, seed=1)
    assert boot.low is not None and (boot.high, boot.reason) == (None, NO_UPPER_BOUND)


def test_neither_cost_nor_solves_to_be_told_from_0_leaves_0_as_the_bound() -> None:
    found = fieller_interval([5.0, 0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0, 1.0])
    assert (found.low, found.high) == (0.0, None)


def test_the_default_takes_fieller_only_where_it_must() -> None:
    assert cost_per_solve(COST, SOLVED).method == LOG_DELTA  # relative error of the mean solved: .26
    assert cost_per_solve(COST[:4], [3.0, 0.0, 0.0, 2.0]).method == FIELLER


def test_clusters_count_not_tasks() -> None:
    doubled = [x for x in COST for _ in range(2)], [x for x in SOLVED for _ in range(2)]
    labels = [i for i in range(6) for _ in range(2)]
    alone, together = log_interval(COST, SOLVED), log_interval(*doubled, labels)
    assert (together.low, together.high) == pytest.approx((alone.low, alone.high))
    assert cost_per_solved_se(*doubled) < cost_per_solved_se(*doubled, labels)
    assert log_interval(COST, SOLVED, ["a"] * 6).reason == "one cluster"


def test_nothing_paid_costs_nothing_and_has_no_interval() -> None:
    found = cost_per_solve([0.0, 0.0], [1.0, 0.0])
    assert (found.value, found.low, found.high) == (0.0, None, None)
    assert found.reason == "nothing was paid: no variation to measure"
    for function in (log_interval, fieller_interval):
        assert function([0.0, 0.0], [1.0, 1.0]).low is None
    assert bootstrap_interval([0.0, 0.0], [1.0, 1.0], seed=1).low is None


def test_nothing_solved_has_no_price_and_says_what_was_spent() -> None:
    found = cost_per_solve([1.5, 0.25], [0.0, 0.0])
    assert (found.value, found.low, found.high, found.reason) == (None, None, None, "spent 1.75, solved 0")
    assert least_cost_per_solve(30.0, 30) == pytest.approx(1.0 / 0.09503385)
    assert least_cost_per_solve(30.0, 30, 2) == pytest.approx(0.5 / 0.09503385)
    for function in (log_interval, fieller_interval, cost_per_solved_se):
        with pytest.raises(ValueError, match="nothing was solved"):
            function([1.0, 2.0], [0.0, 0.0])


def test_an_unknown_cost_is_never_zero() -> None:
    found = cost_per_solve([1.0, None, 2.0], [1.0, 1.0, 0.0])
    assert (found.value, found.reason) == (None, "cost covers 2 of 3 tasks")


def test_clusters_of_one_price_and_single_clusters_have_no_interval() -> None:
    found = cost_per_solve([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert (found.value, found.low) == (1.0, None) and found.reason is not None and "same cost" in found.reason
    assert cost_per_solve([1.0], [1.0]).reason == "one cluster"


def test_what_is_no_cost_raises() -> None:
    for call, why in (
        (lambda: cost_per_solve([], []), "no task"),
        (lambda: cost_per_solve([-1.0], [1.0]), "at least 0"),
        (lambda: cost_per_solve([1.0], [1.0, 2.0]), "counts"),
        (lambda: cost_per_solve([math.nan], [1.0]), "at least 0"),
        (lambda: least_cost_per_solve(-1.0, 3), "spent"),
        (lambda: least_cost_per_solve(1.0, 0), "runs"),
        (lambda: moments([1.0], [1.0]), "one cluster"),
    ):
        with pytest.raises(ValueError, match=why):
            call()


def test_huge_uncertainty_stays_finite() -> None:
    found = log_interval([1.0, 1e6], [1.0, 1.0])
    assert found.high is not None and math.isfinite(found.high) and found.low is not None and found.low >= 0.0


# ── what an extra solve is worth ─────────────────────────────────────────────────────────────────────────────────────

D_SOLVED = [0.0, 0.33333333, 0.0, 0.33333333, 0.33333333, 0.33333333]
D_COST = [0.05, 0.02, 0.10, 0.04, 0.06, 0.03]


def test_a_price_of_an_extra_solve_only_where_there_is_one() -> None:
    assert price_of_extra_solve(0.7, 0.2, 0.76, 0.35) == pytest.approx(2.5)
    for case, why in (
        ((0.7, 0.2, 0.7, 0.3), "equally good and dearer"),
        ((0.7, 0.2, 0.8, 0.1), "better and cheaper"),
        ((0.7, 0.2, 0.6, 0.3), "worse and dearer"),
        ((0.7, 0.2, 0.6, 0.1), "worse and cheaper"),
        ((0.7, 0.2, 0.8, 0.2), "better and equally dear"),
        ((0.7, math.nan, 0.8, 0.2), "finite"),
    ):
        with pytest.raises(ValueError, match=why):
            price_of_extra_solve(*case)


def test_its_interval_is_fiellers() -> None:
    found = price_interval(D_SOLVED, D_COST)
    assert found.value == pytest.approx(0.05 / 0.22222222, rel=1e-6)
    assert found.low is not None and found.high is not None and found.low < found.value < found.high
    assert price_interval(D_SOLVED, [-x for x in D_COST]).reason is not None
    nothing = price_interval([0.3, -0.3, 0.0], [1.0, 2.0, 1.0])
    assert nothing.value is None and nothing.reason is not None and "undecided" in nothing.reason


def test_net_benefit_of_the_fixture() -> None:
    mean, interval = net_benefit(D_SOLVED, D_COST, 0.5), net_benefit_interval(D_SOLVED, D_COST, 0.5)
    assert (mean.value, mean.se) == pytest.approx((0.06111111, 0.04385723))
    half = t_two_sided(0.95, 5) * 0.04385723
    assert (interval.low, interval.high) == pytest.approx((0.06111111 - half, 0.06111111 + half))
    with pytest.raises(ValueError, match="value of a solve"):
        net_benefit(D_SOLVED, D_COST, -1.0)
    with pytest.raises(ValueError, match="differences"):
        net_benefit(D_SOLVED, D_COST[:2], 1.0)
    assert net_benefit_interval([0.5] * 3, [1.0] * 3, 1.0).low is None


values = st.lists(st.tuples(st.integers(-3, 3).map(lambda x: x / 3), st.floats(-1, 1)), min_size=2, max_size=10)


@given(values, st.floats(0.0, 20.0))
def test_ranges_of_values_agree_with_the_interval_at_each(rows: list[tuple[float, float]], at: float) -> None:
    solved, cost = [s for s, _ in rows], [c for _, c in rows]
    ranges = value_ranges(solved, cost)
    assert ranges[0].low == 0.0 and ranges[-1].high is None
    assert all(a.high == b.low and a.worth != b.worth for a, b in pairwise(ranges))
    inside = next(r for r in ranges if r.low <= at and (r.high is None or at <= r.high))
    interval = net_benefit_interval(solved, cost, at)
    if interval.low is None or interval.high is None or min(abs(interval.low), abs(interval.high)) < 1e-6:
        return
    expected = "worth it" if interval.low > 0 else "not worth it" if interval.high < 0 else "undecided"
    assert inside.worth == expected


def test_ranges_by_hand() -> None:
    found = value_ranges(D_SOLVED, D_COST)
    assert [r.worth for r in found] == ["not worth it", "undecided", "worth it"]
    price = price_interval(D_SOLVED, D_COST)
    assert (found[0].high, found[1].high) == pytest.approx((price.low, price.high))


def _between(low: float | None, high: float | None) -> Interval:
    return Interval(0.0, low, high, 0.95, "for a test", None if low is not None else "one cluster")


UP, DOWN, OPEN, NONE = _between(0.1, 0.2), _between(-0.2, -0.1), _between(-0.1, 0.1), _between(None, None)


@pytest.mark.parametrize(
    "solved, cost, benefit, not_worse, word",
    [
        (UP, UP, UP, None, "buys accuracy"),
        (UP, OPEN, UP, None, "buys accuracy"),
        (UP, DOWN, None, None, "buys accuracy"),
        (UP, DOWN, DOWN, None, "buys accuracy"),
        (UP, UP, DOWN, True, "not worth it"),
        (UP, UP, OPEN, True, "inconclusive"),
        (UP, UP, None, True, "inconclusive"),
        (OPEN, DOWN, OPEN, True, "cheaper, not worse"),
        (OPEN, DOWN, OPEN, False, "inconclusive"),
        (OPEN, DOWN, OPEN, None, "inconclusive"),
        (DOWN, UP, DOWN, False, "dominated"),
        (DOWN, OPEN, DOWN, False, "inconclusive"),
        (OPEN, UP, DOWN, None, "inconclusive"),
        (NONE, NONE, None, None, "inconclusive"),
    ],
)
def test_rows_of_the_verdict(
    solved: Interval, cost: Interval, benefit: Interval | None, not_worse: bool | None, word: WorthWord
) -> None:
    found = is_it_worth_it(solved, cost, benefit, not_worse=not_worse)
    assert found.verdict == word and found.verdict in get_args(WorthWord) and found.reason


def test_quadrants_need_both_intervals_to_exclude_0() -> None:
    assert quadrant(UP, DOWN) == "dominant" and quadrant(DOWN, UP) == "dominated"
    assert quadrant(UP, UP) == "dearer and better" and quadrant(DOWN, DOWN) == "cheaper and worse"
    assert quadrant(UP, OPEN) == quadrant(NONE, UP) == "undecided"


# ── the front ────────────────────────────────────────────────────────────────────────────────────────────────────────

points = st.dictionaries(
    st.sampled_from("ABCDEFGH"),
    st.tuples(st.integers(0, 4).map(float), st.one_of(st.none(), st.integers(0, 4).map(float))),
    max_size=8,
)


@given(points)
def test_the_front_is_what_nobody_beats(case: dict[str, tuple[float, float | None]]) -> None:
    front = pareto_front(case)
    assert front == [name for name in case if name in front]
    known = {name: (a, c) for name, (a, c) in case.items() if c is not None}
    for name, (accuracy, cost) in known.items():
        beaten = any(a >= accuracy and c <= cost and (a, c) != (accuracy, cost) for a, c in known.values())
        assert (name in front) == (not beaten)
    hull = pareto_hull(case)
    assert set(hull) <= set(front)
    for name in hull:
        accuracy, cost = known[name]
        for a1, c1 in known.values():
            for a2, c2 in known.values():
                if c1 < cost < c2:  # a mixture at the same cost
                    assert a1 + (a2 - a1) * (cost - c1) / (c2 - c1) <= accuracy + 1e-9


def test_an_arm_without_a_price_is_on_no_front_and_doubles_stay() -> None:
    assert pareto_front({"a": (0.9, None), "b": (0.5, 1.0), "c": (0.5, 1.0)}) == ["b", "c"]
    assert pareto_front({}) == pareto_hull({}) == []
    line = {"a": (0.2, 1.0), "b": (0.4, 2.0), "c": (0.6, 3.0)}
    assert pareto_hull(line) == ["a", "b", "c"]  # a mixture only equals b
    with pytest.raises(ValueError, match="finite"):
        pareto_front({"a": (math.nan, 1.0)})


def test_who_might_be_on_the_front() -> None:
    # "near" is a hair worse than "best" on tasks where both vary; "far" is beaten everywhere.
    solved = {
        "best": [1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0],
        "near": [1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0],
        "far": [0.0] * 8,
        "unpriced": [1.0] * 8,
    }
    costs = {"best": [1.0] * 8, "near": [1.0] * 8, "far": [2.0] * 8, "unpriced": None}
    found = {m.name: m for m in front_membership(solved, costs, seed=1)}
    assert [m.name for m in front_membership(solved, costs, seed=1)] == list(solved)
    assert (found["best"].on_front, found["best"].plausible) == (True, True)
    assert (found["near"].on_front, found["near"].plausible) == (False, True) and found["near"].share > 0.05
    assert (found["far"].share, found["far"].plausible) == (0.0, False)
    assert (found["unpriced"].share, found["unpriced"].on_front) == (0.0, False)
    assert front_membership(solved, costs, seed=1) == front_membership(solved, costs, seed=1)
    assert front_membership({"a": [1.0]}, {}, seed=1)[0].on_front is False
    with pytest.raises(ValueError, match="solved and costs of a"):
        front_membership({"a": [1.0]}, {"a": [1.0, 2.0]}, seed=1)


# ── the composite ────────────────────────────────────────────────────────────────────────────────────────────────────

DIMENSIONS = [Dimension("success", 0.6, 0.0, 1.0), Dimension("cost", 0.3, 2.0, 0.0), Dimension("time", 0.1, 600, 0)]
ARMS: dict[str, dict[str, float | None]] = {
    "strong": {"success": 0.9, "cost": 1.5, "time": 300.0},
    "cheap": {"success": 0.6, "cost": 0.2, "time": 300.0},
    "weak": {"success": 0.5, "cost": 1.6, "time": 400.0},
}


def test_dimensions_are_scaled_by_declared_anchors_and_clipped() -> None:
    cost = DIMENSIONS[1]
    assert [scale(x, cost) for x in (0.0, 0.5, 2.0, 9.0, -1.0)] == [1.0, 0.75, 0.0, 0.0, 1.0]
    strong, cheap, _ = composite(ARMS, DIMENSIONS)
    assert strong.value == pytest.approx(0.6 * 0.9 + 0.3 * 0.25 + 0.1 * 0.5)
    assert cheap.value == pytest.approx(0.6 * 0.6 + 0.3 * 0.9 + 0.1 * 0.5)


def test_a_score_does_not_depend_on_who_else_is_there_but_min_max_does() -> None:
    alone = {"strong": ARMS["strong"], "cheap": ARMS["cheap"]}
    assert composite(alone, DIMENSIONS) == composite(ARMS, DIMENSIONS)[:2]
    theirs = [s.value for s in composite(ARMS, min_max(ARMS, DIMENSIONS))]
    assert theirs[:2] != [s.value for s in composite(alone, min_max(alone, DIMENSIONS))]
    assert min_max({}, DIMENSIONS) == DIMENSIONS
    anchors = {d.name: (d.worst, d.best) for d in min_max(ARMS, DIMENSIONS)}
    assert anchors == {"success": (0.5, 0.9), "cost": (1.6, 0.2), "time": (400.0, 300.0)}


def test_an_unknown_dimension_leaves_no_score() -> None:
    (found,) = composite({"x": {"success": 0.9, "cost": None}}, DIMENSIONS)
    assert (found.value, found.reason) == (None, "not known: cost, time")
    assert found.scaled == {"success": 0.9, "cost": None, "time": None}


def test_who_wins_where_and_how_often() -> None:
    found = sensitivity(composite(ARMS, DIMENSIONS), DIMENSIONS, seed=3)
    assert found.alone == {"success": ("strong",), "cost": ("cheap",), "time": ("strong", "cheap")}
    assert sum(found.shares.values()) == pytest.approx(1.0)
    assert found.shares["weak"] == 0.0 and (found.draws, found.seed) == (20_000, 3)
    # strong beats cheap where .3 w_success > .65 w_cost: of the ratio of two weights, .65/.95 below, so .316.
    assert found.shares["strong"] == pytest.approx(0.3 / 0.95, abs=5 * found.error)
    assert 0.0 < found.error < 0.004
    first, second = found.along["success"]
    # cheap to strong where w .9 + (1-w)(.75 .25 + .25 .5) = w .6 + (1-w)(.75 .9 + .25 .5): .3 w = .4875 (1-w).
    assert (first.winners, second.winners) == (("cheap",), ("strong",))
    assert first.high == second.low == pytest.approx(0.4875 / 0.7875)
    assert sensitivity(composite(ARMS, DIMENSIONS), DIMENSIONS, seed=3) == found


def test_two_dimensions_are_exact() -> None:
    two = DIMENSIONS[:2]
    found = sensitivity(composite(ARMS, two), two, seed=0)
    assert (found.error, found.draws, found.seed) == (0.0, None, None)
    assert found.shares == pytest.approx({"strong": 0.3 / 0.95, "cheap": 0.65 / 0.95, "weak": 0.0})
    one = DIMENSIONS[:1]
    assert sensitivity(composite(ARMS, one), one, seed=0).shares == {"strong": 1.0, "cheap": 0.0, "weak": 0.0}


def test_ties_are_shared() -> None:
    twins: dict[str, dict[str, float | None]] = {"a": ARMS["strong"], "b": ARMS["strong"]}
    for dimensions in (DIMENSIONS, DIMENSIONS[:2]):
        found = sensitivity(composite(twins, dimensions), dimensions, seed=0)
        assert found.shares == pytest.approx({"a": 0.5, "b": 0.5})
        assert found.along["success"][0].winners == ("a", "b")


def test_a_dimension_without_weight_still_shows_its_sensitivity() -> None:
    only = [Dimension("success", 1.0, 0.0, 1.0), Dimension("cost", 0.0, 2.0, 0.0)]
    found = sensitivity(composite(ARMS, only), only, seed=0)
    assert found.along["success"][0].winners == ("cheap",)


def test_what_is_no_composite_raises() -> None:
    twice: list[Any] = [DIMENSIONS[0], DIMENSIONS[0]]
    for call, why in (
        (lambda: composite(ARMS, []), "needs dimensions"),
        (lambda: composite(ARMS, twice), "named once"),
        (lambda: composite(ARMS, [Dimension("success", -1.0, 0, 1)]), "weight"),
        (lambda: composite(ARMS, [Dimension("success", 0.0, 0, 1)]), "all weights"),
        (lambda: composite(ARMS, [Dimension("success", 1.0, 1, 1)]), "one anchor"),
        (lambda: composite({"x": {"success": math.nan}}, DIMENSIONS[:1]), "finite"),
        (lambda: sensitivity([Score("x", None, {}, "why")], DIMENSIONS, seed=0), "no arm"),
        (lambda: sensitivity(composite(ARMS, DIMENSIONS), DIMENSIONS, seed=0, draws=10), "draws"),
    ):
        with pytest.raises(ValueError, match=why):
            call()
