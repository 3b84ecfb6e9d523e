"""How run, resume and rerun ask, watch, read back and end."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
from attrs import asdict, frozen

from evalcore.cli import keys
from evalcore.cli.output import console, on_terminal, paragraph, say, say_json, table, tell
from evalcore.cli.progress import Counts, Watcher
from evalcore.cli.render_errors import rendered_error, tell_error
from evalcore.cli.session import Session
from evalcore.cli.unasked import VARIABLE as BOX
from evalcore.cli.unasked import Unasked
from evalcore.engine.measuring import made_metrics
from evalcore.engine.plan import Plan, Projection
from evalcore.engine.run import RunOptions
from evalcore.engine.runner import DEFAULT_CONCURRENCY, RunEnd
from evalcore.engine.services import SystemClock
from evalcore.engine.stopping import StopsRuns
from evalcore.engine.store import STAMP, write_durably
from evalcore.errors import ConfigError, EvalcoreError, InfraError, Interrupted
from evalcore.plugins import Registry
from evalcore.report.analysis import Stopped
from evalcore.report.load import load_report
from evalcore.report.looks import note_peek
from evalcore.report.model import Report
from evalcore.report.words import dollars, plural, seconds
from evalcore.values.arm import Arm
from evalcore.values.descriptors import ModelInfo
from evalcore.values.stamp import BenchmarkStamp
from evalcore.values.study import Study

PEEK: Final = "note: the contrasts are read before the study is at its end; the run keeps a record of it (looks.jsonl)"
SCORECARD: Final = "scorecard.json"


@frozen
class Manner:
    """How a verb carries out a run and tells of it."""

    concurrency: int | None = None
    yes: bool = False
    json: bool = False
    quiet: bool = False
    outage_s: float | None = None  # how long a provider that is down is waited for

    def tell(self, text: str = "") -> None:
        """Beside the result, unless that was not wanted."""
        if not self.quiet:
            tell(text)


# ── before ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def projection(plan: Plan, manner: Manner, registry: Registry) -> str:
    """What the run would do and could use at most, as lines."""
    most = plan.projection()
    dear = [] if plan.parts.offline else costly(plan.arms, plan.study, registry, plan.role_models())
    repeats = f" × {plan.study.repeats}" if plan.study.repeats > 1 else ""
    rows = [("trials", f"{most.trials:,}: {_what_runs(plan)}{repeats}"), ("models", _models(plan, most))]
    if dear:
        tokens, money = most.tokens_at_most, most.cost_at_most_usd
        rows.append(("tokens", "not bounded" if tokens is None else f"at most {tokens:,}"))
        rows.append(("money", "not bounded" if money is None else f"at most {dollars(money)}"))
    if most.model_trials and most.longest_trial_s is not None:
        ways = min(manner.concurrency or DEFAULT_CONCURRENCY, most.trials)
        rounds = math.ceil(most.trials / ways)
        rows.append(("time", f"at most {_duration(rounds * most.longest_trial_s)}, {ways} at a time, without retries"))
    rows += [("note", note) for note in (*plan.notes, *(most.notes if dear else ()))]
    return table(rows, indent=2)


def _what_runs(plan: Plan) -> str:
    """Tasks × configurations; benchmark by benchmark where one of them does not run every configuration."""
    arms = len(plan.arms)
    places = {*plan.cells, *plan.faulted}
    here = {b.selector: sum((b.selector, arm.digest) in places for arm in plan.arms) for b in plan.benchmarks}
    sizes = {b.selector: f"{b.selector} ({size_of(b.stamp)})" for b in plan.benchmarks}
    if all(n == arms for n in here.values()):
        return f"{' + '.join(sizes.values())} × {plural(arms, 'configuration')}"
    return " + ".join(f"{sizes[name]} × {n} of {plural(arms, 'configuration')}" for name, n in here.items())


def size_of(benchmark: BenchmarkStamp) -> str:
    """How many tasks are scored, and how many more run because those require them."""
    required = len(benchmark.unscored)
    return plural(benchmark.tasks, "task") + (f" and {required:,} that they require" if required else "")


def _models(plan: Plan, most: Projection) -> str:
    models = sorted({cell.arm.model for cell in plan.every_cell() if cell.arm.model} | set(plan.role_models()))
    return f"{', '.join(models)}, in {plural(most.model_trials, 'trial')}" if models else "none is called"


def _duration(value: float) -> str:
    """Hours from two of them on."""
    return seconds(value) if value < 7200 else f"{math.ceil(value / 3600):,} h"


def costly(arms: Iterable[Arm], study: Study, registry: Registry, others: Iterable[str] = ()) -> list[str]:
    """The models that may cost money, in any role: all but those that say they are free.

    A server on this machine is none of those: it may pass a bill on.
    """
    models = {arm.model for arm in arms if arm.model} | set(others)
    models |= {role.model for role in study.roles.values() if role.model}
    infos = registry.all(ModelInfo)
    free = {name for name, info in infos.items() if info.free and not info.keys}
    return sorted(m for m in models if m.partition("/")[0] not in free)


def ask(models: Sequence[str], manner: Manner) -> None:
    """Ask before money is spent. Raises ConfigError where nobody can answer, click.Abort if the answer is no."""
    if not models or manner.yes:
        return
    if not on_terminal():
        raise ConfigError(
            f"this calls {', '.join(models)}, which may cost money, and nobody is here to be asked",
            hint="--yes runs it all the same; `evalcore plan` shows what it would do",
        )
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # asyncio's would wait for the answer
    try:
        answer = click.confirm(f"Call {', '.join(models)}?", err=True)
    except click.Abort:
        tell()  # what follows stands on a line of its own
        raise
    finally:
        signal.signal(signal.SIGINT, before)
    if not answer:
        raise click.Abort


@contextmanager
def interruptible(path: Path) -> Iterator[None]:
    """Ctrl-C before the engine listens to it, or after: raises Interrupted, with how to go on if a run was made."""
    try:
        yield
    except KeyboardInterrupt:
        made = (path / STAMP).is_file()
        hint = f"`evalcore resume {path}` goes on" if made else None
        raise Interrupted("the run was stopped" if made else "nothing was run", hint=hint) from None


# ── while it runs ────────────────────────────────────────────────────────────────────────────────────────────────────


def run_options(path: Path, manner: Manner, before: Counts | None = None) -> RunOptions:
    """With progress, and with what Ctrl-C says."""
    watcher = Watcher(f"evalcore resume {path}", manner.quiet, before or {})
    watch = None if manner.quiet else watcher.watch
    return RunOptions(
        manner.concurrency, watch=watch, on_stop=watcher.stopping, outage_s=manner.outage_s, rule_of=_rule_of
    )


def _rule_of(plan: Plan, path: Path) -> StopsRuns | None:
    """The study's stopping rule; imported when a run begins."""
    from evalcore.report.stopping import rule_of

    return rule_of(plan, path)


# ── after ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_back(
    path: Path, registry: Registry, grading: str | None = None, weights: Mapping[str, float] | None = None
) -> Report:
    """The report of a run, with the metrics of plugins; the scorecard is written anew. Raises ConfigError.

    Reading declared contrasts before the study is at its end is recorded in the run, and told.
    """
    from evalcore.report.scorecard import encode

    report = load_report(path, grading, made_metrics(path, registry), weights=weights)
    if report.design is not None and note_peek(path, report, SystemClock().now()):
        tell(PEEK)
    if weights:
        return report  # another reading of the run, and not what it is kept with
    try:
        write_durably(path / SCORECARD, encode(report))
    except OSError as error:
        tell(f"warning: cannot write {path / SCORECARD}: {error.strerror}")
    return report


def print_report(report: Report) -> None:
    """The scorecard as tables."""
    from evalcore.report.text import render

    render(report, console())


def finish(path: Path, end: RunEnd, registry: Registry, manner: Manner) -> int:
    """Read the run back, show it, say how it ended and how to see more. Returns the exit code."""
    report = read_back(path, registry)
    error = _failure(path, end, report)
    code = end.exit_code if end.error or not error else error.exit_code
    if manner.json:
        say_json(_as_json(path, end, code, error, report))
    else:
        print_report(report)
        rows = [("run", f"{path}"), ("report", f"evalcore report {path}"), ("trials", f"evalcore trace {path} [TRIAL]")]
        say(table(rows))
    if error is not None:
        tell_error(rendered_error(error))
    else:
        if end.asked_to_stop:
            tell("asked to stop when every trial had begun: they were finished, and the run is done")
        if text := _ending(path, end, sum(cell.planned - cell.graded for cell in report.cells)):
            tell(text)
    return code


def _failure(path: Path, end: RunEnd, report: Report) -> EvalcoreError | None:
    """What stopped the run, or that it measured nothing; with what to do next."""
    if end.error is not None:
        end.error.hint = end.error.hint or f"what finished is kept; `evalcore resume {path}` goes on"
        return end.error
    if end.reason != "done" or any(cell.graded for cell in report.cells):
        return None
    again = f"evalcore resume {path} --only-errors" if end.voids_left else f"evalcore regrade {path}"
    hint = f"`evalcore trace {path}` says why; then `{again}`"
    return InfraError("nothing could be measured: no trial has a result", hint=hint)


def _ending(path: Path, end: RunEnd, missing: int) -> str | None:
    """Why it ended, if not because all was done."""
    if end.reason == "interrupted":
        return f"stopped: {plural(missing, 'trial')} without a result; `evalcore resume {path}` goes on"
    if end.reason == "rule":
        said = "\n".join(Stopped(stop).sentence for stop in end.stops)
        more = f"`evalcore resume {path} --continue-past-stop` runs the rest, which stays exploratory"
        return f"{said}\n{more}"
    if end.reason == "budget":
        more = f"`evalcore resume {path} --budget-usd X` goes on with more"
        return f"the budget is spent: {plural(missing, 'trial')} without a result; what finished is kept; {more}"
    if end.voids_left:
        again = f"`evalcore resume {path} --only-errors` tries again"
        return f"{plural(end.voids_left, 'trial')} failed for want of infrastructure, every time; {again}"
    return None


def _as_json(path: Path, end: RunEnd, code: int, error: EvalcoreError | None, report: Report) -> dict[str, object]:
    from evalcore.report.scorecard import to_json

    return {
        "run": str(path),
        "reason": end.reason,
        "exit_code": code,
        "voids_left": end.voids_left,
        "stops": [asdict(stop) for stop in end.stops],
        "error": rendered_error(error).as_json() if error else None,
        "scorecard": to_json(report),
    }


def fresh(path: Path) -> Path:
    """The path, or with a number if it is taken: two runs may begin in one second."""
    number, free = 2, path
    while free.exists():
        free = path.with_name(f"{path.name}-{number}")
        number += 1
    return free


def explain_controls(selectors: Sequence[str], session: Session, beside: Unasked) -> str:
    """What a run without a model shows, what not, and how to name one."""
    text = (
        "No model is named, so the two controls run: the oracle plays each task's known solution, noop does nothing. "
        "They show that the rig is sound, from the tools to the grader; they are no score of any agent."
    )
    if beside.ready is not None:
        text += (
            f" Beside them runs {beside.ready.unasked}, {beside.ready.note}. Each task takes it seconds: `--limit 25` "
            f"shortens the run, {BOX}=0 leaves it out."
        )
    lines = [paragraph(text), f"To measure one: evalcore run {' '.join(selectors)} --model PROVIDER/NAME"]
    if beside.absent is not None:
        lines.append(f"`evalcore setup {beside.absent.unasked}` adds {beside.absent.note}")
    return "\n".join([*lines, *keys.offers(session.registry(), session.environ)])
