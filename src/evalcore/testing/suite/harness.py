"""Does a harness keep its promises? Subclass `HarnessConformance`, name the harness, inherit the tests.

The model is a script and the tools are fakes, both in memory. A harness that speaks to its model in a form of its own
overrides `wants`, which says how the model would make calls.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Final, cast

import pytest

from evalcore.contracts import Harness, HarnessVersion, Job, text_result
from evalcore.engine.fault import CLAIMS
from evalcore.engine.services import LocalServices
from evalcore.errors import AgentError, InfraError, LimitReached
from evalcore.plugins import Registry
from evalcore.testing.fakes import FakeTools, ScriptedChannel, Step, called
from evalcore.testing.suite.base import Conformance
from evalcore.testing.suite.checks import json_fault
from evalcore.values.descriptors import AxisInfo, HarnessInfo
from evalcore.values.json import JSONObject, JSONValue, canonical
from evalcore.values.task import Call, GoldCalls, Limits, Message, ToolSpec
from evalcore.values.trial import HarnessExit

TOOL: Final = ToolSpec(
    "look_up",
    "Look something up by its key.",
    {"type": "object", "properties": {"key": {"type": "string"}, "more": {}}, "required": ["key"]},
)
SECOND: Final = ToolSpec("ring_bell", "Ring the bell.", {"type": "object", "properties": {}})
KEY: Final[JSONObject] = {"key": "otter"}
FOUND: Final = "FOUND-7731"
ANSWER: Final = "ANSWER-4096"
ODD: Final[JSONObject] = {
    "key": "Bärn 🦦 \u202e \\ \" ' <tag> </tool_call",
    "more": [0, -1, 2**53 + 1, 0.1, 1e300, True, None, {"": []}, "5", 5.0],
}


_BAD_REPLIES: Final[Mapping[str, JSONObject]] = {
    "nothing": {"raw": {}},
    "no choices": {"raw": {"choices": []}},
    "choices that are none": {"raw": {"choices": "many"}},
    "no message": {"raw": {"choices": [{"index": 0}]}},
    "a message that is none": {"raw": {"choices": [{"message": "hello"}]}},
    "no content": {"role": "assistant"},
    "content in parts": {"role": "assistant", "content": [{"type": "text", "text": "hm"}, {"type": "odd"}, None]},
    "content of a number": {"role": "assistant", "content": 7},
    "calls that are none": {"role": "assistant", "content": "", "tool_calls": "all"},
    "a call that is none": {"role": "assistant", "content": "", "tool_calls": [None, 7, {}]},
    "a call without a name": {
        "role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"arguments": "{}"}}]
    },
    "arguments that are a number": {
        "role": "assistant", "content": None, "tool_calls": [{"id": 3, "function": {"name": "look_up", "arguments": 7}}]
    },
    "a refusal": {"role": "assistant", "content": None, "refusal": "I would rather not."},
}  # fmt: skip


class HarnessConformance(Conformance):
    """Required: `harness`, its registered name. Override the fixture `agent` for one that is not registered."""

    harness: ClassVar[str]
    options: ClassVar[Mapping[str, JSONValue]] = {}  # the harness-owned axes to run it with
    probe_s: ClassVar[float] = 5.0
    give_up_s: ClassVar[float] = 10.0  # what it gets to end once it is cancelled; then the engine leaves it behind

    @pytest.fixture
    def info(self, registry: Registry) -> HarnessInfo:
        """Its descriptor."""
        return registry.get(HarnessInfo, "harness", self.harness)

    @pytest.fixture
    def agent(self, info: HarnessInfo, registry: Registry, services: LocalServices) -> Harness:
        """The harness."""
        return cast(Harness, registry.factory(info)(services, info))

    @pytest.fixture
    def speaks(self, info: HarnessInfo) -> None:
        """Tests that ask for this are for harnesses with a model."""
        if not info.uses_model:
            pytest.skip("it uses no model")

    def wants(self, *calls: tuple[str, JSONValue]) -> JSONObject:
        """The model's message that makes calls; arguments that are a text are sent as they stand."""
        return called(*calls)

    def job(self, script: Sequence[Step], tools: FakeTools, info: HarnessInfo, workdir: Path) -> Job:
        """One task. A harness that uses no model gets the solution: look up KEY, answer ANSWER."""
        return Job(
            messages=(Message("system", "You look things up."), Message("user", "What is the otter's number?")),
            tools=(tools,),
            model=ScriptedChannel(script) if info.uses_model else None,
            options=self.options,
            limits=Limits(),
            workdir=lambda: workdir,
            gold=None if info.uses_model else GoldCalls(((Call(TOOL.name, KEY),),), ANSWER),
            seed=1,
        )

    def simple(self) -> list[Step]:
        """The script of a model that looks the key up, and answers."""
        return [self.wants((TOOL.name, KEY)), ANSWER]

    # ── what it declares ─────────────────────────────────────────────────────────────────────────────────────────────

    def test_it_is_described(self, info: HarnessInfo, registry: Registry) -> None:
        """One line of summary; its axes are registered, and owned by harnesses."""
        assert info.summary.strip() and "\n" not in info.summary, "the summary is one line"
        axes = {a.name: a for a in registry.all(AxisInfo).values() if a.of in ("", info.name)}
        for name in info.axes:
            assert name in axes, f"axis {name!r} is not registered"
            assert axes[name].owner == "harness", f"axis {name!r} is owned by {axes[name].owner}"

    def test_the_probe_is_cheap_and_stable(self, agent: Harness) -> None:
        """A version, at once, and the same when asked again: `resume` compares it."""
        began = time.perf_counter()
        found = self.run(agent.probe())
        took = time.perf_counter() - began
        assert isinstance(found, HarnessVersion), f"probe returned {type(found).__name__}"
        assert found.version.strip(), "the version is empty"
        assert json_fault(found.capabilities) is None, json_fault(found.capabilities)
        assert self.run(agent.probe()) == found, "probed twice, it is another"
        assert took <= self.probe_s, f"the probe took {took:.1f} s"

    # ── a task ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def test_it_completes(self, agent: Harness, info: HarnessInfo, tmp_path: Path) -> None:
        """The model looks something up and answers: one call, that answer, and a claim of completion."""
        tools = fake_tools()
        end = self.run(agent.run(self.job(self.simple(), tools, info, tmp_path)))
        assert_exit(end)
        assert end.claim == "completed", f"it claims {end.claim}"
        if info.uses_model:
            assert tools.calls == [(TOOL.name, KEY)], f"the calls that were made: {tools.calls}"
            assert end.answer is not None and ANSWER in end.answer, f"the answer is {end.answer!r}"

    @pytest.mark.usefixtures("speaks")
    def test_the_model_gets_the_task_and_the_tools(self, agent: Harness, info: HarnessInfo, tmp_path: Path) -> None:
        """Every message, in order, as it was; every tool with its description and its arguments."""
        job = self.job([ANSWER], fake_tools(), info, tmp_path)
        self.run(agent.run(job))
        first = sent(job, 0)
        position = 0
        for message in job.messages:
            position = first.find(json.dumps(message.content, ensure_ascii=False)[1:-1], position)
            assert position >= 0, f"the model was not told, or not in order: {message.content!r}"
        for word in (TOOL.name, TOOL.description, '"key"', SECOND.name):
            assert word in first or json.dumps(word)[1:-1] in first, f"the model was not offered {word}"

    @pytest.mark.usefixtures("speaks")
    def test_results_reach_the_model(self, agent: Harness, info: HarnessInfo, tmp_path: Path) -> None:
        """What a tool answered stands in the next request, an error too, after all that was said before."""
        for result in (text_result(FOUND), text_result(FOUND, error=True)):
            job = self.job(self.simple(), fake_tools(look_up=result), info, tmp_path)
            self.run(agent.run(job))
            assert FOUND in sent(job, 1), "the result of the tool was not handed to the model"
            assert all(str(m.content) in sent(job, 1) for m in job.messages), "the conversation was cut"

    @pytest.mark.usefixtures("speaks")
    def test_arguments_arrive_as_the_model_wrote_them(self, agent: Harness, info: HarnessInfo, tmp_path: Path) -> None:
        """No digit lost, nothing coerced, nothing added."""
        tools = fake_tools()
        self.run(agent.run(self.job([self.wants((TOOL.name, ODD)), ANSWER], tools, info, tmp_path)))
        assert [name for name, _ in tools.calls] == [TOOL.name], f"the calls that were made: {tools.calls}"
        assert canonical(tools.calls[0][1]) == canonical(ODD), f"the arguments arrived as {tools.calls[0][1]!r}"

    @pytest.mark.usefixtures("speaks")
    def test_every_call_of_a_reply_is_made(self, agent: Harness, info: HarnessInfo, tmp_path: Path) -> None:
        """All of them, and their results in the order of the calls."""
        tools = fake_tools(look_up=text_result("FIRST-1"), ring_bell=text_result("SECOND-2"))
        job = self.job([self.wants((TOOL.name, KEY), (SECOND.name, {})), ANSWER], tools, info, tmp_path)
        self.run(agent.run(job))
        assert sorted(name for name, _ in tools.calls) == [TOOL.name, SECOND.name]
        assert 0 <= sent(job, 1).find("FIRST-1") < sent(job, 1).find("SECOND-2"), "results are missing or out of order"

    # ── limits, failures, cancellation ───────────────────────────────────────────────────────────────────────────────

    def test_a_limit_ends_it(self, agent: Harness, info: HarnessInfo, tmp_path: Path) -> None:
        """LimitReached is passed on, or claimed; nothing more is asked of a wire that has refused."""
        limit = LimitReached("tokens", 100)
        model = self.job([self.wants((TOOL.name, KEY)), *[limit] * 20], fake_tools(), info, tmp_path)
        tools = self.job([self.wants((TOOL.name, KEY)), *[limit] * 20], fake_tools(look_up=limit), info, tmp_path)
        for where, job in (("model", model), ("tool", tools)):
            self._stops(agent, job, where, LimitReached, "limit")

    def test_a_failure_of_the_machine_is_passed_on(self, agent: Harness, info: HarnessInfo, tmp_path: Path) -> None:
        """InfraError is passed on, or claimed: the attempt is void, and no answer of the agent's."""
        failure = InfraError("the provider fell over")
        model = self.job([failure] * 20, fake_tools(), info, tmp_path)
        tools = self.job([self.wants((TOOL.name, KEY)), *[failure] * 20], fake_tools(look_up=failure), info, tmp_path)
        for where, job in (("model", model), ("tool", tools)):
            self._stops(agent, job, where, InfraError, "infra")

    def _stops(self, agent: Harness, job: Job, where: str, error: type[Exception], claim: str) -> None:
        """Assert that the harness stops once a wire raises `error`."""
        tools = cast(FakeTools, job.tools[0])
        raised, claimed = None, ""
        try:
            claimed = self.run(agent.run(job)).claim
        except Exception as ended:  # noqa: BLE001 - whatever it is, the assertion below tells it
            raised = ended
        touched = bool(tools.calls) if where == "tool" else job.model is not None
        told = f"the {where} wire raised {error.__name__}, and the harness"
        assert raised is None or _holds(raised, error), f"{told} raised {raised!r}"
        assert raised or claimed == claim or not touched, f"{told} claims {claimed}"
        asked = len(cast(ScriptedChannel, job.model).requests) if job.model else 0
        assert asked <= 3 and len(tools.calls) <= 2, f"it went on: {asked} requests, {len(tools.calls)} calls"

    def test_it_ends_when_cancelled(self, agent: Harness, info: HarnessInfo, tmp_path: Path) -> None:
        """Waiting for its model or a tool, it ends soon after it is cancelled."""

        class Waiting(ScriptedChannel):
            async def complete(self, body: JSONObject) -> JSONObject:
                await asyncio.Event().wait()
                return {}

        class Slow(FakeTools):
            async def call(self, name: str, arguments: JSONValue) -> object:  # type: ignore[override]
                await asyncio.Event().wait()
                return None

        async def look(job: Job) -> None:
            task = asyncio.ensure_future(agent.run(job))
            await asyncio.wait((task,), timeout=0.2)
            task.cancel()
            done, _ = await asyncio.wait((task,), timeout=self.give_up_s)
            assert done, f"{self.give_up_s:g} s after it was cancelled, it still runs"
            assert task.cancelled() or task.exception() is None or isinstance(task.exception(), AgentError)

        quick = self.job(self.simple(), fake_tools(), info, tmp_path)
        self.run(look(_with(quick, tools=(Slow((TOOL, SECOND)),))))
        if info.uses_model:
            self.run(look(_with(quick, model=Waiting())))

    # ── what models send ─────────────────────────────────────────────────────────────────────────────────────────────

    @pytest.mark.usefixtures("speaks")
    @pytest.mark.parametrize("reply", _BAD_REPLIES)
    def test_a_bad_reply_does_not_break_it(self, agent: Harness, info: HarnessInfo, tmp_path: Path, reply: str) -> None:
        """It goes on, ends, or raises AgentError; nothing else."""
        job = self.job([_BAD_REPLIES[reply], ANSWER, ANSWER], fake_tools(), info, tmp_path)
        with suppress(AgentError):
            assert_exit(self.run(agent.run(job)))

    @pytest.mark.usefixtures("speaks")
    def test_malformed_calls_are_seen_by_the_tool_wire(self, agent: Harness, info: HarnessInfo, tmp_path: Path) -> None:
        """An unknown tool is called, arguments that are no JSON are refused: both at the wire, which counts them."""
        for name, arguments in (("no_such_tool", KEY), (TOOL.name, '{"key": ')):
            tools = fake_tools()
            job = self.job([self.wants((name, arguments)), ANSWER], tools, info, tmp_path)
            assert_exit(self.run(agent.run(job)))
            assert tools.calls or tools.refused, f"the wire saw nothing of {name!r} with {arguments!r}"
            assert not [a for n, a in tools.calls if n == TOOL.name], (
                "arguments that are no JSON were passed on as such"
            )

    # ── what is left ─────────────────────────────────────────────────────────────────────────────────────────────────

    def test_it_leaves_the_process_alone(
        self, agent: Harness, info: HarnessInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Environment, folder, import path, and what runs on the loop are as before; files go to `workdir`."""
        here, workdir = tmp_path / "here", tmp_path / "workdir"
        here.mkdir()
        workdir.mkdir()
        monkeypatch.chdir(here)

        async def look() -> None:
            before = dict(os.environ), Path.cwd(), list(sys.path), asyncio.all_tasks()
            await agent.run(self.job(self.simple(), fake_tools(), info, workdir))
            await asyncio.sleep(0)
            after = dict(os.environ), Path.cwd(), list(sys.path), asyncio.all_tasks()
            for what, one, two in zip(("environment", "folder", "import path", "tasks"), before, after, strict=True):
                assert one == two, f"the {what} of the process changed"

        self.run(look())
        assert not list(here.iterdir()), f"it left files where the process was: {list(here.iterdir())}"

    def test_jobs_do_not_mix(self, agent: Harness, info: HarnessInfo, tmp_path: Path) -> None:
        """Eight at once, and one after the other: each gets its own answer and leaves nothing behind."""

        async def look() -> None:
            jobs = []
            for number in range(8):
                folder = tmp_path / str(number)
                folder.mkdir()
                script: list[Step] = [self.wants((TOOL.name, {"key": f"k{number}"})), f"{ANSWER} of {number}"]
                jobs.append(self.job(script, fake_tools(), info, folder))
            ends = await asyncio.gather(*(agent.run(job) for job in jobs))
            for number, (job, end) in enumerate(zip(jobs, ends, strict=True)):
                if info.uses_model:
                    assert cast(FakeTools, job.tools[0]).calls == [(TOOL.name, {"key": f"k{number}"})]
                    assert end.answer is not None and f"{ANSWER} of {number}" in end.answer, f"job {number}: {end}"
            again = [await agent.run(self.job(self.simple(), fake_tools(), info, tmp_path)) for _ in range(2)]
            assert again[0] == again[1], "run twice, the same job ends in two ways"

        self.run(look())


def fake_tools(**results: object) -> FakeTools:
    """The two tools of these tests; a result or an exception for each by its name."""
    return FakeTools((TOOL, SECOND), {TOOL.name: text_result(FOUND), **results})  # type: ignore[dict-item]


def assert_exit(end: object) -> None:
    """Assert that something is what a harness may return."""
    assert isinstance(end, HarnessExit), f"it returned {type(end).__name__}, no HarnessExit"
    assert end.claim in CLAIMS, f"{end.claim!r} is no claim"
    answer: object = end.answer
    assert answer is None or isinstance(answer, str), f"the answer is of type {type(answer).__name__}"
    assert isinstance(end.evidence, dict), "the evidence is no object"
    assert json_fault(end.evidence) is None, json_fault(end.evidence)


def sent(job: Job, number: int) -> str:
    """One of the requests that the model got, as JSON text."""
    requests = cast(ScriptedChannel, job.model).requests
    assert len(requests) > number, f"the model was asked {len(requests)} times, and not {number + 1}"
    return json.dumps(requests[number], ensure_ascii=False)


def _with(job: Job, **changes: object) -> Job:
    from attrs import evolve

    return evolve(job, **changes)  # type: ignore[arg-type]


def _holds(raised: BaseException, wanted: type[Exception]) -> bool:
    if isinstance(raised, BaseExceptionGroup):
        return any(_holds(one, wanted) for one in raised.exceptions)
    return isinstance(raised, wanted)
