"""`evalcore plugins`: what is installed, from metadata alone unless `--load` is given."""

from __future__ import annotations

import click
from attrs import frozen

from evalcore.cli.list import KINDS
from evalcore.cli.output import say, say_json, table
from evalcore.cli.session import Session, with_session
from evalcore.cli.study_options import JSON, options
from evalcore.plugins import BUILTIN, CORE, PluginRef, Registry, discover


@frozen
class Row:
    """One plugin. `provides` and `error` are known only once it is loaded."""

    ref: PluginRef
    status: str
    provides: dict[str, list[str]]
    error: str | None = None

    def as_json(self) -> dict[str, object]:
        """For programs."""
        ref = self.ref
        head = {"name": ref.name, "distribution": ref.distribution, "version": ref.version, "module": ref.module}
        return {**head, "status": self.status, "provides": self.provides, "error": self.error}

    def cells(self) -> tuple[str, str, str, str]:
        """For people."""
        provides = ", ".join(f"{len(names)} {kind}" for kind, names in self.provides.items())
        distribution = f"{self.ref.distribution} {self.ref.version}"
        return self.ref.name, distribution, self.status, self.error or provides


@click.command()
@click.option("--load", "load", is_flag=True, help="Load them: says what each provides, or why it cannot be used.")
@options(JSON)
@with_session
def plugins(session: Session, *, load: bool, json: bool | None) -> int:
    """List installed plugins: name, distribution and version.

    No plugin is imported without --load. `evalcore -p no:NAME` leaves one out; EVALCORE_PLUGINS names those to
    load (empty: none).
    """
    rows = _loaded(session) if load else [*_found(session)]
    if json:
        say_json({"plugins": [row.as_json() for row in rows]})
    else:
        say(table([row.cells() for row in rows], ("plugin", "distribution", "status", "provides" if load else "")))
    return 0


def _found(session: Session) -> list[Row]:
    """By metadata."""
    from evalcore import __version__

    refs = [PluginRef("builtin", CORE, __version__, BUILTIN), *discover()]
    return [Row(ref, "blocked" if session.leaves_out(ref.name) else "installed", {}) for ref in refs]


def _loaded(session: Session) -> list[Row]:
    """By loading them all; a broken one is a row like any other."""
    registry = session.quiet_registry()
    rows = [Row(ref, "loaded", _provides(registry, ref.name)) for ref in registry.plugins]
    rows += [Row(f.ref, f"failed at {f.stage}", {}, f.message) for f in registry.failures]
    known = {row.ref for row in rows}
    return rows + [Row(ref, "blocked", {}) for ref in discover() if ref not in known]


def _provides(registry: Registry, plugin: str) -> dict[str, list[str]]:
    found = {
        word: [name for name in registry.all(kind) if registry.plugin_of(kind, name) == plugin]
        for word, kind in KINDS.items()
    }
    return {word: names for word, names in found.items() if names}
