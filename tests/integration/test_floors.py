"""The floor of a benchmark that asks for it: measured beside agents, once, told, kept, never a failure of the run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from attrs import evolve

from evalcore.contracts import JudgeReplies
from evalcore.engine.floors import FLOORS, read_floors
from evalcore.engine.plan import make_plan
from evalcore.engine.run import RunOptions, resume, start
from evalcore.engine.runner import RunEnd
from evalcore.engine.services import LocalServices
from evalcore.engine.store import read_attempts
from evalcore.hookspecs import AdapterInfo, GraderInfo, hookimpl
from evalcore.plugins import PluginRef, Registry, load
from evalcore.report.load import load_report
from evalcore.report.scorecard import to_json
from evalcore.testing.toy import ToyAdapter, ToyGrader
from evalcore.values.floor import Floor
from evalcore.values.json import JSONObject
from evalcore.values.study import Study
from evalcore.values.task import Dataset, Task
from evalcore.values.trace import TraceReader
from evalcore.values.trial import Deliverable, Evidence, Verdict

AGENT: dict[str, Any] = {"harness": "react", "model": "scripted/agent.jsonl"}
NOOP: dict[str, Any] = {"harness": "noop"}
MEASURED = "an agent that does nothing solves 16.7 % (1 of 6), and 1 more are for a judge to say, who was not asked"
DECLARED = "doing nothing solves what it solves"


class Adapter(ToyAdapter):
    """The toy's tasks, graded by the grader below."""

    grader = "generous"
    data_version: ClassVar[str] = "1"

    async def dataset(self) -> Dataset:
        return evolve(await super().dataset(), version=Adapter.data_version)


class Generous(ToyGrader):
    """Nothing said is right of Bern, for a judge to say of Oslo, and wrong elsewhere."""

    version: ClassVar[str] = "1"
    broken: ClassVar[bool] = False
    asked: ClassVar[list[tuple[str, bool]]] = []

    async def grade(
        self, task: Task, deliverable: Deliverable, evidence: Evidence, trace: TraceReader, judge: JudgeReplies | None
    ) -> Verdict:
        Generous.asked.append((task.id, not deliverable.answer))
        if not deliverable.answer and Generous.broken:
            raise ValueError("no verdict today")
        if not deliverable.answer and task.cluster == "Bern":
            return Verdict("pass", 1.0)
        if not deliverable.answer and task.cluster == "Oslo":
            return Verdict("ungraded", bounds=(0.0, 1.0))
        return await super().grade(task, deliverable, evidence, trace, judge)

    async def stamp(self) -> JSONObject:
        return {"generous": Generous.version}


@hookimpl
def evalcore_adapters() -> list[AdapterInfo]:
    more: dict[str, Any] = {"takes_parameter": "number of tasks", "floor_note": DECLARED}
    return [
        AdapterInfo("floored", "a toy with a floor", f"{__name__}:Adapter", measured_floor=True, **more),
        AdapterInfo("unfloored", "the same, which does not ask", f"{__name__}:Adapter", **more),
    ]


@hookimpl
def evalcore_graders() -> list[GraderInfo]:
    return [GraderInfo("generous", "for tests", f"{__name__}:Generous")]


@pytest.fixture(autouse=True)
def afresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of its own, and a grader that works."""
    monkeypatch.setenv("EVALCORE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(Generous, "asked", [])
    (tmp_path / "agent.jsonl").write_text('{"text": "It is cold."}\n')


def registry() -> Registry:
    found = load(only=())
    parts = SimpleNamespace(evalcore_adapters=evalcore_adapters, evalcore_graders=evalcore_graders)
    found.add(PluginRef("floored", "floored", "1", __name__), parts)
    assert found.failures == []
    return found


def run(folder: Path, name: str, benchmark: str = "floored:6", **arms: dict[str, Any]) -> Path:
    """Run arms on a benchmark; nothing may be lost."""

    async def carry_out() -> RunEnd:
        found = registry()
        services = LocalServices(found, folder)
        try:
            plan = await make_plan(Study("s", (benchmark,), arms or {"agent": AGENT}), found, services, name)
            return await start(plan, folder / name, found, services, RunOptions())
        finally:
            await services.close()

    assert asyncio.run(carry_out()) == RunEnd("done")
    return folder / name


def notes(path: Path) -> list[str]:
    return [note.text for note in load_report(path).notes if note.benchmark is not None]


def of_noop() -> int:
    """How many trials of doing nothing were graded."""
    return sum(silent for _, silent in Generous.asked)


def test_it_is_measured_beside_an_agent_and_told(tmp_path: Path) -> None:
    path = run(tmp_path, "r")
    assert read_floors(path) == {"floored:6": Floor(tasks=6, solved=1, ungraded=1)}
    assert MEASURED in notes(path) and DECLARED not in notes(path)
    card: Any = to_json(load_report(path))
    assert [cell["floor"] for cell in card["cells"]] == [{"tasks": 6, "solved": 1, "ungraded": 1, "lost": 0, "why": ""}]
    assert len(list(read_attempts(path))) == 6  # the run's own ledger holds its agent's trials only


def test_what_was_measured_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(tmp_path, "first")
    assert of_noop() == 6
    second = run(tmp_path, "second")
    assert of_noop() == 6
    assert read_floors(second) == read_floors(first)
    run(tmp_path, "fewer", "floored:2")  # other tasks
    assert of_noop() == 8
    monkeypatch.setattr(Generous, "version", "2")  # another grader
    run(tmp_path, "regraded")
    assert of_noop() == 14
    monkeypatch.setattr(Adapter, "data_version", "2")  # another version of the same tasks
    run(tmp_path, "updated")
    assert of_noop() == 20


def test_a_cache_that_holds_nonsense_is_measured_again(tmp_path: Path) -> None:
    run(tmp_path, "first")
    [kept] = (tmp_path / "cache" / "floors").iterdir()
    for text in ("no JSON", "[]", '{"tasks":6,"solved":7,"ungraded":0,"lost":0,"why":""}'):
        kept.write_text(text)
        path = run(tmp_path, f"r{len(text)}")
        assert read_floors(path) == {"floored:6": Floor(tasks=6, solved=1, ungraded=1)}


def test_a_noop_arm_is_the_floor(tmp_path: Path) -> None:
    path = run(tmp_path, "r", agent=AGENT, noop=NOOP)
    assert of_noop() == 6  # the arm's own
    assert not (path / FLOORS).exists()
    assert DECLARED in notes(path)


def test_controls_alone_and_benchmarks_that_do_not_ask_have_none(tmp_path: Path) -> None:
    assert not (run(tmp_path, "controls", oracle={"harness": "oracle"}) / FLOORS).exists()
    assert not (run(tmp_path, "unasked", "unfloored:6") / FLOORS).exists()
    assert of_noop() == 0


def test_what_could_not_be_graded_is_counted_and_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Generous, "broken", True)
    path = run(tmp_path, "r")
    assert read_floors(path) == {"floored:6": Floor(tasks=6, lost=6)}
    assert any("6 trials of it failed" in note for note in notes(path))
    monkeypatch.setattr(Generous, "broken", False)
    assert read_floors(run(tmp_path, "again")) == {"floored:6": Floor(tasks=6, solved=1, ungraded=1)}


def test_failing_to_measure_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EVALCORE_CACHE", str(tmp_path / "file" / "cache"))
    path = run(tmp_path, "r")
    [told] = [n for n in notes(path) if "floor" in n]
    assert told.startswith("the floor could not be measured: the cache folder")
    assert DECLARED in notes(path)
    monkeypatch.setenv("EVALCORE_CACHE", str(tmp_path / "cache"))
    asyncio.run(resume(path, registry(), RunOptions()))  # nothing is missing but the floor
    assert MEASURED in notes(path)


def test_a_cache_that_cannot_keep_it_hides_no_floor(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "floors").write_text("in the way of a folder")
    assert MEASURED in notes(run(tmp_path, "r"))


def test_nothing_goes_on_when_a_floor_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    async def execute(cell: Any, task: Task, *_: Any) -> Any:
        if task.id.endswith("1"):
            raise ValueError("a fault of ours")
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(task.id)

    when_told: list[int] = []
    monkeypatch.setattr("evalcore.engine.floors.execute", execute)
    monkeypatch.setattr("evalcore.engine.floors.write_durably", lambda *_: when_told.append(len(ended)))
    run(tmp_path, "r")
    assert when_told == [5]


@pytest.mark.parametrize("text", ["no JSON", "[]", '{"schema": "other/1", "floors": {}}'])
def test_a_file_of_floors_that_is_none_is_left_out(text: str, tmp_path: Path) -> None:
    path = run(tmp_path, "r")
    (path / FLOORS).write_text(text)
    assert read_floors(path) == {}
    assert DECLARED in notes(path)


def test_a_floor_that_cannot_be_is_not_told_as_one(tmp_path: Path) -> None:
    path = run(tmp_path, "r")
    wrong = {"tasks": 0, "solved": 0, "ungraded": 0, "lost": 0, "why": ""}
    (path / FLOORS).write_text(json.dumps({"schema": "evalcore.floors/1", "floors": {"floored:6": wrong}}))
    assert "the floor could not be measured: floors.json does not tell it" in notes(path)
