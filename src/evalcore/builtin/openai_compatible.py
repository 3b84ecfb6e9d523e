"""Providers that speak OpenAI's dialects: `openai`, `azure`, `openrouter`, `google`; any server as `openai-compatible`.

Chat Completions everywhere; where the Responses API is the provider's own (`openai`, `azure`), an agent that speaks it
is passed through to it. Agents that speak Messages are translated to Chat Completions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from evalcore.builtin.provider_http import HttpProvider, Sent, Service, Target, encoded
from evalcore.contracts import CallContext
from evalcore.values.json import JSONObject

_RESPONSES: Final = "openai-responses"
_OURS: Final = ("stream", "stream_options", "max_output_tokens")  # of a body: the gateway's words, not the server's


class OpenAICompatibleProvider(HttpProvider):
    """Chat Completions at any address."""

    output_bound = "max_tokens"  # what the server calls the bound on output tokens

    def sent(self, target: Target, model: str, body: JSONObject, context: CallContext, *, streamed: bool) -> Sent:
        """The request as this server wants it: its own model's name, its word for the bound on output."""
        if context.dialect == _RESPONSES:
            made: JSONObject = {**body, "model": model, **({"stream": True} if streamed else {})}
            path = "responses"
        else:
            made, path = self._chat(body, model, streamed=streamed), "chat/completions"
        content, headers = encoded(made, streamed=streamed)
        return Sent(self.url(target, path, model, context), content, {**headers, **self.authorization(target)})

    def url(self, target: Target, path: str, model: str, context: CallContext) -> str:
        """Where a request goes."""
        return f"{target.base_url}/{path}"

    def authorization(self, target: Target) -> Mapping[str, str]:
        """How the key is shown."""
        return {"Authorization": f"Bearer {target.key}"} if target.key is not None else {}

    def _chat(self, body: JSONObject, model: str, *, streamed: bool) -> JSONObject:
        made: JSONObject = {k: v for k, v in body.items() if k not in _OURS}
        if "max_output_tokens" in body:
            for name in ("max_tokens", "max_completion_tokens"):
                made.pop(name, None)
            made[self.output_bound] = body["max_output_tokens"]
        if streamed:
            made |= {"stream": True, "stream_options": {"include_usage": True}}
        return {**made, "model": model}


class OpenAIProvider(OpenAICompatibleProvider):
    """OpenAI's own models."""

    dialects = ("openai-chat", _RESPONSES)
    service = Service("https://api.openai.com/v1")
    output_bound = "max_completion_tokens"


class OpenRouterProvider(OpenAICompatibleProvider):
    """Models behind OpenRouter."""

    service = Service("https://openrouter.ai/api/v1")


class GoogleProvider(OpenAICompatibleProvider):
    """Gemini models, by Google's OpenAI-compatible endpoint."""

    service = Service("https://generativelanguage.googleapis.com/v1beta/openai")


class AzureProvider(OpenAICompatibleProvider):
    """OpenAI's models in a customer's own Azure resource, where a model's name is that of its deployment.

    `base_url` is the resource, with or without the path of its API. With the axis `api_version`, the dated API is used:
    the deployment is in the path, the version in the query. Without, the one that has no dates.
    """

    dialects = ("openai-chat", _RESPONSES)
    service = Service(
        hosts=(".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"),
        example="https://NAME.openai.azure.com",
    )
    output_bound = "max_completion_tokens"

    def url(self, target: Target, path: str, model: str, context: CallContext) -> str:
        """The deployment's address in the one API, or the same for all in the other."""
        from urllib.parse import quote

        base, version = target.base_url.removesuffix("/v1").removesuffix("/openai"), context.settings.get("api_version")
        if version is None:
            return f"{base}/openai/v1/{path}"
        deployment = "" if path == "responses" else f"deployments/{quote(model, safe='')}/"
        return f"{base}/openai/{deployment}{path}?api-version={quote(str(version), safe='')}"

    def authorization(self, target: Target) -> Mapping[str, str]:
        """Azure's own header."""
        return {"api-key": target.key} if target.key is not None else {}
