"""What every provider over HTTP shares: addresses and keys, connections, one try of a call, what a failure means.

What an answer other than 200 means, and so whose fault it is (architecture §7):

    408, 409, 425, 429, 5xx, no connection, a cut answer, no answer in time    TransientError: the gateway tries again
    401, 402, 403; 429 for want of credit                                      the key: FatalInfraError, the run stops
    404, a model that is not there, redirects, other 4xx                       the name or the address: FatalInfraError
    400, 413, 422                                                              the request, so the agent: RefusedRequest

The last is a FatalInfraError all the same where it is about a parameter that the arm sets: the channel decides that.
An error inside a stream means what its status would have meant. A named service's key goes to that service and nowhere
else: a study from a stranger may name any `base_url`.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from attrs import frozen

from evalcore import __version__
from evalcore.builtin.provider_failure import Refusal, meaning
from evalcore.contracts import CallContext, Services
from evalcore.errors import ConfigError, InfraError, TransientError
from evalcore.values.descriptors import ModelInfo
from evalcore.values.json import JSONObject, JSONValue, parse
from evalcore.wires.gateway.dialects.translate import SPOKEN
from evalcore.wires.http.exchange import write_json

if TYPE_CHECKING:
    import httpx2

CONNECT_S: Final = 10.0
SILENCE_S: Final = 600.0  # a model may think this long before its answer begins, or goes on
WHOLE_S: Final = 1800.0  # one try, from its first byte to its last
MAX_BYTES: Final = 32 << 20

_EVENTS: Final = "text/event-stream"


@frozen
class Service:
    """Where a provider is at home: an address, or the ends of hosts where each customer has one of their own."""

    base_url: str = ""
    hosts: tuple[str, ...] = ()
    example: str = "http://HOST:PORT/v1"


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


@frozen
class Sent:
    """One request as it goes out."""

    url: str
    content: bytes
    headers: Mapping[str, str]


class HttpProvider(ABC):
    """A provider over HTTP. Clients are made when first used: reading the system's certificates takes time."""

    dialect = "openai-chat"
    service = Service()

    def __init__(self, services: Services, info: ModelInfo, environ: Mapping[str, str] = os.environ) -> None:
        self._name = info.name
        self._variables = info.keys
        self._services = services
        self._environ = environ
        self._targets: dict[str, Target] = {}
        self._clients: dict[tuple[bool, bool], httpx2.AsyncClient] = {}

    @abstractmethod
    def sent(self, target: Target, model: str, body: JSONObject, context: CallContext, *, streamed: bool) -> Sent:
        """The request that asks `model` for an answer, in the dialect that the context names."""

    def content(self, model: str) -> Mapping[str, str]:
        """No files stand behind a model's name."""
        return {}

    def check(self, model: str, settings: Mapping[str, JSONValue]) -> None:
        """Raises ConfigError for an address that is none, or a key that is missing."""
        self.target(settings)

    async def complete(self, model: str, body: JSONObject, context: CallContext) -> JSONObject:
        """One answer, one try. Raises TransientError, InfraError, FatalInfraError, RefusedRequest."""
        target = self.target(context.settings)
        sent = self.sent(target, model, body, context, streamed=False)
        status, wait_s, data = await self.fetched(target, sent)
        answer = object_of(data)
        if status == 200 and _is_answer(answer, context.dialect):
            return answer
        raise self._failure(Refusal.of(status, answer, data), target, model, wait_s)

    async def stream(self, model: str, body: JSONObject, context: CallContext) -> AsyncGenerator[JSONObject]:
        """The events of one answer, as they come; one try. Raises as `complete`, also between events."""
        target = self.target(context.settings)
        until = self._services.clock.monotonic() + WHOLE_S
        async with self._answering(target, self.sent(target, model, body, context, streamed=True)) as response:
            if response.status_code != 200 or _EVENTS not in response.headers.get("content-type", ""):
                data = await _read(response)
                answer, status = object_of(data), response.status_code
                if status != 200 or not _is_answer(answer, context.dialect):
                    raise self._failure(Refusal.of(status, answer, data), target, model, retry_after(response.headers))
                for event in SPOKEN[context.dialect].cut(answer, True):  # a server that does not stream after all
                    yield event
                return
            async with aclosing(_events(response)) as events:
                async for data in events:
                    event = object_of(data)
                    if (refusal := Refusal.within(event, context.dialect)) is not None:
                        raise self._failure(refusal, target, model, None)
                    yield event
                    if self._services.clock.monotonic() > until:
                        raise TransientError(f"{self._name} at {target.base_url}: no end of the answer in time")

    async def close(self) -> None:
        """Close the connections."""
        for client in self._clients.values():
            await client.aclose()
        self._clients.clear()

    # ── where to, and with which key ─────────────────────────────────────────────────────────────────────────────────

    def target(self, settings: Mapping[str, JSONValue]) -> Target:
        """The server that the arm means. Raises ConfigError."""
        base_url = str(settings.get("base_url") or self.service.base_url).rstrip("/")
        if base_url not in self._targets:
            self._targets[base_url] = self._found(base_url)
        return self._targets[base_url]

    def _found(self, base_url: str) -> Target:
        host = self._host(base_url)
        home, local = urlsplit(self.service.base_url).hostname, is_local(host)
        named = home is not None or bool(self.service.hosts)
        at_home = host == home or host.endswith(self.service.hosts or ("\0",))
        if named and not local and not (at_home and base_url.startswith("https:")):
            where = f"https://{home}" if home else " or ".join(f"https://…{end}" for end in self.service.hosts)
            raise ConfigError(
                f"{self._name} is served at {where}, and its key is sent nowhere else: {base_url}",
                hint="provider openai-compatible takes any base_url, with the key in OPENAI_COMPATIBLE_API_KEY",
            )
        variable = next((name for name in self._variables if self._environ.get(name)), None)
        key = self._environ[variable].strip() if variable and not (named and local) else None
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
            raise ConfigError(
                f"{self._name} needs the address of its server", hint=f"--base-url {self.service.example}"
            )
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

    async def fetched(self, target: Target, sent: Sent) -> tuple[int, float | None, bytes]:
        """Status, what the server asks to wait, and the whole body. Raises TransientError, InfraError."""
        where = f"{self._name} at {target.base_url}"
        try:
            async with asyncio.timeout(WHOLE_S), self._answering(target, sent) as response:
                return response.status_code, retry_after(response.headers), await _read(response)
        except TimeoutError as error:
            raise TransientError(f"{where}: no answer in time ({type(error).__name__})") from error

    @asynccontextmanager
    async def _answering(self, target: Target, sent: Sent) -> AsyncIterator[httpx2.Response]:
        """The response, its body still to come. Raises TransientError for whatever goes wrong on the way."""
        import httpx2

        where = f"{self._name} at {target.base_url}"
        headers = {"Content-Type": "application/json", **sent.headers}
        try:
            async with self._client(target).stream("POST", sent.url, content=sent.content, headers=headers) as response:
                yield response
        except httpx2.TimeoutException as error:
            raise TransientError(f"{where}: no answer in time ({type(error).__name__})") from error
        except httpx2.HTTPError as error:
            raise TransientError(f"{where}: {type(error).__name__}: {target.clean(str(error))}") from error

    def _failure(self, refusal: Refusal, target: Target, model: str, wait_s: float | None) -> Exception:
        where = f"{self._name} at {target.base_url}"
        return meaning(refusal, where, target.variable, model, wait_s, keyed=target.key is not None, clean=target.clean)


def encoded(body: JSONObject, *, streamed: bool) -> tuple[bytes, Mapping[str, str]]:
    """A body as bytes, and what is said of the answer's form."""
    return write_json(body), {"Accept": _EVENTS if streamed else "application/json"}


def is_local(host: str) -> bool:
    """Whether the host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def object_of(data: bytes) -> JSONObject:
    """The body as an object, no digit lost; empty if it is none."""
    try:
        value = parse(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def retry_after(headers: httpx2.Headers) -> float | None:
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


def _is_answer(answer: JSONObject, dialect: str) -> bool:
    found = answer.get(SPOKEN[dialect].answers)
    if dialect == "openai-chat":
        return isinstance(found, list) and bool(found)
    return isinstance(found, list) and Refusal.within(answer, dialect) is None


async def _read(response: httpx2.Response) -> bytes:
    """The body. Raises InfraError where it is too large."""
    return b"".join([part async for part in _bytes(response)])


async def _bytes(response: httpx2.Response) -> AsyncIterator[bytes]:
    size = 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > MAX_BYTES:
            raise InfraError(f"the provider's answer is larger than {MAX_BYTES >> 20} MiB")
        yield part


async def _events(response: httpx2.Response) -> AsyncGenerator[bytes]:
    """The data of each server-sent event, up to the mark that ends Chat Completions.

    Lines end at line feeds alone: a JSON text may hold every other separator as it is.
    """
    waiting, data = b"", []
    async for part in _bytes(response):
        *lines, waiting = (waiting + part).split(b"\n")
        for line in lines:
            text = line.rstrip(b"\r")
            if text.startswith(b"data:"):
                data.append(text[5:].removeprefix(b" "))
            elif not text and data:
                whole, data = b"\n".join(data), []
                if whole == b"[DONE]":
                    return
                yield whole
    if waiting.startswith(b"data:"):
        data.append(waiting[5:].strip())
    if data and data != [b"[DONE]"]:
        yield b"\n".join(data)
