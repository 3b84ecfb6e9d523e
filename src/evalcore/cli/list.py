"""`evalcore list`: everything that is installed, from descriptors alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs
import click

from evalcore.cli.output import say, say_json, table
from evalcore.cli.session import Session, with_session
from evalcore.cli.study_options import JSON, options
from evalcore.errors import UnknownNameError
from evalcore.plugins import Registry
from evalcore.values import descriptors as d
from evalcore.values.convert import unstructure
from evalcore.values.faults import nearest

KINDS: Final[Mapping[str, type[Any]]] = {
    "benchmarks": d.AdapterInfo,
    "groups": d.GroupInfo,
    "harnesses": d.HarnessInfo,
    "models": d.ModelInfo,
    "axes": d.AxisInfo,
    "metrics": d.MetricInfo,
    "graders": d.GraderInfo,
    "bridges": d.BridgeInfo,
    "sandboxes": d.SandboxInfo,
    "executors": d.ExecutorInfo,
    "transforms": d.TransformInfo,
    "toolkits": d.ToolkitInfo,
    "renderers": d.RendererInfo,
    "importers": d.ImporterInfo,
    "commands": d.CommandInfo,
}
_BULKY: Final = frozenset({"factory", "spec"})  # of no use to who looks for a name


@click.command("list")
@click.argument("kind", required=False, metavar="[KIND]")
@options(JSON)
@with_session
def list_(session: Session, *, kind: str | None, json: bool | None) -> int:
    """List everything installed, or one KIND of it.

    KIND is benchmarks, groups, harnesses, models, axes, metrics, graders, bridges, sandboxes, executors,
    transforms, toolkits, renderers, importers or commands. `evalcore show NAME` says more of each.
    """
    kinds = [_kind(kind)] if kind else list(KINDS)
    registry = session.registry()
    found: dict[str, list[tuple[Any, str]]] = {name: list(_entries(registry, KINDS[name])) for name in kinds}
    if json:
        say_json({name: [_as_json(info, plugin) for info, plugin in entries] for name, entries in found.items()})
        return 0
    for name, entries in found.items():
        if entries:
            say(name)
            say(table([(i.name, plugin, i.summary) for i, plugin in entries], indent=2))
            say()
        elif kind:
            say(f"no {name} are installed")
    return 0


def _kind(text: str) -> str:
    """The kind that a user means: in the singular, too. Raises UnknownNameError."""
    singular = {
        "benchmark": "benchmarks",
        "harness": "harnesses",
        "axis": "axes",
        "sandbox": "sandboxes",
        "verbs": "commands",
    }
    known = {k: k for k in KINDS} | {k.removesuffix("s"): k for k in KINDS} | singular
    if text not in known:
        raise UnknownNameError("kind", text, nearest=nearest(text, KINDS), hint=f"kinds: {', '.join(KINDS)}")
    return known[text]


def _entries(registry: Registry, kind: type[Any]) -> Iterator[tuple[Any, str]]:
    for name, info in registry.all(kind).items():
        yield info, registry.plugin_of(kind, name)


def _as_json(info: Any, plugin: str) -> dict[str, object]:
    fields = {a.name: unstructure(getattr(info, a.name)) for a in attrs.fields(type(info)) if a.name not in _BULKY}
    return {**fields, "plugin": plugin}
