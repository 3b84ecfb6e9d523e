"""A disk that really fills up: the run stops with exit 4, keeps what it has, and goes on once there is room."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalcore.engine.run import RunOptions, resume
from evalcore.engine.runner import RunEnd
from evalcore.engine.store import FileBlobs
from evalcore.errors import FatalInfraError
from evalcore.values.trial import Evidence
from tests.faults import parts
from tests.faults.parts import behaving
from tests.faults.rig import (
    PLAYBOOK,
    attempts,
    facts,
    ledgers,
    outcome,
    ran,
    registry,
    resumed,
    spawned,
    study,
    whole,
    whole_lines,
)

STUDY: dict[str, Any] = {"benchmark": "toy-weather:12", "repeats": 2}
DELAY_S = 0.02  # of each model call: so that not everything is committed at once
PLANNED = 24


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The facts of the same study, undisturbed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert ran(study(**STUDY), folder, delay_s=DELAY_S) == RunEnd("done")
    return facts(folder / "r")


def kept_whole(run: Path) -> None:
    """Assert that ledgers hold whole lines only, and that each attempt's trace is there."""
    for name, data in ledgers(run).items():
        assert data == whole_lines(data), name
    for attempt in attempts(run):
        segment = run / "traces" / attempt.trace.segment
        assert segment.stat().st_size >= attempt.trace.offset + attempt.trace.length


# ── a limit on the size of files: works everywhere ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("file_bytes", [3_001, 8_000])
def test_a_run_whose_files_may_grow_no_more_stops_and_goes_on_later(
    tmp_path: Path, undisturbed: dict[str, Any], file_bytes: int
) -> None:
    code, text = outcome(spawned("start", tmp_path, **STUDY, delay_s=DELAY_S, concurrency=3, file_bytes=file_bytes))

    assert code == 4
    assert f"end fatal cannot write to {tmp_path / 'r'}: File too large" in text
    kept_whole(tmp_path / "r")
    before = ledgers(tmp_path / "r")
    assert 0 < len(attempts(tmp_path / "r")) < PLANNED
    assert resumed(tmp_path / "r") == RunEnd("done")
    assert all(ledgers(tmp_path / "r")[name].startswith(data) for name, data in before.items())
    whole(tmp_path / "r", PLANNED)
    assert facts(tmp_path / "r") == undisturbed


def test_a_run_that_cannot_even_write_its_stamp_leaves_nothing(tmp_path: Path) -> None:
    code, text = outcome(spawned("start", tmp_path, **STUDY, playbook='[[reply]]\ntext = "hi"\n', file_bytes=100))

    assert code == 4
    assert f"error FatalInfraError cannot write to {tmp_path / 'r'}: File too large" in text
    assert not (tmp_path / "r").exists()


# ── a disk of its own ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("mounting a file system takes root, on Linux")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"mounting is not permitted here: {mounted.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def filled(disk: Path, *, but: int) -> Path:
    """Fill the disk with a file, all but so many bytes."""
    filler = disk / "filler"
    space = os.statvfs(disk)
    filler.write_bytes(b"\0" * (space.f_bavail * space.f_frsize - but))
    return filler


def play(disk: Path) -> None:
    """Put the playbook there while there is room."""
    (disk / "play.toml").write_text(PLAYBOOK.format(delay_s=DELAY_S))


# Pages of 4 KiB: run.toml takes one; then each ledger and the traces take one when they are begun, and one more each
# time they outgrow it.
@pytest.mark.parametrize("pages", [1, 2, 3, 4, 5, 6])
def test_a_run_on_a_full_disk_stops_and_goes_on_once_there_is_room(
    small_disk: Path, undisturbed: dict[str, Any], pages: int
) -> None:
    play(small_disk)
    filler = filled(small_disk, but=pages * 4096)

    end = ran(study(**STUDY), small_disk, concurrency=3)

    assert (end.reason, end.exit_code) == ("fatal", 4)
    assert end.error is not None and "No space left on device" in end.error.message
    assert end.error.hint is not None and "resume" in end.error.hint
    kept_whole(small_disk / "r")
    before = ledgers(small_disk / "r")
    assert len(attempts(small_disk / "r")) < PLANNED
    filler.unlink()
    assert resumed(small_disk / "r") == RunEnd("done")
    assert all(ledgers(small_disk / "r")[name].startswith(data) for name, data in before.items())
    whole(small_disk / "r", PLANNED)
    assert facts(small_disk / "r") == undisturbed


def test_a_disk_that_is_full_from_the_start_says_so_and_leaves_no_half_run(small_disk: Path) -> None:
    play(small_disk)
    filler = filled(small_disk, but=0)

    with pytest.raises(FatalInfraError, match="No space left on device"):
        ran(study(**STUDY), small_disk)

    filler.unlink()
    assert ran(study(**STUDY), small_disk) == RunEnd("done")


def test_a_resume_on_a_disk_that_is_still_full_changes_nothing(small_disk: Path) -> None:
    play(small_disk)
    filled(small_disk, but=5 * 4096)
    ran(study(**STUDY), small_disk, concurrency=3)
    run = small_disk / "r"
    committed = run / "attempts.jsonl"
    os.truncate(committed, committed.stat().st_size - 5)  # as if it had been killed as well: a torn line
    space = os.statvfs(run)
    (run / "filler").write_bytes(b"\0" * space.f_bavail * space.f_frsize)  # and no room to keep it aside
    before = ledgers(run)

    with pytest.raises(FatalInfraError, match="No space left on device") as full:
        resumed(run)

    assert full.value.exit_code == 4
    assert ledgers(run) == before


def test_a_blob_that_finds_no_room_stops_the_run_at_once(small_disk: Path) -> None:
    async def collect(trial: Any) -> Evidence:
        assert parts.given.services is not None
        ref = await parts.given.services.blobs.put(trial.key.task.encode() * 50_000)
        return Evidence(blobs={"log": ref})

    with behaving(collect=collect):
        end = ran(study("in-test:6", model="in-test/m"), small_disk, concurrency=1)
        found = attempts(small_disk / "r")

        assert (end.reason, end.exit_code) == ("fatal", 4)
        assert [a.void is not None for a in found] == [False, False, True]  # 100,000 bytes each
        assert found[-1].void is not None and found[-1].void.fatal
        assert not list((small_disk / "r" / "blobs").glob(".*"))  # half a blob would be in the way


def test_a_blob_is_stored_once_and_a_changed_one_is_noticed(tmp_path: Path) -> None:
    async def twice() -> None:
        blobs = FileBlobs(tmp_path)
        ref = await blobs.put(b"patch")
        assert await blobs.put(b"patch") == ref
        assert await blobs.get(ref) == b"patch"
        (tmp_path / "blobs" / ref.sha256).write_bytes(b"hatch")
        with pytest.raises(Exception, match="changed on disk"):
            await blobs.get(ref)
        (tmp_path / "blobs" / ref.sha256).unlink()
        with pytest.raises(Exception, match="is gone"):
            await blobs.get(ref)

    asyncio.run(twice())


def test_a_lock_is_released_where_the_ledgers_cannot_be_opened(tmp_path: Path) -> None:
    assert ran(study(**STUDY), tmp_path) == RunEnd("done")
    run = tmp_path / "r"
    (run / "gradings").rename(tmp_path / "aside")
    (run / "gradings").write_text("in the way")

    async def once() -> None:
        await resume(run, registry(), RunOptions())

    for _ in range(2):  # the second time it is still that, and not a lock that was left behind
        with pytest.raises(FatalInfraError, match="cannot write to"):
            asyncio.run(once())
