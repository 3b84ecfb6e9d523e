"""`evalcore view`: the runs of a directory in a browser, live."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from evalcore.values.descriptors import MetricInfo


@click.command()
@click.argument("directory", required=False, metavar="[DIR]")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="The port to listen on; any free one by default."
)
@click.pass_context
def view(context: click.Context, directory: str | None, port: int) -> int:
    """Show the runs of DIR, or one run, in a browser, live.

    DIR is where runs are (by default ./runs, or what EVALCORE_OUT names), or the folder of one run. The view is there
    for this machine alone, at an address that cannot be guessed; it only reads. A run that is going on brings its page
    up to date by itself. Ctrl-C ends it.
    """
    from evalcore.errors import ConfigError
    from evalcore_report.view.kept import kept_pages
    from evalcore_report.view.server import ViewServer

    path = Path(directory or os.environ.get("EVALCORE_OUT") or "runs").expanduser()
    if not path.is_dir():
        raise ConfigError(f"no directory {path}", hint="`evalcore run SELECTOR` makes runs in ./runs")
    metrics = _metrics(context, path)
    server = ViewServer(path.resolve(), port, metrics, kept_pages(metrics))
    address = server.listen()
    server.warm_up()
    click.echo(address)
    click.echo("open this address; Ctrl-C ends the view", err=True)
    server.run()
    return 0


def _metrics(context: click.Context, path: Path) -> list[tuple[MetricInfo, Any]]:
    """The metrics of the plugins that this call of the program loads."""
    from evalcore.engine.services import LocalServices
    from evalcore.plugins import load
    from evalcore_report.renderer import metrics_of

    session = context.find_root().obj
    registry = session.registry() if hasattr(session, "registry") else load()
    return metrics_of(LocalServices(registry, path))
