"""May this run go on? Non-inferiority to a baseline, by a margin that was named before: passed, failed, or refused.

One-sided at alpha: the 1 - 2 alpha interval of RUN less BASELINE decides.

| the interval                         | answer                                                       |
|--------------------------------------|--------------------------------------------------------------|
| lies above -margin                   | passed: not worse by as much as the margin                   |
| does not, and lies wholly below 0    | failed: worse, and nothing shows that it is within the margin |
| anything else                        | inconclusive: fails unless the caller says otherwise         |
| fewer than 6 clusters, void rates apart | refused                                                   |

Every benchmark has to pass, so several need no adjustment: the chance that all pass wrongly is no larger than alpha.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias
from xml.etree import ElementTree as ET

from attrs import frozen

from evalcore.report.compare import Comparison, Outcome
from evalcore.report.comparison_words import amount, interval_json, settle_json, shown, span, to_json, width
from evalcore.report.deciding import interval_of, oriented
from evalcore.report.markdown import escaped
from evalcore.report.outcomes import Settle, settle
from evalcore.report.words import plural, safe
from evalcore.stats.checks import check_positive, check_share
from evalcore.stats.intervals import Interval
from evalcore.stats.margins import margin_level
from evalcore.stats.verdicts import ALPHA, conclude
from evalcore.values.json import JSONObject
from evalcore.values.measure import Measure, find_measure
from evalcore.values.stamp import BenchmarkStamp

Answer: TypeAlias = Literal["passed", "failed", "inconclusive", "refused"]

SCHEMA: Final = "evalcore.gate/1"
EXIT: Final = {"passed": 0, "failed": 1, "refused": 3}


@frozen
class Checked:
    """The answer for one benchmark, and why in one sentence."""

    outcome: Outcome
    interval: Interval
    answer: Answer
    reason: str
    settle: Settle


@frozen
class Gate:
    """The answer for all benchmarks; `lenient`: what is inconclusive passes."""

    comparison: Comparison
    max_drop: float
    lenient: bool
    checked: tuple[Checked, ...]

    @property
    def answer(self) -> Answer:
        """The worst of the benchmarks' answers: refused, failed, inconclusive, passed."""
        answers = {c.answer for c in self.checked}
        order: tuple[Answer, ...] = ("refused", "failed", "inconclusive")
        return next((one for one in order if one in answers), "passed")

    @property
    def exit_code(self) -> int:
        """0 passed, 1 failed, 3 refused (architecture §9)."""
        if self.answer == "inconclusive":
            return 0 if self.lenient else 1
        return EXIT[self.answer]

    @property
    def sentence(self) -> str:
        """The answer with its reason; the reason of the benchmark that decides where there are several."""
        first = next(c for c in self.checked if c.answer == self.answer)
        several = f"{first.outcome.benchmark}: " if len(self.checked) > 1 else ""
        word = {"passed": "passed", "failed": "failed", "refused": "refused"}.get(self.answer)
        if word is None:
            word = "passed, though inconclusive" if self.lenient else "failed, because inconclusive"
        return f"{word}: {several}{first.reason}"


def gate(comparison: Comparison, max_drop: float, *, lenient: bool = False, alpha: float = ALPHA) -> Gate:
    """Whether A, the run, is not worse than B, the baseline, by `max_drop`: a share, or in the unit of the metric.

    Worse is lower, or higher where less is better. Raises ValueError for a drop outside (0, 1), or not above 0.
    """
    if _measure(comparison).rate:
        check_share(max_drop, "the largest drop")
    else:
        check_positive(max_drop, "the largest rise")
    stamps = {s.selector: s for s in comparison.a.stamp.benchmarks}
    checked = tuple(_check(o, stamps[o.benchmark], max_drop, alpha) for o in comparison.outcomes)
    return Gate(comparison, max_drop, lenient, checked)


def _measure(comparison: Comparison) -> Measure:
    return find_measure(comparison.metric, comparison.a.metrics.known)


def _check(outcome: Outcome, benchmark: BenchmarkStamp, drop: float, alpha: float) -> Checked:
    paired, measure = outcome.paired, outcome.measure
    level = margin_level(alpha)
    interval = interval_of(paired, level)
    towards_better = oriented(interval, measure)
    word = conclude(
        oriented(interval_of(paired, 1.0 - alpha), measure), outcome.p_adjusted, clusters=paired.clusters,
        void_rates=paired.void_rates, boundary=paired.unknown, confirmatory=False, alpha=alpha, margin=drop,
        margin_interval=towards_better,
    )  # fmt: skip
    needed = settle(paired, drop, benchmark, declared=True, level=level)
    if word.verdict == "refused":
        empty = not paired.pairing.keys and paired.unknown is None
        why = f"there is nothing to compare: {interval.reason}" if empty else word.reason
        return Checked(outcome, interval, "refused", why, needed)
    margin, seen = width(drop, measure), f"({span(interval, measure)})"
    about, change = ("", "drop") if measure.name == "pass@1" else (f" by {measure.word}", "worsening")
    if word.not_worse:
        said = f"the run is not worse than the baseline{about} by as much as {margin} {seen}"
        return Checked(outcome, interval, "passed", said, needed)
    high = towards_better.high
    if high is not None and high < 0.0:
        by = f"by more than {margin}" if high < -drop else f"and a {change} of {margin} is not ruled out"
        said = f"the run is worse than the baseline{about}, {by} {seen}"
        return Checked(outcome, interval, "failed", said, needed)
    if interval.value == 0.0 and interval.low is None and paired.clusters > 1:
        said = (
            f"in all {paired.clusters:,} clusters the run and the baseline are equal{about} {seen}; in a quantity "
            f"without bounds a {change} of {margin} in tasks not seen can be neither shown nor ruled out: "
            "tasks or repeats that differ would settle it"
        )
        return Checked(outcome, interval, "inconclusive", said, needed)
    said = f"a {change} of {margin}{about} can be neither shown nor ruled out {seen}; {_would_decide(needed)}"
    return Checked(outcome, interval, "inconclusive", said, needed)


def _would_decide(needed: Settle) -> str:
    found = needed.need
    if found is None:
        return f"how many trials would decide is not known: {needed.reason}"
    if found.buy == "nothing":
        return "if nothing had dropped, this many trials would most often be enough: more of them would decide"
    if needed.trials is None or found.buy == "out of reach":
        many = "more than ten million" if found.clusters is None else f"about {found.clusters:,}"
        return f"{many} clusters of tasks would decide, more than this benchmark is known to have"
    of = {
        "clusters": f"{plural(found.clusters or 0, 'cluster')} of tasks",
        "repeats": f"{found.repeats} repeats of each task",
        "clusters and repeats": f"every task, {found.repeats_with_all} repeats of each",
    }[found.buy]
    return f"about {plural(needed.trials, 'trial')} of either side would decide ({of})"


# ── what CI systems read ─────────────────────────────────────────────────────────────────────────────────────────────


def gate_json(made: Gate) -> JSONObject:
    """The gate with the whole comparison behind it."""
    measure = _measure(made.comparison)
    return {
        "schema": SCHEMA,
        "metric": measure.name,
        "unit": measure.unit,
        "answer": made.answer,
        "exit_code": made.exit_code,
        "sentence": made.sentence,
        "max_drop": made.max_drop,
        "on_inconclusive": "pass" if made.lenient else "fail",
        "benchmarks": [
            {
                "benchmark": c.outcome.benchmark,
                "answer": c.answer,
                "reason": c.reason,
                "effect": interval_json(c.interval),
                "settle": settle_json(c.settle, measure),
            }
            for c in made.checked
        ],
        "comparison": to_json(made.comparison),
    }


def junit(made: Gate) -> bytes:
    """One test case for each benchmark: passed, failure, or error where it was refused."""
    suite = ET.Element("testsuite", name="evalcore gate")
    counts = {"failure": 0, "error": 0}
    for checked in made.checked:
        case = ET.SubElement(suite, "testcase", classname="evalcore.gate", name=safe(checked.outcome.benchmark))
        kind = _failure_kind(checked, lenient=made.lenient)
        if kind is None:
            ET.SubElement(case, "system-out").text = safe(checked.reason)
        else:
            counts[kind] += 1
            ET.SubElement(case, kind, type=checked.answer, message=safe(checked.reason)).text = safe(checked.reason)
    suite.set("tests", str(len(made.checked)))
    suite.set("failures", str(counts["failure"]))
    suite.set("errors", str(counts["error"]))
    suites = ET.Element("testsuites", name="evalcore")
    suites.append(suite)
    ET.indent(suites)
    written: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _failure_kind(checked: Checked, *, lenient: bool) -> Literal["failure", "error"] | None:
    if checked.answer == "refused":
        return "error"
    if checked.answer == "failed" or (checked.answer == "inconclusive" and not lenient):
        return "failure"
    return None


def markdown(made: Gate) -> str:
    """A summary for a pull request or a step's page."""
    lines = [f"### evalcore gate {escaped(made.sentence)}", ""]
    lines += ["| benchmark | run | baseline | run − baseline | answer |", "|---|---|---|---|---|"]
    for checked in made.checked:
        paired = checked.outcome.paired
        measure = checked.outcome.measure
        run, base = (amount(value, measure) for value in paired.values) if paired.values else ("–", "–")
        cells = (checked.outcome.benchmark, run, base, span(checked.interval, measure), checked.answer)
        lines.append(f"| {' | '.join(map(escaped, cells))} |")
    found = made.comparison.differences
    lines += ["", "Set-up differences:" if found else "Nothing that is stamped differs in the set-up.", ""]
    for d in found:
        lines.append(f"- {escaped(d.field)}: {escaped(d.a or 'unknown')} → baseline {escaped(d.b or 'unknown')}")
    for checked in made.checked:
        lost = [escaped(f.task) for f in checked.outcome.lost]
        if lost:
            more = f" and {len(lost) - 20} more" if len(lost) > 20 else ""
            lines += ["", f"Solved less often than by the baseline: {', '.join(lost[:20])}{more}"]
        lines.append("")
        for delta in checked.outcome.deltas:
            if delta.difference:
                change = shown(delta, delta.difference, signed=True)
                lines.append(f"- {delta.name}: {shown(delta, delta.a)} (baseline {shown(delta, delta.b)}, {change})")
    return "\n".join(lines) + "\n"
