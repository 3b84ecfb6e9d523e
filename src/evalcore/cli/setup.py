"""`evalcore setup`: the upstream code that benchmarks need, installed once into environments of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
from attrs import frozen

from evalcore.cli.output import say, say_json, table, tell
from evalcore.cli.session import Session, with_session
from evalcore.cli.study_options import JSON, options
from evalcore.engine.selectors import expand, find_benchmark
from evalcore.engine.study_file import read_study
from evalcore.errors import ToolkitError, UnknownNameError
from evalcore.plugins import Registry
from evalcore.report.words import plural
from evalcore.toolkits.environment import Environment, ensure
from evalcore.values.descriptors import AdapterInfo, GraderInfo, GroupInfo, ModelInfo, ToolkitInfo
from evalcore.values.faults import nearest
from evalcore.values.json import JSONValue


@frozen
class Done:
    """A toolkit that is set up; `built` if this call did it."""

    environment: Environment
    built: bool


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="SELECTOR|MODEL|TOOLKIT...")
@options(JSON)
@with_session
def setup(session: Session, *, names: tuple[str, ...], json: bool | None) -> int:
    """Install what a benchmark, a group, a STUDY.toml or a model needs. Nothing else of evalcore installs.

    Upstream code gets an environment of its own in the cache (EVALCORE_CACHE), from pinned files whose hashes
    are checked. What is there already is verified, and left.
    """
    registry = session.registry()
    wanted: dict[str, str] = {}  # toolkit -> the selector that needs it
    for name in names:
        needs = list(_toolkits(registry, name))
        if not needs:
            tell(f"{name} needs no toolkit: nothing to set up")
        for toolkit in needs:
            wanted.setdefault(toolkit, name)
    done = asyncio.run(_set_up_all(registry, wanted))
    if json:
        say_json({"toolkits": [_as_json(d) for d in done]})
    elif done:
        say(table([_row(d) for d in done]))
    return 0


def _toolkits(registry: Registry, name: str) -> Iterator[str]:
    """The toolkits that a name stands for. Raises ConfigError."""
    if name in registry.all(ToolkitInfo):
        yield name
        return
    texts: Sequence[str] = (name,)
    if name.endswith(".toml"):
        study = read_study(Path(name).expanduser(), measures=None)
        texts = study.benchmarks
        for axes in study.arms.values():
            yield from _of_model(registry, axes.get("model"))
    elif _provider(registry, name) is not None:
        yield from _of_model(registry, name)
        return
    for text in expand(registry, texts):
        try:
            info, _ = find_benchmark(registry, text)
        except UnknownNameError as error:
            raise _unknown(registry, error) from None
        yield from info.toolkits
        yield from _of_grader(registry, info)


def _provider(registry: Registry, model: JSONValue) -> ModelInfo | None:
    """The provider of `provider/model`, if it is one."""
    provider, slash, _ = model.partition("/") if isinstance(model, str) else ("", "", "")
    return registry.all(ModelInfo).get(provider) if slash else None


def _of_model(registry: Registry, model: JSONValue) -> tuple[str, ...]:
    info = _provider(registry, model)
    return info.toolkits if info else ()


def _unknown(registry: Registry, error: UnknownNameError) -> UnknownNameError:
    known = {*registry.all(AdapterInfo), *registry.all(GroupInfo), *registry.all(ToolkitInfo)}
    return UnknownNameError("benchmark or toolkit", error.name, nearest=nearest(error.name, known), hint=error.hint)


def _of_grader(registry: Registry, info: AdapterInfo) -> tuple[str, ...]:
    """What the benchmark's grader needs, where the adapter's class says which grader that is."""
    named = getattr(registry.factory(info), "grader", None)
    grader = registry.all(GraderInfo).get(named) if isinstance(named, str) else None
    return grader.toolkits if grader else ()


async def _set_up_all(registry: Registry, wanted: Mapping[str, str]) -> list[Done]:
    return [await _set_up(registry, toolkit, name) for toolkit, name in wanted.items()]


async def _set_up(registry: Registry, toolkit: str, name: str) -> Done:
    """One toolkit: found and verified, or built with its progress told."""
    spec = registry.get(ToolkitInfo, "toolkit", toolkit).spec
    try:
        return Done(await ensure(spec, install=False, selector=name), built=False)
    except ToolkitError:  # not there, or not as pinned: the second try says which
        tell(f"toolkit {toolkit}: {plural(len(spec.requirements), 'pinned package')}, for {name}")
        return Done(await ensure(spec, install=True, progress=tell, selector=name), built=True)


def _row(done: Done) -> tuple[str, str, str]:
    environment = done.environment
    place = environment.origin if environment.source != "pinned" else environment.folder
    state = "installed" if done.built else "was set up already"
    return environment.spec.name, state, f"Python {environment.python_version}, {environment.source}, {place}"


def _as_json(done: Done) -> dict[str, object]:
    environment = done.environment
    return {
        "name": environment.spec.name,
        "built": done.built,
        "source": environment.source,
        "origin": environment.stamp()["origin"],
        "folder": None if environment.folder is None else str(environment.folder),
        "python": str(environment.python),
        "python_version": environment.python_version,
    }
