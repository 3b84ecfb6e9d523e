"""Two arms on the same tasks: first what differs in the set-up, then what changed in the outcomes. One pure function.

A difference is always A less B, so a positive one is in A's favour. Benchmarks are compared one by one and never
pooled. A contrast that a study declared before its first trial is confirmatory; every other one is exploratory, and
then no better or worse is said, only that it is a candidate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import evolve, frozen

from evalcore.errors import ConfigError, RefusedError, UnknownNameError
from evalcore.report.differences import Difference, Matched, check_treatment, differences, match_benchmarks
from evalcore.report.outcomes import Delta, Flip, Paired, Settle, deltas, flips, pair_tasks, settle
from evalcore.report.sides import Side
from evalcore.report.words import plural
from evalcore.stats.intervals import Interval
from evalcore.stats.margins import margin_level
from evalcore.stats.multiplicity import holm
from evalcore.stats.paired import DifferenceTest, difference_interval, difference_test
from evalcore.stats.verdicts import ALPHA, Conclusion, conclude
from evalcore.values.json import JSONObject
from evalcore.values.stamp import ArmStamp, BenchmarkStamp, RunStamp

METRICS: Final = ("pass@1",)
RESOLUTION: Final = 0.05  # without a margin: how finely a difference should be known, for what would settle it


@frozen
class Outcome:
    """What changed on one benchmark. `interval` is of A less B; `p_adjusted` over a declared family of `family`."""

    benchmark: str
    paired: Paired
    interval: Interval
    test: DifferenceTest | None
    p_adjusted: float | None
    family: int
    margin: float | None  # as declared; one that was not is no ground for a verdict
    margin_interval: Interval | None
    conclusion: Conclusion
    gained: tuple[Flip, ...]  # A did better on them
    lost: tuple[Flip, ...]
    deltas: tuple[Delta, ...]
    settle: Settle


@frozen
class Comparison:
    """Everything that is said about two sides. `cross_world`: boundaries differ, and it was wanted all the same."""

    a: Side
    b: Side
    metric: str
    treatment: tuple[str, ...]
    declared: bool  # a study declared this contrast before its first trial
    cross_world: bool
    differences: tuple[Difference, ...]
    outcomes: tuple[Outcome, ...]
    notes: tuple[str, ...] = ()

    @property
    def boundaries(self) -> tuple[Difference, ...]:
        """Differences that refuse a comparison, and were overridden."""
        return tuple(d for d in self.differences if d.kind == "boundary")

    @property
    def refused(self) -> bool:
        """Whether no benchmark has a verdict."""
        return all(o.conclusion.verdict == "refused" for o in self.outcomes)


@frozen
class _Declared:
    """A contrast as stamped: its margin, and how many claims its study makes, in all and of margins."""

    margin: float | None
    family: int
    margins: int


def compare(
    a: Side,
    b: Side,
    *,
    treatment: Sequence[str] = (),
    metric: str = "pass@1",
    margin: float | None = None,
    alpha: float = ALPHA,
    allow_cross_world: bool = False,
) -> Comparison:
    """Compare A with B. A contrast that both runs' studies declare is about whatever its two arms differ in.

    `treatment` names what else it is about: axes, `model`, `harness` (its name, version and build). `margin` without a
    declared contrast only says how finely a difference should be known. Raises RefusedError, with every reason, where
    anything else differs that is a boundary, and where nothing can be paired; ConfigError for what is no comparison.
    """
    _check(a, b, treatment, metric)
    matched = match_benchmarks(a, b)
    contrast = _declared(a, b, metric)
    if contrast and margin is not None and contrast.margin not in (None, margin):
        raise ConfigError(
            f"the study declared a margin of {100 * (contrast.margin or 0):g}pp for this contrast",
            hint="a margin is named before the first trial; leave --margin out",
        )
    about = {*treatment, *(_own_axes(a, b) if contrast else ())}
    found = differences(a, b, matched, about)
    boundaries = [d for d in found if d.kind == "boundary"]
    if boundaries and not allow_cross_world:
        raise _refusal(boundaries)
    if not matched:
        raise RefusedError("no benchmark in common", reasons=(f"A ran {_ran(a)}", f"B ran {_ran(b)}"))
    declared = contrast if not boundaries else None
    outcomes = tuple(_outcome(a, b, x, y, declared, len(matched), margin, alpha) for x, y in matched)
    return Comparison(
        a, b, metric, tuple(sorted(about)), declared is not None, bool(boundaries), found, outcomes,
        tuple(_notes(a, b, matched, treatment, found, declared)),
    )  # fmt: skip


def _check(a: Side, b: Side, treatment: Sequence[str], metric: str) -> None:
    if metric not in METRICS:
        hint = f"compared are: {', '.join(METRICS)}"
        raise UnknownNameError("metric", metric, hint=hint)
    if a.stamp.run == b.stamp.run and a.arm.arm.digest == b.arm.arm.digest and a.stamp.grading == b.stamp.grading:
        raise ConfigError(f"this compares {a.arm.arm.handle!r} of run {a.stamp.run} with itself")
    check_treatment(treatment, a, b)
    mixed = [
        f"{name} has trials of {' and '.join(f'{p}, isolation {i}' for p, i in side.worlds)}"
        for name, side in (("A", a), ("B", b))
        if len(side.worlds) > 1
    ]
    if mixed:
        hint = "trials of different provenance or isolation are never pooled; `evalcore rerun` makes a run of one kind"
        raise RefusedError("a side is not of one kind", reasons=mixed, hint=hint)


def _refusal(boundaries: Sequence[Difference]) -> RefusedError:
    """Everything that stands against it at once, and what would have to be said."""
    names = sorted({d.lifted_by[0] for d in boundaries if d.lifted_by})
    hints = []
    if names:
        hints.append(f"if it is about {' and '.join(names)}: --treatment {','.join(names)}")
    hints.append("--allow-cross-world shows the numbers all the same, as exploratory only")
    reasons = tuple(d.sentence for d in boundaries)
    said = f"not comparable: {plural(len(boundaries), 'boundary difference')} that the comparison is not about"
    return RefusedError(said, reasons=reasons, hint="; ".join(hints))


def _own_axes(a: Side, b: Side) -> set[str]:
    """What two arms differ in: that is what a declared contrast is about."""
    within = (d for d in differences(a, b, (), ()) if d.lifted_by)
    return {d.lifted_by[0] for d in within}


def _ran(side: Side) -> str:
    return ", ".join(x.selector for x in side.stamp.benchmarks) or "nothing"


# ── declared beforehand ──────────────────────────────────────────────────────────────────────────────────────────────


def _declared(a: Side, b: Side, metric: str) -> _Declared | None:
    """The contrast, if the study of the one run, or of both, declares it; only what both declare alike counts."""
    found = [_stamped(stamp, a.arm, b.arm, metric) for stamp in {s.stamp.run: s.stamp for s in (a, b)}.values()]
    first = found[0]
    return first if all(one == first for one in found) else None


def _stamped(stamp: RunStamp, a: ArmStamp, b: ArmStamp, metric: str) -> _Declared | None:
    listed = stamp.study.get("contrasts")
    contrasts: list[JSONObject] = [c for c in listed if isinstance(c, dict)] if isinstance(listed, list) else []
    digests = {x.arm.handle: x.arm.digest for x in stamp.arms}
    wanted = {a.arm.digest, b.arm.digest}
    for one in contrasts:
        arms = {digests.get(str(one.get(side)), "") for side in ("a", "b")}
        if arms == wanted and len(arms) == 2 and one.get("metric", "pass@1") == metric:
            margins = [c for c in contrasts if c.get("margin") is not None]
            margin = one.get("margin")
            return _Declared(float(margin) if isinstance(margin, (int, float)) else None, len(contrasts), len(margins))
    return None


# ── one benchmark ────────────────────────────────────────────────────────────────────────────────────────────────────


def _outcome(
    a: Side,
    b: Side,
    ours: BenchmarkStamp,
    theirs: BenchmarkStamp,
    declared: _Declared | None,
    benchmarks: int,
    margin: float | None,
    alpha: float,
) -> Outcome:
    paired = pair_tasks(a, b, ours, theirs)
    pairing = paired.pairing
    interval = difference_interval(pairing, 1.0 - alpha)
    test = difference_test(pairing, seed=a.stamp.seed) if pairing.keys else None
    family = declared.family * benchmarks if declared else 1
    p = holm([test.p, *[None] * (family - 1)])[0] if test else None
    agreed = declared.margin if declared else None
    within = None
    if agreed is not None and declared is not None:
        within = difference_interval(pairing, margin_level(alpha, declared.margins * benchmarks))
    conclusion = conclude(
        interval, p, clusters=paired.clusters, void_rates=paired.void_rates, confirmatory=declared is not None,
        alpha=alpha, margin=agreed, margin_interval=within,
    )  # fmt: skip
    if conclusion.verdict == "candidate":  # its reason names a direction, which an exploratory contrast has not earned
        said = "not declared before the first trial: worth a study of its own, and no finding yet"
        conclusion = evolve(conclusion, reason=said)
    gained, lost = flips(paired)
    wanted = agreed or margin
    return Outcome(
        ours.selector, paired, interval, test, p, family, agreed, within, conclusion, gained, lost,
        deltas(paired), settle(paired, wanted or RESOLUTION, ours, declared=wanted is not None, level=1.0 - alpha),
    )  # fmt: skip


def _notes(
    a: Side,
    b: Side,
    matched: Matched,
    treatment: Sequence[str],
    found: Sequence[Difference],
    declared: _Declared | None,
) -> list[str]:
    """What a reader must know beside the numbers."""
    notes = []
    if declared:
        notes.append(
            f"declared in the study, which was stamped before the first trial; p is adjusted for "
            f"{plural(declared.family * len(matched), 'declared claim')} (Holm; what is not computed here counts as 1)"
        )
    else:
        notes.append("exploratory: no study declared this contrast before its first trial")
    differing = {name for d in found if d.kind == "treatment" for name in d.lifted_by}
    notes += [f"{name} is the same on both sides: the treatment changes nothing" for name in set(treatment) - differing]
    controls = [s.arm.arm.handle for s in (a, b) if s.arm.control]
    if controls:
        notes.append(f"{' and '.join(controls)}: controls, which show that the rig is sound and measure no agent")
    for name, side, place in (("A", a, 0), ("B", b, 1)):
        alone = [x.selector for x in side.stamp.benchmarks if x.selector not in {m[place].selector for m in matched}]
        if alone:
            notes.append(f"only {name} ran {', '.join(alone)}: left out")
    return notes
