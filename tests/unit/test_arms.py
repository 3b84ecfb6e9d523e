"""From arms as written to complete ones: sweep, defaults, who takes which axis, files, and what is refused."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import pytest
from attrs import evolve

from evalcore.engine.arms import Vocabulary, complete_arms
from evalcore.errors import ConfigError
from evalcore.values.arm import Arm
from evalcore.values.descriptors import AxisInfo, HarnessInfo, ModelInfo
from evalcore.values.json import JSONValue
from evalcore.values.study import RoleChoice, Study

FACTORY = "package.module:Part"
VOCABULARY = Vocabulary(
    axes=(
        AxisInfo("harness", "the agent", "engine", boundary=True),
        AxisInfo("tool_protocol", "", "harness", values=("native", "constrained"), default="native"),
        AxisInfo("max_turns", "", "harness", "integer", default=50, of="react", low=1),
        AxisInfo("reasoning_effort", "", "gateway", values=("low", "high")),
        AxisInfo("temperature", "", "gateway", "number", low=0, high=2),
        AxisInfo("seeded", "", "gateway", "boolean", of="openai"),
        AxisInfo("packaging", "", "bridge", default="authored", boundary=True),
        AxisInfo("prompt", "", "engine", "file"),
    ),
    harnesses=(
        HarnessInfo("react", "", FACTORY, axes=("tool_protocol",)),
        HarnessInfo("agentd", "", FACTORY),
        HarnessInfo("oracle", "", FACTORY, uses_model=False, control=True),
        HarnessInfo("noop", "", FACTORY, control=True),
    ),
    models=(ModelInfo("openai", "", FACTORY), ModelInfo("scripted", "", FACTORY, gateway_axes=("temperature",))),
)
PLAIN: dict[str, JSONValue] = {"harness": "react", "model": "openai/gpt-5.2"}
Arms = Mapping[str, Mapping[str, JSONValue]]
Sweep = Mapping[str, tuple[JSONValue, ...]]


def completed(arms: Arms, sweep: Sweep | None = None, base: Path = Path()) -> tuple[Arm, ...]:
    return complete_arms(Study("s", ("b",), arms, sweep=sweep or {}), VOCABULARY, base=base)


def faults_of(arms: Arms, sweep: Sweep | None = None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        completed(arms, sweep)
    assert str(caught.value).startswith("study s: ")
    return [str(f) for f in caught.value.faults]


# ── defaults and digests ─────────────────────────────────────────────────────────────────────────────────────────────


def test_declared_defaults_are_written_out_and_counted_as_defaults() -> None:
    (arm,) = completed({"plain": PLAIN})
    assert dict(arm.axes) == {**PLAIN, "max_turns": 50, "packaging": "authored", "tool_protocol": "native"}
    assert list(arm.axes)[:2] == ["harness", "model"]
    assert dict(arm.defaults) == {"max_turns": 50, "packaging": "authored", "tool_protocol": "native"}
    assert arm.label == "react × openai/gpt-5.2"


def test_an_axis_at_its_default_counts_the_same_written_or_not() -> None:
    (bare,) = completed({"plain": PLAIN})
    (written,) = completed({"plain": {**PLAIN, "max_turns": 50}})
    assert bare == written and bare.digest == written.digest


def test_a_newer_plugins_axis_keeps_old_digests() -> None:
    newer = evolve(VOCABULARY, axes=(*VOCABULARY.axes, AxisInfo("fresh", "", "transform", default="off")))
    study = Study("s", ("b",), {"plain": PLAIN})
    (old,), (new,) = (complete_arms(study, v, base=Path()) for v in (VOCABULARY, newer))
    assert new.axes["fresh"] == "off" and new.digest == old.digest


def test_harness_and_model_always_count_even_if_they_are_a_declared_default() -> None:
    own = (AxisInfo("harness", "", "engine", default="react"), AxisInfo("model", "", "engine", default="openai/x"))
    vocabulary = evolve(VOCABULARY, axes=own + VOCABULARY.axes[1:])
    (arm,) = complete_arms(Study("s", ("b",), {"a": {}}), vocabulary, base=Path())
    assert (arm.harness, arm.model) == ("react", "openai/x")
    assert "harness" not in arm.defaults and "model" not in arm.defaults


def test_a_number_is_the_same_arm_however_it_is_written() -> None:
    (whole,), (point,) = completed({"a": {**PLAIN, "temperature": 1}}), completed({"a": {**PLAIN, "temperature": 1.0}})
    assert whole.digest == point.digest


def test_a_control_takes_no_model_and_no_axis_of_one() -> None:
    oracle, noop = completed({"o": {"harness": "oracle"}, "n": {"harness": "noop"}})
    assert dict(oracle.axes) == {"harness": "oracle", "packaging": "authored"}
    assert oracle.model is None and noop.model is None


# ── the sweep ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_sweep_makes_every_arm_with_every_value() -> None:
    arms = completed(
        {"plain": PLAIN, "short": {**PLAIN, "max_turns": 3}},
        {"reasoning_effort": ("low", "high"), "temperature": (0, 0.5)},
    )
    assert [a.handle for a in arms][:4] == [
        "plain@reasoning_effort=low,temperature=0",
        "plain@reasoning_effort=low,temperature=0.5",
        "plain@reasoning_effort=high,temperature=0",
        "plain@reasoning_effort=high,temperature=0.5",
    ]
    assert len(arms) == len({a.digest for a in arms}) == 8
    assert arms[0].axes["temperature"] == 0.0


def test_a_control_keeps_out_of_a_sweep_and_stays_one_arm() -> None:
    arms = completed({"plain": PLAIN, "o": {"harness": "oracle"}}, {"reasoning_effort": ("low", "high")})
    assert [a.handle for a in arms] == ["plain@reasoning_effort=low", "plain@reasoning_effort=high", "o"]


def test_an_arm_that_is_no_control_does_not_silently_keep_out() -> None:
    arms = {"r": PLAIN, "d": {**PLAIN, "harness": "agentd"}}
    assert faults_of(arms, {"tool_protocol": ("native", "constrained")}) == [
        "$.sweep.tool_protocol[0]: harness 'agentd' does not take it (taken by: react)",
        "$.sweep.tool_protocol[1]: harness 'agentd' does not take it (taken by: react)",
    ]


def test_a_sweep_that_nobody_takes_is_a_fault() -> None:
    assert faults_of({"o": {"harness": "oracle"}}, {"temperature": (0, 1)}) == ["$.sweep.temperature: no arm takes it"]


def test_a_swept_value_is_told_once_at_its_place() -> None:
    arms = {"a": PLAIN, "b": {**PLAIN, "max_turns": 3}}
    assert faults_of(arms, {"temperature": (0, 3), "max_turn": (1,)}) == [
        "$.sweep.max_turn[0]: unknown axis 'max_turn' (did you mean 'max_turns'?)",
        "$.sweep.temperature[1]: must be <= 2: 3.0",
    ]


def test_harnesses_may_be_swept_and_controls_among_them_leave_the_model_out() -> None:
    arms = completed({"a": {"model": "openai/x"}, "b": {"model": "openai/y"}}, {"harness": ("agentd", "oracle")})
    assert [a.handle for a in arms] == ["a@harness=agentd", "a@harness=oracle", "b@harness=agentd"]


def test_a_sweep_beyond_reason_is_refused_before_it_is_made() -> None:
    wide: Sweep = {axis: tuple(range(100)) for axis in ("temperature", "max_turns", "seeded")}
    assert faults_of({"a": PLAIN}, wide) == ["$.sweep: makes 1000000 arms, and 10000 is the most"]


# ── what is refused ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "axes, fault",
    [
        ({"harness": "reakt"}, "harness: unknown harness 'reakt' (did you mean 'react'?)"),
        ({"harness": 3}, "harness: expected text, got 3"),
        ({"model": "gpt-5.2"}, "model: expected provider/name, got the text 'gpt-5.2' (providers: openai, scripted)"),
        ({"model": "openai/"}, "model: expected provider/name, got the text 'openai/' (providers: openai, scripted)"),
        ({"model": "opnai/x"}, "model: unknown provider 'opnai' (did you mean 'openai'?)"),
        ({"model": "zzz/x"}, "model: unknown provider 'zzz' (providers: openai, scripted)"),
        ({"tool_protocl": "native"}, "tool_protocl: unknown axis 'tool_protocl' (did you mean 'tool_protocol'?)"),
        (
            {"tool_protocol": "natve"},
            "tool_protocol: expected 'native' or 'constrained', got the text 'natve' (did you mean 'native'?)",
        ),
        ({"max_turns": "3"}, "max_turns: expected an integer, got the text '3'"),
        ({"max_turns": True}, "max_turns: expected an integer, got true"),
        ({"max_turns": 0}, "max_turns: must be >= 1: 0"),
        ({"temperature": 2.5}, "temperature: must be <= 2: 2.5"),
        ({"temperature": float("nan")}, "temperature: expected a finite number, got nan"),
        ({"temperature": None}, "temperature: expected a number, got null"),
        ({"seeded": 1}, "seeded: expected true or false, got 1"),
        ({"prompt": ""}, "prompt: expected a file's path, got the text ''"),
        ({"prompt": "a\0b"}, "prompt: expected a file's path, got the text 'a\\x00b'"),
        ({"prompt": "none.md"}, "prompt: cannot read none.md: No such file or directory"),
        (
            {"model": "scripted/x", "reasoning_effort": "low"},
            "reasoning_effort: provider 'scripted' does not pass it on (it passes on: temperature)",
        ),
        ({"harness": "agentd", "max_turns": 3}, "max_turns: harness 'agentd' does not take it (taken by: react)"),
    ],
)
def test_a_wrong_axis_or_value_says_what_would_be_right(axes: Mapping[str, JSONValue], fault: str) -> None:
    assert faults_of({"plain": {**PLAIN, **axes}}) == [f"$.arms.plain.{fault}"]


def test_what_is_missing_is_named_with_what_could_stand_there() -> None:
    assert faults_of({"a": {}, "b": {"harness": "react"}}) == [
        "$.arms.a.harness: missing (harnesses: agentd, noop, oracle, react)",
        "$.arms.b.model: missing: its harness speaks to a model (provider/name; providers: openai, scripted)",
    ]


def test_a_model_or_its_axes_on_a_control_are_faults() -> None:
    assert faults_of({"o": {"harness": "oracle", "model": "openai/x", "temperature": 1}}) == [
        "$.arms.o.model: harness 'oracle' uses no model (leave it out)",
        "$.arms.o.temperature: harness 'oracle' uses no model (leave it out)",
    ]


def test_the_same_mistake_in_arms_that_inherit_it_is_told_once() -> None:
    bad = {**PLAIN, "max_turns": 0}
    assert faults_of({"a": bad, "b": {**bad, "temperature": 1}, "c": {**bad, "temperature": 2}}) == [
        "$.arms.a.max_turns: must be >= 1: 0 (also in b, c)"
    ]


def test_one_configuration_under_two_handles_is_a_fault() -> None:
    assert faults_of({"a": PLAIN, "b c": {**PLAIN, "max_turns": 50}}) == [
        "$.arms.\"b c\": the same configuration as arm 'a'"
    ]
    twice: Arms = {"a": {"harness": "oracle"}, "b": {"harness": "oracle"}, "c": PLAIN}
    assert faults_of(twice, {"temperature": (0, 1)}) == ["$.arms.b: the same configuration as arm 'a'"]


def test_points_of_a_sweep_that_are_one_configuration_are_one_arm() -> None:
    assert len(completed({"a": PLAIN}, {"temperature": (1, 1.0)})) == 1


def test_the_models_of_other_roles_need_a_provider_too() -> None:
    study = Study("s", ("b",), {"a": PLAIN}, roles={"user": RoleChoice("opnai/x"), "judge": RoleChoice("openai/y")})
    with pytest.raises(ConfigError) as caught:
        complete_arms(study, VOCABULARY, base=Path())
    assert [str(f) for f in caught.value.faults] == [
        "$.roles.user.model: unknown provider 'opnai' (did you mean 'openai'?)"
    ]


def test_with_nothing_registered_the_messages_still_read() -> None:
    with pytest.raises(ConfigError) as caught:
        complete_arms(Study("s", ("b",), {"a": PLAIN}), Vocabulary(), base=Path())
    assert [str(f) for f in caught.value.faults] == [
        "$.arms.a.harness: unknown harness 'react' (there are no harnesses)",
        "$.arms.a.model: unknown provider 'openai' (there are no providers)",
    ]


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_edited_file_is_another_arm(tmp_path: Path) -> None:
    arms = {"a": {**PLAIN, "prompt": "prompts/a.md"}}
    file = tmp_path / "prompts" / "a.md"
    file.parent.mkdir()
    file.write_text("one", encoding="utf-8")
    (before,) = completed(arms, base=tmp_path)
    file.write_text("two", encoding="utf-8")
    (after,) = completed(arms, base=tmp_path)
    assert before.content == {"prompt": hashlib.sha256(b"one").hexdigest()}
    assert before.axes == after.axes and before.digest != after.digest


def test_the_caller_can_add_digests_of_what_stands_behind_a_value() -> None:
    def content(axis: str, value: str) -> Mapping[str, str]:
        if value == "scripted/broken":
            raise ConfigError("the playbook is broken", hint="line 3")
        return {f"{axis}:{value}": "00"} if axis == "model" else {}

    study = Study("s", ("b",), {"a": {**PLAIN, "model": "scripted/x"}})
    (arm,) = complete_arms(study, VOCABULARY, base=Path(), content=content)
    assert arm.content == {"model:scripted/x": "00"}
    broken = evolve(study, arms={"a": {**PLAIN, "model": "scripted/broken"}})
    with pytest.raises(ConfigError) as caught:
        complete_arms(broken, VOCABULARY, base=Path(), content=content)
    assert [str(f) for f in caught.value.faults] == ["$.arms.a.model: the playbook is broken (line 3)"]
