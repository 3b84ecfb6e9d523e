"""The model wire in memory: requests are stored as what they add, and read back whole, whatever an agent does."""

from __future__ import annotations

import asyncio
import copy
import math
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalcore.contracts import CallContext
from evalcore.engine.services import SystemClock
from evalcore.errors import AgentError, ConfigError, FatalInfraError, InfraError, LimitReached
from evalcore.values.json import JSONObject, canonical
from evalcore.values.task import Limits
from evalcore.values.trace import TraceReader
from evalcore.values.trial import TrialKey
from evalcore.values.usage import Usage
from evalcore.wires.gateway.channel import MemoryChannel
from evalcore.wires.gateway.tape import Tape
from evalcore.wires.gateway.upstream import Upstream
from evalcore.wires.meter import Meter, RunBudget
from evalcore.wires.recorder import AttemptRecorder

KEY = TrialKey("b", "t", "a", 1)
NONE = Limits()
Answers = Callable[[JSONObject, CallContext], Awaitable[Any]]


async def fine(body: JSONObject, context: CallContext) -> Any:
    return {"choices": [{"message": {"role": "assistant", "content": "fine"}}], "usage": {"prompt_tokens": 3}}


class Provider:
    """Answers as told; keeps what it was asked."""

    dialect = "openai-chat"

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self.asked: list[tuple[str, JSONObject, CallContext]] = []

    def content(self, model: str) -> dict[str, str]:
        return {}

    async def complete(self, model: str, body: JSONObject, context: CallContext) -> JSONObject:
        self.asked.append((model, body, context))
        return await self._answers(body, context)  # type: ignore[no-any-return]

    async def close(self) -> None:
        pass


class Wire:
    """A channel with everything around it."""

    def __init__(self, answers: Answers = fine, limits: Limits = NONE, **parameters: Any) -> None:
        self.provider = Provider(answers)
        self.upstream = Upstream("in-test", self.provider, SystemClock(), Random(0))
        self.recorder = AttemptRecorder(SystemClock())
        self.meter = Meter(RunBudget(None))
        self.meter.bind(limits, {})
        self.channel = MemoryChannel(
            "agent", "in-test/m/x", self.upstream, parameters, self.recorder, self.meter, KEY, 2, 7
        )

    def send(self, *bodies: Any) -> list[Any]:
        """Send one after another; what is raised stands in the place of the answer."""

        async def all_() -> list[Any]:
            found: list[Any] = []
            for body in bodies:
                try:
                    found.append(await self.channel.complete(body))
                except Exception as error:  # noqa: BLE001 - the test looks at it
                    found.append(error)
            return found

        return asyncio.run(all_())

    def events(self, kind: str | None = None) -> list[Any]:
        return list(self.recorder.reader().events(kind))

    def stored(self) -> TraceReader:
        return self.recorder.reader()


def said(text: Any) -> JSONObject:
    return {"role": "user", "content": text}


def stored_equals(*bodies: JSONObject) -> bool:
    """Whether what is read back is what was sent, to the last digit and type."""
    wire = Wire()
    wire.send(*(copy.deepcopy(b) for b in bodies))
    return [canonical(b) for b in wire.stored().requests()] == [canonical(b) for b in bodies]


# ── stored as what they add ──────────────────────────────────────────────────────────────────────────────────────────

text = st.text(st.characters(), max_size=8)  # lone surrogates too
plain = st.none() | st.booleans() | st.integers() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False) | text
odd = plain | st.floats()
value = st.recursive(
    odd, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3), max_leaves=6
)
message = st.builds(lambda role, content: {"role": role, "content": content}, st.sampled_from(["user", "tool"]), value)
rest = st.dictionaries(st.sampled_from(["model", "tools", "temperature"]), value, max_size=2)


@st.composite
def conversations(draw: st.DrawFn) -> list[JSONObject]:
    """Requests of one agent: mostly each adds to the one before; sometimes history is rewritten, cut, or sent again."""
    messages: list[Any] = draw(st.lists(message, max_size=2))
    other: dict[str, Any] = draw(rest)
    bodies: list[JSONObject] = []
    for _ in range(draw(st.integers(1, 6))):
        bodies.append({**copy.deepcopy(other), "messages": copy.deepcopy(messages)})
        step = draw(st.sampled_from(["grow", "grow", "grow", "repeat", "rewrite", "cut", "fresh", "other", "reorder"]))
        if step == "grow":
            messages = messages + draw(st.lists(message, min_size=1, max_size=3))
        elif step == "rewrite" and messages:
            messages = list(messages)
            messages[draw(st.integers(0, len(messages) - 1))] = draw(message)
        elif step == "cut":
            messages = messages[: draw(st.integers(0, len(messages)))]
        elif step == "fresh":
            messages = draw(st.lists(message, max_size=3))
        elif step == "other":
            other = draw(rest)
        elif step == "reorder":
            messages = [dict(reversed(list(m.items()))) for m in messages]
    return bodies


@given(conversations())
@example([{"messages": []}, {"messages": []}, {"messages": [said(1)]}, {"messages": []}])
@example([{"messages": [said(1)]}, {"messages": [said(1.0)]}, {"messages": [said(True)]}])
@example([{"messages": [said(1)]}, {"messages": [said(12)]}, {"messages": [said(12), said(1)]}])
@example([{"messages": [said(math.nan)]}, {"messages": [said(math.nan), said(None)]}])
@example([{"messages": [said(None)], "n": None}, {"messages": [said(None)], "n": math.nan}])
@example([{"messages": [said(None)]}, {"messages": [said(math.nan)]}, {"messages": [said(math.nan), said(None)]}])
@example([{"messages": [said(2**64)]}, {"messages": [said(2**64), said("x")]}, {"messages": [said("y")]}])
@example([{"messages": [said("],")]}, {"messages": [said("],"), said("[")]}])
@example([{"messages": [said({"$int16": "0x1"})], "x": math.inf}])
@example([{"messages": [said("a")], "x": 1}, {"messages": [said("a"), said("b")]}, {"messages": [said("a")], "x": 1}])
def test_requests_are_read_back_as_they_were_sent(bodies: list[JSONObject]) -> None:
    assert stored_equals(*bodies)


def test_a_growing_conversation_is_stored_once() -> None:
    wire = Wire()
    messages = [said("x" * 1000)]
    for number in range(30):
        wire.send({"model": "m", "tools": ["y" * 1000], "messages": list(messages)})
        messages.append(said(number))

    assert sum(map(len, wire.recorder.lines())) < 15_000  # sent: 30 times 2,000 characters and more
    adds = [len(e["add"]) for e in wire.events("model.request")]
    assert adds == [1] * 30
    assert len(wire.stored().requests()[-1]["messages"]) == 30  # type: ignore[arg-type]


def test_a_message_changed_in_place_is_noticed() -> None:
    wire = Wire()
    messages = [said("before")]
    wire.send({"messages": messages})
    messages[0]["content"] = "after"
    messages.append(said("more"))
    wire.send({"messages": messages})

    assert [r["messages"] for r in wire.stored().requests()] == [
        [said("before")],
        [said("after"), said("more")],
    ]


def test_a_request_that_is_none_leaves_no_hole_in_what_is_stored() -> None:
    wire = Wire()
    answers = wire.send({"messages": [said("a")]}, {"messages": "a"}, {}, {"messages": [said("a"), said("b")]})

    assert [isinstance(a, AgentError) for a in answers] == [False, True, True, False]
    assert [r["messages"] for r in wire.stored().requests()] == [[said("a")], [said("a"), said("b")]]


def test_each_role_is_read_back_apart() -> None:
    wire = Wire()
    user = MemoryChannel("user", "in-test/u", wire.upstream, {}, wire.recorder, wire.meter, KEY, 1, 0)

    async def both() -> None:
        await wire.channel.complete({"messages": [said("agent")]})
        await user.complete({"messages": [said("user")]})
        await wire.channel.complete({"messages": [said("agent"), said("again")]})

    asyncio.run(both())
    assert [len(r["messages"]) for r in wire.stored().requests()] == [1, 2]  # type: ignore[arg-type]
    assert [r["messages"] for r in wire.stored().requests("user")] == [[said("user")]]
    assert {role: u.calls for role, u in wire.meter.usage().items()} == {"agent": 2, "user": 1}


# ── what the provider gets, and gives ────────────────────────────────────────────────────────────────────────────────


def test_the_provider_gets_the_request_the_arms_parameters_and_the_place_of_the_call() -> None:
    wire = Wire(temperature=0.5)
    wire.send({"model": "whatever", "messages": [said("a")], "temperature": 1}, {"messages": []})

    (model, body, context), (_, _, second) = wire.provider.asked
    assert model == "m/x"
    assert body == {"model": "whatever", "messages": [said("a")], "temperature": 0.5}  # the arm's value wins
    assert (context.key, context.attempt, context.role, context.seed) == (KEY, 2, "agent", 7)
    assert (context.call, second.call) == (1, 2)


def test_a_response_is_recorded_and_counted_and_handed_on() -> None:
    wire = Wire()
    (answer,) = wire.send({"messages": []})

    (event,) = wire.events("model.response")
    assert event["body"] == answer
    assert event["wall_s"] >= 0
    assert wire.meter.usage()["agent"].input == 3


def test_usage_that_cannot_be_is_on_record_flagged_and_not_summed() -> None:
    reported = {"prompt_tokens": 10**30, "completion_tokens": -4, "cost": 0.5}

    async def absurd(body: JSONObject, context: CallContext) -> Any:
        usage = reported if context.call == 2 else {"prompt_tokens": 3, "completion_tokens": 1, "cost": 0.25}
        return {"choices": [{"message": {}}], "usage": usage, "model": f"m-{context.call % 2}"}

    wire = Wire(absurd)
    wire.send(*({"messages": [said(n)]} for n in range(3)))
    assert wire.meter.usage()["agent"] == Usage(calls=3, input=6, output=2, unreported=1, cost_usd=None)
    assert wire.meter.flags == {"usage-disbelieved"}
    second = wire.events("model.response")[1]
    assert second["disbelieved"] == ["prompt_tokens", "completion_tokens"]
    assert second["body"]["usage"] == reported
    assert "disbelieved" not in wire.events("model.response")[0]
    assert wire.meter.served == {"agent": {"m-0", "m-1"}}


def test_the_models_that_answer_are_not_kept_without_end() -> None:
    async def ever_new(body: JSONObject, context: CallContext) -> Any:
        return {"choices": [{"message": {}}], "model": f"m-{context.call}" if context.call > 1 else 5}

    wire = Wire(ever_new)
    wire.send(*({"messages": [said(n)]} for n in range(40)))
    assert len(wire.meter.served["agent"]) == 16


def test_calls_side_by_side_keep_their_numbers() -> None:
    async def slow_first(body: JSONObject, context: CallContext) -> Any:
        await asyncio.sleep(0.02 * (4 - context.call))
        if context.call == 2:
            raise AgentError("400")
        return {"choices": [{"message": {}}], "n": context.call}

    wire = Wire(slow_first)

    async def all_() -> list[Any]:
        sent = (wire.channel.complete({"messages": [said(n)]}) for n in (1, 2, 3))
        return await asyncio.gather(*sent, return_exceptions=True)

    answers = asyncio.run(all_())
    assert [answers[n]["n"] for n in (0, 2)] == [1, 3]
    assert {e["call"]: e["body"]["n"] for e in wire.events("model.response")} == {1: 1, 3: 3}
    assert [e["call"] for e in wire.events("model.error")] == [2]


def failing(error: BaseException) -> Answers:
    async def answers(body: JSONObject, context: CallContext) -> Any:
        raise error

    return answers


@pytest.mark.parametrize(
    "error, raised",
    [
        (InfraError("503"), InfraError),
        (FatalInfraError("401"), FatalInfraError),
        (ConfigError("no reply"), ConfigError),
        (ConnectionResetError("gone"), InfraError),
        (SystemExit(1), InfraError),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_a_provider_that_fails_is_remembered_and_nothing_more_is_sent(
    error: BaseException, raised: type[Exception]
) -> None:
    wire = Wire(failing(error))
    first, second = wire.send({"messages": []}, {"messages": []})

    assert type(first) is raised
    assert wire.meter.failure is first is second
    assert len(wire.provider.asked) == 1
    (event,) = wire.events("model.error")
    assert event["kind"] == type(error).__name__
    assert wire.meter.usage() == {}


def test_a_request_that_the_provider_refuses_is_the_agents_and_it_may_try_again() -> None:
    async def picky(body: JSONObject, context: CallContext) -> Any:
        if context.call == 1:
            raise AgentError("400 context too long")
        return await fine(body, context)

    wire = Wire(picky)
    first, second = wire.send({"messages": [said("a")]}, {"messages": [said("a"), said("b")]})

    assert isinstance(first, AgentError) and isinstance(second, dict)
    assert wire.meter.failure is None
    assert wire.meter.usage()["agent"].calls == 1
    assert [len(r["messages"]) for r in wire.stored().requests()] == [1, 2]  # type: ignore[arg-type]


@pytest.mark.parametrize("response", [[], "x", None, 5], ids=["list", "str", "None", "int"])
def test_a_response_that_is_no_object_is_the_providers_failure(response: Any) -> None:
    async def nonsense(body: JSONObject, context: CallContext) -> Any:
        return response

    (answer,) = Wire(nonsense).send({"messages": []})
    assert isinstance(answer, InfraError)
    assert f"answered {type(response).__name__}, no object" in answer.message


@pytest.mark.parametrize("response", [{}, {"choices": []}, {"choices": "x"}, {"choices": [5]}, {"error": "quota"}])
def test_a_response_without_choices_is_the_providers_failure(response: Any) -> None:
    async def nonsense(body: JSONObject, context: CallContext) -> Any:
        return response

    (answer,) = Wire(nonsense).send({"messages": []})
    assert isinstance(answer, InfraError)
    assert "answered without choices" in answer.message


def test_a_limit_refuses_before_anything_is_sent_or_recorded() -> None:
    wire = Wire(limits=Limits(model_calls=1))
    _, refused = wire.send({"messages": []}, {"messages": []})

    assert isinstance(refused, LimitReached)
    assert len(wire.provider.asked) == len(wire.events("model.request")) == 1


def test_a_call_that_is_cut_off_is_taken_to_cost_what_was_set_aside() -> None:
    async def hangs(body: JSONObject, context: CallContext) -> Any:
        await asyncio.sleep(600)

    budget = RunBudget(1.0, dearest=0.75)
    wire = Wire(hangs)
    wire.meter = Meter(budget)
    wire.channel = MemoryChannel("agent", "in-test/m", wire.upstream, {}, wire.recorder, wire.meter, KEY, 1, 0)

    async def cut_off() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await wire.channel.complete({"messages": []})

    asyncio.run(cut_off())
    assert budget.spent == 0.75  # the provider may bill for it: what it cost is not known
    usage = wire.meter.usage()["agent"]
    assert (usage.calls, usage.unreported, usage.cost_usd) == (1, 1, None)


# ── from a tape ──────────────────────────────────────────────────────────────────────────────────────────────────────

REQUESTS: dict[str, JSONObject] = {
    "openai-chat": {"model": "m", "messages": [said("hi")]},
    "openai-responses": {"model": "m", "input": "hi"},
    "anthropic-messages": {"model": "m", "max_tokens": 50, "messages": [said("hi")]},
}


@pytest.mark.parametrize("dialect", REQUESTS)
def test_an_answer_is_replayed_in_the_agents_dialect_whole_and_streamed(dialect: str) -> None:
    async def answers(body: JSONObject, context: CallContext) -> Any:
        usage = {
            "prompt_tokens": 30,
            "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 7},
            "cost": 0.5,
        }
        message = {"role": "assistant", "content": "hello"}
        return {"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}

    async def nobody(body: JSONObject, context: CallContext) -> Any:
        raise AssertionError("a model was asked")

    body = REQUESTS[dialect]
    live = Wire(answers)
    told = asyncio.run(live.channel.complete(copy.deepcopy(body), dialect))

    async def again(streamed: bool) -> tuple[Wire, Any]:
        wire = Wire(nobody)
        wire.channel = MemoryChannel(
            "agent", "in-test/m/x", wire.upstream, {}, wire.recorder, wire.meter, KEY, 2, 7,
            tape=Tape("then", live.stored()),
        )  # fmt: skip
        if not streamed:
            return wire, await wire.channel.complete(copy.deepcopy(body), dialect)
        return wire, [event async for event in wire.channel.stream({**body, "stream": True}, dialect)]

    whole, answer = asyncio.run(again(streamed=False))
    assert answer == told
    assert whole.meter.usage() == live.meter.usage()
    assert whole.meter.usage()["agent"] == Usage(1, 30, 5, 7, cost_usd=0.5)
    streamed, events = asyncio.run(again(streamed=True))
    assert len(events) > 1 and "hello" in str(events)
    assert streamed.meter.usage() == live.meter.usage()
    assert [e["then"] for e in streamed.events("model.replayed")] == [1]
    assert streamed.provider.asked == whole.provider.asked == []
