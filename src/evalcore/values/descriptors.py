"""What a plugin declares: small descriptors that name a factory, so that listing costs nothing and heavy code waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from attrs import Factory, field, frozen, validators

from evalcore.values.arm import Owner
from evalcore.values.json import JSONValue
from evalcore.values.task import Role
from evalcore.values.toolkit import ToolkitSpec

AxisType: TypeAlias = Literal["text", "integer", "number", "boolean", "file"]

_NAME = validators.matches_re(r"[a-z0-9][a-z0-9_.+-]*")
_FACTORY = validators.matches_re(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@frozen
class Descriptor:
    """The fields every descriptor has: a registered name, one line of what it is, and `package.module:attr`."""

    name: str = field(validator=_NAME)
    summary: str
    factory: str = field(validator=_FACTORY)
    docs: str = field(default="", kw_only=True)


@frozen
class AdapterInfo(Descriptor):
    """One benchmark name. `parameters` are passed to the factory; `toolkits` must be set up before it runs."""

    parameters: Mapping[str, JSONValue] = Factory(dict)
    splits: tuple[str, ...] = ()
    takes_parameter: str = ""  # what `name:PARAMETER` means, or nothing
    toolkits: tuple[str, ...] = ()
    context_tokens: int | None = None  # the context that a model needs at least
    floor_note: str = ""  # what the scorecard says about an agent that does nothing
    roles: Mapping[Role, str] = Factory(dict)  # other roles that its trials have -> the model that upstream gives them
    tools_change: bool = False  # in the course of a trial
    measured_floor: bool = False  # noop plays what is planned once, beside agents: the number in place of `floor_note`


@frozen
class GroupInfo:
    """A named set of benchmarks with weights; its aggregate is called by its name only when every member is present."""

    name: str = field(validator=_NAME)
    summary: str
    members: Mapping[str, float]  # selector -> weight


@frozen
class BridgeInfo(Descriptor):
    """An environment kind that serves tools."""


@frozen
class GraderInfo(Descriptor):
    """A grader. `toolkits` must be set up before it runs."""

    toolkits: tuple[str, ...] = ()


@frozen
class MetricInfo(Descriptor):
    """A value per task; `validated` says whether it was shown to measure what it claims, and where."""

    unit: str = ""
    higher_is_better: bool | None = None
    validated: str = ""


@frozen
class HarnessInfo(Descriptor):
    """An agent under test. `control` marks oracle and noop, which use no model."""

    uses_model: bool = True
    control: bool = False
    axes: tuple[str, ...] = ()  # harness-owned axes that it takes
    dialects: tuple[str, ...] = ("openai-chat",)
    structures: tuple[str, ...] = ("plain",)
    relists: Literal["push", "per_turn", "never"] = "never"
    varies: tuple[str, ...] = ()  # what of its requests varies from run to run, for replays: date, uuid
    unreplayable: str = ""  # why its requests cannot be made to be the same again, where they cannot
    wires: Literal["memory", "http"] = "memory"  # how it reaches them: `http` gives each wire of its jobs a `url`


@frozen
class ModelInfo(Descriptor):
    """A provider behind the gateway: it serves every model named `name/…`."""

    keys: tuple[str, ...] = ()  # environment variables that hold its key
    gateway_axes: tuple[str, ...] = ()  # gateway-owned axes that it passes on
    axes: tuple[str, ...] = ()  # provider-owned axes that it takes
    toolkits: tuple[str, ...] = ()  # must be set up before it runs
    context_tokens: int | None = None  # of every one of its models, where that is one number
    free: bool = False  # nobody bills its calls, and they leave this machine for nowhere: nothing is asked before
    note: str = ""  # what must stand beside every number of its models
    unasked: str = ""  # `provider/model` that runs beside the controls where no model is named and it is set up
    unasked_axes: Mapping[str, JSONValue] = Factory(dict)  # with react, and these


@frozen
class SandboxInfo(Descriptor):
    """An isolated tree."""

    isolation: Literal["none", "namespace", "container", "remote"] = "none"


@frozen
class ExecutorInfo(Descriptor):
    """Where attempts run."""


@frozen
class AxisInfo:
    """A knob. `owner` is the part that applies it; a `boundary` axis is never pooled over."""

    name: str = field(validator=_NAME)
    summary: str
    owner: Owner
    type: AxisType = "text"
    default: JSONValue = None
    values: tuple[JSONValue, ...] = ()  # empty: any value of the type
    boundary: bool = False
    of: str = ""  # the one part (harness, bridge, benchmark) that has this axis; empty: every part of the owner's kind
    low: float | None = None
    high: float | None = None


@frozen
class TransformInfo(Descriptor):
    """(assignment, episode, axis value) -> the same, changed: how a third party's knob takes effect."""

    axis: str = field(default="", kw_only=True)


@frozen
class ToolkitInfo:
    """Upstream code in an environment of its own."""

    name: str = field(validator=_NAME)
    summary: str
    spec: ToolkitSpec


@frozen
class CommandInfo(Descriptor):
    """A CLI verb; the factory is a click command."""


@frozen
class RendererInfo(Descriptor):
    """A view of a report or run in some format."""


@frozen
class ImporterInfo(Descriptor):
    """A run made of somebody else's files."""
