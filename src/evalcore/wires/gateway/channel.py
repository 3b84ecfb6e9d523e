"""One role's door to a model, in memory. Bodies are in the agent's dialect; the HTTP form serves the same object.

Where the provider speaks that dialect, a body passes as it is. Else it is translated; what that left out, and what the
provider says it used, is in the trace beside what the agent saw.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Final

from attrs import evolve

from evalcore.contracts import CallContext, StreamingProvider, TokenCounter
from evalcore.errors import AgentError, ConfigError, FatalInfraError, InfraError, ReplayError
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import Role
from evalcore.values.trial import TrialKey
from evalcore.values.usage import Usage, implausible, usage_of
from evalcore.wires.gateway.dialects import CHAT
from evalcore.wires.gateway.dialects.chat import beside_calls, put_back
from evalcore.wires.gateway.dialects.translate import SPOKEN, StreamRelay, translate_request, translate_response
from evalcore.wires.gateway.prices import ModelPrice
from evalcore.wires.gateway.refused import RefusedRequest
from evalcore.wires.gateway.tape import Answer, Tape
from evalcore.wires.gateway.transcript import Transcript
from evalcore.wires.gateway.upstream import Upstream
from evalcore.wires.meter import Meter, text_of
from evalcore.wires.recorder import AttemptRecorder

ALIASES: Final = "model_aliases"  # the axis that declares them; it is this channel's, and no part of a request
DISBELIEVED: Final = "usage-disbelieved"  # an attempt's flag: a provider reported numbers that cannot be


class _Call:
    """One call on its way: what was asked in which dialect, and what goes to the provider in which."""

    __slots__ = ("began", "dialect", "first_s", "number", "replayed", "reserved", "spoken", "translated", "usage")

    def __init__(
        self, number: int, dialect: str, spoken: str, began: float, reserved: float, replayed: bool = False
    ) -> None:
        self.number = number
        self.dialect = dialect
        self.spoken = spoken
        self.translated = dialect != spoken
        self.began = began
        self.reserved = reserved
        self.replayed = replayed
        self.usage: Usage | None = None  # once it is known
        self.first_s: float | None = None  # until the first event of a stream


class MemoryChannel:
    """Recorded, limited access to one model for one role of one attempt."""

    dialect = CHAT
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
        tape: Tape | None = None,
    ) -> None:
        self.role = role
        self.model = model
        self.parameters = parameters
        self.aliases: tuple[str, ...] | None = None
        if ALIASES in parameters:
            self.parameters = {k: v for k, v in parameters.items() if k != ALIASES}
            self.aliases = aliases_of(parameters[ALIASES])
        self._name = model.partition("/")[2]
        self._upstream = upstream
        self._spoken = upstream.dialects
        self._recorder = recorder
        self._meter = meter
        self._key, self._attempt, self._seed = key, attempt, seed
        self._settings = settings or {}
        self._price = price  # None: not known
        self._tape = tape  # where answers come from in a replay
        self._calls = 0
        self._transcript = Transcript(role, recorder)
        self._beside_calls: dict[str, JSONObject] = {}  # by id of a call: what no other dialect can hand back
        self._applied: JSONObject = {"applied": dict(self.parameters)} if self.parameters else {}

    @property
    def streams(self) -> bool:
        """Whether answers come in pieces: the provider's do; those of a tape, and those that faults change, do not."""
        whole = self._tape is not None or self._upstream.takes_whole
        return not whole and isinstance(self._upstream.provider, StreamingProvider)

    async def complete(self, body: JSONObject, dialect: str = CHAT) -> JSONObject:
        """Answer one request. Raises LimitReached, AgentError for a bad request, InfraError for the provider."""
        known = None if self._tape is None else self._tape.answer(self.role, body)
        call = self._begin(body, dialect, replayed=known is not None)
        try:
            asked = self._prepared(call, body)
            if known is not None:
                return self._replayed(known, call)
            if self._tape is not None:
                self._diverge(self._tape, body, call)
            response = await self._ask(asked, call)
            return self._answered(call, response, self._told(call, response))
        except asyncio.CancelledError:
            self._unheard(call)
            raise
        finally:
            self._end(call)

    async def stream(
        self, body: JSONObject, dialect: str = CHAT, *, with_usage: bool = True
    ) -> AsyncGenerator[JSONObject]:
        """Answer one request in the events of its dialect, as they come. Raises as `complete`, also between events.

        Whoever stops asking for events ends the provider's work: what came is recorded, and counted as far as known.
        """
        if not self.streams:
            for event in SPOKEN[dialect].cut(await self.complete(body, dialect), with_usage):
                yield event
            return
        call = self._begin(body, dialect)
        relay = StreamRelay(call.spoken, dialect, with_usage=with_usage)
        try:
            asked = self._prepared(call, body)
            async with aclosing(self._events(asked, call, relay)) as events:
                async for made in events:
                    yield made
            self._answered(call, relay.upstream(), relay.whole())
        except (GeneratorExit, asyncio.CancelledError):
            self._left(call, relay)
            raise
        finally:
            self._end(call)

    async def count_tokens(self, body: JSONObject, dialect: str) -> JSONObject:
        """The tokens of a request that is not sent. Raises RefusedRequest where the provider cannot tell."""
        provider = self._upstream.provider
        if not isinstance(provider, TokenCounter) or dialect not in self._spoken:
            raise RefusedRequest("the provider of this model counts no tokens beforehand", status=404, code="not_found")
        context = self._context(0, dialect)
        try:
            return await provider.count_tokens(self._name, body, context)
        except Exception as error:
            if isinstance(error, AgentError):
                raise
            raise self._meter.fail(error, f"provider of {self.model!r}") from error

    # ── one call, step by step ───────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, body: JSONObject, dialect: str, *, replayed: bool = False) -> _Call:
        """Check the limits. From here on the call counts, whatever becomes of it. One from a tape costs nothing."""
        foreseen = (0.0, True) if replayed else self._foreseen(body)
        reserved = self._meter.begin_model_call(self.role, *foreseen)
        self._calls += 1
        spoken = dialect if dialect in self._spoken else self._spoken[0]
        return _Call(self._calls, dialect, spoken, self._recorder.elapsed(), reserved, replayed)

    def _prepared(self, call: _Call, body: JSONObject) -> JSONObject:
        """The provider's body; the agent's is recorded. Raises RefusedRequest for what cannot be translated."""
        refused: AgentError | None = None
        beside, asked = self._applied, body
        if call.translated or self.aliases is not None:
            try:
                self._check_name(body)
                if call.translated:
                    asked, notes = translate_request(self._without_set(body), call.dialect, call.spoken)
                    if "max_output_tokens" in self.parameters:
                        notes.added.pop("max_tokens", None)  # the arm's stands in its place
                    beside = {**beside, **notes.as_json()}
                    if self._beside_calls:
                        put_back(asked, self._beside_calls)
            except AgentError as error:
                refused = error
        self._transcript.record(call.number, body, call.dialect, beside)
        if refused is not None:
            self._note_error(call, refused)
            raise refused
        if not self.parameters:
            return asked
        try:
            return SPOKEN[call.spoken].apply(asked, self.parameters)
        except ConfigError as error:
            self._note_error(call, error)
            raise self._meter.fail(error, f"provider of {self.model!r}") from None

    async def _ask(self, body: JSONObject, call: _Call) -> JSONObject:
        context = self._context(call.number, call.spoken)
        try:
            response: object = await self._upstream.ask(self._name, body, context, self._recorder, self._waits)
            return checked(response, call.spoken)
        except (Exception, SystemExit) as error:
            self._note_error(call, error)
            if isinstance(raised := self._raised(error), AgentError):
                raise
            raise raised from error

    async def _events(self, body: JSONObject, call: _Call, relay: StreamRelay) -> AsyncGenerator[JSONObject]:
        """The agent's events. A stream that breaks off is a failure of the provider's."""
        context = self._context(call.number, call.spoken)
        try:
            coming = self._upstream.stream(self._name, body, context, self._recorder, self._waits)
            async with aclosing(_generator(coming)) as events:
                async for event in events:
                    if call.first_s is None:
                        call.first_s = self._recorder.elapsed() - call.began
                    for made in relay.add(event):
                        yield made
            if not relay.ended:
                raise InfraError("the provider's stream was cut")
            checked(relay.upstream(), call.spoken)
            for made in relay.close():
                yield made
        except (Exception, SystemExit) as error:
            self._note_error(call, error)
            if isinstance(raised := self._raised(error), AgentError):
                raise
            raise raised from error

    def _answered(self, call: _Call, response: JSONObject, told: JSONObject, **more: JSONValue) -> JSONObject:
        """Record the answer, and count what it used."""
        wrong = implausible(response.get("usage"))
        fields: JSONObject = more
        if call.dialect != CHAT:
            fields["dialect"] = call.dialect
        if wrong:
            fields["disbelieved"] = list(wrong)
        if call.translated:
            if call.spoken == CHAT:
                self._beside_calls.update(beside_calls(response))
            fields["upstream"] = {"dialect": call.spoken, "usage": response.get("usage")}
        if call.first_s is not None:
            fields["first_s"] = round(call.first_s, 6)
        wall_s = round(self._recorder.elapsed() - call.began, 6)
        self._recorder.record("model.response", role=self.role, call=call.number, body=told, wall_s=wall_s, **fields)
        call.usage = self._believed(call, response, wrong)
        self._meter.answered_by(self.role, response.get("model"))
        return told

    def _end(self, call: _Call) -> None:
        elapsed = self._recorder.elapsed() - call.began
        self._meter.end_model_call(self.role, call.reserved, call.usage, elapsed, paid=not call.replayed)

    def _replayed(self, known: Answer, call: _Call) -> JSONObject:
        """What was answered then, with what the provider said of its usage."""
        assert self._tape is not None
        self._recorder.record(
            "model.replayed", role=self.role, call=call.number, then=known.call, source=self._tape.source
        )
        if known.body is None:
            refused = RefusedRequest(known.refusal or "")
            self._note_error(call, refused)
            raise refused
        own = known.body if known.usage is None else {**known.body, "usage": known.usage}
        return self._answered(call, own, known.body)

    def _diverge(self, tape: Tape, body: JSONObject, call: _Call) -> None:
        """Tell where the request leaves the tape. Raises ReplayError unless the model may be asked instead."""
        found = tape.divergence(self.role, call.number, body)
        fields: JSONObject = {"what": found.what, "at": found.at, "difference": found.difference}
        self._recorder.record("model.diverged", role=self.role, call=call.number, **fields)
        if not tape.record_missing:
            text = f"call {call.number} of the role {self.role} is not on the tape ({tape.source}): {found.what}"
            raise self._meter.fail(ReplayError(text), "replay")

    def _told(self, call: _Call, response: JSONObject) -> JSONObject:
        if not call.translated:
            return response
        try:
            return translate_response(response, call.spoken, call.dialect)
        except Exception as error:
            self._note_error(call, error)
            raise self._meter.fail(error, f"provider of {self.model!r}") from error

    def _left(self, call: _Call, relay: StreamRelay) -> None:
        """The agent hung up: keep what it had. What the provider says of its usage by then is less than it was."""
        if call.first_s is None:
            self._unheard(call)
            return
        self._answered(call, relay.upstream(), relay.whole(), partial=True)
        if call.usage is not None:
            call.usage = evolve(call.usage, unreported=1, cost_usd=None)

    def _unheard(self, call: _Call) -> None:
        """Nobody waits for the answer any more. The provider may bill for it all the same: what it used is unknown."""
        message = "the agent hung up, or its trial ended, before the answer came"
        self._recorder.record("model.error", role=self.role, call=call.number, kind="unheard", message=message)
        call.usage = Usage(calls=1, unreported=1)

    # ── what belongs to it ───────────────────────────────────────────────────────────────────────────────────────────

    def _context(self, number: int, dialect: str) -> CallContext:
        return CallContext(self._key, self._attempt, self.role, number, self._seed, self._settings, dialect=dialect)

    def _without_set(self, body: JSONObject) -> JSONObject:
        """The body without what the arm sets anyway: that the agent's own could not be translated is then no matter."""
        return {k: v for k, v in body.items() if k not in self.parameters} if self.parameters else body

    def _check_name(self, body: JSONObject) -> None:
        """Raises RefusedRequest for a name that is not declared; where none is, every name is the arm's model."""
        if self.aliases is not None and body.get("model") not in self.aliases:
            raise RefusedRequest(
                f"the model {str(body.get('model'))[:200]!r} does not exist here", status=404, code="model_not_found"
            )

    def _note_error(self, call: _Call, error: BaseException) -> None:
        kind, message = type(error).__name__, text_of(error)
        self._recorder.record("model.error", role=self.role, call=call.number, kind=kind, message=message)

    def _raised(self, error: BaseException) -> BaseException:
        """The error as the agent's side sees it. One about a parameter that the arm sets is no agent's."""
        if isinstance(error, RefusedRequest) and error.param in self.parameters:
            error = FatalInfraError(f"the provider does not take the arm's {error.param}: {text_of(error)}")
        if isinstance(error, AgentError):
            return error
        return self._meter.fail(error, f"provider of {self.model!r}")

    def _foreseen(self, body: JSONObject) -> tuple[float, bool]:
        """What the request may cost, where its price is known and money is bounded."""
        if self._price is None or not self._meter.budgeted:
            return 0.0, False
        return self._price.foreseen({**body, **self.parameters})

    def _believed(self, call: _Call, response: JSONObject, wrong: list[str]) -> Usage:
        """What the response says that it used; where that cannot be, the call counts as one that did not say."""
        if not wrong:
            return self._with_cost(usage_of(response, call.spoken), response)
        self._meter.flags.add(DISBELIEVED)
        return Usage(calls=1, unreported=1)

    def _waits(self, waits: bool) -> None:
        """The trial's clock stands still while the provider is waited for."""
        self._meter.waits(waits, self._recorder.elapsed())

    def _with_cost(self, usage: Usage, response: JSONObject) -> Usage:
        """The usage with its cost: what the provider says that it charges, else by the model's price."""
        if self._price is None or usage.cost_usd is not None:
            return usage
        raw = response.get("usage")
        tier = response.get("service_tier") or (raw.get("service_tier") if isinstance(raw, dict) else None)
        return evolve(usage, cost_usd=self._price.cost(usage, tier))


def _generator(events: AsyncIterator[JSONObject]) -> AsyncGenerator[JSONObject]:
    """The same: what is written with `yield` can be closed, and is."""
    assert isinstance(events, AsyncGenerator)
    return events


def aliases_of(value: JSONValue) -> tuple[str, ...] | None:
    """The declared names, from a text with commas; None: any."""
    if not isinstance(value, str) or value == "any":
        return None
    return tuple(name.strip() for name in value.split(",") if name.strip())


def checked(response: object, dialect: str) -> JSONObject:
    """The provider's response, if it is one. Raises TypeError: what has no answer in it is a failure in disguise."""
    if not isinstance(response, dict):
        raise TypeError(f"answered {type(response).__name__}, no object")
    field = SPOKEN[dialect].answers
    found = response.get(field)
    if isinstance(found, list) and dialect != CHAT:
        return response
    if not isinstance(found, list) or not found or not isinstance(found[0], dict):
        raise TypeError(f"answered without {field}: {str(response.get('error') or response)[:200]}")
    if not isinstance(found[0].get("message"), dict):
        raise TypeError("answered a choice without a message")
    return response
