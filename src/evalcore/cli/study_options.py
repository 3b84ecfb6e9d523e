"""The options that say what is run, shared by `run` and `plan`, and the study that they and a file make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from attrs import evolve, frozen

from evalcore.cli.session import Session
from evalcore.cli.unasked import Unasked, unasked
from evalcore.engine.arms import MODEL_AXES, Content
from evalcore.engine.flags import StudyFlags, apply_flags, study_from_flags
from evalcore.engine.parts import vocabulary
from evalcore.engine.selectors import expand, find_benchmark
from evalcore.engine.services import LocalServices
from evalcore.engine.settings import RunSettings, SettingFlags, run_settings
from evalcore.engine.study_file import base_folder, load_study
from evalcore.errors import ConfigError, Fault, UnknownNameError
from evalcore.plugins import Registry
from evalcore.values.descriptors import ModelInfo
from evalcore.values.faults import faulty
from evalcore.values.study import Study

F = TypeVar("F", bound=Callable[..., Any])

SETTINGS: Final = ("concurrency", "out", "name", "yes", "json", "quiet", "budget_usd", "outage_s")


class TrialsOption(click.Option):
    """`--trials`, whose other names would fill a line of the help each."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """One line."""
        return "-k, --trials K", f"{self.help}"


def _pairs(_: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    pairs = [text.partition("=") for text in given]
    for (name, sign, _value), text in zip(pairs, given, strict=True):
        if not sign or not name.strip():
            raise click.BadParameter(f"expected {parameter.metavar}, got {text!r}")
    return tuple((name.strip(), value) for name, _sign, value in pairs)


def _listed(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """`--model a,b --model c` is a, b and c."""
    if any(not part.strip() for text in given for part in text.split(",")):
        raise click.BadParameter("a name is empty")
    return tuple(name for text in given for part in text.split(",") if (name := part.strip()))


WHAT: Final = (
    click.argument("selectors", nargs=-1, metavar="SELECTOR..."),
    click.option(
        "--model",
        "models",
        multiple=True,
        metavar="A,B",
        callback=_listed,
        help="PROVIDER/NAME; one configuration for each.",
    ),
    click.option(
        "--harness",
        "harnesses",
        multiple=True,
        metavar="X,Y",
        callback=_listed,
        help="The agent under test; each with every model.",
    ),
    click.option(
        "--trials",
        "--repeats",
        "--epochs",
        "-k",
        "trials",
        type=int,
        cls=TrialsOption,
        help="Trials of each task (1). Also --repeats, --epochs.",
    ),
    click.option("--limit", metavar="N|A-B", help="The first N tasks, or those from A on, 0-based, without B."),
    click.option("--task", "tasks", multiple=True, metavar="ID", help="Only this task; repeat it for more."),
    click.option("--seed", type=int, metavar="S", help="Of everything random (0)."),
    click.option(
        "--set", "set_", multiple=True, metavar="AXIS=VALUE", callback=_pairs, help="Turn a knob: `evalcore list axes`."
    ),
    click.option(
        "--sweep",
        multiple=True,
        metavar="AXIS=V1,V2",
        callback=_pairs,
        help="Every configuration with each of these values.",
    ),
    click.option("--base-url", metavar="URL", help="Of the model's server; as `--set base_url=URL`."),
    click.option("--sandbox", metavar="KIND", help="Where graders' commands run; as `--set sandbox=KIND`."),
    click.option("--user-model", metavar="MODEL", help="Of the simulated user; as `--set user_model=MODEL`."),
    click.option("--judge-model", metavar="MODEL", help="Of the judge; as `--set judge_model=MODEL`."),
    click.option("--max-tokens", type=int, metavar="N", help="Of one trial: input and output, all roles."),
    click.option("--timeout", "timeout_s", type=float, metavar="SECONDS", help="Of one trial."),
    click.option("--budget-usd", type=float, metavar="X", help="Of the whole run."),
)
SHORT: Final = ("base_url", "sandbox", "user_model", "judge_model")  # axes with a flag of their own
OUTAGE: Final = click.option(
    "--outage-s", type=float, metavar="SECONDS", help="How long a provider that is down is waited for (1800)."
)
HOW: Final = (
    click.option("--concurrency", type=int, metavar="C", help="Trials at a time (16)."),
    OUTAGE,
    click.option("--out", metavar="DIR", help="Where runs are kept (runs)."),
    click.option("--name", metavar="ID", help="Of the run (time, study, short digest)."),
    click.option("--yes", is_flag=True, default=None, help="Do not ask before money is spent."),
    click.option("--quiet", is_flag=True, default=None, help="No progress, and no word but the result."),
)
JSON: Final = click.option("--json", is_flag=True, default=None, help="The result as JSON on standard output.")


def options(*groups: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, shown in this order."""

    def decorate(function: F) -> F:
        for option in reversed(groups):
            function = option(function)
        return function

    return decorate


@frozen
class Request:
    """What the command line asks for. `services` are the caller's to close."""

    study: Study
    settings: RunSettings
    services: LocalServices
    controls_only: bool  # nothing was named that could be measured
    unasked: Unasked = Unasked()  # what runs beside the controls then


def read_request(session: Session, options_given: Mapping[str, Any]) -> Request:
    """The study and the settings that the options say; those left out are not given. Raises ConfigError, all faults."""
    given = {**_NOT_GIVEN, **options_given}
    registry = session.registry()
    flags = _study_flags(given)
    controls = _study_file(flags.selectors) is None and not flags.models and not flags.harnesses
    beside = unasked(registry, session.environ, flags.selectors) if controls else Unasked()
    if beside.ready is not None:
        flags = evolve(flags, unasked={"model": beside.ready.unasked, **beside.ready.unasked_axes})
    setting_flags = SettingFlags(**{name: given.get(name) for name in SETTINGS})
    file = _study_file(flags.selectors)
    base = base_folder(file) if file else Path.cwd()
    services = LocalServices(registry, base)
    study = _from_file(file, flags, registry, services) if file else _from_flags(flags, registry)
    settings = run_settings(setting_flags, session.environ, study)
    if settings.budget_usd != study.budget_usd:
        study = evolve(study, budget_usd=settings.budget_usd)
    return Request(study, settings, services, controls, beside)


_NOT_GIVEN: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("trials", "limit", "seed", "budget_usd", "max_tokens", "timeout_s")),
    **dict.fromkeys(("selectors", "models", "harnesses", "tasks", "set_", "sweep"), ()),
}


def _study_flags(given: Mapping[str, Any]) -> StudyFlags:
    sweep = tuple((axis, tuple(v for v in text.split(",") if v)) for axis, text in given["sweep"])
    names = (
        "selectors",
        "models",
        "harnesses",
        "trials",
        "limit",
        "tasks",
        "seed",
        "budget_usd",
        "max_tokens",
        "timeout_s",
    )
    short = [(axis, given[axis]) for axis in SHORT if given.get(axis) is not None]
    return StudyFlags(**{name: given[name] for name in names}, set=(*given["set_"], *short), sweep=sweep)


def _study_file(selectors: tuple[str, ...]) -> Path | None:
    """The study file, if that is what is named."""
    for text in selectors:
        if text.endswith((".json", ".yaml", ".yml", ".csv")):
            raise ConfigError(
                f"{text}: neither a study nor a suite",
                hint="a study is TOML (STUDY.toml), a suite of tasks is JSON lines (TASKS.jsonl)",
            )
    files = [text for text in selectors if text.endswith(".toml")]
    if files and len(selectors) > 1:
        raise ConfigError(f"{files[0]} is a study, and stands alone", hint="its benchmarks are named in the file")
    return Path(files[0]).expanduser() if files else None


def _from_file(file: Path, flags: StudyFlags, registry: Registry, services: LocalServices) -> Study:
    def check(text: str) -> None:
        for member in expand(registry, (text,)):
            find_benchmark(registry, member)

    study, _ = load_study(file, vocabulary(registry), content=_content(registry, services), check_selector=check)
    return apply_flags(study, flags)


def _content(registry: Registry, services: LocalServices) -> Content:
    """Digests of what stands behind a model's name: a missing playbook is told together with all else that is wrong."""

    def content(axis: str, value: str) -> Mapping[str, str]:
        provider, _, name = value.partition("/")
        info = registry.all(ModelInfo).get(provider)
        if axis not in MODEL_AXES or info is None:
            return {}
        found: Mapping[str, str] = registry.factory(info)(services, info).content(name)
        return found

    return content


def _from_flags(flags: StudyFlags, registry: Registry) -> Study:
    """The study of the flags, with the faults of the selectors and of everything else told together."""
    wrong = _wrong_selectors(flags.selectors, registry)
    study = None
    try:
        study = study_from_flags(flags, vocabulary(registry))
    except ConfigError as error:
        if not wrong:
            raise
        faults = [*(Fault("SELECTOR", e.message, e.hint) for e in wrong), *error.faults]
        raise faulty("command line", faults) from None
    if len(wrong) == 1:
        raise wrong[0]
    if wrong:
        raise faulty("command line", [Fault("SELECTOR", e.message, e.hint) for e in wrong])
    return study


def _wrong_selectors(selectors: tuple[str, ...], registry: Registry) -> list[ConfigError]:
    found: list[ConfigError] = []
    for text in expand(registry, selectors):
        try:
            find_benchmark(registry, text)
        except UnknownNameError as error:
            found.append(_or_a_file(text, error))
        except ConfigError as error:
            found.append(error)
    return found


def _or_a_file(text: str, error: UnknownNameError) -> UnknownNameError:
    """An unknown name that is a path gets a hint of its own."""
    if "/" not in text and not Path(text).exists():
        return error
    return UnknownNameError(error.kind, text, hint="a study file's name ends in .toml")
