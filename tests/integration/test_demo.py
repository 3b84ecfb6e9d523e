"""`make demo`: its study, its end, and what it does where the model in the box cannot run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from evalcore.engine.study_file import read_study
from tests.oracles import ROOT

SAYS = """#!/bin/sh
echo "$@" >> "$LOG"
case "$1 $2" in
  "setup local/smollm2-135m") exit $SETUP;;
  "run examples/studies/demo.toml")
    [ "$RUN" = 4 ] || { mkdir -p "$EVALCORE_OUT/$7"; touch "$EVALCORE_OUT/$7/run.toml"; }
    exit $RUN;;
esac
"""


def demo(folder: Path, *, setup: int = 0, run: int = 0) -> tuple[int, str, list[list[str]]]:
    """Exit code, what is said, and what a stand-in for evalcore was asked."""
    program, log = folder / "evalcore", folder / "log"
    program.write_text(SAYS)
    program.chmod(0o755)
    codes = {"SETUP": str(setup), "RUN": str(run)}
    environment = {**os.environ, **codes, "LOG": str(log), "EVALCORE_OUT": str(folder / "runs")}
    done = subprocess.run(
        ["tools/demo", str(program)], cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    return done.returncode, done.stdout, [line.split() for line in log.read_text().splitlines()]


def test_it_ends_with_what_the_model_is_and_where_to_look(tmp_path: Path) -> None:
    code, said, asked = demo(tmp_path)
    assert code == 0 and "Where to look next" in said and "no reference" in said
    assert [a[0] for a in asked] == ["setup", "setup", "run"]
    assert all(f"evalcore {verb} " in said for verb in ("compare", "trace", "show"))


@pytest.mark.parametrize("codes", [{"setup": 4}, {"run": 4}])
def test_where_the_model_cannot_run_the_controls_do_and_the_reason_is_said(
    tmp_path: Path, codes: dict[str, int]
) -> None:
    code, said, asked = demo(tmp_path, **codes)
    assert code == 0 and "cannot run here, for the reason above" in said
    assert asked[-1][:3] == ["run", "bfcl-simple-python", "bfcl-multiple"] and "--model" not in asked[-1]


def test_what_else_goes_wrong_is_no_success(tmp_path: Path) -> None:
    assert demo(tmp_path, run=130)[0] == 130


def test_its_two_settings_differ_in_one_axis_and_the_contrast_between_them_is_declared() -> None:
    study = read_study(ROOT / "examples" / "studies" / "demo.toml")
    text, constrained = dict(study.arms["text"]), dict(study.arms["constrained"])
    assert constrained | {"tool_protocol": "text"} == text and constrained["tool_protocol"] == "constrained"
    assert {study.arms["oracle"]["harness"], study.arms["noop"]["harness"]} == {"oracle", "noop"}
    (contrast,) = study.contrasts
    assert (contrast.a, contrast.b, contrast.metric) == ("constrained", "text", "pass@1")
    assert [study.choices[name].limit for name in study.benchmarks] == [(0, 25), (0, 25)]
