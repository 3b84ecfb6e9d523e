"""The toolkit, set up once in the user's cache, and one run of everything with both controls."""

from __future__ import annotations

import asyncio
import fcntl
import os
from pathlib import Path

import pytest

from evalcore.errors import ToolkitError
from evalcore.toolkits.environment import Environment, ensure
from evalcore.values.descriptors import ToolkitInfo
from evalcore_bfcl.plugin import benchmark_name
from plugins.bfcl.tests.rig import HERE, Trials, registry, run, study, trials
from tests.oracles import needs


@pytest.fixture(scope="session")
def toolkit() -> Environment:
    """The toolkit's environment; built if this is the first time."""
    return _environment("bfcl")


@pytest.fixture(scope="session")
def agentic() -> Environment:
    """The one with what memory computes with."""
    return _environment("bfcl-agentic")


def _environment(name: str) -> Environment:
    spec = registry().get(ToolkitInfo, "toolkit", name).spec
    try:
        return asyncio.run(ensure(spec, install=True))
    except ToolkitError as error:
        if "cannot be downloaded" in error.message:
            needs(f"the toolkit {name}, and a package index to get it from ({error.message})")
        raise


@pytest.fixture(scope="session")
def whole_run(toolkit: Environment, agentic: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every task of every category that runs here, by oracle and noop: a minute, made once for all test processes."""
    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    folder = root / "bfcl-whole"
    with (root / "bfcl-whole.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            folder.mkdir()
            run(study(tuple(map(benchmark_name, HERE))), folder)
            (folder / "done").touch()
    return folder / "r"


@pytest.fixture(scope="session")
def everything(whole_run: Path) -> Trials:
    """Its trials."""
    return trials(whole_run)
