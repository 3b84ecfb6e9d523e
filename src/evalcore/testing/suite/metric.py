"""Does a metric keep its promises? Subclass `MetricConformance`, name the metric, inherit the tests."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import ClassVar, Final, cast

import pytest

from evalcore.contracts import GradedTrial, Metric
from evalcore.engine.services import LocalServices
from evalcore.plugins import Registry
from evalcore.testing.fakes import graded_trial
from evalcore.testing.suite.base import Conformance
from evalcore.values.descriptors import MetricInfo
from evalcore.values.usage import Usage

DEAR: Final = Usage(calls=40, input=2**40, output=2**30, cost_usd=1e6)


class MetricConformance(Conformance):
    """Required: `metric`, its registered name. `task` is what to make trials of where it reads a verdict's details."""

    metric: ClassVar[str]

    @pytest.fixture
    def info(self, registry: Registry) -> MetricInfo:
        """Its descriptor."""
        return registry.get(MetricInfo, "metric", self.metric)

    @pytest.fixture
    def measure(self, info: MetricInfo, registry: Registry, services: LocalServices) -> Metric:
        """The metric."""
        return cast(Metric, registry.factory(info)(services, info))

    @pytest.fixture
    def groups(self) -> Sequence[Sequence[GradedTrial]]:
        """Tasks, each as its graded trials: every outcome and exit, with and without usage, prices, calls, harm."""
        ordinary = [graded_trial("pass", repeat=1), graded_trial("fail", repeat=2), graded_trial("pass", repeat=3)]
        odd = [
            graded_trial("declined", usage={}, tool_calls=0, tool_errors=0, wall_s=0.0),
            graded_trial("fabricated", exit="refused", harm=True, repeat=2),
            graded_trial("fail", exit="limit", usage={"agent": DEAR, "user": Usage(calls=1)}, repeat=3),
            graded_trial("fail", exit="crashed", usage={"agent": Usage(calls=1, unreported=1)}, repeat=4),
            graded_trial("pass", score=0.5, details={"odd": [None, "\ud800"]}, views={"second": False}, repeat=5),
        ]
        return [ordinary, odd, ordinary[:1], odd[:1], odd[2:3], ordinary + odd]

    def test_it_is_described(self, info: MetricInfo) -> None:
        """One line of summary, and honest about whether it was validated."""
        assert info.summary.strip() and "\n" not in info.summary, "the summary is one line"
        assert info.validated == info.validated.strip(), "`validated` says where it was shown to measure what it claims"

    def test_values_are_ratios(self, measure: Metric, groups: Sequence[Sequence[GradedTrial]]) -> None:
        """A finite numerator and a finite denominator that is not below 0, or None."""
        for trials in groups:
            pair = measure.per_task(trials)
            if pair is None:
                continue
            kinds = [type(v) for v in pair]
            assert set(kinds) <= {int, float} and len(kinds) == 2, f"{_told(trials)}: {pair!r} is no pair of numbers"
            assert all(math.isfinite(v) for v in pair), f"{_told(trials)}: {pair!r} is not finite"
            assert pair[1] >= 0, f"{_told(trials)}: the denominator of {pair!r} is below 0"

    def test_a_task_without_trials_has_no_value(self, measure: Metric) -> None:
        """None, and not 0: nothing was measured."""
        assert measure.per_task([]) is None
        assert measure.per_task(()) is None

    def test_it_has_a_value_somewhere(self, measure: Metric, groups: Sequence[Sequence[GradedTrial]]) -> None:
        """Else the fixture `groups` must hold trials that it can measure."""
        assert any(measure.per_task(trials) is not None for trials in groups), "no value: override the fixture `groups`"

    def test_the_order_of_trials_does_not_matter(
        self, measure: Metric, groups: Sequence[Sequence[GradedTrial]]
    ) -> None:
        """They come in the order of the ledger, which is that of their ends."""
        shuffle = random.Random(0).shuffle
        for trials in groups:
            expected = measure.per_task(trials)
            for other in (tuple(trials), list(reversed(trials)), list(trials)):
                if isinstance(other, list) and other == list(trials):
                    shuffle(other)
                got = measure.per_task(other)
                same = got == expected or (got and expected and all(map(math.isclose, got, expected)))
                assert same, f"{_told(trials)}: {expected} in one order, {got} in another"

    def test_it_remembers_nothing(
        self,
        measure: Metric,
        groups: Sequence[Sequence[GradedTrial]],
        info: MetricInfo,
        registry: Registry,
        services: LocalServices,
    ) -> None:
        """Asked again, after other tasks and in a fresh metric, it gives the same."""
        first = [measure.per_task(trials) for trials in groups]
        again = [measure.per_task(trials) for trials in reversed(groups)][::-1]
        fresh = [registry.factory(info)(services, info).per_task(trials) for trials in groups]
        assert first == again == fresh, f"first {first}, again {again}, in a fresh metric {fresh}"


def _told(trials: Sequence[GradedTrial]) -> str:
    outcomes = [trial.grading.verdict.outcome for trial in trials]
    return f"a task of {len(outcomes)} trials ({', '.join(outcomes)})"
