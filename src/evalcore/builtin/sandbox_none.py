"""Sandbox `none`: a folder of its own on this machine, and no wall around it. Used only where it is demanded by name.

Files are reached by paths within the folder alone: nothing absolute, no `..`, no link. Processes see an allow-listed
environment whose HOME is the folder, end with their time, and leave nothing behind; but they run as this user, and what
this user can read or write, they can.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

from evalcore.errors import FatalInfraError, InfraError
from evalcore.process.environment import clean_environment
from evalcore.process.runner import Completed, run
from evalcore.values.faults import literal
from evalcore.values.task import SandboxSpec
from evalcore.values.trial import Isolation

OUTPUT_CAP: Final = 256 << 10  # of a command, on each of its two streams; bytes
_NO_LINK: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe in a file's place must not hang us


class PathRefused(ValueError):
    """A path that is not one of a plain file within the folder; the text says why."""


class FolderSandboxes:
    """Opens sandboxes of kind `none`."""

    def __init__(self, services: Any = None, info: Any = None) -> None:
        pass

    async def open(self, spec: SandboxSpec) -> FolderSandbox:
        """A new, empty folder. Raises InfraError."""
        try:
            return FolderSandbox(Path(tempfile.mkdtemp(prefix="evalcore-none-")))
        except OSError as error:
            raise InfraError(f"cannot make a folder for the sandbox: {error.strerror}") from error


class FolderSandbox:
    """One folder. `close` removes it, and ends what still runs in it."""

    isolation: Isolation = "none"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._root = folder / "work"
        self._temporary = folder / "tmp"
        self._root.mkdir()
        self._temporary.mkdir()
        self._running: set[asyncio.Task[Completed]] = set()

    @property
    def root(self) -> Path:
        """The working folder."""
        return self._root

    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        timeout_s: float,
        cwd: str = "",
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """Run a command to its end in the folder. Raises InfraError if it cannot start, or `kill_all` ended it."""
        inside = self._inside(cwd) if cwd else self._root
        home = {"HOME": str(self._root), "TMPDIR": str(self._temporary), **(env or {})}
        task = asyncio.ensure_future(
            run(
                argv,
                stdin=stdin,
                timeout_s=timeout_s,
                cwd=inside,
                env=clean_environment(home),
                max_output_bytes=OUTPUT_CAP,
            )
        )
        self._running.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if me is not None and me.cancelling():
                raise
            raise InfraError(f"{argv[0]!r} was ended with its sandbox") from None
        finally:
            task.cancel()
            await asyncio.wait((task,))
            self._running.discard(task)

    async def read(self, path: str, max_bytes: int) -> bytes:
        """At most `max_bytes` of a file. Raises PathRefused, FileNotFoundError."""
        return _read(self._root, _parts(path), max_bytes)

    async def write(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """A file, with the folders above it. Raises PathRefused, FatalInfraError if the disk is full."""
        _write(self._root, _parts(path), data, mode)

    async def digest(self, path: str) -> str:
        """The sha256 of a file, whatever its size. Raises PathRefused, FileNotFoundError."""
        return await asyncio.to_thread(_digest, self._root, _parts(path))

    async def kill_all(self) -> None:
        """End every process that was started here, with all that it started."""
        running = list(self._running)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)

    async def close(self) -> None:
        """Remove the folder. Idempotent."""
        await self.kill_all()
        await asyncio.to_thread(_remove, self._folder)

    def _inside(self, path: str) -> Path:
        return self._root.joinpath(*_parts(path))


def _parts(path: str) -> tuple[str, ...]:
    """The parts of a path within the folder. Raises PathRefused."""
    pure = PurePosixPath(path)
    parts = pure.parts
    if not parts or pure.is_absolute() or ".." in parts or "\0" in path:
        raise PathRefused(f"{literal(path)} is no path within the folder")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise PathRefused(f"{literal(path)} cannot be a file's name") from None
    return parts


def _open_folder(root: Path, parts: Sequence[str], *, make: bool) -> int:
    """A descriptor of the folder at `parts`, every step of the way a real one: a link on it would lead outside."""
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in parts:
        try:
            if make:
                _make(part, folder)
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK, dir_fd=folder)
        finally:
            os.close(folder)
        folder = inner
    return folder


def _make(part: str, folder: int) -> None:
    try:
        os.mkdir(part, dir_fd=folder)
    except FileExistsError:
        return


def _open(root: Path, parts: Sequence[str], flags: int, mode: int = 0) -> int:
    """A descriptor of a plain file within the folder. Raises PathRefused, FileNotFoundError, FatalInfraError."""
    shown = literal("/".join(parts))
    try:
        folder = _open_folder(root, parts[:-1], make=bool(flags & os.O_CREAT))
        try:
            descriptor = os.open(parts[-1], flags | _NO_LINK, mode, dir_fd=folder)
        finally:
            os.close(folder)
    except FileNotFoundError:
        raise FileNotFoundError(f"{shown}: no such file") from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise FatalInfraError(f"cannot write {shown}: {error.strerror}") from error
        raise PathRefused(f"{shown}: {_reason(error)}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise PathRefused(f"{shown} is no plain file")
    return descriptor


def _reason(error: OSError) -> str:
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return "a link, which is not followed"
    return (error.strerror or "cannot be opened").lower()


def _read(root: Path, parts: Sequence[str], max_bytes: int) -> bytes:
    with os.fdopen(_open(root, parts, os.O_RDONLY), "rb") as file:
        return file.read(max_bytes)


def _digest(root: Path, parts: Sequence[str]) -> str:
    with os.fdopen(_open(root, parts, os.O_RDONLY), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(root: Path, parts: Sequence[str], data: bytes, mode: int) -> None:
    descriptor = _open(root, parts, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except OSError as error:
        raise FatalInfraError(f"cannot write {literal('/'.join(parts))}: {error.strerror}") from error


def _remove(folder: Path) -> None:
    """Remove a folder, also one whose owner was kept out of parts of it."""

    def open_up(_function: Any, path: str, _error: Any) -> None:
        try:
            Path(path).parent.chmod(0o700)
            Path(path).chmod(0o700)
        except OSError:
            return

    shutil.rmtree(folder, onerror=open_up)
    if folder.exists():
        shutil.rmtree(folder, ignore_errors=True)
