"""Reads a suite: every fault of the file at once, each with its line's number and its path in that line.

    line 417: $.tool_server.tools[0].effect.set: …

What is right becomes tasks: `data` is what an agent's environment is made of, `reference` what only the grader sees.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from attrs import frozen

from evalcore.builtin.mcp.config import read_named
from evalcore.builtin.suite.calls import CallChecks
from evalcore.builtin.suite.format import (
    REFUSED,
    SHELL,
    Expect,
    GoldLine,
    Grade,
    TaskLine,
    ToolServer,
    seconds,
    texts,
)
from evalcore.builtin.toolset import read_tools
from evalcore.builtin.toolset_syntax import read_effect
from evalcore.errors import ConfigError, Fault
from evalcore.values.convert import attempt
from evalcore.values.faults import ROOT, Faults, described, faulty, item_path, key_path, literal
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import Call, Gold, GoldAnswer, GoldCalls, Task

MAX_BYTES: Final = 256 << 20
MAX_FAULTS: Final = 50  # shown; the rest is counted
PARTS: Final = ("tool_server", "grade", "expect", "gold")  # of a line, read one by one
_DEFAULTS: Final[Mapping[str, tuple[str, JSONObject]]] = {  # what a file tool says of itself where its line does not
    "read_file": (
        "Read a text file.",
        {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    ),
    "write_file": (
        "Write a text file; one that is there is replaced.",
        {
            "type": "object",
            "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
            "required": ["path", "content"],
        },
    ),
}


@frozen
class SuiteTask:
    """A task and what the engine does not ask for: its line, its gold, and the fields for which it needs a sandbox."""

    task: Task
    line: int
    gold: Gold | None
    sandboxed: tuple[str, ...]
    unserved: tuple[Fault, ...] = ()  # what no tool or server of the line has: wrong, unless the arm brings servers


@frozen
class Suite:
    """A whole file."""

    sha256: str
    tasks: tuple[SuiteTask, ...]


def read_suite(path: Path, source: str, *, served: bool = False) -> Suite:
    """The suite in a file; `source` is what errors call it. Raises ConfigError with every fault.

    `served`: tools that no line declares may come from servers that an arm names; the tasks say which (`unserved`).
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(f"no such file: {source}", hint="a suite of your own is a file of JSON lines") from None
    except OSError as error:
        raise ConfigError(f"cannot read {source}: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{source} is larger than {MAX_BYTES >> 20} MiB")
    return parse_suite(data, source, served=served)


def parse_suite(data: bytes, source: str, *, served: bool = False) -> Suite:
    """The suite that bytes say. Raises ConfigError with every fault."""
    found = Faults()
    tasks: list[SuiteTask] = []
    lines: dict[str, int] = {}
    for number, raw in _lines(data, found):
        where = f"line {number}: {ROOT}"
        faults = Faults()
        task = _task(raw, number, where, faults, served=served)
        found.extend(faults)
        if isinstance(raw, dict) and isinstance(name := raw.get("id"), str) and name:
            first = lines.setdefault(name, number)
            if first != number:
                found.add(f"{where}.id", f"{literal(name)} is the id of line {first}, too")
        if task is not None:
            tasks.append(task)
    if found:
        raise capped(source, list(found))
    if not tasks:
        raise ConfigError(f"{source} has no task", hint="each line is a JSON object with an id and an instruction")
    return Suite(hashlib.sha256(data).hexdigest(), tuple(tasks))


def capped(source: str, faults: list[Fault]) -> ConfigError:
    """Every fault, or the first ones and how many there are."""
    error = faulty(source, faults)
    if len(faults) <= MAX_FAULTS:
        return error
    last = faults[-1].where.partition(":")[0]
    more = Fault(f"{len(faults) - MAX_FAULTS} more faults", f"the last is in {last}")
    return ConfigError(error.message, faults=[*faults[:MAX_FAULTS], more])


# ── lines ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _lines(data: bytes, faults: Faults) -> Iterator[tuple[int, object]]:
    """Every line that holds a value, with its number: empty lines, and those that begin with //, hold none."""
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        where = f"line {number}"
        try:
            text = line.decode("utf-8").strip()
            if text and not text.startswith("//"):
                yield number, json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
        except UnicodeDecodeError as error:
            faults.add(where, f"not UTF-8 text: byte {error.start + 1} of the line")
        except RecursionError:
            faults.add(where, "nested too deeply")
        except json.JSONDecodeError as error:
            faults.add(where, f"no JSON: {error.msg} at column {error.colno}")
        except ValueError as error:  # a key twice, NaN, or an integer of thousands of digits
            faults.add(where, str(error))


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object whose keys differ: of two equal ones, the first would be lost without a word."""
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {literal(twice)} twice in one object")
    return table


def _task(raw: object, number: int, where: str, faults: Faults, *, served: bool) -> SuiteTask | None:
    """One line's task, or None with everything that is wrong with it: each part is read, whatever the others are."""
    if not isinstance(raw, dict):
        faults.add(where, f"expected a task, got {described(raw)}")
        return None
    plain = _refuse(raw, where, faults)
    parts: dict[str, JSONValue] = {key: plain[key] for key in PARTS if key in plain}
    line = attempt(plain, TaskLine, where=where, faults=faults)
    server = _server(parts.get("tool_server", {}), f"{where}.tool_server", faults)
    grade = attempt(parts.get("grade", {}), Grade, where=f"{where}.grade", faults=faults)
    expect = attempt(parts.get("expect", {}), Expect, where=f"{where}.expect", faults=faults)
    gold = attempt(parts.get("gold", {}), GoldLine, where=f"{where}.gold", faults=faults)
    servers = read_named(plain["mcp"], where=f"{where}.mcp", faults=faults) if "mcp" in plain else {}
    unserved = Faults()
    if grade == Grade() and expect == Expect():
        faults.add(where, "nothing is graded: expected a grade, or something to expect")
    if server is not None:
        _check_grade(grade or Grade(), server, f"{where}.grade", faults)
        CallChecks([tool.name for tool in server.tools], faults, unserved).line(grade, expect, gold, where)
        if not served and not servers:
            faults.extend(unserved)
    if faults or line is None or server is None or grade is None or gold is None:
        return None
    sandboxed = tuple(_sandboxed(grade, server))
    data: JSONObject = {"instruction": line.instruction, "limits": _limits(line), "bridge": _config(server, sandboxed)}
    if servers:
        data["mcp"] = dict(servers)
    reference: JSONObject = {key: parts[key] for key in PARTS if key in parts and key != "tool_server"}
    task = Task(line.id, data, reference, cluster=line.cluster or "")
    known = () if servers else tuple(unserved)
    return SuiteTask(task, number, _gold(gold) if "gold" in parts else None, sandboxed, known)


def _refuse(raw: dict[str, object], where: str, faults: Faults) -> dict[str, JSONValue]:
    """The line without the fields that are not run, each of which is told with what will bring it."""
    plain: dict[str, JSONValue] = {}
    for key, value in raw.items():
        if key in REFUSED and not (key == "mode" and value == "once"):
            faults.add(key_path(where, key), *REFUSED[key])
        else:
            plain[key] = value  # type: ignore[assignment] # parsed from JSON
    if "workflow" in raw:
        plain.setdefault("instruction", "none")  # a workflow has one of its own
    return plain


# ── the environment ──────────────────────────────────────────────────────────────────────────────────────────────────


def _server(raw: JSONValue, where: str, faults: Faults) -> ToolServer | None:
    """The tools of a line and what they work on; None if something is wrong with it."""
    tools = raw.get("tools") if isinstance(raw, dict) else None
    listed = tools if isinstance(tools, list) else []
    if isinstance(raw, dict) and listed:
        raw = {
            **raw,
            "tools": [_without_shell(t, item_path(f"{where}.tools", i), faults) for i, t in enumerate(listed)],
        }
    server = attempt(raw, ToolServer, where=where, faults=faults)
    if server is not None:
        _check_server(server, where, faults)
        return server
    for index, tool in enumerate(listed):
        if isinstance(tool, dict) and tool.get("effect") is not None:
            read_effect(tool["effect"], where=f"{item_path(f'{where}.tools', index)}.effect", faults=faults)
    return None


def _without_shell(tool: JSONValue, where: str, faults: Faults) -> JSONValue:
    if isinstance(tool, dict) and tool.get("builtin") == "bash":
        faults.add(f"{where}.builtin", *SHELL)
        return {key: value for key, value in tool.items() if key != "builtin"}
    return tool


def _check_server(server: ToolServer, where: str, faults: Faults) -> None:
    """What the types cannot say: names that differ, effects that can be carried out, paths within the folder."""
    read_tools(_tools(server), where=f"{where}.tools", faults=faults)
    for index, tool in enumerate(server.tools):
        for key in ("result", "effect") if tool.builtin else ():
            if getattr(tool, key) is not None:
                place = f"{item_path(f'{where}.tools', index)}.{key}"
                faults.add(place, f"does not belong to a tool that is {tool.builtin!r}")
    for path in server.files or ():
        _check_path(path, key_path(f"{where}.files", path), faults)


def _tools(server: ToolServer) -> list[JSONValue]:
    """The tools as the bridge `toolset` takes them."""
    tools: list[JSONValue] = []
    for line in server.tools:
        description, schema = _DEFAULTS[line.builtin] if line.builtin else ("", None)
        tool: JSONObject = {
            "name": line.name,
            "description": line.description or description,
            "input_schema": line.inputSchema or schema,
            "result": line.result,
            "effect": line.effect,
        }
        tools.append({key: value for key, value in tool.items() if value is not None})
    return tools


def _config(server: ToolServer, sandboxed: tuple[str, ...]) -> JSONObject:
    """The configuration of the bridge: what `toolset` takes, and under `folder` what only a sandbox can hold."""
    config: JSONObject = {"tools": _tools(server), "echo": True}
    if server.state is not None:
        config["state"] = server.state
    if sandboxed:
        builtins: JSONObject = {tool.name: tool.builtin for tool in server.tools if tool.builtin is not None}
        config["folder"] = {"files": dict(server.files or {}), "builtins": builtins}
    return config


def _check_path(path: str, where: str, faults: Faults) -> None:
    if path.startswith("/") or any(part in ("", ".", "..") for part in path.split("/")) or "\0" in path:
        faults.add(where, "is no path within the sandbox's folder", 'for example "notes/today.txt"')


def _sandboxed(grade: Grade, server: ToolServer) -> Iterator[str]:
    """The fields for which the task needs a sandbox."""
    if server.files:
        yield "$.tool_server.files"
    for index, tool in enumerate(server.tools):
        if tool.builtin is not None:
            yield f"$.tool_server.tools[{index}].builtin"
    if grade.files is not None:
        yield "$.grade.files"
    if grade.command is not None:
        yield "$.grade.command"


def _limits(line: TaskLine) -> JSONObject:
    """The budgets by the engine's names: a step is a call of the model."""
    limits: JSONObject = {}
    if line.max_tokens is not None:
        limits["tokens"] = line.max_tokens
    if line.max_steps is not None:
        limits["model_calls"] = line.max_steps
    if line.deadline is not None:
        limits["wall_s"] = seconds(line.deadline)
    return limits


# ── grades ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _check_grade(grade: Grade, server: ToolServer, where: str, faults: Faults) -> None:
    """What a grade asks for must be possible."""
    stateful = server.state is not None or any(tool.effect is not None for tool in server.tools)
    for key in ("state", "state_absent"):
        if getattr(grade, key) is not None and not stateful:
            faults.add(f"{where}.{key}", "there is no state", "declare tool_server.state, or a tool with an effect")
    for path in texts(grade.state_absent):
        if not all(path.split(".")):
            faults.add(f"{where}.state_absent", f"{literal(path)} is no path", 'for example "orders.o1"')
    for path in grade.files or ():
        _check_path(path, key_path(f"{where}.files", path), faults)


def _gold(line: GoldLine) -> Gold:
    if not line.calls:
        return GoldAnswer(line.answer or "")
    return GoldCalls((tuple(Call(call.name, call.args) for call in line.calls),), line.answer)
