"""A study file: architecture §12 as it stands, every fault at once, and writing what is read back the same."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.engine.arms import Vocabulary
from evalcore.engine.settings import check_name
from evalcore.engine.study_file import base_folder, load_study, parse_limit, parse_study, read_study, write_study
from evalcore.errors import ConfigError, UnknownNameError
from evalcore.values.descriptors import AxisInfo, HarnessInfo, ModelInfo
from evalcore.values.faults import Wrong
from evalcore.values.json import JSONValue
from evalcore.values.study import Analysis, BenchmarkChoice, Contrast, RoleChoice, Study
from evalcore.values.task import Limits

EXAMPLE = """
[study]
name = "which-harness"
benchmarks = ["tau2-retail@test", "bfcl-multiple"]   # selectors, or a path to a task file
repeats = 5
seed = 1
budget_usd = 20.0

[benchmarks."bfcl-multiple"]   # per benchmark, where it differs
limit = "0-50"                 # or tasks = ["id", …]

[limits]                       # per trial; the stricter of this and the benchmark's own applies
tokens = 200_000
wall_s = 600
model_calls = 50

[roles.user]
model = "openai/gpt-5.2"

[arms.plain]
model = "openai/gpt-5.2"
harness = "react"

[arms.constrained]
extends = "plain"
tool_protocol = "constrained"

[sweep]
reasoning_effort = ["low", "high"]

[[contrasts]]
a = "constrained"
b = "plain"
metric = "pass@1"
margin = 0.05
"""
MINIMAL = '[study]\nname = "s"\nbenchmarks = ["b"]\n[arms.a]\nharness = "react"\n'


def parsed(text: str) -> Study:
    return parse_study(tomllib.loads(text), "study.toml")


def faults_of(text: str, head: str = MINIMAL) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parsed(head + text)
    return [str(f) for f in caught.value.faults]


def test_the_example_of_the_architecture_is_read_as_it_says() -> None:
    plain = {"model": "openai/gpt-5.2", "harness": "react"}
    assert parsed(EXAMPLE) == Study(
        name="which-harness",
        benchmarks=("tau2-retail@test", "bfcl-multiple"),
        arms={"plain": plain, "constrained": {**plain, "tool_protocol": "constrained"}},
        repeats=5,
        seed=1,
        budget_usd=20.0,
        choices={"bfcl-multiple": BenchmarkChoice((0, 50))},
        limits=Limits(tokens=200_000, wall_s=600.0, model_calls=50),
        roles={"user": RoleChoice("openai/gpt-5.2")},
        sweep={"reasoning_effort": ("low", "high")},
        contrasts=(Contrast("constrained", "plain", "pass@1", 0.05),),
    )


def test_five_different_mistakes_are_told_together_with_their_paths(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    text = EXAMPLE.replace("repeats", "repeat").replace("0-50", "50-0").replace('"plain"\ntool', '"plan"\ntool')
    path.write_text(text.replace("20.0", "-1").replace("0.05", "5"), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_study(path)
    assert str(caught.value) == f"{path}: 5 faults"
    assert caught.value.exit_code == 2
    assert {str(f) for f in caught.value.faults} == {
        "$.study.repeat: unknown key (did you mean 'repeats'?)",
        "$.study.budget_usd: must be > 0: -1.0",
        "$.benchmarks.\"bfcl-multiple\".limit: no task is in '50-0' (0-based, B not included: 0-50 is the first fifty)",
        "$.arms.constrained.extends: no such arm: 'plan' (did you mean 'plain'?)",
        "$.contrasts[0].margin: must be <= 1: 5.0 (a share: 0.05 is five percentage points)",
    }


@pytest.mark.parametrize(
    "text, faults",
    [
        ("[extra]", ["$.extra: unknown key"]),
        ("[contrast]", ["$.contrast: unknown key (did you mean 'contrasts'?)"]),
        (
            "[limits]\ntokens = 0\nwall_s = -1",
            ["$.limits.tokens: must be > 0: 0", "$.limits.wall_s: must be > 0: -1.0"],
        ),
        ("[limits]\nwall = 1", ["$.limits.wall: unknown key (did you mean 'wall_s'?)"]),
        (
            "[roles.usr]\nmodel = 3",
            [
                "$.roles.usr: unknown role: expected 'agent', 'user' or 'judge' (did you mean 'user'?)",
                "$.roles.usr.model: expected text, got 3",
            ],
        ),
        (
            '[roles.agent]\nmodel = "a/b"',
            ["$.roles.agent.model: the agent's model is an axis (set `model` in each arm)"],
        ),
        ("[benchmarks.c]\nlimit = 3", ["$.benchmarks.c: not listed in study.benchmarks"]),
        ("[benchmarks.b]\ntasks = []", ["$.benchmarks.b.tasks: names no task"]),
        ('[benchmarks.b]\ntasks = ["x", "x"]', ["$.benchmarks.b.tasks[1]: 'x' is listed twice"]),
        (
            '[benchmarks.b]\ntasks = ["x"]\nlimit = 1',
            ["$.benchmarks.b: has both limit and tasks (one of them says which tasks run)"],
        ),
        ("[benchmarks.b]\nlimit = 1.5", ["$.benchmarks.b.limit: expected an integer or text, got 1.5"]),
        ('[arms."a@b"]', ['$.arms."a@b": an arm\'s name is one line of text without @']),
        ("[arms.c]\nextends = 3", ["$.arms.c.extends: expected an arm's name, got 3"]),
        (
            "[arms.c]\nx = 2024-01-01",
            ["$.arms.c.x: expected text, a number, true or false, an array or a table, got a date or time"],
        ),
        ('[sweep]\nx = []\ny = "low"', ["$.sweep.x: has no value", "$.sweep.y: expected an array, got the text 'low'"]),
        ("[sweep]\nx = [1, 2, 1]", ["$.sweep.x[2]: 1 is listed twice"]),
        ('[sweep]\nharness = ["x"]', ["$.arms.a.harness: set here, and in [sweep] too"]),
        (
            '[[contrasts]]\na = "a"\nb = "aa"\nmetrc = "x"',
            [
                "$.contrasts[0].metrc: unknown key (did you mean 'metric'?)",
                "$.contrasts[0].b: no such arm: 'aa' (did you mean 'a'?)",
            ],
        ),
        ('[[contrasts]]\na = "a"\nb = "a"', ["$.contrasts[0]: compares 'a' with itself"]),
        ('[[contrasts]]\na = "a"\nb = "a"\nmargin = 0', ["$.contrasts[0].margin: must be > 0: 0.0"]),
        ("[contrasts]", ["$.contrasts: expected an array of tables, got a table"]),
    ],
)
def test_each_fault_has_its_path_and_says_what_would_be_right(text: str, faults: list[str]) -> None:
    assert faults_of(text) == faults


@pytest.mark.parametrize(
    "head, faults",
    [
        (
            "",
            [
                "$.study: missing: expected a table",
                '$.arms: missing: expected at least one arm (for example [arms.plain] with harness = "react")',
            ],
        ),
        ("study = 3\n[arms.a]", ["$.study: expected a table, got 3"]),
        ('[study]\nname = "x"\nbenchmarks = []\n[arms.a]', ["$.study.benchmarks: names no benchmark"]),
        (
            '[study]\nname = "x"\nbenchmarks = ["b", "b", 3]\n[arms.a]',
            ["$.study.benchmarks[2]: expected text, got 3", "$.study.benchmarks[1]: 'b' is listed twice"],
        ),
        (
            '[study]\nname = "x"\nbenchmarks = [["b"]]\nrepeats = 0\nseed = -1\n[arms.a]',
            [
                "$.study.benchmarks[0]: expected text, got an array",
                "$.study.repeats: must be >= 1: 0",
                "$.study.seed: must be >= 0: -1",
            ],
        ),
        ('arms = 3\n[study]\nname = "x"\nbenchmarks = ["b"]', ["$.arms: expected a table, got 3"]),
        ('[study]\nname = "x"\nbenchmarks = ["b"]\n[arms]\na = 3', ["$.arms.a: expected a table, got 3"]),
    ],
)
def test_what_every_study_needs_is_missed(head: str, faults: list[str]) -> None:
    assert faults_of("", head) == faults


def test_a_contrast_is_declared_once_whichever_way_round() -> None:
    text = '[arms.c]\nharness = "oracle"\n[[contrasts]]\na = "a"\nb = "c"\n[[contrasts]]\na = "c"\nb = "a"\n'
    assert faults_of(text) == ["$.contrasts[1]: is declared twice"]
    assert len(parsed(MINIMAL + text + 'metric = "tokens"').contrasts) == 2


def test_a_contrast_may_name_one_point_of_a_sweep() -> None:
    sweep = '[sweep]\nx = ["low", "high"]\ny = [true]\n'
    contrast = '[[contrasts]]\na = "a@x=low,y=true"\nb = "a@x={}"\n'
    assert parsed(MINIMAL + sweep + contrast.format("high,y=true")).contrasts[0].b == "a@x=high,y=true"
    assert faults_of(sweep + contrast.format("high")) == ["$.contrasts[0].b: no such arm: 'a@x=high'"]


# ── extends ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_arm_inherits_along_a_chain_written_in_any_order_and_the_nearest_wins() -> None:
    text = '[arms.c]\nextends = "b"\nz = 3\n[arms.b]\nextends = "a"\nharness = "other"\ny = 2\n'
    assert parsed(MINIMAL + text).arms == {
        "a": {"harness": "react"},
        "c": {"harness": "other", "y": 2, "z": 3},
        "b": {"harness": "other", "y": 2},
    }


def test_a_cycle_is_told_once_and_what_leads_into_it_is_not_blamed() -> None:
    text = '[arms.in]\nextends = "c"\n[arms.b]\nextends = "c"\n[arms.c]\nextends = "d"\n[arms.d]\nextends = "b"\n'
    assert faults_of(text) == ["$.arms.b.extends: a cycle: b → c → d → b"]
    assert faults_of('[arms.b]\nextends = "b"') == ["$.arms.b.extends: a cycle: b → b"]


# ── limits and names ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text, limit", [("5", (0, 5)), ("3-7", (3, 7)), ("0-1", (0, 1)), ("3-", (3, None)), ("0-", (0, None))]
)
def test_a_limit_is_a_count_or_a_half_open_range(text: str, limit: tuple[int, int | None]) -> None:
    assert parse_limit(text) == limit
    assert parsed(f'{MINIMAL}[benchmarks.b]\nlimit = "{text}"').choices["b"].limit == limit


@pytest.mark.parametrize("text", ["", "-", "-5", "a", "1-2-3", "1 - 2", "1.5", "1_000", "٣", "9" * 19])
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(Wrong, match="expected N, A-B or A-"):
        parse_limit(text)


@pytest.mark.parametrize("text", ["0", "3-3", "7-3"])
def test_an_empty_range_is_refused(text: str) -> None:
    with pytest.raises(Wrong, match="no task is in"):
        parse_limit(text)


def test_a_whole_number_may_be_a_limit_in_a_file() -> None:
    assert parsed(f"{MINIMAL}[benchmarks.b]\nlimit = 50").choices["b"].limit == (0, 50)


@pytest.mark.parametrize("name", ["", "a/b", "..", "a..b", ".hidden", "-x", "a b", "é", "a.", "a\n", "x" * 101, "a\\b"])
def test_a_name_that_is_no_folder_is_refused(name: str) -> None:
    with pytest.raises(Wrong, match="cannot be a folder's name everywhere"):
        check_name(name)
    study = {"study": {"name": name, "benchmarks": ["b"]}, "arms": {"a": {"harness": "x"}}}
    with pytest.raises(ConfigError) as caught:
        parse_study(study, "s")
    assert [f.where for f in caught.value.faults] == ["$.study.name"]


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_syntax_error_has_its_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text("[study]\nname = x\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_study(path)
    assert [f.where for f in caught.value.faults] == ["line 2, column 8"]


def test_a_file_that_is_not_there_is_a_plain_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        read_study(tmp_path / "none.toml")


def test_relative_paths_start_at_the_files_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert base_folder(Path("studies/s.toml")) == tmp_path / "studies"


VOCABULARY = Vocabulary(
    (AxisInfo("effort", "", "gateway", values=("low", "high")),),
    (HarnessInfo("react", "", "p.m:f"),),
    (ModelInfo("openai", "", "p.m:f"),),
)


def _check(selector: str) -> None:
    if selector != "bfcl":
        raise UnknownNameError("benchmark", selector, nearest=("bfcl",))


def loader(tmp_path: Path, text: str) -> Callable[[], object]:
    path = tmp_path / "s.toml"
    path.write_text(text, encoding="utf-8")
    return lambda: load_study(path, VOCABULARY, check_selector=_check)


def test_faults_of_the_file_of_its_arms_and_of_its_benchmarks_are_told_together(tmp_path: Path) -> None:
    load = loader(
        tmp_path,
        '[study]\nname = "s"\nbenchmarks = ["bfcl", "bfc"]\nrepeats = "2"\n'
        '[arms.plain]\nharness = "raect"\nmodel = "opnai/x"\n'
        '[arms.more]\nextends = "plain"\nefort = "low"\n'
        '[arms.lost]\nextends = "plian"\n'
        '[sweep]\neffort = ["low", "hgih"]\n',
    )
    with pytest.raises(ConfigError) as caught:
        load()
    assert [str(f) for f in caught.value.faults] == [
        "$.study.repeats: expected an integer, got the text '2'",
        "$.study.benchmarks[1]: unknown benchmark 'bfc'; did you mean 'bfcl'?",
        "$.arms.lost.extends: no such arm: 'plian' (did you mean 'plain'?)",
        "$.arms.plain.harness: unknown harness 'raect' (did you mean 'react'?; also in more)",
        "$.arms.plain.model: unknown provider 'opnai' (did you mean 'openai'?; also in more)",
        "$.sweep.effort[1]: expected 'low' or 'high', got the text 'hgih' (did you mean 'high'?)",
        "$.arms.more.efort: unknown axis 'efort' (did you mean 'effort'?)",
    ]


def test_a_sound_file_gives_its_study_and_complete_arms(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(
        '[study]\nname = "s"\nbenchmarks = ["bfcl"]\n[arms.a]\nharness = "react"\nmodel = "openai/x"\n'
        '[sweep]\neffort = ["low", "high"]\n',
        encoding="utf-8",
    )
    study, arms = load_study(path, VOCABULARY, check_selector=_check)
    assert study == read_study(path)
    assert [a.handle for a in arms] == ["a@effort=low", "a@effort=high"]


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_study_is_written_in_the_order_of_the_architecture() -> None:
    assert write_study(parsed(EXAMPLE)) == (
        '[study]\nname = "which-harness"\nbenchmarks = ["tau2-retail@test", "bfcl-multiple"]\nrepeats = 5\nseed = 1\n'
        'budget_usd = 20.0\n\n[benchmarks.bfcl-multiple]\nlimit = "0-50"\n\n'
        "[limits]\ntokens = 200000\nmodel_calls = 50\nwall_s = 600.0\n\n"
        '[roles.user]\nmodel = "openai/gpt-5.2"\n\n'
        '[arms.plain]\nmodel = "openai/gpt-5.2"\nharness = "react"\n\n'
        '[arms.constrained]\nmodel = "openai/gpt-5.2"\nharness = "react"\ntool_protocol = "constrained"\n\n'
        '[sweep]\nreasoning_effort = ["low", "high"]\n\n'
        '[[contrasts]]\na = "constrained"\nb = "plain"\nmetric = "pass@1"\nmargin = 0.05\n'
    )


KEY = st.text(min_size=1, max_size=6)
HANDLE = st.from_regex(r"[a-z0-9é/.'\"\\-][a-z0-9 é/.'\"\\-]{0,5}[a-z]", fullmatch=True)
VALUE: st.SearchStrategy[JSONValue] = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEY, inner, max_size=2),
    max_leaves=4,
)
COUNT = st.integers(1, 10**6)
AMOUNT = st.floats(0.001, 1e9)
LIMITS = st.builds(Limits, st.none() | COUNT, st.none() | AMOUNT, st.none() | COUNT, wall_s=st.none() | AMOUNT)
RANGES = st.tuples(st.integers(0, 99), st.none() | st.integers(100, 10**6))
CHOICES = st.builds(BenchmarkChoice, st.none() | RANGES) | st.builds(
    BenchmarkChoice, tasks=st.lists(KEY, min_size=1, max_size=3, unique=True).map(tuple)
)

SHARE = st.floats(0.01, 0.4)
ANALYSES = st.just(Analysis()) | st.builds(
    Analysis,
    SHARE,
    SHARE,
    st.sampled_from(["obrien-fleming", "pocock"]),
    st.just(()) | st.just((0.25, 1.0)),
    st.none() | AMOUNT,
    st.dictionaries(st.sampled_from(["success", "cost"]), SHARE, max_size=2),
    st.dictionaries(st.sampled_from(["cost", "time"]), st.tuples(AMOUNT, st.just(0.0)), max_size=2),
)


@st.composite
def studies(draw: st.DrawFn) -> Study:
    benchmarks = tuple(draw(st.lists(KEY, min_size=1, max_size=3, unique=True)))
    axes = st.dictionaries(KEY.filter(lambda k: k != "extends").map("a".__add__), VALUE, max_size=3)
    arms = draw(st.dictionaries(HANDLE, axes, min_size=2, max_size=3))
    first, second = list(arms)[:2]
    metric = st.sampled_from(["pass@1", "pass^3", "tokens"])
    contrast = st.builds(Contrast, st.just(first), st.just(second), metric, st.none() | st.floats(0.001, 1))
    return Study(
        name=draw(st.from_regex(r"[a-z0-9][a-z0-9_+-]{0,9}", fullmatch=True)),
        benchmarks=benchmarks,
        arms=arms,
        repeats=draw(COUNT),
        seed=draw(st.integers(0, 2**63 - 1)),
        budget_usd=draw(st.none() | AMOUNT),
        choices=draw(st.dictionaries(st.sampled_from(benchmarks), CHOICES)),
        limits=draw(LIMITS),
        roles=draw(st.dictionaries(st.sampled_from(["user", "judge"]), st.builds(RoleChoice, st.none() | KEY, LIMITS))),
        sweep=draw(st.dictionaries(KEY.map("b".__add__), VALUE.map(lambda v: (v,)), max_size=2)),
        contrasts=tuple(draw(st.lists(contrast, max_size=1))),
        analysis=draw(ANALYSES),
    )


ANALYSIS = """
[analysis]
alpha = 0.01
stopping = "obrien-fleming"
looks = [0.5, 0.75, 1.0]
value_per_solve_usd = 2.5
weights = { success = 0.7, cost = 0.3 }
anchors = { cost = [0.5, 0.0] }
"""


def test_the_analysis_is_part_of_the_plan_and_of_its_digest() -> None:
    plain, whole = parsed(MINIMAL), parsed(MINIMAL + ANALYSIS)
    assert whole.analysis == Analysis(
        0.01, 0.8, "obrien-fleming", (0.5, 0.75, 1.0), 2.5, {"success": 0.7, "cost": 0.3}, {"cost": (0.5, 0.0)}
    )
    assert plain.analysis == Analysis() and plain.digest != whole.digest
    assert "analysis" not in plain.as_json()  # the digests of older studies stand


@pytest.mark.parametrize(
    "text, faults",
    [
        ("alpha = 0.7", ["$.analysis.alpha: must be < 0.5: 0.7"]),
        (
            'stopping = "peek"',
            ["$.analysis.stopping: expected 'fixed', 'obrien-fleming', 'pocock' or 'anytime', got the text 'peek'"],
        ),
        ("looks = [0.5, 1.0]", ["$.analysis.looks: looks are not planned with stopping = 'fixed'"]),
        (
            'stopping = "pocock"\nlooks = [0.5, 0.4]',
            ["$.analysis.looks: expected two or more shares of the tasks, increasing, the last one 1"],
        ),
        (
            "weights = { succes = 1 }",
            ["$.analysis.weights.succes: no dimension of the composite (did you mean 'success'?)"],
        ),
        (
            'stopping = "pocock"\nlooks = [0.001, 1.0]',
            ["$.analysis.looks: a look before 0.05 of the tasks can reject nothing"],
        ),
        ("weights = { success = 0 }", ["$.analysis.weights: all weights are 0"]),
        ("weights = { cost = -1, time = 1 }", ["$.analysis.weights.cost: expected a number of at least 0, got -1.0"]),
        ("anchors = { cost = [1.0, 1.0] }", ["$.analysis.anchors.cost: expected [worst, best], two different numbers"]),
        ("anchors = { cost = [nan, 1.0] }", ["$.analysis.anchors.cost[0]: expected a finite number, got nan"]),
    ],
)
def test_a_wrong_analysis_says_what_would_be_right(text: str, faults: list[str]) -> None:
    assert faults_of(f"[analysis]\n{text}") == faults


def test_only_what_can_be_compared_is_a_metric() -> None:
    text = '[[contrasts]]\na = "a"\nb = "b"\nmetric = "{}"\n'
    assert faults_of('[arms.b]\nharness = "noop"\n' + text.format("tokns")) == [
        "$.contrasts[0].metric: 'tokns' cannot be compared (did you mean 'tokens'?)"
    ]


@given(studies())
def test_what_is_written_is_read_back_the_same(study: Study) -> None:
    text = write_study(study)
    back = parsed(text)
    assert back == study
    assert back.digest == study.digest
    assert write_study(back) == text
    assert parse_study(study.as_json(), "stamp") == study
