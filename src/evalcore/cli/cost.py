"""`evalcore cost`: what a run spent, by role and arm; what void attempts spent stands apart."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import click

from evalcore.cli.output import say, say_json, table
from evalcore.cli.resume import RUN
from evalcore.cli.session import Session, with_session
from evalcore.cli.study_options import JSON, options
from evalcore.report.columns import name_of
from evalcore.report.load import load_report
from evalcore.report.model import Cell, Report, RoleUsage
from evalcore.report.words import UNKNOWN, dollars
from evalcore.values.task import ROLES, Role

SCHEMA = "evalcore.cost/1"


@click.command()
@options(RUN)
@click.option("--grading", metavar="DIGEST", help="Another grading than the run's own: its judge may have cost more.")
@options(JSON)
@with_session
def cost(session: Session, *, run: str, grading: str | None, json: bool | None) -> int:
    """Say what RUN spent: by benchmark and configuration, by role, and in all.

    The run may still be going on. Money is not known where a model has no price; then the tokens say how much it was,
    and what is known is given as at least.
    """
    path = session.run_path(run)
    report = load_report(path, grading)
    budget = report.budget_usd
    say_json(_as_json(report, budget)) if json else say("\n".join(_lines(report, budget)))
    return 0


def _lines(report: Report, budget: float | None) -> Iterator[str]:
    yield f"What {report.run} spent"
    for cell in report.cells:
        yield ""
        yield f"{name_of(cell)}, {cell.benchmark.selector}: {_progress(cell)}"
        rows = [*_rows("", cell.usage), *_rows("void or repeated, ", cell.wasted)]
        yield (
            table(rows, ("", "calls", "tokens in", "of them cached", "out", "cost"), indent=2)
            if rows
            else ("  no model was called")
        )
    yield ""
    total, wasted = _total(report, "usage"), _total(report, "wasted")
    rows = [("counted", _money(*total)), ("void or repeated", _money(*wasted))]
    rows.append(("in all", _money(total[0] + wasted[0], total[1] + wasted[1])))
    if budget is not None:
        rows.append(("budget", dollars(budget)))
    yield table(rows)


def _progress(cell: Cell) -> str:
    """`5 of 114 trials`: those that ran, of those planned."""
    return f"{cell.executed:,} of {cell.planned:,} trials"


def _rows(prefix: str, usage: Mapping[Role, RoleUsage]) -> Iterator[tuple[str, ...]]:
    for role in ROLES:
        used = usage.get(role)
        if used is None or not used.usage.calls:
            continue
        u = used.usage
        least = "≥ " if u.unreported else ""
        cost = _money(used.known_usd, used.unpriced)
        yield (
            f"{prefix}{role}", f"{u.calls:,}", f"{least}{u.input:,}", f"{u.cache_read:,}", f"{least}{u.output:,}",
            cost if used.reason is None else f"{cost} ({used.reason})",
        )  # fmt: skip


def _money(known: float, unpriced: int) -> str:
    if not unpriced:
        return dollars(known)
    return f"at least {dollars(known)}" if known else UNKNOWN


def _total(report: Report, which: str) -> tuple[float, int]:
    """What is known, and how many trials have no price."""
    used: list[RoleUsage] = [u for cell in report.cells for u in getattr(cell, which).values()]
    return math.fsum(u.known_usd for u in used), sum(u.unpriced for u in used)


def _as_json(report: Report, budget: float | None) -> dict[str, Any]:
    def sums(which: str) -> dict[str, Any]:
        known, unpriced = _total(report, which)
        return {"known_usd": known, "unpriced_trials": unpriced, "cost_usd": None if unpriced else known}

    return {
        "schema": SCHEMA,
        "run": report.run,
        "budget_usd": budget,
        "total": sums("usage"),
        "wasted": sums("wasted"),
        "cells": [
            {
                "benchmark": cell.benchmark.selector,
                "arm": {"handle": cell.arm.arm.handle, "label": cell.arm.arm.label, "digest": cell.arm.arm.digest},
                "provenance": cell.provenance,
                "isolation": cell.isolation,
                "executed": cell.executed,
                "planned": cell.planned,
                "usage": {role: _role(used) for role, used in cell.usage.items()},
                "wasted": {role: _role(used) for role, used in cell.wasted.items()},
            }
            for cell in report.cells
        ],
    }


def _role(used: RoleUsage) -> dict[str, Any]:
    return {
        **used.usage.as_json(),
        "known_usd": used.known_usd,
        "unpriced_trials": used.unpriced,
        "reason": used.reason,
    }
