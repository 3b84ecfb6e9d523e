"""What is printed: clean, aligned, and JSON that every reader takes."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.cli import output


@pytest.fixture(autouse=True)
def columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of 60 columns."""
    monkeypatch.setenv("COLUMNS", "60")


@given(st.text())
def test_clean_text_is_printable_and_keeps_its_lines(text: str) -> None:
    cleaned = output.clean(text)
    assert all(c == "\n" or c.isprintable() for c in cleaned)
    assert cleaned.count("\n") == text.count("\n")


def test_plain_text_is_left_alone() -> None:
    assert output.clean("Grüße, 世界\n  two") == "Grüße, 世界\n  two"
    assert output.clean("a\tb") == "a   b"


def test_columns_are_aligned_and_the_last_is_wrapped() -> None:
    rows = [("a", "x" * 12, "one two three four five six seven eight nine ten"), ("bcd", "y", "short")]
    assert output.table(rows, ("n", "what", "why")) == (
        "n    what          why\n"
        "a    xxxxxxxxxxxx  one two three four five six seven eight\n"
        "                   nine ten\n"
        "bcd  y             short"
    )


def test_a_narrow_page_stacks_what_it_cannot_align(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    rows = [("react × openai/gpt-5.2", "1,234,567", "$0.0123", "of 114 trials"), ("noop", "0", "", "0.0 %")]
    text = output.table(rows, ("", "tokens", "cost", "done"), indent=2)
    assert text == (
        "  react × openai/gpt-5.2\n"
        "    tokens: 1,234,567\n"
        "    cost: $0.0123\n"
        "    done: of 114 trials\n"
        "  noop\n"
        "    tokens: 0\n"
        "    done: 0.0 %"
    )
    assert max(map(len, output.table([("a" * 90, "b", "c" * 50)]).splitlines())) <= 40
    plain = output.table([("run", "made"), ("other", "then")], ("name", "when"))
    assert plain == "name   when\nrun    made\nother  then"  # what fits is aligned as ever


def test_no_rows_are_no_text() -> None:
    assert output.table([]) == ""


def test_a_cell_with_line_breaks_stays_on_its_line() -> None:
    assert output.table([("a\nb\x1b", "c")]) == "a b\N{REPLACEMENT CHARACTER}  c"


def test_a_paragraph_is_wrapped() -> None:
    assert max(map(len, output.paragraph("word " * 60).split("\n"))) <= 60


def test_json_is_ascii_and_has_no_nan(capsys: pytest.CaptureFixture[str]) -> None:
    output.say_json({"n": math.nan, "i": [math.inf, -math.inf, 1.5], "t": ("\x1b\x9b", "\ud800"), 3: None})
    out = capsys.readouterr().out
    assert out.isascii()
    assert json.loads(out) == {"n": "nan", "i": ["inf", "-inf", 1.5], "t": ["\x1b\x9b", "\ud800"], "3": None}


def test_results_and_words_beside_them_go_apart(capsys: pytest.CaptureFixture[str]) -> None:
    output.say("result\x1b")
    output.tell("beside\x07")
    assert capsys.readouterr() == ("result\N{REPLACEMENT CHARACTER}\n", "beside\N{REPLACEMENT CHARACTER}\n")
