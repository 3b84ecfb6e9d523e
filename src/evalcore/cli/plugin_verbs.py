"""Verbs of plugins: found when one is called, and listed without importing the plugins that have none.

A plugin's entry module is thin and names every hook that it implements. So a module in whose text `evalcore_commands`
does not occur has no verb, and `evalcore --help` leaves it alone: entry points and modules are found by name, 5 ms
where `importlib.metadata` and the modules themselves take 100.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from evalcore.cli.session import Session

GROUP: Final = "evalcore"
HOOK: Final = b"evalcore_commands"


def may_exist(path: Sequence[str] | None = None) -> bool:
    """Whether an installed plugin may have a verb."""
    return any(_may_have_verbs(module) for module in _entry_modules(sys.path if path is None else path))


def summaries(session: Session) -> dict[str, str]:
    """The verbs of every sound plugin, with their summaries; whoever is not sound is told of when a verb is called."""
    from evalcore.values.descriptors import CommandInfo

    return {name: info.summary for name, info in session.quiet_registry().all(CommandInfo).items()}


def find(session: Session, name: str) -> click.Command | None:
    """A plugin's verb, imported now; None if no plugin has it. Raises PluginError."""
    from evalcore.errors import PluginError
    from evalcore.values.descriptors import CommandInfo

    registry = session.registry()
    info = registry.all(CommandInfo).get(name)
    if info is None:
        return None
    command = registry.factory(info)
    if not isinstance(command, click.Command):
        plugin = registry.plugin_of(CommandInfo, name)
        raise PluginError(f"{name}: {info.factory} is no click command", plugin=plugin, stage="validate")
    return command


def _entry_modules(path: Iterable[str]) -> Iterator[str]:
    """The module of each entry point in our group, by the metadata on the import path."""
    for folder in dict.fromkeys(path):
        try:
            names = os.listdir(folder or os.curdir)  # noqa: PTH208 - a Path for each of a thousand names costs 2 ms
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                yield from _in_group(f"{folder or os.curdir}/{name}/entry_points.txt")


def _in_group(file: str) -> Iterator[str]:
    try:
        with open(file, encoding="utf-8") as lines:  # noqa: PTH123 - the same
            text = lines.read()
    except (OSError, ValueError):
        return
    section = ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[] \t")
        elif section == GROUP and "=" in line:
            yield line.partition("=")[2].partition(":")[0].strip()


def _may_have_verbs(module: str) -> bool:
    """False only for a module whose source was read, and does not name the hook."""
    spec, search = None, None
    name = ""
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        spec = _find(name, search)
        if spec is None:
            return True
        search = spec.submodule_search_locations
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        return True
    try:
        with open(spec.origin, "rb") as file:  # noqa: PTH123 - the same
            return HOOK in file.read()
    except OSError:
        return True


def _find(name: str, search: Sequence[str] | None) -> ModuleSpec | None:
    try:
        return PathFinder.find_spec(name, search)
    except (ImportError, KeyError, ValueError):  # KeyError: within a namespace package that nobody has imported
        return None
