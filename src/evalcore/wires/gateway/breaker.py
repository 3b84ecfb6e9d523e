"""When a provider is down: the run pauses, a call probes now and then, and the run goes on once one is answered.

Without it, an outage of ten minutes would void every trial that meets it. A pause ends by itself, or after `patience_s`
with OutageError, which stops the run with everything kept. A provider that has not answered a single call of the run is
waited for only as long as a mistyped address deserves.
"""

from __future__ import annotations

from typing import Final

from evalcore.errors import OutageError, TransientError

FAILURES: Final = 8  # tries in a row, of all calls, after which the provider is taken to be down
FIRST_PAUSE_S: Final = 1.0  # before the first probe; doubled for each one after it
LONGEST_PAUSE_S: Final = 60.0
PATIENCE_S: Final = 1800.0
NEVER_ANSWERED_S: Final = 60.0


class Breaker:
    """Whether one provider is taken to be down. Seconds of the caller's clock."""

    __slots__ = ("_pause_s", "failures", "known", "patience_s", "probe_at", "probing", "since", "why")

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self.patience_s = patience_s
        self.probe_at = 0.0
        self.probing = False  # a call finds out just now
        self.why = ""
        self.failures = 0
        self.known = False
        self._pause_s = FIRST_PAUSE_S
        self.since: float | None = None

    @property
    def open(self) -> bool:
        """Whether calls are held back."""
        return self.since is not None

    def answered(self) -> bool:
        """A call was answered; whether that ends a pause."""
        ends = self.since is not None
        self.failures, self.known, self.since, self.probing = 0, True, None, False
        return ends

    def failed(self, failure: TransientError, now: float, *, probe: bool) -> bool:
        """A try failed; whether that begins a pause. That of a probe puts the next one off."""
        self.failures += 1
        if self.since is None:
            if self.failures < FAILURES:
                return False
            self.since, self._pause_s = now, FIRST_PAUSE_S
            self.why, self.probe_at = failure.message, now + self._pause_s
            return True
        if probe:
            self.probing = False
            self.why = failure.message
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
            self.probe_at = now + self._pause_s
        return False

    def left_s(self, now: float) -> float:
        """How long the outage will still be waited for."""
        assert self.since is not None
        patience_s = self.patience_s if self.known else min(self.patience_s, NEVER_ANSWERED_S)
        return self.since + patience_s - now

    def outage(self, name: str, now: float) -> OutageError:
        """What ends the run."""
        assert self.since is not None
        how = "has not answered since" if self.known else "has not answered at all in"
        return OutageError(
            f"{name} {how} {now - self.since:,.0f} s: {self.why}",
            hint="everything is kept; `evalcore resume RUN` goes on once it answers again",
        )
