"""`kill -9` at any moment, and torn files: what was committed stays, the rest is done, and the result is the same."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from evalcore.engine.run import RunOptions, resume, standing_of
from evalcore.engine.runner import RunEnd
from evalcore.engine.store import RunLock, read_stamp, repair
from evalcore.errors import RefusedError
from tests.faults.rig import (
    attempts,
    copy_of,
    executed_lines,
    facts,
    killed,
    ledgers,
    outcome,
    ran,
    registry,
    resumed,
    spawned,
    study,
    verdicts,
    wait_until,
    whole,
    whole_lines,
)

SEED = "EVALCORE_FAULT_SEED"  # set it to the seed that a failure names, to kill at the same moments again
ARMS = {"a": {"harness": "react", "model": "scripted/play.toml"}, "oracle": {"harness": "oracle"}}


@frozen
class Rig:
    """A slowed run: `agents_s` is what its agents take in all, four at a time; each verdict takes another 0.75 s."""

    benchmark: str
    repeats: int
    delay_s: float  # of each of a trial's two model calls
    planned: int
    agents_s: float
    kills: int


FAST = Rig("toy-slow:8", 2, 0.4, 32, 3.2, 4)
SLOW = Rig("toy-slow:25", 4, 0.4, 200, 20.0, 20)


def options_of(rig: Rig) -> dict[str, Any]:
    return {"benchmark": rig.benchmark, "repeats": rig.repeats, "delay_s": rig.delay_s, "arms": ARMS}


def moments(rig: Rig) -> tuple[int, list[float]]:
    """A random moment within each of as many equal parts of the run, and the seed that they come from."""
    seed = int(os.environ.get(SEED) or random.SystemRandom().randrange(2**32))
    draw, part = random.Random(seed), rig.agents_s / rig.kills
    return seed, [part * (i + draw.random()) for i in range(rig.kills)]


def kill_after(process: subprocess.Popen[str], run: Path, seconds: float) -> None:
    """Kill it so long after the run was there, unless it has ended by then."""
    wait_until((run / "run.toml").exists, process)
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    killed(process)


@frozen
class Death:
    """One kill and what came after it."""

    moment: float
    committed: int  # attempts that were on record
    grading: int  # of these, executed and without a verdict: it died in grading
    kept: bool  # all that was on record still is, first and byte by byte
    code: int  # exit code of the resumed run
    run: Path


def die_and_resume(rig: Rig, folder: Path, moment: float, *, again: bool) -> Death:
    """Kill a run, resume it (and kill that too, where `again`), and resume it to its end."""
    run = folder / "r"
    kill_after(spawned("start", folder, **options_of(rig)), run, moment)
    before = {name: whole_lines(data) for name, data in ledgers(run).items()}
    committed = attempts(run)
    graded = verdicts(run)
    if again:
        kill_after(spawned("resume", folder), run, 0.4)
    code, _ = outcome(spawned("resume", folder), timeout_s=400)
    after = ledgers(run)
    kept = all(after[name].startswith(data) for name, data in before.items())
    return Death(moment, len(committed), sum(a.id not in graded for a in committed), kept, code, run)


def kill_and_compare(rig: Rig, folder: Path, ways: int) -> tuple[int, list[Death]]:
    """Kill a run at random moments, each time anew; what is resumed must be like an undisturbed run."""
    seed, chosen = moments(rig)
    undisturbed = spawned("start", folder / "undisturbed", **options_of(rig), concurrency=64)
    with ThreadPoolExecutor(ways) as pool:
        deaths = list(
            pool.map(
                lambda i: die_and_resume(rig, folder / f"killed-{i}", chosen[i], again=i % 3 == 2), range(rig.kills)
            )
        )
    assert outcome(undisturbed, timeout_s=400)[0] == 0
    expected = facts(folder / "undisturbed" / "r")
    assert len(expected["trials"]) == rig.planned
    for death in deaths:
        where = f"{SEED}={seed}: {death}"
        assert death.code == 0, where
        assert death.kept, where
        whole(death.run, rig.planned)
        assert facts(death.run) == expected, where
    return seed, deaths


def told(seed: int, deaths: list[Death]) -> str:
    """One line on what was done."""
    moments = ", ".join(f"{d.moment:.2f} s ({d.committed} executed, {d.grading} ungraded)" for d in deaths)
    return f"\n{SEED}={seed}: killed after {moments}"


def test_a_run_killed_at_any_moment_resumes_to_the_same_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed, deaths = kill_and_compare(FAST, tmp_path, ways=4)
    with capsys.disabled():
        print(told(seed, deaths))
    assert any(d.grading for d in deaths), told(seed, deaths)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_killed_at_twenty_moments_resumes_to_the_same_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed, deaths = kill_and_compare(SLOW, tmp_path, ways=5)
    with capsys.disabled():
        print(told(seed, deaths))
    assert sum(d.grading > 0 for d in deaths) >= 5, told(seed, deaths)


# ── torn files, in this process ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of three trials, one at a time: its ledgers are in order."""
    folder = tmp_path_factory.mktemp("finished")
    assert ran(study("toy-weather:3"), folder, concurrency=1) == RunEnd("done")
    return folder / "r"


def cut(run: Path, attempts_to: int, gradings_to: int) -> None:
    """Leave so many bytes of each ledger."""
    os.truncate(run / "attempts.jsonl", attempts_to)
    (gradings,) = (run / "gradings").glob("*.jsonl")
    os.truncate(gradings, gradings_to)


def ends(run: Path) -> tuple[int, int, int, int]:
    """Of attempts, then of gradings: where the last line begins, and where it ends."""
    found: list[int] = []
    for data in ledgers(run).values():
        found += [data.rfind(b"\n", 0, -1) + 1, len(data)]
    return found[0], found[1], found[2], found[3]


async def all_resume(runs: list[Path]) -> list[tuple[RunEnd, list[str]]]:
    """Resume one after another, with the registry loaded once."""
    found = registry()
    return [(await resume(run, found, RunOptions(concurrency=1)))[1:] for run in runs]


def resume_each(finished: Path, folder: Path, cuts: list[tuple[int, int]]) -> list[list[str]]:
    """Resume a copy of the run for each cut; each must come out as the whole run was. Returns the repairs."""
    runs = [copy_of(finished, folder / f"{a}-{g}") for a, g in cuts]
    for run, (a, g) in zip(runs, cuts, strict=True):
        cut(run, a, g)
    notes = []
    expected = facts(finished)
    for run, (end, repairs) in zip(runs, asyncio.run(all_resume(runs)), strict=True):
        assert end == RunEnd("done"), run
        whole(run, 3)
        assert facts(run) == expected, run
        notes.append(repairs)
    return notes


def some(begin: int, end: int) -> list[int]:
    """Places to cut a line at for what takes longer: its edges, and one in each sixteen bytes."""
    return sorted({begin, begin + 1, end - 2, end - 1, *range(begin, end, 16)})


def test_a_ledger_torn_at_any_byte_is_repaired_to_its_last_whole_line(finished: Path, tmp_path: Path) -> None:
    run = copy_of(finished, tmp_path / "r")
    attempt, attempts_end, verdict, verdicts_end = ends(run)
    grading = read_stamp(run).grading
    kept = ledgers(run)
    for name, begin, end in (
        ("attempts.jsonl", attempt, attempts_end),
        (f"{grading}.jsonl", verdict, verdicts_end),
    ):
        file = next(run.rglob(name))
        for at in range(begin, end):
            file.write_bytes(kept[name][:at])
            notes = repair(run)
            assert file.read_bytes() == kept[name][:begin], at
            assert len(notes) == (at > begin), at
            standing = standing_of(run, grading).values()
            assert all(trial.executed for trial in standing), at
            assert [trial.graded for trial in standing].count(True) == 2, at
        file.write_bytes(kept[name])


def test_a_verdict_torn_anywhere_is_given_again(finished: Path, tmp_path: Path) -> None:
    _, last, begin, end = ends(finished)
    notes = resume_each(finished, tmp_path, [(last, at) for at in some(begin, end)])

    assert notes[0] == []  # cut between two lines: nothing is torn
    assert all(len(repairs) == 1 and "torn last line" in repairs[0] for repairs in notes[1:])


def test_an_attempt_torn_anywhere_is_executed_again(finished: Path, tmp_path: Path) -> None:
    begin, end, verdict, _ = ends(finished)
    notes = resume_each(finished, tmp_path, [(at, verdict) for at in some(begin, end)])

    assert notes[0] == []
    assert all(len(repairs) == 1 and "torn last line" in repairs[0] for repairs in notes[1:])


def test_both_ledgers_may_be_torn_at_once(finished: Path, tmp_path: Path) -> None:
    begin, _, verdict, _ = ends(finished)
    before = verdict - 20  # the end of an earlier verdict's line
    notes = resume_each(finished, tmp_path, [(begin + 7, before), (begin + 1, verdict)])

    assert [len(repairs) for repairs in notes] == [2, 1]


def test_what_is_cut_off_is_kept_aside(finished: Path, tmp_path: Path) -> None:
    run = copy_of(finished, tmp_path / "r")
    begin, _, verdict, _ = ends(finished)
    torn = ledgers(run)["attempts.jsonl"][begin : begin + 30]
    cut(run, begin + 30, verdict)
    resumed(run)

    assert (run / "attempts.torn").read_bytes() == torn


def test_a_run_without_any_ledger_begins_from_the_start(finished: Path, tmp_path: Path) -> None:
    run = copy_of(finished, tmp_path / "r")
    cut(run, 0, 0)

    assert resumed(run) == RunEnd("done")
    assert facts(run) == facts(finished)


def test_a_trace_frame_without_a_line_harms_nobody(finished: Path, tmp_path: Path) -> None:
    """Frames are written before the lines that point at them: a kill in between leaves a frame, or half of one."""
    run = copy_of(finished, tmp_path / "r")
    begin, _, verdict, _ = ends(finished)
    cut(run, begin, verdict)
    segment = run / "traces" / attempts(run)[0].trace.segment
    os.truncate(segment, segment.stat().st_size - 11)

    assert resumed(run) == RunEnd("done")
    assert facts(run) == facts(finished)
    assert attempts(run)[-1].trace.segment != segment.name  # never appended to what may be torn


def test_an_ungraded_attempt_whose_trace_is_damaged_is_no_failed_task(finished: Path, tmp_path: Path) -> None:
    run = copy_of(finished, tmp_path / "r")
    _, end, verdict, _ = ends(finished)
    cut(run, end, verdict)
    last = attempts(run)[-1]
    os.truncate(run / "traces" / last.trace.segment, last.trace.offset + last.trace.length - 11)

    assert resumed(run) == RunEnd("done")
    grading = verdicts(run)[last.id]
    assert grading.verdict.outcome == "grader_error"
    assert grading.error is not None and "cannot read the trace" in grading.error
    assert [a.id for a in attempts(run)] == [a.id for a in attempts(finished)]  # what was paid for is not run again


def test_resuming_a_finished_run_changes_no_byte(finished: Path, tmp_path: Path) -> None:
    run = copy_of(finished, tmp_path / "r")
    before = ledgers(run)

    assert [resumed(run), resumed(run)] == [RunEnd("done")] * 2
    assert ledgers(run) == before


def test_a_run_that_is_being_written_is_refused_until_its_writer_is_gone(tmp_path: Path) -> None:
    writer = spawned("start", tmp_path, benchmark="toy-slow:200", delay_s=0.2)
    try:
        wait_until(lambda: executed_lines(tmp_path / "r") > 0, writer)
        with pytest.raises(RefusedError, match="another process") as refused:
            resumed(tmp_path / "r")
        code, text = outcome(spawned("resume", tmp_path))
        assert writer.poll() is None
    finally:
        killed(writer)

    assert refused.value.exit_code == code == 3
    assert "RefusedError" in text
    RunLock(tmp_path / "r").release()  # a dead writer holds no lock
