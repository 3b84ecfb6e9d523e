"""Runs read back, and whatever is installed shown: `report`, `trace`, `show` and `list`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from tests.integration.conftest import Called

Cli: TypeAlias = Callable[..., Called]

PLAYBOOK: Final = """
[[reply]]
match = { call = 1 }
text = "I \\u001b[31msay it."
tool_calls = [{ name = "say", arguments = { text = "one" } }]
usage = { input = 100, output = 20 }

[[reply]]
text = "done"
"""


def test_a_report_writes_the_scorecard_anew(cli: Cli, tmp_path: Path) -> None:
    cli("run", "toy-echo", "--name", "r", "--quiet")
    file = tmp_path / "runs" / "r" / "scorecard.json"
    before = file.read_bytes()
    file.unlink()
    called = cli("report", "r", "--json")
    assert file.read_bytes() == before
    assert json.loads(called.stdout) == json.loads(before)


def test_another_grading_is_named_by_its_beginning(cli: Cli, tmp_path: Path) -> None:
    cli("run", "toy-echo", "--name", "r", "--quiet")
    gradings = tmp_path / "runs" / "r" / "gradings"
    (own,) = gradings.iterdir()
    other = gradings / "0123456789abcdef.jsonl"
    other.write_bytes(own.read_bytes().replace(b'"pass"', b'"fail"'))
    called = cli("report", "r", "--grading", "0123", "--json")
    card = json.loads(called.stdout)
    assert card["grading"] == other.stem
    assert [c["outcomes"]["pass"] for c in card["cells"]] == [0, 0]
    assert called.stderr == f"other gradings of this run: {own.stem} (--grading DIGEST)\n"
    assert "fail     toy-echo/echo-0/" in cli("trace", "r", "--grading", "0123", "--arm", "oracle").stdout


def test_trials_are_listed_by_what_is_asked_for(cli: Cli) -> None:
    cli("run", "toy-echo", "--name", "r", "--quiet")

    def found(*arguments: str) -> list[tuple[str, str, str]]:
        rows = [json.loads(line) for line in cli("trace", "r", "--json", *arguments).stdout.splitlines()]
        return sorted((row["task"], row["arm"], row["outcome"]) for row in rows)

    assert len(found()) == 12
    assert found("--failed") == [(f"echo-{n}", "noop", "fail") for n in range(6)]
    assert found("--task", "echo-3") == [("echo-3", "noop", "fail"), ("echo-3", "oracle", "pass")]
    assert found("--task", "echo-[12]", "--arm", "oracle") == [(f"echo-{n}", "oracle", "pass") for n in (1, 2)]
    assert found("--task", "nothing") == []


def test_a_trial_is_told_readably_and_cannot_steer_the_terminal(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "play.toml").write_text(PLAYBOOK)
    cli("run", "toy-echo", "--model", "scripted/play.toml", "--name", "r", "--quiet")
    called = cli("trace", "r", "echo-0/")
    assert called.exit_code == 0
    lines = [line.strip().partition("  ")[2] for line in called.stdout.splitlines()]
    mark = "\N{REPLACEMENT CHARACTER}"
    for told in (
        f"user: Say 'one' with the tool. {mark}]0;owned{mark}",
        f"agent: I {mark}[31msay it.",
        "agent asks for: say",
        'call 1: say: {"text":"one"}',
        "result 1: said",
        "answer: done",
        "exit: completed",
    ):
        assert told in lines, called.stdout
    assert "verdict  pass, score 1" in called.stdout
    assert "\x1b" not in called.stdout and "\x07" not in called.stdout


def test_a_trial_as_json_is_its_events(cli: Cli) -> None:
    cli("run", "toy-echo", "--name", "r", "--quiet")
    (oracle,) = (
        json.loads(x) for x in cli("trace", "r", "--task", "echo-3", "--arm", "oracle", "--json").stdout.splitlines()
    )
    events = [json.loads(line) for line in cli("trace", "r", oracle["attempt"], "--json").stdout.splitlines()]
    assert [e["e"] for e in events] == [
        *("trial.start", "tool.call", "tool.result", "harness.exit", "exit", "deliverable", "evidence")
    ]
    assert events[1]["arguments"] == {"text": "fo\x1b[31mur"}


def test_a_part_of_an_id_that_means_several_trials_is_told(cli: Cli) -> None:
    cli("run", "toy-echo", "--name", "r", "--quiet")
    called = cli("trace", "r", "echo-3")
    assert called.exit_code == 2
    assert "error: 'echo-3' means 2 trials of runs/r: toy-echo/echo-3/" in called.stderr


def test_a_task_is_shown_with_its_gold_only_if_wanted(cli: Cli) -> None:
    plain, gold = cli("show", "toy-echo", "echo-0"), cli("show", "toy-echo", "echo-0", "--gold", "--json")
    assert "Say 'one' with the tool." in plain.stdout and "say: Say a text." in plain.stdout
    assert "gold" not in plain.stdout
    assert json.loads(gold.stdout)["gold"]["turns"] == [[{"name": "say", "arguments": {"text": "one"}}]]


@pytest.mark.parametrize("name", ["react", "dear", "shout", "toolset", "toy-all"])
def test_whatever_is_installed_is_shown(cli: Cli, name: str) -> None:
    assert json.loads(cli("show", name, "--json").stdout)["name"] == name


def test_a_kind_is_named_in_the_singular_too(cli: Cli) -> None:
    assert cli("list", "harness").stdout == cli("list", "harnesses").stdout != ""


def test_another_folder_for_runs(cli: Cli, tmp_path: Path) -> None:
    assert cli("run", "toy-echo", "--name", "r", EVALCORE_OUT="elsewhere").exit_code == 0
    assert (tmp_path / "elsewhere" / "r" / "run.toml").is_file()
    assert cli("report", "r", EVALCORE_OUT="elsewhere").exit_code == 0


def test_a_scorecard_that_cannot_be_written_is_a_warning(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("run", "toy-echo", "--name", "r", "--quiet")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("evalcore.cli.execution.write_durably", full)
    called = cli("report", "r")
    assert called.exit_code == 0
    assert called.stderr == "warning: cannot write runs/r/scorecard.json: No space left on device\n"
