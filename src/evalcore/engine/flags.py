"""The flags of `evalcore run` as a value, and the study that they say: the same value that a file makes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from attrs import Factory, evolve, frozen

from evalcore.engine.arms import Vocabulary, fit, takes, untaken, uses_model
from evalcore.engine.settings import check_name, check_positive, parse_text
from evalcore.engine.study_file import parse_limit
from evalcore.values.descriptors import AxisInfo, HarnessInfo
from evalcore.values.faults import Faults, Wrong, literal
from evalcore.values.json import JSONValue
from evalcore.values.study import BenchmarkChoice, Study
from evalcore.values.task import Limits

CONTROLS: Final = ("oracle", "noop")  # what runs where nothing is named: the rig's ceiling and floor
DEFAULT_HARNESS: Final = "react"  # where a model is named alone, and no axis declares another default


@frozen
class StudyFlags:
    """The flags that say what is run; None or empty is a flag that was not given. Texts are as typed."""

    selectors: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    harnesses: tuple[str, ...] = ()
    trials: int | None = None
    limit: str | None = None
    tasks: tuple[str, ...] = ()
    seed: int | None = None
    budget_usd: float | None = None
    max_tokens: int | None = None
    timeout_s: float | None = None
    set: tuple[tuple[str, str], ...] = ()
    sweep: tuple[tuple[str, tuple[str, ...]], ...] = ()
    name: str | None = None
    unasked: Mapping[str, JSONValue] = Factory(dict)  # one more arm where nothing is named that could be measured


# ── a study of its own ───────────────────────────────────────────────────────────────────────────────────────────────


def study_from_flags(flags: StudyFlags, vocabulary: Vocabulary) -> Study:
    """The study that the flags say; ConfigError with every fault, each at its flag."""
    faults = Faults()
    selectors = tuple(dict.fromkeys(flags.selectors))
    if not selectors:
        faults.add("SELECTOR", "missing: what is to be run?", "`evalcore list` names every benchmark")
    choice = _choice(flags, selectors, faults)
    _check_numbers(flags, faults)
    arms = _arms(flags, vocabulary, faults)
    _apply_settings(flags, arms, vocabulary, faults)
    sweep = _sweep(flags, arms, vocabulary, faults)
    faults.raise_if_any("command line")
    return Study(
        name=flags.name or _name(selectors, controls=not (flags.models or flags.harnesses or flags.unasked)),
        benchmarks=selectors,
        arms={a.handle: a.axes for a in arms},
        repeats=1 if flags.trials is None else flags.trials,
        seed=flags.seed or 0,
        budget_usd=None if flags.budget_usd is None else float(flags.budget_usd),
        choices={} if choice == BenchmarkChoice() else dict.fromkeys(selectors, choice),
        limits=Limits(tokens=flags.max_tokens, wall_s=None if flags.timeout_s is None else float(flags.timeout_s)),
        sweep=sweep,
    )


def _choice(flags: StudyFlags, selectors: Sequence[str], faults: Faults) -> BenchmarkChoice:
    limit = None
    if flags.limit is not None:
        try:
            limit = parse_limit(flags.limit)
        except Wrong as wrong:
            faults.add("--limit", wrong.message, wrong.hint)
    if flags.limit is not None and flags.tasks:
        faults.add("--task", "cannot be combined with --limit", "one of them says which tasks run")
    if flags.tasks and len(selectors) > 1:
        faults.add(
            "--task", f"names tasks of one benchmark, not of {len(selectors)}", "a study file can choose for each"
        )
    return BenchmarkChoice(limit, tuple(dict.fromkeys(flags.tasks)))


def _check_numbers(flags: StudyFlags, faults: Faults) -> None:
    for flag, whole, least in (("--trials", flags.trials, 1), ("--seed", flags.seed, 0)):
        if whole is not None and whole < least:
            faults.add(flag, f"must be >= {least}: {whole}")
    for flag, value in (
        ("--budget-usd", flags.budget_usd),
        ("--max-tokens", flags.max_tokens),
        ("--timeout", flags.timeout_s),
    ):
        try:
            if value is not None:
                check_positive(value)
        except Wrong as wrong:
            faults.add(flag, wrong.message, wrong.hint)
    try:
        if flags.name is not None:
            check_name(flags.name)
    except Wrong as wrong:
        faults.add("--name", wrong.message, wrong.hint)


def _name(selectors: Sequence[str], *, controls: bool) -> str:
    """A study's name from what it runs, fit to be a folder's."""
    more = f"-and-{len(selectors) - 2}-more" if len(selectors) > 2 else ""
    text = ("controls-" if controls else "") + "-".join(selectors[:2])
    plain = re.sub(r"[^A-Za-z0-9_+-]+", "-", text)[:80].strip("_+-")
    return (plain or "study") + more


# ── arms ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@frozen
class _FlagArm:
    handle: str
    harness: HarnessInfo
    axes: dict[str, JSONValue]

    def takes(self, axis: AxisInfo, vocabulary: Vocabulary) -> bool:
        """Whether it takes the axis. Wrong if not, unless it is a control: those keep out of what is for all arms."""
        model = self.axes.get("model", vocabulary.default("model"))
        provider = vocabulary.provider(model) if uses_model(self.harness) else None
        if takes(axis, self.harness, provider):
            return True
        if self.harness.control:
            return False
        raise untaken(axis, self.harness, provider, vocabulary)


def _arms(flags: StudyFlags, vocabulary: Vocabulary, faults: Faults) -> list[_FlagArm]:
    """Every harness with every model; a harness without a model stands alone. Names that do not exist are told."""
    harnesses: list[HarnessInfo] = []
    models: list[str] = []
    named = flags.harnesses or (_default_harness(vocabulary) if flags.models else CONTROLS)
    for flag, names in (("--harness", named), ("--model", flags.models)):
        for name in dict.fromkeys(names):
            try:
                if flag == "--harness":
                    harnesses.append(vocabulary.harness(name))
                else:
                    vocabulary.provider(name)
                    models.append(name)
            except Wrong as wrong:
                faults.add(flag, wrong.message, wrong.hint)
    speaking = [h for h in harnesses if uses_model(h)]
    if speaking and not flags.models and vocabulary.default("model") is None:
        faults.add("--model", f"missing: harness {speaking[0].name!r} speaks to a model", "--model provider/name")
    if models and harnesses and not speaking:
        faults.add("--model", f"harness {harnesses[0].name!r} uses no model", "leave it out, or name another --harness")
    if len(faults) > 0 and not (harnesses and (models or not speaking)):
        return []
    arms = list(_crossed(harnesses, models))
    if flags.unasked and not flags.models and not flags.harnesses:
        harness = vocabulary.harness(_default_harness(vocabulary)[0])
        arms.append(_FlagArm(harness.name, harness, {"harness": harness.name, **flags.unasked}))
    return arms


def _default_harness(vocabulary: Vocabulary) -> tuple[str]:
    return (str(vocabulary.default("harness") or DEFAULT_HARNESS),)


def _crossed(harnesses: Sequence[HarnessInfo], models: Sequence[str]) -> Iterator[_FlagArm]:
    """Handles are as short as they can be and still differ; @ is kept for sweeps."""
    for harness in harnesses:
        axes: dict[str, JSONValue] = {"harness": harness.name}
        if not uses_model(harness) or not models:
            yield _FlagArm(harness.name, harness, axes)
        for model in models if uses_model(harness) else ():
            handle = f"{harness.name}/{model}".replace("@", "~") if len(models) > 1 else harness.name
            yield _FlagArm(handle, harness, axes | {"model": model})


def _apply_settings(flags: StudyFlags, arms: Sequence[_FlagArm], vocabulary: Vocabulary, faults: Faults) -> None:
    """`--set axis=value` for every arm that takes it."""
    done: dict[str, None] = {}
    for name, text in flags.set:
        where = f"--set {name}"
        try:
            axis = _axis(name, done, vocabulary)
            value = fit(axis, parse_text(axis.type, text))
            taking = [a for a in arms if a.takes(axis, vocabulary)]
            if arms and not taking:
                raise Wrong("no arm takes it")
        except Wrong as wrong:
            faults.add(where, wrong.message, wrong.hint)
            continue
        for arm in taking:
            arm.axes[name] = value


def _sweep(
    flags: StudyFlags, arms: Sequence[_FlagArm], vocabulary: Vocabulary, faults: Faults
) -> dict[str, tuple[JSONValue, ...]]:
    done: dict[str, None] = dict.fromkeys(name for name, _ in flags.set)
    sweep: dict[str, tuple[JSONValue, ...]] = {}
    for name, texts in flags.sweep:
        where = f"--sweep {name}"
        try:
            axis = _axis(name, done, vocabulary)
            if arms and not [a for a in arms if a.takes(axis, vocabulary)]:
                raise Wrong("no arm takes it")
            if not texts:
                raise Wrong("has no value")
        except Wrong as wrong:
            faults.add(where, wrong.message, wrong.hint)
            continue
        sweep[name] = tuple(_swept(axis, texts, where, faults))
    return sweep


def _axis(name: str, done: dict[str, None], vocabulary: Vocabulary) -> AxisInfo:
    if name in ("harness", "model"):
        raise Wrong(f"arms are made with --{name}", f"--{name} A,B makes one for each")
    axis = vocabulary.axes_named(name)[0]
    if name in done:
        raise Wrong("is given twice")
    done[name] = None
    return axis


def _swept(axis: AxisInfo, texts: Sequence[str], where: str, faults: Faults) -> Iterator[JSONValue]:
    seen: list[JSONValue] = []
    for text in texts:
        try:
            value = fit(axis, parse_text(axis.type, text))
            if value in seen:
                raise Wrong(f"{literal(text)} is listed twice")
        except Wrong as wrong:
            faults.add(where, wrong.message, wrong.hint)
            continue
        seen.append(value)
        yield value


# ── over a study file ────────────────────────────────────────────────────────────────────────────────────────────────


def apply_flags(study: Study, flags: StudyFlags) -> Study:
    """A file's study with the budget of the flags; ConfigError for every flag that would make it another study.

    The first selector is the file. A flag that says what the file says changes nothing.
    """
    faults = Faults()
    file = flags.selectors[0] if flags.selectors else study.name
    for flag, what in _changes(study, flags):
        faults.add(flag, f"would change {what} of {file}", "a study is fixed in its file: change it there, or copy it")
    _check_numbers(flags, faults)
    faults.raise_if_any("command line")
    return study if flags.budget_usd is None else evolve(study, budget_usd=float(flags.budget_usd))


def _changes(study: Study, flags: StudyFlags) -> Iterator[tuple[str, str]]:
    """Each flag that differs from the study, and what it is about."""
    for selector in flags.selectors[1:]:
        yield selector, "the benchmarks"
    given: Mapping[str, tuple[object, str]] = {
        "--model": (flags.models, "the arms"),
        "--harness": (flags.harnesses, "the arms"),
        "--set": (flags.set, "the arms"),
        "--sweep": (flags.sweep, "the arms"),
        "--limit": (flags.limit, "the tasks"),
        "--task": (flags.tasks, "the tasks"),
    }
    yield from ((flag, what) for flag, (value, what) in given.items() if value)
    numbers: Mapping[str, tuple[object, object, str]] = {
        "--trials": (flags.trials, study.repeats, "the repeats"),
        "--seed": (flags.seed, study.seed, "the seed"),
        "--max-tokens": (flags.max_tokens, study.limits.tokens, "the limits"),
        "--timeout": (flags.timeout_s, study.limits.wall_s, "the limits"),
    }
    yield from ((flag, what) for flag, (value, old, what) in numbers.items() if value is not None and value != old)
