"""Graders, each of which breaks one rule of the suite. Run by `test_suites_catch`; none may pass."""
# ruff: noqa: N801 - a broken part stands where a fixture looks for it, under the name of an attribute

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import pytest
from attrs import evolve

from evalcore.contracts import Grader
from evalcore.errors import InfraError
from evalcore.testing import GraderCase, GraderConformance
from evalcore.testing.toy import ToyGrader
from evalcore.values.json import JSONObject
from evalcore.values.task import Task
from evalcore.values.trial import Deliverable, Verdict

counter = itertools.count()


class Moody(ToyGrader):
    async def grade(self, *given: Any) -> Verdict:
        return evolve(await super().grade(*given), details={"number": next(counter)})


class GraderBroken(GraderConformance):
    """A grader for `toy-weather` that is broken in one way."""

    plugins = ("evalcore.testing.toy",)
    grader = "toy"
    benchmark = "toy-weather"
    grader_class: ClassVar[Any]
    breaks: ClassVar[str]
    says: ClassVar[str]

    @pytest.fixture
    def make_grader(self) -> Callable[[], Grader]:
        makes: Callable[[], Grader] = self.grader_class
        return makes


def giving(**changes: Any) -> Any:
    class Broken(ToyGrader):
        async def grade(self, *given: Any) -> Verdict:
            return evolve(await super().grade(*given), **changes)

    return Broken


class TestGraderNobodyRegistered(GraderBroken):
    breaks, says = "test_it_is_registered", "unknown grader 'no-such-grader'"
    grader = "no-such-grader"
    grader_class = ToyGrader


class TestEmptyStamp(GraderBroken):
    breaks, says = "test_the_stamp_is_stable", "the stamp says nothing"

    class grader_class(ToyGrader):
        async def stamp(self) -> JSONObject:
            return {}


class TestStampOfTheMoment(GraderBroken):
    breaks, says = "test_the_stamp_is_stable", "asked twice, the stamp is another"

    class grader_class(ToyGrader):
        async def stamp(self) -> JSONObject:
            return {"made": next(counter)}


class TestStampOfThisGrader(GraderBroken):
    breaks, says = "test_the_stamp_is_stable", "another grader has another stamp"

    class grader_class(ToyGrader):
        def __init__(self) -> None:
            self.number = next(counter)

        async def stamp(self) -> JSONObject:
            return {"made": self.number}


class TestPassesEverybody(GraderBroken):
    breaks, says = "test_it_tells_success_from_failure", "give it one of each kind"
    grader_class = giving(outcome="pass", score=1.0)


class TestUnexpectedVerdict(GraderBroken):
    breaks, says = "test_it_tells_success_from_failure", "and pass is expected"
    grader_class = ToyGrader

    @pytest.fixture
    def cases(self) -> Sequence[GraderCase]:
        return [GraderCase(Task("t", {}, "right"), Deliverable("wrong"), "pass")]


class TestOutcomeNobodyKnows(GraderBroken):
    breaks, says = "test_verdicts_are_well_formed", "the outcome 'maybe' is none of"
    grader_class = giving(outcome="maybe")


class TestGraderErrorAsAnOutcome(GraderBroken):
    breaks, says = "test_verdicts_are_well_formed", "the outcome 'grader_error' is none of"
    grader_class = giving(outcome="grader_error")


class TestScoreOfPercent(GraderBroken):
    breaks, says = "test_verdicts_are_well_formed", "the score 73.0 is not within 0 and 1"
    grader_class = giving(score=73.0)


class TestScoreThatIsNone(GraderBroken):
    breaks, says = "test_verdicts_are_well_formed", "the score nan is not within 0 and 1"
    grader_class = giving(score=float("nan"))


class TestDetailsOfASet(GraderBroken):
    breaks, says = "test_verdicts_are_well_formed", "of type set, no JSON"
    grader_class = giving(details={"tags": {"a"}})


class TestFlagsOfAList(GraderBroken):
    breaks, says = "test_verdicts_are_well_formed", "flags are a tuple of texts"
    grader_class = giving(flags=["a"])


class TestViewsOfNumbers(GraderBroken):
    breaks, says = "test_verdicts_are_well_formed", "views are texts with True or False"
    grader_class = giving(views={"second": 0.5})


class TestBoundsOfAPass(GraderBroken):
    breaks, says = "test_verdicts_are_well_formed", "bounds belong to `ungraded`"
    grader_class = giving(bounds=(0.0, 1.0))


class TestGraderThatLearns(GraderBroken):
    breaks, says = "test_grading_is_pure", "is graded in two ways"
    grader_class = Moody


class TestGraderThatWrites(GraderBroken):
    breaks, says = "test_grading_is_pure", "grading changed what was graded"

    class grader_class(ToyGrader):
        async def grade(self, task: Task, *given: Any) -> Verdict:
            task.data["graded"] = True
            return await super().grade(task, *given)


class TestGraderThatNeedsATrace(GraderBroken):
    breaks, says = "test_it_grades_without_a_trace", "no trace: raised StopIteration"

    class grader_class(ToyGrader):
        async def grade(self, *given: Any) -> Verdict:
            try:
                next(given[3].events())
            except StopIteration as error:
                raise RuntimeError("no trace: raised StopIteration") from error
            return await super().grade(*given)


class TestGraderThatTrusts(GraderBroken):
    breaks, says = "test_it_survives_hostile_deliverables", "raised IndexError"

    class grader_class(ToyGrader):
        async def grade(self, task: Task, deliverable: Deliverable, *given: Any) -> Verdict:
            if deliverable.answer is not None:
                int(deliverable.answer.split()[0])
            return await super().grade(task, deliverable, *given)


class TestGraderThatBlamesTheMachine(GraderBroken):
    breaks, says = "test_it_survives_hostile_deliverables", "raised InfraError"

    class grader_class(ToyGrader):
        async def grade(self, task: Task, deliverable: Deliverable, *given: Any) -> Verdict:
            if len(deliverable.answer or "") > 1000:
                raise InfraError("too long")
            return await super().grade(task, deliverable, *given)


class TestGraderThatHangs(GraderBroken):
    breaks, says = "test_it_survives_hostile_deliverables", "raised TimeoutError"
    patience_s = 0.3

    class grader_class(ToyGrader):
        async def grade(self, task: Task, deliverable: Deliverable, *given: Any) -> Verdict:
            if len(deliverable.calls) > 1000:
                await asyncio.sleep(60)
            return await super().grade(task, deliverable, *given)
