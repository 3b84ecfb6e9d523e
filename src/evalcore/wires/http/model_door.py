"""The model wire over HTTP: OpenAI Chat Completions, JSON and server-sent events, before a recorded channel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from evalcore.contracts import Channel, Recorder
from evalcore.errors import AgentError, BudgetExceeded, EvalcoreError, LimitReached
from evalcore.values.json import JSONObject, parse
from evalcore.wires.gateway.refused import RefusedRequest
from evalcore.wires.http.chat_stream import DONE, WAITING, chunks, sse
from evalcore.wires.http.door import Door, DoorClosed
from evalcore.wires.http.exchange import EVENT_STREAM, Exchange, TooLarge, write_json

BODY_CAP: Final = 32 << 20  # a long conversation with images
PATIENCE_S: Final = 15.0  # how long a stream waits for the model before it begins, and then between signs of life

# The official clients retry 429 and 5xx on their own. The gateway has retried, or nothing can help: they are told so.
_NO_RETRY: Final = {b"x-should-retry": b"false"}


class ModelDoor(Door):
    """One role's model at `/m/{token}/v1`."""

    def __init__(self, url: str, forget: Callable[[], None], events: Recorder | None, channel: Channel) -> None:
        super().__init__(url, forget, events)
        self._channel = channel

    async def serve(self, exchange: Exchange) -> None:
        """One request of the dialect."""
        if exchange.method == "POST" and exchange.rest == "v1/chat/completions":
            await self._complete(exchange)
        elif exchange.method == "GET" and exchange.rest == "v1/models":
            await exchange.reply(200, write_json({"object": "list", "data": [_model(self._channel.model)]}))
        elif exchange.method == "GET" and exchange.rest.startswith("v1/models/"):
            await exchange.reply(200, write_json(_model(exchange.rest.removeprefix("v1/models/"))))
        elif exchange.rest in ("v1/chat/completions", "v1/models"):
            await exchange.reply(405, refusal("method not allowed", code="method_not_allowed"))
        else:
            await exchange.reply(404, refusal(f"no such endpoint: /{exchange.rest[:200]}", code="unknown_url"))

    async def _complete(self, exchange: Exchange) -> None:
        try:
            body = parse(await exchange.body(BODY_CAP))
        except TooLarge:
            await exchange.reply(413, refusal(f"the request is larger than {BODY_CAP} bytes"))
            return
        except ValueError as error:
            await exchange.reply(400, refusal(f"the request is no JSON: {error}"))
            return
        if not isinstance(body, dict):
            await exchange.reply(400, refusal("the request is no JSON object"))
            return
        # How the answer is delivered is between the agent and this door: the model is asked the same either way.
        streamed, options = body.pop("stream", None) is True, body.pop("stream_options", None)
        agent = (exchange.header(b"user-agent") or b"").decode("latin-1")[:200]
        self.tell(
            "wire.client", wire="model", role=self._channel.role, dialect="openai-chat", agent=agent, stream=streamed
        )
        if streamed:
            usage = isinstance(options, dict) and options.get("include_usage") is True
            await self._stream(exchange, body, with_usage=usage)
        else:
            await self._answer(exchange, body)

    async def _answer(self, exchange: Exchange, body: JSONObject) -> None:
        try:
            response = await self.carry_out(self._channel.complete(body))
        except (EvalcoreError, DoorClosed) as error:
            await exchange.reply(*failure(error), more=_NO_RETRY)
            return
        await exchange.reply(200, write_json(_whole(response)))

    async def _stream(self, exchange: Exchange, body: JSONObject, *, with_usage: bool) -> None:
        """Wait for the answer, with signs of life once it takes long; then send it in pieces."""
        answer = asyncio.ensure_future(self.carry_out(self._channel.complete(body)))
        try:
            while not (await asyncio.wait((answer,), timeout=PATIENCE_S))[0]:
                if not exchange.status:
                    await exchange.begin_stream()
                await exchange.stream(WAITING)
            response = answer.result()
        except (EvalcoreError, DoorClosed) as error:
            status, text = failure(error)
            if exchange.status:  # too late for a status: the error is the last event
                await exchange.stream(b"data: " + text + b"\n\n", last=True)
            else:
                await exchange.reply(status, text, more=_NO_RETRY)
            return
        finally:
            answer.cancel()
        events = b"".join(sse(chunk) for chunk in chunks(_whole(response), with_usage=with_usage)) + DONE
        if exchange.status:
            await exchange.stream(events, last=True)
        else:
            await exchange.reply(200, events, EVENT_STREAM, {b"cache-control": b"no-cache"})


def refusal(
    message: str, kind: str = "invalid_request_error", *, code: str | None = None, param: str | None = None
) -> bytes:
    """An error as the dialect writes it."""
    return write_json({"error": {"message": message, "type": kind, "param": param, "code": code}})


def failure(error: Exception) -> tuple[int, bytes]:
    """Status and body for what a channel raised. What is wrong with the machine is not the agent's to know."""
    if isinstance(error, (LimitReached, BudgetExceeded)):
        return 429, refusal(error.message, "insufficient_quota", code="insufficient_quota")
    if isinstance(error, RefusedRequest):
        return error.status, refusal(error.message, code=error.code, param=error.param)
    if isinstance(error, AgentError):
        return 400, refusal(error.message)
    if isinstance(error, DoorClosed):
        return 404, refusal("not found", code="not_found")
    return 502, refusal("the model provider failed", "server_error", code="provider_failure")


def _whole(response: JSONObject) -> JSONObject:
    """The response with what strict clients insist on and some providers leave out."""
    return (
        response
        if "created" in response and "object" in response
        else {"object": "chat.completion", "created": 0, **response}
    )


def _model(name: str) -> JSONObject:
    return {"id": name, "object": "model", "created": 0, "owned_by": "evalcore"}
