"""`evalcore power`: what a study can find, and what it costs, before anything is spent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import click
from attrs import evolve

from evalcore.cli.execution import costly
from evalcore.cli.output import paragraph, say, say_json, table
from evalcore.cli.session import Session, with_session
from evalcore.cli.study_options import JSON, options, read_request
from evalcore.engine.plan import Plan, close_plan, make_plan
from evalcore.engine.settings import default_run_name
from evalcore.errors import ConfigError
from evalcore.report.claims import Claim, analysis_of, claims_of
from evalcore.report.comparison_words import width
from evalcore.report.load import load_sides
from evalcore.report.planning import (
    CORRELATION,
    HETEROGENEITY,
    RATE,
    Option,
    Power,
    Size,
    Spread,
    assumed,
    cost_of_trial,
    piloted,
    power_of,
    sides_of,
)  # fmt: skip
from evalcore.report.plugin_metrics import plugin_metrics
from evalcore.report.sides import Side
from evalcore.report.words import UNKNOWN, dollars, percent, plural
from evalcore.values.measure import Measure, find_measure

NOT_A_THRESHOLD = (
    "It is no threshold: a smaller difference can turn out significant, and one below it is no tie. After the run only "
    "the interval counts."
)


def counts(_: click.Context, __: click.Parameter, given: str | None) -> tuple[int, ...]:
    """`50,100,200`."""
    if given is None:
        return ()
    parts = [part.strip() for part in given.split(",")]
    if not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
        raise click.BadParameter(f"expected numbers above 0, as in 50,100, got {given!r}")
    return tuple(sorted({int(part) for part in parts}))


@click.command()
@click.argument("study", metavar="STUDY")
@click.option("--pilot", metavar="RUN", help="Take variances and costs from this run of the same two arms.")
@click.option("--tasks", metavar="N,…", callback=counts, help="Other numbers of tasks to look at.")
@click.option("--repeats", metavar="K,…", callback=counts, help="Other numbers of repeats to look at (1,3,5).")
@click.option("--rate", type=click.FloatRange(0, 1), metavar="P", help=f"Without a pilot: the pass rate ({RATE}).")
@click.option("--icc", type=click.FloatRange(0, 1), metavar="R", help=f"How alike a task's runs are ({CORRELATION}).")
@click.option(
    "--heterogeneity", type=click.FloatRange(0), metavar="V", help=f"Variance of true differences ({HETEROGENEITY})."
)
@options(JSON)
@with_session
def power(
    session: Session,
    *,
    study: str,
    pilot: str | None,
    tasks: tuple[int, ...],
    repeats: tuple[int, ...],
    rate: float | None,
    icc: float | None,
    heterogeneity: float | None,
    json: bool | None,
) -> int:
    """Say what the contrasts of STUDY can find, with how many tasks and repeats, and what that costs.

    Nothing is run. Variances are assumed, and printed, or come from a pilot: a small run of the same arms, each task
    twice or more.
    """
    if pilot is not None and (rate, icc, heterogeneity) != (None, None, None):
        raise click.UsageError("--pilot measures what --rate, --icc and --heterogeneity assume: name one of them")
    made = asyncio.run(_plan(session, study))
    claims = claims_of(made.stamp)
    if not claims:
        raise ConfigError(
            "the study declares no contrast: there is nothing to find", hint="add [[contrasts]] with a, b and a metric"
        )
    metrics = plugin_metrics(session.registry(), session.run_path(pilot or "."), {c.metric for c in claims})
    sides = None if pilot is None else load_sides(session.run_path(pilot), metrics=metrics)
    spread = assumed(*_given(rate, RATE, icc, CORRELATION, heterogeneity, HETEROGENEITY))
    found = [_power(claim, len(claims), made, sides, spread, tasks, repeats, metrics.known) for claim in claims]
    if json:
        say_json(_as_json(found))
    else:
        say(_text(found, made, session))
    return 0


def _given(rate: float | None, r: float, icc: float | None, i: float, h: float | None, d: float) -> Sequence[float]:
    return (r if rate is None else rate, i if icc is None else icc, d if h is None else h)


async def _plan(session: Session, study: str) -> Plan:
    request = read_request(session, {"selectors": (study,)})
    name = request.settings.name or default_run_name(request.study, request.services.clock.now())
    try:
        made = await make_plan(request.study, session.registry(), request.services, name, to_run=False)
        await close_plan(made)
    finally:
        await request.services.close()
    return made


def _power(
    claim: Claim,
    claims: int,
    made: Plan,
    sides: dict[str, Side] | None,
    spread: Spread,
    tasks: Sequence[int],
    repeats: Sequence[int],
    known_measures: Mapping[str, Measure],
) -> Power:
    stamp = next(b.stamp for b in made.benchmarks if b.selector == claim.benchmark)
    size = Size(stamp.tasks, stamp.clusters, stamp.of_tasks)
    analysis, k = analysis_of(made.stamp), made.study.repeats
    measure, trial_usd, reason = find_measure(claim.metric, known_measures), None, claim.problem
    known: Spread | None = spread
    if sides is not None:
        pair = sides_of(claim, sides)
        if pair is None:
            raise ConfigError(
                f"the pilot has no trials of {claim.a} and {claim.b}", hint="a pilot runs the same arms on a few tasks"
            )
        known = piloted(*pair, claim.benchmark, measure)
        costs = [cost_of_trial(side, claim.benchmark) for side in pair]
        trial_usd = None if None in costs else sum(c for c in costs if c is not None)
    elif claim.metric != "pass@1":
        known, reason = None, f"{claim.metric} has no variance that could be assumed: --pilot RUN measures it"
    found = power_of(
        claim, claims, size, k, analysis, known, trial_usd=trial_usd, tasks=tasks, other_repeats=repeats, reason=reason,
        measure=measure,
    )  # fmt: skip
    return found if claim.problem is None else evolve(found, options=(), reason=claim.problem)


# ── as text ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _text(found: Sequence[Power], made: Plan, session: Session) -> str:
    lines = [f"What {made.study.name} can find", ""]
    for one in found:
        lines += [*_of_claim(one), ""]
    priced = any(o.cost_usd is not None for one in found for o in one.options)
    most = made.projection()
    if costly(made.arms, made.study, session.registry()) and not priced:
        money = "not bounded" if most.cost_at_most_usd is None else f"at most {dollars(most.cost_at_most_usd)}"
        lines.append(
            f"cost of the study as written: {money} ({plural(most.trials, 'trial')}); --pilot RUN estimates it"
        )
    lines.append(paragraph(NOT_A_THRESHOLD))
    analysis = analysis_of(made.stamp)
    if analysis.stopping != "fixed":
        said = (
            f"the stopping rule {analysis.stopping} costs sharpness: at the end it finds somewhat less than a single "
            "look of this size, and more often ends early"
        )
        lines.append(paragraph(said))
    return "\n".join(lines)


def _of_claim(one: Power) -> list[str]:
    claim, measure = one.claim, one.measure
    head = f"{claim.a} against {claim.b}, {claim.metric} on {claim.benchmark}"
    if one.spread is None or not one.options:
        return [head, f"  {one.reason or 'nothing can be said'}"]
    size = plural(one.tasks, "task")
    if one.clusters != one.tasks:
        size += f" in {plural(one.clusters, 'cluster')}"
    rows = [("as planned", f"{size}; alpha {one.alpha:.3g} (its share of the family), power {one.power:g}")]
    rows.append(("variances", one.spread.source))
    planned = one.as_planned
    if planned is not None:
        rows.append(("finds", _finds(planned, one)))
    lines = [head, table(rows, indent=2), ""]
    heads = ["tasks", "repeats", "trials", "finds"]
    if claim.margin is not None:
        heads.append(f"shows ±{width(claim.margin, measure)}")
    if any(o.cost_usd is not None for o in one.options):
        heads.append("cost")
    body = [
        [*_row(o, one), "as written" if o.planned else "" if o.reachable else "more tasks than there are"]
        for o in one.options
    ]
    return [*lines, table(body, [*heads, ""], indent=2)]


def _finds(option: Option, one: Power) -> str:
    if option.detectable is None and one.clusters >= 2:
        return "not known: the pilot's tasks all differ by the same, so there is no spread to calculate with"
    if option.detectable is None:
        return "nothing: a test needs two clusters or more, and a verdict six"
    often = f"{100 * one.power:g} % of the time"
    said = f"a difference of {width(round(option.detectable, 4), one.measure)} or more, {often}"
    if one.clusters < 6:
        said += "; but a verdict needs 6 clusters, and there will be none"
    if one.measure.rate and option.detectable > 1:
        said += ", which is more than any two rates can differ"
    return said


def _row(o: Option, one: Power) -> list[str]:
    cells = [f"{o.tasks:,}", f"{o.repeats:,}", f"{o.trials:,}"]
    cells.append(UNKNOWN if o.detectable is None else width(round(o.detectable, 4), one.measure))
    if one.claim.margin is not None:
        cells.append(UNKNOWN if o.margin_power is None else percent(o.margin_power))
    if any(x.cost_usd is not None for x in one.options):
        cells.append(UNKNOWN if o.cost_usd is None else dollars(o.cost_usd))
    return cells


def _as_json(found: Sequence[Power]) -> dict[str, Any]:
    return {
        "schema": "evalcore.power/1",
        "claims": [
            {
                "a": p.claim.a, "b": p.claim.b, "benchmark": p.claim.benchmark, "metric": p.claim.metric,
                "unit": p.measure.unit, "margin": p.claim.margin, "alpha": p.alpha, "power": p.power,
                "tasks": p.tasks, "clusters": p.clusters, "reason": p.reason,
                "spread": None if p.spread is None else {
                    "omega2": p.spread.omega2, "sigma2_a": p.spread.sigma2_a, "sigma2_b": p.spread.sigma2_b,
                    "source": p.spread.source,
                },
                "options": [
                    {
                        "tasks": o.tasks, "repeats": o.repeats, "trials": o.trials, "detectable": o.detectable,
                        "margin_power": o.margin_power, "cost_usd": o.cost_usd, "reachable": o.reachable,
                        "planned": o.planned,
                    }
                    for o in p.options
                ],
            }
            for p in found
        ],
    }  # fmt: skip
