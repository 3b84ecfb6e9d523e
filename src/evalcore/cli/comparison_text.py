"""A comparison as people read it: what differs in the set-up, the sentence of the verdict, then what to look at."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from evalcore.cli.output import paragraph, table
from evalcore.report.analysis import Flip
from evalcore.report.compare import Comparison, Outcome
from evalcore.report.comparison_words import KINDS, amount, measured, settling, shown, verdict
from evalcore.report.differences import Difference
from evalcore.report.sides import Side
from evalcore.report.words import percent, plural, safe

FLIPS: Final = 5  # of either direction
NAMES: Final = 5  # of dropped tasks
TO_LOOK_AT: Final = {"candidate", "inconclusive", "refused"}  # verdicts that more data could change


def text(made: Comparison, path_a: str, path_b: str) -> str:
    """The whole page; the paths are as the user may give them to `evalcore trace`."""
    lines = ["Compared", table([("A", *_side(made.a, path_a)), ("B", *_side(made.b, path_b))], indent=2), ""]
    if made.cross_world:
        said = "CROSS-WORLD: these sides are not comparable, and were compared because --allow-cross-world was given."
        lines += [paragraph(said), ""]
    lines += ["What differs in the set-up", *set_up(made.differences), ""]
    for outcome in made.outcomes:
        lines += [*_outcome(outcome, path_a, path_b), ""]
    lines += [table([("·", note)]) for note in made.notes]
    return "\n".join(lines)


def _side(side: Side, path: str) -> tuple[str, str]:
    return path, f"{side.arm.arm.handle}: {side.arm.arm.label}"


def set_up(differences: Sequence[Difference]) -> list[str]:
    """What differs, and what that means."""
    if not differences:
        return ["  nothing that is stamped"]
    rows = [(d.field, d.a or "unknown", d.b or "unknown", KINDS[d.kind]) for d in differences]
    cut = [(name, _cut(x), _cut(y), kind) for name, x, y, kind in rows]
    return [table(cut, ("", "A", "B", ""), indent=2)]


def _cut(value: str) -> str:
    return value if len(value) <= 28 else f"{value[:27]}…"


def _outcome(outcome: Outcome, path_a: str, path_b: str) -> Iterator[str]:
    paired = outcome.paired
    yield f"What changed: {outcome.benchmark}"
    yield f"  {outcome.conclusion.verdict.upper()}"
    yield table([("", f"{measured(outcome)}: {verdict(outcome)}")])
    if outcome.conclusion.verdict in TO_LOOK_AT:
        yield table([("", settling(outcome.settle, outcome.measure))])
    yield ""
    runs_a, runs_b = paired.runs
    tasks = plural(len(paired.a), "task")
    if paired.clusters != len(paired.a):
        tasks += f" in {plural(paired.clusters, 'cluster')}"
    yield f"  paired by content: {tasks}, {plural(runs_a, 'trial')} of A and {runs_b:,} of B"
    yield from _dropped(outcome)
    yield ""
    yield _numbers(outcome)
    yield from _flips("A solved more often", outcome.gained, path_a, path_b)
    yield from _flips("B solved more often", outcome.lost, path_a, path_b)


def _dropped(outcome: Outcome) -> Iterator[str]:
    paired = outcome.paired
    for said, names in (
        ("only A ran", paired.only_a),
        ("only B ran", paired.only_b),
        ("no result on one side", paired.without_result),
    ):
        if names:
            more = f" and {len(names) - NAMES:,} more" if len(names) > NAMES else ""
            yield f"  left out, {said}: {', '.join(map(safe, names[:NAMES]))}{more}"


def _numbers(outcome: Outcome) -> str:
    """Point values; only the difference of the metric has an interval, above."""
    rates, values, measure = outcome.paired.rates, outcome.paired.values, outcome.measure
    rows = []
    if values and measure.name != "pass@1":
        a, b = values
        rows.append(
            (measure.word, amount(a, measure), amount(b, measure), amount(a - b, measure, signed=True), "compared here")
        )
    if rates:
        rows.append(("solved", percent(rates[0]), percent(rates[1]), f"{100 * (rates[0] - rates[1]):+.1f} points", ""))
    rows += [
        (d.name, shown(d, d.a), shown(d, d.b), shown(d, d.difference, signed=True), d.reason or "")
        for d in outcome.deltas
        if d.name != measure.word  # stands above
    ]
    return table(rows, ("", "A", "B", "A less B", ""), indent=2)


def _flips(title: str, flips: Sequence[Flip], path_a: str, path_b: str) -> Iterator[str]:
    if not flips:
        return
    yield ""
    yield f"  {title}: {plural(len(flips), 'task')}"
    for flip in flips[:FLIPS]:
        yield f"    {safe(flip.task)}: A {flip.a[0]} of {flip.a[1]}, B {flip.b[0]} of {flip.b[1]}"
        for path, attempt in ((path_a, flip.look_a), (path_b, flip.look_b)):
            yield f"      evalcore trace {shlex.quote(path)} {shlex.quote(attempt)}"
    if len(flips) > FLIPS:
        yield f"    and {len(flips) - FLIPS:,} more (--json has them all)"
