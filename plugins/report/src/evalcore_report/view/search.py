"""A text in transcripts: traces are looked through as they lie on disk, until there are enough finds or time is up."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Final

from attrs import frozen

from evalcore.engine.store import TraceStore
from evalcore.errors import InfraError
from evalcore_report.trials import Trial

AROUND: Final = 90  # bytes shown on each side
TIME_S: Final = 3.0
MOST: Final = 100


@frozen
class Find:
    """A trial whose transcript holds the text: what stands before it, the text as written there, and what follows."""

    trial: Trial
    before: str
    text: str
    after: str


@frozen
class Found:
    """The finds; where to go on, or None if every trial was looked through; and how many were."""

    finds: tuple[Find, ...]
    next: int | None
    seen: int


def search(
    store: TraceStore, trials: Sequence[Trial], text: str, start: int = 0, *, most: int = MOST, time_s: float = TIME_S
) -> Found:
    """Look for a text, from the `start`-th trial on; ASCII letters match in either case."""
    wanted = [form.lower() for form in _written(text)]
    finds: list[Find] = []
    end = time.monotonic() + time_s
    for number in range(start, len(trials)):
        if len(finds) >= most or (number > start and time.monotonic() > end):
            return Found(tuple(finds), number, number - start)
        find = _look(store, trials[number], wanted)
        if find is not None:
            finds.append(find)
    return Found(tuple(finds), None, max(0, len(trials) - start))


def _written(text: str) -> list[bytes]:
    """How the text stands in a line of JSON: escaped as needed, or in ASCII alone."""
    forms = [json.dumps(text, ensure_ascii=ascii_)[1:-1].encode("utf-8", "surrogatepass") for ascii_ in (False, True)]
    return list(dict.fromkeys(forms))


def _look(store: TraceStore, trial: Trial, wanted: Sequence[bytes]) -> Find | None:
    try:
        lines = store.read(trial.attempt.trace).lines
    except InfraError:
        return None
    for line in lines:
        low = line.lower()
        for form in wanted:
            at = low.find(form)
            if at >= 0:
                return _find(trial, line, at, len(form))
    return None


def _find(trial: Trial, line: bytes, at: int, length: int) -> Find:
    end = at + length
    parts = (line[max(0, at - AROUND) : at], line[at:end], line[end : end + AROUND])
    return Find(trial, *(_read(part) for part in parts))


def _read(part: bytes) -> str:
    """A piece of JSON as text: cut anywhere, so its escapes are only mostly whole."""
    return part.decode("utf-8", "ignore").replace("\\n", " ").replace('\\"', '"')
