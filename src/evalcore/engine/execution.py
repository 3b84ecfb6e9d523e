"""How a run is carried out, kept in its folder: whoever goes on with it does the same. No result depends on it."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Final

from attrs import frozen

from evalcore.engine.runner import DEFAULT_CONCURRENCY
from evalcore.engine.store import write_durably
from evalcore.values.json import dumps, parse
from evalcore.wires.gateway.breaker import PATIENCE_S

EXECUTION: Final = "execution.json"
SCHEMA: Final = "evalcore.execution/1"
_log = logging.getLogger("evalcore")


@frozen
class Execution:
    """How many trials at a time, and how long a provider that is down is waited for, in seconds."""

    concurrency: int = DEFAULT_CONCURRENCY
    outage_s: float = PATIENCE_S


def keep_execution(path: Path, execution: Execution) -> None:
    """Write it into a run. That it cannot be written stops no run."""
    said = dumps({"schema": SCHEMA, "concurrency": execution.concurrency, "outage_s": execution.outage_s})
    try:
        write_durably(path / EXECUTION, said)
    except OSError as error:
        _log.warning("cannot write %s: %s", path / EXECUTION, error.strerror)


def read_execution(path: Path) -> Execution:
    """How a run was carried out last; as is usual where it does not say so."""
    file = path / EXECUTION
    if not file.is_file():
        return Execution()
    try:
        found = _read(parse(file.read_bytes()))
    except (OSError, ValueError, RecursionError):
        found = None
    if found is None:
        _log.warning("%s does not say how the run was carried out: it goes on as is usual", file)
    return found or Execution()


def _read(value: object) -> Execution | None:
    """What `keep_execution` wrote; None for what it did not."""
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        return None
    ways, outage_s = value.get("concurrency"), value.get("outage_s")
    if type(ways) is not int or ways < 1 or not isinstance(outage_s, (int, float)):
        return None
    return Execution(ways, float(outage_s)) if math.isfinite(outage_s) and outage_s > 0 else None
