"""harness-lab's results: each outcome as ours, the newest row of a trial, repeats from 1, and faults by their line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest

from evalcore.engine.importing import write_imported
from evalcore.engine.store import read_attempts, read_gradings, read_stamp
from evalcore.errors import ConfigError
from evalcore.values.trial import Attempt, Verdict
from evalcore_interop.harness_lab import HarnessLab


def row(**more: Any) -> dict[str, Any]:
    """A row as the runner writes one."""
    return {
        "run_id": "x-1", "arm": "A1", "task_id": "t1", "core_id": "c1", "task_class": "read", "answerable": True,
        "repeat": 0, "outcome": "pass", "detail": "as expected", "confident": True, "clobbered": [], "turns": 3,
        "calls": 2, "forbidden_attempts": 0, "truncated": False, "error": None, "error_kind": None,
        "wall_clock_seconds": 4.5, "input_tokens": 1000, "cached_input_tokens": 400, "output_tokens": 50,
        "reasoning_tokens": 10, "model": "openai/gpt", "seed": 1, "surface_size": 12, "retries": [], "metrics": {},
        "axes": {"transport": "mcp", "discovery": "eager-all"}, **more,
    }  # fmt: skip


def lab(folder: Path, *rows: dict[str, Any], manifest: dict[str, Any] | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "results.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    if manifest is not None:
        (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def imported(source: Path, out: Path) -> tuple[list[Attempt], list[Verdict | None]]:
    asyncio.run(write_imported(HarnessLab().read(source), out))
    verdicts = {g.attempt: g.verdict for g in read_gradings(out, read_stamp(out).grading)}
    attempts = list(read_attempts(out))
    return attempts, [verdicts.get(a.id) for a in attempts]


OUTCOMES: Final[list[tuple[dict[str, Any], str | None, str | None, bool | None]]] = [
    ({"outcome": "pass"}, "pass", "completed", False),
    ({"outcome": "correct-refusal"}, "declined", "completed", False),
    ({"outcome": "false-positive"}, "fabricated", "completed", False),
    ({"outcome": "fail", "clobbered": ["/x"]}, "fail", "completed", True),
    ({"outcome": "declined-but-clobbered", "clobbered": ["/x"]}, "fail", "completed", True),
    ({"outcome": "pass", "forbidden_attempts": 1}, "pass", "completed", True),
    ({"outcome": "truncated", "truncated": True}, "fail", "limit", False),
    ({"outcome": "ungraded"}, "ungraded", "completed", False),
    ({"outcome": "infra-error", "error": "no route", "error_kind": "network"}, None, None, None),
]


@pytest.mark.parametrize("change, outcome, ended, harm", OUTCOMES)
def test_outcomes(
    change: dict[str, Any], outcome: str | None, ended: str | None, harm: bool | None, tmp_path: Path
) -> None:
    (attempt,), (verdict,) = imported(lab(tmp_path / "lab", row(**change)), tmp_path / "r")
    assert (verdict and verdict.outcome) == outcome
    assert (verdict and verdict.harm) == harm
    assert (attempt.exit and attempt.exit.kind) == ended
    assert (attempt.void and attempt.void.message) == (None if outcome else "no route")


def test_a_run(tmp_path: Path) -> None:
    rows = [
        row(repeat=0, outcome="infra-error", error="no route"),
        row(repeat=0),
        row(repeat=1, outcome="fail"),
        row(arm="Z0", model=None, axes={}, outcome="fail", turns=0, input_tokens=0, output_tokens=0),
    ]
    manifest = {"id": "smoke", "created_at": "2026-04-01T12:00:00+00:00", "harness_version": "0.3.0"}
    source = lab(tmp_path / "lab", *rows, manifest=manifest)
    assert HarnessLab().knows(source) and HarnessLab().knows(source / "results.jsonl")
    attempts, verdicts = imported(source, tmp_path / "r")
    stamp = read_stamp(tmp_path / "r")
    handles = {a.arm.digest: a.arm.handle for a in stamp.arms}
    assert [(handles[a.key.arm], a.key.repeat, v and v.outcome) for a, v in zip(attempts, verdicts, strict=True)] == [
        ("A1", 1, "pass"), ("A1", 2, "fail"), ("Z0", 1, "fail"),
    ]  # fmt: skip
    assert (stamp.study_name, stamp.repeats, stamp.imported) == ("smoke", 2, "harness-lab")
    assert [a.control for a in stamp.arms] == [False, True]
    assert stamp.benchmarks[0].cluster_of == {"t1": "c1"}
    usage = attempts[0].usage["agent"]
    assert (usage.calls, usage.input, usage.cache_read, usage.output, usage.reasoning) == (3, 1000, 400, 50, 10)
    assert usage.cost_usd is None
    assert (attempts[0].wall_s, attempts[0].tool_calls) == (4.5, 2)
    assert attempts[2].usage["agent"].calls == 0


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "holds no row"),
        ("{\n", "line 1: no JSON"),
        ("[]\n", "line 1: $: expected an object, got list"),
        (json.dumps(row()) + "\n" + json.dumps(row(arm=3)) + "\n", "line 2: $.arm: expected a text, got int"),
        (json.dumps(row(outcome="great")) + "\n", "line 1: $.outcome: unknown 'great'"),
        (json.dumps(row(turns="3")) + "\n", "line 1: $.turns: expected an integer, got str"),
    ],
)
def test_what_cannot_be_read_is_told_by_its_line(text: str, message: str, tmp_path: Path) -> None:
    lab(tmp_path / "lab")
    (tmp_path / "lab" / "results.jsonl").write_text(text)
    with pytest.raises(ConfigError) as told:
        imported(tmp_path / "lab", tmp_path / "r")
    assert message in str(told.value)
    assert not (tmp_path / "r").exists()


def test_other_files_are_not_taken_for_it(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"task": 1}\n')
    assert not HarnessLab().knows(tmp_path / "x.jsonl")
    assert not HarnessLab().knows(tmp_path)
