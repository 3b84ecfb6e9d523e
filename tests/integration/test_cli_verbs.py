"""Every verb: as text, as JSON, with bad input, and with a run that is not there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from evalcore.cli.main import VERBS
from tests.integration.conftest import Called

Cli: TypeAlias = Callable[..., Called]
RUN: Final = "first"
ARMS: Final = ["--arm-a", "oracle", "--arm-b", "noop", "--treatment", "harness"]
GATE: Final = [RUN, "--baseline", RUN, "--max-drop", "5pp"]
GATE_ARMS: Final = ["--arm", "oracle", "--baseline-arm", "noop", "--treatment", "harness"]

STUDY: Final = """
[study]
name = "s"
benchmarks = ["toy-echo"]
[arms.gold]
harness = "oracle"
[arms.nothing]
harness = "noop"
[[contrasts]]
a = "gold"
b = "nothing"
"""

# verb: what is called, what its text says, what of its JSON is there; bad input; what is not there
CASES: Final[dict[str, tuple[list[str], str, str, list[str], list[str]]]] = {
    "run": (["toy-echo"], "oracle (ceiling)", "scorecard", ["toy-ecko"], ["nope.toml"]),
    "plan": (["toy-echo"], "12: toy-echo (6 tasks) × 2 configurations", "projection", ["toy-ecko"], ["nope.toml"]),
    "resume": ([RUN], "oracle (ceiling)", "scorecard", [RUN, "--concurrency", "0"], ["nope"]),
    "rerun": ([RUN], "oracle (ceiling)", "scorecard", [RUN, "--name", "a/b"], ["nope"]),
    "regrade": ([RUN], "regraded 12 trials, with the same graders", "scorecard", [RUN, "--wat"], ["nope"]),
    "report": ([RUN], "oracle (ceiling)", "cells", [RUN, "--grading", "zzz"], ["nope"]),
    "compare": ([RUN, *ARMS], "CANDIDATE", "outcomes", [RUN, "--margin", "5"], ["nope", "nope"]),
    "gate": ([*GATE, *GATE_ARMS], "passed", "answer", [*GATE, "--max-drop", "5"], ["nope", *GATE[1:]]),
    "cost": ([RUN], "no model was called", "cells", [RUN, "--grading", "zzz"], ["nope"]),
    "runs": ([], "1 run, ", "runs", ["--yes"], ["nope"]),
    "power": (["study.toml"], "as written", "claims", ["study.toml", "--tasks", "0"], ["nope.toml"]),
    "serve": (
        ["toy-echo", "--task", "echo-0", "--answer", "one"],
        "outcome  ",
        "scorecard",
        ["toy-echo", "--task", "echo-0", "--for", "soon"],
        ["toy-echo", "--task", "nope"],
    ),
    "init": (["here"], "here/study.toml", "written", ["--wat"], ["runs/first/run.toml"]),
    "trace": ([RUN], "toy-echo/echo-0/", "attempt", [RUN, "zzz"], ["nope"]),
    "import": (["old.toy"], "1 trial of old.toy, read as toy-lines", "run", ["study.toml"], ["nope.toy"]),
    "list": ([], "say what you are told to say", "benchmarks", ["bananas"], ["runs"]),
    "show": (["toy-echo"], "splits: loud, broken", "dataset", ["toy-echo", "echo-9"], ["./nope"]),
    "setup": (["toy-echo"], "", "toolkits", ["toy-ecko"], ["nope.toml"]),
    "doctor": ([], "all is well", "findings", ["--wat"], ["nope"]),
    "plugins": ([], "toy-echo 1.0", "plugins", ["--wat"], ["nope"]),
}
PIPES: Final = ("mcp-stdio",)  # their streams belong to a protocol: no text, no JSON; they have tests of their own
every_verb = pytest.mark.parametrize("verb", sorted(CASES))


@pytest.fixture
def with_run(cli: Cli) -> Cli:
    """The program, with a run of the controls in `runs/first`."""
    Path("study.toml").write_text(STUDY)
    Path("old.toy").write_text("one")
    assert cli("run", "toy-echo", "--name", RUN, "--quiet").exit_code == 0
    return cli


def test_no_verb_is_forgotten() -> None:
    assert sorted((*CASES, *PIPES)) == sorted(VERBS)


@every_verb
def test_text(with_run: Cli, verb: str) -> None:
    arguments, text, *_ = CASES[verb]
    called = with_run(verb, *arguments)
    assert called.exit_code == 0, called.stderr
    assert text in called.stdout
    assert_harmless(called)


@every_verb
def test_json(with_run: Cli, verb: str) -> None:
    arguments, _, key, *_ = CASES[verb]
    called = with_run(verb, *arguments, "--json")
    assert called.exit_code == 0, called.stderr
    documents = called.stdout.splitlines() if verb == "trace" else [called.stdout]
    assert documents and all(key in json.loads(document) for document in documents)
    assert called.stdout.isascii()
    assert_harmless(called)


@every_verb
@pytest.mark.parametrize("which", [3, 4], ids=["bad input", "not there"])
def test_what_cannot_be_done_is_said_in_words(with_run: Cli, verb: str, which: int) -> None:
    arguments = CASES[verb][which]
    assert isinstance(arguments, list)
    called = with_run(verb, *arguments)
    assert called.exit_code == 2
    assert called.stderr.splitlines()[0].startswith("error: ")
    assert called.stdout == ""
    assert_harmless(called)


@every_verb
@pytest.mark.parametrize("which", [3, 4], ids=["bad input", "not there"])
def test_what_cannot_be_done_is_said_as_json(with_run: Cli, verb: str, which: int) -> None:
    arguments = CASES[verb][which]
    called = with_run(verb, *arguments, "--json")
    error = json.loads(called.stdout)["error"]
    assert called.exit_code == error["exit_code"] == 2
    assert error["message"] and error["kind"]
    assert called.stderr.startswith("error: ")


@pytest.mark.parametrize("verb", ["resume", "rerun", "regrade", "report", "trace", "compare"])
def test_a_run_that_is_not_there_is_told_with_those_that_are(with_run: Cli, verb: str) -> None:
    called = with_run(verb, "nope")
    assert called.stderr == f"error: no run at runs/nope\nhint: runs there: {RUN}\n"


@every_verb
def test_help_fits_a_screen(cli: Cli, verb: str) -> None:
    called = cli(verb, "--help")
    lines = called.stdout.splitlines()
    assert called.exit_code == 0
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith(f"Usage: evalcore {verb} ")


@every_verb
def test_h_is_help(cli: Cli, verb: str) -> None:
    assert cli(verb, "-h").stdout == cli(verb, "--help").stdout


@pytest.mark.parametrize("verb", ["resume", "rerun", "regrade", "report", "trace", "show"])
def test_a_run_is_named_by_its_folder_too(with_run: Cli, verb: str, tmp_path: Path) -> None:
    assert with_run(verb, str(tmp_path / "runs" / RUN)).exit_code == 0


def assert_harmless(called: Called) -> None:
    """Nothing steers the terminal, and nothing is a traceback."""
    text = called.stdout + called.stderr
    assert "Traceback" not in text
    assert all(c == "\n" or c.isprintable() for c in text), [c for c in text if not c.isprintable() and c != "\n"]
