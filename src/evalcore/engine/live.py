"""One attempt while it is open: what bridges, drivers and adapters see of it, and its doors to models."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from attrs import Factory, define, field, frozen

from evalcore.contracts import Episode
from evalcore.errors import AgentError, ConfigError, InfraError, LimitReached
from evalcore.values.arm import Arm
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import Assignment, Gold, Limits, Role, Task
from evalcore.values.trial import Deliverable, HarnessExit, TrialKey
from evalcore.wires.gateway.channel import MemoryChannel
from evalcore.wires.gateway.prices import ModelPrice
from evalcore.wires.gateway.tape import Tape
from evalcore.wires.gateway.upstream import Upstream
from evalcore.wires.meter import Meter
from evalcore.wires.recorder import AttemptRecorder


@frozen
class RoleModel:
    """Who speaks for a role: `provider/name`, what stands before who serves it, and at which price."""

    model: str
    upstream: Upstream
    parameters: Mapping[str, JSONValue] = Factory(dict)  # the arm's gateway-owned axes
    settings: Mapping[str, JSONValue] = Factory(dict)  # and its provider-owned ones
    price: ModelPrice | None = None  # None: not known


def channel_of(
    role: Role,
    served: RoleModel,
    recorder: AttemptRecorder,
    meter: Meter,
    key: TrialKey,
    attempt: int,
    seed: int,
    tape: Tape | None = None,
) -> MemoryChannel:
    """A role's door to its model, for one attempt."""
    return MemoryChannel(
        role,
        served.model,
        served.upstream,
        served.parameters,
        recorder,
        meter,
        key,
        attempt,
        seed,
        served.settings,
        served.price,
        tape,
    )


@define
class LiveTrial:
    """One attempt while it is open; an `OpenTrial`."""

    key: TrialKey
    attempt: int
    task: Task
    arm: Arm
    assignment: Assignment
    limits: Limits
    recorder: AttemptRecorder
    meter: Meter
    seed: int
    control: bool = False
    roles: Mapping[Role, RoleModel] = field(factory=dict)  # all but the agent
    required: Mapping[str, Deliverable] = field(factory=dict)
    gold: Gold | None = None
    tape: Tape | None = None  # where models' answers come from in a replay
    episodes: list[Episode] = field(factory=list)
    exit: HarnessExit | None = None
    _workdir: Path | None = None
    _channels: dict[Role, MemoryChannel] = field(factory=dict)

    def workdir(self) -> Path:
        """A folder of the trial's own, made when first asked for and removed at the end."""
        if self._workdir is None:
            self._workdir = Path(tempfile.mkdtemp(prefix="evalcore-"))
        return self._workdir

    def remove_workdir(self) -> None:
        """Remove the folder, if it was made."""
        if self._workdir is not None:
            shutil.rmtree(self._workdir, ignore_errors=True)

    def channel(self, role: Role, served: RoleModel) -> MemoryChannel:
        """A role's door to its model."""
        key, attempt = self.key, self.attempt
        return channel_of(role, served, self.recorder, self.meter, key, attempt, self.seed, self.tape)

    async def complete(self, role: Role, body: JSONObject) -> JSONObject:
        """Ask a role's model. What goes wrong is the environment's: no agent asked."""
        channel = self._channels.get(role)
        if channel is None:
            served = self.roles.get(role)
            if served is None:
                raise ConfigError(f"the role {role} has no model", hint=f"name one: --{role}-model provider/name")
            channel = self._channels[role] = self.channel(role, served)
        try:
            return await channel.complete(body)
        except LimitReached:
            raise
        except AgentError as error:
            raise self.meter.fail(InfraError(f"the {role}'s model: {error.message}"), role) from error
