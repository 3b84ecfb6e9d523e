"""The model wire over HTTP: three dialects, JSON and server-sent events, before one recorded channel.

    POST v1/chat/completions             OpenAI Chat Completions
    POST v1/responses                    OpenAI Responses
    POST v1/messages                     Anthropic Messages
    POST v1/messages/count_tokens        where the provider counts
    GET  v1/models, v1/models/{name}     in the words of whoever asks

How an answer is delivered is between the agent and this door: `stream` and its options are no part of what is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from evalcore.contracts import Recorder, ServedChannel
from evalcore.errors import EvalcoreError
from evalcore.values.json import JSONObject, JSONValue, parse
from evalcore.wires.gateway.dialects import CHAT, MESSAGES, RESPONSES
from evalcore.wires.gateway.dialects.translate import SPOKEN
from evalcore.wires.http.door import Door, DoorClosed
from evalcore.wires.http.exchange import Exchange, TooLarge, write_json
from evalcore.wires.http.model_errors import Failure, failure
from evalcore.wires.http.model_stream import Delivery, deliver_whole, whole_stream

BODY_CAP: Final = 32 << 20  # a long conversation with images

_DIALECTS: Final = {"v1/chat/completions": CHAT, "v1/responses": RESPONSES, "v1/messages": MESSAGES}
_COUNT: Final = "v1/messages/count_tokens"
_MODELS: Final = "v1/models"
_LONG_AGO: Final = "1970-01-01T00:00:00Z"


class ModelDoor(Door):
    """One role's model at `/m/{token}/v1`."""

    def __init__(self, url: str, forget: Callable[[], None], events: Recorder | None, channel: ServedChannel) -> None:
        super().__init__(url, forget, events)
        self._channel = channel

    async def serve(self, exchange: Exchange) -> None:
        """One request of a dialect."""
        path, dialect = exchange.rest, _DIALECTS.get(exchange.rest)
        asks_anthropic = exchange.header(b"anthropic-version") is not None
        if exchange.method == "POST" and dialect is not None:
            await self._answer(exchange, dialect)
        elif exchange.method == "POST" and path == _COUNT:
            await self._count(exchange)
        elif exchange.method == "GET" and path == _MODELS:
            await exchange.reply(200, write_json(_models(self._names(), anthropic=asks_anthropic)))
        elif exchange.method == "GET" and path.startswith(f"{_MODELS}/"):
            await self._model(exchange, path.removeprefix(f"{_MODELS}/"), anthropic=asks_anthropic)
        else:
            known = dialect is not None or path in (_COUNT, _MODELS)
            told = Failure(405, "method not allowed", code="method_not_allowed")
            if not known:
                told = Failure(404, f"no such endpoint: /{path[:200]}", code="unknown_url")
            in_messages = path.startswith("v1/messages") or asks_anthropic
            await exchange.reply(told.status, told.body(MESSAGES if in_messages else CHAT))

    # ── models ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _names(self) -> tuple[str, ...]:
        return self._channel.aliases or (self._channel.model,)

    async def _model(self, exchange: Exchange, name: str, *, anthropic: bool) -> None:
        if self._channel.aliases is not None and name not in self._channel.aliases:
            told = Failure(404, f"the model {name[:200]!r} does not exist here", code="model_not_found")
            await exchange.reply(404, told.body(MESSAGES if anthropic else CHAT))
            return
        await exchange.reply(200, write_json(_model(name, anthropic=anthropic)))

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _answer(self, exchange: Exchange, dialect: str) -> None:
        body = await self._body(exchange, dialect)
        if body is None:
            return
        streamed, options = body.pop("stream", None) is True, body.pop("stream_options", None)
        agent = (exchange.header(b"user-agent") or b"").decode("latin-1")[:200]
        self.tell("wire.client", wire="model", role=self._channel.role, dialect=dialect, agent=agent, stream=streamed)
        if not streamed:
            await self._reply(exchange, body, dialect)
            return
        usage = isinstance(options, dict) and options.get("include_usage") is True
        if self._channel.streams:
            await Delivery(self, exchange, dialect).send(self._channel.stream(body, dialect, with_usage=usage))
        else:
            whole = asyncio.ensure_future(self._cut(body, dialect, with_usage=usage))
            await deliver_whole(exchange, whole, dialect)

    async def _reply(self, exchange: Exchange, body: JSONObject, dialect: str) -> None:
        try:
            response = await self._while_it_listens(exchange, self._channel.complete(body, dialect), dialect)
        except (EvalcoreError, DoorClosed) as error:
            told = failure(error)
            await exchange.reply(told.status, told.body(dialect), more=told.headers)
            return
        if response is not None:
            await exchange.reply(200, write_json(_complete(response) if dialect == CHAT else response))

    async def _while_it_listens(
        self, exchange: Exchange, work: Coroutine[Any, Any, JSONObject], dialect: str
    ) -> JSONObject | None:
        """What `work` gives; None if the agent hangs up first: the provider's work is then ended too."""
        answering = asyncio.ensure_future(self.carry_out(work))
        listening = asyncio.ensure_future(exchange.hung_up())
        try:
            await asyncio.wait((answering, listening), return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                return answering.result()
            self.tell("wire.hangup", wire="model", dialect=dialect)
            return None
        finally:
            listening.cancel()
            answering.cancel()

    async def _cut(self, body: JSONObject, dialect: str, *, with_usage: bool) -> bytes:
        response = await self.carry_out(self._channel.complete(body, dialect))
        whole = _complete(response) if dialect == CHAT else response
        return whole_stream(SPOKEN[dialect].cut(whole, with_usage), dialect)

    async def _count(self, exchange: Exchange) -> None:
        body = await self._body(exchange, MESSAGES)
        if body is None:
            return
        try:
            counted = await self.carry_out(self._channel.count_tokens(body, MESSAGES))
        except (EvalcoreError, DoorClosed) as error:
            told = failure(error)
            await exchange.reply(told.status, told.body(MESSAGES), more=told.headers)
            return
        await exchange.reply(200, write_json(counted))

    async def _body(self, exchange: Exchange, dialect: str) -> JSONObject | None:
        """The request; None where it is none, and the agent was told. Anthropic's betas, a header, join it."""
        try:
            body = parse(await exchange.body(BODY_CAP))
        except TooLarge:
            await exchange.reply(413, Failure(413, f"the request is larger than {BODY_CAP} bytes").body(dialect))
            return None
        except ValueError as error:
            await exchange.reply(400, Failure(400, f"the request is no JSON: {error}").body(dialect))
            return None
        if not isinstance(body, dict):
            await exchange.reply(400, Failure(400, "the request is no JSON object").body(dialect))
            return None
        betas = exchange.header(b"anthropic-beta")
        if dialect == MESSAGES and betas:
            body["betas"] = [name.strip() for name in betas.decode("latin-1").split(",") if name.strip()]
        return body


def _complete(response: JSONObject) -> JSONObject:
    """The response with what strict clients insist on and some providers leave out."""
    return (
        response
        if "created" in response and "object" in response
        else {"object": "chat.completion", "created": 0, **response}
    )


def _model(name: str, *, anthropic: bool) -> JSONObject:
    if anthropic:
        return {"type": "model", "id": name, "display_name": name, "created_at": _LONG_AGO}
    return {"id": name, "object": "model", "created": 0, "owned_by": "evalcore"}


def _models(names: tuple[str, ...], *, anthropic: bool) -> JSONObject:
    rows: list[JSONValue] = [_model(name, anthropic=anthropic) for name in names]
    if anthropic:
        return {"data": rows, "has_more": False, "first_id": names[0], "last_id": names[-1]}
    return {"object": "list", "data": rows}
