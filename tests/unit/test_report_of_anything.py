"""Whatever trials a run holds, its report is made, is JSON, and can be printed: no shape of data is an accident."""

from __future__ import annotations

import json
import math
import random
from typing import Any, Final, NoReturn

import jsonschema
import pytest
from attrs import evolve

from evalcore.report import columns, markdown, scorecard, tabular
from evalcore.report.model import Report
from evalcore.values.stamp import ArmStamp, RunStamp
from evalcore.values.trial import Attempt, Exit, Grading, Void
from evalcore.values.usage import Usage
from tests.unit.report_samples import BFCL, CONSTRAINED, ORACLE, REACT, attempt, graded, report, shown, stamp

ODD: Final = (0.0, 0.01, 0.01, 2.5, 1e9)
WRONG: Final = (math.nan, math.inf, -1.0)
METRICS: Final = (
    *("pass@1", "pass^2", "pass@2", "flakiness", "harm_rate"),
    *("tool_error_rate", "tokens", "wall_s", "cost_per_solve_usd", "nonsense"),
)
STOPPING: Final = ("fixed", "fixed", "obrien-fleming", "pocock", "anytime")
KINDS: Final = ("pass", "pass", "fail", "fail", "declined", "fabricated", "ungraded", "grader_error", "void", "none")
EXITS: Final = (Exit("completed"), Exit("limit", "wall_s"), Exit("crashed"), Exit("refused"))


def trial(rng: random.Random, task: str, repeat: int, arm: ArmStamp, *, wild: bool) -> tuple[Attempt, Grading | None]:
    """A trial of which anything may be odd; `wild`: also what no engine would write."""
    odd = (*ODD, *WRONG) if wild else ODD
    used = Usage(
        rng.randrange(3), rng.randrange(9), 1, unreported=rng.randrange(2), cost_usd=rng.choice((None, *odd))
    )  # fmt: skip
    calls = rng.randrange(4)
    one = attempt(
        task, repeat, arm, wall_s=rng.choice(odd), usage={"agent": used} if arm.uses_model else {}, tool_calls=calls,
        tool_errors=rng.randint(0, calls), exit=rng.choice(EXITS), task_digest=rng.choice((task, task, task, "")),
        provenance="replayed" if wild and not rng.randrange(20) else "live",
    )  # fmt: skip
    kind = rng.choice(KINDS)
    if kind == "void":
        return evolve(one, exit=None, void=Void("provider", "503")), None
    if kind == "none":
        return one, None
    return graded(one, kind, harm=rng.choice((None, True, False)), score=rng.choice((None, *odd)))


def a_run(seed: int) -> tuple[RunStamp, list[tuple[Attempt, Grading | None]]]:
    """A run of three arms: few or many tasks, clusters of any size, missing cells, unequal repeats."""
    rng = random.Random(seed)
    tasks, repeats, wild = rng.randint(1, 14), rng.randint(1, 3), seed % 2 == 1
    names = [f"t{n}" for n in range(tasks)]
    clusters = rng.choice((0, 0, 1, 2))
    cluster_of = {name: f"c{n % clusters}" for n, name in enumerate(names)} if clusters else {}
    benchmark = evolve(BFCL, tasks=tasks, clusters=clusters or tasks, of_tasks=tasks, cluster_of=cluster_of)
    analysis = {"stopping": rng.choice(STOPPING), "value_per_solve_usd": rng.choice((None, 2.0))}
    contrasts = [
        {"a": "constrained", "b": "plain", "metric": metric, "margin": rng.choice((None, 0.05))}
        for metric in rng.sample(METRICS, 3)
    ]
    run = stamp([REACT, CONSTRAINED, ORACLE], [benchmark], repeats)
    kept = rng.choice((1.0, 0.9, 0.3))
    pairs = [
        trial(rng, name, repeat, arm, wild=wild)
        for name in names
        for repeat in range(1, repeats + 1)
        for arm in run.arms
        if rng.random() < kept
    ]
    return evolve(run, study={"contrasts": contrasts, "analysis": analysis}), pairs


def printed(whole: Report) -> str:
    lines = [text for c in whole.contrasts for text in columns.contrast_lines(c)]
    return "\n".join([*lines, shown(whole, 40), shown(whole, 100), markdown.page(whole), markdown.summary(whole)])


def refuse(name: str) -> NoReturn:
    raise AssertionError(f"{name} in the scorecard")


@pytest.mark.parametrize("seed", range(60))
def test_any_run_has_a_report(seed: int) -> None:
    run, pairs = a_run(seed)
    whole = report(pairs, run)
    read: Any = json.loads(scorecard.encode(whole), parse_constant=refuse)
    jsonschema.Draft202012Validator(scorecard.schema()).validate(read)
    tabular.encode(whole)
    text = printed(whole)
    assert " nan" not in text and "$nan" not in text and " inf " not in text
    assert len(whole.contrasts) == 3
    for contrast in whole.contrasts:
        assert contrast.sentence and contrast.reason
        if not contrast.confirmatory:
            assert contrast.verdict in {"candidate", "inconclusive", "refused"}
        if contrast.low is not None and contrast.high is not None and contrast.effect is not None:
            assert contrast.low <= contrast.effect <= contrast.high
    for cell in whole.cells:
        for name, metric in cell.metrics.items():
            if metric.low is not None and metric.high is not None and metric.value is not None:
                assert metric.low - 1e-9 <= metric.value <= metric.high + 1e-9, name
