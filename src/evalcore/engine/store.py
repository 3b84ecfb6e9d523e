"""A run's directory: made, locked, repaired after a crash, and read back without the engine."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar

import zstandard

from evalcore.engine.ledger import sync_folder
from evalcore.engine.records import read_attempt, read_grading
from evalcore.errors import ConfigError, FatalInfraError, InfraError, RefusedError
from evalcore.values.convert import from_toml, to_toml
from evalcore.values.json import JSONObject, dumps
from evalcore.values.stamp import GradingStamp, RunStamp
from evalcore.values.trace import TraceReader
from evalcore.values.trial import Attempt, BlobRef, Grading, TraceRef

T = TypeVar("T")

STAMP: Final = "run.toml"
_FRAME_MAX: Final = 2 << 30  # bytes of one decoded trace


def write_durably(path: Path, data: bytes) -> None:
    """Replace a file whole: a reader sees the old one or the new one, also after a crash."""
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)  # on a full disk, half a file is in the way
        raise
    sync_folder(path.parent)


def create_run(path: Path, stamp: RunStamp) -> None:
    """Make a run's directory and write its stamp. Raises ConfigError if it is there already."""
    try:
        path.mkdir(parents=True, exist_ok=False)
    except FileExistsError:
        raise ConfigError(
            f"{path} exists already", hint=f"`evalcore resume {path}` goes on with it; `--name` gives another name"
        ) from None
    except OSError as error:
        raise InfraError(f"cannot make {path}: {error.strerror}") from error
    try:
        write_durably(path / STAMP, to_toml(stamp).encode())
        sync_folder(path.parent)
    except OSError as error:
        shutil.rmtree(path, ignore_errors=True)  # without a stamp it is no run, and in the way of the next
        raise FatalInfraError(
            f"cannot write to {path}: {error.strerror}", hint="make room, then begin again"
        ) from error


def read_stamp(path: Path) -> RunStamp:
    """The stamp of a run. Raises ConfigError if there is no run."""
    file = path / STAMP
    if not file.is_file():
        near = (
            sorted(p.name for p in path.parent.glob("*") if (p / STAMP).is_file())[-3:] if path.parent.is_dir() else []
        )
        hint = f"runs there: {', '.join(near)}" if near else "`evalcore run SELECTOR` makes one"
        raise ConfigError(f"no run at {path}", hint=hint)
    return from_toml(file, RunStamp)


class RunLock:
    """One writer per run: held on the run's directory itself for as long as the process lives."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._descriptor)
            raise RefusedError(f"{path} is being written by another process", hint="wait for it, or stop it") from None

    def release(self) -> None:
        """Let the next writer in."""
        os.close(self._descriptor)


def repair(path: Path) -> list[str]:
    """Cut torn last lines off the ledgers, keeping a copy. Returns a line per repair. Raises FatalInfraError."""
    files = [path / "attempts.jsonl", *sorted((path / "gradings").glob("*.jsonl"))]
    try:
        torn = {file: _cut_torn_tail(file) for file in files if file.is_file()}
    except OSError as error:
        raise FatalInfraError(f"cannot repair {path}: {error.strerror}", hint="make room, then resume") from error
    return [f"{file.name}: {size} bytes of a torn last line set aside" for file, size in torn.items() if size]


def _cut_torn_tail(file: Path) -> int:
    """Truncate after the last newline. Returns how many bytes went."""
    with file.open("rb+") as f:
        size = f.seek(0, os.SEEK_END)
        end = size
        while end > 0:
            start = max(0, end - 65536)
            f.seek(start)
            newline = f.read(end - start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end == size:
            return 0
        f.seek(end)
        with file.with_suffix(".torn").open("ab") as aside:
            aside.write(f.read())
        f.truncate(end)
        os.fsync(f.fileno())
        return size - end


def _lines(
    file: Path, read: Callable[[bytes], T], mend: str, wanted: Callable[[bytes], bool] | None = None
) -> Iterator[T]:
    """Every whole line of a ledger, or those that may be wanted.

    A torn last line is passed over; a broken one before it is an error.
    """
    if not file.is_file():
        return
    with file.open("rb") as f:
        for number, line in enumerate(f, 1):
            if not line.endswith(b"\n"):
                return
            if wanted is not None and not wanted(line):
                continue
            try:
                yield read(line)
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                raise ConfigError(f"{file}:{number}: not a line of this ledger: {error}", hint=mend) from error


def _about(head: bytes, ids: Collection[str]) -> Callable[[bytes], bool]:
    """Whether a line that begins with `head` and an id is about one of these: seen without decoding it.

    One that begins otherwise may be: it is read.
    """
    written = {dumps(i) for i in ids}
    lengths, start = sorted({len(i) for i in written}), len(head)

    def wanted(line: bytes) -> bool:
        return not line.startswith(head) or any(line[start : start + n] in written for n in lengths)

    return wanted


def read_attempts(path: Path, only: Collection[str] | None = None) -> Iterator[Attempt]:
    """Every attempt of a run, or `only` those of these ids, in the order of commit.

    Raises ConfigError if the ledger is broken, or gone.
    """
    ledger = path / "attempts.jsonl"
    if not ledger.is_file() and any((path / "traces").glob("*.zst")):
        raise ConfigError(f"{ledger} is gone, and traces of what it held are there", hint="bring it back from a copy")
    found = _lines(
        ledger,
        read_attempt,
        "keep a copy, then take that line out: the rest is kept",
        None if only is None else _about(b'{"id":', only),
    )
    return found if only is None else (attempt for attempt in found if attempt.id in only)


def read_gradings(path: Path, grading: str, only: Collection[str] | None = None) -> Iterator[Grading]:
    """Every verdict of one grading, or `only` of these attempts, in the order of commit.

    A later one of the same attempt stands.
    """
    file = path / "gradings" / f"{grading}.jsonl"
    mend = f"move {file.name} away; `evalcore resume {path}` grades the stored trials again"
    found = _lines(file, read_grading, mend, None if only is None else _about(b'{"attempt":', only))
    return found if only is None else (verdict for verdict in found if verdict.attempt in only)


def every_grading(path: Path) -> Iterator[Grading]:
    """Every verdict of every grading of a run."""
    for file in sorted((path / "gradings").glob("*.jsonl")):
        yield from read_gradings(path, file.stem)


def write_grading_stamp(path: Path, grading: str, graders: Mapping[str, JSONObject]) -> None:
    """Keep beside a later grading what made it: each benchmark's grader stamp, by selector."""
    folder = path / "gradings"
    folder.mkdir(exist_ok=True)
    write_durably(folder / f"{grading}.toml", to_toml(GradingStamp(grading, dict(graders))).encode())


def read_grading_stamp(path: Path, grading: str) -> GradingStamp | None:
    """What made a later grading; None for the grading that the run was made with."""
    file = path / "gradings" / f"{grading}.toml"
    return from_toml(file, GradingStamp) if file.is_file() else None


def lost_segments(path: Path) -> list[str]:
    """Segments that attempts point into and that are not there any more."""
    named = {attempt.trace.segment for attempt in read_attempts(path)}
    return sorted(name for name in named if not (path / "traces" / Path(name).name).is_file())


def gradings_of(path: Path) -> list[str]:
    """The digests of the gradings that a run holds."""
    return sorted(p.stem for p in (path / "gradings").glob("*.jsonl"))


class TraceStore:
    """Reads single traces out of segments: one seek each. Segments stay open until `close`."""

    def __init__(self, path: Path) -> None:
        self._folder = path / "traces"
        self._files: dict[str, int] = {}
        self._decompress = zstandard.ZstdDecompressor().decompress

    def read(self, ref: TraceRef) -> TraceReader:
        """The trace of an attempt. Raises InfraError if the segment is gone or broken."""
        try:
            frame = os.pread(self._open(ref.segment), ref.length, ref.offset)
            data = self._decompress(frame, max_output_size=_FRAME_MAX)
        except (OSError, zstandard.ZstdError) as error:
            raise InfraError(f"cannot read the trace at {ref.segment}+{ref.offset}: {error}") from error
        return TraceReader(data.split(b"\n") if data else [])

    def of(self, attempt: Attempt) -> TraceReader:
        """The trace of an attempt, which must be its own. Raises InfraError."""
        reader = self.read(attempt.trace)
        start = next(reader.events(), {})
        if start.get("e") == "trial.start" and start.get("id", attempt.id) != attempt.id:
            raise InfraError(f"the trace at {attempt.trace.segment}+{attempt.trace.offset} is another trial's")
        return reader

    def _open(self, segment: str) -> int:
        if segment not in self._files:
            name = Path(segment).name  # a ledger line is no reason to open a file elsewhere
            self._files[segment] = os.open(self._folder / name, os.O_RDONLY | os.O_CLOEXEC)
        return self._files[segment]

    def close(self) -> None:
        """Close every segment."""
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files.clear()


class FileBlobs:
    """The run's blobs, by sha256. A blob is on disk before `put` returns."""

    def __init__(self, path: Path) -> None:
        self._folder = path / "blobs"

    async def put(self, data: bytes) -> BlobRef:
        """Store bytes once. Raises FatalInfraError if the disk fails."""
        name = hashlib.sha256(data).hexdigest()
        file = self._folder / name
        try:
            if not file.exists():
                self._folder.mkdir(exist_ok=True)
                sync_folder(self._folder.parent)
                write_durably(file, data)
        except OSError as error:
            raise FatalInfraError(f"cannot write to {self._folder}: {error.strerror}", hint="make room") from error
        return BlobRef(name, len(data))

    async def get(self, ref: BlobRef) -> bytes:
        """The bytes behind a reference. Raises InfraError if they are gone or changed."""
        try:
            data = (self._folder / Path(ref.sha256).name).read_bytes()
        except OSError as error:
            raise InfraError(f"blob {ref.sha256[:12]} is gone: {error.strerror}") from error
        if hashlib.sha256(data).hexdigest() != ref.sha256:
            raise InfraError(f"blob {ref.sha256[:12]} was changed on disk")
        return data
