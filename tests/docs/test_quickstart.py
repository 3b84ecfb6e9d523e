"""Every command of the quick start runs, in the order of the page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "quickstart.md"
BLOCK = re.compile(r"^```sh(?: exit=(\d+))?\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(text: str) -> list[tuple[str, int]]:
    """Every command line of the page's shell blocks, and the exit code it must have."""
    lines = [(line, int(code or 0)) for code, body in BLOCK.findall(text) for line in body.splitlines()]
    return [(line, code) for line, code in lines if line.startswith("evalcore ")]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_command_of_the_page_runs(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    lines = commands(PAGE.read_text())
    assert len(lines) > 12
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for line, code in lines:
        done = subprocess.run(
            line, shell=True, check=False, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == code, f"{line}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
