"""The benchmarks and their parts keep the promises of the core's conformance suites."""

from __future__ import annotations

import pytest

from evalcore.testing import AdapterConformance, GraderConformance

pytestmark = pytest.mark.usefixtures("toolkit")


class TestTelecom(AdapterConformance):
    benchmark = "tau2-telecom"
    sample = 4


class TestSolo(AdapterConformance):
    benchmark = "tau2-telecom-solo@small"
    sample = 3


class TestGrader(GraderConformance):
    grader = "tau2"
    benchmark = "tau2-telecom@small"


@pytest.mark.slow
class TestRetailGrader(GraderConformance):
    grader = "tau2"
    benchmark = "tau2-retail@test"


@pytest.mark.slow
class TestRetail(AdapterConformance):
    benchmark = "tau2-retail@test"
    sample = 6
    floor = ("fail", "pass", "ungraded")


@pytest.mark.slow
class TestAirline(AdapterConformance):
    benchmark = "tau2-airline@test"
    sample = 6
    floor = ("fail", "pass")
