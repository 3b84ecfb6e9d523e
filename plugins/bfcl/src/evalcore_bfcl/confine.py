"""Takes away what a process that runs upstream's code on an agent's arguments has no use for; standard library only.

Two things are asked of the machine: a network namespace with nothing in it (Linux, where namespaces are allowed), and
bounds on memory and on the size of files. Each is done or said not to be; nothing here fails.
"""

import ctypes
import os
import resource
import sys

MEMORY = 4 << 30  # bytes of address space; grading takes a hundredth of it
LEARNED = 64 << 30  # where a learned model is computed with, whose libraries claim far more than they use
FILE = 256 << 20  # bytes of one file
NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
END_WITH_PARENT, KILL = 1, 9


def confine(*, learned: bool = False) -> dict[str, str]:
    """What is enforced from now on, by name; and where it is not, why. `learned`: a learned model is here."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each of its threads would claim memory beforehand
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # a model comes from the cache, or not at all
    return {
        "network": _without_network(),
        "memory": _bound("RLIMIT_AS", LEARNED if learned else MEMORY),
        "file size": _bound("RLIMIT_FSIZE", FILE),
        "core dumps": _bound("RLIMIT_CORE", 0),
    }


def _bound(name: str, value: int) -> str:
    if sys.platform == "darwin" and name == "RLIMIT_AS":
        return "not enforced: macOS has no such bound"
    kind = getattr(resource, name)
    try:
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    except (OSError, ValueError) as error:
        return f"not enforced: {error}"
    return f"at most {value}"


def _without_network() -> str:
    """Leave for a network namespace of our own, in which there is nothing, not even a loopback that is up."""
    if not sys.platform.startswith("linux"):
        return f"not enforced: no network namespaces on {sys.platform}"
    try:
        library = ctypes.CDLL(None, use_errno=True)
        # Root needs no user namespace; anybody else gets the right from one.
        if library.unshare(NEW_NETWORK) and library.unshare(NEW_USER | NEW_NETWORK):
            return f"not enforced: {os.strerror(ctypes.get_errno())}"
        library.prctl(END_WITH_PARENT, KILL, 0, 0, 0)  # a change of credentials may have undone it
    except (OSError, AttributeError) as error:
        return f"not enforced: {error}"
    return "none"
