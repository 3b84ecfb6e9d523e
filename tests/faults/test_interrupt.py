"""Ctrl-C once finishes what runs, twice stops now; either way the run goes on where it was."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalcore.contracts import CallContext
from evalcore.engine import runner
from evalcore.engine.ledger import Ledger
from evalcore.engine.plan import make_plan
from evalcore.engine.runner import RunEnd, Runner
from evalcore.engine.services import LocalServices
from evalcore.engine.store import create_run
from evalcore.errors import FatalInfraError, InfraError, TransientError
from evalcore.values.json import JSONObject
from tests.faults.parts import answer, behaving
from tests.faults.rig import (
    attempts,
    executed_lines,
    facts,
    killed,
    ledgers,
    outcome,
    ran,
    registry,
    resumed,
    spawned,
    study,
    verdicts,
    wait_until,
    whole,
)

WAYS = 3
PLANNED = 30
SLOW: dict[str, Any] = {"benchmark": f"toy-slow:{PLANNED}", "delay_s": 0.15, "concurrency": WAYS}


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("undisturbed")
    ran(study(SLOW["benchmark"]), folder, delay_s=SLOW["delay_s"], concurrency=64)
    return facts(folder / "r")


@pytest.mark.parametrize(
    "number",
    [pytest.param(signal.SIGINT, id="SIGINT"), pytest.param(signal.SIGTERM, id="SIGTERM", marks=pytest.mark.slow)],
)
def test_once_finishes_what_runs_and_begins_nothing_new(
    tmp_path: Path, undisturbed: dict[str, Any], number: signal.Signals
) -> None:
    process = spawned("start", tmp_path, **SLOW)
    run = tmp_path / "r"
    try:
        wait_until(lambda: executed_lines(run) > 0, process)
        process.send_signal(number)
        assert line_of(process) == "stop 1"
        then = executed_lines(run)
        code, text = outcome(process)
    finally:
        killed(process)

    assert (code, text.splitlines()[0].split()) == (130, ["end", "interrupted"])
    found = attempts(run)
    assert all(a.exit is not None for a in found)  # none was broken off
    assert len(found) <= then + 2 * WAYS  # those that ran, and those that had just ended
    whole(run, len(found))  # and each has its verdict
    before = ledgers(run)

    assert resumed(run, concurrency=64) == RunEnd("done")
    assert all(ledgers(run)[name].startswith(data) for name, data in before.items())
    whole(run, PLANNED)
    assert facts(run) == undisturbed


def test_twice_stops_now_and_what_was_broken_off_is_on_record(tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    process = spawned("start", tmp_path, **SLOW)
    run = tmp_path / "r"
    try:
        wait_until(lambda: executed_lines(run) > 0, process)
        for press in (1, 2):
            process.send_signal(signal.SIGINT)
            assert line_of(process) == f"stop {press}"
        code, text = outcome(process)
    finally:
        killed(process)

    assert (code, text.splitlines()[0].split()) == (130, ["end", "interrupted"])
    found = attempts(run)
    broken_off = [a for a in found if a.void is not None]
    assert len(broken_off) <= WAYS
    assert {a.void.kind for a in broken_off if a.void} <= {"interrupted"}
    ungraded = [a.id for a in found if a.void is None and a.id not in verdicts(run)]
    assert ungraded  # it did not wait for the graders
    before = ledgers(run)

    assert resumed(run, concurrency=64) == RunEnd("done")
    assert all(ledgers(run)[name].startswith(data) for name, data in before.items())
    counted = [a for a in attempts(run) if a.void is None]
    assert len(counted) == len({a.key for a in counted}) == len(verdicts(run)) == PLANNED
    for key in ("exit", "tool_calls", "usage"):
        assert {str(a.key): str(getattr(a, key)) for a in counted} == undisturbed_by(undisturbed, key)


def undisturbed_by(undisturbed: dict[str, Any], field: str) -> dict[str, str]:
    """A field of each trial of the undisturbed run, by key."""
    place = {"exit": lambda t: t[3], "usage": lambda t: str(dict(t[5])), "tool_calls": lambda t: str(t[6][0])}[field]
    return {trial[0]: place(trial) for trial in undisturbed["trials"]}


async def until(true: Callable[[], bool]) -> None:
    """Wait, beside a run, for what is only to be seen from outside."""
    while not true():  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.005)


async def in_hand(folder: Path, then: Any) -> tuple[RunEnd, Path]:
    """A runner whose `stop` the test may call: `then(runner)` runs beside it."""
    found = registry()
    services = LocalServices(found, folder)
    plan = await make_plan(study("in-test:6", model="in-test/m"), found, services, "r")
    create_run(folder / "r", plan.stamp)
    ledger = Ledger(folder / "r", plan.stamp.grading)
    running = Runner(plan, folder / "r", ledger, services.clock, concurrency=2)
    beside = asyncio.ensure_future(then(running))
    end = await running.run()
    await beside
    await ledger.close()
    return end, folder / "r"


def test_a_trial_that_waits_for_its_retry_is_not_tried_again_after_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "backoff_s", lambda *_: 0.2)
    asked: list[str] = []

    async def model(body: JSONObject, context: CallContext) -> JSONObject:
        asked.append(context.key.task)
        raise InfraError("503")

    async def stop(running: Runner) -> None:
        await until(lambda: len(asked) == 2)
        await asyncio.sleep(0.05)
        running.stop()

    with behaving(model=model):
        end, run = asyncio.run(in_hand(tmp_path, stop))

    assert end == RunEnd("interrupted")
    assert asked == ["t0", "t1"]
    assert [a.number for a in attempts(run)] == [1, 1]


def test_one_press_ends_the_wait_for_a_provider(tmp_path: Path) -> None:
    async def model(body: JSONObject, context: CallContext) -> JSONObject:
        raise TransientError("HTTP 429", wait_s=60)

    async def stop(running: Runner) -> None:
        await until(lambda: bool(running.progress.notices()))
        (notice,) = running.progress.notices()
        assert "s for HTTP 429" in notice
        running.stop()

    began = time.monotonic()
    with behaving(model=model):
        end, run = asyncio.run(in_hand(tmp_path, stop))

    assert end == RunEnd("interrupted")
    assert time.monotonic() - began < 40  # not the whole wait
    assert {a.void.kind for a in attempts(run) if a.void} == {"interrupted"}
    with behaving():
        assert resumed(run) == RunEnd("done")
    counted = [a for a in attempts(run) if a.void is None]
    assert len(counted) == len({a.key for a in counted}) == 6


def test_the_first_press_lets_agents_finish_even_where_the_run_was_ending_anyhow(tmp_path: Path) -> None:
    """Something fatal has happened: nothing new begins. A press says the same once more, and cuts nobody off."""
    pressed = asyncio.Event()

    async def model(body: JSONObject, context: CallContext) -> JSONObject:
        if context.key.task == "t0":
            raise FatalInfraError("401")
        await pressed.wait()
        return await answer(body, context)

    async def stop(running: Runner) -> None:
        await until(lambda: executed_lines(tmp_path / "r") == 1)
        await asyncio.sleep(0.05)
        running.stop()
        pressed.set()

    with behaving(model=model):
        end, run = asyncio.run(in_hand(tmp_path, stop))

    assert end.reason == "fatal"
    assert {a.key.task: a.exit is not None for a in attempts(run)} == {"t0": False, "t1": True}


def test_a_stop_after_the_last_trial_harms_nothing(tmp_path: Path) -> None:
    async def stop(running: Runner) -> None:
        await until(lambda: running.progress.done == 6)
        running.stop()
        running.stop()

    with behaving():
        end, run = asyncio.run(in_hand(tmp_path, stop))
    assert end.reason == "done"
    whole(run, 6)


def test_a_run_whose_last_trials_were_under_way_when_it_was_stopped_is_done(tmp_path: Path) -> None:
    pressed = asyncio.Event()
    asked: list[str] = []

    async def model(body: JSONObject, context: CallContext) -> JSONObject:
        asked.append(context.key.task)
        if len(set(asked)) > 4:
            await pressed.wait()
        return await answer(body, context)

    async def stop(running: Runner) -> None:
        await until(lambda: len(set(asked)) == 6)
        running.stop()
        pressed.set()

    with behaving(model=model):
        end, run = asyncio.run(in_hand(tmp_path, stop))

    assert end == RunEnd("done", asked_to_stop=True)
    assert end.exit_code == 0
    whole(run, 6)
