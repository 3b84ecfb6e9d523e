"""Benchmarks that cost nothing to think about: what is left is evalcore's own price. Used by `bench/run.py` only.

`load-small` has one tool and a short prompt; `load-big` has 14 tools and a system prompt of 1,000 words.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from evalcore.contracts import JudgeReplies, OpenTrial, Selector, Services
from evalcore.engine.trial import standard_deliverable
from evalcore.hookspecs import AdapterInfo, GraderInfo, hookimpl
from evalcore.values.arm import Arm
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import Assignment, BridgeSpec, Dataset, Gold, Message, Task
from evalcore.values.trace import TraceReader
from evalcore.values.trial import Deliverable, Evidence, Verdict

TASKS = 100


@hookimpl
def evalcore_adapters() -> list[AdapterInfo]:
    """Two sizes."""
    return [
        AdapterInfo(
            f"load-{size}", f"load test, {size}", "evalcore_load:LoadAdapter", parameters={"big": size == "big"}
        )
        for size in ("small", "big")
    ]


@hookimpl
def evalcore_graders() -> list[GraderInfo]:
    """Reads the answer."""
    return [GraderInfo("load", "the answer says sunny", "evalcore_load:LoadGrader")]


class LoadAdapter:
    """The same question, many times."""

    grader = "load"

    def __init__(self, services: Services, info: AdapterInfo, selector: Selector) -> None:
        self._big = bool(info.parameters["big"])
        self._tools: list[JSONValue] = [_tool(n, self._big) for n in range(14 if self._big else 1)]
        self._system = "word " * 1000 if self._big else "You are a helpful assistant."

    async def dataset(self) -> Dataset:
        """Made up."""
        return Dataset("load", "1", "2026-01-01", "CC0-1.0", "made up")

    async def tasks(self) -> AsyncIterator[Task]:
        """A hundred tasks."""
        for number in range(TASKS):
            yield Task(f"t{number}", {"question": f"What is the weather in town {number}?"})

    async def assign(self, task: Task, arm: Arm) -> Assignment:
        """Two messages and the tools."""
        messages = (Message("system", self._system), Message("user", str(task.data["question"])))
        return Assignment(messages, (BridgeSpec("toolset", {"tools": self._tools}),))

    async def capture(self, trial: OpenTrial) -> Deliverable:
        """Answer and calls."""
        return standard_deliverable(trial)

    async def collect(self, trial: OpenTrial) -> Evidence:
        """Nothing."""
        return Evidence()

    async def gold(self, task: Task) -> Gold | None:
        """None."""
        return None


def _tool(number: int, big: bool) -> JSONObject:
    return {
        "name": f"get_weather_{number}",
        "description": "The weather of a town today." * (5 if big else 1),
        "input_schema": {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "the town's name"}, "units": {"type": "string"}},
            "required": ["city"],
        },
        "result": "sunny, 21 degrees",
    }


class LoadGrader:
    """Passes a sunny answer."""

    def __init__(self, services: Services, info: object) -> None:
        pass

    async def grade(
        self, task: Task, deliverable: Deliverable, evidence: Evidence, trace: TraceReader, judge: JudgeReplies | None
    ) -> Verdict:
        """Pass or fail."""
        return Verdict("pass" if "sunny" in (deliverable.answer or "") else "fail", 1.0)

    async def stamp(self) -> JSONObject:
        """One version."""
        return {"load": "1"}
