"""Flags as a study, flags over a study file, and run settings from flags, environment and file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from evalcore.engine.arms import Vocabulary, complete_arms
from evalcore.engine.flags import StudyFlags, apply_flags, study_from_flags
from evalcore.engine.settings import (
    RunSettings,
    SettingFlags,
    check_name,
    default_run_name,
    parse_text,
    run_settings,
)
from evalcore.engine.study_file import parse_study
from evalcore.errors import ConfigError
from evalcore.values.descriptors import AxisInfo, AxisType, HarnessInfo, ModelInfo
from evalcore.values.faults import Wrong
from evalcore.values.json import JSONValue
from evalcore.values.study import BenchmarkChoice, Study
from evalcore.values.task import Limits

FOLDER_NAMES = "letters, digits and . _ + - after a letter or digit, no two dots in a row, at most 100 characters"
FACTORY = "package.module:Part"
VOCABULARY = Vocabulary(
    axes=(
        AxisInfo("tool_protocol", "", "harness", values=("native", "constrained"), default="native"),
        AxisInfo("temperature", "", "gateway", "number", low=0, high=2),
        AxisInfo("max_output_tokens", "", "gateway", "integer", low=1),
        AxisInfo("strict", "", "engine", "boolean"),
    ),
    harnesses=(
        HarnessInfo("react", "", FACTORY, axes=("tool_protocol",)),
        HarnessInfo("agentd", "", FACTORY),
        HarnessInfo("oracle", "", FACTORY, uses_model=False, control=True),
        HarnessInfo("noop", "", FACTORY, uses_model=False, control=True),
    ),
    models=(ModelInfo("openai", "", FACTORY), ModelInfo("vertex", "", FACTORY)),
)


def study(**given: Any) -> Study:
    return study_from_flags(StudyFlags(**{"selectors": ("bfcl",)} | given), VOCABULARY)


def faults_of(call: Callable[[], object]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        call()
    return [str(f) for f in caught.value.faults]


def refused(**given: Any) -> list[str]:
    return faults_of(lambda: study(**given))


# ── a study from flags ───────────────────────────────────────────────────────────────────────────────────────────────


def test_with_nothing_named_the_two_controls_run() -> None:
    made = study(selectors=("bfcl-simple-python",))
    assert made.name == "controls-bfcl-simple-python"
    assert made.arms == {"oracle": {"harness": "oracle"}, "noop": {"harness": "noop"}}


def test_every_flag_has_its_place_in_the_study() -> None:
    made = study(
        selectors=("bfcl", "tau2-retail@test"),
        models=("openai/a",),
        harnesses=("react",),
        trials=5,
        limit="10-20",
        seed=7,
        budget_usd=20,
        max_tokens=1000,
        timeout_s=60,
        set=(("tool_protocol", "constrained"), ("strict", "true")),
        sweep=(("temperature", ("0", "0.5")),),
        name="mine",
    )
    assert made == Study(
        name="mine",
        benchmarks=("bfcl", "tau2-retail@test"),
        arms={"react": {"harness": "react", "model": "openai/a", "tool_protocol": "constrained", "strict": True}},
        repeats=5,
        seed=7,
        budget_usd=20.0,
        choices={s: BenchmarkChoice((10, 20)) for s in ("bfcl", "tau2-retail@test")},
        limits=Limits(tokens=1000, wall_s=60.0),
        sweep={"temperature": (0.0, 0.5)},
    )
    assert type(made.budget_usd) is float and type(made.limits.wall_s) is float
    assert parse_study(made.as_json(), "stamp") == made
    assert [a.handle for a in complete_arms(made, VOCABULARY, base=Path())] == [
        "react@temperature=0.0",
        "react@temperature=0.5",
    ]


def test_every_harness_meets_every_model_and_a_control_none() -> None:
    made = study(models=("openai/a", "vertex/b@2025"), harnesses=("react", "agentd", "oracle"))
    assert made.arms == {
        "react/openai/a": {"harness": "react", "model": "openai/a"},
        "react/vertex/b~2025": {"harness": "react", "model": "vertex/b@2025"},
        "agentd/openai/a": {"harness": "agentd", "model": "openai/a"},
        "agentd/vertex/b~2025": {"harness": "agentd", "model": "vertex/b@2025"},
        "oracle": {"harness": "oracle"},
    }
    assert parse_study(made.as_json(), "stamp") == made


def test_a_model_alone_meets_the_reference_harness_or_the_declared_one() -> None:
    assert list(study(models=("openai/a",)).arms) == ["react"]
    declared = evolve(VOCABULARY, axes=(*VOCABULARY.axes, AxisInfo("harness", "", "engine", default="agentd")))
    flags = StudyFlags(("bfcl",), models=("openai/a",))
    assert list(study_from_flags(flags, declared).arms) == ["agentd"]


def test_a_name_given_twice_is_one() -> None:
    made = study(selectors=("bfcl", "bfcl"), models=("openai/a", "openai/a"), harnesses=("react", "react"))
    assert made.benchmarks == ("bfcl",) and list(made.arms) == ["react"]


@pytest.mark.parametrize(
    "selectors, name",
    [
        (("tau2-retail@test",), "controls-tau2-retail-test"),
        (("terminalbench:../my dir",), "controls-terminalbench-my-dir"),
        (("a", "b"), "controls-a-b"),
        (("a", "b", "c", "d"), "controls-a-b-and-2-more"),
        (("x" * 200,), "controls-" + "x" * 71),
    ],
)
def test_a_study_is_named_after_what_it_runs(selectors: tuple[str, ...], name: str) -> None:
    made = study(selectors=selectors)
    assert made.name == name
    check_name(made.name)


def test_tasks_are_chosen_by_name() -> None:
    assert study(tasks=("x", "y", "x")).choices == {"bfcl": BenchmarkChoice(tasks=("x", "y"))}


def test_a_control_among_others_keeps_out_of_what_is_set_for_all() -> None:
    made = study(models=("openai/a",), harnesses=("react", "oracle"), set=(("temperature", "1"),))
    assert made.arms == {
        "react": {"harness": "react", "model": "openai/a", "temperature": 1.0},
        "oracle": {"harness": "oracle"},
    }


@pytest.mark.parametrize(
    "given, faults",
    [
        ({"selectors": ()}, ["SELECTOR: missing: what is to be run? (`evalcore list` names every benchmark)"]),
        ({"harnesses": ("ract",)}, ["--harness: unknown harness 'ract' (did you mean 'react'?)"]),
        ({"models": ("opnai/x",)}, ["--model: unknown provider 'opnai' (did you mean 'openai'?)"]),
        ({"models": ("gpt",)}, ["--model: expected provider/name, got the text 'gpt' (providers: openai, vertex)"]),
        ({"harnesses": ("react",)}, ["--model: missing: harness 'react' speaks to a model (--model provider/name)"]),
        (
            {"harnesses": ("oracle",), "models": ("openai/a",)},
            ["--model: harness 'oracle' uses no model (leave it out, or name another --harness)"],
        ),
        ({"trials": 0, "seed": -1}, ["--trials: must be >= 1: 0", "--seed: must be >= 0: -1"]),
        (
            {"budget_usd": 0, "max_tokens": -1, "timeout_s": float("nan")},
            ["--budget-usd: must be > 0: 0", "--max-tokens: must be > 0: -1", "--timeout: must be > 0: nan"],
        ),
        ({"limit": "3-3"}, ["--limit: no task is in '3-3' (0-based, B not included: 0-50 is the first fifty)"]),
        (
            {"limit": "3", "tasks": ("x",)},
            ["--task: cannot be combined with --limit (one of them says which tasks run)"],
        ),
        (
            {"selectors": ("a", "b"), "tasks": ("x",)},
            ["--task: names tasks of one benchmark, not of 2 (a study file can choose for each)"],
        ),
        (
            {"name": "../x"},
            [f"--name: '../x' cannot be a folder's name everywhere ({FOLDER_NAMES})"],
        ),
        ({"set": (("temperature", "1"),)}, ["--set temperature: no arm takes it"]),
        ({"sweep": (("temperature", ("1", "2")),)}, ["--sweep temperature: no arm takes it"]),
        ({"set": (("model", "x"),)}, ["--set model: arms are made with --model (--model A,B makes one for each)"]),
        ({"set": (("strickt", "true"),)}, ["--set strickt: unknown axis 'strickt' (did you mean 'strict'?)"]),
        ({"set": (("strict", "yes"),)}, ["--set strict: expected true or false, got 'yes'"]),
        ({"set": (("strict", "true"), ("strict", "false"))}, ["--set strict: is given twice"]),
        ({"set": (("strict", "true"),), "sweep": (("strict", ("false",)),)}, ["--sweep strict: is given twice"]),
        ({"sweep": (("strict", ()),)}, ["--sweep strict: has no value"]),
        (
            {"sweep": (("strict", ("true", "true", "1")),)},
            ["--sweep strict: 'true' is listed twice", "--sweep strict: expected true or false, got '1'"],
        ),
    ],
)
def test_each_fault_is_told_at_its_flag(given: dict[str, Any], faults: list[str]) -> None:
    assert refused(**given) == faults


def test_a_knob_that_one_agent_does_not_have_is_a_fault_and_not_skipped() -> None:
    both = {"models": ("openai/a",), "harnesses": ("react", "agentd")}
    fault = "tool_protocol: harness 'agentd' does not take it (taken by: react)"
    assert refused(**both, set=(("tool_protocol", "native"),)) == [f"--set {fault}"]
    assert refused(**both, sweep=(("tool_protocol", ("native",)),)) == [f"--sweep {fault}"]


def test_all_faults_are_told_at_once() -> None:
    given = {"trials": 0, "limit": "x", "harnesses": ("ract",), "models": ("a",), "set": (("temperature", "hot"),)}
    assert [f.partition(":")[0] for f in refused(**given)] == [
        "--limit", "--trials", "--harness", "--model", "--set temperature",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "kind, text, value",
    [
        ("text", " 5 ", " 5 "),
        ("file", "a.md", "a.md"),
        ("integer", "-5", -5),
        ("number", "0.5", 0.5),
        ("number", "5", 5.0),
        ("number", "1e-3", 0.001),
        ("boolean", "false", False),
    ],
)
def test_a_text_is_read_as_the_axis_has_it(kind: AxisType, text: str, value: JSONValue) -> None:
    read = parse_text(kind, text)
    assert read == value and type(read) is type(value)


@pytest.mark.parametrize(
    "kind, text",
    [
        ("integer", "5.0"), ("integer", " 5"), ("integer", "1_000"), ("integer", ""), ("integer", "٣"),
        ("number", "nan"), ("number", "inf"), ("number", "1e999"), ("number", "0x1"), ("number", "."),
        ("boolean", "True"), ("boolean", "1"), ("boolean", ""),
    ],
)  # fmt: skip
def test_a_text_is_not_bent_into_a_value(kind: AxisType, text: str) -> None:
    with pytest.raises(Wrong, match="expected"):
        parse_text(kind, text)


# ── over a study file ────────────────────────────────────────────────────────────────────────────────────────────────

FILED = Study("filed", ("bfcl",), {"a": {"harness": "react"}}, repeats=5, seed=1, limits=Limits(tokens=10, wall_s=60.0))


def test_a_budget_and_a_name_are_no_change_of_the_study() -> None:
    flags = StudyFlags(("which.toml",), budget_usd=5, name="mine")
    assert apply_flags(FILED, flags) == evolve(FILED, budget_usd=5.0)
    assert apply_flags(FILED, StudyFlags(("which.toml",))) is FILED


def test_a_flag_that_says_what_the_file_says_is_no_change() -> None:
    assert apply_flags(FILED, StudyFlags(("which.toml",), trials=5, seed=1, max_tokens=10, timeout_s=60)) is FILED


def test_every_flag_that_would_change_arms_tasks_or_seed_is_refused_by_name_and_file() -> None:
    flags = StudyFlags(
        ("which.toml", "bfcl"),
        models=("openai/a",),
        harnesses=("react",),
        trials=3,
        limit="3",
        tasks=("x",),
        seed=2,
        max_tokens=5,
        timeout_s=5,
        set=(("strict", "true"),),
        sweep=(("strict", ("true",)),),
    )
    hint = "(a study is fixed in its file: change it there, or copy it)"
    assert faults_of(lambda: apply_flags(FILED, flags)) == [
        f"bfcl: would change the benchmarks of which.toml {hint}",
        f"--model: would change the arms of which.toml {hint}",
        f"--harness: would change the arms of which.toml {hint}",
        f"--set: would change the arms of which.toml {hint}",
        f"--sweep: would change the arms of which.toml {hint}",
        f"--limit: would change the tasks of which.toml {hint}",
        f"--task: would change the tasks of which.toml {hint}",
        f"--trials: would change the repeats of which.toml {hint}",
        f"--seed: would change the seed of which.toml {hint}",
        f"--max-tokens: would change the limits of which.toml {hint}",
        f"--timeout: would change the limits of which.toml {hint}",
    ]


# ── run settings ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_flags_win_over_the_environment_and_that_over_the_file() -> None:
    filed = evolve(FILED, budget_usd=1.0)
    environ = {"EVALCORE_CONCURRENCY": "8", "EVALCORE_OUT": "there", "EVALCORE_YES": "1", "EVALCORE_QUIET": "false"}
    assert run_settings(SettingFlags(), {}, filed) == RunSettings(budget_usd=1.0)
    assert run_settings(SettingFlags(), environ, filed) == RunSettings(
        Path("there"), concurrency=8, yes=True, budget_usd=1.0
    )
    assert run_settings(SettingFlags(), environ | {"EVALCORE_BUDGET_USD": "2"}, filed).budget_usd == 2.0
    flags = SettingFlags(out="here", name="n", concurrency=2, yes=False, json=True, budget_usd=3.0)
    assert run_settings(flags, environ | {"EVALCORE_BUDGET_USD": "2"}, filed) == RunSettings(
        Path("here"), "n", 2, yes=False, json=True, quiet=False, budget_usd=3.0
    )


def test_an_empty_variable_is_not_set_and_others_are_none_of_our_business() -> None:
    environ = {"EVALCORE_CONCURRENCY": "", "EVALCORE_CACHE": "/x", "CONCURRENCY": "x"}
    assert run_settings(SettingFlags(), environ) == RunSettings()


def test_a_home_folder_is_found() -> None:
    assert run_settings(SettingFlags(out="~/runs"), {}).out == Path.home() / "runs"


def test_every_bad_setting_is_told_with_where_it_came_from() -> None:
    environ = {
        "EVALCORE_CONCURRENCY": "many",
        "EVALCORE_YES": "yes",
        "EVALCORE_BUDGET_USD": "-1",
        "EVALCORE_QUIET": "01",
        "EVALCORE_NAME": "x",
    }
    faults = faults_of(lambda: run_settings(SettingFlags(name="a/b"), environ))
    assert [f.partition(" (")[0] for f in faults] == [
        "--name: 'a/b' cannot be a folder's name everywhere",
        "EVALCORE_CONCURRENCY: expected an integer, got 'many'",
        "EVALCORE_YES: expected true or false, got 'yes'",
        "EVALCORE_QUIET: expected true or false, got '01'",
        "EVALCORE_BUDGET_USD: must be > 0: -1.0",
    ]
    assert faults_of(lambda: run_settings(SettingFlags(concurrency=0, budget_usd=float("inf")), {})) == [
        "--concurrency: must be >= 1: 0",
        "--budget-usd: must be > 0: inf",
    ]


def test_a_run_is_named_by_time_study_and_digest() -> None:
    name = default_run_name(FILED, "2026-11-30T12:15:00.25+02:00")
    assert name == f"20261130-101500-filed-{FILED.digest[:8]}"
    assert default_run_name(FILED, "2026-11-30T10:15:00Z") == name
    check_name(default_run_name(evolve(FILED, name="x" * 69 + "." + "y" * 30), "2026-11-30T10:15:00Z"))
