"""`evalcore doctor`: is this machine, and this installation, fit to run evaluations?"""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Final, Literal, TypeAlias

import click
from attrs import frozen

from evalcore import __version__, _guard
from evalcore.cli import keys
from evalcore.cli.output import say, say_json, table
from evalcore.cli.session import OUT, Session, session_of
from evalcore.cli.study_options import JSON, options
from evalcore.datasets.cache import cache_root
from evalcore.errors import EvalcoreError, ToolkitError
from evalcore.plugins import CORE, Registry
from evalcore.report.words import plural
from evalcore.toolkits.environment import ensure
from evalcore.values.descriptors import ModelInfo, SandboxInfo, ToolkitInfo

Status: TypeAlias = Literal["ok", "note", "wrong"]

NEWEST_TESTED: Final = (3, 13)
ROOM_BYTES: Final = 1 << 30
NAMESPACES: Final = Path("/proc/sys/user/max_user_namespaces")


@frozen
class Finding:
    """One thing that was looked at."""

    name: str
    status: Status
    text: str
    hint: str | None = None

    def as_json(self) -> dict[str, object]:
        """For programs."""
        return {"name": self.name, "status": self.status, "text": self.text, "hint": self.hint}


@click.command()
@options(JSON)
def doctor(*, json: bool | None) -> int:
    """Check this machine and this installation; exit 1 if something is wrong.

    Python, platform, cache, disk, plugins, toolkits, isolation, keys (by name, never by value). Nothing is
    installed and nothing is called.
    """
    session = session_of(click.get_current_context())
    findings = list(_examine(session))
    wrong = [f for f in findings if f.status == "wrong"]
    if json:
        say_json({"sound": not wrong, "findings": [f.as_json() for f in findings]})
    else:
        rows = [(f.status, f.name, f.text + (f" ({f.hint})" if f.hint else "")) for f in findings]
        say(table(rows))
        say(f"{plural(len(wrong), 'thing')} wrong" if wrong else "all is well")
    return 1 if wrong else 0


def _examine(session: Session) -> Iterator[Finding]:
    yield from _guarded("python", _python)
    yield from _guarded("platform", _platform)
    yield from _guarded("installation", _installation)
    yield from _guarded("cache", lambda: _writable("cache", cache_root()))
    yield from _guarded("runs", lambda: _writable("runs", Path(session.environ.get(OUT) or "runs").expanduser()))
    registry: Registry | None = None
    try:
        registry = session.quiet_registry()
    except EvalcoreError as error:
        yield Finding("plugins", "wrong", error.message, error.hint)
    if registry is not None:
        loaded = registry
        yield from _guarded("plugins", lambda: _plugins(loaded))
        yield from _guarded("toolkits", lambda: iter(asyncio.run(_toolkits(loaded))))
        yield from _guarded("isolation", lambda: _isolation(loaded))
        yield from _guarded("keys", lambda: _keys(loaded, session))


def _guarded(name: str, look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """What a check finds; a check that fails is a finding."""
    try:
        yield from look()
    except EvalcoreError as error:
        yield Finding(name, "wrong", error.message, error.hint)
    except OSError as error:
        yield Finding(name, "wrong", f"{error.strerror or error}: {error.filename or ''}".rstrip(": "))


def _python() -> Iterator[Finding]:
    _guard.check_platform("linux", sys.version_info[:2])
    version = f"{platform.python_version()}, {sys.executable}"
    if sys.version_info[:2] > NEWEST_TESTED:
        yield Finding("python", "note", version, f"evalcore is tested up to {'.'.join(map(str, NEWEST_TESTED))}")
    else:
        yield Finding("python", "ok", version)


def _platform() -> Iterator[Finding]:
    _guard.check_platform(sys.platform, sys.version_info[:2])
    text = f"{platform.system()} {platform.release()}, {platform.machine()}, {plural(os.cpu_count() or 1, 'CPU')}"
    if sys.platform == "linux":
        yield Finding("platform", "ok", text)
    else:
        yield Finding("platform", "note", text, "best effort: evalcore is tested on Linux")


def _installation() -> Iterator[Finding]:
    """Ours, and nobody else's under our name."""
    _guard.check_owner(sys.path)
    try:
        installed = metadata.version(CORE)
    except metadata.PackageNotFoundError:
        yield Finding(
            "installation", "note", f"evalcore {__version__}, run from its sources", f"{CORE} is not installed"
        )
        return
    if installed != __version__:
        hint = "install it again"
        yield Finding("installation", "wrong", f"{CORE} {installed} is installed, {__version__} is imported", hint)
    else:
        yield Finding("installation", "ok", f"{CORE} {__version__}")


def _writable(name: str, folder: Path) -> Iterator[Finding]:
    """Whether files can be made there, and how much room there is."""
    there = folder.absolute()
    while not there.exists():
        there = there.parent
    probe = there / f".evalcore-doctor-{os.getpid()}"
    with probe.open("wb") as file:
        file.write(b"x")
        file.flush()
        os.fsync(file.fileno())
    probe.unlink()
    free = shutil.disk_usage(there).free
    text = f"{folder}: writable, {free / (1 << 30):,.1f} GiB free"
    yield Finding(name, "note" if free < ROOM_BYTES else "ok", text, "little room" if free < ROOM_BYTES else None)


def _plugins(registry: Registry) -> Iterator[Finding]:
    yield Finding("plugins", "ok", ", ".join(f"{p.name} ({p.distribution} {p.version})" for p in registry.plugins))
    for failure in registry.failures:
        hint = f"`evalcore -p no:{failure.ref.name} …` leaves it out"
        yield Finding("plugins", "wrong", str(failure), hint)


async def _toolkits(registry: Registry) -> list[Finding]:
    """Each toolkit: set up and as pinned, or not there, which is no fault."""
    findings = []
    for name, info in registry.all(ToolkitInfo).items():
        what = f"toolkit {name}"
        try:
            environment = await ensure(info.spec, install=False)
        except ToolkitError as error:
            absent = error.message.endswith("is not set up here")
            text = "not set up" if absent else error.message
            findings.append(Finding(what, "note" if absent else "wrong", text, error.hint))
        except EvalcoreError as error:
            findings.append(Finding(what, "wrong", error.message, error.hint))
        else:
            place = environment.origin or environment.folder
            findings.append(Finding(what, "ok", f"{environment.source}, Python {environment.python_version}, {place}"))
    return findings


def _isolation(registry: Registry) -> Iterator[Finding]:
    """What could stand between agents and this machine, and which sandboxes use it."""
    found = [name for name in ("docker", "podman", "bwrap") if shutil.which(name)]
    try:
        if int(NAMESPACES.read_text()) > 0:
            found.append("user namespaces")
    except (OSError, ValueError):
        pass
    sandboxes = registry.all(SandboxInfo).items()
    kinds = [f"{name} ({info.isolation})" for name, info in sandboxes if info.isolation != "none"]
    machine = f"this machine has {', '.join(found) or 'none'}"
    if kinds:
        yield Finding("isolation", "ok", f"sandboxes: {', '.join(kinds)}; {machine}")
    else:
        yield Finding(
            "isolation", "note", f"no sandbox that isolates is installed: agents run with isolation none; {machine}"
        )


def _keys(registry: Registry, session: Session) -> Iterator[Finding]:
    models = registry.all(ModelInfo).values()
    names = keys.seen(models, session.environ)
    yield Finding(
        "keys", "note", f"seen: {', '.join(names)}" if names else "none is set: controls and local models run"
    )
