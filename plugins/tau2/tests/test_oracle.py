"""Gold and nothing, through the whole rig with a scripted user and judge, against the expected values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalcore.engine.store import read_stamp
from evalcore.values.task import GoldDialogue
from evalcore_tau2 import gold
from evalcore_tau2.grader import WITHOUT_JUDGE
from plugins.tau2.tests.rig import CONTROLS, Trials, run, study, trials
from tests.oracles import oracle_path

pytestmark = pytest.mark.usefixtures("toolkit")

FIRST = 6
AIRLINE_NOOP = frozenset(
    map(str, (0, 1, 2, 4, 5, 6, 9, 10, 13, 26, 27, 28, 31, 34, 36, 38, 41, 43, 45, 46, 47, 48, 49))
)
"""Ours: what doing nothing solves of airline. Its gold solves all 50."""


def expected(domain: str) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = json.loads(oracle_path("oracles", "tau2.json").read_bytes())[domain]
    return rows


def scores(found: Trials, domain: str, arm: str) -> dict[str, float | None]:
    return {
        t: x.verdict.score
        for (benchmark, handle, t), x in found.items()
        if (benchmark, handle) == (f"tau2-{domain}", arm)
    }


def check(found: Trials, domain: str, column: str, arm: str, wanted: dict[str, dict[str, Any]]) -> None:
    """Every single verdict, not only their sums."""
    got = scores(found, domain, arm)
    assert got == {task: wanted[task][column] for task in got}


def test_gold_and_nothing_of_the_first_tasks_are_as_expected(tmp_path: Path) -> None:
    found = trials(run(study(("tau2-retail", "tau2-telecom"), limit=FIRST, judge="judges/yes"), tmp_path))
    assert len(found) == 2 * 2 * FIRST
    for domain in ("retail", "telecom"):
        check(found, domain, "oracle", "oracle", expected(domain))
        check(found, domain, "noop_if_judge_says_yes", "noop", expected(domain))
    assert {x.attempt.provenance for x in found.values()} <= {"stand-in", "live"}
    assert {x.simulation["termination_reason"] for x in found.values()} == {"user_stop"}


def test_the_stamp_names_code_data_and_what_was_replaced(tmp_path: Path) -> None:
    path = run(study(("tau2-airline",), limit=1), tmp_path)
    (benchmark,) = read_stamp(path).benchmarks
    assert (benchmark.dataset.version, benchmark.dataset.licence) == ("1.0.1", "MIT")
    assert "domains/airline/db.json" in benchmark.dataset.files
    assert not [file for file in benchmark.dataset.files if "retail" in file]
    stamp: Any = benchmark.grader_stamp
    assert {"litellm", "pandas", "tau2.registry"} <= set(stamp["replaced"])
    assert "tau2/evaluator/evaluator_env.py" in stamp["files"]
    (attempt, *_) = [x.attempt for x in trials(path).values()]
    assert attempt.provenance == ("stand-in" if stamp["stand_in"] else "live")


@pytest.fixture(scope="module")
def agreed(toolkit: object, tmp_path_factory: pytest.TempPathFactory) -> Trials:
    what = study(("tau2-retail", "tau2-telecom", "tau2-airline"), judge="judges/yes")
    return trials(run(what, tmp_path_factory.mktemp("yes")))


@pytest.fixture(scope="module")
def denied(toolkit: object, tmp_path_factory: pytest.TempPathFactory) -> Trials:
    return trials(run(study(("tau2-retail",), judge="judges/no"), tmp_path_factory.mktemp("no")))


@pytest.mark.slow
@pytest.mark.timeout(1800)
class TestEverything:
    @pytest.mark.parametrize("domain", ["retail", "telecom"])
    def test_where_the_judge_agrees(self, agreed: Trials, domain: str) -> None:
        assert len(scores(agreed, domain, "oracle")) == 114
        check(agreed, domain, "oracle", "oracle", expected(domain))
        check(agreed, domain, "noop_if_judge_says_yes", "noop", expected(domain))

    def test_where_the_judge_does_not(self, denied: Trials) -> None:
        check(denied, "retail", "oracle_if_judge_says_no", "oracle", expected("retail"))
        check(denied, "retail", "noop", "noop", expected("retail"))

    @pytest.mark.usefixtures("own_code")
    def test_tool_errors_on_the_way_are_those_expected(self, agreed: Trials) -> None:
        """The stand-in's retail tools refuse three calls of task 21 that upstream's accept."""
        for domain in ("retail", "telecom"):
            wanted = expected(domain)
            got = {
                t: x.simulation["errors"]
                for (b, arm, t), x in agreed.items()
                if (b, arm) == (f"tau2-{domain}", "oracle")
            }
            assert got == {task: wanted[task]["oracle_tool_errors"] for task in got}

    def test_gold_solves_all_of_airline(self, agreed: Trials) -> None:
        assert set(scores(agreed, "airline", "oracle").values()) == {1.0}
        noop = scores(agreed, "airline", "noop")
        assert {task for task, score in noop.items() if score == 1.0} == AIRLINE_NOOP

    def test_without_a_judge_only_what_it_would_decide_is_ungraded(
        self, toolkit: object, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        found = trials(run(study(("tau2-retail",), {"noop": CONTROLS["noop"]}), tmp_path_factory.mktemp("none")))
        wanted = expected("retail")
        for (_, _, task), trial in found.items():
            row, verdict = wanted[task], trial.verdict
            if row["noop"] == row["noop_if_judge_says_yes"]:
                assert (verdict.score, verdict.bounds) == (row["noop"], None)
            else:
                assert (verdict.outcome, verdict.score, verdict.bounds) == ("ungraded", None, (0.0, 1.0))

    def test_without_its_last_write_gold_fails_where_nothing_fails_too(
        self, agreed: Trials, toolkit: object, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Otherwise the final state would not have been looked at."""
        monkeypatch.setattr("evalcore_tau2.adapter.dialogue_of", _cut_short)
        arms = {"oracle": CONTROLS["oracle"]}
        what = study(("tau2-retail", "tau2-telecom", "tau2-airline"), arms, judge="judges/yes")
        found = trials(run(what, tmp_path_factory.mktemp("cut")))
        for domain in ("retail", "telecom", "airline"):
            noop, cut = scores(agreed, domain, "noop"), scores(found, domain, "oracle")
            survivors = {task for task, score in cut.items() if score == 1.0}
            assert survivors - SURVIVE[domain] == {task for task, score in noop.items() if score == 1.0}


SURVIVE: dict[str, frozenset[str]] = {
    "retail": frozenset(),
    "telecom": frozenset(),
    "airline": frozenset({"3"}),  # its gold changes nothing: it looks up a number and says it
}

READS = ("get_", "find_", "list_", "search_", "calculate", "check_", "think", "can_", "run_speed_test")
TRANSFER = "transfer_to_human_agents"  # changes nothing, and is all that some tasks want


def _cut_short(task: dict[str, Any]) -> GoldDialogue:
    """The gold without the last action that changes anything."""
    actions = gold.actions_of(task)
    names = [str(action["name"]) for action in actions]
    writes = [n for n, name in enumerate(names) if not name.startswith(READS) and name != TRANSFER]
    transfers = [n for n, name in enumerate(names) if name == TRANSFER]
    last = (writes or transfers or [-1])[-1]
    kept = [action for n, action in enumerate(actions) if n != last]
    return gold.dialogue_of({**task, "evaluation_criteria": {**task["evaluation_criteria"], "actions": kept}})


def test_views_tell_what_the_database_alone_says(tmp_path: Path) -> None:
    found = trials(run(study(("tau2-retail",), tasks=("0", "10")), tmp_path))
    views = {(arm, task): x.verdict.views for (_, arm, task), x in found.items()}
    assert views == {
        ("oracle", "0"): {WITHOUT_JUDGE: True},
        ("noop", "0"): {WITHOUT_JUDGE: False},
        ("oracle", "10"): {WITHOUT_JUDGE: True},
        ("noop", "10"): {WITHOUT_JUDGE: True},
    }
