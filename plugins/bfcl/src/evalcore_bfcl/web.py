"""The web as upstream's web-search class sees it: searches by SerpApi, with the user's key, and pages by their address.

Asked for by the worker, which has neither network nor key. What the provider of searches fails at is infrastructure; a
page that cannot be had is an answer. Addresses inside the user's own network are not fetched for an agent.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from evalcore.errors import FatalInfraError, InfraError
from evalcore.values.json import JSONObject, JSONValue

if TYPE_CHECKING:
    import httpx2

KEY: Final = "SERPAPI_API_KEY"
SEARCH: Final = "https://serpapi.com/search"
SEARCH_S: Final = 60.0
PAUSES_S: Final = (2.0, 8.0, 30.0)  # before another try of a search
PAGE: Final = 5_000_000  # bytes of one page
PAGE_S: Final = 60.0  # for all of it; upstream's own bound is on silence
HOPS: Final = 10
BAD_KEY: Final = frozenset({401, 403})


class Web:
    """Answers a worker's `web.search` and `web.fetch`. Close it."""

    def __init__(self, key: str, *, search: str = SEARCH, private: bool = False) -> None:
        self._key = key
        self._search = search
        self._private = private
        self._made: httpx2.AsyncClient | None = None

    async def answer(self, method: str, params: JSONObject) -> JSONValue:
        """What the worker asked. Raises InfraError."""
        if method == "web.search":
            return await self._found(params)
        if method == "web.fetch":
            return await self._page(params)
        raise InfraError(f"the bfcl worker asks for {method}, which is nothing that is answered")

    async def close(self) -> None:
        """Let go of connections."""
        if self._made is not None:
            await self._made.aclose()
            self._made = None

    def _client(self) -> httpx2.AsyncClient:
        import httpx2  # half a second of imports that only a search pays

        if self._made is None:
            self._made = httpx2.AsyncClient(follow_redirects=False)
        return self._made

    # ── searches ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _found(self, params: JSONObject) -> JSONValue:
        asked = {name: str(value) for name, value in params.items() if value is not None}
        query = {**asked, "api_key": self._key, "source": "python", "output": "json"}
        why = ""
        for pause in (0.0, *PAUSES_S):
            await asyncio.sleep(pause)
            status, found, why = await self._asked(query)
            if status in BAD_KEY:
                raise FatalInfraError(f"SerpApi refuses the key: {why}", hint=f"check {KEY}")
            if found is not None:
                return found
        raise InfraError(f"SerpApi does not answer: {why}")

    async def _asked(self, query: dict[str, str]) -> tuple[int, JSONObject | None, str]:
        """One try: the status, what was found unless it may be asked again, and what was said."""
        client = self._client()
        import httpx2

        try:
            response = await client.get(self._search, params=query, timeout=SEARCH_S)
        except httpx2.HTTPError as error:
            return 0, None, type(error).__name__  # its text would hold the key
        try:
            found = response.json()
        except ValueError:
            return response.status_code, None, f"status {response.status_code}, and no JSON"
        said = str(found.get("error", "")) if isinstance(found, dict) else ""
        again = response.status_code == 429 or response.status_code >= 500 or "429" in said
        told = f"status {response.status_code} {said}".strip().replace(self._key, "…")
        return response.status_code, found if isinstance(found, dict) and not again else None, told

    # ── pages ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _page(self, params: JSONObject) -> JSONObject:
        import httpx2

        url, given = str(params["url"]), params.get("headers")
        headers = {str(k): str(v) for k, v in given.items()} if isinstance(given, dict) else {}
        headers.pop("Accept-Encoding", None)  # what can be decoded is the client's to say
        silence_s = float(str(params.get("timeout_s") or 20.0))
        try:
            async with asyncio.timeout(PAGE_S):
                return await self._followed(url, headers, silence_s)
        except TimeoutError:
            return {"unreachable": f"{url} took longer than {PAGE_S:g} s"}
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            return {"unreachable": f"{type(error).__name__}: {error}"}

    async def _followed(self, url: str, headers: dict[str, str], silence_s: float) -> JSONObject:
        for _ in range(HOPS):
            if (why := await self._closed(url)) is not None:
                return {"unreachable": why}
            async with self._client().stream("GET", url, headers=headers, timeout=silence_s) as response:
                if response.next_request is not None:
                    url = str(response.next_request.url)
                    continue
                body = b""
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > PAGE:
                        return {"unreachable": f"{url} is larger than {PAGE:,} bytes"}
                page: JSONObject = {"text": _decoded(body, response.encoding)}
                if response.status_code >= 400:
                    side = "Client" if response.status_code < 500 else "Server"
                    page["failure"] = f"{response.status_code} {side} Error: {response.reason_phrase} for url: {url}"
                return page
        return {"unreachable": f"{url} came after {HOPS} redirections"}

    async def _closed(self, url: str) -> str | None:
        """Why an address is none to be fetched for an agent; None if it is."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            return f"{url} is no address of a web page"
        if self._private:
            return None
        port = parts.port or (443 if parts.scheme == "https" else 80)
        found = await asyncio.get_running_loop().getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
        if all(ipaddress.ip_address(str(address[0]).partition("%")[0]).is_global for *_, address in found):
            return None
        return f"{parts.hostname} is not on the public internet"


def _decoded(body: bytes, encoding: str | None) -> str:
    try:
        return body.decode(encoding or "utf-8", errors="replace")
    except LookupError:  # an encoding that a server made up
        return body.decode("utf-8", errors="replace")
