"""`evalcore regrade`: grade a run again from what it stored, with the graders of today."""

from __future__ import annotations

import click

from evalcore.cli.execution import print_report, read_back
from evalcore.cli.output import say, say_json
from evalcore.cli.render_errors import rendered_error, tell_error
from evalcore.cli.resume import RUN
from evalcore.cli.session import Session, with_session
from evalcore.cli.study_options import JSON, options
from evalcore.engine import run as engine
from evalcore.engine.loop import run_to_end
from evalcore.errors import InfraError
from evalcore.report.words import plural


@click.command()
@options(RUN, JSON)
@with_session
def regrade(session: Session, *, run: str, json: bool | None) -> int:
    """Grade every executed trial of RUN again. No agent and no model is called.

    With other graders the verdicts go into a new grading beside the old one; `evalcore report RUN --grading
    DIGEST` shows it again.
    """
    path = session.run_path(run)
    stamp, grading, count = run_to_end(engine.regrade(path, session.registry()))
    report = read_back(path, session.registry(), grading)
    same = "with the same graders" if grading == stamp.grading else f"into the new grading {grading}"
    if json:
        from evalcore.report.scorecard import to_json

        say_json({"run": str(path), "grading": grading, "graded": count, "scorecard": to_json(report)})
    else:
        print_report(report)
        say(f"regraded {plural(count, 'trial')}, {same}")
    if count and not any(cell.graded for cell in report.cells):
        failure = InfraError("nothing could be graded", hint=f"`evalcore trace {path} --failed` says why")
        tell_error(rendered_error(failure))
        return failure.exit_code
    return 0
