"""For authors of parts, and for evalcore's own tests.

Conformance suites: subclass one in a test file, name your part, and inherit its tests. They need pytest.

    from evalcore.testing import AdapterConformance

    class TestFeeding(AdapterConformance):
        benchmark = "zoo-feeding"

Fakes: `FakeServices`, `FakeTrial`, `FakeTools`, `ScriptedChannel`, `MemoryBlobs`, `FakeClock`, and `play`, which takes
one task through a whole trial in memory. `evalcore.testing.toy` is a benchmark that needs nothing.

Everything here is imported when it is asked for, so that the toy costs no import of pytest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from evalcore.testing.fakes import (
        FakeClock,
        FakeServices,
        FakeTools,
        FakeTrial,
        MemoryBlobs,
        ScriptedChannel,
        called,
        graded_trial,
        said,
    )
    from evalcore.testing.rig import Played, play
    from evalcore.testing.suite.adapter import AdapterConformance
    from evalcore.testing.suite.base import Conformance
    from evalcore.testing.suite.bridge import BridgeConformance
    from evalcore.testing.suite.grader import GraderCase, GraderConformance
    from evalcore.testing.suite.harness import HarnessConformance
    from evalcore.testing.suite.metric import MetricConformance

__all__ = [
    "AdapterConformance",
    "BridgeConformance",
    "Conformance",
    "FakeClock",
    "FakeServices",
    "FakeTools",
    "FakeTrial",
    "GraderCase",
    "GraderConformance",
    "HarnessConformance",
    "MemoryBlobs",
    "MetricConformance",
    "Played",
    "ScriptedChannel",
    "called",
    "graded_trial",
    "play",
    "said",
]

_HOMES: Final = {
    "AdapterConformance": "suite.adapter",
    "BridgeConformance": "suite.bridge",
    "Conformance": "suite.base",
    "GraderCase": "suite.grader",
    "GraderConformance": "suite.grader",
    "HarnessConformance": "suite.harness",
    "MetricConformance": "suite.metric",
    "Played": "rig",
    "play": "rig",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'fakes')}"), name)
