"""The axis `mcp_servers`: the servers of a file, added to every trial of whatever benchmark (docs/mcp.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import evolve

from evalcore.builtin.mcp.config import read_file, read_servers, shown
from evalcore.contracts import Services
from evalcore.errors import ConfigError
from evalcore.values.faults import Faults
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import Assignment, BridgeSpec

AXIS: Final = "mcp_servers"
KIND: Final = "mcp"


class McpServers:
    """Reads each file once."""

    def __init__(self, services: Services, info: Any = None) -> None:
        self._base = services.base
        self._read: dict[Path, dict[str, JSONObject]] = {}

    def check(self, value: JSONValue) -> None:
        """Before a run: whether the file can be read. Raises ConfigError with everything wrong with it."""
        self._servers(value)

    async def apply(self, assignment: Assignment, value: JSONValue) -> Assignment:
        """The assignment with the servers; first among its bridges. Raises ConfigError for a name used twice."""
        path, servers = self._servers(value)
        others = [spec for spec in assignment.bridges if spec.kind != KIND]
        own = next((spec.config for spec in assignment.bridges if spec.kind == KIND), {})
        known, bases = own.get("servers", {}), own.get("bases", {})
        assert isinstance(known, dict) and isinstance(bases, dict)
        both = sorted(known.keys() & servers.keys())
        if both:
            raise ConfigError(f"{value}: the task has an MCP server {both[0]!r}, too", hint="rename one of them")
        config: JSONObject = {
            **own,
            "servers": {**known, **servers},
            "bases": {**bases, **dict.fromkeys(servers, str(path.parent))},
        }
        return evolve(assignment, bridges=(BridgeSpec(KIND, config), *others))

    def commands(self, options: Mapping[str, JSONValue]) -> Sequence[Sequence[str]]:
        """What an arm would start, or connect to. Raises ConfigError with everything wrong with its file."""
        path, servers = self._servers(options.get(AXIS))
        read = read_servers(servers, where="", faults=Faults())
        return [shown(server, str(path.parent)) for server in read.values()]

    def _servers(self, value: JSONValue) -> tuple[Path, dict[str, JSONObject]]:
        path = (self._base / str(value)).resolve()
        if path not in self._read:
            self._read[path] = read_file(path, str(value))
        return path, self._read[path]
