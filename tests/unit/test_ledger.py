"""The ledger: nothing is acknowledged before it is on disk, and a failed write adds nothing."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from evalcore.engine import ledger as ledgers
from evalcore.engine.ledger import AppendFile, Ledger
from evalcore.engine.store import TraceStore, read_attempts, read_gradings
from evalcore.errors import FatalInfraError
from evalcore.values.trial import Attempt, Grading, Verdict
from evalcore.wires.recorder import Redactor
from tests.unit.test_records import ATTEMPT


def numbered(number: int) -> Attempt:
    return evolve(ATTEMPT, id=f"b/t/a/{number}/1", key=evolve(ATTEMPT.key, repeat=number))


def lines_of(number: int) -> list[bytes]:
    return [b'{"t":0.0,"e":"trial.start"}', b'{"t":1.0,"e":"exit","n":%d}' % number]


async def commit(ledger: Ledger, number: int) -> Attempt:
    """One trial as the engine does it: executed, then graded."""
    attempt = await ledger.executed(numbered(number), lines_of(number))
    await ledger.graded(Grading(attempt.id, Verdict("pass"), 0.0))
    return attempt


def with_ledger(folder: Path, does: Callable[[Ledger], Awaitable[Any]], redactor: Redactor | None = None) -> Any:
    async def run() -> Any:
        ledger = Ledger(folder, "g", redactor)
        try:
            return await does(ledger)
        finally:
            await ledger.close()

    return asyncio.run(run())


def stored_events(folder: Path, attempt: Attempt) -> list[Any]:
    traces = TraceStore(folder)
    try:
        return list(traces.read(attempt.trace).events())
    finally:
        traces.close()


def test_what_is_acknowledged_can_be_read_at_once(tmp_path: Path) -> None:
    async def does(ledger: Ledger) -> None:
        attempt = await ledger.executed(numbered(1), lines_of(1))
        assert list(read_attempts(tmp_path)) == [attempt]
        assert stored_events(tmp_path, attempt)[-1]["n"] == 1
        assert list(read_gradings(tmp_path, "g")) == []
        await ledger.graded(Grading(attempt.id, Verdict("pass"), 0.0))
        assert [g.attempt for g in read_gradings(tmp_path, "g")] == [attempt.id]

    with_ledger(tmp_path, does)


def test_many_at_once_are_all_there_each_with_its_own_trace(tmp_path: Path) -> None:
    async def does(ledger: Ledger) -> list[Attempt]:
        return await asyncio.gather(*(commit(ledger, n) for n in range(1, 201)))

    returned = with_ledger(tmp_path, does)
    stored = {a.id: a for a in read_attempts(tmp_path)}
    assert stored == {a.id: a for a in returned}
    assert len(list(read_gradings(tmp_path, "g"))) == 200
    for number, attempt in enumerate(returned, 1):
        assert stored_events(tmp_path, attempt)[-1]["n"] == number


def test_syncs_are_shared_by_those_who_wait_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs: list[int] = []
    real = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: (syncs.append(fd), real(fd)))

    async def does(ledger: Ledger) -> None:
        await asyncio.gather(*(ledger.executed(numbered(n), lines_of(n)) for n in range(300)))

    with_ledger(tmp_path, does)
    assert len(syncs) < 300  # alone, each would take two


def test_what_a_line_points_at_is_synced_before_the_line_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    real = AppendFile.append

    def append(self: AppendFile, data: bytes) -> None:
        real(self, data)  # returns once it is synced
        order.append(self.path.suffix if self.path.suffix == ".zst" else self.path.name)

    monkeypatch.setattr(AppendFile, "append", append)
    with_ledger(tmp_path, lambda ledger: commit(ledger, 1))
    assert order == [".zst", "attempts.jsonl", "g.jsonl"]


def test_an_acknowledgement_waits_for_the_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_sync = threading.Event()
    real = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: (may_sync.wait(60), real(fd)))

    async def does(ledger: Ledger) -> None:
        waiting = asyncio.ensure_future(ledger.executed(numbered(1), lines_of(1)))
        for _ in range(20):
            await asyncio.sleep(0.005)
            assert not waiting.done()
        may_sync.set()
        await waiting

    with_ledger(tmp_path, does)


def test_a_later_process_begins_a_segment_of_its_own(tmp_path: Path) -> None:
    first = with_ledger(tmp_path, lambda ledger: commit(ledger, 1))
    second = with_ledger(tmp_path, lambda ledger: commit(ledger, 2))

    assert (first.trace.segment, second.trace.segment) == ("000001.zst", "000002.zst")
    assert [a.id for a in read_attempts(tmp_path)] == [first.id, second.id]
    assert stored_events(tmp_path, first)[-1]["n"] == 1
    assert stored_events(tmp_path, second)[-1]["n"] == 2


def test_a_full_segment_is_followed_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledgers, "SEGMENT_BYTES", 100)

    async def does(ledger: Ledger) -> list[Attempt]:
        return [await commit(ledger, n) for n in range(1, 6)]

    found = with_ledger(tmp_path, does)
    assert len({a.trace.segment for a in found}) > 1
    for number, attempt in enumerate(found, 1):
        assert stored_events(tmp_path, attempt)[-1]["n"] == number


def test_secrets_are_in_none_of_the_files(tmp_path: Path) -> None:
    secret = "sk-0123456789"
    redactor = Redactor([secret])

    async def does(ledger: Ledger) -> None:
        attempt = evolve(numbered(1), exit=evolve(ATTEMPT.exit, detail=f"key {secret}"))  # type: ignore[type-var]
        await ledger.executed(attempt, [b'{"t":0,"e":"x","key":"%s"}' % secret.encode()])
        await ledger.graded(Grading(attempt.id, Verdict("fail", details={"seen": secret}), 0.0))

    with_ledger(tmp_path, does, redactor)
    (attempt,) = read_attempts(tmp_path)
    (grading,) = read_gradings(tmp_path, "g")
    assert attempt.exit is not None and attempt.exit.detail == "key [redacted]"
    assert grading.verdict.details == {"seen": "[redacted]"}
    assert stored_events(tmp_path, attempt)[0]["key"] == "[redacted]"


# ── a disk that fails ────────────────────────────────────────────────────────────────────────────────────────────────


def failing_sync(fails: Callable[[int], bool]) -> Callable[[int], None]:
    real = os.fdatasync

    def sync(descriptor: int) -> None:
        if fails(descriptor):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    return sync


def test_a_failed_write_adds_nothing_and_is_told_to_all_who_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def does(ledger: Ledger) -> list[Any]:
        await commit(ledger, 1)
        monkeypatch.setattr(os, "fdatasync", failing_sync(lambda _: True))
        together = asyncio.gather(*(commit(ledger, n) for n in (2, 3)), return_exceptions=True)
        return [*(await together), *(await asyncio.gather(commit(ledger, 4), return_exceptions=True))]

    told = with_ledger(tmp_path, does)
    assert all(isinstance(t, FatalInfraError) for t in told)
    assert told[0].message == f"cannot write to {tmp_path}: No space left on device"
    assert "evalcore resume" in told[0].hint
    assert len(list(read_attempts(tmp_path))) == len(list(read_gradings(tmp_path, "g"))) == 1
    assert (tmp_path / "attempts.jsonl").read_bytes().endswith(b"\n")


def test_after_a_failure_nothing_more_is_written_even_if_there_is_room_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever was told of the failure has gone on from there: a line that appeared later would be a surprise."""
    once = iter([True])

    async def does(ledger: Ledger) -> Any:
        monkeypatch.setattr(os, "fdatasync", failing_sync(lambda _: next(once, False)))
        first = await asyncio.gather(commit(ledger, 1), return_exceptions=True)
        second = await asyncio.gather(commit(ledger, 2), return_exceptions=True)
        return first + second

    assert all(isinstance(t, FatalInfraError) for t in with_ledger(tmp_path, does))
    assert list(read_attempts(tmp_path)) == []


def test_an_attempt_stays_committed_where_only_a_verdict_found_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def does(ledger: Ledger) -> None:
        attempt = await ledger.executed(numbered(1), lines_of(1))
        monkeypatch.setattr(os, "fdatasync", failing_sync(lambda _: True))
        with pytest.raises(FatalInfraError):
            await ledger.graded(Grading(attempt.id, Verdict("pass"), 0.0))

    with_ledger(tmp_path, does)
    assert len(list(read_attempts(tmp_path))) == 1
    assert (tmp_path / "gradings" / "g.jsonl").read_bytes() == b""


def test_a_writer_that_meets_a_bug_tells_it_and_lets_nobody_wait(tmp_path: Path) -> None:
    async def does(ledger: Ledger) -> Any:
        return await asyncio.gather(
            ledger.executed(numbered(1), ["no bytes"]),
            commit(ledger, 2),
            return_exceptions=True,  # type: ignore[list-item]
        )

    told = with_ledger(tmp_path, does)
    assert all(isinstance(t, FatalInfraError) for t in told)
    assert "TypeError" in told[0].message


def test_a_trial_that_was_cancelled_while_it_waited_is_committed_all_the_same(tmp_path: Path) -> None:
    async def does(ledger: Ledger) -> None:
        waiting = asyncio.ensure_future(ledger.executed(numbered(1), lines_of(1)))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

    with_ledger(tmp_path, does)
    assert [a.id for a in read_attempts(tmp_path)] == [numbered(1).id]


# ── the file underneath ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_grows_and_a_second_opening_goes_on_where_it_ends(tmp_path: Path) -> None:
    for part in (b"one\n", b"two\n"):
        file = AppendFile(tmp_path / "x")
        file.append(part)
        file.close()
    assert (tmp_path / "x").read_bytes() == b"one\ntwo\n"


def test_a_write_in_pieces_is_one_write_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may take less than it is given, and fail on the rest."""
    file = AppendFile(tmp_path / "x")
    file.append(b"before\n")
    real, room = os.write, [5]

    def write(descriptor: int, data: memoryview) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, "full")
        taken = real(descriptor, data[: min(room[0], 2)])
        room[0] -= taken
        return taken

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OSError, match="full"):
        file.append(b"too long\n")
    assert (tmp_path / "x").read_bytes() == b"before\n"
    room[0] = 100
    file.append(b"fits\n")
    assert (tmp_path / "x").read_bytes() == b"before\nfits\n"
    file.close()
