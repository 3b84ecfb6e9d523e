"""`evalcore run` and what goes on with a run: what is asked, shown, stopped, gone on with, read and refused."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from evalcore.engine.store import read_attempts, read_stamp
from tests.integration.conftest import Called, Site

Cli: TypeAlias = Callable[..., Called]
Start: TypeAlias = Callable[..., subprocess.Popen[str]]

PLAYBOOK: Final = """
[[reply]]
match = { call = 1 }
text = "I \\u001b[31msay it."
tool_calls = [{ name = "say", arguments = { text = "one" } }]
usage = { input = 100, output = 20 }

[[reply]]
text = "done"
"""
DEAR: Final = ("run", "toy-echo", "--model", "dear/x", "--max-tokens", "1000")


def scorecard(run: Path) -> dict[str, Any]:
    """The scorecard in a run's folder."""
    card: dict[str, Any] = json.loads((run / "scorecard.json").read_bytes())
    return card


# ── from nothing to a scorecard ──────────────────────────────────────────────────────────────────────────────────────


def test_without_a_model_the_controls_run_and_it_is_said_what_that_shows(cli: Cli, tmp_path: Path) -> None:
    called = cli("run", "toy-echo")
    assert called.exit_code == 0
    said = " ".join(called.stderr.split())
    assert "the oracle plays each task's known solution, noop does nothing" in said
    assert "the rig is sound" in said and "they are no score of any agent" in said
    assert "To measure one: evalcore run toy-echo --model PROVIDER/NAME" in called.stderr
    (run,) = (tmp_path / "runs").iterdir()
    outcomes = {c["arm"]["handle"]: c["outcomes"] for c in scorecard(run)["cells"]}
    assert outcomes["oracle"]["pass"] == 6 and outcomes["noop"]["fail"] == 6
    assert f"evalcore report runs/{run.name}" in called.stdout
    assert f"evalcore trace runs/{run.name}" in called.stdout


def test_keys_are_offered_by_name_and_never_used(cli: Cli) -> None:
    called = cli("run", "toy-echo", TOY_DEAR_KEY="sk-secret-1", SOME_API_KEY="sk-secret-2")
    assert called.exit_code == 0
    assert "TOY_DEAR_KEY is set: `--model dear/NAME` would use it" in called.stderr
    assert "SOME_API_KEY is set, and no installed plugin uses it" in called.stderr
    assert "sk-secret" not in called.stderr + called.stdout


def test_a_scripted_model_runs_unasked(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "play.toml").write_text(PLAYBOOK)
    called = cli(
        "run", "toy-echo", "--model", "scripted/play.toml", "--harness", "react,noop", "-k", "2", "--name", "r"
    )
    assert called.exit_code == 0, called.stderr
    assert "24: toy-echo (6 tasks) × 2 configurations × 2" in called.stderr
    cells = {c["arm"]["handle"]: c for c in scorecard(tmp_path / "runs" / "r")["cells"]}
    assert cells["react"]["outcomes"]["pass"] == 2
    assert cells["react"]["usage"]["agent"]["input"] == 1200


@pytest.mark.parametrize("flag", ["--trials", "--repeats", "--epochs", "-k"])
def test_trials_have_four_names(cli: Cli, flag: str) -> None:
    called = cli("plan", "toy-echo", flag, "3", "--json")
    assert json.loads(called.stdout)["projection"]["trials"] == 36


def test_quiet_says_nothing_but_the_result(cli: Cli) -> None:
    called = cli("run", "toy-echo", "--quiet")
    assert called.stderr == ""
    assert "oracle (ceiling)" in called.stdout


def test_json_is_the_whole_of_standard_output(cli: Cli) -> None:
    result = json.loads(cli("run", "toy-echo", "--json", "--name", "r").stdout)
    assert result["run"] == "runs/r"
    assert (result["reason"], result["exit_code"], result["error"]) == ("done", 0, None)
    assert result["scorecard"]["schema"] == "evalcore.scorecard/1"


def test_two_runs_in_one_second_do_not_meet(cli: Cli, tmp_path: Path) -> None:
    assert [cli("run", "toy-echo", "--limit", "1", "--quiet").exit_code for _ in range(3)] == [0, 0, 0]
    assert len(list((tmp_path / "runs").iterdir())) == 3


def test_a_name_that_is_taken_is_refused(cli: Cli) -> None:
    assert cli("run", "toy-echo", "--name", "r").exit_code == 0
    called = cli("run", "toy-echo", "--name", "r", "--quiet")
    assert called.exit_code == 2
    assert called.stderr.startswith("error: runs/r exists already\nhint: `evalcore resume runs/r` goes on with it")


# ── money ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_is_spent_where_nobody_can_be_asked(cli: Cli, tmp_path: Path) -> None:
    called = cli(*DEAR)
    assert called.exit_code == 2
    assert "money   not bounded" in called.stderr
    assert (
        "error: this calls dear/x, which may cost money, and nobody is here to be asked\nhint: --yes" in called.stderr
    )
    assert not (tmp_path / "runs").exists()


def test_yes_says_yes_by_flag_or_environment(cli: Cli) -> None:
    assert cli(*DEAR, "--yes").exit_code == 0
    assert cli(*DEAR, EVALCORE_YES="1").exit_code == 0


def test_a_budget_that_is_spent_stops_the_run_with_5(cli: Cli) -> None:
    called = cli(*DEAR, "--yes", "--budget-usd", "0.025", "--concurrency", "1", "--name", "r")
    assert called.exit_code == 5
    assert "money   at most $0.025" in called.stderr
    assert "the budget is spent: 4 trials without a result; what finished is kept" in called.stderr
    assert "react × dear/x" in called.stdout


# ── study files ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_plan_is_written_and_runs_as_the_same_study(cli: Cli, tmp_path: Path) -> None:
    written = cli("plan", "toy-echo", "--limit", "2", "-k", "2", "--write", "study.toml", "--json")
    assert "wrote study.toml" in written.stderr
    assert cli("run", "study.toml", "--name", "r").exit_code == 0
    assert read_stamp(tmp_path / "runs" / "r").study_digest == json.loads(written.stdout)["digest"]
    assert cli("plan", "toy-echo", "--write", "study.toml").exit_code == 2
    assert cli("plan", "study.toml", "--write", "-").stdout == (tmp_path / "study.toml").read_text()


def test_every_fault_of_a_study_is_told_at_its_place(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(
        '[study]\nname = "bad"\nbenchmarks = ["toy-ecko"]\nrepeats = 0\ncolour = "red"\n[limits]\ntokens = "many"\n'
        '[arms.plain]\nharness = "reakt"\n[arms.other]\nharness = "react"\nmodel = "scripted/nope.toml"\n'
    )
    called = cli("run", "bad.toml")
    assert called.exit_code == 2
    lines = called.stderr.splitlines()
    assert lines[0] == "error: bad.toml: 6 faults"
    places = ("study.repeats", "study.colour", "study.benchmarks[0]", "limits.tokens", "arms.plain.harness")
    for place in (*places, "arms.other.model"):
        assert [line for line in lines if line.startswith(f"  $.{place}: ")], place


def test_a_flag_that_would_change_a_study_is_refused(cli: Cli) -> None:
    cli("plan", "toy-echo", "--write", "study.toml")
    called = cli("run", "study.toml", "--seed", "7", "--harness", "noop")
    assert called.exit_code == 2
    assert "--seed: would change the seed of study.toml" in called.stderr
    assert "--harness: would change the arms of study.toml" in called.stderr


@pytest.mark.parametrize(
    "arguments", [("tasks.jsonl",), ("tasks.csv",), ("study.toml", "toy-echo"), ("toy-echo", "--set", "shout")]
)
def test_what_cannot_be_run_is_said(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert cli("run", *arguments).exit_code == 2


def test_faults_of_flags_and_selectors_are_told_together(cli: Cli) -> None:
    called = cli("run", "toy-ecko", "bfcl:x:y", "--limit", "x", "--set", "shout=loud")
    assert called.stderr.startswith("error: command line: 4 faults\n  SELECTOR: unknown benchmark 'toy-ecko'")


def test_a_group_runs_its_members(cli: Cli) -> None:
    assert json.loads(cli("plan", "toy-all", "--json").stdout)["projection"]["trials"] == 24


# ── how runs end ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_that_measured_nothing_ends_with_4(cli: Cli) -> None:
    called = cli("run", "toy-echo@broken", "--name", "r", "--json")
    assert called.exit_code == 4
    result = json.loads(called.stdout)
    assert result["reason"] == "done"
    assert result["error"]["message"] == "nothing could be measured: no trial has a result"
    assert "hint: `evalcore trace runs/r` says why; then `evalcore regrade runs/r`" in called.stderr
    assert cli("regrade", "r").exit_code == 4


def test_a_fatal_failure_of_the_provider_ends_with_4_and_keeps_what_finished(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "broke.toml").write_text(
        '[[reply]]\nmatch = { task = "echo-2" }\nerror = { status = 401 }\n' + PLAYBOOK
    )
    called = cli("run", "toy-echo", "--model", "scripted/broke.toml", "--concurrency", "1", "--name", "r")
    assert called.exit_code == 4
    assert "2 of 6" in called.stdout
    assert "error: 401 scripted failure\nhint: what finished is kept; `evalcore resume runs/r` goes on" in called.stderr


def test_ctrl_c_finishes_what_runs_and_resume_goes_on(start: Start, program: Cli, tmp_path: Path) -> None:
    (tmp_path / "slow.toml").write_text(PLAYBOOK.replace("call = 1 }", "call = 1 }\ndelay_s = 0.3"))
    run = tmp_path / "runs" / "r"
    arguments = ("run", "toy-echo:60", "--model", "scripted/slow.toml", "--concurrency", "2", "--name", "r")
    with start(*arguments) as process:
        until(lambda: (run / "attempts.jsonl").is_file() and (run / "attempts.jsonl").stat().st_size > 0)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "finishing what runs; Ctrl-C again stops it now. To go on later: evalcore resume runs/r" in err
    assert "`evalcore resume runs/r` goes on" in err
    assert "partial" in out
    before = [a.id for a in read_attempts(run)]
    assert 0 < len(before) < 60

    resumed = program("resume", "r", "--concurrency", "60")
    assert resumed.exit_code == 0, resumed.stderr
    assert f"at most {60 - len(before)} trials to run" in resumed.stderr
    assert "60/60 trials · 10 pass · 50 fail" in resumed.stderr
    after = [a.id for a in read_attempts(run)]
    assert after[: len(before)] == before and len(after) == len(set(after)) == 60


def test_ctrl_c_twice_stops_now(start: Start, tmp_path: Path) -> None:
    slow = PLAYBOOK.replace("call = 1 }", "call = 1 }\ndelay_s = 50.0")
    (tmp_path / "slow.toml").write_text('[[reply]]\nmatch = { task = "echo-0" }\ntext = "quick"\n' + slow)
    attempts = tmp_path / "runs" / "r" / "attempts.jsonl"
    with start("run", "toy-echo", "--model", "scripted/slow.toml", "--name", "r") as process:
        until(lambda: attempts.is_file() and attempts.stat().st_size > 0)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        said = [process.stderr.readline()]
        while "finishing what runs" not in said[-1]:
            said.append(process.stderr.readline())
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "stopping now. To go on later: evalcore resume runs/r" in err


def until(holds: Callable[[], bool]) -> None:
    """Wait for a condition; on a busy machine, long."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_run_goes_on_and_is_made_again_with_as_many_trials_at_a_time(cli: Cli) -> None:
    def ways(run: str) -> int:
        return int(json.loads(Path(f"runs/{run}/execution.json").read_bytes())["concurrency"])

    assert cli("run", "toy-echo", "--concurrency", "2", "--name", "r").exit_code == 0
    assert cli("resume", "r").exit_code == cli("rerun", "r", "--name", "s").exit_code == 0
    assert (ways("r"), ways("s")) == (2, 2)
    assert cli("resume", "r", EVALCORE_CONCURRENCY="7").exit_code == 0
    assert cli("rerun", "r", "--name", "t", "--concurrency", "9").exit_code == 0
    assert (ways("r"), ways("t")) == (7, 9)


def test_resume_asks_before_it_spends(cli: Cli) -> None:
    assert cli(*DEAR, "--yes", "--limit", "2", "--name", "r").exit_code == 0
    assert cli("resume", "r").exit_code == 0  # nothing is missing, so nothing is asked
    attempts = Path("runs/r/attempts.jsonl")
    attempts.write_bytes(attempts.read_bytes().splitlines(keepends=True)[0])
    called = cli("resume", "r")
    assert called.exit_code == 2 and "dear/x, which may cost money" in called.stderr
    assert cli("resume", "r", "--yes").exit_code == 0


def test_a_run_that_is_no_longer_itself_is_refused_with_reasons(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "play.toml").write_text(PLAYBOOK)
    cli("run", "toy-echo", "--model", "scripted/play.toml", "--name", "r")
    (tmp_path / "play.toml").write_text(PLAYBOOK.replace("say it", "speak"))
    called = cli("resume", "r", "--json")
    error = json.loads(called.stdout)["error"]
    assert called.exit_code == error["exit_code"] == 3
    assert error["kind"] == "RefusedError" and "arms have changed" in error["reasons"][0]
    assert "  arms have changed: " in called.stderr


def test_a_run_that_is_being_written_is_refused(cli: Cli) -> None:
    from evalcore.engine.store import RunLock

    cli("run", "toy-echo", "--name", "r")
    lock = RunLock(Path("runs/r"))
    try:
        assert cli("resume", "r").exit_code == 3
        assert cli("report", "r").exit_code == 0
    finally:
        lock.release()


def test_a_rerun_names_its_parent(cli: Cli, tmp_path: Path) -> None:
    cli("run", "toy-echo", "--name", "r", "--limit", "2")
    assert cli("rerun", "r", "--name", "again").exit_code == 0
    stamp = read_stamp(tmp_path / "runs" / "again")
    assert stamp.parent == "r"
    assert stamp.study_digest == read_stamp(tmp_path / "runs" / "r").study_digest
    assert "repeats    the run r" in cli("show", "again").stdout


def test_a_regrade_is_the_same_verdicts_again(cli: Cli, tmp_path: Path) -> None:
    cli("run", "toy-echo", "--name", "r", "--quiet")
    before = scorecard(tmp_path / "runs" / "r")
    assert "regraded 12 trials, with the same graders" in cli("regrade", "r").stdout
    assert scorecard(tmp_path / "runs" / "r") == before


def test_a_disk_that_cannot_be_written_is_4(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    called = cli("run", "toy-echo", "--out", "file/runs")
    assert called.exit_code == 4
    assert "error: cannot make file/runs/" in called.stderr


# ── toolkits ─────────────────────────────────────────────────────────────────────────────────────────────────────────

KIT_ENTRY: Final = """
from evalcore.hookspecs import AdapterInfo, GraderInfo, Requirement, ToolkitInfo, ToolkitSpec, hookimpl

@hookimpl
def evalcore_toolkits():
    pinned = Requirement("no-such-distribution-of-evalcore", "1.0", ("sha256:" + "0" * 64,))
    return [ToolkitInfo("kit", "upstream code (toy)", ToolkitSpec("kit", (pinned,), ">=3.8", "toy_kit_parts"))]

@hookimpl
def evalcore_adapters():
    return [AdapterInfo("toy-kit", "needs a toolkit", "toy_kit_parts:KitAdapter", toolkits=("kit",))]

@hookimpl
def evalcore_graders():
    return [GraderInfo("toy-kit", "needs a toolkit", "toy_kit_parts:KitGrader", toolkits=("kit",))]
"""
KIT_PARTS: Final = """
class KitAdapter:
    grader = "toy-kit"

    def __init__(self, services, info, selector):
        self.services = services

    async def tasks(self):
        await self.services.toolkit("kit")
        yield None
"""


@pytest.fixture
def kit_site(tmp_path: Path) -> Site:
    """A benchmark whose toolkit nobody can install."""
    site = Site(tmp_path / "kit-site")
    site.add("toy-kit", KIT_ENTRY, toy_kit_parts=KIT_PARTS)
    return site


def test_without_its_toolkit_a_benchmark_says_what_to_run(program: Cli, kit_site: Site) -> None:
    called = program("run", "toy-kit", "--quiet", sites=(kit_site,))
    assert called.exit_code == 4
    assert called.stderr == "error: toolkit kit is not set up here\nhint: run `evalcore setup kit`\n"
    shown = program("show", "toy-kit", sites=(kit_site,))
    assert shown.exit_code == 0 and "its tasks cannot be shown yet: toolkit kit is not set up here" in shown.stderr
    assert "note toolkit kit not set up" in " ".join(program("doctor", sites=(kit_site,)).stdout.split())


def test_a_toolkit_that_cannot_be_installed_is_4(program: Cli, kit_site: Site) -> None:
    called = program("setup", "toy-kit", "--json", sites=(kit_site,), PIP_NO_INDEX="1")
    assert called.exit_code == 4
    assert json.loads(called.stdout)["error"]["kind"] == "ToolkitError"
    assert "toolkit kit: 1 pinned package, for toy-kit" in called.stderr
