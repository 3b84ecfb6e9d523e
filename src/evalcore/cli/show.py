"""`evalcore show`: one thing by its name: a benchmark or one of its tasks, a harness, a model, an axis, a run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final

import attrs
import click

from evalcore.cli.list import KINDS
from evalcore.cli.output import say, say_json, table, tell
from evalcore.cli.session import Session, with_session
from evalcore.cli.study_options import JSON, options
from evalcore.contracts import Adapter, Closable
from evalcore.engine.selectors import find_benchmark, parse_selector
from evalcore.engine.services import LocalServices
from evalcore.engine.store import STAMP, read_stamp
from evalcore.errors import ConfigError, ToolkitError, UnknownNameError
from evalcore.plugins import Registry
from evalcore.report.claims import analysis_of, claims_of
from evalcore.report.comparison_words import width
from evalcore.report.words import plural
from evalcore.values.arm import Arm
from evalcore.values.convert import unstructure
from evalcore.values.descriptors import AdapterInfo
from evalcore.values.faults import nearest
from evalcore.values.json import JSONObject, JSONValue, exact_text
from evalcore.values.measure import find_measure, is_plugins
from evalcore.values.stamp import RunStamp
from evalcore.values.task import Dataset, Task

ANYBODY: Final = Arm("show", {"harness": "noop"})  # for whom a task is assigned, to be looked at


@click.command()
@click.argument("name", metavar="NAME")
@click.argument("task", required=False, metavar="[TASK]")
@click.option("--gold", is_flag=True, help="With TASK: the known solution, too.")
@options(JSON)
@with_session
def show(session: Session, *, name: str, task: str | None, gold: bool, json: bool | None) -> int:
    """Show what NAME is: a benchmark, harness, model, axis or whatever else is installed, or a run.

    With TASK, one task of the benchmark NAME as an agent gets it.
    """
    path = session.run_path(name)
    if task is None and (path / STAMP).is_file():
        _show_run(path, as_json=bool(json))
        return 0
    registry = session.registry()
    if task is not None or _names_a_benchmark(registry, name):
        content = asyncio.run(_benchmark(registry, name, task, gold=gold))
    else:
        content = _described(registry, name)
    say_json(content) if json else say("\n".join(_lines(content)))
    return 0


# ── descriptors ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _names_a_benchmark(registry: Registry, name: str) -> bool:
    try:
        return parse_selector(name).name in registry.all(AdapterInfo)
    except ConfigError:
        return False


def _described(registry: Registry, name: str) -> JSONObject:
    """Every descriptor of that name: two kinds may share one. Raises UnknownNameError."""
    every = [(word, kind, key, info) for word, kind in KINDS.items() for key, info in registry.all(kind).items()]
    found = [(word, kind, key, info) for word, kind, key, info in every if name in (key, info.name)]
    if not found:
        known = {key for *_, key, _ in every}
        hint = "`evalcore list` shows everything installed; a run is named by its folder"
        raise UnknownNameError("name", name, nearest=nearest(name, known), hint=hint)
    parts = {f"{word} {key}": _fields(registry, word, kind, key, info) for word, kind, key, info in found}
    return next(iter(parts.values())) if len(parts) == 1 else {**parts}


def _fields(registry: Registry, word: str, kind: type, key: str, info: Any) -> JSONObject:
    head: JSONObject = {"kind": word, "name": info.name, "summary": info.summary}
    rest = {a.name: unstructure(getattr(info, a.name)) for a in attrs.fields(kind) if a.name not in head}
    return {**head, "plugin": registry.plugin_of(kind, key), **rest}


# ── benchmarks and tasks ─────────────────────────────────────────────────────────────────────────────────────────────


async def _benchmark(registry: Registry, text: str, task: str | None, *, gold: bool) -> JSONObject:
    info, _ = find_benchmark(registry, text)
    services = LocalServices(registry, Path.cwd())
    try:
        if task is not None:
            return await _with_adapter(registry, services, text, lambda adapter: _task(adapter, text, task, gold=gold))
        try:
            contents = await _with_adapter(registry, services, text, _contents)
        except ToolkitError as error:
            tell(f"its tasks cannot be shown yet: {error.message}" + (f"; {error.hint}" if error.hint else ""))
            contents = {}
        return _fields(registry, "benchmarks", AdapterInfo, info.name, info) | contents
    finally:
        await services.close()


async def _with_adapter(
    registry: Registry, services: LocalServices, text: str, use: Callable[[Adapter], Awaitable[JSONObject]]
) -> JSONObject:
    info, selector = find_benchmark(registry, text)
    adapter: Adapter = registry.factory(info)(services, info, selector)
    try:
        return await use(adapter)
    finally:
        if isinstance(adapter, Closable):
            await adapter.close()


async def _contents(adapter: Adapter) -> JSONObject:
    """Dataset and tasks in short."""
    tasks = [task async for task in adapter.tasks()]
    ids: list[JSONValue] = [task.id for task in tasks]
    return {
        "grader": adapter.grader,
        "dataset": _dataset(await adapter.dataset()),
        "clusters": len({task.cluster for task in tasks}),
        "tasks": len(tasks),
        "task_ids": ids,
    }


def _dataset(dataset: Dataset) -> JSONObject:
    whole = unstructure(dataset)
    return {**whole, "digest": dataset.digest} if isinstance(whole, dict) else {}


async def _task(adapter: Adapter, selector: str, wanted: str, *, gold: bool) -> JSONObject:
    """One task and its assignment. Raises UnknownNameError."""
    ids = []
    found: Task | None = None
    async for task in adapter.tasks():
        ids.append(task.id)
        if task.id == wanted:
            found = task
            break
    if found is None:
        hint = f"`evalcore show {selector} --json` names them all"
        raise UnknownNameError(f"task of {selector}", wanted, nearest=nearest(wanted, ids), hint=hint)
    assignment = await adapter.assign(found, ANYBODY)
    content: JSONObject = {
        "kind": "task",
        "benchmark": selector,
        "task": found.id,
        "cluster": found.cluster,
        "digest": found.digest,
        "requires": list(found.requires),
        "flags": list(found.flags),
        "messages": [message.as_json() for message in assignment.messages],
        "bridges": [{"kind": bridge.kind, **bridge.config} for bridge in assignment.bridges],
        "limits": {k: v for k, v in assignment.limits.as_json().items() if v is not None},
    }
    if gold:
        content["gold"] = unstructure(await adapter.gold(found))
    return content


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _show_run(path: Path, *, as_json: bool) -> None:
    stamp = read_stamp(path)
    if as_json:
        say_json(unstructure(stamp))
        return
    rows = [
        ("run", f"{stamp.run}, in {path}"),
        ("made", stamp.created),
        (
            "study",
            f"{stamp.study_name} ({stamp.study_digest[:12]}), {plural(stamp.repeats, 'repeat')}, seed {stamp.seed}",
        ),
    ]
    if stamp.parent:
        rows.append(("repeats", f"the run {stamp.parent}"))
    rows += [("arm", f"{a.arm.label} (harness version {a.harness_version})") for a in stamp.arms]
    rows += [
        (
            "benchmark",
            f"{b.selector}: {plural(b.tasks, 'task')} of {b.dataset.name} {b.dataset.version}, graded by {b.grader}",
        )
        for b in stamp.benchmarks
    ]
    rows += [("contrast", text) for text in dict.fromkeys(_contrasts(stamp))]
    rows += [("isolation", stamp.isolation), ("grading", stamp.grading), ("made with", _versions(stamp))]
    say(table(rows))
    say(f"`evalcore report {path}` shows its scorecard, `evalcore trace {path}` its trials")


def _contrasts(stamp: RunStamp) -> Iterator[str]:
    """What the study declared, and how it is decided."""
    analysis = analysis_of(stamp)
    for c in claims_of(stamp):
        within = "" if c.margin is None else f", margin {_margin(c.margin, c.metric)}"
        problem = f" ({c.problem})" if c.problem else ""
        yield f"{c.a} against {c.b} by {c.metric}{within}; alpha {analysis.alpha:g}, {analysis.stopping}{problem}"


def _margin(margin: float, metric: str) -> str:
    """In the unit of its metric; a plugin may be gone that knows it."""
    return f"{margin:g}" if is_plugins(metric) else width(margin, find_measure(metric))


def _versions(stamp: RunStamp) -> str:
    plugins = stamp.versions.get("plugins")
    named = ", ".join(f"{v}" for v in plugins.values()) if isinstance(plugins, dict) else ""
    return f"evalcore {stamp.versions.get('evalcore')}, Python {stamp.versions.get('python')}; {named}"


# ── text ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _lines(content: JSONObject) -> Iterator[str]:
    """Field by field; what is empty is left out, long texts stand below their field."""
    for name, value in content.items():
        if value in (None, "", [], {}):
            continue
        if name == "messages" and isinstance(value, list):
            for message in value:
                if isinstance(message, dict):
                    yield f"{message.get('role')}:"
                    yield from (f"  {line}" for line in _text(message.get("content")).split("\n"))
        elif name == "task_ids" and isinstance(value, list):
            yield f"task_ids: {', '.join(map(str, value[:12]))}{', …' if len(value) > 12 else ''}"
        elif isinstance(value, dict) and name != "gold":
            yield f"{name}:"
            yield from (f"  {k}: {_text(v)}" for k, v in value.items() if v not in (None, "", [], {}))
        elif name == "bridges" and isinstance(value, list):
            yield from _bridges(value)
        else:
            yield f"{name}: {_text(value)}"


def _bridges(bridges: list[JSONValue]) -> Iterator[str]:
    for bridge in bridges:
        if not isinstance(bridge, dict):
            continue
        yield f"tools, served by bridge {bridge.get('kind')}:"
        tools = bridge.get("tools")
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict):
                yield f"  {tool.get('name')}: {_text(tool.get('description'))}"
                yield f"    {_text(tool.get('input_schema'))}"
        if not isinstance(tools, list):
            yield f"  {_text({k: v for k, v in bridge.items() if k != 'kind'})}"


def _text(value: JSONValue) -> str:
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else exact_text(value)
