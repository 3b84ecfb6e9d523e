"""`evalcore serve`: one task's wires held open, so that a person can play it with any client."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import click
from attrs import define, evolve, frozen

from evalcore import __version__
from evalcore.cli.consent import commands_of, consent
from evalcore.cli.execution import Manner, ask, costly, finish, fresh, interruptible
from evalcore.cli.output import say, tell
from evalcore.cli.session import Session, with_session
from evalcore.cli.study_options import JSON, options
from evalcore.contracts import Job
from evalcore.engine.flags import StudyFlags, study_from_flags
from evalcore.engine.loop import run_to_end
from evalcore.engine.parts import vocabulary
from evalcore.engine.person import NAME, Person, plugin
from evalcore.engine.plan import Plan, close_plan, make_plan
from evalcore.engine.run import RunOptions, start
from evalcore.engine.runner import RunEnd
from evalcore.engine.selectors import find_benchmark
from evalcore.engine.services import LocalServices
from evalcore.engine.settings import SettingFlags, default_run_name, run_settings
from evalcore.engine.store import read_gradings, read_stamp
from evalcore.errors import ConfigError
from evalcore.plugins import PluginRef
from evalcore.report.words import plural
from evalcore.values.descriptors import GroupInfo
from evalcore.values.study import Study
from evalcore.values.task import Message

LEAVE_S: Final = 60.0  # the trial's own limit on time is so much longer: we end it first, and say so
LONGEST_S: Final = 7 * 24 * 3600.0
_DURATION: Final = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?)(?P<unit>[smh]?)")
_UNITS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def _seconds(_: click.Context, __: click.Parameter, text: str) -> float:
    match = _DURATION.fullmatch(text.strip())
    value = float(match["number"]) * _UNITS[match["unit"]] if match else 0.0
    if not 0 < value <= LONGEST_S:
        raise click.BadParameter(f"expected a time such as 90s, 30m or 2h, at most 7 days, got {text!r}")
    return value


@click.command()
@click.argument("selector")
@click.option("--task", required=True, metavar="ID", help="The one to play: `evalcore show SELECTOR` lists them.")
@click.option("--model", metavar="P/NAME", help="Serve this model, too, for a client that has none of its own.")
@click.option("--answer", metavar="TEXT", help="Answer so at once, and wait for nobody.")
@click.option("--for", "for_s", default="2h", metavar="TIME", callback=_seconds, help="Wait at most so long (2h).")
@click.option("--sandbox", metavar="KIND", help="Where graders' commands run.")
@click.option("--out", metavar="DIR", help="Where runs are kept (runs).")
@click.option("--name", metavar="ID", help="Of the run (time, study, short digest).")
@click.option("--yes", is_flag=True, default=None, help="Do not ask before money is spent.")
@options(JSON)
@with_session
def serve(session: Session, *, answer: str | None, for_s: float, **given: Any) -> int:
    """Play one task yourself: its tools are served over MCP, and what you do is recorded and graded.

    The addresses are printed, ready for Claude Code or any other client. It ends when you say so at the done-address,
    with Ctrl-C, or when the time is over; then the verdict is shown. The run's provenance is `person`: it is never
    counted with an agent's. With --json the addresses go to standard error, and the result to standard output.
    """
    registry = session.registry()
    registry.add(
        PluginRef(NAME, "evalcore-core", __version__, "evalcore.engine.person"), plugin(uses_model=bool(given["model"]))
    )
    study = _study(session, for_s, given)
    settings = run_settings(
        SettingFlags(**{n: given[n] for n in ("out", "name", "yes", "json")}), session.environ, study
    )
    manner = Manner(1, settings.yes, settings.json)
    services = LocalServices(registry, Path.cwd())
    path = (
        settings.out / settings.name
        if settings.name
        else fresh(settings.out / default_run_name(study, services.clock.now()))
    )
    with interruptible(path):
        end = run_to_end(_carry_out(session, study, services, path, manner, _Wishes(answer, for_s)))
    code = finish(path, end, registry, manner)
    for grading in () if manner.json else read_gradings(path, read_stamp(path).grading):
        say(f"\noutcome  {grading.verdict.outcome}")
    return code


@frozen
class _Wishes:
    answer: str | None
    for_s: float


def _study(session: Session, for_s: float, given: dict[str, Any]) -> Study:
    """The study of one trial. Raises ConfigError."""
    if given["selector"].endswith(".toml"):
        raise ConfigError(
            f"{given['selector']} is a study", hint="name a benchmark of it: `evalcore serve BENCHMARK --task ID`"
        )
    group = session.registry().all(GroupInfo).get(given["selector"])
    if group is not None:
        raise ConfigError(f"{group.name} is a group", hint=f"name one of its members: {', '.join(group.members)}")
    find_benchmark(session.registry(), given["selector"])
    flags = StudyFlags(
        selectors=(given["selector"],),
        models=(given["model"],) if given["model"] else (),
        harnesses=(NAME,),
        tasks=(given["task"],),
        timeout_s=for_s + LEAVE_S,
        set=(("sandbox", given["sandbox"]),) if given["sandbox"] else (),
    )
    return study_from_flags(flags, vocabulary(session.registry()))


async def _carry_out(
    session: Session, study: Study, services: LocalServices, path: Path, manner: Manner, wishes: _Wishes
) -> RunEnd:
    """Plan, ask, play."""
    registry, presses = session.registry(), _Presses()
    try:
        plan = _by_a_person(await make_plan(study, registry, services, path.name))
        try:
            consent(commands_of(plan), manner)
            ask(costly(plan.arms, plan.study, registry, plan.role_models()), manner)
            person = plan.parts.harnesses[NAME][1]
            assert isinstance(person, Person)
            person.stage = _Screen(tell if manner.json else say, waits=wishes.answer is None)
            person.answer, person.for_s = wishes.answer, wishes.for_s
            presses.person = person
            options = RunOptions(1, on_stop=presses.told)
            end = await start(plan, path, registry, services, options)
        finally:
            await close_plan(plan)
    finally:
        await services.close()
    # Ctrl-C is how a person ends a trial: what it left was captured and graded, and nothing is missing.
    return RunEnd("done") if end.reason in ("interrupted", "done") and presses.count == 1 else end


@define
class _Presses:
    """How often Ctrl-C was pressed: the first ends the trial, a second one stops at once."""

    count: int = 0
    person: Person | None = None

    def told(self, count: int) -> None:
        """One more."""
        self.count = count
        if self.person is not None:
            self.person.end()


def _by_a_person(plan: Plan) -> Plan:
    return evolve(plan, cells={key: evolve(cell, provenance="person") for key, cell in plan.cells.items()})


class _Screen:
    """The terminal as the stage: what is told, where the wires are, and how to say that it is over."""

    def __init__(self, say: Callable[[str], None], *, waits: bool) -> None:
        self._say = say
        self._waits = waits
        self._turns = 0

    def opened(self, job: Job, done_url: str) -> None:
        """The addresses, ready to be pasted."""
        if not self._waits:
            return
        urls = {door.bridge: door.url for door in job.tools if door.url}
        for door in job.tools:
            names = [spec.name for spec in door.list()]
            self._say(f"tools    {door.url}\n         {door.bridge}, {plural(len(names), 'tool')}: {', '.join(names)}")
        if urls:
            self._say("\nClaude Code, once in a shell:")
            for bridge, url in urls.items():
                self._say(f"  claude mcp add --transport http {shlex.quote(f'evalcore-{bridge}')} {url}")
            servers = {f"evalcore-{bridge}": {"type": "http", "url": url} for bridge, url in urls.items()}
            self._say("\nany client that reads .mcp.json:")
            self._say(f"  {json.dumps({'mcpServers': servers})}")
            self._say("\na client that starts its servers itself:")
            for url in urls.values():
                self._say(f"  EVALCORE_MCP_URL={url} evalcore mcp-stdio")
        if job.model is not None and job.model.url:
            self._say(f"\nmodel    {job.model.url}\n\nan agent that takes its model from the environment:")
            self._say(f"  export OPENAI_BASE_URL={job.model.url} OPENAI_API_KEY=unused")
            self._say(f"  export ANTHROPIC_BASE_URL={job.model.url.removesuffix('/v1')} ANTHROPIC_API_KEY=unused")
        self._say("\nwhen it is over, with your answer, if the task wants one:")
        self._say(f"  curl -X POST --data-binary 'ANSWER' {done_url}")
        self._say("or Ctrl-C here: no answer. What the tools were asked is recorded either way.")

    def turn(self, messages: Sequence[Message]) -> None:
        """What the agent is told."""
        self._turns += 1
        self._say("" if self._turns == 1 else f"\nturn {self._turns}")
        for message in messages:
            content = message.content if isinstance(message.content, str) else json.dumps(message.content)
            self._say(f"{message.role}:\n{content}\n")
