"""What a study could find is said before it runs, from declared or piloted variances, both printed."""

from __future__ import annotations

import pytest
from attrs import evolve

from evalcore.errors import ConfigError
from evalcore.report.claims import Claim
from evalcore.report.planning import Size, assumed, cost_of_trial, piloted, power_of, sides_of
from evalcore.report.sides import Side, SideBuilder
from evalcore.stats.power import Design, detectable_difference_t, power_t
from evalcore.stats.variance import difference_components
from evalcore.values.measure import find_measure
from evalcore.values.study import Analysis
from evalcore.values.usage import Usage
from tests.unit.compare_samples import run, side
from tests.unit.report_samples import BFCL, CONSTRAINED, REACT, attempt, graded

CLAIM = Claim("constrained", "plain", CONSTRAINED.arm.digest, REACT.arm.digest, BFCL.selector, "pass@1", 0.05)
PASS = find_measure("pass@1")


def test_the_study_as_written_finds_what_the_formula_says() -> None:
    found = power_of(CLAIM, 2, Size(80, 80, 80), 3, Analysis(), assumed())
    planned = found.as_planned
    assert planned is not None and (planned.tasks, planned.repeats, planned.trials) == (80, 3, 480)
    design = Design(0.01, 0.25 * 0.7, 0.25 * 0.7, 3, 3)
    assert found.alpha == 0.025  # two declared claims
    assert planned.detectable == pytest.approx(detectable_difference_t(80, design, alpha=0.025, power=0.8))
    assert power_t(80, planned.detectable or 0, design.variance**0.5, alpha=0.025) == pytest.approx(0.8)
    assert found.spread is not None and found.spread.source.startswith("assumed, not measured: pass rate 0.5")


def test_more_tasks_than_there_are_are_marked() -> None:
    found = power_of(CLAIM, 1, Size(80, 80, 100), 1, Analysis(), assumed(), tasks=(100, 160), other_repeats=(1,))
    assert [(o.tasks, o.reachable, o.planned) for o in found.options] == [
        (80, True, True), (100, True, False), (160, False, False),
    ]  # fmt: skip


def test_clusters_are_what_is_drawn() -> None:
    apart = power_of(CLAIM, 1, Size(80, 80, 80), 2, Analysis(), assumed()).as_planned
    shared = power_of(CLAIM, 1, Size(80, 10, 80), 2, Analysis(), assumed()).as_planned
    assert apart is not None and shared is not None
    assert shared.detectable == pytest.approx(
        detectable_difference_t(10, Design(0.01, 0.175, 0.175, 16, 16), alpha=0.05, power=0.8)
    )
    assert (shared.detectable or 0) > (apart.detectable or 1)


def test_the_chance_to_show_a_margin_grows_with_what_is_bought() -> None:
    found = power_of(CLAIM, 1, Size(100, 100, 400), 3, Analysis(), assumed(), tasks=(100, 400), other_repeats=(3,))
    small, large = (o.margin_power for o in found.options)
    assert small is not None and large is not None and small < 0.5 < large < 1
    assert found.options[0].cost_usd is None


def test_a_pilot_gives_the_variances_and_the_price() -> None:
    stamped = run("pilot", (REACT, CONSTRAINED))
    scores = {f"t{n}": (n % 2, 1, int(n > 2)) for n in range(8)}
    other = {f"t{n}": (int(n > 4), int(n > 1), 0) for n in range(8)}
    a, b = side(scores, stamped, CONSTRAINED), side(other, stamped, REACT)
    spread = piloted(a, b, BFCL.selector, PASS)
    by_hand = difference_components(
        [[float(x) for x in scores[t]] for t in sorted(scores)], [[float(x) for x in other[t]] for t in sorted(other)]
    )
    assert (spread.omega2, spread.sigma2_a, spread.sigma2_b) == pytest.approx(
        (by_hand.omega2, by_hand.sigma2_a, by_hand.sigma2_b)
    )
    assert spread.source.startswith("from the pilot pilot: 8 tasks of both arms, ICC ")
    assert cost_of_trial(a, BFCL.selector) == pytest.approx(0.01)
    priced = power_of(CLAIM, 1, Size(8, 8, 8), 3, Analysis(), spread, trial_usd=0.02, tasks=(8,), other_repeats=(3,))
    assert priced.options[0].cost_usd == pytest.approx(8 * 3 * 0.02)


def test_a_pilot_that_says_too_little_says_so() -> None:
    once = {f"t{n}": (1,) for n in range(8)}
    stamped = run("pilot", (REACT, CONSTRAINED))
    with pytest.raises(ConfigError, match="the pilot says too little about pass@1") as caught:
        piloted(side(once, stamped, CONSTRAINED), side(once, stamped, REACT), BFCL.selector, PASS)
    assert "each task twice or more" in str(caught.value.hint)


def test_an_unknown_price_in_a_pilot_is_no_price() -> None:
    builder = SideBuilder(run("pilot"), REACT)
    builder.add(*graded(attempt("t1", usage={"agent": Usage(1, 1, 1)}), "pass"))
    assert cost_of_trial(builder.finish(), BFCL.selector) is None


def test_a_pilot_s_arms_are_found_by_digest_or_by_handle() -> None:
    stamped = run("pilot", (REACT, CONSTRAINED))
    sides: dict[str, Side] = {arm.arm.digest: side({"t": (1, 1)}, stamped, arm) for arm in (REACT, CONSTRAINED)}
    assert sides_of(CLAIM, sides) == (sides[CONSTRAINED.arm.digest], sides[REACT.arm.digest])
    assert sides_of(evolve(CLAIM, digest_a="other"), sides) is not None
    assert sides_of(evolve(CLAIM, digest_a="other", a="stranger"), sides) is None


def test_assumptions_are_checked() -> None:
    for wrong in ((1.2, 0.3, 0.01), (0.5, 2.0, 0.01), (0.5, 0.3, float("inf"))):
        with pytest.raises(ValueError, match=r"rate|correlation|variance"):
            assumed(*wrong)
