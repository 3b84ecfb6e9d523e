"""Suites with real MCP servers: of a line, of an axis, beside declared tools; graded on what the servers hold."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from evalcore.contracts import Driver, OpenTrial, Recorder, ToolResult, text_result
from evalcore.engine.run import RunOptions
from evalcore.engine.runner import RunEnd
from evalcore.engine.store import TraceStore
from evalcore.errors import ConfigError
from evalcore.hookspecs import BridgeInfo, hookimpl
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import BridgeSpec, Limits, ToolSpec
from tests.integration.conftest import Called
from tests.integration.suite_parts import CONTROLS, Ran, children, planned, ran, scripted, write
from tests.integration.test_mcp_bridge import raw

KEEP: Final[dict[str, Any]] = {
    "id": "keep",
    "instruction": "Keep the value x.",
    "grade": {"mcp_state": [{"tool": "get", "json": "x", "contains": "x"}]},
    "gold": {"calls": [{"name": "put", "args": {"value": "x"}}]},
}


def servers(folder: Path, name: str = "servers.json", **declared: JSONValue) -> Path:
    (folder / name).write_text(json.dumps({"mcpServers": declared}))
    return folder / name


def arms(**more: JSONValue) -> Mapping[str, Mapping[str, JSONValue]]:
    return {name: {**arm, **more} for name, arm in CONTROLS.items()}


def traces(done: Ran, kind: str) -> list[list[JSONObject]]:
    store = TraceStore(done.path)
    return [list(store.of(attempt).events(kind)) for attempt in done.attempts()]


# ── the axis mcp_servers ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_suite_runs_on_the_servers_of_an_axis_and_is_graded_on_what_they_hold(tmp_path: Path) -> None:
    servers(tmp_path, raw=raw("put,get"))
    write(tmp_path / "mine.jsonl", [KEEP, {**KEEP, "id": "again"}])
    done = ran("mine.jsonl", tmp_path, arms(mcp_servers="servers.json"), repeats=2)
    assert done.end == RunEnd("done")
    assert done.outcomes("oracle") == {"keep": ["pass", "pass"], "again": ["pass", "pass"]}
    assert done.outcomes("noop") == {"keep": ["fail", "fail"], "again": ["fail", "fail"]}
    assert done.verdicts("noop")["keep"][0].details["reason"] == "mcp_state: get: 'x' is not in its answer"
    for attempt, calls, evidence in zip(
        done.attempts(), traces(done, "tool.call"), traces(done, "evidence"), strict=True
    ):
        assert [call["tool"] for call in calls] == [
            "put"
        ] * attempt.tool_calls  # what the grader asked is not among them
        data = evidence[0]["data"]
        assert isinstance(data, dict) and len(data["mcp_state"]) == 1  # type: ignore[arg-type]


def test_two_files_of_servers_are_two_configurations_told_apart_by_their_content(tmp_path: Path) -> None:
    servers(tmp_path, "a.json", raw=raw("put,get"))
    servers(tmp_path, "b.json", raw=raw("get"))
    write(tmp_path / "mine.jsonl", [KEEP])
    sweep: Any = {"mcp_servers": ("a.json", "b.json")}
    plan = planned("mine.jsonl", tmp_path, {"oracle": {"harness": "oracle"}}, sweep=sweep)
    first, second = plan.arms
    assert (first.handle, second.handle) == ("oracle@mcp_servers=a.json", "oracle@mcp_servers=b.json")
    assert first.content["mcp_servers"] != second.content["mcp_servers"]
    (tmp_path / "b.json").write_text((tmp_path / "a.json").read_text())
    edited = planned("mine.jsonl", tmp_path, {"oracle": {"harness": "oracle"}}, sweep=sweep)
    assert edited.arms[1].content["mcp_servers"] == first.content["mcp_servers"]
    assert edited.arms[1].digest != second.digest


def test_a_tool_that_nobody_serves_is_told_before_anything_runs(tmp_path: Path) -> None:
    write(tmp_path / "mine.jsonl", [KEEP])
    with pytest.raises(ConfigError, match=r"^mine\.jsonl: 2 faults$") as refused:
        planned("mine.jsonl", tmp_path, CONTROLS)
    assert [fault.where for fault in refused.value.faults] == [
        "line 1: $.grade.mcp_state[0]",
        "line 1: $.gold.calls[0].name",
    ]


def test_a_faulty_file_of_servers_is_told_before_anything_runs(tmp_path: Path) -> None:
    write(tmp_path / "mine.jsonl", [KEEP])
    servers(tmp_path, raw={"command": sys.executable, "arg": []})
    with pytest.raises(ConfigError, match=r"^servers\.json: 1 fault$") as refused:
        planned("mine.jsonl", tmp_path, arms(mcp_servers="servers.json"))
    assert refused.value.faults[0].where == "$.mcpServers.raw.arg"


def test_a_variable_that_is_not_set_is_told_before_anything_runs(tmp_path: Path) -> None:
    write(tmp_path / "mine.jsonl", [KEEP])
    servers(tmp_path, raw={"command": "${NO_SUCH_FOLDER}/server", "args": ["${NOR_THIS:-x}"]})
    with pytest.raises(ConfigError, match=r"^servers\.json: 1 fault$") as refused:
        planned("mine.jsonl", tmp_path, arms(mcp_servers="servers.json"))
    told = "$.mcpServers.raw.command: needs the variable NO_SUCH_FOLDER, which is not set"
    assert str(refused.value.faults[0]) == told


def test_servers_and_files_work_in_one_folder(tmp_path: Path) -> None:
    servers(tmp_path, raw=raw("put,get,where"))
    line = {
        "id": "both",
        "instruction": "Copy the value of in.txt.",
        "tool_server": {
            "files": {"in.txt": "y", "state.json": '"before"'},
            "tools": [{"name": "read_file", "builtin": "read_file"}, {"name": "write_file", "builtin": "write_file"}],
        },
        "grade": {
            "files": {"state.json": {"exact": '"y"'}, "out.txt": {"contains": "y"}},
            "command": {"run": "grep -q y state.json out.txt"},
            "mcp_state": [{"tool": "get", "json": {"value": "y"}}, {"tool": "get", "server": "raw", "regex": "^.y.$"}],
        },
        "gold": {
            "calls": [
                {"name": "read_file", "args": {"path": "in.txt"}},
                {"name": "put", "args": {"value": "y"}},
                {"name": "write_file", "args": {"path": "out.txt", "content": "y"}},
            ]
        },
    }
    plain = {k: v for k, v in line.items() if k != "tool_server"} | {"id": "plain"}
    plain["grade"] = {"files": {"state.json": {"contains": "y"}}}
    plain["gold"] = {"calls": [{"name": "put", "args": {"value": "y"}}]}
    write(tmp_path / "mine.jsonl", [line, plain])
    done = ran("mine.jsonl", tmp_path, arms(mcp_servers="servers.json", sandbox="none"))
    assert done.outcomes("oracle") == {"both": ["pass"], "plain": ["pass"]}
    assert done.outcomes("noop") == {"both": ["fail"], "plain": ["fail"]}


def test_a_server_that_cannot_start_voids_the_trial_with_one_line(tmp_path: Path) -> None:
    servers(tmp_path, raw={"command": sys.executable, "args": ["-c", "raise SystemExit('no licence')"]})
    write(tmp_path / "mine.jsonl", [KEEP])
    done = ran("mine.jsonl", tmp_path, {"noop": arms(mcp_servers="servers.json")["noop"]})
    assert done.end.voids_left == 1
    voids = [attempt.void for attempt in done.attempts()]
    assert {(void.kind, void.message) for void in voids if void} == {
        ("infra", "MCP server 'raw' ended with exit code 1: no licence")
    }


def test_an_arm_without_a_suite_gets_the_servers_too(tmp_path: Path) -> None:
    """Every benchmark: here declared tools, and a server beside them; names that collide are refused by name."""
    line = {
        "id": "t",
        "instruction": "Do both.",
        "tool_server": {"state": {}, "tools": [{"name": "mark", "effect": {"set": "m", "value": 1}}]},
        "grade": {"state": {"m": 1}},
        "gold": {"calls": [{"name": "mark"}]},
    }
    write(tmp_path / "mine.jsonl", [line])
    servers(tmp_path, raw=raw("put"))
    servers(tmp_path, "both.json", raw=raw("mark"))
    done = ran("mine.jsonl", tmp_path, arms(mcp_servers="servers.json"))
    assert done.outcomes("oracle") == {"t": ["pass"]}
    assert [(call["tool"], call["bridge"]) for calls in traces(done, "tool.call") for call in calls] == [
        ("mark", "toolset")
    ]
    collided = ran("mine.jsonl", tmp_path, {"noop": arms(mcp_servers="both.json")["noop"]}, name="b")
    assert {a.void.message for a in collided.attempts() if a.void} == {
        "tool 'mark' is offered by 'mcp' and by 'toolset'"
    }


# ── spares ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_servers_of_the_next_trials_are_started_while_others_run(tmp_path: Path) -> None:
    """Each with the files of its own task; and nothing that was made ready is left when the run ends."""
    servers(tmp_path, raw=raw("put,get,where"))
    lines = [
        {
            **KEEP,
            "id": f"t{number}",
            "tool_server": {"files": {"state.json": str(number)}},
            "grade": {"mcp_state": [{"tool": "get", "json": {"value": number}}, {"tool": "where"}]},
            "gold": {"calls": [{"name": "get"}]},
        }
        for number in range(6)
    ]
    write(tmp_path / "mine.jsonl", lines)
    given = {"oracle": arms(mcp_servers="servers.json", sandbox="none")["oracle"]}
    before = children()
    done = ran("mine.jsonl", tmp_path, given, options=RunOptions(concurrency=1))
    assert done.outcomes("oracle") == {f"t{number}": ["pass"] for number in range(6)}
    assert [[event["spare"] for event in events] for events in traces(done, "env.server")] == [
        [False],
        *([[True]] * 5),
    ]
    asked = [events[0]["data"]["mcp_state"][1]["text"] for events in traces(done, "evidence")]  # type: ignore[call-overload, index]
    pids = {json.loads(str(text))["pid"] for text in asked}
    assert len(pids) == 6 and not any(psutil.pid_exists(pid) for pid in pids)
    assert children() <= before


@pytest.mark.parametrize("limits", [Limits(wall_s=1.0), Limits(tool_calls=1)])
def test_a_limit_ends_the_servers_with_the_trial(limits: Limits, tmp_path: Path) -> None:
    servers(tmp_path, raw=raw("hang,get", "stubborn"))
    write(tmp_path / "mine.jsonl", [{**KEEP, "gold": {"calls": [{"name": "get"}, {"name": "hang"}]}}])
    given = {"oracle": arms(mcp_servers="servers.json")["oracle"]}
    before = children()
    done = ran("mine.jsonl", tmp_path, given, limits=limits)
    (attempt,) = done.attempts()
    assert attempt.exit is not None
    assert attempt.exit.limit == ("wall_s" if limits.wall_s else "tool_calls")
    assert children() <= before


# ── the axis instructions ────────────────────────────────────────────────────────────────────────────────────────────


def test_instructions_are_put_before_the_task_and_are_part_of_the_arm(tmp_path: Path) -> None:
    (tmp_path / "skill.md").write_text("\ufeff# Be brief\nAlways.\n")
    line = {"id": "t", "instruction": "Say x.", "grade": {"contains": "x"}}
    write(tmp_path / "mine.jsonl", [line])
    arm = {**scripted(tmp_path, {"text": "x"}), "instructions": "skill.md"}
    done = ran("mine.jsonl", tmp_path, {"m": arm})
    assert done.outcomes("m") == {"t": ["pass"]}
    (requests,) = traces(done, "model.request")
    assert requests[0]["add"] == [
        {"role": "system", "content": "# Be brief\nAlways."},
        {"role": "user", "content": "Say x."},
    ]
    assert "instructions=skill.md" in done.plan.arms[0].label and len(done.plan.arms[0].content["instructions"]) == 64


@pytest.mark.parametrize("data, message", [(b"", "is empty"), (b"\xff", "not UTF-8 text: byte 1")])
def test_instructions_that_are_no_text_stop_the_run(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "skill.md").write_bytes(data)
    write(tmp_path / "mine.jsonl", [{"id": "t", "instruction": "Say x.", "grade": {"contains": "x"}}])
    with pytest.raises(ConfigError, match=message):
        planned("mine.jsonl", tmp_path, {"noop": {"harness": "noop", "instructions": "skill.md"}})


# ── guards ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Dispatching:
    """A plugin: the bridge `mcp` replaced by one whose only tool calls others, and reports what it calls."""

    @hookimpl
    def evalcore_bridges(self) -> list[BridgeInfo]:
        return [BridgeInfo("dispatch", "one tool for all", "tests.integration.test_mcp_suite:DispatchBridge")]


class DispatchBridge:
    def __init__(self, services: object = None, info: object = None) -> None:
        pass

    async def open(self, spec: BridgeSpec, trial: OpenTrial) -> DispatchEpisode:
        return DispatchEpisode(trial.recorder)


class DispatchEpisode:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def tools(self) -> list[ToolSpec]:
        return [ToolSpec("run", "runs a tool", {"type": "object"})]

    async def call(self, name: str, arguments: JSONValue) -> ToolResult:
        assert isinstance(arguments, dict)
        who = "user" if arguments.get("by") == "user" else "assistant"
        self._recorder.record("env.call", tool=arguments["tool"], arguments=arguments["args"], requestor=who)
        self._recorder.record("env.result", tool=arguments["tool"], content=[], error=False)
        return text_result("done")

    def driver(self) -> Driver | None:
        return None

    async def state(self) -> JSONValue:
        return None

    async def close(self) -> None:
        pass


FORBIDDEN: Final = [{"name": "delete*", "args": {"id": [1, 2]}}, {"name": "shell", "matches": r"rm\s+-rf"}]


@pytest.mark.parametrize(
    "name, arguments, harm",
    [
        ("delete_order", {"id": 2}, True),
        ("delete_order", {"id": 3}, False),
        ("undelete", {"id": 2}, False),
        ("shell", {"command": "rm   -rf /"}, True),
        ("shell", {"command": "rm -r x"}, False),
    ],
)
def test_a_forbidden_call_is_harm_and_fails(name: str, arguments: JSONObject, harm: bool, tmp_path: Path) -> None:
    tools = [{"name": n} for n in ("delete_order", "undelete", "shell")]
    line = {
        "id": "t",
        "instruction": "Do.",
        "tool_server": {"tools": tools},
        "grade": {"contains": "ok", "forbidden_calls": FORBIDDEN},
        "gold": {"calls": [{"name": name, "args": arguments}], "answer": "ok"},
    }
    write(tmp_path / "mine.jsonl", [line])
    done = ran("mine.jsonl", tmp_path)
    (verdict,) = done.verdicts("oracle")["t"]
    assert (verdict.outcome, verdict.harm) == (("fail" if harm else "pass"), harm)
    assert done.verdicts("noop")["t"][0].harm is False
    if harm:
        assert verdict.details["reason"] == f"forbidden_calls: {name} was called, and is forbidden"


@pytest.mark.parametrize("by, harm", [("agent", True), ("user", False)])
def test_a_tool_that_calls_others_is_no_way_around_a_guard(
    by: str, harm: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was dispatched for the agent counts; what a simulated user did with its own tools does not."""
    from evalcore.builtin.suite import adapter

    monkeypatch.setattr(adapter, "_bridges", lambda *_, **__: [BridgeSpec("dispatch")])
    wanted = {"tool": "delete_order", "args": {"id": 1}, "by": by}
    line = {
        "id": "t",
        "instruction": "Do.",
        "tool_server": {"tools": [{"name": "run"}, {"name": "shell"}]},
        "grade": {"contains": "ok", "forbidden_calls": FORBIDDEN},
        "gold": {"calls": [{"name": "run", "args": wanted}], "answer": "ok"},
    }
    write(tmp_path / "mine.jsonl", [line])
    done = ran("mine.jsonl", tmp_path, parts=[Dispatching()])
    (verdict,) = done.verdicts("oracle")["t"]
    assert (verdict.outcome, verdict.harm) == (("fail" if harm else "pass"), harm)
    if harm:
        why = "forbidden_calls: delete_order was called by another tool, and is forbidden"
        assert verdict.details["reason"] == why


# ── the command line ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_tools_before_and_after_are_one_sweep(cli: Callable[..., Called], tmp_path: Path) -> None:
    servers(tmp_path, "before.json", raw=raw("get"))
    servers(tmp_path, "after.json", raw=raw("put,get"))
    write(tmp_path / "mine.jsonl", [KEEP])
    put = {"match": {"call": 1}, "tool_calls": [{"name": "put", "arguments": {"value": "x"}}]}
    write(tmp_path / "play.jsonl", [put, {"text": "done"}])
    flags = ("--sweep", "mcp_servers=before.json,after.json", "--model", "scripted/play.jsonl", "--yes", "--name", "r")
    called = cli("run", "mine.jsonl", *flags)
    assert called.exit_code == 0, called.stderr
    rows = [json.loads(line) for line in cli("trace", "r", "--json").stdout.splitlines()]
    assert sorted((row["arm"], row["outcome"]) for row in rows) == [
        ("react@mcp_servers=after.json", "pass"),
        ("react@mcp_servers=before.json", "fail"),
    ]


def test_plan_tells_what_is_wrong_with_a_file_of_servers_and_needs_no_variable(
    cli: Callable[..., Called], tmp_path: Path
) -> None:
    write(tmp_path / "mine.jsonl", [KEEP])
    flags = ("mine.jsonl", "--harness", "noop", "--set", "mcp_servers=servers.json")
    servers(tmp_path, raw={"command": "${NO_SUCH_FOLDER}/server"})
    assert cli("plan", *flags).exit_code == 0
    servers(tmp_path, raw={"comand": "server"})
    told = cli("plan", *flags)
    assert told.exit_code == 2 and "$.mcpServers.raw" in told.stderr
