"""`evalcore compare`: what differs between two runs, or two arms of one, and what changed in the outcomes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import click

from evalcore.cli.comparison_text import text
from evalcore.cli.execution import PEEK
from evalcore.cli.output import say, say_json, tell
from evalcore.cli.points import Points
from evalcore.cli.session import Session, with_session
from evalcore.cli.study_options import JSON, options
from evalcore.engine.services import SystemClock
from evalcore.engine.store import read_stamp
from evalcore.errors import ConfigError, UnknownNameError
from evalcore.report.claims import Claim, claims_of
from evalcore.report.compare import Comparison, told
from evalcore.report.compare import compare as compare_sides
from evalcore.report.comparison_words import to_json
from evalcore.report.contrasts import gather_claims, p_values
from evalcore.report.load import load_side, load_sides
from evalcore.report.looks import record_look
from evalcore.report.plugin_metrics import plugin_metrics
from evalcore.report.sides import NO_METRICS, Metrics
from evalcore.values.faults import Wrong
from evalcore.values.measure import find_measure, is_plugins


def names(_: click.Context, __: click.Parameter, given: Sequence[str]) -> tuple[str, ...]:
    """`--treatment a,b --treatment c` is a, b and c."""
    return tuple(dict.fromkeys(name for part in given for n in part.split(",") if (name := n.strip())))


TREATMENT = click.option(
    "--treatment", multiple=True, metavar="AXIS,…", callback=names, help="What it is about: model, harness, any axis."
)
METRIC = click.option("--metric", default="pass@1", metavar="NAME", help="What is compared (pass@1).")
GRADING = click.option("--grading", metavar="DIGEST", help="Another grading than the runs' own, by its digest.")


@click.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="[B]", required=False)
@click.option("--arm-a", metavar="ARM", help="The arm of A: its handle, label or digest.")
@click.option("--arm-b", metavar="ARM", help="The arm of B; without B, a second arm of A.")
@options(TREATMENT, METRIC, GRADING)
@click.option("--grading-b", metavar="DIGEST", help="The same for B alone; without B, a second grading of A.")
@click.option("--margin", metavar="5pp", help="The smallest difference that you care about, in the metric's unit.")
@click.option("--allow-cross-world", is_flag=True, help="Compare across boundaries all the same; exploratory only.")
@options(JSON)
@with_session
def compare(
    session: Session,
    *,
    a: str,
    b: str | None,
    arm_a: str | None,
    arm_b: str | None,
    treatment: tuple[str, ...],
    metric: str,
    grading: str | None,
    grading_b: str | None,
    margin: str | None,
    allow_cross_world: bool,
    json: bool | None,
) -> int:
    """Compare runs A and B, or two arms of A: first the set-up, then the outcomes, paired by task.

    Every difference is A less B. Whatever differs in the set-up and is not named by --treatment refuses the
    comparison (exit 3) if it is a boundary: another dataset version, grader, model, isolation and the like.
    Only a contrast that a study declared before its first trial can be called better or worse.
    """
    path_a = session.run_path(a)
    metrics = lookup(session, path_a, metric)
    wanted = None if margin is None else size_of(margin, metric, "--margin", metrics)
    path_b = path_a if b is None else session.run_path(b)
    if b is None and grading_b is None:
        arm_a, arm_b = _two_arms(path_a, arm_a, arm_b)
    made = compare_sides(
        load_side(path_a, arm_a, grading, metrics),
        load_side(path_b, arm_b, grading_b or grading, metrics),
        treatment=treatment,
        metric=metric,
        margin=wanted,
        allow_cross_world=allow_cross_world,
        family=_family(session, path_a, grading) if path_a == path_b and grading_b is None else None,
    )
    if made.declared and not all(o.confirmatory for o in made.outcomes):
        _note_look(made, (path_a, path_b))
    if json:
        say_json(to_json(made))
    else:
        say(text(made, str(path_a), str(path_b)))
    return 3 if made.refused else 0


def _note_look(made: Comparison, paths: Sequence[Path]) -> None:
    """Declared contrasts were read before the end: each run keeps a record."""
    for side, path in {path: (side, path) for side, path in zip((made.a, made.b), paths, strict=True)}.values():
        arms = [s for s in (made.a, made.b) if s.stamp.run == side.stamp.run]
        record_look(path, sum(len(t.results) for s in arms for t in s.tasks), SystemClock().now())
    tell(PEEK)


def lookup(session: Session, path: Path, metric: str) -> Metrics:
    """The metrics of plugins, where the one that is asked for is not built in."""
    return plugin_metrics(session.registry(), path, [metric]) if is_plugins(metric) else NO_METRICS


def size_of(text: str, metric: str, option: str, metrics: Metrics = NO_METRICS) -> float:
    """A margin as the metric's unit has it: points or a share for a rate, else a plain number."""
    try:
        measure = find_measure(metric, metrics.known)
    except Wrong as wrong:
        raise UnknownNameError("metric", metric, hint=told(wrong)) from None
    if measure.rate:
        return Points().convert(text, None, None)
    try:
        size = float(text)
    except ValueError:
        size = math.nan
    if not (math.isfinite(size) and size > 0.0):
        raise click.BadParameter(f"expected a number of {measure.unit} above 0, got {text!r}", param_hint=option)
    return size


def _family(session: Session, path: Path, grading: str | None) -> dict[Claim, float | None]:
    """What the other contrasts that the run's study declares bring to the adjustment."""
    if not read_stamp(path).study.get("contrasts"):
        return {}
    names = {claim.metric for claim in claims_of(read_stamp(path))}
    metrics = plugin_metrics(session.registry(), path, names) if any(map(is_plugins, names)) else NO_METRICS
    sides = load_sides(path, grading, metrics)
    stamp = next((side.stamp for side in sides.values()), None)
    return {} if stamp is None else p_values(gather_claims(stamp, sides))


def _two_arms(path: Path, arm_a: str | None, arm_b: str | None) -> tuple[str, str]:
    """The arms of one run: as named, or the only two that are no controls. Raises ConfigError."""
    if arm_a is not None and arm_b is not None:
        return arm_a, arm_b
    stamp = read_stamp(path)
    agents = [x.arm.handle for x in stamp.arms if not x.control]
    if arm_a is None and arm_b is None and len(agents) == 2:
        return agents[0], agents[1]
    known = ", ".join(x.arm.handle for x in stamp.arms)
    hint = f"--arm-a and --arm-b name two of {known}; or name another run as B"
    raise ConfigError(f"which two arms of {path} are to be compared?", hint=hint)
