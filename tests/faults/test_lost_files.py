"""Files of a run that were lost or garbled: nothing is measured twice, and nobody is shown another's trace."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evalcore.engine.run import RunOptions, regrade, resume
from evalcore.engine.store import TraceStore, gradings_of, read_attempts, read_gradings, repair
from evalcore.errors import ConfigError, InfraError
from tests.integration.test_straight_line import carry_out, outcomes, registry, study


def half_a_run(folder: Path) -> Path:
    """A run of which the first 30 attempts and their verdicts are left."""
    asyncio.run(carry_out(study(), folder))
    run = folder / "r"
    for ledger in (run / "attempts.jsonl", *(run / "gradings").glob("*.jsonl")):
        ledger.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[:30]))
    return run


def test_a_lost_segments_name_is_not_given_again_and_its_loss_is_told(tmp_path: Path) -> None:
    run = half_a_run(tmp_path)
    (run / "traces" / "000001.zst").unlink()

    _, end, notes = asyncio.run(resume(run, registry(), RunOptions()))

    assert end.reason == "done"
    assert notes == ["traces/000001.zst is gone: its trials can be neither shown nor graded again"]
    assert [p.name for p in (run / "traces").glob("*.zst")] == ["000002.zst"]
    assert {a.trace.segment for a in list(read_attempts(run))[30:]} == {"000002.zst"}


def test_another_trials_trace_is_not_passed_off(tmp_path: Path) -> None:
    asyncio.run(carry_out(study(), tmp_path))
    run = tmp_path / "r"
    first, second = [a for a in read_attempts(run) if a.key.repeat == 1][:2]
    lines = (run / "attempts.jsonl").read_bytes()
    old = f'"trace":["{first.trace.segment}",{first.trace.offset},{first.trace.length}]'
    new = f'"trace":["{second.trace.segment}",{second.trace.offset},{second.trace.length}]'
    (run / "attempts.jsonl").write_bytes(lines.replace(old.encode(), new.encode(), 1))

    swapped = next(a for a in read_attempts(run) if a.id == first.id)
    store = TraceStore(run)
    with pytest.raises(InfraError, match="another trial's"):
        store.of(swapped)
    assert store.of(second) is not None
    store.close()


def test_regrading_without_the_traces_takes_no_verdict_away(tmp_path: Path) -> None:
    asyncio.run(carry_out(study(), tmp_path))
    run = tmp_path / "r"
    before = outcomes(run)
    segment = run / "traces" / "000001.zst"
    segment.write_bytes(b"\0" * segment.stat().st_size)

    asyncio.run(regrade(run, registry()))

    assert outcomes(run) == before


def test_traces_without_their_ledger_are_no_empty_run(tmp_path: Path) -> None:
    asyncio.run(carry_out(study(), tmp_path))
    run = tmp_path / "r"
    (run / "attempts.jsonl").unlink()
    with pytest.raises(ConfigError, match="is gone"):
        list(read_attempts(run))
    with pytest.raises(ConfigError, match="is gone"):
        asyncio.run(resume(run, registry(), RunOptions()))
    assert not (run / "attempts.jsonl").exists()


def test_a_garbled_verdict_says_how_to_go_on_and_that_works(tmp_path: Path) -> None:
    asyncio.run(carry_out(study(), tmp_path))
    run = tmp_path / "r"
    (grading,) = gradings_of(run)
    file = run / "gradings" / f"{grading}.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(lines[0] + b'{"garb\n' + b"".join(lines[2:]))

    with pytest.raises(ConfigError) as broken:
        list(read_gradings(run, grading))
    assert broken.value.hint is not None and f"move {file.name} away" in broken.value.hint

    file.rename(tmp_path / "away.jsonl")
    assert repair(run) == []
    asyncio.run(resume(run, registry(), RunOptions()))
    assert outcomes(run)["oracle"] == ["pass"] * 24
