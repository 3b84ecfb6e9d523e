"""A model runs unasked only where it is set up, fits, costs nothing, and nobody configured another."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from evalcore.cli.unasked import Unasked, unasked
from evalcore.engine.flags import StudyFlags, study_from_flags
from evalcore.engine.parts import vocabulary
from evalcore.hookspecs import AdapterInfo, GroupInfo, ModelInfo, ToolkitInfo, ToolkitSpec, hookimpl
from evalcore.plugins import PluginRef, Registry, load
from evalcore.toolkits.environment import ensure

SMALL = ModelInfo(
    "small",
    "a small model",
    "m:f",
    toolkits=("small-kit",),
    context_tokens=8_000,
    free=True,
    note="a toy",
    unasked="small/one",
    unasked_axes={"tool_protocol": "constrained"},
)


@pytest.fixture
def registry() -> Registry:
    class Parts(ModuleType):
        @hookimpl
        def evalcore_models(self) -> list[ModelInfo]:
            return [SMALL]

        @hookimpl
        def evalcore_toolkits(self) -> list[ToolkitInfo]:
            return [ToolkitInfo("small-kit", "nothing", ToolkitSpec("small-kit", (), ">=3.11", "tests.oracles"))]

        @hookimpl
        def evalcore_adapters(self) -> list[AdapterInfo | GroupInfo]:
            return [
                AdapterInfo("short", "fits", "m:f", context_tokens=8_000),
                AdapterInfo("long", "does not", "m:f", context_tokens=8_001),
                AdapterInfo("silent", "does not say", "m:f"),
                GroupInfo("both", "one of each", {"short": 1.0, "long": 1.0}),
            ]

    found = load(only=())
    found.add(PluginRef("small", "made up", "1", "small"), Parts("small"))
    assert found.failures == []
    return found


@pytest.fixture
def set_up(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALCORE_CACHE", str(tmp_path))
    asyncio.run(ensure(registry.get(ToolkitInfo, "toolkit", "small-kit").spec, install=True))


def test_it_runs_where_it_is_set_up_and_nothing_else_is_named(registry: Registry, set_up: None) -> None:
    assert unasked(registry, {}, ["short"]) == Unasked(ready=SMALL)


@pytest.mark.parametrize(
    "selectors", [["long"], ["short", "long"], ["both"], ["silent"], ["short", "silent"], ["gone"]]
)
def test_not_where_a_benchmark_needs_more_context_or_does_not_say(
    registry: Registry, set_up: None, selectors: list[str]
) -> None:
    assert unasked(registry, {}, selectors) == Unasked()


@pytest.mark.parametrize("environ", [{"EVALCORE_BOX": "0"}, {"OPENAI_API_KEY": "k"}, {"SOME_API_KEY": "k"}])
def test_not_where_it_is_unwanted_or_a_key_is_set(registry: Registry, set_up: None, environ: dict[str, str]) -> None:
    assert unasked(registry, environ, ["short"]) == Unasked()


def test_where_it_is_not_set_up_it_is_offered(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALCORE_CACHE", str(tmp_path))
    assert unasked(registry, {}, ["short"]) == Unasked(absent=SMALL)
    assert unasked(registry, {}, ["long"]) == Unasked()


def test_it_is_one_more_arm_beside_the_controls(registry: Registry) -> None:
    beside: dict[str, Any] = {"model": "small/one", "tool_protocol": "constrained"}
    study = study_from_flags(StudyFlags(("short",), unasked=beside), vocabulary(registry))
    assert study.arms == {
        "oracle": {"harness": "oracle"},
        "noop": {"harness": "noop"},
        "react": {"harness": "react", "model": "small/one", "tool_protocol": "constrained"},
    }
    assert study.name == "short"


def test_what_is_named_keeps_it_out(registry: Registry) -> None:
    flags = StudyFlags(("short",), harnesses=("noop",), unasked={"model": "small/one"})
    assert study_from_flags(flags, vocabulary(registry)).arms == {"noop": {"harness": "noop"}}
