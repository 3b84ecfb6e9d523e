"""Ledger lines: what is written is read back equal, whatever is in it; what is no such line is refused."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from evalcore.engine.records import attempt_line, grading_line, read_attempt, read_grading
from evalcore.values.trial import Attempt, Exit, Grading, TraceRef, TrialKey, Verdict, Void
from evalcore.values.usage import Usage

ATTEMPT = Attempt(
    id="b/t/a/1/1",
    key=TrialKey("b", "t", "a" * 64, 1),
    task_digest="d" * 64,
    number=1,
    exit=Exit("completed"),
    void=None,
    started="2026-01-01T00:00:00.000Z",
    wall_s=1.25,
    usage={},
    tool_calls=0,
    tool_errors=0,
    trace=TraceRef("000001.zst", 0, 100),
)

text = st.text(st.characters(), max_size=12)  # lone surrogates too
counts = st.integers(0, 10**25)
numbers = st.floats(allow_nan=False)
maybe = st.none()
leaves = maybe | st.booleans() | st.integers() | numbers | text
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3))
details = st.dictionaries(text, values, max_size=3)
usages = st.builds(Usage, counts, counts, counts, counts, counts, counts, counts, maybe | numbers)
exits = st.builds(
    Exit,
    st.sampled_from(["completed", "limit", "refused", "crashed"]),
    maybe | text,
    maybe | text,
    maybe | st.integers(),
)
voids = st.builds(Void, text, text, st.booleans())
attempts = st.builds(
    lambda end, **fields: Attempt(exit=end if isinstance(end, Exit) else None, void=end if isinstance(end, Void) else None, **fields),  # noqa: E501
    exits | voids,
    id=text,
    key=st.builds(TrialKey, text, text, text, st.integers(1, 1000)),
    task_digest=text,
    number=st.integers(1, 1000),
    started=text,
    wall_s=numbers,
    usage=st.dictionaries(st.sampled_from(["agent", "user", "judge"]), usages, max_size=3),
    tool_calls=counts,
    tool_errors=counts,
    trace=st.builds(TraceRef, text, st.integers(0, 2**62), st.integers(0, 2**40)),
    provenance=st.sampled_from(["live", "replayed", "stand-in"]),
    isolation=st.sampled_from(["none", "container"]),
    flags=st.lists(text, max_size=3).map(tuple),
    served=st.dictionaries(st.sampled_from(["agent", "user"]), st.lists(text, min_size=1, max_size=2).map(tuple)),
)  # fmt: skip
verdicts = st.builds(
    Verdict,
    st.sampled_from(["pass", "fail", "declined", "fabricated", "grader_error", "ungraded"]),
    maybe | st.floats(0, 1),
    maybe | st.booleans(),
    details,
    st.lists(text, max_size=3).map(tuple),
    st.dictionaries(text, st.booleans(), max_size=3),
    maybe | st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
gradings = st.builds(Grading, text, verdicts, numbers, maybe | text)


@given(attempts)
def test_an_attempt_is_read_back_equal(attempt: Attempt) -> None:
    line = attempt_line(attempt)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert isinstance(json.loads(line), dict)  # for any reader of JSON lines
    assert read_attempt(line) == attempt


@given(gradings)
def test_a_grading_is_read_back_equal(grading: Grading) -> None:
    line = grading_line(grading)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert isinstance(json.loads(line), dict)
    assert read_grading(line) == grading


def test_a_price_that_is_unknown_stays_unknown_and_a_price_of_nothing_stays_nothing() -> None:
    for cost in (None, 0.0):
        attempt = evolve(ATTEMPT, usage={"agent": Usage(calls=1, cost_usd=cost)})
        assert read_attempt(attempt_line(attempt)).usage["agent"].cost_usd == cost


def test_native_details_are_kept_verbatim() -> None:
    details: dict[str, Any] = {"n": 10**30, "x": math.inf, "s": "\ud800", "t": 5.0, "i": 5, "z": None}
    read = read_grading(grading_line(Grading("a", Verdict("fail", details=details), 0.0))).verdict.details
    assert read == details
    assert [type(v) for v in read.values()] == [type(v) for v in details.values()]


def test_a_line_of_an_ordinary_attempt_is_short_and_plain() -> None:
    line = json.loads(attempt_line(ATTEMPT))
    assert "void" not in line and "usage" not in line and "flags" not in line
    assert line["exit"] == {"kind": "completed"}
    assert line["trace"] == ["000001.zst", 0, 100]


NO_LINES = [b"", b"\n", b"null\n", b"1\n", b"[]\n", b'"x"\n', b"{}\n", b'{"id":1', b"\xff\n", b'{"$exact":"{"}\n']


@pytest.mark.parametrize("line", NO_LINES, ids=repr)
def test_what_is_no_line_of_a_ledger_is_refused(line: bytes) -> None:
    for read in (read_attempt, read_grading):
        with pytest.raises((ValueError, LookupError, TypeError, AttributeError)):
            read(line)


def test_a_line_of_the_other_ledger_is_refused() -> None:
    with pytest.raises(KeyError):
        read_attempt(grading_line(Grading("a", Verdict("pass"), 0.0)))
    with pytest.raises(KeyError):
        read_grading(attempt_line(ATTEMPT))


WRONG: dict[str, Any] = {
    **{key: {"x": 1} for key in ("id", "benchmark", "task", "arm", "task_digest", "started")},
    **dict.fromkeys(("repeat", "number", "tool_calls", "tool_errors", "wall_s"), "three"),
    "usage": {"agent": {"calls": {}}},
}


@pytest.mark.parametrize("field", WRONG)
def test_a_field_of_another_type_is_refused_where_the_line_is_known(field: str) -> None:
    line = {**json.loads(attempt_line(ATTEMPT)), field: WRONG[field]}
    with pytest.raises(TypeError, match="is no"):
        read_attempt(json.dumps(line).encode())
