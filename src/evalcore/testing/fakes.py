"""Stand-ins for what the engine hands to parts: all in memory, nothing waits, and each keeps what was done to it."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Final, TypeAlias

from attrs import define, field, frozen

from evalcore.contracts import Episode, ToolkitHandle, ToolResult, text_result
from evalcore.errors import InfraError, ToolkitError
from evalcore.values.arm import Arm
from evalcore.values.json import JSONObject, JSONValue, exact_text
from evalcore.values.task import Assignment, Gold, Role, Task, ToolSpec
from evalcore.values.trial import (
    Attempt,
    BlobRef,
    Deliverable,
    Exit,
    ExitKind,
    Grading,
    HarnessExit,
    Outcome,
    TraceRef,
    TrialKey,
    Verdict,
)
from evalcore.values.usage import Usage
from evalcore.wires.recorder import AttemptRecorder

Step: TypeAlias = "str | JSONObject | BaseException | Callable[[JSONObject], JSONObject]"

_Calls: TypeAlias = list[tuple[str, JSONValue]]  # names of their own, since FakeTools has a method `list`
_Refused: TypeAlias = list[tuple[str, str]]

ANYBODY: Final = Arm("conformance", {"harness": "noop"})  # whom a task is assigned to, where it does not matter
NOTHING_MORE: Final = "the script is over"


# ── what factories get ───────────────────────────────────────────────────────────────────────────────────────────────


@define
class FakeClock:
    """Time that passes only when somebody sleeps."""

    seconds: float = 0.0
    date: str = "2026-01-01T00:00:00.000Z"

    def monotonic(self) -> float:
        """Seconds slept so far."""
        return self.seconds

    def now(self) -> str:
        """Always the same moment."""
        return self.date

    async def sleep(self, seconds: float) -> None:
        """Pass the time without waiting for it."""
        self.seconds += seconds
        await asyncio.sleep(0)


@define
class MemoryBlobs:
    """Blobs by sha256, kept in `held`."""

    held: dict[str, bytes] = field(factory=dict)

    async def put(self, data: bytes) -> BlobRef:
        """Keep it."""
        sha256 = hashlib.sha256(data).hexdigest()
        self.held[sha256] = data
        return BlobRef(sha256, len(data))

    async def get(self, ref: BlobRef) -> bytes:
        """What was put. Raises InfraError."""
        if ref.sha256 not in self.held:
            raise InfraError(f"no blob {ref.sha256}")
        return self.held[ref.sha256]


@define
class FakeServices:
    """Services for a unit test: a still clock, a seeded random source, blobs in memory, the toolkits you give it."""

    toolkits: Mapping[str, ToolkitHandle] = field(factory=dict)
    base: Path = field(factory=Path)
    environment: Mapping[str, str] = field(factory=dict)
    clock: FakeClock = field(factory=FakeClock)
    random: Random = field(factory=lambda: Random(0))
    blobs: MemoryBlobs = field(factory=MemoryBlobs)
    hidden: list[str] = field(factory=list)

    def hide(self, secret: str) -> None:
        """Note what was to be kept out of the run's files."""
        self.hidden.append(secret)

    async def toolkit(self, name: str) -> ToolkitHandle:
        """The toolkit of that name. Raises ToolkitError."""
        if name not in self.toolkits:
            raise ToolkitError(f"toolkit {name} is not set up here", hint=f"FakeServices(toolkits={{{name!r}: …}})")
        return self.toolkits[name]


# ── an attempt, and its two wires ────────────────────────────────────────────────────────────────────────────────────


@define
class FakeTrial:
    """An open attempt, as bridges and adapters see it. Give it `episodes` and `exit` as a test needs them."""

    task: Task
    assignment: Assignment
    arm: Arm = ANYBODY
    attempt: int = 1
    seed: int = 0
    exit: HarnessExit | None = None
    episodes: list[Episode] = field(factory=list)
    recorder: AttemptRecorder = field(factory=lambda: AttemptRecorder(FakeClock()))
    control: bool = False
    gold: Gold | None = None
    required: Mapping[str, Deliverable] = field(factory=dict)
    replies: dict[Role, list[JSONObject]] = field(factory=dict)  # what `complete` answers, in order
    asked: list[tuple[Role, JSONObject]] = field(factory=list)  # and what it was asked
    _folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def key(self) -> TrialKey:
        """The first repeat of the task."""
        return TrialKey("conformance", self.task.id, self.arm.digest, 1)

    async def complete(self, role: Role, body: JSONObject) -> JSONObject:
        """The next of the role's `replies`. Raises InfraError when there is none left."""
        self.asked.append((role, body))
        replies = self.replies.get(role)
        if not replies:
            raise InfraError(f"{role}: {NOTHING_MORE}")
        return replies.pop(0)

    def workdir(self) -> Path:
        """A folder of the trial's own, made when first asked for; `close` removes it."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="evalcore-", ignore_cleanup_errors=True)
        return Path(self._folder.name)

    async def close(self) -> None:
        """Close every episode, last opened first, and remove the folder."""
        for episode in reversed(self.episodes):
            await episode.close()
        if self._folder is not None:
            self._folder.cleanup()


@define
class FakeTools:
    """The tool wire: answers from `results` (by tool; an exception is raised), else repeats the arguments.

    `calls` and `refused` hold what the harness did.
    """

    specs: tuple[ToolSpec, ...]
    results: Mapping[str, ToolResult | Exception] = field(factory=dict)
    bridge: str = "fake"
    url: str | None = None
    calls: _Calls = field(factory=list)
    refused: _Refused = field(factory=list)

    def list(self) -> Sequence[ToolSpec]:
        """The tools on offer."""
        return self.specs

    async def call(self, name: str, arguments: JSONValue) -> ToolResult:
        """The result of that tool; raises it where it is an exception."""
        self.calls.append((name, arguments))
        await asyncio.sleep(0)
        result = self.results.get(name)
        if isinstance(result, Exception):
            raise result
        if result is not None:
            return result
        if name not in {spec.name for spec in self.specs}:
            return text_result(f"unknown tool: {name}", error=True)
        return text_result(exact_text(arguments))

    def refuse(self, name: str, raw: str, reason: str) -> ToolResult:
        """Note arguments that were no JSON."""
        self.refused.append((name, raw))
        return text_result(f"arguments are no JSON: {reason}", error=True)


@define
class ScriptedChannel:
    """A model that follows a script, one step a request; past its end it answers `the script is over`.

    A step is a text, a whole message, a function of the request that returns a message, or an exception to raise.
    `requests` holds the bodies as they were when sent.
    """

    script: Sequence[Step] = ()
    role: Role = "agent"
    model: str = "fake/model"
    dialect: str = "openai-chat"
    parameters: Mapping[str, JSONValue] = field(factory=dict)
    url: str | None = None
    requests: list[JSONObject] = field(factory=list)

    async def complete(self, body: JSONObject) -> JSONObject:
        """The next step as a Chat Completions response."""
        number = len(self.requests)
        messages = body.get("messages")
        self.requests.append({**body, "messages": [*messages] if isinstance(messages, list) else messages})
        await asyncio.sleep(0)
        step = self.script[number] if number < len(self.script) else NOTHING_MORE
        if isinstance(step, BaseException):
            raise step
        if callable(step):
            step = step(body)
        return response_of(said(step) if isinstance(step, str) else step, number)


def said(text: str) -> JSONObject:
    """A model's message: a text, no calls."""
    return {"role": "assistant", "content": text}


def called(*calls: tuple[str, JSONValue], text: str | None = None) -> JSONObject:
    """A model's message that calls tools: (name, arguments); arguments that are a text are sent as they stand."""
    wanted: list[JSONValue] = [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else exact_text(given)},
        }
        for number, (name, given) in enumerate(calls)
    ]
    return {"role": "assistant", "content": text, "tool_calls": wanted}


def response_of(message: JSONObject, number: int = 0) -> JSONObject:
    """A Chat Completions response around a message. A message under the key `raw` is the whole response instead."""
    if isinstance(raw := message.get("raw"), dict):
        return raw
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    return {
        "id": f"fake-{number}",
        "object": "chat.completion",
        "model": "model",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


# ── what metrics see ─────────────────────────────────────────────────────────────────────────────────────────────────


@frozen
class FakeGradedTrial:
    """A counted attempt and its verdict."""

    attempt: Attempt
    grading: Grading


def graded_trial(
    outcome: Outcome = "pass",
    *,
    score: float | None = None,
    exit: ExitKind = "completed",  # noqa: A002 - the field's own name
    repeat: int = 1,
    usage: Mapping[Role, Usage] | None = None,
    tool_calls: int = 3,
    tool_errors: int = 1,
    wall_s: float = 1.5,
    details: JSONObject | None = None,
    harm: bool | None = None,
    views: Mapping[str, bool] | None = None,
) -> FakeGradedTrial:
    """One repeat of a made-up task, for a metric's tests."""
    key = TrialKey("conformance", "task", "0" * 64, repeat)
    if score is None and outcome in ("pass", "fail", "declined", "fabricated"):
        score = float(outcome in ("pass", "declined"))
    attempt = Attempt(
        id=f"{key}/1",
        key=key,
        task_digest="0" * 64,
        number=1,
        exit=Exit(exit, limit="tokens" if exit == "limit" else None),
        void=None,
        started="2026-01-01T00:00:00.000Z",
        wall_s=wall_s,
        usage={"agent": Usage(calls=2, input=200, output=30, cost_usd=0.002)} if usage is None else usage,
        tool_calls=tool_calls,
        tool_errors=tool_errors,
        trace=TraceRef("", 0, 0),
    )
    verdict = Verdict(outcome, score, harm=harm, details=details or {}, views=views or {})
    return FakeGradedTrial(attempt, Grading(attempt.id, verdict, 0.01))
