"""The tool wire on standard input and output: the SDK's own client in both eras, errors, cancellation, and the end."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest

from evalcore.values.json import JSONObject
from evalcore.values.task import Limits
from evalcore.wires.stdio_shim import LINE_CAP, Shim, check_url
from tests.integration.wire_rig import MODERN, TOOLS, modern, on_loop, open_wires, serving, stdio, until

PROGRAM: Final = str(Path(sys.executable).with_name("evalcore"))


def arguments(method: str, params: JSONObject, number: int = 1) -> bytes:
    """A request of the newest revision, as a line."""
    return modern(method, params, number)[1] + b"\n"


def piped(url: str, *lines: bytes) -> list[Any]:
    """What a shim at `url` answers to the lines, in the order of the answers' ids."""
    said: list[bytes] = []
    Shim(url, io.BytesIO(b"".join(lines)), said.append).run()
    assert all(line.count(b"\n") == 1 and line.endswith(b"\n") for line in said)
    return sorted(map(json.loads, said), key=lambda m: str(m.get("id")))


# ── against the wire itself ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", ["auto", "legacy", MODERN])
@on_loop
async def test_the_sdks_stdio_client_lists_and_calls_in_both_eras(mode: str) -> None:
    from mcp import Client, StdioServerParameters
    from mcp.shared.exceptions import MCPError

    async with serving() as server:
        wires = await open_wires(server, limits=Limits(tool_calls=3))
        here = StdioServerParameters(
            command=PROGRAM, args=["mcp-stdio"], env={"EVALCORE_MCP_URL": wires.tool_door.url}, cwd="/"
        )
        async with Client(stdio(here), mode=mode, cache=None) as session:
            listed = (await session.list_tools()).tools
            answers: list[Any] = await asyncio.gather(
                session.call_tool("echo", {"x": 5.0, "ü": "\n"}), session.call_tool("fail", {})
            )
            await session.call_tool("words", {})
            with pytest.raises(MCPError, match="limit on tool_calls"):
                await session.call_tool("echo", {})
    assert [t.name for t in listed] == list(TOOLS)
    assert listed[0].input_schema == wires.episode.tools()[0].input_schema
    assert [a.is_error for a in answers] == [False, True]
    assert json.loads(answers[0].content[0].text) == {"x": 5.0, "ü": "\n"}
    assert sorted(str(e["tool"]) for e in wires.events("tool.call")) == ["echo", "fail", "words"]
    versions = {e["protocol"] for e in wires.events("wire.client")}
    assert versions == {"2025-11-25" if mode == "legacy" else MODERN}


@on_loop
async def test_names_beyond_ascii_and_odd_arguments_pass_as_they_are() -> None:
    async with serving() as server:
        wires = await open_wires(server)
        lone: JSONObject = {"lone": "\ud800", "big": 2**80, "five": 5.0}
        answers = await asyncio.to_thread(
            piped,
            wires.tool_door.url,
            arguments("tools/call", {"name": "größe", "arguments": {}}, 1),
            arguments("tools/call", {"name": "echo", "arguments": lone}, 2),
        )
    assert answers[0]["result"]["content"][0]["text"] == "unknown tool: größe"
    assert wires.episode.seen == [("echo", lone)]


@on_loop
async def test_a_wire_that_is_gone_is_an_error_for_every_request() -> None:
    async with serving() as server:
        wires = await open_wires(server)
        url = wires.tool_door.url
        await wires.tool_door.close()
        (closed,) = await asyncio.to_thread(piped, url, arguments("tools/list", {}, 7))
    (gone,) = await asyncio.to_thread(piped, url, arguments("tools/list", {}, 8))
    assert (closed["id"], closed["error"]) == (7, {"code": -32000, "message": "HTTP 404: not found"})
    assert gone["id"] == 8 and "does not answer" in gone["error"]["message"]


@on_loop
async def test_a_cancelled_call_is_hung_up_on_and_never_answered() -> None:
    async with serving() as server:
        wires = await open_wires(server)
        process = await asyncio.to_thread(start, wires.tool_door.url)
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(arguments("tools/call", {"name": "hang", "arguments": {}}, 1))
        process.stdin.flush()
        await until(lambda: wires.episode.seen)
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        process.stdin.write(json.dumps(cancel).encode() + b"\n" + arguments("tools/list", {}, 2))
        process.stdin.flush()
        answer = json.loads(await asyncio.to_thread(process.stdout.readline))
        rest, _ = await asyncio.to_thread(process.communicate)
    assert answer["id"] == 2 and rest == b"" and process.returncode == 0


@on_loop
async def test_the_end_of_input_ends_it_even_with_a_call_that_hangs() -> None:
    async with serving() as server:
        wires = await open_wires(server)
        process = await asyncio.to_thread(start, wires.tool_door.url)
        line = arguments("tools/call", {"name": "hang", "arguments": {}}, 1)
        began = time.monotonic()
        said, errors = await asyncio.to_thread(process.communicate, line, 60)
        assert process.returncode == 0 and (said, errors) == (b"", b"")
        assert time.monotonic() - began < 15


@on_loop
async def test_a_session_of_the_handshake_era_is_ended_with_the_input() -> None:
    async with serving() as server:
        wires = await open_wires(server)
        hello = {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "old", "version": "0"}
        }  # fmt: skip
        process = await asyncio.to_thread(start, wires.tool_door.url)
        assert process.stdin is not None and process.stdout is not None
        for message in (
            {"id": "a", "method": "initialize", "params": hello},
            {"method": "notifications/initialized"},
            {"id": "b", "method": "tools/call", "params": {"name": "echo", "arguments": {"n": 1}}},
        ):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            process.stdin.flush()
            if "id" in message:
                assert json.loads(await asyncio.to_thread(process.stdout.readline))["id"] == message["id"]
        assert len(wires.tool_door._manager._server_instances) == 1  # type: ignore[attr-defined]
        await asyncio.to_thread(process.communicate)
        await until(lambda: not wires.tool_door._manager._server_instances)  # type: ignore[attr-defined]
    assert wires.episode.seen == [("echo", {"n": 1})]


def start(url: str) -> subprocess.Popen[bytes]:
    """The shim alone, as the harness `command` starts it."""
    return subprocess.Popen(
        [sys.executable, "-m", "evalcore.wires.stdio_shim"],
        env={"EVALCORE_MCP_URL": url},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


# ── against a server that answers in other ways ──────────────────────────────────────────────────────────────────────


class Odd(BaseHTTPRequestHandler):
    """Answers a request as `replies` say for its method: status, type, and pieces of a body."""

    protocol_version = "HTTP/1.1"
    replies: ClassVar[dict[str, tuple[int, str, list[bytes]]]] = {}

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, kind, pieces = self.replies[message["method"]]
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def odd_server(**replies: tuple[int, str, list[bytes]]) -> Iterator[str]:
    Odd.replies = {name.replace("_", "/"): reply for name, reply in replies.items()}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Odd)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_an_event_stream_is_passed_on_event_by_event() -> None:
    progress = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{}}'
    pieces = [
        b": hello\n\nid: 1\ndata:\n\nda",
        b"ta: " + progress + b'\n\ndata: {\ndata: "id":1,\r\n',
        b'data: "result":{}}\n\n',
    ]
    with odd_server(a_b=(200, "text/event-stream; charset=utf-8", pieces)) as url:
        answers = piped(url, arguments("a/b", {}, 1))
    assert sorted(map(str, answers)) == sorted(map(str, [json.loads(progress), {"id": 1, "result": {}}]))


@pytest.mark.parametrize(
    "reply, code, text",
    [
        ((200, "text/event-stream", [b"data: {}\n\n"]), -32000, "ended without an answer"),
        ((502, "text/html", [b"<html>"]), -32000, "HTTP 502"),
        ((200, "application/json", [b"no json"]), -32000, "HTTP 200"),
        ((200, "application/json", [b'{"id": 99, "result": {}}']), -32000, "HTTP 200"),
        ((307, "text/plain", []), -32000, "HTTP 307"),
        ((400, "application/json", [b'{"id": null, "error": {"code": -7, "message": "no"}}']), -7, "HTTP 400: no"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_an_error_with_the_requests_id(
    reply: tuple[int, str, list[bytes]], code: int, text: str
) -> None:
    with odd_server(a_b=reply) as url:
        (answer,) = piped(url, arguments("a/b", {}, 1))
    assert (answer["id"], answer["error"]["code"]) == (1, code) and text in answer["error"]["message"]


def test_an_error_with_data_reaches_the_client_whole_and_on_one_line() -> None:
    body = (
        b'{\n "jsonrpc": "2.0", "id": 1,\r\n "error": {"code": -32022, "message": "no", "data": {"supported": []}}\n}'
    )
    with odd_server(a_b=(400, "application/json", [body])) as url:
        (answer,) = piped(url, arguments("a/b", {}, 1))
    assert answer == json.loads(body)


def test_lines_that_are_no_request_are_told_and_the_rest_goes_on() -> None:
    long = b'"' + b"x" * LINE_CAP + b'"\n'
    with odd_server(a_b=(200, "application/json", [b'{"id":1,"result":1}'])) as url:
        said = piped(url, b"nonsense\n", b"\n", b"[1]\n", b"[" * 100_000 + b"\n", long, arguments("a/b", {}, 1))
    assert [m["error"]["code"] if "error" in m else m["result"] for m in said] == [1, -32700, -32600, -32700, -32600]


# ── starting ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_it_loads_the_standard_library_alone() -> None:
    code = "import sys, evalcore.wires.stdio_shim; print(*{m.partition('.')[0] for m in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert loaded - set(sys.stdlib_module_names) <= {"evalcore", "__main__", "__mp_main__", *_of_the_environment()}
    assert "asyncio" not in loaded and "subprocess" not in loaded


def _of_the_environment() -> set[str]:
    """What this environment loads into every program (editable installs do so)."""
    done = subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_it_starts_within_ten_times_its_time() -> None:
    with odd_server(a_b=(200, "application/json", [b'{"id":1,"result":1}'])) as url:
        began = time.monotonic()
        done = subprocess.run(
            [PROGRAM, "mcp-stdio", url], input=arguments("a/b", {}, 1), capture_output=True, check=True, timeout=60
        )
    assert json.loads(done.stdout)["result"] == 1
    assert time.monotonic() - began < 3


@pytest.mark.parametrize(
    "url", ["", "ftp://a/b", "http://", "http://u:secret@a/", "http://a:port/", "http://a/ b", "http://a/\nb: c"]
)
def test_a_url_that_is_none_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is what is looked at
        check_url(url)
    assert "secret" not in str(caught.value)
    program = [PROGRAM, "mcp-stdio", *([url] if url else [])]
    done = subprocess.run(program, capture_output=True, text=True, check=False, env={"PATH": ""})
    assert done.returncode == 2 and done.stderr.startswith("error: ") and "secret" not in done.stderr
