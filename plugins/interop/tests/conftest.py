"""Runs that several tests export. They leave them as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugins.interop.tests import rig


@pytest.fixture(scope="session")
def weather(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rig.weather(tmp_path_factory.mktemp("weather"))


@pytest.fixture(scope="session")
def dialogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rig.dialogue(tmp_path_factory.mktemp("dialogue"))
