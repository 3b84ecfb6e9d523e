"""A study as one TOML file (architecture §12): reading it with every fault told at once, and writing it.

Each part is read on its own, so that a fault in one does not hide those of another. `arms.py` checks names and values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Final, TypeAlias, cast

from attrs import Attribute, Factory, field, frozen, validators

from evalcore.engine.arms import MAX_ARMS, Content, Vocabulary, collect_arms, points, swept_handle
from evalcore.engine.settings import check_name
from evalcore.errors import ConfigError
from evalcore.values.arm import Arm
from evalcore.values.convert import attempt, parse_toml, read_text
from evalcore.values.faults import ROOT, Faults, Wrong, described, did_you_mean, item_path, key_path, literal, one_of
from evalcore.values.injection import KINDS, Injection
from evalcore.values.json import JSONObject, JSONValue, canonical
from evalcore.values.measure import DIMENSIONS, NO_MORE, Measure, find_measure
from evalcore.values.study import Analysis, BenchmarkChoice, Contrast, RoleChoice, Stopping, Study
from evalcore.values.task import LIMIT_NAMES, ROLES, Limits, Role

TABLES: Final = ("study", "benchmarks", "limits", "roles", "arms", "sweep", "contrasts", "analysis", "faults")
EARLIEST_LOOK: Final = 0.05  # before it a spending function leaves nothing to spend
_RANGE: Final = re.compile(r"(\d{1,18})(?:(-)(\d{1,18})?)?", re.ASCII)
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_HANDLE: Final = re.compile(r"[^\s@](?:[^\x00-\x1f\x7f@]*[^\s@])?")


# ── small languages ──────────────────────────────────────────────────────────────────────────────────────────────────


def parse_limit(text: str) -> tuple[int, int | None]:
    """`5`: the first five tasks; `3-7`: those from 3 on, without 7; `3-`: those from 3 on. Wrong for anything else."""
    match = _RANGE.fullmatch(text)
    if match is None:
        raise Wrong(f"expected N, A-B or A-, got {literal(text)}", "0-based, B not included: 0-50 is the first fifty")
    first, dash, last = match.groups()
    start, stop = (int(first), None if last is None else int(last)) if dash else (0, int(first))
    if stop is not None and stop <= start:
        raise Wrong(f"no task is in {literal(text)}", "0-based, B not included: 0-50 is the first fifty")
    return start, stop


# ── the tables of a file ─────────────────────────────────────────────────────────────────────────────────────────────


def _safe(_: object, __: Attribute[str], value: str) -> None:
    check_name(value)


@frozen
class _Head:
    name: str = field(validator=_safe)
    benchmarks: tuple[str, ...]
    repeats: int = field(default=1, validator=validators.ge(1))
    seed: int = field(default=0, validator=validators.ge(0))
    budget_usd: float | None = field(default=None, validator=validators.optional(validators.gt(0)))


@frozen
class _ChoiceTable:
    limit: int | str | None = None
    tasks: tuple[str, ...] | None = None


@frozen
class _LimitTable:
    tokens: int | None = field(default=None, validator=validators.optional(validators.gt(0)))
    cost_usd: float | None = field(default=None, validator=validators.optional(validators.gt(0)))
    model_calls: int | None = field(default=None, validator=validators.optional(validators.gt(0)))
    tool_calls: int | None = field(default=None, validator=validators.optional(validators.ge(0)))
    turns: int | None = field(default=None, validator=validators.optional(validators.gt(0)))
    wall_s: float | None = field(default=None, validator=validators.optional(validators.gt(0)))
    tool_call_s: float | None = field(default=None, validator=validators.optional(validators.gt(0)))

    def limits(self) -> Limits:
        return Limits(**{name: getattr(self, name) for name in LIMIT_NAMES})


@frozen
class _RoleTable(_LimitTable):
    model: str | None = None


@frozen
class _ContrastTable:
    a: str
    b: str
    metric: str = field(default="pass@1", validator=validators.min_len(1))
    margin: float | None = field(default=None, validator=validators.optional(validators.gt(0)))


@frozen
class _AnalysisTable:
    alpha: float = field(default=0.05, validator=[validators.gt(0), validators.lt(0.5)])
    power: float = field(default=0.8, validator=[validators.gt(0), validators.lt(1)])
    stopping: Stopping = "fixed"
    looks: tuple[float, ...] = ()
    value_per_solve_usd: float | None = field(default=None, validator=validators.optional(validators.gt(0)))
    weights: Mapping[str, float] = Factory(dict)
    anchors: Mapping[str, tuple[float, ...]] = Factory(dict)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def base_folder(path: Path) -> Path:
    """The folder that relative paths in a study file start from: its own."""
    return path.absolute().parent


Measures: TypeAlias = Mapping[str, Measure]


def read_study(path: Path, measures: Measures | None = NO_MORE) -> Study:
    """The study in a file; ConfigError with every fault of it."""
    return parse_study(parse_toml(read_text(path), str(path)), str(path), measures)


def parse_study(raw: object, source: str, measures: Measures | None = NO_MORE) -> Study:
    """The study that plain data says; `source` is what errors call it.

    `measures` are the metrics of plugins that contrasts can be by; None: they are not checked.
    """
    faults = Faults()
    study = _draft(raw, faults, measures=measures)
    faults.raise_if_any(source)
    return study


def load_study(
    path: Path,
    vocabulary: Vocabulary,
    *,
    content: Content | None = None,
    check_selector: Callable[[str], object] | None = None,
) -> tuple[Study, tuple[Arm, ...]]:
    """A file's study and its complete arms, with the faults of both told together.

    `check_selector` raises ConfigError for a benchmark that nobody provides.
    """
    faults = Faults()
    study = _draft(parse_toml(read_text(path), str(path)), faults, check_selector, vocabulary.measures)
    arms = collect_arms(study, vocabulary, base=base_folder(path), content=content, faults=faults)
    faults.raise_if_any(str(path))
    return study, arms


def _draft(
    raw: object,
    faults: Faults,
    check_selector: Callable[[str], object] | None = None,
    measures: Measures | None = NO_MORE,
) -> Study:
    """What of a study could be read: parts with faults are left out, so that checks of the others go on."""
    if not isinstance(raw, Mapping):
        faults.add(ROOT, f"expected a table, got {described(raw)}")
        return Study("", (), {})
    for key in raw:
        if key not in TABLES:
            faults.add(key_path(ROOT, str(key)), "unknown key", did_you_mean(str(key), TABLES))
    head, selectors = _head(raw, faults, check_selector or (lambda _: None))
    written = _written(raw, faults)
    arms = _inherited(written, faults)
    sweep = _sweep(raw, written, faults)
    limits = attempt(raw.get("limits", {}), _LimitTable, where="$.limits", faults=faults)
    return Study(
        name=head.name if head else "",
        benchmarks=selectors,
        arms=arms,
        repeats=head.repeats if head else 1,
        seed=head.seed if head else 0,
        budget_usd=head.budget_usd if head else None,
        choices=_choices(raw, selectors, faults),
        limits=limits.limits() if limits else Limits(),
        roles=_roles(raw, faults),
        sweep=sweep,
        contrasts=_contrasts(raw, written, sweep, faults, measures),
        analysis=_analysis(raw, faults),
        faults=_injection(raw, faults),
    )


def _injection(raw: Mapping[str, object], faults: Faults) -> Injection | None:
    """What is to be injected; a table without any kind of fault is a fault itself."""
    if "faults" not in raw:
        return None
    found = attempt(raw["faults"], Injection, where="$.faults", faults=faults)
    if found is not None and found.empty:
        faults.add("$.faults", "injects nothing", f"[faults.{KINDS[0]}], or another of {', '.join(KINDS[1:])}")
    return found


def _table(raw: Mapping[str, object], name: str, faults: Faults) -> Mapping[str, object]:
    """A table of tables: an empty one where it is left out, or is no table."""
    table = raw.get(name, {})
    if isinstance(table, Mapping):
        return table
    faults.add(key_path(ROOT, name), f"expected a table, got {described(table)}")
    return {}


def _head(
    raw: Mapping[str, object], faults: Faults, check_selector: Callable[[str], object]
) -> tuple[_Head | None, tuple[str, ...]]:
    """[study], and its benchmarks apart: they are checked even where something else there is wrong."""
    if "study" not in raw:
        faults.add("$.study", "missing: expected a table")
        return None, ()
    head = attempt(raw["study"], _Head, where="$.study", faults=faults)
    table = raw["study"]
    listed = table.get("benchmarks") if isinstance(table, Mapping) else None
    if listed == []:
        faults.add("$.study.benchmarks", "names no benchmark")
    seen: dict[str, None] = {}
    for index, selector in enumerate(listed if isinstance(listed, list) else ()):
        where = item_path("$.study.benchmarks", index)
        if not isinstance(selector, str):
            continue  # told with the rest of [study]
        try:
            check_selector(selector)
        except ConfigError as error:
            faults.add(where, error.message, error.hint)
        if selector in seen:
            faults.add(where, f"{literal(selector)} is listed twice")
        seen[selector] = None
    return head, tuple(seen)


def _choices(raw: Mapping[str, object], selectors: Collection[str], faults: Faults) -> dict[str, BenchmarkChoice]:
    choices: dict[str, BenchmarkChoice] = {}
    for selector, table in _table(raw, "benchmarks", faults).items():
        where = key_path("$.benchmarks", selector)
        if selectors and selector not in selectors:
            faults.add(where, "not listed in study.benchmarks", did_you_mean(selector, selectors))
        read = attempt(table, _ChoiceTable, where=where, faults=faults)
        if read is not None:
            choices[selector] = _choice(read, where, faults)
    return choices


def _choice(table: _ChoiceTable, where: str, faults: Faults) -> BenchmarkChoice:
    limit, tasks = None, table.tasks or ()
    if table.limit is not None:
        try:
            limit = parse_limit(str(table.limit))
        except Wrong as wrong:
            faults.add(key_path(where, "limit"), wrong.message, wrong.hint)
    if table.limit is not None and table.tasks is not None:
        faults.add(where, "has both limit and tasks", "one of them says which tasks run")
    if table.tasks is not None and not tasks:
        faults.add(key_path(where, "tasks"), "names no task")
    for index, task in enumerate(tasks):
        if task in tasks[:index]:
            faults.add(item_path(key_path(where, "tasks"), index), f"{literal(task)} is listed twice")
    return BenchmarkChoice(limit, tasks)


def _roles(raw: Mapping[str, object], faults: Faults) -> dict[Role, RoleChoice]:
    roles: dict[Role, RoleChoice] = {}
    for name, table in _table(raw, "roles", faults).items():
        where = key_path("$.roles", name)
        if name not in ROLES:
            faults.add(where, f"unknown role: expected {one_of(ROLES)}", did_you_mean(name, ROLES))
        read = attempt(table, _RoleTable, where=where, faults=faults)
        if read is not None and name == "agent" and read.model is not None:
            faults.add(key_path(where, "model"), "the agent's model is an axis", "set `model` in each arm")
        elif read is not None:
            roles[cast(Role, name)] = RoleChoice(read.model, read.limits())
    return roles


# ── arms ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _written(raw: Mapping[str, object], faults: Faults) -> dict[str, JSONObject]:
    """The arms as written, `extends` included."""
    written: dict[str, JSONObject] = {}
    if raw.get("arms", {}) == {}:
        faults.add("$.arms", "missing: expected at least one arm", 'for example [arms.plain] with harness = "react"')
    for handle, table in _table(raw, "arms", faults).items():
        where = key_path("$.arms", handle)
        if not _HANDLE.fullmatch(handle):
            faults.add(where, "an arm's name is one line of text without @")
        if not isinstance(table, Mapping):
            faults.add(where, f"expected a table, got {described(table)}")
            continue
        axes = [attempt({axis: value}, JSONObject, where=where, faults=faults) for axis, value in table.items()]
        written[handle] = {axis: value for one in axes if one for axis, value in one.items()}
    return written


def _inherited(written: Mapping[str, JSONObject], faults: Faults) -> dict[str, JSONObject]:
    """Each arm with what it extends; arms whose chain is broken are left out."""
    whole: dict[str, JSONObject] = {}
    for handle, arm in written.items():
        parent = arm.get("extends")
        where = key_path(key_path("$.arms", handle), "extends")
        if "extends" in arm and not isinstance(parent, str):
            faults.add(where, f"expected an arm's name, got {described(parent)}")
        elif isinstance(parent, str) and parent not in written:
            faults.add(where, f"no such arm: {literal(parent)}", did_you_mean(parent, written))
        else:
            _extend(handle, written, whole, faults)
    return whole


def _extend(handle: str, written: Mapping[str, JSONObject], whole: dict[str, JSONObject], faults: Faults) -> None:
    """Follow the chain upwards; the first arm of a cycle, in the file's order, tells of it."""
    chain = [handle]
    while "extends" in (arm := written.get(chain[-1], {})):
        parent = arm["extends"]
        if not isinstance(parent, str) or parent not in written:
            return  # told at the arm that says so
        if parent in chain:
            order = list(written)
            if parent == handle and order.index(handle) == min(map(order.index, chain)):
                where = key_path(key_path("$.arms", handle), "extends")
                faults.add(where, f"a cycle: {' → '.join([*chain, parent])}")
            return
        chain.append(parent)
    axes: JSONObject = {}
    for ancestor in reversed(chain):
        axes |= written[ancestor]
    axes.pop("extends", None)
    whole[handle] = axes


def _sweep(
    raw: Mapping[str, object], written: Mapping[str, JSONObject], faults: Faults
) -> dict[str, tuple[JSONValue, ...]]:
    sweep: dict[str, tuple[JSONValue, ...]] = {}
    for axis, values in _table(raw, "sweep", faults).items():
        where = key_path("$.sweep", axis)
        if not isinstance(values, list):
            faults.add(where, f"expected an array, got {described(values)}")
        elif not values:
            faults.add(where, "has no value")
        elif attempt({axis: values}, JSONObject, where="$.sweep", faults=faults):
            shown = [canonical(v) for v in values]
            for index in range(len(values)):
                if shown[index] in shown[:index]:
                    faults.add(item_path(where, index), f"{literal(values[index])} is listed twice")
            sweep[axis] = tuple(values)
        for handle, arm in written.items():
            if axis in arm:
                faults.add(key_path(key_path("$.arms", handle), axis), "set here, and in [sweep] too")
    return sweep


def _contrasts(
    raw: Mapping[str, object],
    written: Mapping[str, JSONObject],
    sweep: Mapping[str, tuple[JSONValue, ...]],
    faults: Faults,
    measures: Measures | None,
) -> tuple[Contrast, ...]:
    listed = raw.get("contrasts", [])
    if not isinstance(listed, list):
        faults.add("$.contrasts", f"expected an array of tables, got {described(listed)}")
        return ()
    contrasts: list[Contrast] = []
    for index, table in enumerate(listed):
        where = item_path("$.contrasts", index)
        read = attempt(table, _ContrastTable, where=where, faults=faults)
        for side in ("a", "b") if isinstance(table, Mapping) else ():
            if isinstance(name := table.get(side), str) and not _names_arm(name, written, sweep):
                faults.add(key_path(where, side), f"no such arm: {literal(name)}", did_you_mean(name, written))
        if read is None:
            continue
        if measures is not None:
            _check_measure(read, where, faults, measures)
        if read.a == read.b:
            faults.add(where, f"compares {literal(read.a)} with itself")
        if any({read.a, read.b} == {c.a, c.b} and read.metric == c.metric for c in contrasts):
            faults.add(where, "is declared twice")
        contrasts.append(Contrast(read.a, read.b, read.metric, read.margin))
    return tuple(contrasts)


def _check_measure(contrast: _ContrastTable, where: str, faults: Faults, measures: Measures) -> None:
    """A metric that can be compared; the margin of a rate is a share."""
    try:
        measure = find_measure(contrast.metric, measures)
    except Wrong as wrong:
        faults.add(key_path(where, "metric"), wrong.message, wrong.hint)
        return
    if measure.rate and contrast.margin is not None and contrast.margin > 1:
        hint = "a share: 0.05 is five percentage points"
        faults.add(key_path(where, "margin"), f"must be <= 1: {contrast.margin}", hint)


def _analysis(raw: Mapping[str, object], faults: Faults) -> Analysis:
    """[analysis], with what its parts must be to each other."""
    where, before = "$.analysis", len(faults)
    read = attempt(raw.get("analysis", {}), _AnalysisTable, where=where, faults=faults)
    if read is None or len(faults) > before:
        return Analysis()
    planned = read.stopping in ("obrien-fleming", "pocock")
    if read.looks and not planned:
        faults.add(f"{where}.looks", f"looks are not planned with stopping = {literal(read.stopping)}")
    if read.looks and 0.0 < read.looks[0] < EARLIEST_LOOK:
        faults.add(f"{where}.looks", f"a look before {EARLIEST_LOOK:g} of the tasks can reject nothing")
    if read.looks and (not _increasing(read.looks) or len(read.looks) < 2 or read.looks[-1] != 1.0):
        faults.add(f"{where}.looks", "expected two or more shares of the tasks, increasing, the last one 1")
    for name, weight in read.weights.items():
        _check_dimension(name, f"{where}.weights", faults)
        if not (math.isfinite(weight) and weight >= 0):
            faults.add(key_path(f"{where}.weights", name), f"expected a number of at least 0, got {literal(weight)}")
    if read.weights and not math.fsum(w for w in read.weights.values() if w > 0):
        faults.add(f"{where}.weights", "all weights are 0")
    for name, ends in read.anchors.items():
        _check_dimension(name, f"{where}.anchors", faults)
        if len(ends) != 2 or not all(map(math.isfinite, ends)) or ends[0] == ends[1]:
            at = key_path(f"{where}.anchors", name)
            faults.add(at, "expected [worst, best], two different numbers")
    if len(faults) > before:
        return Analysis()
    anchors = {name: (ends[0], ends[1]) for name, ends in read.anchors.items()}
    return Analysis(
        read.alpha, read.power, read.stopping, read.looks, read.value_per_solve_usd, dict(read.weights), anchors
    )


def _increasing(looks: Sequence[float]) -> bool:
    return all(a < b for a, b in pairwise((0.0, *looks)))


def _check_dimension(name: str, where: str, faults: Faults) -> None:
    if name not in DIMENSIONS:
        known = f"dimensions are {', '.join(DIMENSIONS)}"
        faults.add(key_path(where, name), "no dimension of the composite", did_you_mean(name, DIMENSIONS) or known)


def _names_arm(name: str, written: Mapping[str, JSONObject], sweep: Mapping[str, tuple[JSONValue, ...]]) -> bool:
    """A handle as written, or one point of its sweep: `plain@reasoning_effort=low`."""
    handle, swept, _ = name.partition("@")
    if not swept:
        return handle in written
    handles = (swept_handle(handle, {a: v for a, (_, v) in p.items()}) for p in islice(points(sweep), MAX_ARMS))
    return handle in written and name in handles


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def write_study(study: Study) -> str:
    """The study as a file, in the order of architecture §12. `read_study` gives the same study back."""
    parts: list[str] = []
    for name, part in study.as_json().items():
        if isinstance(part, list):
            parts += [_block(f"[[{name}]]", _object(table)) for table in part]
        elif name in ("study", "limits", "sweep", "analysis"):
            parts.append(_block(f"[{name}]", _object(part)))
        else:
            parts += [_block(f"[{name}.{_key(key)}]", _object(table)) for key, table in _object(part).items()]
    return "\n".join(parts)


def _object(value: JSONValue) -> JSONObject:
    assert isinstance(value, dict)
    return value


def _block(header: str, table: JSONObject) -> str:
    lines = [f"{_key(k)} = {_text(v)}" for k, v in table.items() if v is not None]
    return "\n".join([header, *lines]) + "\n"


def _text(value: JSONValue) -> str:
    """A value on one line: tomli-w writes every array on many."""
    import tomli_w

    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(k)} = {_text(v)}" for k, v in value.items() if v is not None)
        return f"{{ {inner} }}" if inner else "{}"
    return tomli_w.dumps({"v": value}).removeprefix("v = ").removesuffix("\n")


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)
