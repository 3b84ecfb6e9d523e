"""Does a grader keep its promises? Subclass `GraderConformance`, name it and a benchmark of its, inherit the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Final, cast

import pytest
from attrs import evolve, frozen

from evalcore.builtin.controls import NoopHarness, OracleHarness
from evalcore.contracts import Adapter, Grader
from evalcore.engine.selectors import find_benchmark
from evalcore.engine.services import LocalServices
from evalcore.errors import GraderError
from evalcore.plugins import Registry
from evalcore.testing.rig import load, play, spread
from evalcore.testing.suite.base import Conformance
from evalcore.testing.suite.checks import HOSTILE_TEXTS, HOSTILE_VALUES, record_fault
from evalcore.values.descriptors import GraderInfo, ToolkitInfo
from evalcore.values.json import JSONObject, JSONValue, canonical
from evalcore.values.task import PLAYABLE, Call, Task
from evalcore.values.trace import TraceReader
from evalcore.values.trial import RESULTS, SUCCESSES, Deliverable, Evidence, Outcome, Verdict

OUTCOMES: Final = frozenset({*RESULTS, "ungraded"})
NOTHING: Final = TraceReader(())


@frozen
class GraderCase:
    """Something to grade, and what comes of it if that is known."""

    task: Task
    deliverable: Deliverable
    expected: Outcome | None = None
    evidence: Evidence = Evidence()
    trace: TraceReader = NOTHING


class GraderConformance(Conformance):
    """Required: `grader`, its registered name, and `benchmark`, a selector whose tasks it grades.

    Cases are what oracle and noop leave in some of those tasks. Override the fixture `cases` where there is no such
    benchmark, or to hold particular verdicts; and `make_grader` for a grader that is not registered.
    """

    grader: ClassVar[str]
    benchmark: ClassVar[str] = ""
    sample: ClassVar[int] = 4

    @pytest.fixture
    def make_grader(self, registry: Registry, services: LocalServices) -> Callable[[], Grader]:
        """Makes the grader anew at each call."""
        info = registry.get(GraderInfo, "grader", self.grader)
        factory = registry.factory(info)
        return lambda: cast(Grader, factory(services, info))

    @pytest.fixture
    def judge(self, make_grader: Callable[[], Grader]) -> Grader:
        """A grader."""
        return make_grader()

    @pytest.fixture
    def cases(self, registry: Registry, services: LocalServices) -> Sequence[GraderCase]:
        """What the controls leave in a sample of the benchmark's tasks, played once for the class."""
        anything = self._kept.anything
        if "cases" not in anything:
            assert self.benchmark, "name a `benchmark`, or override the fixture `cases`"
            info, selector = find_benchmark(registry, self.benchmark)
            adapter: Adapter = registry.factory(info)(services, info, selector)
            anything["cases"] = self.run(_played(adapter, registry, services, self.sample))
        return cast("Sequence[GraderCase]", anything["cases"])

    def verdict(self, judge: Grader, case: GraderCase) -> Verdict:
        """The verdict on a case."""
        return self.run(judge.grade(case.task, case.deliverable, case.evidence, case.trace, None))

    def test_it_is_registered(self, registry: Registry) -> None:
        """One line of summary; its toolkits are registered."""
        info = registry.get(GraderInfo, "grader", self.grader)
        assert info.summary.strip() and "\n" not in info.summary, "the summary is one line"
        missing = set(info.toolkits) - set(registry.all(ToolkitInfo))
        assert not missing, f"toolkits that are not registered: {sorted(missing)}"

    def test_the_stamp_is_stable(self, judge: Grader, make_grader: Callable[[], Grader]) -> None:
        """It says something, is JSON, and is the same when asked again and of another grader: `resume` compares it."""
        stamp = self.run(judge.stamp())
        assert type(stamp) is dict and stamp, "the stamp says nothing: at least a version"
        fault = record_fault(stamp)
        assert fault is None, f"the stamp: {fault}"
        assert self.run(judge.stamp()) == stamp, "asked twice, the stamp is another"
        assert self.run(make_grader().stamp()) == stamp, "another grader has another stamp"

    def test_it_tells_success_from_failure(self, judge: Grader, cases: Sequence[GraderCase]) -> None:
        """Among the cases are both; and each that says what is expected gets it."""
        verdicts = [self.verdict(judge, case) for case in cases]
        for case, verdict in zip(cases, verdicts, strict=True):
            known = case.expected is None or verdict.outcome == case.expected
            assert known, f"task {case.task.id!r} gets {verdict}, and {case.expected} is expected"
        outcomes = {verdict.outcome for verdict in verdicts}
        assert outcomes & SUCCESSES and outcomes - SUCCESSES, f"all cases get {outcomes}: give it one of each kind"

    def test_verdicts_are_well_formed(self, judge: Grader, cases: Sequence[GraderCase]) -> None:
        """A legal outcome, a score in [0, 1] or none, details that the ledger keeps, flags and views of plain types."""
        for case in cases:
            fault = verdict_fault(self.verdict(judge, case))
            assert fault is None, f"the verdict on task {case.task.id!r}: {fault}"

    def test_grading_is_pure(
        self, judge: Grader, make_grader: Callable[[], Grader], cases: Sequence[GraderCase]
    ) -> None:
        """The same verdict again, in another order, and by another grader; nothing that was graded is changed."""
        before = [_content(case) for case in cases]
        first = [self.verdict(judge, case) for case in cases]
        other = make_grader()
        second = [self.verdict(other, case) for case in reversed(cases)][::-1]
        again = [self.verdict(judge, case) for case in cases]
        for case, *three in zip(cases, first, second, again, strict=True):
            assert three[0] == three[1] == three[2], f"task {case.task.id!r} is graded in two ways: {three}"
        assert before == [_content(case) for case in cases], "grading changed what was graded"

    def test_it_grades_without_a_trace(self, judge: Grader, cases: Sequence[GraderCase]) -> None:
        """A verdict, or GraderError: an attempt may have ended before anything was recorded."""
        for case in cases:
            self._verdict_or_refusal(judge, evolve(case, trace=NOTHING), "no trace")

    def test_it_survives_hostile_deliverables(self, judge: Grader, cases: Sequence[GraderCase]) -> None:
        """Whatever an agent can leave gets a verdict, or GraderError, which is not counted; never anything else."""
        for case in cases[:2]:
            for title, deliverable in hostile(case.deliverable):
                self._verdict_or_refusal(judge, evolve(case, deliverable=deliverable), title)

    def _verdict_or_refusal(self, judge: Grader, case: GraderCase, title: str) -> None:
        try:
            verdict = self.verdict(judge, case)
        except GraderError:
            return
        except Exception as error:
            text = f"{type(error).__name__}: {error!s:.300}"
            raise AssertionError(f"task {case.task.id!r}, {title}: raised {text}") from error
        fault = verdict_fault(verdict)
        assert fault is None, f"task {case.task.id!r}, {title}: {fault}"


class _Nobody:
    """Grades nothing: a case is to be new to the grader under test."""

    async def grade(self, *_: object) -> Verdict:
        return Verdict("ungraded")

    async def stamp(self) -> JSONObject:
        return {}


async def _played(adapter: Adapter, registry: Registry, services: LocalServices, count: int) -> list[GraderCase]:
    cases = []
    for task in spread([t for t in await load(adapter) if t.scored], count):
        gold = await adapter.gold(task)
        for harness in (OracleHarness(), NoopHarness()):
            if isinstance(harness, OracleHarness) and not isinstance(gold, PLAYABLE):
                continue
            left = await play(adapter, _Nobody(), task, harness, registry=registry, services=services)
            cases.append(GraderCase(task, left.deliverable, None, left.evidence, left.trace))
    return cases


def verdict_fault(verdict: object) -> str | None:
    """Why something is no verdict that a ledger takes."""
    if not isinstance(verdict, Verdict):
        return f"it is of type {type(verdict).__name__}, no Verdict"
    return next(_verdict_faults(verdict), None)


def _verdict_faults(verdict: Verdict) -> Iterator[str]:
    if verdict.outcome not in OUTCOMES:
        yield f"the outcome {verdict.outcome!r} is none of {', '.join(sorted(OUTCOMES))}"
    if verdict.score is not None and not _is_share(verdict.score):
        yield f"the score {verdict.score!r} is not within 0 and 1"
    if verdict.harm not in (None, True, False):
        yield f"harm is {verdict.harm!r}"
    if (fault := record_fault(verdict.details)) is not None:
        yield f"details: {fault}"
    if type(verdict.flags) is not tuple or not all(type(flag) is str for flag in verdict.flags):
        yield f"flags are a tuple of texts, not {verdict.flags!r}"
    if not all(type(label) is str and type(true) is bool for label, true in verdict.views.items()):
        yield f"views are texts with True or False, not {verdict.views!r}"
    if (verdict.bounds is not None) != (verdict.outcome == "ungraded"):
        yield "bounds belong to `ungraded`, and to nothing else"
    elif verdict.bounds is not None and not _are_bounds(verdict.bounds):
        yield f"the bounds are {verdict.bounds!r}"


def _is_share(value: object) -> bool:
    return type(value) in (int, float) and 0 <= cast(float, value) <= 1


def _are_bounds(bounds: tuple[float, float]) -> bool:
    return all(_is_share(bound) for bound in bounds) and bounds[0] <= bounds[1]


def _content(case: GraderCase) -> bytes:
    """All of a case that a grader could change."""
    return canonical([case.task.data, case.task.reference, case.deliverable.as_json(), case.evidence.as_json()])


def hostile(deliverable: Deliverable) -> Iterator[tuple[str, Deliverable]]:
    """Deliverables as an agent could have left them instead, each with what is odd about it.

    What the adapter adds keeps its shape, and holds odd texts where it held texts.
    """
    yield "nothing at all", Deliverable(None, (), _with_texts(deliverable.data, ""))
    for text in HOSTILE_TEXTS:
        name = f"texts {text!r:.40}"
        calls = tuple(Call(text, {text: text}, text) for _ in range(2))
        yield name, Deliverable(text, calls, _with_texts(deliverable.data, text))
    names = [call.name for call in deliverable.calls] or ["no_such_tool"]
    for value in HOSTILE_VALUES:
        yield f"arguments {value!r:.40}", evolve(deliverable, calls=tuple(Call(name, value) for name in names))
        objects = tuple(Call(c.name, _all_of(c.arguments, value)) for c in deliverable.calls)
        yield f"every argument {value!r:.40}", evolve(deliverable, calls=objects)
    yield "ten thousand calls", evolve(deliverable, calls=tuple(Call(names[0], {"n": n}) for n in range(10_000)))


def _all_of(arguments: JSONValue, value: JSONValue) -> JSONValue:
    return dict.fromkeys(arguments, value) if isinstance(arguments, dict) else value


def _with_texts(data: JSONObject, text: str) -> JSONObject:
    return {key: _replaced(value, text) for key, value in data.items()}


def _replaced(value: JSONValue, text: str) -> JSONValue:
    """A JSON value of the same shape, each text in it another."""
    if isinstance(value, str):
        return text
    if isinstance(value, list):
        return [_replaced(item, text) for item in value]
    return _with_texts(value, text) if isinstance(value, dict) else value
