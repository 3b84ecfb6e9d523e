"""Parts for tests: each does what the test puts into `given`. Registered through the same hooks as any plugin's.

Benchmark `in-test:N` is the toy's, with the bridge, grader, capture and collect of the test.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from attrs import define, evolve

from evalcore.contracts import CallContext, HarnessVersion, Job, OpenTrial, Selector, Services
from evalcore.engine.trial import standard_deliverable
from evalcore.hookspecs import AdapterInfo, BridgeInfo, GraderInfo, HarnessInfo, ModelInfo, hookimpl
from evalcore.testing.toy import ToyAdapter, ToyGrader, weather_of
from evalcore.values.arm import Arm
from evalcore.values.json import JSONObject
from evalcore.values.task import Assignment, BridgeSpec, Limits, Task
from evalcore.values.trial import Deliverable, Evidence, HarnessExit, Verdict

HERE = "tests.faults.parts"


# ── what a well-behaved part does ────────────────────────────────────────────────────────────────────────────────────


def city_of(body: JSONObject) -> str:
    """The city that a conversation is about."""
    messages: Any = body["messages"]
    question = next(m["content"] for m in messages if m["role"] == "user")
    return str(question.split(" in ")[1].split("?")[0])


def said(message: JSONObject, **usage: Any) -> JSONObject:
    """A Chat Completions response."""
    counts = {"prompt_tokens": 10, "completion_tokens": 5} | usage
    return {"choices": [{"index": 0, "message": {"role": "assistant", **message}}], "usage": counts}


def called(*calls: tuple[Any, Any]) -> JSONObject:
    """A response of tool calls: (name, arguments as sent)."""
    wanted = [
        {"id": f"c{i}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for i, (name, arguments) in enumerate(calls)
    ]
    return said({"content": None, "tool_calls": wanted})


async def answer(body: JSONObject, context: CallContext) -> JSONObject:
    """A model that knows the weather."""
    return said({"content": weather_of(city_of(body))})


async def ask_once(job: Job) -> HarnessExit:
    """A harness that passes the model's first answer on."""
    assert job.model is not None
    body: JSONObject = {"messages": [m.as_json() for m in job.messages]}
    response: Any = await job.model.complete(body)
    return HarnessExit(response["choices"][0]["message"]["content"])


async def open_toolset(spec: BridgeSpec, trial: OpenTrial) -> Any:
    """The declared tools."""
    from evalcore.builtin.toolset import ToolsetBridge

    return await ToolsetBridge().open(spec, trial)


async def grade_toy(*args: Any) -> Any:
    """The toy's own grader."""
    return await ToyGrader().grade(*args)


async def capture_answer(trial: OpenTrial) -> Any:
    """Answer and calls."""
    return standard_deliverable(trial)


async def collect_nothing(trial: OpenTrial) -> Any:
    """No evidence."""
    return Evidence()


# ── what the test wants instead ──────────────────────────────────────────────────────────────────────────────────────


@define
class Given:
    """What each part does now."""

    model: Callable[[JSONObject, CallContext], Awaitable[Any]] = answer
    harness: Callable[[Job], Awaitable[Any]] = ask_once
    bridge: Callable[[BridgeSpec, OpenTrial], Awaitable[Any]] = open_toolset
    grader: Callable[..., Awaitable[Any]] = grade_toy
    capture: Callable[[OpenTrial], Awaitable[Any]] = capture_answer
    collect: Callable[[OpenTrial], Awaitable[Any]] = collect_nothing
    assign: Callable[[Assignment], Assignment] = lambda assignment: assignment
    limits: Limits = Limits()
    services: Services | None = None  # those of the run, once it has begun


given = Given()


@contextmanager
def behaving(**parts: Any) -> Iterator[Given]:
    """Within the block, parts do as told; those not named behave well."""
    global given  # noqa: PLW0603 - one run at a time, and its parts are made from names
    before, given = given, Given(**parts)
    try:
        yield given
    finally:
        given = before


# ── the parts ────────────────────────────────────────────────────────────────────────────────────────────────────────


@hookimpl
def evalcore_adapters() -> list[AdapterInfo]:
    return [AdapterInfo("in-test", "the toy, with the test's parts", f"{HERE}:TestedAdapter", takes_parameter="tasks")]


@hookimpl
def evalcore_bridges() -> list[BridgeInfo]:
    return [BridgeInfo("in-test", "the test's bridge", f"{HERE}:TestedBridge")]


@hookimpl
def evalcore_graders() -> list[GraderInfo]:
    return [GraderInfo("in-test", "the test's grader", f"{HERE}:TestedGrader")]


@hookimpl
def evalcore_harnesses() -> list[HarnessInfo]:
    return [HarnessInfo("in-test", "the test's harness", f"{HERE}:TestedHarness")]


@hookimpl
def evalcore_models() -> list[ModelInfo]:
    return [ModelInfo("in-test", "the test's model", f"{HERE}:TestedProvider")]


class TestedAdapter(ToyAdapter):
    """The toy's tasks."""

    __test__ = False
    grader = "in-test"

    def __init__(self, services: Services, info: AdapterInfo, selector: Selector) -> None:
        super().__init__(services, info, selector)
        given.services = services

    async def assign(self, task: Task, arm: Arm) -> Assignment:
        plain = await super().assign(task, arm)
        config = plain.bridges[0].config
        return given.assign(evolve(plain, bridges=(BridgeSpec("in-test", config),), limits=given.limits))

    async def capture(self, trial: OpenTrial) -> Deliverable:
        return await given.capture(trial)  # type: ignore[no-any-return]

    async def collect(self, trial: OpenTrial) -> Evidence:
        return await given.collect(trial)  # type: ignore[no-any-return]


class TestedBridge:
    """Opens what the test gives."""

    __test__ = False

    def __init__(self, services: Any, info: Any) -> None:
        pass

    async def open(self, spec: BridgeSpec, trial: OpenTrial) -> Any:
        return await given.bridge(spec, trial)


class TestedGrader:
    """Grades as the test says."""

    __test__ = False

    def __init__(self, services: Any, info: Any) -> None:
        pass

    async def grade(self, *args: Any) -> Verdict:
        return await given.grader(*args)  # type: ignore[no-any-return]

    async def stamp(self) -> JSONObject:
        return {"in-test": "1"}


class TestedHarness:
    """Runs as the test says."""

    __test__ = False

    def __init__(self, services: Any, info: Any) -> None:
        pass

    async def probe(self) -> HarnessVersion:
        return HarnessVersion("1")

    async def run(self, job: Job) -> HarnessExit:
        return await given.harness(job)  # type: ignore[no-any-return]


class TestedProvider:
    """Answers as the test says."""

    __test__ = False

    def __init__(self, services: Any, info: Any) -> None:
        pass

    def content(self, model: str) -> Mapping[str, str]:
        return {}

    async def complete(self, model: str, body: JSONObject, context: CallContext) -> JSONObject:
        return await given.model(body, context)  # type: ignore[no-any-return]

    async def close(self) -> None:
        pass
