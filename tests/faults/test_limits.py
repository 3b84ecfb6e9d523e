"""Limits of a trial, and the budget of a run: each stops what it should, says which it was, and loses nothing."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from evalcore.contracts import CallContext, Job
from evalcore.engine import runner
from evalcore.engine.runner import RunEnd
from evalcore.errors import LimitReached
from evalcore.report.load import load_report
from evalcore.report.scorecard import to_json
from evalcore.values.json import JSONObject
from evalcore.values.task import Limits
from evalcore.values.trial import Attempt, HarnessExit
from tests.faults.parts import ask_once, behaving, called
from tests.faults.rig import attempts, events, facts, ledgers, ran, resumed, study, verdicts

ENDLESS = """
[[reply]]
tool_calls = [{ name = "get_weather" }, { name = "get_weather" }]
usage = { input = 100, output = 20, cost_usd = 0.01 }
"""
SLOW = ENDLESS + "delay_s = 0.05\n"


def stopped(folder: Path, limits: Limits, playbook: str = ENDLESS, **fields: Any) -> Attempt:
    """The attempt of an agent that goes on for ever, under these limits."""
    assert ran(study("toy-weather:1", limits=limits, **fields), folder, playbook=playbook) == RunEnd("done")
    (attempt,) = attempts(folder / "r")
    assert verdicts(folder / "r")[attempt.id].verdict.outcome == "fail"  # graded as it stands
    return attempt


@pytest.mark.parametrize(
    "limits, name, calls, tool_calls",
    [
        (Limits(tokens=300), "tokens", 3, 6),  # 120 a call: the third goes over, and is the last
        (Limits(cost_usd=0.02, tokens=100_000), "cost_usd", 2, 4),
        (Limits(model_calls=4), "model_calls", 4, 8),
        (Limits(tool_calls=5), "tool_calls", 3, 5),
        (Limits(turns=2), "turns", 2, 4),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_limit_stops_a_trial_and_is_named(
    tmp_path: Path, limits: Limits, name: str, calls: int, tool_calls: int
) -> None:
    attempt = stopped(tmp_path, limits)

    assert attempt.exit is not None and (attempt.exit.kind, attempt.exit.limit) == ("limit", name)
    assert attempt.exit.detail == f"the trial's limit on {name} was reached ({getattr(limits, name):g})"
    assert (attempt.usage["agent"].calls, attempt.tool_calls) == (calls, tool_calls)
    story = events(tmp_path / "r", attempt)
    assert [e["limit"] for e in story if e["e"] == "exit"] == [name]
    assert story[0]["limits"][name] == getattr(limits, name)
    (cell,) = to_json(load_report(tmp_path / "r"))["cells"]  # type: ignore[misc]
    assert cell["limits_hit"] == {name: 1} and cell["exits"]["limit"] == 1  # type: ignore[index,call-overload]
    assert cell["stamp"]["standard_limits"] is False  # type: ignore[index,call-overload]


def test_time_stops_a_trial_and_is_named(tmp_path: Path) -> None:
    attempt = stopped(tmp_path, Limits(wall_s=0.4), SLOW)

    assert attempt.exit is not None and (attempt.exit.kind, attempt.exit.limit) == ("limit", "wall_s")
    assert attempt.usage["agent"].calls >= 1


def test_the_benchmarks_own_limit_applies_where_it_is_the_stricter(tmp_path: Path) -> None:
    attempt = stopped(tmp_path, Limits(model_calls=50))  # the toy allows 20

    assert attempt.exit is not None and attempt.exit.limit == "model_calls"
    assert attempt.usage["agent"].calls == 20


def test_reacts_own_bound_is_a_limit_on_turns(tmp_path: Path) -> None:
    arms = {"a": {"harness": "react", "model": "scripted/play.toml", "max_turns": 3}}
    attempt = stopped(tmp_path, Limits(), arms=arms)

    assert attempt.exit is not None and (attempt.exit.kind, attempt.exit.limit) == ("limit", "turns")
    assert attempt.usage["agent"].calls == 3


def test_what_a_trial_may_use_is_the_benchmarks_own_where_the_study_says_nothing(tmp_path: Path) -> None:
    """A bound on time is always there, or one hung agent would hold a run for ever; a longer one of its own stands."""
    seen: list[Limits] = []

    async def looks(job: Job) -> HarnessExit:
        seen.append(job.limits)
        return await ask_once(job)  # type: ignore[no-any-return]

    arms = {"a": {"harness": "in-test", "model": "in-test/m"}}
    for number, own in enumerate((Limits(), Limits(wall_s=60), Limits(wall_s=7200))):
        (tmp_path / str(number)).mkdir()
        with behaving(harness=looks, limits=own):
            ran(study("in-test:1", arms=arms), tmp_path / str(number))
        (cell,) = load_report(tmp_path / str(number) / "r").cells
        assert cell.benchmark.limits == seen[-1]  # what is stamped is what applied
        assert cell.benchmark.standard_limits

    assert [limits.wall_s for limits in seen] == [3600, 60, 7200]


def test_side_by_side_requests_share_the_limits(tmp_path: Path) -> None:
    refused: list[LimitReached] = []

    async def model(body: JSONObject, context: CallContext) -> JSONObject:
        await asyncio.sleep(0.01)
        return called(("get_weather", "{}"))

    async def floods(job: Job) -> HarnessExit:
        assert job.model is not None
        bodies: list[JSONObject] = [{"messages": []} for _ in range(10)]
        asked = await asyncio.gather(*(job.model.complete(b) for b in bodies), return_exceptions=True)
        refused.extend(a for a in asked if isinstance(a, LimitReached))
        return HarnessExit("done")

    arms = {"a": {"harness": "in-test", "model": "in-test/m"}}
    with behaving(model=model, harness=floods):
        ran(study("in-test:1", arms=arms, limits=Limits(model_calls=4)), tmp_path)

    (attempt,) = attempts(tmp_path / "r")
    assert len(refused) == 6
    assert attempt.usage["agent"].calls == 4
    assert attempt.exit is not None and attempt.exit.limit == "model_calls"  # though it claims to have completed


# ── money ────────────────────────────────────────────────────────────────────────────────────────────────────────────

PRICE = 0.003  # of a trial of the rig's playbook: one call at 0.001, one at 0.002


def budgeted(budget_usd: float) -> Any:
    return study("toy-weather:12", budget_usd=budget_usd, limits=Limits(tokens=10_000))


def spent(run: Path) -> float:
    return sum(u.cost_usd or 0.0 for a in attempts(run) for u in a.usage.values())


@pytest.mark.parametrize("concurrency", [1, 6])
def test_a_budget_stops_the_run_keeps_all_and_goes_on_with_more_money(tmp_path: Path, concurrency: int) -> None:
    end = ran(budgeted(0.02), tmp_path, delay_s=0.01, concurrency=concurrency)
    run = tmp_path / "r"

    assert (end.reason, end.exit_code) == ("budget", 5)
    assert 0 < spent(run) <= 0.02
    found = attempts(run)
    told = verdicts(run)
    assert all((a.id in told) == (a.void is None) for a in found)
    assert {a.void.kind for a in found if a.void} == {"budget"}
    assert 0 < len(told) < 12
    before = ledgers(run)

    again = resumed(run, concurrency=concurrency)  # the money is still spent
    assert (again.reason, again.exit_code) == ("budget", 5)
    assert len(verdicts(run)) == len(told)

    stamp = (run / "run.toml").read_text()
    (run / "run.toml").write_text(re.sub(r"budget_usd = 0\.02", "budget_usd = 1.0", stamp))
    assert resumed(run) == RunEnd("done")
    assert all(ledgers(run)[name].startswith(data) for name, data in before.items())
    assert len(verdicts(run)) == 12
    counted = [a for a in attempts(run) if a.void is None]
    assert len(counted) == 12
    assert sum(a.usage["agent"].cost_usd or 0.0 for a in counted) == pytest.approx(12 * PRICE)


def test_a_budget_that_suffices_stops_nothing(tmp_path: Path) -> None:
    assert ran(budgeted(12 * PRICE + 0.001), tmp_path) == RunEnd("done")
    assert spent(tmp_path / "r") == pytest.approx(12 * PRICE)


def test_a_budget_changes_no_result(tmp_path: Path) -> None:
    for name, budget in (("with", 5.0), ("without", None)):
        (tmp_path / name).mkdir()
        ran(study("toy-weather:3", budget_usd=budget, limits=Limits(tokens=10_000)), tmp_path / name)
    with_, without = (facts(tmp_path / name / "r")["trials"] for name in ("with", "without"))
    assert with_ == without


# ── retries ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_spoilt_trial_is_tried_twice_more_and_then_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[int] = []
    monkeypatch.setattr(runner, "backoff_s", lambda number, _: waits.append(number) or 0.0)
    playbook = '[[reply]]\nmatch = { task = "t1" }\nerror = { status = 503 }\n[[reply]]\ntext = "10 degrees in Bern"\n'

    end = ran(study("toy-weather:3"), tmp_path, playbook=playbook, concurrency=1)

    assert end == RunEnd("done", voids_left=1)
    assert [(a.key.task, a.number) for a in attempts(tmp_path / "r")] == [
        ("t0", 1),
        ("t1", 1),
        ("t1", 2),
        ("t1", 3),
        ("t2", 1),
    ]
    assert waits == [1, 2]
    assert resumed(tmp_path / "r") == RunEnd("done", voids_left=1)  # used up: not tried again unasked
    assert len(attempts(tmp_path / "r")) == 5


def test_a_spoilt_trial_costs_money_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "backoff_s", lambda *_: 0.0)
    playbook = """
[[reply]]
match = { call = 1 }
tool_calls = [{ name = "get_weather" }]
usage = { input = 1, cost_usd = 0.01 }
[[reply]]
error = { status = 503 }
"""
    end = ran(
        study("toy-weather:4", budget_usd=0.045, limits=Limits(tokens=1000)), tmp_path, playbook=playbook, concurrency=1
    )

    assert end.reason == "budget"
    assert spent(tmp_path / "r") == pytest.approx(0.04)
    assert [a.void.kind for a in attempts(tmp_path / "r") if a.void] == ["infra"] * 3 + ["budget"]


def test_a_playbook_with_a_hole_stops_the_run_and_says_where(tmp_path: Path) -> None:
    playbook = '[[reply]]\nmatch = { task = "t0" }\ntext = "x"\n'
    end = ran(study("toy-weather:3"), tmp_path, playbook=playbook, concurrency=1)

    assert (end.reason, end.exit_code) == ("fatal", 2)
    assert end.error is not None
    assert "playbook play.toml: no reply matches call 1 of toy-weather:3/t1/" in end.error.message
