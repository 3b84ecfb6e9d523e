"""What stands between every trial of a run and one provider: calls are paced, tried again, and wait out an outage."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from random import Random
from typing import Final, TypeAlias

from attrs import evolve

from evalcore.contracts import CallContext, Clock, Provider, Recorder, StreamingProvider
from evalcore.errors import InfraError, TransientError
from evalcore.values.json import JSONObject
from evalcore.wires.gateway import retries
from evalcore.wires.gateway.gate import Gate
from evalcore.wires.injection import Injector

DIALECT: Final = "openai-chat"

Waits: TypeAlias = Callable[[bool], None]


def unheeded(waits: bool) -> None:
    """For callers to whom it is all the same whether a call waits."""


class Upstream:
    """One provider at one address, for a whole run. Made once; shared by the channels of all trials."""

    def __init__(
        self, name: str, provider: Provider, clock: Clock, random: Random, injector: Injector | None = None
    ) -> None:
        self.name = name
        self.provider = provider
        self.dialect: str = getattr(provider, "dialect", DIALECT)
        self.dialects: tuple[str, ...] = getattr(provider, "dialects", (self.dialect,))
        self.gate = Gate(name, clock)
        self._random = random.random
        self._injector = injector  # of faults, on purpose

    @property
    def takes_whole(self) -> bool:
        """Whether answers have to be whole before they can be passed on."""
        return self._injector is not None and self._injector.spec.malformed_arguments is not None

    async def ask(
        self, model: str, body: JSONObject, context: CallContext, events: Recorder, waits: Waits = unheeded
    ) -> JSONObject:
        """One answer. `waits` is told when the call begins to wait for the provider, and when it ends to.

        Raises InfraError once no try is left, OutageError after an outage, Interrupted if the run is stopped meanwhile.
        """
        gate = self.gate
        if gate.careful or self._injector is not None:
            return await self._ask_carefully(model, body, _Call(gate, self._random, context, events, waits))
        began, pacing = gate.now(), gate.pacing
        begun = pacing.fallen
        pacing.running += 1
        try:  # nearly every call: nothing is limited, and nothing goes wrong
            answer = await self.provider.complete(model, body, context)
        except TransientError as error:
            call = _Call(gate, self._random, context, events, waits, began, begun)
            call.failed(error)
            await call.before_next(error)
            return await self._ask_carefully(model, body, call)
        except BaseException:
            pacing.running -= 1
            raise
        if gate.breaker.failures or gate.careful:  # by now: others ask meanwhile
            _Call(gate, self._random, context, events, waits, began).answered()
        else:
            pacing.running -= 1
            gate.breaker.known = True
        return answer

    async def _ask_carefully(self, model: str, body: JSONObject, call: _Call) -> JSONObject:
        injector, context, events = self._injector, call.context, call.events
        if injector is not None:
            await self._disturb(injector, context, events)
        while True:
            await call.begin()
            try:
                if injector is not None:
                    injector.fail_try(call.context, events)
                answer = await self.provider.complete(model, body, call.context)
            except BaseException as error:
                call.failed(error)
                if not isinstance(error, TransientError):
                    raise
                await call.before_next(error)
            else:
                call.answered()
                return answer if injector is None else self._spoilt(injector, answer, context, events)

    async def stream(
        self, model: str, body: JSONObject, context: CallContext, events: Recorder, waits: Waits = unheeded
    ) -> AsyncIterator[JSONObject]:
        """The events of one answer, as `ask`. It is tried again until the first event came, and never after that."""
        assert isinstance(self.provider, StreamingProvider)
        call, begun, injector = _Call(self.gate, self._random, context, events, waits), False, self._injector
        if injector is not None:
            await self._disturb(injector, context, events)
        while True:
            await call.begin()
            coming = self.provider.stream(model, body, call.context)
            try:
                if injector is not None:
                    injector.fail_try(call.context, events)
                async for event in coming:
                    if begun and injector is not None and injector.cuts(context, events):
                        raise injector.cut_off()
                    begun = True
                    yield event
            except BaseException as error:
                call.failed(error)
                if not isinstance(error, TransientError):
                    raise
                if begun:  # what was passed on cannot be taken back
                    raise InfraError(f"{error.message} (the stream had begun)") from error
                await call.before_next(error)
            else:
                call.answered()
                return
            finally:
                if isinstance(
                    coming, AsyncGenerator
                ):  # at once, not when it is collected: the provider works on till then
                    await coming.aclose()

    async def _disturb(self, injector: Injector, context: CallContext, events: Recorder) -> None:
        """What happens to a call before it is made. Raises InjectedFault."""
        if delay_s := injector.delay_s(context, events):
            await self.gate.wait(delay_s, "a delay that the study injects")
        injector.refuse(context, events)

    def _spoilt(self, injector: Injector, answer: JSONObject, context: CallContext, events: Recorder) -> JSONObject:
        """What becomes of an answer on its way to the agent. Raises InjectedFault."""
        if injector.cuts(context, events):
            raise injector.cut_off()
        return injector.malform(answer, context, events)

    def stop(self) -> None:
        """The run is being stopped: end every wait. What is being answered may finish."""
        self.gate.stop()

    def notice(self) -> str | None:
        """What is being waited for, in one line; None if nothing is."""
        return self.gate.notice()


class _Call:
    """One call on its way: which try it is, and whether it is the one that finds out if an outage is over."""

    __slots__ = ("_began", "_begun", "_gate", "_number", "_probe", "_random", "_waits", "context", "events")

    def __init__(
        self,
        gate: Gate,
        random: Callable[[], float],
        context: CallContext,
        events: Recorder,
        waits: Waits,
        began: float | None = None,
        begun: int = 0,
    ) -> None:
        self.context = context
        self._gate = gate
        self._random = random
        self.events = events
        self._waits = waits
        self._began = gate.now() if began is None else began
        self._begun = begun
        self._number = 1  # of the try, since the call was last held back
        self._probe = False

    async def begin(self) -> None:
        """Begin a try, once one may."""
        if self._gate.shut:
            await self._held_back()
        self._begun = self._gate.pacing.begin()

    def answered(self) -> None:
        """The try ended well."""
        gate = self._gate
        gate.pacing.answered()
        if gate.breaker.answered() or gate.pacing.bound < math.inf:
            gate.changed()

    def failed(self, error: BaseException) -> None:
        """The try did not end well: what that says about the provider."""
        gate = self._gate
        if isinstance(error, TransientError):
            now, asked = gate.now(), 0.0 if error.wait_s is None else retries.wait_s(error, 1, self._random)
            gate.pacing.failed(error, self._begun, now, asked)
            gate.breaker.failed(error, now, probe=self._probe)
        else:
            gate.pacing.ended()
            if self._probe:  # it says nothing of the provider, or the trial went away: another call finds out
                gate.breaker.probing = False
        self._probe = False
        gate.changed()

    async def before_next(self, failure: TransientError) -> None:
        """Wait before the next try, or raise InfraError if there is none. In an outage none is counted."""
        gate, seconds = self._gate, 0.0
        if not gate.breaker.open:
            seconds = retries.wait_s(failure, self._number, self._random)
            if not retries.may_try_again(self._number, seconds, gate.now() - self._began):
                raise InfraError(retries.exhausted(failure, self._number)) from failure
        self._record("model.retry", failure.message, seconds, kind=type(failure).__name__)
        if seconds:
            self._waits(True)
            try:
                await gate.wait(seconds, failure.message)
            finally:
                self._waits(False)
        self._number += 1
        self.context = evolve(self.context, tries=self.context.tries + 1)

    async def _held_back(self) -> None:
        began = self._gate.now()
        self._waits(True)
        try:
            why, self._probe = await self._gate.pass_through()
        finally:
            self._waits(False)
        waited_s = self._gate.now() - began
        self._began += waited_s
        self._number = 1
        if waited_s > 0:
            self._record("model.paused", why, waited_s)

    def _record(self, event: str, message: str, wait_s: float, **more: str) -> None:
        role, call = self.context.role, self.context.call
        self.events.record(event, role=role, call=call, message=message, wait_s=round(wait_s, 3), **more)
