"""What differs between two sides of a comparison before any result: every stamped field, and what each one means.

A *treatment* is what the comparison is declared to be about. A *boundary* (architecture §8) is anything else that would
explain a difference as well, and makes the sides incomparable. What is *told* could matter and refuses nothing.
Unknown is never equal to anything, not even to unknown; within one run it is the same thing, and therefore equal.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from attrs import frozen

from evalcore.errors import UnknownNameError
from evalcore.report.sides import Side
from evalcore.values.arm import Arm
from evalcore.values.faults import nearest
from evalcore.values.json import JSONValue, digest
from evalcore.values.stamp import BenchmarkStamp, RunStamp
from evalcore.values.task import LIMIT_NAMES, Limits

Kind: TypeAlias = Literal["treatment", "boundary", "told"]
Matched: TypeAlias = Sequence[tuple[BenchmarkStamp, BenchmarkStamp]]

UNKNOWN_VERSIONS: Final = frozenset({"", "unknown"})
CODE: Final = ("source", "files", "upstream")  # of a toolkit's stamp: the benchmark's own code
ROLES: Final = ("user", "judge")
SERVED: Final = "model as served"
HOST: Final = ("system", "machine", "cpus")


@frozen
class Difference:
    """A stamped field that differs, as text; None is not known. `lifted_by` names the treatments that it belongs to."""

    field: str
    a: str | None
    b: str | None
    kind: Kind
    lifted_by: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """`model: openai/x and openai/y`, with how to declare it."""
        text = f"{self.field}: {self.a or 'unknown'} in A, {self.b or 'unknown'} in B"
        return f"{text} (--treatment {self.lifted_by[0]})" if self.lifted_by else text


@frozen
class _Found:
    """A difference before it is known what the comparison is about."""

    field: str
    a: str | None
    b: str | None
    lifted_by: tuple[str, ...] = ()
    boundary: bool = True


def match_benchmarks(a: Side, b: Side) -> list[tuple[BenchmarkStamp, BenchmarkStamp]]:
    """The benchmarks of both sides: by selector, else by a dataset that only one of each side's others has."""
    theirs = {x.selector: x for x in b.stamp.benchmarks}
    pairs = [(x, theirs[x.selector]) for x in a.stamp.benchmarks if x.selector in theirs]
    matched = {x.selector for x, _ in pairs}
    rest_a = [x for x in a.stamp.benchmarks if x.selector not in matched]
    rest_b = [x for x in b.stamp.benchmarks if x.selector not in matched]
    for x in rest_a:
        same = [y for y in rest_b if y.dataset.name == x.dataset.name]
        if len(same) == 1 and sum(z.dataset.name == x.dataset.name for z in rest_a) == 1:
            pairs.append((x, same[0]))
    return pairs


def check_treatment(names: Iterable[str], a: Side, b: Side) -> None:
    """Raises UnknownNameError for a treatment that is no axis of either arm."""
    known = {"model", "harness", "grader", *a.arm.arm.axes, *b.arm.arm.axes}
    for name in names:
        if name not in known:
            hint = f"a treatment is an axis of these arms: {', '.join(sorted(known))}"
            raise UnknownNameError("treatment", name, nearest=nearest(name, known), hint=hint)


def differences(a: Side, b: Side, matched: Matched, treatment: Collection[str]) -> tuple[Difference, ...]:
    """Every stamped field in which the sides differ: treatments first, then boundaries, then what is only told."""
    found = [*_of_arms(a, b), *_of_roles(a, b), *_of_worlds(a, b), *_of_served(a, b)]
    if a.stamp.run != b.stamp.run:  # within a run all of this is the same thing, but for how it was graded
        found += [f for x, y in matched for f in _of_benchmark(x, y)]
        found += [*_of_toolkits(a, b), *_told(a, b)]
    elif a.stamp.grading != b.stamp.grading:
        found += [f for x, y in matched for f in _of_graders(x, y)]
    whole = [Difference(f.field, f.a, f.b, _kind(f, treatment), f.lifted_by) for f in found]
    order = ("treatment", "boundary", "told")
    return tuple(sorted(whole, key=lambda d: order.index(d.kind)))


def _kind(found: _Found, treatment: Collection[str]) -> Kind:
    if any(name in treatment for name in found.lifted_by):
        return "treatment"
    return "boundary" if found.boundary else "told"


# ── the arms ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _of_arms(a: Side, b: Side) -> Iterator[_Found]:
    """Axes, the content of files that they name, and the harness's version and build."""
    ours, theirs = a.arm.arm, b.arm.arm
    one_run, other_harness = a.stamp.run == b.stamp.run, ours.harness != theirs.harness
    for axis in sorted({*ours.axes, *theirs.axes}, key=lambda name: (name not in ("model", "harness"), name)):
        if _value(ours, theirs, axis) == _value(theirs, ours, axis):
            continue
        x, y = _axis(ours.axes, axis), _axis(theirs.axes, axis)
        one_sided = other_harness and (axis in ours.axes) != (axis in theirs.axes)
        yield _Found(axis, x, y, (axis, "harness") if one_sided and axis != "harness" else (axis,))
    for key in sorted({*ours.content, *theirs.content}):
        digest_a, digest_b = ours.content.get(key), theirs.content.get(key)
        if digest_a != digest_b:
            # a file that an axis names goes by the axis; what a provider adds (a playbook) belongs to the model
            axis = key if key in ours.axes or key in theirs.axes else "model"
            yield _Found(f"content of {key}", _short(digest_a), _short(digest_b), (axis,))
    version_a, version_b = _version(a.arm.harness_version), _version(b.arm.harness_version)
    if version_a != version_b or (version_a is None and (other_harness or not one_run)):
        yield _Found("harness version", version_a, version_b, ("harness",))
    if a.arm.harness_build != b.arm.harness_build:
        yield _Found("harness build", a.arm.harness_build or None, b.arm.harness_build or None, ("harness",))


def _value(arm: Arm, other: Arm, axis: str) -> JSONValue | None:
    """An axis that an arm does not have counts as the default that the other one declares for it."""
    return arm.axes[axis] if axis in arm.axes else other.defaults.get(axis)


def _axis(axes: Mapping[str, JSONValue], name: str) -> str:
    return _text(axes[name]) if name in axes else "not set"


def _version(text: str) -> str | None:
    return None if text in UNKNOWN_VERSIONS else text


def _of_roles(a: Side, b: Side) -> Iterator[_Found]:
    """User and judge models, with their limits, as the studies name them."""
    for role in ROLES:
        x, y = (_role(side, role) for side in (a, b))
        if x != y:
            yield _Found(f"{role}'s model and limits", _chosen(x), _chosen(y))


def _role(side: Side, role: str) -> JSONValue:
    roles = side.stamp.study.get("roles")
    return roles.get(role) if isinstance(roles, dict) else None


def _chosen(role: JSONValue) -> str:
    return _text(role) if role else "the default"


def _of_worlds(a: Side, b: Side) -> Iterator[_Found]:
    for name, place in (("provenance", 0), ("isolation", 1)):
        x, y = (" and ".join(sorted({w[place] for w in side.worlds})) or None for side in (a, b))
        if x != y or x is None:
            yield _Found(name, x, y)


def _of_served(a: Side, b: Side) -> Iterator[_Found]:
    """Which model answered, by its own word: another build under one name is another model.

    Where a side was not told, nothing is known: that is said between runs, and refuses nothing (decision 17).
    """
    if not (a.arm.uses_model and b.arm.uses_model):
        return
    x, y = (" and ".join(side.served) or None for side in (a, b))
    if x is None or y is None:
        if a.stamp.run != b.stamp.run:
            yield _Found(SERVED, x, y, boundary=False)
    elif x != y and a.arm.arm.model == b.arm.arm.model:  # else the name that was asked for says it already
        yield _Found(SERVED, x, y, ("model",))


# ── the benchmarks ───────────────────────────────────────────────────────────────────────────────────────────────────


def _of_benchmark(a: BenchmarkStamp, b: BenchmarkStamp) -> Iterator[_Found]:
    """One benchmark in two runs."""
    name = a.selector
    plain: dict[str, tuple[str | None, str | None]] = {
        "dataset": (a.dataset.name, b.dataset.name),
        "dataset version": (_version(a.dataset.version), _version(b.dataset.version)),
        "grader": (a.grader, b.grader),
        "limits": (_limits(a), _limits(b)),
    }
    for field, (x, y) in plain.items():
        if x != y or x is None:
            yield _Found(f"{name}: {field}", x, y)
    if a.dataset.version == b.dataset.version and a.dataset.digest != b.dataset.digest:
        yield _Found(f"{name}: dataset digest", _short(a.dataset.digest), _short(b.dataset.digest))
    yield from _of_graders(a, b)
    both = a.cluster_of.keys() & b.cluster_of.keys()
    moved = [task for task in sorted(both) if a.cluster_of[task] != b.cluster_of[task]]
    if moved:
        yield _Found(f"{name}: cluster of {moved[0]}", a.cluster_of[moved[0]], b.cluster_of[moved[0]])
    if a.selector != b.selector:
        yield _Found(f"{name}: selector", a.selector, b.selector, boundary=False)
    if a.tasks_digest != b.tasks_digest:
        yield _Found(f"{name}: tasks", f"{a.tasks:,} chosen", f"{b.tasks:,} chosen", boundary=False)
    if a.dataset.status != b.dataset.status:
        yield _Found(f"{name}: dataset status", a.dataset.status, b.dataset.status, boundary=False)


def _of_graders(a: BenchmarkStamp, b: BenchmarkStamp) -> Iterator[_Found]:
    if a.grader_stamp != b.grader_stamp or not a.grader_stamp:
        yield _Found(f"{a.selector}: grader's stamp", *_changed(a.grader_stamp, b.grader_stamp), ("grader",))


def _limits(benchmark: BenchmarkStamp) -> str:
    bounds = benchmark.limits.as_json()
    given = [f"{name} {bounds[name]}" for name in LIMIT_NAMES if bounds[name] is not None]
    text = ", ".join(given) if benchmark.limits != Limits() else "none"
    return text if benchmark.standard_limits else f"{text} (stricter than the benchmark's own)"


def _of_toolkits(a: Side, b: Side) -> Iterator[_Found]:
    """The benchmarks' upstream code, where both runs used it, is a boundary; how it was installed is told."""
    ours, theirs = a.stamp.toolkits, b.stamp.toolkits
    for name in sorted(ours.keys() & theirs.keys()):
        x, y = ours[name], theirs[name]
        if not (isinstance(x, dict) and isinstance(y, dict)):
            continue
        for field in sorted({*x, *y}):
            if x.get(field) != y.get(field):
                texts = (_maybe(x.get(field)), _maybe(y.get(field)))
                yield _Found(f"toolkit {name}: {field}", *texts, boundary=field in CODE)


def _told(a: Side, b: Side) -> Iterator[_Found]:
    """What could matter, and refuses nothing."""
    x, y = a.stamp, b.stamp
    for name in sorted({"evalcore", *x.versions, *y.versions}):
        for field, ours, theirs in _versions(name, x.versions.get(name), y.versions.get(name)):
            if ours != theirs or ours is None:
                yield _Found(field, ours, theirs, boundary=False)
    for field, one, other in (
        ("repeats", str(x.repeats), str(y.repeats)),
        ("seed", str(x.seed), str(y.seed)),
        ("study", _short(x.study_digest), _short(y.study_digest)),
        *((f"host {name}", _maybe(x.host.get(name)), _maybe(y.host.get(name))) for name in HOST),
        ("prices", _prices(x), _prices(y)),
    ):
        if one != other:
            yield _Found(field, one, other, boundary=False)


def _prices(stamp: RunStamp) -> str | None:
    return _short(digest(stamp.prices)) if stamp.prices else "none"


def _versions(name: str, x: JSONValue, y: JSONValue) -> Iterator[tuple[str, str | None, str | None]]:
    """A version, or each of several."""
    if isinstance(x, dict) and isinstance(y, dict):
        for inner in sorted({*x, *y}):
            ours, theirs = (_maybe(side[inner]) if inner in side else "not installed" for side in (x, y))
            yield f"{name.removesuffix('s')} {inner}", ours, theirs
    else:
        yield f"{name} version", _maybe(x), _maybe(y)


# ── as text ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _changed(a: Mapping[str, JSONValue], b: Mapping[str, JSONValue]) -> tuple[str | None, str | None]:
    """Only what differs between two stamps; None for an empty one."""
    names = [name for name in {**a, **b} if a.get(name) != b.get(name)]
    x, y = (", ".join(f"{n} {_text(s.get(n))}" for n in names) if s else None for s in (a, b))
    return x, y


def _text(value: JSONValue) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _maybe(value: JSONValue) -> str | None:
    return None if value is None else _text(value)


def _short(name: str | None) -> str | None:
    return name[:12] if name else None
