"""Two arms on the same tasks: first what differs in the set-up, then what changed in the outcomes. One pure function.

A difference is always A less B, so a positive one is in A's favour. Benchmarks are compared one by one and never
pooled. A contrast that a study declared before its first trial is confirmatory; every other one is exploratory, and
then no better or worse is said, only that it is a candidate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from attrs import frozen

from evalcore.errors import ConfigError, RefusedError, UnknownNameError
from evalcore.report.analysis import Flip
from evalcore.report.claims import Claim, analysis_of, claims_of
from evalcore.report.deciding import Evidence, Rules, adjusted_p, concluded, gather
from evalcore.report.differences import SERVED, Difference, Matched, check_treatment, differences, match_benchmarks
from evalcore.report.outcomes import Delta, Paired, Settle, deltas, flips, settle
from evalcore.report.sides import Side
from evalcore.report.words import plural
from evalcore.stats.intervals import Interval
from evalcore.stats.multiplicity import benjamini_hochberg
from evalcore.stats.paired import DifferenceTest
from evalcore.stats.verdicts import Conclusion
from evalcore.values.faults import Wrong
from evalcore.values.measure import Measure, find_measure
from evalcore.values.stamp import BenchmarkStamp, RunStamp

RESOLUTION: Final = 0.05  # without a margin: how finely a difference of rates should be known


@frozen
class Outcome:
    """What changed on one benchmark. `interval` is of A less B; `p_adjusted` over a declared family of `family`.

    Of an exploratory contrast `p_adjusted` is a q-value (Benjamini and Hochberg) over the benchmarks compared.
    """

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
    settle: Settle
    confirmatory: bool = False
    look: int | None = None

    @property
    def measure(self) -> Measure:
        """What was compared."""
        return self.paired.measure

    @property
    def deltas(self) -> tuple[Delta, ...]:
        """What else changed, as point values."""
        return deltas(self.paired)


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


def compare(
    a: Side,
    b: Side,
    *,
    treatment: Sequence[str] = (),
    metric: str = "pass@1",
    margin: float | None = None,
    allow_cross_world: bool = False,
    family: Mapping[Claim, float | None] | None = None,
) -> Comparison:
    """Compare A with B. A contrast that both runs' studies declare is about whatever its two arms differ in.

    `treatment` names what else it is about: axes, `model`, `harness` (its name, version and build). `margin` without a
    declared contrast only says how finely a difference should be known. `family` holds the p-values of the study's
    claims that are known; the others count as 1. Raises RefusedError, with every reason, where anything else differs
    that is a boundary, and where nothing can be paired; ConfigError for what is no comparison.
    """
    measure = _measure(metric, a)
    check_sides(a, b, treatment)
    matched = match_benchmarks(a, b)
    declared = _declared(a, b, metric)
    _check_margin(margin, measure, declared)
    about = {*treatment, *(own_axes(a, b) if declared else ())}
    found = differences(a, b, matched, about)
    boundaries = [d for d in found if d.kind == "boundary"]
    if boundaries and not allow_cross_world:
        raise _refusal(boundaries)
    if not matched:
        raise RefusedError("no benchmark in common", reasons=(f"A ran {_ran(a)}", f"B ran {_ran(b)}"))
    if boundaries:
        declared = ()
    outcomes = _outcomes(a, b, matched, measure, declared, margin, family or {})
    return Comparison(
        a, b, metric, tuple(sorted(about)), bool(declared), bool(boundaries), found, outcomes,
        tuple(_notes(a, b, matched, treatment, found, declared, outcomes)),
    )  # fmt: skip


def _measure(metric: str, side: Side) -> Measure:
    try:
        return find_measure(metric, side.metrics.known)
    except Wrong as wrong:
        raise UnknownNameError("metric", metric, hint=told(wrong)) from None


def told(wrong: Wrong) -> str | None:
    """What a name cannot be, and what can be: a metric that is there and cannot be compared has its reason."""
    return f"{wrong.message}; {wrong.hint}" if ": " in wrong.message else wrong.hint


def _check_margin(margin: float | None, measure: Measure, declared: Sequence[Claim]) -> None:
    """Raises ConfigError for a margin that is none, or another than was declared."""
    if margin is None:
        return
    if measure.rate and not 0.0 < margin < 1.0:
        raise ConfigError(f"a margin of {margin:g} is no share", hint="0.05 is five percentage points")
    stood = next((c.margin for c in declared if c.margin not in (None, margin)), None)
    if stood is not None:
        said = f"{100 * stood:g}pp" if measure.rate else f"{stood:g} {measure.unit}"
        raise ConfigError(
            f"the study declared a margin of {said} for this contrast",
            hint="a margin is named before the first trial; leave --margin out",
        )


def check_sides(a: Side, b: Side, treatment: Sequence[str] = ()) -> None:
    """Raises ConfigError, RefusedError for two sides that are no two sides, and for one that is not of one kind."""
    if a.stamp.run == b.stamp.run and a.arm.arm.digest == b.arm.arm.digest and a.stamp.grading == b.stamp.grading:
        raise ConfigError(f"this compares {a.arm.arm.handle!r} of run {a.stamp.run} with itself")
    check_treatment(treatment, a, b)
    empty = [
        f"{name}: {side.arm.arm.handle} of run {side.stamp.run} has no trial yet"
        for name, side in (("A", a), ("B", b))
        if not side.tasks
    ]
    if empty:
        hint = "`evalcore resume RUN` runs what is missing"
        raise RefusedError("there is nothing to compare", reasons=empty, hint=hint)
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


def own_axes(a: Side, b: Side) -> set[str]:
    """What two arms differ in, as the study says: that is what a declared contrast is about."""
    within = (d for d in differences(a, b, (), ()) if d.lifted_by and d.field != SERVED)
    return {d.lifted_by[0] for d in within}


def _ran(side: Side) -> str:
    return ", ".join(x.selector for x in side.stamp.benchmarks) or "nothing"


# ── declared beforehand ──────────────────────────────────────────────────────────────────────────────────────────────


def _declared(a: Side, b: Side, metric: str) -> tuple[Claim, ...]:
    """The claims of the study about these arms, if the one run or both declare them; only what both declare counts."""
    if a.stamp.run == b.stamp.run:
        return tuple(c for c in claims_of(a.stamp) if c.is_about(a.arm, b.arm, metric))
    sets = [[(c.benchmark, c.margin) for c in claims_of(s.stamp) if c.is_about(a.arm, b.arm, metric)] for s in (a, b)]
    plans = [(analysis_of(s.stamp), len(claims_of(s.stamp))) for s in (a, b)]
    if sorted(sets[0], key=str) != sorted(sets[1], key=str) or plans[0] != plans[1]:
        return ()
    return tuple(c for c in claims_of(a.stamp) if c.is_about(a.arm, b.arm, metric))


# ── one benchmark ────────────────────────────────────────────────────────────────────────────────────────────────────


def rules_of(stamp: RunStamp, claim: Claim | None, claims: Sequence[Claim]) -> Rules:
    """How a claim is decided; the defaults for what nobody declared."""
    if claim is None:
        return Rules()
    margins = sum(c.margin is not None for c in claims)
    return Rules(analysis_of(stamp), len(claims), margins, claim.margin, declared=True)


def _outcomes(
    a: Side,
    b: Side,
    matched: Matched,
    measure: Measure,
    declared: Sequence[Claim],
    margin: float | None,
    family: Mapping[Claim, float | None],
) -> tuple[Outcome, ...]:
    """Every benchmark's outcome, with its p adjusted: over the declared family, else over the benchmarks."""
    claims = claims_of(a.stamp) if declared else ()
    by_benchmark = {c.benchmark: c for c in declared}
    gathered = []
    for ours, theirs in matched:
        rules = rules_of(a.stamp, by_benchmark.get(ours.selector), claims)
        gathered.append((ours, rules, gather(a, b, ours, theirs, measure, rules)))
    q = iter(benjamini_hochberg([e.test.p for _, r, e in gathered if not r.declared and e.test is not None]))
    outcomes = []
    for ours, rules, evidence in gathered:
        if rules.declared:
            mine = by_benchmark[ours.selector]
            p = adjusted_p(evidence, rules, [p for c, p in family.items() if c != mine])
        else:
            p = None if evidence.test is None else next(q)
        outcomes.append(outcome_of(evidence, rules, p, ours, margin))
    return tuple(outcomes)


def outcome_of(
    evidence: Evidence, rules: Rules, p: float | None, benchmark: BenchmarkStamp, margin: float | None = None
) -> Outcome:
    """What changed on one benchmark, from its evidence and the adjusted p."""
    conclusion, within = concluded(evidence, rules, p)
    paired = evidence.paired
    gained, lost = flips(paired)
    wanted = rules.margin or margin
    width = wanted or (RESOLUTION if paired.measure.rate else None)
    return Outcome(
        benchmark.selector, paired, evidence.interval, evidence.test, p, rules.claims, rules.margin, within, conclusion,
        gained, lost,
        settle(paired, width, benchmark, declared=wanted is not None, level=1.0 - rules.analysis.alpha),
        confirmatory=rules.declared and evidence.kept, look=evidence.look,
    )  # fmt: skip


def _notes(
    a: Side,
    b: Side,
    matched: Matched,
    treatment: Sequence[str],
    found: Sequence[Difference],
    declared: Sequence[Claim],
    outcomes: Sequence[Outcome],
) -> list[str]:
    """What a reader must know beside the numbers."""
    notes = []
    if declared:
        analysis, family = analysis_of(a.stamp), plural(len(claims_of(a.stamp)), "declared claim")
        how = "Holm; what is not computed here counts as 1" if analysis.stopping == "fixed" else "Bonferroni, and looks"
        notes.append(
            f"declared in the study, which was stamped before the first trial; p is adjusted for {family} ({how})"
        )
        if not all(o.confirmatory for o in outcomes):
            notes.append("not confirmatory yet: the stopping rule that the study declared is not met")
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
