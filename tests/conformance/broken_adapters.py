"""Adapters, each of which breaks one rule of the suite. Run by `test_suites_catch`; none may pass."""
# ruff: noqa: N801 - a broken part stands where a fixture looks for it, under the name of an attribute

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from typing import Any, ClassVar

import pytest
from attrs import evolve

from evalcore.contracts import Adapter, Grader, OpenTrial
from evalcore.engine.selectors import find_benchmark
from evalcore.engine.services import LocalServices
from evalcore.plugins import Registry
from evalcore.testing import AdapterConformance
from evalcore.testing.toy import ToyAdapter, ToyGrader, weather_of
from evalcore.values.arm import Arm
from evalcore.values.descriptors import AdapterInfo
from evalcore.values.task import Assignment, BridgeSpec, Dataset, Gold, GoldCalls, Limits, Message, Task
from evalcore.values.trial import Deliverable, Evidence, Verdict

counter = itertools.count()
TUPLE: Any = ("Bern",)
NUMBERED: Any = {1: "one"}
PINNED = Dataset("toy", "1", "2026-01-01", "CC0-1.0", "made up", files={"tasks.json": "0" * 64})


class AdapterCase(AdapterConformance):
    """An adapter for `toy-weather` that is broken in one way."""

    plugins = ("evalcore.testing.toy",)
    benchmark = "toy-weather:6"
    made_up = True
    adapter_class: ClassVar[Any] = ToyAdapter
    grader_class: ClassVar[Any] = ToyGrader
    breaks: ClassVar[str]
    says: ClassVar[str]

    @pytest.fixture
    def make_adapter(self, registry: Registry, services: LocalServices) -> Callable[[], Adapter]:
        info, selector = find_benchmark(registry, self.benchmark)
        return lambda: self.adapter_class(services, info, selector)

    @pytest.fixture
    def grader(self) -> Grader:
        grader: Grader = self.grader_class()
        return grader


def with_dataset(dataset: Dataset) -> Any:
    class Broken(ToyAdapter):
        async def dataset(self) -> Dataset:
            return dataset

    return Broken


def with_tasks(change: Callable[[list[Task]], list[Task]]) -> Any:
    class Broken(ToyAdapter):
        async def tasks(self) -> AsyncIterator[Task]:
            for task in change([t async for t in ToyAdapter.tasks(self)]):
                yield task

    return Broken


def with_assignment(change: Callable[[Assignment, Task, Arm], Assignment]) -> Any:
    class Broken(ToyAdapter):
        async def assign(self, task: Task, arm: Arm) -> Assignment:
            return change(await super().assign(task, arm), task, arm)

    return Broken


# ── described, pinned ────────────────────────────────────────────────────────────────────────────────────────────────


class TestGraderNobodyHas(AdapterCase):
    breaks, says = "test_it_is_described", "grader 'nobody' is not registered"

    class adapter_class(ToyAdapter):
        grader = "nobody"

    @pytest.fixture
    def grader(self) -> Grader:
        return ToyGrader()


class TestSummaryOfTwoLines(AdapterCase):
    breaks, says = "test_it_is_described", "the summary is one line"

    @pytest.fixture
    def info(self, registry: Registry) -> AdapterInfo:
        return evolve(find_benchmark(registry, self.benchmark)[0], summary="one\ntwo")


class TestToolkitNobodyHas(AdapterCase):
    breaks, says = "test_it_is_described", "toolkits that are not registered: ['none']"

    @pytest.fixture
    def info(self, registry: Registry) -> AdapterInfo:
        return evolve(find_benchmark(registry, self.benchmark)[0], toolkits=("none",))


class TestVersionThatMoves(AdapterCase):
    breaks, says = "test_the_dataset_is_pinned", "the version 'main' moves"
    adapter_class = with_dataset(evolve(PINNED, version="main"))


class TestNoLicence(AdapterCase):
    breaks, says = "test_the_dataset_is_pinned", "no licence"
    adapter_class = with_dataset(evolve(PINNED, licence=" "))


class TestDateInWords(AdapterCase):
    breaks, says = "test_the_dataset_is_pinned", "'January 2026' is not written YYYY-MM-DD"
    adapter_class = with_dataset(evolve(PINNED, date="January 2026"))


class TestNoFiles(AdapterCase):
    breaks, says = "test_the_dataset_is_pinned", "no file is pinned"
    made_up = False
    adapter_class = with_dataset(evolve(PINNED, files={}))


class TestNoDigest(AdapterCase):
    breaks, says = "test_the_dataset_is_pinned", "'abc' is no sha256"
    adapter_class = with_dataset(evolve(PINNED, files={"tasks.json": "abc"}))


class TestRetiredByNobody(AdapterCase):
    breaks, says = "test_the_dataset_is_pinned", "retired: by whom, and why?"
    adapter_class = with_dataset(evolve(PINNED, status="retired"))


class TestTwoDatasets(AdapterCase):
    breaks, says = "test_the_dataset_is_pinned", "asked twice, it says two things"

    class adapter_class(ToyAdapter):
        async def dataset(self) -> Dataset:
            return evolve(PINNED, version=f"1.{next(counter)}")


# ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class TestNoTasks(AdapterCase):
    breaks, says = "test_ids_are_unique_and_plain", "there are no tasks"
    adapter_class = with_tasks(lambda tasks: [])


class TestSameIdTwice(AdapterCase):
    breaks, says = "test_ids_are_unique_and_plain", "there twice: ['t0']"
    adapter_class = with_tasks(lambda tasks: [*tasks, tasks[0]])


class TestIdOfTwoLines(AdapterCase):
    breaks, says = "test_ids_are_unique_and_plain", "no command line takes"
    adapter_class = with_tasks(lambda tasks: [evolve(tasks[0], id="a\nb")])


class TestOrderOfTheDay(AdapterCase):
    breaks, says = "test_loading_twice_gives_the_same_tasks", "the ids are others"
    adapter_class = with_tasks(lambda tasks: tasks[next(counter) % 3 :])


class TestTasksOnce(AdapterCase):
    breaks, says = "test_loading_twice_gives_the_same_tasks", "loaded again, the ids are others"

    class adapter_class(ToyAdapter):
        loaded = False

        async def tasks(self) -> AsyncIterator[Task]:
            if not self.loaded:
                async for task in super().tasks():
                    yield task
            self.loaded = True


class TestTasksOfThisAdapter(AdapterCase):
    breaks, says = "test_loading_twice_gives_the_same_tasks", "loaded by another adapter, these tasks are others"

    class adapter_class(ToyAdapter):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            self.number = next(counter)

        async def tasks(self) -> AsyncIterator[Task]:
            async for task in super().tasks():
                yield evolve(task, data={**task.data, "made": self.number})


class TestTupleInData(AdapterCase):
    breaks, says = "test_tasks_are_json", "$.cities is of type tuple, no JSON"
    adapter_class = with_tasks(lambda tasks: [evolve(t, data={**t.data, "cities": TUPLE}) for t in tasks])


class TestKeyThatIsNoText(AdapterCase):
    breaks, says = "test_tasks_are_json", "has the key 1, no text"
    adapter_class = with_tasks(lambda tasks: [evolve(t, reference=NUMBERED) for t in tasks])


class TestRequiresWhatComesLater(AdapterCase):
    breaks, says = "test_required_tasks_come_before", "requires ['t1']"
    adapter_class = with_tasks(lambda tasks: [evolve(tasks[0], requires=("t1",)), *tasks[1:]])


# ── assignments ──────────────────────────────────────────────────────────────────────────────────────────────────────


class TestAssignmentOfTheMoment(AdapterCase):
    breaks, says = "test_assigning_is_deterministic", "is assigned in two ways"
    adapter_class = with_assignment(
        lambda a, task, arm: evolve(a, messages=(*a.messages, Message("user", f"Number {next(counter)}.")))
    )


class TestAssignmentOfTheHandle(AdapterCase):
    breaks, says = "test_assigning_is_deterministic", "the arm's handle is no part of the arm"
    adapter_class = with_assignment(
        lambda a, task, arm: evolve(a, messages=(*a.messages, Message("user", f"You are {arm.handle}.")))
    )


def note(assignment: Assignment, task: Task, arm: Arm) -> Assignment:
    task.data["seen"] = True
    return assignment


class TestTaskIsWrittenOn(AdapterCase):
    breaks, says = "test_assigning_is_deterministic", "assigning changed a task's data"
    adapter_class = with_assignment(note)


class TestNoMessage(AdapterCase):
    breaks, says = "test_assignments_are_well_formed", "there is no message"
    adapter_class = with_assignment(lambda a, task, arm: evolve(a, messages=()))


class TestMessageOfAPoet(AdapterCase):
    breaks, says = "test_assignments_are_well_formed", "has the role 'poet'"
    adapter_class = with_assignment(lambda a, task, arm: evolve(a, messages=(Message("poet", "Ode."),)))


class TestBridgeNobodyHas(AdapterCase):
    breaks, says = "test_assignments_are_well_formed", "bridge 'nowhere' is not registered"
    adapter_class = with_assignment(lambda a, task, arm: evolve(a, bridges=(BridgeSpec("nowhere"),)))


class TestLimitOfNothing(AdapterCase):
    breaks, says = "test_assignments_are_well_formed", "the limit on tokens is 0"
    adapter_class = with_assignment(lambda a, task, arm: evolve(a, limits=Limits(tokens=0)))


class TestReferenceInTheBridge(AdapterCase):
    breaks, says = "test_assigning_does_not_look_at_the_reference", "depends on the reference"
    adapter_class = with_assignment(
        lambda a, task, arm: evolve(
            a, bridges=(evolve(a.bridges[0], config={**a.bridges[0].config, "expected": task.reference}),)
        )
    )


class TestGoldInTheQuestion(AdapterCase):
    breaks, says = "test_what_the_agent_sees_does_not_hold_the_gold", "shows its solution: '10 degrees in Bern'"
    adapter_class = with_assignment(
        lambda a, task, arm: evolve(
            a, messages=(*a.messages, Message("user", f"(Hint: {weather_of(str(task.data['city']))})"))
        )
    )


class TestGoldInATool(AdapterCase):
    breaks, says = "test_what_the_agent_sees_does_not_hold_the_gold", "shows its solution"
    adapter_class = with_assignment(
        lambda a, task, arm: evolve(a, bridges=(toolset("t", description=weather_of(str(task.data["city"]))),))
    )


def toolset(*names: str, **changes: Any) -> BridgeSpec:
    tools: list[Any] = [{"name": n, "description": "A tool.", "input_schema": {"type": "object"}} for n in names]
    return BridgeSpec("toolset", {"tools": [{**tool, **changes} for tool in tools]})


class TestSameToolTwice(AdapterCase):
    breaks, says = "test_tools_are_well_formed", "'look' is there 2 times"
    adapter_class = with_assignment(lambda a, task, arm: evolve(a, bridges=(toolset("look"), toolset("look"))))


class TestToolOfTwoWords(AdapterCase):
    breaks, says = "test_tools_are_well_formed", "'look up' is no tool's name"
    adapter_class = with_assignment(lambda a, task, arm: evolve(a, bridges=(toolset("look up"),)))


class TestSchemaOfNoObject(AdapterCase):
    breaks, says = "test_tools_are_well_formed", 'must say "type": "object"'
    adapter_class = with_assignment(
        lambda a, task, arm: evolve(a, bridges=(toolset("look", input_schema={"type": "string"}),))
    )


class TestSchemaThatIsNone(AdapterCase):
    breaks, says = "test_tools_are_well_formed", "is not valid under any of the given schemas"
    adapter_class = with_assignment(
        lambda a, task, arm: evolve(
            a,
            bridges=(
                toolset("look", input_schema={"type": "object", "properties": {"x": {"type": "dict"}}}),
            ),
        )
    )  # fmt: skip


# ── what is left ─────────────────────────────────────────────────────────────────────────────────────────────────────


class TestCaptureWantsAnAnswer(AdapterCase):
    breaks, says = "test_an_empty_trial_can_be_captured", "AttributeError"

    class adapter_class(ToyAdapter):
        async def capture(self, trial: OpenTrial) -> Deliverable:
            return Deliverable(trial.exit.answer.strip())  # type: ignore[union-attr]


class TestCaptureOfTheMoment(AdapterCase):
    breaks, says = "test_an_empty_trial_can_be_captured", "captured or collected twice, it is another"

    class adapter_class(ToyAdapter):
        async def collect(self, trial: OpenTrial) -> Evidence:
            return Evidence({"number": next(counter)})


class TestDeliverableOfATuple(AdapterCase):
    breaks, says = "test_an_empty_trial_can_be_captured", "of type tuple, no JSON"

    class adapter_class(ToyAdapter):
        async def capture(self, trial: OpenTrial) -> Deliverable:
            return Deliverable(None, (), {"left": ()})  # type: ignore[dict-item]


class TestCapturesNothing(AdapterCase):
    breaks, says = "test_an_empty_trial_can_be_captured", "captured and collected ['NoneType', 'Evidence']"

    class adapter_class(ToyAdapter):
        async def capture(self, trial: OpenTrial) -> Any:
            return None


class TestGoldThatFails(AdapterCase):
    breaks, says = "test_gold_is_stable_and_passes", "the gold of task 't0' gets Verdict(outcome='fail'"

    class adapter_class(ToyAdapter):
        async def gold(self, task: Task) -> Gold | None:
            return GoldCalls((), "It rains.")


class TestGoldOfTheMoment(AdapterCase):
    breaks, says = "test_gold_is_stable_and_passes", "asked twice, the gold is another"

    class adapter_class(ToyAdapter):
        async def gold(self, task: Task) -> Gold | None:
            return GoldCalls((), f"{task.reference} {next(counter)}")


class Lenient(ToyGrader):
    async def grade(self, *given: Any) -> Verdict:
        return Verdict("pass", 1.0)


class TestFloorThatIsNotDeclared(AdapterCase):
    breaks, says = "test_doing_nothing_gets_the_floor", "doing nothing in task 't0' gets pass"
    grader_class = Lenient


class TestFloorThatIsNotTold(AdapterCase):
    breaks, says = "test_doing_nothing_gets_the_floor", "`floor_note` must say so"
    grader_class = Lenient
    floor = ("pass",)


class Moody(ToyGrader):
    async def grade(self, *given: Any) -> Verdict:
        return evolve(await super().grade(*given), details={"number": next(counter)})


class TestVerdictOfTheMoment(AdapterCase):
    breaks, says = "test_a_verdict_can_be_given_again_from_the_trace", "graded again, the verdict is another"
    grader_class = Moody
