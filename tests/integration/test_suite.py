"""Suites of one's own, from the file to the verdict: the examples, and what another bench of this format got wrong."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

import pytest
from attrs import evolve

from evalcore.builtin.suite.file import read_suite
from evalcore.contracts import Adapter
from evalcore.engine.benchmarks import with_oracle_note
from evalcore.engine.run import RunOptions, regrade, resume
from evalcore.engine.runner import RunEnd
from evalcore.engine.store import TraceStore, read_gradings, read_stamp
from evalcore.errors import ConfigError, RefusedError
from evalcore.values.study import BenchmarkChoice
from evalcore.values.task import Gold, GoldAnswer, GoldCalls, Limits, Task
from tests.integration.conftest import Called
from tests.integration.suite_parts import CONTROLS, Ran, planned, ran, registry, scripted, write
from tests.oracles import ROOT

EXAMPLES: Final = ROOT / "examples" / "suites"
SUITES: Final = ("answer", "tool-calling", "stateful")

COUNTER: dict[str, Any] = {
    "state": {"made": []},
    "tools": [{"name": "make", "effect": [{"append": "made", "value_arg": "what"}, {"return": "made"}]}],
}
MAKE_ONE: dict[str, Any] = {
    "id": "one",
    "instruction": "Make one.",
    "tool_server": COUNTER,
    "grade": {"state": {"made": ["x"]}},
    "gold": {"calls": [{"name": "make", "args": {"what": "x"}}]},
}
CALL: Final = {"name": "make", "arguments": {"what": "x"}}


def call(number: int, **reply: Any) -> dict[str, Any]:
    return {"match": {"call": number, **reply.pop("match", {})}, **reply}


# ── the examples ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", SUITES)
def test_of_every_example_the_oracle_passes_all_and_noop_nothing(name: str, tmp_path: Path) -> None:
    done = ran(str(EXAMPLES / f"{name}.jsonl"), tmp_path)
    assert done.end == RunEnd("done")
    assert set(map(tuple, done.outcomes("oracle").values())) == {("pass",)}
    assert set(map(tuple, done.outcomes("noop").values())) == {("fail",)}
    assert 5 <= len(done.outcomes("noop")) <= 8


def played(name: str, wrong: set[str]) -> list[dict[str, Any]]:
    """A playbook that does what the gold says, call by call, but in the tasks named it only says that it did."""
    replies: list[dict[str, Any]] = []
    for one in read_suite(EXAMPLES / f"{name}.jsonl", name).tasks:
        calls = one.gold.turns[0] if isinstance(one.gold, GoldCalls) else ()
        answer = one.gold.text if isinstance(one.gold, GoldAnswer) else one.gold and getattr(one.gold, "answer", None)
        if one.task.id in wrong:
            calls, answer = (), "I have done it."
        for number, made in enumerate(calls, 1):
            tool = {"name": made.name, "arguments": made.arguments}
            replies.append({"match": {"task": one.task.id, "call": number}, "tool_calls": [tool]})
        replies.append({"match": {"task": one.task.id}, "text": answer})
    return replies


@pytest.mark.parametrize("name", SUITES)
def test_of_every_example_a_model_passes_the_tasks_that_it_does_right(name: str, tmp_path: Path) -> None:
    ids = [one.task.id for one in read_suite(EXAMPLES / f"{name}.jsonl", name).tasks]
    wrong = {ids[0], ids[3]}
    arm = scripted(tmp_path, *played(name, wrong))
    done = ran(str(EXAMPLES / f"{name}.jsonl"), tmp_path, {"model": arm}, repeats=2)
    assert done.outcomes("model") == {i: ["fail", "fail"] if i in wrong else ["pass", "pass"] for i in ids}
    assert done.cell().metrics["pass@1"].value == pytest.approx((len(ids) - 2) / len(ids))


def test_the_librarian_passes_five_of_seven_for_the_reasons_it_says(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "suites")
    arm = {"harness": "react", "model": "scripted/suites/librarian.toml"}
    verdicts = ran("suites/stateful.jsonl", tmp_path, {"librarian": arm}).verdicts("librarian")
    reasons = {task: v.details.get("reason") for task, (v,) in verdicts.items() if v.outcome != "pass"}
    assert reasons == {
        "hand-over": 'state: $.books.b3.lent_to is null, expected "m2"',
        "fees-first": "contains: '12' is not in the answer",
    }


@pytest.mark.parametrize("page", ["docs/suites.md", "examples/suites/README.md"])
def test_every_command_of_the_pages_runs(page: str, cli: Callable[..., Called], tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples" / "suites")
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    commands = [line.split() for block in blocks for line in block.splitlines()]
    assert len(commands) >= 3
    for name, *arguments in commands:
        called = cli(*arguments)
        assert (name, called.exit_code) == ("evalcore", 0), called.stderr


# ── the file as a benchmark ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_suite_is_a_dataset_at_the_version_of_its_bytes(tmp_path: Path) -> None:
    write(tmp_path / "mine.jsonl", [MAKE_ONE, {**MAKE_ONE, "id": "two", "cluster": "one"}])
    stamp = planned("./mine.jsonl", tmp_path, CONTROLS).benchmarks[0].stamp
    data = stamp.dataset
    assert (data.name, data.source, list(data.files)) == ("mine", "./mine.jsonl", ["mine.jsonl"])
    assert data.files["mine.jsonl"].startswith(data.version) and len(data.version) == 12
    assert (stamp.tasks, stamp.clusters, stamp.grader) == (2, 1, "suite")


def test_tasks_are_chosen_and_budgets_applied(tmp_path: Path) -> None:
    line = {**MAKE_ONE, "max_tokens": 900, "max_steps": 4, "deadline": "1m"}
    write(tmp_path / "mine.jsonl", [{**line, "id": f"t{n}"} for n in range(5)])
    choices = {"mine.jsonl": BenchmarkChoice(tasks=("t3", "t1"))}
    plan = planned("mine.jsonl", tmp_path, CONTROLS, choices=choices, limits=Limits(model_calls=9, wall_s=30.0))
    assert [task.id for task in plan.benchmarks[0].tasks] == ["t1", "t3"]
    assert plan.benchmarks[0].stamp.limits == Limits(tokens=900, model_calls=4, wall_s=30.0)


def test_a_budget_ends_a_trial_and_what_it_left_is_graded(tmp_path: Path) -> None:
    line = {**MAKE_ONE, "max_steps": 1}
    write(tmp_path / "mine.jsonl", [line, {**line, "id": "all", "expect": {"completed": True}}])
    done = ran("mine.jsonl", tmp_path, {"m": scripted(tmp_path, call(1, tool_calls=[CALL]), {"text": "Done."})})
    assert [(a.exit.kind, a.exit.limit) for a in done.attempts() if a.exit] == [("limit", "model_calls")] * 2
    assert done.outcomes("m") == {"one": ["pass"], "all": ["fail"]}


def test_a_suite_with_faults_is_refused_before_anything_runs(tmp_path: Path) -> None:
    write(tmp_path / "mine.jsonl", [MAKE_ONE, {**MAKE_ONE, "id": "two", "mock_mcp": {"uri": "x"}}])
    with pytest.raises(ConfigError) as refused:
        planned("mine.jsonl", tmp_path, CONTROLS)
    assert refused.value.message == "mine.jsonl: 1 fault"
    assert refused.value.faults[0].where == "line 2: $.mock_mcp"
    with pytest.raises(ConfigError, match=r"^no such file: \./none\.jsonl$"):
        planned("./none.jsonl", tmp_path, CONTROLS)


@pytest.mark.parametrize(
    "golds, why",
    [
        ((True, False), "some of its tasks have no gold; task 't1' is the first"),
        ((False, True), "some of its tasks have no gold; task 't0' is the first"),
        ((False, False), "its tasks have no gold"),
    ],
)
def test_the_oracle_is_left_out_where_a_task_has_no_gold(golds: tuple[bool, ...], why: str, tmp_path: Path) -> None:
    lines = [{**MAKE_ONE, "id": f"t{n}"} for n in range(len(golds))]
    for line, has_gold in zip(lines, golds, strict=True):
        if not has_gold:
            del line["gold"]
    write(tmp_path / "mine.jsonl", lines)
    plan = planned("mine.jsonl", tmp_path, CONTROLS)
    assert plan.notes == (f"oracle is not applicable to mine.jsonl: {why}",)
    assert [cell.arm.harness for cell in plan.every_cell()] == ["noop"]


def test_the_oracle_runs_where_the_chosen_tasks_have_gold(tmp_path: Path) -> None:
    write(tmp_path / "mine.jsonl", [MAKE_ONE, {k: v for k, v in MAKE_ONE.items() if k != "gold"} | {"id": "two"}])
    plan = planned("mine.jsonl", tmp_path, CONTROLS, choices={"mine.jsonl": BenchmarkChoice(tasks=("one",))})
    assert plan.notes == () and len(plan.cells) == 2


def test_a_run_goes_on_unless_its_suite_was_edited(tmp_path: Path) -> None:
    lines = [{**MAKE_ONE, "id": f"t{n}"} for n in range(6)]
    file = write(tmp_path / "mine.jsonl", lines)
    done = ran("mine.jsonl", tmp_path)
    ledger = done.path / "attempts.jsonl"
    ledger.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[:7]))

    file.write_text("// said more clearly\n" + file.read_text())
    _, end, _ = asyncio.run(resume(done.path, registry(), RunOptions()))
    assert end == RunEnd("done") and len(done.attempts()) == 12

    write(file, [*lines[:5], {**lines[5], "instruction": "Make two."}])
    with pytest.raises(RefusedError) as refused:
        asyncio.run(resume(done.path, registry(), RunOptions()))
    assert "the tasks of mine.jsonl have changed" in refused.value.reasons[0]


def test_regrading_from_the_traces_gives_the_same_verdicts(tmp_path: Path) -> None:
    done = ran(str(EXAMPLES / "stateful.jsonl"), tmp_path)
    grading = read_stamp(done.path).grading
    before = {g.attempt: g.verdict for g in read_gradings(done.path, grading)}
    (done.path / "gradings" / f"{grading}.jsonl").write_bytes(b"")
    asyncio.run(regrade(done.path, registry()))
    assert {g.attempt: g.verdict for g in read_gradings(done.path, grading)} == before


# ── what another bench of this format got wrong ──────────────────────────────────────────────────────────────────────


def test_pass_at_1_is_over_all_repeats_and_not_the_first(tmp_path: Path) -> None:
    write(tmp_path / "mine.jsonl", [{**MAKE_ONE, "id": f"t{n}"} for n in range(2)])
    late = scripted(tmp_path, call(1, match={"repeat": 1}, text="No."), call(1, tool_calls=[CALL]), {"text": "Done."})
    done = ran("mine.jsonl", tmp_path, {"m": late}, repeats=4)
    assert done.outcomes("m") == {task: ["fail", "pass", "pass", "pass"] for task in ("t0", "t1")}
    assert done.cell().metrics["pass@1"].value == pytest.approx(0.75)
    assert done.cell().metrics["pass^4"].value == pytest.approx(0.0)


def test_what_failures_cost_is_in_the_cost_of_a_solved_task(tmp_path: Path) -> None:
    write(tmp_path / "mine.jsonl", [MAKE_ONE, {**MAKE_ONE, "id": "two"}])
    used = {"input": 100, "output": 10, "cost_usd": 0.25}
    arm = scripted(
        tmp_path,
        call(1, match={"task": "one"}, tool_calls=[CALL], usage=used),
        call(2, match={"task": "one"}, text="Done.", usage=used),
        {"text": "I would rather not.", "usage": {**used, "cost_usd": 1.5}},
    )
    cell = ran("mine.jsonl", tmp_path, {"m": arm}).cell()
    assert cell.metrics["pass@1"].value == pytest.approx(0.5)
    assert cell.metrics["cost_per_solve_usd"].value == pytest.approx(0.25 + 0.25 + 1.5)


def test_a_retry_starts_from_the_state_as_written(tmp_path: Path) -> None:
    write(tmp_path / "mine.jsonl", [MAKE_ONE])
    arm = scripted(
        tmp_path,
        call(1, tool_calls=[CALL]),
        call(2, match={"attempt": 1}, error={"status": 503}),  # the machine fails after the state was changed
        call(2, text="Done."),
    )
    done = ran("mine.jsonl", tmp_path, {"m": arm})
    assert [a.void is not None for a in done.attempts()] == [True, False]
    assert done.outcomes("m") == {"one": ["pass"]}  # made once, not twice
    assert states(done) == [{"made": ["x"]}]


def states(done: Ran) -> list[Any]:
    store = TraceStore(done.path)
    events = [e for a in done.attempts() for e in store.read(a.trace).events("deliverable")]
    store.close()
    return [e["data"]["state"] for e in events]  # type: ignore[index,call-overload] # a deliverable's data is an object


def test_exit_codes_are_kept_and_can_be_graded(tmp_path: Path) -> None:
    lines = [{"id": f"code-{code}", "instruction": "End.", "grade": {"exit_code": code}} for code in (0, 7)]
    write(tmp_path / "mine.jsonl", lines)
    done = ran("mine.jsonl", tmp_path, {"m": {"harness": "ending", "code": 7}})
    assert [(a.exit.kind, a.exit.limit, a.exit.code) for a in done.attempts() if a.exit] == [("limit", "tokens", 7)] * 2
    assert done.outcomes("m") == {"code-0": ["fail"], "code-7": ["pass"]}


def test_the_tokens_of_a_trial_whose_time_was_over_are_kept(tmp_path: Path) -> None:
    write(tmp_path / "mine.jsonl", [{**MAKE_ONE, "deadline": "400ms"}])
    used = {"input": 120, "output": 12, "cost_usd": 0.5}
    arm = scripted(tmp_path, call(1, tool_calls=[CALL], usage=used), call(2, text="Done.", delay_s=60))
    done = ran("mine.jsonl", tmp_path, {"m": arm})
    (attempt,) = done.attempts()
    assert attempt.exit is not None and (attempt.exit.kind, attempt.exit.limit) == ("limit", "wall_s")
    used_up = attempt.usage["agent"]
    assert (used_up.calls, used_up.tokens) == (2, 132)
    assert (used_up.unreported, used_up.cost_usd) == (1, None)  # of the call that was cut off nobody knows
    ((verdict,),) = done.verdicts("m").values()
    assert (verdict.outcome, verdict.details["reason"]) == ("fail", "the trial's time was over")
    assert states(done) == [{"made": ["x"]}]


# ── what an agent can do to it ───────────────────────────────────────────────────────────────────────────────────────


def test_calls_that_make_no_sense_are_the_agents_errors(tmp_path: Path) -> None:
    write(tmp_path / "mine.jsonl", [MAKE_ONE])
    nonsense = [
        {"name": "make", "arguments": '{"what": '},
        {"name": "make", "arguments": "[1]"},
        {"name": "unmake", "arguments": {}},
        {"name": "make", "arguments": '{"what": ' + "[" * 5000 + "]" * 5000 + "}"},
        CALL,
    ]
    done = ran("mine.jsonl", tmp_path, {"m": scripted(tmp_path, call(1, tool_calls=nonsense), {"text": "\ud800"})})
    (attempt,) = done.attempts()
    assert (attempt.void, attempt.tool_calls) == (None, 5) and attempt.tool_errors >= 3
    assert done.outcomes("m").keys() == {"one"}


def test_concurrent_trials_share_nothing(tmp_path: Path) -> None:
    write(tmp_path / "mine.jsonl", [{**MAKE_ONE, "id": f"t{n}"} for n in range(20)])
    slow = scripted(tmp_path, call(1, tool_calls=[CALL], delay_s=0.02), call(2, text="Done.", delay_s=0.02))
    done = ran("mine.jsonl", tmp_path, {"m": slow})
    assert set(map(tuple, done.outcomes("m").values())) == {("pass",)}


def test_lines_are_read_back_as_they_were_written() -> None:
    for name in SUITES:
        text = (EXAMPLES / f"{name}.jsonl").read_text()
        assert all(json.loads(line) for line in text.splitlines() if not line.startswith("//"))


def test_a_benchmark_whose_tasks_are_alike_is_asked_for_the_gold_of_one(tmp_path: Path) -> None:
    class Counting:
        asked = 0
        gold_by_task = False

        async def gold(self, task: Task) -> Gold | None:
            self.asked += 1
            return GoldCalls(())

    write(tmp_path / "mine.jsonl", [{**MAKE_ONE, "id": f"t{n}"} for n in range(70)])
    benchmark = planned("mine.jsonl", tmp_path, CONTROLS).benchmarks[0]
    adapter = Counting()
    alike = evolve(benchmark, adapter=cast("Adapter", adapter))
    assert asyncio.run(with_oracle_note(alike)).stamp.oracle_note == "" and adapter.asked == 1
    adapter.gold_by_task = True
    assert asyncio.run(with_oracle_note(alike)).stamp.oracle_note == "" and adapter.asked == 71
