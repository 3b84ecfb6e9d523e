"""A benchmark that cannot run here: refused where it is named, left out of a group that brings it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import pytest

from evalcore.engine.plan import Plan, make_plan
from evalcore.engine.run import RunOptions, resume, start
from evalcore.engine.services import LocalServices
from evalcore.errors import ConfigError, RefusedError
from evalcore.hookspecs import AdapterInfo, GroupInfo, hookimpl
from evalcore.plugins import PluginRef, Registry, load
from evalcore.report.load import load_report
from evalcore.testing import toy
from evalcore.testing.toy import ToyAdapter
from evalcore.values.arm import Arm
from evalcore.values.study import Study
from evalcore.values.task import Task


class Picky(ToyAdapter):
    """Runs only where `KEYS` says so."""

    KEYS: ClassVar[set[str]] = set()

    def check(self, tasks: Sequence[Task], arms: Sequence[Arm]) -> None:
        if not self.KEYS:
            raise ConfigError("picky cannot run here: PICKY_KEY is not set", hint="set it")


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    module = ModuleType("picky_parts")

    @hookimpl
    def evalcore_adapters() -> list[AdapterInfo | GroupInfo]:
        return [
            AdapterInfo("picky", "cannot run (test)", "picky_parts:Picky"),
            GroupInfo("both", "one that can and one that cannot (test)", {"toy-weather": 1.0, "picky": 1.0}),
            GroupInfo("none", "one that cannot (test)", {"picky": 1.0}),
        ]

    module.__dict__.update(Picky=Picky, evalcore_adapters=evalcore_adapters)
    monkeypatch.setitem(sys.modules, "picky_parts", module)
    monkeypatch.setattr(Picky, "KEYS", set())
    found = load(only=())
    found.add(PluginRef("toy", "toy", "1", toy.__name__), toy)
    found.add(PluginRef("picky", "picky", "1", "picky_parts"), module)
    assert found.failures == []
    return found


async def planned(name: str, registry: Registry, folder: Path, *, go: bool = False, to_run: bool = True) -> Plan:
    services = LocalServices(registry, folder)
    study = Study("s", (name,), {"noop": {"harness": "noop"}})
    try:
        plan = await make_plan(study, registry, services, "r", to_run=to_run)
        if go:
            await start(plan, folder / "r", registry, services, RunOptions())
        return plan
    finally:
        await services.close()


@pytest.mark.parametrize("name", ["picky", "none"])
def test_named_or_all_that_there_is_it_is_refused(name: str, registry: Registry, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="PICKY_KEY is not set") as refused:
        asyncio.run(planned(name, registry, tmp_path))
    assert refused.value.hint == "set it"


def test_brought_by_a_group_it_is_left_out_and_the_group_has_no_value(registry: Registry, tmp_path: Path) -> None:
    plan = asyncio.run(planned("both", registry, tmp_path, go=True))
    assert [b.selector for b in plan.benchmarks] == ["toy-weather"]
    assert plan.notes == ("left out of its group: picky cannot run here: PICKY_KEY is not set",)
    (group,) = load_report(tmp_path / "r").groups
    assert (group.name, group.value, group.complete, group.reason) == ("both", None, False, "no one value for picky")


def test_what_is_only_planned_counts_what_a_run_would(registry: Registry, tmp_path: Path) -> None:
    plan = asyncio.run(planned("both", registry, tmp_path, to_run=False))
    assert [b.selector for b in plan.benchmarks] == ["toy-weather"]
    assert plan.notes == ("left out of its group: picky cannot run here: PICKY_KEY is not set",)
    named = asyncio.run(planned("picky", registry, tmp_path, to_run=False))
    assert [b.selector for b in named.benchmarks] == ["picky"]  # it can be planned, for where there is a key
    assert named.notes == ("it would be refused here: picky cannot run here: PICKY_KEY is not set",)


def test_a_run_is_not_resumed_where_other_benchmarks_can_run(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(planned("both", registry, tmp_path, go=True))
    monkeypatch.setattr(Picky, "KEYS", {"set"})
    with pytest.raises(RefusedError) as refused:
        asyncio.run(resume(tmp_path / "r", registry, RunOptions()))
    assert refused.value.reasons == ("other benchmarks can run here than then: picky",)
