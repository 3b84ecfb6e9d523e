"""`evalcore rerun`: the study of a run once more, with today's code and data, as a new run linked to the old one."""

from __future__ import annotations

from pathlib import Path

import click
from attrs import evolve

from evalcore.cli.consent import commands_of, consent
from evalcore.cli.execution import Manner, ask, costly, finish, fresh, interruptible, projection, run_options
from evalcore.cli.resume import CONCURRENCY, QUIET, RUN, YES
from evalcore.cli.session import Session, with_session
from evalcore.cli.study_options import JSON, options
from evalcore.engine.execution import read_execution
from evalcore.engine.loop import run_to_end
from evalcore.engine.plan import close_plan, make_plan
from evalcore.engine.run import start, study_of
from evalcore.engine.runner import RunEnd
from evalcore.engine.services import LocalServices, SystemClock
from evalcore.engine.settings import SettingFlags, default_run_name, run_settings
from evalcore.engine.stamping import base_of
from evalcore.engine.store import read_stamp
from evalcore.values.stamp import RunStamp
from evalcore.values.study import Study


@click.command()
@options(RUN)
@click.option("--out", metavar="DIR", help="Where the new run is kept (beside the old one).")
@click.option("--name", metavar="ID", help="Of the new run (time, study, short digest).")
@options(CONCURRENCY, YES, QUIET, JSON)
@with_session
def rerun(
    session: Session,
    *,
    run: str,
    out: str | None,
    name: str | None,
    concurrency: int | None,
    yes: bool,
    quiet: bool,
    json: bool | None,
) -> int:
    """Run the study of RUN again, from the first trial, as a new run.

    The old run stays as it is; the new one names it as its parent. To fill gaps in a run, use `evalcore resume`.
    """
    old = session.run_path(run)
    settings = run_settings(SettingFlags(out=out or str(old.parent), name=name), {})
    before = read_execution(old)
    manner = Manner(concurrency or before.concurrency, yes, bool(json), quiet, before.outage_s)
    stamp = read_stamp(old)
    study = study_of(stamp)
    named = settings.out / (settings.name or default_run_name(study, SystemClock().now()))
    path = named if settings.name else fresh(named)
    with interruptible(path):
        end = run_to_end(_carry_out(session, stamp, study, path, manner))
    return finish(path, end, session.registry(), manner)


async def _carry_out(session: Session, stamp: RunStamp, study: Study, path: Path, manner: Manner) -> RunEnd:
    """Plan the stored study, ask, run."""
    registry = session.registry()
    services = LocalServices(registry, base_of(stamp), stamp.seed)
    try:
        plan = await make_plan(study, registry, services, path.name)
        plan = evolve(plan, stamp=evolve(plan.stamp, parent=stamp.run))
        try:
            manner.tell(projection(plan, manner, registry))
            consent(commands_of(plan), manner)
            ask(costly(plan.arms, plan.study, registry, plan.role_models()), manner)
            end = await start(plan, path, registry, services, run_options(path, manner))
        finally:
            await close_plan(plan)
    finally:
        await services.close()
    return end
