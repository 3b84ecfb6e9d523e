"""`evalcore report`: the scorecard of a run, read back from its ledgers, on the terminal or in any installed form."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import click
from attrs import frozen

from evalcore.cli.execution import PEEK, print_report, read_back
from evalcore.cli.output import say, say_json, tell
from evalcore.cli.resume import RUN
from evalcore.cli.session import Session, with_session
from evalcore.cli.study_options import JSON, options
from evalcore.engine.services import LocalServices, SystemClock
from evalcore.engine.store import gradings_of, read_stamp, write_durably
from evalcore.errors import ConfigError, EvalcoreError, PluginError
from evalcore.plugins import Registry
from evalcore.report.load import choose_grading, load_report
from evalcore.report.looks import note_peek
from evalcore.report.words import plural, safe
from evalcore.values.descriptors import RendererInfo
from evalcore.values.measure import DIMENSIONS

STDOUT: Final = "-"
HTML: Final = "html"  # the renderer of the plugin evalcore-report


def weights(_: click.Context, __: click.Parameter, given: str | None) -> dict[str, float] | None:
    """`success=0.7,cost=0.3`: dimensions of the composite; those not named have no weight."""
    if given is None:
        return None
    found: dict[str, float] = {}
    for part in given.split(","):
        name, sign, text = (piece.strip() for piece in part.partition("="))
        if name not in DIMENSIONS:
            raise click.BadParameter(f"{name!r} is no dimension: {', '.join(DIMENSIONS)}")
        if name in found:
            raise click.BadParameter(f"{name} is named twice")
        try:
            found[name] = float(text if sign else "")
        except ValueError:
            raise click.BadParameter(f"expected {name}=NUMBER, got {part.strip()!r}") from None
        if not (math.isfinite(found[name]) and found[name] >= 0.0):
            raise click.BadParameter(f"a weight is a number of at least 0, not {text!r}")
    if not math.fsum(found.values()):
        raise click.BadParameter("all weights are 0")
    return found


@click.command()
@options(RUN)
@click.option("--grading", metavar="DIGEST", help="Another grading than the run's own, by its digest or its beginning.")
@click.option("--weights", metavar="NAME=W,…", callback=weights, help="Of the composite: success=0.7,cost=0.3.")
@click.option("--format", "form", metavar="NAME", help="As markdown, csv, junit, github, or what a plugin adds.")
@click.option(
    "--html",
    is_flag=False,
    flag_value="",
    metavar="[FILE]",
    help="As one page that opens offline: report.html in the run's folder, or FILE.",
)
@click.option("--public", is_flag=True, help="Without what a dataset's terms forbid to show.")
@click.option("--redact", metavar="FILE", help="Without what the rules of FILE name, too (docs/reports.md).")
@click.option("--out", metavar="FILE|DIR|-", help="Where to write that; - is standard output.")
@click.option("--force", is_flag=True, help="Replace files that are there already.")
@options(JSON)
@with_session
def report(
    session: Session,
    *,
    run: str,
    grading: str | None,
    weights: dict[str, float] | None,
    form: str | None,
    html: str | None,
    public: bool,
    redact: str | None,
    out: str | None,
    force: bool,
    json: bool | None,
) -> int:
    """Show the scorecard of RUN, and write its scorecard.json anew.

    RUN is the folder of a run, or its name under ./runs; it may still be running. `evalcore list renderers` shows
    what --format knows. A form of one file goes to standard output unless --out names a file or a folder; one of
    several files needs a folder. In a GitHub Actions job, `--format github` goes to the page of the job.
    """
    path = session.run_path(run)
    target = Target(out, force)
    if html is not None:
        form, target = _html(form, html, target, path)
    if form is not None:
        if json:
            raise click.UsageError("--json is a form of its own: not with --format or --html")
        if weights:
            raise click.UsageError("--weights is for the text and --json; a study names them under [analysis]")
        return _write(session, path, form, grading, target, _publication(public=public, redact=redact))
    if out is not None or force:
        raise click.UsageError("--out and --force say where a --format goes; without one they say nothing")
    if public or redact is not None:
        raise click.UsageError("--public and --redact are about a --format or --html; without one they say nothing")
    made = read_back(path, session.registry(), grading, weights)
    if json:
        from evalcore.report.scorecard import to_json

        say_json(to_json(made))
    else:
        print_report(made)
    others = [digest for digest in gradings_of(path) if digest != made.grading]
    if others:
        tell(f"other gradings of this run: {', '.join(others)} (--grading DIGEST)")
    return 0


# ── in another form ──────────────────────────────────────────────────────────────────────────────────────────────────


@frozen
class Target:
    """Where a form goes, as the user said it."""

    out: str | None
    force: bool

    @property
    def path(self) -> Path | None:
        """The file or folder that is named."""
        return None if self.out in (None, STDOUT) else Path(str(self.out)).expanduser()

    @property
    def is_folder(self) -> bool:
        """Whether a folder is named, whatever is written."""
        path = self.path
        return path is not None and (path.is_dir() or str(self.out).endswith("/"))


def _html(form: str | None, file: str, target: Target, run: Path) -> tuple[str, Target]:
    """What --html is short for. The page in the run's own folder is made anew each time: it is derived."""
    if form is not None or (file and target.out is not None):
        raise click.UsageError("--html names a form and its file: not with --format, and not with --out beside a file")
    if file or target.out is not None:
        return HTML, Target(file or target.out, target.force)
    read_stamp(run)  # a folder that is no run gets no page
    page = run / "report.html"
    if page.exists():
        tell(f"{safe(str(page))} was there and is replaced; --html FILE writes elsewhere")
    return HTML, Target(str(page), force=True)


def _publication(*, public: bool, redact: str | None) -> Mapping[str, object]:
    """What a renderer is told of a copy to publish. Raises ConfigError if the rules cannot be read."""
    if redact is None:
        return {"public": True} if public else {}
    from evalcore.values.convert import from_toml
    from evalcore.values.redaction import RedactionRules

    return {"public": True, "rules": from_toml(Path(redact).expanduser(), RedactionRules)}


@frozen
class Form:
    """A renderer under its name, the run that it writes, by which grading, and what a copy to publish leaves out."""

    name: str
    renderer: Any
    run: Path
    grading: str | None
    publication: Mapping[str, object]

    def write(self, folder: Path) -> list[Path]:
        """Render below a folder. Raises PluginError for a renderer with a bug."""
        takes = inspect.signature(self.renderer.render).parameters
        other = dict(self.publication)
        if self.grading is not None:
            other["grading"] = self.grading
            if "grading" not in takes:
                raise ConfigError(f"{self.name} writes a run by its own grading only", hint="leave out --grading")
        if any(name not in takes for name in self.publication):
            raise ConfigError(
                f"{self.name} cannot leave anything out", hint="leave out --public and --redact, or --html"
            )
        try:
            files = [Path(file) for file in self.renderer.render(self.run, folder, **other)]
        except (EvalcoreError, OSError):
            raise
        except Exception as error:
            raise self._at_fault(f"failed: {type(error).__name__}: {error}") from error
        if not files or not all(file.is_relative_to(folder) and file.is_file() for file in files):
            raise self._at_fault(f"names {plural(len(files), 'file')}, and not the files that it wrote")
        return files

    def _at_fault(self, what: str) -> PluginError:
        return PluginError(f"the renderer {self.name} {what}", plugin=self.name, stage="validate")


def _write(
    session: Session, run: Path, name: str, grading: str | None, target: Target, publication: Mapping[str, object]
) -> int:
    """Render a run, and say where it went."""
    form = _form(session.registry(), run, name, grading, publication)
    if read_stamp(run).study.get("contrasts") and note_peek(run, load_report(run, grading), SystemClock().now()):
        tell(PEEK)  # whatever the form: who reads it has looked
    if target.force and target.is_folder and target.path is not None:
        _say_files(form.write(target.path))  # what is there is the renderer's to see: it may belong to another run
        return 0
    with TemporaryDirectory(prefix="evalcore-") as folder:
        files = form.write(Path(folder))
        page = session.environ.get(getattr(form.renderer, "appends_to", ""))
        if target.out is None and page and len(files) == 1:
            _append(files[0], Path(page))
        elif target.path is None:
            _print(form, files)
        else:
            _keep(files, Path(folder), target, target.path)
    return 0


def _form(registry: Registry, run: Path, name: str, grading: str | None, publication: Mapping[str, object]) -> Form:
    """Raises ConfigError if there is no such form, run or grading."""
    info = registry.get(RendererInfo, "format", name)
    chosen = None if grading is None else choose_grading(run, read_stamp(run), grading)
    return Form(name, registry.factory(info)(LocalServices(registry, run), info), run, chosen, publication)


def _append(file: Path, page: Path) -> None:
    """At the end of what others have written there."""
    with page.open("ab") as whole:
        whole.write((b"\n" if whole.tell() else b"") + file.read_bytes())
    tell(f"appended to {page}")


def _print(form: Form, files: Sequence[Path]) -> None:
    """The one file on standard output, byte for byte unless a terminal would obey it."""
    if len(files) > 1:
        hint = f"`evalcore report {form.run} --format {form.name} --out DIR` names one"
        raise ConfigError(f"{form.name} writes {plural(len(files), 'file')}: they need a folder", hint=hint)
    data = files[0].read_bytes()
    if sys.stdout.isatty():
        say(data.decode("utf-8", "replace").rstrip("\n"))
    else:
        click.echo(data, nl=False)


def _keep(files: Sequence[Path], folder: Path, target: Target, out: Path) -> None:
    """Bring files where they are wanted, all of them or none."""
    single = len(files) == 1 and not target.is_folder
    places = {file: out if single else out / file.relative_to(folder) for file in files}
    there = [place for place in places.values() if place.exists() or place.is_symlink()]
    if there and not target.force:
        more = f", and {len(there) - 1:,} more" if len(there) > 1 else ""
        raise ConfigError(f"{there[0]} exists already{more}", hint="--force replaces it; --out names another place")
    for file, place in places.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        write_durably(place, file.read_bytes())
    _say_files(list(places.values()))


def _say_files(files: Sequence[Path]) -> None:
    for file in files:
        say(str(file))
