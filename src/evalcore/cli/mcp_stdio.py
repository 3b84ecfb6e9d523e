"""`evalcore mcp-stdio`: a tool wire for an agent that wants to start its MCP servers itself."""

from __future__ import annotations

import os
import sys

import click


@click.command("mcp-stdio")
@click.argument("url", required=False)
def mcp_stdio(url: str | None) -> None:
    """Pass MCP between standard input and output and the tool wire at URL.

    Without URL, its address is read from EVALCORE_MCP_URL: that keeps the trial's token out of the process list.
    """
    from evalcore.errors import ConfigError
    from evalcore.wires.stdio_shim import URL, Shim, write_all

    given = url or os.environ.get(URL)
    if not given:
        raise ConfigError("no tool wire is named", hint=f"`evalcore mcp-stdio URL`, or {URL} in the environment")
    try:
        shim = Shim(given, sys.stdin.buffer, write_all)
    except ValueError as error:
        raise ConfigError(f"{'URL' if url else URL}: {error}") from None
    shim.run()
