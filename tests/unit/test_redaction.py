"""What a published copy does not show: parts with all that could quote them, and what a user's rules name."""

from __future__ import annotations

import pytest

from evalcore.errors import ConfigError
from evalcore.values.convert import structure
from evalcore.values.json import JSONObject, dumps
from evalcore.values.redaction import MARK, NOTHING, Redaction, RedactionRules, redaction, redaction_of_texts
from evalcore.values.task import Dataset
from evalcore.values.trace import TraceReader
from evalcore.values.trial import Grading, Verdict

OPEN = Dataset("zoo", "1", "2026-01-01", "CC0-1.0", "made up")
CLOSED = Dataset("zoo", "1", "2026-01-01", "its own", "made up", withhold=("answers",))

START: JSONObject = {
    "t": 0.0,
    "e": "trial.start",
    "id": "a/1",
    "task": "a",
    "messages": [{"role": "user", "content": "How tall is Nell?"}],
}
CALL: JSONObject = {"t": 0.5, "e": "tool.call", "call": 1, "tool": "height", "arguments": {"animal": "Nell"}}
RESULT: JSONObject = {
    "t": 0.6,
    "e": "tool.result",
    "call": 1,
    "error": True,
    "content": [{"type": "text", "text": "3 m"}],
    "wall_s": 0.1,
}
ANSWER: JSONObject = {"t": 0.9, "e": "harness.exit", "claim": "completed", "answer": "3 m", "exit_code": 0}


def test_nothing_is_withheld_where_nothing_is_named() -> None:
    assert redaction(OPEN, "zoo") == NOTHING
    assert all(NOTHING.event(event) is event for event in (START, CALL, RESULT, ANSWER))
    assert NOTHING.content("3 m") == "3 m"


def test_a_withheld_answer_takes_with_it_all_that_could_quote_it_and_leaves_the_question() -> None:
    found = redaction(CLOSED, "zoo")
    assert found.event(START) == START
    assert found.event(CALL) == {**CALL, "arguments": MARK}
    assert found.event(RESULT) == {**RESULT, "content": MARK}
    assert found.event(ANSWER) == {**ANSWER, "answer": MARK}
    assert found.content({"expected": "3 m"}) == MARK


def test_a_withheld_question_takes_everything_with_it_but_the_shape() -> None:
    found = redaction(OPEN, "zoo", RedactionRules(withhold=("questions",)))
    assert found.event(START) == {**START, "messages": MARK}
    assert found.event(RESULT) == {**RESULT, "content": MARK}


def test_a_field_that_nobody_knows_is_content() -> None:
    assert redaction(CLOSED, "zoo").event({"t": 1.0, "e": "env.event", "thought": "3 m"}) == {
        "t": 1.0,
        "e": "env.event",
        "thought": MARK,
    }


def test_a_tool_s_name_that_holds_a_sentence_is_content() -> None:
    assert redaction(CLOSED, "zoo").event({**CALL, "tool": "the answer is 3 m"})["tool"] == MARK


def test_rules_of_one_benchmark_leave_the_others_alone() -> None:
    rules = RedactionRules(benchmarks={"zoo": ("responses",)})
    assert redaction(OPEN, "zoo", rules).withheld == {"responses"}
    assert redaction(OPEN, "zoo@test", rules) == NOTHING


def test_texts_and_patterns_are_taken_out_wherever_they_are() -> None:
    rules = RedactionRules(texts=("nell",), patterns=(r"\d+ m\b",))
    found = redaction(OPEN, "zoo", rules)
    assert found.text("Nell is 3 m tall") == f"{MARK} is {MARK} tall"
    assert found.event(CALL)["arguments"] == {"animal": MARK}
    assert found.event({**CALL, "arguments": {"Nell": [1, True, None, "NELL"]}})["arguments"] == {
        MARK: [1, True, None, MARK]
    }
    assert redaction_of_texts(rules).text("nell") == MARK
    assert redaction_of_texts(None) == Redaction()


def test_a_text_is_no_pattern() -> None:
    assert redaction(OPEN, "zoo", RedactionRules(texts=("a.c",))).text("abc a.c") == f"abc {MARK}"


def test_every_broken_pattern_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        redaction(OPEN, "zoo", RedactionRules(patterns=("(", "fine", "x*")))
    assert [fault.where for fault in caught.value.faults] == ["patterns[0]", "patterns[2]"]
    assert "no regular expression" in caught.value.faults[0].message
    assert "matches the empty text" in caught.value.faults[1].message


def test_a_file_of_rules_is_read_strictly() -> None:
    with pytest.raises(ConfigError) as caught:
        structure({"withhold": ["question"], "text": ["x"]}, RedactionRules)
    assert sorted(fault.where for fault in caught.value.faults) == ["$.text", "$.withhold[0]"]


def test_a_whole_trace_and_its_verdict_are_shown_without_it() -> None:
    reader = TraceReader([dumps(event) for event in (START, CALL, RESULT, ANSWER)])
    closed = redaction(CLOSED, "zoo")
    assert list(closed.trace(reader).events()) == [closed.event(event) for event in (START, CALL, RESULT, ANSWER)]
    assert NOTHING.trace(reader) is reader
    grading = Grading("a/1", Verdict("grader_error", details={"expected": "3 m"}), 0.1, "3 m is no number")
    shown = closed.grading(grading)
    assert (shown.verdict.outcome, shown.verdict.details, shown.error) == ("grader_error", {}, MARK)
    assert NOTHING.grading(grading) == grading


def test_a_dataset_s_terms_change_no_digest() -> None:
    assert OPEN.digest == CLOSED.digest
