"""How each provider's requests look, where its key goes, and where it does not."""

from __future__ import annotations

from typing import Any, Final

import pytest

from evalcore.contracts import CallContext
from evalcore.errors import ConfigError, FatalInfraError
from evalcore.values.json import JSONObject
from evalcore.values.trial import TrialKey
from evalcore.wires.gateway.refused import RefusedRequest
from tests.integration import provider_answers as given
from tests.integration.upstreams import QuietServices, provider, upstream
from tests.integration.wire_rig import on_loop

KEY: Final = "key-0123456789abcdef"
CHAT: Final[JSONObject] = {"model": "asked", "messages": [{"role": "user", "content": "hi"}]}
MESSAGES: Final[JSONObject] = {**CHAT, "max_tokens": 5}


def context(dialect: str, **settings: str) -> CallContext:
    return CallContext(TrialKey("b", "t", "a", 1), 1, "agent", 1, 0, settings, dialect=dialect)


def sent_to(name: str, url: str, dialect: str, body: JSONObject, key: str = "", **settings: str) -> Any:
    """The request as it would go out; nothing is sent."""
    variables = {"azure": "AZURE_OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
    made = provider(name, **({variables[name]: key} if key else {}))
    about = context(dialect, base_url=url, **settings)
    return made.sent(made.target(about.settings), "served", body, about, streamed=False)


@pytest.mark.parametrize("base", ["https://us.openai.azure.com", "https://us.openai.azure.com/openai/v1/"])
def test_azure_without_a_version_has_one_address_for_all_deployments(base: str) -> None:
    sent = sent_to("azure", base, "openai-chat", {**CHAT, "max_output_tokens": 5}, KEY)
    assert sent.url == "https://us.openai.azure.com/openai/v1/chat/completions"
    assert sent.headers["api-key"] == KEY and "Authorization" not in sent.headers
    assert b'"model":"served"' in sent.content and b'"max_completion_tokens":5' in sent.content
    assert sent_to("azure", base, "openai-responses", {"input": "hi"}, KEY).url.endswith("/openai/v1/responses")


def test_azure_with_a_version_has_the_deployment_in_its_path() -> None:
    base = "https://us.openai.azure.com"
    sent = sent_to("azure", base, "openai-chat", CHAT, KEY, api_version="2024-10-21")
    assert sent.url == f"{base}/openai/deployments/served/chat/completions?api-version=2024-10-21"
    sent = sent_to("azure", base, "openai-responses", {"input": "hi"}, KEY, api_version="2025-04-01-preview")
    assert sent.url == f"{base}/openai/responses?api-version=2025-04-01-preview"


@pytest.mark.parametrize(
    "name, url",
    [
        ("azure", "https://evil.example.org"),
        ("azure", "https://openai.azure.com.evil.org"),
        ("azure", "http://us.openai.azure.com"),
        ("anthropic", "https://evil.example.org/v1"),
        ("anthropic", "http://api.anthropic.com/v1"),
    ],
)
def test_a_named_services_key_goes_nowhere_else(name: str, url: str) -> None:
    with pytest.raises(ConfigError, match="its key is sent nowhere else"):
        sent_to(name, url, "openai-chat", CHAT, KEY)


def test_azure_needs_the_address_of_a_resource() -> None:
    with pytest.raises(ConfigError, match="azure needs the address") as error:
        provider("azure", AZURE_OPENAI_API_KEY=KEY).check("d", {})
    assert "openai.azure.com" in str(error.value.hint)


def test_anthropic_needs_a_key_and_hides_it() -> None:
    with pytest.raises(ConfigError, match="anthropic needs a key") as error:
        provider("anthropic").check("claude", {})
    assert error.value.hint == "set ANTHROPIC_API_KEY in the environment"
    made = provider("anthropic", ANTHROPIC_API_KEY=KEY)
    made.check("claude", {})
    services: Any = made._services
    assert isinstance(services, QuietServices) and services.hidden == [KEY]


def test_anthropic_is_asked_in_its_own_headers() -> None:
    body: JSONObject = {**MESSAGES, "betas": ["b-1", "ev\nil"], "stream": True}
    sent = sent_to("anthropic", "https://api.anthropic.com/v1", "anthropic-messages", body, KEY)
    assert sent.url == "https://api.anthropic.com/v1/messages"
    assert sent.headers == {
        "Accept": "application/json",
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "b-1",
        "x-api-key": KEY,
    }
    assert b"betas" not in sent.content and b"stream" not in sent.content


@on_loop
async def test_a_local_server_in_a_services_place_gets_no_key() -> None:
    async with upstream(given.MESSAGES) as server:
        made = provider("anthropic", ANTHROPIC_API_KEY=KEY)
        await made.complete("served", MESSAGES, context("anthropic-messages", base_url=server.url))
        await made.close()
        assert "x-api-key" not in server.asked[0][1]


@pytest.mark.parametrize(
    "status, kind, message, raised, param",
    [
        (400, "invalid_request_error", "max_tokens: 99 > 64, the maximum", RefusedRequest, "max_output_tokens"),
        (400, "invalid_request_error", "`temperature` and `top_p` cannot both be set", RefusedRequest, "temperature"),
        (400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", RefusedRequest, None),
        (413, "request_too_large", "too large", RefusedRequest, None),
        (401, "authentication_error", "invalid x-api-key", FatalInfraError, None),
        (403, "permission_error", "no", FatalInfraError, None),
        (404, "not_found_error", "model: served", FatalInfraError, None),
    ],
)  # fmt: skip
@on_loop
async def test_what_anthropic_refuses_is_laid_to_whom_it_belongs(
    status: int, kind: str, message: str, raised: type[Exception], param: str | None
) -> None:
    refusal: JSONObject = {"type": "error", "error": {"type": kind, "message": message}}
    async with upstream((status, refusal)) as server:
        made = provider("anthropic")
        with pytest.raises(raised) as error:
            await made.complete("served", MESSAGES, context("anthropic-messages", base_url=server.url))
        await made.close()
    assert type(error.value) is raised
    assert message in str(error.value)
    assert getattr(error.value, "param", None) == param
