"""A run read back for analysis: `evalcore.load(run)`. Attempts as values, as typed columns, or as a data frame.

Nothing is read before it is asked for. pandas and polars are used where they are installed, and are no dependency.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal, Protocol, TypeAlias

from attrs import frozen

from evalcore.engine.store import read_stamp
from evalcore.errors import ConfigError
from evalcore.report.load import choose_grading, judged, load_report
from evalcore.report.model import Report
from evalcore.values.stamp import ArmStamp, RunStamp
from evalcore.values.task import ROLES, Role
from evalcore.values.trial import RESULTS, SUCCESSES, Attempt, Grading
from evalcore.values.usage import Usage

Value: TypeAlias = str | int | float | bool | None
Kind: TypeAlias = Literal["text", "integer", "number", "boolean"]
Library: TypeAlias = Literal["pandas", "polars"]
LIBRARIES: Final[tuple[Library, ...]] = ("pandas", "polars")
_UNUSED = Usage()
_RESULTS = frozenset(RESULTS)


class DataFrame(Protocol):
    """What a pandas and a polars data frame have in common here."""

    columns: Sequence[str]

    def __len__(self) -> int:
        """Its rows."""
        ...


@frozen
class Row:
    """One attempt with its verdict, its arm, and the run that it belongs to."""

    stamp: RunStamp
    arm: ArmStamp
    cluster: str
    attempt: Attempt
    grading: Grading | None


def _of_attempt(name: str) -> Callable[[Row], Value]:
    def read(row: Row) -> Value:
        value: Value = getattr(row.attempt, name)
        return value

    return read


def _outcome(row: Row) -> str | None:
    """The verdict; infra_error for a void attempt; None for one that is not graded yet."""
    if row.attempt.void is not None:
        return "infra_error"
    return None if row.grading is None else row.grading.verdict.outcome


def _success(row: Row) -> bool | None:
    """Whether it was solved; None where there is no result."""
    outcome = _outcome(row)
    return outcome in SUCCESSES if outcome in _RESULTS else None


def _cost(usage: Usage | None) -> float | None:
    """Money: 0 where no model was called, None where a price is not known."""
    if usage is None or not usage.calls:
        return 0.0
    return usage.cost_usd


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _of_usage(role: Role, name: str) -> Callable[[Row], Value]:
    def read(row: Row) -> Value:
        value: Value = getattr(row.attempt.usage.get(role, _UNUSED), name)
        return value

    return read


def _cost_of(role: Role) -> Callable[[Row], Value]:
    return lambda row: _finite(_cost(row.attempt.usage.get(role)))


def _usage_columns() -> Iterator[tuple[str, Kind, Callable[[Row], Value]]]:
    """Calls, tokens and money of each role."""
    for role in ROLES:
        for name in ("calls", "input", "output", "cache_read", "reasoning", "unreported"):
            yield f"{role}_{name}", "integer", _of_usage(role, name)
        yield f"{role}_cost_usd", "number", _cost_of(role)


COLUMNS: Final[tuple[tuple[str, Kind, Callable[[Row], Value]], ...]] = (
    ("run", "text", lambda r: r.stamp.run),
    ("study", "text", lambda r: r.stamp.study_name),
    ("benchmark", "text", lambda r: r.attempt.key.benchmark),
    ("task", "text", lambda r: r.attempt.key.task),
    ("cluster", "text", lambda r: r.cluster),
    ("task_digest", "text", _of_attempt("task_digest")),
    ("arm", "text", lambda r: r.arm.arm.handle),
    ("arm_label", "text", lambda r: r.arm.arm.label),
    ("arm_digest", "text", lambda r: r.attempt.key.arm),
    ("harness", "text", lambda r: r.arm.arm.harness),
    ("model", "text", lambda r: r.arm.arm.model),
    ("control", "boolean", lambda r: r.arm.control),
    ("repeat", "integer", lambda r: r.attempt.key.repeat),
    ("attempt", "text", _of_attempt("id")),
    ("number", "integer", _of_attempt("number")),
    ("started", "text", _of_attempt("started")),
    ("wall_s", "number", lambda r: _finite(r.attempt.wall_s)),
    ("outcome", "text", _outcome),
    ("success", "boolean", _success),
    ("score", "number", lambda r: None if r.grading is None else _finite(r.grading.verdict.score)),
    ("harm", "boolean", lambda r: None if r.grading is None else r.grading.verdict.harm),
    ("exit", "text", lambda r: None if r.attempt.exit is None else r.attempt.exit.kind),
    ("limit", "text", lambda r: None if r.attempt.exit is None else r.attempt.exit.limit),
    ("void", "text", lambda r: None if r.attempt.void is None else r.attempt.void.kind),
    ("tool_calls", "integer", _of_attempt("tool_calls")),
    ("tool_errors", "integer", _of_attempt("tool_errors")),
    ("provenance", "text", _of_attempt("provenance")),
    ("isolation", "text", _of_attempt("isolation")),
    ("flags", "text", lambda r: " ".join(r.attempt.flags)),
    *_usage_columns(),
)


@frozen
class LoadedRun:
    """A run on disk. Every method reads the ledgers anew, so that a run that is still going on shows what it has."""

    path: Path
    stamp: RunStamp
    grading: str

    def report(self) -> Report:
        """Everything that is said about the run. Raises ConfigError where its ledgers are broken."""
        return load_report(self.path, self.grading)

    def rows(self) -> Iterator[Row]:
        """Every attempt, void ones too, in the order of commit; what another attempt superseded is among them."""
        arms = {x.arm.digest: x for x in self.stamp.arms}
        clusters = {b.selector: b.cluster_of for b in self.stamp.benchmarks}
        for attempt, grading in judged(self.path, self.stamp, self.grading):
            key = attempt.key
            if key.arm not in arms:
                raise ConfigError(f"attempt {attempt.id} belongs to no arm of run {self.stamp.run}")
            cluster = clusters.get(key.benchmark, {}).get(key.task, key.task)
            yield Row(self.stamp, arms[key.arm], cluster, attempt, grading)

    def columns(self) -> dict[str, list[Value]]:
        """Every attempt as columns of plain values, in the order of `COLUMNS`; what is not known is None."""
        table: dict[str, list[Value]] = {name: [] for name, _, _ in COLUMNS}
        readers = [(table[name].append, read) for name, _, read in COLUMNS]
        for row in self.rows():
            for append, read in readers:
                append(read(row))
        return table

    def attempts_df(self, library: Library | None = None) -> DataFrame:
        """Every attempt as a pandas or polars data frame, whichever is installed (pandas first), with typed columns.

        What is not known is missing, never 0 or NaN of an integer. Raises ConfigError where neither is installed.
        """
        for name in LIBRARIES if library is None else (library,):
            if name not in LIBRARIES:
                raise ConfigError(f"no data frames of {name!r}", hint=f"known are {' and '.join(LIBRARIES)}")
            if (module := _imported(name)) is not None:
                made: DataFrame = _MAKERS[name](module, self.columns())
                return made
        wanted = library or " or ".join(LIBRARIES)
        raise ConfigError(
            f"a data frame needs {wanted}, which is not installed", hint=f"pip install {library or 'pandas'}"
        )


def load(run: str | Path, grading: str | None = None) -> LoadedRun:
    """The run in a folder, by the grading it was made with or another (its digest or the beginning of it).

    Raises ConfigError if there is no such run or grading.
    """
    path = Path(run).expanduser()
    stamp = read_stamp(path)
    return LoadedRun(path, stamp, choose_grading(path, stamp, grading))


def _imported(name: str) -> ModuleType | None:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        return None


def _pandas(module: Any, table: dict[str, list[Value]]) -> Any:
    kinds = {"text": "string", "integer": "Int64", "number": "Float64", "boolean": "boolean"}
    return module.DataFrame({name: module.array(table[name], dtype=kinds[kind]) for name, kind, _ in COLUMNS})


def _polars(module: Any, table: dict[str, list[Value]]) -> Any:
    kinds = {"text": module.String, "integer": module.Int64, "number": module.Float64, "boolean": module.Boolean}
    return module.DataFrame(table, schema={name: kinds[kind] for name, kind, _ in COLUMNS})


_MAKERS: Final[dict[Library, Callable[[Any, dict[str, list[Value]]], Any]]] = {"pandas": _pandas, "polars": _polars}
