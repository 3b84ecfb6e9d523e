"""The axis `mcp_servers`: the servers of a file, added to every trial of whatever benchmark (docs/mcp.md)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import evolve

from evalcore.builtin.mcp.config import missing_variables, read_file, read_servers, shown
from evalcore.contracts import Services
from evalcore.errors import ConfigError
from evalcore.values.faults import Faults, key_path
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
        """Before a run: whether the file can be read and its variables are set. Raises ConfigError with all faults."""
        _, servers = self._servers(value)
        faults = Faults()
        for name, server in read_servers(servers, where="", faults=faults).items():
            for path, variable in missing_variables(server, os.environ):
                where = f"{key_path('$.mcpServers', name)}.{path}"
                faults.add(where, f"needs the variable {variable}, which is not set")
        faults.raise_if_any(str(value))

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
