"""The program `evalcore`: its verbs and global options, and what holds for all of them.

A verb is imported when it is called. `--help` and `--version` import click and nothing else that is heavy: start-up is
measured (`bench/README.md`), and a test holds what they may import.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, NoReturn

import click

SECTIONS: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "Run": {
        "run": ("evalcore.cli.run:run", "Run a benchmark or a study, to a scorecard."),
        "plan": ("evalcore.cli.plan:plan", "Say what would run, and spend nothing."),
        "power": ("evalcore.cli.power:power", "Say what a study can find, and what that costs."),
        "resume": ("evalcore.cli.resume:resume", "Go on with a run that was stopped."),
        "rerun": ("evalcore.cli.rerun:rerun", "Run the study of a run again, as a new run."),
        "regrade": ("evalcore.cli.regrade:regrade", "Grade a run again, without agent and model."),
    },
    "Read": {
        "report": ("evalcore.cli.report:report", "Show the scorecard of a run."),
        "compare": ("evalcore.cli.compare:compare", "Say what differs between two runs or arms, and what changed."),
        "gate": ("evalcore.cli.gate:gate", "Fail where a run is not shown to be as good as a baseline."),
        "cost": ("evalcore.cli.cost:cost", "Say what a run spent, by role; void attempts apart."),
        "runs": ("evalcore.cli.runs:runs", "List runs with their size, or remove some."),
        "import": ("evalcore.cli.import_run:import_run", "Make a run of another tool's results."),
        "trace": ("evalcore.cli.trace:trace", "List the trials of a run, or show one as it happened."),
        "list": ("evalcore.cli.list:list_", "List benchmarks, harnesses, models and all else installed."),
        "show": ("evalcore.cli.show:show", "Show a benchmark, a task, a harness, or a run."),
    },
    "Wires": {
        "serve": ("evalcore.cli.serve:serve", "Play one task yourself, with any client."),
        "mcp-stdio": ("evalcore.cli.mcp_stdio:mcp_stdio", "Serve a trial's tools on standard input and output."),
    },
    "Set up": {
        "init": ("evalcore.cli.init:init", "Write a study, tasks and a CI job to begin with."),
        "setup": ("evalcore.cli.setup:setup", "Install the upstream code that benchmarks need."),
        "doctor": ("evalcore.cli.doctor:doctor", "Check this machine and this installation."),
        "plugins": ("evalcore.cli.plugins:plugins", "List installed plugins."),
    },
}
VERBS: Final[Mapping[str, tuple[str, str]]] = {
    name: verb for verbs in SECTIONS.values() for name, verb in verbs.items()
}
PIPE_CLOSED: Final = 141  # as any program that SIGPIPE ends
SETTINGS: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Program(click.Group):
    """Verbs by name, imported when called; those of plugins after our own."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Our verbs, then the plugins'."""
        return [*VERBS, *_plugin_summaries(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb of that name. Raises PluginError for a plugin's that is broken."""
        if cmd_name in VERBS:
            return _load(VERBS[cmd_name][0])
        from evalcore.cli import plugin_verbs
        from evalcore.cli.session import session_of

        return plugin_verbs.find(session_of(ctx), cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, and with what a mistyped verb was probably meant to be."""
        name = args[0]
        command = self.get_command(ctx, name)
        if command is None:
            _no_such_verb(ctx, name)
        return name, command, args[1:]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs by what they are for; no verb is imported for it."""
        sections = {title: {name: text for name, (_, text) in verbs.items()} for title, verbs in SECTIONS.items()}
        added = _plugin_summaries(ctx)
        longest = max(map(len, (*VERBS, *added)))
        for title, verbs in (*sections.items(), ("From plugins", added)):
            if verbs:
                with formatter.section(title):
                    formatter.write_dl([(name.ljust(longest), text) for name, text in verbs.items()])

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """As click does; see `_pipe_told`."""
        with _pipe_told():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """As click does; see `_pipe_told`."""
        with _pipe_told():
            return super().invoke(ctx)

    def main(self, args: Sequence[str] | None = None, *_: Any, **extra: Any) -> NoReturn:
        """Run, tell whatever goes wrong, and end with the exit code of architecture §9."""
        given = list(sys.argv[1:] if args is None else args)
        extra["standalone_mode"] = False
        try:
            _check(given)
            result = super().main(given, **extra)
            sys.stdout.flush()
            sys.exit(result if isinstance(result, int) else 0)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message())
            sys.exit(0)
        except (BrokenPipeError, PipeClosedError):
            _silence()
            sys.exit(PIPE_CLOSED)
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  whatever it is, it is told, and never as a traceback
            from evalcore.cli.render_errors import report_error

            sys.exit(report_error(error, as_json="--json" in given))


class PipeClosedError(Exception):
    """Nobody reads our output any more."""


@contextmanager
def _pipe_told() -> Iterator[None]:
    """A reader that is gone, under a name of ours: click would end with 1, which means that the answer is no."""
    try:
        yield
    except BrokenPipeError as error:
        raise PipeClosedError from error


def _silence() -> None:
    """What Python still flushes when it ends must not complain."""
    from os import devnull, dup2

    with open(devnull, "wb") as nowhere, suppress(OSError, ValueError):  # noqa: PTH123 - pathlib costs start-up
        dup2(nowhere.fileno(), sys.stdout.fileno())


def _check(args: Sequence[str]) -> None:
    """What must hold before anything runs; `doctor` tells it among the rest."""
    from evalcore._guard import check

    if "doctor" not in args:
        check()


def _load(target: str) -> click.Command:
    from importlib import import_module

    module, _, attribute = target.partition(":")
    command: click.Command = getattr(import_module(module), attribute)
    return command


def _plugin_summaries(ctx: click.Context) -> dict[str, str]:
    """The verbs of plugins that are not hidden by our own; plugins without any are not imported for this."""
    from evalcore.cli import plugin_verbs

    if not plugin_verbs.may_exist():
        return {}
    from evalcore.cli.session import session_of

    return {name: text for name, text in plugin_verbs.summaries(session_of(ctx)).items() if name not in VERBS}


def _no_such_verb(ctx: click.Context, name: str) -> NoReturn:
    """Raises UnknownNameError with the nearest verbs, or how to run a benchmark of that name."""
    from evalcore.cli.session import session_of
    from evalcore.errors import UnknownNameError
    from evalcore.values.descriptors import AdapterInfo, CommandInfo, GroupInfo
    from evalcore.values.faults import nearest

    registry = session_of(ctx).registry()
    runnable = {*registry.all(AdapterInfo), *registry.all(GroupInfo)}
    if name.partition("@")[0].partition(":")[0] in runnable:
        raise UnknownNameError("verb", name, hint=f"{name} is a benchmark: `evalcore run {name}`")
    known = [*VERBS, *registry.all(CommandInfo)]
    raise UnknownNameError("verb", name, nearest=nearest(name, known), hint="`evalcore --help` lists all verbs")


def _blocked(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    for text in given:
        if not text.startswith("no:") or text == "no:":
            raise click.BadParameter("expected no:NAME, as in `-p no:bfcl`")
    return tuple(text.removeprefix("no:") for text in given)


def _print_version(ctx: click.Context, _: click.Parameter, given: bool) -> None:
    if given:
        from evalcore import __version__

        click.echo(f"evalcore {__version__}")
        ctx.exit()


@click.group(cls=Program, context_settings=SETTINGS)
@click.option("-p", "blocked", multiple=True, metavar="no:NAME", callback=_blocked, help="Do not load this plugin.")
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print it.")
def program(blocked: tuple[str, ...]) -> None:
    """Measure agents: model, harness and packaging together, on public benchmarks, with honest statistics.

    To begin: `evalcore list benchmarks`, `evalcore run NAME`. Any verb has -h.
    """


def main() -> None:
    """The entry point."""
    if sys.stdout is None:  # closed by whoever started us
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - pathlib costs start-up
    for stream in (sys.stdout, sys.stderr):  # one that cannot show a character gets its number, and no error
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    program.main(prog_name="evalcore")
