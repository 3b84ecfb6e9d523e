"""What a run costs, against a server of the test's own: priced, bounded, or not known and said so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalcore.cli.execution import Manner, projection
from evalcore.engine.plan import Plan, close_plan, make_plan
from evalcore.engine.run import RunOptions, resume, start
from evalcore.engine.runner import RunEnd
from evalcore.engine.services import LocalServices
from evalcore.engine.store import read_attempts, read_stamp
from evalcore.errors import ConfigError
from evalcore.plugins import PluginRef, Registry, load
from evalcore.report.load import load_report
from evalcore.report.scorecard import to_json
from evalcore.testing import toy
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.study import Study
from evalcore.values.task import Limits
from tests.integration.test_openai_compatible import Reply, serving
from tests.integration.wire_rig import on_loop, said

MINI = "openai/gpt-4o-mini"  # 0.15, 0.075 cached, 0.60 USD per million tokens
USED: JSONObject = {
    "prompt_tokens": 1000,
    "completion_tokens": 50,
    "prompt_tokens_details": {"cached_tokens": 800},
    "completion_tokens_details": {"reasoning_tokens": 10},
}
COST = (200 * 0.15 + 800 * 0.075 + 50 * 0.6) / 1e6  # of one call


@pytest.fixture(autouse=True)
def _no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVALCORE_PRICES", raising=False)


def registry() -> Registry:
    found = load(only=())
    found.add(PluginRef("toy", "toy", "1", "evalcore.testing.toy"), toy)
    return found


def replies(usage: JSONValue = USED, **more: JSONValue) -> list[Reply]:
    """A call of the tool, and an answer for ever after: the first city's weather is asked for, so one trial passes."""
    function: JSONObject = {"name": "get_weather", "arguments": '{"city":"Bern"}'}
    calls: JSONValue = [{"id": "c", "type": "function", "function": function}]
    both = (said(None, tool_calls=calls), said("It is 10 degrees in Bern."))
    return [(200, {}, json.dumps({**body, "usage": usage, **more}).encode()) for body in both]


def study(url: str, model: str = MINI, **fields: Any) -> Study:
    axes = fields.pop("axes", {})
    arm = {"harness": "react", "model": model, "base_url": url, **axes}
    return Study(**({"name": "money", "benchmarks": ("toy-weather:2",), "arms": {"a": arm}} | fields))


async def planned(what: Study, folder: Path, **options: Any) -> Plan:
    services = LocalServices(registry(), folder)
    try:
        plan = await make_plan(what, registry(), services, "r", **options)
        await close_plan(plan)
        return plan
    finally:
        await services.close()


async def carry_out(what: Study, folder: Path) -> RunEnd:
    found = registry()
    services = LocalServices(found, folder)
    try:
        plan = await make_plan(what, found, services, "r")
        end = await start(plan, folder / "r", found, services, RunOptions(concurrency=1))
        await close_plan(plan)
        return end
    finally:
        await services.close()


def cell_of(run: Path) -> Any:
    (cell,) = to_json(load_report(run))["cells"]  # type: ignore[misc]
    return cell


# ── known ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@on_loop
async def test_the_scorecard_has_the_cost_that_the_price_list_gives(tmp_path: Path) -> None:
    async with serving(*replies()) as server:
        assert await carry_out(study(server.url), tmp_path) == RunEnd("done")
        where = server.url
    cell = cell_of(tmp_path / "r")
    assert cell["usage"]["agent"]["calls"] == 3 and cell["usage"]["agent"]["cache_read"] == 2400
    assert cell["usage"]["agent"]["cost_usd"] == pytest.approx(3 * COST, rel=1e-12)
    assert cell["metrics"]["cost_usd"]["value"] == pytest.approx(3 * COST, rel=1e-12)
    assert cell["outcomes"]["pass"] == 1
    assert cell["metrics"]["cost_per_solve_usd"]["value"] == pytest.approx(3 * COST, rel=1e-12)
    stamped: Any = read_stamp(tmp_path / "r").prices["models"]
    assert stamped[f"{MINI} at {where}"]["usd"] == {"input_mtok": 0.15, "cache_read_mtok": 0.075, "output_mtok": 0.6}


@on_loop
async def test_what_the_provider_says_that_it_charges_is_preferred(tmp_path: Path) -> None:
    async with serving(*replies({**USED, "cost": 0.25})) as server:
        await carry_out(study(server.url), tmp_path)
    assert cell_of(tmp_path / "r")["metrics"]["cost_usd"]["value"] == 0.75


@on_loop
async def test_prices_of_ones_own_apply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "prices.toml"
    file.write_text('[prices."openai-compatible/mine"]\ninput = 1.0\noutput = 100.0\n')
    monkeypatch.setenv("EVALCORE_PRICES", str(file))
    async with serving(*replies()) as server:
        await carry_out(study(server.url, "openai-compatible/mine", budget_usd=1.0), tmp_path)
    assert cell_of(tmp_path / "r")["metrics"]["cost_usd"]["value"] == pytest.approx(3 * 0.006, rel=1e-12)


@on_loop
async def test_a_resumed_run_pays_the_prices_of_its_stamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, file = tmp_path / "r", tmp_path / "prices.toml"
    async with serving(*replies()) as server:
        end = await carry_out(study(server.url, budget_usd=2 * COST + 1e-7), tmp_path)
        assert end.reason == "budget"
        stamp = (run / "run.toml").read_text()
        (run / "run.toml").write_text(stamp.replace(f"budget_usd = {2 * COST + 1e-7!r}", "budget_usd = 1.0"))
        file.write_text(f'[prices."{MINI}"]\ninput = 1000\noutput = 1000\n')
        monkeypatch.setenv("EVALCORE_PRICES", str(file))
        _, end, _ = await resume(run, registry(), RunOptions(concurrency=1))
    assert end == RunEnd("done")
    costs = [a.usage["agent"].cost_usd for a in read_attempts(run) if a.usage]
    assert sum(c or 0 for c in costs) < 10 * COST


# ── not known ────────────────────────────────────────────────────────────────────────────────────────────────────────


@on_loop
async def test_an_unknown_price_is_null_with_its_reason(tmp_path: Path) -> None:
    async with serving(*replies()) as server:
        await carry_out(study(server.url, "openai/gpt-9000"), tmp_path)
    cell = cell_of(tmp_path / "r")
    assert cell["usage"]["agent"]["cost_usd"] is None
    for name in ("cost_usd", "cost_per_solve_usd"):
        metric = cell["metrics"][name]
        assert metric["value"] is None
        assert metric["reason"].startswith("no price known for openai/gpt-9000 (genai-prices ")


@pytest.mark.parametrize(
    "usage, more", [(None, {}), ({**USED, "prompt_tokens": 10}, {}), (USED, {"service_tier": "priority"})]
)
@on_loop
async def test_a_call_that_the_price_cannot_be_applied_to_is_not_free(
    usage: JSONValue, more: JSONObject, tmp_path: Path
) -> None:
    async with serving(*replies(usage, **more)) as server:
        await carry_out(study(server.url), tmp_path)
    metric = cell_of(tmp_path / "r")["metrics"]["cost_usd"]
    assert metric["value"] is None
    assert metric["reason"].startswith(f"no cost known for {MINI}: calls reported no usage")


# ── bounded ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@on_loop
async def test_a_budget_stops_a_run_whose_price_is_known_without_a_bound_on_tokens(tmp_path: Path) -> None:
    async with serving(*replies()) as server:
        end = await carry_out(study(server.url, benchmarks=("toy-weather:12",), budget_usd=4.5 * COST), tmp_path)
        asked = len(server.asked)
    assert (end.reason, end.exit_code) == ("budget", 5)
    assert asked == 4
    spent = sum(a.usage["agent"].cost_usd or 0 for a in read_attempts(tmp_path / "r") if a.usage)
    assert spent == pytest.approx(4 * COST)


@on_loop
async def test_a_call_that_could_cost_more_than_the_budget_is_never_sent(tmp_path: Path) -> None:
    axes = {"max_output_tokens": 100_000}  # 0.06 USD
    async with serving(*replies()) as server:
        end = await carry_out(study(server.url, axes=axes, budget_usd=0.05), tmp_path)
        assert server.asked == []
    assert end.reason == "budget"
    attempt = next(read_attempts(tmp_path / "r"))
    assert attempt.void is not None and "a call that may cost $0.06" in attempt.void.message


@on_loop
async def test_a_budget_demands_a_bound_on_tokens_only_where_a_price_is_unknown(tmp_path: Path) -> None:
    url = "http://127.0.0.1:9/v1"
    await planned(study(url, budget_usd=1.0), tmp_path)
    await planned(study(url, "openai/gpt-9000", budget_usd=1.0, limits=Limits(tokens=100)), tmp_path)
    with pytest.raises(
        ConfigError, match=r"no price is known for openai/gpt-9000 \(genai-prices .* does not have it\)"
    ):
        await planned(study(url, "openai/gpt-9000", budget_usd=1.0), tmp_path)


@pytest.mark.parametrize(
    "model, tokens, budget, most",
    [
        (MINI, 100_000, None, 2 * 100_000 * 0.6 / 1e6),
        (MINI, 100_000, 5.0, 2 * 100_000 * 0.6 / 1e6),
        (MINI, 100_000, 0.01, 0.01),
        (MINI, None, None, None),
        (MINI, None, 5.0, 5.0),
        ("openai/gpt-9000", 100_000, None, None),
        ("openai/gpt-9000", 100_000, 5.0, 5.0),
    ],
)
@on_loop
async def test_a_projection_bounds_money_by_tokens_or_by_the_budget(
    model: str, tokens: int | None, budget: float | None, most: float | None, tmp_path: Path
) -> None:
    what = study("http://127.0.0.1:9/v1", model, limits=Limits(tokens=tokens), budget_usd=budget)
    plan = await planned(what, tmp_path)
    found = plan.projection()
    assert found.cost_at_most_usd == (None if most is None else pytest.approx(most))
    told = projection(plan, Manner(), registry())
    assert ("no price is known for openai/gpt-9000" in " ".join(told.split())) == (model != MINI)
    assert ("money is not bounded" in " ".join(told.split())) == (most is None)
