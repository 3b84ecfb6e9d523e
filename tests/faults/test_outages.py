"""A provider that is down pauses the run: nothing is void for it, and a run that gives up can go on later."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from evalcore.contracts import CallContext
from evalcore.engine.runner import RunEnd
from evalcore.errors import TransientError
from evalcore.values.json import JSONObject
from evalcore.values.task import Limits
from evalcore.wires.gateway import breaker
from tests.faults.parts import answer, behaving
from tests.faults.rig import attempts, by_task, events, ran, resumed, study, whole

TASKS = 24


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outages of seconds in the place of hours."""
    monkeypatch.setattr(breaker, "FIRST_PAUSE_S", 0.02)
    monkeypatch.setattr(breaker, "LONGEST_PAUSE_S", 0.1)


class Model:
    """Answers until call `last`, then is down until it is `mended`, or for as many seconds as told."""

    def __init__(self, last: int, down_s: float = 1e9) -> None:
        self.last, self.down_s = last, down_s
        self.calls = 0
        self.since: float | None = None

    async def __call__(self, body: JSONObject, context: CallContext) -> JSONObject:
        self.calls += 1
        if self.calls > self.last:
            self.since = self.since or time.monotonic()
            if time.monotonic() - self.since < self.down_s:
                raise TransientError("HTTP 503", status=503)
        return await answer(body, context)


def test_a_run_waits_out_an_outage_and_no_trial_is_void(tmp_path: Path) -> None:
    for name, model in (("steady", Model(10**9)), ("troubled", Model(10, down_s=1.0))):
        (tmp_path / name).mkdir()
        with behaving(model=model):
            end = ran(study(f"in-test:{TASKS}", model="in-test/m"), tmp_path / name, concurrency=8)
        assert end == RunEnd("done")
        whole(tmp_path / name / "r", TASKS)
    found = attempts(tmp_path / "troubled" / "r")
    assert len(found) == TASKS and all(a.void is None for a in found)
    told = [by_task(tmp_path / name / "r") for name in ("steady", "troubled")]
    steady, troubled = ({t: (a.exit, a.usage, g and g.verdict) for t, (a, g) in run.items()} for run in told)
    assert troubled == steady
    kinds = {event["e"] for a in found for event in events(tmp_path / "troubled" / "r", a)}
    assert "model.paused" in kinds and "model.retry" in kinds


def test_a_run_that_gives_up_keeps_everything_and_goes_on_later(tmp_path: Path) -> None:
    with behaving(model=Model(10)):
        end = ran(study(f"in-test:{TASKS}", model="in-test/m"), tmp_path, concurrency=8, outage_s=0.3)
    assert (end.reason, end.exit_code) == ("fatal", 4)
    assert end.error is not None and "in-test has not answered since" in end.error.message
    found = attempts(tmp_path / "r")
    assert {a.void.kind for a in found if a.void} == {"outage"}
    kept = [a.id for a in found if a.void is None]
    assert len(kept) == 10

    with behaving(model=Model(10**9)):
        assert resumed(tmp_path / "r") == RunEnd("done")
    counted = [a for a in attempts(tmp_path / "r") if a.void is None]
    assert [a.id for a in counted][: len(kept)] == kept
    assert len(counted) == len({a.key for a in counted}) == TASKS


def test_the_time_of_a_trial_stands_still_while_its_provider_is_waited_for(tmp_path: Path) -> None:
    async def model(body: JSONObject, context: CallContext) -> JSONObject:
        if context.tries == 1:
            raise TransientError("HTTP 429", wait_s=1.5)
        return await answer(body, context)

    with behaving(model=model):
        end = ran(study("in-test:1", model="in-test/m", limits=Limits(wall_s=1.0)), tmp_path)
    assert end == RunEnd("done")
    (attempt,) = attempts(tmp_path / "r")
    assert attempt.exit is not None and attempt.exit.kind == "completed"
    assert attempt.wall_s > 1.4  # what it took is on record all the same
