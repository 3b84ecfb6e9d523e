"""Server-sent events of the model wire: as a provider gives them, or cut from a whole answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Final

from evalcore.errors import EvalcoreError
from evalcore.values.json import JSONObject
from evalcore.wires.gateway.dialects import CHAT
from evalcore.wires.http.door import Door, DoorClosed
from evalcore.wires.http.exchange import EVENT_STREAM, Exchange, write_json
from evalcore.wires.http.model_errors import Failure, failure

DONE: Final = b"data: [DONE]\n\n"
WAITING: Final = b": waiting for the model\n\n"  # a comment: keeps a client's read time-out from running out
PATIENCE_S: Final = 15.0  # how long a stream waits for the model before it begins, and then between signs of life


def sse(event: JSONObject, dialect: str) -> bytes:
    """One event: unnamed in Chat Completions, named by its type elsewhere."""
    data = write_json(event)
    if dialect == CHAT:
        return b"data: %s\n\n" % data
    return b"event: %s\ndata: %s\n\n" % (str(event.get("type")).encode(), data)


def whole_stream(events: Iterable[JSONObject], dialect: str) -> bytes:
    """All events of an answer, and the mark that ends Chat Completions."""
    return b"".join(sse(event, dialect) for event in events) + (DONE if dialect == CHAT else b"")


class Delivery:
    """Sends the events of one answer to one agent, as long as it listens."""

    def __init__(self, door: Door, exchange: Exchange, dialect: str) -> None:
        self._door = door
        self._exchange = exchange
        self._dialect = dialect
        self._number = 0
        self._sent = False  # since the last look

    async def send(self, events: AsyncGenerator[JSONObject]) -> None:
        """Send events as they come. When the agent hangs up, nothing more is asked for."""
        sending = asyncio.ensure_future(self._door.carry_out(self._pass_on(events)))
        listening = asyncio.ensure_future(self._attend())
        try:
            await asyncio.wait((sending, listening), return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():
                self._door.tell("wire.hangup", wire="model", dialect=self._dialect)
                sending.cancel()
                await asyncio.wait((sending,))
                return
            await self._end(sending)
        finally:
            listening.cancel()
            sending.cancel()

    async def _pass_on(self, events: AsyncGenerator[JSONObject]) -> None:
        exchange, dialect = self._exchange, self._dialect
        async with aclosing(events) as coming:
            async for event in coming:
                if not exchange.status:
                    await exchange.begin_stream()
                self._number += 1
                self._sent = True
                await exchange.stream(sse(event, dialect))

    async def _attend(self) -> None:
        """Until the agent hangs up; it gets a sign of life where nothing else comes for long."""
        while True:
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await self._exchange.hung_up()
                    return
            except TimeoutError:
                if not self._sent:
                    if not self._exchange.status:
                        await self._exchange.begin_stream()
                    await self._exchange.stream(WAITING)
                self._sent = False

    async def _end(self, sending: asyncio.Task[None]) -> None:
        error = sending.exception()
        if error is None:
            await self._exchange.stream(DONE if self._dialect == CHAT else b"", last=True)
        elif isinstance(error, (EvalcoreError, DoorClosed)):
            await self._fail(failure(error))
        else:
            raise error

    async def _fail(self, told: Failure) -> None:
        if self._exchange.status:  # too late for a status: the error is the last event
            await self._exchange.stream(told.event(self._dialect, self._number), last=True)
        else:
            await self._exchange.reply(told.status, told.body(self._dialect), more=told.headers)


async def deliver_whole(exchange: Exchange, answer: asyncio.Future[bytes], dialect: str) -> None:
    """Wait for an answer, with signs of life once it takes long; then send its events at once."""
    try:
        while not (await asyncio.wait((answer,), timeout=PATIENCE_S))[0]:
            if not exchange.status:
                await exchange.begin_stream()
            await exchange.stream(WAITING)
        events = answer.result()
    except (EvalcoreError, DoorClosed) as error:
        told = failure(error)
        if exchange.status:
            await exchange.stream(told.event(dialect, 0), last=True)
        else:
            await exchange.reply(told.status, told.body(dialect), more=told.headers)
        return
    finally:
        answer.cancel()
    if exchange.status:
        await exchange.stream(events, last=True)
    else:
        await exchange.reply(200, events, EVENT_STREAM, {b"cache-control": b"no-cache"})
