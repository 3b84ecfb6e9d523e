"""The lines of a suite as values, and what each field may say (docs/suites.md). `file.py` reads whole files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from attrs import Attribute, Factory, field, frozen

from evalcore.builtin.suite.patterns import check_pattern
from evalcore.values.faults import Wrong, described, literal
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.trial import EXIT_KINDS

Builtin = Literal["read_file", "write_file"]

COMMAND_S: Final = 120.0
LONGEST_COMMAND_S: Final = 540.0  # the engine gives everything that is measured after a trial ten minutes
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h))+", re.ASCII)
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)", re.ASCII)
_SECONDS: Final[Mapping[str, float]] = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}

# ── what is not run, and what to do ──────────────────────────────────────────────────────────────────────────────────

_DIALOGUES: Final = (
    "a suite's task has one turn: conversations are not run",
    "a benchmark whose users are simulated is a plugin with a driver (docs/plugins.md, Dialogues)",
)
_WORKFLOWS: Final = "workflows come with the harness `agentd`: they are a structure of the agent, an axis of the study"
_MODEL: Final = ("a task names no model", "remove it: the model is the arm's (--model provider/name)")
_SCRIPTED: Final = "remove it: a stand-in is the provider `scripted` (--model scripted/PLAYBOOK)"
_STANDIN: Final = "declare its tools under tool_server, or name a real server in `mcp`"
REFUSED: Final[Mapping[str, tuple[str, str]]] = {
    "mode": ("only the mode 'once' is run", _WORKFLOWS),
    "workflow": ("workflows are not run yet", _WORKFLOWS),
    "mock_llm": ("a task names no model, and no stand-in for one", _SCRIPTED),
    "intelligence": _MODEL,
    "model": _MODEL,
    "mock_mcp": ("stand-ins for MCP servers are not served", _STANDIN),
    "policy": _DIALOGUES,
    "max_turns": _DIALOGUES,
    "user_simulator": _DIALOGUES,
}
SHELL: Final = ("a shell is not served yet", "it comes with the bridge `shell`, in sandboxes that hold what it runs")


# ── validators (of any value: the converter has seen to the type) ────────────────────────────────────────────────────


def _id(_: object, __: Attribute[Any], value: Any) -> None:
    if value is not None and (not value or value != value.strip() or not value.isprintable() or len(value) > 200):
        raise Wrong(f"{literal(value)} is no id", "printable, at most 200 characters, no space at either end")


def _filled(_: object, __: Attribute[Any], value: Any) -> None:
    if value in ((), {}) or any(isinstance(one, str) and not one.strip() for one in texts(value)):
        raise Wrong("is empty")


def _pattern(_: object, __: Attribute[Any], value: Any) -> None:
    if value is not None:
        check_pattern(value)


def _duration(_: object, __: Attribute[Any], value: Any) -> None:
    if value is not None and not seconds(value) > 0:
        raise Wrong(f"must be > 0: {literal(value)}")


def _endings(_: object, __: Attribute[Any], value: Any) -> None:
    for one in texts(value):
        if one not in EXIT_KINDS:
            raise Wrong(f"{literal(one)} is no way to end", f"ways: {', '.join(EXIT_KINDS)}")


def _positive(_: object, __: Attribute[Any], value: Any) -> None:
    if value is not None and not value > 0:
        raise Wrong(f"must be > 0: {value}")


def _not_negative(_: object, __: Attribute[Any], value: Any) -> None:
    if value is not None and value < 0:
        raise Wrong(f"must be >= 0: {value}")


def _runnable(_: object, __: Attribute[Any], value: Any) -> None:
    if not 0 < value <= LONGEST_COMMAND_S:
        raise Wrong(f"must be above 0 and at most {LONGEST_COMMAND_S:g}: {value}")


def seconds(value: str | float) -> float:
    """A duration: `90s`, `1m30s`, `500ms`, or a number of seconds. Wrong if it is none."""
    if isinstance(value, (int, float)):
        return float(value)
    if not _DURATION.fullmatch(value):
        raise Wrong(f"expected a duration, got {described(value)}", 'for example "90s", "1m30s" or "500ms"')
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(value))


def texts(value: Any) -> tuple[Any, ...]:
    """One value or several, as several: `"a"` and `["a", "b"]` are both written."""
    if value is None:
        return ()
    return tuple(value) if isinstance(value, (list, tuple, dict)) else (value,)


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@frozen
class ToolLine:
    """A declared tool."""

    name: str = field(validator=_filled)
    description: str | None = None
    inputSchema: JSONObject | None = None  # noqa: N815 - the format's own name
    result: JSONValue = None
    effect: JSONValue = None
    builtin: Builtin | None = None


@frozen
class ToolServer:
    """The tools of a task, and what they work on."""

    tools: tuple[ToolLine, ...] = ()
    name: str = "bench"
    state: JSONObject | None = None
    files: Mapping[str, str] | None = None


@frozen
class FileCheck:
    """What a file of the sandbox must hold; with neither, it must be there."""

    contains: str | tuple[str, ...] | None = None
    exact: str | None = None


@frozen
class Command:
    """A shell command in the sandbox, after the agent is gone, and how it must end."""

    run: str = field(validator=_filled)
    expect_exit: int = 0
    timeout_s: float = field(default=COMMAND_S, validator=_runnable)


@frozen
class ServerCheck:
    """A call to a server after the agent is gone, and what it must answer. With no condition, it must be no error."""

    tool: str = field(validator=_filled)
    args: JSONObject = Factory(dict)
    server: str | None = None
    contains: str | tuple[str, ...] | None = field(default=None, validator=_filled)
    exact: str | None = None
    regex: str | None = field(default=None, validator=_pattern)
    json: JSONValue = None
    error: bool = False


@frozen
class Forbidden:
    """Calls that nobody may make: of tools with this name (`*` stands for anything), with these arguments."""

    name: str = field(validator=_filled)
    args: JSONObject = Factory(dict)
    matches: str | None = field(default=None, validator=_pattern)


@frozen
class AtMost:
    """What the agent may have used."""

    tokens: int | None = field(default=None, validator=_positive)
    model_calls: int | None = field(default=None, validator=_not_negative)
    tool_calls: int | None = field(default=None, validator=_not_negative)


@frozen
class Grade:
    """What must hold, all of it."""

    contains: str | tuple[str, ...] | None = field(default=None, validator=_filled)
    exact: str | None = None
    regex: str | None = field(default=None, validator=_pattern)
    json: JSONValue = None
    tool_calls: JSONValue = None
    forbidden_calls: tuple[Forbidden, ...] | None = field(default=None, validator=_filled)
    state: JSONObject | None = field(default=None, validator=_filled)
    state_absent: str | tuple[str, ...] | None = field(default=None, validator=_filled)
    mcp_state: tuple[ServerCheck, ...] | None = field(default=None, validator=_filled)
    files: Mapping[str, FileCheck] | None = field(default=None, validator=_filled)
    command: Command | None = None
    ended: str | tuple[str, ...] | None = field(default=None, validator=[_filled, _endings])
    exit_code: int | tuple[int, ...] | None = field(default=None, validator=_filled)
    at_most: AtMost | None = None


@frozen
class Expect:
    """What must have happened on the way."""

    completed: Literal[True] | None = None
    tool_call: str | None = None


@frozen
class GoldCall:
    """A call of the right solution."""

    name: str
    args: JSONObject = Factory(dict)


@frozen
class GoldLine:
    """The right solution, which the oracle control plays."""

    calls: tuple[GoldCall, ...] = ()
    answer: str | None = None


@frozen
class TaskLine:
    """One line. What its four parts say is read for each of them (`file.py`), so that all of their faults are told."""

    id: str = field(validator=_id)
    instruction: str = field(validator=_filled)
    mode: Literal["once"] = "once"
    max_tokens: int | None = field(default=None, validator=_positive)
    max_steps: int | None = field(default=None, validator=_positive)
    deadline: str | float | None = field(default=None, validator=_duration)
    cluster: str | None = field(default=None, validator=_id)
    tool_server: JSONValue = None
    mcp: JSONValue = None
    grade: JSONValue = None
    expect: JSONValue = None
    gold: JSONValue = None
