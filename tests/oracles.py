"""The one place that knows where material outside the repository lies, and what a test does when it is not there.

`EVALCORE_ORACLES` names the folder; by default it is `shared` beside the checkout. A test that cannot run for want of
it, or of a toolkit, is skipped on a developer's machine and fails in CI (`CI=true`): there a skip would hide a hole.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NoReturn

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent
ORACLES: Final = Path(os.environ.get("EVALCORE_ORACLES") or ROOT.parent / "shared").absolute()
IN_CI: Final = os.environ.get("CI", "").lower() in {"1", "true", "yes"}

NEEDS: Final = (
    "needs: "  # how the reason of every such skip begins; the root conftest.py turns those into failures in CI
)


def needs(what: str) -> NoReturn:
    """End the test for want of something: skipped, or failed in CI. `what` says what is missing, and how to get it."""
    if IN_CI:
        pytest.fail(f"{NEEDS}{what} (in CI this is a failure)", pytrace=False)
    pytest.skip(f"{NEEDS}{what}", allow_module_level=True)


def oracle_path(*parts: str) -> Path:
    """A file or folder among the oracles: `oracle_path("oracles", "bfcl.json")`. Ends the test if it is absent."""
    path = ORACLES.joinpath(*parts)
    if not path.exists():
        needs(f"{'/'.join(parts)} under {ORACLES}; EVALCORE_ORACLES names another folder")
    return path
