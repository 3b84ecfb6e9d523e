"""Takes from this process what upstream's code has no use for: the network, programs, and memory without end.

What the machine does not allow is left as it is, and said: the answer goes into the toolkit's stamp.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
import threading
from collections.abc import Iterator

MEMORY = 4 << 30  # bytes of address space; a worker with every domain open takes a tenth of it
FILE = 64 << 20  # bytes of the largest file that it may write
NEW_NETWORK, NEW_USER = 0x40000000, 0x10000000  # clone(2)
DENIED = (
    "socket.connect",
    "socket.bind",
    "socket.sendto",
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.posix_spawn",
)


class Endless(Exception):
    """Upstream's code used up its processor time; an Exception, so that a tool that it was in fails as tools do."""

    def __str__(self) -> str:
        return "the call used up its processor time"


def confine() -> dict[str, str]:
    """Each kind of confinement and how far it goes here."""
    told = {"network": _no_network(), "memory": _limit(resource.RLIMIT_AS, MEMORY)}
    told["files"] = _limit(resource.RLIMIT_FSIZE, FILE)
    _limit(resource.RLIMIT_CORE, 0)
    sys.addaudithook(_deny)
    return {**told, "programs": "refused by the interpreter"}


def _deny(event: str, _: object) -> None:
    if event in DENIED:
        raise PermissionError(f"{event}: upstream's code runs without network and without programs of its own")


def _no_network() -> str:
    if not sys.platform.startswith("linux"):
        return "refused by the interpreter"
    try:
        import ctypes

        unshare = ctypes.CDLL(None).unshare
        if unshare(NEW_NETWORK) == 0 or (os.getuid() != 0 and unshare(NEW_USER | NEW_NETWORK) == 0):
            return "none: a namespace of its own"
    except (ImportError, OSError, AttributeError):
        pass
    return "refused by the interpreter"


def _limit(what: int, most: int) -> str:
    _, hard = resource.getrlimit(what)
    wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
    try:
        resource.setrlimit(what, (wanted, hard))
    except (OSError, ValueError):
        return "not limited"
    return f"at most {wanted >> 20} MiB"


@contextlib.contextmanager
def processor_time(seconds: float) -> Iterator[None]:
    """Raises `Endless` in the body when it computes longer; only where signals can be had, in a main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise Endless

    signal.signal(signal.SIGVTALRM, interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 1.0)  # and again, should upstream catch it
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
