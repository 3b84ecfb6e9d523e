"""Upstream's results files as runs: each ending as ours, rewards, repeats, costs, and faults by their place."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest

from evalcore.engine.importing import write_imported
from evalcore.engine.store import TraceStore, read_attempts, read_gradings, read_stamp
from evalcore.errors import ConfigError
from evalcore.hookspecs import ImporterInfo
from evalcore.values.trial import Attempt, Verdict
from evalcore_tau2.export import Tau2Results
from evalcore_tau2.results import Tau2Files
from plugins.tau2.tests.rig import registry

MESSAGES: Final[list[dict[str, Any]]] = [
    {"role": "assistant", "content": "Hi!", "cost": 0.0},
    {"role": "user", "content": "My phone.", "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "name": "look", "arguments": {"n": 1}, "requestor": "assistant"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10},
    },
    {"role": "tool", "id": "c1", "content": "no such phone", "error": True, "requestor": "assistant"},
    {"role": "user", "content": None, "tool_calls": [{"id": "u1", "name": "toggle", "arguments": {}}], "usage": None},
    {"role": "tool", "id": "u1", "content": "on", "error": False, "requestor": "user"},
    {"role": "assistant", "content": "Done.", "usage": {"prompt_tokens": 120, "completion_tokens": 3}},
]


def simulation(**more: Any) -> dict[str, Any]:
    """A simulation as upstream writes one."""
    return {
        "id": "s1", "task_id": "t1", "start_time": "2026-03-01T10:00:00.5", "end_time": "2026-03-01T10:00:09",
        "duration": 8.5, "termination_reason": "user_stop", "agent_cost": 0.02, "user_cost": None,
        "reward_info": {"reward": 1.0, "reward_basis": ["DB"]}, "messages": MESSAGES, "trial": 0, "seed": 7, **more,
    }  # fmt: skip


def results(*simulations: dict[str, Any], **info: Any) -> dict[str, Any]:
    return {
        "timestamp": "2026-03-01T10:00:00",
        "info": {
            "git_commit": "abc123", "num_trials": 2, "max_steps": 200, "max_errors": 10, "seed": 300,
            "user_info": {"implementation": "user_simulator", "llm": "gpt-4.1", "llm_args": {"temperature": 0.0}},
            "agent_info": {
                "implementation": "llm_agent", "llm": "gpt-5.2",
                "llm_args": {"temperature": 0.0, "max_tokens": 9, "api_key": "sk-1"},
            },
            "environment_info": {"domain_name": "telecom", "policy": "Be kind."}, **info,
        },
        "tasks": [{"id": "t1", "description": "one"}, {"id": "t2", "description": "two"}],
        "simulations": list(simulations),
    }  # fmt: skip


def written(folder: Path, whole: dict[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "results.json").write_text(json.dumps(whole))
    return folder / "results.json"


def imported(source: Path, out: Path) -> tuple[list[Attempt], list[Verdict | None]]:
    asyncio.run(write_imported(Tau2Files().read(source), out))
    verdicts = {g.attempt: g.verdict for g in read_gradings(out, read_stamp(out).grading)}
    attempts = list(read_attempts(out))
    return attempts, [verdicts.get(a.id) for a in attempts]


ENDS: Final[list[tuple[str, str | None, str | None]]] = [
    ("user_stop", "completed", None),
    ("agent_stop", "completed", None),
    ("max_steps", "limit", "steps"),
    ("too_many_errors", "limit", "tool_errors"),
    ("timeout", "limit", "wall_s"),
    ("context_window_exceeded", "limit", "context"),
    ("agent_error", "crashed", None),
    ("infrastructure_error", None, None),
    ("unexpected_error", None, None),
    ("user_error", None, None),
]


@pytest.mark.parametrize("reason, kind, limit", ENDS)
def test_what_ended_it_says_whose_result_it_is(
    reason: str, kind: str | None, limit: str | None, tmp_path: Path
) -> None:
    file = written(tmp_path / "in", results(simulation(termination_reason=reason)))
    [attempt], [verdict] = imported(file, tmp_path / "r")
    if kind is None:
        assert attempt.void is not None and attempt.void.message == reason
        assert verdict is None  # whatever reward stands there
    else:
        assert attempt.exit is not None and (attempt.exit.kind, attempt.exit.limit) == (kind, limit)
        assert verdict is not None and verdict.outcome == "pass"


@pytest.mark.parametrize(
    "reward, outcome, score",
    [(1.0, "pass", 1.0), (0.9999995, "pass", 0.9999995), (0.99, "fail", 0.99), (0.0, "fail", 0.0), (2.0, "fail", None)],
)
def test_only_a_reward_of_one_passes(reward: float, outcome: str, score: float | None, tmp_path: Path) -> None:
    info = {"reward": reward, "reward_basis": ["DB"], "db_check": {"db_match": True}}
    file = written(tmp_path / "in", results(simulation(reward_info=info)))
    _, [verdict] = imported(file, tmp_path / "r")
    assert verdict is not None
    assert (verdict.outcome, verdict.score, verdict.details) == (outcome, score, info)


def test_a_run(tmp_path: Path) -> None:
    flagged = {"evalcore": {"flags": ["fidelity: serial-calls"]}}
    file = written(
        tmp_path / "in",
        results(
            simulation(),
            simulation(id="s2", trial=1, reward_info=None, info=flagged),
            simulation(id="s3", task_id="t2", termination_reason="infrastructure_error"),
            simulation(id="s4", task_id="t2"),
        ),
    )
    attempts, verdicts = imported(file, tmp_path / "r")
    assert [(a.key.task, a.key.repeat, a.number) for a in attempts] == [
        ("t1", 1, 1), ("t1", 2, 1), ("t2", 1, 1), ("t2", 1, 2),
    ]  # fmt: skip
    assert [None if v is None else v.outcome for v in verdicts] == ["pass", "ungraded", None, "pass"]
    assert verdicts[1] is not None and verdicts[1].flags == ("fidelity: serial-calls",)
    first = attempts[0]
    agent, user = first.usage["agent"], first.usage["user"]
    assert (agent.calls, agent.input, agent.output, agent.unreported, agent.cost_usd) == (2, 220, 13, 0, 0.02)
    assert (user.calls, user.input, user.output, user.unreported, user.cost_usd) == (2, 5, 2, 1, None)
    assert (first.tool_calls, first.tool_errors, first.wall_s) == (1, 1, 8.5)
    assert (first.started, first.provenance) == ("2026-03-01T10:00:00.500000+00:00", "imported")
    stamp = read_stamp(tmp_path / "r")
    assert (stamp.imported, stamp.repeats, stamp.seed) == ("tau2", 2, 300)
    [arm], [benchmark] = stamp.arms, stamp.benchmarks
    assert (arm.arm.handle, arm.harness_version) == ("llm_agent", "abc123")
    assert dict(arm.arm.axes) == {
        "harness": "llm_agent", "model": "gpt-5.2", "user_model": "gpt-4.1", "temperature": 0.0, "max_tokens": 9,
    }  # fmt: skip
    assert (benchmark.selector, benchmark.tasks, benchmark.grader) == ("tau2-telecom", 2, "tau2")


def test_what_was_said_is_its_trace(tmp_path: Path) -> None:
    [attempt], _ = imported(written(tmp_path / "in", results(simulation())), tmp_path / "r")
    store = TraceStore(tmp_path / "r")
    events = list(store.read(attempt.trace).events())
    store.close()
    assert [e["e"] for e in events] == [
        "trial.start", "dialogue.turn", "model.response", "tool.call", "tool.result", "env.call", "env.result",
        "model.response", "dialogue.end", "deliverable", "evidence",
    ]  # fmt: skip
    assert events[0]["messages"] == [{"role": "assistant", "content": "Hi!"}]
    assert (events[3]["tool"], events[3]["arguments"], events[4]["error"]) == ("look", {"n": 1}, True)
    assert (events[5]["tool"], events[6]["content"]) == ("toggle", "on")
    assert events[-2]["calls"] == [{"name": "look", "arguments": {"n": 1}}]
    assert events[-2]["data"] == {"simulation": {"termination_reason": "user_stop", "messages": MESSAGES}}


@pytest.mark.parametrize(
    "domain, user, retrieval, name",
    [
        ("retail", "user_simulator", None, "tau2-retail"),
        ("telecom", "dummy_user", None, "tau2-telecom-solo"),
        ("banking_knowledge", "user_simulator", "grep_only", "tau2-banking:grep_only"),
        ("of_my_own", "user_simulator", None, "tau2-of_my_own"),
    ],
)
def test_benchmarks_have_our_names(domain: str, user: str, retrieval: str | None, name: str, tmp_path: Path) -> None:
    info = {
        "environment_info": {"domain_name": domain},
        "user_info": {"implementation": user},
        "retrieval_config": retrieval,
    }
    run = Tau2Files().read(written(tmp_path / "in", results(simulation(), **info)))
    assert [b.name for b in run.benchmarks] == [name]


def test_simulations_that_have_no_number_are_counted(tmp_path: Path) -> None:
    file = written(tmp_path / "in", results(simulation(trial=None), simulation(trial=None, id="s2")))
    attempts, _ = imported(file, tmp_path / "r")
    assert [a.key.repeat for a in attempts] == [1, 2]


def test_simulations_in_a_folder(tmp_path: Path) -> None:
    whole = {**results(), "simulation_index": [{"id": "s1"}, {"id": "s2"}]}
    file = written(tmp_path / "in", whole)
    folder = tmp_path / "in" / "simulations"
    folder.mkdir()
    (folder / "s1.json").write_text(json.dumps(simulation()))
    with pytest.raises(ConfigError, match=r"simulation_index and the files of .* differ in s2"):
        Tau2Files().read(file)
    (folder / "s2.json").write_text(json.dumps(simulation(id="s2", trial=1)))
    assert [a.key.repeat for a in imported(tmp_path / "in", tmp_path / "r")[0]] == [1, 2]
    written(tmp_path / "in", results(simulation()))
    with pytest.raises(ConfigError, match=r"\$\.simulations: simulations stand here and in"):
        Tau2Files().read(tmp_path / "in")


WRONG: Final[list[tuple[dict[str, Any], str]]] = [
    ({"termination_reason": "bored"}, "$.simulations[0].termination_reason: 'bored' is not known"),
    ({"termination_reason": None}, "$.simulations[0].termination_reason: expected a text"),
    ({"reward_info": {"reward": "1"}}, "$.simulations[0].reward_info.reward: expected a number, got str"),
    ({"reward_info": {"reward": -1}}, "$.simulations[0].reward_info.reward: expected 0 or more"),
    ({"trial": "0"}, "$.simulations[0].trial: expected an integer"),
    ({"start_time": "at noon"}, "$.simulations[0].start_time: expected a time as"),
    ({"duration": None}, "$.simulations[0].duration: expected a number"),
    ({"agent_cost": -0.5}, "$.simulations[0].agent_cost: expected 0 or more"),
    ({"messages": [{"role": "god"}]}, "$.simulations[0].messages[0].role: 'god' is none of"),
    ({"messages": {}, "mode": "full_duplex"}, "$.simulations[0].mode: a simulation by voice is not read"),
    ({"messages": [{"role": "assistant", "tool_calls": [{"id": "1"}]}]}, ".messages[0].tool_calls[0].name: expected"),
    ({"task_id": "t9"}, "there is no task 't9'"),
]


@pytest.mark.parametrize("change, message", WRONG)
def test_what_cannot_be_read_is_told_by_its_place(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    file = written(tmp_path / "in", results(simulation(**change)))
    with pytest.raises(ConfigError) as told:
        imported(file, tmp_path / "r")
    assert message in "\n".join([told.value.message, *(f"{f.where} {f.message}" for f in told.value.faults)])
    assert not (tmp_path / "r").exists()


def test_the_same_trial_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as told:
        imported(written(tmp_path / "in", results(simulation(), simulation(id="s2"))), tmp_path / "r")
    assert "stands there twice" in "\n".join([told.value.message, *(f.message for f in told.value.faults)])


def test_a_file_without_simulations_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no simulation"):
        Tau2Files().read(written(tmp_path / "in", results()))


def test_it_knows_its_files_and_no_others(tmp_path: Path) -> None:
    file = written(tmp_path / "in", results(simulation()))
    assert Tau2Files().knows(file) and Tau2Files().knows(tmp_path / "in")
    (tmp_path / "other.json").write_text('{"version": 2, "eval": {}}')
    assert not Tau2Files().knows(tmp_path / "other.json") and not Tau2Files().knows(tmp_path)
    assert registry().get(ImporterInfo, "importer", "tau2-results").factory == "evalcore_tau2.results:Tau2Files"


def test_an_imported_run_is_not_written_back(tmp_path: Path) -> None:
    imported(written(tmp_path / "in", results(simulation())), tmp_path / "r")
    with pytest.raises(ConfigError, match="was imported from tau2"):
        Tau2Results().render(tmp_path / "r", tmp_path / "out")
