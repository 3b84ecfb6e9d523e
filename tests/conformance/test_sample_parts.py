"""The sound parts that the broken ones are made from pass their suites whole."""

from __future__ import annotations

from typing import ClassVar

from evalcore.testing import BridgeConformance, MetricConformance
from evalcore.values.json import JSONObject
from evalcore.values.task import Call


class TestShelf(BridgeConformance):
    plugins = ("tests.conformance.parts",)
    kind = "shelf"
    config: ClassVar[JSONObject] = {"things": ["cup"]}
    calls = (Call("put", {"thing": "book"}), Call("look", {}))


class TestErrorShare(MetricConformance):
    plugins = ("tests.conformance.parts",)
    metric = "error-share"
