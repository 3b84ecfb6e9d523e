"""Whose fault: every row of the table, in its order, and what the table's neighbours do with what escapes a part."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from evalcore.engine import trial
from evalcore.engine.fault import UNCOUNTED, as_infra, backoff_s, counted_voids, decide, void_of
from evalcore.errors import (
    AgentError,
    BudgetExceeded,
    ConfigError,
    FatalInfraError,
    GraderError,
    InfraError,
    LimitReached,
    MalformedCall,
    ToolkitError,
)
from evalcore.values.task import Task
from evalcore.values.trace import TraceReader
from evalcore.values.trial import (
    Attempt,
    Deliverable,
    Evidence,
    Exit,
    Grading,
    HarnessExit,
    TraceRef,
    TrialKey,
    Verdict,
    Void,
)
from evalcore.wires.meter import Meter, RunBudget

DOWN = InfraError("503 overloaded")
TOKENS = LimitReached("tokens", 100)
OVER = "the trial's limit on tokens was reached (100)"
TIME = Exit("limit", "wall_s", "the trial's time was over")
DONE = HarnessExit("42")
NO_ANSWER = Void("infra", "503 overloaded")
TOO_MUCH = Exit("limit", "tokens", OVER)


def saw(failure: Exception | None = None, limit: LimitReached | None = None) -> Meter:
    """A meter after the wires have seen this."""
    meter = Meter(RunBudget(None))
    meter.failure, meter.limit = failure, limit  # type: ignore[assignment]
    return meter


def group(*errors: Exception) -> BaseExceptionGroup[Exception]:
    return BaseExceptionGroup("calls side by side", errors)


@pytest.mark.parametrize(
    "meter, claim, error, out_of_time, expected",
    [
        # 1: what the wires saw fail
        pytest.param(saw(DOWN), DONE, None, False, NO_ANSWER, id="provider-fails-agent-goes-on"),
        pytest.param(saw(DOWN), None, DOWN, False, NO_ANSWER, id="provider-fails-agent-raises"),
        pytest.param(
            saw(FatalInfraError("401")),
            DONE,
            None,
            False,
            Void("infra", "401", fatal=True),
            id="bad-key",
        ),
        pytest.param(
            saw(ToolkitError("worker died")), DONE, None, False, Void("infra", "worker died"), id="toolkit-worker-dies"
        ),
        pytest.param(
            saw(ConfigError("no reply")),
            DONE,
            None,
            False,
            Void("config", "no reply", fatal=True),
            id="config",
        ),
        pytest.param(saw(BudgetExceeded("spent")), DONE, None, False, Void("budget", "spent"), id="budget"),
        # 2: a limit that the wires enforced
        pytest.param(saw(limit=TOKENS), None, TOKENS, False, TOO_MUCH, id="limit"),
        pytest.param(saw(limit=TOKENS), DONE, None, False, TOO_MUCH, id="limit-agent-goes-on"),
        pytest.param(
            saw(limit=TOKENS),
            HarnessExit(exit_code=1),
            None,
            False,
            Exit("limit", "tokens", OVER, 1),
            id="limit-code-kept",
        ),
        pytest.param(
            saw(limit=TOKENS),
            None,
            group(TOKENS, TOKENS),
            False,
            TOO_MUCH,
            id="limit-side-by-side",
        ),
        # 3: time
        pytest.param(saw(), None, None, True, TIME, id="time"),
        pytest.param(saw(), DONE, None, True, TIME, id="time-claim-comes-late"),
        pytest.param(saw(), None, RuntimeError("cancelled badly"), True, TIME, id="time-dies-of-cancellation"),
        # 4: the harness adapter says that the agent failed
        pytest.param(saw(), None, AgentError("bad request"), False, Exit("crashed", detail="bad request"), id="agent"),
        pytest.param(saw(), None, MalformedCall("no JSON"), False, Exit("crashed", detail="no JSON"), id="malformed"),
        pytest.param(
            saw(),
            None,
            LimitReached("turns", 3),
            False,
            Exit("limit", "turns", "the trial's limit on turns was reached (3)"),
            id="own-limit",
        ),
        # 5, 6: or that it was the machine, or fails itself
        pytest.param(saw(), None, InfraError("no docker"), False, Void("infra", "no docker"), id="infra"),
        pytest.param(saw(), None, FatalInfraError("full"), False, Void("infra", "full", fatal=True), id="fatal"),
        pytest.param(saw(), None, ConfigError("x"), False, Void("config", "x", fatal=True), id="harness-config"),
        pytest.param(saw(), None, KeyError("x"), False, Void("bug", "KeyError: 'x'"), id="unknown-exception"),
        pytest.param(saw(), None, GraderError("x"), False, Void("bug", "GraderError: x"), id="misplaced-exception"),
        pytest.param(saw(), None, None, False, Void("bug", "the harness returned nothing"), id="nothing"),
        # groups: calls that ran side by side
        pytest.param(saw(), None, group(AgentError("a")), False, Exit("crashed", detail="a"), id="group-agent"),
        pytest.param(saw(), None, group(KeyError("x")), False, Void("bug", "KeyError: 'x'"), id="group-bug"),
        pytest.param(saw(), None, group(group(DOWN)), False, NO_ANSWER, id="group-in-group"),
        pytest.param(saw(), None, group(AgentError("a"), DOWN), False, NO_ANSWER, id="group-mixed"),
        pytest.param(saw(), None, group(DOWN, AgentError("a")), False, NO_ANSWER, id="group-other"),
        # 7: claims
        pytest.param(saw(), DONE, None, False, Exit("completed"), id="completed"),
        pytest.param(saw(), HarnessExit(claim="refused"), None, False, Exit("refused"), id="refused"),
        pytest.param(
            saw(),
            HarnessExit(claim="crashed", exit_code=139, evidence={"detail": "segfault"}),
            None,
            False,
            Exit("crashed", None, "segfault", 139),
            id="crashed",
        ),
        pytest.param(saw(), HarnessExit(exit_code=1), None, False, Exit("completed", code=1), id="code-kept"),
        pytest.param(
            saw(),
            HarnessExit(claim="limit", evidence={"limit": "turns", "detail": "stops after 3"}),
            None,
            False,
            Exit("limit", "turns", "stops after 3"),
            id="limit-claimed",
        ),
        pytest.param(saw(), HarnessExit(claim="limit"), None, False, Exit("limit", "harness"), id="limit-unnamed"),
        pytest.param(
            saw(),
            HarnessExit(evidence={"limit": "turns", "detail": 5}),
            None,
            False,
            Exit("completed"),
            id="odd-evidence",
        ),
        # 8: what a harness cannot claim
        pytest.param(
            saw(),
            HarnessExit(claim="infra", exit_code=2),
            None,
            False,
            Exit("crashed", None, "the harness blames the machine; the wires saw no such failure", 2),
            id="blames-the-machine",
        ),
    ],
)
def test_each_way_to_end_has_one_owner(
    meter: Meter, claim: HarnessExit | None, error: BaseException | None, out_of_time: bool, expected: Exit | Void
) -> None:
    assert decide(meter, claim, error, out_of_time) == expected


def test_rows_win_from_the_top() -> None:
    """Everything at once, then without the row that won, again and again."""
    error: BaseException = AgentError("gave up")
    rest = (HarnessExit(claim="refused"), error, True)
    assert isinstance(decide(saw(DOWN, TOKENS), *rest), Void)
    assert decide(saw(None, TOKENS), *rest) == TOO_MUCH
    assert decide(saw(), *rest) == TIME
    assert decide(saw(), HarnessExit(claim="refused"), error, False) == Exit("crashed", detail="gave up")
    assert decide(saw(), HarnessExit(claim="refused"), None, False) == Exit("refused")


@pytest.mark.parametrize(
    "nonsense",
    ["done", 0, {"answer": "x"}, HarnessExit(claim="won"), HarnessExit(answer=5), HarnessExit(evidence=[])],  # type: ignore[arg-type]
)
def test_a_harness_that_returns_nonsense_is_a_bug_and_no_result(nonsense: Any) -> None:
    ended = decide(saw(), nonsense, None, False)
    assert isinstance(ended, Void)
    assert ended.kind == "bug" and not ended.fatal
    assert ended.message.startswith("the harness returned ")


def test_only_a_counted_void_uses_up_a_try() -> None:
    voids = [None, Void("infra", ""), Void("bug", ""), Void("budget", ""), Void("interrupted", ""), Void("config", "")]
    voids.append(Void("outage", "", fatal=True))
    assert counted_voids(voids) == 3
    assert set(UNCOUNTED) == {"budget", "interrupted", "outage"}


def test_retries_wait_longer_each_time_and_not_in_step() -> None:
    assert [backoff_s(n, lambda: 0.5) for n in (1, 2)] == [0.5, 2.0]
    assert (backoff_s(1, lambda: 0.0), backoff_s(1, lambda: 1.0)) == (0.375, 0.625)


def test_what_escapes_a_stage_is_infrastructure_unless_it_was_deliberate() -> None:
    deliberate = ToolkitError("no worker")
    assert as_infra(deliberate, "open") is deliberate
    wrapped = as_infra(KeyError("x"), "open")
    assert isinstance(wrapped, InfraError) and wrapped.message == "open: KeyError: 'x'"


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


def test_a_message_is_short_and_never_fails_to_be_one() -> None:
    assert void_of(Unprintable()) == Void("bug", "Unprintable: (its text cannot be had)")
    long = void_of(RuntimeError("x" * 10_000_000))
    assert len(long.message) < 3000
    ended = decide(saw(), HarnessExit(claim="crashed", evidence={"detail": "y" * 10_000_000}), None, False)
    assert isinstance(ended, Exit) and ended.detail is not None and len(ended.detail) < 3000


# ── the grader ───────────────────────────────────────────────────────────────────────────────────────────────────────

ATTEMPT = Attempt(
    id="b/t/a/1/1",
    key=TrialKey("b", "t", "a", 1),
    task_digest="",
    number=1,
    exit=Exit("completed"),
    void=None,
    started="",
    wall_s=0.0,
    usage={},
    tool_calls=0,
    tool_errors=0,
    trace=TraceRef("", 0, 0),
)


class Grader:
    """Does as it is told."""

    def __init__(self, does: Callable[[], Awaitable[Any]]) -> None:
        self._does = does

    async def grade(self, *_: object) -> Any:
        return await self._does()

    async def stamp(self) -> dict[str, Any]:
        return {}


def graded(does: Callable[[], Awaitable[Any]]) -> Grading:
    return asyncio.run(
        trial.grade(Grader(does), Task("t", {}), ATTEMPT, Deliverable(), Evidence(), TraceReader([]))  # type: ignore[arg-type]
    )


def raising(error: BaseException) -> Callable[[], Awaitable[Any]]:
    async def does() -> Any:
        raise error

    return does


def returning(value: Any) -> Callable[[], Awaitable[Any]]:
    async def does() -> Any:
        await asyncio.sleep(0)
        return value

    return does


@pytest.mark.parametrize(
    "does, said",
    [
        (raising(ZeroDivisionError("division by zero")), "ZeroDivisionError: division by zero"),
        (raising(GraderError("no reference")), "no reference"),
        (raising(ToolkitError("worker died")), "worker died"),
        (raising(SystemExit(3)), "RuntimeError: SystemExit: 3"),
        (raising(TimeoutError("upstream")), "TimeoutError: upstream"),
        (raising(asyncio.CancelledError()), "RuntimeError: a cancellation that nobody asked for"),
        (returning(None), "returned NoneType, no verdict"),
        (returning(True), "returned bool, no verdict"),
        (returning("pass"), "returned str, no verdict"),
        (returning(Verdict("won")), "returned the outcome 'won', which is none"),  # type: ignore[arg-type]
        (returning(Verdict("pass", float("nan"))), "returned the score nan, which is not within 0 and 1"),
        (returning(Verdict("pass", 7.5)), "returned the score 7.5, which is not within 0 and 1"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_grader_that_fails_or_returns_nonsense_is_a_grader_error(
    does: Callable[[], Awaitable[Any]], said: str
) -> None:
    grading = graded(does)
    assert (grading.verdict, grading.error) == (Verdict("grader_error"), said)


def test_a_grader_that_hangs_is_a_grader_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "STAGE_S", 0.05)
    grading = graded(lambda: asyncio.sleep(600))
    assert (grading.verdict, grading.error) == (Verdict("grader_error"), "did not answer within 0.05 s")


@pytest.mark.parametrize("verdict", [Verdict("pass", 1.0), Verdict("ungraded", bounds=(0, 1)), Verdict("declined", 0)])
def test_a_verdict_is_passed_on_as_it_is(verdict: Verdict) -> None:
    grading = graded(returning(verdict))
    assert (grading.attempt, grading.verdict, grading.error) == (ATTEMPT.id, verdict, None)
