"""The benchmarks and their parts keep the promises of the core's conformance suites."""

from __future__ import annotations

from typing import Any

import pytest

from evalcore.contracts import ToolkitHandle
from evalcore.testing import AdapterConformance, BridgeConformance, GraderConformance
from evalcore.values.task import BridgeSpec, Call, Task
from plugins.tau2.tests.rig import SLOW_S, task_of, with_toolkit

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


class TestBridge(BridgeConformance):
    """Without a user, so that an agent can begin."""

    kind = "tau2"
    calls = (
        Call("create_task", {"user_id": "user_1", "title": "Tea"}),
        Call("update_task_status", {"task_id": "task_1", "status": "completed"}),
    )

    @pytest.fixture
    def task(self, raw: dict[str, Any]) -> Task:
        return Task("create_task_1", {"domain": "mock", "solo": True, "task": raw})

    @pytest.fixture
    def raw(self) -> dict[str, Any]:
        return with_toolkit(lambda toolkit: task_of(toolkit, "mock", "create_task_1"))

    @pytest.fixture
    def spec(self, raw: dict[str, Any]) -> BridgeSpec:
        async def tools(toolkit: ToolkitHandle) -> Any:
            return await toolkit.request("surface", {"domain": "mock", "solo": True, "task": raw}, SLOW_S)

        return BridgeSpec("tau2", {"solo": True, "tools": with_toolkit(tools)["tools"]})


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
