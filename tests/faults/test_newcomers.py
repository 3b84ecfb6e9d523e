"""What somebody new to it found: each must stay mended."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evalcore.engine.fault import decide
from evalcore.engine.run import RunOptions, resume
from evalcore.engine.store import read_attempts
from evalcore.errors import ConfigError
from evalcore.toolkits.environment import ensure
from evalcore.values.task import Limits
from evalcore.values.toolkit import ToolkitSpec
from evalcore.values.trial import Exit, Void
from evalcore.wires.meter import Meter, RunBudget
from tests.integration.test_straight_line import carry_out, registry, study


def test_a_provider_that_never_answered_is_not_the_agents_time() -> None:
    meter = Meter(RunBudget(None))
    meter.bind(Limits(wall_s=1), {})
    meter.begin_model_call("agent")
    outcome = decide(meter, None, None, out_of_time=True)
    assert isinstance(outcome, Void) and outcome.kind == "infra"


def test_an_agent_that_never_asked_ran_out_of_its_own_time() -> None:
    meter = Meter(RunBudget(None))
    meter.bind(Limits(wall_s=1), {})
    assert decide(meter, None, None, out_of_time=True) == Exit("limit", "wall_s", "the trial's time was over")


PRICED = '[[reply]]\ntext = "10 degrees in Bern"\nusage = { input = 1, output = 1, cost_usd = 0.01 }\n'


def test_a_spent_run_adds_nothing_when_resumed_and_goes_on_with_more(tmp_path: Path) -> None:
    (tmp_path / "priced.toml").write_text(PRICED)
    arms = {"s": {"harness": "react", "model": "scripted/priced.toml"}}
    what = study(arms=arms, repeats=1, budget_usd=0.05, limits=Limits(tokens=100))
    _, end = asyncio.run(carry_out(what, tmp_path, concurrency=1))
    run = tmp_path / "r"
    assert end.reason == "budget" and end.exit_code == 5
    before = (run / "attempts.jsonl").read_bytes()

    _, end, _ = asyncio.run(resume(run, registry(), RunOptions()))
    assert end.reason == "budget"
    assert (run / "attempts.jsonl").read_bytes() == before

    _, end, _ = asyncio.run(resume(run, registry(), RunOptions(budget_usd=5.0)))
    assert end.reason == "done"
    assert len({a.key for a in read_attempts(run) if a.exit is not None}) == 12


def test_a_checkout_without_the_code_is_refused(tmp_path: Path) -> None:
    spec = ToolkitSpec("gone", (), ">=3.10", "evalcore.testing.toy", {"gone/__init__.py": "0" * 64}, ("gone",))
    with pytest.raises(ConfigError, match="no gone is there"):
        asyncio.run(ensure(spec, install=True, environ={"EVALCORE_TOOLKIT_GONE": str(tmp_path)}))
