"""A tape: the same request gets its answer again, in its turn; what varies by nature is seen past, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from evalcore.testing.fakes import FakeClock
from evalcore.values.json import JSONObject
from evalcore.wires.gateway.tape import NORMALISERS, Tape
from evalcore.wires.recorder import AttemptRecorder

PORT_AND_TOKEN = "http://127.0.0.1:{}/e/{}/mcp"


def said(*texts: str, **rest: Any) -> JSONObject:
    return {"model": "m", "messages": [{"role": "user", "content": t} for t in texts], **rest}


def recorded(*exchanges: tuple[JSONObject, Any], role: str = "agent", varies: tuple[str, ...] = ()) -> Tape:
    """A tape of requests with the answers they got; an answer that is a text is a refusal."""
    recorder = AttemptRecorder(FakeClock())
    for call, (body, answer) in enumerate(exchanges, 1):
        rest = {k: v for k, v in body.items() if k != "messages"}
        recorder.record("model.request", role=role, call=call, add=body["messages"], rest=rest)
        if isinstance(answer, str):
            recorder.record("model.error", role=role, call=call, kind="RefusedRequest", message=answer)
        elif answer is not None:
            recorder.record("model.response", role=role, call=call, body=answer, wall_s=0.1)
    return Tape("attempt a of run r", recorder.reader(), varies)


def answered(tape: Tape, body: JSONObject, role: str = "agent") -> Any:
    found = tape.answer(role, body)
    return None if found is None else found.body


# ── which answer ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_request_gets_the_answer_it_got_whatever_the_order() -> None:
    tape = recorded((said("a"), {"n": 1}), (said("b"), {"n": 2}))
    assert [answered(tape, said(t)) for t in ("b", "a")] == [{"n": 2}, {"n": 1}]
    assert answered(tape, said("c")) is None


def test_a_request_made_twice_has_two_answers_in_their_order_and_no_third() -> None:
    tape = recorded((said("a"), {"n": 1}), (said("a"), {"n": 2}))
    assert [answered(tape, said("a")) for _ in range(3)] == [{"n": 1}, {"n": 2}, None]


def test_roles_have_answers_of_their_own() -> None:
    tape = recorded((said("a"), {"n": 1}), role="user")
    assert answered(tape, said("a")) is None
    assert answered(tape, said("a"), "user") == {"n": 1}


def test_a_refused_request_is_refused_again_and_one_without_an_end_has_no_answer() -> None:
    tape = recorded((said("a"), "too long"), (said("b"), None))
    found = tape.answer("agent", said("a"))
    assert found is not None and (found.body, found.refusal, found.call) == (None, "too long", 1)
    assert tape.answer("agent", said("b")) is None


@pytest.mark.parametrize("change", [{"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}])
def test_how_an_answer_is_delivered_does_not_count(change: Any) -> None:
    assert answered(recorded((said("a"), {"n": 1})), said("a", **change)) == {"n": 1}


@pytest.mark.parametrize(
    "other",
    [said("a", temperature=0.5), said("a", model="n"), said("a "), said("a", "b"), {**said("a"), "tools": []}],
)
def test_everything_else_counts(other: JSONObject) -> None:
    assert answered(recorded((said("a"), {"n": 1})), other) is None


# ── what varies ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "then, now, varies",
    [
        (PORT_AND_TOKEN.format(1234, "0" * 32), PORT_AND_TOKEN.format(99, "abcdef0123456789" * 2), ""),
        ("in /tmp/evalcore-ab_cd123/x.py", "in /var/tmp/a/evalcore-zz9_y8x7/x.py", ""),
        ("HOME=/tmp/evalcore-agent-abcd1234/home", "HOME=/tmp/evalcore-agent-4321dcba/home", ""),
        ("It is 2026-11-30.", "It is 2027-01-02.", "date"),
        ("at 2026-11-30T09:15:00.123Z,", "at 2026-12-01T23:59:59Z,", "date"),
        ("at 2026-11-30 09:15:00 +0100", "at 2026-12-01 23:59", "date"),
        ("Mon Nov 30 09:15:00 UTC 2026", "Tue Dec  1 10:00:00 CET 2026", "date"),
        ("Today is Monday, November 30, 2026.", "Today is Tuesday, December 1, 2026.", "date"),
        ("Date: Mon, 30 Nov 2026 09:15:00 GMT", "Date: Tue, 1 Dec 2026 10:00:00 GMT", "date"),
        ("now 9:15 AM", "now 10:07 PM", "date"),
        ("id 01234567-89ab-cdef-0123-456789abcdef", "id ffffffff-89AB-cdef-0123-456789abcde0", "uuid"),
    ],
)
def test_a_part_that_varies_by_nature_is_seen_past_where_that_is_declared(then: str, now: str, varies: str) -> None:
    declared = tuple(v for v in (varies,) if v)
    assert answered(recorded((said(then), {"n": 1}), varies=declared), said(now)) == {"n": 1}
    if declared:
        assert answered(recorded((said(then), {"n": 1})), said(now)) is None


@pytest.mark.parametrize(
    "then, now",
    [
        ("room 12", "room 13"),
        ("/tmp/evalcore-ab_cd123/x.py", "/tmp/evalcore-ab_cd123/y.py"),
        ("version 1.2.3", "version 1.2.4"),
        ("http://127.0.0.1:80/", "http://127.0.0.1:81/"),
        ("May I?", "June I?"),
    ],
)
def test_what_only_looks_like_it_is_not(then: str, now: str) -> None:
    assert answered(recorded((said(then), {"n": 1}), varies=tuple(NORMALISERS)), said(now)) is None


# ── where it diverges ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_divergence_names_the_message_and_shows_the_difference() -> None:
    tape = recorded((said("one", "line 1\nline 2\nline 3"), {}))
    found = tape.divergence("agent", 1, said("one", "line 1\nline two\nline 3"))
    assert (found.what, found.at) == ("message 2 differs", 1)
    assert found.difference.splitlines() == [
        "--- recorded", "+++ now", "@@ -4,3 +4,3 @@", " line 1", "-line 2", "+line two", " line 3"
    ]  # fmt: skip


def test_a_message_too_many_and_one_too_few_are_told() -> None:
    tape = recorded((said("one", "two"), {}))
    more = tape.divergence("agent", 1, said("one", "two", "three"))
    assert more.what == "it has 3 messages, recorded were 2" and more.at == 2 and "+three" in more.difference
    less = tape.divergence("agent", 1, said("one"))
    assert less.what == "it has 1 messages, recorded were 2" and less.at == 1 and "-two" in less.difference


def test_a_difference_beside_the_messages_is_named() -> None:
    tape = recorded((said("a", temperature=0.5, tools=[]), {}))
    found = tape.divergence("agent", 1, said("a", temperature=1.0, tools=[]))
    assert (found.what, found.at) == ("temperature differs", None)
    assert '- "temperature": 0.5' in found.difference and '+ "temperature": 1.0' in found.difference


def test_a_request_beyond_the_end_and_one_without_a_recording_are_told() -> None:
    tape = recorded((said("a"), {}))
    assert tape.divergence("agent", 2, said("b")).what == "the recording ends after 1 requests"
    assert "holds no request of the role judge" in tape.divergence("judge", 1, said("b")).what
    assert tape.divergence("agent", 1, said("a")).what.startswith("the same request was answered before")


def test_a_difference_is_short_however_long_the_messages_are() -> None:
    tape = recorded((said("\n".join(f"{n} {'x' * 500}" for n in range(500))), {}))
    found = tape.divergence("agent", 1, said("\n".join(f"{n} {'y' * 500}" for n in range(500))))
    assert len(found.difference) < 6000 and "more lines" in found.difference
