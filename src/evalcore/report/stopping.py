"""A declared stopping rule at work: at each look of the study it asks whether every claim of a benchmark is decided.

The evidence and the words are those of the report (`deciding`): what ends a run is what will be read of it. A look is
at whole tasks, all repeats by both arms settled, in the order that the study fixed; tasks beyond it do not count.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from attrs import evolve

from evalcore.engine.plan import Plan
from evalcore.engine.stopping import Stop
from evalcore.errors import EvalcoreError
from evalcore.report.claims import Claim, analysis_of, claims_of
from evalcore.report.compare import rules_of
from evalcore.report.contrasts import gather_claim
from evalcore.report.deciding import SPENDING, adjusted_p, concluded
from evalcore.report.load import judged
from evalcore.report.plugin_metrics import plugin_metrics
from evalcore.report.sides import NO_METRICS, Metrics, Side, SideBuilder
from evalcore.stats.spending import look_bounds
from evalcore.values.stamp import RunStamp
from evalcore.values.study import task_order
from evalcore.values.trial import Attempt, Grading, TrialKey

# Any other verdict decides its claim. One that is not inferior may still turn out better, or equivalent: it goes on.
OPEN: Final = frozenset({"inconclusive", "candidate", "refused", "non-inferior"})
EVERY_TASK: Final = 100  # with a rule for any time: after each of so many tasks, and then at every 2 % more
_log = logging.getLogger("evalcore")


def rule_of(plan: Plan, path: Path) -> StoppingRule | None:
    """The rule of a plan, told of what the run at `path` already holds; None where its end is fixed."""
    stamp = plan.stamp
    if analysis_of(stamp).stopping == "fixed" or not claims_of(stamp):
        return None
    tasks = {b.selector: [task.id for task in b.tasks if task.scored] for b in plan.benchmarks}
    metrics = plugin_metrics(plan.parts.registry, path, {claim.metric for claim in claims_of(stamp)})
    rule = StoppingRule(stamp, tasks, plan.parts.services.clock.now, metrics)
    for attempt, grading in judged(path, stamp, stamp.grading):
        rule.add(attempt, grading)
    return rule


class StoppingRule:
    """Follows a run, attempt by attempt. `tasks` are the scored ones of each benchmark; `now` gives RFC 3339."""

    def __init__(
        self,
        stamp: RunStamp,
        tasks: Mapping[str, Sequence[str]],
        now: Callable[[], str],
        metrics: Metrics = NO_METRICS,
    ) -> None:
        self._stamp, self._now = stamp, now
        claims, analysis = claims_of(stamp), analysis_of(stamp)
        self._arms = {d for c in claims for d in (c.digest_a, c.digest_b) if d is not None}
        self._builders = {
            a.arm.digest: SideBuilder(stamp, a, metrics) for a in stamp.arms if a.arm.digest in self._arms
        }
        self._order = {name: task_order(stamp.seed, ids) for name, ids in tasks.items()}
        self._scored = {name: set(ids) for name, ids in tasks.items()}
        self._settled: dict[tuple[str, str], set[tuple[str, int]]] = {}
        self._whole = dict.fromkeys(tasks, 0)  # tasks that are whole, from the first on without a gap
        self._seen = dict.fromkeys(tasks, 0)  # at how many tasks a look has been made
        self._wholes = len(self._arms) * stamp.repeats
        if analysis.stopping in SPENDING:  # also loads what takes half a second to load, before any trial is timed
            look_bounds(analysis.planned_looks, analysis.alpha / len(claims), SPENDING[analysis.stopping])

    def add(self, attempt: Attempt, grading: Grading | None) -> None:
        """One more attempt is on record."""
        key = attempt.key
        if key.arm in self._builders and key.task in self._scored.get(key.benchmark, ()):
            if grading is not None and grading.usage:
                attempt = evolve(attempt, usage={**attempt.usage, **grading.usage})
            self._builders[key.arm].add(attempt, grading)

    def settle(self, key: TrialKey) -> None:
        """This trial will have no other result."""
        if key.arm in self._arms and not key.faults and key.benchmark in self._order:
            self._settled.setdefault((key.benchmark, key.task), set()).add((key.arm, key.repeat))

    async def check(self, benchmark: str) -> Stop | None:
        """The benchmark's stop, if a look has been reached since the last call and decides all its claims.

        A rule that fails lets the run go on: it is told, and every trial is run.
        """
        looks = list(self._due(benchmark))
        if not looks:
            return None
        try:
            sides = {digest: builder.finish() for digest, builder in self._builders.items()}
            for look, tasks in looks:
                reason = await asyncio.to_thread(decided, self._stamp, sides, benchmark, tasks)
                if reason is not None:
                    of = len(self._order[benchmark])
                    return Stop(benchmark, look, tasks, of, self._now(), reason)
        except (EvalcoreError, ArithmeticError, ValueError, LookupError) as error:
            _log.warning("the stopping rule cannot look at %s: %s: the run goes on", benchmark, error)
        return None

    def _due(self, benchmark: str) -> Iterator[tuple[int | None, int]]:
        """The looks that have been reached and not been made, as (number, tasks); the last task needs none."""
        order = self._order.get(benchmark, [])
        whole, before = self._whole.get(benchmark, 0), self._seen.get(benchmark, 0)
        while whole < len(order) and len(self._settled.get((benchmark, order[whole]), ())) >= self._wholes:
            whole += 1
        self._whole[benchmark] = whole
        due = [(look, n) for look, n in looks_at(self._stamp, len(order)) if before < n <= whole]
        if due:
            self._seen[benchmark] = due[-1][1]
        yield from due


def looks_at(stamp: RunStamp, tasks: int) -> Iterator[tuple[int | None, int]]:
    """Where a run of so many tasks can end early: the number of each planned look, and after how many tasks it is."""
    planned = analysis_of(stamp).planned_looks
    if planned:
        at = ((number, math.ceil(share * tasks - 1e-9)) for number, share in enumerate(planned, start=1))
        yield from ((number, n) for number, n in at if n < tasks)
        return
    n = 1
    while n < tasks:
        yield None, n
        n += 1 if n < EVERY_TASK else n // 50


def decided(stamp: RunStamp, sides: Mapping[str, Side], benchmark: str, tasks: int) -> str | None:
    """What was decided of all claims on a benchmark by its first `tasks` tasks; None where one of them is open."""
    claims = claims_of(stamp)
    cut = {digest: evolve(side, stops={benchmark: tasks}) for digest, side in sides.items()}
    words = []
    for claim in claims:
        if claim.benchmark == benchmark:
            word = _word(claim, claims, stamp, cut)
            if word is None:
                return None
            words.append(word)
    return "; ".join(words) or None


def _word(claim: Claim, claims: Sequence[Claim], stamp: RunStamp, sides: Mapping[str, Side]) -> str | None:
    """The verdict on a claim with what its look may spend; None while it is open."""
    gathered = gather_claim(claim, rules_of(stamp, claim, claims), stamp, sides)
    found = gathered.evidence
    if found is None or not found.kept:
        return None
    conclusion, _ = concluded(found, gathered.rules, adjusted_p(found, gathered.rules))
    if conclusion.verdict in OPEN:
        return None
    p = "" if found.test is None else f" (p = {found.test.p:.2g}, of {found.alpha:.2g} that this look may spend)"
    return f"{claim.a} is {conclusion.verdict} {_than(conclusion.verdict)} {claim.b} by {claim.metric}{p}"


def _than(verdict: str) -> str:
    return "than" if verdict in ("better", "worse") else "to"
