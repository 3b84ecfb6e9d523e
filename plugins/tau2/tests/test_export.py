"""A run as upstream's results files: upstream's own loader reads them, and its metrics say what our scorecard says."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from evalcore.engine.floors import read_floors
from evalcore.engine.importing import write_imported
from evalcore.engine.store import read_attempts, read_gradings, read_stamp
from evalcore.errors import ConfigError
from evalcore.hookspecs import RendererInfo
from evalcore.report.load import load_report
from evalcore.testing import toy
from evalcore.toolkits.environment import Environment, worker_file
from evalcore.values.floor import Floor
from evalcore_tau2.export import Tau2Results
from evalcore_tau2.results import Tau2Files
from plugins.tau2.tests.rig import CONTROLS, registry, run, study
from tests.oracles import oracle_path

READ_BACK = Path(__file__).with_name("read_back.py")
BROKEN = {
    "order_id": "#W5918442",
    "reason": "no longer needed",
}  # a pending order: cancelling it spoils the final state


def read_back(toolkit: Environment, file: Path) -> Any:
    """What upstream makes of a file."""
    environment = {
        "PYTHONPATH": ":".join(map(str, toolkit.search_path)),
        "TAU2_DATA_DIR": str(oracle_path("data", "tau2").parent),
    }
    argv = [str(toolkit.python), "-X", "utf8", str(READ_BACK), str(worker_file(toolkit.spec)), str(file)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def three_repeats(toolkit: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An agent that talks in some repeats, where nothing is to be done, and spoils the state in others."""
    folder = tmp_path_factory.mktemp("repeats")
    spoil = {"tool_calls": [{"name": "cancel_pending_order", "arguments": BROKEN}]}
    replies = [
        {"match": {"task": "10", "repeat": 2, "call": 1}, **spoil},
        {"match": {"task": "12", "repeat": 1, "call": 1}, **spoil},
        {"match": {"task": "12", "repeat": 3, "call": 1}, **spoil},
        {"text": "That is all."},
    ]
    (folder / "agent.jsonl").write_text("".join(json.dumps(r) + "\n" for r in replies))
    user = [{"match": {"call": 1}, "text": "Hello."}, {"text": "###STOP###"}]
    (folder / "user.jsonl").write_text("".join(json.dumps(r) + "\n" for r in user))
    arms = {"react": {"harness": "react", "model": "scripted/agent.jsonl"}}
    what = study(
        ("tau2-retail",), arms, tasks=("10", "12", "57", "1"), judge="judges/yes", user="scripted/user.jsonl", repeats=3
    )
    with pytest.MonkeyPatch.context() as patch:  # its floor is measured anew, and kept nowhere
        patch.setattr("evalcore.engine.floors.cache_root", lambda: folder)
        return run(what, folder)


def test_pass_hat_k_is_upstreams_own(toolkit: Environment, three_repeats: Path, tmp_path: Path) -> None:
    Tau2Results().render(three_repeats, tmp_path)
    cell = next(c for c in load_report(three_repeats).cells if c.arm.arm.handle == "react")
    theirs = read_back(toolkit, tmp_path / "react" / "tau2-retail" / "results.json")["pass_hat"]
    ours = {str(k): cell.metrics[f"pass^{k}" if k > 1 else "pass@1"].value for k in (1, 2, 3)}
    assert theirs == pytest.approx(ours, abs=1e-12)
    # Task 10 in two of three, 12 in one, 57 in all, 1 in none.
    assert theirs == pytest.approx({"1": 6 / 12, "2": (1 / 3 + 0 + 1 + 0) / 4, "3": 1 / 4}, abs=1e-12)


def test_upstream_loads_every_simulation_and_gives_the_same_rewards_again(
    toolkit: Environment, three_repeats: Path, tmp_path: Path
) -> None:
    written = Tau2Results().render(three_repeats, tmp_path)
    results = tmp_path / "react" / "tau2-retail" / "results.json"
    assert set(written) == {tmp_path / "evalcore.json", results}
    theirs = read_back(toolkit, results)
    assert len(theirs["rewards"]) == 12
    assert theirs["again"] == theirs["rewards"]
    assert theirs["policy"].startswith("# Retail agent policy")
    about = json.loads((tmp_path / "evalcore.json").read_text())
    assert about["run"] == read_stamp(three_repeats).run
    assert about["arms"]["react"]["benchmarks"] == {"tau2-retail": {"simulations": 12, "left_out": 0}}


def test_what_is_exported_comes_back(toolkit: Environment, three_repeats: Path, tmp_path: Path) -> None:
    Tau2Results().render(three_repeats, tmp_path / "out")
    source = tmp_path / "out" / "react" / "tau2-retail"
    asyncio.run(write_imported(Tau2Files().read(source), tmp_path / "back"))
    assert _outcomes(tmp_path / "back") == _outcomes(three_repeats)
    assert len(_outcomes(three_repeats)) == 12
    before, after = ([*load_report(run).cells] for run in (three_repeats, tmp_path / "back"))
    for name in ("pass@1", "pass^2", "pass^3"):
        assert after[0].metrics[name].value == before[0].metrics[name].value
    assert read_stamp(tmp_path / "back").arms[0].arm.axes["user_model"] == "scripted/user.jsonl"


def test_its_floor_is_measured(toolkit: Environment, three_repeats: Path) -> None:
    """Doing nothing solves 10, 12 and 57, and needs no judge for it."""
    assert read_floors(three_repeats) == {"tau2-retail": Floor(tasks=4, solved=3)}
    notes = [str(note) for note in load_report(three_repeats).notes]
    assert any("an agent that does nothing solves 75.0 % (3 of 4)" in note for note in notes)


def _outcomes(run: Path) -> dict[tuple[str, str, int], tuple[str, float | None]]:
    """By benchmark, task and repeat: how it was graded."""
    verdicts = {g.attempt: g.verdict for g in read_gradings(run, read_stamp(run).grading)}
    return {
        (a.key.benchmark, a.key.task, a.key.repeat): (verdicts[a.id].outcome, verdicts[a.id].score)
        for a in read_attempts(run)
    }


def test_trials_that_wait_for_a_judge_are_left_out_and_counted(toolkit: Environment, tmp_path: Path) -> None:
    path = run(study(("tau2-retail",), {"oracle": CONTROLS["oracle"]}, tasks=("1", "2")), tmp_path)
    Tau2Results().render(path, tmp_path / "out")
    about = json.loads((tmp_path / "out" / "evalcore.json").read_text())
    assert about["arms"]["oracle"]["benchmarks"] == {"tau2-retail": {"simulations": 1, "left_out": 1}}


def test_a_run_of_something_else_is_refused(tmp_path: Path) -> None:
    from evalcore.plugins import PluginRef

    found = registry()
    found.add(PluginRef("toy", "toy", "1", "evalcore.testing.toy"), toy)
    path = run(study(("toy-weather",), limit=1), tmp_path, found)
    with pytest.raises(ConfigError, match="no τ²-bench benchmark"):
        Tau2Results().render(path, tmp_path / "out")


def test_it_is_registered() -> None:
    assert registry().get(RendererInfo, "renderer", "tau2-results").factory == "evalcore_tau2.export:Tau2Results"
