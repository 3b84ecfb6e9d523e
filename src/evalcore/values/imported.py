"""A run made of somebody else's files, as values: what an importer reads and the core writes down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import Factory, frozen

from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import Dataset, Role
from evalcore.values.trial import Exit, Verdict, Void
from evalcore.values.usage import Usage


@frozen
class ImportedArm:
    """A configuration as the other tool had it: `axes` need `harness`, and `model` where one was used.

    `version` is that of its harness; empty where the file does not say it.
    """

    handle: str
    axes: Mapping[str, JSONValue]
    version: str = ""
    control: bool = False


@frozen
class ImportedTask:
    """A task as far as the file tells it. `content` is what the digest is made of: the same text, the same task."""

    id: str
    content: JSONValue
    cluster: str = ""


@frozen
class ImportedBenchmark:
    """Tasks, the dataset they are of, and what graded them (its name, and all that the file says of it)."""

    name: str
    dataset: Dataset
    tasks: tuple[ImportedTask, ...]
    grader: str
    grader_stamp: JSONObject = Factory(dict)


@frozen
class ImportedTrial:
    """One attempt. Exactly one of `exit` and `void` is set; `verdict` is None where it was not graded.

    `events` are a trace's (`values.trace`), each with its `t` in seconds; `started` is RFC 3339.
    """

    benchmark: str
    task: str
    arm: str  # its handle
    repeat: int
    exit: Exit | None
    void: Void | None
    verdict: Verdict | None
    started: str
    wall_s: float
    usage: Mapping[Role, Usage] = Factory(dict)
    tool_calls: int = 0
    tool_errors: int = 0
    events: tuple[JSONObject, ...] = ()
    number: int = 1


@frozen
class ImportedRun:
    """A whole run. `source` says which tool wrote it, in which version and format; `trials` may be made as they go."""

    name: str
    created: str
    source: JSONObject
    benchmarks: tuple[ImportedBenchmark, ...]
    arms: tuple[ImportedArm, ...]
    trials: Iterable[ImportedTrial]
    repeats: int = 1
    seed: int = 0
