"""MCP servers as files declare them: what is right is read, everything wrong is told with its path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalcore.builtin.mcp.config import (
    HttpServer,
    StdioServer,
    expand,
    missing_variables,
    read_file,
    read_named,
    read_servers,
    shown,
)
from evalcore.errors import ConfigError
from evalcore.values.faults import Faults


def faults_of(tmp_path: Path, value: Any) -> list[str]:
    file = tmp_path / "mcp.json"
    file.write_text(value if isinstance(value, str) else json.dumps(value))
    with pytest.raises(ConfigError) as caught:
        read_file(file, "mcp.json")
    return [str(fault) for fault in caught.value.faults] or [caught.value.message]


def servers_of(value: dict[str, Any]) -> dict[str, Any]:
    faults = Faults()
    found = read_servers(value, where="$.mcpServers", faults=faults)
    assert not list(faults)
    return dict(found)


def test_both_kinds_of_server_are_read_as_clients_write_them(tmp_path: Path) -> None:
    declared = {
        "files": {"command": "mcp-files", "args": ["${EVALCORE_WORKDIR}"], "env": {"KEY": "${KEY:-none}"}},
        "search": {"type": "http", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": declared}))
    assert read_file(tmp_path / "mcp.json", "mcp.json") == declared
    assert servers_of(declared) == {
        "files": StdioServer("mcp-files", ("${EVALCORE_WORKDIR}",), {"KEY": "${KEY:-none}"}),
        "search": HttpServer("https://example.org/mcp", {"Authorization": "Bearer ${TOKEN}"}),
    }


@pytest.mark.parametrize(
    "server, where, message",
    [
        ({}, "$.mcpServers.a", "has neither `command` nor `url`"),
        ({"command": "x", "url": "http://h/"}, "$.mcpServers.a", "has both `command` and `url`"),
        ({"command": " "}, "$.mcpServers.a.command", "names no program"),
        ({"command": "x", "args": "y"}, "$.mcpServers.a.args", "expected an array, got the text 'y'"),
        ({"command": "x", "args": [1]}, "$.mcpServers.a.args[0]", "expected text, got 1"),
        ({"command": "x", "arg": []}, "$.mcpServers.a.arg", "unknown key (did you mean 'args'?)"),
        ({"command": "x", "env": {"A=B": "c"}}, '$.mcpServers.a.env."A=B"', "not the name of a variable"),
        ({"command": "x", "args": ["${A"]}, "$.mcpServers.a.args[0]", "${ begins no variable"),
        ({"command": "x\0"}, "$.mcpServers.a.command", "a null character"),
        ({"url": "ftp://h/"}, "$.mcpServers.a.url", "'ftp://h/' is no address"),
        ({"url": "http://h:99999/"}, "$.mcpServers.a.url", "is no address"),
        ({"url": "http://h/ x"}, "$.mcpServers.a.url", "is no address"),
        ({"url": "http://h/", "headers": {"A": "b\r\nC: d"}}, "$.mcpServers.a.headers.A", "no header of HTTP"),
        ({"type": "sse", "url": "http://h/"}, "$.mcpServers.a.type", "the transport 'sse' was replaced"),
        ({"type": "stdio", "url": "http://h/"}, "$.mcpServers.a.type", "expected"),
        (7, "$.mcpServers.a", "expected a server, got 7"),
    ],
)
def test_what_is_wrong_with_a_server_is_told_with_its_path(
    server: Any, where: str, message: str, tmp_path: Path
) -> None:
    (found,) = faults_of(tmp_path, {"mcpServers": {"a": server}})
    assert found.startswith(f"{where}: ") and message in found


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", "mcp.json: no JSON: "),
        ('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', "key 'a' twice in one object"),
        ("[]", "$: expected a table with mcpServers"),
        ("{}", "$.mcpServers: missing"),
        ('{"mcpServers": []}', "$.mcpServers: expected a table"),
        ('{"mcpServers": {}, "servers": {}}', "$.servers: unknown key (did you mean 'mcpServers'?)"),
        ('{"mcpServers": {"a/b": {"command": "x"}}}', "$.mcpServers.\"a/b\": 'a/b' is no name of a server"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(text: str, message: str, tmp_path: Path) -> None:
    assert any(message in found for found in faults_of(tmp_path, text))


def test_every_fault_of_a_file_is_told_at_once(tmp_path: Path) -> None:
    found = faults_of(tmp_path, {"mcpServers": {"a": {"command": ""}, "b": {"url": "x"}, "c": {}}, "more": 1})
    assert [fault.partition(": ")[0] for fault in found] == [
        "$.more",
        "$.mcpServers.a.command",
        "$.mcpServers.b.url",
        "$.mcpServers.c",
    ]


def test_a_file_that_is_not_there_is_no_traceback(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^cannot read none\.json: No such file"):
        read_file(tmp_path / "none.json", "none.json")


@pytest.mark.parametrize(
    "text, expected, secrets",
    [
        ("plain $A {A} $$", "plain $A {A} $$", ()),
        ("${A}-${A}", "secret-a-secret-a", ("secret-a", "secret-a")),
        ("${NONE:-there}", "there", ()),
        ("${EMPTY:-there}", "there", ()),
        ("${EMPTY}", "", ()),
        ("${NONE:-}", "", ()),
        ("${HOME}", "/here", ()),
        ("${EVALCORE_WORKDIR}/x", "/folder/x", ()),
    ],
)
def test_variables_are_replaced_as_clients_do(text: str, expected: str, secrets: tuple[str, ...]) -> None:
    environ = {"A": "secret-a", "EMPTY": "", "HOME": "/here", "EVALCORE_WORKDIR": "/not/this"}
    made = expand(text, {"EVALCORE_WORKDIR": "/folder"}, environ)
    assert (made.text, made.secrets) == (expected, secrets)


def test_what_replaces_a_variable_is_not_looked_at_again() -> None:
    assert expand("${A}", {}, {"A": "${B}", "B": "b"}).text == "${B}"


def test_variables_that_are_not_set_are_named_with_their_place() -> None:
    server = StdioServer("x", ("a", "${ONE}"), {"K": "${TWO}-${EVALCORE_WORKDIR}"})
    assert missing_variables(server, {"TWO": "2"}) == [("args[1]", "ONE")]


def test_a_person_is_shown_what_is_declared_and_what_is_passed_on_but_no_value() -> None:
    server = StdioServer("bin/server", ("${EVALCORE_WORKDIR}",), {"KEY": "${API_KEY}"})
    assert shown(server, "/etc/mcp") == ["/etc/mcp/bin/server", "${EVALCORE_WORKDIR}", "# passes on API_KEY"]
    assert shown(HttpServer("http://h/mcp"), "/etc") == ["connect to", "http://h/mcp"]


def test_a_suites_servers_are_read_from_names_and_addresses() -> None:
    faults = Faults()
    found = read_named(["a=http://127.0.0.1:1/mcp?x=1=2", "b=https://h/"], where="$.mcp", faults=faults)
    assert found == {"a": {"url": "http://127.0.0.1:1/mcp?x=1=2"}, "b": {"url": "https://h/"}} and not list(faults)
    for wrong, message in (
        ("a=http://h", "expected an array"),
        ([], "an empty one"),
        ([3], "expected text, got 3"),
        (["http://h"], "has no name"),
        (["=http://h"], "has no name"),
        (["a=http://h", "a=http://i"], "the name of another server, too"),
        (["a=h"], "is no address"),
    ):
        faults = Faults()
        read_named(wrong, where="$.mcp", faults=faults)
        assert any(message in str(fault) and str(fault).startswith("$.mcp") for fault in faults), wrong
