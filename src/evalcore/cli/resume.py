"""`evalcore resume`: go on with a run that was stopped, crashed, or left trials without a result."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

import click
from attrs import evolve

from evalcore.cli.execution import Manner, ask, costly, finish, interruptible, run_options
from evalcore.cli.progress import CellKey
from evalcore.cli.session import Session, with_session
from evalcore.cli.study_options import JSON, OUTAGE, options
from evalcore.engine import run as engine
from evalcore.engine.fault import MAX_ATTEMPTS
from evalcore.engine.loop import run_to_end
from evalcore.engine.settings import SettingFlags, run_settings
from evalcore.engine.stopping import read_stops
from evalcore.engine.store import read_attempts, read_gradings, read_stamp
from evalcore.errors import ConfigError
from evalcore.plugins import Registry
from evalcore.report.words import plural
from evalcore.values.descriptors import ModelInfo
from evalcore.values.stamp import RunStamp

RUN = click.argument("run", metavar="RUN")
CONCURRENCY = click.option("--concurrency", type=click.IntRange(1), metavar="C", help="Trials at a time (as before).")
YES = click.option("--yes", is_flag=True, help="Do not ask before money is spent.")
QUIET = click.option("--quiet", is_flag=True, help="No progress, and no word but the result.")


@click.command()
@options(RUN)
@click.option("--only-errors", is_flag=True, help="Also try again what is void after every retry, or ungraded.")
@click.option(
    "--budget-usd", type=click.FloatRange(0, min_open=True), metavar="X", help="Of the whole run, from now on."
)
@click.option("--continue-past-stop", is_flag=True, help="Also run what the study's stopping rule has left out.")
@options(CONCURRENCY, OUTAGE, YES, QUIET, JSON)
@with_session
def resume(
    session: Session,
    *,
    run: str,
    only_errors: bool,
    budget_usd: float | None,
    continue_past_stop: bool,
    concurrency: int | None,
    outage_s: float | None,
    yes: bool,
    quiet: bool,
    json: bool | None,
) -> int:
    """Go on with RUN: grade what was executed, run what is missing or void.

    RUN is the folder of a run, or its name under ./runs. Nothing that has a result runs again; a run whose
    tasks, configurations or graders are no longer the same is refused.
    """
    path = session.run_path(run)
    settings = run_settings(SettingFlags(concurrency=concurrency, outage_s=outage_s), session.environ)
    manner = Manner(settings.concurrency, yes, bool(json), quiet, settings.outage_s)
    stamp = read_stamp(path)
    study = engine.study_of(stamp)
    stops = read_stops(path)
    if continue_past_stop and not stops:
        raise ConfigError(
            f"run {stamp.run} was not ended by its stopping rule", hint="leave --continue-past-stop out: resume goes on"
        )
    missing = _missing(path, stamp, refill=only_errors, over=() if continue_past_stop else stops)
    ended = stops and not continue_past_stop
    manner.tell(f"{path}: {_at_most(missing, ended=', '.join(stops) if ended else '')}")
    if missing and not (stamp.replay and not stamp.replay["record_missing"]):
        arms = [a.arm for a in stamp.arms]
        ask(costly(arms, study, session.registry(), _others(stamp, session.registry())), manner)
    how = run_options(path, manner, _counts(path, stamp))
    how = evolve(how, budget_usd=budget_usd, past_stop=continue_past_stop)
    with interruptible(path):
        _, end, notes = run_to_end(engine.resume(path, session.registry(), how, only_errors=only_errors))
    for note in notes:
        manner.tell(f"note: {note}")
    return finish(path, end, session.registry(), manner)


def _others(stamp: RunStamp, registry: Registry) -> set[str]:
    """The models of users and judges: an arm's own, else upstream's where there is a key for it."""
    infos = registry.all(ModelInfo)

    def has_key(model: str) -> bool:
        info = infos.get(model.partition("/")[0])
        return info is not None and (not info.keys or any(os.environ.get(key) for key in info.keys))

    found: set[str] = set()
    for arm in stamp.arms:
        for role, default in ((role, model) for b in stamp.benchmarks for role, model in b.roles.items()):
            chosen = arm.arm.axes.get(f"{role}_model")
            if role == "user" and arm.control:  # whose user is scripted
                continue
            if chosen is not None:
                found.add(str(chosen))
            elif default and has_key(default):
                found.add(default)
    return found


def _at_most(missing: int, ended: str) -> str:
    """What is to run; `ended` names the benchmarks that the stopping rule has ended."""
    if missing:
        return f"at most {plural(missing, 'trial')} to run"
    return f"the stopping rule has ended {ended}: nothing to run" if ended else "every trial has run"


def _missing(path: Path, stamp: RunStamp, *, refill: bool, over: Collection[str]) -> int:
    """How many trials may have to run: as planned, without those that ran, were given up, or are of what is over."""
    standing = engine.standing_of(path, stamp.grading, refill=refill).items()
    settled = sum((s.executed is not None or s.voids >= MAX_ATTEMPTS) and k.benchmark not in over for k, s in standing)
    twice = isinstance(stamp.study.get("faults"), dict)  # without faults and with them, at most
    tasks = sum(b.tasks + len(b.unscored) for b in stamp.benchmarks if b.selector not in over)
    planned = stamp.repeats * (1 + twice) * len(stamp.arms) * tasks
    return max(0, planned - settled)


def _counts(path: Path, stamp: RunStamp) -> dict[CellKey, dict[str, int]]:
    """Outcomes so far, by cell."""
    verdicts = {g.attempt: g.verdict.outcome for g in read_gradings(path, stamp.grading)}
    counts: dict[CellKey, dict[str, int]] = {}
    for attempt in read_attempts(path):
        outcome = "void" if attempt.void is not None else verdicts.get(attempt.id)
        if outcome is not None and outcome != "grader_error":
            cell = counts.setdefault((attempt.key.benchmark, attempt.key.arm), {})
            cell[outcome] = cell.get(outcome, 0) + 1
    return counts
