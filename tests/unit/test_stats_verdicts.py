"""Every verdict word of architecture §8, its conditions, and their order."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.stats.intervals import Interval
from evalcore.stats.verdicts import FEWEST_CLUSTERS, Conclusion, VerdictWord, conclude


def _interval(low: float | None, high: float | None, level: float = 0.95, reason: str | None = None) -> Interval:
    value = 0.0 if low is None or high is None else (low + high) / 2
    return Interval(value, low, high, level, "for a test", reason or ("no variation" if low is None else None))


def _conclude(low: float | None, high: float | None, p: float | None = 0.01, **given_: Any) -> Conclusion:
    settings: dict[str, Any] = {"clusters": 40, "void_rates": (0.0, 0.0), "confirmatory": True, **given_}
    return conclude(_interval(low, high), p, **settings)


# low, high of the 95 % interval; adjusted p; margin; low, high of the 90 % interval; confirmatory -> word, not_worse
TABLE = [
    # a difference, no margin
    (0.02, 0.30, 0.010, None, None, True, "better", None),
    (-0.30, -0.02, 0.010, None, None, True, "worse", None),
    (0.02, 0.30, 0.050, None, None, True, "better", None),
    (0.02, 0.30, 0.051, None, None, True, "inconclusive", None),
    (0.00, 0.30, 0.010, None, None, True, "inconclusive", None),  # 0 is not excluded
    (0.02, 0.30, None, None, None, True, "inconclusive", None),
    (-0.10, 0.30, 0.010, None, None, True, "inconclusive", None),
    (-0.01, 0.01, 0.900, None, None, True, "inconclusive", None),  # narrow, but no margin was declared: no tie
    # the same, exploratory
    (0.02, 0.30, 0.010, None, None, False, "candidate", None),
    (-0.30, -0.02, 0.010, None, None, False, "candidate", None),
    (0.02, 0.30, 0.051, None, None, False, "inconclusive", None),
    # with a margin of 0.05
    (0.02, 0.30, 0.010, 0.05, (0.04, 0.28), True, "better", True),
    (-0.30, -0.02, 0.010, 0.05, (-0.28, -0.04), True, "worse", False),
    (0.01, 0.05, 0.010, 0.05, (0.012, 0.045), True, "negligible", True),
    (-0.05, -0.01, 0.010, 0.05, (-0.045, -0.012), True, "negligible", True),
    (-0.06, 0.05, 0.900, 0.05, (-0.04, 0.04), True, "equivalent", True),  # the 90 % interval decides
    (-0.06, 0.05, 0.900, 0.05, (-0.05, 0.04), True, "inconclusive", False),  # on the margin is not within
    (-0.06, 0.05, 0.900, 0.05, None, True, "inconclusive", False),  # without it the wider one does
    (-0.04, 0.04, 0.900, 0.05, None, True, "equivalent", True),
    (-0.03, 0.20, 0.200, 0.05, (-0.01, 0.18), True, "non-inferior", True),
    (-0.20, 0.03, 0.200, 0.05, (-0.18, 0.01), True, "inconclusive", False),
    (0.01, 0.05, 0.900, 0.05, (0.012, 0.045), True, "equivalent", True),  # p not small: no difference is claimed
    (0.01, 0.05, 0.010, 0.05, (0.012, 0.045), False, "equivalent", True),  # exploratory: too small for a candidate
    (0.02, 0.30, 0.010, 0.05, (0.04, 0.28), False, "candidate", True),
    (-0.03, 0.20, 0.200, 0.05, (-0.01, 0.18), False, "non-inferior", True),
    # no interval
    (None, None, 0.010, None, None, True, "inconclusive", None),
    (None, None, 0.010, 0.05, (None, None), True, "inconclusive", None),
]


@pytest.mark.parametrize("low, high, p, margin, narrow, confirmatory, word, not_worse", TABLE)
def test_the_table(
    low: float | None,
    high: float | None,
    p: float | None,
    margin: float | None,
    narrow: tuple[float | None, float | None] | None,
    confirmatory: bool,
    word: VerdictWord,
    not_worse: bool | None,
) -> None:
    within = None if narrow is None else _interval(*narrow, 0.9)
    found = _conclude(low, high, p, margin=margin, margin_interval=within, confirmatory=confirmatory)
    assert (found.verdict, found.not_worse) == (word, not_worse)
    assert found.reason and "None" not in found.reason


@pytest.mark.parametrize(
    "change, why",
    [
        ({"clusters": 5}, "5 clusters, and a verdict needs 6: no p below 0.0625 is possible"),
        ({"clusters": 0}, "there is nothing to compare"),
        ({"void_rates": (0.10, 0.0)}, "void trials are 10.0% of one arm and 0.0% of the other"),
        ({"void_rates": (0.0, 0.021)}, "void trials"),
        ({"boundary": "another dataset version"}, "not comparable: another dataset version"),
    ],
)
def test_refusals_come_before_any_word(change: dict[str, Any], why: str) -> None:
    for low, high, margin in ((0.2, 0.3, None), (-0.01, 0.01, 0.05)):
        found = _conclude(low, high, margin=margin, **change)
        assert found.verdict == "refused" and why in found.reason and found.not_worse is None


def test_what_is_just_enough_is_not_refused() -> None:
    assert _conclude(0.2, 0.3, clusters=FEWEST_CLUSTERS).verdict == "better"
    assert _conclude(0.2, 0.3, void_rates=(0.30, 0.31)).verdict == "better"  # alike, however many
    assert _conclude(0.2, 0.3, void_rates=(0.1, 0.0), void_tolerance=0.1).verdict == "better"


def test_every_word_is_in_the_table() -> None:
    assert {row[6] for row in TABLE} | {"refused"} == set(get_args(VerdictWord))


bounds = st.one_of(st.none(), st.floats(-1.0, 1.0))


@given(
    st.tuples(bounds, bounds),
    st.tuples(bounds, bounds),
    st.one_of(st.none(), st.floats(0.0, 1.0)),
    st.one_of(st.none(), st.floats(0.001, 0.5)),
    st.integers(0, 12),
    st.booleans(),
)
def test_no_word_says_more_than_its_condition(
    wide: tuple[float | None, float | None],
    narrow: tuple[float | None, float | None],
    p: float | None,
    margin: float | None,
    clusters: int,
    confirmatory: bool,
) -> None:
    low, high = wide if None in wide else sorted(wide)  # type: ignore[type-var]
    low_2, high_2 = narrow if None in narrow else sorted(narrow)  # type: ignore[type-var]
    within = _interval(low_2, high_2, 0.9)
    word = conclude(
        _interval(low, high), p, clusters=clusters, void_rates=(0, 0), confirmatory=confirmatory, margin=margin,
        margin_interval=within,
    ).verdict  # fmt: skip
    assert (word == "refused") == (clusters < 6)
    if word in {"better", "worse", "negligible", "candidate"}:
        assert p is not None and p <= 0.05
        assert (low is not None and low > 0) or (high is not None and high < 0)
        assert confirmatory == (word != "candidate")
    if word in {"equivalent", "non-inferior", "negligible"}:
        assert margin is not None and low_2 is not None and low_2 > -margin
    if word in {"equivalent", "negligible"}:
        assert margin is not None and high_2 is not None and high_2 < margin


@pytest.mark.parametrize(
    "change, why",
    [
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": 0.01}, "cannot decide at alpha 0.01"),
        ({"margin": 0.0}, "margin"),
        ({"margin": 0.1, "margin_interval": _interval(-0.1, 0.1, 0.8)}, "cannot decide a margin"),
        ({"clusters": -1}, "clusters"),
        ({"void_rates": (0.0, 1.5)}, "void rate"),
    ],
)
def test_impossible_inputs_raise(change: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        _conclude(0.1, 0.2, **change)
    with pytest.raises(ValueError, match="p-value"):
        _conclude(0.1, 0.2, 1.5)
