"""The recorder: whatever a wire says is kept in order; nothing is added once the attempt is over."""

from __future__ import annotations

import math
from typing import Any

import pytest

from evalcore.values.json import canonical
from evalcore.wires.recorder import AttemptRecorder, Redactor


class Clock:
    """Time that moves by a quarter of a second each time it is asked for."""

    def __init__(self) -> None:
        self._now = 100.0

    def monotonic(self) -> float:
        self._now += 0.25
        return self._now

    def now(self) -> str:
        return "2026-01-01T00:00:00.000Z"

    async def sleep(self, seconds: float) -> None:
        self._now += seconds


def test_events_come_back_in_order_with_their_time() -> None:
    recorder = AttemptRecorder(Clock())
    recorder.record("tool.call", call=1, tool="look")
    recorder.record("tool.result", call=1, error=False)

    assert list(recorder.reader().events()) == [
        {"t": 0.25, "e": "tool.call", "call": 1, "tool": "look"},
        {"t": 0.5, "e": "tool.result", "call": 1, "error": False},
    ]


@pytest.mark.parametrize(
    "value",
    [10**30, -(10**5000), math.nan, -math.inf, "\ud800", "\0\n\r\u2028", {"\udfff": [1, 5.0, -0.0]}, [[[None]]]],
    ids=["huge", "huger", "nan", "inf", "surrogate", "controls", "key", "nested"],
)
def test_a_value_that_encoders_refuse_comes_back_equal(value: Any) -> None:
    recorder = AttemptRecorder(Clock())
    recorder.record("tool.call", call=1, arguments=value)

    (line,) = recorder.lines()
    assert b"\n" not in line
    (event,) = recorder.reader().events("tool.call")
    assert canonical(event["arguments"]) == canonical(value)


@pytest.mark.parametrize("value", [5, 10**30, "\ud800"])
def test_a_plain_event_is_kept_even_where_it_is_not_plain(value: Any) -> None:
    recorder = AttemptRecorder(Clock())
    recorder.record_plain({"e": "model.response", "body": value})

    assert list(recorder.reader().events("model.response")) == [{"t": 0.25, "e": "model.response", "body": value}]


def test_an_encoded_event_gets_its_time_in_front() -> None:
    recorder = AttemptRecorder(Clock())
    recorder.record_encoded(b'"e":"model.request","call":1}')

    assert recorder.lines() == [b'{"t":0.250000,"e":"model.request","call":1}']


def test_after_the_seal_nothing_is_added() -> None:
    recorder = AttemptRecorder(Clock())
    recorder.record("exit", kind="completed")
    recorder.seal()
    recorder.record("tool.call", call=1)
    recorder.record_plain({"e": "x"})
    recorder.record_encoded(b'"e":"x"}')

    assert [e["e"] for e in recorder.reader().events()] == ["exit"]


def test_what_looks_like_an_event_of_another_kind_is_not_taken_for_one() -> None:
    recorder = AttemptRecorder(Clock())
    recorder.record("tool.call", tool='"e":"exit"', arguments={"e": "exit"})
    recorder.record("note", text='{"$exact":"{}"}')

    assert list(recorder.reader().events("exit")) == []
    assert len(recorder.reader()) == 2


# ── secrets ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_known_secrets_are_taken_out_wherever_they_stand() -> None:
    redactor = Redactor(["sk-0123456789"])
    redactor.add("another-secret")

    cleaned = redactor.clean(b'{"a":"sk-0123456789","b":"x another-secret y sk-0123456789"}')

    assert b"sk-0123456789" not in cleaned and b"another-secret" not in cleaned
    assert cleaned.count(b"[redacted]") == 3


def test_a_short_value_is_no_secret_or_ordinary_text_would_be_eaten() -> None:
    redactor = Redactor(["the"])
    redactor.add("a")

    assert redactor.clean(b"the weather") == b"the weather"
