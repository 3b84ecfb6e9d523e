"""The report as JUnit XML, for the test pages of CI systems: a suite for each cell, a case for each task.

| a task's trials                                     | the case             |
|-----------------------------------------------------|----------------------|
| any was graded and not solved                       | failure              |
| of the others, any lost to infrastructure or grader | error                |
| of the others, any ungraded                         | skipped              |
| all solved                                          | passed               |
| a control that is no oracle, and did not solve it   | skipped: as expected |

Planned trials without an attempt are one skipped case: the ledgers do not name their tasks. The report says what the
numbers are; the ledgers are read, by the rules of `report.build`, for which task they came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias
from xml.etree import ElementTree as ET

from attrs import frozen

from evalcore.engine.store import read_stamp
from evalcore.report.load import judged
from evalcore.report.model import Cell, Exclusion, MetricValue, Report
from evalcore.report.words import plural, safe
from evalcore.values.trial import RESULTS, SUCCESSES, Attempt, Grading, Outcome, TrialKey

State: TypeAlias = Literal["passed", "failure", "error", "skipped"]
Place: TypeAlias = tuple[str, str, str | None, str]  # benchmark, arm's digest, provenance, isolation: a cell
Tasks: TypeAlias = Mapping[str, Sequence["TaskTrial"]]

NOT_RUN: Final = "(not run)"
_LOST: Final = frozenset({"infra_error", "grader_error"})


@frozen
class TaskTrial:
    """One trial by the attempt that decides it."""

    repeat: int
    attempt: str
    number: int
    outcome: Outcome | Exclusion
    wall_s: float
    detail: str = ""  # what went wrong, in the words of whoever saw it


def read_trials(run: Path, grading: str) -> dict[Place, dict[str, list[TaskTrial]]]:
    """Every trial of a run by cell and task, from its ledgers. Raises ConfigError for a broken line."""
    return by_task(judged(run, read_stamp(run), grading))


def by_task(pairs: Iterable[tuple[Attempt, Grading | None]]) -> dict[Place, dict[str, list[TaskTrial]]]:
    """The same from attempts: a trial's first result stands, and without one its latest attempt decides."""
    deciding: dict[TrialKey, tuple[Place, TaskTrial]] = {}
    for attempt, grading in pairs:
        key = attempt.key
        new = _trial(attempt, grading)
        old = deciding.get(key)
        if old is None or _takes_over(new, old[1]):
            deciding[key] = ((key.benchmark, key.arm, attempt.provenance, attempt.isolation), new)
    cells: dict[Place, dict[str, list[TaskTrial]]] = {}
    for key, (place, trial) in deciding.items():
        cells.setdefault(place, {}).setdefault(key.task, []).append(trial)
    return cells


def _takes_over(new: TaskTrial, old: TaskTrial) -> bool:
    if old.outcome in RESULTS:
        return False
    return new.outcome in RESULTS or old.number <= new.number


def _trial(attempt: Attempt, grading: Grading | None) -> TaskTrial:
    outcome: Outcome | Exclusion = grading.verdict.outcome if grading else "ungraded"
    detail = ""
    if attempt.void is not None:
        outcome, detail = "infra_error", f"{attempt.void.kind}: {attempt.void.message}"
    elif grading is not None and grading.error:
        detail = grading.error
    elif attempt.exit is not None and attempt.exit.kind != "completed":
        detail = ": ".join(filter(None, (attempt.exit.kind, attempt.exit.limit, attempt.exit.detail)))
    return TaskTrial(attempt.key.repeat, attempt.id, attempt.number, outcome, attempt.wall_s, detail)


def encode(report: Report, trials: Mapping[Place, Tasks]) -> bytes:
    """The file."""
    root = ET.Element("testsuites", name=safe(report.study_name))
    worlds = [(cell.benchmark.selector, cell.arm.arm.digest) for cell in report.cells]
    for number, (cell, pair) in enumerate(zip(report.cells, worlds, strict=True)):
        name = _suite_name(cell, split=worlds.count(pair) > 1)
        tasks = trials.get((*pair, cell.provenance, cell.isolation), {})
        missing = cell.not_run if pair not in worlds[:number] else 0  # they belong to no world: told once
        root.append(_suite(report, cell, name, tasks, missing))
    _count(root, root.iter("testcase"))
    ET.indent(root)
    data: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return data + b"\n"


def _suite_name(cell: Cell, *, split: bool) -> str:
    """Also each case's class: many readers know a test by its class and name alone."""
    name = f"{cell.benchmark.selector}.{cell.arm.arm.handle}"
    return safe(f"{name}.{cell.provenance}.{cell.isolation}" if split else name)


def _suite(report: Report, cell: Cell, name: str, tasks: Tasks, missing: int) -> ET.Element:
    suite = ET.Element("testsuite", name=name)
    properties = ET.SubElement(suite, "properties")
    for key, value in _properties(report, cell):
        ET.SubElement(properties, "property", name=safe(key), value=safe(value))
    for task, trials in sorted(tasks.items()):
        suite.append(_case(report, cell, name, task, sorted(trials, key=lambda trial: trial.repeat)))
    if missing:
        case = ET.SubElement(suite, "testcase", classname=name, name=NOT_RUN, time="0.000")
        ET.SubElement(case, "skipped", message=f"partial: {plural(missing, 'planned trial')} not run")
    _count(suite, suite.iter("testcase"))
    suite.set("timestamp", safe(report.created))
    return suite


def _case(report: Report, cell: Cell, suite: str, task: str, trials: Sequence[TaskTrial]) -> ET.Element:
    seconds = sum(trial.wall_s for trial in trials)
    case = ET.Element("testcase", classname=suite, name=safe(task), time=f"{seconds:.3f}")
    state, message, kind = _judged(cell, trials)
    if state != "passed":
        told = ET.SubElement(case, state, message=message)
        if state != "skipped":
            told.set("type", kind)
        told.text = "\n".join(_line(report, trial) for trial in trials)
    return case


def _judged(cell: Cell, trials: Sequence[TaskTrial]) -> tuple[State, str, str]:
    """What a case is, in a sentence, and the outcome behind it; see the table at the top."""
    graded = [trial for trial in trials if trial.outcome in RESULTS]
    wrong = [trial for trial in graded if trial.outcome not in SUCCESSES]
    if wrong:
        message = f"not solved in {len(wrong)} of {plural(len(graded), 'graded trial')}"
        if cell.arm.control and cell.arm.arm.harness != "oracle":
            return "skipped", f"{message}: a control, which shows the floor and is no score", ""
        return "failure", message, wrong[0].outcome
    if lost := [trial for trial in trials if trial.outcome in _LOST]:
        whose = "the grader" if all(trial.outcome == "grader_error" for trial in lost) else "infrastructure"
        return "error", f"{len(lost)} of {plural(len(trials), 'trial')} not counted: {whose} failed", lost[0].outcome
    if open_ := len(trials) - len(graded):
        return "skipped", f"{open_} of {plural(len(trials), 'trial')} ungraded", ""
    return "passed", "", ""


def _line(report: Report, trial: TaskTrial) -> str:
    detail = f" ({trial.detail})" if trial.detail else ""
    return safe(f"repeat {trial.repeat}: {trial.outcome}{detail}; evalcore trace {report.run} {trial.attempt}")


def _properties(report: Report, cell: Cell) -> Iterator[tuple[str, str]]:
    """The stamp in short, and the cell's numbers as the report has them."""
    yield from (("run", report.run), ("grading", report.grading), ("benchmark", cell.benchmark.selector))
    yield from (("arm", cell.arm.arm.label), ("arm.digest", cell.arm.arm.digest), ("isolation", cell.isolation))
    yield "provenance", cell.provenance or ""
    yield from ((f"{name}.reason", reason) for name, reason in cell.reasons.items() if name == "provenance")
    yield from (("planned", str(cell.planned)), ("trials", str(cell.trials)), ("graded", str(cell.graded)))
    yield from ((f"excluded.{name}", str(n)) for name, n in cell.excluded.items())
    for name, metric in (*cell.metrics.items(), *cell.views.items()):
        yield from ((".".join(filter(None, (name, part))), text) for part, text in _parts(metric))
    yield from (("note", note) for note in cell.notes)


def _parts(metric: MetricValue) -> Iterator[tuple[str, str]]:
    yield "", "" if metric.value is None else repr(metric.value)
    if metric.low is not None:
        yield from (("low", repr(metric.low)), ("high", repr(metric.high)), ("level", repr(metric.level)))
    yield "estimand", metric.method
    if metric.reason is not None:
        yield "reason", metric.reason


def _count(element: ET.Element, cases: Iterable[ET.Element]) -> None:
    """Set the totals of a suite, or of all."""
    totals = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    names = {"failure": "failures", "error": "errors", "skipped": "skipped"}
    seconds = 0.0
    for case in cases:
        totals["tests"] += 1
        seconds += float(case.get("time", "0"))
        for child in case:
            totals[names[child.tag]] += 1
    for name, n in totals.items():
        element.set(name, str(n))
    element.set("time", f"{seconds:.3f}")
