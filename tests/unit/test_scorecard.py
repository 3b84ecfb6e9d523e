"""The report as JSON for programs and as tables for people."""

from __future__ import annotations

import json
import math
import random
import re
from typing import Any

import jsonschema
import pytest
from attrs import evolve

from evalcore.report import scorecard
from evalcore.report.model import Report
from evalcore.report.words import dollars, percent, safe, seconds
from evalcore.values.arm import Arm
from evalcore.values.trial import Exit
from evalcore.values.usage import Usage
from tests.unit.report_samples import (
    BFCL,
    CONSTRAINED,
    F1,
    NOOP,
    ORACLE,
    REACT,
    attempt,
    flat,
    graded,
    report,
    shown,
    stamp,
    trials,
    void,
)

# ── the scorecard ────────────────────────────────────────────────────────────────────────────────────────────────────


def full() -> Report:
    """A report with something of everything."""
    run = evolve(
        stamp([REACT, CONSTRAINED, ORACLE, NOOP]),
        toolkits={"bfcl": {"version": "2026.3.23", "odd": math.nan}},
        study={"contrasts": [{"a": "plain", "b": "constrained", "metric": "pass@1"}]},
    )
    pairs = [pair for arm in (REACT, CONSTRAINED) for pair in trials(F1, arm)]
    pairs += [
        graded(attempt("t1", 0, ORACLE), "pass", views={"loop": True}),
        graded(attempt("t1", 0, NOOP), "ungraded"),
    ]
    return report([*pairs, void("t1", 1)], run)


def test_the_scorecard_fits_its_published_schema() -> None:
    schema = scorecard.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    whole = scorecard.to_json(full())
    jsonschema.Draft202012Validator(schema).validate(whole)
    assert whole["schema"] == schema["$id"] == "evalcore.scorecard/1"


def test_the_schema_describes_every_field() -> None:
    schema: Any = scorecard.schema()
    whole: Any = scorecard.to_json(full())
    definitions = schema["$defs"]
    assert set(whole) == set(schema["properties"])
    for one in whole["cells"]:
        described = definitions["cell"]["properties"]
        assert set(one) == set(described)
        for part in ("dataset", "arm", "stamp"):
            assert set(one[part]) == set(described[part]["properties"])
        for metric in (*one["metrics"].values(), *one["views"].values()):
            assert set(metric) == set(definitions["metric"]["properties"])
        for usage in (*one["usage"].values(), *one["wasted"].values()):
            assert set(usage) == set(definitions["usage"]["properties"])


def test_what_architecture_11_asks_for_is_there() -> None:
    whole: Any = scorecard.to_json(full())
    assert whole.keys() >= {"schema", "run", "study", "created", "grading", "cells", "groups", "contrasts", "notes"}
    one = whole["cells"][0]
    assert one.keys() >= {
        "benchmark", "dataset", "arm", "stamp", "tasks", "trials", "planned", "clusters", "outcomes", "harm",
        "excluded", "voids", "exits", "usage", "metrics",
    }  # fmt: skip
    assert one["stamp"].keys() >= {"harness", "mode", "model_served", "toolkits", "isolation", "provenance", "limits"}
    assert one["metrics"].keys() >= {"pass@1", "pass^3", "cost_per_solve_usd", "tokens", "tool_error_rate"}
    assert one["metrics"]["pass@1"].keys() >= {"value", "low", "high", "level", "method", "n", "validated"}
    assert one["stamp"]["reasons"].keys() >= {"mode", "model_served"}


def test_the_file_has_no_nan_and_survives_any_text() -> None:
    odd = evolve(
        REACT,
        arm=Arm("odd", {"harness": "react", "model": "a/\udcff\x1b[31m", "temperature": math.nan, "big": 10**30}),
    )
    pairs = trials(F1, odd)
    data = scorecard.encode(report(pairs, stamp([odd])))
    read = json.loads(data, parse_constant=lambda name: pytest.fail(f"{name} in the scorecard"))
    axes = read["cells"][0]["arm"]["axes"]
    assert axes == {"harness": "react", "model": "a/\udcff\x1b[31m", "temperature": "nan", "big": 10**30}
    assert data.endswith(b"\n")


def test_the_order_of_the_ledger_changes_no_byte() -> None:
    rng = random.Random(11)
    pairs = [
        graded(
            evolve(one, wall_s=rng.random(), usage={"agent": Usage(1, 7, 3, cost_usd=rng.random())}), g.verdict.outcome
        )
        for one, g in trials(F1)
        if g is not None
    ]
    first = scorecard.encode(report([*pairs, void("t1", 1)]))
    for _ in range(5):
        rng.shuffle(pairs)
        assert scorecard.encode(report([void("t1", 1), *pairs])) == first


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160])
def test_the_table_fits_its_width_and_says_what_matters(width: int) -> None:
    text = shown(full(), width)
    assert max(map(len, text.splitlines())) <= width
    squeezed = flat(text)
    for words in ("61.1 %", "24.9–88.2 %", "18 of 18", "isolation none", "oracle (ceiling)", "How to read this"):
        assert words in squeezed, words
    assert "\x1b" not in text


def test_a_narrow_page_keeps_every_number() -> None:
    pairs = [
        graded(
            attempt(f"t{n}", k, arm, wall_s=0.5 + n, usage={"agent": Usage(3, 1_234_567 + n, 89, cost_usd=0.0123)}),
            "pass",
        )
        for n in range(6)
        for k in range(3)
        for arm in (REACT, CONSTRAINED)
    ]
    whole = report(pairs, stamp([REACT, CONSTRAINED]))
    wide, narrow = (re.findall(r"\$?[0-9][0-9,.]*", shown(whole, width)) for width in (200, 40))
    assert set(wide) <= set(narrow) and "1,234,658" in narrow


def test_pass_hat_k_is_shown_for_the_same_k_in_every_row() -> None:
    pairs = [*trials(F1), *trials({**F1, "t6": (1, 1)}, CONSTRAINED)]
    text = flat(shown(report(pairs, stamp([REACT, CONSTRAINED])), 160))
    assert "all 2" in text
    assert "all 3" not in text


def test_neither_markup_nor_escapes_reach_the_terminal() -> None:
    evil = evolve(
        REACT, arm=Arm("evil", {"harness": "react", "model": "x/[bold red]\x1b]0;title\x07[/]\u202eevil\nline\udcff"})
    )
    odd = evolve(BFCL, selector="bench\x1b[2J", floor_note="[link=http://x]\x1b[31m\rnote", grader="g[red]")
    one = attempt("t1", arm=evil, flags=("[blink]\x1b[5m",), exit=Exit("limit", "\x1b[1m"))
    one = evolve(one, key=evolve(one.key, benchmark=odd.selector))
    whole = report([graded(one, "pass", views={"\x1b[7m[u]view": True})], stamp([evil], [odd], 1))
    text = shown(whole, 160)
    assert not set(text) & set("\x1b\x07\r\u202e\udcff")
    for literal in ("[bold red]", "[link=http://x]", "g[red]", "[blink]", "[u]view"):
        assert literal in text
    text.encode("utf-8")


@pytest.mark.parametrize(
    "text, cleaned",
    [
        ("plain × é", "plain × é"),
        ("a\x1b[31mb", "a\ufffd[31mb"),
        ("a\nb\tc", "a b c"),
        ("\u202ex\udcff", "\ufffdx\ufffd"),
    ],
)
def test_foreign_text_is_cleaned(text: str, cleaned: str) -> None:
    assert safe(text) == cleaned


def test_numbers_read_as_people_write_them() -> None:
    assert [percent(x) for x in (0.0, 0.0001, 0.5, 0.9999, 1.0)] == ["0.0 %", "<0.1 %", "50.0 %", ">99.9 %", "100.0 %"]
    assert [dollars(x) for x in (0.0, 0.00314, 0.042, 0.5, 12.345, 1234.5)] == [
        "$0", "$0.0031", "$0.042", "$0.50", "$12.35", "$1,234",
    ]  # fmt: skip
    assert [seconds(x) for x in (0.0004, 0.42, 3.21, 59.97, 123.0)] == [
        "0.4 ms",
        "0.42 s",
        "3.2 s",
        "1 min 00 s",
        "2 min 03 s",
    ]
