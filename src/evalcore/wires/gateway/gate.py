"""What the calls of a run to one provider share: its pace, whether it is down, what they wait for, and the stop."""

from __future__ import annotations

import asyncio
import math
from typing import Final

from evalcore.contracts import Clock
from evalcore.errors import Interrupted
from evalcore.wires.gateway.breaker import Breaker
from evalcore.wires.gateway.pacing import Pacing

WORTH_TELLING_S: Final = 2.0  # a shorter wait is over before it is read
STOPPED: Final = "stopped while the provider was waited for"


class Gate:
    """Holds calls back. Seconds of the clock's."""

    def __init__(self, name: str, clock: Clock) -> None:
        self.name = name
        self.now = clock.monotonic
        self.pacing = Pacing()
        self.breaker = Breaker()
        self._sleep = clock.sleep
        self._stopped = False
        self._change = asyncio.Event()  # what calls wait for is different now; replaced each time
        self._waiting: dict[object, tuple[float, str]] = {}  # until when, and for what

    @property
    def careful(self) -> bool:
        """Whether anything is limited or held back, so that each step of a call matters."""
        pacing = self.pacing
        return self.breaker.since is not None or pacing.bound < math.inf or pacing.not_before > -math.inf

    @property
    def shut(self) -> bool:
        """Whether a call that comes now has to wait."""
        return self.breaker.open or self.pacing.full or self.pacing.not_before > self.now()

    def changed(self) -> None:
        """Let everybody who waits look again."""
        self._change.set()
        self._change = asyncio.Event()

    def stop(self) -> None:
        """End every wait, now and from now on."""
        self._stopped = True
        self.changed()

    async def pass_through(self) -> tuple[str, bool]:
        """Wait until a call may begin; why it had to, and whether it is to find out if an outage is over.

        Raises OutageError where that lasts too long, Interrupted once the run is stopped.
        """
        why = ""
        while (seconds := self._held_s()) is None or seconds > 0:
            why = self.breaker.why if self.breaker.open else self.pacing.why
            await self.wait(seconds, why, for_change=True)
        probe = self.breaker.probing = self.breaker.open
        return why, probe

    async def wait(self, seconds: float | None, why: str, *, for_change: bool = False) -> None:
        """Let time pass, visibly; if wanted, only until something changes. Raises Interrupted once stopped.

        None is until something changes, however long that takes.
        """
        mark = object()
        if self.breaker.open or (seconds is not None and seconds >= WORTH_TELLING_S):
            self._waiting[mark] = self.now() + (seconds or 0.0), why
        try:
            await self._pass(seconds, for_change=for_change)
        finally:
            self._waiting.pop(mark, None)

    def notice(self) -> str | None:
        """What is being waited for, in one line; None if nothing is."""
        if not self._waiting:
            return None
        now, held = self.now(), len(self._waiting)
        if self.breaker.open:
            calls = f"{held} calls wait" if held > 1 else "1 call waits"
            probe, left = max(0.0, self.breaker.probe_at - now), max(0.0, self.breaker.left_s(now))
            return f"paused, {calls}; next try in {probe:.0f} s, for another {left:.0f} s: {self.breaker.why}"
        until, why = max(self._waiting.values())
        calls = f" ({held} calls)" if held > 1 else ""
        return f"waiting {max(1, round(until - now))} s for {why}{calls}"

    def _held_s(self) -> float | None:
        """How long a new call has to wait at least; None: until something changes. 0 or less: not at all."""
        now, breaker, pacing = self.now(), self.breaker, self.pacing
        if breaker.open:
            left = breaker.left_s(now)
            if left <= 0:
                raise breaker.outage(self.name, now)
            return left if breaker.probing else min(left, breaker.probe_at - now)
        return None if pacing.full else pacing.not_before - now

    async def _pass(self, seconds: float | None, *, for_change: bool) -> None:
        while not self._stopped:
            change = self._change.wait()
            if seconds is None:
                await change
                break
            began = self.now()
            passing, changing = asyncio.ensure_future(self._sleep(seconds)), asyncio.ensure_future(change)
            try:
                await asyncio.wait((passing, changing), return_when=asyncio.FIRST_COMPLETED)
            finally:
                passing.cancel()
                changing.cancel()
            if for_change or passing.done():
                break
            seconds = max(0.0, seconds - (self.now() - began))
        if self._stopped:
            raise Interrupted(STOPPED)
