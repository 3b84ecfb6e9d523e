"""Runs that hold little, or nothing, or no number: each verb has a plain answer and its exit code in every form."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from tests.integration.conftest import Called

Cli: TypeAlias = Callable[..., Called]
SAYS: Final = """
[[reply]]
match = {{ call = 1 }}
text = "I say it."
tool_calls = [{{ name = "say", arguments = {{ text = "{word}" }} }}]
usage = {{ input = {tokens}, output = 1, cost_usd = {usd} }}

[[reply]]
text = "done"
usage = {{ input = 1, output = 1, cost_usd = {usd} }}
"""
# name -> (selector, word that is said, tokens, US dollars a call, repeats)
RUNS: Final = {
    "none-a": ("toy-echo:8", "nothing", 5, 0.5, 1),
    "none-b": ("toy-echo:8", "silence", 5, 0.5, 1),
    "some": ("toy-echo:8", "one", 5, 0.5, 1),
    "free": ("toy-echo:8", "one", 5, 0.0, 1),
    "twice": ("toy-echo:8", "one", 5, 0.5, 2),
    "one-a": ("toy-echo:1", "one", 5, 0.5, 3),
    "one-b": ("toy-echo:1", "two", 5, 0.5, 3),
    "loud": ("toy-echo@loud", "ONE", 5, 0.5, 1),
}


@pytest.fixture
def odd(cli: Cli, tmp_path: Path) -> Cli:
    """The program, with a function of names to make the runs above."""
    for name, (selector, word, tokens, usd, repeats) in RUNS.items():
        (tmp_path / f"{name}.toml").write_text(SAYS.format(word=word, tokens=tokens, usd=usd))
        called = cli(
            "run", selector, "--model", f"scripted/{name}.toml", "--name", name, "--repeats", str(repeats), "--quiet"
        )
        assert called.exit_code == 0, called.stderr
    return cli


CASES: Final = [  # what is odd, the two runs, a metric, exit codes of compare and gate, what compare and gate say
    ("nothing solved", "none-a", "none-b", "pass@1", 0, 1, "A and B solved equally much",
     "neither shown nor ruled out"),
    ("nothing solved", "none-a", "some", "cost_per_solve_usd", 3, 3, "A solved nothing: it has no cost per solve",
     "not comparable: A solved nothing"),
    ("nothing paid", "free", "some", "cost_per_trial_usd", 0, 1, "A's cost per trial is $1.00 lower than B's",
     "no variation to measure"),
    ("nothing paid", "free", "some", "cost_per_solve_usd", 0, 0, "A's cost per solve is $4.00 lower",
     "not worse than the baseline by cost per solve"),
    ("one cluster", "one-a", "one-b", "pass@1", 3, 3, "no interval: one cluster", "1 cluster, and a verdict needs 6"),
    ("all ties", "none-a", "none-b", "tokens", 0, 1, "the same tokens per trial", "no variation to measure"),
    ("unequal repeats", "some", "twice", "pass@1", 0, 1, "8 trials of A and 16 of B", "neither shown nor ruled out"),
    ("no task in common", "some", "loud", "pass@1", 3, 3, "no task has a result on both sides",
     "nothing to compare: no task in common"),
]  # fmt: skip


def words(text: str) -> str:
    return " ".join(text.split())


def test_compare_and_gate_have_an_answer_in_every_form(odd: Cli, tmp_path: Path) -> None:
    for what, a, b, metric, compared, gated, said, told in CASES:
        where = f"{what}: {a} {b} {metric}"
        both = ("--treatment", "model", "--metric", metric)
        text = odd("compare", a, b, *both)
        assert (text.exit_code, said in words(text.stdout)) == (compared, True), f"{where}: {text}"
        (outcome,) = json.loads(odd("compare", a, b, *both, "--json").stdout)["outcomes"]
        assert (outcome["verdict"] == "refused") is (compared == 3), where
        assert outcome["verdict"] in {"refused", "inconclusive", "candidate"}, where
        drop = "5pp" if metric == "pass@1" else "1"
        rule = ("gate", a, "--baseline", b, "--max-drop", drop, *both)
        gate = odd(*rule, "--junit", "gate.xml", "--markdown", "gate.md")
        assert (gate.exit_code, told in words(gate.stdout)) == (gated, True), f"{where}: {gate}"
        suite = ET.parse(tmp_path / "gate.xml").getroot()[0]
        assert (suite.get("errors"), suite.get("failures")) == {3: ("1", "0"), 1: ("0", "1"), 0: ("0", "0")}[gated], (
            where
        )
        assert told in words((tmp_path / "gate.md").read_text()), where
        assert json.loads(odd(*rule, "--json").stdout)["exit_code"] == gated, where


def test_a_report_says_what_is_missing_in_every_form(odd: Cli) -> None:
    for run, said in (
        ("none-a", "solved 0"),
        ("one-a", "no interval: one cluster"),
        ("free", "$0"),
    ):
        assert said in words(odd("report", run).stdout), run
        (cell,) = json.loads(odd("report", run, "--json").stdout)["cells"]
        per_solve = cell["metrics"]["cost_per_solve_usd"]
        if run == "none-a":
            assert per_solve["value"] is None and "solved 0" in per_solve["reason"]
        elif run == "free":
            assert per_solve["value"] == 0.0
        else:
            assert cell["metrics"]["pass@1"]["low"] is None
        for form in ("markdown", "csv", "junit", "github"):
            page = odd("report", run, "--format", form)
            assert page.exit_code == 0 and page.stdout, (run, form)
            assert not {"nan", "$nan", "inf", "$inf", "infinity"} & set(
                page.stdout.lower().replace(",", " ").split()
            ), form


def test_an_arm_without_a_trial_is_said_to_have_none(odd: Cli, tmp_path: Path) -> None:
    ledger = tmp_path / "runs" / "some" / "attempts.jsonl"
    ledger.write_bytes(b"")
    for verb in (("compare", "some", "none-a"), ("gate", "some", "--baseline", "none-a", "--max-drop", "5pp")):
        called = odd(*verb, "--treatment", "model")
        assert called.exit_code == 3 and "of run some has no trial yet" in called.stderr, verb
    assert odd("report", "some").exit_code == 0
    assert "0 of 8" in odd("report", "some").stdout


def test_a_number_that_is_none_in_a_ledger_is_named_with_its_line(odd: Cli, tmp_path: Path) -> None:
    ledger = tmp_path / "runs" / "some" / "attempts.jsonl"
    ledger.write_text(ledger.read_text().replace('"wall_s":', '"wall_s":NaN,"was":', 1))
    for verb in (("report", "some"), ("compare", "some", "twice"), ("power", "study.toml", "--pilot", "some")):
        (tmp_path / "study.toml").write_text(
            '[study]\nname = "s"\nbenchmarks = ["toy-echo:8"]\n'
            '[arms.a]\nharness = "react"\nmodel = "scripted/some.toml"\n'
            '[arms.b]\nharness = "react"\nmodel = "scripted/free.toml"\n[[contrasts]]\na = "a"\nb = "b"\n'
        )
        called = odd(*verb)
        assert called.exit_code == 2 and "attempts.jsonl:1: not a line of this ledger" in called.stderr, verb


def test_power_says_why_a_pilot_can_tell_nothing(odd: Cli, tmp_path: Path) -> None:
    study = (
        '[study]\nname = "s"\nbenchmarks = ["toy-echo:8"]\n'
        '[arms.a]\nharness = "react"\nmodel = "scripted/{a}.toml"\n'
        '[arms.b]\nharness = "react"\nmodel = "scripted/{b}.toml"\n[[contrasts]]\na = "a"\nb = "b"\n'
    )
    (tmp_path / "study.toml").write_text(study.format(a="some", b="none-a"))
    missing = odd("power", "study.toml", "--pilot", "some")
    assert missing.exit_code == 2 and "the pilot has no trials of a and b" in missing.stderr
    assert odd("run", "study.toml", "--name", "pilot", "--quiet").exit_code == 0
    single = odd("power", "study.toml", "--pilot", "pilot")
    assert single.exit_code in {0, 2} and "bug" not in single.stderr
    assert "pilot" in words(single.stdout + single.stderr)
