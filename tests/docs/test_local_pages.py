"""Every command of the pages on the model in the box, and on playing a task, runs in the order of its page."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_quickstart import ROOT, commands
from tests.oracles import needs


def run_page(page: str, folder: Path) -> list[str]:
    """Run a page's commands; returns what each printed."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    said = []
    for line, code in commands((ROOT / "docs" / page).read_text()):
        done = subprocess.run(
            line, shell=True, check=False, cwd=folder, env=environment, capture_output=True, text=True, timeout=600
        )
        if " setup " in line and "cannot be downloaded" in done.stderr:
            needs(f"a package index ({line})")
        assert done.returncode == code, f"{line}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        said.append(done.stdout)
    return said


def test_playing_a_task(tmp_path: Path) -> None:
    said = run_page("serve.md", tmp_path)
    assert len(said) == 3 and said[1].endswith("outcome  pass\n")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_model_in_the_box(tmp_path: Path) -> None:
    *_, scorecard, trials = run_page("local-model.md", tmp_path)
    assert "demonstration model" in scorecard and "2 of 2" in scorecard
    assert trials.count("simple_python_") == 2
