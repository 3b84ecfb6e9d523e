"""`evalcore gate`: a run against a baseline, for CI: exit 0, 1 or 3, and the reason in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from evalcore.cli.compare import GRADING, METRIC, TREATMENT, lookup, size_of
from evalcore.cli.comparison_text import set_up
from evalcore.cli.output import paragraph, say, say_json
from evalcore.cli.resume import RUN
from evalcore.cli.session import Session, with_session
from evalcore.cli.study_options import JSON, options
from evalcore.engine.store import write_durably
from evalcore.errors import InfraError
from evalcore.report.compare import compare
from evalcore.report.gate import Gate, gate_json, junit, markdown
from evalcore.report.gate import gate as decide
from evalcore.report.load import load_side

STDOUT: Final = "-"


@click.command()
@options(RUN)
@click.option("--baseline", required=True, metavar="RUN", help="The run that it must not be worse than.")
@click.option("--max-drop", required=True, metavar="5pp", help="What matters: 5pp, 0.05, or the metric's unit.")
@options(METRIC, GRADING)
@click.option("--baseline-grading", metavar="DIGEST", help="The same for the baseline alone.")
@click.option(
    "--on-inconclusive", type=click.Choice(["pass", "fail"]), default="fail", help="When trials are too few (fail)."
)
@click.option("--arm", metavar="ARM", help="The arm of RUN: its handle, label or digest.")
@click.option("--baseline-arm", metavar="ARM", help="The arm of the baseline.")
@options(TREATMENT)
@click.option("--junit", "junit_file", metavar="FILE", help="Write the answer as JUnit XML.")
@click.option("--markdown", "markdown_file", metavar="FILE|-", help="Write it as Markdown; - is standard output.")
@options(JSON)
@with_session
def gate(
    session: Session,
    *,
    run: str,
    baseline: str,
    max_drop: str,
    metric: str,
    grading: str | None,
    baseline_grading: str | None,
    on_inconclusive: str,
    arm: str | None,
    baseline_arm: str | None,
    treatment: tuple[str, ...],
    junit_file: str | None,
    markdown_file: str | None,
    json: bool | None,
) -> int:
    """Fail unless RUN is shown not to be worse than the baseline by --max-drop: a test of non-inferiority.

    With a --metric of which less is better (tokens, cost_per_solve_usd, …) worse is more, and --max-drop is in its
    unit.

    Exit 0: passed. 1: failed, or too few trials to tell. 3: refused, because the two are not comparable.
    Too few trials fail, because "no drop was found" is not "there is none"; it says how many would decide.
    """
    if json and markdown_file == STDOUT:
        raise click.UsageError("--json and --markdown - both want standard output")
    metrics = lookup(session, session.run_path(run), metric)
    drop = size_of(max_drop, metric, "--max-drop", metrics)
    ours = load_side(session.run_path(run), arm, grading, metrics)
    theirs = load_side(session.run_path(baseline), baseline_arm, baseline_grading or grading, metrics)
    comparison = compare(ours, theirs, treatment=treatment, metric=metric, margin=None)
    made = decide(comparison, drop, lenient=on_inconclusive == "pass")
    if junit_file is not None:
        _write(Path(junit_file).expanduser(), junit(made))
    if markdown_file not in (None, STDOUT):
        _write(Path(str(markdown_file)).expanduser(), markdown(made).encode("utf-8", "backslashreplace"))
    if json:
        say_json(gate_json(made))
    elif markdown_file == STDOUT:
        say(markdown(made).rstrip("\n"))
    else:
        say("\n".join(_lines(made)))
    return made.exit_code


def _lines(made: Gate) -> list[str]:
    lines = [paragraph(made.sentence)]
    if len(made.checked) > 1:
        lines += ["", *(paragraph(f"{c.outcome.benchmark}: {c.answer}: {c.reason}") for c in made.checked)]
    return [
        *lines,
        "",
        "What differs in the set-up (A: the run, B: the baseline)",
        *set_up(made.comparison.differences),
    ]


def _write(file: Path, data: bytes) -> None:
    try:
        write_durably(file, data)
    except OSError as error:
        raise InfraError(f"cannot write {file}: {error.strerror}") from error
