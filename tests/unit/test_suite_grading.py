"""Grader `suite`: each check both ways, what is a call, and patterns that would never end."""

from __future__ import annotations

import asyncio
import hashlib
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.builtin.suite import patterns
from evalcore.builtin.suite.grader import SuiteGrader
from evalcore.builtin.suite.matching import argument_fits, call_fits, first_difference, in_order
from evalcore.builtin.suite.patterns import Searcher, harmless
from evalcore.errors import GraderError
from evalcore.values.json import JSONObject, JSONValue, dumps
from evalcore.values.task import Call, Task
from evalcore.values.trace import TraceReader
from evalcore.values.trial import Deliverable, Evidence, Verdict

COMPLETED: JSONObject = {"e": "exit", "kind": "completed"}


def graded(
    grade: JSONObject,
    answer: str | None = None,
    *,
    expect: JSONObject | None = None,
    calls: tuple[Call, ...] = (),
    data: JSONObject | None = None,
    evidence: JSONObject | None = None,
    events: tuple[JSONObject, ...] = (COMPLETED,),
) -> Verdict:
    reference: JSONObject = {"grade": grade} if expect is None else {"grade": grade, "expect": expect}
    trace = TraceReader([dumps({"t": 0.0, **event}) for event in events])
    left = Deliverable(answer, calls, data or {})
    return asyncio.run(SuiteGrader().grade(Task("t", {}, reference), left, Evidence(evidence or {}), trace, None))


def reason(verdict: Verdict) -> object:
    return verdict.details.get("reason")


# ── checks ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "grade, answer, why",
    [
        ({"contains": "Quito"}, "It is Quito.", None),
        ({"contains": ["Quito", "Lima"]}, "Quito", "contains: 'Lima' is not in the answer"),
        ({"contains": "Quito"}, None, "contains: 'Quito' is not in the answer"),
        ({"exact": "42"}, " 42\n", None),
        ({"exact": "42"}, "42.", "exact: the answer is '42.', not '42'"),
        ({"exact": ""}, None, None),
        ({"regex": r"\b4\d\b"}, "it is 42", None),
        ({"regex": r"^4\d$"}, "it is 42", "regex: '^4\\\\d$' is not found in the answer"),
        ({"json": {"a": 1}}, '{"a": 1.0, "b": 2}', None),
        ({"json": {"a": [1]}}, 'Here:\n```json\n{"a": [1]}\n```\nDone.', None),
        ({"json": [1, 2]}, "[1]", "json: $ is [1], expected [1,2]"),
        ({"json": {"a": {"b": True}}}, '{"a": {"b": 1}}', "json: $.a.b is 1, expected true"),
        ({"json": {"a": 1}}, "a is 1", "json: the answer is no JSON"),
        ({"json": {"a": 1}}, "[" * 5000, "json: the answer is no JSON"),
        ({"json": {"a": 1}}, None, "json: the answer is no JSON"),
    ],
)
def test_answers(grade: JSONObject, answer: str | None, why: str | None) -> None:
    verdict = graded(grade, answer)
    assert (verdict.outcome, verdict.score) == (("pass", 1.0) if why is None else ("fail", 0.0))
    assert reason(verdict) == why


LOOK, BOOK = Call("look", {"to": "Bern"}), Call("book", {"train": "IR 15"})


@pytest.mark.parametrize(
    "wanted, calls, why",
    [
        ({"name": "look"}, (LOOK,), None),
        ({"name": "look", "args": {"to": "Basel"}}, (LOOK,), "no call of look as expected; calls: look"),
        ([{"name": "look"}, {"name": "book"}], (BOOK,), None),
        ([{"name": "look"}, {"name": "book"}], (), "no call of look or book as expected; calls: none"),
        ({"all": [{"name": "book"}, {"name": "look"}]}, (LOOK, BOOK), None),
        ({"all": [{"name": "book"}, {"name": "look"}]}, (BOOK,), "no call of look as expected; calls: book"),
        ({"all": [{"name": "book"}, {"name": "book"}]}, (BOOK,), None),  # one call may be several of the expected
        ({"none": [{"name": "book"}]}, (LOOK,), None),
        ({"none": [{"name": "book"}]}, (LOOK, BOOK), "book was called, and must not be"),
        ({"order": [{"name": "look"}, {"name": "book"}]}, (LOOK, LOOK, BOOK), None),
        (
            {"order": [{"name": "look"}, {"name": "book"}]},
            (BOOK, LOOK),
            "no call of book after look as expected; calls in order: book, look",
        ),
        ({"name": "look"}, (Call("look", None, '{"to": '),), "no call of look as expected; calls: none"),
        ({"none": [{"name": "book"}]}, (Call("book", None, "{"),), None),
    ],
)
def test_calls(wanted: JSONValue, calls: tuple[Call, ...], why: str | None) -> None:
    assert reason(graded({"tool_calls": wanted}, calls=calls)) == (why and f"tool_calls: {why}")


@pytest.mark.parametrize(
    "grade, why",
    [
        ({"state": {"a": {"b": [1, {}]}}}, None),
        ({"state": {"a": {"b": [1]}}}, 'state: $.a.b is [1,{"c":null}], expected [1]'),
        ({"state": {"x": None}}, "state: $.x is missing"),
        ({"state": {"a": 1}}, 'state: $.a is {"b":[1,{"c":null}]}, expected 1'),
        ({"state_absent": ["x", "a.b.1.c", "a.b.7"]}, None),
        ({"state_absent": "a.b.0"}, "state_absent: a.b.0 is there"),
    ],
)
def test_states(grade: JSONObject, why: str | None) -> None:
    assert reason(graded(grade, data={"state": {"a": {"b": [1, {"c": None}]}}})) == why


SEEN: JSONObject = {"exists": True, "text": "hello\n", "sha256": hashlib.sha256(b"hello\n").hexdigest()}


@pytest.mark.parametrize(
    "check, seen, why",
    [
        ({"contains": ["he", "lo"]}, SEEN, None),
        ({"contains": "hi"}, SEEN, "a does not hold 'hi'"),
        ({"exact": "hello\n"}, SEEN, None),
        ({"exact": "hello"}, SEEN, "a holds 'hello\\n', not 'hello'"),
        ({}, SEEN, None),
        ({}, {"exists": False}, "a: there is no such file"),
        ({}, {"exists": False, "why": "'a' is no plain file"}, "a: 'a' is no plain file"),
    ],
)
def test_files(check: JSONObject, seen: JSONObject, why: str | None) -> None:
    assert reason(graded({"files": {"a": check}}, evidence={"files": {"a": seen}})) == (why and f"files: {why}")


@pytest.mark.parametrize(
    "command, seen, why",
    [
        ({"run": "x"}, {"exit_code": 0}, None),
        ({"run": "x", "expect_exit": 3}, {"exit_code": 3}, None),
        ({"run": "x"}, {"exit_code": 1, "stderr": "1 failed\n"}, "ended with exit 1, not 0: 1 failed"),
        ({"run": "x"}, {"exit_code": None, "signal": 9}, "ended with signal 9, not 0"),
        ({"run": "x"}, {"exit_code": None, "signal": 15, "timed_out": True}, "did not end within 120 s"),
    ],
)
def test_commands(command: JSONObject, seen: JSONObject, why: str | None) -> None:
    whole: JSONObject = {"signal": None, "timed_out": False, "stdout": "", "stderr": "", **seen}
    assert reason(graded({"command": command}, evidence={"command": whole})) == (why and f"command: {why}")


def test_evidence_that_was_never_collected_is_no_failure_of_the_agent() -> None:
    for grade in ({"files": {"a": {}}}, {"command": {"run": "x"}}):
        with pytest.raises(GraderError):
            graded(grade)  # type: ignore[arg-type] # both are plain JSON


# ── how it went ──────────────────────────────────────────────────────────────────────────────────────────────────────


def response(tokens: int | None) -> JSONObject:
    usage: JSONObject = {} if tokens is None else {"usage": {"prompt_tokens": tokens, "completion_tokens": 1}}
    return {"e": "model.response", "role": "agent", "call": 1, "body": usage}


def test_endings() -> None:
    limit: JSONObject = {"e": "exit", "kind": "limit", "limit": "tokens"}
    done: JSONObject = {"contains": "x"}
    assert graded(done, "x", events=(limit,)).outcome == "pass"  # graded on what it left
    assert (
        reason(graded({**done, "ended": "completed"}, "x", events=(limit,)))
        == "ended: the agent ended as limit, not completed"
    )
    assert graded({**done, "ended": ["limit", "completed"]}, "x", events=(limit,)).outcome == "pass"
    assert (
        reason(graded(done, "x", expect={"completed": True}, events=(limit,)))
        == "completed: the agent ended as limit, not completed"
    )
    assert graded(done, "x", expect={"completed": True}).outcome == "pass"


def test_a_trial_whose_time_was_over_has_failed_whatever_it_left() -> None:
    late: JSONObject = {"e": "exit", "kind": "limit", "limit": "wall_s"}
    verdict = graded({"contains": "x"}, "x", events=(late,))
    assert (verdict.outcome, reason(verdict)) == ("fail", "the trial's time was over")


def test_exit_codes() -> None:
    assert graded({"exit_code": 0}, data={"exit_code": 0}).outcome == "pass"
    assert graded({"exit_code": [3, 7]}, data={"exit_code": 7}).outcome == "pass"
    assert (
        reason(graded({"exit_code": [0, 3]}, data={"exit_code": 7}))
        == "exit_code: the agent's exit code is 7, not 0 or 3"
    )
    assert reason(graded({"exit_code": 0})) == "exit_code: the agent left no exit code"


def test_an_expected_call() -> None:
    assert graded({}, expect={"tool_call": "look"}, calls=(LOOK,)).outcome == "pass"
    assert reason(graded({}, expect={"tool_call": "book"}, calls=(LOOK,))) == "tool_call: book was not called"


def test_budgets() -> None:
    events = (response(100), response(100), {**response(900), "role": "user"}, COMPLETED)
    assert (
        graded({"at_most": {"tokens": 202, "model_calls": 2, "tool_calls": 1}}, calls=(LOOK,), events=events).outcome
        == "pass"
    )
    assert reason(graded({"at_most": {"tokens": 201}}, events=events)) == "at_most: 202 tokens, at most 201 allowed"
    assert reason(graded({"at_most": {"model_calls": 1}}, events=events)) == "at_most: 2 model calls, at most 1 allowed"
    assert reason(graded({"at_most": {"tool_calls": 0}}, calls=(LOOK,))) == "at_most: 1 tool calls, at most 0 allowed"


def test_tokens_that_nobody_reported_leave_the_verdict_open_unless_something_decides_it() -> None:
    events = (response(None), response(10), COMPLETED)
    verdict = graded({"at_most": {"tokens": 50}, "contains": "x"}, "x", events=events)
    assert (verdict.outcome, verdict.score, verdict.bounds) == ("ungraded", None, (0.0, 1.0))
    assert verdict.details["open"] == {"at_most": "1 model calls whose tokens were not reported"}
    assert graded({"at_most": {"tokens": 50}, "contains": "x"}, "y", events=events).outcome == "fail"
    assert graded({"at_most": {"tokens": 5}}, events=events).outcome == "fail"  # the ones reported are too many


def test_every_check_is_made_and_the_first_that_fails_is_the_reason() -> None:
    verdict = graded({"state": {"a": 1}, "exact": "x", "contains": "x"}, "xy", data={"state": {}})
    assert verdict.details["checks"] == {"contains": True, "exact": False, "state": False}
    assert reason(verdict) == "exact: the answer is 'xy', not 'x'"
    assert verdict.details["failed"] == ["exact: the answer is 'xy', not 'x'", "state: $.a is missing"]


# ── what fits what ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "given_, accepted, fits",
    [
        (5, 5.0, True),
        (5, True, False),
        (1, True, False),
        (True, True, True),
        (None, None, True),
        (None, 0, False),
        ("New York", "new-york", True),
        ("-5", "5", True),  # as BFCL has it: punctuation does not count
        ("it's", 'it"s', True),
        ("lambda x: x^2 + 1", "x**2+1", True),
        ("5", 5, False),
        ("c", ["c", "celsius"], True),
        ("k", ["c", "celsius"], False),
        (["a"], ["a"], False),  # an array is alternatives
        (["a"], [["a"]], True),
        (["a", "b"], [["b", "a"]], False),
        ({"x": 1}, {"x": 1}, True),
        ({"x": 1, "y": 2}, {"x": 1}, False),
        ({}, {"x": ""}, True),
        ({}, {"x": ["", 3]}, True),
        ({}, {"x": 3}, False),
        ({"x": 4}, {"x": [3, 4]}, True),
        ({"x": 5}, {"x": [3, 4, ""]}, False),
        ({"x": [3]}, {"x": [[3]]}, False),  # nested: an array of arrays is the array itself
        ({"x": [[3]]}, {"x": [[3]]}, True),
        ({"x": {"y": "a b"}}, {"x": {"y": "AB"}}, True),
    ],
)
def test_arguments(given_: JSONValue, accepted: JSONValue, fits: bool) -> None:
    assert argument_fits(given_, accepted) is fits


def test_arguments_that_are_no_object_fit_only_a_call_without_any() -> None:
    assert call_fits(Call("a", [1]), {"name": "a"})
    assert not call_fits(Call("a", [1]), {"name": "a", "args": {"x": 1}})
    assert in_order([], [{"name": "a"}]) == 0


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@given(VALUES)
def test_every_value_holds_itself(value: JSONValue) -> None:
    assert first_difference(value, value, "$") is None


# ── patterns ─────────────────────────────────────────────────────────────────────────────────────────────────────────

ENDLESS = r"^(a+)+$"


@pytest.mark.parametrize(
    "pattern, length, here",
    [
        (r"\bQuito\b", 100_000, True),
        (r"(?i)(yes|no)\.", 10_000, True),
        (r"\d+ degrees", 500, True),
        (r"\d+ degrees", 50_000, False),  # the square of the length
        (r"\d+ .*", 100, False),
        (r"(a+)+$", 10, False),
        (r"(a|a)*$", 10, False),
        (r"(?:a?){30}", 10, False),
        (r"a?a?a?a?a?a?a?aaaaaaa", 10, False),
        (r"(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)b", 10, False),
        (r"(.)\1{5}", 10, False),
    ],
)
def test_only_what_is_bounded_is_searched_in_this_process(pattern: str, length: int, here: bool) -> None:
    assert harmless(pattern, length) is here


def test_a_search_in_a_child_finds_what_one_here_would() -> None:
    async def ask() -> list[bool]:
        searcher = Searcher()
        asked = [(r"(?s)a.*b.*c", "xa\nb\nc"), (r"(?s)a.*b.*c", "acb"), (r"é+ü*$", "\ud800 ééü"), (r"[[a]+x*", "[x")]
        return [await searcher.found(*one) for one in asked]

    assert asyncio.run(ask()) == [True, False, True, True]


def test_a_pattern_that_would_never_end_is_the_suites_fault_and_hangs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "CPU_S", 1)

    async def ask() -> float:
        longest = 0.0

        async def tick() -> None:
            nonlocal longest
            while True:
                began = time.monotonic()
                await asyncio.sleep(0.01)
                longest = max(longest, time.monotonic() - began)

        beside = asyncio.create_task(tick())
        with pytest.raises(GraderError, match="took more than 1 s of processor time on 41 characters"):
            await Searcher().found(ENDLESS, "a" * 40 + "!")
        beside.cancel()
        return longest

    assert asyncio.run(ask()) < 0.9  # everything else went on meanwhile


def test_the_work_that_is_done_here_is_bounded() -> None:
    pattern, text = "[ab]+c", "ab" * 408
    assert harmless(pattern, len(text)) and not harmless(pattern, 2 * len(text))
    began = time.process_time()
    assert not asyncio.run(Searcher().found(pattern, text))
    assert time.process_time() - began < 0.5
