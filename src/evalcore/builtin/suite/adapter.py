"""Adapter `suite`: a file of your own as a benchmark. `evalcore run ./tasks.jsonl` names it by the file's path."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from evalcore.builtin.mcp.bridge import McpEpisode
from evalcore.builtin.sandbox_none import FolderSandbox, PathRefused
from evalcore.builtin.suite.bridge import SuiteEpisode
from evalcore.builtin.suite.file import Suite, SuiteTask, capped, read_suite
from evalcore.builtin.toolset import ToolsetEpisode
from evalcore.contracts import OpenTrial, Selector, Services
from evalcore.engine.trial import standard_deliverable
from evalcore.errors import ConfigError, Fault, InfraError
from evalcore.values.arm import Arm
from evalcore.values.descriptors import AdapterInfo
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import Assignment, BridgeSpec, Dataset, Gold, Limits, Message, SandboxSpec, Task
from evalcore.values.trial import Deliverable, Evidence

SANDBOX: Final = "sandbox"  # the axis by which a sandbox is demanded
SERVERS: Final = "mcp_servers"  # the axis that brings servers to every task
FILE_CAP: Final = 1 << 20  # bytes of a graded file that are kept as evidence
_SHOWN: Final = 20  # tasks that one refusal names


class SuiteAdapter:
    """The tasks of one file, read when first asked for."""

    grader = "suite"
    gold_by_task = True

    def __init__(self, services: Services, info: AdapterInfo, selector: Selector) -> None:
        if selector.parameter is None:
            raise ConfigError(
                f"{info.name} needs a file", hint="evalcore run ./tasks.jsonl; docs/suites.md has the format"
            )
        self._source = selector.parameter
        self._path = services.base / Path(selector.parameter).expanduser()
        self._read: Suite | None = None
        self._date = ""  # when the file was last changed
        self._tasks: dict[str, SuiteTask] = {}

    def _suite(self) -> Suite:
        """The file. Raises ConfigError with every fault."""
        if self._read is None:
            self._read = read_suite(self._path, self._source, served=True)
            self._date = f"{datetime.fromtimestamp(self._path.stat().st_mtime, UTC):%Y-%m-%d}"
            self._tasks = {one.task.id: one for one in self._read.tasks}
        return self._read

    async def dataset(self) -> Dataset:
        """The file itself, at the version that its bytes are."""
        sha256 = self._suite().sha256
        return Dataset(
            name=self._path.stem,
            version=sha256[:12],
            date=self._date,
            licence="not stated",
            source=self._source,
            files={self._path.name: sha256},
        )

    async def tasks(self) -> AsyncIterator[Task]:
        """The lines in order."""
        for one in self._suite().tasks:
            yield one.task

    def check(self, tasks: Sequence[Task], arms: Sequence[Arm]) -> None:
        """Before anything runs: these tasks with these arms. Raises ConfigError for tools that nobody serves.

        And where a sandbox is not demanded for tasks that need one.
        """
        unserved = [fault for one in self._suite().tasks for fault in one.unserved]
        if unserved and any(arm.axes.get(SERVERS) is None for arm in arms):
            raise capped(self._source, unserved)
        needy = [one for task in tasks if (one := self._tasks[task.id]).sandboxed]
        without = [arm for arm in arms if arm.axes.get(SANDBOX) is None]
        if not needy or not without:
            return
        faults = [Fault(f"line {one.line}: {one.sandboxed[0]}", "needs a sandbox") for one in needy[:_SHOWN]]
        if len(needy) > _SHOWN:
            faults.append(Fault(f"{len(needy) - _SHOWN} more tasks", "need one, too"))
        raise ConfigError(
            f"{self._source}: {len(needy)} of {len(tasks)} tasks work on files or commands, and no sandbox is named",
            faults=faults,
            hint="--sandbox none runs them in a folder on this machine, with no wall around it: "
            "look at their commands first",
        )

    def commands(self, options: Mapping[str, JSONValue]) -> Sequence[Sequence[str]]:
        """What the file would have executed and connected to. Raises ConfigError with every fault of it."""
        found: dict[tuple[str, ...], None] = {}
        for one in self._suite().tasks:
            for declared in _table(one.task.data.get("mcp")).values():
                found["connect to", str(_table(declared)["url"])] = None
            command = _table(_grade(one.task).get("command"))
            if "run" in command:
                found["/bin/sh", "-c", str(command["run"])] = None
        return list(found)

    async def assign(self, task: Task, arm: Arm) -> Assignment:
        """The instruction, the tools and the budgets. Raises ConfigError where a sandbox is not demanded."""
        self._suite()
        one = self._tasks[task.id]
        sandbox = arm.axes.get(SANDBOX) if one.sandboxed else None
        servers = _table(task.data.get("mcp"))
        served = bool(servers) or arm.axes.get(SERVERS) is not None  # those of the arm are added by their transform
        return Assignment(
            (Message("user", str(task.data["instruction"])),),
            tuple(_bridges(_table(task.data["bridge"]), servers, sandbox, served=served)),
            sandbox=SandboxSpec(str(sandbox)) if sandbox is not None else None,
            limits=_limits(task.data["limits"]),
        )

    async def capture(self, trial: OpenTrial) -> Deliverable:
        """Answer, calls, and the state of the tools as they left it."""
        data: JSONObject = {}
        grade = _grade(trial.task)
        tools = next((e for e in trial.episodes if isinstance(e, (SuiteEpisode, ToolsetEpisode))), None)
        if tools is not None and ("state" in grade or "state_absent" in grade):
            state = await tools.state()
            data["state"] = state if isinstance(state, dict) else {}
        code = trial.exit.exit_code if trial.exit is not None else None
        if code is not None:
            data["exit_code"] = code
        return standard_deliverable(trial, data)

    async def collect(self, trial: OpenTrial) -> Evidence:
        """What the servers answer, the graded files, and how the command ended, in this order."""
        grade = _grade(trial.task)
        data: JSONObject = {}
        if "mcp_state" in grade:
            data["mcp_state"] = await _asked(trial, grade["mcp_state"])
        sandboxes = (getattr(episode, "sandbox", None) for episode in trial.episodes)
        sandbox = next((found for found in sandboxes if isinstance(found, FolderSandbox)), None)
        if sandbox is None:
            return Evidence(data)
        await sandbox.kill_all()
        if "files" in grade:
            files: JSONObject = {path: await _file(sandbox, path) for path in _table(grade["files"])}
            data["files"] = files
        if "command" in grade:
            data["command"] = await _command(sandbox, _table(grade["command"]))
        return Evidence(data)

    async def gold(self, task: Task) -> Gold | None:
        """The right solution, where the line has one."""
        self._suite()
        return self._tasks[task.id].gold


def _bridges(config: JSONObject, servers: JSONObject, sandbox: JSONValue, *, served: bool) -> Iterator[BridgeSpec]:
    """The servers first: they make the folder, and the tools of the line work in it, too."""
    folder = _table(config.get("folder"))
    if served:
        given: JSONObject = {"servers": servers}
        if folder:
            given |= {"files": folder["files"], "folder": True}
        yield BridgeSpec("mcp", given)
    if folder and (config["tools"] or not served):
        own: JSONObject = {**folder, "sandbox": sandbox} | ({"shared": True} if served else {})
        yield BridgeSpec("suite", {**config, "folder": own})
    elif config["tools"]:
        yield BridgeSpec("toolset", config)


async def _asked(trial: OpenTrial, checks: JSONValue) -> list[JSONValue]:
    """What the trial's servers answer to the calls of the grader's side. Raises InfraError."""
    episode = next((e for e in trial.episodes if isinstance(e, McpEpisode)), None)
    if episode is None:
        raise InfraError("the trial has no MCP servers to ask")
    answers: list[JSONValue] = []
    for check in checks if isinstance(checks, list) else ():
        asked = _table(check)
        result = await episode.ask(str(asked["tool"]), _table(asked.get("args")), str(asked.get("server") or ""))
        text = result.text
        answer: JSONObject = {"error": result.error, "text": text[:FILE_CAP]}
        if result.structured is not None:
            answer["structured"] = result.structured
        if len(text) > FILE_CAP:
            answer["truncated"] = True
        answers.append(answer)
    return answers


def _grade(task: Task) -> JSONObject:
    reference = _table(task.reference)
    return _table(reference.get("grade"))


async def _file(sandbox: FolderSandbox, path: str) -> JSONObject:
    """A file as evidence: its first mebibyte as text, and the digest of all of it."""
    try:
        data = await sandbox.read(path, FILE_CAP)
        sha256 = await sandbox.digest(path)
    except FileNotFoundError:
        return {"exists": False}
    except PathRefused as refused:
        return {"exists": False, "why": str(refused)}
    return {"exists": True, "sha256": sha256, "text": data.decode("utf-8", "replace")}


async def _command(sandbox: FolderSandbox, command: JSONObject) -> JSONObject:
    """How the command ended. It is shell text, by the format's definition."""
    timeout_s: Any = command.get("timeout_s", 120.0)
    done = await sandbox.exec(("/bin/sh", "-c", str(command["run"])), timeout_s=float(timeout_s))
    return {
        "exit_code": done.exit_code,
        "signal": done.signal,
        "timed_out": done.timed_out,
        "stdout": done.stdout.decode("utf-8", "replace"),
        "stderr": done.stderr.decode("utf-8", "replace"),
        "truncated": done.truncated,
    }


def _limits(value: JSONValue) -> Limits:
    bounds: Any = _table(value)
    return Limits(**bounds)


def _table(value: JSONValue) -> JSONObject:
    return value if isinstance(value, dict) else {}
