"""Keeps a process's memory and environment from other processes of the same user.

A provider's key is in evalcore's environment, and an agent that runs as the same user could read it from
`/proc/PID/environ` or `/proc/PID/mem`. A process that is not dumpable (prctl(2), proc(5)) is root's in these places.
Programs that it starts are dumpable again, and see only the environment that they are given. Root reads all the same.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Final

_PR_SET_DUMPABLE: Final = 4


def shield() -> None:
    """From now on. Where the system has no such thing, nothing happens."""
    if sys.platform != "linux":
        return
    import ctypes  # 10 ms: only for programs that are about to run agents

    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
