"""Faults that a study has injected on purpose: how often each, and how."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from attrs import asdict, field, frozen, validators

from evalcore.values.json import JSONObject

Place: TypeAlias = Literal["agent", "provider"]


def _share() -> Any:
    """How much of what could be hit is hit: above 0, at most 1."""
    return field(validator=[validators.gt(0), validators.le(1)])


def _seconds(default: float, most: float) -> Any:
    return field(default=default, validator=[validators.gt(0), validators.le(most)])


@frozen
class Latency:
    """Model calls that begin later by so many seconds."""

    share: float = _share()
    seconds: float = _seconds(2.0, 600)


@frozen
class RateLimit:
    """HTTP 429 for `burst` model calls in a row, with a Retry-After."""

    share: float = _share()
    burst: int = field(default=3, validator=[validators.ge(1), validators.le(100)])
    retry_after_s: float = _seconds(1.0, 60)
    at: Place = "agent"


@frozen
class ServerError:
    """A 5xx in the place of a model's answer."""

    share: float = _share()
    status: int = field(default=503, validator=[validators.ge(500), validators.lt(600)])
    at: Place = "agent"


@frozen
class CutAnswer:
    """A model's answer that breaks off: a stream after its first event, one that is not streamed as a 502."""

    share: float = _share()
    at: Place = "agent"


@frozen
class Malformed:
    """Tool calls of a model whose arguments are cut in half."""

    share: float = _share()


@frozen
class ToolError:
    """Tool calls that fail and never reach the environment. `tools` is a shell pattern."""

    share: float = _share()
    tools: str = "*"
    message: str = "internal error"


@frozen
class ToolTimeout:
    """Tool calls that fail after so many seconds, and never reach the environment."""

    share: float = _share()
    tools: str = "*"
    seconds: float = _seconds(10.0, 600)


@frozen
class Dropped:
    """Tool calls whose MCP connection is closed in the place of an answer; the environment has made them."""

    share: float = _share()
    tools: str = "*"


@frozen
class Injection:
    """The table `[faults]`. What is None is not injected.

    `beside` runs every trial twice, without faults and with them, so that both can be seen; else with them alone.
    """

    seed: int = 0
    beside: bool = True
    latency: Latency | None = None
    rate_limit: RateLimit | None = None
    server_error: ServerError | None = None
    cut_answer: CutAnswer | None = None
    malformed_arguments: Malformed | None = None
    tool_error: ToolError | None = None
    tool_timeout: ToolTimeout | None = None
    dropped_connection: Dropped | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing is injected."""
        return all(getattr(self, kind) is None for kind in KINDS)

    def as_json(self) -> JSONObject:
        """As the study file has it, defaults written out."""
        return asdict(self, filter=lambda _, value: value is not None)


KINDS: Final = (
    "latency",
    "rate_limit",
    "server_error",
    "cut_answer",
    "malformed_arguments",
    "tool_error",
    "tool_timeout",
    "dropped_connection",
)
