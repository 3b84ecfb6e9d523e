"""One HTTP request and its reply, over ASGI: what every door reads and writes."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final, TypeAlias

import orjson

from evalcore.values.json import has_odd_float

Scope: TypeAlias = MutableMapping[str, Any]  # an ASGI scope and its messages: plain mappings, by the ASGI standard
Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]

JSON: Final = b"application/json"
EVENT_STREAM: Final = b"text/event-stream"


class TooLarge(Exception):
    """A request body over the cap."""


class Exchange:
    """One request. `status` is what was answered, 0 as long as nothing was; `rest` is the path within the door."""

    __slots__ = ("_more", "_receive", "_send", "method", "rest", "scope", "status")

    def __init__(self, scope: Scope, receive: Receive, send: Send, rest: str) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        self.rest = rest
        self.status = 0
        self._receive = receive
        self._send = send
        self._more = True

    def header(self, name: bytes) -> bytes | None:
        """The first header of that name (in lower case)."""
        return header(self.scope, name)

    async def body(self, cap: int) -> bytes:
        """The whole body. Raises TooLarge, before it is in memory."""
        declared = self.header(b"content-length")
        if declared is not None and declared.isdigit() and int(declared[:20]) > cap:
            raise TooLarge
        parts: list[bytes] = []
        size = 0
        while self._more:
            event = await self._receive()
            part = event.get("body", b"")
            size += len(part)
            if size > cap:
                raise TooLarge
            parts.append(part)
            self._more = event["type"] == "http.request" and event.get("more_body", False)
        return b"".join(parts)

    async def hung_up(self) -> None:
        """Wait until the client is gone. Only after its request was read."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def send(self, event: Event) -> None:
        """Pass an ASGI event on, and note the status."""
        if event["type"] == "http.response.start":
            self.status = event["status"]
        await self._send(event)

    def replay(self, body: bytes) -> Receive:
        """A `receive` for an application that is to see a body already read; after it, the client's own events."""
        waiting = True

        async def receive() -> Event:
            nonlocal waiting
            if waiting:
                waiting = False
                return {"type": "http.request", "body": body, "more_body": False}
            return await self._receive()

        return receive

    async def reply(
        self, status: int, body: bytes, kind: bytes = JSON, more: Mapping[bytes, bytes] | None = None
    ) -> None:
        """Answer at once."""
        headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body)), *(more or {}).items()]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})

    async def begin_stream(self) -> None:
        """Begin to answer with server-sent events."""
        headers = [(b"content-type", EVENT_STREAM), (b"cache-control", b"no-cache")]
        await self.send({"type": "http.response.start", "status": 200, "headers": headers})

    async def stream(self, data: bytes, *, last: bool = False) -> None:
        """The next piece of a stream."""
        await self.send({"type": "http.response.body", "body": data, "more_body": not last})


def header(scope: Scope, name: bytes) -> bytes | None:
    """A request's first header of that name (in lower case)."""
    return next((value for key, value in scope["headers"] if key == name), None)


def write_json(value: object) -> bytes:
    """JSON for the wire, nothing lost: what the fast encoder refuses or garbles is written by the standard one."""
    try:
        fast = orjson.dumps(value)
    except (TypeError, ValueError):
        return json.dumps(value, separators=(",", ":")).encode("ascii")
    if b"null" in fast and has_odd_float(value):
        return json.dumps(value, separators=(",", ":")).encode("ascii")
    return fast
