"""Power before the data, what would settle a contrast after it, and looks in between."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcore.stats.anytime import (
    asymptotic_radius,
    confidence_sequence,
    mixture_radius,
    sign_e_value,
    sign_evidence,
)
from evalcore.stats.distributions import t_two_sided
from evalcore.stats.power import (
    Design,
    detectable_by_cores,
    detectable_difference,
    detectable_difference_t,
    plan,
    power_t,
    tasks_needed,
    tasks_needed_t,
    within_variance,
)
from evalcore.stats.power_mcnemar import (
    mcnemar_detectable,
    mcnemar_power_exact,
    mcnemar_tasks_needed,
    mcnemar_tasks_needed_exact,
)
from evalcore.stats.settle import need
from evalcore.stats.spending import error_of_looks, look_bounds, spent_obrien_fleming, spent_pocock

MILLER = Design(1 / 9, 1 / 6, 1 / 6, 1, 1)

# ── power ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_millers_examples() -> None:
    assert math.ceil(tasks_needed(0.03, MILLER)) == 3876
    assert math.ceil(tasks_needed(0.03, Design(1 / 9, 1 / 6, 1 / 6, 10, 10))) == 1260
    assert math.ceil(tasks_needed(0.03, Design(1 / 9, 1 / 6, 1 / 6, math.inf, math.inf))) == 969
    assert detectable_difference(198, MILLER) == pytest.approx(0.1327, abs=1e-4)
    assert detectable_difference(198, Design(1 / 9, 1 / 6, 1 / 6, 10, 10)) == pytest.approx(0.0757, abs=1e-4)


def test_a_published_plan_is_reproduced() -> None:
    found = detectable_by_cores(80, repeats=3, terminals=5, rate=0.5, correlation=0.3, heterogeneity=0.01, alpha=0.0083)
    assert found == pytest.approx(0.07106045858786311)


def test_few_tasks_find_less_than_z_promises() -> None:
    assert power_t(80, 0.071, 0.18257419, alpha=0.0083) == pytest.approx(0.7768782)
    assert detectable_difference_t(10, MILLER) > 1.1 * detectable_difference(10, MILLER)
    assert detectable_difference_t(2000, MILLER) == pytest.approx(detectable_difference(2000, MILLER), rel=1e-3)
    assert tasks_needed_t(0.2, MILLER) == 90  # z says 88


@given(st.integers(2, 200), st.floats(1e-6, 0.2), st.floats(0.3, 0.999), st.floats(0.01, 4.0))
@settings(max_examples=40)
def test_the_detectable_difference_is_found_with_the_power_asked_for(
    n: int, alpha: float, power: float, omega2: float
) -> None:
    design = Design(omega2, 0.0, 0.0, 1, 1)
    found = detectable_difference_t(n, design, alpha=alpha, power=power)
    assert power_t(n, found, math.sqrt(omega2), alpha=alpha) == pytest.approx(power, abs=1e-6)


def test_without_an_effect_power_is_alpha() -> None:
    assert power_t(12, 0.0, 1.0, alpha=0.05) == pytest.approx(0.05)
    assert power_t(12, -0.4, 1.0) == pytest.approx(power_t(12, 0.4, 1.0))


def test_a_plan_shows_that_repeats_saturate_and_tasks_do_not() -> None:
    cells = {(c.tasks, c.repeats): c.effect for c in plan([50, 200], [1, 5, 100], 1 / 9, 1 / 6, 1 / 6)}
    assert cells[50, 1] > cells[50, 5] > cells[50, 100] > cells[200, 5]
    assert cells[50, 100] / cells[50, 5] > 0.75


def test_variances_that_are_declared_or_measured() -> None:
    assert within_variance(0.5, 0.3) == pytest.approx(0.175)
    for call, why in (
        (lambda: within_variance(1.5, 0.3), "rate"),
        (lambda: within_variance(0.5, -0.3), "correlation"),
        (lambda: Design(-1, 0, 0, 1, 1).variance, "variance"),
        (lambda: Design(0, 0, 0, 1, 1).variance, "variance"),
        (lambda: Design(1, 1, 1, 0, 1).variance, "at least once"),
        (lambda: detectable_difference(0, MILLER), "tasks"),
        (lambda: detectable_difference(5, MILLER, alpha=1.0), "alpha"),
        (lambda: detectable_difference_t(1, MILLER), "tasks"),
        (lambda: detectable_difference_t(5, MILLER, alpha=0.5, power=0.4), "without any difference"),
        (lambda: tasks_needed(0.0, MILLER), "difference"),
        (lambda: power_t(1, 0.1, 1.0), "tasks"),
        (lambda: power_t(5, 0.1, 0.0), "spread"),
        (lambda: detectable_by_cores(0, repeats=1, rate=0.5, correlation=0.3, heterogeneity=0.1), "cores"),
    ):
        with pytest.raises(ValueError, match=why):
            call()


# ── McNemar ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _power_by_hand(n: int, p10: float, p01: float, alpha: float) -> float:
    from evalcore.stats.mcnemar import mcnemar_exact

    total = 0.0
    for b in range(n + 1):
        for c in range(n + 1 - b):
            if mcnemar_exact(b, c) <= alpha:
                ways = math.comb(n, b) * math.comb(n - b, c)
                total += ways * p10**b * p01**c * (1 - p10 - p01) ** (n - b - c)
    return total


@pytest.mark.parametrize("n, p10, p01", [(1, 0.5, 0.1), (12, 0.4, 0.1), (30, 0.3, 0.3), (25, 0.5, 0.5), (20, 0.6, 0.0)])
def test_exact_power_counts_every_table(n: int, p10: float, p01: float) -> None:
    assert mcnemar_power_exact(n, p10, p01) == pytest.approx(_power_by_hand(n, p10, p01, 0.05), abs=1e-12)


def test_alpha_itself_rejects() -> None:
    assert mcnemar_power_exact(5, 1.0, 0.0, alpha=0.0625) == pytest.approx(1.0)
    assert mcnemar_power_exact(5, 1.0, 0.0, alpha=0.0624) == 0.0
    assert mcnemar_power_exact(5, 0.0, 0.0) == 0.0


def test_the_formula_is_short_for_the_exact_test() -> None:
    formula = math.ceil(mcnemar_tasks_needed(0.2, 0.1))
    assert formula == 155
    assert mcnemar_power_exact(formula, 0.15, 0.05) == pytest.approx(0.762, abs=1e-3)
    found = mcnemar_tasks_needed_exact(0.15, 0.05)
    assert found is not None and found > formula
    assert all(mcnemar_power_exact(n, 0.15, 0.05) >= 0.8 for n in range(found, found + 60))
    assert mcnemar_power_exact(found - 1, 0.15, 0.05) < 0.8
    assert mcnemar_tasks_needed_exact(0.0501, 0.05) is None


@given(st.integers(1, 3000), st.floats(0.01, 1.0))
def test_the_detectable_difference_solves_the_formula(n: int, discordant: float) -> None:
    found = mcnemar_detectable(n, discordant)
    if found is None:
        assert mcnemar_tasks_needed(discordant, discordant) > n - 1e-6
    else:
        assert mcnemar_tasks_needed(discordant, found) == pytest.approx(n, rel=1e-6)


def test_what_no_test_can_find_is_none() -> None:
    assert mcnemar_detectable(10, 0.1) is None  # one discordant task in ten
    assert mcnemar_detectable(1, 0.5) is None
    for call, why in (
        (lambda: mcnemar_tasks_needed(0.1, 0.2), "discordant"),
        (lambda: mcnemar_tasks_needed(0.1, 0.0), "difference"),
        (lambda: mcnemar_tasks_needed(1.1, 0.1), "discordant"),
        (lambda: mcnemar_tasks_needed_exact(0.1, 0.1), "equal shares"),
        (lambda: mcnemar_power_exact(5, 0.6, 0.6), "discordant"),
        (lambda: mcnemar_power_exact(0, 0.1, 0.1), "tasks"),
        (lambda: mcnemar_detectable(0, 0.1), "tasks"),
    ):
        with pytest.raises(ValueError, match=why):
            call()


# ── what would settle it ─────────────────────────────────────────────────────────────────────────────────────────────


def test_enough_is_enough() -> None:
    found = need(0.01, 50, 3, 0.05)
    assert (found.clusters, found.buy) == (50, "nothing")


def test_clusters_are_bought_first() -> None:
    found = need(0.05, 40, 3, 0.05, share_from_repeats=0.4, available=400)
    assert found.buy == "clusters" and found.clusters is not None and found.clusters > 40
    assert t_two_sided(0.95, found.clusters - 1) * 0.05 * math.sqrt(40 / found.clusters) <= 0.05
    fewer = found.clusters - 1
    assert t_two_sided(0.95, fewer - 1) * 0.05 * math.sqrt(40 / fewer) > 0.05


def test_repeats_help_only_as_far_as_their_share() -> None:
    found = need(0.03, 40, 3, 0.055, share_from_repeats=0.5, available=40)
    assert found.buy == "repeats" and found.repeats is not None
    spread = 0.03 * math.sqrt(0.5 + 0.5 * 3 / found.repeats)
    assert (
        t_two_sided(0.95, 39) * spread
        <= 0.055
        < t_two_sided(0.95, 39) * 0.03 * math.sqrt(0.5 + 0.5 * 3 / (found.repeats - 1))
    )
    assert need(0.03, 40, 3, 0.03, share_from_repeats=0.5, available=40).buy == "out of reach"
    assert need(0.03, 40, 1, 0.055, available=40).buy == "out of reach"  # tasks ran once: the share is not known


def test_where_tasks_run_out_both_are_needed() -> None:
    found = need(0.05, 40, 3, 0.075, share_from_repeats=0.6, available=50)
    assert found.buy == "clusters and repeats"
    assert found.repeats_with_all is not None and found.repeats is not None
    assert 3 < found.repeats_with_all < found.repeats
    assert need(1.0, 2, 1, 1e-9).clusters is None
    assert need(1.0, 2, 1, 1e-9).buy == "out of reach"


def test_what_cannot_be_asked_raises() -> None:
    for call, why in (
        (lambda: need(0.0, 5, 1, 0.1), "standard error"),
        (lambda: need(0.1, 1, 1, 0.1), "clusters"),
        (lambda: need(0.1, 5, 0, 0.1), "at least once"),
        (lambda: need(0.1, 5, 1, 0.0), "half-width"),
        (lambda: need(0.1, 5, 1, 0.1, available=4), "available"),
        (lambda: need(0.1, 5, 1, 0.1, share_from_repeats=2.0), "share"),
    ):
        with pytest.raises(ValueError, match=why):
            call()


# ── planned looks ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_published_bounds() -> None:
    # Lan-DeMets spending of O'Brien-Fleming's kind: 2 looks 2.963, 1.969; 3 looks 3.710, 2.511, 1.993; 5 looks below.
    assert look_bounds([0.5, 1.0]) == pytest.approx([2.96258804, 1.96859564], abs=1e-6)
    assert look_bounds([1 / 3, 2 / 3, 1.0]) == pytest.approx([3.710, 2.511, 1.993], abs=1e-3)
    assert look_bounds([0.2, 0.4, 0.6, 0.8, 1.0]) == pytest.approx([4.877, 3.357, 2.680, 2.290, 2.031], abs=1e-3)
    assert look_bounds([0.5, 1.0], 0.05, "Pocock") == pytest.approx([2.15699922, 2.20097696], abs=1e-6)
    assert look_bounds([1.0]) == pytest.approx([1.959963985], abs=1e-6)


def test_uncorrected_looks_err_more_than_they_say() -> None:
    fifths = [0.2, 0.4, 0.6, 0.8, 1.0]
    assert error_of_looks(fifths, [1.959964] * 5) == pytest.approx(0.142, abs=5e-4)
    assert error_of_looks(fifths, [2.413] * 5) == pytest.approx(0.05, abs=1e-4)  # Pocock 1977
    assert error_of_looks([0.3], [1.959964]) == pytest.approx(0.05, abs=1e-6)


@given(st.lists(st.integers(10, 99), min_size=0, max_size=4, unique=True), st.sampled_from([0.01, 0.05, 0.1]))
@settings(max_examples=6)
def test_bounds_spend_exactly_what_was_declared(looks: list[int], alpha: float) -> None:
    fractions = [*(x / 100 for x in sorted(looks)), 1.0]
    for spending in ("O'Brien-Fleming", "Pocock"):
        assert error_of_looks(fractions, look_bounds(fractions, alpha, spending)) == pytest.approx(alpha, rel=1e-6)


def test_many_looks_stay_exact() -> None:
    fractions = [i / 20 for i in range(1, 21)]
    bounds = look_bounds(fractions)
    assert error_of_looks(fractions, bounds) == pytest.approx(0.05, rel=1e-5)
    assert all(a > b for a, b in pairwise(bounds))


def test_spending_ends_at_alpha() -> None:
    assert spent_obrien_fleming(1.0) == pytest.approx(0.05) == spent_pocock(1.0)
    assert spent_obrien_fleming(0.5, 0.025, sides=1) == pytest.approx(spent_obrien_fleming(0.5) / 2)
    for call, why in (
        (lambda: spent_obrien_fleming(0.0), "fraction"),
        (lambda: spent_obrien_fleming(0.5, 0.05, 3), "one side or two"),
        (lambda: spent_pocock(1.1), "fraction"),
        (lambda: look_bounds([0.5, 0.5]), "increasing"),
        (lambda: look_bounds([0.001, 1.0]), "leave that look out"),
        (lambda: error_of_looks([0.5, 1.0], [2.0]), "for each look"),
        (lambda: error_of_looks([0.5, 1.1], [2.0, 2.0]), "increasing"),
    ):
        with pytest.raises(ValueError, match=why):
            call()


# ── looks at any time ────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_e_value_is_a_fair_bet() -> None:
    # Averaged over fair coins it is 1, whatever the number of tasks: an e-value.
    for m in range(12):
        mean = sum(math.comb(m, b) / 2**m * sign_e_value(b, m - b) for b in range(m + 1))
        assert mean == pytest.approx(1.0)
    assert sign_e_value(8, 0) == pytest.approx(28.444, abs=1e-3)
    assert sign_e_value(3000, 0) > 1e300  # no overflow
    assert sign_e_value(3000, 3000) < 1.0
    with pytest.raises(ValueError, match="tasks"):
        sign_e_value(-1, 0)


def test_evidence_is_followed_task_by_task() -> None:
    found = sign_evidence([1, 0, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1])
    assert found.rejected_at == 9  # the eighth win: 28.4 >= 20
    assert found.largest == pytest.approx(sign_e_value(8, 0)) and found.e_value == pytest.approx(sign_e_value(8, 3))
    assert sign_evidence([]).e_value == 1.0 and sign_evidence([0] * 9).rejected_at is None
    for winners, alpha in (([2], 0.05), ([1], 0.0)):
        with pytest.raises(ValueError, match=r"won by|alpha"):
            sign_evidence(winners, alpha)


def test_confidence_sequences_are_wider_than_one_look_and_shrink() -> None:
    assert asymptotic_radius(50, 0.35) == pytest.approx(0.15079832)
    assert asymptotic_radius(200, 0.35) == pytest.approx(0.0787, abs=1e-4)
    assert mixture_radius(200, variance=0.25) == pytest.approx(0.10805016)
    assert asymptotic_radius(200, 0.35) > 1.96 * 0.35 / math.sqrt(200)
    assert mixture_radius(50, variance=1.0) > mixture_radius(51, variance=1.0)


def test_a_confidence_sequence_waits_or_is_told_bounds() -> None:
    values = [0.0, 1.0, 1.0] * 10
    assert confidence_sequence(values[:29]).reason == "29 tasks: the sequence may be read from 30 on"
    found = confidence_sequence(values)
    assert found.low is not None and found.high is not None and found.low < 2 / 3 < found.high
    bounded = confidence_sequence(values[:3], (0.0, 1.0))
    assert (bounded.low, bounded.high) == (0.0, 1.0)
    assert confidence_sequence([0.5] * 40).reason == "no two tasks differ: no variation to measure"
    assert confidence_sequence([0.5] * 40, (0.0, 1.0)).low is not None
    for call, why in (
        (lambda: confidence_sequence([]), "no values"),
        (lambda: confidence_sequence([2.0], (0.0, 1.0)), "outside"),
        (lambda: asymptotic_radius(0, 1.0), "tasks"),
        (lambda: asymptotic_radius(9, 1.0, r=0.0), "r is"),
        (lambda: asymptotic_radius(9, -1.0), "spread"),
        (lambda: mixture_radius(9, variance=0.0), "variance"),
        (lambda: mixture_radius(9, variance=1.0, rho=-1.0), "rho"),
        (lambda: mixture_radius(9, variance=1.0, alpha=1.0), "alpha"),
    ):
        with pytest.raises(ValueError, match=why):
            call()
