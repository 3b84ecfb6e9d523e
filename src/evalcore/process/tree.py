"""A process and everything it started, found and ended as a whole.

Three nets, since each has a hole: descendants by parent (lost when a parent exits), the session and group (left by
`setsid`), and a mark in the environment (lost when a program starts another with an empty environment). Code that
means to escape all three needs a process namespace around it: that is what sandboxes are for.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

MARK = "EVALCORE_PROCESS_TREE"
GRACE_S = 2.0
_GIVE_UP_S = 10.0  # a process in uninterruptible sleep does not die; nobody waits for it forever
_PROC = Path("/proc")
_HAS_PROC = sys.platform == "linux"


@attrs.frozen
class Tree:
    """Where a tree begins: its first process, that process's start (clock ticks, 0: unknown), and its mark, if any."""

    pid: int
    started: int = 0
    mark: str | None = None


@attrs.frozen
class _Entry:
    pid: int
    parent: int
    group: int
    session: int
    started: int
    zombie: bool


def new_mark(environment: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """A fresh mark, and `environment` with it. Marks nest: an evalcore inside a tree keeps the outer one's."""
    mark = secrets.token_hex(8)
    outer = environment.get(MARK) or os.environ.get(MARK)
    return mark, {**environment, MARK: f"{outer}:{mark}" if outer else mark}


def tree_of(pid: int, mark: str | None = None) -> Tree:
    """The tree that begins at a process which has not been waited for yet."""
    entry = _entry(pid) if _HAS_PROC else None
    return Tree(pid, entry.started if entry else 0, mark)


def members(tree: Tree) -> set[int]:
    """Process ids of everything in the tree that still runs, this process excepted."""
    entries = _linux_entries() if _HAS_PROC else _ps_entries()
    # A pid names another process once ours was waited for; then only the mark can be trusted.
    reused = any(e.pid == tree.pid and tree.started and e.started != tree.started for e in entries)
    found = {e.pid for e in entries if _belongs(e, tree, trust_pid=not reused)}
    children: dict[int, list[int]] = {}
    for entry in entries:
        children.setdefault(entry.parent, []).append(entry.pid)
    frontier = list(found)
    while frontier:
        for child in children.get(frontier.pop(), ()):
            if child not in found:
                found.add(child)
                frontier.append(child)
    return found - {e.pid for e in entries if e.zombie} - {os.getpid()}


def kill_tree(tree: Tree | int, grace_s: float = GRACE_S) -> set[int]:
    """End the tree: SIGTERM, up to `grace_s` seconds, SIGKILL. Returns what would not die; it blocks meanwhile."""
    left: set[int] = set()
    for left, pause_s in _rounds(tree if isinstance(tree, Tree) else tree_of(tree), grace_s):  # noqa: B007 - the last one
        time.sleep(pause_s)
    return left


async def kill_tree_async(tree: Tree, grace_s: float = GRACE_S) -> set[int]:
    """The same without blocking the event loop. The caller shields it from cancellation."""
    rounds = _rounds(tree, grace_s)
    alive: set[int] = set()
    while (step := await asyncio.to_thread(next, rounds, None)) is not None:
        alive, pause_s = step
        await asyncio.sleep(pause_s)
    return alive


def _rounds(tree: Tree, grace_s: float) -> Iterator[tuple[set[int], float]]:
    """Signals and looks in turn; yields what is alive and how long to wait before going on, last of all nothing."""
    alive = members(tree)
    _send(alive, signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    pause_s = 0.002
    while alive and time.monotonic() < deadline:
        yield alive, pause_s
        pause_s = min(2 * pause_s, 0.1)
        alive = members(tree)
    deadline = time.monotonic() + _GIVE_UP_S
    while alive and time.monotonic() < deadline:
        _send(_freeze(tree, alive), signal.SIGKILL)
        yield alive, 0.005
        alive = members(tree)
    yield alive, 0.0


def _freeze(tree: Tree, alive: set[int]) -> set[int]:
    """Stop all members, those that appear meanwhile too: otherwise one could fork between the look and the kill."""
    frozen: set[int] = set()
    deadline = time.monotonic() + 1.0
    while (new := alive - frozen) and time.monotonic() < deadline:
        _send(new, signal.SIGSTOP)
        frozen |= new
        alive = members(tree)
    return frozen | alive


def _send(pids: set[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue  # gone already, or it became another user's


def _belongs(entry: _Entry, tree: Tree, *, trust_pid: bool) -> bool:
    if trust_pid and tree.pid in (entry.pid, entry.session, entry.group):
        return True
    # Nothing in the tree is older than its root: most processes of a busy machine need no look at their environment.
    return tree.mark is not None and entry.started >= tree.started and tree.mark in _marks(entry.pid)


def _marks(pid: int) -> list[str]:
    if not _HAS_PROC:
        return []
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return []  # another user's, or gone
    prefix = f"{MARK}=".encode()
    for variable in environment.split(b"\0"):
        if variable.startswith(prefix):
            return os.fsdecode(variable[len(prefix) :]).split(":")
    return []


def _linux_entries() -> list[_Entry]:
    pids = (int(name) for name in os.listdir(_PROC) if name.isdigit())  # noqa: PTH208 - a fifth of the time
    return [entry for pid in pids if (entry := _entry(pid))]


def _entry(pid: int) -> _Entry | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - the same
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return _Entry(pid, int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]), fields[0] in (b"Z", b"X"))


def _ps_entries() -> list[_Entry]:
    """Where there is no /proc (macOS): sessions and marks are unknown, parents and groups are not."""
    listing = subprocess.run(
        ["ps", "-axo", "pid=,ppid=,pgid=,stat="], capture_output=True, text=True, timeout=10, check=False
    ).stdout
    rows = (line.split() for line in listing.splitlines())
    return [_Entry(int(r[0]), int(r[1]), int(r[2]), 0, 0, r[3].startswith("Z")) for r in rows if len(r) == 4]
