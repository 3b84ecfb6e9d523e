"""Agents in the categories of several turns, through the whole rig: what they see, what ends them, what is graded."""

from __future__ import annotations

import asyncio
import functools
import json
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Final, TypeAlias, cast

import pytest

from evalcore.contracts import HarnessVersion, Job, ToolkitHandle
from evalcore.engine.store import TraceStore, read_attempts
from evalcore.errors import AgentError, ConfigError
from evalcore.hookspecs import HarnessInfo, hookimpl
from evalcore.plugins import PluginRef, Registry
from evalcore.report.load import load_report
from evalcore.toolkits.environment import Environment
from evalcore.toolkits.faults import WorkerLost
from evalcore.values.json import JSONObject
from evalcore.values.task import Limits
from evalcore.values.trace import TraceReader
from evalcore.values.trial import HarnessExit
from evalcore_bfcl.bridge import SURVIVED_BY_NOBODY
from evalcore_bfcl.bridge import Environment as Led
from evalcore_bfcl.dialogue import recorded
from evalcore_bfcl.dialogue_grader import ABSTAINED
from evalcore_bfcl.plugin import benchmark_name
from plugins.bfcl.tests.rig import (
    REACT,
    Trial,
    gold_turns_of,
    registry,
    run,
    study,
    trials,
    with_toolkit,
    write_playbook,
)

Reply: TypeAlias = dict[str, Any]

BASE: Final = "multi_turn_base"
TASK: Final = "multi_turn_base_1"
LATE: Final = "multi_turn_miss_func_1"
DONE: Final[Reply] = {"text": "Done."}


def by_steps(turns: Sequence[Sequence[dict[str, Any]]], task: str) -> list[Reply]:
    """A model that makes one call a reply, and says so at the end of each turn."""
    said: list[Reply] = []
    for turn in turns:
        said += [*({"tool_calls": [call]} for call in turn), DONE]
    return [{"match": {"task": task, "call": number}, **reply} for number, reply in enumerate(said, 1)]


def numbered(replies: Sequence[Reply]) -> list[Reply]:
    """The replies to one call after the other."""
    return [{**reply, "match": {"call": number}} for number, reply in enumerate(replies, 1)]


@functools.cache
def gold_turns(category: str, task: str) -> list[list[dict[str, Any]]]:
    """The calls that solve a task, turn by turn."""

    async def work(toolkit: ToolkitHandle) -> list[list[dict[str, Any]]]:
        return await gold_turns_of(toolkit, category, task)

    return with_toolkit(work)


def gold_replies(category: str, task: str) -> list[Reply]:
    return by_steps(gold_turns(category, task), task)


def play(folder: Path, task: str, replies: list[Reply], **more: Any) -> tuple[Trial, TraceReader, Path]:
    """One trial of the arm `react`, which says this."""
    write_playbook(folder, replies)
    benchmark = benchmark_name(task.rpartition("_")[0])
    path = run(study((benchmark,), REACT, tasks={benchmark: (task,)}, **more), folder)
    (trial,) = trials(path).values()
    (attempt,) = read_attempts(path)
    return trial, TraceStore(path).read(attempt.trace), path


def offered(trace: TraceReader) -> list[set[str]]:
    """The names of the tools in each request of the agent."""
    found = []
    for body in trace.requests():
        tools = cast("list[dict[str, dict[str, str]]]", body["tools"])
        found.append({tool["function"]["name"] for tool in tools})
    return found


@pytest.mark.usefixtures("toolkit")
class TestTurns:
    def test_a_model_that_makes_the_right_calls_passes_and_the_trace_tells_the_dialogue(self, tmp_path: Path) -> None:
        trial, trace, _ = play(tmp_path, TASK, gold_replies(BASE, TASK))
        assert (trial.verdict.outcome, trial.verdict.flags, trial.verdict.views) == ("pass", (), {})
        turns = list(trace.events("dialogue.turn"))
        (end,) = trace.events("dialogue.end")
        assert end["reason"] == "every turn was taken"
        assert [event["answer"] for event in trace.events("dialogue.reply")] == ["Done."] * len(turns)
        first: Any = trace.requests()[0]
        assert [message["role"] for message in first["messages"]] == ["user"]  # natively there is no system message
        assert trial.left.data["turns"] == [
            [*({"calls": [{"name": c.name, "arguments": json.dumps(c.arguments)}]} for c in calls), {"text": "Done."}]
            for calls in _calls_by_turn(trace)
        ]

    def test_calls_of_one_reply_are_one_step_and_pass_too(self, tmp_path: Path) -> None:
        said: list[Reply] = []
        for turn in gold_turns(BASE, TASK):
            said += [*([{"tool_calls": turn}] if turn else []), DONE]
        trial, _, _ = play(tmp_path, TASK, numbered(said))
        assert trial.verdict.outcome == "pass"
        steps = [step for turn in cast("list[list[JSONObject]]", trial.left.data["turns"]) for step in turn]
        assert max(len(cast("list[object]", step.get("calls", []))) for step in steps) > 1

    def test_the_21st_reply_with_calls_is_the_last_as_natively(self, tmp_path: Path) -> None:
        call = {"name": "pwd", "arguments": {}}
        trial, trace, _ = play(tmp_path, TASK, [{"tool_calls": [call]}])
        assert trial.attempt.exit is not None
        assert (trial.attempt.exit.kind, trial.attempt.exit.limit) == ("limit", "model_calls")
        assert len(list(trace.events("model.response"))) == 21
        native = cast(JSONObject, trial.verdict.details["native"])
        error = cast(JSONObject, native["error"])
        assert (trial.verdict.outcome, error["error_type"]) == ("fail", "multi_turn:force_terminated")

    def test_twenty_replies_with_calls_and_words_after_them_are_within_it(self, tmp_path: Path) -> None:
        replies = gold_replies(BASE, TASK)
        first = next(number for number, reply in enumerate(replies) if "text" in reply)
        idle: Reply = {"tool_calls": [{"name": "pwd", "arguments": {}}]}
        said = [*replies[:first], *[idle] * (20 - first), *replies[first:]]
        trial, _, _ = play(tmp_path, TASK, numbered(said))
        assert trial.attempt.exit is not None and trial.attempt.exit.kind == "completed"
        assert trial.verdict.outcome == "pass"

    def test_a_limit_of_the_study_cuts_the_dialogue_off(self, tmp_path: Path) -> None:
        trial, _, _ = play(tmp_path, TASK, gold_replies(BASE, TASK), limits=Limits(model_calls=3))
        assert trial.attempt.exit is not None and trial.attempt.exit.kind == "limit"
        assert trial.verdict.outcome == "fail"

    def test_calls_that_nobody_can_read_or_that_nothing_offers_change_nothing(self, tmp_path: Path) -> None:
        odd: list[Reply] = [
            {"tool_calls": [{"name": "ls", "arguments": "{"}]},
            {"tool_calls": [{"name": "ls", "arguments": "[1]"}]},
            {"tool_calls": [{"name": "eval", "arguments": {"source": "1"}}]},
            {"tool_calls": [{"name": "ls", "arguments": '{"a b": 1}'}]},
        ]
        said = [*odd, *gold_replies(BASE, TASK)]
        trial, trace, _ = play(tmp_path, TASK, numbered(said))
        assert trial.attempt.tool_errors == 4
        results = [_text(event) for event in trace.events("tool.result")][:4]
        assert "no JSON" in results[0]
        assert results[1] == "Error during execution: the arguments are no object"
        assert results[2] == "unknown tool: eval"
        assert results[3] == "Error during execution: 'a b' cannot be the name of an argument"
        assert (trial.verdict.outcome, trial.verdict.flags) == ("pass", ("calls_unreadable",))

    def test_an_agent_that_crashes_fails_whatever_it_did(self, tmp_path: Path) -> None:
        replies = gold_replies(BASE, TASK)
        replies[-1] = {**replies[-1], "error": {"status": 400}}
        trial, _, _ = play(tmp_path, TASK, replies)
        assert trial.attempt.exit is not None and trial.attempt.exit.kind == "crashed"
        native = cast(JSONObject, trial.verdict.details["native"])
        assert cast(JSONObject, native["error"])["error_type"] == "multi_turn:inference_error"
        assert trial.verdict.outcome == "fail"


@pytest.mark.usefixtures("toolkit")
class TestFunctionsThatComeLate:
    def test_the_tool_is_offered_from_its_turn_on_with_upstreams_words(self, tmp_path: Path) -> None:
        trial, trace, _ = play(tmp_path, LATE, gold_replies("multi_turn_miss_func", LATE))
        assert (trial.verdict.outcome, trial.verdict.views) == ("pass", {ABSTAINED: True})
        turns = list(trace.events("dialogue.turn"))
        changed = [number for number, turn in enumerate(turns) if "tools" in turn]
        assert changed == [2]
        (said,) = cast("list[dict[str, str]]", turns[2]["messages"])
        assert said["content"].startswith("I have updated some more functions")
        names = offered(trace)
        assert "mv" not in names[0] and "mv" in names[-1]
        assert names[-1] - names[0] == {"mv"}

    def test_a_call_in_the_turn_before_is_told_beside_the_verdict(self, tmp_path: Path) -> None:
        replies = gold_replies("multi_turn_miss_func", LATE)
        missing = next(n for n, (one, two) in enumerate(pairwise(replies), 1) if "text" in one and "text" in two)
        early: Reply = {"tool_calls": [{"name": "pwd", "arguments": {}}]}
        said = [*replies[:missing], early, *replies[missing:]]
        trial, _, _ = play(tmp_path, LATE, numbered(said))
        assert (trial.verdict.outcome, trial.verdict.views) == ("pass", {ABSTAINED: False})

    def test_an_agent_that_never_lists_its_tools_again_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        info = HarnessInfo("stubborn", "s", "bfcl_agents:Stubborn", uses_model=False)
        found = with_agent(monkeypatch, info, Stubborn)
        what = study(("bfcl-multi-turn-miss-func",), {"stubborn": {"harness": "stubborn"}}, limit=1)
        with pytest.raises(ConfigError) as refused:
            run(what, tmp_path, found)
        assert any("bfcl-multi-turn-miss-func" in str(f) and "tools" in str(f) for f in refused.value.faults)


class Stubborn:
    """An agent with a session, which never looks at its tools again."""

    def __init__(self, services: object, info: HarnessInfo) -> None:
        pass

    async def probe(self) -> HarnessVersion:
        return HarnessVersion("1")

    async def run(self, job: Job) -> HarnessExit:
        return HarnessExit()

    def session(self, job: Job) -> Any:
        raise AgentError("never")


class Retold:
    """An agent without a session: it makes the gold's calls of the turn that it finds itself in."""

    turns: ClassVar[list[list[dict[str, Any]]]] = []
    seen: ClassVar[list[list[str]]] = []

    def __init__(self, services: object, info: HarnessInfo) -> None:
        pass

    async def probe(self) -> HarnessVersion:
        return HarnessVersion("1")

    async def run(self, job: Job) -> HarnessExit:
        asked = [str(message.content) for message in job.messages if message.role == "user"]
        Retold.seen.append(asked)
        (door,) = job.tools
        for call in Retold.turns[len(asked) - 1]:
            await door.call(call["name"], call["arguments"])
        return HarnessExit("Done.")


def with_agent(patch: pytest.MonkeyPatch, info: HarnessInfo, made: type) -> Registry:
    """The registry with one more harness."""
    module = ModuleType("bfcl_agents")

    @hookimpl
    def evalcore_harnesses() -> list[HarnessInfo]:
        return [info]

    module.__dict__.update({made.__name__: made, "evalcore_harnesses": evalcore_harnesses})
    patch.setitem(sys.modules, "bfcl_agents", module)
    found = registry()
    found.add(PluginRef("agents", "agents", "1", "bfcl_agents"), module)
    assert found.failures == []
    return found


def test_an_agent_that_is_run_once_a_turn_is_told_all_and_can_pass(
    toolkit: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Retold, "turns", gold_turns(BASE, TASK))
    monkeypatch.setattr(Retold, "seen", [])
    info = HarnessInfo("retold", "r", "bfcl_agents:Retold", uses_model=False)
    found = with_agent(monkeypatch, info, Retold)
    what = study((benchmark_name(BASE),), {"retold": {"harness": "retold"}}, tasks={benchmark_name(BASE): (TASK,)})
    (trial,) = trials(run(what, tmp_path, found)).values()
    assert trial.verdict.outcome == "pass"
    assert [len(asked) for asked in Retold.seen] == list(range(1, len(Retold.turns) + 1))


@pytest.mark.usefixtures("agentic")
class TestMemory:
    PREREQUISITES: Final = 5  # sessions before a question of the notetaker

    def test_what_is_remembered_in_a_session_is_there_for_the_question(self, tmp_path: Path) -> None:
        """The model writes the right answer down in the first session only, and reads it when it is asked."""
        task = "memory_kv_130-notetaker-0"
        read = {"name": "core_memory_retrieve_all", "arguments": {}}
        note = {"name": "core_memory_add", "arguments": {"key": "note", "value": "milk and eggs"}}
        write_playbook(
            tmp_path,
            [
                {"match": {"task": "memory_kv_prereq_32-notetaker-0", "call": 1}, "tool_calls": [note]},
                {"match": {"task": task, "call": 1}, "tool_calls": [read]},
                DONE,
            ],
        )
        path = run(study(("bfcl-memory-kv",), REACT, tasks={"bfcl-memory-kv": (task,)}), tmp_path)
        attempts = {a.key.task: a for a in read_attempts(path)}
        assert len(attempts) == self.PREREQUISITES + 1
        trace = TraceStore(path).read(attempts[task].trace)
        first: Any = trace.requests()[0]
        assert [message["role"] for message in first["messages"]] == ["system", "user"]
        assert "milk and eggs" in first["messages"][0]["content"]
        assert "respond in this format" in first["messages"][0]["content"]
        (result,) = trace.events("tool.result")
        assert json.loads(_text(result)) == {"note": "milk and eggs"}
        (cell,) = load_report(path).cells
        assert (cell.trials, cell.clusters) == (1, 1)  # the sessions before are not counted

    def test_a_session_in_which_the_agent_crashed_leaves_the_memory_as_it_was(self, tmp_path: Path) -> None:
        add = {"name": "memory_append", "arguments": {"text": "kept;"}}
        lose = {"name": "memory_append", "arguments": {"text": "lost;"}}
        task = "memory_rec_sum_130-notetaker-0"
        write_playbook(
            tmp_path,
            [
                {"match": {"task": "memory_rec_sum_prereq_32-notetaker-0", "call": 1}, "tool_calls": [add]},
                {"match": {"task": "memory_rec_sum_prereq_33-notetaker-1", "call": 1}, "tool_calls": [lose]},
                {"match": {"task": "memory_rec_sum_prereq_33-notetaker-1", "call": 2}, "error": {"status": 400}},
                DONE,
            ],
        )
        path = run(study(("bfcl-memory-rec-sum",), REACT, tasks={"bfcl-memory-rec-sum": (task,)}), tmp_path)
        attempts = {a.key.task: a for a in read_attempts(path)}
        body: Any = TraceStore(path).read(attempts[task].trace).requests()[0]
        assert "kept;" in body["messages"][0]["content"] and "lost;" not in body["messages"][0]["content"]

    def test_memory_by_meaning_is_refused_with_what_it_lacks(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="sentence_transformers and faiss") as refused:
            run(study(("bfcl-memory-vector",), limit=1), tmp_path)
        assert refused.value.hint is not None and "EVALCORE_TOOLKIT_BFCL_AGENTIC" in refused.value.hint
        assert not (tmp_path / "r").exists()


class Mortal:
    """A toolkit whose workers do not survive some calls."""

    def __init__(self) -> None:
        self.sessions: list[list[str]] = []

    def session(self, on_callback: object = None) -> Any:
        outer = self

        class Held:
            async def __aenter__(self) -> Any:
                outer.sessions.append([])
                return self

            async def __aexit__(self, *_: object) -> None:
                pass

            async def request(self, method: str, params: JSONObject, timeout_s: float) -> JSONObject:
                if method == "call":
                    outer.sessions[-1].append(str(params["name"]))
                    if params["name"] == "deadly" or (params["name"] == "unlucky" and len(outer.sessions) == 1):
                        raise WorkerLost("gone", reason="hung")
                return {"text": str(params.get("name"))}

        return Held()


class TestLostWorkers:
    async def _played(self, names: Sequence[str]) -> tuple[list[JSONObject | None], list[list[str]]]:
        toolkit = Mortal()
        led = Led(cast(ToolkitHandle, toolkit), {})
        await led.begin()
        answers = [await led.call({"name": name, "arguments": "{}"}) for name in names]
        await led.end()
        return answers, toolkit.sessions

    def test_after_a_loss_the_environment_is_led_to_where_it_was(self) -> None:
        answers, sessions = asyncio.run(self._played(["one", "unlucky", "two"]))
        assert answers == [{"text": "one"}, {"text": "unlucky"}, {"text": "two"}]
        assert sessions == [["one", "unlucky"], ["one", "unlucky", "two"]]

    def test_a_call_that_no_worker_survives_is_given_up_and_left_out(self) -> None:
        answers, sessions = asyncio.run(self._played(["one", "deadly", "two"]))
        assert answers == [{"text": "one"}, None, {"text": "two"}]
        assert sessions == [["one", "deadly"], ["one", "deadly"], ["one", "two"]]

    def test_such_a_call_is_an_error_to_the_agent_and_fails_the_trial(
        self, toolkit: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole = Led.call

        async def deadly(self: Led, params: JSONObject) -> JSONObject | None:
            return None if params["name"] == "pwd" else await whole(self, params)

        monkeypatch.setattr(Led, "call", deadly)
        replies = gold_replies(BASE, TASK)
        said = [{"tool_calls": [{"name": "pwd", "arguments": {}}]}, *replies]
        trial, trace, _ = play(tmp_path, TASK, numbered(said))
        assert _text(next(trace.events("tool.result"))) == SURVIVED_BY_NOBODY
        assert (trial.verdict.outcome, trial.verdict.flags) == ("fail", ("native_runner_hangs",))


def _text(event: JSONObject) -> str:
    (part,) = cast("list[JSONObject]", event["content"])
    return str(part["text"])


def _calls_by_turn(trace: TraceReader) -> list[list[Any]]:
    turns: list[list[Any]] = []
    for event in trace.events():
        if event["e"] == "dialogue.turn":
            turns.append([])
        elif event["e"] == "tool.call":
            turns[-1].append(recorded(event))
    return turns
