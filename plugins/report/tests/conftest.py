"""A browser for the tests that need one, and runs to show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins.report.tests import runs
from plugins.report.tests.browser import Browser, missing
from tests.oracles import needs


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One window for all tests of a process."""
    lacking = missing()
    if lacking:
        needs(f"{lacking} (Debian's packages chromium and chromium-driver)")
    window = Browser()
    yield window
    window.close()


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two agents and both controls. Tests leave it as it is."""
    return runs.sample(tmp_path_factory.mktemp("runs") / "sample")


@pytest.fixture
def window(browser: Browser) -> Browser:
    """The window as a reader's desktop has it, with nothing left from before."""
    browser.colours("light")
    browser.size(1280)
    browser.open("about:blank")
    browser.complaints()
    browser.requests()
    return browser
