"""Find a Python that upstream code can run on."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import attrs
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from evalcore.errors import ConfigError, InfraError, ToolkitError
from evalcore.process.environment import clean_environment
from evalcore.process.runner import run
from evalcore.values.toolkit import ToolkitSpec

VARIABLE = "EVALCORE_PYTHON"
_MINORS = range(30, 7, -1)  # python3.30 … python3.8, the newest fitting one first
_PROBE = (
    "import json, platform, sys, sysconfig; print(json.dumps(['.'.join(map(str, sys.version_info[:3])),"
    " sys.implementation.name, sysconfig.get_platform() + '-' + (platform.libc_ver()[0] or 'libc')]))"
)


@attrs.frozen
class Interpreter:
    """A Python that was run and said what it is."""

    path: Path
    version: str
    implementation: str
    platform: str


def current() -> Interpreter:
    """The Python that runs this."""
    return Interpreter(
        Path(sys.executable),
        ".".join(map(str, sys.version_info[:3])),
        sys.implementation.name,
        f"{sysconfig.get_platform()}-{platform.libc_ver()[0] or 'libc'}",
    )


async def find_interpreter(spec: ToolkitSpec, environ: Mapping[str, str] | None = None) -> Interpreter:
    """A fitting Python: named in EVALCORE_PYTHON, this one, one on PATH, pyenv's, uv's. Raises ToolkitError if none.

    EVALCORE_PYTHON may list several, separated as in PATH, for toolkits with different ranges.
    """
    environ = os.environ if environ is None else environ
    wanted = version_range(spec)
    for path in _named(environ):
        found = await probe(path)
        if found is None:
            raise ConfigError(f"{VARIABLE} names {path}, which does not run as a Python")
        if wanted.contains(found.version, prereleases=True):
            return found
    if wanted.contains(current().version, prereleases=True):
        return current()
    for path in dict.fromkeys((*_on_path(wanted, environ), *_managed(wanted, environ))):
        found = await probe(path)
        if found and wanted.contains(found.version, prereleases=True):
            return found
    raise ToolkitError(
        f"toolkit {spec.name} needs Python {spec.python}; none was found, and this one is {current().version}",
        hint=f"install one, or set {VARIABLE} to the path of one",
    )


def version_range(spec: ToolkitSpec) -> SpecifierSet:
    """The parsed range of a toolkit. Raises ToolkitError for one that is none."""
    try:
        return SpecifierSet(spec.python)
    except InvalidSpecifier as error:
        raise ToolkitError(f"toolkit {spec.name} has an impossible Python range {spec.python!r}") from error


async def probe(path: Path) -> Interpreter | None:
    """What the Python at `path` says it is, or None if it does not run (a pyenv shim of an inactive version, say)."""
    try:
        done = await run([str(path), "-I", "-c", _PROBE], timeout_s=30.0, env=clean_environment())
        version, implementation, system = cast("list[str]", json.loads(done.stdout))
    except (InfraError, ValueError):
        return None
    return Interpreter(path, version, implementation, system) if done.exit_code == 0 else None


def _named(environ: Mapping[str, str]) -> list[Path]:
    return [Path(part).expanduser() for part in environ.get(VARIABLE, "").split(os.pathsep) if part]


def _could_fit(wanted: SpecifierSet, minor: int) -> bool:
    return any(wanted.contains(f"3.{minor}.{patch}", prereleases=True) for patch in range(40))


def _on_path(wanted: SpecifierSet, environ: Mapping[str, str]) -> Iterator[Path]:
    # Every folder of PATH, for the first hit can be a shim that does not work.
    folders = [Path(folder) for folder in environ.get("PATH", os.defpath).split(os.pathsep) if folder]
    names = [f"python3.{minor}" for minor in _MINORS if _could_fit(wanted, minor)]
    yield from (folder / name for name in [*names, "python3"] for folder in folders if (folder / name).is_file())


def _managed(wanted: SpecifierSet, environ: Mapping[str, str]) -> Iterator[Path]:
    home = Path(environ.get("HOME") or "~").expanduser()
    data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    pyenv = Path(environ.get("PYENV_ROOT") or home / ".pyenv") / "versions"
    uv = Path(environ.get("UV_PYTHON_INSTALL_DIR") or data / "uv" / "python")
    folders = [*_subfolders(pyenv), *_subfolders(uv)]
    for folder in sorted(folders, key=_version_key, reverse=True):
        minor = _version_key(folder)[0]
        if _could_fit(wanted, minor) and (folder / "bin" / "python3").is_file():
            yield folder / "bin" / "python3"


def _subfolders(root: Path) -> list[Path]:
    try:
        return [path for path in root.iterdir() if path.is_dir()]
    except OSError:
        return []


def _version_key(folder: Path) -> tuple[int, int]:
    """Minor and patch in a name such as 3.12.1 or cpython-3.12.1-linux-x86_64-gnu."""
    match = re.search(r"(?:^|-)3\.(\d+)(?:\.(\d+))?", folder.name)
    return (int(match[1]), int(match[2] or 0)) if match else (0, 0)
