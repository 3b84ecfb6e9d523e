"""Web search in a process without a network: upstream's class asks for searches and pages, the host fetches them.

Upstream's class does so by two packages, `requests` and `serpapi`. Here they are a few lines each, which ask the host:
it has the key, and no agent's text is executed there. Everything else of the class is as upstream wrote it.
"""

import contextlib
import sys
import types
from collections.abc import Iterator
from typing import Any

from evalcore_bfcl.native import JSONObject

PACKAGES = ("requests", "serpapi")
_HOSTS: list[Any] = []  # who answers the call that is being executed


@contextlib.contextmanager
def answered_by(host: Any) -> Iterator[None]:
    """What is executed in the body may ask the host."""
    _HOSTS.append(host)
    try:
        yield
    finally:
        _HOSTS.pop()


def install() -> None:
    """Put these packages where upstream's class looks for them."""
    requests, serpapi = (types.ModuleType(name) for name in PACKAGES)
    requests.__dict__["get"] = get
    serpapi.__dict__["GoogleSearch"] = GoogleSearch
    sys.modules.update(requests=requests, serpapi=serpapi)


class Page:
    """A page as `requests` gives it, as far as it is looked at."""

    def __init__(self, text: str, failure: "str | None") -> None:
        self.text = text
        self._failure = failure

    def raise_for_status(self) -> None:
        """Raises what the status of the answer says, if it is an error."""
        if self._failure is not None:
            raise OSError(self._failure)


def get(url: str, headers: JSONObject, timeout: float, **_: object) -> Page:
    """A page, by the host. Raises OSError where it cannot be had."""
    answer = _HOSTS[-1]("web.fetch", {"url": url, "headers": headers, "timeout_s": timeout})
    if "unreachable" in answer:
        raise OSError(answer["unreachable"])
    return Page(answer["text"], answer.get("failure"))


class GoogleSearch:
    """A search, by the host, which adds the key."""

    def __init__(self, parameters: JSONObject) -> None:
        self._parameters = {name: value for name, value in parameters.items() if name != "api_key"}

    def get_dict(self) -> JSONObject:
        """The provider's answer."""
        found: JSONObject = _HOSTS[-1]("web.search", self._parameters)
        return found
