"""Three tasks, one at a time: in the middle one, t1, a part does as the test says; the other two must not notice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from evalcore.contracts import CallContext, Job
from evalcore.engine.runner import RunEnd
from evalcore.values.json import JSONObject
from evalcore.values.trial import Attempt, Exit, Grading, Void
from tests.faults.parts import answer, ask_once, behaving, called
from tests.faults.rig import by_task, events, ran, study


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


def once_for_t1(response: Any) -> Callable[[JSONObject, CallContext], Awaitable[Any]]:
    """A model that answers task t1 so, and the others well."""

    async def model(body: JSONObject, context: CallContext) -> Any:
        return response if context.key.task == "t1" else await answer(body, context)

    return model


def at_model_t1(error: Exception) -> Callable[[JSONObject, CallContext], Awaitable[Any]]:
    async def model(body: JSONObject, context: CallContext) -> Any:
        if context.key.task == "t1":
            raise error
        return await answer(body, context)

    return model


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


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value]
    return value
