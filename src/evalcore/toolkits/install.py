"""Build a virtual environment and install pinned wheels into it."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

from packaging.requirements import InvalidRequirement
from packaging.requirements import Requirement as AnyRequirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from evalcore.errors import ToolkitError
from evalcore.process.environment import clean_environment
from evalcore.process.runner import Completed, run
from evalcore.toolkits.interpreters import Interpreter
from evalcore.values.toolkit import Requirement, ToolkitSpec

Progress = Callable[[str], None]
_INSTALLERS = frozenset({"pip", "setuptools", "wheel"})
_VENV_S = 300.0
_PIP_S = 3600.0
_IMPORT_S = 600.0  # the first import of a large package compiles and reads thousands of files
_FLAGS = (
    "--no-input",
    "--no-deps",
    "--disable-pip-version-check",
    "--progress-bar",
    "off",
    "--no-warn-script-location",
)
_OFFLINE = re.compile(
    r"from versions: none|NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|Connection (refused|broken)"
    r"|Failed to establish a new connection|Network is unreachable"
)
_BAD_HASH = re.compile(
    r"(?P<package>\S+) from \S.*\n\s+Expected sha256 (?P<expected>[0-9a-f]{64})(.|\n)*?Got\s+(?P<found>[0-9a-f]{64})"
)
_NO_WHEEL = re.compile(r"No matching distribution found for (?P<package>\S+)")


async def build(
    folder: Path,
    spec: ToolkitSpec,
    interpreter: Interpreter,
    *,
    replacement: str | None,
    setup: str,
    progress: Progress,
    environ: Mapping[str, str],
) -> None:
    """Make `folder` an environment with the toolkit's requirements. `replacement` is a requirement that takes the place
    of the one it names, unpinned; `setup` the command that messages tell to run. Raises ToolkitError.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    progress(f"toolkit {spec.name}: making an environment with Python {interpreter.version}")
    argv = [str(interpreter.path), "-I", "-m", "venv", "--without-pip", str(folder)]
    done = await run(argv, timeout_s=_VENV_S, env=clean_environment(source=environ))
    if done.exit_code != 0:
        raise ToolkitError(f"toolkit {spec.name}: {interpreter.path} cannot make an environment: {_last_line(done)}")
    python = python_of(folder)
    pip = await _pip(python, interpreter, environ)
    pinned = _pinned_requirements(spec, replacement)
    if pinned:
        listing = folder / "requirements.txt"
        listing.write_text("".join(f"{line}\n" for line in pinned), encoding="utf-8")
        flags = ("--require-hashes", "--only-binary", ":all:", "-r", str(listing))
        await _install([*pip, "install", *_FLAGS, *flags], spec, setup, progress, environ)
    if replacement:
        await _install([*pip, "install", *_FLAGS, replacement], spec, setup, progress, environ)
    await _check_imports(python, spec, progress, environ)


def python_of(folder: Path) -> Path:
    """The interpreter of an environment."""
    return folder / "bin" / "python"


def site_packages(folder: Path) -> Path:
    """Where an environment keeps what was installed."""
    return next(iter(sorted(folder.glob("lib/*/site-packages"))), folder / "lib" / "site-packages")


def installed(folder: Path, spec: ToolkitSpec) -> list[str]:
    """What an environment holds, as `name==version`, sorted; without installers that nobody asked for."""
    wanted = {canonicalize_name(requirement.name) for requirement in spec.requirements}
    names = (path.name.removesuffix(".dist-info").partition("-") for path in site_packages(folder).glob("*.dist-info"))
    return sorted(
        f"{name}=={version}"
        for name, _, version in names
        if name not in _INSTALLERS or canonicalize_name(name) in wanted
    )


def _pinned_requirements(spec: ToolkitSpec, replacement: str | None) -> list[str]:
    replaced = _name_of(replacement) if replacement else None
    return [_line(r) for r in spec.requirements if canonicalize_name(r.name) != replaced]


def _line(requirement: Requirement) -> str:
    return " ".join([str(requirement), *(f"--hash={value}" for value in requirement.hashes)])


def _name_of(requirement: str) -> str | None:
    """The distribution that a requirement or the path of a wheel names."""
    try:
        return canonicalize_name(AnyRequirement(requirement).name)
    except InvalidRequirement:
        return canonicalize_name(Path(requirement).name.partition("-")[0])


async def _pip(python: Path, interpreter: Interpreter, environ: Mapping[str, str]) -> list[str]:
    """Our own pip where it can serve that Python, which saves seconds; else one put into the environment."""
    try:
        ours = metadata("pip")
        serves = SpecifierSet(ours["Requires-Python"] or "").contains(interpreter.version, prereleases=True)
        if serves and Version(ours["Version"]) >= Version("22.3"):
            return [sys.executable, "-I", "-m", "pip", "--python", str(python)]
    except PackageNotFoundError:
        pass  # an environment made by uv has no pip
    argv = [str(python), "-I", "-m", "ensurepip", "--upgrade"]
    done = await run(argv, timeout_s=_VENV_S, env=clean_environment(source=environ))
    if done.exit_code != 0:
        raise ToolkitError(
            f"no pip: evalcore's own environment has none, and {interpreter.path} brings none",
            hint="install pip next to evalcore (python -m ensurepip), or the system's package of the venv module",
        )
    return [str(python), "-I", "-m", "pip"]


async def _install(
    argv: Sequence[str], spec: ToolkitSpec, setup: str, progress: Progress, environ: Mapping[str, str]
) -> None:
    env = clean_environment(network=True, pip=True, source=environ)

    def on_line(line: str) -> None:
        if line.strip():
            progress(f"toolkit {spec.name}: {line.strip()}")

    done = await run(argv, timeout_s=_PIP_S, env=env, on_line=on_line)
    if done.timed_out:
        raise ToolkitError(f"toolkit {spec.name}: pip did not finish in {_PIP_S:g} s", hint=f"run `{setup}` again")
    if done.exit_code != 0:
        raise _explain(done, spec, setup)


def _explain(done: Completed, spec: ToolkitSpec, setup: str) -> ToolkitError:
    output = (done.stdout + b"\n" + done.stderr).decode(errors="replace")
    if mismatch := _BAD_HASH.search(output):
        return ToolkitError(
            f"toolkit {spec.name}: the download of {mismatch['package']} is not what was pinned: "
            f"sha256 {mismatch['found']}, expected {mismatch['expected']} or another that the toolkit lists",
            hint="the package index serves another file, or the toolkit does not know this platform's; nothing is kept",
        )
    if "No space left on device" in output:
        return ToolkitError(
            f"toolkit {spec.name}: the disk is full", hint=f"free some, or set EVALCORE_CACHE, then run `{setup}`"
        )
    if _OFFLINE.search(output):
        return ToolkitError(
            f"toolkit {spec.name} cannot be downloaded: {_last_line(done)}",
            hint=f"where a package index can be reached (PIP_INDEX_URL, PIP_FIND_LINKS), run `{setup}`",
        )
    if missing := _NO_WHEEL.search(output):
        return ToolkitError(
            f"toolkit {spec.name}: the package index has no wheel of {missing['package']} for this Python and platform",
            hint="another Python in the toolkit's range may have one: set EVALCORE_PYTHON to its path",
        )
    return ToolkitError(f"toolkit {spec.name} cannot be installed: {_last_line(done)}", hint=f"run `{setup}` again")


async def _check_imports(python: Path, spec: ToolkitSpec, progress: Progress, environ: Mapping[str, str]) -> None:
    if not spec.imports:
        return
    progress(f"toolkit {spec.name}: checking that it imports")
    argv = [str(python), "-I", "-c", "import " + ", ".join(spec.imports)]
    done = await run(argv, timeout_s=_IMPORT_S, env=clean_environment(source=environ))
    if done.exit_code != 0:
        raise ToolkitError(f"toolkit {spec.name} was installed but does not import: {_last_line(done)}")


def _last_line(done: Completed) -> str:
    """The last line that says what is wrong: pip's own errors first, then anything."""
    lines = [line.strip() for line in (done.stdout + b"\n" + done.stderr).decode(errors="replace").splitlines()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    last = next(reversed(errors or [line for line in lines if line]), f"exit code {done.exit_code}")
    return last.removeprefix("ERROR: ")[:500]
