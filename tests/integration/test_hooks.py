"""Each hook, used for real; a hook without a test here, or without a place in docs/plugins.md, fails the suite."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from evalcore import hookspecs
from evalcore.engine.plan import Plan, make_plan
from evalcore.engine.run import RunOptions, start
from evalcore.engine.services import LocalServices
from evalcore.engine.store import TraceStore, read_attempts, read_gradings, read_stamp
from evalcore.errors import ConfigError, ToolkitError
from evalcore.plugins import KINDS, PluginRef, Registry, load
from evalcore.report.load import load_report
from evalcore.values import descriptors as d
from evalcore.values.study import Study
from evalcore.values.trace import TraceReader
from tests.integration import hook_parts
from tests.oracles import ROOT

RINGER = {"harness": "ringer", "model": "parrot/grey"}
HOOKS = sorted(name for name in vars(hookspecs) if name.startswith("evalcore_"))


def registry(*more: ModuleType) -> Registry:
    found = load(only=())
    for module in (hook_parts, *more):
        found.add(PluginRef(module.__name__, "made up", "1", module.__name__), module)
    assert found.failures == []
    return found


def study(*benchmarks: str, **arms: Any) -> Study:
    return Study(name="hooks", benchmarks=benchmarks or ("bell-ring",), arms=arms or {"a": RINGER})


def ran(what: Study, folder: Path, found: Registry | None = None) -> Path:
    """The directory of a run of the study."""

    async def main() -> None:
        services = LocalServices(using, folder)
        plan = await make_plan(what, using, services, "r")
        end = await start(plan, folder / "r", using, services, RunOptions(concurrency=1))
        assert end.exit_code == 0, end
        await services.close()

    using = found or registry()
    asyncio.run(main())
    return folder / "r"


def planned(what: Study, folder: Path) -> Plan:
    found = registry()
    return asyncio.run(make_plan(what, found, LocalServices(found, folder), "r"))


def verdicts(run: Path) -> dict[tuple[str, str, str], Any]:
    """By benchmark, the arm's handle, and task."""
    stamp = read_stamp(run)
    handles = {a.arm.digest: a.arm.handle for a in stamp.arms}
    graded = {g.attempt: g.verdict for g in read_gradings(run, stamp.grading)}
    return {(a.key.benchmark, handles[a.key.arm], a.key.task): graded[a.id] for a in read_attempts(run)}


def outcomes(run: Path) -> dict[tuple[str, str, str], str]:
    return {key: verdict.outcome for key, verdict in verdicts(run).items()}


def traces(run: Path) -> Iterator[TraceReader]:
    store = TraceStore(run)
    for attempt in read_attempts(run):
        yield store.read(attempt.trace)
    store.close()


def answers(run: Path) -> list[str]:
    return [str(next(trace.events("harness.exit"))["answer"]) for trace in traces(run)]


# ── the hooks ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_evalcore_adapters_gives_benchmarks_with_splits_and_parameters(tmp_path: Path) -> None:
    controls = {"oracle": {"harness": "oracle"}, "noop": {"harness": "noop"}}
    run = ran(study("bell-ring:2", "bell-ring@loud", **controls), tmp_path)
    assert outcomes(run) == {
        (benchmark, handle, f"ring-{n}"): "pass" if handle == "oracle" else "fail"
        for benchmark, count in (("bell-ring:2", 2), ("bell-ring@loud", 3))
        for handle in controls
        for n in range(1, count + 1)
    }
    loud = [str(next(t.events("trial.start"))["messages"]) for t in traces(run)]
    assert any("RING THE BELL" in text for text in loud) and any("Ring the bell" in text for text in loud)


def test_evalcore_adapters_gives_groups_of_benchmarks(tmp_path: Path) -> None:
    run = ran(study("bell-all"), tmp_path)
    assert {key[0] for key in outcomes(run)} == {"bell-ring:1", "bell-ring@loud"}
    (group,) = load_report(run).groups
    assert (group.name, group.complete) == ("bell-all", True)
    assert group.value == pytest.approx((2 * 1 + 1 * (1 / 3)) / 3)  # the ringer rings once, and that is asked once


def test_evalcore_bridges_gives_an_environment_whose_state_is_graded(tmp_path: Path) -> None:
    found = verdicts(ran(study("bell-ring:1", two=RINGER | {"times": 2}), tmp_path))
    assert found["bell-ring:1", "two", "ring-1"].details == {"rings": 2, "metal": "brass"}


def test_evalcore_graders_gives_verdicts_and_a_stamp(tmp_path: Path) -> None:
    run = ran(study(), tmp_path)
    assert sorted(outcomes(run).values()) == ["fail", "fail", "pass"]
    assert read_stamp(run).benchmarks[0].grader_stamp == {"bell": "1"}


def test_evalcore_metrics_gives_a_number_in_the_report(tmp_path: Path) -> None:
    found = registry()
    run = ran(study("bell-ring", two=RINGER | {"times": 2}), tmp_path)
    metrics = [(i, found.factory(i)(LocalServices(found, run), i)) for i in found.all(d.MetricInfo).values()]
    (cell,) = load_report(run, metrics=metrics).cells
    assert (cell.metrics["rings"].value, cell.metrics["rings"].unit) == (2.0, "rings")


def test_evalcore_harnesses_gives_an_agent_with_its_axes(tmp_path: Path) -> None:
    run = ran(study("bell-ring:3", one=RINGER, three=RINGER | {"times": 3}), tmp_path)
    passed = {key[1:] for key, outcome in outcomes(run).items() if outcome == "pass"}
    assert passed == {("one", "ring-1"), ("three", "ring-3")}


def test_evalcore_models_gives_a_provider_with_the_axes_it_passes_on(tmp_path: Path) -> None:
    run = ran(study("bell-ring:1", warm=RINGER | {"temperature": 0.5}), tmp_path)
    assert answers(run) == ["grey at 0.5 heard: Ring the bell 1 times"]
    with pytest.raises(ConfigError) as refused:
        planned(study(a=RINGER | {"top_p": 0.5}), tmp_path)
    assert "provider 'parrot' does not pass it on" in str(refused.value.faults[0])


def test_evalcore_axes_reach_adapter_bridge_and_harness_of_the_trial(tmp_path: Path) -> None:
    arm = RINGER | {"manners": "polite", "metal": "silver", "times": 0}
    run = ran(study("bell-ring:1", plain=RINGER, polite=arm), tmp_path)
    found = verdicts(run)
    assert found["bell-ring:1", "plain", "ring-1"].details == {"rings": 1, "metal": "brass"}
    assert found["bell-ring:1", "polite", "ring-1"].details == {"rings": 0, "metal": "silver"}
    assert [a.rpartition("heard: ")[2] for a in answers(run)] == [
        "Ring the bell 1 times",
        "Please: Ring the bell 1 times",
    ]
    labels = {a.arm.handle: a.arm.label for a in read_stamp(run).arms}
    assert labels["polite"] == "ringer × parrot/grey manners=polite metal=silver times=0"


def test_evalcore_axes_are_checked_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        planned(study(a=RINGER | {"manners": "rude", "times": -1}), tmp_path)
    assert sorted(str(f) for f in refused.value.faults) == [
        "$.arms.a.manners: expected 'plain' or 'polite', got the text 'rude'",
        "$.arms.a.times: must be >= 0: -1",
    ]


def test_evalcore_transforms_change_the_assignment_of_arms_that_set_their_axis(tmp_path: Path) -> None:
    run = ran(study("bell-ring:1", without=RINGER, helped=RINGER | {"hint": "pull the rope"}), tmp_path)
    assert [a.rpartition("heard: ")[2] for a in answers(run)] == ["Ring the bell 1 times", "Hint: pull the rope"]
    starts = [next(trace.events("trial.start"))["messages"] for trace in traces(run)]
    assert starts[1] == [*starts[0], {"role": "user", "content": "Hint: pull the rope"}]  # type: ignore[misc]


def test_evalcore_transforms_refuses_an_axis_that_none_applies(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="an axis that has no effect") as refused:
        planned(study(a=RINGER | {"idle": "on"}), tmp_path)
    assert str(refused.value.faults[0]) == "$.arms.a.idle: no transform applies this axis"


def test_evalcore_toolkits_gives_upstream_code_behind_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask() -> object:
        services = LocalServices(registry(), tmp_path)
        try:
            return await (await services.toolkit("bell")).request("ring", {"times": 2}, 60.0)
        finally:
            await services.close()

    monkeypatch.setenv("EVALCORE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("EVALCORE_TOOLKIT_BELL", raising=False)
    with pytest.raises(ToolkitError, match="toolkit bell is not set up here") as missing:
        asyncio.run(ask())
    assert missing.value.hint is not None and "evalcore setup bell" in missing.value.hint
    monkeypatch.setenv("EVALCORE_TOOLKIT_BELL", str(tmp_path))
    assert asyncio.run(ask()) == "dingding"


def test_evalcore_commands_gives_a_verb_of_the_program(tmp_path: Path) -> None:
    info = tmp_path / "evalcore_bells-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: evalcore-bells\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[evalcore]\nbells = tests.integration.hook_parts\n")

    def called(*words: str) -> str:
        program = [sys.executable, "-c", "from evalcore.cli.main import main; main()", *words]
        path = os.pathsep.join([str(tmp_path), str(ROOT), str(ROOT / "src")])
        environment = {**os.environ, "PYTHONPATH": path, "EVALCORE_PLUGINS": "bells", "COLUMNS": "100"}
        done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert called("ring", "2") == "ding ding \n"
    assert "Ring a bell." in called("--help")


def test_evalcore_trial_finished_is_told_of_each_durable_attempt(tmp_path: Path) -> None:
    hook_parts.seen.clear()
    run = ran(study(), tmp_path)
    told = dict(hook_parts.seen)
    assert told == {"ring-1": "pass", "ring-2": "fail", "ring-3": "fail", "run": run}


def test_evalcore_run_finished_is_told_last_and_once(tmp_path: Path) -> None:
    hook_parts.seen.clear()
    run = ran(study(), tmp_path)
    assert hook_parts.seen[-1] == ("run", run) and len(hook_parts.seen) == 4


def failing() -> ModuleType:
    module = ModuleType("failing_observers")

    @hookspecs.hookimpl
    def evalcore_trial_finished(attempt: object) -> None:
        raise LookupError("nobody is here")

    @hookspecs.hookimpl
    def evalcore_run_finished() -> None:
        raise LookupError("nobody was here")

    module.evalcore_trial_finished = evalcore_trial_finished  # type: ignore[attr-defined]
    module.evalcore_run_finished = evalcore_run_finished  # type: ignore[attr-defined]
    return module


def test_an_observer_that_fails_is_logged_and_spoils_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "evalcore"):
        run = ran(study(), tmp_path, registry(failing()))
    assert len(outcomes(run)) == 3
    assert caplog.messages.count("a trial observer failed: LookupError: nobody is here") == 3
    assert caplog.messages.count("a run observer failed: LookupError: nobody was here") == 1


# Hooks whose parts nobody in the core asks for yet: what can hold is that they are known, listed and made.


def known_and_made(kind: type[d.Descriptor], name: str, tmp_path: Path) -> None:
    found = registry()
    info = found.get(kind, "part", name)
    assert found.plugin_of(kind, name) == hook_parts.__name__
    assert found.factory(info)(LocalServices(found, tmp_path), info).name == name


def test_evalcore_sandboxes_are_known_and_made(tmp_path: Path) -> None:
    known_and_made(d.SandboxInfo, "shed", tmp_path)


def test_evalcore_executors_are_known_and_made(tmp_path: Path) -> None:
    known_and_made(d.ExecutorInfo, "elsewhere", tmp_path)


def test_evalcore_renderers_are_known_and_made(tmp_path: Path) -> None:
    known_and_made(d.RendererInfo, "bells", tmp_path)


def test_evalcore_importers_are_known_and_made(tmp_path: Path) -> None:
    known_and_made(d.ImporterInfo, "belfry", tmp_path)


# ── no hook without its test and its place in the documents ──────────────────────────────────────────────────────────


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_has_a_test_named_for_it(hook: str) -> None:
    assert any(name.startswith(f"test_{hook}_") for name in globals()), f"write `test_{hook}_…` in this file"


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_is_implemented_by_the_plugin_of_these_tests(hook: str) -> None:
    assert hasattr(hook_parts, hook)
    described = KINDS.get(hook)
    if described:
        assert {type(info) for info in getattr(hook_parts, hook)()} == set(described)


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_is_documented_with_its_signature_and_an_example(hook: str) -> None:
    page = (ROOT / "docs" / "plugins.md").read_text("utf-8")
    specification = getattr(hookspecs, hook)
    signature = f"def {hook}{inspect.signature(specification)}".replace("'", "")
    headings = page.split(f"### `{hook}`")
    assert len(headings) == 2, f"docs/plugins.md needs one heading `### `{hook}``"
    section = headings[1].split("\n### ")[0].split("\n## ")[0]
    assert f"```text\n{signature}\n```" in section, f"docs/plugins.md: the signature of {hook} is\n{signature}"
    example = section.partition("```python")[2].partition("```")[0]
    assert "@hookimpl" in example and f"def {hook}(" in example, f"docs/plugins.md: {hook} needs an example"
    assert str(specification.__doc__).strip().split(".")[0] in section.replace("\n", " "), f"{hook}: its contract"
