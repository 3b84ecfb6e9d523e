"""Agents that crash, hang or give up before they act, where calling nothing would pass."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Final

import pytest
from attrs import evolve

from evalcore.contracts import HarnessVersion, Job
from evalcore.errors import AgentError
from evalcore.hookspecs import HarnessInfo, hookimpl
from evalcore.plugins import PluginRef
from evalcore.toolkits.environment import Environment
from evalcore.values.trial import HarnessExit
from evalcore_bfcl.grader import ALL_CALLS
from plugins.bfcl.tests.rig import Trials, registry, run, study, trials


class Ending:
    """An agent that does nothing, and ends as its name says."""

    def __init__(self, services: object, info: HarnessInfo) -> None:
        self._end = info.name

    async def probe(self) -> HarnessVersion:
        return HarnessVersion("1")

    async def run(self, job: Job) -> HarnessExit:
        ends: dict[str, Callable[[], Awaitable[HarnessExit]]] = {
            "crashes": self._crash,
            "hangs": self._hang,
        }
        claims = {"gives-up": HarnessExit(claim="limit"), "fell-over": HarnessExit(claim="crashed", exit_code=139)}
        return await ends[self._end]() if self._end in ends else claims[self._end]

    async def _crash(self) -> HarnessExit:
        raise AgentError("no module named agent")

    async def _hang(self) -> HarnessExit:
        await asyncio.sleep(60)
        return HarnessExit()


ENDS: Final = {"crashes": "crashed", "fell-over": "crashed", "gives-up": "limit", "hangs": "limit"}


@pytest.fixture(scope="module")
def endings(toolkit: Environment, tmp_path_factory: pytest.TempPathFactory) -> Trials:
    """A task of irrelevance by agents that crash or meet a limit before they act."""
    module = ModuleType("bfcl_endings")
    infos = [HarnessInfo(name, "ends", "bfcl_endings:Ending", uses_model=False) for name in ENDS]

    @hookimpl
    def evalcore_harnesses() -> list[HarnessInfo]:
        return infos

    module.__dict__.update(Ending=Ending, evalcore_harnesses=evalcore_harnesses)
    found = registry()
    arms = {name: {"harness": name} for name in ENDS}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "bfcl_endings", module)
        found.add(PluginRef("endings", "endings", "1", "bfcl_endings"), module)
        assert found.failures == []
        what = study(("bfcl-irrelevance",), arms, limit=1)
        path = run(evolve(what, limits=evolve(what.limits, wall_s=0.3)), tmp_path_factory.mktemp("endings"), found)
    return trials(path)


@pytest.mark.parametrize("name, exit_kind", ENDS.items())
def test_an_agent_that_decided_nothing_declined_nothing(endings: Trials, name: str, exit_kind: str) -> None:
    (trial,) = (trial for (_, arm, _), trial in endings.items() if arm == name)
    assert trial.attempt.exit is not None and trial.attempt.exit.kind == exit_kind
    assert trial.verdict.outcome == "fail"
    assert trial.verdict.flags == (f"called_nothing_but_{exit_kind}",)
    assert trial.verdict.views == {ALL_CALLS: False}
