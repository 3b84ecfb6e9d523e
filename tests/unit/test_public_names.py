"""What users may rely on is a list, and the list is true."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import evalcore


def test_the_package_exports_exactly_its_list() -> None:
    assert evalcore.__all__ == ["API_VERSION", "__version__", "hookimpl", "hookspec", "load"]
    assert all(hasattr(evalcore, name) for name in evalcore.__all__)


@pytest.mark.parametrize("module", ["evalcore.hookspecs"])
def test_a_module_exports_what_it_lists(module: str) -> None:
    loaded = importlib.import_module(module)
    assert [n for n in loaded.__all__ if not hasattr(loaded, n)] == []


def test_a_plugins_import_brings_nothing_heavy() -> None:
    heavy = ["cattrs", "click", "mcp", "numpy", "orjson", "rich", "scipy", "structlog", "zstandard"]
    code = f"import sys, evalcore.hookspecs; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "['orjson']"  # digests need it, 2 ms
