"""The Protocols that parts implement, for type checkers and readers. `hookspecs` says how a part is registered.

A part raises `InfraError` (the machine, the network, the provider), `AgentError` (the harness broke its contract),
`GraderError` or `ConfigError`; anything else that escapes is counted as infrastructure, and is a bug.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from pathlib import Path
from random import Random
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from attrs import Factory, frozen

from evalcore.values.arm import Arm
from evalcore.values.imported import ImportedRun
from evalcore.values.json import JSONObject, JSONValue, exact_text
from evalcore.values.task import (
    Assignment,
    BridgeSpec,
    Dataset,
    Gold,
    Limits,
    Message,
    Role,
    Task,
    ToolSpec,
)
from evalcore.values.trace import TraceReader
from evalcore.values.trial import (
    Attempt,
    BlobRef,
    Deliverable,
    Evidence,
    Grading,
    HarnessExit,
    Isolation,
    TrialKey,
    Verdict,
)

# ── what parts are given ─────────────────────────────────────────────────────────────────────────────────────────────


class Clock(Protocol):
    """Time as an argument: `monotonic` in seconds for durations, `now` as RFC 3339 UTC for records."""

    def monotonic(self) -> float: ...
    def now(self) -> str: ...
    async def sleep(self, seconds: float) -> None: ...


class BlobStore(Protocol):
    """The run's blobs by sha256. `put` is durable when it returns."""

    async def put(self, data: bytes) -> BlobRef: ...
    async def get(self, ref: BlobRef) -> bytes: ...


CallBack: TypeAlias = Callable[[str, JSONObject], Awaitable[JSONValue]]  # method, parameters: what a worker asks back


class ToolkitSession(Protocol):
    """Upstream code behind pipes; a session stays on one worker. Raises ToolkitError.

    `timeout_s` bounds the worker's own seconds; while `on_callback` answers the worker's question, its clock stands.
    """

    async def request(
        self, method: str, params: JSONObject, timeout_s: float, *, on_callback: CallBack | None = None
    ) -> JSONValue: ...


class ToolkitHandle(ToolkitSession, Protocol):
    """A set-up toolkit: requests to any idle worker, or a session pinned to one."""

    def session(self, on_callback: CallBack | None = None) -> AbstractAsyncContextManager[ToolkitSession]: ...
    async def stamp(self) -> JSONObject: ...


class Services(Protocol):
    """What a factory may use instead of globals."""

    @property
    def clock(self) -> Clock: ...
    @property
    def random(self) -> Random: ...
    @property
    def blobs(self) -> BlobStore: ...
    @property
    def environment(self) -> Mapping[str, str]: ...
    @property
    def base(self) -> Path: ...  # what relative paths in a study are relative to
    def hide(self, secret: str) -> None: ...  # keeps a key out of everything that the run stores
    async def toolkit(self, name: str) -> ToolkitHandle: ...


@frozen
class Selector:
    """`name@split:parameter`, taken apart. `text` is what the user wrote."""

    text: str
    name: str
    split: str | None = None
    parameter: str | None = None


class Recorder(Protocol):
    """The one place where events of a trial go. Fields are JSON; see `values.trace` for the kinds."""

    def record(self, kind: str, /, **fields: JSONValue) -> None: ...
    def reader(self) -> TraceReader: ...


class OpenTrial(Protocol):
    """One attempt while it is open: what bridges and adapters may see of it."""

    @property
    def key(self) -> TrialKey: ...
    @property
    def attempt(self) -> int: ...
    @property
    def task(self) -> Task: ...
    @property
    def arm(self) -> Arm: ...
    @property
    def assignment(self) -> Assignment: ...
    @property
    def recorder(self) -> Recorder: ...
    @property
    def episodes(self) -> Sequence[Episode]: ...
    @property
    def exit(self) -> HarnessExit | None: ...
    @property
    def seed(self) -> int: ...
    @property
    def control(self) -> bool: ...  # a control plays: simulated users are scripted, from `gold`
    @property
    def gold(self) -> Gold | None: ...  # None unless a control plays
    @property
    def required(self) -> Mapping[str, Deliverable]: ...  # what the tasks that this one requires left, by their id
    def workdir(self) -> Path: ...
    async def complete(self, role: Role, body: JSONObject) -> JSONObject:
        """Ask a role's model: Chat Completions in and out, recorded, limited and priced under that role.

        Raises InfraError, or ConfigError where the role has no model.
        """
        ...


# ── benchmarks ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Adapter(Protocol):
    """Turns a benchmark's tasks into assignments, and captures the deliverable. One per benchmark name; thin."""

    grader: str

    async def dataset(self) -> Dataset: ...
    def tasks(self) -> AsyncIterator[Task]: ...
    async def assign(self, task: Task, arm: Arm) -> Assignment: ...
    async def capture(self, trial: OpenTrial) -> Deliverable: ...
    async def collect(self, trial: OpenTrial) -> Evidence: ...
    async def gold(self, task: Task) -> Gold | None: ...


@runtime_checkable
class GoldByTask(Protocol):
    """An adapter of which some tasks may have gold and others none: it is asked of each. Of any other, of the first."""

    gold_by_task: bool


@runtime_checkable
class CheckedAdapter(Protocol):
    """An adapter that can tell before a run that these arms could not do these tasks. `check` raises ConfigError."""

    def check(self, tasks: Sequence[Task], arms: Sequence[Arm]) -> None: ...


class JudgeReplies(Protocol):
    """A judge model's replies, by request: asked once, kept with the verdict, and given again when it is graded anew.

    `reply` takes and gives Chat Completions bodies. Raises GraderError where there is none to be had.
    """

    async def reply(self, request: JSONObject) -> JSONObject: ...


class Grader(Protocol):
    """The benchmark's native grader, unchanged. Pure: the same input gives the same verdict."""

    async def grade(
        self, task: Task, deliverable: Deliverable, evidence: Evidence, trace: TraceReader, judge: JudgeReplies | None
    ) -> Verdict: ...

    async def stamp(self) -> JSONObject: ...


class GradedTrial(Protocol):
    """A counted attempt and its verdict, as a metric sees it."""

    @property
    def attempt(self) -> Attempt: ...
    @property
    def grading(self) -> Grading: ...


class Metric(Protocol):
    """A value per task as numerator and denominator, or None where it has none."""

    def per_task(self, trials: Sequence[GradedTrial]) -> tuple[float, float] | None: ...


# ── environments ─────────────────────────────────────────────────────────────────────────────────────────────────────


@frozen
class ToolResult:
    """What a tool answered. A tool's own failure is a result with `error` set, never an exception."""

    content: tuple[JSONObject, ...]  # MCP content parts
    error: bool = False
    structured: JSONValue = None

    @property
    def text(self) -> str:
        """The text parts, joined by newlines; where there are none, the structured answer as JSON."""
        texts = [str(p["text"]) for p in self.content if p.get("type") == "text"]
        return "\n".join(texts) if texts or self.structured is None else exact_text(self.structured)


def text_result(text: str, *, error: bool = False) -> ToolResult:
    """A result of one text part."""
    return ToolResult(({"type": "text", "text": text},), error=error)


@frozen
class InputRequired:
    """The environment wants something from a person before it goes on (MCP elicitation)."""

    message: str
    schema: JSONObject


@frozen
class UserTurn:
    """What the benchmark's driver says next. `tools_changed`: the episode offers other tools from now on.

    `model_calls` bounds what the agent may ask its model within this turn.
    """

    messages: tuple[Message, ...]
    tools_changed: bool = False
    model_calls: int | None = None


@frozen
class End:
    """The dialogue is over; `reason` is upstream's own word.

    With `limit` the attempt ends as exit `limit`, of that name; with `fault`, the agent's own, as `crashed`.
    """

    reason: str
    limit: str | None = None
    fault: str | None = None


class Driver(Protocol):
    """Owns turns, steps and endings of a dialogue by the benchmark's own rules.

    `next` is given None at first, then how the agent ended the turn before: its `answer` is what it said. A limit of
    the benchmark that is met within a turn is raised as LimitReached, by the episode's `call`.
    """

    async def next(self, reply: HarnessExit | None) -> UserTurn | End: ...


class Episode(Protocol):
    """The state of one trial in an environment. Calls are serialised by the wire.

    The wire itself answers calls of tools that are not on offer, unless the episode has a true `answers_unknown_tools`:
    then they reach it as any other, for an environment whose own answer to them is part of the benchmark.
    """

    def tools(self) -> Sequence[ToolSpec]: ...
    async def call(self, name: str, arguments: JSONValue) -> ToolResult | InputRequired: ...
    def driver(self) -> Driver | None: ...
    async def state(self) -> JSONValue | BlobRef: ...
    async def close(self) -> None: ...


class Bridge(Protocol):
    """An environment kind; made once per run, opens an episode per attempt."""

    async def open(self, spec: BridgeSpec, trial: OpenTrial) -> Episode: ...


@runtime_checkable
class PreparingBridge(Protocol):
    """A bridge that can begin to make ready for a trial that will be opened soon. `prepare` returns at once."""

    def prepare(self, spec: BridgeSpec) -> None: ...


@runtime_checkable
class TimedEpisode(Protocol):
    """An episode that ends calls at `DEADLINE_S` by itself, since it can tell a slow tool from one that has hung."""

    keeps_deadline: bool


# The study's bound on one call, in seconds, while an episode carries one out; None: there is none.
DEADLINE_S: ContextVar[float | None] = ContextVar("evalcore.deadline_s", default=None)

# Where an agent asked to be told how far a call is, its wire sets this while the episode carries the call out.
Progress: TypeAlias = Callable[[float, "float | None", "str | None"], Awaitable[None]]
PROGRESS: ContextVar[Progress | None] = ContextVar("evalcore.progress", default=None)


class Sandbox(Protocol):
    """An isolated tree in which processes run."""

    isolation: Isolation

    async def read(self, path: str, max_bytes: int) -> bytes: ...
    async def write(self, path: str, data: bytes, mode: int = 0o644) -> None: ...
    async def kill_all(self) -> None: ...
    async def close(self) -> None: ...


# ── agents and models ────────────────────────────────────────────────────────────────────────────────────────────────


class Tools(Protocol):
    """A bridge's tools as the agent reaches them: recorded, limited. In process these methods; over HTTP `url`."""

    bridge: str
    url: str | None

    def list(self) -> Sequence[ToolSpec]: ...
    async def call(self, name: str, arguments: JSONValue) -> ToolResult: ...
    def refuse(self, name: str, raw: str, reason: str) -> ToolResult: ...


class Channel(Protocol):
    """One role's door to a model. In process, `complete` takes and gives bodies of `dialect`; over HTTP `url`."""

    role: Role
    model: str
    dialect: str
    parameters: Mapping[str, JSONValue]
    url: str | None

    async def complete(self, body: JSONObject) -> JSONObject: ...


class ServedChannel(Channel, Protocol):
    """A channel as the model wire serves it over HTTP: every dialect, whole or in its events."""

    aliases: tuple[str, ...] | None  # model names that are served; None: any

    @property
    def streams(self) -> bool: ...
    async def complete(self, body: JSONObject, dialect: str = "openai-chat") -> JSONObject: ...
    def stream(
        self, body: JSONObject, dialect: str = "openai-chat", *, with_usage: bool = True
    ) -> AsyncGenerator[JSONObject]: ...
    async def count_tokens(self, body: JSONObject, dialect: str) -> JSONObject: ...


@frozen
class CallContext:
    """Which model call a provider is answering; `call` counts from 1 within the attempt and role."""

    key: TrialKey
    attempt: int
    role: Role
    call: int
    seed: int
    settings: Mapping[str, JSONValue] = Factory(dict)  # the arm's provider-owned axes; never part of the body
    tries: int = 1  # which try of this call
    dialect: str = "openai-chat"  # of the body: one of those that the provider speaks


class Provider(Protocol):
    """A model provider: one try a call, for the gateway tries again, paces and pauses.

    `dialect` is what its bodies are written in: openai-chat (also where a provider has no such attribute),
    openai-responses or anthropic-messages. One that speaks several has `dialects` too, the best first, and finds in the
    context which a body is written in. Raises TransientError where another try may help, InfraError or
    FatalInfraError for its other failures, AgentError for a bad request.
    """

    dialect: str

    async def complete(self, model: str, body: JSONObject, context: CallContext) -> JSONObject: ...
    def content(self, model: str) -> Mapping[str, str]: ...
    async def close(self) -> None: ...


@runtime_checkable
class StreamingProvider(Protocol):
    """A provider that streams: the events of its dialect as JSON, the last one with the usage. Raises as `complete`."""

    def stream(self, model: str, body: JSONObject, context: CallContext) -> AsyncIterator[JSONObject]: ...


@runtime_checkable
class TokenCounter(Protocol):
    """A provider whose dialect can count the tokens of a request without answering it."""

    async def count_tokens(self, model: str, body: JSONObject, context: CallContext) -> JSONObject: ...


@runtime_checkable
class CheckedProvider(Protocol):
    """A provider that can tell before a run that it could not serve: no key, no address. `check` raises ConfigError."""

    def check(self, model: str, settings: Mapping[str, JSONValue]) -> None: ...


@runtime_checkable
class PreparedProvider(Protocol):
    """A provider that gets ready before the first trial. `prepare` raises ConfigError or InfraError if it cannot."""

    async def prepare(self, model: str, settings: Mapping[str, JSONValue]) -> None: ...


@frozen
class HarnessVersion:
    """What a probe found: version, build, and capabilities beyond those declared."""

    version: str
    build: str = ""
    capabilities: JSONObject = Factory(dict)


@frozen
class Job:
    """What a harness gets: one task, or one turn of a dialogue with its history."""

    messages: tuple[Message, ...]
    tools: tuple[Tools, ...]
    model: Channel | None
    options: Mapping[str, JSONValue]
    limits: Limits
    workdir: Callable[[], Path]  # made when first asked for: most harnesses in process need none
    environment: Mapping[str, str] = Factory(dict)
    sandbox: Sandbox | None = None
    gold: Gold | None = None  # for the oracle control alone; the engine gives it to nobody else
    seed: int = 0


class Harness(Protocol):
    """The agent under test. In a dialogue `run` is called once a turn, with the history rendered into its messages."""

    async def probe(self) -> HarnessVersion: ...
    async def run(self, job: Job) -> HarnessExit: ...


class Session(Protocol):
    """An agent that lives through a dialogue: it is told what is new, and remembers the rest."""

    async def turn(self, messages: tuple[Message, ...], *, tools_changed: bool = False) -> HarnessExit: ...


@runtime_checkable
class Conversing(Protocol):
    """A harness that keeps one conversation. The job's messages are what comes before the first turn."""

    def session(self, job: Job) -> AbstractAsyncContextManager[Session]: ...


@runtime_checkable
class Executes(Protocol):
    """A part that starts programs which a file names: it says which, for a person to look at. Raises ConfigError."""

    def commands(self, options: Mapping[str, JSONValue]) -> Sequence[Sequence[str]]: ...


@runtime_checkable
class Varying(Protocol):
    """A harness whose arms say what of their requests varies from run to run: `date`, `uuid`.

    Raises ConfigError for an arm that cannot be replayed at all.
    """

    def varies(self, options: Mapping[str, JSONValue]) -> Sequence[str]: ...


class Transform(Protocol):
    """Changes an assignment for an axis value; runs before the episode is opened."""

    async def apply(self, assignment: Assignment, value: JSONValue) -> Assignment: ...


@runtime_checkable
class CheckedTransform(Protocol):
    """A transform that can tell before a run that a value cannot be applied. `check` raises ConfigError."""

    def check(self, value: JSONValue) -> None: ...


class Importer(Protocol):
    """Reads somebody else's results. `knows` looks whether a file or folder is of its form, quickly.

    `read` raises ConfigError that names the file, the place in it and what is wrong.
    """

    def knows(self, source: Path) -> bool: ...
    def read(self, source: Path) -> ImportedRun: ...


class Renderer(Protocol):
    """Writes a run in some other format below `out`, and returns the files. Raises ConfigError if it cannot.

    One that can use another grading than the run's own has a parameter `grading` (its digest); one that can leave out
    what must not be published has `public` (bool) and `rules` (RedactionRules or None), and asks `values.redaction`.
    """

    def render(self, run: Path, out: Path) -> Sequence[Path]: ...


@runtime_checkable
class Closable(Protocol):
    """A part that holds something open for the whole run."""

    async def close(self) -> None: ...


ProgressLine: TypeAlias = Callable[[str], None]
Completion: TypeAlias = Callable[[Role, JSONObject], Awaitable[JSONObject]]
RelistMode: TypeAlias = Literal["push", "per_turn", "never"]
