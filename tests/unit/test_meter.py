"""What a trial has used and may still use, role by role; and the money of a run."""

from __future__ import annotations

import pytest

from evalcore.errors import AgentError, BudgetExceeded, ConfigError, FatalInfraError, InfraError, LimitReached
from evalcore.values.task import Limits, Role
from evalcore.values.usage import Usage, implausible, usage_from_chat
from evalcore.wires.meter import Meter, RunBudget, limits_json

NONE = Limits()


def meter(limits: Limits = NONE, roles: dict[Role, Limits] | None = None, budget: RunBudget | None = None) -> Meter:
    found = Meter(budget or RunBudget(None))
    found.bind(limits, roles or {})
    return found


def call(of: Meter, role: Role = "agent", **used: float) -> None:
    """One model call, from its beginning to its end."""
    reserved = of.begin_model_call(role)
    of.end_model_call(role, reserved, Usage(calls=1, **used))  # type: ignore[arg-type]


def calls_until_refused(of: Meter, role: Role = "agent", **used: float) -> tuple[int, str]:
    """How many calls were made, and which limit refused the next."""
    for number in range(100):
        try:
            call(of, role, **used)
        except LimitReached:
            return number, of.limit.limit if of.limit else "not noted"
    raise AssertionError("never refused")


@pytest.mark.parametrize(
    "limits, expected",
    [
        (Limits(model_calls=3), (3, "model_calls")),
        (Limits(turns=2), (2, "turns")),
        (Limits(tokens=25), (3, "tokens")),  # 10 a call: the third goes over
        (Limits(tokens=20), (2, "tokens")),
        (Limits(cost_usd=0.5), (2, "cost_usd")),  # exact in binary: 0.25 a call
        (Limits(model_calls=0), (0, "model_calls")),
        (Limits(model_calls=3, tokens=10), (1, "tokens")),
    ],
    ids=["calls", "turns", "over", "exactly", "cost", "none", "first-wins"],
)
def test_a_limit_refuses_the_call_after_it_was_reached(limits: Limits, expected: tuple[int, str]) -> None:
    assert calls_until_refused(meter(limits), input=6, output=4, cost_usd=0.25) == expected


def test_after_a_limit_everything_is_refused_and_the_first_limit_stands() -> None:
    of = meter(Limits(model_calls=1, tool_calls=0))
    call(of)
    with pytest.raises(LimitReached, match="model_calls"):
        of.begin_model_call("agent")
    with pytest.raises(LimitReached, match="model_calls"):
        of.begin_tool_call()


def test_calls_that_still_run_count() -> None:
    of = meter(Limits(model_calls=2))
    of.begin_model_call("agent")
    of.begin_model_call("agent")
    with pytest.raises(LimitReached):
        of.begin_model_call("agent")


def test_calls_that_failed_count_for_the_limit_and_not_as_usage() -> None:
    of = meter(Limits(model_calls=2))
    for _ in range(2):
        of.end_model_call("agent", of.begin_model_call("agent"), None)
    with pytest.raises(LimitReached):
        of.begin_model_call("agent")
    assert of.usage() == {}


def test_tool_calls_are_numbered_up_to_their_limit() -> None:
    of = meter(Limits(tool_calls=2))
    assert (of.begin_tool_call(), of.begin_tool_call()) == (1, 2)
    with pytest.raises(LimitReached, match=r"tool_calls was reached \(2\)"):
        of.begin_tool_call()
    assert of.tool_calls == 2


# ── roles ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_role_has_its_own_limits_beside_the_trials() -> None:
    of = meter(Limits(model_calls=10), {"user": Limits(model_calls=2)})
    assert calls_until_refused(of, "user") == (2, "model_calls")


def test_a_limit_of_a_role_says_whose_it_is() -> None:
    of = meter(Limits(), {"user": Limits(tokens=5)})
    assert calls_until_refused(of, "user", input=5) == (1, "tokens")
    assert of.limit is not None and of.limit.role == "user"
    assert "the limit of the role user on tokens was reached" in of.limit.message


def test_the_time_that_a_roles_calls_take_can_be_bounded() -> None:
    of = meter(Limits(), {"judge": Limits(wall_s=10.0)})
    for role in ("judge", "agent", "judge"):
        of.end_model_call(role, of.begin_model_call(role), Usage(calls=1), wall_s=6.0)
    of.end_model_call("agent", of.begin_model_call("agent"), None, wall_s=100.0)
    with pytest.raises(LimitReached, match="role judge on wall_s"):
        of.begin_model_call("judge")


def test_the_trials_limits_count_every_role() -> None:
    of = meter(Limits(tokens=30))
    call(of, "user", input=20)
    call(of, "agent", input=10)
    with pytest.raises(LimitReached):
        of.begin_model_call("agent")


def test_tokens_of_a_role_with_a_bound_of_its_own_are_not_counted_twice() -> None:
    of = meter(Limits(tokens=30), {"user": Limits(tokens=1000)})
    call(of, "user", input=500)
    call(of, "agent", input=29)
    call(of, "agent", input=1)
    with pytest.raises(LimitReached, match="tokens"):
        of.begin_model_call("agent")


def test_usage_is_kept_by_role_and_a_price_is_known_only_if_each_is() -> None:
    of = meter()
    call(of, "agent", input=1, output=2, cache_read=3, cache_write=4, reasoning=5, cost_usd=0.5)
    call(of, "agent", input=10, cost_usd=0.25)
    call(of, "user", input=7, cost_usd=0.125)
    call(of, "user", input=7)  # no price known

    assert of.usage() == {
        "agent": Usage(2, 11, 2, 3, 4, 5, 0, 0.75),
        "user": Usage(2, 14, 0, 0, 0, 0, 0, None),
    }


# ── failures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_failure_stands_and_closes_the_wires() -> None:
    of = meter()
    first = of.fail(ConnectionResetError("gone"), "provider of 'x'")
    of.fail(ValueError("later"), "tool 'y'")

    assert isinstance(first, InfraError)
    assert first.message == "provider of 'x': ConnectionResetError: gone"
    assert of.failure is first
    with pytest.raises(InfraError, match="gone"):
        of.begin_model_call("agent")
    with pytest.raises(InfraError, match="gone"):
        of.begin_tool_call()


@pytest.mark.parametrize("error", [InfraError("503"), FatalInfraError("401"), ConfigError("no reply")], ids=type)
def test_a_deliberate_failure_stays_what_it_is(error: Exception) -> None:
    assert meter().fail(error, "provider") is error


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def test_a_failure_whose_text_cannot_be_had_is_a_failure_all_the_same() -> None:
    assert meter().fail(Unprintable(), "tool").message == "tool: Unprintable: (its text cannot be had)"


def test_a_closed_meter_refuses_whoever_still_calls() -> None:
    of = meter()
    of.close()
    for refused in (lambda: of.begin_model_call("agent"), of.begin_tool_call):
        with pytest.raises(AgentError, match="over"):
            refused()
    assert (of.limit, of.failure) == (None, None)  # and that decides nothing


# ── money ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_a_budget_money_is_only_counted() -> None:
    budget = RunBudget(None)
    budget.settle(budget.reserve(), 1000.0)
    assert budget.reserve() == 0.0
    assert budget.spent == 1000.0


def test_each_call_reserves_what_the_dearest_cost_before_it_is_sent() -> None:
    budget = RunBudget(1.0)
    budget.settle(budget.reserve(), 0.25)
    held = [budget.reserve() for _ in range(3)]  # 0.25 spent, 0.75 set aside
    assert held == [0.25] * 3
    with pytest.raises(BudgetExceeded, match=r"budget of \$1 is spent \(\$0.2500 used\)"):
        budget.reserve()
    budget.settle(held[0], 0.0)  # one was cheaper
    assert budget.reserve() == 0.25


def test_a_call_that_failed_gives_its_reservation_back() -> None:
    budget = RunBudget(1.0)
    budget.settle(budget.reserve(), 0.75)
    with pytest.raises(BudgetExceeded):
        budget.reserve()
    fresh = RunBudget(1.0)
    fresh.settle(fresh.reserve(), 0.5)
    fresh.settle(fresh.reserve(), None)
    assert fresh.reserve() == 0.5


def test_a_spent_budget_refuses_even_the_first_call_of_a_resumed_run() -> None:
    with pytest.raises(BudgetExceeded):
        RunBudget(1.0, spent=1.0).reserve()
    with pytest.raises(BudgetExceeded):
        RunBudget(1.0, spent=0.9, dearest=0.2).reserve()
    assert RunBudget(1.0, spent=0.9).reserve() == 0.0


def test_a_refusal_for_money_is_a_failure_of_the_attempt_and_no_limit() -> None:
    of = meter(budget=RunBudget(1.0, spent=1.0))
    with pytest.raises(BudgetExceeded):
        of.begin_model_call("agent")
    assert isinstance(of.failure, BudgetExceeded)
    assert of.limit is None


# ── what responses report, and what is stored ────────────────────────────────────────────────────────────────────────


def test_usage_is_read_from_a_response_whole() -> None:
    body = {
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
            "completion_tokens_details": {"reasoning_tokens": 15},
            "cost": 0.5,
        }
    }
    assert usage_from_chat(body) == Usage(1, 100, 20, 60, 10, 15, 0, 0.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("usage", [None, "much", 5, []])
def test_a_response_without_usage_is_counted_as_unreported(usage: object) -> None:
    assert usage_from_chat({"usage": usage}) == Usage(calls=1, unreported=1)  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "usage, wrong",
    [
        ({"prompt_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 0}, "cost": 0.01, "x": None}, []),
        ({"prompt_tokens": -1, "completion_tokens": 3}, ["prompt_tokens"]),
        ({"prompt_tokens": 10**30, "completion_tokens": 1e30}, ["prompt_tokens", "completion_tokens"]),
        ({"prompt_tokens_details": {"cached_tokens": float("nan")}}, ["prompt_tokens_details.cached_tokens"]),
        ({"cost": -0.5, "cost_details": {"upstream_cost": float("inf")}}, ["cost", "cost_details.upstream_cost"]),
        ({"cost": 1e6}, ["cost"]),
        (None, []),
        ("much", []),
    ],
)
def test_numbers_that_cannot_be_are_named(usage: object, wrong: list[str]) -> None:
    assert implausible(usage) == wrong  # type: ignore[arg-type]


def test_only_bounds_that_are_set_are_stored() -> None:
    assert limits_json(Limits(tokens=5, wall_s=1.5)) == {"tokens": 5, "wall_s": 1.5}
    assert limits_json(Limits()) == {}


# ── time that is not the agent's ─────────────────────────────────────────────────────────────────────────────────────


def test_time_that_a_provider_takes_is_excused_once_however_many_calls_wait() -> None:
    meter = Meter(RunBudget(None))
    assert meter.excused_s(5.0) == 0.0
    meter.waits(True, 10.0)
    assert meter.excused_s(12.0) == 2.0  # also while it still waits
    meter.waits(True, 13.0)
    meter.waits(False, 15.0)
    meter.waits(False, 16.0)
    assert meter.excused_s(100.0) == 6.0
    meter.waits(True, 200.0)
    meter.waits(False, 201.0)
    assert meter.excused_s(300.0) == 7.0
