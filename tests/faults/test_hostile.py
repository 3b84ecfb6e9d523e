"""What an agent, a model, a harness or an environment can throw at the rig: recorded, charged to whose fault it is, and
no other trial notices."""

from __future__ import annotations

import asyncio
import contextlib
import math
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from evalcore.contracts import CallContext, InputRequired, Job, ToolResult, text_result
from evalcore.engine import runner, trial
from evalcore.engine.runner import RunEnd
from evalcore.errors import AgentError, FatalInfraError, InfraError, MalformedCall
from evalcore.report.load import load_report
from evalcore.report.scorecard import encode
from evalcore.testing.toy import weather_of
from evalcore.values.json import JSONObject, canonical
from evalcore.values.task import Limits, ToolSpec
from evalcore.values.trial import Attempt, Exit, Grading, HarnessExit, Void
from tests.faults import parts
from tests.faults.parts import answer, ask_once, behaving, called, city_of, open_toolset, said
from tests.faults.rig import attempts, by_task, events, ran, study, trace
from tests.oracles import ROOT


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Void attempts are tried again at once."""
    monkeypatch.setattr(runner, "backoff_s", lambda *_: 0.0)


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value]
    return value


# ── what a model can say ─────────────────────────────────────────────────────────────────────────────────────────────

HUGE = "1" + "0" * 5000  # more digits than Python reads or prints by itself
LEVELS = 200_000

# arguments of a call of the one tool, as sent: text of JSON as it should be, or anything else
ARGUMENTS: dict[str, Any] = {
    "a huge integer": '{"city": 1000000000000000000000000000000}',
    "an integer of 5,000 digits": f'{{"city": {HUGE}}}',
    "an escaped lone surrogate": '{"city": "\\ud800"}',
    "a lone surrogate": '{"city": "\udfff"}',
    "NaN": '{"city": NaN, "limit": -Infinity}',
    "a number beyond floats": '{"city": 1e999}',
    "a list": "[1, 2]",
    "a string": '"Bern"',
    "a number": "5",
    "null": "null",
    "half an object": '{"city": ',
    "no JSON": "city=Bern",
    "nothing": "",
    "blanks": " \n ",
    "two objects": '{"city": "Bern"} {"city": "Oslo"}',
    "a key twice": '{"city": "Oslo", "city": "Bern"}',
    "lists 200,000 deep": "[" * LEVELS + "]" * LEVELS,
    "objects 200,000 deep": '{"a":' * LEVELS + "1" + "}" * LEVELS,
    "an escaped NUL": '{"city": "\\u0000"}',
    "a NUL": "\0",
    "what looks like a tag": '{"$int16": "no number", "$exact": "no JSON", "n": NaN}',
    "an object": {"city": "Bern"},
    "an object, not as text": {"city": 10**30, "n": math.nan, "s": "\ud800"},
    "a list, not as text": [1, 2],
    "an integer, not as text": 10**5000,
    "NaN, not as text": math.nan,
    "null, not as text": None,
    "300 levels, not as text": deep(300),
    "200,000 levels, not as text": deep(LEVELS),
}
NAMES: dict[str, Any] = {
    "no name": "",
    "a name of 100,000": "x" * 100_000,
    "a surrogate as name": "\ud800",
    "a NUL in the name": "get_weather\0",
    "a path": "../../etc/passwd",
    "a tag": "$exact",
    "a number as name": 5,
    "null as name": None,
    "a list as name": ["get_weather"],
    "a deep list as name": deep(LEVELS),
}


def call(**fields: Any) -> JSONObject:
    """A response of one call of the tool; `fields` stand in its place in the list."""
    good = {"id": "c0", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Bern"}'}}
    return said({"content": None, "tool_calls": [good | fields]})


CALLS: dict[str, JSONObject] = {
    "no id": call(id=None),
    "a number as id": call(id=10**5000),
    "a deep list as id": call(id=deep(LEVELS)),
    "a surrogate as id": call(id="\ud800"),
    "no function": call(function=None),
    "text for a function": call(function="get_weather"),
    "an empty function": call(function={}),
    "a hundred at once": said(
        {"content": None, "tool_calls": [call()["choices"][0]["message"]["tool_calls"][0]] * 100}
    ),  # type: ignore[index,call-overload]
    "a call among nonsense": said({"content": None, "tool_calls": [5, None, "x", {}, [], {"function": {"name": "t"}}]}),
}
# responses that end the conversation
LAST: dict[str, Any] = {
    "text for calls": said({"content": "no", "tool_calls": "get_weather"}),
    "an object for calls": said({"content": "no", "tool_calls": {"name": "get_weather"}}),
    "a number for calls": said({"content": "no", "tool_calls": 5}),
    "true for calls": said({"content": "no", "tool_calls": True}),
    "nonsense for calls": said({"content": "no", "tool_calls": [5, None, "x"]}),
    "no calls": said({"content": "no", "tool_calls": []}),
    "a number as content": said({"content": 10**30}),
    "NaN as content": said({"content": math.nan}),
    "an object as content": said({"content": {"text": "x"}}),
    "parts of no text": said({"content": [{"type": "text", "text": 5}, {"type": "image"}, 5, None]}),
    "a surrogate as content": said({"content": "\ud800"}),
    "a NUL as content": said({"content": "\0"}),
    "deep content": said({"content": deep(LEVELS)}),
    "a number as refusal": said({"content": "no", "refusal": 5}),
    "no choice": {"choices": []},
    "nothing": {},
    "text for choices": {"choices": "x"},
    "a number for a choice": {"choices": [5]},
    "text for a message": {"choices": [{"message": "x"}]},
    "text for usage": {**said({"content": "no"}), "usage": "much"},
    "odd counts": said({"content": "no"}, prompt_tokens=-5, completion_tokens=1.5),
    "odder counts": said({"content": "no"}, prompt_tokens="7", completion_tokens=True, cost="much"),
    "counts beyond 64 bits": said({"content": "no"}, prompt_tokens=10**30),
    "a negative cost": said({"content": "no"}, cost=-1),
    "no number as cost": said({"content": "no"}, cost=math.nan),
    "tag-like fields": {**said({"content": "no"}), "$exact": "x", "$int16": "y", "n": 10**30},
}
NOT_KEPT = ("200,000 levels", "deep ", "a deep list", "300 levels")  # deeper than any reader of JSON follows
FIRST = (
    {f"arguments: {k}": called(("get_weather", v)) for k, v in ARGUMENTS.items()}
    | {f"name: {k}": called((v, "{}")) for k, v in NAMES.items()}
    | {f"call: {k}": v for k, v in CALLS.items()}
)
SAID = FIRST | {f"last: {k}": v for k, v in LAST.items()}
TASKS = {f"t{number}": name for number, name in enumerate(SAID)}
PEACEFUL = 2  # trials of other tasks, in the same run


async def say_it(body: JSONObject, context: CallContext) -> Any:
    """The task's own hostile response first, then the right answer."""
    name = TASKS.get(context.key.task)
    if name is None or context.call > 1:
        return await answer(body, context)
    return SAID[name]


@pytest.fixture(scope="module")
def all_said(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, tuple[Attempt, Grading | None]]]:
    """One run, in which each task's model says one of them."""
    folder = tmp_path_factory.mktemp("said")
    with behaving(model=say_it):
        end = ran(study(f"in-test:{len(TASKS) + PEACEFUL}", model="in-test/m"), folder)
    assert end == RunEnd("done")
    found = by_task(folder / "r")
    return folder / "r", {TASKS.get(task, task): pair for task, pair in found.items()}


def test_nothing_that_a_model_says_stops_a_run_or_touches_another_trial(
    all_said: tuple[Path, dict[str, tuple[Attempt, Grading | None]]],
) -> None:
    run, found = all_said
    assert len(found) == len(attempts(run)) == len(SAID) + PEACEFUL  # no attempt was void: each was made once
    for task in range(len(SAID), len(SAID) + PEACEFUL):
        attempt, grading = found[f"t{task}"]
        assert attempt.exit == Exit("completed")
        assert grading is not None and grading.verdict.outcome == "pass"
    encode(load_report(run))


@pytest.mark.parametrize("name", SAID)
def test_what_a_model_says_is_recorded_and_graded_as_the_agents(
    all_said: tuple[Path, dict[str, tuple[Attempt, Grading | None]]], name: str
) -> None:
    run, found = all_said
    attempt, grading = found[name]

    assert attempt.exit is not None and attempt.exit.kind == "completed"
    assert grading is not None and grading.error is None
    assert grading.verdict.outcome == ("pass" if name in FIRST else "fail")
    story = events(run, attempt)
    first = next(e for e in story if e["e"] == "model.response")
    if not any(mark in name for mark in NOT_KEPT):
        assert canonical(first["body"]) == canonical(SAID[name])
    with trace(run, attempt) as reader:
        assert len(reader.requests()) == attempt.usage["agent"].calls
    answered = [e for e in story if e["e"] == "tool.result"]
    assert len(answered) == attempt.tool_calls
    assert sum(e["error"] for e in answered) == attempt.tool_errors


@pytest.mark.parametrize("name", [n for n in ARGUMENTS if isinstance(ARGUMENTS[n], str)])
def test_arguments_are_recorded_as_sent(
    all_said: tuple[Path, dict[str, tuple[Attempt, Grading | None]]], name: str
) -> None:
    import json

    run, found = all_said
    sent = ARGUMENTS[name]
    (event,) = [e for e in events(run, found[f"arguments: {name}"][0]) if e["e"] == "tool.call"]

    assert event["tool"] == "get_weather"
    if "raw" in event:
        assert event["raw"] == sent
        with pytest.raises((ValueError, RecursionError)):
            json.loads(sent)
    else:
        assert canonical(event["arguments"]) == canonical(json.loads(sent) if sent.strip() else {})


NO_OBJECTS: list[Any] = [[], "x", None, 5, b"{}", [said({"content": "x"})]]


@pytest.mark.parametrize("response", NO_OBJECTS, ids=[type(r).__name__ for r in NO_OBJECTS[:-1]] + ["wrapped"])
def test_a_provider_that_answers_no_object_has_failed_and_not_the_agent(tmp_path: Path, response: Any) -> None:
    void = spoiled(tmp_path, model=once_for_t1(response))
    assert void.kind == "infra" and "no object" in void.message


def once_for_t1(response: Any) -> Callable[[JSONObject, CallContext], Awaitable[Any]]:
    """A model that answers task t1 so, and the others well."""

    async def model(body: JSONObject, context: CallContext) -> Any:
        return response if context.key.task == "t1" else await answer(body, context)

    return model


@pytest.mark.parametrize("cost", [math.inf, 10**400], ids=["infinite", "beyond floats"])
def test_a_cost_that_is_no_amount_of_money_is_unknown(tmp_path: Path, cost: Any) -> None:
    attempt, _ = single(tmp_path, model=once_for_t1(said({"content": "x"}, cost=cost)))
    assert attempt.usage["agent"].cost_usd is None
    encode(load_report(tmp_path / "r"))


BIG = """
import asyncio, resource, sys
from pathlib import Path
from tests.faults import rig
from tests.faults.parts import answer, behaving, called, said

text = "x" * 50_000_000
what = {
    "arguments": called(("get_weather", '{"city": "%s"}' % text)),
    "malformed": called(("get_weather", '{"city": "%s' % text)),
    "name": called((text, "{}")),
    "content": said({"content": text}),
}[sys.argv[2]]

async def model(body, context):
    return what if (context.key.task, context.call) == ("t1", 1) else await answer(body, context)

with behaving(model=model):
    end = rig.ran(rig.study("in-test:3", model="in-test/m"), Path(sys.argv[1]))
print(end.reason, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["arguments", "malformed", "name", "content"])
def test_fifty_megabytes_in_one_place_are_kept_without_eating_the_machine(tmp_path: Path, where: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BIG, str(tmp_path), where], cwd=ROOT, capture_output=True, text=True, check=True
    )
    reason, mebibytes = done.stdout.split()

    assert reason == "done"
    assert int(mebibytes) < 1500
    found = by_task(tmp_path / "r")
    attempt, grading = found["t1"]
    assert attempt.exit == Exit("completed")
    assert grading is not None and grading.verdict.outcome == ("fail" if where == "content" else "pass")
    story = events(tmp_path / "r", attempt)
    assert sum(str(e).count("x" * 50_000_000) for e in story if e["e"] == "model.response") == 1
    assert (tmp_path / "r" / "attempts.jsonl").stat().st_size < 10_000
    assert all(g is not None and g.verdict.outcome == "pass" for t, (_, g) in found.items() if t != "t1")


# ── what a harness can do ────────────────────────────────────────────────────────────────────────────────────────────


def is_t1(job: Job) -> bool:
    return str(job.messages[-1].content).endswith("(t1)")


def for_t1(does: Callable[[Job], Awaitable[Any]]) -> Callable[[Job], Awaitable[Any]]:
    """A harness that does so in task t1, and behaves in the others."""

    async def harness(job: Job) -> Any:
        return await (does(job) if is_t1(job) else ask_once(job))

    return harness


def raising(error: BaseException) -> Callable[..., Awaitable[Any]]:
    async def does(*_: object) -> Any:
        raise error

    return does


def returning(value: Any) -> Callable[..., Awaitable[Any]]:
    async def does(*_: object) -> Any:
        return value

    return does


async def hanging(*_: object) -> Any:
    await asyncio.sleep(600)


ARM = {"a": {"harness": "in-test", "model": "in-test/m"}}


def carried_out(folder: Path, voids: int, **behaviours: Any) -> dict[str, tuple[Attempt, Grading | None]]:
    """Run three tasks, one at a time, so that a worker that died would be missed; t0 and t2 must pass."""
    arms = ARM if "harness" in behaviours else {"a": {"harness": "react", "model": "in-test/m"}}
    with behaving(**behaviours):
        end = ran(study("in-test:3", arms=arms), folder, concurrency=1)
    assert end == RunEnd("done", voids_left=voids)
    found = by_task(folder / "r")
    for task in ("t0", "t2"):
        attempt, grading = found[task]
        assert attempt.exit == Exit("completed")
        assert grading is not None and grading.verdict.outcome == "pass"
    return found


def single(folder: Path, **behaviours: Any) -> tuple[Attempt, Grading]:
    """The one attempt of t1, and its verdict."""
    attempt, grading = carried_out(folder, 0, **behaviours)["t1"]
    assert attempt.number == 1 and attempt.void is None
    assert grading is not None
    return attempt, grading


def spoiled(folder: Path, **behaviours: Any) -> Void:
    """Why t1 is void, after every retry."""
    attempt, grading = carried_out(folder, 1, **behaviours)["t1"]
    assert attempt.number == 3 and grading is None
    assert attempt.exit is None and attempt.void is not None
    assert events(folder / "r", attempt)[-1]["e"] == "void"
    return attempt.void


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


# ── what an environment can do ───────────────────────────────────────────────────────────────────────────────────────


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


def at_t1(
    does: Callable[..., Awaitable[Any]], otherwise: Callable[..., Awaitable[Any]]
) -> Callable[..., Awaitable[Any]]:
    """A stage that does so for t1; the trial is its last argument."""

    async def stage(*arguments: Any) -> Any:
        return await (does if arguments[-1].key.task == "t1" else otherwise)(*arguments)

    return stage


async def looks_up(body: JSONObject, context: CallContext) -> JSONObject:
    """A model that calls the tool before it answers."""
    return called(("get_weather", '{"city": "x"}')) if context.call == 1 else await answer(body, context)


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


# ── what stops a run ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_fatal_failure_stops_the_run_and_what_is_left_can_be_resumed(tmp_path: Path) -> None:
    with behaving(model=at_model_t1(FatalInfraError("401 bad key"))):
        end = ran(study("in-test:3", model="in-test/m"), tmp_path, concurrency=1)
    assert (end.reason, end.exit_code) == ("fatal", 4)
    assert end.error is not None and end.error.message == "401 bad key"
    assert [a.key.task for a in attempts(tmp_path / "r")] == ["t0", "t1"]


def at_model_t1(error: Exception) -> Callable[[JSONObject, CallContext], Awaitable[Any]]:
    async def model(body: JSONObject, context: CallContext) -> Any:
        if context.key.task == "t1":
            raise error
        return await answer(body, context)

    return model


def test_a_request_that_the_provider_refuses_is_the_agents_doing(tmp_path: Path) -> None:
    attempt, grading = single(tmp_path, model=at_model_t1(AgentError("400 context too long")))
    assert attempt.exit == Exit("crashed", detail="400 context too long")
    assert grading.verdict.outcome == "fail"


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
