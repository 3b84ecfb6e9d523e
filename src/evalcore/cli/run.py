"""`evalcore run`: from selectors or a study file to a scorecard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evalcore.cli.consent import commands_of, consent
from evalcore.cli.execution import (
    Manner,
    ask,
    costly,
    explain_controls,
    finish,
    fresh,
    interruptible,
    projection,
    run_options,
)
from evalcore.cli.session import Session, with_session
from evalcore.cli.study_options import HOW, JSON, WHAT, Request, options, read_request
from evalcore.engine.loop import run_to_end
from evalcore.engine.plan import close_plan, make_plan
from evalcore.engine.replay import Replay
from evalcore.engine.run import start
from evalcore.engine.runner import RunEnd
from evalcore.engine.settings import default_run_name
from evalcore.errors import ConfigError


@click.command()
@options(*WHAT, *HOW)
@click.option("--replay", metavar="RUN", help="Give the model's answers of this run again; ask no model.")
@click.option("--record-missing", is_flag=True, help="With --replay: ask the model what was not recorded.")
@options(JSON)
@with_session
def run(session: Session, replay: str | None, record_missing: bool, **given: Any) -> int:
    """Run benchmarks, or a study file, and print the scorecard.

    SELECTOR is a benchmark (NAME, NAME@SPLIT, NAME:PARAMETER), a group, TASKS.jsonl or STUDY.toml. Without a model and
    a harness the two controls run: they show that the rig is sound.
    """
    if record_missing and replay is None:
        raise ConfigError("--record-missing goes with --replay RUN")
    source = None if replay is None else Replay(session.run_path(replay), record_missing)
    request = read_request(session, given)
    settings = request.settings
    manner = Manner(settings.concurrency, settings.yes, settings.json, settings.quiet, settings.outage_s)
    preface = ""
    if request.controls_only and not manner.quiet:
        preface = f"{explain_controls(request.study.benchmarks, session, request.unasked)}\n\n"
    path = _path(request)
    with interruptible(path):
        end = run_to_end(_carry_out(session, request, path, manner, preface, source))
    return finish(path, end, session.registry(), manner)


def _path(request: Request) -> Path:
    """Where the run will be."""
    settings = request.settings
    if settings.name is not None:
        return settings.out / settings.name
    return fresh(settings.out / default_run_name(request.study, request.services.clock.now()))


async def _carry_out(
    session: Session, request: Request, path: Path, manner: Manner, preface: str, replay: Replay | None
) -> RunEnd:
    """Plan, ask, run."""
    registry, services = session.registry(), request.services
    try:
        plan = await make_plan(request.study, registry, services, path.name, replay=replay)
        try:
            manner.tell(preface + projection(plan, manner, registry))
            consent(commands_of(plan), manner)
            if not plan.parts.offline:
                ask(costly(plan.arms, plan.study, registry, plan.role_models()), manner)
            end = await start(plan, path, registry, services, run_options(path, manner))
        finally:
            await close_plan(plan)
    finally:
        await services.close()
    return end
