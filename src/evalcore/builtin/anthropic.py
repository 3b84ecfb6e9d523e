"""Provider `anthropic`: Anthropic Messages. Agents that speak another dialect are translated."""

from __future__ import annotations

from typing import Final

from evalcore.builtin.provider_failure import Refusal
from evalcore.builtin.provider_http import HttpProvider, Sent, Service, Target, encoded, object_of
from evalcore.contracts import CallContext
from evalcore.values.json import JSONObject

VERSION: Final = "2023-06-01"  # of the API: there has been no other since
_HEADERS: Final = ("betas", "stream")  # of a body: what travels otherwise, or is ours to say


class AnthropicProvider(HttpProvider):
    """Messages over HTTP. A body's `betas`, as an agent sent them in a header, are one again."""

    dialect = "anthropic-messages"
    service = Service("https://api.anthropic.com/v1")

    def sent(self, target: Target, model: str, body: JSONObject, context: CallContext, *, streamed: bool) -> Sent:
        """The request that asks `model` for an answer."""
        return self._sent(target, "messages", model, body, streamed=streamed)

    async def count_tokens(self, model: str, body: JSONObject, context: CallContext) -> JSONObject:
        """What the request would have as input, by the provider's own count; one try."""
        target = self.target(context.settings)
        sent = self._sent(target, "messages/count_tokens", model, body, streamed=False)
        status, wait_s, data = await self.fetched(target, sent)
        answer = object_of(data)
        if status == 200 and isinstance(answer.get("input_tokens"), int):
            return answer
        raise self._failure(Refusal.of(status, answer, data), target, model, wait_s)

    @staticmethod
    def _sent(target: Target, path: str, model: str, body: JSONObject, *, streamed: bool) -> Sent:
        made: JSONObject = {k: v for k, v in body.items() if k not in _HEADERS}
        made["model"] = model
        if streamed:
            made["stream"] = True
        content, accepted = encoded(made, streamed=streamed)
        headers = {**accepted, "anthropic-version": VERSION}
        betas = body.get("betas")
        if isinstance(betas, list) and betas:
            headers["anthropic-beta"] = ",".join(str(b) for b in betas if str(b).isascii() and str(b).isprintable())
        if target.key is not None:
            headers["x-api-key"] = target.key
        return Sent(f"{target.base_url}/{path}", content, headers)
