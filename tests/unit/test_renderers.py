"""The report as Markdown, CSV, JUnit XML and a step summary: its numbers, and nothing that a text could do there."""

from __future__ import annotations

import csv
import io
import itertools
import random
import re
from typing import Final
from xml.etree import ElementTree as ET

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from evalcore.report import junit, markdown, tabular
from evalcore.report.model import Report
from evalcore.values.arm import Arm
from evalcore.values.stamp import GroupStamp
from evalcore.values.trial import Exit, Grading, Verdict
from tests.unit.report_samples import (
    BFCL,
    F1,
    NOOP,
    ORACLE,
    REACT,
    Pair,
    attempt,
    graded,
    report,
    stamp,
    trials,
    void,
)

EVIL: Final = "=cmd()|<script>x</script> `*_[a](http://x) @octocat \x1b[31m\x00\ud800 </details> & ]]>"
MARKDOWN: Final = MarkdownIt("commonmark").enable(["table", "strikethrough"])
WORDS: Final = st.text() | st.text(alphabet="\\`*_{}[]()<>#+-.!|~&$@:/=^ w1a\n")


def broken_grader(task: str, repeat: int = 0) -> Pair:
    """An attempt whose grader failed."""
    one = attempt(task, repeat)
    return one, Grading(one.id, Verdict("grader_error"), 0.1, error="KeyError: 'x'")


def mixed() -> list[Pair]:
    """Trials of every kind: in three repeats, t1 and t6 are solved, t2 to t5 are not whenever they are tried."""
    return [
        *trials(F1),
        *trials(F1, ORACLE),
        *trials(dict.fromkeys(F1, (0, 0, 0)), NOOP),
        void("lost"),
        void("lost", number=2),
        broken_grader("broken"),
        graded(attempt("open"), "ungraded"),
    ]


def mixed_report() -> Report:
    """The report of them."""
    run = stamp((REACT, ORACLE, NOOP), (evolve(BFCL, tasks=9, clusters=9),))
    return report(mixed(), run)


def evil_report() -> tuple[Report, list[Pair]]:
    """A report in which every stranger's text tries something, and its attempts."""
    arm = evolve(REACT, arm=Arm(EVIL, {"harness": "react", "model": f"openai/{EVIL}"}), harness_version=EVIL)
    bench = evolve(BFCL, selector=EVIL, dataset=evolve(BFCL.dataset, name=EVIL, version=EVIL), floor_note=EVIL)
    run = evolve(stamp((arm,), (bench,), 1), study_name=EVIL, run=EVIL, groups=(GroupStamp(EVIL, {EVIL: 1.0}),))

    def tried(task: str, **changes: object) -> Pair:
        one = attempt(task, 0, arm, **changes)
        one = evolve(one, key=evolve(one.key, benchmark=EVIL))
        grading = Verdict("fail", flags=(EVIL,), views={EVIL: True})
        return one, None if one.void else Grading(one.id, grading, 0.1)

    pairs = [tried(EVIL), tried("t2", exit=Exit("crashed", detail=EVIL)), (void("t3")[0], None)]
    lost = pairs.pop()[0]
    pairs.append((evolve(lost, key=evolve(lost.key, benchmark=EVIL, arm=arm.arm.digest)), None))
    return report(pairs, run), pairs


# ── CSV ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_csv(data: bytes) -> list[dict[str, str]]:
    """The rows of a file."""
    return list(csv.DictReader(io.StringIO(data.decode()), strict=True))


def test_csv_has_a_row_for_each_cell_and_metric_and_reads_back_whole() -> None:
    whole = mixed_report()
    read = {(row["arm"], row["metric"]): row for row in read_csv(tabular.encode(whole))}
    assert len(read) == sum(len(cell.metrics) for cell in whole.cells)
    for cell in whole.cells:
        for name, metric in cell.metrics.items():
            row = read[cell.arm.arm.label, name]
            for field in ("value", "low", "high", "level"):
                value = getattr(metric, field)
                assert row[field] == "" if value is None else float(row[field]) == value
            assert (row["estimand"], row["reason"]) == (metric.method, metric.reason or "")
            assert int(row["n"]) == metric.n
            assert row["value"] or row["reason"]
            assert (int(row["graded"]), int(row["planned"])) == (cell.graded, cell.planned)
    row = read["react × openai/gpt-5.2", "pass@1"]
    assert float(row["value"]) == pytest.approx(11 / 18)
    assert [row[name] for name in ("infra_error", "grader_error", "ungraded", "voids")] == ["1", "1", "1", "2"]
    assert float(row["bound_low"]) < float(row["value"]) < float(row["bound_high"])


def test_csv_leaves_empty_what_is_not_known_and_says_why() -> None:
    rows = {row["metric"]: row for row in read_csv(tabular.encode(report([], stamp())))}
    assert (rows["pass@1"]["value"], rows["pass@1"]["reason"]) == ("", "nothing has been graded")
    assert rows["pass@1"]["provenance"] == "" and "provenance: nothing has run" in rows["pass@1"]["cell_reasons"]
    assert rows["pass@1"]["harm"] == "" and "harm: " in rows["pass@1"]["cell_reasons"]
    assert "nan" not in tabular.encode(report([], stamp())).decode().lower().replace("provenance", "")


def test_csv_has_views_beside_the_metrics() -> None:
    rows = read_csv(tabular.encode(report([graded(attempt("t1"), "pass", views={"loose": True})])))
    assert [(row["kind"], row["value"]) for row in rows if row["metric"] == "loose"] == [("view", "1.0")]


def test_csv_of_nothing_is_its_head() -> None:
    assert tabular.encode(report([], stamp((), ()))).decode().count("\n") == 1


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1"])
def test_csv_has_no_formula(text: str) -> None:
    (row, *_) = read_csv(tabular.encode(report(trials(F1), evolve(stamp(), study_name=text))))
    assert row["study"].startswith("'") and row["study"].endswith(text.strip())


def test_csv_quotes_text_alone() -> None:
    whole, _ = evil_report()
    data = tabular.encode(whole)
    rows = read_csv(data)
    assert {len(row) for row in rows} == {len(tabular.COLUMNS)}
    assert rows[0]["run"].startswith("'=cmd()|<script>")
    assert not re.search(rb"[\x00-\x09\x0b-\x1f]", data)
    assert data.count(b"\n") == len(rows) + 1


# ── JUnit ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def suites(whole: Report, pairs: list[Pair]) -> dict[str, ET.Element]:
    """The suites of a file by name, their totals checked against their cases."""
    root = ET.fromstring(junit.encode(whole, junit.by_task(pairs)))
    found = {suite.get("name", ""): suite for suite in root}
    assert len(found) == len(whole.cells)
    for element in (root, *root):
        assert int(element.get("tests", "")) == len(list(element.iter("testcase")))
        for total, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(element.get(total, "")) == len(list(element.iter(tag)))
    return found


def states(suite: ET.Element) -> dict[str, str]:
    """What each case is."""
    return {c.get("name", ""): c[0].tag if len(c) else "passed" for c in suite.iter("testcase")}


def test_junit_says_of_each_task_what_became_of_it() -> None:
    found = suites(mixed_report(), mixed())
    assert states(found["bfcl-simple-python.plain"]) == {
        "t1": "passed",
        "t6": "passed",
        **dict.fromkeys(("t2", "t3", "t4", "t5"), "failure"),
        "lost": "error",
        "broken": "error",
        "open": "skipped",
        junit.NOT_RUN: "skipped",
    }
    case = next(c for c in found["bfcl-simple-python.plain"].iter("testcase") if c.get("name") == "t2")
    assert case[0].get("message") == "not solved in 1 of 3 graded trials"
    assert "repeat 1: fail; evalcore trace run-1 plain/t2/1/1" in (case[0].text or "")
    lost = next(c for c in found["bfcl-simple-python.plain"].iter("testcase") if c.get("name") == "lost")
    assert (lost[0].get("type"), lost[0].text) == (
        "infra_error",
        "repeat 0: infra_error (provider: 503); evalcore trace run-1 plain/lost/0/2",
    )


def test_junit_does_not_fail_a_floor_and_fails_a_ceiling() -> None:
    found = suites(mixed_report(), mixed())
    assert set(states(found["bfcl-simple-python.noop"]).values()) == {"skipped"}
    assert states(found["bfcl-simple-python.oracle"])["t3"] == "failure"


def test_junit_holds_the_numbers_of_the_report() -> None:
    whole = mixed_report()
    for cell, suite in zip(whole.cells, suites(whole, mixed()).values(), strict=True):
        properties = {p.get("name"): p.get("value") for p in suite.iter("property")}
        for name, metric in cell.metrics.items():
            assert properties[name] == ("" if metric.value is None else repr(metric.value))
            assert properties[f"{name}.estimand"] == metric.method
            assert properties.get(f"{name}.reason") == metric.reason


@pytest.mark.parametrize("seed", range(20))
def test_junit_counts_the_trials_that_the_report_counts(seed: int) -> None:
    rng = random.Random(seed)
    pairs: list[Pair] = []
    for task, repeat in itertools.product(("t1", "t2", "t3", "t4"), range(3)):
        for number in range(1, rng.randint(1, 4) + 1):
            kind = rng.choice(["void", "none", "pass", "fail", "declined", "ungraded", "grader_error"])
            place = {"provenance": rng.choice(["live", "replayed"]), "number": number}
            if kind == "void":
                one, _ = void(task, repeat, number)
                pairs.append((evolve(one, provenance=place["provenance"]), None))
            else:
                one = attempt(task, repeat, **place)
                pairs.append((one, None) if kind == "none" else graded(one, kind))
    whole, places = report(pairs), junit.by_task(pairs)
    for cell in whole.cells:
        tasks = places.get((cell.benchmark.selector, cell.arm.arm.digest, cell.provenance, cell.isolation), {})
        outcomes = [trial.outcome for trials_ in tasks.values() for trial in trials_]
        assert {name: outcomes.count(name) for name in cell.outcomes} == cell.outcomes
        assert {name: outcomes.count(name) for name in cell.excluded} == cell.excluded
    assert sum(len(suite.findall("testcase")) for suite in suites(whole, pairs).values()) >= 4


def test_junit_of_a_run_that_has_not_begun_is_not_green() -> None:
    (suite,) = suites(report([], stamp()), []).values()
    assert states(suite) == {junit.NOT_RUN: "skipped"}
    assert suite.get("skipped") == "1"


def test_junit_holds_any_text() -> None:
    whole, pairs = evil_report()
    data = junit.encode(whole, junit.by_task(pairs))
    assert not re.search(rb"[\x00-\x09\x0b-\x1f]", data) and b"<script>" not in data
    (suite,) = suites(whole, pairs).values()
    assert "error" in states(suite).values()
    assert any("<script>x</script>" in name for name in states(suite))


# ── Markdown ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def tables(text: str) -> list[list[list[str]]]:
    """The tables of a page as its reader sees them: rows of cells."""
    found: list[list[list[str]]] = []
    for token, inner in itertools.pairwise(MARKDOWN.parse(text)):
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            found[-1].append([])
        elif token.type in ("td_open", "th_open"):
            content = (c.content if c.type != "html_inline" else "\n" for c in inner.children or ())
            found[-1][-1].append("".join(content))
    return found


def assert_sound(text: str) -> None:
    """Every line that looks like a row is one of a table whose rows are equally long; nothing but ours is HTML."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    made = tables(text)
    assert sum(len(table) for table in made) == len(rows) - len(made)  # the rules below the heads are no rows
    for table in made:
        assert {len(row) for row in table} == {len(table[0])}
    assert set(re.findall(r"<[^>]*>", text)) <= {"<br>", "<details>", "</details>", "<summary>", "</summary>"}
    assert "\x1b" not in text


TOKENS = "mean over tasks of each task's mean over its executed trials of the agent's input and output tokens"


def test_markdown_has_the_numbers_of_the_report() -> None:
    whole = mixed_report()
    text = markdown.page(whole)
    assert_sound(text)
    agents, controls, numbers = tables(text)
    row = dict(zip(agents[0], agents[1], strict=True))
    assert row["configuration"] == "react × openai/gpt-5.2\nisolation none"
    assert row["solved (pass@1)"] == "61.1 %"
    assert row["trials graded"] == "18 of 27\n1 void\n1 grader error\n1 ungraded\n6 not run"
    assert row["cost in all"] == "$0.20"
    assert [cells[1] for cells in controls[1:]] == ["61.1 %", "0.0 %"]
    read = {(cells[0].split("\n")[0], cells[1]): cells for cells in numbers[1:]}
    assert len(read) == sum(len(cell.metrics) for cell in whole.cells)
    metric = whole.cells[0].metrics["pass@1"]
    assert read["react × openai/gpt-5.2", "pass@1"][2] == f"{metric.value:.6g}"
    assert read["react × openai/gpt-5.2", "pass@1"][5] == metric.method
    assert read["oracle (ceiling)", "tokens"][2:] == [*("–", "–", "0", TOKENS, "no", "no model")]


def test_markdown_says_what_must_be_known() -> None:
    text = markdown.page(mixed_report())
    assert "- **react × openai/gpt-5.2**: 1 trial not counted: the grader failed" in text
    assert "if every ungraded trial failed" in text
    assert "- isolation none: no sandbox stood" in text


def test_markdown_of_nothing_says_so() -> None:
    assert "there is nothing to report" in markdown.page(report([], stamp((), ())))
    assert "nothing to report" in markdown.summary(report([], stamp((), ())))


def test_markdown_of_a_run_that_has_not_begun_has_reasons_and_no_zero() -> None:
    text = markdown.page(report([], stamp()))
    assert_sound(text)
    agents, _ = tables(text)
    row = dict(zip(agents[0], agents[1], strict=True))
    assert row["solved (pass@1)"] == "–\nnothing has been graded"
    assert "0.0 %" not in text and "nan" not in text


def test_markdown_shows_any_text_and_obeys_none() -> None:
    whole, _ = evil_report()
    for text in (markdown.page(whole), markdown.summary(whole)):
        assert_sound(text)
        kinds = {child.type for token in MARKDOWN.parse(text) for child in token.children or ()}
        assert kinds <= {"text", "text_special", "html_inline", "strong_open", "strong_close", "softbreak"}
        assert "<script>x</script>" in tables(text)[0][1][0]
        assert text.count("</details>") == text.count("<details>")


@given(WORDS)
def test_escaped_text_reads_as_it_was_and_does_nothing(text: str) -> None:
    made = markdown.escaped(text)
    (paragraph, *_) = MARKDOWN.parse(f"x {made} x")[1:2]
    seen = "".join(child.content for child in paragraph.children or ())
    assert {child.type for child in paragraph.children or ()} <= {"text", "text_special"}
    joiner = "\N{WORD JOINER}"
    assert seen.replace(joiner, "") == f"x {markdown.safe(text).strip()} x".replace(joiner, "")


@given(WORDS)
def test_escaped_text_stays_a_paragraph_and_one_cell(text: str) -> None:
    made = markdown.escaped(text)
    if made:
        assert [t.type for t in MARKDOWN.parse(f"- {made}")][2:5] == ["paragraph_open", "inline", "paragraph_close"]
    assert [len(row) for row in tables(f"| a | b |\n| -- | -- |\n| {made} | y |")[0]] == [2, 2]
    assert tables(f"| a | b |\n| -- | -- |\n| {made} | y |")[0][1][1] == "y"


@pytest.mark.parametrize(
    "text", ["https://x.example/a", "www.x.example", "a@b.example", "@octocat", "mailto:a@b.example"]
)
def test_what_would_become_a_link_or_a_mention_is_broken(text: str) -> None:
    made = markdown.escaped(text)
    assert not re.search(r"\w://|www\.|\w@\w+\.|(^|\W)@\w|mailto:", made)


def test_a_summary_is_a_short_table_with_the_rest_folded() -> None:
    whole = mixed_report()
    text = markdown.summary(whole)
    assert_sound(text)
    head, *_ = text.partition("<details>")
    (table,) = tables(head)
    assert [row[1].split("\n")[0] for row in table[1:]] == [
        *("react × openai/gpt-5.2", "oracle (ceiling)", "noop (floor)")
    ]
    assert text.count("<details><summary>") == 2


def test_a_summary_keeps_to_its_limit_and_says_what_is_left_out() -> None:
    whole = mixed_report()
    short = markdown.summary(whole, limit=3_000)
    assert len(short.encode()) <= 3_000
    assert "Left out for its size: 1 section." in short
    assert short.count("<details>") == short.count("</details>") == 1
    assert "61.1 %" in short


def test_groups_are_shown_with_what_they_are_short_of() -> None:
    other = evolve(BFCL, selector="another")
    run = evolve(stamp((REACT,), (BFCL, other)), groups=(GroupStamp("all", {BFCL.selector: 1.0, "another": 2.0}),))
    (*_, group) = tables(markdown.page(report(trials(F1), run)))
    assert group[1][0] == "all (part)"
    assert group[1][2:] == ["–", "bfcl-simple-python × 1, another × 2", "no one value for another"]
