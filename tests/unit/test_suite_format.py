"""A suite's file: every fault of it at once, each with its line and its path; and what becomes of sound lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.builtin.suite.file import MAX_FAULTS, Suite, parse_suite, read_suite
from evalcore.builtin.suite.format import REFUSED, seconds
from evalcore.engine.selectors import parse_selector
from evalcore.errors import ConfigError
from evalcore.values.faults import Wrong
from evalcore.values.task import Call, GoldAnswer, GoldCalls

PLAIN: dict[str, Any] = {"id": "t", "instruction": "Do.", "grade": {"contains": "x"}}
SWITCH: dict[str, Any] = {
    "name": "switch",
    "inputSchema": {"type": "object", "properties": {"to": {"type": "string"}}},
    "effect": {"set": "lamp", "value_arg": "to"},
}


def suite(*lines: Any) -> Suite:
    """Lines as JSON; a text is taken as it is."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    return parse_suite("\n".join(texts).encode(), "s.jsonl")


def faults(*lines: Any) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        suite(*lines)
    assert refused.value.exit_code == 2
    return [str(fault) for fault in refused.value.faults]


def served(*tools: Any, **more: Any) -> dict[str, Any]:
    return {**PLAIN, "tool_server": {"tools": list(tools), **more}}


# ── where a fault is ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_fault_in_line_417_says_so_and_its_path(tmp_path: Path) -> None:
    lines: list[Any] = [{**PLAIN, "id": f"t{n}"} for n in range(1, 500)]
    broken = {**SWITCH, "effect": {"set": "lamp", "vale": "on"}}
    lines[416] = {**lines[416], "tool_server": {"state": {}, "tools": [broken]}}
    file = tmp_path / "tasks.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(ConfigError) as refused:
        read_suite(file, "./tasks.jsonl")
    assert refused.value.message == "./tasks.jsonl: 1 fault"
    fault = "line 417: $.tool_server.tools[0].effect.vale: unknown key (did you mean 'value'?)"
    assert [str(f) for f in refused.value.faults] == [fault]


def test_lines_without_a_task_are_counted() -> None:
    found = faults("", "// about", "  ", "{", PLAIN, "//", '{"id": "u"}')
    assert found == [
        "line 4: no JSON: Expecting property name enclosed in double quotes at column 2",
        "line 7: $.instruction: missing: expected text",
        "line 7: $: nothing is graded: expected a grade, or something to expect",
    ]


def test_every_fault_of_a_line_is_told_whatever_else_is_wrong_in_it() -> None:
    line = {
        "id": "",
        "instruction": 3,
        "deadline": "soon",
        "tool_server": {
            "tools": [{"name": "a", "effect": {"sett": "x"}}, {"nam": "b"}, {"name": "c", "effect": {"delete": ""}}],
            "state": [],
        },
        "grade": {"contians": "x", "regex": "(", "exit_code": "0", "at_most": {"tokens": 0}},
        "expect": {"completed": False},
        "gold": {"calls": [{"name": "a", "args": []}]},
        "extra": 1,
    }
    assert {fault.partition(": ")[2].partition(": ")[0] for fault in faults(line)} == {
        "$.id",
        "$.instruction",
        "$.deadline",
        "$.tool_server.tools[0].effect",
        "$.tool_server.tools[1].name",
        "$.tool_server.tools[1].nam",
        "$.tool_server.tools[2].effect.delete",
        "$.tool_server.state",
        "$.grade.contians",
        "$.grade.regex",
        "$.grade.exit_code",
        "$.grade.at_most.tokens",
        "$.expect.completed",
        "$.gold.calls[0].args",
        "$.extra",
    }


def test_many_faults_are_shown_up_to_a_number_and_then_counted() -> None:
    found = faults(*[{"id": f"t{n}", "instruction": "Do.", "grade": {"exact": n}} for n in range(120)])
    assert len(found) == MAX_FAULTS + 1
    assert found[0] == "line 1: $.grade.exact: expected text, got 0"
    assert found[-1] == "70 more faults: the last is in line 120"


def graded(**grade: Any) -> dict[str, Any]:
    return {**PLAIN, "grade": grade}


def with_switch(**grade: Any) -> dict[str, Any]:
    return {**served(SWITCH), "grade": grade}


@pytest.mark.parametrize(
    "line, where, message",
    [
        ("[1]", ": $", "expected a task, got an array"),
        ('{"id": "a", "id": "b"}', "", "key 'id' twice in one object"),
        ('{"id": NaN}', "", "NaN is no JSON"),
        ("[" * 100_000, "", "nested too deeply"),
        ('{"id": "a"', "", "no JSON: Expecting ',' delimiter at column 11"),
        ({**PLAIN, "id": " t"}, ": $.id", "' t' is no id (printable, at most 200 characters, no space at either end)"),
        ({**PLAIN, "instrution": "x"}, ": $.instrution", "unknown key (did you mean 'instruction'?)"),
        ({**PLAIN, "tool_sever": {}}, ": $.tool_sever", "unknown key (did you mean 'tool_server'?)"),
        ({**PLAIN, "instruction": " "}, ": $.instruction", "is empty"),
        ({**PLAIN, "max_tokens": 0}, ": $.max_tokens", "must be > 0: 0"),
        ({**PLAIN, "max_steps": True}, ": $.max_steps", "expected an integer, got true"),
        ({**PLAIN, "deadline": "5 minutes"}, ": $.deadline", "expected a duration, got the text '5 minutes' (for"),
        (graded(), ": $", "nothing is graded: expected a grade, or something to expect"),
        ({**PLAIN, "grade": None}, ": $.grade", "expected a table, got null"),
        (graded(contains=""), ": $.grade.contains", "is empty"),
        (graded(contains=[]), ": $.grade.contains", "is empty"),
        (graded(state={}), ": $.grade.state", "is empty"),
        (graded(regex="a**"), ": $.grade.regex", "no regular expression: multiple repeat at position 2 (in 'a**')"),
        (graded(regex="a" * 3000), ": $.grade.regex", "a pattern of 3000 characters (at most 2000)"),
        (graded(ended="done"), ": $.grade.ended", "'done' is no way to end (ways: completed, limit, refused, crashed)"),
        (graded(files={"../x": {}}), ': $.grade.files."../x"', "is no path within the sandbox's folder (for"),
        (
            graded(command={"run": "true", "timeout_s": 900}),
            ": $.grade.command.timeout_s",
            "must be above 0 and at most",
        ),
        (graded(state={"a": 1}), ": $.grade.state", "there is no state (declare tool_server.state, or a tool with"),
        (with_switch(state_absent="a..b"), ": $.grade.state_absent", "'a..b' is no path (for example"),
        (
            with_switch(tool_calls={"name": "swich"}),
            ": $.grade.tool_calls.name",
            "the task has no tool 'swich' (did you mean 'switch'?)",
        ),
        (
            with_switch(tool_calls={"none": [{"nmae": "switch"}]}),
            ": $.grade.tool_calls.none[0].nmae",
            "unknown key (did you mean 'name'?)",
        ),
        (
            with_switch(tool_calls={"all": []}),
            ": $.grade.tool_calls.all",
            "expected an array of calls, got an empty one",
        ),
        (with_switch(tool_calls={"all": [{"name": "switch"}], "x": []}), ": $.grade.tool_calls.x", "unknown key"),
        (with_switch(tool_calls="switch"), ": $.grade.tool_calls", "expected a call, got the text 'switch' (for"),
        (
            {**PLAIN, "expect": {"tool_call": "switch"}},
            ": $.expect.tool_call",
            "the task has no tool 'switch' (it has no tools)",
        ),
        (
            {**served(SWITCH), "gold": {"calls": [{"name": "x"}]}},
            ": $.gold.calls[0].name",
            "the task has no tool 'x' (its tools: switch)",
        ),
        (served(SWITCH, SWITCH), ": $.tool_server.tools[1].name", "'switch' is the name of another tool, too"),
        (
            served({**SWITCH, "effect": {"set": "lamp", "value": "{too}"}}),
            ": $.tool_server.tools[0].effect.value",
            "no argument 'too' in the tool's schema (did you mean 'to'?)",
        ),
        (
            served({**SWITCH, "builtin": "write_file"}),
            ": $.tool_server.tools[0].effect",
            "does not belong to a tool that is 'write_file'",
        ),
        (
            served({"name": "a", "builtin": "edit_file"}),
            ": $.tool_server.tools[0].builtin",
            "expected 'read_file' or 'write_file', got the text 'edit_file'",
        ),
        (served(SWITCH, files={"/x": ""}), ': $.tool_server.files."/x"', "is no path within the sandbox's folder"),
    ],
)
def test_a_fault_is_told_with_its_path(line: Any, where: str, message: str) -> None:
    found = faults(line)
    assert [fault for fault in found if fault.startswith(f"line 1{where}: {message}")], found


def test_bytes_that_are_no_text_are_a_fault_of_their_line() -> None:
    with pytest.raises(ConfigError) as refused:
        parse_suite(json.dumps(PLAIN).encode() + b'\n{"id": "\xff"}', "s.jsonl")
    assert [str(f) for f in refused.value.faults] == ["line 2: not UTF-8 text: byte 9 of the line"]


def test_an_id_belongs_to_one_line() -> None:
    assert faults(PLAIN, "", PLAIN) == ["line 3: $.id: 't' is the id of line 1, too"]


def test_a_file_that_is_not_there_and_one_without_a_task(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^no such file: x\.jsonl$"):
        read_suite(tmp_path / "x.jsonl", "x.jsonl")
    with pytest.raises(ConfigError, match=r"^cannot read \.: "):
        read_suite(tmp_path, ".")
    with pytest.raises(ConfigError, match=r"^s\.jsonl has no task$"):
        parse_suite(b"// nothing yet\n", "s.jsonl")


# ── what is not run ──────────────────────────────────────────────────────────────────────────────────────────────────

VALUES: dict[str, Any] = {
    "mode": "workflow",
    "workflow": {"start": "a", "nodes": {}},
    "mock_llm": "final",
    "mock_mcp": {"uri": "file:///in.json"},
    "intelligence": "http://127.0.0.1:1",
    "model": "gpt",
    "policy": "Be kind.",
    "max_turns": 4,
    "user_simulator": {"mock_llm": "final", "scenario": "x"},
}
BRINGS = {
    "mode": "harness `agentd`",
    "workflow": "harness `agentd`",
    "mock_llm": "provider `scripted`",
    "mock_mcp": "tool_server",
    "intelligence": "--model provider/name",
    "model": "--model provider/name",
    "policy": "a plugin with a driver",
    "max_turns": "a plugin with a driver",
    "user_simulator": "a plugin with a driver",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_run_is_refused_with_its_path_and_what_brings_it(name: str) -> None:
    (found,) = faults({**PLAIN, name: VALUES[name]})
    assert found.startswith(f"line 1: $.{name}: ") and BRINGS[name] in found


def test_servers_of_a_line_may_have_the_tools_that_it_does_not_declare() -> None:
    asked: dict[str, Any] = {"grade": {"tool_calls": {"name": "search"}, "mcp_state": [{"tool": "read"}]}}
    line = {**PLAIN, **asked, "gold": {"calls": [{"name": "search"}]}}
    (task,) = suite({**line, "mcp": ["web=http://127.0.0.1:1/mcp"]}).tasks
    assert task.task.data["mcp"] == {"web": {"url": "http://127.0.0.1:1/mcp"}}
    assert faults(line) == [
        "line 1: $.grade.tool_calls.name: the task has no tool 'search' (it has no tools)",
        "line 1: $.grade.mcp_state[0]: the task has no MCP server (name servers that have it: --set mcp_servers=FILE)",
        "line 1: $.gold.calls[0].name: the task has no tool 'search' (it has no tools)",
    ]


@pytest.mark.parametrize(
    "more, where",
    [
        ({"mcp": "web=http://h/"}, "$.mcp"),
        ({"mcp": ["http://h/"]}, "$.mcp[0]"),
        ({"mcp": ["a=http://h/", "a=http://i/"]}, "$.mcp[1]"),
        ({"mcp": ["a=file:///etc"]}, "$.mcp[0].a.url"),
        ({"grade": {"mcp_state": []}}, "$.grade.mcp_state"),
        ({"grade": {"mcp_state": [{"tool": "a", "regex": "("}]}}, "$.grade.mcp_state[0].regex"),
        ({"grade": {"mcp_state": [{"args": {}}]}}, "$.grade.mcp_state[0].tool"),
        ({"grade": {"mcp_state": [{"tool": "switch"}]}}, "$.grade.mcp_state[0].tool"),
        ({"grade": {"forbidden_calls": [{"name": "a*", "matches": "["}]}}, "$.grade.forbidden_calls[0].matches"),
        ({"grade": {"forbidden_calls": [{"name": "swich"}]}}, "$.grade.forbidden_calls[0].name"),
        ({"grade": {"forbidden_calls": []}}, "$.grade.forbidden_calls"),
    ],
)
def test_what_is_wrong_with_servers_and_guards_is_told_with_its_path(more: dict[str, Any], where: str) -> None:
    found = faults({**served(SWITCH), **more})
    assert [fault.partition(": ")[2].partition(": ")[0] for fault in found] == [where]


def test_a_shell_is_refused_with_its_path_and_what_brings_it() -> None:
    (found,) = faults(served({"name": "sh", "builtin": "bash"}))
    assert found.startswith("line 1: $.tool_server.tools[0].builtin: ") and "bridge `shell`" in found


def test_a_workflow_without_an_instruction_is_one_fault() -> None:
    line = {key: value for key, value in PLAIN.items() if key != "instruction"}
    assert len(faults({**line, "workflow": {}})) == 1


# ── what becomes of a line ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_line_becomes_an_environment_and_what_only_the_grader_sees() -> None:
    line = {
        **served(SWITCH, state={"lamp": "off"}, name="home"),
        "mode": "once",
        "max_tokens": 900,
        "max_steps": 3,
        "deadline": "1m30s",
        "grade": {"state": {"lamp": "on"}},
        "expect": {"completed": True},
        "gold": {"calls": [{"name": "switch", "args": {"to": "on"}}], "answer": "Done."},
        "cluster": "lamps",
    }
    (one,) = suite(line).tasks
    tool = {"name": "switch", "description": "", "input_schema": SWITCH["inputSchema"], "effect": SWITCH["effect"]}
    assert one.task.data == {
        "instruction": "Do.",
        "limits": {"tokens": 900, "model_calls": 3, "wall_s": 90.0},
        "bridge": {"tools": [tool], "echo": True, "state": {"lamp": "off"}},
    }
    assert one.task.reference == {key: line[key] for key in ("grade", "expect", "gold")}
    assert (one.task.cluster, one.line, one.sandboxed) == ("lamps", 1, ())
    assert one.gold == GoldCalls(((Call("switch", {"to": "on"}),),), "Done.")


def test_gold_without_calls_is_an_answer_and_a_line_without_gold_has_none() -> None:
    one, other = suite({**PLAIN, "gold": {"answer": "x"}}, {**PLAIN, "id": "u"}).tasks
    assert (one.gold, other.gold) == (GoldAnswer("x"), None)
    assert one.task.cluster == "t"


def test_comments_and_order_of_keys_change_no_task() -> None:
    plain = suite(PLAIN).tasks[0].task
    turned = dict(reversed(PLAIN.items()))
    commented = parse_suite(b"\xef\xbb\xbf// about\r\n" + json.dumps(turned).encode() + b"\r\n", "s").tasks[0]
    assert (commented.task.digest, commented.line) == (plain.digest, 2)
    assert suite({**PLAIN, "grade": {"contains": "y"}}).tasks[0].task.digest != plain.digest


def test_a_task_says_for_which_fields_it_needs_a_sandbox() -> None:
    write = {"name": "write", "builtin": "write_file"}
    line = {**served(SWITCH, write, files={"a/b.txt": "x"}), "grade": {"files": {"c": {}}, "command": {"run": "true"}}}
    (one,) = suite(line).tasks
    assert one.sandboxed == (
        "$.tool_server.files", "$.tool_server.tools[1].builtin", "$.grade.files", "$.grade.command"
    )  # fmt: skip
    bridge: Any = one.task.data["bridge"]
    assert bridge["folder"] == {"files": {"a/b.txt": "x"}, "builtins": {"write": "write_file"}}
    assert bridge["tools"][1]["input_schema"]["required"] == ["path", "content"]


@pytest.mark.parametrize(
    "text, value",
    [("90s", 90), ("1m30s", 90), ("500ms", 0.5), ("2h", 7200), ("0.5m", 30), (45, 45), (1.5, 1.5)],
)
def test_durations(text: str | float, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "5", "5 s", "s", "1d", "-5s", "1e3s", "٣s"])
def test_no_durations(text: str) -> None:
    with pytest.raises(Wrong):
        seconds(text)


@pytest.mark.parametrize(
    "text, name, parameter",
    [
        ("./tasks.jsonl", "suite", "./tasks.jsonl"),
        ("tasks.jsonl", "suite", "tasks.jsonl"),
        ("/a b/Ü.jsonl", "suite", "/a b/Ü.jsonl"),
        ("~/c@d:e.jsonl", "suite", "~/c@d:e.jsonl"),
        ("suite:other.txt", "suite", "other.txt"),
        ("bench:dir/x.jsonl", "bench", "dir/x.jsonl"),
        ("bench", "bench", None),
    ],
)
def test_the_path_of_a_file_of_lines_names_a_suite(text: str, name: str, parameter: str | None) -> None:
    selector = parse_selector(text)
    assert (selector.text, selector.name, selector.split, selector.parameter) == (text, name, None, parameter)


def test_a_path_of_anything_else_is_no_selector() -> None:
    with pytest.raises(ConfigError) as refused:
        parse_selector("dir/tasks.json")
    assert refused.value.hint is not None and ".jsonl" in refused.value.hint


# ── whatever a line says ─────────────────────────────────────────────────────────────────────────────────────────────

NAMES = "id instruction grade expect gold tool_server tools name effect files set state tool_calls all calls args"
WORDS = st.sampled_from([*NAMES.split(), "contains", "regex", "deadline", "result", "inputSchema", "properties", "t"])
ANY: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(WORDS, ANY, max_size=6))
def test_any_line_is_a_task_or_a_fault(line: dict[str, Any]) -> None:
    found: list[str] = []
    try:
        suite({**PLAIN, **line})
    except ConfigError as refused:
        found = [str(fault) for fault in refused.faults] or ["none"]
    assert all(fault.startswith("line 1: $") for fault in found)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_suite_or_a_fault(data: bytes) -> None:
    with pytest.raises(ConfigError):
        parse_suite(data, "s.jsonl")
