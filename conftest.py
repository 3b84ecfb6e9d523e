"""What holds for every test: of the core, and of each plugin."""

from __future__ import annotations

import os
import re
from collections.abc import Generator

import hypothesis
import pytest

from tests.oracles import IN_CI, NEEDS

# No deadline: a busy machine is no bug. In CI the same examples every time, so that a red run is the change's doing.
hypothesis.settings.register_profile("evalcore", deadline=None, derandomize=IN_CI, print_blob=True)
hypothesis.settings.load_profile("evalcore")

# What a test finds must not depend on what its developer has set up: only tests of it let the model in the box run.
os.environ.setdefault("EVALCORE_BOX", "0")

# Skips for want of oracles, a toolkit or a package; others (a platform, say) stay skips.
_FOR_WANT = re.compile(rf"(Skipped: )?({re.escape(NEEDS)}|could not import )")


def _fail_in_ci(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip for want of something into a failure, where CI runs."""
    if not IN_CI or report.outcome != "skipped" or hasattr(report, "wasxfail"):
        return
    if isinstance(report.longrepr, tuple) and _FOR_WANT.match(report.longrepr[2]):
        path, line, reason = report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{path}:{line}: {reason.removeprefix('Skipped: ')} (in CI this is a failure)"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that was skipped for want of something fails in CI, however it was skipped."""
    report = yield
    _fail_in_ci(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a whole module."""
    report = yield
    _fail_in_ci(report)
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests go first: test processes take whole files, and one that began last would be waited for."""
    slow = {item.path for item in items if item.get_closest_marker("slow") is not None}
    items.sort(key=lambda item: item.path not in slow)
