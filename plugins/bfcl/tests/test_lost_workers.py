"""A worker that dies while it grades, and one that upstream's code keeps busy without end."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evalcore.contracts import ToolkitHandle
from evalcore.engine.run import RunOptions, regrade, resume
from evalcore.engine.runner import RunEnd
from evalcore.engine.services import LocalServices
from evalcore.engine.store import read_attempts
from evalcore.toolkits.environment import Environment
from evalcore.values.trial import Verdict
from plugins.bfcl.tests.rig import REACT, carry_out, gold_of, registry, run, study, trials, with_toolkit, write_playbook

PATIENCE_S = 60.0


def verdicts(path: Path) -> dict[str, Verdict]:
    return {task: trial.verdict for (_, _, task), trial in trials(path).items()}


@pytest.fixture
def disturbed(toolkit: Environment, tmp_path: Path) -> Path:
    """A run of four trials whose worker was killed while it graded one."""
    write_playbook(tmp_path, [{"text": "No."}])
    ledger = tmp_path / "r" / "attempts.jsonl"

    def wait_for_attempts() -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not ledger.exists() or ledger.read_bytes().count(b"\n") < 4:
            assert time.monotonic() < deadline
            time.sleep(0.02)

    async def kill(services: LocalServices) -> None:
        (pid,) = (await services.toolkit("bfcl")).pids()
        os.kill(pid, signal.SIGSTOP)
        await asyncio.to_thread(wait_for_attempts)
        await asyncio.sleep(0.1)  # grading begins once the line is on disk
        os.kill(pid, signal.SIGKILL)

    _, end = asyncio.run(carry_out(study(("bfcl-irrelevance",), REACT, limit=4), tmp_path, beside=kill))
    assert end == RunEnd("done")
    return tmp_path / "r"


def test_a_worker_killed_while_grading_costs_one_verdict_that_can_be_had_again(disturbed: Path) -> None:
    first = verdicts(disturbed)
    assert Counter(v.outcome for v in first.values()) == {"grader_error": 1, "declined": 3}
    (lost,) = (trial for trial in trials(disturbed).values() if trial.verdict.outcome == "grader_error")
    assert lost.grading.error == "toolkit bfcl: grade is unanswered: its worker died (signal 9)"
    again = shutil.copytree(disturbed, disturbed.parent / "again")

    _, end, notes = asyncio.run(resume(disturbed, registry(), RunOptions()))
    asyncio.run(regrade(again, registry()))

    assert (end, notes) == (RunEnd("done"), [])
    assert len(list(read_attempts(disturbed))) == 4  # graded, not executed again
    assert verdicts(disturbed) == verdicts(again)
    assert {v.outcome for v in verdicts(again).values()} == {"declined"}
    assert len(set(map(str, verdicts(again).values()))) == 1


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_pattern_that_backtracks_without_end_fails_its_trial_alone(toolkit: Environment, tmp_path: Path) -> None:
    ids = tuple(f"simple_javascript_{number}" for number in range(1, 5))
    hanging = "simple_javascript_2"

    async def replies_to(of: ToolkitHandle) -> list[dict[str, Any]]:
        replies = []
        for task in ids:
            (call,) = await gold_of(of, "simple_javascript", task)
            if task == hanging:
                call["arguments"]["status"] = "[[]" + ",[]" * 60 + "x"
            replies.append({"match": {"task": task, "call": 1}, "tool_calls": [call]})
        return replies

    write_playbook(tmp_path, [*with_toolkit(replies_to), {"text": "Done."}])

    path = run(study(("bfcl-simple-javascript",), REACT, tasks={"bfcl-simple-javascript": ids}), tmp_path)

    found = verdicts(path)
    assert {task: v.outcome for task, v in found.items()} == {t: "fail" if t == hanging else "pass" for t in ids}
    assert found[hanging].flags == ("native_runner_hangs",)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_string_of_50_mb_is_graded_as_the_agents(toolkit: Environment, tmp_path: Path) -> None:
    call = {"name": "calculate_triangle_area", "arguments": json.dumps({"base": "x" * 50_000_000, "height": 5})}
    write_playbook(tmp_path, [{"match": {"call": 1}, "tool_calls": [call]}, {"text": "Done."}])

    (trial,) = trials(run(study(("bfcl-simple-python",), REACT, limit=1), tmp_path)).values()

    assert (trial.verdict.outcome, trial.verdict.flags) == ("fail", ())
    assert len(json.dumps(trial.verdict.details)) < 10_000
