"""`evalcore import`: another tool's results as a run, so that old ones can be reported and compared."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from evalcore.cli.output import say, say_json
from evalcore.cli.session import Session, with_session
from evalcore.cli.study_options import JSON, options
from evalcore.contracts import Importer
from evalcore.engine.importing import write_imported
from evalcore.engine.services import LocalServices
from evalcore.engine.settings import check_name
from evalcore.errors import ConfigError
from evalcore.plugins import Registry
from evalcore.report.words import plural
from evalcore.values.descriptors import ImporterInfo
from evalcore.values.faults import Wrong


@click.command(name="import")
@click.argument("source", metavar="FILE|DIR")
@click.option("--format", "form", metavar="NAME", help="Which tool wrote it: `evalcore list importers`.")
@click.option("--out", metavar="DIR", default="runs", show_default=True, help="Where runs are kept.")
@click.option("--name", metavar="ID", help="Of the run (as the file names itself).")
@options(JSON)
@with_session
def import_run(
    session: Session, *, source: str, form: str | None, out: str, name: str | None, json: bool | None
) -> int:
    """Make a run of the results that another tool wrote, to report and compare it.

    Every trial is stamped `imported`: it is never pooled with what was measured here. Such a run can be neither
    resumed nor graded again.
    """
    registry = session.registry()
    path = Path(source).expanduser()
    if not path.exists():
        raise ConfigError(f"no such file or folder: {source}")
    info, importer = _importer(registry, form, path)
    run = importer.read(path)
    target = Path(out).expanduser() / _run_name(name or run.name)
    count = asyncio.run(write_imported(run, target))
    if json:
        say_json({"run": str(target), "trials": count, "format": info.name})
    else:
        say(f"{plural(count, 'trial')} of {source}, read as {info.name}")
        say(f"run     {target}")
        say(f"report  evalcore report {target}")
    return 0


def _run_name(text: str) -> str:
    """A folder's name: what is given, or else what can be made of it."""
    try:
        check_name(text)
    except Wrong as wrong:
        plain = "".join(c if c.isascii() and (c.isalnum() or c in "._+-") else "-" for c in text)[:80].strip("-._+")
        try:
            check_name(plain)
        except Wrong:
            raise ConfigError(wrong.message, hint="--name names the run") from None
        return plain
    return text


def _importer(registry: Registry, form: str | None, path: Path) -> tuple[ImporterInfo, Importer]:
    """The importer that is named, or the one that knows the file."""
    services = LocalServices(registry, Path.cwd())
    infos = registry.all(ImporterInfo)
    if form is not None:
        info = registry.get(ImporterInfo, "importer", form)
        return info, registry.factory(info)(services, info)
    made: list[tuple[ImporterInfo, Importer]] = [(i, registry.factory(i)(services, i)) for i in infos.values()]
    knowing = [(info, importer) for info, importer in made if importer.knows(path)]
    if len(knowing) == 1:
        return knowing[0]
    if not infos:
        raise ConfigError("no importer is installed", hint="pip install evalcore-interop brings some")
    known = f"--format names one of: {', '.join(infos)}"
    if not knowing:
        raise ConfigError(f"{path}: no importer knows this form", hint=known)
    raise ConfigError(
        f"{path}: more than one importer knows this form: {', '.join(i.name for i, _ in knowing)}", hint=known
    )
