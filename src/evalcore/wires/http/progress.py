"""A reply to one tool call: JSON, or a stream of events once the tool says how far it is.

A JSON reply costs a third of an event stream, so a reply becomes a stream only when there is something to say before
its end. Both eras of MCP allow a server to choose.
"""

from __future__ import annotations

from evalcore.wires.http.exchange import Event, Exchange, write_json


class Progressive:
    """What the SDK sends goes through here."""

    __slots__ = ("_body", "_ended", "_streaming", "exchange")

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self._streaming = False
        self._ended = False
        self._body: list[bytes] = []

    def can_stream(self) -> bool:
        """Whether the client takes a stream."""
        return b"text/event-stream" in (self.exchange.header(b"accept") or b"")

    async def progress(self, token: str | int, progress: float, total: float | None, message: str | None) -> None:
        """Tell the client how far its call is; from now on the reply is a stream. After the end, nothing."""
        if self._ended or (self.exchange.status and not self._streaming):
            return
        params: dict[str, object] = {"progressToken": token, "progress": progress}
        params |= {k: v for k, v in (("total", total), ("message", message)) if v is not None}
        said = write_json({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        if not self._streaming:
            self._streaming = True
            await self.exchange.begin_stream()
        await self.exchange.stream(_framed(said))

    async def send(self, event: Event) -> None:
        """Pass an event of the SDK's reply on; in a stream, the reply is its last message."""
        if not self._streaming:
            await self.exchange.send(event)
            return
        if event["type"] == "http.response.body":
            self._body.append(event.get("body", b""))
            if not event.get("more_body", False):
                self._ended = True
                await self.exchange.stream(_framed(b"".join(self._body)), last=True)


def _framed(message: bytes) -> bytes:
    """A JSON-RPC message as an event: JSON on one line."""
    return b"event: message\r\ndata: %s\r\n\r\n" % message
