"""The ledgers of a run: append-only, synced in groups. Nothing is acknowledged before it is on disk.

One writer thread takes whatever trials have finished since its last sync and commits them together: trace frames first,
then the lines that point at them. It never waits for a batch to fill, so one trial alone commits as fast as the disk
does, and at many ways the cost of a sync is shared.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

import zstandard
from attrs import evolve

from evalcore.engine.records import attempt_line, grading_line, read_attempt
from evalcore.errors import FatalInfraError
from evalcore.values.trial import Attempt, Grading, TraceRef
from evalcore.wires.recorder import Redactor

SEGMENT_BYTES: Final = 64 << 20
_TAIL: Final = 1 << 20  # bytes that hold the last line of a ledger, however long
_LEVEL: Final = 3  # level 19 saves 2 % and costs nine tenths of the throughput

_Executed: TypeAlias = "tuple[Attempt, list[bytes], asyncio.Future[Attempt]]"
_Graded: TypeAlias = "tuple[Grading, None, asyncio.Future[Grading]]"


class AppendFile:
    """A file that only grows; after a failed write it is as it was before. Bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self.size = os.fstat(self._descriptor).st_size

    def append(self, data: bytes) -> None:
        """Write all of `data` and sync it. Raises OSError, with nothing added."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
            os.fdatasync(self._descriptor) if hasattr(os, "fdatasync") else os.fsync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, self.size)
            raise
        self.size += len(data)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


class Ledger:
    """Commits attempts with their traces, and gradings. Made and used on one event loop; closed once."""

    def __init__(self, run: Path, grading: str, redactor: Redactor | None = None) -> None:
        self._run = run
        self._grading = grading
        self._redactor = redactor or Redactor()
        self._queue: queue.SimpleQueue[_Executed | _Graded | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._failure: FatalInfraError | None = None
        self._segment: AppendFile | None = None
        self._compress = zstandard.ZstdCompressor(level=_LEVEL).compress
        try:
            self._attempts = AppendFile(run / "attempts.jsonl")
            (run / "gradings").mkdir(exist_ok=True)
            (run / "traces").mkdir(exist_ok=True)
            self._gradings = AppendFile(run / "gradings" / f"{grading}.jsonl")
            for folder in (run, run / "gradings", run / "traces"):
                sync_folder(folder)
        except OSError as error:
            raise self._cannot_write(error) from error
        self._named = last_segment(run / "attempts.jsonl")  # a lost segment's name is not given again
        self._thread = threading.Thread(target=self._write_all, name="ledger", daemon=True)
        self._thread.start()

    async def executed(self, attempt: Attempt, lines: list[bytes]) -> Attempt:
        """Commit an attempt and its trace; returns it with `trace` set. Raises FatalInfraError if the disk fails."""
        done: asyncio.Future[Attempt] = self._loop.create_future()
        self._queue.put((attempt, lines, done))
        return await done

    async def graded(self, grading: Grading) -> Grading:
        """Commit a verdict. Raises FatalInfraError if the disk fails."""
        done: asyncio.Future[Grading] = self._loop.create_future()
        self._queue.put((grading, None, done))
        return await done

    async def close(self) -> None:
        """Commit what is queued and close the files."""
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)
        for file in (self._attempts, self._gradings, self._segment):
            if file is not None:
                file.close()

    # ── in the writer thread ──

    def _write_all(self) -> None:
        last = False
        while not last:
            batch = [self._queue.get()]
            while True:
                try:
                    batch.append(self._queue.get_nowait())
                except queue.Empty:
                    break
            last = None in batch
            items = [item for item in batch if item is not None]
            if items:
                self._settle(items, self._commit(items))

    def _commit(self, items: list[_Executed | _Graded]) -> list[Attempt | Grading] | FatalInfraError:
        if self._failure is None:
            try:
                return self._append(items)
            except Exception as error:  # noqa: BLE001 - a writer that died would leave every trial waiting
                self._failure = self._cannot_write(error)
        return self._failure

    def _cannot_write(self, error: Exception) -> FatalInfraError:
        reason = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        return FatalInfraError(
            f"cannot write to {self._run}: {reason}",
            hint=f"make room, then `evalcore resume {self._run}`: everything committed is kept",
        )

    def _append(self, items: list[_Executed | _Graded]) -> list[Attempt | Grading]:
        """Frames, then attempt lines, then grading lines: what a line points at is on disk before the line is."""
        frames: list[bytes] = []
        results: list[Attempt | Grading] = []
        attempts: list[bytes] = []
        gradings: list[bytes] = []
        segment = self._open_segment()
        offset = segment.size
        for value, lines, _ in items:
            if isinstance(value, Attempt):
                frame = self._compress(self._redactor.clean(b"\n".join(lines or ())))
                value = evolve(value, trace=TraceRef(segment.path.name, offset, len(frame)))
                offset += len(frame)
                frames.append(frame)
                attempts.append(attempt_line(value))
            else:
                gradings.append(grading_line(value))
            results.append(value)
        for file, parts in ((segment, frames), (self._attempts, attempts), (self._gradings, gradings)):
            if parts:
                data = b"".join(parts)
                file.append(data if file is segment else self._redactor.clean(data))
        return results

    def _open_segment(self) -> AppendFile:
        """The segment to append to; a new one once the last is full, and at every start."""
        if self._segment is not None and self._segment.size < SEGMENT_BYTES:
            return self._segment
        if self._segment is not None:
            self._segment.close()
        folder = self._run / "traces"
        names = [p.name for p in folder.glob("*.zst")] + ([self._named] if self._named else [])
        taken = [int(name.removesuffix(".zst")) for name in names if name.removesuffix(".zst").isdigit()]
        self._segment = AppendFile(folder / f"{max(taken, default=0) + 1:06d}.zst")
        sync_folder(folder)
        return self._segment

    def _settle(self, items: list[_Executed | _Graded], outcome: list[Attempt | Grading] | FatalInfraError) -> None:
        def settle() -> None:
            for index, (_, _, future) in enumerate(items):
                if future.done():  # its trial was cancelled while it waited
                    continue
                if isinstance(outcome, list):
                    future.set_result(outcome[index])  # type: ignore[arg-type]
                else:
                    future.set_exception(outcome)

        _call_soon(self._loop, settle)


def _call_soon(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop is gone: nobody is left to tell, the data is on disk
        loop.call_soon_threadsafe(function)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def last_segment(ledger: Path) -> str | None:
    """The segment that the last attempt is in; names only ever grow. None if there is no attempt."""
    with ledger.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL))
        lines = [line for line in file.read().split(b"\n") if line.strip()]
    try:
        return read_attempt(lines[-1]).trace.segment if lines else None
    except (ValueError, KeyError, TypeError):  # a broken line is told by whoever reads the ledger
        return None
