"""What a harness under test can do: crash, hang, lie, return nonsense, go on for ever. It harms its own trial."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from evalcore.contracts import CallContext, Job
from evalcore.engine import runner, trial
from evalcore.errors import AgentError, InfraError, MalformedCall
from evalcore.testing.toy import weather_of
from evalcore.values.json import JSONObject
from evalcore.values.task import Limits
from evalcore.values.trial import Exit, HarnessExit, Void
from tests.faults.parts import answer, ask_once, said
from tests.faults.rig import attempts, events, trace
from tests.faults.three_tasks import for_t1, hanging, raising, returning, single, spoiled
from tests.oracles import ROOT


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Void attempts are tried again at once."""
    monkeypatch.setattr(runner, "backoff_s", lambda *_: 0.0)


@pytest.mark.parametrize(
    "error, detail",
    [
        (AgentError("lost its way"), "lost its way"),
        (MalformedCall("no JSON"), "no JSON"),
        (SystemExit(3), "the harness raised SystemExit: 3"),
        (KeyboardInterrupt(), "the harness raised KeyboardInterrupt: "),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_harness_that_gives_up_has_crashed_and_is_graded(tmp_path: Path, error: BaseException, detail: str) -> None:
    attempt, grading = single(tmp_path, harness=for_t1(raising(error)))
    assert attempt.exit == Exit("crashed", detail=detail)
    assert grading.verdict.outcome == "fail"


class Odd(BaseException):
    """Neither an Exception nor an exit."""


@pytest.mark.parametrize(
    "error, message",
    [
        (RuntimeError("a bug"), "RuntimeError: a bug"),
        (Odd("odd"), "Odd: odd"),
        (GeneratorExit(), "GeneratorExit: "),
        (asyncio.CancelledError(), "the harness returned nothing"),
        (RecursionError("too deep"), "RecursionError: too deep"),
        (MemoryError(), "MemoryError: "),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_harness_adapter_that_breaks_is_void(tmp_path: Path, error: BaseException, message: str) -> None:
    assert spoiled(tmp_path, harness=for_t1(raising(error))) == Void("bug", message)


@pytest.mark.parametrize(
    "value",
    [None, "done", 5, {"answer": "x"}, HarnessExit(answer=5), HarnessExit(claim="won"), HarnessExit(evidence="x")],  # type: ignore[arg-type]
    ids=["None", "str", "int", "dict", "answer", "claim", "evidence"],
)
def test_a_harness_adapter_that_returns_nonsense_is_void(tmp_path: Path, value: Any) -> None:
    void = spoiled(tmp_path, harness=for_t1(returning(value)))
    assert void.kind == "bug" and void.message.startswith("the harness returned ")


def test_a_harness_that_blames_the_machine_is_not_believed(tmp_path: Path) -> None:
    attempt, grading = single(tmp_path, harness=for_t1(returning(HarnessExit(claim="infra"))))
    assert attempt.exit is not None and attempt.exit.kind == "crashed"
    assert grading.verdict.outcome == "fail"


def test_a_harness_that_hides_a_failure_of_the_provider_is_not_believed_either(tmp_path: Path) -> None:
    async def model(body: JSONObject, context: CallContext) -> JSONObject:
        if context.key.task == "t1":
            raise InfraError("503 overloaded")
        return await answer(body, context)

    async def hides(job: Job) -> HarnessExit:
        try:
            return await ask_once(job)
        except InfraError:
            return HarnessExit(weather_of("Oslo"))

    assert spoiled(tmp_path, model=model, harness=for_t1(hides)) == Void("infra", "503 overloaded")


def test_a_harness_that_never_returns_is_stopped_and_graded_as_it_stands(tmp_path: Path) -> None:
    async def talks_on(job: Job) -> HarnessExit:
        await job.tools[0].call("get_weather", {"city": "Oslo"})
        return await hanging()  # type: ignore[no-any-return]

    attempt, grading = single(tmp_path, harness=for_t1(talks_on), limits=Limits(wall_s=0.5))
    assert attempt.exit == Exit("limit", "wall_s", "the trial's time was over")
    assert (grading.verdict.outcome, grading.verdict.views) == ("fail", {"looked it up": True})


def test_what_a_harness_says_in_its_last_breath_is_kept_and_decides_nothing(tmp_path: Path) -> None:
    async def gives_in(job: Job) -> HarnessExit:
        try:
            await hanging()
        except asyncio.CancelledError:
            return HarnessExit(weather_of("Oslo"), exit_code=143)
        raise AssertionError

    attempt, grading = single(tmp_path, harness=for_t1(gives_in), limits=Limits(wall_s=0.5))
    assert attempt.exit == Exit("limit", "wall_s", "the trial's time was over", 143)
    assert grading.verdict.outcome == "pass"  # the deliverable as it stands


def stubborn(calls: list[str]) -> Callable[[Job], Awaitable[Any]]:
    """A harness that ignores every cancellation, and goes on asking its model, until it is refused often enough."""

    async def does(job: Job) -> Any:
        assert job.model is not None
        while calls.count("refused") < 5:
            try:
                await asyncio.sleep(0.05)
                await job.model.complete({"messages": []})
            except AgentError:
                calls.append("refused")
            except asyncio.CancelledError:
                calls.append("cancelled")
        calls.append("ended")

    return does


def counted(calls: list[str]) -> Callable[[JSONObject, CallContext], Awaitable[Any]]:
    """A model that notes each time it is asked about t1."""

    async def model(body: JSONObject, context: CallContext) -> Any:
        if context.key.task != "t1":
            return await answer(body, context)
        calls.append("asked")
        return said({"content": "x"})

    return model


def test_a_harness_that_ignores_cancellation_is_left_behind_without_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "GRACE_S", 0.02)
    calls: list[str] = []

    attempt, grading = single(
        tmp_path, harness=for_t1(stubborn(calls)), model=counted(calls), limits=Limits(wall_s=0.5)
    )

    assert attempt.exit == Exit("limit", "wall_s", "the trial's time was over")
    assert grading.verdict.outcome == "fail"
    assert "cancelled" in calls
    after = calls[calls.index("cancelled") :]
    assert "asked" not in after  # nobody pays for what it does on its own
    asked = [e for e in events(tmp_path / "r", attempt) if e["e"] == "model.request"]
    assert len(asked) == attempt.usage["agent"].calls == calls.count("asked")


def test_what_a_harness_leaves_running_reaches_neither_model_nor_tools(tmp_path: Path) -> None:
    calls: list[str] = []
    left: list[asyncio.Task[Any]] = []

    async def linger(job: Job) -> None:
        assert job.model is not None
        await asyncio.sleep(0)
        for door in (job.model.complete({"messages": []}), job.tools[0].call("get_weather", {})):
            try:
                await door
            except AgentError:
                calls.append("refused")

    async def leaves(job: Job) -> HarnessExit:
        left.append(asyncio.ensure_future(linger(job)))
        return HarnessExit(weather_of("Oslo"))

    attempt, grading = single(tmp_path, harness=for_t1(leaves), model=counted(calls))

    assert calls == ["refused", "refused"]
    assert (attempt.tool_calls, attempt.usage) == (0, {})
    assert grading.verdict.outcome == "pass"


def test_a_harness_may_ask_its_model_many_things_at_once(tmp_path: Path) -> None:
    async def model(body: JSONObject, context: CallContext) -> JSONObject:
        if context.key.task != "t1":
            return await answer(body, context)
        await asyncio.sleep(0.02 * (6 - context.call))  # the last one asked answers first
        return said({"content": f"answer {context.call} to {body['messages'][0]['content']}"})  # type: ignore[index,call-overload]

    async def asks(job: Job) -> HarnessExit:
        assert job.model is not None
        requests = [{"messages": [{"role": "user", "content": f"question {i}"}]} for i in range(1, 6)]
        await asyncio.gather(*(job.model.complete(r) for r in requests))  # type: ignore[arg-type]
        return HarnessExit("done")

    attempt, _ = single(tmp_path, harness=for_t1(asks), model=model)

    story = events(tmp_path / "r", attempt)
    answers = {e["call"]: e["body"]["choices"][0]["message"]["content"] for e in story if e["e"] == "model.response"}
    assert answers == {i: f"answer {i} to question {i}" for i in range(1, 6)}
    with trace(tmp_path / "r", attempt) as reader:
        assert [r["messages"][0]["content"] for r in reader.requests()] == [f"question {i}" for i in range(1, 6)]  # type: ignore[index,call-overload]


FOR_EVER = """
import asyncio, sys
from pathlib import Path
from evalcore.engine import loop, trial
from evalcore.values.task import Limits
from tests.faults.parts import behaving
from tests.faults.rig import begin, study

trial.GRACE_S = loop.LAST_S = 0.05

async def stubborn(job):
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

arms = {"a": {"harness": "in-test", "model": "in-test/m"}}
with behaving(harness=stubborn, limits=Limits(wall_s=0.2)):
    print(loop.run_to_end(begin(study("in-test:1", arms=arms), Path(sys.argv[1]))).reason)
"""


def test_the_program_ends_even_where_an_agent_never_does(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FOR_EVER, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert done.stdout == "done\n"
    (attempt,) = attempts(tmp_path / "r")
    assert attempt.exit is not None and attempt.exit.limit == "wall_s"
