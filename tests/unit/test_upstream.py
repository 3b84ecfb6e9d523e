"""Before a provider: calls are tried again, every retry is in the trace, and a wait ends when the run is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest

from evalcore.contracts import CallContext
from evalcore.engine.fault import void_of
from evalcore.errors import InfraError, Interrupted, TransientError
from evalcore.testing.fakes import FakeClock
from evalcore.values.json import JSONObject
from evalcore.values.trial import TrialKey
from evalcore.wires.gateway import retries
from evalcore.wires.gateway.upstream import Upstream
from evalcore.wires.recorder import AttemptRecorder

CONTEXT = CallContext(TrialKey("b", "t", "a", 1), 1, "agent", 3, 0, {"base_url": "x"})
ANSWER: JSONObject = {"choices": [{"message": {"role": "assistant", "content": "hi"}}]}
BODY: JSONObject = {"messages": []}


class Provider:
    """Fails as told, then answers. Streams two events; a failure after the first where `cut` says so."""

    dialect = "anthropic-messages"

    def __init__(self, *failures: Exception, cut: bool = False) -> None:
        self.failures = list(failures)
        self.cut = cut
        self.tries: list[int] = []

    async def complete(self, model: str, body: JSONObject, context: CallContext) -> JSONObject:
        self.tries.append(context.tries)
        if self.failures:
            raise self.failures.pop(0)
        return ANSWER

    async def stream(self, model: str, body: JSONObject, context: CallContext) -> AsyncIterator[JSONObject]:
        self.tries.append(context.tries)
        if self.failures and not self.cut:
            raise self.failures.pop(0)
        yield {"n": 1}
        if self.failures:
            raise self.failures.pop(0)
        yield {"n": 2}

    def content(self, model: str) -> dict[str, str]:
        return {}

    async def close(self) -> None:
        pass


class StillClock(FakeClock):
    """A clock on which no wait ends; `waiting` is set when one begins."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.waiting.set()
        await asyncio.sleep(3600)


class Rig:
    """An upstream on a clock that passes only when somebody waits."""

    def __init__(self, *failures: Exception, clock: Any = None, **more: Any) -> None:
        self.clock = clock or FakeClock()
        self.provider = Provider(*failures, **more)
        self.upstream = Upstream("there", self.provider, self.clock, Random(1))
        self.recorder = AttemptRecorder(self.clock)

    async def ask(self) -> JSONObject:
        return await self.upstream.ask("m", BODY, CONTEXT, self.recorder)

    async def stream(self) -> list[JSONObject]:
        return [event async for event in self.upstream.stream("m", BODY, CONTEXT, self.recorder)]

    def retries(self) -> list[Any]:
        return list(self.recorder.reader().events("model.retry"))


def passing(message: str = "HTTP 503", wait_s: float | None = None) -> TransientError:
    return TransientError(message, wait_s=wait_s)


def test_every_retry_is_in_the_trace_with_its_call_its_reason_and_its_wait() -> None:
    rig = Rig(passing("HTTP 429", 40.0), passing("HTTP 503"))
    assert asyncio.run(rig.ask()) == ANSWER
    first, second = rig.retries()
    assert {k: first[k] for k in ("role", "call", "kind", "message", "wait_s")} == {
        "role": "agent", "call": 3, "kind": "TransientError", "message": "HTTP 429", "wait_s": 40.0,
    }  # fmt: skip
    assert second["message"] == "HTTP 503" and 0.5 <= second["wait_s"] <= 1.0
    assert rig.provider.tries == [1, 2, 3]
    assert rig.clock.seconds == pytest.approx(40.0 + second["wait_s"], abs=0.001)


def test_the_provider_says_its_dialect_and_one_that_does_not_speaks_chat() -> None:
    class Old:
        pass

    assert Rig().upstream.dialect == "anthropic-messages"
    assert Upstream("old", Old(), FakeClock(), Random(1)).dialect == "openai-chat"  # type: ignore[arg-type]


def test_what_is_no_passing_failure_is_not_tried_again() -> None:
    rig = Rig(InfraError("gone"))
    with pytest.raises(InfraError, match="gone"):
        asyncio.run(rig.ask())
    assert rig.provider.tries == [1] and rig.retries() == []


def test_the_last_failure_is_infrastructure_and_says_how_often_it_was_tried() -> None:
    rig = Rig(*(passing() for _ in range(9)))
    with pytest.raises(InfraError, match=r"HTTP 503 \(after 5 tries\)") as failed:
        asyncio.run(rig.ask())
    assert not isinstance(failed.value, TransientError)
    assert len(rig.retries()) == retries.TRIES - 1


def test_a_stream_is_tried_again_until_its_first_event_came() -> None:
    rig = Rig(passing())
    assert asyncio.run(rig.stream()) == [{"n": 1}, {"n": 2}]
    assert rig.provider.tries == [1, 2] and len(rig.retries()) == 1
    cut = Rig(passing("cut off"), cut=True)
    with pytest.raises(InfraError, match=r"cut off \(the stream had begun\)") as failed:
        asyncio.run(cut.stream())
    assert not isinstance(failed.value, TransientError) and cut.provider.tries == [1]


async def noticed(wait_s: float) -> tuple[str | None, Rig]:
    """What is told while a call waits that long; then the run is stopped."""
    clock = StillClock()
    rig = Rig(passing("there: HTTP 429", wait_s), clock=clock)
    asking = asyncio.ensure_future(rig.ask())
    await clock.waiting.wait()
    notice = rig.upstream.notice()
    rig.upstream.stop()
    with pytest.raises(Interrupted):
        await asyncio.wait_for(asking, 20)
    return notice, rig


def test_a_wait_is_told_and_ends_when_the_run_is_stopped() -> None:
    notice, rig = asyncio.run(noticed(40.0))
    assert notice == "waiting 40 s for there: HTTP 429"
    assert rig.upstream.notice() is None
    assert rig.provider.tries == [1]


def test_a_wait_that_is_over_before_it_is_read_is_not_told() -> None:
    assert asyncio.run(noticed(0.2))[0] is None


def test_once_stopped_no_call_waits_and_one_that_needs_no_wait_is_answered() -> None:
    rig = Rig()
    rig.upstream.stop()
    assert asyncio.run(rig.ask()) == ANSWER
    rig.provider.failures = [passing()]
    with pytest.raises(Interrupted) as stopped:
        asyncio.run(rig.ask())
    assert void_of(stopped.value).kind == "interrupted"
