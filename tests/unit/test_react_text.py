"""The text protocol: any reply can be read, and what a call block says is what is called."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from evalcore.builtin.react_text import (
    CLOSING,
    OPENING,
    instructions,
    read_reply,
    render_call,
    results_message,
    with_offer,
)
from evalcore.engine.store import TraceStore, read_attempts, read_gradings, read_stamp
from evalcore.values.task import Call, ToolSpec
from evalcore.values.trace import first_response_calls
from tests.integration.test_straight_line import carry_out, study

WEATHER = ToolSpec("get_weather", "Weather of a city.", {"type": "object", "properties": {"city": {"type": "string"}}})

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
plain = st.text().filter(lambda t: OPENING not in t and CLOSING not in t)
pieces = st.lists(st.sampled_from([OPENING, CLOSING, "{", "}", '"name"', ":", '"x"', " ", "\n", "text", "<"]))


@given(st.lists(st.tuples(plain, st.text(min_size=1), json_values), max_size=4), plain)
def test_calls_written_in_the_form_are_read_back(written: list[tuple[str, str, object]], after: str) -> None:
    text = "".join(before + render_call(name, arguments) for before, name, arguments in written) + after  # type: ignore[arg-type]
    calls = [c for c in read_reply(text).calls if c.raw is None]
    kept = [Call(n, a) for _, n, a in written if CLOSING not in render_call(n, a)[len(OPENING) : -len(CLOSING)]]  # type: ignore[arg-type]
    if len(kept) == len(written):
        assert calls == kept


@given(st.text() | pieces.map("".join))
def test_no_reply_raises(text: str) -> None:
    reply = read_reply(text)
    assert len(reply.calls) <= text.count(OPENING)
    assert OPENING not in reply.text


def test_a_block_that_is_none_is_a_malformed_call_with_its_text() -> None:
    assert read_reply("<tool_call>{oops}</tool_call>").calls == (Call("", None, "{oops}"),)
    assert read_reply("<tool_call>[1]</tool_call>").calls == (Call("", None, "[1]"),)
    assert read_reply('<tool_call>{"name": "a"}').calls == (Call("", None, '{"name": "a"}'),)
    assert read_reply("<tool_call>" + "[" * 100_000 + "</tool_call>").calls[0].raw is not None


def test_left_out_arguments_are_an_empty_object() -> None:
    assert read_reply('<tool_call>{"name": "a"}</tool_call>').calls == (Call("a", {}),)


def test_the_tools_are_offered_in_the_system_message() -> None:
    system, user = {"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}
    offered = with_offer([system, user], instructions([WEATHER]))
    assert len(offered) == 2 and offered[1] == user
    assert offered[0] == {"role": "system", "content": "Be kind.\n\n" + instructions([WEATHER])}
    assert with_offer([user], instructions([WEATHER]))[0] == {"role": "system", "content": instructions([WEATHER])}
    assert with_offer([user], "") == [user]


@given(st.text())
def test_a_result_cannot_pass_for_a_block(text: str) -> None:
    content = results_message([("t", f"</tool_result>{OPENING}{text}", False)])["content"]
    assert isinstance(content, str)
    assert content.count("</tool_result>") == 1
    assert OPENING not in content


PLAYBOOK = """
[[reply]]
match = { call = 1 }
text = '''I look it up.
<tool_call>
{"name": "get_weather", "arguments": {"city": "Bern"}}
</tool_call>
<tool_call>
{"name": "get_weather", "arguments": {"city": "Oslo"}}
</tool_call>'''

[[reply]]
match = { call = 2 }
text = "<tool_call>{broken</tool_call>"

[[reply]]
text = "10 degrees in Bern, 13 degrees in Oslo"
"""


def test_a_whole_trial_in_text(tmp_path: Path) -> None:
    (tmp_path / "text.toml").write_text(PLAYBOOK)
    arms = {"t": {"harness": "react", "model": "scripted/text.toml", "tool_protocol": "text"}}
    asyncio.run(carry_out(study(arms=arms, repeats=1, benchmarks=("toy-weather:2",)), tmp_path))

    run = tmp_path / "r"
    attempt = next(read_attempts(run))
    assert (attempt.tool_calls, attempt.tool_errors) == (3, 1)
    verdicts = [g.verdict.outcome for g in read_gradings(run, read_stamp(run).grading)]
    assert verdicts == ["pass", "pass"]
    store = TraceStore(run)
    reader = store.read(attempt.trace)
    store.close()
    assert first_response_calls(reader) == [
        Call("get_weather", {"city": "Bern"}),
        Call("get_weather", {"city": "Oslo"}),
    ]
    first, second, _ = reader.requests()
    assert "tools" not in first
    handed = second["messages"][-1]  # type: ignore[index,call-overload]
    assert handed["role"] == "user" and handed["content"].count("<tool_result>") == 2
