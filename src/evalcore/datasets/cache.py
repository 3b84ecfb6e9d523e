"""Where downloads and environments live, and the digests that say they are what was pinned."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import attrs

from evalcore.errors import ConfigError, InfraError

_SHA256 = re.compile(r"[0-9a-f]{64}")


def _is_digest(_: object, __: object, value: str) -> None:
    if not _SHA256.fullmatch(value):
        raise ValueError(f"a sha256 is 64 lower-case hexadecimal digits, not {value!r}")


def _is_relative(_: object, __: object, value: str) -> None:
    path = PurePosixPath(value)
    if not value or path.is_absolute() or ".." in path.parts or "\0" in value:
        raise ValueError(f"{value!r} is no relative path without '..'")


@attrs.frozen
class PinnedFile:
    """A file at one version: its relative name, digest, size in bytes and address, where known."""

    name: str = attrs.field(validator=_is_relative)
    sha256: str = attrs.field(validator=_is_digest)
    size: int | None = None
    url: str | None = None


def cache_root(environ: Mapping[str, str] | None = None) -> Path:
    """EVALCORE_CACHE, or `evalcore` in the user's cache folder; made if missing. Raises ConfigError if unusable."""
    environ = os.environ if environ is None else environ
    own, shared = environ.get("EVALCORE_CACHE"), environ.get("XDG_CACHE_HOME")
    named = own or shared
    root = Path(own) if own else Path(shared or "~/.cache") / "evalcore"
    try:
        root = root.expanduser().absolute()
        root.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise _unusable(root, named, error) from error
    if not os.access(root, os.W_OK | os.X_OK):
        raise _unusable(root, named, "not writable")
    return root


def sha256_file(path: Path) -> str:
    """The sha256 of a file's bytes, in hexadecimal. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(path: Path, sha256: str) -> None:
    """Raise InfraError unless `path` is a file with this digest."""
    try:
        found = sha256_file(path)
    except OSError as error:
        raise InfraError(f"cannot read {path}: {error.strerror}") from error
    if found != sha256:
        raise InfraError(
            f"{path} is not the pinned file: sha256 {found}, expected {sha256}",
            hint=f"remove {path} and fetch it again",
        )


def _unusable(root: Path, named: str | None, why: object) -> ConfigError:
    reason = why.strerror if isinstance(why, OSError) else why
    return ConfigError(
        f"the cache folder {root} cannot be used: {reason}",
        hint=f"EVALCORE_CACHE or XDG_CACHE_HOME says {named!r}; set EVALCORE_CACHE to a folder you can write"
        if named
        else "set EVALCORE_CACHE to a folder you can write",
    )
