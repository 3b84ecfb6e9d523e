"""A file from somebody else can name programs: they are shown before they run, and run after a yes."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Sequence
from typing import Final

import click

from evalcore.cli.execution import Manner
from evalcore.cli.output import on_terminal, tell
from evalcore.engine.plan import Plan
from evalcore.engine.plan import commands_of as named_by
from evalcore.errors import ConfigError
from evalcore.report.words import plural, safe

REACHED: Final = "connect to "  # how a part says that a server is only reached, not started
SHOWN: Final = 40  # a suite may have a command for each task: that many are enough to see what kind they are


def commands_of(plan: Plan) -> list[str]:
    """What the files of a study would have executed on this machine, each once. Raises ConfigError."""
    cells = plan.every_cell()
    return list(dict.fromkeys(safe(_line(argv)) for cell in cells for argv in named_by(cell)))


def _told(head: str, commands: Sequence[str]) -> list[str]:
    more = [f"  … and {len(commands) - SHOWN:,} more"] if len(commands) > SHOWN else []
    return [head, *(f"  {command.removeprefix(REACHED)}" for command in commands[:SHOWN]), *more] if commands else []


def _line(argv: Sequence[str]) -> str:
    """A command as a shell would take it; an address, and what is said beside either, as it is."""
    if argv[0] == REACHED.strip():
        return " ".join(argv)
    words = [word for word in argv if not word.startswith("# ")]
    return " ".join([shlex.join(words), *(word for word in argv if word.startswith("# "))])


def consent(commands: Sequence[str], manner: Manner) -> None:
    """Show them, and ask once. Raises ConfigError where nobody can answer, click.Abort if the answer is no."""
    if not commands:
        return
    servers = [command for command in commands if command.startswith(REACHED)]
    programs = [command for command in commands if not command.startswith(REACHED)]
    text = "\n".join(
        [
            *_told(f"This executes {plural(len(programs), 'command')}:", programs),
            *_told(f"This connects to {plural(len(servers), 'server')}:", servers),
        ]
    )
    if manner.yes:
        manner.tell(text)
        return
    tell(text)
    if not on_terminal():
        raise ConfigError(
            "the study's files name programs to execute or servers to reach, and nobody is here to be asked",
            hint="look at them, then --yes goes on",
        )
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # asyncio's would wait for the answer
    try:
        answer = click.confirm("Go on with them?", err=True)
    finally:
        signal.signal(signal.SIGINT, before)
    if not answer:
        raise click.Abort
