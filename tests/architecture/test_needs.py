"""A test that cannot run for want of something is skipped here, and fails in CI, however it says so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.oracles import ROOT

SUITE = """
import pytest
from tests.oracles import oracle_path

def test_oracle():
    assert oracle_path("oracles", "bfcl.json").read_text() == "{}"

def test_want():
    pytest.skip("needs: the toolkit bfcl: run `evalcore setup bfcl-simple-python`")

@pytest.mark.skipif(True, reason="needs: a container engine")
def test_marked():
    pass

def test_package():
    pytest.importorskip("no_such_package")

def test_platform():
    pytest.skip("on Linux only")

@pytest.mark.xfail(reason="needs: nothing, this is an expected failure")
def test_expected_failure():
    assert False
"""
MODULE = """
import pytest
pytest.skip("needs: the toolkit bfcl", allow_module_level=True)
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of the two files that decide, with a suite that skips in every way."""
    root = tmp_path / "checkout"
    (root / "tests").mkdir(parents=True)
    shutil.copy(ROOT / "conftest.py", root)
    shutil.copy(ROOT / "tests" / "oracles.py", root / "tests")
    (root / "tests" / "__init__.py").touch()
    (root / "tests" / "test_suite.py").write_text(SUITE)
    (root / "tests" / "test_module.py").write_text(MODULE)
    (root / "pytest.ini").write_text(
        "[pytest]\npythonpath = .\naddopts = --import-mode=importlib -p no:cacheprovider\n"
    )
    return root


def run(checkout: Path, *, ci: bool, oracles: Path | None = None) -> str:
    """pytest's output for the checkout."""
    environment = {k: v for k, v in os.environ.items() if k not in {"CI", "EVALCORE_ORACLES", "PYTEST_ADDOPTS"}}
    environment |= {"CI": "true"} if ci else {}
    environment |= {"EVALCORE_ORACLES": str(oracles)} if oracles else {}
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "-o", "console_output_style=classic"]
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_on_a_developers_machine_they_are_skipped(checkout: Path) -> None:
    assert "6 skipped, 1 xfailed" in run(checkout, ci=False)


def test_in_ci_all_but_the_platforms_fail(checkout: Path) -> None:
    report = run(checkout, ci=True)
    assert "1 error" in report  # the module; an error while collecting stops the run
    assert "needs: the toolkit bfcl (in CI this is a failure)" in report
    (checkout / "tests" / "test_module.py").unlink()
    report = run(checkout, ci=True)
    assert "3 failed, 1 skipped, 1 xfailed, 1 error" in report
    assert "oracles/bfcl.json under" in report
    assert "EVALCORE_ORACLES names another folder" in report


def test_the_oracles_lie_beside_the_checkout_or_where_the_variable_says(checkout: Path, tmp_path: Path) -> None:
    for folder in (tmp_path / "shared", tmp_path / "elsewhere"):
        (folder / "oracles").mkdir(parents=True)
        (folder / "oracles" / "bfcl.json").write_text("{}")
    assert "PASSED tests/test_suite.py::test_oracle" in run(checkout, ci=False)
    shutil.rmtree(tmp_path / "shared")
    assert "PASSED tests/test_suite.py::test_oracle" not in run(checkout, ci=False)
    assert "PASSED tests/test_suite.py::test_oracle" in run(checkout, ci=False, oracles=tmp_path / "elsewhere")
