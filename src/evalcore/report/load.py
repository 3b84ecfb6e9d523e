"""From a run's directory to its report: one pass over the ledgers, no trace read."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import evolve

from evalcore.contracts import Metric
from evalcore.engine.floors import read_floors
from evalcore.engine.stopping import read_stops
from evalcore.engine.store import gradings_of, read_attempts, read_grading_stamp, read_gradings, read_stamp
from evalcore.errors import UnknownNameError
from evalcore.report.build import Context, ReportBuilder
from evalcore.report.looks import peeks_of, siblings_of
from evalcore.report.model import Report
from evalcore.report.sides import NO_METRICS, Metrics, Side, SideBuilder, choose_arm
from evalcore.values.descriptors import MetricInfo
from evalcore.values.faults import nearest
from evalcore.values.stamp import RunStamp
from evalcore.values.trial import Attempt, Grading


def load_report(
    path: Path,
    grading: str | None = None,
    metrics: Sequence[tuple[MetricInfo, Metric]] = (),
    *,
    weights: Mapping[str, float] | None = None,
) -> Report:
    """The report of the run at `path`, by the grading it was made with or another, named by its digest or a part of it.

    `weights` are of the composite's dimensions, in the place of the study's. Raises ConfigError if there is no such run
    or grading.
    """
    stamp = read_stamp(path)
    chosen = choose_grading(path, stamp, grading)
    context = Context(floors=read_floors(path) if chosen == stamp.grading else {})
    if stamp.study.get("contrasts"):
        context = evolve(context, peeks=peeks_of(path), siblings=siblings_of(path, stamp), stops=read_stops(path))
    builder = ReportBuilder(_graded_by(path, stamp, chosen), metrics, context=context, weights=weights)
    with no_collector():
        for attempt, verdict in judged(path, stamp, chosen):
            builder.add(attempt, verdict)
    return builder.finish()


def load_sides(path: Path, grading: str | None = None, metrics: Metrics = NO_METRICS) -> dict[str, Side]:
    """Every arm of the run at `path` that has a trial, by the digest of the arm. Raises as `load_side` does."""
    stamp = read_stamp(path)
    chosen = choose_grading(path, stamp, grading)
    graded = _graded_by(path, stamp, chosen)
    builders = {arm.arm.digest: SideBuilder(graded, arm, metrics) for arm in stamp.arms}
    with no_collector():
        for attempt, verdict in judged(path, stamp, chosen):
            if attempt.key.arm in builders:
                builders[attempt.key.arm].add(attempt, verdict)
    stops = _stops(path)
    sides = {digest: evolve(builder.finish(), stops=stops) for digest, builder in builders.items()}
    return {digest: side for digest, side in sides.items() if side.tasks}


def load_side(path: Path, arm: str | None = None, grading: str | None = None, metrics: Metrics = NO_METRICS) -> Side:
    """One arm of the run at `path`, as a comparison needs it. Raises ConfigError if there is no such run or arm."""
    stamp = read_stamp(path)
    chosen = choose_grading(path, stamp, grading)
    builder = SideBuilder(_graded_by(path, stamp, chosen), choose_arm(stamp, arm), metrics)
    with no_collector():
        for attempt, verdict in judged(path, stamp, chosen):
            builder.add(attempt, verdict)
    return evolve(builder.finish(), stops=_stops(path))


def _stops(path: Path) -> dict[str, int]:
    """After how many tasks the stopping rule ended a benchmark."""
    return {selector: stop.tasks for selector, stop in read_stops(path).items()}


def judged(path: Path, stamp: RunStamp, grading: str) -> Iterator[tuple[Attempt, Grading | None]]:
    """Every attempt that may count, with its verdict; what its judge used is put beside what its other roles did.

    Tasks that run only because others require them are left out.
    """
    unscored = {(b.selector, task) for b in stamp.benchmarks for task in b.unscored}
    verdicts = {g.attempt: g for g in read_gradings(path, grading)}
    for attempt in read_attempts(path):
        if not unscored or (attempt.key.benchmark, attempt.key.task) not in unscored:
            verdict = verdicts.pop(attempt.id, None)
            if verdict is not None and verdict.usage:
                attempt = evolve(attempt, usage={**attempt.usage, **verdict.usage})
            yield attempt, verdict


@contextmanager
def no_collector() -> Iterator[None]:
    """Lines become values that hold no cycles; looking for some takes half the time of reading 10,000 trials."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _graded_by(path: Path, stamp: RunStamp, grading: str) -> RunStamp:
    """The stamp, with the graders of a later grading in the place of those that the run was made with."""
    later = read_grading_stamp(path, grading)
    if later is None:
        return evolve(stamp, grading=grading)
    graders = later.graders
    benchmarks = [evolve(b, grader_stamp=graders.get(b.selector, b.grader_stamp)) for b in stamp.benchmarks]
    return evolve(stamp, grading=grading, benchmarks=tuple(benchmarks))


def choose_grading(path: Path, stamp: RunStamp, wanted: str | None) -> str:
    """The grading whose digest begins with `wanted`; the stamp's own by default. Raises UnknownNameError."""
    if wanted is None or wanted == stamp.grading:
        return stamp.grading
    known = gradings_of(path)
    matching = [digest for digest in known if digest.startswith(wanted)]
    if len(matching) == 1:
        return matching[0]
    hint = f"the run has {', '.join(known) or 'none'}"
    raise UnknownNameError("grading", wanted, nearest=matching or nearest(wanted, known), hint=hint)
