"""The tool wire for agents that start their MCP servers: JSON-RPC lines on standard input and output, HTTP behind.

    EVALCORE_MCP_URL=… python -m evalcore.wires.stdio_shim        or        evalcore mcp-stdio [URL]

An agent starts one of these per server and trial, and waits for it: so it imports the standard library alone, and of
that little. Messages pass as they came; only what HTTP says in headers (protocol version, method, name, session) is
read from them. Every request is a thread, its answer may be JSON or an event stream, and whatever keeps it from being
answered becomes a JSON-RPC error with its id.
"""

from __future__ import annotations

import base64
import json
import os
import re
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, BinaryIO, Final
from urllib.parse import urlsplit

URL: Final = "EVALCORE_MCP_URL"  # holds a token: in the environment only its owner can read it, in an argv everybody
LINE_CAP: Final = 16 << 20  # bytes of one message from the agent; the wire has its own, lower one
REPLY_CAP: Final = 64 << 20  # bytes of one message from the server
AT_ONCE: Final = 64  # requests under way; more wait
CONNECT_S: Final = 10.0
NOTIFY_S: Final = 30.0  # for what has no answer
LINGER_S: Final = 1.5  # after the end of input: shorter than the SDK's clients wait before they use force
MODERN: Final = "2026-07-28"  # from this revision on no handshake: every message says what it speaks

INTERNAL, INVALID, PARSE, CLOSED = -32603, -32600, -32700, -32000  # JSON-RPC's codes; the last is a server's own

_ENDLESS: Final = ("", "subscriptions/listen")  # the first is our own, see `_listen`
_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
_NAMED: Final[Mapping[str, str]] = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_CODED: Final = re.compile(r"=\?base64\?.*\?=")
_PLAIN: Final = re.compile(r"[\x20-\x7E]*")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")


def check_url(url: str) -> str:
    """The URL, if requests can be sent there. Raises ValueError, which never repeats the URL: it holds a token."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("expected the URL of a tool wire, http://HOST:PORT/…")
    if parts.username is not None or parts.password is not None:
        raise ValueError("the URL has a user or a password; a tool wire's has neither")
    _ = parts.port  # ValueError where it is none
    if not _PLAIN.fullmatch(url) or " " in url:
        raise ValueError("the URL has characters that no URL has")
    return url


class Shim:
    """One agent on `lines` and `write`, one tool wire at `url`. `run` returns when the input ends."""

    def __init__(self, url: str, lines: BinaryIO, write: Callable[[bytes], None]) -> None:
        parts = urlsplit(check_url(url))
        self._host, self._port = str(parts.hostname), parts.port
        self._kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._lines = lines
        self._write = write
        self._lock = threading.Lock()  # of what follows, and of the output
        self._idle: list[HTTPConnection] = []
        self._calls: dict[str, _Call] = {}  # by the request's id, as JSON
        self._room = threading.BoundedSemaphore(AT_ONCE)
        self._session: str | None = None
        self._version: str | None = None
        self._over = False

    def run(self) -> None:
        """Pass messages on until the input ends, give what is under way a moment, and end the session."""
        try:
            for line in self._read():
                self._take(line)
        finally:
            self._end()

    # ── from the agent ───────────────────────────────────────────────────────────────────────────────────────────────

    def _read(self) -> Iterator[bytes]:
        while line := self._lines.readline(LINE_CAP + 1):
            if len(line) > LINE_CAP:
                while line and not line.endswith(b"\n"):
                    line = self._lines.readline(LINE_CAP)
                self._say_error(None, INVALID, f"a message of more than {LINE_CAP} bytes")
            elif line := line.strip():
                yield line

    def _take(self, line: bytes) -> None:
        """One message."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self._say_error(None, PARSE, "a line that is no JSON")
            return
        if not isinstance(message, dict):
            self._say_error(None, INVALID, "a line that is no JSON-RPC message; batches are not taken")
            return
        method = message.get("method")
        if isinstance(method, str) and message.get("id") is not None:
            call = _Call(message, line)
            with self._lock:
                self._calls[call.key] = call
            threading.Thread(target=self._ask, args=(call,), daemon=True).start()
        elif method != "notifications/cancelled" or not self._drop(message):
            self._notify(message, line)

    def _drop(self, message: dict[str, Any]) -> bool:
        """Whether a cancellation was of a request that HTTP cancels by hanging up: so it is from 2026-07-28 on."""
        params = message.get("params")
        with self._lock:
            call = self._calls.get(_key(params.get("requestId"))) if isinstance(params, dict) else None
        if call is None or call.version is None or call.version < MODERN:
            return False
        call.hang_up()
        return True

    def _notify(self, message: dict[str, Any], line: bytes) -> None:
        """Send what has no answer, in order. Nobody can be told that it failed."""
        with suppress(OSError, HTTPException, _Failed):
            connection = self._connection(NOTIFY_S)
            self._send(connection, message, line)
            self._finish(connection, connection.getresponse())
        if message.get("method") == "notifications/initialized":
            threading.Thread(target=self._listen, daemon=True).start()

    # ── to the server, and back ──────────────────────────────────────────────────────────────────────────────────────

    def _ask(self, call: _Call) -> None:
        """Send a request, and its answer back: an answer in any case, unless it was cancelled."""
        failed: tuple[int, str] | None = None
        with self._room:
            try:
                if not call.dropped:
                    self._exchange(call)
            except _Failed as error:
                failed = (error.code, str(error))
            except (OSError, HTTPException, ValueError) as error:
                failed = (CLOSED, f"the tool wire does not answer: {type(error).__name__}")
            except Exception as error:  # noqa: BLE001 - a bug here must not leave the agent waiting
                failed = (INTERNAL, f"the shim failed: {type(error).__name__}")
        with self._lock:
            if self._calls.get(call.key) is call:
                del self._calls[call.key]
        if failed is not None and not call.dropped:
            self._say_error(call.id, *failed)

    def _exchange(self, call: _Call) -> None:
        connection = self._connection(None)
        call.connection = connection
        try:
            self._send(connection, call.message, call.line)
            response = connection.getresponse()
            if call.method == "initialize":
                self._session = response.headers.get("Mcp-Session-Id")
            if response.status == 200 and _is_stream(response):
                if not any(self._pass_on(data, call) for data in _events(response)):
                    raise _Failed(CLOSED, "the server's stream ended without an answer")
                connection.close()  # whatever may come after the answer, nobody waits for it
                return
            body = self._finish(connection, response)
        except BaseException:
            connection.close()
            raise
        finally:
            call.connection = None
        if self._pass_on(body, call):
            return  # an error too: it may hold what the client goes on with, such as the revisions that are spoken
        raise _error_of(response.status, body)

    def _pass_on(self, data: bytes, call: _Call | None = None) -> bool:
        """Hand a message to the agent; whether it was the answer to the call."""
        try:
            message = json.loads(data)
        except (ValueError, RecursionError):
            return False
        if not isinstance(message, dict):
            return False
        is_answer = "method" not in message and ("result" in message or "error" in message)
        if not is_answer and "method" not in message:
            return False  # nothing that JSON-RPC knows
        if is_answer and (call is None or _key(message.get("id")) != call.key):
            return False
        if is_answer and call is not None and call.method == "initialize":
            result = message.get("result")
            version = result.get("protocolVersion") if isinstance(result, dict) else None
            self._version = version if isinstance(version, str) and _DATE.fullmatch(version) else None
        if call is None or not call.dropped:
            self._say(data)
        return is_answer

    def _listen(self) -> None:
        """What a server says of its own accord, in the era of handshakes; one that says nothing refuses."""
        call = _Call({"id": None, "method": ""}, b"")
        with suppress(OSError, HTTPException, _Failed, ValueError):
            call.connection = self._connection(None)
            with self._lock:
                self._calls["(listening)"] = call
            headers = {"Accept": "text/event-stream", **self._era({})}
            call.connection.request("GET", self._path, headers=headers)
            response = call.connection.getresponse()
            if response.status == 200 and _is_stream(response):
                for data in _events(response):
                    self._pass_on(data)
            call.connection.close()

    def _send(self, connection: HTTPConnection, message: dict[str, Any], line: bytes) -> None:
        kinds = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        connection.request("POST", self._path, body=line, headers=kinds | self._era(message))

    def _era(self, message: dict[str, Any]) -> dict[str, str]:
        """The headers that repeat what a message says, or what the handshake said."""
        version = _version_of(message)
        if version is None:
            if message.get("method") == "initialize":
                return {}
            own = {"Mcp-Session-Id": self._session, "MCP-Protocol-Version": self._version}
            return {name: value for name, value in own.items() if value is not None}
        method = str(message.get("method"))
        headers = {"MCP-Protocol-Version": version, "Mcp-Method": _header(method)}
        params = message["params"]
        named = params.get(_NAMED.get(method, ""))
        return headers | {"Mcp-Name": _header(named)} if isinstance(named, str) else headers

    # ── connections ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _connection(self, timeout_s: float | None) -> HTTPConnection:
        """An idle connection that the server has not closed, or a new one: a request is never sent twice."""
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                connection = self._kind(self._host, self._port, timeout=CONNECT_S)
                connection.connect()
            elif select.select((connection.sock,), (), (), 0)[0]:
                connection.close()
                continue
            connection.sock.settimeout(timeout_s)
            return connection

    def _finish(self, connection: HTTPConnection, response: HTTPResponse) -> bytes:
        """The body; the connection is then free for the next request."""
        body = response.read(REPLY_CAP + 1)
        if len(body) > REPLY_CAP:
            connection.close()
            raise _Failed(INTERNAL, f"the server's answer has more than {REPLY_CAP} bytes")
        if response.will_close or not response.isclosed():
            connection.close()
        else:
            with self._lock:
                self._idle.append(connection)
        return body

    def _end(self) -> None:
        deadline = time.monotonic() + LINGER_S
        while time.monotonic() < deadline and any(call.method not in _ENDLESS for call in self._under_way()):
            time.sleep(0.005)
        with self._lock:
            self._over = True  # nothing more is written, whoever still wants to
        for call in self._under_way():
            call.hang_up()
        if self._session is not None:
            with suppress(OSError, HTTPException, _Failed):
                connection = self._connection(1.0)
                connection.request("DELETE", self._path, headers=self._era({}))
                connection.getresponse().read(1024)
                connection.close()
        for idle in self._idle:
            idle.close()

    def _under_way(self) -> list[_Call]:
        return list(self._calls.values())  # one step, which no other thread comes between

    # ── to the agent ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _say(self, data: bytes) -> None:
        """One message as one line: outside of its texts, JSON has line ends only as white space."""
        line = data.strip().replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"
        with self._lock:
            if not self._over:
                try:
                    self._write(line)
                except OSError:
                    self._over = True  # nobody reads any more; the end of input will come

    def _say_error(self, identifier: object, code: int, message: str) -> None:
        error = {"jsonrpc": "2.0", "id": identifier, "error": {"code": code, "message": message}}
        self._say(json.dumps(error).encode("ascii"))


class _Failed(Exception):
    """Why a request has no answer, as a JSON-RPC error says it."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class _Call:
    """A request under way."""

    def __init__(self, message: dict[str, Any], line: bytes) -> None:
        self.message = message
        self.line = line
        self.id = message["id"]
        self.key = _key(self.id)
        self.method = str(message["method"])
        self.version = _version_of(message)
        self.connection: HTTPConnection | None = None
        self.dropped = False

    def hang_up(self) -> None:
        """End it; the thread that waits for its answer wakes up."""
        self.dropped = True
        connection = self.connection
        if connection is not None and connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)


def _key(identifier: object) -> str:
    return json.dumps(identifier)


def _version_of(message: dict[str, Any]) -> str | None:
    """The revision that a message names for itself, from 2026-07-28 on."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    version = meta.get(_VERSION) if isinstance(meta, dict) else None
    return version if isinstance(version, str) and _PLAIN.fullmatch(version) else None


def _header(value: str) -> str:
    """A text as a header holds it: in MCP's own coding unless it is plain."""
    if _PLAIN.fullmatch(value) and value == value.strip() and not _CODED.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode('ascii')}?="


def _is_stream(response: HTTPResponse) -> bool:
    kind = response.headers.get("Content-Type") or ""
    return kind.partition(";")[0].strip().lower() == "text/event-stream"


def _events(response: HTTPResponse) -> Iterator[bytes]:
    """The data of each server-sent event as it comes."""
    data: list[bytes] = []
    size = 0
    while line := response.readline(REPLY_CAP + 1):
        size += len(line)
        if size > REPLY_CAP:
            raise _Failed(INTERNAL, f"the server's event has more than {REPLY_CAP} bytes")
        line = line.rstrip(b"\r\n")
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif not line:
            if any(data):
                yield b"\n".join(data)
            data, size = [], 0


def _error_of(status: int, body: bytes) -> _Failed:
    """What a reply that is no answer says; a JSON-RPC error in it keeps its code and text."""
    with suppress(ValueError, RecursionError):
        value = json.loads(body)
        error = value.get("error") if isinstance(value, dict) else None
        if isinstance(error, dict) and isinstance(error.get("message"), str):
            code = error.get("code")
            return _Failed(code if isinstance(code, int) else CLOSED, f"HTTP {status}: {error['message'][:2000]}")
    return _Failed(CLOSED, f"the tool wire answered with HTTP {status}, and no message")


def write_all(data: bytes) -> None:
    """To standard output, past Python's buffers: a thread that is cut off at the end must not hold their lock."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(1, rest) :]


def main() -> int:
    """The shim at the URL in the environment; the exit code."""
    try:
        shim = Shim(os.environ.get(URL, ""), sys.stdin.buffer, write_all)
    except ValueError as error:
        sys.stderr.write(f"error: {URL}: {error}\n")
        return 2
    shim.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
