"""A trial from its key to its verdict: the records that ledgers hold, and what travels between the stages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from attrs import Factory, frozen

from evalcore.values.json import JSONObject
from evalcore.values.task import Call, Role
from evalcore.values.usage import Usage

ExitKind: TypeAlias = Literal["completed", "limit", "refused", "crashed"]
Claim: TypeAlias = Literal["completed", "limit", "refused", "crashed", "infra"]
Outcome: TypeAlias = Literal["pass", "fail", "declined", "fabricated", "grader_error", "ungraded"]
Provenance: TypeAlias = Literal["live", "replayed", "fault-injected", "imported", "person", "stand-in"]
Isolation: TypeAlias = Literal["none", "namespace", "container", "remote"]

EXIT_KINDS: Final[tuple[ExitKind, ...]] = ("completed", "limit", "refused", "crashed")
RESULTS: Final[tuple[Outcome, ...]] = ("pass", "fail", "declined", "fabricated")
SUCCESSES: Final[frozenset[str]] = frozenset({"pass", "declined"})


@frozen
class TrialKey:
    """Which trial: one repeat of one task of one benchmark by one arm (by the arm's digest), with faults or without."""

    benchmark: str
    task: str
    arm: str
    repeat: int
    faults: bool = False  # injected, on purpose

    def __str__(self) -> str:
        return f"{self.benchmark}/{self.task}/{self.arm[:12]}/{self.repeat}{'+faults' if self.faults else ''}"


@frozen
class HarnessExit:
    """How a harness says it ended. A claim: the engine decides from the wires and the process."""

    answer: str | None = None
    claim: Claim = "completed"
    exit_code: int | None = None
    evidence: JSONObject = Factory(dict)


@frozen
class Exit:
    """How the agent ended, as the engine decided; `limit` names which one; `detail` is one line for people."""

    kind: ExitKind
    limit: str | None = None
    detail: str | None = None
    code: int | None = None


@frozen
class Void:
    """Why an attempt does not count. `fatal` stops the run: no retry can help."""

    kind: str
    message: str
    fatal: bool = False


@frozen
class BlobRef:
    """A file in the run's blob store, by the sha256 of its bytes."""

    sha256: str
    size: int


@frozen
class Deliverable:
    """What the agent leaves: answer text, the calls it made, and what the adapter adds."""

    answer: str | None = None
    calls: tuple[Call, ...] = ()
    data: JSONObject = Factory(dict)
    blobs: Mapping[str, BlobRef] = Factory(dict)

    def as_json(self) -> JSONObject:
        """The deliverable as the trace holds it."""
        return {
            "answer": self.answer,
            "calls": [c.as_json() for c in self.calls],
            "data": self.data,
            "blobs": {k: {"sha256": b.sha256, "size": b.size} for k, b in self.blobs.items()},
        }


@frozen
class Evidence:
    """What was measured in the environment after the agent was gone and before grading."""

    data: JSONObject = Factory(dict)
    blobs: Mapping[str, BlobRef] = Factory(dict)

    def as_json(self) -> JSONObject:
        """The evidence as the trace holds it."""
        return {"data": self.data, "blobs": {k: {"sha256": b.sha256, "size": b.size} for k, b in self.blobs.items()}}


@frozen
class Verdict:
    """What the native grader returned. `score` is None where the native one is not in [0, 1]."""

    outcome: Outcome
    score: float | None = None
    harm: bool | None = None  # None: this benchmark does not judge harm
    details: JSONObject = Factory(dict)  # native, verbatim
    flags: tuple[str, ...] = ()
    views: Mapping[str, bool] = Factory(dict)  # second, labelled readings of the same trial
    bounds: tuple[float, float] | None = None  # for ungraded: the score if all the rest fails, or passes


@frozen
class TraceRef:
    """Where an attempt's trace is: one zstd frame in one segment. Bytes."""

    segment: str
    offset: int
    length: int


@frozen
class Attempt:
    """One line of attempts.jsonl. Exactly one of `exit` and `void` is set."""

    id: str
    key: TrialKey
    task_digest: str
    number: int  # 1 is the first attempt of this trial
    exit: Exit | None
    void: Void | None
    started: str  # RFC 3339, UTC
    wall_s: float
    usage: Mapping[Role, Usage]
    tool_calls: int
    tool_errors: int
    trace: TraceRef
    provenance: Provenance = "live"
    isolation: Isolation = "none"
    flags: tuple[str, ...] = ()
    served: Mapping[Role, tuple[str, ...]] = Factory(dict)  # models that answered, by their own word, sorted


@frozen
class Grading:
    """One line of gradings/<digest>.jsonl: an attempt's verdict. `error` says why, for a grader_error.

    `judge` holds what a judge model replied, `{"model", "request" (its digest), "reply"}` each; `usage` what was paid.
    """

    attempt: str
    verdict: Verdict
    wall_s: float
    error: str | None = None
    usage: Mapping[Role, Usage] = Factory(dict)
    judge: tuple[JSONObject, ...] = ()
