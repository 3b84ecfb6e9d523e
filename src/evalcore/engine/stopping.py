"""The end of a benchmark before its last task: a study's stopping rule looks at what is settled, and says so.

The rule itself is the report's (`evalcore.report.stopping`). Here is what the engine asks of it, and the record that a
run keeps of its word: `stops.jsonl`, one line a benchmark. What runs after a stop never changes what was said at it.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from attrs import asdict, frozen

from evalcore.values.trial import Attempt, Grading, TrialKey

if TYPE_CHECKING:
    from evalcore.engine.plan import Plan

STOPS: Final = "stops.jsonl"
_log = logging.getLogger("evalcore")


@frozen
class Stop:
    """A benchmark's claims were all decided after the first `tasks` of its `of` tasks, at a planned `look` (from 1).

    `look` is None where the rule may be read at any time. `reason` says what was decided; `at` is RFC 3339.
    """

    benchmark: str
    look: int | None
    tasks: int
    of: int
    at: str
    reason: str


class StopsRuns(Protocol):
    """A stopping rule at work: told of what is on record and what is settled, and asked whether that is enough."""

    def add(self, attempt: Attempt, grading: Grading | None) -> None:
        """One more attempt is on record."""

    def settle(self, key: TrialKey) -> None:
        """This trial will have no other result."""

    async def check(self, benchmark: str) -> Stop | None:
        """The benchmark's stop, if a look has been reached since the last call and decides all its claims."""


RuleOf: TypeAlias = "Callable[[Plan, Path], StopsRuns | None]"


def keep_stop(path: Path, stop: Stop) -> None:
    """Write it into the run, durably. That it cannot be written is told, and is no failure: a later look finds it."""
    try:
        with (path / STOPS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(stop)) + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        _log.warning("cannot write %s: %s", path / STOPS, error.strerror)


def read_stops(path: Path) -> Mapping[str, Stop]:
    """The stops that a run has recorded, by benchmark, the first of each; a line that is none is passed over."""
    try:
        lines = (path / STOPS).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    stops: dict[str, Stop] = {}
    for line in lines:
        stop = _read(line)
        if stop is not None:
            stops.setdefault(stop.benchmark, stop)
    return stops


def _read(line: str) -> Stop | None:
    try:
        value = json.loads(line)
        look = None if value["look"] is None else int(value["look"])
        stop = Stop(
            str(value["benchmark"]), look, int(value["tasks"]), int(value["of"]), str(value["at"]), str(value["reason"])
        )
    except (ValueError, TypeError, LookupError):
        return None
    return stop if stop.tasks > 0 else None
