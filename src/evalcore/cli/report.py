"""`evalcore report`: the scorecard of a run, read back from its ledgers."""

from __future__ import annotations

import click

from evalcore.cli.execution import print_report, read_back
from evalcore.cli.output import say_json, tell
from evalcore.cli.resume import RUN
from evalcore.cli.session import Session, with_session
from evalcore.cli.study_options import JSON, options
from evalcore.engine.store import gradings_of


@click.command()
@options(RUN)
@click.option("--grading", metavar="DIGEST", help="Another grading than the run's own, by its digest or its beginning.")
@options(JSON)
@with_session
def report(session: Session, *, run: str, grading: str | None, json: bool | None) -> int:
    """Show the scorecard of RUN, and write its scorecard.json anew.

    RUN is the folder of a run, or its name under ./runs; it may still be running.
    """
    path = session.run_path(run)
    made = read_back(path, session.registry(), grading)
    if json:
        from evalcore.report.scorecard import to_json

        say_json(to_json(made))
    else:
        print_report(made)
    others = [digest for digest in gradings_of(path) if digest != made.grading]
    if others:
        tell(f"other gradings of this run: {', '.join(others)} (--grading DIGEST)")
    return 0
