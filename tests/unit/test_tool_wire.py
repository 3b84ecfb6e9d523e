"""The tool wire in memory: every call and every answer is recorded, counted and, one after another, passed on."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import psutil
import pytest

from evalcore.contracts import DEADLINE_S, InputRequired, ToolResult, text_result
from evalcore.engine.services import SystemClock
from evalcore.errors import AgentError, InfraError, LimitReached
from evalcore.values.task import Limits, ToolSpec
from evalcore.wires.meter import Meter, RunBudget
from evalcore.wires.recorder import AttemptRecorder
from evalcore.wires.results import OUTPUT_CAP
from evalcore.wires.tools import RecordedTools

Answers = Callable[[str, Any], Awaitable[Any]]
NONE = Limits()


async def fine(name: str, arguments: Any) -> Any:
    return text_result(f"{name} did it")


class Episode:
    """Answers as told, and notes what reached it."""

    answers_unknown_tools = False

    def __init__(self, answers: Answers, *names: str) -> None:
        self._answers = answers
        self._names = names
        self.called: list[tuple[str, Any]] = []

    def tools(self) -> Sequence[ToolSpec]:
        return [ToolSpec(name, "", {"type": "object"}) for name in self._names]

    async def call(self, name: str, arguments: Any) -> Any:
        self.called.append((name, arguments))
        return await self._answers(name, arguments)

    def driver(self) -> None:
        return None

    async def state(self) -> Any:
        return None

    async def close(self) -> None:
        pass


class Wire:
    """A tool wire with everything around it."""

    def __init__(self, answers: Answers = fine, limits: Limits = NONE, names: Sequence[str] = ("look", "take")) -> None:
        self.episode = Episode(answers, *names)
        self.recorder = AttemptRecorder(SystemClock())
        self.meter = Meter(RunBudget(None))
        self.meter.bind(limits, {})
        self.tools = RecordedTools("toy", self.episode, self.recorder, self.meter)

    def call(self, name: str, arguments: Any) -> ToolResult:
        return asyncio.run(self.tools.call(name, arguments))

    def events(self, kind: str) -> list[Any]:
        return list(self.recorder.reader().events(kind))


def test_a_call_and_its_answer_are_recorded_with_one_number() -> None:
    wire = Wire()
    assert wire.call("look", {"at": 5.0}).text == "look did it"
    assert wire.call("take", {}).text == "take did it"

    assert [(e["call"], e["tool"], e["arguments"], e["bridge"]) for e in wire.events("tool.call")] == [
        (1, "look", {"at": 5.0}, "toy"),
        (2, "take", {}, "toy"),
    ]
    assert [(e["call"], e["error"], e["content"]) for e in wire.events("tool.result")] == [
        (1, False, [{"type": "text", "text": "look did it"}]),
        (2, False, [{"type": "text", "text": "take did it"}]),
    ]
    assert (wire.meter.tool_calls, wire.meter.tool_errors) == (2, 0)


def test_a_tools_own_failure_is_an_answer() -> None:
    async def fails(name: str, arguments: Any) -> Any:
        return text_result("no such city", error=True)

    wire = Wire(fails)
    assert wire.call("look", {}).error
    assert wire.events("tool.result")[0]["error"] is True
    assert (wire.meter.tool_errors, wire.meter.failure) == (1, None)


@pytest.mark.parametrize("name", ["", "Look", "look ", "\ud800", "x" * 10_000])
def test_an_unknown_tool_is_told_so_and_never_reaches_the_environment(name: str) -> None:
    wire = Wire()
    result = wire.call(name, {"a": 1})

    assert (result.error, result.text) == (True, f"unknown tool: {name}")
    assert wire.episode.called == []
    assert wire.events("tool.call")[0]["tool"] == name
    assert wire.meter.tool_errors == 1


def test_an_episode_that_answers_unknown_tools_gets_them_and_is_on_record() -> None:
    async def missing(name: str, arguments: Any) -> Any:
        return text_result(f"there is no {name}", error=True)

    wire = Wire(missing)
    wire.episode.answers_unknown_tools = True
    result = asyncio.run(wire.tools.call("fly", {"to": "the moon"}))
    assert (result.error, result.text) == (True, "there is no fly")
    assert wire.episode.called == [("fly", {"to": "the moon"})]
    assert (wire.meter.tool_calls, wire.meter.tool_errors) == (1, 1)


def test_arguments_that_are_no_json_are_recorded_raw_and_never_reach_the_environment() -> None:
    wire = Wire()
    result = wire.tools.refuse("look", '{"at": ', "malformed")

    assert result.error and "no JSON" in result.text
    assert wire.episode.called == []
    (event,) = wire.events("tool.call")
    assert event["raw"] == '{"at": ' and "arguments" not in event
    assert (wire.meter.tool_calls, wire.meter.tool_errors) == (1, 1)


def test_structured_content_is_recorded_beside_the_text() -> None:
    async def structured(name: str, arguments: Any) -> Any:
        return ToolResult(({"type": "text", "text": "5"},), structured={"degrees": 5})

    wire = Wire(structured)
    wire.call("look", {})
    assert wire.events("tool.result")[0]["structured"] == {"degrees": 5}


def test_a_structured_answer_without_text_is_read_as_json() -> None:
    assert ToolResult((), structured={"degrees": 5}).text == '{"degrees":5}'
    assert ToolResult(({"type": "text", "text": "5"},), structured={"degrees": 5}).text == "5"
    assert ToolResult(({"type": "image", "data": "", "mimeType": "image/png"},)).text == ""


def test_nobody_answers_a_question_to_a_person() -> None:
    async def asks(name: str, arguments: Any) -> Any:
        return InputRequired("sure?", {"type": "object"})

    wire = Wire(asks)
    result = wire.call("look", {})
    assert (result.error, result.text) == (True, "input required, and nobody is here to give it: sure?")
    (event,) = wire.events("tool.input_required")
    assert {k: event[k] for k in ("call", "message", "schema", "answer")} == {
        "call": 1, "message": "sure?", "schema": {"type": "object"}, "answer": "declined",
    }  # fmt: skip


def test_a_result_over_the_cap_is_cut_with_a_mark_and_stays_whole_on_record() -> None:
    async def long(name: str, arguments: Any) -> Any:
        return ToolResult(({"type": "text", "text": "é" * 600_000},), structured={"all": "é" * 400_000})

    wire = Wire(long)
    given = wire.call("look", {})
    assert given.structured is None and len(given.content) == 2
    assert given.content[0]["text"] == "é" * (OUTPUT_CAP // 2)
    assert given.content[1]["text"] == f"[evalcore: cut here; {OUTPUT_CAP} of 2000040 bytes are shown]"
    (event,) = wire.events("tool.result")
    assert event["cut"] == {"bytes": 2_000_040, "cap": OUTPUT_CAP}
    assert event["content"][0]["text"] == "é" * 600_000 and event["structured"] == {"all": "é" * 400_000}


def test_a_hundred_megabytes_are_kept_by_nobody() -> None:
    async def huge(name: str, arguments: Any) -> Any:
        return text_result("x" * 100_000_000)

    wire = Wire(huge)
    wire.call("look", {})
    gc.collect()
    before = psutil.Process().memory_info().rss
    for _ in range(5):
        given = wire.call("look", {})
    gc.collect()
    held = psutil.Process().memory_info().rss - before
    assert "100000034 bytes" in given.text
    assert held < 100_000_000  # one of them would be more
    assert sum(map(len, wire.recorder.lines())) < 10_000_000


def test_a_call_over_the_studys_deadline_is_an_error_to_the_agent_which_goes_on() -> None:
    async def slow(name: str, arguments: Any) -> Any:
        if name == "take":
            await asyncio.sleep(600)
        return text_result("seen")

    wire = Wire(slow, Limits(tool_call_s=0.05))
    late = wire.call("take", {})
    assert (late.error, late.text) == (True, "the tool did not answer within 0.05 s")
    assert wire.call("look", {}).text == "seen"
    assert [(e["tool"], e["after_s"]) for e in wire.events("env.timeout")] == [("take", 0.05)]
    assert (wire.meter.failure, wire.meter.limit, wire.meter.tool_errors) == (None, None, 1)


def test_an_episode_that_keeps_the_deadline_is_told_it() -> None:
    seen: list[float | None] = []

    async def looks(name: str, arguments: Any) -> Any:
        seen.append(DEADLINE_S.get())
        return text_result("seen")

    wire = Wire(looks, Limits(tool_call_s=7.0))
    wire.call("look", {})
    assert seen == [7.0] and DEADLINE_S.get() is None


def test_what_an_episode_offers_anew_is_listed_and_told() -> None:
    wire = Wire()
    told: list[int] = []
    wire.tools.watch(lambda: told.append(1))

    async def grows(name: str, arguments: Any) -> Any:
        wire.episode._names = ("look", "take", "give")
        wire.episode.revision = 2  # type: ignore[attr-defined]
        return text_result("more")

    assert wire.call("give", {}).error
    wire.episode._answers = grows
    wire.call("look", {})
    assert [spec.name for spec in wire.tools.list()] == ["look", "take", "give"] and told == [1]
    assert not wire.call("give", {}).error


def test_calls_side_by_side_reach_the_environment_one_at_a_time_in_order() -> None:
    inside: list[str] = []

    async def alone(name: str, arguments: Any) -> Any:
        assert not inside
        inside.append(name)
        await asyncio.sleep(0.005)
        inside.remove(name)
        return text_result(str(arguments["n"]))

    wire = Wire(alone)

    async def all_() -> list[str]:
        calls = (wire.tools.call("look", {"n": n}) for n in range(5))
        return [r.text for r in await asyncio.gather(*calls)]

    assert asyncio.run(all_()) == ["0", "1", "2", "3", "4"]
    assert [e["call"] for e in wire.events("tool.call")] == [1, 2, 3, 4, 5]
    assert "queue_s" not in wire.events("tool.result")[0]
    assert all(e["queue_s"] > 0 for e in wire.events("tool.result")[1:])  # apart from what the tool itself took


@pytest.mark.parametrize("error", [ConnectionResetError("gone"), SystemExit(1), InfraError("gone")], ids=type)
def test_an_environment_that_fails_closes_the_wire(error: BaseException) -> None:
    async def fails(name: str, arguments: Any) -> Any:
        raise error

    wire = Wire(fails)
    for _ in range(2):
        with pytest.raises(InfraError):
            wire.call("look", {})
    assert len(wire.episode.called) == 1
    assert isinstance(wire.meter.failure, InfraError)
    assert wire.events("tool.result") == []


@pytest.mark.parametrize("answer", [None, "text", {"content": []}, ["text"]], ids=["None", "str", "dict", "list"])
def test_an_answer_that_is_none_is_the_environments_failure(answer: Any) -> None:
    async def nonsense(name: str, arguments: Any) -> Any:
        return answer

    wire = Wire(nonsense)
    with pytest.raises(InfraError, match="no ToolResult"):
        wire.call("look", {})
    assert wire.meter.failure is not None


def test_a_limit_refuses_before_anything_is_recorded() -> None:
    wire = Wire(limits=Limits(tool_calls=1))
    wire.call("look", {})
    with pytest.raises(LimitReached):
        wire.call("look", {})
    with pytest.raises(LimitReached):
        wire.tools.refuse("look", "x", "malformed")
    assert len(wire.events("tool.call")) == len(wire.episode.called) == 1


def test_once_the_attempt_is_over_nothing_passes() -> None:
    wire = Wire()
    wire.meter.close()
    with pytest.raises(AgentError):
        wire.call("look", {})
    assert wire.episode.called == []


def test_a_tool_offered_twice_is_refused_with_its_name() -> None:
    with pytest.raises(InfraError, match="bridge 'toy' offers 'look' more than once"):
        Wire(names=("look", "take", "look"))


def test_tools_are_listed_as_the_environment_offers_them() -> None:
    assert [spec.name for spec in Wire().tools.list()] == ["look", "take"]
