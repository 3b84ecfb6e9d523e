"""Faults on purpose: the same for every arm and every run, as often as declared, and strictly read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest

from evalcore.contracts import CallContext
from evalcore.engine.study_file import parse_study
from evalcore.errors import ConfigError
from evalcore.testing.fakes import FakeClock
from evalcore.values.injection import KINDS, CutAnswer, Injection, Latency, Malformed, RateLimit, ServerError, ToolError
from evalcore.values.json import JSONObject
from evalcore.values.study import Study
from evalcore.values.task import Role
from evalcore.values.trial import TrialKey
from evalcore.wires.gateway.upstream import Upstream
from evalcore.wires.injection import InjectedFault, Injector
from evalcore.wires.recorder import AttemptRecorder

CALLED: JSONObject = {
    "choices": [
        {"message": {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": '{"city": "Bern"}'}}]}}
    ]
}


class Provider:
    dialect = "openai-chat"

    def __init__(self, answer: JSONObject = CALLED) -> None:
        self.answer = answer
        self.asked = 0

    async def complete(self, model: str, body: JSONObject, context: CallContext) -> JSONObject:
        self.asked += 1
        return self.answer

    async def stream(self, model: str, body: JSONObject, context: CallContext) -> AsyncIterator[JSONObject]:
        self.asked += 1
        for number in (1, 2, 3):
            yield {"n": number}

    def content(self, model: str) -> dict[str, str]:
        return {}

    async def close(self) -> None:
        pass


class Rig:
    def __init__(self, spec: Injection, answer: JSONObject = CALLED) -> None:
        self.clock = FakeClock()
        self.provider = Provider(answer)
        self.upstream = Upstream("p", self.provider, self.clock, Random(0), Injector(spec))
        self.recorder = AttemptRecorder(self.clock)

    def context(self, call: int, arm: str, role: Role) -> CallContext:
        return CallContext(TrialKey("b", "t", arm, 1), 1, role, call, 0)

    def ask(self, call: int = 1, arm: str = "a", role: Role = "agent") -> Any:
        """The answer, or what was raised."""
        try:
            return asyncio.run(self.upstream.ask("m", {}, self.context(call, arm, role), self.recorder))
        except InjectedFault as error:
            return error

    def events(self) -> list[Any]:
        return list(self.recorder.reader().events("fault.injected"))


# ── whom it hits ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_arm_meets_the_same_faults_and_another_seed_others() -> None:
    def hit(seed: int, arm: str) -> list[int]:
        injector = Injector(Injection(seed=seed))
        return [n for n in range(200) if injector.hits("x", TrialKey("b", "t", arm, 1), n, 0.2)]

    assert hit(1, "a") == hit(1, "b") != hit(2, "a")


def test_it_hits_as_often_as_declared() -> None:
    injector = Injector(Injection())
    keys = [TrialKey("b", f"t{n}", "a", 1) for n in range(20_000)]
    for share in (0.01, 0.3, 1.0):
        hits = sum(injector.hits("x", key, 1, share) for key in keys)
        assert abs(hits - 20_000 * share) <= 5 * (20_000 * share * (1 - share)) ** 0.5
    both = sum(injector.hits("x", k, 1, 0.3) and injector.hits("y", k, 1, 0.3) for k in keys)
    assert abs(both - 1800) < 250  # kinds do not hit the same calls


# ── what it does ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_burst_lasts_as_many_calls_and_says_when_to_come_back() -> None:
    spec = Injection(rate_limit=RateLimit(0.1, burst=3, retry_after_s=2.5))
    rig = Rig(spec)
    starts = [n for n in range(1, 101) if Injector(spec).hits("rate_limit", rig.context(1, "a", "agent").key, n, 0.1)]
    expected = {n for start in starts for n in range(start, start + 3)}
    answers = {n: rig.ask(n) for n in range(1, 101)}
    refused = {n for n, answer in answers.items() if isinstance(answer, InjectedFault)}
    assert refused == expected & set(range(1, 101)) and 10 < len(refused) < 60
    fault = answers[min(refused)]
    assert (fault.status, fault.code, fault.retry_after_s) == (429, "rate_limit_exceeded", 2.5)
    assert rig.provider.asked == 100 - len(refused)
    assert {(e["what"], e["where"], e["status"]) for e in rig.events()} == {("rate_limit", "agent", 429)}


def test_a_providers_fault_is_the_gateways_to_mend() -> None:
    rig = Rig(Injection(rate_limit=RateLimit(1.0, burst=2, retry_after_s=3.0, at="provider")))
    assert rig.ask() == CALLED
    assert rig.provider.asked == 1 and rig.clock.seconds == 6.0
    assert [e["wait_s"] for e in rig.recorder.reader().events("model.retry")] == [3.0, 3.0]
    cut = Rig(Injection(cut_answer=CutAnswer(1.0, at="provider"), server_error=ServerError(1.0, at="provider")))
    assert cut.ask() == CALLED and cut.provider.asked == 1


def test_latency_passes_before_the_call() -> None:
    rig = Rig(Injection(latency=Latency(1.0, seconds=7.0)))
    assert rig.ask() == CALLED and rig.clock.seconds == 7.0
    assert rig.events()[0]["seconds"] == 7.0


def test_a_server_error_and_a_cut_answer_are_told_to_the_agent() -> None:
    broken = Rig(Injection(server_error=ServerError(1.0, status=500)))
    assert broken.ask().status == 500 and broken.provider.asked == 0
    cut = Rig(Injection(cut_answer=CutAnswer(1.0)))
    assert cut.ask().status == 502 and cut.provider.asked == 1  # it was answered, and paid


def test_a_stream_is_cut_after_its_first_event() -> None:
    rig = Rig(Injection(cut_answer=CutAnswer(1.0)))

    async def streamed() -> tuple[list[JSONObject], Exception | None]:
        got: list[JSONObject] = []
        try:
            async for event in rig.upstream.stream("m", {}, rig.context(1, "a", "agent"), rig.recorder):
                got.append(event)  # noqa: PERF401 - what came before the failure is looked at
        except InjectedFault as error:
            return got, error
        return got, None

    got, error = asyncio.run(streamed())
    assert got == [{"n": 1}] and isinstance(error, InjectedFault)
    assert rig.upstream.gate.pacing.running == 0


@pytest.mark.parametrize(
    "answer, halved",
    [
        (CALLED, {"choices": [{"message": {"role": "assistant", "tool_calls": [
            {"function": {"name": "f", "arguments": '{"city":'}}]}}]}),
        ({"output": [{"type": "function_call", "name": "f", "arguments": "{}"}, {"type": "message"}]},
         {"output": [{"type": "function_call", "name": "f", "arguments": "{"}, {"type": "message"}]}),
        ({"content": [{"type": "text", "text": "x"}, {"type": "tool_use", "name": "f", "input": {"a": 1}}]},
         {"content": [{"type": "text", "text": "x"}, {"type": "tool_use", "name": "f", "input": {}}]}),
    ],
    ids=["chat", "responses", "messages"],
)  # fmt: skip
def test_arguments_are_halved_in_every_dialect_and_nothing_else(answer: JSONObject, halved: JSONObject) -> None:
    before = repr(answer)
    assert Rig(Injection(malformed_arguments=Malformed(1.0)), answer).ask() == halved
    assert repr(answer) == before  # a scripted answer is given more than once


def test_an_answer_without_calls_is_not_touched_and_nothing_is_told() -> None:
    rig = Rig(Injection(malformed_arguments=Malformed(1.0)), {"choices": [{"message": {"content": "hi"}}]})
    assert rig.ask() == {"choices": [{"message": {"content": "hi"}}]} and rig.events() == []


def test_users_and_judges_are_left_alone() -> None:
    rig = Rig(Injection(server_error=ServerError(1.0), malformed_arguments=Malformed(1.0), latency=Latency(1.0)))
    assert rig.ask(role="user") == rig.ask(role="judge") == CALLED
    assert rig.events() == [] and rig.clock.seconds == 0


def test_tools_are_hit_by_their_name() -> None:
    injector, key = Injector(Injection(tool_error=ToolError(1.0, tools="get_*"))), TrialKey("b", "t", "a", 1)
    recorder = AttemptRecorder(FakeClock())
    faults = injector.of_tools(key, recorder)
    assert faults("get_weather", 1) == ToolError(1.0, "get_*") and faults("set_weather", 2) is None
    (event,) = recorder.reader().events("fault.injected")
    assert (event["what"], event["where"], event["call"], event["tool"]) == ("tool_error", "tools", 1, "get_weather")


# ── the study file ───────────────────────────────────────────────────────────────────────────────────────────────────


def raw(**faults: Any) -> dict[str, Any]:
    head = {"study": {"name": "s", "benchmarks": ["toy-weather:1"]}, "arms": {"a": {"harness": "noop"}}}
    return {**head, "faults": faults}


def test_a_study_says_what_is_injected_and_is_written_back() -> None:
    study = parse_study(raw(seed=7, latency={"share": 0.2}, tool_error={"share": 0.1, "tools": "get_*"}), "s")
    assert study.faults == Injection(seed=7, latency=Latency(0.2), tool_error=ToolError(0.1, "get_*"))
    assert parse_study(study.as_json(), "s") == study
    assert "faults" not in Study("s", (), {}).as_json()
    assert study.digest != parse_study({k: v for k, v in raw().items() if k != "faults"}, "s").digest


@pytest.mark.parametrize(
    "faults, told",
    [
        ({}, "$.faults: injects nothing"),
        ({"latency": {}}, "$.faults.latency.share"),
        ({"latency": {"share": 0}}, "$.faults.latency.share"),
        ({"latency": {"share": 1.5}}, "$.faults.latency.share"),
        ({"latency": {"share": float("nan")}}, "$.faults.latency.share"),
        ({"latency": {"share": 0.5, "seconds": -1}}, "$.faults.latency.seconds"),
        ({"latency": 0.5}, "$.faults.latency"),
        ({"rate_limit": {"share": 0.5, "burst": 0}}, "$.faults.rate_limit.burst"),
        ({"server_error": {"share": 0.5, "status": 404}}, "$.faults.server_error.status"),
        ({"server_error": {"share": 0.5, "at": "nowhere"}}, "$.faults.server_error.at"),
        ({"latencies": {"share": 0.5}}, "$.faults.latencies"),
        ({"beside": "yes", "latency": {"share": 0.5}}, "$.faults.beside"),
    ],
)
def test_what_is_wrong_is_told_with_its_path(faults: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        parse_study(raw(**faults), "s")
    assert any(str(fault).startswith(told) for fault in wrong.value.faults), wrong.value.faults


def test_every_kind_is_a_field() -> None:
    assert all(hasattr(Injection(), kind) for kind in KINDS)
