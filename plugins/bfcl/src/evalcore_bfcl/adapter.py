"""Serves a single-turn category's tasks: the functions as tools that record the call and do nothing.

Natively the model answers once, and the calls of that one response are graded. An agent under evalcore may go on after
the tool results; what it does then is recorded, and graded as a second, labelled view.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Final, cast

from attrs import evolve

from evalcore.contracts import OpenTrial, Selector, Services
from evalcore.engine.trial import standard_deliverable
from evalcore.errors import InfraError
from evalcore.hookspecs import AdapterInfo
from evalcore.values.arm import Arm
from evalcore.values.json import JSONObject, JSONValue, exact_text
from evalcore.values.task import Assignment, BridgeSpec, Call, Dataset, Gold, GoldCalls, Message, Task
from evalcore.values.trace import first_response_calls
from evalcore.values.trial import Deliverable, Evidence
from evalcore_bfcl.known import flags_of

VERSION: Final = "2026.3.23"
DATA: Final = "bfcl_eval/data/"
LOAD_S: Final = 120.0  # the largest category loads in two seconds
RESULT: Final = "The call was recorded."


class BfclAdapter:
    """One category."""

    grader = "bfcl-single-turn"

    def __init__(self, services: Services, info: AdapterInfo, selector: Selector) -> None:
        self._services = services
        self._category = str(info.parameters["category"])

    async def dataset(self) -> Dataset:
        """The data that bfcl-eval carries: the pinned one, or what stands in for it."""
        return dataset_of(await (await self._services.toolkit("bfcl")).stamp(), self._category)

    async def tasks(self) -> AsyncIterator[Task]:
        """The category's tasks, in the dataset's order, with tools as upstream's own code makes them."""
        toolkit = await self._services.toolkit("bfcl")
        served = await toolkit.request("tasks", {"category": self._category}, LOAD_S)
        if not isinstance(served, list):
            raise InfraError("the bfcl toolkit sent no tasks")
        for entry in cast("list[JSONObject]", served):
            data: JSONObject = {
                "category": self._category,
                "messages": entry["messages"],
                "tools": entry["tools"],
                "language": entry["language"],
            }
            yield Task(str(entry["id"]), data, entry["grader_sha256"], flags=flags_of(str(entry["id"])))

    async def assign(self, task: Task, arm: Arm) -> Assignment:
        """Every message of the task's one turn, every function as a tool."""
        turns = cast("list[list[JSONObject]]", task.data["messages"])
        messages = tuple(Message(str(m["role"]), str(m["content"])) for turn in turns for m in turn)
        tools = cast("list[JSONValue]", task.data["tools"])
        bridges = (BridgeSpec("toolset", {"tools": tools, "default_result": RESULT}),) if tools else ()
        return Assignment(messages, bridges)

    async def capture(self, trial: OpenTrial) -> Deliverable:
        """The answer, every call, and what is graded: the calls of the first model response, their arguments as text.

        `all_calls` are those of the whole loop, where they are others.
        """
        left = standard_deliverable(trial)
        first = [as_sent(c) for c in first_response_calls(trial.recorder.reader())]
        every = [as_sent(c) for c in left.calls] or first  # a task without tools has no tool wire
        data: JSONObject = {"first_response": cast("list[JSONValue]", first)}
        if every != first:
            data["all_calls"] = cast("list[JSONValue]", every)
        return evolve(left, data=data)

    async def collect(self, trial: OpenTrial) -> Evidence:
        """Nothing is left in an environment."""
        return Evidence()

    async def gold(self, task: Task) -> Gold | None:
        """The first accepted answers, rendered by fixed rules; None where the benchmark names no right call."""
        toolkit = await self._services.toolkit("bfcl")
        found = await toolkit.request("gold", {"category": self._category, "id": task.id}, LOAD_S)
        calls = found.get("calls") if isinstance(found, dict) else None
        if not isinstance(calls, list):
            return None
        return GoldCalls((tuple(Call(str(c["name"]), c["arguments"]) for c in cast("list[JSONObject]", calls)),))


def dataset_of(stamp: JSONObject, category: str) -> Dataset:
    """A category's data, as a toolkit's stamp tells of it."""
    upstream = cast(JSONObject, stamp["upstream"])
    pinned = stamp["source"] == "pinned"
    files = cast("dict[str, str]", upstream["files"])
    return Dataset(
        name=f"BFCL v4 {category}",
        version=VERSION if pinned else str(stamp["source"]),
        date="2026-03-23" if pinned else "",
        licence="Apache-2.0",
        source=f"bfcl-eval {VERSION}" if pinned else str(stamp["origin"]),
        files={path: sha for path, sha in files.items() if path.startswith(DATA) and _holds(path, category)},
    )


def _holds(path: str, category: str) -> bool:
    """Whether a data file is a category's; the memory categories share one, as do those of web search."""
    shared = next((name for name in ("memory", "web_search", "multi_turn") if category.startswith(name)), "")
    if path.endswith(f"BFCL_v4_{category}.json") or (shared and path.endswith(f"BFCL_v4_{shared}.json")):
        return True
    if shared == "memory" and path.startswith(f"{DATA}memory_prereq_conversation/"):
        return True
    return bool(shared) and path.startswith(f"{DATA}multi_turn_func_doc/")


def as_sent(call: Call) -> JSONObject:
    """A call for the native decoder, its arguments as JSON text."""
    return {"name": call.name, "arguments": as_text(call.arguments) if call.raw is None else call.raw}


def as_text(arguments: JSONValue) -> str:
    """Arguments as JSON text: what no pipe can carry as a value, text can."""
    try:
        return json.dumps(arguments)
    except (ValueError, RecursionError):  # more digits than Python prints, or too many levels
        return exact_text(arguments)
