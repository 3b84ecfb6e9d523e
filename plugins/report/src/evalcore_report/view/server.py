"""The server of the view: on this machine's loopback, for whoever knows the token, and for reading only.

Every address begins with 256 random bits. A foreign Host is refused before the token is looked at (a page elsewhere
could have its name point here), and so is a request that another page makes. Requests are logged nowhere: addresses
hold the token.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import secrets
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import parse_qsl

from evalcore.contracts import Metric
from evalcore.errors import EvalcoreError, InfraError, UnknownNameError
from evalcore.values.descriptors import MetricInfo
from evalcore_report.document import policy
from evalcore_report.view.kept import KeptPages
from evalcore_report.view.pages import Pages

if TYPE_CHECKING:
    import uvicorn

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

HOST: Final = "127.0.0.1"
STOP_S: Final = 2
LONGEST: Final = 8_192  # bytes of an address

_log = logging.getLogger("evalcore")


class ViewServer:
    """Serves a library. `listen`, then `run` until it is stopped."""

    def __init__(
        self,
        folder: Path,
        port: int = 0,
        metrics: Sequence[tuple[MetricInfo, Metric]] = (),
        kept: KeptPages | None = None,
    ) -> None:
        self._token = secrets.token_hex(32)
        self._port = port
        self._listener: socket.socket | None = None
        self._hosts: frozenset[str] = frozenset()
        self._pages = Pages(folder, f"/{self._token}", metrics, kept)
        self._uvicorn: uvicorn.Server | None = None

    def listen(self) -> str:
        """Take the port, and return where to look. Raises InfraError if it is taken."""
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((HOST, self._port))
            listener.listen()  # from here on nobody is turned away: they wait
        except OSError as error:
            listener.close()
            hint = "another --port, or none: then any free one is taken"
            raise InfraError(f"cannot listen on port {self._port} of {HOST}: {error.strerror}", hint=hint) from error
        self._listener = listener
        port = listener.getsockname()[1]
        self._hosts = frozenset({f"{HOST}:{port}", f"localhost:{port}"})
        return f"http://{HOST}:{port}/{self._token}/"

    def run(self) -> None:
        """Serve until interrupted."""
        assert self._listener is not None, "listen comes first"
        threading.Thread(target=self._prepare, daemon=True).start()
        self._uvicorn = _server(self.answer)
        try:
            asyncio.run(self._uvicorn.serve(sockets=[self._listener]))
        except KeyboardInterrupt:
            pass
        finally:
            self._pages.library.close()

    def warm_up(self) -> None:
        """The first picture takes a second or two, most of it imports: better spent before somebody waits.

        Where the latest pages are all kept from another time, there is none to be drawn.
        """
        if self._pages.library.kept_ahead():
            return
        from evalcore_report.draw import import_once, rows, svg

        import_once()
        import altair
        import scipy.special  # noqa: F401 - what the report computes with

        svg(altair.Chart(rows([{"x": 1}])).mark_point().encode(x="x:Q"), "")

    def _prepare(self) -> None:
        """Make the latest pages."""
        try:
            self._pages.library.prepare()
        except Exception as error:  # noqa: BLE001 - it only saves time: whoever asks for a page is told what is wrong
            _log.debug("the view could not make pages ahead: %s: %s", type(error).__name__, error)

    def stop(self) -> None:
        """End `run`; from any thread."""
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application."""
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await _reply(send, *refusal)
            return
        path = str(scope["path"])[len(self._token) + 1 :]
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        status, kind, content = await asyncio.to_thread(self._get, path, query)
        await _reply(send, status, kind, content if scope["method"] == "GET" else b"")

    def _get(self, path: str, query: dict[str, str]) -> tuple[int, str, bytes]:
        page = "text/html; charset=utf-8"
        try:
            return (200, *self._pages.get(path, query))
        except UnknownNameError as error:
            return 404, page, self._pages.trouble(error)
        except EvalcoreError as error:
            return 500, page, self._pages.trouble(error)
        except Exception as error:  # noqa: BLE001 - a bug in one page must not end the view
            _log.exception("a page of the view failed: %s", type(error).__name__)
            return 500, page, self._pages.trouble(InfraError(f"a bug of evalcore: {type(error).__name__}: {error}"))

    def _refusal(self, scope: Scope) -> tuple[int, str, bytes] | None:
        """Why a request is not looked at."""
        plain = "text/plain; charset=utf-8"
        headers = [(k.decode("latin-1").lower(), v.decode("latin-1")) for k, v in scope["headers"]]
        found = dict(headers)
        if [v for k, v in headers if k == "host"] != [found.get("host")] or found.get("host") not in self._hosts:
            return 421, plain, b"this server answers to this machine alone"
        if "origin" in found and found["origin"].removeprefix("http://") not in self._hosts:
            return 403, plain, b"no other page may ask this server"
        if found.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return 403, plain, b"no other page may ask this server: open the address itself"
        if scope["method"] not in ("GET", "HEAD"):
            return 405, plain, b"this server only shows"
        if len(scope["path"]) + len(scope["query_string"]) > LONGEST:
            return 414, plain, b"too long"
        token = str(scope["path"])[1:].partition("/")[0]
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            return 404, plain, b"nothing here: the whole address is on the terminal that runs `evalcore view`"
        return None


async def _reply(send: Send, status: int, kind: str, content: bytes) -> None:
    headers = {
        "content-type": kind,
        "content-length": str(len(content)),
        "content-security-policy": f"{policy(live=True)}; frame-ancestors 'none'",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "cache-control": "no-store",
    }
    raw = [(k.encode(), v.encode("latin-1")) for k, v in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": content})


def _server(app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> uvicorn.Server:
    import uvicorn

    class Quiet(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    config = uvicorn.Config(
        app, interface="asgi3", http="h11", ws="none", lifespan="off", log_config=None, access_log=False,
        proxy_headers=False, server_header=False, date_header=False, timeout_graceful_shutdown=STOP_S,
    )  # fmt: skip
    return Quiet(config)
