"""A toy benchmark: look up the weather of a city and repeat it. Needs no toolkit, no data and no network.

Register this module in a `Registry`, or name it as a plugin's entry point. `toy-weather:N` has N tasks (24 by default);
`toy-patches` has gold that the oracle cannot play, `toy-open` has none; `toy-dialogues` and its kin (`toy_dialogue`)
take several turns; grading `toy-slow` takes a while, for tests
that stop a run in the middle of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from evalcore.contracts import JudgeReplies, OpenTrial, Selector, Services
from evalcore.engine.trial import standard_deliverable
from evalcore.errors import ConfigError
from evalcore.hookspecs import AdapterInfo, BridgeInfo, GraderInfo, hookimpl
from evalcore.testing.toy_dialogue import DIALOGUES
from evalcore.values.arm import Arm
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import (
    Assignment,
    BridgeSpec,
    Call,
    Dataset,
    Gold,
    GoldCalls,
    GoldPatch,
    Limits,
    Message,
    Task,
)
from evalcore.values.trace import TraceReader
from evalcore.values.trial import Deliverable, Evidence, Verdict

CITIES: Final = ("Bern", "Oslo", "Lima", "Quito", "Accra", "Hanoi")
_TASKS: Final = 24


@hookimpl
def evalcore_adapters() -> list[AdapterInfo]:
    """The toy benchmarks."""
    factory = "evalcore.testing.toy:ToyAdapter"
    return [
        AdapterInfo("toy-weather", "look up a city's weather (toy)", factory, takes_parameter="number of tasks"),
        AdapterInfo("toy-patches", "a toy whose gold is a patch", factory, parameters={"gold": "patch"}),
        *DIALOGUES,
        AdapterInfo(
            "toy-open", "a toy without gold", factory, parameters={"gold": "none"}, floor_note="the floor is 0 %"
        ),
        AdapterInfo(
            "toy-slow",
            "toy-weather, each verdict of which takes three quarters of a second",
            factory,
            parameters={"grading_s": 0.75},
            takes_parameter="number of tasks",
        ),
    ]


@hookimpl
def evalcore_bridges() -> list[BridgeInfo]:
    """Somebody to talk to."""
    return [BridgeInfo("toy-talk", "a toy's dialogue", "evalcore.testing.toy_dialogue:TalkBridge")]


@hookimpl
def evalcore_graders() -> list[GraderInfo]:
    """The toy graders."""
    return [
        GraderInfo("toy", "the answer names the weather of the city", "evalcore.testing.toy:ToyGrader"),
        GraderInfo("toy-talk", "each city was looked up in its turn", "evalcore.testing.toy_dialogue:TalkGrader"),
    ]


def weather_of(city: str) -> str:
    """What the toy world's weather is."""
    return f"{10 + 3 * CITIES.index(city)} degrees in {city}"


class ToyAdapter:
    """Tasks `t0`, `t1`, …; clusters are cities."""

    grader = "toy"

    def __init__(self, services: Services, info: AdapterInfo, selector: Selector) -> None:
        parameter = selector.parameter or str(_TASKS)
        if not parameter.isdigit():
            raise ConfigError(f"{info.name}: {parameter!r} is no number of tasks")
        self._count = int(parameter)
        self._gold = info.parameters.get("gold", "calls")
        grading_s = info.parameters.get("grading_s")
        self._more: JSONObject = {} if grading_s is None else {"grading_s": grading_s}

    async def dataset(self) -> Dataset:
        """Made up."""
        return Dataset("toy", "1", "2026-01-01", "CC0-1.0", "made up")

    async def tasks(self) -> AsyncIterator[Task]:
        """The tasks in order."""
        for number in range(self._count):
            city = CITIES[number % len(CITIES)]
            data: JSONObject = {"city": city, "tools": _tools(city), **self._more}
            yield Task(f"t{number}", data, weather_of(city), cluster=city)

    async def assign(self, task: Task, arm: Arm) -> Assignment:
        """One question, one tool."""
        question = Message("user", f"What is the weather in {task.data['city']}? ({task.id})")
        return Assignment(
            (Message("system", "You answer questions about the weather."), question),
            (BridgeSpec("toolset", {"tools": task.data["tools"]}),),
            limits=Limits(model_calls=20),
        )

    async def capture(self, trial: OpenTrial) -> Deliverable:
        """Answer and calls."""
        return standard_deliverable(trial)

    async def collect(self, trial: OpenTrial) -> Evidence:
        """Nothing to measure."""
        return Evidence()

    async def gold(self, task: Task) -> Gold | None:
        """Look it up, repeat it."""
        if self._gold == "patch":
            return GoldPatch("")
        if self._gold == "none":
            return None
        call = Call("get_weather", {"city": task.data["city"]})
        return GoldCalls(((call,),), str(task.reference))


def _tools(city: str) -> list[JSONValue]:
    schema: JSONObject = {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "the city's name"}},
        "required": ["city"],
    }
    return [
        {
            "name": "get_weather",
            "description": "Weather of a city today.",
            "input_schema": schema,
            "result": weather_of(city),
        }
    ]


class ToyGrader:
    """Passes an answer that holds the reference, after `grading_s` of the task."""

    def __init__(self, services: Services | None = None, info: object = None) -> None:
        pass

    async def grade(
        self, task: Task, deliverable: Deliverable, evidence: Evidence, trace: TraceReader, judge: JudgeReplies | None
    ) -> Verdict:
        """Pass or fail; also says whether the tool was called at all."""
        grading_s = task.data.get("grading_s")
        if isinstance(grading_s, float):
            await asyncio.sleep(grading_s)
        passed = deliverable.answer is not None and str(task.reference) in deliverable.answer
        return Verdict(
            "pass" if passed else "fail",
            1.0 if passed else 0.0,
            details={"answer": deliverable.answer},
            views={"looked it up": bool(deliverable.calls)},
        )

    async def stamp(self) -> JSONObject:
        """The toy's own version."""
        return {"toy": "1"}
