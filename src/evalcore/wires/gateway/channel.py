"""One role's door to a model, in memory. Bodies are Chat Completions JSON; the HTTP form serves the same object."""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_
from typing import Final

import orjson
from attrs import evolve

from evalcore.contracts import CallContext
from evalcore.errors import AgentError, FatalInfraError
from evalcore.values.json import JSONObject, JSONValue, has_odd_float
from evalcore.values.task import Role
from evalcore.values.trial import TrialKey
from evalcore.values.usage import Usage, implausible, usage_from_chat
from evalcore.wires.gateway.prices import ModelPrice
from evalcore.wires.gateway.refused import RefusedRequest
from evalcore.wires.gateway.upstream import Upstream
from evalcore.wires.meter import Meter, text_of
from evalcore.wires.recorder import AttemptRecorder

DISBELIEVED: Final = "usage-disbelieved"  # an attempt's flag: a provider reported numbers that cannot be


class MemoryChannel:
    """Recorded, limited access to one model for one role of one attempt."""

    dialect = "openai-chat"
    url: str | None = None

    def __init__(
        self,
        role: Role,
        model: str,
        upstream: Upstream,
        parameters: Mapping[str, JSONValue],
        recorder: AttemptRecorder,
        meter: Meter,
        key: TrialKey,
        attempt: int,
        seed: int,
        settings: Mapping[str, JSONValue] | None = None,
        price: ModelPrice | None = None,
    ) -> None:
        self.role = role
        self.model = model
        self.parameters = parameters
        self._name = model.partition("/")[2]
        self._upstream = upstream
        self._recorder = recorder
        self._meter = meter
        self._key, self._attempt, self._seed = key, attempt, seed
        self._settings = settings or {}
        self._price = price  # None: not known
        self._calls = 0
        self._base = 0  # call of the request before
        self._said: list[JSONValue] = []  # messages of the request before
        self._messages = b""  # the same, encoded
        self._rest = b""  # and the rest of that request
        self._applied: JSONObject = {"applied": dict(parameters)} if parameters else {}  # over what the agent asked for

    async def complete(self, body: JSONObject) -> JSONObject:
        """Answer one request. Raises LimitReached, AgentError for a bad request, InfraError for the provider."""
        reserved = self._meter.begin_model_call(self.role, *self._foreseen(body))
        usage = None
        self._calls += 1
        call = self._calls  # calls may run side by side
        began = self._recorder.elapsed()
        try:
            self._record_request(body)
            response = await self._ask({**body, **self.parameters} if self.parameters else body, call)
            wall_s = round(self._recorder.elapsed() - began, 6)
            wrong = implausible(response.get("usage"))
            noted: JSONObject = {"disbelieved": list(wrong)} if wrong else {}
            self._recorder.record("model.response", role=self.role, call=call, body=response, wall_s=wall_s, **noted)
            usage = self._believed(response, wrong)
            self._meter.answered_by(self.role, response.get("model"))
            return response
        finally:
            self._meter.end_model_call(self.role, reserved, usage, self._recorder.elapsed() - began)

    def _foreseen(self, body: JSONObject) -> tuple[float, bool]:
        """What the request may cost, where its price is known and money is bounded."""
        if self._price is None or not self._meter.budgeted:
            return 0.0, False
        return self._price.foreseen({**body, **self.parameters})

    def _believed(self, response: JSONObject, wrong: list[str]) -> Usage:
        """What the response says that it used; where that cannot be, the call counts as one that did not say."""
        if not wrong:
            return self._with_cost(usage_from_chat(response), response)
        self._meter.flags.add(DISBELIEVED)
        return Usage(calls=1, unreported=1)

    def _with_cost(self, usage: Usage, response: JSONObject) -> Usage:
        """The usage with its cost: what the provider says that it charges, else by the model's price."""
        if self._price is None or usage.cost_usd is not None:
            return usage
        return evolve(usage, cost_usd=self._price.cost(usage, response.get("service_tier")))

    async def _ask(self, body: JSONObject, call: int) -> JSONObject:
        context = CallContext(self._key, self._attempt, self.role, call, self._seed, self._settings)
        try:
            response: object = await self._upstream.ask(self._name, body, context, self._recorder, self._waits)
            return _answer(response)
        except (Exception, SystemExit) as error:
            kind, message = type(error).__name__, text_of(error)
            self._recorder.record("model.error", role=self.role, call=call, kind=kind, message=message)
            if isinstance(error, RefusedRequest) and error.param in self.parameters:  # it is the arm's, no agent's
                error = FatalInfraError(f"the provider does not take the arm's {error.param}: {message}")
            if isinstance(error, AgentError):
                raise
            raise self._meter.fail(error, f"provider of {self.model!r}") from error

    def _waits(self, waits: bool) -> None:
        """The trial's clock stands still while the provider is waited for."""
        self._meter.waits(waits, self._recorder.elapsed())

    def _record_request(self, body: JSONObject) -> None:
        """Record what the request adds to the one before: a conversation of n turns is stored once, not n times."""
        messages = body.get("messages")
        if not isinstance(messages, list):
            raise AgentError("a request needs `messages`, a list")
        rest = {k: v for k, v in body.items() if k != "messages"}
        try:
            self._record_addition(messages, orjson.dumps(messages), orjson.dumps(rest), rest)
        except (TypeError, ValueError):  # a value beyond the fast encoder: keep it whole and exact
            self._record_whole(messages, rest)

    def _record_addition(self, messages: list[JSONValue], encoded: bytes, rest: bytes, rest_value: JSONObject) -> None:
        before, grows = self._messages, False
        if before and encoded.startswith(before[:-1]):
            following = encoded[len(before) - 1 : len(before)]
            grows = following in (b",", b"]")
        added = b"[" + encoded[len(before) :] if grows else encoded
        if grows and encoded[len(before) - 1 : len(before)] == b"]":
            added = b"[]"
        known = len(self._said)
        if grows and all(map(is_, messages, self._said)):
            odd = self._is_odd(added, messages[known:])
        else:  # new objects, even if they are encoded alike: a null may be a NaN now
            odd = self._is_odd(encoded, messages)
        if odd or self._is_odd(rest, rest_value):
            self._record_whole(messages, rest_value)
            return
        head = b'"e":"model.request","role":"%s","call":%d' % (self.role.encode(), self._calls)
        base = b',"base":%d' % self._base if grows else b""
        tail = b"" if rest == self._rest and grows else b',"rest":' + rest
        if self._applied:
            tail += b"," + orjson.dumps(self._applied)[1:-1]
        self._recorder.record_encoded(head + base + b',"add":' + added + tail + b"}")
        self._base, self._said, self._messages, self._rest = self._calls, list(messages), encoded, rest

    @staticmethod
    def _is_odd(encoded: bytes, value: object) -> bool:
        """Whether the fast encoder lost something: it writes NaN as null."""
        return b"null" in encoded and has_odd_float(value)

    def _record_whole(self, messages: list[JSONValue], rest: JSONObject) -> None:
        self._recorder.record(
            "model.request", role=self.role, call=self._calls, add=messages, rest=rest, **self._applied
        )
        self._said, self._messages, self._rest = [], b"", b""


def _answer(response: object) -> JSONObject:
    """The provider's response, if it is one. Raises TypeError: what has no choices is a failure in disguise."""
    if not isinstance(response, dict):
        raise TypeError(f"answered {type(response).__name__}, no object")
    choices = response.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise TypeError(f"answered without choices: {str(response.get('error') or response)[:200]}")
    if not isinstance(choices[0].get("message"), dict):
        raise TypeError("answered a choice without a message")
    return response
