"""`evalcore plan`: what a run would do, and the study file of it. Nothing is run and nothing is spent."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from evalcore.cli.execution import Manner, explain_controls, projection, size_of
from evalcore.cli.output import say, say_json, table, tell
from evalcore.cli.session import Session, with_session
from evalcore.cli.study_options import HOW, JSON, WHAT, Request, options, read_request
from evalcore.engine.plan import Plan, close_plan, make_plan
from evalcore.engine.settings import default_run_name
from evalcore.engine.study_file import write_study
from evalcore.errors import ConfigError, InfraError
from evalcore.plugins import Registry
from evalcore.report.words import plural
from evalcore.values.arm import Arm
from evalcore.values.json import JSONValue

WRITE = click.option("--write", metavar="FILE|-", help="Write the study as TOML; - is standard output.")


@click.command()
@options(*WHAT, *HOW, WRITE, JSON)
@with_session
def plan(session: Session, *, write: str | None, **given: Any) -> int:
    """Say what `evalcore run` with these options would do.

    Tasks are loaded and harnesses probed; no agent and no model is called.
    """
    request = read_request(session, given)
    manner = Manner(request.settings.concurrency)
    made = asyncio.run(_make(session, request))
    if write == "-":
        say(write_study(request.study).rstrip("\n"))
    elif request.settings.json:
        say_json(_as_json(made))
    else:
        if request.controls_only:
            tell(explain_controls(request.study.benchmarks, session, request.unasked))
        say(_text(made, manner, session.registry()))
    if write not in (None, "-"):
        _write(Path(str(write)).expanduser(), write_study(request.study))
    return 0


async def _make(session: Session, request: Request) -> Plan:
    name = request.settings.name or default_run_name(request.study, request.services.clock.now())
    try:
        made = await make_plan(request.study, session.registry(), request.services, name, to_run=False)
        await close_plan(made)
    finally:
        await request.services.close()
    return made


def _text(made: Plan, manner: Manner, registry: Registry) -> str:
    parts = [
        f"study {made.study.name}, digest {made.study.digest[:12]}",
        projection(made, manner, registry),
        "",
        "configurations",
    ]
    for arm in made.arms:
        parts += [f"  {arm.handle}: {arm.label}", table(list(_axes(arm)), indent=4)]
    parts += ["", "benchmarks"]
    for b in made.benchmarks:
        data = b.stamp.dataset
        limits = ", ".join(f"{k} {v:,}" for k, v in b.stamp.limits.as_json().items() if v is not None)
        rows = [
            ("tasks", f"{size_of(b.stamp)} in {plural(b.stamp.clusters, 'cluster')}"),
            ("dataset", f"{data.name} {data.version} ({data.date}, {data.status}), {data.licence}"),
            ("grader", b.stamp.grader),
            ("limits", f"{limits}{'' if b.stamp.standard_limits else ' (not those of the benchmark)'}"),
        ]
        parts += [f"  {b.selector}", table(rows, indent=4)]
    return "\n".join(parts)


def _axes(arm: Arm) -> list[tuple[str, str]]:
    """Every axis of an arm; what stands at its default says so."""
    return [(k, f"{_shown(v)}{' (default)' if arm.defaults.get(k, ...) == v else ''}") for k, v in arm.axes.items()]


def _shown(value: JSONValue) -> str:
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def _as_json(made: Plan) -> dict[str, object]:
    most = made.projection()
    return {
        "study": made.study.as_json(),
        "digest": made.study.digest,
        "arms": [
            {"handle": a.handle, "label": a.label, "digest": a.digest, "axes": dict(a.axes), "content": dict(a.content)}
            for a in made.arms
        ],
        "benchmarks": [
            {
                "selector": b.selector,
                "dataset": {"name": b.stamp.dataset.name, "version": b.stamp.dataset.version},
                "tasks": b.stamp.tasks,
                "clusters": b.stamp.clusters,
                "tasks_digest": b.stamp.tasks_digest,
                "grader": b.stamp.grader,
                "limits": b.stamp.limits.as_json(),
                "standard_limits": b.stamp.standard_limits,
            }
            for b in made.benchmarks
        ],
        "grading": made.stamp.grading,
        "projection": {
            "trials": most.trials,
            "model_trials": most.model_trials,
            "tokens_at_most": most.tokens_at_most,
            "cost_at_most_usd": most.cost_at_most_usd,
            "wall_at_most_s": most.wall_at_most_s,
        },
        "notes": [*made.notes, *most.notes],
    }


def _write(file: Path, text: str) -> None:
    """A new file: a study that is there is not replaced. Raises ConfigError, InfraError."""
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise ConfigError(f"{file} exists already", hint="name another file, or remove it") from None
    except OSError as error:
        raise InfraError(f"cannot write {file}: {error.strerror}") from error
    tell(f"wrote {file}; `evalcore run {file}` runs it")
