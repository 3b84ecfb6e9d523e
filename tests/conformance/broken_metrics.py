"""Metrics, each of which breaks one rule of the suite. Run by `test_suites_catch`; none may pass."""
# ruff: noqa: N801 - a broken part stands where a fixture looks for it, under the name of an attribute

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from attrs import evolve

from evalcore.contracts import GradedTrial, Metric
from evalcore.plugins import Registry
from evalcore.testing import MetricConformance
from evalcore.values.descriptors import MetricInfo
from tests.conformance.parts import ErrorShare


class MetricCase(MetricConformance):
    """A metric that is broken in one way."""

    plugins = ("tests.conformance.parts",)
    metric = "error-share"
    metric_class: ClassVar[Any] = ErrorShare
    breaks: ClassVar[str]
    says: ClassVar[str]

    @pytest.fixture
    def measure(self) -> Metric:
        metric: Metric = self.metric_class()
        return metric


def valued(value: Any) -> Any:
    class Broken(ErrorShare):
        def per_task(self, trials: Sequence[GradedTrial]) -> Any:
            return value if trials else None

    return Broken


class TestMetricOfTwoLines(MetricCase):
    breaks, says = "test_it_is_described", "the summary is one line"

    @pytest.fixture
    def info(self, registry: Registry) -> MetricInfo:
        return evolve(registry.get(MetricInfo, "metric", "error-share"), summary="one\ntwo")


class TestValueOfOneNumber(MetricCase):
    breaks, says = "test_values_are_ratios", "not iterable"
    metric_class = valued(0.5)


class TestValueOfTruth(MetricCase):
    breaks, says = "test_values_are_ratios", "is no pair of numbers"
    metric_class = valued((True, 1))


class TestValueWithoutEnd(MetricCase):
    breaks, says = "test_values_are_ratios", "is not finite"
    metric_class = valued((float("inf"), 1.0))


class TestValueUnderNothing(MetricCase):
    breaks, says = "test_values_are_ratios", "is below 0"
    metric_class = valued((1.0, -1.0))


class TestMetricThatTrusts(MetricCase):
    breaks, says = "test_values_are_ratios", "KeyError: 'agent'"

    class metric_class(ErrorShare):
        def per_task(self, trials: Sequence[GradedTrial]) -> Any:
            return sum(t.attempt.usage["agent"].tokens for t in trials), len(trials)


class TestZeroForNothing(MetricCase):
    breaks, says = "test_a_task_without_trials_has_no_value", "(0.0, 1.0)"

    class metric_class(ErrorShare):
        def per_task(self, trials: Sequence[GradedTrial]) -> Any:
            return super().per_task(trials) or (0.0, 1.0)


class TestNoValueAtAll(MetricCase):
    breaks, says = "test_it_has_a_value_somewhere", "override the fixture `groups`"
    metric_class = valued(None)


class TestFirstTrialOnly(MetricCase):
    breaks, says = "test_the_order_of_trials_does_not_matter", "in one order"

    class metric_class(ErrorShare):
        def per_task(self, trials: Sequence[GradedTrial]) -> Any:
            return (float(trials[0].grading.verdict.outcome == "pass"), 1.0) if trials else None


class TestRunningTotal(MetricCase):
    breaks, says = "test_it_remembers_nothing", "in a fresh metric"

    class metric_class(ErrorShare):
        total = 0.0

        def per_task(self, trials: Sequence[GradedTrial]) -> Any:
            self.total += len(trials)
            return (self.total, 1.0) if trials else None
