"""The page about analysis: its study is one, its verbs and options exist, its Python runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from evalcore.cli.main import VERBS, program
from evalcore.engine.study_file import read_study
from evalcore.report.together import ANCHORS, WEIGHTS
from evalcore.values.measure import NAMES
from evalcore.values.study import STOPPING
from tests.oracles import ROOT

PAGE: Final = (ROOT / "docs" / "analysis.md").read_text()


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}[^\n]*\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def test_the_study_is_one_and_says_what_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(block("toml"))
    study = read_study(tmp_path / "study.toml")
    assert [c.metric for c in study.contrasts] == ["pass@1", "tokens"]
    assert study.analysis.value_per_solve_usd == 0.5
    assert study.analysis.anchors["time"] == (120.0, 0.0)


def test_every_metric_and_stopping_rule_is_on_the_page() -> None:
    assert all(name in PAGE for name in NAMES)
    assert all(f"| `{rule}` |" in PAGE for rule in STOPPING)
    weights = ", ".join(f"{name} {weight:.2f}".replace(" 0.", " .") for name, weight in WEIGHTS.items())
    assert weights in " ".join(PAGE.split())
    statistics = " ".join((ROOT / "docs" / "statistics.md").read_text().split())
    assert "$1 to $0 a solve, and 600 s to 0 s a trial" in statistics
    assert (ANCHORS["cost"], ANCHORS["time"]) == ((1.0, 0.0), (600.0, 0.0))


@pytest.mark.parametrize("command", re.findall(r"^ {4}(evalcore .+)$", PAGE, re.MULTILINE))
def test_every_option_that_the_page_names_exists(command: str) -> None:
    verb, *arguments = command.split()[1:]
    assert verb in VERBS
    told = CliRunner().invoke(program, [verb, "--help"], prog_name="evalcore")
    assert all(option in told.output for option in arguments if option.startswith("--")), command


def test_the_python_of_the_page_runs(tmp_path: Path) -> None:
    lines = [{"id": f"t{n}", "instruction": "How is the weather?", "grade": {"contains": "sunny"}} for n in range(6)]
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "playbook.toml").write_text('[[reply]]\ntext = "sunny"\n')
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "EVALCORE_PLUGINS": ""}
    command = ["run", "tasks.jsonl", "--model", "scripted/playbook.toml", "--name", "RUN", "--yes", "--quiet"]
    start = "from evalcore.cli.main import main; main()"
    made = subprocess.run(
        [sys.executable, "-c", start, *command], check=False, cwd=tmp_path, env=environ, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    code = "".join(line + "\n" for line in block("python").splitlines() if "attempts_df" not in line)
    code += 'print(run.columns()["success"], run.report().contrasts)\n'
    shown = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert shown.stdout == f"{[True] * 6} ()\n", shown.stderr
