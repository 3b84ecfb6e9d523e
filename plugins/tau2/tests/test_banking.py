"""The banking domain: a knowledge base, read in the ways that need no service. Wants upstream's own code and data."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from evalcore.contracts import ToolkitHandle
from evalcore.errors import ConfigError
from evalcore_tau2.plugin import BENCHMARKS
from plugins.tau2.tests.rig import CONTROLS, SLOW_S, carry_out, run, study, trials, with_toolkit

VARIANTS = BENCHMARKS["tau2-banking"].retrieval


@pytest.fixture
def bank(own_code: None) -> None:
    """Its 800 files, which are among no test material here."""
    if not (Path(os.environ["TAU2_DATA_DIR"]) / "tau2" / "domains" / "banking_knowledge").is_dir():
        pytest.skip("the data of the banking domain are not here; TAU2_DATA_DIR names a checkout's")


@pytest.mark.parametrize("selector", ["tau2-banking", "tau2-banking:alltools"])
def test_what_would_need_a_service_is_refused_and_the_rest_named(selector: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        asyncio.run(carry_out(study((selector,), limit=1), tmp_path))
    assert "retrieval variant" in refused.value.message
    assert refused.value.hint is not None and all(f"tau2-banking:{v}" in refused.value.hint for v in VARIANTS)


@pytest.mark.usefixtures("bank")
@pytest.mark.parametrize("variant", VARIANTS)
def test_gold_passes_and_nothing_fails(variant: str, tmp_path: Path) -> None:
    found = trials(run(study((f"tau2-banking:{variant}",), CONTROLS, limit=2), tmp_path))
    assert {(arm, x.verdict.outcome) for (_, arm, _), x in found.items()} == {("oracle", "pass"), ("noop", "fail")}


@pytest.mark.usefixtures("bank")
def test_the_knowledge_base_can_be_searched() -> None:
    async def work(toolkit: ToolkitHandle) -> Any:
        served: Any = await toolkit.request("tasks", {"domain": "banking_knowledge", "split": "base"}, SLOW_S)
        task = served["tasks"][0]
        subject = {"domain": "banking_knowledge", "solo": False, "retrieval": "grep_only", "task": task}
        surface: Any = await toolkit.request("surface", subject, SLOW_S)
        async with toolkit.session() as session:
            await session.request("open", {**subject, "seed": 1, "script": [{"text": "Hello."}]}, SLOW_S)
            message = {"content": None, "names": ["grep"]}
            call = {"name": "grep", "arguments": {"pattern": "cash back"}, "id": "1", "message": message}
            return (
                len(served["tasks"]),
                [t["name"] for t in surface["tools"]],
                await session.request("call", call, SLOW_S),
            )

    count, names, news = with_toolkit(work)
    assert (count, "grep" in names) == (97, True)
    assert not news["result"]["error"] and "cash back" in news["result"]["content"].lower()
