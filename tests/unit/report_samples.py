"""Runs made up for tests of reports: a stamp, and attempts with their gradings."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve
from rich.console import Console

from evalcore.report.build import ReportBuilder
from evalcore.report.model import Cell, Report
from evalcore.report.text import render
from evalcore.values.arm import Arm
from evalcore.values.stamp import ArmStamp, BenchmarkStamp, RunStamp
from evalcore.values.task import Dataset, Limits
from evalcore.values.trial import Attempt, Exit, Grading, TraceRef, TrialKey, Verdict, Void
from evalcore.values.usage import Usage

Pair = tuple[Attempt, Grading | None]

REACT = ArmStamp(Arm("plain", {"harness": "react", "model": "openai/gpt-5.2"}), "0.1.0")
CONSTRAINED = ArmStamp(
    Arm("constrained", {"harness": "react", "model": "openai/gpt-5.2", "tool_protocol": "constrained"}), "0.1.0"
)
ORACLE = ArmStamp(Arm("oracle", {"harness": "oracle"}), "0.1.0", control=True, uses_model=False)
NOOP = ArmStamp(Arm("noop", {"harness": "noop"}), "0.1.0", control=True, uses_model=False)
BFCL = BenchmarkStamp(
    "bfcl-simple-python",
    Dataset("BFCL", "v4", "2026-03-23", "Apache-2.0", "bfcl-eval==2026.3.23", files={"simple.json": "ab" * 32}),
    tasks=6,
    clusters=6,
    tasks_digest="cd" * 32,
    grader="bfcl-ast",
    grader_stamp={"bfcl-eval": "2026.3.23"},
)
F1 = {"t1": (1, 1, 1), "t2": (1, 0, 1), "t3": (0, 0, 0), "t4": (1, 1, 0), "t5": (0, 0, 1), "t6": (1, 1, 1)}


def stamp(
    arms: Sequence[ArmStamp] = (REACT,), benchmarks: Sequence[BenchmarkStamp] = (BFCL,), repeats: int = 3
) -> RunStamp:
    """The stamp of a run."""
    return RunStamp(
        "run-1", "2026-12-01T10:00:00Z", "sample", "ef" * 32, {}, 1, repeats, tuple(arms), tuple(benchmarks), "12" * 32
    )


def attempt(task: str, repeat: int = 0, arm: ArmStamp = REACT, **changes: object) -> Attempt:
    """An attempt that completed, with one call of a priced model and one tool call."""
    number = changes.get("number", 1)
    plain = Attempt(
        id=f"{arm.arm.handle}/{task}/{repeat}/{number}",
        key=TrialKey(BFCL.selector, task, arm.arm.digest, repeat),
        task_digest="",
        number=1,
        exit=Exit("completed"),
        void=None,
        started="2026-12-01T10:00:00Z",
        wall_s=2.0,
        usage={"agent": Usage(1, 100, 20, cost_usd=0.01)} if arm.uses_model else {},
        tool_calls=1,
        tool_errors=0,
        trace=TraceRef("0", 0, 0),
    )
    return evolve(plain, **changes)


def void(task: str, repeat: int = 0, number: int = 1, kind: str = "provider") -> Pair:
    """An attempt that infrastructure spoilt."""
    return attempt(task, repeat, number=number, exit=None, void=Void(kind, "503")), None


def graded(one: Attempt, outcome: str, **verdict: object) -> Pair:
    """An attempt with its verdict."""
    return one, Grading(one.id, Verdict(outcome, **verdict), 0.001)  # type: ignore[arg-type]


def trials(scores: Mapping[str, Sequence[int]], arm: ArmStamp = REACT) -> list[Pair]:
    """One graded attempt for each score of each task: 1 passes, 0 fails."""
    return [
        graded(attempt(task, repeat, arm), "pass" if score else "fail")
        for task, repeats in scores.items()
        for repeat, score in enumerate(repeats)
    ]


def report(pairs: Iterable[Pair], run: RunStamp | None = None, **options: object) -> Report:
    """The report of some attempts."""
    builder = ReportBuilder(run or stamp(), **options)  # type: ignore[arg-type]
    for one, grading in pairs:
        builder.add(one, grading)
    return builder.finish()


def cell(pairs: Iterable[Pair], run: RunStamp | None = None, **options: object) -> Cell:
    """The one cell of a report."""
    (only,) = report(pairs, run, **options).cells
    return only


LIMITED = evolve(BFCL, limits=Limits(tokens=200_000, wall_s=600.0), standard_limits=False)


def shown(whole: Report, width: int = 100) -> str:
    """What the text renderer prints."""
    console = Console(file=io.StringIO(), width=width)
    render(whole, console)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def flat(text: str) -> str:
    """The same with every run of spaces, line breaks and middle dots as one space."""
    return " ".join(text.replace("·", " ").split())
