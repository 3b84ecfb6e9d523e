"""The contrasts that a run's study declares, decided together: one family, one adjustment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from evalcore.errors import EvalcoreError
from evalcore.report.analysis import ContrastResult, Design, Look, Sibling, Stopped, Worth
from evalcore.report.claims import Claim, analysis_of, claims_of
from evalcore.report.compare import Outcome, check_sides, outcome_of, own_axes, rules_of
from evalcore.report.comparison_words import measured, named, settling, verdict
from evalcore.report.deciding import Evidence, Rules, adjusted_p, gather
from evalcore.report.differences import differences
from evalcore.report.sides import Side
from evalcore.report.words import plural
from evalcore.report.worth import worth
from evalcore.stats.multiplicity import holm
from evalcore.values.faults import Wrong
from evalcore.values.measure import Measure, find_measure
from evalcore.values.stamp import RunStamp

PROVES = (
    "declared before this run: the study, with its contrasts, margins, alpha, tasks, repeats and stopping rule, was "
    "stamped before the first trial. That shows nothing about other runs: whether this is the first one of the plan, "
    "or the one that was kept, is not in it"
)


@frozen
class Gathered:
    """A claim with its sides and evidence; `problem` says why there is none."""

    claim: Claim
    rules: Rules
    sides: tuple[Side, Side] | None = None
    evidence: Evidence | None = None
    problem: str | None = None


def gather_claims(stamp: RunStamp, sides: Mapping[str, Side]) -> list[Gathered]:
    """The evidence of every claim; `sides` by the digest of their arm."""
    claims = claims_of(stamp)
    return [gather_claim(claim, rules_of(stamp, claim, claims), stamp, sides) for claim in claims]


def gather_claim(claim: Claim, rules: Rules, stamp: RunStamp, sides: Mapping[str, Side]) -> Gathered:
    """The evidence of one claim, decided by `rules`."""
    if claim.problem is not None:
        return Gathered(claim, rules, problem=claim.problem)
    a, b = (sides.get(digest or "") for digest in (claim.digest_a, claim.digest_b))
    if a is None or b is None:
        return Gathered(claim, rules, problem="an arm has no trial yet")
    benchmark = next(x for x in stamp.benchmarks if x.selector == claim.benchmark)
    try:
        check_sides(a, b)
        found = differences(a, b, [(benchmark, benchmark)], own_axes(a, b))
        boundaries = [d.sentence for d in found if d.kind == "boundary"]
        if boundaries:
            return Gathered(claim, rules, problem=f"not comparable: {'; '.join(boundaries)}")
        evidence = gather(a, b, benchmark, benchmark, find_measure(claim.metric, a.metrics.known), rules)
    except Wrong as wrong:
        return Gathered(claim, rules, problem=f"{wrong.message}; {wrong.hint}" if wrong.hint else wrong.message)
    except EvalcoreError as error:
        reasons = getattr(error, "reasons", ())
        return Gathered(claim, rules, problem="; ".join([error.message, *reasons]))
    return Gathered(claim, rules, (a, b), evidence)


def p_values(gathered: Sequence[Gathered]) -> dict[Claim, float | None]:
    """What each claim brings to the family."""
    return {g.claim: g.evidence.test.p if g.evidence and g.evidence.test else None for g in gathered}


def contrasts(stamp: RunStamp, sides: Mapping[str, Side]) -> tuple[ContrastResult, ...]:
    """Every claim of the study with its verdict."""
    gathered = gather_claims(stamp, sides)
    adjusted = holm(list(p_values(gathered).values()))
    return tuple(_result(one, p, stamp) for one, p in zip(gathered, adjusted, strict=True))


def _result(one: Gathered, holm_p: float, stamp: RunStamp) -> ContrastResult:
    claim = one.claim
    if one.evidence is None or one.sides is None:
        return _refused(one)
    p = None if one.evidence.test is None else holm_p if one.rules.fixed else adjusted_p(one.evidence, one.rules)
    benchmark = next(x for x in stamp.benchmarks if x.selector == claim.benchmark)
    outcome = outcome_of(one.evidence, one.rules, p, benchmark)
    said = named(f"{measured(outcome)}: {verdict(outcome)}", claim.a, claim.b)
    paired, interval, within = outcome.paired, outcome.interval, outcome.margin_interval
    return ContrastResult(
        claim.a, claim.b, claim.digest_a, claim.digest_b, claim.benchmark, claim.metric, outcome.measure.unit,
        outcome.measure.higher_is_better, tuple(sorted(own_axes(*one.sides))), outcome.conclusion.verdict,
        outcome.confirmatory, _reason(one, outcome), said,
        values=paired.values or (None, None),
        effect=interval.value, low=interval.low, high=interval.high,
        level=None if interval.low is None else interval.level,
        method=interval.method,
        p=None if outcome.test is None else outcome.test.p,
        p_adjusted=outcome.p_adjusted,
        test="" if outcome.test is None else outcome.test.method,
        family=outcome.family,
        margin=claim.margin,
        margin_interval=None if within is None else (within.low, within.high),
        tasks=len(paired.a), clusters=paired.clusters, trials=paired.runs,
        dropped=len(paired.only_a) + len(paired.only_b) + len(paired.without_result),
        look=outcome.look,
        settle=named(settling(outcome.settle, outcome.measure), claim.a, claim.b),
        gained=outcome.gained, lost=outcome.lost,
        worth=_worth(one, outcome),
    )  # fmt: skip


def _worth(one: Gathered, outcome: Outcome) -> Worth | None:
    """Whether it is worth its price: asked of pass@1 only, on the tasks that the contrast is about."""
    if outcome.measure.name != "pass@1" or not outcome.paired.pairing.keys:
        return None
    analysis = one.rules.analysis
    not_worse = outcome.conclusion.not_worse
    return worth(outcome.paired, analysis.value_per_solve_usd, alpha=analysis.alpha, not_worse=not_worse)


def _reason(one: Gathered, outcome: Outcome) -> str:
    """Why the verdict is what it is; first what keeps it from being confirmatory."""
    evidence, reason = one.evidence, outcome.conclusion.reason
    if evidence is None or evidence.kept or evidence.why_not is None or evidence.why_not in reason:
        return reason
    return f"{evidence.why_not}; {reason}"


def _refused(one: Gathered) -> ContrastResult:
    claim, problem = one.claim, one.problem or "nothing to compare"
    try:
        measure = find_measure(claim.metric)
    except Wrong:
        measure = Measure(claim.metric, "", claim.metric, higher_is_better=True)
    return ContrastResult(
        claim.a, claim.b, claim.digest_a, claim.digest_b, claim.benchmark, claim.metric, measure.unit,
        measure.higher_is_better, (), "refused", False, problem, f"no verdict: {problem}.",
        family=one.rules.claims, margin=claim.margin,
    )  # fmt: skip


def design(
    stamp: RunStamp,
    found: Sequence[ContrastResult],
    peeks: Sequence[Look],
    siblings: Sequence[Sibling],
    missing: int,
    stops: Sequence[Stopped] = (),
) -> Design | None:
    """What the study declared; None where it declares no contrast. `missing` planned trials have not run."""
    if not found:
        return None
    analysis = analysis_of(stamp)
    why_not = None
    if analysis.stopping == "fixed" and missing:
        why_not = f"{plural(missing, 'planned trial')} not run: the study is not at its end"
    elif analysis.planned_looks and not any(c.confirmatory for c in found):
        why_not = "no planned look has been reached"
    return Design(
        stamp.study_digest, analysis.alpha, analysis.stopping, len(found), PROVES, why_not is None, why_not,
        analysis.planned_looks, tuple(peeks), tuple(siblings), tuple(stops),
    )  # fmt: skip
