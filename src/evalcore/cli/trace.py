"""`evalcore trace`: the trials of a run as a list, or one of them as it happened."""

from __future__ import annotations

import json as json_
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import click
from attrs import frozen

from evalcore.cli.output import say, table, tell
from evalcore.cli.resume import RUN
from evalcore.cli.session import Session, with_session
from evalcore.cli.study_options import JSON, options
from evalcore.cli.trial_text import trial_text
from evalcore.engine.store import TraceStore, read_attempts, read_gradings, read_stamp
from evalcore.errors import ConfigError
from evalcore.report.load import choose_grading
from evalcore.report.words import plural, seconds
from evalcore.values.arm import Arm
from evalcore.values.convert import from_toml
from evalcore.values.json import JSONObject, dumps
from evalcore.values.redaction import NOTHING, Redaction, RedactionRules, redaction
from evalcore.values.trial import SUCCESSES, Attempt, Grading

SHOWN = 10  # of the trials that a text could mean


@frozen
class Row:
    """One attempt, its verdict and its arm."""

    attempt: Attempt
    grading: Grading | None
    arm: Arm | None

    @property
    def outcome(self) -> str:
        """What became of it, in one word."""
        if self.attempt.void is not None:
            return "void"
        return self.grading.verdict.outcome if self.grading else "not graded"

    @property
    def label(self) -> str:
        """The arm as people know it."""
        return self.arm.label if self.arm else self.attempt.key.arm[:12]


@click.command()
@options(RUN)
@click.argument("trial", required=False, metavar="[TRIAL]")
@click.option("--failed", is_flag=True, help="Only what did not succeed, void attempts included.")
@click.option("--task", metavar="ID", help="Only this task; * and ? stand for any text.")
@click.option("--arm", metavar="ARM", help="Only this configuration: its handle, part of its label, or its digest.")
@click.option("--grading", metavar="DIGEST", help="Another grading than the run's own.")
@click.option("--full", is_flag=True, help="Do not shorten long texts.")
@click.option("--public", is_flag=True, help="Of TRIAL: without what its dataset's terms forbid to show.")
@click.option("--redact", metavar="FILE", help="The same, without what the rules of FILE name, too (docs/reports.md).")
@options(JSON)
@with_session
def trace(
    session: Session,
    *,
    run: str,
    trial: str | None,
    failed: bool,
    task: str | None,
    arm: str | None,
    grading: str | None,
    full: bool,
    public: bool,
    redact: str | None,
    json: bool | None,
) -> int:
    """List the trials of RUN, or show TRIAL: messages, calls, results, exit and verdict.

    TRIAL is an id as the list shows it, or any part that only one trial has. With --json, the list is one object
    a line, and a trial is its events, one a line.
    """
    path = session.run_path(run)
    if trial is None and (public or redact is not None):
        raise click.UsageError("--public and --redact are about one trial: name it")
    rows = (r for r in _rows(path, grading) if _wanted(r, failed=failed, task=task, arm=arm))
    if trial is not None:
        row = _only(rows, trial, path)
        without = _redaction(path, row, redact) if public or redact is not None else NOTHING
        _show(path, row, without, full=full, as_json=bool(json))
    elif json:
        for row in rows:
            _say_line(_row_json(row))
    else:
        _say_list(rows)
    return 0


def _rows(path: Path, grading: str | None) -> Iterator[Row]:
    stamp = read_stamp(path)
    chosen = choose_grading(path, stamp, grading)
    arms = {a.arm.digest: a.arm for a in stamp.arms}
    verdicts = {g.attempt: g for g in read_gradings(path, chosen)}
    for attempt in read_attempts(path):
        yield Row(attempt, verdicts.get(attempt.id), arms.get(attempt.key.arm))


def _wanted(row: Row, *, failed: bool, task: str | None, arm: str | None) -> bool:
    if failed and row.outcome in SUCCESSES:
        return False
    key = row.attempt.key
    if task is not None and key.task != task and not fnmatchcase(key.task, task):
        return False
    handle = row.arm.handle if row.arm else ""
    return arm is None or arm == handle or arm in row.label or key.arm.startswith(arm)


def _only(rows: Iterator[Row], text: str, path: Path) -> Row:
    """The attempt that a text names; of several of one trial, the last. Raises ConfigError."""
    found: dict[str, Row] = {}
    for row in rows:
        if row.attempt.id == text:
            return row
        if text in row.attempt.id:
            found[str(row.attempt.key)] = row
    if not found:
        raise ConfigError(f"no trial {text!r} in {path}", hint=f"`evalcore trace {path}` lists them")
    exact = {k: row for k, row in found.items() if row.attempt.key.task == text}
    found = exact or found
    if len(found) > 1:
        some = ", ".join(list(found)[:SHOWN])
        more = f" and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
        raise ConfigError(f"{text!r} means {len(found):,} trials of {path}: {some}{more}", hint="name more of its id")
    return next(iter(found.values()))


def _redaction(path: Path, row: Row, rules: str | None) -> Redaction:
    """What a trial is shown without. Raises ConfigError if the rules cannot be read."""
    selector = row.attempt.key.benchmark
    dataset = next(b.dataset for b in read_stamp(path).benchmarks if b.selector == selector)
    return redaction(dataset, selector, None if rules is None else from_toml(Path(rules).expanduser(), RedactionRules))


def _show(path: Path, row: Row, without: Redaction, *, full: bool, as_json: bool) -> None:
    store = TraceStore(path)
    try:
        reader = without.trace(store.of(row.attempt))
        grading = row.grading and without.grading(row.grading)
        if as_json:
            for event in reader.events():
                _say_line(event)
        else:
            say("\n".join(trial_text(reader, row.attempt, grading, without.text(row.label), full=full)))
    finally:
        store.close()


def _say_line(value: JSONObject) -> None:
    """One object, one line, in ASCII; what JSON cannot say is in the exact form of `values.json`."""
    line = dumps(value)
    click.echo(line if line.isascii() else json_.dumps(json_.loads(line), separators=(",", ":")))


def _row_json(row: Row) -> JSONObject:
    a = row.attempt
    exit_, void = a.exit, a.void
    return {
        "attempt": a.id,
        "benchmark": a.key.benchmark,
        "task": a.key.task,
        "arm": row.arm.handle if row.arm else None,
        "arm_digest": a.key.arm,
        "repeat": a.key.repeat,
        "number": a.number,
        "outcome": row.outcome,
        "score": row.grading.verdict.score if row.grading else None,
        "exit": None if exit_ is None else {"kind": exit_.kind, "limit": exit_.limit, "detail": exit_.detail},
        "void": None if void is None else {"kind": void.kind, "message": void.message},
        "error": row.grading.error if row.grading else None,
        "wall_s": a.wall_s,
        "tokens": sum(u.tokens for u in a.usage.values()),
        "tool_calls": a.tool_calls,
        "tool_errors": a.tool_errors,
        "provenance": a.provenance,
        "isolation": a.isolation,
    }


def _say_list(rows: Iterator[Row]) -> None:
    shown = [
        (r.outcome, r.attempt.id, r.label, seconds(r.attempt.wall_s), str(r.attempt.tool_calls), _how(r)) for r in rows
    ]
    if shown:
        say(table(shown, ("outcome", "trial", "configuration", "time", "calls", "how it ended")))
    tell(plural(len(shown), "attempt"))


def _how(row: Row) -> str:
    """How the agent ended, or what went wrong."""
    a = row.attempt
    if a.void is not None:
        return f"{a.void.kind}: {a.void.message}"[:200]
    if row.grading is not None and row.grading.error:
        return row.grading.error[:200]
    if a.exit is None:
        return ""
    return a.exit.kind if a.exit.kind == "completed" else ": ".join(filter(None, (a.exit.kind, a.exit.detail)))[:200]
