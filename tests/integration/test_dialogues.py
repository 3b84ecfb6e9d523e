"""Dialogues through the whole engine: turns, roles, judges, tools that appear, tasks that others require."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

from evalcore.cli.trial_text import trial_text
from evalcore.contracts import HarnessVersion, Job
from evalcore.engine.plan import make_plan
from evalcore.engine.run import RunOptions, regrade, resume, start
from evalcore.engine.runner import RunEnd
from evalcore.engine.services import LocalServices
from evalcore.engine.store import TraceStore, read_attempts, read_gradings, read_stamp
from evalcore.errors import ConfigError
from evalcore.hookspecs import HarnessInfo, hookimpl
from evalcore.plugins import PluginRef, Registry, load
from evalcore.report.load import load_report
from evalcore.testing import toy
from evalcore.values.json import JSONObject
from evalcore.values.study import BenchmarkChoice, RoleChoice, Study
from evalcore.values.task import Limits
from evalcore.values.trial import Attempt, HarnessExit
from tests.oracles import ROOT

SEEN: list[list[tuple[str, str]]] = []  # the messages of each run of `Forgetful`

AGENT = """
[[reply]]
match = { contains = ": fine" }
text = "fine"
usage = { input = 10, output = 1 }

[[reply]]
match = { contains = "Bern" }
tool_calls = [{ name = "look", arguments = { city = "Bern" } }]
usage = { input = 10, output = 1 }

[[reply]]
tool_calls = [{ name = "look", arguments = { city = "Oslo" } }]
usage = { input = 10, output = 1 }
"""
USER = """
[[reply]]
match = { call = 1 }
text = "Bern, please"
usage = { input = 7, output = 2 }

[[reply]]
match = { call = 2 }
text = "And Oslo"
usage = { input = 7, output = 2 }

[[reply]]
text = "###STOP###"
usage = { input = 7, output = 2 }
"""
TIRED = """
[[reply]]
match = { call = 1 }
text = "Bern, please"

[[reply]]
text = "give up"
"""
YES = """
[[reply]]
text = "yes"
usage = { input = 5, output = 1 }
"""


class Forgetful:
    """Keeps no session: it is told everything again, and looks up what was asked last."""

    def __init__(self, services: object = None, info: object = None) -> None:
        pass

    async def probe(self) -> HarnessVersion:
        return HarnessVersion("1")

    async def run(self, job: Job) -> HarnessExit:
        SEEN.append([(m.role, str(m.content)) for m in job.messages])
        city = str(job.messages[-1].content).removeprefix("Weather of ").removesuffix("?")
        result = await job.tools[0].call("look", {"city": city})
        return HarnessExit(result.text)


class Restless(Forgetful):
    """Calls for ever."""

    async def run(self, job: Job) -> HarnessExit:
        while True:
            await job.tools[0].call("look", {"city": "Bern"})


@hookimpl
def evalcore_harnesses() -> list[HarnessInfo]:
    where = f"{__name__}:"
    return [
        HarnessInfo("forgetful", "told again", where + "Forgetful", uses_model=False),
        HarnessInfo("restless", "never ends", where + "Restless", uses_model=False),
        HarnessInfo("deaf", "keeps a session and never lists tools again", where + "Deaf", uses_model=False),
    ]


class Deaf(Forgetful):
    """Would keep its tools as they were."""


def registry() -> Registry:
    found = load(only=())
    found.add(PluginRef("toy", "toy", "1", "evalcore.testing.toy"), toy)
    found.add(PluginRef("agents", "agents", "1", __name__), SimpleNamespace(evalcore_harnesses=evalcore_harnesses))
    assert found.failures == []
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"agent": AGENT, "user": USER, "tired": TIRED, "yes": YES}.items():
        (tmp_path / f"{name}.toml").write_text(text)
    SEEN.clear()
    return tmp_path


async def carry_out(folder: Path, benchmark: str, arms: dict[str, dict[str, str]], **changes: object) -> RunEnd:
    found = registry()
    services = LocalServices(found, folder)
    try:
        what = Study("dialogues", (benchmark,), arms, **changes)  # type: ignore[arg-type]
        plan = await make_plan(what, found, services, "r")
        return await start(plan, folder / "r", found, services, RunOptions(concurrency=4))
    finally:
        await services.close()


def attempts(folder: Path) -> list[Attempt]:
    return list(read_attempts(folder / "r"))


def outcomes(folder: Path) -> list[str]:
    run = folder / "r"
    return [g.verdict.outcome for g in read_gradings(run, read_stamp(run).grading)]


def events(folder: Path, kind: str, task: str = "d0") -> list[JSONObject]:
    store = TraceStore(folder / "r")
    try:
        attempt = next(a for a in attempts(folder) if a.key.task == task)
        return list(store.read(attempt.trace).events(kind))
    finally:
        store.close()


SCRIPTED = {"harness": "react", "model": "scripted/agent.toml"}
WITH_USER = {**SCRIPTED, "user_model": "scripted/user.toml"}
ONE = {"toy-users": BenchmarkChoice(tasks=("d0",))}


@pytest.mark.parametrize("benchmark", ["toy-dialogues", "toy-late", "toy-memory"])
def test_controls_play_each_turn(folder: Path, benchmark: str) -> None:
    end = asyncio.run(carry_out(folder, benchmark, {"oracle": {"harness": "oracle"}}))

    assert end == RunEnd("done")
    assert outcomes(folder) == ["pass", "pass"]


def test_doing_nothing_ends_every_turn_and_fails(folder: Path) -> None:
    asyncio.run(carry_out(folder, "toy-dialogues", {"noop": {"harness": "noop"}}))

    assert outcomes(folder) == ["fail", "fail"]
    assert [e["turn"] for e in events(folder, "dialogue.turn")] == [1, 2]
    assert [e["reason"] for e in events(folder, "dialogue.end")] == ["all is said"]


def test_react_keeps_one_conversation_through_all_turns(folder: Path) -> None:
    asyncio.run(carry_out(folder, "toy-dialogues", {"s": SCRIPTED}, choices={"toy-dialogues": ONE["toy-users"]}))

    store = TraceStore(folder / "r")
    requests = store.read(attempts(folder)[0].trace).requests()
    store.close()
    assert [[m["role"] for m in r["messages"]] for r in requests] == [  # type: ignore[union-attr, index]
        ["system", "user"],
        ["system", "user", "assistant", "tool"],
        ["system", "user", "assistant", "tool", "assistant", "user"],
        ["system", "user", "assistant", "tool", "assistant", "user", "assistant", "tool"],
    ]
    assert outcomes(folder) == ["pass"]


def test_an_agent_without_a_session_is_told_what_was_said_and_done(folder: Path) -> None:
    asyncio.run(
        carry_out(folder, "toy-dialogues", {"f": {"harness": "forgetful"}}, choices={"toy-dialogues": ONE["toy-users"]})
    )

    assert outcomes(folder) == ["pass"]
    assert SEEN[0] == [("system", "You answer questions about the weather."), ("user", "Weather of Bern?")]
    assert SEEN[1][2:] == [
        ("assistant", '[called look({"city":"Bern"})]\n[result: Bern: fine]\nBern: fine'),
        ("user", "Weather of Oslo?"),
    ]


def test_the_benchmarks_own_limit_ends_the_dialogue(folder: Path) -> None:
    asyncio.run(carry_out(folder, "toy-dialogues", {"r": {"harness": "restless"}}))

    exits = [a.exit for a in attempts(folder)]
    assert [(e.kind, e.limit) for e in exits if e] == [("limit", "steps"), ("limit", "steps")]


def test_a_turn_bounds_the_models_calls(folder: Path) -> None:
    (folder / "agent.toml").write_text('[[reply]]\ntool_calls = [{ name = "look", arguments = { city = "Bern" } }]\n')
    asyncio.run(carry_out(folder, "toy-dialogues", {"s": SCRIPTED}))

    ended = [(a.exit.kind, a.exit.limit, a.usage["agent"].calls) for a in attempts(folder) if a.exit]
    assert ended == [("limit", "model_calls", 3)] * 2


def test_tools_that_appear_are_listed_and_recorded(folder: Path) -> None:
    (folder / "agent.toml").write_text(
        AGENT.replace('name = "look", arguments = { city = "Bern"', 'name = "look_bern", arguments = { city = "Bern"')
        .replace('name = "look", arguments = { city = "Oslo"', 'name = "look_oslo", arguments = { city = "Oslo"')
        .replace('contains = "Bern"', "call = 1")
    )
    asyncio.run(carry_out(folder, "toy-late", {"s": SCRIPTED}, choices={"toy-late": ONE["toy-users"]}))

    assert outcomes(folder) == ["pass"]
    assert [e.get("tools") for e in events(folder, "dialogue.turn")] == [None, ["look_bern", "look_oslo"]]
    offered = [[t["function"]["name"] for t in r["tools"]] for r in _requests(folder)]  # type: ignore[index, union-attr, call-overload]
    assert offered == [["look_bern"], ["look_bern"], ["look_bern", "look_oslo"], ["look_bern", "look_oslo"]]


def _requests(folder: Path) -> list[JSONObject]:
    store = TraceStore(folder / "r")
    try:
        return store.read(attempts(folder)[0].trace).requests()
    finally:
        store.close()


def test_a_harness_that_never_lists_again_is_refused_where_tools_change(folder: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        asyncio.run(carry_out(folder, "toy-late", {"d": {"harness": "deaf"}}))

    assert "never lists them anew" in refused.value.faults[0].message
    assert not (folder / "r").exists()


# ── users and judges ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_simulated_user_has_a_model_limits_and_costs_of_its_own(folder: Path) -> None:
    end = asyncio.run(
        carry_out(
            folder,
            "toy-users",
            {"s": {**WITH_USER, "judge_model": "scripted/yes.toml"}},
            choices=ONE,
        )
    )

    assert end == RunEnd("done")
    (attempt,) = attempts(folder)
    assert (attempt.usage["user"].calls, attempt.usage["user"].input) == (3, 21)
    assert attempt.usage["agent"].calls == 4
    assert [e["messages"][0]["content"] for e in events(folder, "dialogue.turn")] == ["Bern, please", "And Oslo"]  # type: ignore[index, call-overload]
    assert {e["role"] for e in events(folder, "model.request")} == {"agent", "user"}
    assert outcomes(folder) == ["pass"]


def test_a_judges_replies_are_kept_and_given_again(folder: Path) -> None:
    arms = {"s": {**WITH_USER, "judge_model": "scripted/yes.toml"}}
    asyncio.run(carry_out(folder, "toy-users", arms, choices=ONE))
    run = folder / "r"
    (graded,) = read_gradings(run, read_stamp(run).grading)
    assert graded.usage["judge"].calls == 1
    assert [j["model"] for j in graded.judge] == ["scripted/yes.toml"]

    (folder / "yes.toml").unlink()  # nobody could be asked now
    asyncio.run(regrade(run, registry()))

    again = list(read_gradings(run, read_stamp(run).grading))[-1]
    assert again.verdict == graded.verdict
    assert (again.judge, dict(again.usage)) == (graded.judge, {})


def test_without_a_judge_what_only_it_decides_is_ungraded_and_said_beforehand(folder: Path) -> None:
    async def planned() -> tuple[str, ...]:
        services = LocalServices(registry(), folder)
        plan = await make_plan(Study("s", ("toy-users",), {"s": WITH_USER}), registry(), services, "r")
        return plan.notes

    asyncio.run(carry_out(folder, "toy-users", {"s": WITH_USER}, choices=ONE))

    assert outcomes(folder) == ["ungraded"]
    (note,) = asyncio.run(planned())
    assert note.startswith("toy-users: no judge (openai/toy-judge: openai needs a key)")


def test_a_user_that_cannot_be_asked_is_refused_before_anything_runs(folder: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        asyncio.run(carry_out(folder, "toy-users", {"s": SCRIPTED}))

    (fault,) = refused.value.faults
    assert fault.where == "toy-users: the simulated user openai/toy-user"
    assert fault.hint is not None and "--user-model provider/name" in fault.hint


def test_the_study_names_the_user_for_all_arms_but_controls(folder: Path) -> None:
    arms = {"s": SCRIPTED, "oracle": {"harness": "oracle"}}
    roles = {"user": RoleChoice("scripted/user.toml"), "judge": RoleChoice("scripted/yes.toml")}
    asyncio.run(carry_out(folder, "toy-users", arms, choices=ONE, roles=roles))

    stamp = read_stamp(folder / "r")
    assert [a.arm.axes.get("user_model") for a in stamp.arms] == ["scripted/user.toml", None]
    assert [a.arm.axes.get("judge_model") for a in stamp.arms] == ["scripted/yes.toml"] * 2
    assert outcomes(folder) == ["pass", "pass"]
    assert [sorted(a.usage) for a in sorted(attempts(folder), key=lambda a: len(a.usage))] == [[], ["agent", "user"]]


def test_an_edited_user_is_another_arm(folder: Path) -> None:
    async def digest() -> str:
        services = LocalServices(registry(), folder)
        plan = await make_plan(Study("s", ("toy-users",), {"s": WITH_USER}), registry(), services, "r")
        return plan.arms[0].digest

    before = asyncio.run(digest())
    (folder / "user.toml").write_text(USER.replace("please", "now"))
    assert asyncio.run(digest()) != before


def test_a_knob_that_no_benchmark_turns_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        asyncio.run(carry_out(folder, "toy-dialogues", {"s": WITH_USER}))

    assert [f.message for f in refused.value.faults] == ["no benchmark of the study has a user"]


def test_the_drivers_end_says_which_limit_it_was(folder: Path) -> None:
    asyncio.run(carry_out(folder, "toy-users", {"s": {**SCRIPTED, "user_model": "scripted/tired.toml"}}, choices=ONE))

    (attempt,) = attempts(folder)
    assert attempt.exit is not None and (attempt.exit.kind, attempt.exit.limit) == ("limit", "tool_errors")


def test_a_user_that_fails_voids_the_trial_and_blames_no_agent(folder: Path) -> None:
    (folder / "user.toml").write_text("[[reply]]\nerror = { status = 503 }\n")
    asyncio.run(carry_out(folder, "toy-users", {"s": WITH_USER}, choices=ONE))

    assert [a.void.kind for a in attempts(folder) if a.void] == ["infra"] * 3


def test_a_roles_limit_is_its_own(folder: Path) -> None:
    roles = {"user": RoleChoice("scripted/user.toml", Limits(model_calls=1))}
    asyncio.run(carry_out(folder, "toy-users", {"s": SCRIPTED}, choices=ONE, roles=roles))

    (attempt,) = attempts(folder)
    assert attempt.exit is not None and (attempt.exit.kind, attempt.exit.limit) == ("limit", "model_calls")
    assert attempt.usage["user"].calls == 1


# ── tasks that others require ────────────────────────────────────────────────────────────────────────────────────────


def test_what_a_required_task_left_reaches_the_next_and_only_scored_tasks_count(folder: Path) -> None:
    asyncio.run(carry_out(folder, "toy-memory", {"oracle": {"harness": "oracle"}}, repeats=2))

    stamp = read_stamp(folder / "r").benchmarks[0]
    assert (stamp.tasks, stamp.of_tasks, stamp.unscored) == (2, 2, ("m0", "m1"))
    assert outcomes(folder) == ["pass"] * 4
    assert len(attempts(folder)) == 8
    asked = [e["messages"][0]["content"] for e in events(folder, "dialogue.turn")]  # type: ignore[index, call-overload]
    assert asked == ["Weather where I live? (Notes: Bern)"]


def test_a_range_counts_scored_tasks_and_brings_what_they_require(folder: Path) -> None:
    asyncio.run(
        carry_out(
            folder,
            "toy-memory",
            {"oracle": {"harness": "oracle"}},
            choices={"toy-memory": BenchmarkChoice(limit=(1, 2))},
        )
    )

    assert [a.key.task for a in attempts(folder)] == ["m1", "d1"]


def test_a_trial_whose_required_task_has_no_result_is_void(folder: Path) -> None:
    class Broken:
        def __init__(self, *_: object) -> None:
            pass

        async def probe(self) -> HarnessVersion:
            return HarnessVersion("1")

        async def run(self, job: Job) -> HarnessExit:
            if "I live in" in str(job.messages[-1].content):
                raise RuntimeError("no memory")
            return HarnessExit()

    globals()["Deaf"] = Broken
    asyncio.run(carry_out(folder, "toy-memory", {"d": {"harness": "deaf"}}))

    voids = [(a.key.task, a.void.kind) for a in attempts(folder) if a.void]
    assert sorted(voids) == [("d0", "required"), ("d1", "required"), *[("m0", "bug")] * 3, *[("m1", "bug")] * 3]


def test_resume_takes_what_a_required_task_left_from_the_traces(folder: Path) -> None:
    asyncio.run(carry_out(folder, "toy-memory", {"oracle": {"harness": "oracle"}}))
    ledger = folder / "r" / "attempts.jsonl"
    kept = [line for line in ledger.read_bytes().splitlines(keepends=True) if b'"task":"d' not in line]
    ledger.write_bytes(b"".join(kept))

    asyncio.run(resume(folder / "r", registry(), RunOptions()))

    assert sorted(a.key.task for a in attempts(folder)) == ["d0", "d1", "m0", "m1"]
    asked = [e["messages"][0]["content"] for e in events(folder, "dialogue.turn")]  # type: ignore[index, call-overload]
    assert asked == ["Weather where I live? (Notes: Bern)"]


def test_the_report_counts_scored_tasks_and_the_judges_use(folder: Path) -> None:
    asyncio.run(carry_out(folder, "toy-memory", {"oracle": {"harness": "oracle"}}))
    (cell,) = load_report(folder / "r").cells
    assert (cell.tasks, cell.trials, cell.planned) == (2, 2, 2)


def test_the_report_has_the_usage_of_every_role(folder: Path) -> None:
    arms = {"s": {**WITH_USER, "judge_model": "scripted/yes.toml"}}
    asyncio.run(carry_out(folder, "toy-users", arms, choices=ONE))
    (cell,) = load_report(folder / "r").cells
    assert {role: used.usage.input for role, used in cell.usage.items()} == {"agent": 40, "user": 21, "judge": 5}


def test_an_agent_process_is_run_once_a_turn_and_finds_the_new_tools(folder: Path) -> None:
    (folder / "agent.toml").write_text(
        "".join(
            f"[[reply]]\nmatch = {{ call = {call} }}\n{what}\n"
            for call, what in enumerate(
                (
                    'tool_calls = [{ name = "look_bern", arguments = { city = "Bern" } }]',
                    'text = "fine"',
                    'tool_calls = [{ name = "look_oslo", arguments = { city = "Oslo" } }]',
                    'text = "fine, too"',
                ),
                start=1,
            )
        )
    )
    agent = {**SCRIPTED, "harness": "command", "agent": str(ROOT / "examples" / "agents" / "plain-http.toml")}
    asyncio.run(carry_out(folder, "toy-late", {"c": agent}, choices={"toy-late": ONE["toy-users"]}))

    assert outcomes(folder) == ["pass"]
    told = [r["messages"][-1]["content"] for r in _requests(folder)[::2]]  # type: ignore[index, call-overload]
    history = 'assistant: [called look_bern({"city":"Bern"})]\n[result: Bern: fine]\nfine'
    assert str(told[1]).endswith(f"{history}\n\nuser: Weather of Oslo?")


def test_a_dialogue_reads_as_one(folder: Path) -> None:
    """Each word is told once, whoever recorded it: the user's model, the turn, the agent's model, its reply."""
    asyncio.run(carry_out(folder, "toy-users", {"s": WITH_USER}, choices=ONE))
    store = TraceStore(folder / "r")
    (attempt,) = attempts(folder)
    told = [line[10:] for line in trial_text(store.read(attempt.trace), attempt, None, "s") if line[:3] == "   "]
    store.close()

    assert told == [
        "system: You answer questions about the weather.",
        "user: Bern, please",
        "turn 1",
        "agent asks for: look",
        'call 1: look: {"city":"Bern"}',
        "result 1: Bern: fine",
        "agent: fine",
        "user: And Oslo",
        "turn 2",
        "agent asks for: look",
        'call 2: look: {"city":"Oslo"}',
        "result 2: Oslo: fine",
        "agent: fine",
        "user: ###STOP###",
        "the dialogue ends: user_stop",
        'the harness says: {"finish_reason":"stop"}',
        "exit: completed",
    ]
