"""Harnesses, each of which breaks one rule of the suite. Run by `test_suites_catch`; none may pass."""
# ruff: noqa: N801 - a broken part stands where a fixture looks for it, under the name of an attribute

from __future__ import annotations

import asyncio
import itertools
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest
from attrs import evolve

from evalcore.builtin.react import ReactHarness
from evalcore.contracts import Harness, HarnessVersion, Job, ToolResult, text_result
from evalcore.errors import AgentError, LimitReached
from evalcore.plugins import Registry
from evalcore.testing import HarnessConformance
from evalcore.values.descriptors import HarnessInfo
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import Message
from evalcore.values.trial import HarnessExit

counter = itertools.count()


class HarnessCase(HarnessConformance):
    """The reference loop, broken in one way."""

    harness = "react"
    agent_class: ClassVar[Any] = ReactHarness
    breaks: ClassVar[str]
    says: ClassVar[str]

    @pytest.fixture
    def agent(self) -> Harness:
        harness: Harness = self.agent_class()
        return harness


def ending(end: Any) -> Any:
    class Broken(ReactHarness):
        async def run(self, job: Job) -> HarnessExit:
            await super().run(job)
            given: HarnessExit = end
            return given

    return Broken


def given_another(change: Any) -> Any:
    """The loop, run with another job."""

    class Broken(ReactHarness):
        async def run(self, job: Job) -> HarnessExit:
            return await super().run(change(job))

    return Broken


class Through:
    """A wire with one thing changed; all else goes to the real one."""

    def __init__(self, real: Any) -> None:
        self.real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


class TestAxisNobodyHas(HarnessCase):
    breaks, says = "test_it_is_described", "axis 'mood' is not registered"

    @pytest.fixture
    def info(self, registry: Registry) -> HarnessInfo:
        return evolve(registry.get(HarnessInfo, "harness", "react"), axes=("mood",))


class TestAxisOfTheGateway(HarnessCase):
    breaks, says = "test_it_is_described", "axis 'temperature' is owned by gateway"

    @pytest.fixture
    def info(self, registry: Registry) -> HarnessInfo:
        return evolve(registry.get(HarnessInfo, "harness", "react"), axes=("temperature",))


class TestSlowProbe(HarnessCase):
    breaks, says = "test_the_probe_is_cheap_and_stable", "the probe took"
    probe_s = 0.05

    class agent_class(ReactHarness):
        async def probe(self) -> HarnessVersion:
            time.sleep(0.1)  # noqa: ASYNC251 - as one would that starts a program
            return HarnessVersion("1")


class TestProbeOfTheMoment(HarnessCase):
    breaks, says = "test_the_probe_is_cheap_and_stable", "probed twice, it is another"

    class agent_class(ReactHarness):
        async def probe(self) -> HarnessVersion:
            return HarnessVersion(f"1.{next(counter)}")


class TestNoVersion(HarnessCase):
    breaks, says = "test_the_probe_is_cheap_and_stable", "the version is empty"

    class agent_class(ReactHarness):
        async def probe(self) -> HarnessVersion:
            return HarnessVersion("")


class TestReturnsText(HarnessCase):
    breaks, says = "test_it_completes", "it returned str, no HarnessExit"
    agent_class = ending("done")


class TestClaimNobodyKnows(HarnessCase):
    breaks, says = "test_it_completes", "'victory' is no claim"
    agent_class = ending(HarnessExit("done", "victory"))  # type: ignore[arg-type]


class TestEvidenceOfASet(HarnessCase):
    breaks, says = "test_it_completes", "of type set, no JSON"
    agent_class = ending(HarnessExit("ANSWER-4096", evidence={"seen": {1}}))  # type: ignore[dict-item]


class TestLosesTheAnswer(HarnessCase):
    breaks, says = "test_it_completes", "the answer is None"
    agent_class = ending(HarnessExit(None))


class TestLosesTheSystemMessage(HarnessCase):
    breaks, says = "test_the_model_gets_the_task_and_the_tools", "the model was not told, or not in order"
    agent_class = given_another(lambda job: evolve(job, messages=job.messages[1:]))


class TestOffersNoTools(HarnessCase):
    breaks, says = "test_the_model_gets_the_task_and_the_tools", "the model was not offered look_up"
    agent_class = given_another(lambda job: evolve(job, tools=()))


class Silent(Through):
    async def call(self, name: str, arguments: JSONValue) -> ToolResult:
        result: ToolResult = await self.real.call(name, arguments)
        return text_result("", error=result.error)


class TestKeepsResultsToItself(HarnessCase):
    breaks, says = "test_results_reach_the_model", "was not handed to the model"
    agent_class = given_another(lambda job: evolve(job, tools=tuple(Silent(t) for t in job.tools)))


class Forgetful(Through):
    async def complete(self, body: JSONObject) -> Any:
        messages: Any = body["messages"]
        return await self.real.complete({**body, "messages": messages[-2:]})


class TestCutsTheConversation(HarnessCase):
    breaks, says = "test_results_reach_the_model", "the conversation was cut"
    agent_class = given_another(lambda job: evolve(job, model=Forgetful(job.model)))


class Coercing(Through):
    async def call(self, name: str, arguments: Any) -> Any:
        return await self.real.call(name, {k: str(v) for k, v in arguments.items()})


class TestCoercesArguments(HarnessCase):
    breaks, says = "test_arguments_arrive_as_the_model_wrote_them", "the arguments arrived as"
    agent_class = given_another(lambda job: evolve(job, tools=tuple(Coercing(t) for t in job.tools)))


class OneCall(Through):
    async def complete(self, body: JSONObject) -> Any:
        response: Any = await self.real.complete(body)
        message = response["choices"][0]["message"]
        message.get("tool_calls", [])[1:] = []
        return response


class TestMakesOneCallOfTwo(HarnessCase):
    breaks, says = "test_every_call_of_a_reply_is_made", "['look_up'] == ['look_up', 'ring_bell']"
    agent_class = given_another(lambda job: evolve(job, model=OneCall(job.model)))


class TestIgnoresLimits(HarnessCase):
    breaks, says = "test_a_limit_ends_it", "the harness claims completed"

    class agent_class(ReactHarness):
        async def run(self, job: Job) -> HarnessExit:
            try:
                return await super().run(job)
            except (LimitReached, BaseExceptionGroup):
                return HarnessExit("done")


class TestTurnsLimitsIntoBugs(HarnessCase):
    breaks, says = "test_a_limit_ends_it", "raised RuntimeError"

    class agent_class(ReactHarness):
        async def run(self, job: Job) -> HarnessExit:
            try:
                return await super().run(job)
            except LimitReached as limit:
                raise RuntimeError("no more") from limit


class Insisting(Through):
    async def complete(self, body: JSONObject) -> Any:
        for _ in range(8):
            with suppress(LimitReached):
                return await self.real.complete(body)
        return await self.real.complete(body)


class TestAsksAgainAtALimit(HarnessCase):
    breaks, says = "test_a_limit_ends_it", "it went on: 10 requests"
    agent_class = given_another(lambda job: evolve(job, model=Insisting(job.model)))


class TestBlamesTheAgent(HarnessCase):
    breaks, says = "test_a_failure_of_the_machine_is_passed_on", "raised AgentError"

    class agent_class(ReactHarness):
        async def run(self, job: Job) -> HarnessExit:
            try:
                return await super().run(job)
            except Exception as error:
                raise AgentError(str(error)) from error


class TestIgnoresCancellation(HarnessCase):
    breaks, says = "test_it_ends_when_cancelled", "after it was cancelled, it still runs"
    give_up_s = 0.2

    class agent_class(ReactHarness):
        async def run(self, job: Job) -> HarnessExit:
            work = asyncio.ensure_future(super().run(job))
            for _ in range(4):
                try:
                    return await asyncio.shield(work)
                except asyncio.CancelledError:
                    await asyncio.sleep(0.4)
            work.cancel()
            return HarnessExit()


class TestTrustsTheModel(HarnessCase):
    breaks, says = "test_a_bad_reply_does_not_break_it", "IndexError"

    class agent_class(ReactHarness):
        async def run(self, job: Job) -> HarnessExit:
            assert job.model is not None
            response: Any = await job.model.complete({"messages": []})
            return HarnessExit(str(response.get("choices", [{}])[0]))


class Discreet(Through):
    def refuse(self, name: str, raw: str, reason: str) -> ToolResult:
        return text_result("no JSON", error=True)


class TestHidesMalformedCalls(HarnessCase):
    breaks, says = "test_malformed_calls_are_seen_by_the_tool_wire", "the wire saw nothing of 'look_up'"
    agent_class = given_another(lambda job: evolve(job, tools=tuple(Discreet(t) for t in job.tools)))


class TestSetsAVariable(HarnessCase):
    breaks, says = "test_it_leaves_the_process_alone", "the environment of the process changed"

    class agent_class(ReactHarness):
        async def run(self, job: Job) -> HarnessExit:
            os.environ["TESTED_HARNESS"] = str(next(counter))
            return await super().run(job)


class TestWritesWhereItStands(HarnessCase):
    breaks, says = "test_it_leaves_the_process_alone", "it left files where the process was"

    class agent_class(ReactHarness):
        async def run(self, job: Job) -> HarnessExit:
            Path("notes.txt").write_text("mine")  # noqa: ASYNC240 - as careless as it is
            return await super().run(job)


class TestLeavesATaskBehind(HarnessCase):
    breaks, says = "test_it_leaves_the_process_alone", "the tasks of the process changed"

    class agent_class(ReactHarness):
        left: ClassVar[list[Any]] = []

        async def run(self, job: Job) -> HarnessExit:
            self.left.append(asyncio.ensure_future(asyncio.sleep(5)))
            return await super().run(job)


class TestOneConversationForAll(HarnessCase):
    breaks, says = "test_jobs_do_not_mix", "ANSWER-4096 of"

    class agent_class(ReactHarness):
        last = ""

        async def run(self, job: Job) -> HarnessExit:
            end = await super().run(job)
            self.last = end.answer or self.last
            await asyncio.sleep(0.01)
            return evolve(end, answer=self.last)


class TestRemembersTheLastJob(HarnessCase):
    breaks, says = "test_jobs_do_not_mix", "run twice, the same job ends in two ways"

    class agent_class(ReactHarness):
        async def run(self, job: Job) -> HarnessExit:
            noted = Message("user", f"This is job {next(counter)}.")
            end = await super().run(evolve(job, messages=(*job.messages, noted)))
            return evolve(end, evidence={"number": next(counter)})
