"""What must hold before anything else runs: a system that evalcore supports, and no stranger in its place.

The command line calls `check()` first, at each start-up: under a millisecond, since it reads names of files only and
leaves `importlib.metadata` and `pathlib` alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence

from evalcore.errors import ConfigError

DISTRIBUTION = "evalcore-core"
OLDEST_PYTHON = (3, 11)

_METADATA_SUFFIXES = (".dist-info", ".egg-info", ".egg-link")


def check() -> None:
    """Raises ConfigError, with a hint, if evalcore cannot work here."""
    check_platform(sys.platform, sys.version_info[:2])
    check_owner(sys.path)


def check_platform(platform: str, version: Sequence[int]) -> None:
    """Raises ConfigError on Windows, and below Python 3.11."""
    if platform in {"win32", "cygwin"}:
        raise ConfigError("evalcore does not run on Windows", hint="use Linux, or the Windows Subsystem for Linux")
    if tuple(version) < OLDEST_PYTHON:
        found, oldest = (".".join(str(part) for part in parts) for parts in (version, OLDEST_PYTHON))
        raise ConfigError(f"evalcore needs Python {oldest} or newer, and this is {found}")


def check_owner(path: Iterable[str]) -> None:
    """Raises ConfigError if a distribution called `evalcore`, which is not ours, is installed on the import path.

    Its package bears our import package's name, so that either one's files overwrite or shadow the other's.
    """
    for found in _foreign(path):
        folder, entry = os.path.split(found)
        raise ConfigError(
            f"another project's package is installed under evalcore's name: {entry} in {folder}",
            hint=f"pip uninstall evalcore, then install {DISTRIBUTION} again (the two share files)",
        )


def _foreign(path: Iterable[str]) -> Iterator[str]:
    """Metadata of a distribution named exactly `evalcore`; ours is `evalcore_core`, a plugin's `evalcore_<name>`."""
    for folder in dict.fromkeys(path):
        try:
            names = os.listdir(folder or os.curdir)  # noqa: PTH208 - a Path for each of a thousand names costs 2 ms
        except OSError:  # no folder, or a zip archive
            continue
        for name in names:
            if name.startswith("evalcore") and name.endswith(_METADATA_SUFFIXES):
                distribution, _, version = name.rpartition(".")[0].partition("-")
                # Old metadata keeps hyphens in a name (evalcore-core-0.1); a version starts with a digit.
                if distribution == "evalcore" and (not version or version[0].isdigit()):
                    yield os.path.join(folder, name)  # noqa: PTH118 - the same
