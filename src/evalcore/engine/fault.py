"""Whose fault: the table that everything relies on (architecture §7), in one place.

The agent's failure is a result; the machine's failure is not. A harness may claim how it ended; what the wires and the
process saw decides. Read the rules of `decide` from the top: the first that applies wins.

 1  the wires saw the provider, a tool server, the environment or evalcore itself fail    void
 2  the wires refused a call over a limit                                                 exit limit, which
 3  the trial's time is over: no model call was ever answered                             void
    otherwise                                                                             exit limit wall_s
 4  the harness adapter raised LimitReached or another AgentError                         exit limit / crashed
 5  the harness adapter raised InfraError                                                 void
 6  anything else escaped from a part                                                     void, kind bug
 7  the harness claims completed, refused, crashed or limit                               that
 8  the harness claims infra, which the wires did not see                                 exit crashed
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from evalcore.errors import (
    AgentError,
    BudgetExceeded,
    ConfigError,
    EvalcoreError,
    FatalInfraError,
    InfraError,
    Interrupted,
    LimitReached,
    OutageError,
    ReplayError,
)
from evalcore.values.trial import EXIT_KINDS, Claim, Exit, HarnessExit, Void
from evalcore.wires.meter import Meter, short, text_of

FINAL: Final = frozenset({"diverged"})  # voids that another attempt would only repeat
CLAIMS: Final[tuple[Claim, ...]] = (*EXIT_KINDS, "infra")
MAX_ATTEMPTS: Final = 3  # the first and two more
UNCOUNTED: Final = frozenset(
    {"budget", "interrupted", "outage"}
)  # voids that use up no attempt: it was not the trial that failed


def decide(meter: Meter, claim: HarnessExit | None, error: BaseException | None, out_of_time: bool) -> Exit | Void:
    """How an attempt ended, from what the wires saw, then what the adapter raised, then what the harness claims."""
    if meter.failure is not None:
        return void_of(meter.failure)
    code = claim.exit_code if isinstance(claim, HarnessExit) else None
    if meter.limit is not None:
        return Exit("limit", meter.limit.limit, meter.limit.message, code)
    if out_of_time and meter.unanswered():
        return Void("infra", "the provider answered none of the trial's calls within its time")
    if out_of_time:
        return Exit("limit", "wall_s", "the trial's time was over", code)
    if error is not None:
        return _of_error(error)
    if claim is None or (wrong := _nonsense(claim)) is not None:
        return Void("bug", f"the harness returned {'nothing' if claim is None else wrong}")
    return _of_claim(claim)


def void_of(error: BaseException) -> Void:
    """A failure that is not the agent's, as the attempt's line keeps it."""
    if isinstance(error, BudgetExceeded):
        return Void("budget", error.message)
    if isinstance(error, ReplayError):
        return Void("diverged", text_of(error))
    if isinstance(error, OutageError):
        return Void("outage", text_of(error), fatal=True)
    if isinstance(error, InfraError):
        return Void("infra", text_of(error), fatal=isinstance(error, FatalInfraError))
    if isinstance(error, ConfigError):
        return Void("config", text_of(error), fatal=True)
    if isinstance(error, Interrupted):
        return Void("interrupted", text_of(error))
    return Void("bug", f"{type(error).__name__}: {text_of(error)}")


def _of_error(error: BaseException) -> Exit | Void:
    if isinstance(error, BaseExceptionGroup):  # calls that ran side by side: one failure of the machine spoils the rest
        ended = [_of_error(e) for e in error.exceptions]
        return next((e for e in ended if isinstance(e, Void)), ended[0])
    if isinstance(error, LimitReached):
        return Exit("limit", error.limit, error.message)
    if isinstance(error, AgentError):
        return Exit("crashed", detail=text_of(error))
    return void_of(error)


def _nonsense(claim: object) -> str | None:
    """What is wrong with what a harness returned: a bug of the adapter, from which no result can be made."""
    if not isinstance(claim, HarnessExit):
        return f"{type(claim).__name__}, no HarnessExit"
    checks: list[tuple[object, bool]] = [
        ("a claim that is none", claim.claim in CLAIMS),
        ("an answer that is no text", claim.answer is None or isinstance(claim.answer, str)),
        ("evidence that is no object", isinstance(claim.evidence, dict)),
    ]
    return next((str(wrong) for wrong, right in checks if not right), None)


def _of_claim(claim: HarnessExit) -> Exit:
    if claim.claim == "infra":
        return Exit(
            "crashed", detail="the harness blames the machine; the wires saw no such failure", code=claim.exit_code
        )
    detail = claim.evidence.get("detail")
    limit = claim.evidence.get("limit")
    return Exit(
        claim.claim,
        (short(limit) if isinstance(limit, str) else "harness") if claim.claim == "limit" else None,
        short(detail) if isinstance(detail, str) else None,
        claim.exit_code,
    )


def counted_voids(voids: Iterable[Void | None]) -> int:
    """How many of a trial's attempts were used up by voids."""
    return sum(void is not None and void.kind not in UNCOUNTED for void in voids)


def backoff_s(number: int, random: Callable[[], float]) -> float:
    """Seconds before attempt `number` + 1: 0.5 then 2, give or take a quarter, so that voids do not retry in step."""
    base: float = 0.5 * 4 ** (number - 1)
    return base * (0.75 + 0.5 * random())


def as_infra(error: Exception, what: str) -> EvalcoreError:
    """An error that may leave a stage: deliberate ones as they are, anything else as infrastructure."""
    return (
        error if isinstance(error, EvalcoreError) else InfraError(f"{what}: {type(error).__name__}: {text_of(error)}")
    )
