"""What is to be done: datasets, tasks, their gold, and the assignment that one trial gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, TypeVar

from attrs import Factory, field, frozen

from evalcore.values.json import JSONObject, JSONValue, digest

N = TypeVar("N", int, float)

Role: TypeAlias = Literal["agent", "user", "judge"]
ROLES: tuple[Role, ...] = ("agent", "user", "judge")


@frozen
class Dataset:
    """Tasks at a pinned version. `status` is current, superseded or retired, with by whom and why in `status_note`."""

    name: str
    version: str
    date: str
    licence: str
    source: str
    status: Literal["current", "superseded", "retired"] = "current"
    status_note: str = ""
    files: Mapping[str, str] = Factory(dict)  # file name -> sha256
    withhold: tuple[Literal["questions", "answers", "responses"], ...] = ()  # what its terms forbid to publish

    @property
    def digest(self) -> str:
        """sha256 over name, version and every file's sha256."""
        return digest({"name": self.name, "version": self.version, "files": dict(self.files)})


@frozen
class Task:
    """One problem. `data` is what the adapter assigns from; `reference` what only the grader sees (or its digest)."""

    id: str
    data: JSONObject = field(repr=False)
    reference: JSONValue = field(default=None, repr=False)
    cluster: str = field(default="")  # tasks that share a cause; the task itself if the benchmark says nothing
    requires: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()  # known defects of the upstream task; the verdict stands all the same
    scored: bool = True  # False: it runs only because others require it, and is never counted
    digest: str = field(init=False, repr=False)  # covers everything the agent or the grader sees

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "cluster", self.cluster or self.id)
        content = {"id": self.id, "data": self.data, "reference": self.reference, "requires": list(self.requires)}
        object.__setattr__(self, "digest", digest(content))


@frozen
class Call:
    """One tool call. `arguments` is what was sent, object or not; `raw` is the text where it could not be parsed."""

    name: str
    arguments: JSONValue
    raw: str | None = None

    def as_json(self) -> JSONObject:
        """The call as a plain JSON object."""
        value: JSONObject = {"name": self.name, "arguments": self.arguments}
        if self.raw is not None:
            value["raw"] = self.raw
        return value


@frozen
class GoldAnswer:
    """The right final text."""

    text: str


@frozen
class GoldCalls:
    """The right calls, a tuple of calls per turn; `answer` is the closing text, if one is needed."""

    turns: tuple[tuple[Call, ...], ...]
    answer: str | None = None


@frozen
class GoldDialogue:
    """A playbook per role: what the agent and the simulated user do and say.

    `agent` holds an object per turn, `{"calls": [{"name": …, "arguments": …}, …], "answer": "…"}`; what `user` holds is
    between the benchmark's adapter and its driver.
    """

    agent: tuple[JSONObject, ...]
    user: tuple[JSONObject, ...] = ()


@frozen
class GoldPatch:
    """A unified diff."""

    diff: str


@frozen
class GoldScript:
    """A script that solves the task inside its sandbox."""

    script: str


Gold: TypeAlias = GoldAnswer | GoldCalls | GoldDialogue | GoldPatch | GoldScript
Playable: TypeAlias = GoldAnswer | GoldCalls | GoldDialogue
PLAYABLE = (GoldAnswer, GoldCalls, GoldDialogue)  # the forms that the oracle plays


@frozen
class Message:
    """One message to the agent: text, or a tuple of content parts."""

    role: str
    content: str | tuple[JSONObject, ...]

    def as_json(self) -> JSONObject:
        """The message as Chat Completions has it."""
        content: JSONValue = self.content if isinstance(self.content, str) else list(self.content)
        return {"role": self.role, "content": content}


@frozen
class Limits:
    """Bounds of one trial; None is no bound. Tokens count input and output of all roles."""

    tokens: int | None = None
    cost_usd: float | None = None
    model_calls: int | None = None
    tool_calls: int | None = None
    turns: int | None = None
    wall_s: float | None = None
    tool_call_s: float | None = None  # one call of a tool; over it, an error to the agent and no end of the trial

    def stricter(self, other: Limits) -> Limits:
        """Field by field, the smaller of two bounds."""
        if self == _UNBOUND:
            return other
        return Limits(
            tokens=_smaller(self.tokens, other.tokens),
            cost_usd=_smaller(self.cost_usd, other.cost_usd),
            model_calls=_smaller(self.model_calls, other.model_calls),
            tool_calls=_smaller(self.tool_calls, other.tool_calls),
            turns=_smaller(self.turns, other.turns),
            wall_s=_smaller(self.wall_s, other.wall_s),
            tool_call_s=_smaller(self.tool_call_s, other.tool_call_s),
        )

    def looser(self, other: Limits) -> Limits:
        """Field by field, the larger of two bounds: what holds for tasks with either."""
        return Limits(
            tokens=_larger(self.tokens, other.tokens),
            cost_usd=_larger(self.cost_usd, other.cost_usd),
            model_calls=_larger(self.model_calls, other.model_calls),
            tool_calls=_larger(self.tool_calls, other.tool_calls),
            turns=_larger(self.turns, other.turns),
            wall_s=_larger(self.wall_s, other.wall_s),
            tool_call_s=_larger(self.tool_call_s, other.tool_call_s),
        )

    def as_json(self) -> dict[str, int | float | None]:
        """All seven bounds by name."""
        return {name: getattr(self, name) for name in LIMIT_NAMES}


_UNBOUND = Limits()
LIMIT_NAMES = ("tokens", "cost_usd", "model_calls", "tool_calls", "turns", "wall_s", "tool_call_s")


def _larger(one: N | None, other: N | None) -> N | None:
    return None if one is None or other is None else max(one, other)


def _smaller(one: N | None, other: N | None) -> N | None:
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)


@frozen
class ToolSpec:
    """A tool as it is offered: the JSON Schemas pass through untouched."""

    name: str
    description: str
    input_schema: JSONObject
    output_schema: JSONObject | None = None
    more: JSONObject = Factory(dict)  # whatever else its server lists it with: title, annotations, _meta

    def as_json(self) -> JSONObject:
        """The tool as MCP lists it."""
        value: JSONObject = {
            **self.more,
            "name": self.name,
            "description": self.description,
            "inputSchema": self.input_schema,
        }
        if self.output_schema is not None:
            value["outputSchema"] = self.output_schema
        return value


@frozen
class BridgeSpec:
    """Which bridge serves the tools, and its configuration."""

    kind: str
    config: JSONObject = Factory(dict)


@frozen
class SandboxSpec:
    """Which isolated tree a trial needs: `kind` is a registered sandbox's name."""

    kind: str
    config: JSONObject = Factory(dict)


@frozen
class RoleSpec:
    """One role's model (None: the arm's) and its own limits."""

    model: str | None = None
    limits: Limits = Limits()


@frozen
class Assignment:
    """Everything one trial needs, as data."""

    messages: tuple[Message, ...]
    bridges: tuple[BridgeSpec, ...] = ()
    sandbox: SandboxSpec | None = None
    roles: Mapping[Role, RoleSpec] = Factory(dict)
    limits: Limits = Limits()
