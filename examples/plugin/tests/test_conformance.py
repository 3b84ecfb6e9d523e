"""The promises that every part makes to evalcore. Each class inherits its tests: start with these, add your own."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import ClassVar

import pytest
from evalcore_zoo.data import FILE, SHA256

from evalcore.contracts import GradedTrial
from evalcore.testing import (
    AdapterConformance,
    BridgeConformance,
    GraderConformance,
    MetricConformance,
    graded_trial,
)
from evalcore.values.json import JSONObject
from evalcore.values.task import Call


class TestAdapter(AdapterConformance):
    benchmark = "zoo-feeding"


class TestSplit(AdapterConformance):
    benchmark = "zoo-feeding@several"


class TestBridge(BridgeConformance):
    kind = "zoo"
    config: ClassVar[JSONObject] = {"store": {"fish": 4, "hay": 2}}
    calls = (
        Call("look", {"animal": "otter"}),
        Call("feed", {"animal": "otter", "food": "fish", "units": 2}),
        Call("order", {"food": "hay", "units": 3}),
        Call("store", {}),
    )


class TestGrader(GraderConformance):
    grader = "zoo-state"
    benchmark = "zoo-feeding"


class TestMetric(MetricConformance):
    metric = "zoo-waste"

    @pytest.fixture
    def groups(self) -> Sequence[Sequence[GradedTrial]]:
        """This metric reads the details of our own grader, so the trials must have them."""
        careful = graded_trial("pass", details={"given": 4, "wasted": 0})
        careless = graded_trial("fail", details={"given": 6, "wasted": 5}, repeat=2)
        idle = graded_trial("fail", details={"given": 0, "wasted": 0}, repeat=3)
        return [[careful, careless, idle], [careful], [idle], [graded_trial("fail")]]


def test_the_pinned_digest_is_that_of_the_file() -> None:
    assert hashlib.sha256(FILE.read_bytes()).hexdigest() == SHA256
