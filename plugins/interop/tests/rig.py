"""Runs to export: an agent with native calls, one with the text protocol, controls, a dialogue, a limit and a void."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

from attrs import evolve

from evalcore.engine.ledger import Ledger
from evalcore.engine.plan import make_plan
from evalcore.engine.run import RunOptions, start
from evalcore.engine.services import LocalServices
from evalcore.engine.store import TraceStore, read_attempts, read_gradings, read_stamp
from evalcore.plugins import PluginRef, Registry, load
from evalcore.testing import toy
from evalcore.values.study import BenchmarkChoice, Study
from evalcore.values.trial import Attempt, Exit, Void

AGENT: Final = """
[[reply]]
match = { call = 1, contains = "Bern" }
text = "Let me look."
tool_calls = [{ name = "get_weather", arguments = { city = "Bern" } }]
usage = { input = 100, output = 20, cost_usd = 0.001 }

[[reply]]
match = { contains = "degrees in Bern" }
text = "It is 10 degrees in Bern."
usage = { input = 150, output = 12, cost_usd = 0.002 }

[[reply]]
text = "I do not know."
usage = { input = 150, output = 5, cost_usd = 0.002 }
"""
TALKER: Final = """
[[reply]]
match = { contains = ": fine" }
text = "fine"
usage = { input = 10, output = 1 }

[[reply]]
match = { contains = "Bern" }
tool_calls = [{ name = "look", arguments = { city = "Bern" } }]
usage = { input = 10, output = 1 }

[[reply]]
tool_calls = [{ name = "look", arguments = { city = "Oslo" } }]
usage = { input = 10, output = 1 }
"""
USER: Final = """
[[reply]]
match = { call = 1 }
text = "Bern, please"
usage = { input = 7, output = 2 }

[[reply]]
match = { call = 2 }
text = "And Oslo"
usage = { input = 7, output = 2 }

[[reply]]
text = "###STOP###"
usage = { input = 7, output = 2 }
"""
YES: Final = """
[[reply]]
text = "yes"
usage = { input = 5, output = 1 }
"""
WEATHER: Final[dict[str, dict[str, Any]]] = {
    "native": {"harness": "react", "model": "scripted/agent.toml"},
    "oracle": {"harness": "oracle"},
}
DIALOGUE: Final[dict[str, dict[str, Any]]] = {
    "talker": {
        "harness": "react",
        "model": "scripted/talker.toml",
        "user_model": "scripted/user.toml",
        "judge_model": "scripted/yes.toml",
    }
}


def registry() -> Registry:
    """The core, the toy benchmarks and this plugin."""
    found = load(only=("interop",))
    found.add(PluginRef("toy", "toy", "1", "evalcore.testing.toy"), toy)
    assert found.failures == []
    return found


def weather(folder: Path) -> Path:
    """Three tasks in two repeats by an agent and the oracle; of one, a third met a limit and a fourth is void."""
    path = carried_out(folder, Study("s", ("toy-weather:3",), WEATHER, repeats=2))
    append(path, "native")
    return path


def dialogue(folder: Path) -> Path:
    """One task of several turns, with a user that a model plays."""
    choices = {"toy-users": BenchmarkChoice(tasks=("d0",))}
    return carried_out(folder, Study("s", ("toy-users",), DIALOGUE, choices=choices))


def carried_out(folder: Path, what: Study) -> Path:
    """The directory of a run of a study."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {"agent": AGENT, "talker": TALKER, "user": USER, "yes": YES}.items():
        (folder / f"{name}.toml").write_text(text)

    async def go() -> None:
        found = registry()
        services = LocalServices(found, folder)
        try:
            plan = await make_plan(what, found, services, "r")
            await start(plan, folder / "r", found, services, RunOptions())
        finally:
            await services.close()

    asyncio.run(go())
    return folder / "r"


def append(path: Path, handle: str) -> None:
    """Copies of an arm's first attempt: one that ended by a limit, and one without a result."""
    stamp = read_stamp(path)
    arm = next(a.arm.digest for a in stamp.arms if a.arm.handle == handle)
    first = next(a for a in read_attempts(path) if a.key.arm == arm)
    store = TraceStore(path)
    lines = list(store.of(first).lines)
    store.close()
    verdict = next(g for g in read_gradings(path, stamp.grading) if g.attempt == first.id)
    limit = _copy(first, 3, exit=Exit("limit", "tokens", "more than 100 tokens"))
    void = _copy(first, 4, exit=None, void=Void("provider", "the provider was not there"))

    async def go() -> None:
        ledger = Ledger(path, stamp.grading)
        try:
            await ledger.executed(limit, lines)
            await ledger.executed(void, lines)
            await ledger.graded(evolve(verdict, attempt=limit.id))
        finally:
            await ledger.close()

    asyncio.run(go())


def _copy(attempt: Attempt, repeat: int, **changes: Any) -> Attempt:
    key = evolve(attempt.key, repeat=repeat)
    return evolve(attempt, id=f"{key}/1", key=key, **changes)
