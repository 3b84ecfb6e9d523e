"""What a provider's refusal says, and what it means: `provider_http` has the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from attrs import frozen

from evalcore.errors import FatalInfraError, TransientError
from evalcore.values.json import JSONObject, JSONValue
from evalcore.wires.gateway.refused import RefusedRequest

_KEY_REFUSED: Final = frozenset({401, 402, 403})
_TRANSIENT: Final = frozenset({408, 409, 425, 429})
_REQUEST_REFUSED: Final = frozenset({400, 413, 422})

# What servers name in a text, without `param`, and the axis behind it.
_PARAMETERS: Final[Mapping[str, str]] = {
    "temperature": "temperature",
    "top_p": "top_p",
    "reasoning_effort": "reasoning_effort",
    "reasoning.effort": "reasoning_effort",
    "output_config": "reasoning_effort",
}
_BOUNDS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_EFFORTS: Final = ("reasoning.effort", "reasoning", "output_config.effort", "output_config")

# The status behind an error that comes where there is none: in a stream, or in an answer with status 200.
_STATUS: Final[Mapping[str, int]] = {
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


@frozen
class Refusal:
    """What an answer says of why it is none."""

    status: int
    message: str
    code: str | None
    kind: str | None
    param: str | None

    @classmethod
    def of(cls, status: int, answer: JSONObject, data: bytes) -> Refusal:
        """The usual `error` object, a text in its place, or the bare body; some answer 200 and say it inside."""
        error = answer.get("error")
        told = error if isinstance(error, dict) else answer
        message = error if isinstance(error, str) else told.get("message") or told.get("detail")
        text = message if isinstance(message, str) else data[:500].decode("utf-8", "replace")
        code, kind = told.get("code"), told.get("type")
        if status == 200 and isinstance(code, int):
            status = code
        elif status == 200:
            status = _STATUS.get(str(code)) or _STATUS.get(str(kind)) or status
        return cls(status, text[:500], _text(code), _text(kind), _parameter(told.get("param"), text))

    @classmethod
    def within(cls, value: JSONObject, dialect: str) -> Refusal | None:
        """The error that an event, or an answer with status 200, is; None if it is none."""
        kind = value.get("type")
        if dialect == "openai-responses":
            response = value.get("response") if kind == "response.failed" else value
            if isinstance(response, dict) and (response.get("status") == "failed" or kind == "response.failed"):
                return cls.of(200, response, b"the response failed, and nothing is said of why")
            return cls.of(200, value, b"") if kind == "error" else None
        if kind == "error" or (not value.get("choices") and isinstance(value.get("error"), (dict, str))):
            return cls.of(200, value, b"")
        return None


def meaning(
    refusal: Refusal,
    where: str,
    variable: str,
    model: str,
    wait_s: float | None,
    *,
    keyed: bool,
    clean: Callable[[str], str],
) -> Exception:
    """The error to raise for an answer that is none."""
    status = refusal.status
    text = clean(f"HTTP {status}: {refusal.message}" if refusal.message else f"HTTP {status}")
    if status in _KEY_REFUSED or "insufficient_quota" in (refusal.code, refusal.kind):
        what = f"does not take the key in {variable}" if keyed else f"wants a key in {variable}"
        return FatalInfraError(f"{where} {what}: {text}", hint=f"check {variable} and the account's credit")
    if status in _TRANSIENT or status >= 500 or status == 200:
        return TransientError(f"{where}: {text}", wait_s=wait_s, status=status)
    if status in _REQUEST_REFUSED and refusal.code != "model_not_found":
        return RefusedRequest(text, status=status, code=refusal.code, param=refusal.param)
    return FatalInfraError(f"{where} cannot serve {model!r}: {text}", hint="check the model's name and base_url")


def _parameter(named: JSONValue, text: str) -> str | None:
    """The axis, or the field, that a refusal is about."""
    if named is None:
        named = next((axis for name, axis in _PARAMETERS.items() if name in text), None)
        if named is None and text.startswith(_BOUNDS):
            named = "max_output_tokens"
    if named in _BOUNDS:
        return "max_output_tokens"
    return "reasoning_effort" if named in _EFFORTS else _text(named)


def _text(value: JSONValue) -> str | None:
    return value if isinstance(value, str) else None
