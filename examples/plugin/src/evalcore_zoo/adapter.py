"""Turns the tasks of zoo.json into assignments, and takes the zoo's state as what the agent leaves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from evalcore.contracts import OpenTrial, Selector, Services
from evalcore.engine.trial import standard_deliverable
from evalcore.hookspecs import AdapterInfo
from evalcore.values.arm import Arm
from evalcore.values.task import Assignment, BridgeSpec, Call, Dataset, Gold, GoldCalls, Limits, Message, Task
from evalcore.values.trial import Deliverable, Evidence
from evalcore_zoo.data import FILE, SHA256, animals, read

SYSTEM: Final = (
    "You are the keeper of a small zoo. `look` tells what an animal eats and how much is a portion, `store` what food "
    "there is; `feed` gives an animal food from the store, and `order` asks for more. Do what is asked and no more."
)


class ZooAdapter:
    """The benchmark `zoo-feeding`. Made anew for each run; nothing is read before it is asked for."""

    grader = "zoo-state"

    def __init__(self, services: Services, info: AdapterInfo, selector: Selector) -> None:
        self._split = selector.split

    async def dataset(self) -> Dataset:
        """The file beside this one, pinned: whoever edits it is told."""
        return Dataset(
            name="zoo-feeding",
            version="1",
            date="2026-11-30",
            licence="Apache-2.0",
            source="evalcore-zoo",
            files={FILE.name: SHA256},
        )

    async def tasks(self) -> AsyncIterator[Task]:
        """The tasks in the file's order; of one split, if one is named."""
        for entry in read()["tasks"]:
            if self._split in (None, entry["split"]):
                # What the agent must not see is the `reference`; `cluster` says which tasks share a cause.
                reference = {"fed": entry.get("fed", {}), "ordered": entry.get("ordered", {})}
                data = {"ask": entry["ask"], "store": entry["store"]}
                yield Task(entry["id"], data, reference, cluster=entry["house"])

    async def assign(self, task: Task, arm: Arm) -> Assignment:
        """What the agent is told, and the zoo it gets. From the task's data and the arm alone."""
        notes = f"\n\n{_diets()}" if arm.axes.get("zoo-notes") == "diets" else ""
        return Assignment(
            messages=(Message("system", SYSTEM + notes), Message("user", str(task.data["ask"]))),
            bridges=(BridgeSpec("zoo", {"store": task.data["store"]}),),
            limits=Limits(model_calls=20),
        )

    async def capture(self, trial: OpenTrial) -> Deliverable:
        """The answer, the calls, and the zoo as it is now."""
        state = await trial.episodes[0].state()
        assert isinstance(state, dict)
        return standard_deliverable(trial, {"zoo": state})

    async def collect(self, trial: OpenTrial) -> Evidence:
        """Nothing beyond the state. A benchmark that runs tests afterwards does it here."""
        return Evidence()

    async def gold(self, task: Task) -> Gold | None:
        """The right calls, made from the right end."""
        wanted: Any = task.reference
        feeds = [
            Call("feed", {"animal": animal, "food": food, "units": units})
            for animal, foods in wanted["fed"].items()
            for food, units in foods.items()
        ]
        orders = [Call("order", {"food": food, "units": units}) for food, units in wanted["ordered"].items()]
        return GoldCalls(((*feeds, *orders),), "Done.")


def _diets() -> str:
    lines = [f"- {name}: {about['portion']} units of {about['eats']} a day" for name, about in animals().items()]
    return "\n".join(["What the animals eat:", *lines])
