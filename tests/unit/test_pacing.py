"""A provider that says it is too much gets fewer calls at a time; one that is down is waited for. Time is simulated."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from evalcore.contracts import CallContext
from evalcore.engine.fault import UNCOUNTED, void_of
from evalcore.errors import AgentError, FatalInfraError, InfraError, OutageError, TransientError
from evalcore.values.json import JSONObject
from evalcore.values.trial import TrialKey
from evalcore.wires.gateway import breaker
from evalcore.wires.gateway.pacing import Pacing
from evalcore.wires.gateway.upstream import Upstream
from evalcore.wires.recorder import AttemptRecorder
from tests.unit.simulated import SimulatedClock

ANSWER: JSONObject = {"choices": [{"message": {"role": "assistant", "content": "hi"}}]}


class Provider:
    """Takes a second for each call; `behaves(n, running, now)` may raise for the n-th one."""

    dialect = "openai-chat"

    def __init__(self, clock: SimulatedClock, behaves: Callable[[int, int, float], None]) -> None:
        self.clock = clock
        self.behaves = behaves
        self.running = self.calls = 0
        self.most: list[tuple[float, int]] = []  # when a call began, and how many ran then

    async def complete(self, model: str, body: JSONObject, context: CallContext) -> JSONObject:
        self.calls += 1
        self.running += 1
        self.most.append((self.clock.seconds, self.running))
        try:
            self.behaves(self.calls, self.running, self.clock.seconds)
            await self.clock.sleep(1.0)
        finally:
            self.running -= 1
        return ANSWER

    def content(self, model: str) -> dict[str, str]:
        return {}

    async def close(self) -> None:
        pass


class Rig:
    def __init__(self, behaves: Callable[[int, int, float], None] = lambda *_: None) -> None:
        self.clock = SimulatedClock()
        self.provider = Provider(self.clock, behaves)
        self.upstream = Upstream("there", self.provider, self.clock, Random(1))
        self.recorder = AttemptRecorder(self.clock)
        self.waits: list[bool] = []

    async def one(self, number: int = 1) -> JSONObject:
        context = CallContext(TrialKey("b", f"t{number}", "a", 1), 1, "agent", 1, 0)
        return await self.upstream.ask("m", {}, context, self.recorder, self.waits.append)

    def ask(self, count: int) -> list[Any]:
        """That many calls side by side; what is raised stands in the place of the answer."""

        async def all_() -> Sequence[Any]:
            return await asyncio.gather(*(self.one(n) for n in range(count)), return_exceptions=True)

        return list(self.clock.run(all_()))

    def events(self, kind: str) -> list[Any]:
        return list(self.recorder.reader().events(kind))


def too_many(allowed: int) -> Callable[[int, int, float], None]:
    """A server that bears so many calls at a time."""

    def behaves(_: int, running: int, __: float) -> None:
        if running > allowed:
            raise TransientError("HTTP 429", status=429)

    return behaves


# ── pace ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_an_overload_nothing_is_held_back() -> None:
    rig = Rig()
    assert rig.ask(200) == [ANSWER] * 200
    assert rig.clock.seconds == 1.0 and rig.provider.running == 0
    assert rig.upstream.gate.pacing.bound == math.inf and rig.upstream.gate.pacing.running == 0
    assert rig.events("model.paused") == [] and rig.waits == []


def test_an_overload_halves_what_runs_once_however_many_calls_it_hits() -> None:
    pacing = Pacing()
    begun = [pacing.begin() for _ in range(16)]
    for mark in begun[:3]:
        pacing.failed(TransientError("HTTP 429", status=429), mark, 0.0, 0.0)
    assert (pacing.bound, pacing.running) == (8.0, 13) and pacing.full
    for _ in begun[3:]:
        pacing.ended()
    pacing.failed(TransientError("HTTP 529", status=529), pacing.begin(), 0.0, 0.0)
    assert pacing.bound == 1.0 and not pacing.full  # one call is always let through


def test_the_pace_settles_near_what_a_server_bears() -> None:
    rig = Rig(too_many(8))
    assert rig.ask(300) == [ANSWER] * 300
    late = [running for when, running in rig.provider.most if when > 20]
    assert len(late) > 100
    assert max(late) <= 8 + 1  # one more is tried now and then: that is how it learns
    assert rig.clock.seconds < 4 * 300 / 8  # and it does not crawl either


def test_each_answer_raises_the_bound_by_one_over_itself() -> None:
    rig = Rig()
    rig.upstream.gate.pacing.bound = 2.0
    rig.ask(2)
    assert rig.upstream.gate.pacing.bound == pytest.approx(2 + 1 / 2 + 1 / 2.5)


def test_what_is_no_overload_leaves_the_pace_alone() -> None:
    def behaves(n: int, *_: Any) -> None:
        if n == 1:
            raise TransientError("cut off")
        if n == 2:
            raise AgentError("too long")

    rig = Rig(behaves)
    answers = rig.ask(3)
    assert [type(a) for a in answers] == [dict, AgentError, dict]
    assert rig.upstream.gate.pacing.bound == math.inf and rig.upstream.gate.pacing.running == 0


def test_a_server_that_asks_to_be_left_alone_is_by_every_call() -> None:
    def behaves(n: int, *_: Any) -> None:
        if n == 1:
            raise TransientError("HTTP 429: slow down", status=429, wait_s=30)

    rig = Rig(behaves)

    async def both() -> None:
        first = asyncio.ensure_future(rig.one(1))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(rig.one(2))
        await asyncio.sleep(0)
        assert rig.upstream.notice() == "waiting 30 s for HTTP 429: slow down (2 calls)"
        await asyncio.gather(first, second)

    rig.clock.run(both())
    assert [when for when, _ in rig.provider.most] == [0.0, 30.0, 31.0]  # one at a time after an overload
    held = rig.events("model.paused")
    assert held[0]["wait_s"] >= 30 and held[0]["message"] == "HTTP 429: slow down"
    assert rig.waits.count(True) == rig.waits.count(False) > 0


def test_a_call_that_is_given_up_while_it_waits_leaves_no_trace_in_the_pace() -> None:
    rig = Rig()

    async def cancelled() -> None:
        rig.upstream.gate.pacing.bound = 1.0
        first, second = (asyncio.ensure_future(rig.one(n)) for n in (1, 2))
        await asyncio.sleep(0)
        second.cancel()
        await first

    rig.clock.run(cancelled())
    assert rig.upstream.gate.pacing.running == 0 and rig.provider.calls == 1
    assert rig.waits == [True, False]


# ── outages ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def down(since: float, until: float) -> Callable[[int, int, float], None]:
    def behaves(_: int, __: int, now: float) -> None:
        if since <= now < until:
            raise TransientError("HTTP 503", status=500)

    return behaves


def test_an_outage_is_waited_out_and_voids_nothing() -> None:
    rig = Rig(down(0.5, 600))

    async def work() -> list[Any]:
        before = await rig.one()  # the provider is known to answer
        await rig.clock.sleep(1)
        return [before, *await asyncio.gather(*(rig.one(n) for n in range(50)), return_exceptions=True)]

    assert rig.clock.run(work()) == [ANSWER] * 51
    assert 600 < rig.clock.seconds < 600 + breaker.LONGEST_PAUSE_S + 60
    probes = [when for when, _ in rig.provider.most if 10 < when < 600]
    assert len(probes) < 15  # one call at a time finds out, ever more rarely
    assert all(later - earlier >= 1 for earlier, later in pairwise(probes))
    assert not rig.upstream.gate.breaker.open and rig.upstream.gate.pacing.running == 0
    assert {e["message"] for e in rig.events("model.paused")} == {"HTTP 503"}


def test_a_pause_is_told() -> None:
    rig = Rig(down(0, 1e9))
    rig.upstream.gate.breaker.known = True

    async def told() -> str | None:
        calls = [asyncio.ensure_future(rig.one(n)) for n in range(12)]
        await rig.clock.sleep(100)
        notice = rig.upstream.notice()
        rig.upstream.stop()
        await asyncio.gather(*calls, return_exceptions=True)
        return notice

    notice = rig.clock.run(told())
    assert notice is not None and notice.startswith("paused, 12 calls wait; next try in ")
    assert notice.endswith("HTTP 503") and "for another 17" in notice
    assert rig.upstream.notice() is None


def test_after_its_patience_the_run_ends_with_everything_kept() -> None:
    rig = Rig(down(0.5, 1e9))
    rig.upstream.gate.breaker.patience_s = 300.0

    async def work() -> Any:
        await rig.one()
        return await asyncio.gather(*(rig.one(n) for n in range(20)), return_exceptions=True)

    failed = rig.clock.run(work())
    assert {type(e) for e in failed} == {OutageError}
    assert "there has not answered since 30" in str(failed[0]) and "HTTP 503" in str(failed[0])
    assert 300 <= rig.clock.seconds <= 320
    void = void_of(failed[0])
    assert (void.kind, void.fatal) == ("outage", True) and void.kind in UNCOUNTED
    assert isinstance(failed[0], FatalInfraError) and failed[0].exit_code == 4


def test_a_provider_that_never_answered_is_not_waited_for_so_long() -> None:
    rig = Rig(down(0, 1e9))
    failed = rig.ask(20)
    assert {type(e) for e in failed} == {OutageError}
    assert "has not answered at all" in str(failed[0])
    assert rig.clock.seconds < breaker.NEVER_ANSWERED_S + 10


def test_a_call_alone_is_given_up_before_the_provider_is_taken_to_be_down() -> None:
    rig = Rig(down(0, 1e9))
    (failed,) = rig.ask(1)
    assert type(failed) is InfraError and "after 5 tries" in str(failed)
    assert not rig.upstream.gate.breaker.open


def test_a_probe_that_is_broken_off_lets_another_call_find_out() -> None:
    rig = Rig(down(0, 60))
    rig.upstream.gate.breaker.known = True

    async def work() -> list[Any]:
        calls = [asyncio.ensure_future(rig.one(n)) for n in range(10)]
        while rig.clock.seconds < 30:
            await rig.clock.sleep(1)
            for call in calls[:3]:
                call.cancel()  # among them, sooner or later, whichever probes
        return await asyncio.gather(*calls, return_exceptions=True)

    found = rig.clock.run(work())
    assert [type(f) for f in found] == [asyncio.CancelledError] * 3 + [dict] * 7
    assert rig.upstream.gate.pacing.running == 0 and not rig.upstream.gate.breaker.probing


def test_after_an_outage_a_call_has_all_its_tries_again() -> None:
    rig = Rig(lambda n, _, now: down(0, 50)(n, 1, now) or (down(60, 63)(n, 1, now)))
    rig.upstream.gate.breaker.known = True
    assert rig.ask(12) == [ANSWER] * 12
