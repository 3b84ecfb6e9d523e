"""`compare` and `gate` on runs of the toy: every exit code, text, JSON, and what CI systems read."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from tests.integration.conftest import Called

Cli: TypeAlias = Callable[..., Called]

SAY_ALL: Final = """
[[reply]]
match = { call = 1 }
text = "I say it."
tool_calls = [{ name = "say", arguments = { text = "one" } }]

[[reply]]
text = "done"
"""
SILENT: Final = '[[reply]]\ntext = "no"\n'
CONTROLS: Final = ("--arm-a", "oracle", "--arm-b", "noop", "--treatment", "harness")


@pytest.fixture
def runs(cli: Cli, tmp_path: Path) -> Cli:
    """The program, with runs `new` and `old` of one arm, `silent` of another model, and `controls`."""
    (tmp_path / "talk.toml").write_text(SAY_ALL)
    (tmp_path / "mute.toml").write_text(SILENT)
    for name, model in (("new", "talk"), ("old", "talk"), ("silent", "mute")):
        called = cli("run", "toy-echo:12", "--model", f"scripted/{model}.toml", "--name", name, "--quiet")
        assert called.exit_code == 0, called.stderr
    assert cli("run", "toy-echo", "--name", "controls", "--quiet").exit_code == 0
    return cli


def test_two_runs_of_one_arm(runs: Cli) -> None:
    called = runs("compare", "new", "old")
    assert called.exit_code == 0, called.stderr
    text = called.stdout
    assert text.index("What differs in the set-up") < text.index("INCONCLUSIVE") < text.index("A less B")
    assert "these trials show neither a difference nor that there is none" in " ".join(text.split())
    assert "exploratory" in text and "better" not in text and "worse" not in text


def test_what_differs_refuses_until_it_is_named(runs: Cli) -> None:
    called = runs("compare", "new", "silent")
    assert called.exit_code == 3 and called.stdout == ""
    assert "model: scripted/talk.toml in A, scripted/mute.toml in B (--treatment model)" in called.stderr
    assert "content of playbook" in called.stderr
    named = runs("compare", "new", "silent", "--treatment", "model")
    assert named.exit_code == 0 and "what this is about" in named.stdout


def test_refusals_are_json_too(runs: Cli) -> None:
    called = runs("compare", "new", "silent", "--json")
    error = json.loads(called.stdout)["error"]
    assert (called.exit_code, error["exit_code"]) == (3, 3) and len(error["reasons"]) == 2


def test_across_worlds_is_said_first(runs: Cli) -> None:
    called = runs("compare", "new", "silent", "--allow-cross-world")
    assert called.exit_code == 0
    assert called.stdout.index("CROSS-WORLD") < called.stdout.index("A BOUNDARY, overridden")
    assert json.loads(runs("compare", "new", "silent", "--allow-cross-world", "--json").stdout)["cross_world"] is True


def test_two_arms_of_one_run_and_the_trials_to_look_at(runs: Cli) -> None:
    called = runs("compare", "controls", *CONTROLS)
    assert called.exit_code == 0, called.stderr
    assert "CANDIDATE" in called.stdout and "A solved more often: 6 tasks" in called.stdout
    lines = [line.split() for line in called.stdout.splitlines() if line.strip().startswith("evalcore trace ")]
    assert len(lines) == 10
    for line in lines[:2]:
        assert runs(*line[1:]).exit_code == 0


def test_json_holds_the_whole_comparison(runs: Cli) -> None:
    whole = json.loads(runs("compare", "controls", *CONTROLS, "--json").stdout)
    (outcome,) = whole["outcomes"]
    assert whole["schema"] == "evalcore.comparison/1"
    assert (outcome["verdict"], outcome["confirmatory"], outcome["effect"]["value"]) == ("candidate", False, 1.0)
    assert outcome["p"] == pytest.approx(2 / 2**6) and len(outcome["gained"]) == 6 and outcome["lost"] == []


def test_too_few_tasks_are_refused_with_what_was_seen(cli: Cli) -> None:
    cli("run", "toy-echo:5", "--name", "few", "--quiet")
    called = cli("compare", "few", *CONTROLS)
    assert called.exit_code == 3
    assert "REFUSED" in called.stdout and "a verdict needs 6" in " ".join(called.stdout.split())


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("compare", "nope", "old"), "no run at runs/nope"),
        (("compare", "new", "nope"), "no run at runs/nope"),
        (("compare", "new"), "which two arms"),
        (("compare", "new", "new"), "with itself"),
        (("compare", "new", "old", "--arm-a", "zzz"), "unknown arm 'zzz'"),
        (("compare", "new", "old", "--treatment", "modle"), "did you mean 'model'?"),
        (("compare", "new", "old", "--metric", "speed"), "unknown metric 'speed'"),
        (("compare", "controls", "old"), "only controls"),
        (("gate", "new", "--baseline", "nope", "--max-drop", "5pp"), "no run at runs/nope"),
        (("gate", "new", "--baseline", "old"), "missing option '--max-drop'"),
        (("gate", "new", "--max-drop", "5pp"), "missing option '--baseline'"),
        (("gate", "new", "--baseline", "old", "--max-drop", "5pp", "--json", "--markdown", "-"), "standard output"),
    ],
)
def test_what_is_wrong_is_said(runs: Cli, arguments: tuple[str, ...], said: str) -> None:
    called = runs(*arguments)
    assert called.exit_code == 2
    assert said in called.stderr and called.stdout.count("error") <= 1


@pytest.mark.parametrize("text", ["5", "5%", "5 pp", "-5pp", "0", "0pp", "100pp", "1.0", "1e-2", "nan", "5PP", ""])
def test_a_margin_that_could_mean_two_things_is_wrong(cli: Cli, text: str) -> None:
    called = cli("compare", "x", "y", f"--margin={text}")
    assert called.exit_code == 2 and "pp" in called.stderr


@pytest.mark.parametrize("text", ["5pp", "0.05", ".05", "5.0pp"])
def test_both_ways_of_writing_a_margin(runs: Cli, text: str) -> None:
    whole = json.loads(runs("compare", "new", "old", "--margin", text, "--json").stdout)
    assert whole["outcomes"][0]["settle"]["half_width"] == pytest.approx(0.05)


def gate(runs: Cli, a: str, b: str, *more: str) -> Called:
    """Two arms of the controls."""
    arms = ("--arm", a, "--baseline-arm", b, "--treatment", "harness", "--max-drop", "5pp")
    return runs("gate", "controls", "--baseline", "controls", *arms, *more)


def test_a_gate_passes_fails_and_refuses(runs: Cli) -> None:
    passed, failed = gate(runs, "oracle", "noop"), gate(runs, "noop", "oracle")
    assert (passed.exit_code, failed.exit_code) == (0, 1)
    assert passed.stdout.startswith("passed: the run is not worse than the baseline by as much as 5 points")
    assert failed.stdout.startswith("failed: the run is worse than the baseline, by more than 5 points")
    refused = runs("gate", "new", "--baseline", "silent", "--max-drop", "5pp")
    assert refused.exit_code == 3 and "not comparable" in refused.stderr


def test_an_inconclusive_gate_fails_unless_told_otherwise(runs: Cli) -> None:
    arguments = ("gate", "new", "--baseline", "old", "--max-drop", "0.05")
    called = runs(*arguments)
    assert called.exit_code == 1
    assert called.stdout.startswith("failed, because inconclusive:") and "would decide" in called.stdout
    assert runs(*arguments, "--on-inconclusive", "pass").exit_code == 0
    answer = json.loads(runs(*arguments, "--json").stdout)
    assert (answer["answer"], answer["exit_code"], answer["on_inconclusive"]) == ("inconclusive", 1, "fail")


def test_a_gate_writes_what_ci_systems_read(runs: Cli, tmp_path: Path) -> None:
    called = gate(runs, "noop", "oracle", "--junit", "gate.xml", "--markdown", "gate.md")
    assert called.exit_code == 1
    suite = ET.parse(tmp_path / "gate.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", "1", "0")
    (failure,) = suite.iter("failure")
    assert failure.get("type") == "failed" and "worse than the baseline" in str(failure.text)
    page = (tmp_path / "gate.md").read_text()
    assert page.startswith("### evalcore gate failed") and "| toy-echo | 0.0 % | 100.0 %" in page
    assert gate(runs, "noop", "oracle", "--markdown", "-").stdout == page


def test_a_file_that_cannot_be_written(runs: Cli) -> None:
    called = gate(runs, "oracle", "noop", "--junit", "no/such/folder/gate.xml")
    assert called.exit_code == 4 and called.stderr.startswith("error: cannot write no/such/folder/gate.xml")


def test_a_declared_contrast_gets_its_word(runs: Cli, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        '[study]\nname = "s"\nbenchmarks = ["toy-echo:12"]\n'
        '[arms.talk]\nharness = "react"\nmodel = "scripted/talk.toml"\n'
        '[arms.mute]\nharness = "react"\nmodel = "scripted/mute.toml"\n'
        '[[contrasts]]\na = "talk"\nb = "mute"\nmargin = 0.05\n'
    )
    assert runs("run", "study.toml", "--name", "s", "--quiet").exit_code == 0
    whole = json.loads(runs("compare", "s", "--json").stdout)
    assert whole["confirmatory"] and whole["treatment"] == ["model"]
    assert whole["outcomes"][0]["margin"] == 0.05
