"""Does a bridge keep its promises? Subclass `BridgeConformance`, say how to open it, inherit the tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import ClassVar, TypeAlias, cast

import pytest
from attrs import evolve

from evalcore.contracts import Bridge, Episode, InputRequired, ToolResult
from evalcore.engine.services import LocalServices
from evalcore.errors import EvalcoreError, LimitReached
from evalcore.plugins import Registry
from evalcore.testing.fakes import FakeTrial
from evalcore.testing.suite.base import Conformance
from evalcore.testing.suite.checks import (
    NO_OBJECTS,
    hostile_objects,
    json_fault,
    result_fault,
    state_fault,
    tool_faults,
)
from evalcore.values.descriptors import BridgeInfo
from evalcore.values.json import JSONObject, JSONValue, canonical, exact_text, from_exact_text
from evalcore.values.task import Assignment, BridgeSpec, Call, Message, Task, ToolSpec
from evalcore.values.trial import BlobRef

Answer: TypeAlias = "ToolResult | InputRequired"

UNKNOWN = "no_such_tool_here"
BAD_CONFIGS: tuple[JSONObject, ...] = ({}, {"no such key": 1}, {"tools": 7}, {"": [None, {"\ud800": 1}]})


class BridgeConformance(Conformance):
    """Required: `kind`, its registered name, and `calls`, some that work and change its state if it has any.

    `config` is what it is opened with. Override the fixture `bridge` for one that is not registered, and the fixture
    `task` where the environment depends on the task.
    """

    kind: ClassVar[str]
    config: ClassVar[JSONObject] = {}
    calls: ClassVar[Sequence[Call]]
    stateful: ClassVar[bool] = True  # the calls change what `state` says
    repeatable: ClassVar[bool] = True  # the same calls in a fresh episode get the same results

    @pytest.fixture
    def bridge(self, registry: Registry, services: LocalServices) -> Bridge:
        """A bridge."""
        info = registry.get(BridgeInfo, "bridge", self.kind)
        return cast(Bridge, registry.factory(info)(services, info))

    @pytest.fixture
    def spec(self) -> BridgeSpec:
        """What it is opened with: a copy, so that a test cannot change it for the others."""
        config = from_exact_text(exact_text(self.config))
        assert isinstance(config, dict)
        return BridgeSpec(self.kind, config)

    @pytest.fixture
    def task(self) -> Task:
        """The task of the trial."""
        return Task("conformance", {})

    # ── what it offers ───────────────────────────────────────────────────────────────────────────────────────────────

    def test_its_tools_are_well_formed(self, bridge: Bridge, spec: BridgeSpec, task: Task) -> None:
        """Unique names, descriptions, valid schemas; listed twice, the same."""

        async def look() -> None:
            async with opened(bridge, spec, task) as episode:
                tools = list(episode.tools())
                assert not list(tool_faults(tools)), list(tool_faults(tools))
                assert list(episode.tools()) == tools, "listed twice, the tools are others"

        self.run(look())

    def test_its_calls_work(self, bridge: Bridge, spec: BridgeSpec, task: Task) -> None:
        """Each of `calls` names a tool on offer and gets a result that is no error."""

        async def look() -> None:
            async with opened(bridge, spec, task) as episode:
                names = {tool.name for tool in episode.tools()}
                for call in self.calls:
                    assert call.name in names, f"{call.name!r} of `calls` is not on offer: {sorted(names)}"
                    answer = await episode.call(call.name, call.arguments)
                    assert isinstance(answer, ToolResult) and not answer.error, f"{call} got {answer}"

        assert self.calls, "`calls` must hold a call that works"
        self.run(look())

    def test_results_are_well_formed(self, bridge: Bridge, spec: BridgeSpec, task: Task) -> None:
        """Content parts as MCP has them; where a tool declares an output schema, structured content."""

        async def look() -> None:
            async with opened(bridge, spec, task) as episode:
                promised = {tool.name for tool in episode.tools() if tool.output_schema is not None}
                for call in self.calls:
                    answer = await episode.call(call.name, call.arguments)
                    fault = None if isinstance(answer, InputRequired) else result_fault(answer)
                    assert fault is None, f"the result of {call.name!r}: {fault}"
                    if call.name in promised:
                        assert isinstance(answer, ToolResult) and isinstance(answer.structured, dict), (
                            f"{call.name!r} declares an output schema, and answers without structured content"
                        )

        self.run(look())

    def test_the_same_calls_get_the_same_results(self, bridge: Bridge, spec: BridgeSpec, task: Task) -> None:
        """In a fresh episode of the same trial."""
        if not self.repeatable:
            pytest.skip("declared not to be repeatable")
        first = self.run(played(bridge, spec, task, self.calls))
        second = self.run(played(bridge, spec, task, self.calls))
        assert second == first, "played again in a fresh episode, results or state are others"

    # ── episodes ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def test_episodes_share_nothing(self, bridge: Bridge, spec: BridgeSpec, task: Task) -> None:
        """What happens in one is not seen in another, open beside it or opened after it; the configuration stays."""
        config = canonical(spec.config)

        async def look() -> None:
            async with opened(bridge, spec, task) as one, opened(bridge, spec, task) as other:
                before = await state_of(other)
                for call in self.calls:
                    await one.call(call.name, call.arguments)
                assert await state_of(other) == before, "a call in one episode changed the state of another"
                async with opened(bridge, spec, task) as later:
                    assert await state_of(later) == before, "a fresh episode begins where another is"

        self.run(look())
        assert canonical(spec.config) == config, "an episode changed the configuration it was opened with"

    def test_episodes_may_be_opened_at_once(self, bridge: Bridge, spec: BridgeSpec, task: Task) -> None:
        """Eight at a time, each playing on its own."""

        async def look() -> None:
            alone = await played(bridge, spec, task, self.calls)
            at_once = await asyncio.gather(*(played(bridge, spec, task, self.calls) for _ in range(8)))
            if self.repeatable:
                assert all(one == alone for one in at_once), "played at once, results or state are others"

        self.run(look())

    def test_the_state_is_json_and_tells_of_the_calls(self, bridge: Bridge, spec: BridgeSpec, task: Task) -> None:
        """Asked twice, the same; a state that was taken does not change with later calls."""

        async def look() -> None:
            async with opened(bridge, spec, task) as episode:
                taken = await episode.state()
                fault = state_fault(taken)
                assert fault is None, f"the state: {fault}"
                begin = frozen_state(taken)
                assert await state_of(episode) == begin, "asked twice, the state is another"
                for call in self.calls:
                    await episode.call(call.name, call.arguments)
                assert frozen_state(taken) == begin, "a state that was taken changed with later calls"
                fault = state_fault(await episode.state())
                assert fault is None, f"the state: {fault}"
                if self.stateful:
                    assert await state_of(episode) != begin, "`calls` left no trace in the state"

        self.run(look())

    def test_closing_twice_is_closing_once(self, bridge: Bridge, spec: BridgeSpec, task: Task) -> None:
        """`close` may be called again, also at once, and without any call before it."""

        async def look() -> None:
            trial = trial_of(spec, task)
            episode = await bridge.open(spec, trial)
            await episode.close()
            await asyncio.gather(episode.close(), episode.close())
            async with opened(bridge, spec, task) as used:
                for call in self.calls:
                    await used.call(call.name, call.arguments)
                await used.close()
            await trial.close()

        self.run(look())

    def test_a_call_after_the_end_is_refused(self, bridge: Bridge, spec: BridgeSpec, task: Task) -> None:
        """An error result, or an error of evalcore's: a straggler of the agent must not act on what is gone."""

        async def look() -> None:
            for call in self.calls:
                async with opened(bridge, spec, task) as episode:
                    await episode.close()
                    try:
                        answer = await episode.call(call.name, call.arguments)
                    except EvalcoreError:
                        continue
                    assert is_error(answer), f"{call.name!r} was answered after the episode was closed: {answer}"

        self.run(look())

    def test_a_driver_is_one_or_none(self, bridge: Bridge, spec: BridgeSpec, task: Task) -> None:
        """None, or something with `next`."""

        async def look() -> None:
            async with opened(bridge, spec, task) as episode:
                driver = episode.driver()
                assert driver is None or callable(getattr(driver, "next", None)), f"{driver!r} is no driver"

        self.run(look())

    # ── what agents send ─────────────────────────────────────────────────────────────────────────────────────────────

    def test_an_unknown_tool_is_an_error_result(self, bridge: Bridge, spec: BridgeSpec, task: Task) -> None:
        """Never an exception; and the state stays."""
        self._errors(bridge, spec, task, [(UNKNOWN, {}), ("", {}), ("\ud800", None)])

    def test_arguments_that_are_no_object_are_error_results(self, bridge: Bridge, spec: BridgeSpec, task: Task) -> None:
        """Never an exception; and the state stays."""
        self._errors(bridge, spec, task, [(call.name, value) for call in self.calls for value in NO_OBJECTS])

    def _errors(self, bridge: Bridge, spec: BridgeSpec, task: Task, wrong: Sequence[tuple[str, JSONValue]]) -> None:
        async def look() -> None:
            async with opened(bridge, spec, task) as episode:
                before = await state_of(episode)
                for name, arguments in wrong:
                    answer = await answered(episode, name, arguments)
                    assert is_error(answer), f"{name!r} with {arguments!r} got {answer}, and is no call"
                assert await state_of(episode) == before, "a refused call changed the state"

        self.run(look())

    def test_odd_arguments_never_raise(self, bridge: Bridge, spec: BridgeSpec, task: Task) -> None:
        """Objects that lack what is required, hold what nobody asked for, or values of every odd kind.

        Where a limit of the environment's own ends an episode, the next one goes on with what is left.
        """

        async def look(odd: Iterator[tuple[str, JSONValue]]) -> bool:
            async with opened(bridge, spec, task) as episode:
                for name, arguments in odd:
                    try:
                        answer = await answered(episode, name, arguments)
                    except LimitReached:
                        return True
                    fault = None if isinstance(answer, InputRequired) else result_fault(answer)
                    assert fault is None, f"{name!r} with {arguments!r:.200}: {fault}"
                assert json_fault(await plain_state(episode)) is None
            return False

        async def tools() -> list[ToolSpec]:
            async with opened(bridge, spec, task) as episode:
                return list(episode.tools())

        odd = iter([(t.name, a) for t in self.run(tools()) for a in hostile_objects(t.input_schema)])
        while self.run(look(odd)):
            pass

    def test_a_bad_configuration_is_refused_on_purpose(self, bridge: Bridge, spec: BridgeSpec, task: Task) -> None:
        """An error of evalcore's own kinds, with what is wrong; or an episode, if it can be read so."""

        async def look() -> None:
            for config in BAD_CONFIGS:
                said = "opened"
                try:
                    async with opened(bridge, evolve(spec, config=config), task):
                        pass
                except EvalcoreError as error:
                    said = error.message
                except Exception as error:
                    raise AssertionError(f"{config!r} raised {type(error).__name__}: {error}") from error
                assert said.strip(), f"{config!r} was refused without a word"

        self.run(look())


def trial_of(spec: BridgeSpec, task: Task) -> FakeTrial:
    """An attempt that has this bridge alone."""
    return FakeTrial(task, Assignment((Message("user", "Do what you can."),), (spec,)))


@asynccontextmanager
async def opened(bridge: Bridge, spec: BridgeSpec, task: Task) -> AsyncIterator[Episode]:
    """An episode of a trial of its own, closed at the end."""
    trial = trial_of(spec, task)
    try:
        episode = await bridge.open(spec, trial)
        trial.episodes.append(episode)
        yield episode
    finally:
        await trial.close()


async def played(bridge: Bridge, spec: BridgeSpec, task: Task, calls: Sequence[Call]) -> tuple[list[Answer], object]:
    """The answers to some calls in a fresh episode, and the state that they leave."""
    async with opened(bridge, spec, task) as episode:
        answers = [await episode.call(call.name, call.arguments) for call in calls]
        return answers, await state_of(episode)


async def answered(episode: Episode, name: str, arguments: JSONValue) -> Answer:
    """A call's answer; an AssertionError in place of whatever it raises but LimitReached."""
    try:
        return await episode.call(name, arguments)
    except LimitReached:  # the environment's own rules have an end
        raise
    except Exception as error:
        text = f"{name!r} with {arguments!r:.200} raised {type(error).__name__}: {error!s:.200}"
        raise AssertionError(f"{text}; a failure of a tool is a result with `error` set") from error


def is_error(answer: Answer) -> bool:
    """Whether it is a result that says it failed."""
    return isinstance(answer, ToolResult) and answer.error


def frozen_state(state: JSONValue | BlobRef) -> object:
    """A state as a value that nothing can change any more."""
    return state if isinstance(state, BlobRef) else canonical(state)


async def state_of(episode: Episode) -> object:
    """The state now, as a value to compare."""
    return frozen_state(await episode.state())


async def plain_state(episode: Episode) -> JSONValue:
    """The state now; None where it is a blob."""
    state = await episode.state()
    return None if isinstance(state, BlobRef) else state
