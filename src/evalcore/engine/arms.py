"""From a study's arms as written to complete ones: sweep expanded, values checked, defaults and digests filled in."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from attrs import Factory, define, field, frozen

from evalcore.errors import ConfigError
from evalcore.values.arm import Arm
from evalcore.values.descriptors import AxisInfo, HarnessInfo, ModelInfo
from evalcore.values.faults import (
    Faults,
    Wrong,
    described,
    did_you_mean,
    item_path,
    key_path,
    literal,
    one_of,
    suggestion,
)
from evalcore.values.json import JSONValue, canonical
from evalcore.values.measure import NO_MORE, Measure
from evalcore.values.study import Study

Content: TypeAlias = Callable[[str, str], Mapping[str, str]]
Point: TypeAlias = Mapping[str, tuple[int, JSONValue]]  # one value of each swept axis, and its place in the list

MODEL_AXES: Final = frozenset({"model", "user_model", "judge_model"})
MAX_ARMS: Final = 10_000  # a sweep multiplies; past this it is a slip of the pen
_OWN: Final = (  # every arm is made of these, whether or not a plugin describes them; they always count in the digest
    AxisInfo("harness", "the agent under test", "engine", boundary=True),
    AxisInfo("model", "provider/name", "gateway", boundary=True),
)


# ── what exists, and who takes what ──────────────────────────────────────────────────────────────────────────────────


@frozen
class Vocabulary:
    """Everything registered that an arm can be made of."""

    axes: tuple[AxisInfo, ...] = ()
    harnesses: tuple[HarnessInfo, ...] = ()
    models: tuple[ModelInfo, ...] = ()
    measures: Mapping[str, Measure] = NO_MORE  # the metrics of plugins, which contrasts can be by

    def axis_infos(self) -> tuple[AxisInfo, ...]:
        """All axes: `harness` and `model` first, as registered or as every study has them."""
        registered = {a.name for a in self.axes}
        return tuple(a for a in _OWN if a.name not in registered) + self.axes

    def axes_named(self, name: str) -> tuple[AxisInfo, ...]:
        """The axes of that name: more than one only where different parts own one each. Wrong if there is none."""
        infos = self.axis_infos()
        found = tuple(a for a in infos if a.name == name)
        if not found:
            raise Wrong(f"unknown axis {name!r}", suggestion(name, {a.name for a in infos}, "axes"))
        return found

    def default(self, name: str) -> JSONValue:
        """The declared default of `harness` or `model`."""
        return next((a.default for a in self.axis_infos() if a.name == name), None)

    def harness(self, name: JSONValue) -> HarnessInfo:
        """The harness of that name. Wrong if there is none."""
        found = next((h for h in self.harnesses if h.name == name), None)
        if found is None:
            raise Wrong(
                f"unknown harness {name!r}", suggestion(str(name), (h.name for h in self.harnesses), "harnesses")
            )
        return found

    def provider(self, model: JSONValue) -> ModelInfo:
        """Who serves `provider/name`. Wrong if it is not written so, or nobody does."""
        names = [m.name for m in self.models]
        provider, _, name = str(model).partition("/")
        if not provider or not name or name != name.strip() or not name.isprintable():
            raise Wrong(f"expected provider/name, got {described(model)}", f"providers: {', '.join(sorted(names))}")
        found = next((m for m in self.models if m.name == provider), None)
        if found is None:
            raise Wrong(f"unknown provider {provider!r}", suggestion(provider, names, "providers"))
        return found


def uses_model(harness: HarnessInfo) -> bool:
    """Whether an arm of this harness has a model: a control never does."""
    return harness.uses_model and not harness.control


def takes(axis: AxisInfo, harness: HarnessInfo, provider: ModelInfo | None) -> bool:
    """Whether an arm of this harness and provider uses the axis."""
    if axis.name == "harness":
        return True
    if axis.name == "user_model":
        return not harness.control  # a control's user is scripted, by the gold
    if axis.name == "model" or axis.owner == "gateway":
        return uses_model(harness) and (axis.name == "model" or provider is None or _passes_on(provider, axis))
    if axis.owner == "harness":
        return axis.name in harness.axes or axis.of == harness.name
    if axis.owner == "provider":
        return uses_model(harness) and (provider is None or axis.name in provider.axes or axis.of == provider.name)
    return True  # the engine, adapters, bridges and transforms: which of them a task meets is not known here


def _passes_on(provider: ModelInfo, axis: AxisInfo) -> bool:
    return axis.of in ("", provider.name) and (not provider.gateway_axes or axis.name in provider.gateway_axes)


def untaken(axis: AxisInfo, harness: HarnessInfo, provider: ModelInfo | None, vocabulary: Vocabulary) -> Wrong:
    """Why the axis cannot be set on such an arm."""
    if axis.name == "user_model":
        return Wrong(f"the user is scripted where {harness.name!r} plays", "leave it out")
    if axis.name == "model" or (axis.owner in {"gateway", "provider"} and not uses_model(harness)):
        return Wrong(f"harness {harness.name!r} uses no model", "leave it out")
    if axis.owner == "gateway":
        passed = ", ".join(provider.gateway_axes) if provider else ""
        name = provider.name if provider else ""
        return Wrong(f"provider {name!r} does not pass it on", f"it passes on: {passed}" if passed else None)
    if axis.owner == "provider":
        takers = [m.name for m in vocabulary.models if takes(axis, harness, m)]
        name = provider.name if provider else ""
        return Wrong(f"provider {name!r} does not take it", f"taken by: {', '.join(takers)}" if takers else None)
    others = [h.name for h in vocabulary.harnesses if takes(axis, h, None)]
    return Wrong(f"harness {harness.name!r} does not take it", f"taken by: {', '.join(others)}" if others else None)


def fit(axis: AxisInfo, value: JSONValue) -> JSONValue:
    """The value as the axis holds it; Wrong if its type, values or bounds forbid it."""
    value = _typed(axis, value)
    if axis.values and canonical(value) not in {canonical(_normal(axis, v)) for v in axis.values}:
        hint = did_you_mean(value, [v for v in axis.values if isinstance(v, str)]) if isinstance(value, str) else None
        raise Wrong(f"expected {one_of(axis.values)}, got {described(value)}", hint)
    if isinstance(value, (int, float)):
        if axis.low is not None and value < axis.low:
            raise Wrong(f"must be >= {axis.low:g}: {value}")
        if axis.high is not None and value > axis.high:
            raise Wrong(f"must be <= {axis.high:g}: {value}")
    return value


def _typed(axis: AxisInfo, value: JSONValue) -> JSONValue:
    """As the converter: no coercion, but that an integer is also a number (written so, that 1 and 1.0 are one arm)."""
    value = _normal(axis, value)
    word, kind = _TYPES[axis.type]
    if type(value) is not kind:
        raise Wrong(f"expected {word}, got {described(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise Wrong(f"expected a finite number, got {value}")
    if value == "" or (axis.type == "file" and "\0" in str(value)):
        raise Wrong(f"expected {word}, got {described(value)}")
    return value


def _normal(axis: AxisInfo, value: JSONValue) -> JSONValue:
    if axis.type == "number" and type(value) is int and abs(value) <= 2**53:  # beyond that a float is another number
        return float(value)
    return value


_TYPES: Final[Mapping[str, tuple[str, type]]] = {
    "text": ("text", str),
    "file": ("a file's path", str),
    "integer": ("an integer", int),
    "number": ("a number", float),
    "boolean": ("true or false", bool),
}


def points(sweep: Mapping[str, tuple[JSONValue, ...]]) -> Iterator[Point]:
    """Every combination of the swept values; one empty combination where nothing is swept."""
    for combination in itertools.product(*(enumerate(values) for values in sweep.values())):
        yield dict(zip(sweep, combination, strict=True))


def swept_handle(handle: str, point: Mapping[str, JSONValue]) -> str:
    """`plain@reasoning_effort=low`: a written handle and the swept values that the arm uses."""
    shown = ",".join(f"{axis}={value if isinstance(value, str) else literal(value)}" for axis, value in point.items())
    return f"{handle}@{shown}" if shown else handle


# ── complete arms ────────────────────────────────────────────────────────────────────────────────────────────────────


def complete_arms(
    study: Study, vocabulary: Vocabulary, *, base: Path, content: Content | None = None
) -> tuple[Arm, ...]:
    """Every arm of the study in full, in order; ConfigError with everything that is wrong with any of them.

    Paths are resolved against `base`. A file that an axis names is digested into `Arm.content`; `content`, if given, is
    asked for further digests of every text value (a playbook behind a model's name). Under a sweep a control keeps out
    of what it does not take and stays one arm; any other arm that does not take a swept axis is a fault.
    """
    faults = Faults()
    arms = collect_arms(study, vocabulary, base=base, content=content, faults=faults)
    faults.raise_if_any(f"study {study.name}")
    return arms


def collect_arms(
    study: Study, vocabulary: Vocabulary, *, base: Path, content: Content | None = None, faults: Faults
) -> tuple[Arm, ...]:
    """As `complete_arms`, after other checks: what is wrong goes to `faults`; the arms that are right come back."""
    whole = not faults  # else arms may be missing that would have taken a swept axis
    count = len(study.arms) * math.prod(map(len, study.sweep.values()))
    if count > MAX_ARMS:
        faults.add("$.sweep", f"makes {count} arms, and {MAX_ARMS} is the most")
        return ()
    work = _Completion(study, vocabulary, base, content)
    for handle, written in study.arms.items():
        for point in points(study.sweep):
            work.add(handle, written, point)
    work.check_the_rest(whole=whole)
    for found in work.found.values():
        faults.add(found.where, found.wrong.message, found.hint())
    return tuple(made.arm for made in work.made.values())


@frozen
class _Given:
    """A value that the study sets, and where."""

    axis: str
    value: JSONValue
    where: str
    swept: bool


@frozen
class _Parts:
    """What an arm is made of, as far as it could be found, and the axes that it takes by name."""

    harness: HarnessInfo | None
    provider: ModelInfo | None
    axes: Mapping[str, AxisInfo]


@frozen
class _Made:
    handle: str  # as written
    point: Point
    arm: Arm


@frozen
class _Found:
    """A fault, and the other arms that have it too: most often they inherit it."""

    where: str
    wrong: Wrong
    handle: str
    also: list[str] = Factory(list)

    def hint(self) -> str | None:
        also = f"also in {', '.join(self.also)}" if self.also else None
        return "; ".join(h for h in (self.wrong.hint, also) if h) or None


@define
class _Completion:
    """One pass over a study's arms: what was made, and what was found wrong."""

    study: Study
    vocabulary: Vocabulary
    base: Path
    content: Content | None
    made: dict[str, _Made] = field(factory=dict)  # by the arm's digest
    swept: set[str] = field(factory=set)  # swept axes that some arm takes, or that have a fault already
    found: dict[tuple[str, str], _Found] = field(factory=dict)
    count: int = 0  # of faults, folded ones too
    digests: dict[Path, str] = field(factory=dict)

    def fault(self, where: str, wrong: Wrong, *, axis: str = "", handle: str = "") -> None:
        """One more fault; the same one in another arm is told once."""
        self.count += 1
        first = self.found.setdefault((axis or where, wrong.message), _Found(where, wrong, handle))
        if handle != first.handle and handle not in first.also:
            first.also.append(handle)

    def add(self, handle: str, written: Mapping[str, JSONValue], point: Point) -> None:
        """Complete one arm at one point of the sweep, and keep it unless it is there already."""
        before = self.count
        given = [_Given(a, v, _arm_path(handle, a), swept=False) for a, v in written.items()]
        given += [_Given(a, v, item_path(key_path("$.sweep", a), i), swept=True) for a, (i, v) in point.items()]
        parts = self._parts({g.axis: g.value for g in given})
        given += self._of_roles({g.axis for g in given}, parts)
        axes = self._values(handle, given, parts, lenient="harness" in point)
        if self.count > before or parts.harness is None:
            return
        applied = {a: v for a, (_, v) in point.items() if a in axes}
        defaults = {a: _normal(i, i.default) for a, i in parts.axes.items() if i.default is not None}
        axes = dict(sorted((defaults | axes).items(), key=_own_first))
        content = self._content(handle, axes, parts, {g.axis: g.where for g in given})
        for own in _OWN:
            defaults.pop(own.name, None)
        if self.count == before:
            self._keep(_Made(handle, point, Arm(swept_handle(handle, applied), axes, defaults, content)))

    def _of_roles(self, set_already: set[str], parts: _Parts) -> list[_Given]:
        """What the study says for all arms of the other roles' models, where this arm takes it and says nothing."""
        models = {f"{role}_model": (role, c.model) for role, c in self.study.roles.items() if c.model is not None}
        return [
            _Given(axis, model, f"$.roles.{role}.model", swept=False)
            for axis, (role, model) in models.items()
            if axis not in set_already and axis in parts.axes
        ]

    def _parts(self, values: Mapping[str, JSONValue]) -> _Parts:
        """The registered parts behind the values; what is wrong with those is told where they are checked."""
        harness, provider = None, None
        try:
            harness = self.vocabulary.harness(values.get("harness", self.vocabulary.default("harness")))
            if uses_model(harness):
                provider = self.vocabulary.provider(values.get("model", self.vocabulary.default("model")))
        except Wrong:
            pass
        axes: dict[str, AxisInfo] = {}
        for info in self.vocabulary.axis_infos():
            if harness is not None and takes(info, harness, provider):
                axes.setdefault(info.name, info)
        return _Parts(harness, provider, axes)

    def _values(self, handle: str, given: Iterable[_Given], parts: _Parts, *, lenient: bool) -> dict[str, JSONValue]:
        """The values that fit, each fault told; then what must be there and is not."""
        values: dict[str, JSONValue] = {}
        names = set()
        for one in given:
            names.add(one.axis)
            try:
                value = self._value(one, parts, lenient=lenient or one.swept)
            except Wrong as wrong:
                self.swept.add(one.axis)
                self.fault(one.where, wrong, axis="" if one.swept else one.axis, handle="" if one.swept else handle)
                continue
            if value is not None:
                values[one.axis] = value
                self.swept.add(one.axis)
        for own in ("harness", "model") if parts.harness and uses_model(parts.harness) else ("harness",):
            if own not in names and self.vocabulary.default(own) is None:
                self.fault(_arm_path(handle, own), self._missing(own), axis=own, handle=handle)
        return values

    def _value(self, given: _Given, parts: _Parts, *, lenient: bool) -> JSONValue:
        """The value as the axis holds it; None where a control keeps out of a sweep."""
        infos = self.vocabulary.axes_named(given.axis)
        if parts.harness is not None and given.axis not in parts.axes:
            if lenient and parts.harness.control:
                return None
            raise untaken(infos[0], parts.harness, parts.provider, self.vocabulary)
        value = fit(parts.axes.get(given.axis, infos[0]), given.value)
        if given.axis == "harness":
            self.vocabulary.harness(value)
        if given.axis in MODEL_AXES:
            self.vocabulary.provider(value)
        return value

    def _missing(self, axis: str) -> Wrong:
        if axis == "model":
            providers = ", ".join(sorted(m.name for m in self.vocabulary.models))
            return Wrong("missing: its harness speaks to a model", f"provider/name; providers: {providers}")
        return Wrong("missing", f"harnesses: {', '.join(sorted(h.name for h in self.vocabulary.harnesses))}")

    def _content(
        self, handle: str, axes: Mapping[str, JSONValue], parts: _Parts, where: Mapping[str, str]
    ) -> dict[str, str]:
        """The digests of the files that the values name."""
        content: dict[str, str] = {}
        for axis, value in axes.items():
            try:
                content |= self._digests(parts.axes[axis], value) if isinstance(value, str) else {}
            except Wrong as wrong:
                self.fault(where.get(axis, _arm_path(handle, axis)), wrong, axis=axis, handle=handle)
        return content

    def _digests(self, axis: AxisInfo, value: str) -> dict[str, str]:
        try:
            own = {axis.name: self._file_digest(self.base / value)} if axis.type == "file" else {}
            return own | dict(self.content(axis.name, value) if self.content else {})
        except OSError as error:
            raise Wrong(f"cannot read {value}: {error.strerror}") from None
        except ConfigError as error:
            raise Wrong(error.message, error.hint) from None

    def _file_digest(self, path: Path) -> str:
        if path not in self.digests:
            with path.open("rb") as file:
                self.digests[path] = hashlib.file_digest(file, "sha256").hexdigest()
        return self.digests[path]

    def _keep(self, made: _Made) -> None:
        """Two written arms that are one configuration are a mistake; two points of a sweep that are one are one arm."""
        first = self.made.setdefault(made.arm.digest, made)
        if first.handle != made.handle and first.point == made.point and "harness" not in made.point:
            where = key_path("$.arms", made.handle)
            self.fault(where, Wrong(f"the same configuration as arm {first.handle!r}"))

    def check_the_rest(self, *, whole: bool) -> None:
        """Swept axes that no arm takes, if every arm was seen; and the models of the other roles."""
        for axis in self.study.sweep if whole else ():
            if axis not in self.swept:
                self.fault(key_path("$.sweep", axis), Wrong("no arm takes it"))
        for role, choice in self.study.roles.items():
            if choice.model is not None:
                try:
                    self.vocabulary.provider(choice.model)
                except Wrong as wrong:
                    self.fault(f"$.roles.{role}.model", wrong)


def _arm_path(handle: str, axis: str) -> str:
    return key_path(key_path("$.arms", handle), axis)


def _own_first(item: tuple[str, JSONValue]) -> tuple[bool, bool, str]:
    return item[0] != "harness", item[0] != "model", item[0]
