"""MCP servers as files declare them, `.mcp.json` and a suite's `mcp` (docs/mcp.md), read strictly.

    {"mcpServers": {NAME: {"command", "args", "env"} or {"url", "headers"}}}

`${NAME}` and `${NAME:-default}` in a text are replaced as clients do: from the environment, when a server is started.
Two names are evalcore's own: `${EVALCORE_WORKDIR}` is the trial's folder, `${EVALCORE_MCP_DIR}` that of the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

from attrs import Factory, frozen

from evalcore.errors import ConfigError
from evalcore.process.environment import clean_environment
from evalcore.values.convert import attempt
from evalcore.values.faults import ROOT, Faults, described, did_you_mean, item_path, key_path, literal
from evalcore.values.json import JSONObject, JSONValue

WORKDIR: Final = "EVALCORE_WORKDIR"
CONFIG_DIR: Final = "EVALCORE_MCP_DIR"
OWN: Final = (WORKDIR, CONFIG_DIR)
MAX_BYTES: Final = 1 << 20
MAX_SERVERS: Final = 32

_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_ENVIRONMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._-]{0,62}[A-Za-z0-9])?")
_MARKS: Final = {"command": "a program", "url": "an address"}


@frozen
class StdioServer:
    """A server that is a program: it is started for each trial, in the trial's folder."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = Factory(dict)
    type: Literal["stdio"] = "stdio"

    def texts(self) -> Iterator[tuple[str, str]]:
        """Every text in which variables are replaced, with its path."""
        yield "command", self.command
        yield from ((item_path("args", i), text) for i, text in enumerate(self.args))
        yield from ((key_path("env", name), text) for name, text in self.env.items())


@frozen
class HttpServer:
    """A server that is there already, reached by streamable HTTP."""

    url: str
    headers: Mapping[str, str] = Factory(dict)
    type: Literal["http", "streamable-http", "streamableHttp"] = "http"

    def texts(self) -> Iterator[tuple[str, str]]:
        """Every text in which variables are replaced, with its path."""
        yield "url", self.url
        yield from ((key_path("headers", name), text) for name, text in self.headers.items())


Server: TypeAlias = StdioServer | HttpServer


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_file(path: Path, shown: str) -> dict[str, JSONObject]:
    """A file's servers, each as it is declared; `shown` is what errors call it. Raises ConfigError with every fault."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"cannot read {shown}: {error.strerror}", hint="a file like .mcp.json") from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{shown} is larger than {MAX_BYTES >> 20} MiB")
    faults = Faults()
    declared = _declared(data, shown, faults)
    read_servers(declared, where=f"{ROOT}.mcpServers", faults=faults)
    faults.raise_if_any(shown)
    return {name: value for name, value in declared.items() if isinstance(value, dict)}


def _declared(data: bytes, shown: str, faults: Faults) -> JSONObject:
    try:
        raw: JSONValue = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{shown}: no JSON: {error.msg} in line {error.lineno}, column {error.colno}") from None
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{shown}: no JSON: {error}") from None
    if not isinstance(raw, dict):
        faults.add(ROOT, f"expected a table with mcpServers, got {described(raw)}")
        return {}
    for key in raw:
        if key != "mcpServers":
            faults.add(key_path(ROOT, key), "unknown key", did_you_mean(key, ("mcpServers",)))
    servers = raw.get("mcpServers")
    if not isinstance(servers, dict):
        what = f"expected a table, got {described(servers)}" if "mcpServers" in raw else "missing: the servers by name"
        faults.add(f"{ROOT}.mcpServers", what)
        return {}
    return servers


def _once(pairs: list[tuple[str, JSONValue]]) -> JSONObject:
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"key {literal(next(n for n in names if names.count(n) > 1))} twice in one object")
    return table


def read_servers(raw: Mapping[str, JSONValue], *, where: str, faults: Faults) -> dict[str, Server]:
    """The servers by name; what is wrong with any goes to `faults`."""
    found: dict[str, Server] = {}
    if len(raw) > MAX_SERVERS:
        faults.add(where, f"{len(raw)} servers, at most {MAX_SERVERS}")
    for name, value in raw.items():
        place = key_path(where, name)
        if not _NAME.fullmatch(name):
            faults.add(place, f"{literal(name)} is no name of a server", "letters, digits and . _ - within, at most 64")
        server = _read_server(value, place, faults)
        if server is not None:
            found[name] = server
    return found


def _read_server(value: JSONValue, where: str, faults: Faults) -> Server | None:
    if not isinstance(value, dict):
        faults.add(where, f"expected a server, got {described(value)}", 'for example {"command": "my-server"}')
        return None
    if value.get("type") == "sse":
        faults.add(f"{where}.type", "the transport 'sse' was replaced in 2025", 'streamable HTTP is {"url": …}')
        return None
    marks = [mark for mark in _MARKS if mark in value]
    if len(marks) != 1:
        told = "both `command` and `url`" if marks else "neither `command` nor `url`"
        faults.add(where, f"has {told}", "a server is either a program or an address")
        return None
    kind: type[StdioServer | HttpServer] = StdioServer if marks == ["command"] else HttpServer
    server: Server | None = attempt(value, kind, where=where, faults=faults)
    if server is not None:
        for path, message, hint in _wrong(server):
            faults.add(f"{where}.{path}", message, hint)
    return server


def _wrong(server: Server) -> Iterator[tuple[str, str, str | None]]:
    """What the types cannot say."""
    for path, text in server.texts():
        if "\0" in text:
            yield path, "a null character", None
        if "${" in _VARIABLE.sub("", text):
            yield path, "${ begins no variable", "write ${NAME} or ${NAME:-default}"
    if isinstance(server, StdioServer):
        if not server.command.strip():
            yield "command", "names no program", None
        for name in server.env:
            if not _ENVIRONMENT.fullmatch(name):
                yield key_path("env", name), "not the name of a variable", None
    else:
        if "${" not in server.url and (wrong := wrong_url(server.url)):
            yield "url", wrong, 'for example "http://127.0.0.1:8000/mcp"'
        for name, text in server.headers.items():
            if not _HEADER.fullmatch(name) or "\n" in text or "\r" in text:
                yield key_path("headers", name), "no header of HTTP", None


def wrong_url(text: str) -> str | None:
    """Why it is no address of a server; None if it is one."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return f"{literal(text)} is no address"
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or not text.isprintable():
        return f"{literal(text)} is no address"
    if " " in text or parts.fragment:
        return f"{literal(text)} is no address"
    return None


def read_named(texts: object, *, where: str, faults: Faults) -> dict[str, JSONObject]:
    """A suite's `mcp`, an array of `name=url`, as declarations by name."""
    found: dict[str, JSONObject] = {}
    if not isinstance(texts, list) or not texts:
        what = "an empty one" if texts == [] else described(texts)
        faults.add(where, f"expected an array of `name=url`, got {what}")
        return found
    for index, text in enumerate(texts):
        place = item_path(where, index)
        if not isinstance(text, str):
            faults.add(place, f"expected text, got {described(text)}", 'for example "search=http://127.0.0.1:8000/mcp"')
            continue
        name, equals, url = text.partition("=")
        if not equals or not name.strip():
            faults.add(place, f"{literal(text)} has no name", 'for example "search=http://127.0.0.1:8000/mcp"')
        elif name in found:
            faults.add(place, f"{literal(name)} is the name of another server, too")
        else:
            read_servers({name: {"url": url}}, where=place, faults=faults)
            found[name] = {"url": url}
    return found


# ── what is started ──────────────────────────────────────────────────────────────────────────────────────────────────


@frozen
class Expansion:
    """A text with its variables replaced, and the values that came from the environment and may be secret."""

    text: str
    secrets: tuple[str, ...] = ()


def expand(text: str, own: Mapping[str, str], environ: Mapping[str, str]) -> Expansion:
    """Replace variables: evalcore's own first, then the environment's. Raises KeyError(name) for a missing one."""
    secrets: list[str] = []
    plain = clean_environment(source=environ).keys()

    def value(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        if name in own:
            return own[name]
        found = environ.get(name)
        if found:  # as in a shell, `:-` stands for an empty variable, too
            if name not in plain:
                secrets.append(found)
            return found
        if default is not None:
            return default
        if found is None:
            raise KeyError(name)
        return found

    return Expansion(_VARIABLE.sub(value, text), tuple(secrets))


def missing_variables(server: Server, environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Variables without a value and without a default: the path of the text, and the name."""
    own = dict.fromkeys(OWN, "")
    found = []
    for path, text in server.texts():
        try:
            expand(text, own, environ)
        except KeyError as missing:
            found.append((path, str(missing.args[0])))
    return found


def shown(server: Server, base: str) -> list[str]:
    """What a person is shown before it happens: the program or the address as declared, and what is passed on to it."""
    names = {match[1] for _, text in server.texts() for match in _VARIABLE.finditer(text)} - set(OWN)
    passed = [f"# passes on {', '.join(sorted(names))}"] if names else []
    if isinstance(server, StdioServer):
        return [program(server.command, base), *server.args, *passed]
    return ["connect to", server.url, *passed]


def program(command: str, base: str) -> str:
    """A command with a slash is relative to its file, wherever evalcore runs; one without is looked for on PATH."""
    if "/" not in command or command.startswith(("/", "${")):
        return command
    return str(Path(base) / command)
