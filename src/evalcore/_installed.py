"""Entry points of installed distributions, by reading their metadata as files.

`importlib.metadata` gives the same answer, but to import and ask it costs 50 ms where 300 distributions are installed;
this costs 5. As there, the first distribution of a name on the import path hides later ones.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

_SUFFIXES: Final = (".dist-info", ".egg-info")
_SEPARATORS: Final = re.compile(r"[-_.]+")


class Entry(NamedTuple):
    """One entry point, and the distribution that declares it."""

    name: str
    value: str
    distribution: str
    version: str
    requires: tuple[str, ...]


def entries(group: str, path: Iterable[str] | None = None) -> list[Entry]:
    """Every entry point of a group, in the order of the import path."""
    found: list[Entry] = []
    seen: set[str] = set()
    for folder in dict.fromkeys(sys.path if path is None else path):
        if folder.lower().endswith(".egg") or os.path.isfile(folder):  # noqa: PTH113 - as in _guard, no pathlib here
            found += _archived(group, folder, seen)
        else:
            found += _in_folder(group, folder or os.curdir, seen)
    return found


def _in_folder(group: str, folder: str, seen: set[str]) -> Iterator[Entry]:
    try:
        names = os.listdir(folder)  # noqa: PTH208 - a Path for each of a thousand names costs 2 ms
    except OSError:
        return
    for name in names:
        if not name.lower().endswith(_SUFFIXES):
            continue
        distribution = _SEPARATORS.sub("_", name.rpartition(".")[0].partition("-")[0]).lower()
        if distribution in seen:
            continue
        seen.add(distribution)
        info = f"{folder}/{name}"
        pairs = _pairs(group, _text(f"{info}/entry_points.txt"))
        if pairs:
            about = _about(info)
            yield from (Entry(one, value, *about) for one, value in pairs)


def _archived(group: str, folder: str, seen: set[str]) -> Iterator[Entry]:
    """An archive on the import path, or an egg: rare, so that the slow way does."""
    from importlib import metadata

    for distribution in metadata.distributions(path=[folder]):
        name = _SEPARATORS.sub("_", distribution.name).lower()
        if name in seen:
            continue
        seen.add(name)
        about = distribution.name, distribution.version, tuple(distribution.requires or ())
        yield from (Entry(e.name, e.value, *about) for e in distribution.entry_points if e.group == group)


def _text(file: str) -> str:
    """A file's text; empty where there is none that can be read."""
    try:
        with open(file, encoding="utf-8") as lines:  # noqa: PTH123 - the same
            return lines.read()
    except (OSError, ValueError):
        return ""


def _pairs(group: str, text: str) -> list[tuple[str, str]]:
    """`name = value` of one section of an entry_points.txt."""
    if group not in text:
        return []
    pairs, section = [], ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            section = line.strip("[] ")
        elif section == group and "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            pairs.append((name.strip(), value.strip()))
    return pairs


def _about(info: str) -> tuple[str, str, tuple[str, ...]]:
    """Name, version and requirements of a distribution."""
    fields: dict[str, list[str]] = {}
    key = ""
    for line in (_text(f"{info}/METADATA") or _text(f"{info}/PKG-INFO")).splitlines():
        if not line.strip():
            break  # what follows is the long description
        if line[0] in " \t" and key:
            fields[key][-1] += f" {line.strip()}"
            continue
        key, _, value = line.partition(":")
        key = key.strip().lower()
        fields.setdefault(key, []).append(value.strip())
    requires = fields.get("requires-dist") or _egg_requires(_text(f"{info}/requires.txt"))
    return fields.get("name", ["?"])[0], fields.get("version", ["?"])[0], tuple(requires)


def _egg_requires(text: str) -> list[str]:
    """The requirements of an egg-info folder, without those of its extras."""
    lines = [line.strip() for line in text.partition("[")[0].splitlines()]
    return [line for line in lines if line]
