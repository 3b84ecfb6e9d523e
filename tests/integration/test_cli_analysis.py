"""Power before, contrasts after, peeks between; what a run cost, which runs there are, and a run as a data frame."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

import evalcore
from evalcore.engine.store import RunLock
from evalcore.errors import ConfigError
from evalcore.report import frames
from evalcore.stats.anytime import mixture_radius
from evalcore.values.study import task_order
from tests.integration.conftest import Called, Site

Cli: TypeAlias = Callable[..., Called]
PLAYBOOK: Final = """
[[reply]]
match = { call = 1 }
text = "I say it."
tool_calls = [{ name = "say", arguments = { text = "one" } }]

[[reply]]
text = "done"
"""
STUDY: Final = """
[study]
name = "talking"
benchmarks = ["toy-echo:12"]
repeats = 2
seed = 3

[arms.talk]
harness = "react"
model = "scripted/talk.toml"

[arms.mute]
harness = "react"
model = "scripted/mute.toml"

[[contrasts]]
a = "talk"
b = "mute"
margin = 0.05
"""


@pytest.fixture
def study(cli: Cli, tmp_path: Path) -> Cli:
    """The program, with a study of two arms and its playbooks."""
    (tmp_path / "talk.toml").write_text(PLAYBOOK)
    (tmp_path / "mute.toml").write_text('[[reply]]\ntext = "no"\n')
    (tmp_path / "study.toml").write_text(STUDY)
    return cli


def ran(cli: Cli, name: str) -> Path:
    called = cli("run", "study.toml", "--name", name, "--quiet")
    assert called.exit_code == 0, called.stderr
    return Path("runs") / name


def cut(run: Path, trials: int) -> None:
    """The run as it was after so many trials."""
    ledger = run / "attempts.jsonl"
    ledger.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[:trials]))


def scorecard(cli: Cli, run: str) -> Any:
    called = cli("report", run, "--json")
    assert called.exit_code == 0, called.stderr
    return json.loads(called.stdout)


# ── contrasts in a run ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_report_says_what_the_study_declared_and_what_came_of_it(study: Cli) -> None:
    ran(study, "r")
    whole = scorecard(study, "r")
    (contrast,) = whole["contrasts"]
    assert (contrast["a"], contrast["b"], contrast["treatment"]) == ("talk", "mute", ["model"])
    assert contrast["confirmatory"] and contrast["effect"] == pytest.approx(2 / 12)  # two of twelve words are "one"
    assert whole["design"]["kept"] and whole["design"]["claims"] == 1
    text = " ".join(study("report", "r").stdout.split())
    assert "Contrasts, as declared" in text and "declared before this run" in text
    assert "talk solved 16.7 points more than mute" in text
    for form in ("markdown", "github"):
        page = study("report", "r", "--format", form).stdout
        assert "talk solved 16.7 points more than mute" in page, form


def test_reading_before_the_end_is_recorded_and_told(study: Cli) -> None:
    run = ran(study, "r")
    cut(run, 20)
    first = study("report", "r")
    assert "read before the study is at its end" in first.stderr
    assert "28 planned trials not run: the study is not at its end" in " ".join(first.stdout.split())
    study("report", "r")  # the same trials: no further look
    (look,) = [json.loads(line) for line in (run / "looks.jsonl").read_text().splitlines()]
    assert (look["trials"], look["planned"]) == (20, False) and look["at"].startswith("20")
    whole = scorecard(study, "r")
    assert [p["trials"] for p in whole["design"]["peeks"]] == [20]
    assert not whole["contrasts"][0]["confirmatory"]
    assert "the contrasts were read once before the end, at 20 graded trials" in " ".join(
        study("report", "r").stdout.split()
    )


@pytest.mark.parametrize(
    "arguments", [("report", "r", "--format", "markdown"), ("compare", "r"), ("compare", "r", "--json")]
)
def test_whoever_reads_them_in_another_way_has_looked_too(study: Cli, arguments: tuple[str, ...]) -> None:
    run = ran(study, "r")
    cut(run, 20)
    called = study(*arguments)
    assert called.exit_code == 0 and "read before the study is at its end" in called.stderr
    (look,) = [json.loads(line) for line in (run / "looks.jsonl").read_text().splitlines()]
    assert look["trials"] == 20


def test_a_run_shows_what_it_declared(study: Cli) -> None:
    ran(study, "r")
    assert "talk against mute by pass@1, margin 5 points; alpha 0.05, fixed" in " ".join(
        study("show", "r").stdout.split()
    )


def test_reading_at_the_end_is_no_peek(study: Cli) -> None:
    run = ran(study, "r")
    assert "before the study is at its end" not in study("report", "r").stderr
    assert not (run / "looks.jsonl").exists()


def test_a_broken_record_of_looks_hides_no_report(study: Cli) -> None:
    run = ran(study, "r")
    (run / "looks.jsonl").write_bytes(b'{"at": "2026-12-01T00:00:00Z", "trials": 7}\nnot json\n[1]\n\n')
    assert [p["trials"] for p in scorecard(study, "r")["design"]["peeks"]] == [7]


def test_other_runs_of_the_plan_are_listed(study: Cli, tmp_path: Path) -> None:
    ran(study, "first")
    ran(study, "second")
    (tmp_path / "study.toml").write_text(STUDY.replace("repeats = 2", "repeats = 3"))
    ran(study, "more")
    (tmp_path / "study.toml").write_text(STUDY.replace("margin = 0.05", "margin = 0.2"))
    ran(study, "another-plan")
    siblings = {s["run"]: s["difference"] for s in scorecard(study, "first")["design"]["siblings"]}
    assert siblings == {"second": None, "more": "3 repeats, and here 2"}
    assert "another run of this plan: second" in " ".join(study("report", "first").stdout.split())


def test_a_study_with_looks_runs_task_by_task_in_its_order(study: Cli, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY + '\n[analysis]\nstopping = "obrien-fleming"\n')
    called = study("run", "study.toml", "--name", "r", "--quiet", "--concurrency", "1")
    assert called.exit_code == 0, called.stderr
    lines = [json.loads(x) for x in Path("runs/r/attempts.jsonl").read_text().splitlines()]
    order = task_order(3, [f"echo-{n}" for n in range(12)])
    assert order != [f"echo-{n}" for n in range(12)]
    assert [line["task"] for line in lines] == [task for task in order for _ in range(4)]
    cut(Path("runs/r"), 24)
    whole = scorecard(study, "r")
    (contrast,) = whole["contrasts"]
    assert (contrast["look"], contrast["tasks"], contrast["confirmatory"]) == (1, 6, True)
    assert whole["design"]["looks"] == [0.5, 1.0]


def test_comparing_within_a_run_counts_the_whole_family(study: Cli, tmp_path: Path) -> None:
    more = '[[contrasts]]\na = "talk"\nb = "mute"\nmetric = "tokens"\n'
    (tmp_path / "study.toml").write_text(STUDY + more)
    ran(study, "r")
    declared = {c["metric"]: c for c in scorecard(study, "r")["contrasts"]}
    for metric in ("pass@1", "tokens"):
        called = study("compare", "r", "--metric", metric, "--json")
        assert called.exit_code == 0, called.stderr
        (outcome,) = json.loads(called.stdout)["outcomes"]
        assert outcome["p_adjusted"] == declared[metric]["p_adjusted"], metric
        assert (outcome["family"], outcome["metric"]) == (2, metric)
    text = " ".join(study("compare", "r", "--metric", "tokens").stdout.split())
    assert "A and B have the same tokens per trial" in text


def test_other_weights_are_another_reading_and_are_not_kept(study: Cli) -> None:
    run = ran(study, "r")
    study("report", "r")
    kept = (run / "scorecard.json").read_bytes()
    one = json.loads(study("report", "r", "--weights", "success=1,time=3", "--json").stdout)["composites"][0]
    assert one["declared"] and {d["name"]: d["weight"] for d in one["dimensions"]} == {"success": 1.0, "time": 3.0}
    assert one["sensitivity"] is not None and one["scaling"] == "absolute anchors"
    assert (run / "scorecard.json").read_bytes() == kept
    for wrong, said in (
        ("speed=1", "'speed' is no dimension"), ("success", "expected success=NUMBER"), ("success=-1", "at least 0"),
        ("success=nan", "at least 0"), ("success=0", "all weights are 0"), ("time=1,time=2", "named twice"),
    ):  # fmt: skip
        called = study("report", "r", "--weights", wrong)
        assert called.exit_code == 2 and said in called.stderr, wrong


# ── power ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_power_says_what_the_study_can_find_before_it_runs(study: Cli) -> None:
    called = study("power", "study.toml")
    assert called.exit_code == 0, called.stderr
    text = " ".join(called.stdout.split())
    assert "assumed, not measured: pass rate 0.5" in text and "as written" in text
    assert "more tasks than there are" in text and "It is no threshold" in text
    assert not Path("runs").exists()
    whole = json.loads(study("power", "study.toml", "--tasks", "100", "--repeats", "2", "--json").stdout)
    (claim,) = whole["claims"]
    assert [(o["tasks"], o["repeats"], o["planned"]) for o in claim["options"]] == [(12, 2, True), (100, 2, False)]
    assert claim["options"][1]["detectable"] < claim["options"][0]["detectable"]


def test_a_pilot_gives_variances_and_a_pilot_of_one_repeat_cannot(study: Cli, tmp_path: Path) -> None:
    ran(study, "pilot")
    (claim,) = json.loads(study("power", "study.toml", "--pilot", "pilot", "--json").stdout)["claims"]
    assert claim["spread"]["source"].startswith("from the pilot pilot: 12 tasks of both arms")
    # talk solves 2 of 12 tasks always, mute none: sigma^2 = 0, omega^2 = 12/11 × 1/6 × 5/6
    assert claim["spread"]["omega2"] == pytest.approx(12 / 11 * 5 / 36) and claim["spread"]["sigma2_a"] == 0.0
    (tmp_path / "study.toml").write_text(STUDY.replace("repeats = 2", "repeats = 1"))
    ran(study, "once")
    called = study("power", "study.toml", "--pilot", "once")
    assert called.exit_code == 2 and "each task twice or more" in called.stderr


def test_power_needs_a_contrast_and_one_source_of_variance(study: Cli, tmp_path: Path) -> None:
    both = study("power", "study.toml", "--pilot", "x", "--rate", "0.5")
    assert both.exit_code == 2 and "name one of them" in both.stderr
    (tmp_path / "bare.toml").write_text(STUDY.partition("[[contrasts]]")[0])
    none = study("power", "bare.toml")
    assert none.exit_code == 2 and "declares no contrast" in none.stderr


# ── cost ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_cost_by_role_with_how_far_the_run_is(study: Cli) -> None:
    run = ran(study, "r")
    cut(run, 5)
    whole = json.loads(study("cost", "r", "--json").stdout)
    assert sum(cell["executed"] for cell in whole["cells"]) == 5
    assert [cell["planned"] for cell in whole["cells"]] == [24, 24]
    calls = sum(cell["usage"]["agent"]["calls"] for cell in whole["cells"])
    assert calls > 0 and whole["wasted"] == {"known_usd": 0.0, "unpriced_trials": 0, "cost_usd": 0.0}
    text = study("cost", "r").stdout
    assert "of 24 trials" in text and "agent" in text and "void or repeated" in text


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_runs_are_listed_with_size_and_progress(study: Cli) -> None:
    ran(study, "a")
    cut(ran(study, "b"), 20)
    whole = {one["name"]: one for one in json.loads(study("runs", "--json").stdout)["runs"]}
    assert (whole["a"]["executed"], whole["b"]["executed"], whole["b"]["planned"]) == (48, 20, 48)
    on_disk = sum(p.lstat().st_size for p in Path("runs/a").rglob("*") if p.is_file())
    assert whole["a"]["bytes"] == on_disk and not whole["a"]["running"]
    text = study("runs").stdout
    assert "20 of 48" in text and "2 runs, " in text
    assert study("runs", "--out", "nowhere").stdout == "no run in nowhere\n"


def test_a_run_is_removed_after_a_yes_and_only_a_run(study: Cli, tmp_path: Path) -> None:
    ran(study, "a")
    ran(study, "b")
    asked = study("runs", "--remove", "a")
    assert asked.exit_code == 2 and "nobody is here to be asked" in asked.stderr and Path("runs/a").is_dir()
    for wrong in (("a", "nope"), ("study.toml",), ()):
        assert study("runs", "--remove", "--yes", *wrong).exit_code == 2, wrong
    Path("runs/link").symlink_to(Path("runs/a").absolute())
    linked = study("runs", "--remove", "--yes", "link")
    assert linked.exit_code == 2 and "is a link" in linked.stderr
    assert Path("runs/a").is_dir() and Path("runs/b").is_dir()
    lock = RunLock(Path("runs/b"))
    try:
        held = study("runs", "--remove", "--yes", "a", "b")
        assert held.exit_code == 3 and "being written" in held.stderr and Path("runs/a").is_dir()
        assert json.loads(study("runs", "b", "--json").stdout)["runs"][0]["running"]
    finally:
        lock.release()
    done = study("runs", "--remove", "--yes", "a")
    assert done.exit_code == 0 and done.stdout == "removed runs/a\n"
    assert not Path("runs/a").exists() and Path("runs/b").is_dir()


def test_a_run_that_cannot_be_read_is_listed_with_its_fault(study: Cli) -> None:
    run = ran(study, "a")
    (run / "run.toml").write_text("not = [toml")
    (one,) = json.loads(study("runs", "--json").stdout)["runs"]
    assert one["problem"] and one["bytes"] > 0
    assert study("runs", "--remove", "--yes", "a").exit_code == 0


# ── data frames ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_is_columns_of_plain_values(study: Cli) -> None:
    run = ran(study, "r")
    loaded = evalcore.load(run)
    assert loaded.stamp.run == "r" and loaded.report().run == "r"
    table = loaded.columns()
    assert list(table) == [name for name, _, _ in frames.COLUMNS]
    assert {len(values) for values in table.values()} == {48}
    solved = [t for t, a, s in zip(table["task"], table["arm"], table["success"], strict=True) if s and a == "talk"]
    assert sorted(map(str, solved)) == ["echo-0", "echo-0", "echo-6", "echo-6"]
    assert set(table["exit"]) == {"completed"} and set(table["user_cost_usd"]) == {0.0}
    assert set(table["harm"]) == {None} and set(table["void"]) == {None}
    with pytest.raises(ConfigError, match="no run at"):
        evalcore.load("nope")


@pytest.mark.parametrize("library", frames.LIBRARIES)
def test_a_run_is_a_data_frame(study: Cli, library: frames.Library) -> None:
    if frames._imported(library) is None:
        assert os.environ.get("CI") != "true", f"{library} is in the dev extra"
        pytest.skip(f"{library} is not installed")
    loaded = evalcore.load(ran(study, "r"))
    frame: Any = loaded.attempts_df(library)
    assert type(frame).__module__.partition(".")[0] == library and len(frame) == 48
    assert list(frame.columns) == [name for name, _, _ in frames.COLUMNS]
    kinds = {name: str(kind).lower() for name, kind in zip(frame.columns, frame.dtypes, strict=True)}
    assert kinds["repeat"] == "int64" and kinds["wall_s"] == "float64" and kinds["success"] == "boolean"
    assert kinds["harm"] == "boolean" and kinds["task"] == "string"
    assert frame["success"].sum() == 4
    missing = frame["harm"].isna().sum() if library == "pandas" else frame["harm"].null_count()
    assert missing == 48


def test_without_a_library_the_line_that_installs_one_is_told(study: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ran(study, "r")
    monkeypatch.setattr(frames, "_imported", lambda _: None)
    with pytest.raises(ConfigError, match="needs pandas or polars") as caught:
        evalcore.load(run).attempts_df()
    assert caught.value.hint == "pip install pandas"


# ── the stopping rule ────────────────────────────────────────────────────────────────────────────────────────────────

LOOKS: Final = '\n[analysis]\nstopping = "{}"\n'


LOUD: Final = (
    '[[reply]]\nmatch = { call = 1 }\ntext = "I say them."\ntool_calls = ['
    + ", ".join(
        f'{{ name = "say", arguments = {{ text = "{word}" }} }}' for word in ("one", "two", "three", "five", "six")
    )
    + ']\n[[reply]]\ntext = "done"\n'
)  # five of six words: the fourth task of each six is lost


def stopped(cli: Cli, tmp_path: Path, tasks: int, rule: str = "obrien-fleming", talk: str = LOUD) -> Called:
    """A run of the study with that rule, one trial at a time."""
    (tmp_path / "study.toml").write_text(STUDY.replace("toy-echo:12", f"toy-echo:{tasks}") + LOOKS.format(rule))
    (tmp_path / "talk.toml").write_text(talk)
    return cli("run", "study.toml", "--name", "r", "--concurrency", "1", "--quiet")


def trials_of(run: str) -> list[tuple[str, str, int]]:
    lines = [json.loads(x) for x in Path(f"runs/{run}/attempts.jsonl").read_text().splitlines()]
    return [(line["task"], line["arm"], line["repeat"]) for line in lines]


def test_a_planned_look_that_decides_every_claim_ends_the_run(study: Cli, tmp_path: Path) -> None:
    called = stopped(study, tmp_path, 40)
    assert called.exit_code == 0, called.stderr
    order = task_order(3, [f"echo-{n}" for n in range(40)])
    tried = [task for task, *_ in trials_of("r")]
    assert tried[:80] == [task for task in order[:20] for _ in range(4)]  # both arms have the same tasks, whole
    assert len(tried) < 160  # what was under way is finished
    told = " ".join(called.stderr.split())
    assert "toy-echo:40 was ended by planned look 1 after 20 of 40 tasks: talk is better than mute by pass@1" in told
    assert "--continue-past-stop` runs the rest, which stays exploratory" in told
    whole = scorecard(study, "r")
    (contrast,), (stop,) = whole["contrasts"], whole["design"]["stops"]
    assert (contrast["verdict"], contrast["confirmatory"], contrast["look"], contrast["tasks"]) == (
        "better",
        True,
        1,
        20,
    )
    assert (stop["look"], stop["tasks"], stop["of"], stop["trials_after"]) == (1, 20, 40, len(tried) - 80)
    assert contrast["level"] == pytest.approx(1 - 0.003051, abs=1e-5)  # what O'Brien-Fleming lets the first look spend
    assert whole["design"]["kept"] and whole["design"]["peeks"] == []  # who reads it now does not peek
    assert "was ended by planned look 1" in " ".join(study("report", "r").stdout.split())
    assert "was ended by planned look 1" in study("report", "r", "--format", "markdown").stdout


def test_a_run_that_its_rule_ended_goes_on_only_when_asked_and_its_finding_stands(study: Cli, tmp_path: Path) -> None:
    stopped(study, tmp_path, 40)
    before, tried = scorecard(study, "r")["contrasts"], len(trials_of("r"))
    again = study("resume", "r")
    assert again.exit_code == 0 and len(trials_of("r")) == tried
    assert "the stopping rule has ended toy-echo:40: nothing to run" in " ".join(again.stderr.split())
    more = study("resume", "r", "--continue-past-stop", "--quiet")
    assert more.exit_code == 0, more.stderr
    assert len(trials_of("r")) == 160
    whole = scorecard(study, "r")
    assert whole["contrasts"] == before  # at look 1, by its tasks alone
    assert whole["design"]["stops"][0]["trials_after"] == 80
    assert "80 trials that ended later are in no contrast" in " ".join(study("report", "r").stdout.split())
    compared = json.loads(study("compare", "r", "--json").stdout)["outcomes"][0]
    assert (compared["verdict"], compared["look"], compared["tasks"]) == ("better", 1, 20)


def test_a_rule_for_any_time_ends_a_run_at_the_first_task_that_decides(study: Cli, tmp_path: Path) -> None:
    called = stopped(study, tmp_path, 60, "anytime")
    assert called.exit_code == 0, called.stderr
    (stop,) = scorecard(study, "r")["design"]["stops"]
    won = [int(task.removeprefix("echo-")) % 6 != 3 for task in task_order(3, [f"echo-{n}" for n in range(60)])]
    first = next(n for n in range(1, 60) if sum(won[:n]) / n > mixture_radius(n, variance=1.0))
    assert (stop["look"], stop["tasks"]) == (None, first)  # the boundary of Howard et al. for values in [-1, 1]
    assert 0 <= stop["trials_after"] == len(trials_of("r")) - 4 * first < 240 - 4 * first


@pytest.mark.parametrize("rule, mute", [("fixed", "no"), ("obrien-fleming", "one")])
def test_fixed_studies_and_undecided_ones_run_to_their_end(study: Cli, tmp_path: Path, rule: str, mute: str) -> None:
    quiet = PLAYBOOK.replace("done", "so be it") if mute == "one" else '[[reply]]\ntext = "no"\n'
    (tmp_path / "mute.toml").write_text(quiet)
    called = stopped(study, tmp_path, 40, rule, talk=PLAYBOOK if mute == "one" else LOUD)
    assert called.exit_code == 0, called.stderr
    assert len(trials_of("r")) == 160 and not Path("runs/r/stops.jsonl").exists()


def test_a_run_killed_before_its_look_was_made_makes_it_when_it_goes_on(study: Cli, tmp_path: Path) -> None:
    stopped(study, tmp_path, 40)
    tried = len(trials_of("r"))
    Path("runs/r/stops.jsonl").unlink()
    called = study("resume", "r", "--quiet")
    assert called.exit_code == 0, called.stderr
    assert len(trials_of("r")) == tried and scorecard(study, "r")["design"]["stops"][0]["tasks"] == 20


def test_going_past_a_stop_needs_one(study: Cli) -> None:
    ran(study, "r")
    called = study("resume", "r", "--continue-past-stop")
    assert called.exit_code == 2 and "was not ended by its stopping rule" in called.stderr


# ── metrics of plugins ───────────────────────────────────────────────────────────────────────────────────────────────

COUNTS_ENTRY: Final = """
from evalcore.hookspecs import MetricInfo, hookimpl

@hookimpl
def evalcore_metrics():
    return [MetricInfo("words", "texts said per trial", "toy_counts_parts:Words", unit="texts", higher_is_better=False),
            MetricInfo("mood", "no direction", "toy_counts_parts:Words"),
            MetricInfo("odd", "of odd tasks only", "toy_counts_parts:Odd", higher_is_better=True, validated="here"),
            MetricInfo("bug", "fails", "toy_counts_parts:Bug", higher_is_better=True)]
"""
COUNTS_PARTS: Final = """
class Words:
    def __init__(self, services, info):
        pass

    def per_task(self, trials):
        return float(sum(t.attempt.tool_calls for t in trials)), float(len(trials))

class Odd(Words):
    def per_task(self, trials):
        odd = int(trials[0].attempt.key.task.removeprefix("echo-")) % 2
        return super().per_task(trials) if odd else None

class Bug(Words):
    def per_task(self, trials):
        raise LookupError("tripped")
"""
BY: Final = {"EVALCORE_PLUGINS": "toy-echo,toy-counts"}


@pytest.fixture
def counted(study: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The study, run where a plugin has metrics; what is declared is by one of them."""
    site = Site(tmp_path / "counts-site")
    site.add("toy-counts", COUNTS_ENTRY, toy_counts_parts=COUNTS_PARTS)
    monkeypatch.syspath_prepend(site.folder)
    (tmp_path / "study.toml").write_text(STUDY.replace("margin = 0.05", 'metric = "words"\nmargin = 0.5'))
    called = study("run", "study.toml", "--name", "r", "--quiet", **BY)
    assert called.exit_code == 0, called.stderr
    return study


def test_a_declared_contrast_by_a_plugins_metric_has_its_unit_direction_and_word(counted: Cli) -> None:
    (contrast,) = json.loads(counted("report", "r", "--json", **BY).stdout)["contrasts"]
    assert (contrast["metric"], contrast["unit"], contrast["higher_is_better"]) == ("words", "texts", False)
    assert (contrast["values"], contrast["tasks"]) == ([1.0, 0.0], 12)
    assert "talk's words (not validated) is 1 texts higher than mute's" in contrast["sentence"]
    gone = json.loads(counted("report", "r", "--json").stdout)["contrasts"][0]  # without the plugin
    assert gone["verdict"] == "refused" and "'words' cannot be compared" in gone["reason"]
    assert "margin 0.5" in counted("show", "r").stdout


def test_compare_and_gate_by_a_plugins_metric(counted: Cli) -> None:
    whole = json.loads(counted("compare", "r", "--metric", "words", "--json", **BY).stdout)
    (outcome,) = whole["outcomes"]
    assert (outcome["effect"]["value"], outcome["unit"], outcome["confirmatory"]) == (1.0, "texts", True)
    odd = json.loads(counted("compare", "r", "--metric", "odd", "--treatment", "model", "--json", **BY).stdout)[
        "outcomes"
    ][0]
    assert odd["effect"]["value"] == 1.0 and odd["tasks"] == 6  # what has no value is left out, and named
    assert len(odd["dropped"]["without_result"]) == 6
    gate = counted(
        "gate", "r", "--arm", "talk", "--baseline", "r", "--baseline-arm", "mute", "--max-drop", "0.5",
        "--metric", "words", "--treatment", "model", **BY,
    )  # fmt: skip
    assert gate.exit_code == 1 and "words (not validated)" in gate.stdout
    broken = counted("compare", "r", "--metric", "bug", "--treatment", "model", **BY)
    assert broken.exit_code == 3 and "the metric bug failed: LookupError: tripped" in " ".join(broken.stdout.split())


def test_a_metric_that_is_not_there_is_refused_with_those_that_are(counted: Cli, tmp_path: Path) -> None:
    unknown = counted("compare", "r", "--metric", "speed", **BY)
    assert unknown.exit_code == 2 and "view:LABEL, words, odd, bug" in unknown.stderr
    mood = counted("compare", "r", "--metric", "mood", **BY)
    assert mood.exit_code == 2 and "its plugin does not say whether more is better" in mood.stderr
    assert "did you mean 'words'" in counted("compare", "r", "--metric", "word", **BY).stderr
    (tmp_path / "study.toml").write_text(STUDY.replace("margin = 0.05", 'metric = "mood"'))
    declared = counted("plan", "study.toml", **BY)
    assert declared.exit_code == 2 and "$.contrasts[0].metric: 'mood' cannot be compared" in declared.stderr
    view = counted("compare", "r", "--metric", "view:strict", "--treatment", "model", **BY)
    assert view.exit_code == 3 and "no trial has the view 'strict'; there are: none" in " ".join(view.stdout.split())
