"""What an agent is told when it gets no answer, in its dialect. What is wrong with the machine is not its to know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen

from evalcore.errors import AgentError, BudgetExceeded, LimitReached
from evalcore.values.json import JSONObject
from evalcore.wires.gateway.dialects import CHAT, MESSAGES, RESPONSES
from evalcore.wires.gateway.refused import RefusedRequest
from evalcore.wires.http.door import DoorClosed
from evalcore.wires.http.exchange import write_json

# The official clients retry 429 and 5xx on their own. The gateway has retried, or nothing can help: they are told so.
_NO_RETRY: Final = {b"x-should-retry": b"false"}

INVALID: Final = "invalid_request_error"
_MESSAGES_TYPES: Final = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


@frozen
class Failure:
    """A status and what is said with it, in OpenAI's words; Anthropic has a type for each status."""

    status: int
    message: str
    kind: str = INVALID
    code: str | None = None
    param: str | None = None
    retry_after_s: float | None = None  # None: it would fail again

    @property
    def headers(self) -> Mapping[bytes, bytes]:
        """Whether a client is to try again, and when."""
        return _NO_RETRY if self.retry_after_s is None else {b"retry-after": f"{self.retry_after_s:g}".encode()}

    def value(self, dialect: str) -> JSONObject:
        """The error object of a dialect."""
        if dialect == MESSAGES:
            kind = _MESSAGES_TYPES.get(self.status, INVALID if self.status < 500 else "api_error")
            return {"type": "error", "error": {"type": kind, "message": self.message}, "request_id": None}
        return {"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}}

    def body(self, dialect: str) -> bytes:
        """The same, encoded."""
        return write_json(self.value(dialect))

    def event(self, dialect: str, number: int) -> bytes:
        """The error as an event: what is said when a stream has begun. `number` counts events, for Responses."""
        if dialect == CHAT:
            return b"data: " + self.body(dialect) + b"\n\n"
        value = self.value(dialect)
        if dialect == RESPONSES:
            value = {
                "type": "error",
                "code": self.code or self.kind,
                "message": self.message,
                "param": self.param,
                "sequence_number": number,
            }
        return b"event: error\ndata: " + write_json(value) + b"\n\n"


def failure(error: Exception) -> Failure:
    """What a channel raised, as it is told."""
    if isinstance(error, (LimitReached, BudgetExceeded)):
        return Failure(429, error.message, "insufficient_quota", "insufficient_quota")
    if isinstance(error, RefusedRequest):
        return Failure(error.status, error.message, INVALID, error.code, error.param, error.retry_after_s)
    if isinstance(error, AgentError):
        return Failure(400, error.message)
    if isinstance(error, DoorClosed):
        return Failure(404, "not found", code="not_found")
    return Failure(502, "the model provider failed", "server_error", "provider_failure")
