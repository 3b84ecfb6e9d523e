"""Injects what a study declares. Whether a call is hit depends on the seed, the task, the repeat and the number of the
call, and on nothing else: every arm meets the same faults at the same calls, in every run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Final

from evalcore.contracts import CallContext, Recorder
from evalcore.errors import TransientError
from evalcore.values.injection import Injection, RateLimit
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.trial import TrialKey
from evalcore.wires.gateway.refused import RefusedRequest
from evalcore.wires.tools import ToolFault

_EVENT: Final = "fault.injected"


class InjectedFault(RefusedRequest):
    """A failure on purpose, as the agent sees a provider's: what becomes of it is the agent's doing."""


class Injector:
    """Decides and tells. One for a whole run."""

    def __init__(self, spec: Injection) -> None:
        self.spec = spec

    def hits(self, what: str, key: TrialKey, number: int, share: float) -> bool:
        """Whether the call of that number (of its kind, in its trial, from 1) is hit."""
        name = f"{self.spec.seed}/{key.benchmark}/{key.task}/{key.repeat}/{what}/{number}"
        drawn = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:8]
        return int.from_bytes(drawn, "big") < share * 2**64

    # ── models ──

    def delay_s(self, context: CallContext, events: Recorder) -> float:
        """How much later the call begins."""
        spec = self.spec.latency
        if spec is None or not self._of_agent("latency", context, spec.share):
            return 0.0
        self._tell(events, "latency", context, seconds=spec.seconds)
        return spec.seconds

    def refuse(self, context: CallContext, events: Recorder) -> None:
        """Raises InjectedFault where the agent is to meet a failure in the place of an answer."""
        spec, error = self.spec, self.spec.server_error
        if spec.rate_limit is not None and spec.rate_limit.at == "agent" and self._in_burst(spec.rate_limit, context):
            self._tell(events, "rate_limit", context, status=429)
            wait_s = spec.rate_limit.retry_after_s
            raise InjectedFault("rate limit reached", status=429, code="rate_limit_exceeded", retry_after_s=wait_s)
        if error is not None and error.at == "agent" and self._of_agent("server_error", context, error.share):
            self._tell(events, "server_error", context, status=error.status)
            raise InjectedFault("the server had an error", status=error.status, code="server_error", retry_after_s=0.5)

    def fail_try(self, context: CallContext, events: Recorder) -> None:
        """Raises TransientError where the gateway is to meet one: a burst lasts for so many tries of one call."""
        limit, error, cut = self.spec.rate_limit, self.spec.server_error, self.spec.cut_answer
        if limit is not None and limit.at == "provider" and self._lasts("rate_limit", context, limit):
            self._tell(events, "rate_limit", context, where="provider", status=429)
            raise TransientError("HTTP 429 (injected)", wait_s=limit.retry_after_s, status=429)
        if context.tries > 1:
            return
        if error is not None and error.at == "provider" and self._of_agent("server_error", context, error.share):
            self._tell(events, "server_error", context, where="provider", status=error.status)
            raise TransientError(f"HTTP {error.status} (injected)", status=error.status)
        if cut is not None and cut.at == "provider" and self._of_agent("cut_answer", context, cut.share):
            self._tell(events, "cut_answer", context, where="provider")
            raise TransientError("the answer was cut off (injected)")

    def cuts(self, context: CallContext, events: Recorder) -> bool:
        """Whether the agent gets only the beginning of the answer."""
        spec = self.spec.cut_answer
        if spec is None or spec.at != "agent" or not self._of_agent("cut_answer", context, spec.share):
            return False
        self._tell(events, "cut_answer", context)
        return True

    def cut_off(self) -> InjectedFault:
        """What an answer that breaks off ends with."""
        return InjectedFault("the answer was cut off", status=502, code="server_error", retry_after_s=0.5)

    def malform(self, response: JSONObject, context: CallContext, events: Recorder) -> JSONObject:
        """The response, with the arguments of its tool calls cut in half where that is due."""
        spec = self.spec.malformed_arguments
        if spec is None or not self._of_agent("malformed_arguments", context, spec.share):
            return response
        halved = _halved(response)
        if halved is None:
            return response
        self._tell(events, "malformed_arguments", context)
        return halved

    def _of_agent(self, what: str, context: CallContext, share: float) -> bool:
        return context.role == "agent" and self.hits(what, context.key, context.call, share)

    def _in_burst(self, spec: RateLimit, context: CallContext) -> bool:
        """Whether one of the last `burst` calls began a burst that still lasts."""
        first = max(1, context.call - spec.burst + 1)
        return context.role == "agent" and any(
            self.hits("rate_limit", context.key, number, spec.share) for number in range(first, context.call + 1)
        )

    def _lasts(self, what: str, context: CallContext, spec: RateLimit) -> bool:
        return context.tries <= spec.burst and self._of_agent(what, context, spec.share)

    def _tell(self, events: Recorder, what: str, context: CallContext, where: str = "agent", **more: JSONValue) -> None:
        events.record(_EVENT, what=what, where=where, role=context.role, call=context.call, **more)

    # ── tools ──

    def of_tools(self, key: TrialKey, events: Recorder) -> Callable[[str, int], ToolFault | None]:
        """What happens to the tool calls of a trial, by name and number: the first of the three kinds that is due."""
        spec = self.spec
        kinds: tuple[tuple[str, ToolFault | None], ...] = (
            ("tool_error", spec.tool_error),
            ("tool_timeout", spec.tool_timeout),
            ("dropped_connection", spec.dropped_connection),
        )

        def found(name: str, number: int) -> ToolFault | None:
            for what, kind in kinds:
                if kind is not None and fnmatchcase(name, kind.tools) and self.hits(what, key, number, kind.share):
                    events.record(_EVENT, what=what, where="tools", call=number, tool=name)
                    return kind
            return None

        return found


def _halved(response: JSONObject) -> JSONObject | None:
    """The response with its tool calls' arguments cut in half, in any of the three dialects; None if it has none.

    Where arguments are an object by the dialect's own rules (Anthropic Messages), the half that is left has no field.
    """
    hit = False

    def walk(value: JSONValue) -> JSONValue:
        nonlocal hit
        if isinstance(value, list):
            return [walk(item) for item in value]
        if not isinstance(value, dict):
            return value
        arguments, tool_use = value.get("arguments"), value.get("type") == "tool_use"
        if isinstance(arguments, str) and isinstance(value.get("name"), str):
            hit = True
            return {**value, "arguments": arguments[: max(1, len(arguments) // 2)]}
        if tool_use and isinstance(value.get("input"), dict):
            hit = True
            return {**value, "input": {}}
        return {name: walk(item) for name, item in value.items()}

    parts: JSONObject = {name: walk(response[name]) for name in ("choices", "output", "content") if name in response}
    return {**response, **parts} if hit else None
