"""Bridges, each of which breaks one rule of the suite. Run by `test_suites_catch`; none may pass."""
# ruff: noqa: N801 - a broken part stands where a fixture looks for it, under the name of an attribute

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from evalcore.contracts import Bridge, ToolResult, text_result
from evalcore.errors import EvalcoreError
from evalcore.testing import BridgeConformance
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import Call, ToolSpec
from tests.conformance.parts import THING, ShelfBridge, ShelfEpisode

counter = itertools.count()


class BridgeCase(BridgeConformance):
    """A shelf that is broken in one way."""

    plugins = ("tests.conformance.parts",)
    kind = "shelf"
    config: ClassVar[JSONObject] = {"things": ["cup"]}
    calls: ClassVar[Sequence[Call]] = (Call("put", {"thing": "book"}), Call("look", {}))
    episode: ClassVar[Any] = ShelfEpisode
    breaks: ClassVar[str]
    says: ClassVar[str]

    @pytest.fixture
    def bridge(self) -> Bridge:
        bridge = ShelfBridge()
        bridge.episode = self.episode
        return bridge


def answering(result: Any) -> Any:
    """A shelf whose `look` answers so."""

    class Broken(ShelfEpisode):
        async def call(self, name: str, arguments: JSONValue) -> ToolResult:
            usual = await super().call(name, arguments)
            return result if name == "look" and not usual.error else usual

    return Broken


def offering(*tools: ToolSpec) -> Any:
    class Broken(ShelfEpisode):
        def tools(self) -> Sequence[ToolSpec]:
            return tools

    return Broken


class TestToolsOfTheMoment(BridgeCase):
    breaks, says = "test_its_tools_are_well_formed", "listed twice, the tools are others"

    class episode(ShelfEpisode):
        def tools(self) -> Sequence[ToolSpec]:
            return [ToolSpec(f"put{next(counter)}", "Put it.", THING)]


class TestToolWithoutASchema(BridgeCase):
    breaks, says = "test_its_tools_are_well_formed", 'must say "type": "object", and says None'
    episode = offering(ToolSpec("put", "Put it.", {}))


class TestToolWithoutADescription(BridgeCase):
    breaks, says = "test_its_tools_are_well_formed", "the description of 'put' says nothing"
    episode = offering(ToolSpec("put", " ", THING))


class TestCallNotOnOffer(BridgeCase):
    breaks, says = "test_its_calls_work", "'take' of `calls` is not on offer"
    calls = (Call("take", {}),)


class TestCallThatFails(BridgeCase):
    breaks, says = "test_its_calls_work", "error=True"
    calls = (Call("put", {"thing": 7}),)


class TestNoCalls(BridgeCase):
    breaks, says = "test_its_calls_work", "`calls` must hold a call that works"
    calls = ()


class TestContentNobodyKnows(BridgeCase):
    breaks, says = "test_results_are_well_formed", "content[0] has the type 'smell'"
    episode = answering(ToolResult(({"type": "smell"},)))


class TestContentWithoutText(BridgeCase):
    breaks, says = "test_results_are_well_formed", "needs the text `text`"
    episode = answering(ToolResult(({"type": "text", "text": None},)))


class TestContentOfAList(BridgeCase):
    breaks, says = "test_results_are_well_formed", "its `content` is"
    episode = answering(ToolResult([]))  # type: ignore[arg-type]


class TestAnswersText(BridgeCase):
    breaks, says = "test_results_are_well_formed", "of type str, no ToolResult"
    episode = answering("fine")


class TestPromisesStructure(BridgeCase):
    breaks, says = "test_results_are_well_formed", "declares an output schema, and answers without"
    episode = offering(ToolSpec("put", "Put it.", THING, THING), ToolSpec("look", "Look.", {"type": "object"}))


class TestResultOfTheMoment(BridgeCase):
    breaks, says = "test_the_same_calls_get_the_same_results", "played again in a fresh episode"

    class episode(ShelfEpisode):
        async def call(self, name: str, arguments: JSONValue) -> ToolResult:
            await super().call(name, arguments)
            return text_result(f"number {next(counter)}")


class TestOneShelfForAll(BridgeCase):
    breaks, says = "test_episodes_share_nothing", "changed the state of another"

    class episode(ShelfEpisode):
        common: ClassVar[list[str]] = []

        def __init__(self, things: list[str]) -> None:
            super().__init__(things)
            self.things = self.common


class TestShelfThatStaysFull(BridgeCase):
    breaks, says = "test_episodes_share_nothing", "a fresh episode begins where another is"

    class episode(ShelfEpisode):
        last: ClassVar[list[str]] = []

        def __init__(self, things: list[str]) -> None:
            super().__init__([*things, *self.last])

        async def call(self, name: str, arguments: JSONValue) -> ToolResult:
            result = await super().call(name, arguments)
            type(self).last = list(self.things)
            return result


class TestConfigurationIsWrittenOn(BridgeCase):
    breaks, says = "test_episodes_share_nothing", "changed the configuration it was opened with"

    @pytest.fixture
    def bridge(self) -> Bridge:
        class Broken(ShelfBridge):
            async def open(self, spec: Any, trial: Any) -> Any:
                opened = await super().open(spec, trial)
                spec.config["opened"] = True
                return opened

        return Broken()


class TestOneAtATime(BridgeCase):
    breaks, says = "test_episodes_may_be_opened_at_once", "played at once, results or state are others"

    class episode(ShelfEpisode):
        open_now: ClassVar[int] = 0

        def __init__(self, things: list[str]) -> None:
            super().__init__(things)
            type(self).open_now += 1
            self.things += ["crowd"] * (self.open_now - 1)

        async def close(self) -> None:
            if not self.closed:
                type(self).open_now -= 1
            await super().close()


class TestStateOfASet(BridgeCase):
    breaks, says = "test_the_state_is_json_and_tells_of_the_calls", "of type set, no JSON"

    class episode(ShelfEpisode):
        async def state(self) -> Any:
            return {"things": set(self.things)}


class TestStateThatLives(BridgeCase):
    breaks, says = "test_the_state_is_json_and_tells_of_the_calls", "a state that was taken changed with later calls"

    class episode(ShelfEpisode):
        async def state(self) -> Any:
            return self.things


class TestStateOfTheMoment(BridgeCase):
    breaks, says = "test_the_state_is_json_and_tells_of_the_calls", "asked twice, the state is another"

    class episode(ShelfEpisode):
        async def state(self) -> JSONValue:
            return next(counter)


class TestStateThatTellsNothing(BridgeCase):
    breaks, says = "test_the_state_is_json_and_tells_of_the_calls", "`calls` left no trace in the state"

    class episode(ShelfEpisode):
        async def state(self) -> JSONValue:
            return None


class TestClosesOnce(BridgeCase):
    breaks, says = "test_closing_twice_is_closing_once", "RuntimeError: closed already"

    class episode(ShelfEpisode):
        async def close(self) -> None:
            if self.closed:
                raise RuntimeError("closed already")
            await super().close()


class TestServesAfterTheEnd(BridgeCase):
    breaks, says = "test_a_call_after_the_end_is_refused", "was answered after the episode was closed"

    class episode(ShelfEpisode):
        async def close(self) -> None:
            pass


class TestRaisesAfterTheEnd(BridgeCase):
    breaks, says = "test_a_call_after_the_end_is_refused", "KeyError"

    class episode(ShelfEpisode):
        async def call(self, name: str, arguments: JSONValue) -> ToolResult:
            if self.closed:
                raise KeyError(name)
            return await super().call(name, arguments)


class TestDriverThatIsNone(BridgeCase):
    breaks, says = "test_a_driver_is_one_or_none", "is no driver"

    class episode(ShelfEpisode):
        def driver(self) -> Any:
            return "a driver"


class TestUnknownToolRaises(BridgeCase):
    breaks, says = "test_an_unknown_tool_is_an_error_result", "raised KeyError"

    class episode(ShelfEpisode):
        async def call(self, name: str, arguments: JSONValue) -> ToolResult:
            if name not in ("put", "look"):
                raise KeyError(name)
            return await super().call(name, arguments)


class TestUnknownToolWorks(BridgeCase):
    breaks, says = "test_an_unknown_tool_is_an_error_result", "and is no call"

    class episode(ShelfEpisode):
        async def call(self, name: str, arguments: JSONValue) -> ToolResult:
            usual = await super().call(name, arguments)
            return usual if name in ("put", "look") else text_result("sure")


class TestCountsWhatItRefuses(BridgeCase):
    breaks, says = "test_an_unknown_tool_is_an_error_result", "a refused call changed the state"

    class episode(ShelfEpisode):
        async def call(self, name: str, arguments: JSONValue) -> ToolResult:
            self.things.append("a call")
            return await super().call(name, arguments)


class TestTakesAnyArguments(BridgeCase):
    breaks, says = "test_arguments_that_are_no_object_are_error_results", "and is no call"

    class episode(ShelfEpisode):
        async def call(self, name: str, arguments: JSONValue) -> ToolResult:
            return await super().call(name, arguments if isinstance(arguments, dict) else {"thing": "it"})


class TestTrustsItsArguments(BridgeCase):
    breaks, says = "test_odd_arguments_never_raise", "a failure of a tool is a result with `error` set"

    class episode(ShelfEpisode):
        async def call(self, name: str, arguments: JSONValue) -> ToolResult:
            if name == "put" and isinstance(arguments, dict):
                arguments["thing"]
            return await super().call(name, arguments)


class TestChokesOnItsConfiguration(BridgeCase):
    breaks, says = "test_a_bad_configuration_is_refused_on_purpose", "raised KeyError"

    @pytest.fixture
    def bridge(self) -> Bridge:
        class Broken(ShelfBridge):
            async def open(self, spec: Any, trial: Any) -> Any:
                spec.config["things"]
                return await super().open(spec, trial)

        return Broken()


class TestRefusesWithoutAWord(BridgeCase):
    breaks, says = "test_a_bad_configuration_is_refused_on_purpose", "was refused without a word"

    @pytest.fixture
    def bridge(self) -> Bridge:
        class Broken(ShelfBridge):
            async def open(self, spec: Any, trial: Any) -> Any:
                if "things" not in spec.config:
                    raise EvalcoreError("")
                return await super().open(spec, trial)

        return Broken()
