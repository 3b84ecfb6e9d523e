"""The stamp of a run: what produced every number in it. `run.toml` is this value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import Factory, frozen

from evalcore.values.arm import Arm
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import Dataset, Limits, Role

RUN_SCHEMA: Final = "evalcore.run/1"


def price_key(model: str, address: JSONValue = None) -> str:
    """What a model's price is stamped under: its name, and where it is served if the arm says so."""
    return f"{model} at {address}" if address else model


@frozen
class ArmStamp:
    """An arm in full, and the build of its harness as probed."""

    arm: Arm
    harness_version: str
    harness_build: str = ""
    control: bool = False
    uses_model: bool = True
    model_note: str = ""  # what must stand beside every number of the arm's model


@frozen
class BenchmarkStamp:
    """One benchmark of the run: its dataset, its tasks as planned, its grader."""

    selector: str
    dataset: Dataset
    tasks: int
    clusters: int
    tasks_digest: str  # over the ids and digests of the planned tasks, in order
    grader: str
    grader_stamp: JSONObject  # versions, upstream files' digests, what was replaced to import them
    limits: Limits = Limits()  # as applied: the stricter of the benchmark's and the study's
    standard_limits: bool = True  # False: the study tightened the benchmark's own
    floor_note: str = ""
    of_tasks: int = 0  # how many the selector has in all
    oracle_note: str = ""  # why the oracle control does not run here, if it does not
    roles: Mapping[Role, str] = Factory(dict)  # other roles that its trials have -> the model that upstream gives them
    unscored: tuple[str, ...] = ()  # tasks that run because others require them, and are never counted
    cluster_of: Mapping[str, str] = Factory(dict)  # task -> cluster, for the tasks that are not their own


@frozen
class GradingStamp:
    """What made a grading that came after the run: each benchmark's grader, by selector."""

    grading: str
    graders: Mapping[str, JSONObject]


@frozen
class GroupStamp:
    """A group that the study names: its members by selector, with their weights."""

    name: str
    members: Mapping[str, float]


@frozen
class RunStamp:
    """Everything that a cell's number depends on, written before the first trial."""

    run: str
    created: str
    study_name: str
    study_digest: str
    study: JSONObject  # the study in full, as `evalcore plan --write` prints it
    seed: int
    repeats: int
    arms: tuple[ArmStamp, ...]
    benchmarks: tuple[BenchmarkStamp, ...]
    grading: str  # digest of graders, toolkits and judge: the name of the file under gradings/
    schema: str = RUN_SCHEMA
    groups: tuple[GroupStamp, ...] = ()
    isolation: str = "none"
    versions: JSONObject = Factory(dict)  # evalcore, python, plugins
    toolkits: JSONObject = Factory(dict)
    host: JSONObject = Factory(dict)
    replay: JSONObject = Factory(dict)  # `run`, `path`, `record_missing`: where models' answers came from, if not live
    parent: str | None = None  # the run that `rerun` repeated
    prices: JSONObject = Factory(dict)  # the rows that costs were calculated with, by `price_key`; or why there is none

    @property
    def imported(self) -> str | None:
        """The tool whose results this run is made of; None for one that was run here."""
        source = self.study.get("imported")
        return str(source.get("tool", "elsewhere")) if isinstance(source, dict) else None
