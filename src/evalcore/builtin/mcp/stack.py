"""The servers of one trial and the folder that they work in: opened together, closed together, never used twice."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from attrs import field, frozen

from evalcore.builtin.mcp.config import (
    CONFIG_DIR,
    WORKDIR,
    Server,
    StdioServer,
    expand,
    missing_variables,
    program,
    read_servers,
    wrong_url,
)
from evalcore.builtin.mcp.connection import Connection, Place
from evalcore.builtin.sandbox_none import FolderSandbox, FolderSandboxes
from evalcore.contracts import Services
from evalcore.errors import ConfigError, InfraError
from evalcore.process.environment import clean_environment
from evalcore.values.faults import ROOT, Faults, described, did_you_mean, key_path
from evalcore.values.json import JSONObject, JSONValue, digest
from evalcore.values.task import SandboxSpec

KEYS: Final = ("servers", "bases", "files", "folder")


@frozen
class Recipe:
    """What a stack is made of; equal recipes make stacks that can stand for each other until they are used."""

    servers: Mapping[str, Server]
    bases: Mapping[str, str]  # of each server: the folder of the file that declares it
    files: Mapping[str, str]
    folder: bool  # there is one, whether or not a server works in it
    key: str = field(eq=False)

    def place(self, name: str, folder: Path, services: Services, environ: Mapping[str, str]) -> Place:
        """Where a server is, its variables replaced; what they held is kept out of the run. Raises ConfigError."""
        server, base = self.servers[name], self.bases.get(name, str(services.base))
        own = {WORKDIR: str(folder), CONFIG_DIR: base}
        missing = missing_variables(server, environ)
        if missing:
            where, variable = missing[0]
            raise ConfigError(f"MCP server {name!r}: {where} needs the variable {variable}, which is not set")

        def filled(text: str) -> str:
            made = expand(text, own, environ)
            for secret in made.secrets:
                services.hide(secret)
            return made.text

        if not isinstance(server, StdioServer):
            url = filled(server.url)
            if wrong := wrong_url(url):
                raise ConfigError(f"MCP server {name!r}: {wrong}")
            return Place(url=url, headers={k: filled(v) for k, v in server.headers.items()})
        temporary = {"TMPDIR": str(folder.parent / "tmp")}
        given = {k: filled(v) for k, v in server.env.items()}
        env = clean_environment({**temporary, **given}, network=True, source=environ)
        command = program(filled(server.command), base)
        found = shutil.which(command, path=env.get("PATH", os.defpath))
        if found is None:
            raise ConfigError(f"MCP server {name!r}: no program {command!r}", hint="install it, or correct `command`")
        return Place((found, *(filled(text) for text in server.args)), env, folder)


def read_recipe(config: JSONObject) -> Recipe:
    """The recipe of a bridge's configuration. Raises InfraError for one that is none: adapters write it."""
    faults = Faults()
    for key in config:
        if key not in KEYS:
            faults.add(key_path(ROOT, key), "unknown key", did_you_mean(key, KEYS))
    servers = config.get("servers")
    read: dict[str, Server] = {}
    if isinstance(servers, dict):
        read = read_servers(servers, where=f"{ROOT}.servers", faults=faults)
    else:
        faults.add(f"{ROOT}.servers", f"expected servers by name, got {described(servers)}")
    bases, files = _texts(config, "bases", faults), _texts(config, "files", faults)
    if faults:
        raise InfraError(f"bridge mcp: {next(iter(faults))}")
    wanted = config.get("folder") is True or bool(files) or any(isinstance(s, StdioServer) for s in read.values())
    return Recipe(read, bases, files, wanted, digest(config))


def _texts(config: JSONObject, key: str, faults: Faults) -> dict[str, str]:
    table: JSONValue = config.get(key, {})
    if not isinstance(table, dict) or not all(isinstance(v, str) for v in table.values()):
        faults.add(f"{ROOT}.{key}", "expected texts by name")
        return {}
    return {name: str(text) for name, text in table.items()}


class Stack:
    """Servers and folder, ready to be used by one trial."""

    def __init__(
        self, recipe: Recipe, services: Services, environ: Mapping[str, str], starting: asyncio.Semaphore
    ) -> None:
        self.connections: dict[str, Connection] = {}
        self.sandbox: FolderSandbox | None = None
        self._recipe = recipe
        self._services = services
        self._environ = environ
        self._starting = starting

    async def open(self) -> None:
        """Make the folder and its files, then start every server, side by side. Raises InfraError, ConfigError."""
        recipe = self._recipe
        try:
            if recipe.folder:
                self.sandbox = await FolderSandboxes().open(SandboxSpec("none"))
                for path, content in recipe.files.items():
                    await self.sandbox.write(path, content.encode("utf-8", "surrogatepass"))
            folder = self.sandbox.root if self.sandbox is not None else Path()
            for name in recipe.servers:
                place = recipe.place(name, folder, self._services, self._environ)
                self.connections[name] = Connection(name, place)
            opened = await asyncio.gather(*(self._opened(c) for c in self.connections.values()), return_exceptions=True)
            for result in opened:
                if isinstance(result, BaseException):
                    raise result
        except BaseException:
            await self.close()
            raise

    def kill(self) -> None:
        """Signal every program at once, waiting for nothing; `close` does the rest."""
        for connection in self.connections.values():
            if connection.program is not None:
                connection.program.kill()

    async def close(self) -> None:
        """End every server with all that it started, then remove the folder. Idempotent."""
        await asyncio.gather(*(c.close() for c in self.connections.values()))
        if self.sandbox is not None:
            await self.sandbox.close()

    async def _opened(self, connection: Connection) -> None:
        """Starting is work for the processor: too many at once would all be late, and the slowest too late."""
        async with self._starting:
            await connection.open()

    def is_sound(self) -> bool:
        """Whether every program still runs: a spare may have died while it waited."""
        programs = [c.program for c in self.connections.values() if c.program is not None]
        return all(p.runs() for p in programs)
