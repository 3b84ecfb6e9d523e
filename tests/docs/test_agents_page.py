"""Every command of `docs/agents.md` runs, and every file on the page is one that evalcore reads."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest

from evalcore.builtin.command_file import PLAIN, SECRET, Agent, read_agent

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = (ROOT / "docs" / "agents.md").read_text()


def blocks(kind: str) -> list[str]:
    """The page's blocks of a kind."""
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_every_command_of_the_page_runs(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    lines = "".join(blocks("sh")).splitlines()
    assert len(lines) == 3
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for line in lines:
        done = subprocess.run(
            line, shell=True, check=False, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr


def test_the_files_of_the_page_are_those_of_the_examples(tmp_path: Path) -> None:
    for text, name in zip(blocks("toml"), ("plain-http", "mcp-sdk"), strict=True):
        (tmp_path / "agent.toml").write_text(text)
        read_agent(tmp_path / "agent.toml")
        assert tomllib.loads(text).items() <= tomllib.loads((ROOT / f"examples/agents/{name}.toml").read_text()).items()


def test_every_field_and_placeholder_is_on_the_page() -> None:
    for field in Agent.__attrs_attrs__:  # type: ignore[attr-defined]
        assert f"`{field.name}`" in PAGE or f"`[{field.name}]`" in PAGE
    for name in (*PLAIN, *SECRET):
        assert f"`{{{name}}}`" in PAGE
