"""A run as the source of model answers: which recorded attempt stands for which trial of another run.

The key is (benchmark, task, arm, repeat), the arm by its axes without the model's address and without the digests of
files: what an edited prompt or agent file changes shows in the requests. Of a trial's attempts the one that counts is
the tape; a void one is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from attrs import frozen

from evalcore.contracts import Varying
from evalcore.engine.judging import replies_of
from evalcore.engine.store import TraceStore, every_grading, read_attempts, read_stamp
from evalcore.errors import ConfigError, PluginError
from evalcore.values.arm import Arm
from evalcore.values.descriptors import HarnessInfo
from evalcore.values.json import JSONObject, JSONValue, digest
from evalcore.values.trial import Attempt, TrialKey
from evalcore.wires.gateway.tape import NORMALISERS, Tape

ADDRESS: Final = frozenset({"base_url"})  # axes that say where a model is served, not which

Place: TypeAlias = tuple[str, str, str, int]


@frozen
class Replay:
    """What `--replay` and `--record-missing` ask for."""

    run: Path
    record_missing: bool = False

    def as_json(self) -> JSONObject:
        """For the stamp."""
        return {"run": self.run.name, "path": str(self.run.resolve()), "record_missing": self.record_missing}

    @classmethod
    def of(cls, stamped: JSONObject) -> Replay | None:
        """From a stamp; None for a run of live answers."""
        return cls(Path(str(stamped["path"])), stamped["record_missing"] is True) if stamped else None


class Recordings:
    """A finished or stopped run, opened to be replayed. Close it."""

    def __init__(self, replay: Replay) -> None:
        stamp = read_stamp(replay.run)
        self.replay = replay
        self.run = stamp.run
        self._arms = _arm_keys([a.arm for a in stamp.arms], stamp.run)
        self._attempts: dict[Place, Attempt] = {}
        for attempt in read_attempts(replay.run):
            arm = self._arms.get(attempt.key.arm)
            if attempt.void is None and arm is not None and not attempt.key.faults:
                self._attempts[attempt.key.benchmark, attempt.key.task, arm, attempt.key.repeat] = attempt
        self._judged: dict[str, tuple[JSONObject, ...]] | None = None
        self._traces = TraceStore(replay.run)

    def has(self, key: TrialKey, arm: Arm) -> bool:
        """Whether there is a recording of this trial."""
        return self._found(key, arm) is not None

    def tape(self, key: TrialKey, arm: Arm, varies: Iterable[str]) -> Tape:
        """The tape of a trial; an empty one where there is no recording. Raises InfraError if it cannot be read."""
        attempt, missing = self._found(key, arm), self.replay.record_missing
        if attempt is None:
            return Tape(f"run {self.run} has no result of this trial and", None, record_missing=missing)
        source = f"attempt {attempt.id} of run {self.run}"
        return Tape(source, self._traces.of(attempt), varies, record_missing=missing)

    def judged(self, key: TrialKey, arm: Arm) -> tuple[JSONObject, ...]:
        """What judges said of the recorded attempt."""
        if self._judged is None:
            self._judged = replies_of(every_grading(self.replay.run))
        attempt = self._found(key, arm)
        return () if attempt is None else self._judged.get(attempt.id, ())

    def close(self) -> None:
        """Close the traces."""
        self._traces.close()

    def _found(self, key: TrialKey, arm: Arm) -> Attempt | None:
        return self._attempts.get((key.benchmark, key.task, arm_key(arm), key.repeat))


def arm_key(arm: Arm) -> str:
    """An arm without the model's address and the digests of files: what it is across machines and edits."""
    axes = {k: v for k, v in arm.axes.items() if k not in ADDRESS and arm.defaults.get(k, ...) != v}
    return digest(axes)


def _arm_keys(arms: list[Arm], run: str) -> dict[str, str]:
    """By digest. Raises ConfigError where two arms would be one."""
    keys = {arm.digest: arm_key(arm) for arm in arms}
    if len(set(keys.values())) < len(keys):
        labels = ", ".join(arm.label for arm in arms)
        raise ConfigError(f"run {run} cannot be replayed: its configurations differ in an address alone ({labels})")
    return keys


def varying(info: HarnessInfo, harness: object, options: Mapping[str, JSONValue]) -> tuple[str, ...]:
    """What of an arm's requests varies from run to run. Raises ConfigError where the harness cannot be replayed."""
    if info.unreplayable:
        raise ConfigError(f"harness {info.name} cannot be replayed: {info.unreplayable}")
    names = dict.fromkeys((*info.varies, *(harness.varies(options) if isinstance(harness, Varying) else ())))
    if unknown := sorted(set(names) - set(NORMALISERS)):
        raise PluginError(
            f"harness {info.name} says that {', '.join(unknown)} varies; there are {', '.join(NORMALISERS)}",
            plugin=info.name,
            stage="validate",
        )
    return tuple(names)
