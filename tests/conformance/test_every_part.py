"""Every adapter, bridge, grader, harness and metric of the core has a conformance test in this folder."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalcore import testing
from evalcore.plugins import load
from evalcore.values import descriptors as d

KINDS = {
    "benchmark": (d.AdapterInfo, testing.AdapterConformance),
    "kind": (d.BridgeInfo, testing.BridgeConformance),
    "grader": (d.GraderInfo, testing.GraderConformance),
    "harness": (d.HarnessInfo, testing.HarnessConformance),
    "metric": (d.MetricInfo, testing.MetricConformance),
}


def suites() -> Iterator[Any]:
    for path in sorted(Path(__file__).parent.glob("test_builtin_*.py")):
        module = importlib.import_module(f"tests.conformance.{path.stem}")
        yield from (cls for cls in vars(module).values() if inspect.isclass(cls))


@pytest.mark.parametrize("attribute", KINDS)
def test_a_part_of_the_core_keeps_its_promises(attribute: str) -> None:
    kind, base = KINDS[attribute]
    tested = {str(getattr(cls, attribute, "")).partition(":")[0] for cls in suites() if issubclass(cls, base)}
    untested = set(load(only=()).all(kind)) - tested
    assert not untested, f"no conformance test here names {sorted(untested)}"
