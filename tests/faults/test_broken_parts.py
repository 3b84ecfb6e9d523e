"""Environments, adapters and graders that fail, hang or answer nonsense: never the agent's fault or the run's."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from evalcore.contracts import CallContext, InputRequired, Job, ToolResult, text_result
from evalcore.engine import runner, trial
from evalcore.engine.runner import RunEnd
from evalcore.errors import InfraError
from evalcore.report.load import load_report
from evalcore.testing.toy import weather_of
from evalcore.values.json import JSONObject
from evalcore.values.task import Limits, ToolSpec
from evalcore.values.trial import Exit, HarnessExit, Void
from tests.faults import parts
from tests.faults.parts import answer, ask_once, behaving, called, city_of, open_toolset
from tests.faults.rig import attempts, by_task, events, ran, study
from tests.faults.three_tasks import (
    at_t1,
    carried_out,
    deep,
    for_t1,
    hanging,
    is_t1,
    looks_up,
    raising,
    returning,
    single,
    spoiled,
)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Void attempts are tried again at once."""
    monkeypatch.setattr(runner, "backoff_s", lambda *_: 0.0)


class Environment:
    """The toy's episode, with some of it replaced."""

    def __init__(self, inner: Any, **replaced: Any) -> None:
        self._inner = inner
        self.__dict__.update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def bridge(**replaced: Any) -> Callable[..., Awaitable[Any]]:
    """A bridge that opens such an episode for t1."""

    async def opens(spec: Any, of: Any) -> Any:
        inner = await open_toolset(spec, of)
        return Environment(inner, **replaced) if of.key.task == "t1" else inner

    return opens


def test_an_environment_that_fails_in_a_call_spoils_the_trial(tmp_path: Path) -> None:
    void = spoiled(tmp_path, model=looks_up, bridge=bridge(call=raising(ConnectionResetError("gone"))))
    assert void == Void("infra", "tool 'get_weather' of bridge 'in-test': ConnectionResetError: gone")


@pytest.mark.parametrize("error", [SystemExit(1), RecursionError(), InfraError("no server")], ids=type)
def test_however_an_environment_fails_the_run_goes_on(tmp_path: Path, error: BaseException) -> None:
    async def both(body: JSONObject, context: CallContext) -> JSONObject:  # side by side, in tasks of their own
        twice = called(("get_weather", "{}"), ("get_weather", "{}"))
        return twice if context.call == 1 else await answer(body, context)

    assert spoiled(tmp_path, model=both, bridge=bridge(call=raising(error))).kind == "infra"


@pytest.mark.parametrize("value", [None, "10 degrees", {"content": []}], ids=["None", "str", "dict"])
def test_an_environment_that_answers_nonsense_spoils_the_trial(tmp_path: Path, value: Any) -> None:
    void = spoiled(tmp_path, model=looks_up, bridge=bridge(call=returning(value)))
    assert void.kind == "infra" and "no ToolResult" in void.message


def test_a_harness_cannot_hide_that_its_environment_failed(tmp_path: Path) -> None:
    async def hides(job: Job) -> HarnessExit:
        with contextlib.suppress(InfraError):
            await job.tools[0].call("get_weather", {})
        return HarnessExit(weather_of("Oslo"))

    void = spoiled(tmp_path, harness=for_t1(hides), bridge=bridge(call=returning(None)))
    assert void.kind == "infra"


def test_an_environment_that_hangs_in_a_call_runs_into_the_limit_on_time(tmp_path: Path) -> None:
    attempt, _ = single(tmp_path, model=looks_up, bridge=bridge(call=hanging), limits=Limits(wall_s=0.5))
    assert attempt.exit is not None and attempt.exit.limit == "wall_s"
    assert attempt.tool_calls == 1
    assert [e["e"] for e in events(tmp_path / "r", attempt)].count("tool.result") == 0


def test_an_environment_that_asks_a_person_gets_none(tmp_path: Path) -> None:
    asks = returning(InputRequired("which Bern?", {}))
    attempt, grading = single(tmp_path, model=looks_up, bridge=bridge(call=asks))
    assert (attempt.tool_calls, attempt.tool_errors) == (1, 1)
    assert grading.verdict.outcome == "pass"


def twice() -> list[ToolSpec]:
    return [ToolSpec("look", "", {}), ToolSpec("look", "", {})]


@pytest.mark.parametrize(
    "behaviour, message",
    [
        ({"bridge": at_t1(raising(OSError("no docker")), open_toolset)}, "open: OSError: no docker"),
        ({"bridge": at_t1(raising(InfraError("no image")), open_toolset)}, "no image"),
        ({"bridge": at_t1(raising(SystemExit(1)), open_toolset)}, "open: RuntimeError: SystemExit: 1"),
        (
            {"bridge": at_t1(raising(asyncio.CancelledError()), open_toolset)},
            "open: RuntimeError: a cancellation that nobody asked for",
        ),
        ({"bridge": at_t1(hanging, open_toolset)}, "open did not end within 0.1 s"),
        ({"bridge": bridge(tools=twice)}, "bridge 'in-test' offers 'look' more than once"),
        ({"capture": at_t1(raising(KeyError("x")), parts.capture_answer)}, "capture: KeyError: 'x'"),
        ({"capture": at_t1(hanging, parts.capture_answer)}, "capture did not end within 0.1 s"),
        ({"collect": at_t1(raising(OSError("gone")), parts.collect_nothing)}, "collect: OSError: gone"),
        ({"collect": at_t1(hanging, parts.collect_nothing)}, "collect did not end within 0.1 s"),
        (
            {"collect": at_t1(raising(asyncio.CancelledError()), parts.collect_nothing)},
            "collect: RuntimeError: a cancellation that nobody asked for",
        ),
    ],
    ids=[
        "open-raises", "open-deliberate", "open-exits", "open-cancels", "open-hangs", "tools-twice", "capture-raises",
        "capture-hangs", "collect-raises", "collect-hangs", "collect-cancels",
    ],
)  # fmt: skip
def test_a_stage_that_fails_or_hangs_spoils_its_trial_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behaviour: dict[str, Any], message: str
) -> None:
    monkeypatch.setattr(trial, "STAGE_S", 0.1)
    assert spoiled(tmp_path, **behaviour) == Void("infra", message)


@pytest.mark.parametrize("value", [None, "x", 5], ids=type)
def test_a_stage_that_returns_nonsense_is_a_bug(tmp_path: Path, value: Any) -> None:
    assert spoiled(tmp_path, capture=at_t1(returning(value), parts.capture_answer)).kind == "bug"


def test_two_bridges_that_offer_the_same_tool_are_refused(tmp_path: Path) -> None:
    with behaving(assign=lambda a: evolve(a, bridges=a.bridges * 2)):
        end = ran(study("in-test:1", model="in-test/m"), tmp_path)
    assert end == RunEnd("done", voids_left=1)
    void = attempts(tmp_path / "r")[-1].void
    assert void == Void("infra", "tool 'get_weather' is offered by 'in-test' and by 'in-test'")


@pytest.mark.parametrize("does", [raising(OSError("still there")), hanging], ids=["raises", "hangs"])
def test_an_environment_that_does_not_close_spoils_nothing_that_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: Callable[..., Awaitable[Any]]
) -> None:
    monkeypatch.setattr(trial, "STAGE_S", 0.1)
    attempt, grading = single(tmp_path, bridge=bridge(close=does))
    assert grading.verdict.outcome == "pass"
    assert events(tmp_path / "r", attempt)[-1]["e"] == "env.close_failed"


def test_an_episode_is_closed_however_its_trial_ends(tmp_path: Path) -> None:
    closed: list[str] = []

    def closing(name: str) -> Callable[[], Awaitable[None]]:
        async def close() -> None:
            closed.append(name)

        return close

    async def opens(spec: Any, of: Any) -> Any:
        return Environment(await open_toolset(spec, of), close=closing(of.key.task))

    async def harness(job: Job) -> HarnessExit:
        if is_t1(job):
            raise RuntimeError
        return await ask_once(job)

    carried_out(tmp_path, 1, bridge=opens, harness=harness)
    assert closed == ["t0", "t1", "t1", "t1", "t2"]


def test_a_tool_may_answer_with_what_no_encoder_takes(tmp_path: Path) -> None:
    odd = ToolResult(({"type": "text", "text": "\ud800\0"},), structured={"n": 10**30, "x": math.nan, "d": deep(300)})
    attempt, grading = single(tmp_path, model=looks_up, bridge=bridge(call=returning(odd)))
    assert grading.verdict.outcome == "pass"
    (event,) = [e for e in events(tmp_path / "r", attempt) if e["e"] == "tool.result"]
    assert event["content"] == [{"type": "text", "text": "\ud800\0"}]
    assert event["structured"]["n"] == 10**30


def grading(does: Callable[..., Awaitable[Any]]) -> Iterator[Callable[..., Awaitable[Any]]]:
    """A grader that does so for t1."""

    async def grade(task: Any, *rest: Any) -> Any:
        return await (does() if task.id == "t1" else parts.grade_toy(task, *rest))

    yield grade


@pytest.mark.parametrize(
    "does, said_of_it",
    [
        (raising(ZeroDivisionError()), "ZeroDivisionError: "),
        (raising(SystemExit(1)), "RuntimeError: SystemExit: 1"),
        (returning("pass"), "returned str, no verdict"),
        (hanging, "did not answer within 0.1 s"),
    ],
    ids=["raises", "exits", "nonsense", "hangs"],
)
def test_a_grader_that_fails_is_no_failed_task_and_is_asked_again_on_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: Callable[..., Awaitable[Any]], said_of_it: str
) -> None:
    from tests.faults.rig import resumed

    monkeypatch.setattr(trial, "STAGE_S", 0.1)
    attempt, verdict = single(tmp_path, grader=next(grading(does)))

    assert attempt.exit == Exit("completed")
    assert (verdict.verdict.outcome, verdict.error) == ("grader_error", said_of_it)
    (cell,) = load_report(tmp_path / "r").cells
    assert (cell.graded, cell.excluded["grader_error"]) == (2, 1)

    assert resumed(tmp_path / "r") == RunEnd("done")  # with the grader mended
    again, verdict_now = by_task(tmp_path / "r")["t1"]
    assert again == attempt  # not run again
    assert verdict_now is not None and verdict_now.verdict.outcome == "pass"


def test_the_weather_is_known_and_tools_answer(tmp_path: Path) -> None:
    """The rig itself: with nothing replaced, all pass."""
    found = carried_out(tmp_path, 0, model=looks_up)
    assert found["t1"][0].tool_calls == 1
    assert text_result("x").text == "x"
    assert city_of({"messages": [{"role": "user", "content": "What is the weather in Lima? (t2)"}]}) == "Lima"
