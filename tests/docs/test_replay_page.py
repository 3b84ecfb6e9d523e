"""The page on replays says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from evalcore.builtin.command_file import read_agent
from evalcore.engine.replay import ADDRESS
from evalcore.wires.gateway.tape import NORMALISERS
from tests.oracles import ROOT

PAGE = (ROOT / "docs" / "replay.md").read_text()


def test_the_agent_file_is_one(tmp_path: Path) -> None:
    found = re.search(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    (tmp_path / "agent.toml").write_text(found[1])
    assert read_agent(tmp_path / "agent.toml").varies == ("date", "uuid")


def test_what_is_seen_past_is_on_the_page() -> None:
    assert all(f"`{name}`" in PAGE for name in (*NORMALISERS, *ADDRESS, "unreplayable", "diverged", "--record-missing"))
