"""The files shown on the reference pages are read as the pages say."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

from evalcore.builtin.scripted import read_playbook
from evalcore.engine.plan import close_plan, make_plan
from evalcore.engine.services import LocalServices
from evalcore.engine.study_file import read_study
from evalcore.plugins import load
from evalcore.values.descriptors import ModelInfo
from evalcore.wires.gateway.prices import PriceList

DOCS = Path(__file__).resolve().parents[2] / "docs"


def shown(page: str, name: str) -> str:
    found = re.search(rf"^```toml {re.escape(name)}\n(.*?)^```", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_the_playbook_is_one(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(shown("models.md", "playbook.toml"))
    first, second, third, fourth = read_playbook(tmp_path / "p.toml").reply
    assert first.match.task == "simple_*" and first.tool_calls[0].name == "get_weather"
    assert second.delay_s == 0.1
    assert third.error is not None and (third.error.status, third.error.tries, third.text) == (429, 2, "At last.")
    assert fourth.error is not None and (fourth.error.status, fourth.error.tries) == (503, None)


def test_the_prices_are_taken(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(shown("models.md", "prices.toml"))
    prices = PriceList.of({**os.environ, "EVALCORE_PRICES": str(tmp_path / "prices.toml")}, "2026-12-01T00:00:00Z")
    assert prices.price("openai-compatible/qwen3") is not None


def test_the_providers_are_all_on_the_page() -> None:
    page = (DOCS / "models.md").read_text()
    for name, info in load(only=()).all(ModelInfo).items():
        assert f"| `{name}` |" in page
        assert all(key in page for key in info.keys)


def test_the_study_is_one_and_uses_what_there_is(tmp_path: Path) -> None:
    (tmp_path / "playbook.toml").write_text(shown("models.md", "playbook.toml"))
    (tmp_path / "study.toml").write_text(
        shown("studies.md", "study.toml")
        .replace('"bfcl-simple-python", "bfcl-irrelevance"', '"bfcl-simple-python"')
        .replace("bfcl-simple-python", "toy-weather")
    )
    study = read_study(tmp_path / "study.toml")
    assert study.repeats == 3 and study.limits.tokens == 20_000
    assert study.arms["text"] == {**study.arms["native"], "tool_protocol": "text"}
    assert study.contrasts[0].margin == 0.05

    async def plan() -> int:
        from evalcore.plugins import PluginRef
        from evalcore.testing import toy

        registry = load(only=())
        registry.add(PluginRef("toy", "toy", "1", "evalcore.testing.toy"), toy)
        services = LocalServices(registry, tmp_path)
        made = await make_plan(study, registry, services, "r")
        await close_plan(made)
        await services.close()
        return made.count()

    assert asyncio.run(plan()) == 2 * 20 * 3
