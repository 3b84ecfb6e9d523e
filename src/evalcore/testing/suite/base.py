"""What all suites share: one event loop and one set of services for a class of tests, and the registry."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Coroutine
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest
from attrs import define, field

from evalcore.engine.services import LocalServices
from evalcore.plugins import PluginRef, Registry, load
from evalcore.testing.fakes import MemoryBlobs

T = TypeVar("T")


@define
class _Kept:
    """What lives as long as a class of tests, made when first asked for."""

    runner: asyncio.Runner = field(factory=asyncio.Runner)
    folder: tempfile.TemporaryDirectory[str] = field(factory=tempfile.TemporaryDirectory)
    services: LocalServices | None = None
    anything: dict[str, Any] = field(factory=dict)

    def close(self) -> None:
        try:
            if self.services is not None:
                self.runner.run(self.services.close())
        finally:
            self.runner.close()
            self.folder.cleanup()


@cache
def registered(modules: tuple[str, ...]) -> Registry:
    """Everything that is installed, and some modules as plugins; loaded once for all suites of a process."""
    registry = load()
    for module in modules:
        registry.add(PluginRef(module, module, "0", module), import_module(module))
        broken = [str(failure) for failure in registry.failures if failure.ref.name == module]
        assert not broken, broken[0]
    return registry


class Conformance:
    """The base of every suite. `plugins` are modules to register that are not installed as plugins."""

    plugins: ClassVar[tuple[str, ...]] = ()
    patience_s: ClassVar[float] = 100.0  # what a part may take over anything that a test asks of it

    _kept: ClassVar[_Kept]

    @classmethod
    def setup_class(cls) -> None:
        """Before the first test."""
        cls._kept = _Kept()

    @classmethod
    def teardown_class(cls) -> None:
        """After the last."""
        cls._kept.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await something on the loop of this class. Raises TimeoutError if a part does not answer."""
        return self._kept.runner.run(asyncio.wait_for(work, self.patience_s))

    @pytest.fixture
    def registry(self) -> Registry:
        """Everything that is installed, and `plugins`."""
        return registered(self.plugins)

    @pytest.fixture
    def services(self, registry: Registry) -> LocalServices:
        """What factories get: real toolkits, blobs in memory, an empty folder as the study's."""
        kept = self._kept
        if kept.services is None:
            kept.services = LocalServices(registry, Path(kept.folder.name))
            kept.services.blobs = MemoryBlobs()
        return kept.services
