"""A plugin with one of everything, each part as small as it can be and used for real in `test_hooks`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from attrs import evolve

from evalcore.contracts import (
    CallContext,
    Driver,
    GradedTrial,
    HarnessVersion,
    Job,
    OpenTrial,
    Selector,
    Services,
    ToolResult,
    text_result,
)
from evalcore.engine.trial import standard_deliverable
from evalcore.hookspecs import (
    AdapterInfo,
    AxisInfo,
    BridgeInfo,
    CommandInfo,
    ExecutorInfo,
    GraderInfo,
    GroupInfo,
    HarnessInfo,
    ImporterInfo,
    MetricInfo,
    ModelInfo,
    RendererInfo,
    SandboxInfo,
    ToolkitInfo,
    ToolkitSpec,
    TransformInfo,
    hookimpl,
)
from evalcore.values.arm import Arm
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import Assignment, BridgeSpec, Call, Dataset, Gold, GoldCalls, Message, Task, ToolSpec
from evalcore.values.trace import TraceReader
from evalcore.values.trial import Attempt, Deliverable, Evidence, Grading, HarnessExit, Verdict

HERE = "tests.integration.hook_parts"

seen: list[tuple[str, Any]] = []  # what the observers were told


@hookimpl
def evalcore_adapters() -> list[AdapterInfo | GroupInfo]:
    return [
        AdapterInfo(
            "bell-ring",
            "ring the bell as often as asked",
            f"{HERE}:BellAdapter",
            parameters={"most": 3},
            splits=("loud",),
            takes_parameter="number of tasks",
        ),
        GroupInfo("bell-all", "both ways to ring", {"bell-ring:1": 2.0, "bell-ring@loud": 1.0}),
    ]


@hookimpl
def evalcore_bridges() -> list[BridgeInfo]:
    return [BridgeInfo("bell", "a bell to ring", f"{HERE}:BellBridge")]


@hookimpl
def evalcore_graders() -> list[GraderInfo]:
    return [GraderInfo("bell", "rung as often as asked", f"{HERE}:BellGrader")]


@hookimpl
def evalcore_metrics() -> list[MetricInfo]:
    return [MetricInfo("rings", "rings per trial", f"{HERE}:Rings", unit="rings")]


@hookimpl
def evalcore_harnesses() -> list[HarnessInfo]:
    return [HarnessInfo("ringer", "rings once, or as often as told", f"{HERE}:Ringer", axes=("times",))]


@hookimpl
def evalcore_models() -> list[ModelInfo]:
    return [ModelInfo("parrot", "repeats what it is told", f"{HERE}:Parrot", gateway_axes=("temperature",))]


@hookimpl
def evalcore_sandboxes() -> list[SandboxInfo]:
    return [SandboxInfo("shed", "no wall at all", f"{HERE}:Anything")]


@hookimpl
def evalcore_executors() -> list[ExecutorInfo]:
    return [ExecutorInfo("elsewhere", "another machine", f"{HERE}:Anything")]


@hookimpl
def evalcore_axes() -> list[AxisInfo]:
    return [
        AxisInfo("times", "how often it rings", "harness", "integer", default=1, low=0),
        AxisInfo("manners", "how the task is put", "adapter", default="plain", values=("plain", "polite")),
        AxisInfo("metal", "what the bell is made of", "bridge", default="brass"),
        AxisInfo("hint", "a word of help", "transform"),
        AxisInfo("idle", "a knob that nobody connected", "transform"),
    ]


@hookimpl
def evalcore_transforms() -> list[TransformInfo]:
    return [TransformInfo("hint", "adds a word of help to the task", f"{HERE}:Hint", axis="hint")]


@hookimpl
def evalcore_toolkits() -> list[ToolkitInfo]:
    return [ToolkitInfo("bell", "upstream's bell", ToolkitSpec("bell", (), ">=3.11", "tests.integration.bell_worker"))]


@hookimpl
def evalcore_commands() -> list[CommandInfo]:
    return [CommandInfo("ring", "Ring a bell.", f"{HERE}:ring")]


@hookimpl
def evalcore_renderers() -> list[RendererInfo]:
    return [RendererInfo("bells", "a report as bells", f"{HERE}:Anything")]


@hookimpl
def evalcore_importers() -> list[ImporterInfo]:
    return [ImporterInfo("belfry", "runs of a belfry", f"{HERE}:Anything")]


@hookimpl
def evalcore_trial_finished(attempt: Attempt, grading: Grading | None) -> None:
    seen.append((attempt.key.task, grading.verdict.outcome if grading else None))


@hookimpl
def evalcore_run_finished(run: Path) -> None:
    seen.append(("run", run))


class Anything:
    """A part whose consumer the core does not have yet."""

    def __init__(self, services: Services, info: Any) -> None:
        self.name = info.name


class BellAdapter:
    """Ring once, twice, …; the split `loud` says so louder."""

    grader = "bell"

    def __init__(self, services: Services, info: AdapterInfo, selector: Selector) -> None:
        most = info.parameters["most"]
        assert isinstance(most, int)
        self._count = int(selector.parameter or most)
        self._loud = selector.split == "loud"

    async def dataset(self) -> Dataset:
        return Dataset("bells", "1", "2026-01-01", "CC0-1.0", "made up")

    async def tasks(self) -> AsyncIterator[Task]:
        for number in range(1, self._count + 1):
            yield Task(f"ring-{number}", {"rings": number, "loud": self._loud})

    async def assign(self, task: Task, arm: Arm) -> Assignment:
        words = f"Ring the bell {task.data['rings']} times"
        if arm.axes.get("manners") == "polite":
            words = f"Please: {words}"
        message = Message("user", words.upper() if task.data["loud"] else words)
        return Assignment((message,), (BridgeSpec("bell"),))

    async def capture(self, trial: OpenTrial) -> Deliverable:
        state = await trial.episodes[0].state()
        return standard_deliverable(trial, state if isinstance(state, dict) else {})

    async def collect(self, trial: OpenTrial) -> Evidence:
        return Evidence()

    async def gold(self, task: Task) -> Gold | None:
        rings = task.data["rings"]
        assert isinstance(rings, int)
        return GoldCalls((tuple(Call("ring", {}) for _ in range(rings)),))


class BellBridge:
    """A bell for each trial, of the metal that the arm says."""

    def __init__(self, services: Services, info: BridgeInfo) -> None:
        pass

    async def open(self, spec: BridgeSpec, trial: OpenTrial) -> Bell:
        return Bell(str(trial.arm.axes.get("metal")))


class Bell:
    def __init__(self, metal: str) -> None:
        self._metal = metal
        self._rings = 0

    def tools(self) -> Sequence[ToolSpec]:
        return [ToolSpec("ring", "Ring the bell once.", {"type": "object", "properties": {}})]

    async def call(self, name: str, arguments: JSONValue) -> ToolResult:
        self._rings += 1
        return text_result("ding")

    def driver(self) -> Driver | None:
        return None

    async def state(self) -> JSONValue:
        return {"rings": self._rings, "metal": self._metal}

    async def close(self) -> None:
        pass


class BellGrader:
    def __init__(self, services: Services, info: GraderInfo) -> None:
        pass

    async def grade(
        self, task: Task, deliverable: Deliverable, evidence: Evidence, trace: TraceReader, judge: object
    ) -> Verdict:
        passed = deliverable.data["rings"] == task.data["rings"]
        return Verdict("pass" if passed else "fail", float(passed), details=deliverable.data)

    async def stamp(self) -> JSONObject:
        return {"bell": "1"}


class Rings:
    def __init__(self, services: Services, info: MetricInfo) -> None:
        pass

    def per_task(self, trials: Sequence[GradedTrial]) -> tuple[float, float] | None:
        return float(sum(t.attempt.tool_calls for t in trials)), float(len(trials))


class Ringer:
    """Asks its model nothing but whether to begin."""

    def __init__(self, services: Services, info: HarnessInfo) -> None:
        pass

    async def probe(self) -> HarnessVersion:
        return HarnessVersion("1")

    async def run(self, job: Job) -> HarnessExit:
        assert job.model is not None
        said: Any = await job.model.complete({"messages": [m.as_json() for m in job.messages]})
        times = job.options["times"]
        assert isinstance(times, int)
        for _ in range(times):
            await job.tools[0].call("ring", {})
        return HarnessExit(said["choices"][0]["message"]["content"])


class Parrot:
    def __init__(self, services: Services, info: ModelInfo) -> None:
        pass

    def content(self, model: str) -> Mapping[str, str]:
        return {}

    async def complete(self, model: str, body: JSONObject, context: CallContext) -> JSONObject:
        messages: Any = body["messages"]
        heard = f"{model} at {body.get('temperature')} heard: {messages[-1]['content']}"
        return {"choices": [{"index": 0, "message": {"role": "assistant", "content": heard}}]}

    async def close(self) -> None:
        pass


class Hint:
    def __init__(self, services: Services, info: TransformInfo) -> None:
        pass

    async def apply(self, assignment: Assignment, value: JSONValue) -> Assignment:
        return evolve(assignment, messages=(*assignment.messages, Message("user", f"Hint: {value}")))


@click.command()
@click.argument("times", type=int, default=1)
def ring(times: int) -> None:
    """Ring a bell."""
    click.echo("ding " * times)
