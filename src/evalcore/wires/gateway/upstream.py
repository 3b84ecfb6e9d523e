"""What stands between every trial of a run and one provider: a call is tried again, seen, and can be called off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from random import Random
from typing import Final

from attrs import evolve

from evalcore.contracts import CallContext, Clock, Provider, Recorder, StreamingProvider
from evalcore.errors import InfraError, Interrupted, TransientError
from evalcore.values.json import JSONObject
from evalcore.wires.gateway import retries

DIALECT: Final = "openai-chat"
WORTH_TELLING_S: Final = 2.0  # a shorter wait is over before it is read
STOPPED: Final = "stopped while the provider was waited for"


class Upstream:
    """One provider at one address, for a whole run. Made once; shared by the channels of all trials."""

    def __init__(self, name: str, provider: Provider, clock: Clock, random: Random) -> None:
        self.name = name
        self.provider = provider
        self.dialect: str = getattr(provider, "dialect", DIALECT)
        self._clock = clock
        self._random = random.random
        self._stopped = asyncio.Event()
        self._waiting: dict[object, tuple[float, str]] = {}  # until when, and for what

    async def ask(self, model: str, body: JSONObject, context: CallContext, events: Recorder) -> JSONObject:
        """One answer. Raises InfraError once no try is left, Interrupted if the run is stopped meanwhile."""
        began, number = self._clock.monotonic(), 1
        while True:
            try:
                return await self.provider.complete(model, body, context)
            except TransientError as failure:
                await self._before_next(failure, number, began, context, events)
            number += 1
            context = evolve(context, tries=number)

    async def stream(
        self, model: str, body: JSONObject, context: CallContext, events: Recorder
    ) -> AsyncIterator[JSONObject]:
        """The events of one answer. It is tried again until the first event came; then a failure is raised as it is."""
        assert isinstance(self.provider, StreamingProvider)
        began, number, begun = self._clock.monotonic(), 1, False
        while True:
            try:
                async for event in self.provider.stream(model, body, context):
                    begun = True
                    yield event
                return
            except TransientError as failure:
                if begun:  # what was passed on cannot be taken back
                    raise InfraError(f"{failure.message} (the stream had begun)") from failure
                await self._before_next(failure, number, began, context, events)
            number += 1
            context = evolve(context, tries=number)

    def stop(self) -> None:
        """The run is being stopped: end every wait. What is being answered may finish."""
        self._stopped.set()

    def notice(self) -> str | None:
        """What is being waited for, in one line; None if nothing is."""
        if not self._waiting:
            return None
        until, why = max(self._waiting.values())
        calls = f" ({len(self._waiting)} calls)" if len(self._waiting) > 1 else ""
        return f"waiting {max(1, round(until - self._clock.monotonic()))} s for {why}{calls}"

    async def _before_next(
        self, failure: TransientError, number: int, began: float, context: CallContext, events: Recorder
    ) -> None:
        """Wait before the next try, or raise InfraError if there is none."""
        seconds = retries.wait_s(failure, number, self._random)
        if not retries.may_try_again(number, seconds, self._clock.monotonic() - began):
            raise InfraError(retries.exhausted(failure, number)) from failure
        events.record(
            "model.retry",
            role=context.role,
            call=context.call,
            kind=type(failure).__name__,
            message=failure.message,
            wait_s=round(seconds, 3),
        )
        wait = object()
        if seconds >= WORTH_TELLING_S:
            self._waiting[wait] = self._clock.monotonic() + seconds, failure.message
        try:
            await self._wait(seconds)
        finally:
            self._waiting.pop(wait, None)

    async def _wait(self, seconds: float) -> None:
        """Let the time pass. Raises Interrupted if the run is stopped before or meanwhile."""
        if not self._stopped.is_set():
            passing = asyncio.ensure_future(self._clock.sleep(seconds))
            stopping = asyncio.ensure_future(self._stopped.wait())
            try:
                await asyncio.wait((passing, stopping), return_when=asyncio.FIRST_COMPLETED)
            finally:
                passing.cancel()
                stopping.cancel()
        if self._stopped.is_set():
            raise Interrupted(STOPPED)
