"""Every category, the bridge and the graders keep the promises of the core's conformance suites."""

from __future__ import annotations

from typing import ClassVar

import pytest

from evalcore.testing import AdapterConformance, BridgeConformance, GraderConformance
from evalcore.values.json import JSONObject
from evalcore.values.task import Call
from evalcore_bfcl.plugin import DIALOGUES, benchmark_name
from plugins.bfcl.tests.rig import HERE

pytestmark = pytest.mark.usefixtures("toolkit", "agentic")


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


class TestFunctionsThatComeLate(AdapterConformance):
    benchmark = "bfcl-multi-turn-miss-func"
    sample = 6


class TestMemory(AdapterConformance):
    benchmark = "bfcl-memory-rec-sum"
    sample = 3  # each with up to ten sessions before it


class TestStatefulClasses(BridgeConformance):
    kind = "bfcl-stateful"
    config: ClassVar[JSONObject] = {"category": "multi_turn_base", "id": "multi_turn_base_1"}
    calls = (Call("mkdir", {"dir_name": "new"}), Call("cd", {"folder": "new"}), Call("pwd", {}))


class TestAMemoryByKey(BridgeConformance):
    kind = "bfcl-stateful"
    config: ClassVar[JSONObject] = {"category": "memory_kv", "id": "memory_kv_0-customer-0"}
    calls = (
        Call("core_memory_add", {"key": "tea", "value": "oolong"}),
        Call("core_memory_key_search", {"query": "tea"}),
    )


class TestGraderOfTurns(GraderConformance):
    grader = "bfcl-multi-turn"
    benchmark = "bfcl-multi-turn-base"


class TestGraderOfLastWords(GraderConformance):
    grader = "bfcl-agentic"
    benchmark = "bfcl-memory-rec-sum"


_TOLD = ("simple_python", "irrelevance", "multi_turn_miss_func", "memory_rec_sum")
_OTHERS = [c for c in HERE if c not in _TOLD]


def _suite(category: str) -> type[AdapterConformance]:
    floor = ("declined",) if "irrelevance" in category else ("fail",)
    fields = {"benchmark": benchmark_name(category), "floor": floor, "__module__": __name__}
    if category in DIALOGUES:
        fields["sample"] = 5
    return pytest.mark.slow(type(f"Test_{category}", (AdapterConformance,), fields))


globals().update({f"Test_{category}": _suite(category) for category in _OTHERS})
