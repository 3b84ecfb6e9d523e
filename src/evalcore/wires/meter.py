"""What a trial has used and what it may still use; the one place where limits are decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NoReturn

from evalcore.errors import (
    AgentError,
    BudgetExceeded,
    ConfigError,
    EvalcoreError,
    InfraError,
    Interrupted,
    LimitReached,
)
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import Limits, Role
from evalcore.values.usage import Usage

_NO_LIMITS: Final = Limits()
_SERVED_MAX: Final = 16  # models kept for a role: a provider decides how many names it gives
_TEXT_MAX: Final = 2000  # characters of an error's text that are kept: agents and servers decide how long it is


def short(text: str) -> str:
    """`text`, cut where it is too long for a line that people read."""
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}… ({len(text):,} characters)"


def text_of(error: BaseException) -> str:
    """What an error says; never fails, and is never long."""
    try:
        return short(str(error))
    except Exception:  # noqa: BLE001 - a stranger's error, of whatever kind
        return "(its text cannot be had)"


class RunBudget:
    """The run's money: every call reserves before it is sent. USD; `allowed` None is no budget."""

    def __init__(self, allowed: float | None, spent: float = 0.0, dearest: float = 0.0) -> None:
        self.allowed = allowed
        self.spent = spent
        self._reserved = 0.0
        self._dearest = dearest  # call so far: what the next one is taken to cost at most

    def is_spent(self) -> bool:
        """Whether not even the next call can be paid."""
        return self.allowed is not None and self.spent >= self.allowed

    def reserve(self, foreseen: float = 0.0, *, whole: bool = False) -> float:
        """Set aside the price of one call: what is foreseen if that is all it can cost, else no less than any so far.

        Raises BudgetExceeded.
        """
        if self.allowed is None:
            return 0.0
        amount = foreseen if whole else max(foreseen, self._dearest)
        if self.spent + self._reserved + amount > self.allowed or self.spent >= self.allowed:
            left = "" if self.spent >= self.allowed else f", and a call that may cost ${amount:.4f} is too much"
            raise BudgetExceeded(f"the run's budget of ${self.allowed:g} is spent (${self.spent:.4f} used){left}")
        self._reserved += amount
        return amount

    def settle(self, reserved: float, cost: float | None) -> None:
        """Book what the call did cost (None: unknown) and free its reservation."""
        self._reserved -= reserved
        if cost is not None:
            self.spent += cost
            self._dearest = max(self._dearest, cost)


class RoleUse:
    """Running sums of one role."""

    __slots__ = ("cache_read", "cache_write", "calls", "cost", "input", "output", "priced", "reasoning", "unreported")

    def __init__(self) -> None:
        self.calls = self.input = self.output = self.cache_read = self.cache_write = self.reasoning = 0
        self.unreported = self.priced = 0
        self.cost = 0.0

    def add(self, usage: Usage) -> None:
        """One call's usage."""
        self.calls += 1
        self.input += usage.input
        self.output += usage.output
        self.cache_read += usage.cache_read
        self.cache_write += usage.cache_write
        self.reasoning += usage.reasoning
        self.unreported += usage.unreported
        if usage.cost_usd is not None:
            self.priced += 1
            self.cost += usage.cost_usd

    def total(self) -> Usage:
        """The sums; the cost only if every call had a price."""
        return Usage(
            self.calls,
            self.input,
            self.output,
            self.cache_read,
            self.cache_write,
            self.reasoning,
            self.unreported,
            self.cost if self.priced == self.calls else None,
        )


class Meter:
    """Counts and bounds of one attempt. `limit` and `failure` are what the engine decides the exit from."""

    __slots__ = (
        "_apart", "_begun", "_budget", "_closed", "_excused_s", "_limits", "_role_limits", "_turn_ends", "_waiting",
        "_waits_since", "_walls", "failure", "flags", "limit", "roles", "served", "tool_calls", "tool_errors",
    )  # fmt: skip

    def __init__(self, budget: RunBudget) -> None:
        self._limits = _NO_LIMITS
        self._role_limits: Mapping[Role, Limits] = {}
        self._apart: frozenset[Role] = frozenset()  # roles with a bound of their own on tokens
        self._budget = budget
        self._begun: dict[Role, int] = {}  # model calls, also those that run or failed
        self._closed = False
        self._turn_ends: int | None = None  # the agent's model calls after which its turn is over
        self._walls: dict[Role, float] = {}  # seconds that the model calls of a role with such a bound took
        self._waiting = 0  # calls that a provider keeps waiting
        self._waits_since = 0.0
        self._excused_s = 0.0
        self.roles: dict[Role, RoleUse] = {}
        self.served: dict[Role, set[str]] = {}  # models that answered, by their own word
        self.flags: set[str] = set()
        self.tool_calls = 0
        self.tool_errors = 0
        self.limit: LimitReached | None = None
        self.failure: EvalcoreError | None = None

    @property
    def budgeted(self) -> bool:
        """Whether the run's money is bounded."""
        return self._budget.allowed is not None

    def bind(self, limits: Limits, roles: Mapping[Role, Limits]) -> None:
        """Set the bounds of the whole attempt and of single roles, once the assignment has said them."""
        self._limits = limits
        self._role_limits = roles
        self._apart = frozenset(role for role, own in roles.items() if own.tokens is not None)

    def begin_turn(self, model_calls: int | None) -> None:
        """A new turn of a dialogue, in which the agent may ask its model so often. None is no bound."""
        self._turn_ends = None if model_calls is None else self._begun.get("agent", 0) + model_calls

    @property
    def tool_call_s(self) -> float | None:
        """The most that one tool call may take, in seconds; None: nobody said."""
        return self._limits.tool_call_s

    def unanswered(self) -> bool:
        """Whether a model was asked, and never answered at all."""
        return any(self._begun.values()) and not self.roles

    def waits(self, waits: bool, now: float) -> None:
        """A call begins to wait for a provider that is busy or down, or ends to. Seconds of the attempt's clock."""
        if waits:
            self._waits_since = self._waits_since if self._waiting else now
            self._waiting += 1
        else:
            self._waiting -= 1
            self._excused_s += 0.0 if self._waiting else now - self._waits_since

    def excused_s(self, now: float) -> float:
        """How long the attempt waited for providers so far: no time of the agent's."""
        return self._excused_s + (now - self._waits_since if self._waiting else 0.0)

    def close(self) -> None:
        """The agent's time is over: what it left running gets nothing more from the wires."""
        self._closed = True

    def begin_model_call(self, role: Role, foreseen: float = 0.0, whole: bool = False) -> float:
        """Check every limit and reserve money; returns the reservation. Raises LimitReached or BudgetExceeded.

        `foreseen` is what the call will cost as far as is known, `whole` whether it can cost no more.
        """
        self._check_open()
        begun, own = self._begun.get(role, 0), self._role_limits.get(role)
        if self._turn_ends is not None and role == "agent" and begun >= self._turn_ends:
            self.stop(LimitReached("model_calls", self._turn_ends))
        if own is not None:
            use = self.roles.get(role) or RoleUse()
            self._check_use(own, begun, use.input + use.output, use.cost, role)
            if own.wall_s is not None and self._walls.get(role, 0.0) >= own.wall_s:
                self.stop(LimitReached("wall_s", own.wall_s, role))
        self._check_use(self._limits, *self._sums())
        try:
            reserved = self._budget.reserve(foreseen, whole=whole)
        except BudgetExceeded as error:
            self.failure = error
            raise
        self._begun[role] = begun + 1
        return reserved

    def end_model_call(
        self, role: Role, reserved: float, usage: Usage | None, wall_s: float = 0.0, *, paid: bool = True
    ) -> None:
        """Book a call's usage; None where it failed. One that reports no usage is taken to cost what was set aside.

        One that is not paid (replayed) is counted, and costs the run nothing.
        """
        if self._role_limits:
            self._walls[role] = self._walls.get(role, 0.0) + wall_s
        cost = None if usage is None or not paid else reserved if usage.unreported else usage.cost_usd
        self._budget.settle(reserved, cost)
        if usage is not None:
            self.roles.setdefault(role, RoleUse()).add(usage)

    def answered_by(self, role: Role, model: JSONValue) -> None:
        """Note which model a response says that it comes from."""
        if isinstance(model, str):
            known = self.served.get(role)
            if known is None:
                known = self.served[role] = set()
            if model not in known and len(known) < _SERVED_MAX:
                known.add(short(model))

    def begin_tool_call(self) -> int:
        """The number of the call, from 1. Raises LimitReached."""
        self._check_open()
        allowed = self._limits.tool_calls
        if allowed is not None and self.tool_calls >= allowed:
            self.stop(LimitReached("tool_calls", allowed))
        self.tool_calls += 1
        return self.tool_calls

    def stop(self, limit: LimitReached) -> NoReturn:
        """Note that a limit was reached, and raise it."""
        self.limit = self.limit or limit
        raise limit

    def fail(self, error: BaseException, what: str) -> EvalcoreError:
        """Note a failure that is not the agent's; returns what to raise: deliberate errors as they are."""
        if not isinstance(error, (InfraError, ConfigError, Interrupted)):
            error = InfraError(f"{what}: {type(error).__name__}: {text_of(error)}")
        self.failure = self.failure or error
        return error

    def usage(self) -> dict[Role, Usage]:
        """Usage by role, for the roles that called a model."""
        return {role: use.total() for role, use in self.roles.items()}

    def _check_open(self) -> None:
        if self.failure is not None:
            raise self.failure
        if self.limit is not None:
            raise self.limit
        if self._closed:
            raise AgentError("the attempt is over")

    def _sums(self) -> tuple[int, int, float]:
        tokens, cost = 0, 0.0
        for role, use in self.roles.items():
            cost += use.cost
            if role not in self._apart:
                tokens += use.input + use.output
        return sum(self._begun.values()), tokens, cost

    def _check_use(self, limits: Limits, calls: int, tokens: int, cost: float, role: Role | None = None) -> None:
        """Raises LimitReached for the first bound that is used up; `role` is whose it is, None for the trial's."""
        if limits.model_calls is not None and calls >= limits.model_calls:
            self.stop(LimitReached("model_calls", limits.model_calls, role))
        if limits.tokens is not None and tokens >= limits.tokens:
            self.stop(LimitReached("tokens", limits.tokens, role))
        if limits.cost_usd is not None and cost >= limits.cost_usd:
            self.stop(LimitReached("cost_usd", limits.cost_usd, role))
        if limits.turns is not None and calls >= limits.turns:
            self.stop(LimitReached("turns", limits.turns, role))


def limits_json(limits: Limits) -> JSONObject:
    """The bounds that are set."""
    return {k: v for k, v in limits.as_json().items() if v is not None}
