"""A model as the agent and a model as the user, both scripted: what travels on which wire, and what is kept of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from evalcore.engine.store import read_attempts
from evalcore.errors import ConfigError
from evalcore_tau2.bridge import SERIAL
from plugins.tau2.tests.rig import Trial, carry_out, run, study, trials

pytestmark = pytest.mark.usefixtures("toolkit")

ARMS: dict[str, dict[str, Any]] = {"react": {"harness": "react", "model": "scripted/agent.jsonl"}}
ASKS = {"match": {"call": 1}, "text": "Where is my order?", "usage": {"input": 30, "output": 3}}
STOPS = {"text": "Thanks. ###STOP###", "usage": {"input": 40, "output": 2}}
ORDER = {"name": "get_order_details", "arguments": {"order_id": "#W2378156"}}


def play(
    folder: Path,
    agent: list[dict[str, Any]],
    user: tuple[dict[str, Any], ...] = (ASKS, STOPS),
    task: str = "0",
    benchmark: str = "tau2-retail",
    **axes: Any,
) -> Trial:
    """The one trial of a task."""
    for name, replies in (("agent", agent), ("user", list(user))):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(reply) + "\n" for reply in replies))
    arms = {"react": {**ARMS["react"], **axes}}
    roles = {} if benchmark == "tau2-telecom-solo" else {"user": "scripted/user.jsonl"}
    if benchmark == "tau2-retail":
        roles["judge"] = "judges/yes"
    what = study((benchmark,), arms, tasks=(task,), **roles)
    (found,) = trials(run(what, folder)).values()
    return found


def kinds(trial: Trial, *wanted: str) -> list[str]:
    return [str(event["e"]) for event in trial.trace.events() if str(event["e"]).startswith(wanted)]


def test_a_conversation_is_kept_as_upstream_keeps_it(tmp_path: Path) -> None:
    looks = {"match": {"call": 1}, "text": "One moment.", "tool_calls": [ORDER, {"name": "list_all_product_types"}]}
    trial = play(tmp_path, [looks, {"text": "It is on its way."}])
    left = trial.simulation
    told = [(m["role"], m.get("content"), len(m.get("tool_calls") or ())) for m in left["messages"]]
    assert [(role, calls) for role, _, calls in told] == [
        ("assistant", 0),
        ("user", 0),
        ("assistant", 2),
        ("tool", 0),
        ("tool", 0),
        ("assistant", 0),
        ("user", 0),
    ]
    assert [text for role, text, _ in told if role != "tool"] == [
        "Hi! How can I help you today?",
        "Where is my order?",
        "One moment.",
        "It is on its way.",
        "Thanks. ###STOP###",
    ]
    assert (left["steps"], left["termination_reason"], left["flags"]) == (5, "user_stop", [])
    assert (trial.verdict.outcome, trial.verdict.score, trial.verdict.flags) == ("fail", 0.0, ())
    user = trial.attempt.usage["user"]
    assert (user.input, user.output) == (30 + 40, 3 + 2)
    assert kinds(trial, "dialogue.") == ["dialogue.turn", "dialogue.reply", "dialogue.end"]


def test_calls_that_the_model_did_not_ask_for_in_so_many_words_are_stamped(tmp_path: Path) -> None:
    """A text protocol hides what stood together: each call counts as a message, and the trial says so."""
    block = f"<tool_call>\n{json.dumps(ORDER)}\n</tool_call>"
    trial = play(tmp_path, [{"match": {"call": 1}, "text": block}, {"text": "Fine."}], tool_protocol="text")
    left = trial.simulation
    assert [len(m["tool_calls"]) for m in left["messages"] if m.get("tool_calls")] == [1]
    assert left["flags"] == [SERIAL] and SERIAL in trial.verdict.flags


def test_a_tool_that_is_not_there_gets_upstreams_answer_and_counts(tmp_path: Path) -> None:
    trial = play(
        tmp_path, [{"match": {"call": 1}, "tool_calls": [{"name": "fly_to_the_moon"}]}, {"text": "I could not."}]
    )
    left = trial.simulation
    assert [m["content"] for m in left["messages"] if m["role"] == "tool"] == [
        "Error: Tool 'fly_to_the_moon' not found."
    ]
    assert (left["errors"], trial.attempt.tool_errors) == (1, 1)


def test_arguments_that_are_no_json_are_refused_and_flagged(tmp_path: Path) -> None:
    """Natively the run breaks on them, and is counted as an error of the infrastructure."""
    broken = {"match": {"call": 1}, "tool_calls": [{"name": "get_order_details", "arguments": '{"order_id": '}]}
    trial = play(tmp_path, [broken, {"text": "I could not."}])
    assert trial.simulation["flags"] == ["malformed_call"]
    assert (trial.verdict.outcome, "malformed_call" in trial.verdict.flags) == ("fail", True)


def test_an_empty_message_ends_it_as_the_agents_error(tmp_path: Path) -> None:
    trial = play(tmp_path, [{"text": ""}])
    assert trial.attempt.exit is not None and trial.attempt.exit.kind == "crashed"
    assert (trial.simulation["termination_reason"], trial.verdict.score) == ("agent_error", 0.0)
    assert "empty_message" in trial.verdict.flags


def test_what_upstream_cannot_take_in_is_worth_nothing_and_no_void(tmp_path: Path) -> None:
    deep = f'{{"expression": {"[" * 900}{"]" * 900}}}'
    trial = play(
        tmp_path, [{"match": {"call": 1}, "tool_calls": [{"name": "calculate", "arguments": deep}]}, {"text": "So."}]
    )
    assert (trial.simulation["termination_reason"], trial.verdict.score) == ("agent_error", 0.0)
    assert "native_runner_crashes:RecursionError" in trial.verdict.flags


def test_half_a_character_is_kept_and_graded(tmp_path: Path) -> None:
    trial = play(tmp_path, [{"text": "half \ud800"}])
    assert trial.simulation["messages"][2]["content"] == "half \ud800"
    assert (trial.simulation["termination_reason"], trial.verdict.score) == ("user_stop", 0.0)


def test_ten_errors_end_it_as_a_limit_of_the_benchmark(tmp_path: Path) -> None:
    trial = play(tmp_path, [{"tool_calls": [{"name": "get_order_details", "arguments": {"order_id": "#W0"}}]}])
    assert trial.attempt.exit is not None
    assert (trial.attempt.exit.kind, trial.attempt.exit.limit) == ("limit", "tool_errors")
    assert (trial.simulation["termination_reason"], trial.verdict.score) == ("too_many_errors", 0.0)


def test_two_hundred_steps_end_it_as_a_limit_of_the_benchmark(tmp_path: Path) -> None:
    trial = play(tmp_path, [{"text": "And then?"}], user=({"text": "Go on."},))
    assert trial.attempt.exit is not None
    assert (trial.attempt.exit.kind, trial.attempt.exit.limit) == ("limit", "steps")
    assert (trial.simulation["termination_reason"], trial.simulation["steps"]) == ("max_steps", 200)


def test_a_user_that_says_nothing_is_no_result(tmp_path: Path) -> None:
    for name, text in (("agent", "Hello."), ("user", "")):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"text": text}) + "\n")
    what = study(("tau2-retail",), ARMS, tasks=("0",), judge="judges/yes", user="scripted/user.jsonl")
    asyncio.run(carry_out(what, tmp_path))
    assert trials(tmp_path / "r") == {}
    voids = [a.void for a in read_attempts(tmp_path / "r")]
    assert voids and all(void is not None and "tau2" in void.message for void in voids)


def test_the_users_own_calls_are_the_environments_events(tmp_path: Path) -> None:
    looks = {"match": {"call": 1}, "tool_calls": [{"name": "check_status_bar", "arguments": {}}]}
    tells = {"match": {"call": 2}, "text": "No signal."}
    (tmp_path / "first").mkdir()
    first = next(
        iter(trials(run(study(("tau2-telecom",), {"noop": {"harness": "noop"}}, limit=1), tmp_path / "first")))
    )[2]
    trial = play(tmp_path, [{"text": "Restart it."}], user=(looks, tells, STOPS), task=first, benchmark="tau2-telecom")
    call, result = (next(trial.trace.events(kind)) for kind in ("env.call", "env.result"))
    assert (call["tool"], call["source"], call["arguments"]) == ("check_status_bar", "user", {})
    assert result["error"] is False and "Status Bar" in str(result["content"])
    assert trial.attempt.tool_calls == 0


def test_a_solo_agent_works_from_a_ticket_and_ends_with_done(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    controls = {"oracle": {"harness": "oracle"}, "noop": {"harness": "noop"}}
    found = trials(run(study(("tau2-telecom-solo",), controls, limit=2), tmp_path / "first"))
    assert {(arm, x.verdict.outcome) for (_, arm, _), x in found.items()} == {("oracle", "pass"), ("noop", "fail")}
    first = next(iter(found))[2]
    agent = [
        {"match": {"call": 1}, "tool_calls": [{"name": "toggle_airplane_mode"}]},
        {"match": {"call": 2}, "tool_calls": [{"name": "done"}]},
        {"text": "Finished."},
    ]
    trial = play(tmp_path, agent, task=first, benchmark="tau2-telecom-solo")
    assert trial.simulation["termination_reason"] == "agent_stop"
    assert [m["role"] for m in trial.simulation["messages"]] == ["assistant", "tool", "assistant"]


def test_a_live_agent_without_a_user_to_talk_to_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "agent.jsonl").write_text(json.dumps({"text": "Hello."}) + "\n")
    with pytest.raises(ConfigError, match="cannot be run") as refused:
        asyncio.run(carry_out(study(("tau2-retail",), ARMS, limit=1), tmp_path))
    assert "--user-model" in str(refused.value.faults[0])
    assert not (tmp_path / "r").exists()
