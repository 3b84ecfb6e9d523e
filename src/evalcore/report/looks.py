"""Who has looked at a confirmatory study while it was running, and which other runs there are of its plan.

A look at results before the end is no fault, but it has to be told: who stops when the numbers please has tested more
often than the study says. Looks are kept in the run, in `looks.jsonl`, one line each, and never change a verdict.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from evalcore.engine.store import STAMP
from evalcore.report.analysis import Look, Sibling
from evalcore.report.model import Report
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.stamp import RunStamp

LOOKS: Final = "looks.jsonl"
MOST_SIBLINGS: Final = 20  # that are told; more are not looked for
_HEAD: Final = 4096  # bytes of a stamp that hold its first fields
_FIELD: Final = re.compile(r'^(run|created|study_name|study_digest) = "((?:[^"\\]|\\.)*)"$', re.MULTILINE)
_SIZE: Final = ("repeats", "seed", "name", "budget_usd")  # of [study]: how much is run, not what


def peeks_of(path: Path) -> tuple[Look, ...]:
    """The looks that a run has recorded; a line that is none is passed over."""
    try:
        lines = (path / LOOKS).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ()
    return tuple(look for line in lines if (look := _look(line)) is not None)


def _look(line: str) -> Look | None:
    try:
        value = json.loads(line)
        return Look(str(value["at"]), int(value["trials"]), bool(value.get("planned", False)))
    except (ValueError, TypeError, LookupError):
        return None


def note_peek(path: Path, report: Report, at: str) -> bool:
    """Record that the contrasts were read before the study was at its end; once for each number of graded trials.

    Returns whether this was such a look. A run that cannot be written to is read all the same.
    """
    design = report.design
    trials = sum(cell.graded for cell in report.cells)
    ended = {s.stop.benchmark for s in design.stops} if design else set()
    missing = any(cell.not_run for cell in report.cells if cell.benchmark.selector not in ended)
    if design is None or not missing or not trials or design.stopping == "anytime":
        return False
    record_look(path, trials, at, planned=any(c.look for c in report.contrasts))
    return True


def record_look(path: Path, trials: int, at: str, *, planned: bool = False) -> None:
    """Write down that contrasts were read when so many trials were graded, unless that is known.

    A run that cannot be written to is read all the same: the look is told, and cannot be kept.
    """
    if any(look.trials == trials for look in peeks_of(path)):
        return
    line = json.dumps({"at": at, "trials": trials, "planned": planned})
    with suppress(OSError), (path / LOOKS).open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def siblings_of(path: Path, stamp: RunStamp) -> tuple[Sibling, ...]:
    """Other runs of the same plan beside this one, oldest first.

    Runs of the same study, and those that differ from it only in repeats, seed or the choice of tasks: each of them is
    another look at the same question.
    """
    found: list[Sibling] = []
    for folder in _others(path):
        sibling = _sibling(folder / STAMP, stamp)
        if sibling is not None:
            found.append(sibling)
        if len(found) == MOST_SIBLINGS:
            break
    return tuple(sorted(found, key=lambda s: (s.created, s.run)))


def _others(path: Path) -> Iterator[Path]:
    try:
        here = path.resolve()
        folders = sorted(p for p in here.parent.iterdir() if p != here and (p / STAMP).is_file())
    except OSError:
        return
    yield from folders


def _sibling(file: Path, stamp: RunStamp) -> Sibling | None:
    """A stamp that is of this plan. What cannot be read is none."""
    try:
        with file.open(encoding="utf-8") as stream:
            head = dict(_FIELD.findall(stream.read(_HEAD)))
        if head.get("study_digest") == stamp.study_digest:
            return Sibling(head.get("run", file.parent.name), head.get("created", ""))
        if head.get("study_name") != stamp.study_name:
            return None
        whole = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    theirs = whole.get("study")
    if not isinstance(theirs, dict) or _plan(theirs) != _plan(stamp.study):
        return None
    changed = (
        f"{whole.get('repeats')} repeats, and here {stamp.repeats}" if whole.get("repeats") != stamp.repeats else ""
    )
    tasks = "other tasks" if theirs.get("benchmarks") != stamp.study.get("benchmarks") else ""
    seed = "another seed" if whole.get("seed") != stamp.seed else ""
    said = "; ".join(filter(None, (changed, tasks, seed)))
    return Sibling(head.get("run", file.parent.name), head.get("created", ""), said or "the same otherwise")


def _plan(study: Mapping[str, JSONValue]) -> JSONObject:
    """What a study asks, without how much of it is run."""
    head = study.get("study")
    kept = {k: v for k, v in head.items() if k not in _SIZE} if isinstance(head, dict) else {}
    return {**{k: v for k, v in study.items() if k not in ("study", "benchmarks")}, "study": kept}
