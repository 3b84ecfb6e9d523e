"""The counters behind a report: plain classes, a few per task, because 25,000 trials pass through them.

Money and seconds are kept one by one and summed exactly at the end, so that the order of the ledger changes no digit.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping

from attrs import frozen

from evalcore.report.detail import NO_VIEWS, TrialRow
from evalcore.report.model import RoleUsage
from evalcore.values.task import ROLES, Role
from evalcore.values.trial import EXIT_KINDS, RESULTS, SUCCESSES, Attempt, ExitKind, Grading, Verdict
from evalcore.values.usage import Usage


@frozen
class CountedTrial:
    """A graded trial as a metric of a plugin sees it (`contracts.GradedTrial`)."""

    attempt: Attempt
    grading: Grading


_UNUSED = Usage(cost_usd=0.0)


def row_of(attempt: Attempt, outcome: str, harm: bool | None = None, views: Mapping[str, bool] = NO_VIEWS) -> TrialRow:
    """An attempt as the row of its trial. A cost or a time that is no finite number of at least 0 is not known."""
    used, end, wall = attempt.usage.get("agent", _UNUSED), attempt.exit, attempt.wall_s
    cost = used.cost_usd if used.calls else 0.0
    return TrialRow(
        attempt.key.repeat,
        attempt.id,
        outcome,
        harm,
        None if end is None else end.kind,
        None if end is None else end.limit,
        wall if math.isfinite(wall) and wall >= 0 else None,
        used.tokens,
        used.unreported,
        cost if cost is not None and math.isfinite(cost) and cost >= 0 else None,
        attempt.tool_calls,
        attempt.tool_errors,
        views or NO_VIEWS,
    )


class RoleSum:
    """One role's tokens and money over many trials."""

    __slots__ = ("cache_read", "cache_write", "calls", "costs", "input", "output", "reasoning", "trials", "unreported")

    def __init__(self) -> None:
        self.calls = self.input = self.output = self.cache_read = self.cache_write = self.reasoning = 0
        self.unreported = self.trials = 0
        self.costs = array("d")  # of the trials whose price is known

    def add(self, usage: Usage) -> None:
        """Count one attempt's usage in this role."""
        if not usage.calls:
            return
        self.trials += 1
        self.calls += usage.calls
        self.input += usage.input
        self.output += usage.output
        self.cache_read += usage.cache_read
        self.cache_write += usage.cache_write
        self.reasoning += usage.reasoning
        self.unreported += usage.unreported
        if usage.cost_usd is not None and math.isfinite(usage.cost_usd) and usage.cost_usd >= 0:
            self.costs.append(usage.cost_usd)

    def copy(self) -> RoleSum:
        """An independent copy."""
        twin = RoleSum()
        for name in RoleSum.__slots__:
            setattr(twin, name, getattr(self, name))
        twin.costs = self.costs[:]
        return twin

    def total(self, unpriced_why: str) -> RoleUsage:
        """The sums as a value; money is None, with the reason given, unless it is known for every trial."""
        known, unpriced = math.fsum(self.costs), self.trials - len(self.costs)
        reason = None
        if unpriced:
            reason = unpriced_why
            if self.costs:
                reason += f" in {unpriced} of {self.trials} trials (${known:.4g} in the others)"
        usage = Usage(
            self.calls, self.input, self.output, self.cache_read, self.cache_write, self.reasoning, self.unreported,
            None if reason else known,
        )  # fmt: skip
        return RoleUsage(usage, self.trials, unpriced, known, reason)


class Spent:
    """What attempts used and how they ended."""

    __slots__ = ("exits", "flags", "limits", "roles", "served", "tool_calls", "tool_errors", "trials", "walls")

    def __init__(self) -> None:
        self.trials = self.tool_calls = self.tool_errors = 0
        self.exits: dict[ExitKind, int] = dict.fromkeys(EXIT_KINDS, 0)
        self.limits: dict[str, int] = {}
        self.flags: dict[str, int] = {}
        self.roles: dict[Role, RoleSum] = {}
        self.served: dict[Role, set[str]] = {}
        self.walls = array("d")  # seconds

    def add(self, attempt: Attempt, flags: tuple[str, ...] = ()) -> None:
        """Count one attempt; `flags` are its verdict's."""
        self.trials += 1
        self.tool_calls += attempt.tool_calls
        self.tool_errors += attempt.tool_errors
        self.walls.append(attempt.wall_s)
        roles = self.roles
        for role, usage in attempt.usage.items():
            total = roles.get(role)
            if total is None:
                total = roles[role] = RoleSum()
            total.add(usage)
        for role, models in attempt.served.items():
            self.served.setdefault(role, set()).update(models)
        end = attempt.exit
        if end is not None:
            self.exits[end.kind] += 1
            if end.limit is not None:
                self.limits[end.limit] = self.limits.get(end.limit, 0) + 1
        if attempt.flags or flags:
            for flag in {*attempt.flags, *flags}:
                self.flags[flag] = self.flags.get(flag, 0) + 1

    def copy(self) -> Spent:
        """An independent copy."""
        twin = Spent()
        twin.trials, twin.tool_calls, twin.tool_errors = self.trials, self.tool_calls, self.tool_errors
        twin.exits, twin.limits, twin.flags = dict(self.exits), dict(self.limits), dict(self.flags)
        twin.roles = {role: total.copy() for role, total in self.roles.items()}
        twin.served = {role: set(models) for role, models in self.served.items()}
        twin.walls = self.walls[:]
        return twin

    def usage(self, unpriced_why: Mapping[Role, str]) -> dict[Role, RoleUsage]:
        """Every role's total, with why a cost is missing; a role that called no model has zeros, and cost nothing."""
        return {role: self.roles.get(role, RoleSum()).total(unpriced_why[role]) for role in ROLES}


class TaskCount:
    """One task's graded trials: how many, how many solved, the same per view, and each of them."""

    __slots__ = ("graded", "rows", "solved", "views")

    def __init__(self) -> None:
        self.graded = self.solved = 0
        self.rows: list[TrialRow] = []
        self.views: dict[str, list[int]] | None = None  # label -> [trials, of them true]

    def add(self, verdict: Verdict) -> None:
        """Count one graded trial."""
        self.graded += 1
        if verdict.outcome in SUCCESSES:
            self.solved += 1
        if verdict.views:
            if self.views is None:
                self.views = {}
            for label, true in verdict.views.items():
                pair = self.views.get(label)
                if pair is None:
                    pair = self.views[label] = [0, 0]
                pair[0] += 1
                pair[1] += bool(true)


class World:
    """The trials of one cell: those that have a result, counted; `kept` holds them whole where a metric needs them."""

    __slots__ = (
        "harm",
        "harm_judged",
        "kept",
        "outcomes",
        "repeated",
        "settled",
        "tasks",
        "void_kinds",
        "voids",
        "wasted",
    )

    def __init__(self) -> None:
        self.tasks: dict[str, TaskCount] = {}
        self.outcomes: dict[str, int] = dict.fromkeys(RESULTS, 0)
        self.harm = self.harm_judged = self.voids = self.repeated = 0
        self.void_kinds: dict[str, int] = {}
        self.settled = Spent()
        self.wasted = Spent()
        self.kept: dict[str, list[CountedTrial]] = {}

    def add_result(self, attempt: Attempt, verdict: Verdict) -> None:
        """Count a trial that has a result."""
        task = self.tasks.get(attempt.key.task)
        if task is None:
            task = self.tasks[attempt.key.task] = TaskCount()
        task.add(verdict)
        task.rows.append(row_of(attempt, verdict.outcome, verdict.harm, verdict.views))
        self.outcomes[verdict.outcome] += 1
        if verdict.harm is not None:
            self.harm_judged += 1
            self.harm += verdict.harm
        self.settled.add(attempt, verdict.flags)

    def add_void(self, attempt: Attempt, kind: str) -> None:
        """Count an attempt that infrastructure spoilt."""
        self.voids += 1
        self.void_kinds[kind] = self.void_kinds.get(kind, 0) + 1
        self.wasted.add(attempt)
