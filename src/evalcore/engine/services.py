"""What parts may use instead of globals: clock, random source, blobs, toolkits, the folder of the study."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

from evalcore import __version__
from evalcore.contracts import BlobStore
from evalcore.errors import InfraError
from evalcore.plugins import Registry
from evalcore.values.descriptors import ToolkitInfo
from evalcore.values.trial import BlobRef
from evalcore.wires.recorder import Redactor

if TYPE_CHECKING:
    from evalcore.toolkits.host import Toolkit
    from evalcore.wires.http import WireServer

_PLAIN: Final = ("HOME", "LANG", "PATH", "TMPDIR", "TZ")  # what parts may see of the environment: never a key


class SystemClock:
    """The machine's own time."""

    monotonic = staticmethod(time.perf_counter)

    def __init__(self) -> None:
        self._second = 0
        self._text = ""

    def now(self) -> str:
        """RFC 3339, UTC, to the millisecond."""
        stamp = time.time()
        second = int(stamp)
        if second != self._second:  # formatting a date costs more than the rest of an attempt's bookkeeping
            self._second, self._text = second, datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        return f"{self._text}.{int((stamp - second) * 1000):03d}Z"

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class NoBlobs:
    """Before a run has a directory, nothing can be stored."""

    async def put(self, data: bytes) -> BlobRef:
        """Refused."""
        raise InfraError("no run is open: nowhere to put a blob")

    async def get(self, ref: BlobRef) -> bytes:
        """Refused."""
        raise InfraError("no run is open: no blobs to read")


class LocalServices:
    """Services of this process. Closes the toolkits and the wires that it started."""

    def __init__(self, registry: Registry, base: Path, seed: int = 0, workers: int = 1) -> None:
        self.registry = registry
        self.base = base
        self.clock = SystemClock()
        self.random = Random(seed)
        self.blobs: BlobStore = NoBlobs()
        self.redactor = Redactor()
        self.environment: Mapping[str, str] = {k: v for k in _PLAIN if (v := os.environ.get(k)) is not None}
        self._workers = workers
        self._toolkits: dict[str, Toolkit] = {}
        self._lock = asyncio.Lock()
        self._wires: WireServer | None = None

    def hide(self, secret: str) -> None:
        """Keep a value, such as a key, out of everything that the run stores."""
        self.redactor.add(secret)

    async def toolkit(self, name: str) -> Toolkit:
        """A toolkit, its workers started when first used. Raises ToolkitError if it is not set up."""
        from evalcore.toolkits.environment import ensure  # what runs no upstream code need not load this
        from evalcore.toolkits.host import Toolkit

        async with self._lock:
            if name not in self._toolkits:
                spec = self.registry.get(ToolkitInfo, "toolkit", name).spec
                environment = await ensure(spec, install=False)
                passed = {variable: os.environ[variable] for variable in spec.passes if variable in os.environ}
                self._toolkits[name] = Toolkit(spec, environment, workers=self._workers, variables=passed)
            return self._toolkits[name]

    async def wire_server(self) -> WireServer:
        """The server of both wires over HTTP, started when first needed. Raises InfraError."""
        from evalcore.wires.http import WireServer  # what runs in memory need not load this

        async with self._lock:
            if self._wires is None:
                wires = WireServer(version=__version__)
                await wires.start()
                self._wires = wires
            return self._wires

    async def toolkit_stamps(self) -> dict[str, object]:
        """What each toolkit in use says of itself."""
        return {name: await toolkit.stamp() for name, toolkit in self._toolkits.items()}

    async def close(self) -> None:
        """Stop the wires and every worker."""
        if self._wires is not None:
            await self._wires.close()
            self._wires = None
        for toolkit in self._toolkits.values():
            await toolkit.close()
        self._toolkits.clear()
