"""The toy grader keeps the promises of graders."""

from __future__ import annotations

from evalcore.testing import GraderConformance


class TestToyGrader(GraderConformance):
    plugins = ("evalcore.testing.toy",)
    grader = "toy"
    benchmark = "toy-weather"
