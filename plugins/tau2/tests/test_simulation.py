"""Upstream's rules as the worker keeps them: steps, errors, endings, and what a broken agent or user leads to."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from evalcore.contracts import ToolkitHandle, ToolkitSession
from evalcore.errors import ToolkitError
from plugins.tau2.tests.rig import SLOW_S, task_of, with_toolkit

pytestmark = pytest.mark.usefixtures("toolkit")

ORDER = {"order_id": "#W2378156"}
STOP = "###STOP###"


class Simulation:
    """One simulation in a worker, with an agent that the test plays."""

    def __init__(self, session: ToolkitSession, first: Any) -> None:
        self._session = session
        self.news = first
        self._calls = 0

    async def ask(self, method: str, **params: Any) -> Any:
        self.news = await self._session.request(method, params, SLOW_S)
        return self.news

    async def call(
        self, name: str, arguments: Any, *others: str, content: str | None = None, more: bool = False
    ) -> Any:
        """A call that opens a message with `others` to come, or with `more` goes on with the one that is open."""
        self._calls += 1
        message = None if more else {"content": content, "names": [name, *others]}
        return await self.ask("call", name=name, arguments=arguments, id=f"c{self._calls}", message=message)

    async def say(self, content: str) -> Any:
        return await self.ask("say", content=content)

    async def reply(self, **message: Any) -> Any:
        """The user's model answers."""
        spoken = {"role": "assistant", "content": None, **message}
        return await self.ask("reply", response={"choices": [{"message": spoken, "finish_reason": "stop"}]})

    async def finish(self, reason: str | None = None) -> Any:
        return await self.ask("finish", reason=reason)


def simulate(
    work: Callable[[Simulation, ToolkitHandle], Awaitable[Any]],
    *,
    domain: str = "retail",
    task: str = "0",
    script: list[dict[str, Any]] | None = None,
    solo: bool = False,
) -> Any:
    """What `work` returns, given a simulation. Without a script the user's model is the test's too."""

    async def inside(toolkit: ToolkitHandle) -> Any:
        raw = await task_of(toolkit, domain, task)
        async with toolkit.session() as session:
            request = {"domain": domain, "task": raw, "solo": solo, "seed": 7, "script": script}
            return await work(Simulation(session, await session.request("open", request, SLOW_S)), toolkit)

    return with_toolkit(inside)


TALKING = [{"text": "Hello."}, *({"text": "And?"} for _ in range(150))]


def test_a_message_with_two_calls_is_one_step_and_one_with_each_is_two() -> None:
    async def together(sim: Simulation, _: object) -> Any:
        await sim.call("get_order_details", ORDER, "list_all_product_types", content="One moment.")
        await sim.call("list_all_product_types", {}, more=True)
        return await sim.finish()

    async def apart(sim: Simulation, _: object) -> Any:
        await sim.call("get_order_details", ORDER)
        await sim.call("list_all_product_types", {})
        return await sim.finish()

    one, two = simulate(together, script=TALKING), simulate(apart, script=TALKING)
    # A user's message, then an agent's message and the environment's answers: a step each.
    assert (one["steps"], two["steps"]) == (1 + 2, 1 + 4)
    roles = [message["role"] for message in one["messages"]]
    assert roles == ["assistant", "user", "assistant", "tool", "tool"]
    spoken = one["messages"][2]
    assert spoken["content"] == "One moment."
    assert [call["name"] for call in spoken["tool_calls"]] == ["get_order_details", "list_all_product_types"]
    assert [m["id"] for m in one["messages"][3:]] == [call["id"] for call in spoken["tool_calls"]]


def test_errors_have_upstreams_words_and_ten_of_them_end_it() -> None:
    async def work(sim: Simulation, _: object) -> Any:
        missing = (await sim.call("get_order_details", {"order_id": "#W0"}))["result"]
        unknown = (await sim.call("fly_to_the_moon", {}))["result"]
        wrong = (await sim.call("get_order_details", {"order": "#W0"}))["result"]
        ends = [(await sim.call("get_order_details", {"order_id": "#W0"}))["end"] for _ in range(7)]
        return missing, unknown, wrong, ends, await sim.finish()

    missing, unknown, wrong, ends, left = simulate(work, script=TALKING)
    assert missing == {"content": "Error: Order not found", "error": True}
    assert unknown == {"content": "Error: Tool 'fly_to_the_moon' not found.", "error": True}
    assert wrong["error"] and "unexpected keyword argument 'order'" in wrong["content"]
    assert ends == [None] * 6 + ["too_many_errors"]
    assert (left["termination_reason"], left["errors"]) == ("too_many_errors", 10)


def test_errors_within_one_message_end_it_only_after_the_message() -> None:
    async def work(sim: Simulation, _: object) -> Any:
        bad = {"order_id": "#W0"}
        news = [await sim.call("get_order_details", bad, *["get_order_details"] * 11)]
        news += [await sim.call("get_order_details", bad, more=True) for _ in range(11)]
        return [n["end"] for n in news]

    assert simulate(work, script=TALKING) == [None] * 11 + ["too_many_errors"]


def test_a_message_whose_calls_do_not_all_come_is_closed_by_the_next() -> None:
    async def work(sim: Simulation, _: object) -> Any:
        await sim.call("get_order_details", ORDER, "list_all_product_types")
        await sim.say("Anything else?")
        return await sim.finish()

    left = simulate(work, script=TALKING)
    assert [m["role"] for m in left["messages"]][-3:] == ["tool", "assistant", "user"]
    assert len(left["messages"][2]["tool_calls"]) == 1


def test_two_hundred_steps_end_it() -> None:
    async def work(sim: Simulation, _: object) -> Any:
        turns = 0
        while sim.news["end"] is None:
            turns += 1
            await sim.say(f"Turn {turns}")
        return turns, await sim.finish()

    turns, left = simulate(work, script=TALKING)
    # The user's first message is step 1, and then each turn takes two: the agent's, the user's.
    assert (turns, left["steps"], left["termination_reason"]) == (100, 200, "max_steps")


def test_an_empty_message_is_the_agents_error() -> None:
    async def work(sim: Simulation, _: object) -> Any:
        end = (await sim.say("  \n"))["end"]
        return end, await sim.finish()

    end, left = simulate(work, script=TALKING)
    assert (end, left["failure"]) == ("agent_error", "the agent sent an empty message")


def test_each_attempt_begins_with_a_fresh_state() -> None:
    change = {
        "order_id": "#W5918442",
        "address1": "1 Way",
        "address2": "",
        "city": "Bern",
        "country": "CH",
        "state": "BE",
        "zip": "3000",
    }

    async def work(sim: Simulation, _: object) -> Any:
        before = (await sim.call("get_order_details", {"order_id": "#W5918442"}))["result"]
        await sim.call("modify_pending_order_address", {**change, "order_id": "#W5918442"})
        return before, (await sim.call("get_order_details", {"order_id": "#W5918442"}))["result"]

    first, changed = simulate(work, script=TALKING)
    again, _ = simulate(work, script=TALKING)
    assert "Bern" in changed["content"] and first == again != changed


def test_an_expression_without_end_costs_the_agent_an_error_and_not_the_run() -> None:
    async def work(sim: Simulation, _: object) -> Any:
        endless = (await sim.call("calculate", {"expression": "9**9**9**9"}))["result"]
        return endless, (await sim.call("calculate", {"expression": "2 + 2"}))["result"]

    endless, sane = simulate(work, script=TALKING)
    assert endless["error"] and endless["content"].startswith("Error: ")
    assert sane == {"content": "4.0", "error": False}


# The simulated user


def test_the_user_is_asked_in_upstreams_words_and_hears_only_what_is_said() -> None:
    async def work(sim: Simulation, _: object) -> Any:
        first = sim.news["ask"]
        heard = (await sim.reply(content="I want to exchange two things."))["heard"]
        await sim.call("get_order_details", ORDER, content="I look that up.")
        second = (await sim.say("What is your name?"))["ask"]
        end = (await sim.reply(content=f"Never mind. {STOP}"))["end"]
        return first, heard, second, end

    first, heard, second, end = simulate(work)
    system, greeting = first["messages"]
    assert "<scenario>" in system["content"] and greeting == {
        "role": "user",
        "content": "Hi! How can I help you today?",
    }
    assert (first["temperature"], first["seed"], "tools" in first) == (0.0, 7, False)
    assert heard == "I want to exchange two things."
    assert [m["content"] for m in second["messages"][1:]] == [greeting["content"], heard, "What is your name?"]
    assert end == "user_stop"


@pytest.mark.parametrize("word", ["###TRANSFER###", "###OUT-OF-SCOPE###"])
def test_the_other_words_stop_it_too(word: str) -> None:
    async def work(sim: Simulation, _: object) -> Any:
        return (await sim.reply(content=word))["end"]

    assert simulate(work) == "user_stop"


def test_a_users_own_calls_are_made_and_told_and_the_agent_does_not_see_them() -> None:
    def tool_call(name: str) -> list[dict[str, Any]]:
        return [{"id": "u1", "type": "function", "function": {"name": name, "arguments": "{}"}}]

    async def work(sim: Simulation, _: object) -> Any:
        offered = [tool["function"]["name"] for tool in sim.news["ask"]["tools"]]
        called = await sim.reply(tool_calls=tool_call("check_status_bar"))
        invented = await sim.reply(tool_calls=tool_call("throw_phone"))
        heard = await sim.reply(content="It does not work.")
        return offered, called, invented, heard

    task = "[mobile_data_issue]airplane_mode_on|data_mode_off[PERSONA:None]"
    tasks: Any = with_toolkit(lambda t: t.request("tasks", {"domain": "telecom", "split": "base"}, SLOW_S))
    task = tasks["tasks"][0]["id"]
    offered, called, invented, heard = simulate(work, domain="telecom", task=task)
    assert "check_status_bar" in offered and len(offered) == 30
    call, result = called["events"]
    assert (call["tool"], result["result"], result["error"]) == ("check_status_bar", "u1", False)
    assert invented["events"][1]["error"] and "throw_phone" in invented["events"][1]["content"]
    assert (heard["heard"], heard["events"]) == ("It does not work.", [])


@pytest.mark.parametrize(
    "message",
    [
        {"content": "", "role": "user"},
        {"tool_calls": [{"id": "1", "function": {"name": "x", "arguments": "{"}}]},
        {"tool_calls": [{"id": "1", "function": {"name": "x", "arguments": "[]"}}]},
    ],
    ids=["not an assistant", "no JSON", "no object"],
)
def test_a_user_that_breaks_the_protocol_is_no_result(message: dict[str, Any]) -> None:
    """Upstream's run raises, and is counted as an error of the infrastructure: here the attempt is void."""

    async def work(sim: Simulation, _: object) -> Any:
        return await sim.reply(**message)

    with pytest.raises(ToolkitError):
        simulate(work)


# Solo


def solo_task() -> str:
    tasks: Any = with_toolkit(lambda t: t.request("tasks", {"domain": "telecom", "split": "base"}, SLOW_S))
    return str(tasks["tasks"][0]["id"])


def test_a_solo_agent_has_both_sets_of_tools_and_ends_with_done() -> None:
    async def work(sim: Simulation, toolkit: ToolkitHandle) -> Any:
        raw = await task_of(toolkit, "telecom", solo_task_id)
        surface: Any = await toolkit.request("surface", {"domain": "telecom", "solo": True, "task": raw}, SLOW_S)
        result = (await sim.call("toggle_airplane_mode", {}))["result"]
        ended = await sim.call("done", {})
        return raw, surface, result, ended, await sim.finish()

    solo_task_id = solo_task()
    raw, surface, result, ended, left = simulate(work, domain="telecom", task=solo_task_id, solo=True)
    names = [tool["name"] for tool in surface["tools"]]
    assert {"get_customer_by_phone", "toggle_airplane_mode", "done"} <= set(names) and len(names) == 13 + 30 + 1
    assert f"<ticket>\n{raw['ticket']}\n</ticket>" in surface["system"]
    assert not result["error"]
    assert (ended["result"], ended["end"], left["termination_reason"]) == (None, "agent_stop", "agent_stop")


def test_done_beside_other_calls_stops_before_any_of_them() -> None:
    async def work(sim: Simulation, _: object) -> Any:
        return await sim.call("toggle_airplane_mode", {}, "done"), await sim.finish()

    news, left = simulate(work, domain="telecom", task=solo_task(), solo=True)
    assert news["end"] == "agent_stop"
    assert [(m["role"], m["content"]) for m in left["messages"]] == [("assistant", STOP)]


def test_a_solo_agent_that_talks_is_in_error() -> None:
    async def work(sim: Simulation, _: object) -> Any:
        return (await sim.say("Which phone?"))["end"]

    assert simulate(work, domain="telecom", task=solo_task(), solo=True) == "agent_error"


# Grading


def verdict(simulation: Any, task: str = "0", judge: str | None = None, domain: str = "retail") -> Any:
    async def work(toolkit: ToolkitHandle) -> Any:
        raw = await task_of(toolkit, domain, task)
        response = None if judge is None else {"choices": [{"message": {"content": judge}}]}
        request = {"domain": domain, "task": raw, "solo": False, "simulation": simulation}
        return await toolkit.request("verdict", {**request, "judge": response}, SLOW_S)

    return with_toolkit(work)


def silent() -> Any:
    async def work(sim: Simulation, _: object) -> Any:
        return await sim.finish()

    return simulate(work, script=[{"text": STOP}])


def test_what_did_not_stop_by_itself_is_worth_nothing() -> None:
    left = {**silent(), "termination_reason": "max_steps"}
    graded = verdict(left, task="10")
    assert graded["reward"] == 0.0 and "terminated prematurely" in graded["reward_info"]["info"]["note"]


def test_a_recorded_result_that_a_replay_does_not_give_is_a_fault_and_no_verdict() -> None:
    async def work(sim: Simulation, _: object) -> Any:
        address = {"address1": "1", "address2": "", "city": "B", "state": "S", "country": "C", "zip": "3"}
        await sim.call("modify_pending_order_address", {"order_id": "#W5918442", **address})
        await sim.say("Done.")
        return await sim.finish()

    left = simulate(work, script=[{"text": "Hello."}, {"text": STOP}])
    changed = next(m for m in left["messages"] if m["role"] == "tool")
    changed["content"] = json.dumps({"order": "another"})
    with pytest.raises(ToolkitError, match="ValueError: Tool call"):
        verdict(left)


@pytest.mark.parametrize("said", ["Yes, all of it.", '{"results": [{"metExpectation": true}]}', "```json\n{}\n```"])
def test_a_judge_that_upstream_cannot_read_is_a_fault_and_no_verdict(said: str) -> None:
    with pytest.raises(ToolkitError, match="judge"):
        verdict(silent(), task="2", judge=said)


def test_a_judge_that_answers_nothing_passes_as_upstream_has_it_and_is_counted() -> None:
    graded = verdict(silent(), task="2", judge='{"results": []}')
    assert (graded["reward_info"]["reward_breakdown"]["NL_ASSERTION"], graded["asked"] > 0, graded["answered"]) == (
        1.0,
        True,
        0,
    )
