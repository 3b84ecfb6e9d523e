"""Providers that speak OpenAI Chat Completions: `openai`, `openrouter`, `google`; any server as `openai-compatible`.

What an answer other than 200 means, and so whose fault it is (architecture §7):

    408, 409, 425, 429, 5xx, no connection, a cut answer, no answer in time    TransientError: the gateway tries again
    401, 402, 403; 429 for want of credit                                      the key: FatalInfraError, the run stops
    404, a model that is not there, redirects, other 4xx                       the name or the address: FatalInfraError
    400, 413, 422                                                              the request, so the agent: RefusedRequest

The last is a FatalInfraError all the same where it is about a parameter that the arm sets: the channel decides that.
A named service's key goes to that service and nowhere else: a study from a stranger may name any `base_url`.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from attrs import frozen

from evalcore import __version__
from evalcore.contracts import CallContext, Services
from evalcore.errors import ConfigError, FatalInfraError, InfraError, TransientError
from evalcore.values.descriptors import ModelInfo
from evalcore.values.json import JSONObject, JSONValue, parse
from evalcore.wires.gateway.refused import RefusedRequest
from evalcore.wires.http.exchange import write_json

if TYPE_CHECKING:
    import httpx2

CONNECT_S: Final = 10.0
SILENCE_S: Final = 600.0  # a model may think this long before its answer begins
WHOLE_S: Final = 1800.0  # one try, from its first byte to its last
MAX_BYTES: Final = 32 << 20

_KEY_REFUSED: Final = frozenset({401, 402, 403})
_TRANSIENT: Final = frozenset({408, 409, 425, 429})
_REQUEST_REFUSED: Final = frozenset({400, 413, 422})
_SAMPLING: Final = ("temperature", "top_p", "reasoning_effort")  # what servers name in a text, without `param`


@frozen
class Service:
    """Where a provider is at home, and what it calls the bound on output tokens."""

    base_url: str = ""
    output_bound: str = "max_tokens"


SERVICES: Final[Mapping[str, Service]] = {
    "openai": Service("https://api.openai.com/v1", "max_completion_tokens"),
    "openrouter": Service("https://openrouter.ai/api/v1"),
    "google": Service("https://generativelanguage.googleapis.com/v1beta/openai"),
    "openai-compatible": Service(),
}


@frozen
class Target:
    """One server: its address, the key that it gets, and where that came from."""

    base_url: str
    local: bool
    variable: str
    key: str | None = None

    @property
    def secure(self) -> bool:
        """Whether the connection is encrypted."""
        return self.base_url.startswith("https:")

    def clean(self, text: str) -> str:
        """`text` without the key: servers quote what they were sent."""
        return text.replace(self.key, "[redacted]") if self.key else text


class OpenAICompatibleProvider:
    """Chat Completions over HTTP. Clients are made when first used: reading the system's certificates takes time."""

    dialect = "openai-chat"

    def __init__(self, services: Services, info: ModelInfo, environ: Mapping[str, str] = os.environ) -> None:
        self._name = info.name
        self._service = SERVICES[info.name]
        self._variables = info.keys
        self._services = services
        self._environ = environ
        self._targets: dict[str, Target] = {}
        self._clients: dict[tuple[bool, bool], httpx2.AsyncClient] = {}

    def content(self, model: str) -> Mapping[str, str]:
        """No files stand behind a model's name."""
        return {}

    def check(self, model: str, settings: Mapping[str, JSONValue]) -> None:
        """Raises ConfigError for an address that is none, or a key that is missing."""
        self._target(settings)

    async def complete(self, model: str, body: JSONObject, context: CallContext) -> JSONObject:
        """One answer, one try. Raises TransientError, InfraError, FatalInfraError, RefusedRequest."""
        return await self._once(self._target(context.settings), write_json(self._request(model, body)), model)

    async def close(self) -> None:
        """Close the connections."""
        for client in self._clients.values():
            await client.aclose()
        self._clients.clear()

    # ── where to, and with which key ─────────────────────────────────────────────────────────────────────────────────

    def _target(self, settings: Mapping[str, JSONValue]) -> Target:
        base_url = str(settings.get("base_url") or self._service.base_url).rstrip("/")
        if base_url not in self._targets:
            self._targets[base_url] = self._found(base_url)
        return self._targets[base_url]

    def _found(self, base_url: str) -> Target:
        host = self._host(base_url)
        home, local = urlsplit(self._service.base_url).hostname, is_local(host)
        if home is not None and not local and (host != home or not base_url.startswith("https:")):
            raise ConfigError(
                f"{self._name} is served at https://{home}, and its key is sent nowhere else: {base_url}",
                hint="provider openai-compatible takes any base_url, with the key in OPENAI_COMPATIBLE_API_KEY",
            )
        variable = next((name for name in self._variables if self._environ.get(name)), None)
        key = self._environ[variable].strip() if variable and not (home and local) else None
        if key is None and not local:
            raise ConfigError(
                f"{self._name} needs a key", hint=f"set {' or '.join(self._variables)} in the environment"
            )
        if key is not None:
            self._services.hide(key)
            if not (key.isascii() and key.isprintable()):
                raise ConfigError(
                    f"{variable} holds what no key is made of", hint="letters, digits and signs, on one line"
                )
        return Target(base_url, local, variable or self._variables[0], key)

    def _host(self, base_url: str) -> str:
        """The host of an address that is fit to be used, and to be stored."""
        if not base_url:
            raise ConfigError(f"{self._name} needs the address of its server", hint="--base-url http://HOST:PORT/v1")
        try:
            url = urlsplit(base_url)
            host, _ = url.hostname, url.port
        except ValueError as error:
            raise ConfigError(f"base_url is no address: {error}") from None
        if url.scheme not in ("http", "https") or not host or url.query or url.fragment:
            raise ConfigError(f"base_url is no address: {base_url!r}", hint="for example http://127.0.0.1:8000/v1")
        if url.username is not None or url.password is not None:
            raise ConfigError(
                "base_url holds a name or password, and would be stored", hint="keys go into the environment"
            )
        return host

    def _client(self, target: Target) -> httpx2.AsyncClient:
        """A shared client for this kind of address: this machine's servers are reached without proxy."""
        import httpx2

        kind = target.secure, target.local
        if kind not in self._clients:
            self._clients[kind] = httpx2.AsyncClient(
                verify=target.secure,  # without https, certificates would be read for nothing: 20 ms
                trust_env=not target.local,
                timeout=httpx2.Timeout(SILENCE_S, connect=CONNECT_S),
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
                headers={"User-Agent": f"evalcore/{__version__}"},
            )
        return self._clients[kind]

    # ── one try ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _request(self, model: str, body: JSONObject) -> JSONObject:
        """The body as this server wants it: its own model's name, no stream, its word for the bound on output."""
        sent: JSONObject = {k: v for k, v in body.items() if k not in ("stream", "stream_options", "max_output_tokens")}
        if "max_output_tokens" in body:
            for name in ("max_tokens", "max_completion_tokens"):
                sent.pop(name, None)
            sent[self._service.output_bound] = body["max_output_tokens"]
        return {**sent, "model": model}

    async def _once(self, target: Target, content: bytes, model: str) -> JSONObject:
        import httpx2

        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if target.key is not None:
            headers["Authorization"] = f"Bearer {target.key}"
        url, where = f"{target.base_url}/chat/completions", f"{self._name} at {target.base_url}"
        try:
            async with (
                asyncio.timeout(WHOLE_S),
                self._client(target).stream("POST", url, content=content, headers=headers) as response,
            ):
                data = await _read(response)
                status, wait = response.status_code, _retry_after(response.headers)
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise TransientError(f"{where}: no answer in time ({type(error).__name__})") from error
        except httpx2.HTTPError as error:
            raise TransientError(f"{where}: {type(error).__name__}: {target.clean(str(error))}") from error
        answer = _object(data)
        if status == 200 and isinstance(answer.get("choices"), list) and answer["choices"]:
            return answer
        raise self._failure(_Refusal.of(status, answer, data), target, model, wait)

    def _failure(self, refusal: _Refusal, target: Target, model: str, wait_s: float | None) -> Exception:
        """What an answer that is none means."""
        status, where = refusal.status, f"{self._name} at {target.base_url}"
        text = target.clean(f"HTTP {status}: {refusal.message}" if refusal.message else f"HTTP {status}")
        if status in _KEY_REFUSED or "insufficient_quota" in (refusal.code, refusal.kind):
            what = f"does not take the key in {target.variable}" if target.key else f"wants a key in {target.variable}"
            return FatalInfraError(f"{where} {what}: {text}", hint=f"check {target.variable} and the account's credit")
        if status in _TRANSIENT or status >= 500 or status == 200:
            return TransientError(f"{where}: {text}", wait_s=wait_s, status=status)
        if status in _REQUEST_REFUSED and refusal.code != "model_not_found":
            return RefusedRequest(text, status=status, code=refusal.code, param=refusal.param)
        return FatalInfraError(f"{where} cannot serve {model!r}: {text}", hint="check the model's name and base_url")


@frozen
class _Refusal:
    """What an answer says of why it is none."""

    status: int
    message: str
    code: str | None
    kind: str | None
    param: str | None

    @classmethod
    def of(cls, status: int, answer: JSONObject, data: bytes) -> _Refusal:
        """The usual `error` object, a text in its place, or the bare body; some answer 200 and say it inside."""
        error = answer.get("error")
        told = error if isinstance(error, dict) else answer
        message = error if isinstance(error, str) else told.get("message") or told.get("detail")
        text = message if isinstance(message, str) else data[:500].decode("utf-8", "replace")
        code, kind, param = told.get("code"), told.get("type"), told.get("param")
        if status == 200 and isinstance(code, int):
            status = code
        if param is None:
            param = next((name for name in _SAMPLING if name in text), None)
        if param in ("max_tokens", "max_completion_tokens"):
            param = "max_output_tokens"
        return cls(status, text[:500], _text(code), _text(kind), _text(param))


def is_local(host: str) -> bool:
    """Whether the host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


async def _read(response: httpx2.Response) -> bytes:
    """The body. Raises InfraError where it is too large."""
    parts, size = [], 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > MAX_BYTES:
            raise InfraError(f"the provider's answer is larger than {MAX_BYTES >> 20} MiB")
        parts.append(part)
    return b"".join(parts)


def _retry_after(headers: httpx2.Headers) -> float | None:
    """The seconds that a server asks for, in any of the three ways that servers ask."""
    milliseconds, text = headers.get("retry-after-ms"), headers.get("retry-after", "")
    try:
        if milliseconds is not None:
            return max(0.0, float(milliseconds) / 1000)
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return None


def _object(data: bytes) -> JSONObject:
    """The body as an object, no digit lost; empty if it is none."""
    try:
        value = parse(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _text(value: JSONValue) -> str | None:
    return value if isinstance(value, str) else None
