"""Sides made up for tests of comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import evolve

from evalcore.report.compare import Comparison, Outcome, compare
from evalcore.report.sides import Side, SideBuilder
from evalcore.values.arm import Arm
from evalcore.values.stamp import ArmStamp, RunStamp
from evalcore.values.trial import Void
from tests.unit.report_samples import REACT, attempt, graded, stamp

Scores = Mapping[str, Sequence[int]]
VERSIONS: Any = {"evalcore": "0.1.0", "python": "3.11.7", "plugins": {"bfcl": "1"}}
OTHER_MODEL = ArmStamp(Arm("other", {"harness": "react", "model": "openai/gpt-6"}), "0.1.0")


def run(name: str, arms: Sequence[ArmStamp] = (REACT,), **changes: Any) -> RunStamp:
    """The stamp of one run."""
    return evolve(stamp(arms), **{"run": name, "versions": VERSIONS, **changes})


def side(scores: Scores, run_stamp: RunStamp, arm: ArmStamp = REACT, **changes: Any) -> Side:
    """A side with one trial for each score: 1 passes, 0 fails, -1 is void. A task's id makes its content."""
    builder = SideBuilder(run_stamp, arm)
    for task, repeats in scores.items():
        for repeat, score in enumerate(repeats):
            one = attempt(task, repeat, arm, **{"task_digest": f"digest of {task}", **changes})
            if score < 0:
                builder.add(evolve(one, exit=None, void=Void("provider", "503")), None)
            else:
                builder.add(*graded(one, "pass" if score else "fail"))
    return builder.finish()


def tasks(a: Iterable[int]) -> Scores:
    """One trial a task."""
    return {f"t{n:02}": (score,) for n, score in enumerate(a)}


def two(a: Scores, b: Scores, **options: Any) -> Comparison:
    """The same arm in two runs."""
    return compare(side(a, run("new")), side(b, run("old")), **options)


def only(made: Comparison) -> Outcome:
    """Of one benchmark."""
    (outcome,) = made.outcomes
    return outcome
