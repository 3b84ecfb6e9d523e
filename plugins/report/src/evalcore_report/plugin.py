"""What this plugin provides."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from evalcore.hookspecs import CommandInfo, RendererInfo, hookimpl


@hookimpl
def evalcore_renderers() -> list[RendererInfo]:
    """A run as one page."""
    summary = "one HTML page that opens offline: charts, tables, transcripts"
    return [RendererInfo("html", summary, "evalcore_report.renderer:HtmlPage")]


@hookimpl
def evalcore_commands() -> list[CommandInfo]:
    """The live view."""
    return [CommandInfo("view", "Show the runs of a directory in a browser, live.", "evalcore_report.command:view")]


@hookimpl
def evalcore_run_finished(run: Path) -> None:
    """The page of a large run is made before anybody waits for it."""
    import_module("evalcore_report.view.ahead").at_the_end(run)  # nothing of it is imported before
