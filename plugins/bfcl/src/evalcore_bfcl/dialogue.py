"""Serves the categories of several turns: upstream's stateful classes as tools, the dataset's turns by a driver.

In a memory category the questions come after sessions in which somebody tells of himself; those are tasks of their own
that are never counted. What a session leaves in the memory is its deliverable, and the next one's beginning.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from typing import Final, cast

from evalcore.contracts import OpenTrial, Selector, Services
from evalcore.engine.trial import standard_deliverable
from evalcore.errors import ConfigError, InfraError
from evalcore.hookspecs import AdapterInfo
from evalcore.values.arm import Arm
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import Assignment, BridgeSpec, Call, Dataset, Gold, GoldDialogue, Task
from evalcore.values.trace import TraceReader, exit_kind
from evalcore.values.trial import Deliverable, Evidence
from evalcore_bfcl.adapter import LOAD_S, as_sent, dataset_of
from evalcore_bfcl.bridge import KIND, LOST, MEMORY, left_by
from evalcore_bfcl.known import flags_of
from evalcore_bfcl.plugin import WEB_SEARCH, toolkit_of
from evalcore_bfcl.web import KEY

CONTROLS: Final = frozenset({"oracle", "noop"})


class DialogueAdapter:
    """One category."""

    def __init__(self, services: Services, info: AdapterInfo, selector: Selector) -> None:
        self._services = services
        self._name = info.name
        self._category = str(info.parameters["category"])
        self._toolkit = toolkit_of(self._category)
        self.grader = str(info.parameters["grader"])
        self._missing: list[str] = []

    async def dataset(self) -> Dataset:
        """The data that bfcl-eval carries: the pinned one, or what stands in for it."""
        stamp = await (await self._services.toolkit(self._toolkit)).stamp()
        return dataset_of(stamp, self._category)

    async def tasks(self) -> AsyncIterator[Task]:
        """The category's tasks, in the dataset's order; those that others require come first."""
        toolkit = await self._services.toolkit(self._toolkit)
        backend = await toolkit.request("backend", {"category": self._category}, LOAD_S)
        served = await toolkit.request("dialogue_tasks", {"category": self._category}, LOAD_S)
        if not isinstance(served, list) or not isinstance(backend, dict):
            raise InfraError("the bfcl toolkit sent no tasks")
        self._missing = [str(name) for name in cast("list[JSONValue]", backend["missing"])]
        for entry in cast("list[JSONObject]", served):
            yield self._task(entry)

    def _task(self, entry: JSONObject) -> Task:
        data: JSONObject = {"category": self._category}
        data |= {name: entry[name] for name in ("turns", "tools", "added", "tools_sha256") if entry[name]}
        return Task(
            str(entry["id"]),
            data,
            entry["grader_sha256"],
            cluster=str(entry["scenario"] or ""),
            requires=tuple(str(name) for name in cast("list[JSONValue]", entry["requires"])),
            flags=flags_of(str(entry["id"])),
            scored=entry["scored"] is True,
        )

    def check(self, tasks: Sequence[Task], arms: Sequence[Arm]) -> None:
        """Refuse what could not be executed here. Raises ConfigError."""
        if self._missing:
            variable = f"EVALCORE_TOOLKIT_{self._toolkit.upper().replace('-', '_')}"
            raise ConfigError(
                f"{self._name} cannot run here: its class computes with {' and '.join(self._missing)} and the model "
                "all-MiniLM-L6-v2 of the Hugging Face hub, 6 GB that are not part of its toolkit",
                hint=f"set {variable} to a checkout of upstream with a .venv that has them, and the model in its cache",
            )
        if self._category in WEB_SEARCH and not os.environ.get(KEY) and any(a.harness not in CONTROLS for a in arms):
            raise ConfigError(
                f"{self._name} cannot run here: {KEY} is not set",
                hint="its searches are SerpApi's, and cost; the controls search nothing, and run without the key",
            )

    async def assign(self, task: Task, arm: Arm) -> Assignment:
        """The environment; its driver says everything."""
        return Assignment((), (BridgeSpec(KIND, {"category": self._category, "id": task.id}),))

    async def capture(self, trial: OpenTrial) -> Deliverable:
        """Calls and answers, turn by turn; after a session that others build on, what it left in the memory."""
        trace = trial.recorder.reader()
        data: JSONObject = {"turns": turns_of(trace), "tools": names_of(trial.task)}
        if lost := [event["tool"] for event in trace.events(LOST)]:
            data["lost"] = lost
        if not trial.task.scored:
            # Natively a session that broke off is never written down.
            crashed = exit_kind(trace) == "crashed"
            data[MEMORY] = left_by(trial.required) if crashed else cast(JSONValue, await trial.episodes[0].state())
        return standard_deliverable(trial, data)

    async def collect(self, trial: OpenTrial) -> Evidence:
        """Nothing is left in an environment."""
        return Evidence()

    async def gold(self, task: Task) -> Gold | None:
        """The ground truth's calls turn by turn, and the first accepted answer where there is one."""
        toolkit = await self._services.toolkit(self._toolkit)
        found = await toolkit.request("dialogue_gold", {"category": self._category, "id": task.id}, LOAD_S)
        if not isinstance(found, dict):
            raise InfraError("the bfcl toolkit sent no gold")
        turns: list[JSONObject] = [{"calls": calls} for calls in cast("list[JSONValue]", found["turns"])]
        return GoldDialogue(tuple(turns or [{"answer": found["answer"]}]))


def names_of(task: Task) -> list[JSONValue]:
    """Every tool that a task offers in one of its turns."""
    added = cast("dict[str, list[JSONValue]]", task.data.get("added", {}))
    return [*cast("list[JSONValue]", task.data["tools"]), *(name for later in added.values() for name in later)]


def turns_of(trace: TraceReader) -> list[JSONValue]:
    """What the agent did, turn by turn: steps of calls, one for each reply of its model, and what it said at the end.

    Without a model on our wire (a control), all calls of a turn are one step.
    """
    turns: list[JSONValue] = []
    steps: list[JSONValue] = []
    calls: list[JSONValue] | None = None
    for event in trace.events():
        kind = event["e"]
        if kind == "dialogue.turn":
            steps, calls = [], None
            turns.append(steps)
        elif kind == "model.response" and event["role"] == "agent":
            calls = None
        elif kind == "tool.call":
            if calls is None:
                calls = []
                steps.append({"calls": calls})
            calls.append(as_sent(recorded(event)))
        elif kind == "dialogue.reply" and event.get("answer"):
            steps.append({"text": event["answer"]})
    return turns


def recorded(event: JSONObject) -> Call:
    """A call as the tool wire recorded it."""
    raw = event.get("raw")
    return Call(str(event["tool"]), event.get("arguments"), raw if isinstance(raw, str) else None)
