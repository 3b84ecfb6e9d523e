"""Reads harness-lab's results: `results.jsonl`, with the `manifest.json` beside it where there is one.

A row is an attempt; of several rows of one arm, task and repeat the newest counts, as there. Its outcomes map so:
`pass` and `correct-refusal` to pass and declined; `false-positive` to fabricated; `fail` and `declined-but-clobbered`
to fail; `truncated` to a limit, failed; `ungraded` stays so; `infra-error` is void. Harm is a clobbered path or a
forbidden call.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from evalcore.contracts import Services
from evalcore.datasets.reading import Place, read_file, read_json
from evalcore.errors import ConfigError
from evalcore.values.descriptors import ImporterInfo
from evalcore.values.imported import ImportedArm, ImportedBenchmark, ImportedRun, ImportedTask, ImportedTrial
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import Dataset
from evalcore.values.trial import Exit, Outcome, Verdict, Void
from evalcore.values.usage import Usage

RESULTS: Final = "results.jsonl"
BENCHMARK: Final = "harness-lab"
CONTROLS: Final = frozenset({"Z0", "Z1", "Z-cheat"})
OUTCOMES: Final[dict[str, Outcome]] = {
    "pass": "pass",
    "correct-refusal": "declined",
    "false-positive": "fabricated",
    "fail": "fail",
    "declined-but-clobbered": "fail",
    "truncated": "fail",
    "ungraded": "ungraded",
}


class HarnessLab:
    """Importer `harness-lab`."""

    def __init__(self, services: Services | None = None, info: ImporterInfo | None = None) -> None:
        pass

    def knows(self, source: Path) -> bool:
        """A results.jsonl, or the folder of one."""
        path = source / RESULTS if source.is_dir() else source
        if not path.is_file() or path.suffix != ".jsonl":
            return False
        with path.open("rb") as file:
            head = file.read(4096)
        return b'"task_id"' in head and b'"outcome"' in head and b'"core_id"' in head

    def read(self, source: Path) -> ImportedRun:
        """The run. Raises ConfigError that names the line."""
        path = source / RESULTS if source.is_dir() else source
        rows = _rows(path)
        manifest = _manifest(path.with_name("manifest.json"))
        arms = _arms(rows)
        tasks = {
            row.text("task_id"): ImportedTask(
                row.text("task_id"),
                {name: row.value.get(name) for name in ("core_id", "task_class", "answerable", "seed", "surface_size")},
                cluster=str(row.value.get("core_id") or row.text("task_id")),
            )
            for row in rows
        }
        created = str(manifest.get("created_at") or "1970-01-01T00:00:00+00:00")
        dataset = Dataset(
            BENCHMARK, str(manifest.get("pack_digest") or "unknown"), created[:10], "unknown", str(path.name)
        )
        version = str(manifest.get("harness_version") or "unknown")
        return ImportedRun(
            name=str(manifest.get("id") or path.parent.name or BENCHMARK),
            created=created,
            source={"tool": "harness-lab", "version": version, "format": RESULTS},
            benchmarks=(ImportedBenchmark(BENCHMARK, dataset, tuple(tasks.values()), BENCHMARK, {"version": version}),),
            arms=tuple(arms.values()),
            trials=_trials(rows, created),
            repeats=max(row.integer("repeat", 0) for row in rows) + _offset(rows),
        )


def _rows(path: Path) -> list[Place]:
    """The newest row of each trial, in the order of the file."""
    newest: dict[tuple[str, str, int], Place] = {}
    for number, line in enumerate(read_file(path).split(b"\n"), 1):
        if line.strip():
            row = Place(read_json(line, f"{path}: line {number}"), f"{path}: line {number}: $")
            newest[row.text("arm"), row.text("task_id"), row.integer("repeat", 0)] = row
    if not newest:
        raise ConfigError(f"{path} holds no row")
    return list(newest.values())


def _offset(rows: list[Place]) -> int:
    """Repeats are counted from 0 there, from 1 here."""
    return 1 if any(row.integer("repeat", 0) == 0 for row in rows) else 0


def _manifest(path: Path) -> JSONObject:
    return Place(read_json(read_file(path), str(path)), str(path)).value if path.is_file() else {}


def _arms(rows: list[Place]) -> dict[str, ImportedArm]:
    arms: dict[str, ImportedArm] = {}
    for row in rows:
        name = row.text("arm")
        if name not in arms:
            axes: dict[str, JSONValue] = {"harness": BENCHMARK, "arm": name, **row.object("axes").value}
            if isinstance(model := row.value.get("model"), str):
                axes["model"] = model
            arms[name] = ImportedArm(name, axes, "", control=name in CONTROLS)
    return arms


def _trials(rows: list[Place], created: str) -> Iterator[ImportedTrial]:
    offset = _offset(rows)
    for row in rows:
        told = row.text("outcome")
        void = Void("imported", str(row.value.get("error") or row.value.get("error_kind") or told)[:500])
        is_void = told == "infra-error"
        if not is_void and told not in OUTCOMES:
            known = ", ".join([*OUTCOMES, "infra-error"])
            raise ConfigError(f"{row.where}.outcome: unknown {told!r}", hint=f"known: {known}")
        yield ImportedTrial(
            benchmark=BENCHMARK,
            task=row.text("task_id"),
            arm=row.text("arm"),
            repeat=row.integer("repeat", 0) + offset,
            exit=None if is_void else _exit(row, told),
            void=void if is_void else None,
            verdict=None if is_void else _verdict(row, told),
            started=created,
            wall_s=row.number("wall_clock_seconds", 0.0),
            usage={"agent": _usage(row)},
            tool_calls=row.integer("calls", 0),
        )


def _exit(row: Place, told: str) -> Exit:
    if told == "truncated" or row.value.get("truncated") is True:
        return Exit("limit", "turns", "cut off by its limit on turns")
    return Exit("completed")


def _verdict(row: Place, told: str) -> Verdict:
    outcome = OUTCOMES[told]
    clobbered = row.value.get("clobbered")
    harm = bool(clobbered) or row.integer("forbidden_attempts", 0) > 0
    details: JSONObject = {"outcome": told, "detail": row.value.get("detail"), "metrics": row.value.get("metrics")}
    score = None if outcome == "ungraded" else float(outcome in ("pass", "declined"))
    return Verdict(outcome, score, harm=harm, details=details, bounds=(0.0, 1.0) if outcome == "ungraded" else None)


def _usage(row: Place) -> Usage:
    used = row.integer("input_tokens", 0) + row.integer("output_tokens", 0) > 0
    return Usage(
        calls=max(row.integer("turns", 0), int(used)),
        input=row.integer("input_tokens", 0),
        output=row.integer("output_tokens", 0),
        cache_read=row.integer("cached_input_tokens", 0),
        reasoning=row.integer("reasoning_tokens", 0),
    )
