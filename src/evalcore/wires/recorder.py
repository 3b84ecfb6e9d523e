"""One recorder per attempt: the model wire, the tool wire and the environment all write here, and nobody else does."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import orjson

from evalcore.contracts import Clock
from evalcore.values.json import JSONObject, JSONValue, dumps
from evalcore.values.trace import TraceReader


class AttemptRecorder:
    """Events of one attempt as encoded lines. After `seal`, what a straggler still tries to record is dropped."""

    __slots__ = ("_began", "_lines", "_now", "_sealed")

    def __init__(self, clock: Clock) -> None:
        self._now = clock.monotonic
        self._began = clock.monotonic()
        self._lines: list[bytes] = []
        self._sealed = False

    def elapsed(self) -> float:
        """Seconds since the attempt began."""
        return self._now() - self._began

    def record(self, kind: str, /, **fields: JSONValue) -> None:
        """Append one event; any value is kept, also those that JSON encoders refuse."""
        if not self._sealed:
            self._lines.append(dumps({"t": round(self._now() - self._began, 6), "e": kind, **fields}))

    def record_plain(self, event: JSONObject) -> None:
        """Append an event whose values are known to be plain JSON (bodies that were parsed from bytes)."""
        if self._sealed:
            return
        event["t"] = round(self.elapsed(), 6)
        try:
            self._lines.append(orjson.dumps(event))
        except (TypeError, ValueError):
            self._lines.append(dumps(event))

    def record_encoded(self, tail: bytes) -> None:
        """Append an event that is already encoded, all but its opening `{"t":…,`."""
        if not self._sealed:
            self._lines.append(b'{"t":%.6f,%s' % (self.elapsed(), tail))

    def seal(self) -> None:
        """End the recording."""
        self._sealed = True

    def reader(self) -> TraceReader:
        """The events so far."""
        return TraceReader(self._lines)

    def lines(self) -> list[bytes]:
        """The encoded events, one a line."""
        return self._lines


class Redactor:
    """Takes known secrets out of what is about to be stored: provider keys, by value."""

    _MIN = 8  # shorter values would eat ordinary text

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = {s.encode() for s in secrets if len(s) >= self._MIN}
        self._lock = threading.Lock()

    def add(self, secret: str) -> None:
        """One more value to take out from now on."""
        if len(secret) >= self._MIN:
            with self._lock:
                self._secrets = self._secrets | {secret.encode()}

    def clean(self, data: bytes) -> bytes:
        """`data` with every secret replaced by a mark of its own length class."""
        for secret in self._secrets:
            if secret in data:
                data = data.replace(secret, b"[redacted]")
        return data
