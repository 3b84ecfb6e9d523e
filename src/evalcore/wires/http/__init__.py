"""Both wires over HTTP: one loopback server per process, and a door of its own for each wire of a trial."""

from __future__ import annotations

from evalcore.wires.http.door import Door, close_all
from evalcore.wires.http.server import WireServer

__all__ = ["Door", "WireServer", "close_all"]
