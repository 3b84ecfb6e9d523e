"""The gate: passed, failed, inconclusive or refused, in one sentence and as CI systems read it."""

from __future__ import annotations

import pytest
from attrs import evolve

from evalcore.report.compare import compare
from evalcore.report.gate import gate, gate_json, junit, markdown
from evalcore.report.sides import Side, SideBuilder
from evalcore.values.usage import Usage
from tests.unit.compare_samples import run, side, tasks, two
from tests.unit.report_samples import BFCL, REACT, attempt, graded


@pytest.mark.parametrize(
    "a, b, lenient, answer, code",
    [
        ([1] * 100, [1] * 100, False, "passed", 0),
        ([0] * 20, [1] * 20, False, "failed", 1),
        ([0] * 20, [1] * 20, True, "failed", 1),
        ([1] * 12, [1] * 12, False, "inconclusive", 1),
        ([1] * 12, [1] * 12, True, "inconclusive", 0),
        ([1] * 5, [1] * 5, True, "refused", 3),
    ],
)
def test_a_gate(a: list[int], b: list[int], lenient: bool, answer: str, code: int) -> None:
    made = gate(two(tasks(a), tasks(b)), 0.05, lenient=lenient)
    assert (made.answer, made.exit_code) == (answer, code)
    assert "\n" not in made.sentence
    assert gate_json(made)["exit_code"] == code
    assert (b"<failure" in junit(made)) == (code == 1) and (b"<error" in junit(made)) == (code == 3)
    assert made.sentence.split(":")[0].split(",")[0] in markdown(made)


def test_an_inconclusive_gate_says_how_many_trials_would_decide() -> None:
    made = gate(two(tasks([1] * 6), tasks([1] * 6)), 0.05)
    (checked,) = made.checked
    # every one of n equal pairs: Newcombe's lower bound is Wilson's width at 1, z^2/(n + z^2), with z = 1.645
    n = 1.6448536**2 * (1 / 0.05 - 1)
    assert checked.settle.need is not None and checked.settle.need.clusters == pytest.approx(n, abs=1)
    assert "about 52 trials of either side would decide" in made.sentence


def test_a_gate_says_when_more_repeats_are_the_way() -> None:
    a = {f"t{n}": (1, 0, 1, 0) if n % 2 else (1, 1, 0, 1) for n in range(12)}
    b = {f"t{n}": (0, 1, 1, 0) if n % 3 else (1, 0, 1, 1) for n in range(12)}
    whole = {"benchmarks": (evolve(BFCL, of_tasks=12),)}
    made = gate(compare(side(a, run("new", **whole)), side(b, run("old", **whole))), 0.05)
    (checked,) = made.checked
    assert checked.answer == "inconclusive"
    assert checked.settle.need is not None and checked.settle.need.buy in {"repeats", "out of reach"}
    assert "would decide" in made.sentence


def test_foreign_text_in_markdown_is_only_text() -> None:
    evil = "t|<img src=x>[a](http://x)"
    made = gate(two({**tasks([1] * 6), evil: (0,)}, {**tasks([1] * 6), evil: (1,)}), 0.05)
    assert "<img" not in markdown(made) and "[a](" not in markdown(made)


def test_a_gate_on_cost_fails_where_less_is_better_and_more_was_spent() -> None:
    def paid(name: str, base: float) -> Side:  # runs differ a little, and not by the same in every task
        stamped = run(name)
        builder = SideBuilder(stamped, REACT)
        for n in range(20):
            usage = {"agent": Usage(1, 1, 1, cost_usd=base + 0.0001 * (n * (3 if name == "new" else 5) % 7))}
            builder.add(*graded(attempt(f"t{n}", task_digest=f"d{n}", usage=usage), "pass"))
        return builder.finish()

    dearer = compare(paid("new", 0.05), paid("base", 0.02), metric="cost_per_trial_usd")
    made = gate(dearer, 0.01)
    assert (made.answer, made.exit_code) == ("failed", 1)
    assert "worse than the baseline by cost per trial, by more than $0.010" in made.sentence
    cheaper = gate(compare(paid("new", 0.02), paid("base", 0.05), metric="cost_per_trial_usd"), 0.01)
    assert cheaper.answer == "passed" and "not worse than the baseline by cost per trial" in cheaper.sentence
    equal = gate(compare(paid("new", 0.0205), paid("base", 0.02), metric="cost_per_trial_usd"), 0.01)
    assert equal.answer == "passed"
    whole = gate_json(made)
    assert (whole["metric"], whole["unit"], whole["max_drop"]) == ("cost_per_trial_usd", "USD", 0.01)
    assert r"| \$0.050 | \$0.020 |" in markdown(made)
    with pytest.raises(ValueError, match="largest rise"):
        gate(dearer, -1.0)


def test_a_gate_on_a_price_that_some_trials_lack_names_the_price() -> None:
    a = side(tasks([1] * 8), run("new"), usage={"agent": Usage(1, 1, 1)})
    b = side(tasks([1] * 8), run("old"), usage={"agent": Usage(1, 1, 1, cost_usd=0.1)})
    made = gate(compare(a, b, metric="cost_per_trial_usd"), 0.05)
    assert (made.answer, made.exit_code) == ("refused", 3)
    assert made.sentence == "refused: not comparable: a price is not known in 8 of 8 trials of A"


def test_runs_that_are_equal_in_every_task_are_said_to_be_so_where_no_interval_can_be_had() -> None:
    used = {"agent": Usage(1, 100, 20, cost_usd=0.0)}
    made = gate(
        compare(
            side(tasks([1] * 8), run("new"), usage=used), side(tasks([1] * 8), run("old"), usage=used), metric="tokens"
        ),
        10.0,
    )
    assert (made.answer, made.exit_code) == ("inconclusive", 1)
    assert "in all 8 clusters the run and the baseline are equal by tokens per trial" in made.sentence
    assert "tasks or repeats that differ would settle it" in made.sentence
    assert "10 tokens in tasks not seen" in made.sentence
