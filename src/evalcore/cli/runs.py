"""`evalcore runs`: the runs of a folder, how far each is and how large; and the end of those that nobody needs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from attrs import frozen

from evalcore.cli.output import on_terminal, say, say_json, table, tell
from evalcore.cli.session import OUT, Session, with_session
from evalcore.cli.study_options import JSON, options
from evalcore.engine.store import STAMP, RunLock, read_attempts, read_stamp
from evalcore.errors import ConfigError, EvalcoreError, InfraError, RefusedError
from evalcore.report.words import plural
from evalcore.values.stamp import RunStamp


@frozen
class Listed:
    """A run as it lies on disk. `problem` says why it cannot be read."""

    path: Path
    size: int  # bytes
    stamp: RunStamp | None
    executed: int
    planned: int
    running: bool
    problem: str | None = None


@click.command()
@click.argument("names", nargs=-1, metavar="[RUN...]")
@click.option("--out", metavar="DIR", help="Where runs are (runs).")
@click.option("--remove", is_flag=True, help="Remove the runs that are named, after a yes.")
@click.option("--yes", is_flag=True, help="Do not ask before a run is removed.")
@options(JSON)
@with_session
def runs(
    session: Session, *, names: tuple[str, ...], out: str | None, remove: bool, yes: bool, json: bool | None
) -> int:
    """List the runs of a folder with their size, newest first; with --remove, remove those that are named.

    A run is removed whole: traces, verdicts and all. One that is being written is not.
    """
    if yes and not remove:
        raise click.UsageError("--yes goes with --remove")
    folder = Path(out or session.environ.get(OUT) or "runs").expanduser()
    if remove:
        return _remove([_path(session, folder, out, name) for name in names], yes=yes)
    found = [_listed(_path(session, folder, out, name)) for name in names] if names else list(_all(folder))
    if json:
        say_json({"schema": "evalcore.runs/1", "folder": str(folder), "runs": [_as_json(one) for one in found]})
    elif found:
        say(table([_row(one) for one in found], ("run", "made", "trials", "size", "study")))
        whole = sum(one.size for one in found)
        say(f"{plural(len(found), 'run')}, {_bytes(whole)} in {folder}")
    else:
        say(f"no run in {folder}")
    return 0


def _path(session: Session, folder: Path, out: str | None, name: str) -> Path:
    return folder / name if out is not None and len(Path(name).parts) == 1 else session.run_path(name)


def _all(folder: Path) -> Iterator[Listed]:
    """Every run of a folder, newest first. Raises ConfigError where it is no folder."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is no folder")
    here = [path for path in (folder.iterdir() if folder.is_dir() else ()) if (path / STAMP).is_file()]
    listed = [_listed(path) for path in here]
    yield from sorted(listed, key=lambda one: (one.stamp.created if one.stamp else "", one.path.name), reverse=True)


def _listed(path: Path) -> Listed:
    """A run; what is wrong with it is told beside its size. Raises ConfigError where there is none."""
    if not (path / STAMP).is_file():
        read_stamp(path)  # says what is there instead
    try:
        stamp = read_stamp(path)
        executed = {a.key for a in read_attempts(path) if a.void is None}
    except EvalcoreError as error:
        return Listed(path, _size(path), None, 0, 0, _running(path), error.message)
    planned = sum(
        b.tasks * stamp.repeats
        for b in stamp.benchmarks
        for a in stamp.arms
        if a.arm.harness != "oracle" or not b.oracle_note
    )
    unscored = {(b.selector, task) for b in stamp.benchmarks for task in b.unscored}
    done = sum((key.benchmark, key.task) not in unscored for key in executed)
    return Listed(path, _size(path), stamp, done, planned, _running(path))


def _size(path: Path) -> int:
    """Bytes of the files below, links not followed; a file that goes away meanwhile is none."""
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            try:
                total += (Path(folder) / name).lstat().st_size
            except OSError:
                continue
    return total


def _running(path: Path) -> bool:
    try:
        lock = RunLock(path)
    except (RefusedError, OSError):
        return True
    lock.release()
    return False


def _row(one: Listed) -> tuple[str, ...]:
    if one.stamp is None:
        return one.path.name, "", "cannot be read", _bytes(one.size), one.problem or ""
    trials = f"{one.executed:,} of {one.planned:,}" if one.executed < one.planned else f"{one.planned:,}"
    state = " running" if one.running else ""
    return one.path.name, one.stamp.created[:19], f"{trials}{state}", _bytes(one.size), one.stamp.study_name


def _bytes(size: float) -> str:
    """`412 kB`, `1.3 GB`, in powers of 1,000."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.0f} {unit}" if size >= 10 or unit == "B" else f"{size:.1f} {unit}"
        size /= 1000.0
    return f"{size:.1f} TB"


def _as_json(one: Listed) -> dict[str, Any]:
    stamp = one.stamp
    return {
        "name": one.path.name,
        "path": str(one.path),
        "bytes": one.size,
        "created": None if stamp is None else stamp.created,
        "study": None if stamp is None else {"name": stamp.study_name, "digest": stamp.study_digest},
        "executed": one.executed,
        "planned": one.planned,
        "running": one.running,
        "problem": one.problem,
    }


# ── the end of a run ─────────────────────────────────────────────────────────────────────────────────────────────────


def _remove(paths: Sequence[Path], *, yes: bool) -> int:
    """Remove runs after a yes: all of them are checked first. Raises ConfigError, RefusedError, click.Abort."""
    if not paths:
        raise click.UsageError("--remove needs the runs to remove, by name")
    chosen = list(dict.fromkeys(paths))
    for path in chosen:
        if path.is_symlink():
            raise ConfigError(f"{path} is a link, and not removed", hint="name the run that it points to")
        if not (path / STAMP).is_file():
            read_stamp(path)
        if _running(path):
            raise RefusedError(f"{path} is being written by another process", hint="stop it first")
    whole = sum(map(_size, chosen))
    text = f"{plural(len(chosen), 'run')}, {_bytes(whole)}: {', '.join(map(str, chosen))}"
    if not yes:
        if not on_terminal():
            raise ConfigError(f"this removes {text}, and nobody is here to be asked", hint="--yes removes them")
        tell(text)
        if not click.confirm("Remove them?", err=True):
            raise click.Abort
    for path in chosen:
        try:
            (path / STAMP).unlink()  # first: what is left of a removal that was stopped is no run any more
            shutil.rmtree(path)
        except OSError as error:
            raise InfraError(f"cannot remove {path}: {error.strerror}") from error
        say(f"removed {path}")
    return 0
