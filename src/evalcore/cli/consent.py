"""A file from somebody else can name programs: they are shown before they run, and run after a yes."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Sequence

import click

from evalcore.cli.execution import Manner
from evalcore.cli.output import on_terminal, tell
from evalcore.contracts import Executes
from evalcore.engine.plan import Plan
from evalcore.errors import ConfigError
from evalcore.report.words import plural, safe


def commands_of(plan: Plan) -> list[str]:
    """What the files of a study would have executed on this machine, each once. Raises ConfigError."""
    found: dict[str, None] = {}
    for cell in plan.every_cell():
        harness: object = cell.harness
        if isinstance(harness, Executes):
            found |= dict.fromkeys(safe(shlex.join(argv)) for argv in harness.commands(cell.options))
    return list(found)


def consent(commands: Sequence[str], manner: Manner) -> None:
    """Show them, and ask once. Raises ConfigError where nobody can answer, click.Abort if the answer is no."""
    if not commands:
        return
    text = "\n".join([f"This executes {plural(len(commands), 'command')}:", *(f"  {command}" for command in commands)])
    if manner.yes:
        manner.tell(text)
        return
    tell(text)
    if not on_terminal():
        raise ConfigError(
            "the study's files name programs to execute, and nobody is here to be asked",
            hint="look at them, then --yes runs them",
        )
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # asyncio's would wait for the answer
    try:
        answer = click.confirm("Execute them?", err=True)
    finally:
        signal.signal(signal.SIGINT, before)
    if not answer:
        raise click.Abort
