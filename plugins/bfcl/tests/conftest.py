"""The toolkit, set up once in the user's cache, and one run of everything with both controls."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evalcore.errors import ToolkitError
from evalcore.toolkits.environment import Environment, ensure
from evalcore.values.descriptors import ToolkitInfo
from evalcore_bfcl.plugin import CATEGORIES, benchmark_name
from plugins.bfcl.tests.rig import Trials, registry, run, study, trials
from tests.oracles import needs


@pytest.fixture(scope="session")
def toolkit() -> Environment:
    """The toolkit's environment; built if this is the first time."""
    spec = registry().get(ToolkitInfo, "toolkit", "bfcl").spec
    try:
        return asyncio.run(ensure(spec, install=True))
    except ToolkitError as error:
        if "cannot be downloaded" in error.message:
            needs(f"the toolkit of BFCL, and a package index to get it from ({error.message})")
        raise


@pytest.fixture(scope="session")
def whole_run(toolkit: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every task of every category, by oracle and noop. Half a minute."""
    return run(study(tuple(map(benchmark_name, CATEGORIES))), tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="session")
def everything(whole_run: Path) -> Trials:
    """Its trials."""
    return trials(whole_run)
