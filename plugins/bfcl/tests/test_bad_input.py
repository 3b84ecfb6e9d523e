"""What a user who mistypes, has not set up, or has something else in place of upstream's code gets to read."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from evalcore.engine.store import read_stamp
from evalcore.errors import ConfigError, ToolkitError
from evalcore.toolkits.environment import Environment
from plugins.bfcl.tests.rig import carry_out, run, study, trials

ANSWERS = "bfcl_eval/data/possible_answer/BFCL_v4_simple_python.json"


def start(folder: Path, *benchmarks: str) -> None:
    asyncio.run(carry_out(study(benchmarks, limit=1), folder))


def test_a_mistyped_benchmark_is_told_the_nearest_and_whose_it_is(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as wrong:
        start(tmp_path, "bfcl-simple-pyton")
    (fault,) = wrong.value.faults
    assert "unknown benchmark 'bfcl-simple-pyton'; did you mean 'bfcl-simple-python'" in str(fault)
    assert "comes from the plugin 'bfcl'" in str(fault)
    assert wrong.value.exit_code == 2


def test_without_the_toolkit_it_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALCORE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("EVALCORE_TOOLKIT_BFCL", raising=False)
    with pytest.raises(ToolkitError) as missing:
        start(tmp_path, "bfcl-simple-python")
    assert missing.value.message == "toolkit bfcl is not set up here"
    assert missing.value.hint is not None and "evalcore setup bfcl" in missing.value.hint
    assert missing.value.exit_code == 4
    assert not (tmp_path / "r").exists()


@pytest.fixture
def site_packages(toolkit: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where upstream's code is, in a copy of the cache that the test may spoil."""
    if toolkit.folder is None or toolkit.source != "pinned":
        pytest.skip("another checkout stands in for the pinned one")
    copy = shutil.copytree(toolkit.folder, tmp_path / "cache" / "toolkits" / toolkit.folder.name, symlinks=True)
    monkeypatch.setenv("EVALCORE_CACHE", str(tmp_path / "cache"))
    (found,) = copy.glob("lib/*/site-packages")
    return found


@pytest.mark.parametrize("file", [ANSWERS, "bfcl_eval/eval_checker/ast_eval/ast_checker.py"])
def test_a_file_that_is_not_the_pinned_one_is_refused_by_name(site_packages: Path, tmp_path: Path, file: str) -> None:
    with (site_packages / file).open("ab") as changed:
        changed.write(b"\n")
    with pytest.raises(ToolkitError) as refused:
        start(tmp_path, "bfcl-simple-python")
    assert refused.value.message.startswith(f"toolkit bfcl: {file} is not the pinned file: sha256 ")
    assert refused.value.hint is not None and refused.value.hint.endswith("and run `evalcore setup bfcl`")
    assert not (tmp_path / "r").exists()


def test_a_file_that_is_gone_is_refused_by_name(site_packages: Path, tmp_path: Path) -> None:
    (site_packages / ANSWERS).unlink()
    with pytest.raises(ToolkitError, match=rf"{ANSWERS} is not the pinned file: sha256 none, it is missing"):
        start(tmp_path, "bfcl-simple-python")


def test_another_checkout_is_used_and_said(
    site_packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answers count, and the stamp no longer claims the pinned version."""
    checkout = tmp_path / "gorilla"
    shutil.copytree(site_packages / "bfcl_eval", checkout / "bfcl_eval")
    answers = (checkout / ANSWERS).read_text(encoding="utf-8").splitlines(keepends=True)
    first = json.loads(answers[0])
    first["ground_truth"] = [{name: {key: [1] for key in given} for name, given in first["ground_truth"][0].items()}]
    (checkout / ANSWERS).write_text("".join([json.dumps(first) + "\n", *answers[1:]]), encoding="utf-8")
    monkeypatch.setenv("EVALCORE_TOOLKIT_BFCL", str(checkout))

    path = run(study(("bfcl-simple-python",), {"oracle": {"harness": "oracle"}}, limit=1), tmp_path)

    (trial,) = trials(path).values()
    assert trial.left.calls[0].arguments == {"base": 1, "height": 1, "unit": 1}
    (benchmark,) = read_stamp(path).benchmarks
    assert (benchmark.dataset.version, benchmark.dataset.source) == ("checkout", str(checkout))
    assert benchmark.grader_stamp["source"] == "checkout"
