"""A lock between processes, so that two evalcores do not fetch or build the same thing at once."""

from __future__ import annotations

import asyncio
import datetime as dt
import fcntl
import os
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from evalcore.errors import InfraError

_POLL_S = 0.1


@asynccontextmanager
async def locked(
    path: Path, timeout_s: float = 1800.0, on_wait: Callable[[str], None] | None = None
) -> AsyncIterator[None]:
    """Hold the lock file `path`; InfraError after `timeout_s` seconds. `on_wait` is told once who holds it.

    The lock ends with its holder, killed or not. The file stays: removing it would let two hold locks of one name.
    """
    descriptor = _open(path)
    try:
        await _acquire(descriptor, path, timeout_s, on_wait)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, _self_description().encode(), 0)
        try:
            yield
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


async def _acquire(descriptor: int, path: Path, timeout_s: float, on_wait: Callable[[str], None] | None) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 512, 0).decode(errors="replace") or "another process"
        except OSError as error:
            raise InfraError(f"cannot lock {path}: {error.strerror}", hint="is the cache on a local disk?") from error
        if on_wait:
            on_wait(f"waiting for {path.stem}, held by {holder}")
            on_wait = None
        if time.monotonic() >= deadline:
            raise InfraError(
                f"{path} was locked for {timeout_s:g} s by {holder}", hint="wait for that process, or end it"
            )
        await asyncio.sleep(_POLL_S)


def _open(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise InfraError(f"cannot open the lock file {path}: {error.strerror}") from error


def _self_description() -> str:
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    return f"process {os.getpid()} on {socket.gethostname()} since {now}"
