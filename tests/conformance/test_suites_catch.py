"""Each rule of each suite is broken by a part made for it, and the suite says so in words."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from evalcore import testing
from tests.conformance import broken_adapters, broken_bridges, broken_graders, broken_harnesses, broken_metrics
from tests.oracles import ROOT

MODULES = (broken_adapters, broken_bridges, broken_graders, broken_harnesses, broken_metrics)
SUITES = ("AdapterConformance", "BridgeConformance", "GraderConformance", "HarnessConformance", "MetricConformance")


def broken(module: ModuleType) -> Iterator[Any]:
    for cls in vars(module).values():
        if inspect.isclass(cls) and cls.__module__ == module.__name__ and hasattr(cls, "breaks"):
            yield cls


CASES = [cls for module in MODULES for cls in broken(module)]


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> Mapping[tuple[str, str], str]:
    """What pytest said of each broken part's test: (class, test) -> message. One run of pytest for all of them."""
    report = tmp_path_factory.mktemp("broken") / "report.xml"
    tests = [f"{Path(inspect.getfile(c)).relative_to(ROOT)}::{c.__name__}::{c.breaks}" for c in CASES]
    quick = ["-q", "--tb=line", "--show-capture=no", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command = [sys.executable, "-m", "pytest", *quick, f"--junitxml={report}"]
    done = subprocess.run([*command, *tests], cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 1, done.stdout[-4000:] + done.stderr
    return dict(_failures(ET.parse(report)))


def _failures(report: Any) -> Iterator[tuple[tuple[str, str], str]]:
    for case in report.iter("testcase"):
        for failure in case.iter("failure"):
            name = case.get("name").partition("[")[0]
            yield (case.get("classname").rpartition(".")[2], name), f"{failure.get('message')}\n{failure.text}"


@pytest.mark.parametrize("part", CASES, ids=lambda part: part.__name__.removeprefix("Test"))
def test_a_broken_part_fails_its_rule_and_the_failure_says_why(
    part: Any, failures: Mapping[tuple[str, str], str]
) -> None:
    said = failures.get((part.__name__, part.breaks))
    assert said is not None, f"{part.__name__} passes {part.breaks}"
    assert part.says in said


@pytest.mark.parametrize("suite", SUITES)
def test_every_rule_has_a_part_that_breaks_it(suite: str) -> None:
    rules = {name for name in dir(getattr(testing, suite)) if name.startswith("test_")}
    broken_rules = {part.breaks for part in CASES if issubclass(part, getattr(testing, suite))}
    assert rules == broken_rules


def test_a_failure_shows_the_values_as_pytest_does_in_a_test_file(failures: Mapping[tuple[str, str], str]) -> None:
    assert "assert 'nobody' in {" in failures["TestGraderNobodyHas", "test_it_is_described"]


def test_names_of_broken_parts_are_their_own() -> None:
    names = [part.__name__ for part in CASES]
    assert len(names) == len(set(names))
