"""Does an adapter keep its promises? Subclass `AdapterConformance`, name the benchmark, inherit the tests."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from typing import ClassVar, cast

import pytest
from attrs import evolve

from evalcore.builtin.controls import NoopHarness, OracleHarness
from evalcore.contracts import Adapter, Grader, Harness
from evalcore.engine.selectors import find_benchmark
from evalcore.engine.services import LocalServices
from evalcore.plugins import Registry
from evalcore.testing.fakes import ANYBODY
from evalcore.testing.rig import Bridges, Played, load, opened, play, spread
from evalcore.testing.suite.base import Conformance
from evalcore.testing.suite.checks import json_fault, record_fault, tool_faults
from evalcore.values.arm import Arm
from evalcore.values.descriptors import AdapterInfo, BridgeInfo, GraderInfo, ToolkitInfo
from evalcore.values.json import JSONValue, canonical
from evalcore.values.task import (
    PLAYABLE,
    ROLES,
    Assignment,
    Gold,
    GoldAnswer,
    GoldCalls,
    GoldPatch,
    GoldScript,
    Message,
    Task,
    ToolSpec,
)
from evalcore.values.trial import SUCCESSES, Claim, HarnessExit, Outcome

MOVING = frozenset({"latest", "main", "master", "head", "current", "dev", "nightly"})
MESSAGE_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
TELLING = 12  # characters from which on a text in the task is hardly there by chance
SENTINEL = "the reference of another task \u2603"


class AdapterConformance(Conformance):
    """Required: `benchmark`, a selector. Override the fixture `make_adapter` for an adapter that is not registered."""

    benchmark: ClassVar[str]
    sample: ClassVar[int] = 20  # tasks that are assigned and played; ids and digests are held to the rules over all
    made_up: ClassVar[bool] = False  # code makes the tasks: there are no files to pin
    floor: ClassVar[tuple[Outcome, ...]] = ("fail",)  # what an agent that does nothing may get
    gold_is_shown: ClassVar[str] = ""  # why the solution may stand in what the agent sees: it is one of the choices

    @pytest.fixture
    def info(self, registry: Registry) -> AdapterInfo:
        """The benchmark's descriptor."""
        return find_benchmark(registry, self.benchmark)[0]

    @pytest.fixture
    def make_adapter(self, registry: Registry, services: LocalServices) -> Callable[[], Adapter]:
        """Makes the adapter anew at each call."""
        info, selector = find_benchmark(registry, self.benchmark)
        factory = registry.factory(info)
        return lambda: cast(Adapter, factory(services, info, selector))

    @pytest.fixture
    def adapter(self, make_adapter: Callable[[], Adapter]) -> Adapter:
        """An adapter."""
        return make_adapter()

    @pytest.fixture
    def grader(self, adapter: Adapter, registry: Registry, services: LocalServices) -> Grader:
        """The adapter's own grader."""
        info = registry.get(GraderInfo, "grader", adapter.grader)
        return cast(Grader, registry.factory(info)(services, info))

    @pytest.fixture
    def tasks(self, adapter: Adapter) -> tuple[Task, ...]:
        """All tasks, loaded once for the class."""
        anything = self._kept.anything
        if "tasks" not in anything:
            anything["tasks"] = self.run(load(adapter))
        return cast("tuple[Task, ...]", anything["tasks"])

    @pytest.fixture
    def some(self, tasks: tuple[Task, ...]) -> tuple[Task, ...]:
        """The sample, of scored tasks."""
        return spread([t for t in tasks if t.scored], self.sample)

    @pytest.fixture
    def bridges(self, registry: Registry, services: LocalServices) -> Bridges:
        """Every registered bridge."""
        return Bridges(registry, services)

    # ── what it declares ─────────────────────────────────────────────────────────────────────────────────────────────

    def test_it_is_described(self, info: AdapterInfo, adapter: Adapter, registry: Registry) -> None:
        """One line of summary; its grader and its toolkits are registered."""
        assert info.summary.strip() and "\n" not in info.summary, "the summary is one line"
        assert adapter.grader in registry.all(GraderInfo), f"grader {adapter.grader!r} is not registered"
        missing = set(info.toolkits) - set(registry.all(ToolkitInfo))
        assert not missing, f"toolkits that are not registered: {sorted(missing)}"

    def test_the_dataset_is_pinned(self, adapter: Adapter) -> None:
        """A fixed version, its date, licence and source, and the sha256 of each file."""
        dataset = self.run(adapter.dataset())
        for name in ("name", "version", "date", "licence", "source"):
            assert getattr(dataset, name).strip(), f"the dataset has no {name}"
        assert dataset.version.lower() not in MOVING, f"the version {dataset.version!r} moves"
        assert _is_date(dataset.date), f"the date {dataset.date!r} is not written YYYY-MM-DD"
        assert self.made_up or dataset.files, "no file is pinned (a benchmark without files sets `made_up = True`)"
        for file, sha256 in dataset.files.items():
            assert re.fullmatch("[0-9a-f]{64}", sha256), f"{file}: {sha256!r} is no sha256"
        assert dataset.status == "current" or dataset.status_note, f"{dataset.status}: by whom, and why?"
        assert self.run(adapter.dataset()) == dataset, "asked twice, it says two things"

    # ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def test_ids_are_unique_and_plain(self, tasks: tuple[Task, ...]) -> None:
        """At least one task; no id twice; each one a printable text without space at its ends."""
        assert tasks, "there are no tasks"
        ids = [task.id for task in tasks]
        twice = [i for i, count in Counter(ids).items() if count > 1]
        assert not twice, f"ids that are there twice: {twice[:5]}"
        odd = [i for i in ids if not i or not i.isprintable() or i != i.strip() or len(i) > 255]
        assert not odd, f"ids that no command line takes: {odd[:5]}"

    def test_loading_twice_gives_the_same_tasks(
        self, tasks: tuple[Task, ...], adapter: Adapter, make_adapter: Callable[[], Adapter]
    ) -> None:
        """The same ids, digests and clusters in the same order: from one adapter, and from another."""
        first = [(t.id, t.digest, t.cluster, t.flags) for t in tasks]
        for title, other in (("again", adapter), ("by another adapter", make_adapter())):
            second = [(t.id, t.digest, t.cluster, t.flags) for t in self.run(load(other))]
            assert [t[0] for t in second] == [t[0] for t in first], f"loaded {title}, the ids are others"
            changed = [a[0] for a, b in zip(first, second, strict=True) if a != b]
            assert not changed, f"loaded {title}, these tasks are others: {changed[:5]}"

    def test_tasks_are_json(self, tasks: tuple[Task, ...]) -> None:
        """`data` and `reference` come back from a file as they went in."""
        for task in tasks:
            for name in ("data", "reference"):
                fault = record_fault(getattr(task, name))
                assert fault is None, f"{name} of task {task.id!r}: {fault}"

    def test_required_tasks_come_before(self, tasks: tuple[Task, ...]) -> None:
        """What a task requires is there, and earlier in the dataset."""
        seen: set[str] = set()
        for task in tasks:
            missing = set(task.requires) - seen
            assert not missing, f"task {task.id!r} requires {sorted(missing)}, which do not come before it"
            seen.add(task.id)

    # ── assignments ──────────────────────────────────────────────────────────────────────────────────────────────────

    def test_assigning_is_deterministic(
        self, some: tuple[Task, ...], adapter: Adapter, make_adapter: Callable[[], Adapter]
    ) -> None:
        """The same task and arm give the same assignment, whatever was assigned before, by whom; tasks stay as is."""
        before = [canonical(task.data) for task in some]
        first = [self.run(adapter.assign(task, ANYBODY)) for task in some]
        again = [self.run(adapter.assign(task, ANYBODY)) for task in reversed(some)][::-1]
        other = make_adapter()
        for task, one, two in zip(some, first, again, strict=True):
            assert one == two, f"task {task.id!r} is assigned in two ways"
            assert one == self.run(other.assign(task, ANYBODY)), f"task {task.id!r}: another adapter assigns another"
        renamed = Arm("another handle", dict(ANYBODY.axes))
        assert self.run(adapter.assign(some[0], renamed)) == first[0], "the arm's handle is no part of the arm"
        assert before == [canonical(task.data) for task in some], "assigning changed a task's data"

    def test_assignments_are_well_formed(
        self, some: tuple[Task, ...], adapter: Adapter, registry: Registry, bridges: Bridges
    ) -> None:
        """Messages of known roles that say something; registered bridges with JSON for a config; sensible limits."""
        known = registry.all(BridgeInfo)
        for task in some:
            assignment = self.run(adapter.assign(task, ANYBODY))
            faults = [*_message_faults(assignment.messages), *_limit_faults(assignment)]
            if not assignment.messages and not self.run(_driven(assignment, task, bridges)):
                faults.append("there is no message, and no driver to say one")
            faults += [f"bridge {b.kind!r} is not registered" for b in assignment.bridges if b.kind not in known]
            faults += [f"bridge {b.kind!r}: {f}" for b in assignment.bridges if (f := json_fault(b.config))]
            assert not faults, f"task {task.id!r}: {faults}"

    def test_assigning_does_not_look_at_the_reference(self, some: tuple[Task, ...], adapter: Adapter) -> None:
        """The reference is the grader's. With another one in its place, the assignment is the same."""
        for task in some:
            told = self.run(adapter.assign(task, ANYBODY))
            blind = self.run(adapter.assign(evolve(task, reference=SENTINEL), ANYBODY))
            assert blind == told, f"task {task.id!r}: the assignment depends on the reference"

    def test_what_the_agent_sees_does_not_hold_the_gold(
        self, some: tuple[Task, ...], adapter: Adapter, bridges: Bridges
    ) -> None:
        """Neither messages nor tools hold the reference or the solution as a text."""
        if self.gold_is_shown:
            pytest.skip(self.gold_is_shown)
        for task in some:
            secrets = [*_whole(task.reference), *_solutions(self.run(adapter.gold(task)))]
            seen = self.run(_visible(adapter, task, bridges))
            shown = [s for s in secrets if len(s) >= TELLING and s in seen]
            assert not shown, f"task {task.id!r} shows its solution: {shown[0]!r}"

    def test_tools_are_well_formed(self, some: tuple[Task, ...], adapter: Adapter, bridges: Bridges) -> None:
        """Over all bridges of a task: names are unique, schemas are valid JSON Schemas of objects."""
        for task in some:
            faults = list(tool_faults(self.run(_tools(adapter, task, bridges))))
            assert not faults, f"task {task.id!r}: {faults}"

    # ── what is left ─────────────────────────────────────────────────────────────────────────────────────────────────

    @pytest.mark.parametrize("claim", ["completed", "crashed", None])
    def test_an_empty_trial_can_be_captured(
        self, some: tuple[Task, ...], adapter: Adapter, bridges: Bridges, claim: Claim | None
    ) -> None:
        """An agent that left nothing, or whose harness failed: deliverable and evidence are JSON, twice the same."""
        for task in some[:5]:
            assignment = self.run(adapter.assign(task, ANYBODY))
            trial = self.run(opened(assignment, task, bridges))
            try:
                trial.exit = None if claim is None else HarnessExit(None, claim)
                left = self.run(adapter.capture(trial)), self.run(adapter.collect(trial))
                kinds = [type(made).__name__ for made in left]
                assert kinds == ["Deliverable", "Evidence"], f"task {task.id!r}: captured and collected {kinds}"
                for made in left:
                    fault = record_fault(made.as_json())
                    assert fault is None, f"the {type(made).__name__} of task {task.id!r}: {fault}"
                again = self.run(adapter.capture(trial)), self.run(adapter.collect(trial))
                assert again == left, f"task {task.id!r}: captured or collected twice, it is another"
            finally:
                self.run(trial.close())

    def test_gold_is_stable_and_passes(
        self, some: tuple[Task, ...], adapter: Adapter, grader: Grader, registry: Registry, services: LocalServices
    ) -> None:
        """The known solution, played through the real tools, passes the own grader; that of a flagged task need not."""
        golds = [self.run(adapter.gold(task)) for task in some]
        assert golds == [self.run(adapter.gold(task)) for task in some], "asked twice, the gold is another"
        for task, gold in zip(some, golds, strict=True):
            calls = [c.as_json() for turn in gold.turns for c in turn] if isinstance(gold, GoldCalls) else []
            fault = json_fault([*calls, *_solutions(gold)])
            assert fault is None, f"the gold of task {task.id!r}: {fault}"
        playable = [t for t, g in zip(some, golds, strict=True) if isinstance(g, PLAYABLE)]
        if not playable:
            pytest.skip("no gold that the oracle can play")
        for task in playable:
            played = self.run(_play(adapter, grader, task, OracleHarness(), registry, services))
            assert played.grading.error is None, f"task {task.id!r}: {played.grading.error}"
            passed = played.verdict.outcome in SUCCESSES or played.verdict.bounds == (0.0, 1.0)  # for want of a judge
            assert passed or task.flags, f"the gold of task {task.id!r} gets {played.verdict}"

    def test_doing_nothing_gets_the_floor(
        self,
        some: tuple[Task, ...],
        adapter: Adapter,
        grader: Grader,
        registry: Registry,
        services: LocalServices,
        info: AdapterInfo,
    ) -> None:
        """No call, no answer: the outcomes are those of `floor`. A floor above zero is told in `floor_note`."""
        for task in some:
            played = self.run(_play(adapter, grader, task, NoopHarness(), registry, services))
            assert played.grading.error is None, f"task {task.id!r}: {played.grading.error}"
            got = played.verdict.outcome
            assert got in self.floor, f"doing nothing in task {task.id!r} gets {got}; `floor` says {self.floor}"
        if SUCCESSES & set(self.floor):
            assert info.floor_note, "doing nothing can pass: `floor_note` must say so"

    def test_a_verdict_can_be_given_again_from_the_trace(
        self, some: tuple[Task, ...], adapter: Adapter, grader: Grader, registry: Registry, services: LocalServices
    ) -> None:
        """From deliverable, evidence and trace as they were stored, the verdict is the same: `regrade` relies on it."""
        for task in some[:5]:
            gold = self.run(adapter.gold(task))
            harness: Harness = OracleHarness() if isinstance(gold, PLAYABLE) else NoopHarness()
            played = self.run(_play(adapter, grader, task, harness, registry, services))
            again = self.run(grader.grade(task, played.deliverable, played.evidence, played.trace, None))
            assert again == played.verdict, f"task {task.id!r}: graded again, the verdict is another"


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _message_faults(messages: tuple[Message, ...]) -> Iterator[str]:
    for number, message in enumerate(messages):
        if message.role not in MESSAGE_ROLES:
            yield f"message {number} has the role {message.role!r}"
        if not message.content:
            yield f"message {number} says nothing"
        content: object = message.content
        if not isinstance(content, (str, tuple)):
            yield f"message {number} is of type {type(content).__name__}, neither text nor a tuple of parts"
        elif (fault := json_fault(list(content) if isinstance(content, tuple) else content)) is not None:
            yield f"message {number}: {fault}"


def _limit_faults(assignment: Assignment) -> Iterator[str]:
    for role in assignment.roles:
        if role not in ROLES:
            yield f"{role!r} is no role"
    for limits in (assignment.limits, *(spec.limits for spec in assignment.roles.values())):
        for name, value in limits.as_json().items():
            if value is not None and not value > 0:
                yield f"the limit on {name} is {value}"


def _texts(value: object) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)


def _whole(reference: JSONValue) -> Iterator[str]:
    """A reference as a text that might be pasted somewhere. Single values of a larger one stand in most tasks."""
    if isinstance(reference, str):
        yield reference
    elif reference:
        yield json.dumps(reference)
        yield json.dumps(reference, separators=(",", ":"))


def _solutions(gold: Gold | None) -> Iterator[str]:
    """What of a solution gives it away as a whole: not the arguments of its calls, which stand in most tasks."""
    match gold:
        case GoldAnswer(text):
            yield text
        case GoldCalls(_, answer) if answer is not None:
            yield answer
        case GoldPatch(diff):
            yield diff
        case GoldScript(script):
            yield script
        case _:
            pass


async def _tools(adapter: Adapter, task: Task, bridges: Bridges) -> list[ToolSpec]:
    trial = await opened(await adapter.assign(task, ANYBODY), task, bridges)
    try:
        return [tool for episode in trial.episodes for tool in episode.tools()]
    finally:
        await trial.close()


async def _driven(assignment: Assignment, task: Task, bridges: Bridges) -> bool:
    trial = await opened(assignment, task, bridges)
    try:
        return any(episode.driver() is not None for episode in trial.episodes)
    finally:
        await trial.close()


async def _visible(adapter: Adapter, task: Task, bridges: Bridges) -> str:
    """All that an agent is shown before it acts."""
    messages = (await adapter.assign(task, ANYBODY)).messages
    tools = await _tools(adapter, task, bridges)
    return "\n".join([*_texts([m.as_json() for m in messages]), *_texts([t.as_json() for t in tools])])


async def _play(
    adapter: Adapter, grader: Grader, task: Task, harness: Harness, registry: Registry, services: LocalServices
) -> Played:
    return await play(adapter, grader, task, harness, registry=registry, services=services)
