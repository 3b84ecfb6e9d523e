"""The page about CI: the steps of its GitHub job run as they stand, and its other commands exist."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from evalcore.cli.main import VERBS, program
from tests.oracles import ROOT

PAGE: Final = (ROOT / "docs" / "ci.md").read_text()
TASKS: Final = 80  # enough for a gate of 5 points to pass
GOOD: Final = '[[reply]]\ntext = "It is sunny."\n'
BAD: Final = '[[reply]]\ntext = "I cannot say."\n'


def steps() -> dict[str, str]:
    """The named steps of the job and what each runs; folded lines are one."""
    (job,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    found = {}
    for step in re.split(r"^ {6}- ", job, flags=re.MULTILINE)[1:]:
        name = re.match(r"name: (.+)\n", step)
        run = re.search(r"^ {8}run: (?:>-\n((?: {10}.+\n)+)|(.+)\n)", step, re.MULTILINE)
        if name and run:
            found[name[1]] = " ".join((run[1] or run[2]).split())
    return found


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A folder with a suite, a playbook, a program named evalcore, and the baseline of the page."""
    lines = [
        {"id": f"t{n}", "instruction": f"How is the weather in town {n}?", "grade": {"contains": "sunny"}}
        for n in range(TASKS)
    ]
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "playbook.toml").write_text(GOOD)
    program_file = tmp_path / "bin" / "evalcore"
    program_file.parent.mkdir()
    program_file.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -c "from evalcore.cli.main import main; main()" "$@"\n'
    )
    program_file.chmod(0o755)
    made = step(
        tmp_path, "evalcore run tasks.jsonl --model scripted/playbook.toml --out baselines --name main --yes --quiet"
    )
    assert made.returncode == 0, made.stderr
    return tmp_path


def step(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """A step as GitHub runs it."""
    environ = {
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "HOME": str(folder),
        "EVALCORE_PLUGINS": "",
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
    }
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command]
    return subprocess.run(shell, check=False, cwd=folder, env=environ, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize(
    "playbook, code, word", [(GOOD, 0, "passed"), (BAD, 1, "failed: the run is worse")], ids=["as-good", "worse"]
)
def test_the_job_of_the_page_says_yes_and_no(repository: Path, playbook: str, code: int, word: str) -> None:
    assert list(steps()) == ["Measure", "Compare with the baseline that is kept in this repository"]
    measure, compare = steps().values()
    assert "bfcl-simple-python" in measure
    # What a script says is stamped: as another content it is another model, which the page says has to be named.
    (repository / "playbook.toml").write_text(playbook)
    named = "" if playbook == GOOD else " --treatment model"
    ran = step(repository, measure.replace("bfcl-simple-python", "tasks.jsonl"))
    assert ran.returncode == 0, ran.stderr
    answered = step(repository, compare + named)
    assert answered.returncode == code, answered.stderr
    assert answered.stdout.startswith(word)
    suite = ET.parse(repository / "gate.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("1", str(code))
    assert (repository / "summary.md").read_text().startswith("### evalcore gate")
    assert (repository / "runs" / "candidate" / "run.toml").is_file()


@pytest.mark.parametrize("command", re.findall(r"^ {4}(evalcore .+)$", PAGE, re.MULTILINE))
def test_every_option_that_the_page_names_exists(command: str) -> None:
    verb, *arguments = command.partition("#")[0].split()[1:]
    assert verb in VERBS
    told = CliRunner().invoke(program, [verb, "--help"], prog_name="evalcore")
    options = [a.partition("=")[0] for a in arguments if a.startswith("--")]
    assert all(option in told.output for option in options), (command, options)
