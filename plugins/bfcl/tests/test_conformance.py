"""Every category and the grader keep the promises of the core's conformance suites."""

from __future__ import annotations

import pytest

from evalcore.testing import AdapterConformance, GraderConformance
from evalcore_bfcl.plugin import CATEGORIES, benchmark_name

pytestmark = pytest.mark.usefixtures("toolkit")


class TestSimplePython(AdapterConformance):
    benchmark = "bfcl-simple-python"


class TestIrrelevance(AdapterConformance):
    benchmark = "bfcl-irrelevance"
    floor = ("declined",)


class TestGrader(GraderConformance):
    grader = "bfcl-single-turn"
    benchmark = "bfcl-simple-python"


class TestGraderOfLiterals(GraderConformance):
    """Arguments in the form of another language's literals take another road through upstream's code."""

    grader = "bfcl-single-turn"
    benchmark = "bfcl-simple-java"


_OTHERS = [c for c in CATEGORIES if c not in ("simple_python", "irrelevance")]


def _suite(category: str) -> type[AdapterConformance]:
    floor = ("declined",) if "irrelevance" in category else ("fail",)
    fields = {"benchmark": benchmark_name(category), "floor": floor, "__module__": __name__}
    return pytest.mark.slow(type(f"Test_{category}", (AdapterConformance,), fields))


globals().update({f"Test_{category}": _suite(category) for category in _OTHERS})
