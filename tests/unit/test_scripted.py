"""The scripted provider: the first reply that matches, exactly as written; a bad playbook says all that is wrong."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from evalcore.builtin.scripted import Reply, ScriptedProvider, read_playbook
from evalcore.contracts import CallContext
from evalcore.errors import AgentError, ConfigError, FatalInfraError, InfraError, TransientError
from evalcore.values.trace import assistant_message, calls_of_message
from evalcore.values.trial import TrialKey
from evalcore.values.usage import Usage, usage_from_chat


def ask(path: Path, body: dict[str, Any] | None = None, **place: Any) -> Any:
    """One request to the playbook at `path`; `place` says of which task, repeat, attempt, role and call."""
    key = TrialKey("b", place.get("task", "t0"), "a", place.get("repeat", 1))
    context = CallContext(
        key, place.get("attempt", 1), place.get("role", "agent"), place.get("call", 1), 0, tries=place.get("tries", 1)
    )
    return asyncio.run(ScriptedProvider().complete(str(path), body or {"messages": []}, context))


def text_of(response: Any) -> Any:
    return assistant_message(response).get("content")


@pytest.fixture
def book(tmp_path: Path) -> Path:
    return tmp_path / "play.toml"


# ── which reply ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "match, fits, misses",
    [
        ('task = "simple_*"', {"task": "simple_3"}, {"task": "complex_3"}),
        ('task = "t[01]"', {"task": "t1"}, {"task": "t2"}),
        ('role = "user"', {"role": "user"}, {"role": "agent"}),
        ("call = 2", {"call": 2}, {"call": 1}),
        ("repeat = 2", {"repeat": 2}, {"repeat": 1}),
        ("attempt = 2", {"attempt": 2}, {"attempt": 1}),
        ('task = "a", call = 2', {"task": "a", "call": 2}, {"task": "a", "call": 1}),
    ],
)
def test_a_reply_is_chosen_by_its_place(book: Path, match: str, fits: dict[str, Any], misses: dict[str, Any]) -> None:
    book.write_text(f'[[reply]]\nmatch = {{ {match} }}\ntext = "this"\n[[reply]]\ntext = "other"\n')
    assert text_of(ask(book, **fits)) == "this"
    assert text_of(ask(book, **misses)) == "other"


def test_a_reply_is_chosen_by_the_last_message(book: Path) -> None:
    book.write_text('[[reply]]\nmatch = { contains = "sun" }\ntext = "warm"\n[[reply]]\ntext = "who knows"\n')

    def answer(*contents: Any) -> Any:
        return text_of(ask(book, {"messages": [{"role": "user", "content": c} for c in contents]}))

    assert answer("rain", "the sun shines") == "warm"
    assert answer("the sun shines", "rain") == "who knows"
    assert answer([{"type": "text", "text": "the sun"}]) == "warm"
    assert answer(None) == answer(5) == answer() == "who knows"


def test_a_reply_is_chosen_by_a_tool_that_is_offered(book: Path) -> None:
    book.write_text('[[reply]]\nmatch = { tool = "get_*" }\ntext = "I can"\n[[reply]]\ntext = "I cannot"\n')
    offered = {"messages": [], "tools": [{"function": {"name": "get_weather"}}, {"function": {}}, {}, 5]}
    assert text_of(ask(book, offered)) == "I can"
    for body in ({"messages": []}, {"messages": [], "tools": "get_weather"}, {"messages": [], "tools": []}):
        assert text_of(ask(book, body)) == "I cannot"


def test_a_request_that_nothing_matches_says_which(book: Path) -> None:
    book.write_text('[[reply]]\nmatch = { call = 1 }\ntext = "x"\n')
    with pytest.raises(ConfigError, match="no reply matches call 2 of b/t7/a/1"):
        ask(book, task="t7", call=2)


# ── what it says ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_reply_is_a_whole_response(book: Path) -> None:
    book.write_text("""
[[reply]]
text = "Let me look."
tool_calls = [{ name = "get_weather", arguments = { city = "Bern" } }, { name = "stop", arguments = '{"half": ' }]
usage = { input = 120, output = 15, cache_read = 100, reasoning = 5, cost_usd = 0.5 }
""")
    response = ask(book, call=3)

    assert text_of(response) == "Let me look."
    found = calls_of_message(assistant_message(response))
    assert [(c.name, c.arguments, c.raw) for c in found] == [
        ("get_weather", {"city": "Bern"}, None),
        ("stop", None, '{"half": '),  # a string is sent as it stands
    ]
    ids = [c["id"] for c in assistant_message(response)["tool_calls"]]  # type: ignore[index,call-overload,union-attr]
    assert ids == ["call_3_0", "call_3_1"]
    assert usage_from_chat(response) == Usage(1, 120, 15, 100, 0, 5, 0, 0.5)
    assert response["choices"][0]["finish_reason"] == "tool_calls"


def test_a_reply_says_why_it_ended_and_whether_it_refused(book: Path) -> None:
    book.write_text('[[reply]]\nmatch = {call = 1}\nfinish = "length"\n[[reply]]\nrefusal = "I would rather not."\n')
    assert ask(book, call=1)["choices"][0]["finish_reason"] == "length"
    second = ask(book, call=2)
    assert second["choices"][0]["finish_reason"] == "stop"
    assert assistant_message(second)["refusal"] == "I would rather not."


def test_the_same_request_always_gets_the_same_response(book: Path) -> None:
    book.write_text('[[reply]]\ntext = "x"\n')
    assert ask(book) == ask(book)


@pytest.mark.parametrize(
    "status, kind",
    [(401, FatalInfraError), (402, FatalInfraError), (403, FatalInfraError), (400, AgentError), (429, InfraError), (503, InfraError)],  # noqa: E501
)  # fmt: skip
def test_a_scripted_error_is_of_its_kind(book: Path, status: int, kind: type[Exception]) -> None:
    book.write_text(f'[[reply]]\nerror = {{ status = {status}, message = "as written" }}\n')
    with pytest.raises(kind, match=f"{status} as written") as raised:
        ask(book)
    assert type(raised.value) is kind


def test_an_error_for_some_tries_passes(book: Path) -> None:
    book.write_text('[[reply]]\nerror = { status = 429, tries = 2, retry_after_s = 7 }\ntext = "at last"\n')
    for number in (1, 2):
        with pytest.raises(TransientError, match="429 scripted failure") as raised:
            ask(book, tries=number)
        assert raised.value.wait_s == 7
    assert text_of(ask(book, tries=3)) == "at last"


# ── playbooks ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_playbook_may_be_lines_of_json(tmp_path: Path) -> None:
    book = tmp_path / "play.jsonl"
    replies = [{"match": {"call": 1}, "text": "one"}, {"text": "other"}]
    book.write_text("\n".join(map(json.dumps, replies)) + "\n\n")
    assert [text_of(ask(book, call=n)) for n in (1, 2)] == ["one", "other"]


@pytest.mark.parametrize("name, text", [
    ("play.toml", '[[reply]]\ntool_calls = [{ name = "f", arguments = { n = 123456789012345678901234567890, x = inf } }]\n'),  # noqa: E501
    ("play.jsonl", '{"tool_calls": [{"name": "f", "arguments": {"n": 123456789012345678901234567890, "x": Infinity}}]}\n'),  # noqa: E501
], ids=["toml", "jsonl"])  # fmt: skip
def test_numbers_keep_every_digit(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    (call,) = calls_of_message(assistant_message(ask(tmp_path / name)))
    assert call.arguments == {"n": 123456789012345678901234567890, "x": float("inf")}


def test_a_playbook_may_say_what_no_encoder_takes(tmp_path: Path) -> None:
    (tmp_path / "play.jsonl").write_text('{"text": "\\ud800", "tool_calls": [{"name": "\\u0000"}]}\n')
    response = ask(tmp_path / "play.jsonl")
    assert text_of(response) == "\ud800"
    assert calls_of_message(assistant_message(response))[0].name == "\0"


def test_a_bad_playbook_says_all_that_is_wrong_and_where(tmp_path: Path) -> None:
    book = tmp_path / "play.jsonl"
    book.write_text('{"txt": "a"}\n{"text": 5}\nno JSON\n{"delay_s": -1}\n{"text": "fine"}\n')
    with pytest.raises(ConfigError, match="is no playbook") as wrong:
        read_playbook(book)
    places = [fault.where for fault in wrong.value.faults]
    assert [p.partition(".")[0].partition("[")[0] for p in places] == ["line 1", "line 2", "line 3", "line 4"]
    assert "did you mean" in str(wrong.value.faults[0])


def test_a_bad_toml_playbook_says_all_that_is_wrong(book: Path) -> None:
    book.write_text('[[reply]]\ntxt = "a"\n[[reply]]\nmatch = { call = "1" }\nerror = { message = "x" }\n')
    with pytest.raises(ConfigError) as wrong:
        read_playbook(book)
    assert len(wrong.value.faults) == 3


def test_no_playbook_says_how_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no playbook at") as none:
        ask(tmp_path / "none.toml")
    assert none.value.hint is not None and "scripted/PATH" in none.value.hint


def test_an_edited_playbook_is_other_content(book: Path) -> None:
    provider = ScriptedProvider()
    book.write_text('[[reply]]\ntext = "a"\n')
    first = provider.content(str(book))
    book.write_text('[[reply]]\ntext = "b"\n')
    assert provider.content(str(book)) != first == {"playbook": first["playbook"]}
    assert len(first["playbook"]) == 64


def test_a_reply_that_says_nothing_is_an_empty_answer(book: Path) -> None:
    book.write_text("[[reply]]\n")
    assert text_of(ask(book)) is None
    assert read_playbook(book).reply == (Reply(),)


def test_a_reply_without_usage_reports_none(tmp_path: Path) -> None:
    (tmp_path / "play.jsonl").write_text('{"text": "x", "usage": null}\n')
    assert usage_from_chat(ask(tmp_path / "play.jsonl")) == Usage(calls=1, unreported=1)
