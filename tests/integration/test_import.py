"""`evalcore import`: another tool's results as a run, which is reported and compared and never pooled or run again."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from evalcore.engine.store import read_attempts
from tests.integration.conftest import Called, Site

Cli: TypeAlias = Callable[..., Called]

ENTRY: Final = """
from evalcore.hookspecs import ImporterInfo, hookimpl

@hookimpl
def evalcore_importers():
    return [ImporterInfo("belfry", "a belfry's log (toy)", "toy_belfry_parts:Belfry"),
            ImporterInfo("twin", "the same (toy)", "toy_belfry_parts:Twin")]
"""
PARTS: Final = """
import json

from evalcore.errors import ConfigError
from evalcore.values.imported import ImportedArm, ImportedBenchmark, ImportedRun, ImportedTask, ImportedTrial
from evalcore.values.task import Dataset
from evalcore.values.trial import Exit, Verdict, Void
from evalcore.values.usage import Usage


class Belfry:
    def __init__(self, services, info):
        pass

    def knows(self, source):
        return source.suffix in (".bells", ".both")

    def read(self, source):
        log = json.loads(source.read_text())
        arms = tuple(ImportedArm(name, {"harness": "belfry", "model": f"openai/{name}"}) for name in log["arms"])
        tasks = tuple(ImportedTask(name, {"ring": name}) for name in log["tasks"])
        dataset = Dataset("bells", "1", "2026-01-01", "CC0-1.0", "a belfry")
        return ImportedRun(
            log["name"], "2026-01-01T00:00:00+00:00", {"tool": "belfry", "version": "2"},
            (ImportedBenchmark("bells", dataset, tasks, "ear"),), arms, (self.trial(t) for t in log["trials"]),
            repeats=log.get("repeats", 1),
        )

    def trial(self, t):
        void = Void("imported", "the rope broke") if t.get("void") else None
        events = ({"t": 0.0, "e": "trial.start", "messages": [{"role": "user", "content": "Ring!"}]},)
        return ImportedTrial(
            "bells", t["task"], t["arm"], t.get("repeat", 1), None if void else Exit("completed"), void,
            None if void else Verdict("pass" if t["rang"] else "fail", float(t["rang"])),
            t.get("started", "2026-01-01T00:00:00+00:00"), t.get("wall_s", 1.0), {"agent": Usage(1, 10, 5)},
            events=events,
        )


class Twin(Belfry):
    def knows(self, source):
        return source.suffix == ".both"
"""
TASKS: Final = [f"b{i}" for i in range(12)]


@pytest.fixture
def belfry(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The program with the importers `belfry` and `twin`."""
    site = Site(tmp_path / "belfry-site")
    site.add("toy-belfry", ENTRY, toy_belfry_parts=PARTS)
    monkeypatch.syspath_prepend(site.folder)
    return partial(cli, EVALCORE_PLUGINS="toy-echo,toy-belfry")


def log(*trials: dict[str, Any], **more: Any) -> str:
    """Write a belfry's log; returns its name."""
    content = {"name": "old bells", "arms": ["a", "b"], "tasks": TASKS, "trials": trials, **more}
    name = f"{more.get('name', 'old')}.bells"
    Path(name).write_text(json.dumps(content))
    return name


def trials(**rang: int) -> list[dict[str, Any]]:
    """Of each arm so many tasks solved."""
    return [{"task": t, "arm": arm, "rang": i < n} for arm, n in rang.items() for i, t in enumerate(TASKS)]


def test_it_is_reported_and_compared_as_any_other(belfry: Cli) -> None:
    called = belfry("import", log(*trials(a=12, b=3)))
    assert called.exit_code == 0, called.stderr
    assert called.stdout == (
        "24 trials of old.bells, read as belfry\nrun     runs/old-bells\nreport  evalcore report runs/old-bells\n"
    )
    card = json.loads(belfry("report", "old-bells", "--json").stdout)
    assert [c["stamp"]["provenance"] for c in card["cells"]] == ["imported", "imported"]
    assert [c["metrics"]["pass@1"]["value"] for c in card["cells"]] == [1.0, 0.25]
    assert "imported: not from live trials" in belfry("report", "old-bells").stdout
    ask = ("compare", "old-bells", "--arm-a", "a", "--arm-b", "b", "--treatment", "model", "--json")
    compared = belfry(*ask)
    assert compared.exit_code == 0, compared.stderr
    first = next(iter(read_attempts(Path("runs/old-bells"))))
    assert "Ring!" in belfry("trace", "old-bells", first.id).stdout


def test_what_was_imported_is_not_compared_with_what_ran_here(belfry: Cli) -> None:
    assert belfry("run", "toy-echo", "--name", "live", "--quiet").exit_code == 0
    assert belfry("import", log(*trials(a=12)), "--name", "old").exit_code == 0
    called = belfry("compare", "live", "old", "--arm-a", "oracle", "--arm-b", "a", "--treatment", "harness,model")
    assert called.exit_code == 3
    assert "imported" in called.stderr
    cells = json.loads(belfry("report", "live", "--json").stdout)["cells"]
    assert {c["stamp"]["provenance"] for c in cells} == {"live"}


@pytest.mark.parametrize("verb", ["resume", "regrade", "rerun"])
def test_it_is_not_run_or_graded_again(belfry: Cli, verb: str) -> None:
    assert belfry("import", log(*trials(a=12)), "--name", "old").exit_code == 0
    before = {p: p.read_bytes() for p in Path("runs/old").rglob("*") if p.is_file()}
    called = belfry(verb, "old")
    assert called.exit_code == 3
    assert called.stderr.splitlines()[0] == (
        "error: run old was imported from belfry: it can be neither resumed, run nor graded again"
    )
    assert all(path.read_bytes() == content for path, content in before.items())
    assert [p.name for p in Path("runs").iterdir()] == ["old"]


def test_void_attempts_and_repeats_are_kept(belfry: Cli) -> None:
    made = [{"task": "b0", "arm": "a", "repeat": r, "rang": True, "void": r == 2} for r in (1, 2, 3)]
    assert belfry("import", log(*made, arms=["a"], tasks=["b0"], repeats=3), "--name", "old").exit_code == 0
    found = list(read_attempts(Path("runs/old")))
    assert [(a.key.repeat, a.void is None, a.provenance) for a in found] == [
        (1, True, "imported"), (2, False, "imported"), (3, True, "imported"),
    ]  # fmt: skip


def test_more_trials_than_are_committed_at_once(belfry: Cli) -> None:
    made = [{"task": "b0", "arm": "a", "repeat": r, "rang": r % 2 == 0} for r in range(1, 452)]
    assert belfry("import", log(*made, arms=["a"], tasks=["b0"], repeats=451), "--name", "old").exit_code == 0
    assert [a.key.repeat for a in read_attempts(Path("runs/old"))] == list(range(1, 452))


BAD: Final[list[tuple[dict[str, Any], str]]] = [
    ({"task": "zz"}, "there is no task 'zz' of 'bells'"),
    ({"arm": "zz"}, "there is no configuration 'zz'"),
    ({"repeat": 0}, "repeats and attempts count from 1"),
    ({"task": "b0"}, "task 'b0', repeat 1, attempt 1 stands there twice"),
    ({"started": "yesterday"}, "it began at 'yesterday', which is no time of RFC 3339"),
    ({"wall_s": -1.0}, "its time is -1.0 seconds"),
]


@pytest.mark.parametrize("change, message", BAD)
def test_a_bad_trial_is_told_by_its_number_and_nothing_is_left(
    belfry: Cli, change: dict[str, Any], message: str
) -> None:
    good = {"task": "b0", "arm": "a", "rang": True}
    called = belfry("import", log(good, {**good, "task": "b1", **change}))
    assert called.exit_code == 2
    assert "old bells: 1 fault" in called.stderr and f"trial 2: {message}" in called.stderr
    assert not Path("runs/old-bells").exists()


def test_a_run_that_is_there_is_left_alone(belfry: Cli) -> None:
    assert belfry("import", log(*trials(a=12)), "--name", "old").exit_code == 0
    before = Path("runs/old/attempts.jsonl").read_bytes()
    called = belfry("import", log(*trials(a=1)), "--name", "old")
    assert called.exit_code == 2 and "runs/old" in called.stderr
    assert Path("runs/old/attempts.jsonl").read_bytes() == before


def test_no_trial_no_run(belfry: Cli) -> None:
    called = belfry("import", log())
    assert called.exit_code == 2 and "old bells holds no trial" in called.stderr
    assert not Path("runs/old-bells").exists()


def test_configurations_that_are_one_are_refused(belfry: Cli) -> None:
    called = belfry("import", log(*trials(a=1), arms=["a", "a"]))
    assert called.exit_code == 2 and "two of its configurations are one" in called.stderr


def test_two_that_know_a_file_have_to_be_told_apart(belfry: Cli) -> None:
    Path(log(*trials(a=1))).rename("old.both")
    called = belfry("import", "old.both")
    assert called.exit_code == 2
    assert "more than one importer knows this form: belfry, twin" in called.stderr
    assert belfry("import", "old.both", "--format", "twin", "--json").exit_code == 0


def test_a_form_that_nobody_knows(belfry: Cli) -> None:
    Path("old.txt").write_text("ding")
    called = belfry("import", "old.txt")
    assert called.exit_code == 2
    assert "no importer knows this form" in called.stderr and "belfry, twin" in called.stderr
    called = belfry("import", "old.txt", "--format", "belfri")
    assert called.exit_code == 2 and "did you mean 'belfry'?" in called.stderr
