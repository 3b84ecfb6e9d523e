"""The environment of a toolkit: where it is, whether it is what was pinned, and what a run says about it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Mapping
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias

import attrs
from packaging.requirements import InvalidRequirement
from packaging.requirements import Requirement as AnyRequirement

from evalcore.datasets.cache import cache_root, sha256_file
from evalcore.datasets.lock import locked
from evalcore.errors import ConfigError, ToolkitError
from evalcore.toolkits.fetching import FETCHED, fetch_files
from evalcore.toolkits.install import Progress, build, installed, python_of, site_packages
from evalcore.toolkits.interpreters import Interpreter, find_interpreter, probe
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.toolkit import ToolkitSpec

Source: TypeAlias = Literal["pinned", "checkout", "requirement"]
_MARKER = "evalcore-toolkit.json"
_LAYOUT = 1  # raise it when environments must be built anew
_BUILD_S = 4 * 3600.0  # a build by somebody else is waited for as long as one may take


@attrs.frozen
class Environment:
    """An interpreter that can run a toolkit. `folder` is its virtual environment, if it has one of ours; `origin` the
    checkout or requirement that stands in for the pinned one; `search_path` goes first on the worker's path.
    """

    spec: ToolkitSpec
    source: Source
    python: Path
    python_version: str
    folder: Path | None = None
    origin: str | None = None
    search_path: tuple[Path, ...] = ()
    setup: str = "evalcore setup"

    def verify(self) -> None:
        """Raise ToolkitError for the first upstream file that is not as pinned; overrides are not held to pins."""
        if self.source != "pinned":
            return
        found = self.files()
        for name, expected in self.spec.files.items():
            if found[name] != expected:
                rebuild = f"remove {self.folder} and run `{self.setup}`" if self.folder else None
                raise ToolkitError(
                    f"toolkit {self.spec.name}: {name} is not the pinned file: "
                    f"sha256 {found[name] or 'none, it is missing'}, expected {expected}",
                    hint=rebuild,
                )

    def files(self) -> dict[str, str | None]:
        """The digests that the toolkit's declared files have here; None for one that is missing."""
        roots = [*self.search_path, *([site_packages(self.folder)] if self.folder else [])]
        return {name: _digest_in(roots, name) for name in self.spec.files}

    def stamp(self) -> JSONObject:
        """What a run records: source, interpreter, what is installed, and the digests of the upstream files."""
        files: dict[str, JSONValue] = dict(self.files())
        packages: list[JSONValue] = list(installed(self.folder, self.spec)) if self.folder else []
        return {
            "name": self.spec.name,
            "source": self.source,
            "origin": None if self.origin is None else _without_credentials(self.origin),
            "python": self.python_version,
            "packages": packages,
            "files": files,
        }


@attrs.frozen
class _Wish:
    """What `ensure` was asked for."""

    spec: ToolkitSpec
    install: bool
    progress: Progress
    setup: str
    environ: Mapping[str, str]


async def ensure(
    spec: ToolkitSpec,
    *,
    install: bool,
    progress: Progress | None = None,
    selector: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Environment:
    """The verified environment of a toolkit; built if missing and `install`, else ToolkitError says how to get it.

    EVALCORE_TOOLKIT_<NAME> in `environ` (default: ours) names a checkout or a requirement instead of the pinned code.
    """
    environ = os.environ if environ is None else environ
    wish = _Wish(spec, install, progress or _silent, f"evalcore setup {selector or spec.name}", environ)
    override = environ.get(spec.variable, "").strip()
    if checkout := _folder(override):
        return await _checkout(wish, checkout)
    return await _virtual(wish, _requirement(spec, override) if override else None)


def worker_file(spec: ToolkitSpec) -> Path:
    """The file of the toolkit's worker module, found without importing it or its parents. Raises ToolkitError."""
    top, *rest = spec.worker.split(".")
    found, name = find_spec(top), top
    for part in rest:
        if found is None:
            break
        name = f"{name}.{part}"
        found = PathFinder.find_spec(name, found.submodule_search_locations)
    if found is None or found.origin is None or not Path(found.origin).is_file():
        raise ToolkitError(f"toolkit {spec.name}: its worker {spec.worker} is not installed")
    return Path(found.origin)


async def _checkout(wish: _Wish, folder: Path) -> Environment:
    """A checkout's own virtual environment if it has one, else the pinned packages with the checkout before them."""
    spec = wish.spec
    search = tuple(path for path in (folder / "src", folder) if path.is_dir())
    if spec.files and not any((path / name).is_file() for path in search for name in spec.files):
        wanted = spec.imports[0] if spec.imports else next(iter(spec.files))
        raise ConfigError(
            f"{spec.variable}={folder}: no {wanted} is there",
            hint=f"name the folder of the checkout that holds {wanted}, or take the variable away",
        )
    for own in (python_of(folder / ".venv"), python_of(folder / "venv")):
        interpreter = await probe(own) if own.exists() else None
        if interpreter:
            return Environment(spec, "checkout", own, interpreter.version, None, str(folder), search, wish.setup)
    if spec.requirements:
        below = await _virtual(wish, None, fetched=False)
        return attrs.evolve(below, source="checkout", origin=str(folder), search_path=search)
    found = await find_interpreter(spec, wish.environ)
    return Environment(spec, "checkout", found.path, found.version, None, str(folder), search, wish.setup)


async def _virtual(wish: _Wish, requirement: str | None, *, fetched: bool = True) -> Environment:
    """An environment of ours: of the pinned packages and files, or with a requirement in the place of these.

    With `fetched` False it holds the packages only, for a checkout that brings its own files.
    """
    spec = wish.spec
    interpreter = await find_interpreter(spec, wish.environ)
    fetched = fetched and bool(spec.addresses) and requirement is None
    digest = _digest(spec, interpreter, requirement, fetched)
    folder = cache_root(wish.environ) / "toolkits" / f"{spec.name}-{digest[:12]}"
    source: Source = "requirement" if requirement or (spec.addresses and not fetched) else "pinned"
    search = (folder / FETCHED,) if fetched else ()
    environment = Environment(
        spec, source, python_of(folder), interpreter.version, folder, requirement, search, setup=wish.setup
    )
    if _is_complete(folder):
        await asyncio.to_thread(environment.verify)
    elif wish.install:
        await _build(wish, environment, interpreter, digest)
    else:
        raise ToolkitError(f"toolkit {spec.name} is not set up here", hint=f"run `{wish.setup}`")
    return environment


async def _build(wish: _Wish, environment: Environment, interpreter: Interpreter, digest: str) -> None:
    """Build in place and write the marker last: an environment's scripts hold its path, so it is never moved, and one
    without a marker counts as absent. What pip had downloaded comes from its cache when a build is begun again.
    """
    folder = environment.folder
    assert folder is not None
    async with locked(folder.with_name(f"{folder.name}.lock"), _BUILD_S, wish.progress):
        if _is_complete(folder):  # by whoever held the lock before
            await asyncio.to_thread(environment.verify)
            return
        try:
            await build(
                folder,
                wish.spec,
                interpreter,
                replacement=environment.origin,
                setup=wish.setup,
                progress=wish.progress,
                environ=wish.environ,
            )
            if environment.search_path:
                await fetch_files(wish.spec, folder / FETCHED, wish.progress)
            await asyncio.to_thread(environment.verify)
            _write_marker(folder, {"digest": digest, "built": int(time.time()), **environment.stamp()})
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    wish.progress(f"toolkit {wish.spec.name}: ready")


def _folder(override: str) -> Path | None:
    path = Path(override).expanduser()
    return path.absolute() if override and path.is_dir() else None


def _is_complete(folder: Path) -> bool:
    # The interpreter may have been removed since: its link then leads nowhere.
    return (folder / _MARKER).is_file() and python_of(folder).exists()


def _write_marker(folder: Path, content: JSONObject) -> None:
    with (folder / f"{_MARKER}.part").open("w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    (folder / f"{_MARKER}.part").replace(folder / _MARKER)


def _digest(spec: ToolkitSpec, interpreter: Interpreter, requirement: str | None, fetched: bool) -> str:
    """Over all that decides what the environment holds. `files` and `imports` only check it, `worker` lies outside."""
    parts: dict[str, object] = {
        "layout": _LAYOUT,
        "name": spec.name,
        "requirements": [[r.name, r.version, *sorted(r.hashes)] for r in spec.requirements],
        "replacement": requirement,
        "python": [interpreter.implementation, interpreter.version, interpreter.platform],
    }
    if fetched:
        parts["fetched"] = {name: spec.files[name] for name in sorted(spec.addresses)}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _requirement(spec: ToolkitSpec, text: str) -> str:
    """A requirement as pip takes it: a specifier, or the path of a wheel or source archive."""
    path = Path(text).expanduser()
    if path.is_file():
        return str(path.absolute())
    try:
        return str(AnyRequirement(text))
    except InvalidRequirement as error:
        raise ConfigError(
            f"{spec.variable} is {_without_credentials(text)!r}, which is no folder, no file and no requirement",
            hint="name a checkout's folder, or write a requirement such as 'package==1.2' or 'package @ git+https://…'",
        ) from error


def _digest_in(roots: list[Path], name: str) -> str | None:
    for root in roots:
        try:
            return sha256_file(root / name)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            continue
        except OSError as error:
            raise ToolkitError(f"cannot read {root / name}: {error.strerror}") from error
    return None


def _without_credentials(text: str) -> str:
    return re.sub(r"(?<=://)[^/@\s]+@", "***@", text)


def _silent(_: str) -> None:
    return None
