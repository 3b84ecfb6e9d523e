"""A study goes in at one end, durable attempts and verdicts come out at the other."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evalcore.engine.plan import Plan, make_plan
from evalcore.engine.run import RunOptions, regrade, resume, start
from evalcore.engine.runner import RunEnd
from evalcore.engine.services import LocalServices
from evalcore.engine.store import TraceStore, read_attempts, read_gradings, read_stamp
from evalcore.errors import ConfigError, RefusedError
from evalcore.plugins import PluginRef, Registry, load
from evalcore.report.load import load_report
from evalcore.report.scorecard import to_json
from evalcore.testing import toy
from evalcore.values.study import BenchmarkChoice, Study
from evalcore.values.trial import Attempt, Grading

PLAYBOOK = """
[[reply]]
match = { call = 1 }
text = "Let me look."
tool_calls = [{ name = "get_weather", arguments = { city = "Bern" } }]
usage = { input = 100, output = 20 }

[[reply]]
match = { contains = "degrees in Bern" }
text = "It is 10 degrees in Bern."
usage = { input = 150, output = 12 }

[[reply]]
text = "I do not know."
usage = { input = 150, output = 5 }
"""


def registry() -> Registry:
    found = load(only=())
    found.add(PluginRef("toy", "toy", "1", "evalcore.testing.toy"), toy)
    assert found.failures == []
    return found


def study(**changes: object) -> Study:
    fields = {
        "name": "toy",
        "benchmarks": ("toy-weather:12",),
        "arms": {
            "oracle": {"harness": "oracle"},
            "noop": {"harness": "noop"},
            "scripted": {"harness": "react", "model": "scripted/play.toml"},
        },
        "repeats": 2,
    }
    return Study(**(fields | changes))  # type: ignore[arg-type]


async def carry_out(what: Study, folder: Path, **options: int) -> tuple[Plan, RunEnd]:
    (folder / "play.toml").write_text(PLAYBOOK)
    found = registry()
    services = LocalServices(found, folder)
    plan = await make_plan(what, found, services, "r")
    end = await start(plan, folder / "r", found, services, RunOptions(**options))
    await services.close()
    return plan, end


def outcomes(run: Path) -> dict[str, list[str]]:
    stamp = read_stamp(run)
    labels = {a.arm.digest: a.arm.handle for a in stamp.arms}
    verdicts: dict[str, Grading] = {g.attempt: g for g in read_gradings(run, stamp.grading)}
    found: dict[str, list[str]] = {}
    for attempt in read_attempts(run):
        found.setdefault(labels[attempt.key.arm], []).append(verdicts[attempt.id].verdict.outcome)
    return found


def test_controls_show_ceiling_and_floor_and_a_scripted_model_is_scored(tmp_path: Path) -> None:
    plan, end = asyncio.run(carry_out(study(), tmp_path))

    assert end == RunEnd("done")
    assert plan.count() == 3 * 12 * 2
    found = outcomes(tmp_path / "r")
    assert found["oracle"] == ["pass"] * 24
    assert found["noop"] == ["fail"] * 24
    assert sorted(found["scripted"]) == ["fail"] * 20 + ["pass"] * 4  # 2 of 12 tasks are about Bern


def test_an_attempt_line_holds_what_the_wires_saw(tmp_path: Path) -> None:
    asyncio.run(carry_out(study(repeats=1), tmp_path))

    stamp = read_stamp(tmp_path / "r")
    scripted = next(a.arm.digest for a in stamp.arms if a.arm.handle == "scripted")
    attempt = next(a for a in read_attempts(tmp_path / "r") if a.key.arm == scripted and a.key.task == "t0")
    assert attempt.usage["agent"].input == 250
    assert attempt.usage["agent"].output == 32
    assert attempt.usage["agent"].calls == 2
    assert (attempt.tool_calls, attempt.tool_errors) == (1, 0)
    assert attempt.exit is not None and attempt.exit.kind == "completed"
    assert (attempt.provenance, attempt.isolation) == ("live", "none")
    assert attempt.served == {"agent": ("scripted/play.toml",)}
    cards = {cell["arm"]["handle"]: cell["stamp"] for cell in to_json(load_report(tmp_path / "r"))["cells"]}  # type: ignore[index,union-attr,call-overload]
    assert cards["scripted"]["model_served"] == "scripted/play.toml"  # type: ignore[index,call-overload]
    assert cards["noop"]["model_served"] is None and "model_served" in cards["noop"]["reasons"]  # type: ignore[index,call-overload,operator]


def trace_of(run: Path, attempt: Attempt) -> list[dict[str, object]]:
    store = TraceStore(run)
    events = list(store.read(attempt.trace).events())
    store.close()
    return events  # type: ignore[return-value]


def test_a_trace_tells_the_whole_story_in_order(tmp_path: Path) -> None:
    asyncio.run(carry_out(study(repeats=1, arms={"s": {"harness": "react", "model": "scripted/play.toml"}}), tmp_path))

    attempt = next(read_attempts(tmp_path / "r"))
    kinds = [e["e"] for e in trace_of(tmp_path / "r", attempt)]
    assert kinds == [
        "trial.start",
        "model.request",
        "model.response",
        "tool.call",
        "tool.result",
        "model.request",
        "model.response",
        "harness.exit",
        "exit",
        "deliverable",
        "evidence",
    ]


def test_stored_requests_read_back_whole(tmp_path: Path) -> None:
    asyncio.run(carry_out(study(repeats=1, arms={"s": {"harness": "react", "model": "scripted/play.toml"}}), tmp_path))

    run = tmp_path / "r"
    store = TraceStore(run)
    first, second = store.read(next(read_attempts(run)).trace).requests()
    store.close()
    assert [m["role"] for m in first["messages"]] == ["system", "user"]  # type: ignore[union-attr,index,call-overload]
    assert [m["role"] for m in second["messages"]] == ["system", "user", "assistant", "tool"]  # type: ignore[union-attr,index,call-overload]
    assert second["tools"] == first["tools"] and second["model"] == first["model"]


def test_resume_of_a_finished_run_runs_nothing(tmp_path: Path) -> None:
    asyncio.run(carry_out(study(), tmp_path))
    before = (tmp_path / "r" / "attempts.jsonl").read_bytes()

    _, end, notes = asyncio.run(resume(tmp_path / "r", registry(), RunOptions()))

    assert end == RunEnd("done") and notes == []
    assert (tmp_path / "r" / "attempts.jsonl").read_bytes() == before


def test_resume_runs_what_is_missing_and_grades_what_was_only_executed(tmp_path: Path) -> None:
    plan, _ = asyncio.run(carry_out(study(), tmp_path))
    run = tmp_path / "r"
    lines = (run / "attempts.jsonl").read_bytes().splitlines(keepends=True)
    (run / "attempts.jsonl").write_bytes(b"".join(lines[:50]) + lines[50][:40])
    gradings = run / "gradings" / f"{plan.stamp.grading}.jsonl"
    verdicts = gradings.read_bytes().splitlines(keepends=True)
    gradings.write_bytes(b"".join(verdicts[:30]))

    _, end, notes = asyncio.run(resume(run, registry(), RunOptions()))

    assert end == RunEnd("done") and len(notes) == 1
    ids = [a.id for a in read_attempts(run)]
    assert len(ids) == len(set(ids)) == 72
    assert ids[:50] == [__import__("json").loads(x)["id"] for x in lines[:50]]
    assert outcomes(run)["oracle"] == ["pass"] * 24


def test_resume_refuses_a_run_whose_playbook_was_edited(tmp_path: Path) -> None:
    asyncio.run(carry_out(study(), tmp_path))
    (tmp_path / "play.toml").write_text(PLAYBOOK.replace("Let me look", "I look"))

    with pytest.raises(RefusedError) as refused:
        asyncio.run(resume(tmp_path / "r", registry(), RunOptions()))
    assert "arms have changed" in refused.value.reasons[0]


def test_an_oracle_without_gold_is_left_out_and_said(tmp_path: Path) -> None:
    what = study(
        benchmarks=("toy-open", "toy-patches"), arms={"oracle": {"harness": "oracle"}, "noop": {"harness": "noop"}}
    )
    plan, _ = asyncio.run(carry_out(what, tmp_path))

    assert plan.notes == (
        "oracle is not applicable to toy-open: its tasks have no gold",
        "oracle is not applicable to toy-patches: gold of the form GoldPatch cannot be played yet",
    )
    assert set(outcomes(tmp_path / "r")) == {"noop"}


def test_tasks_are_chosen_by_range_and_by_id(tmp_path: Path) -> None:
    choices = {"toy-weather:12": BenchmarkChoice(limit=(3, 5))}
    plan, _ = asyncio.run(carry_out(study(choices=choices), tmp_path))
    assert [t.id for t in plan.benchmarks[0].tasks] == ["t3", "t4"]


def test_an_unknown_task_is_named_with_the_nearest(tmp_path: Path) -> None:
    choices = {"toy-weather:12": BenchmarkChoice(tasks=("t1", "tt2"))}
    with pytest.raises(ConfigError) as wrong:
        asyncio.run(carry_out(study(choices=choices), tmp_path))
    assert str(wrong.value.faults[0]) == "toy-weather:12 task 'tt2': no such task (did you mean 't2'?)"


def test_a_void_attempt_is_retried_and_not_counted(tmp_path: Path) -> None:
    (tmp_path / "flaky.toml").write_text(
        '[[reply]]\nmatch = { attempt = 1, task = "t0" }\nerror = { status = 503 }\n\n'
        '[[reply]]\ntext = "10 degrees in Bern"\n'
    )
    arms = {"s": {"harness": "react", "model": "scripted/flaky.toml"}}
    _, end = asyncio.run(carry_out(study(repeats=1, benchmarks=("toy-weather:2",), arms=arms), tmp_path))

    attempts = [a for a in read_attempts(tmp_path / "r") if a.key.task == "t0"]
    assert [a.void is not None for a in attempts] == [True, False]
    assert attempts[0].void is not None and "503" in attempts[0].void.message
    assert end == RunEnd("done")


def test_a_fatal_provider_error_stops_the_run_and_keeps_everything(tmp_path: Path) -> None:
    (tmp_path / "broke.toml").write_text(
        '[[reply]]\nmatch = { task = "t1" }\nerror = { status = 401 }\n[[reply]]\ntext = "hi"\n'
    )
    arms = {"s": {"harness": "react", "model": "scripted/broke.toml"}}
    _, end = asyncio.run(carry_out(study(repeats=1, arms=arms), tmp_path, concurrency=1))

    assert (end.reason, end.exit_code) == ("fatal", 4)
    assert [a.key.task for a in read_attempts(tmp_path / "r")] == ["t0", "t1"]


def test_regrading_calls_no_agent_and_gives_the_same_verdicts(tmp_path: Path) -> None:
    asyncio.run(carry_out(study(), tmp_path))
    run = tmp_path / "r"
    before = outcomes(run)
    attempts = (run / "attempts.jsonl").read_bytes()
    (tmp_path / "play.toml").unlink()  # the model is gone: nobody asks for it

    stamp, grading, count = asyncio.run(regrade(run, registry()))

    assert (grading, count) == (stamp.grading, 72)
    assert outcomes(run) == before
    assert (run / "attempts.jsonl").read_bytes() == attempts


def test_a_changed_grader_makes_a_grading_beside_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, _ = asyncio.run(carry_out(study(), tmp_path))
    run = tmp_path / "r"
    old = (run / "gradings" / f"{plan.stamp.grading}.jsonl").read_bytes()

    async def stamp(self: object) -> dict[str, object]:
        return {"toy": "2"}

    monkeypatch.setattr(toy.ToyGrader, "stamp", stamp)
    _, grading, _ = asyncio.run(regrade(run, registry()))

    assert grading != plan.stamp.grading
    assert (run / "gradings" / f"{plan.stamp.grading}.jsonl").read_bytes() == old
    report = load_report(run, grading)
    assert report.grading == grading
    assert report.cells[0].benchmark.grader_stamp == {"toy": "2"}
    assert load_report(run).cells[0].benchmark.grader_stamp == {"toy": "1"}
