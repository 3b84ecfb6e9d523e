"""Single trials of a run, to be shown: attempts with their verdicts, looked up by id or gone through in order."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final

from attrs import frozen

from evalcore.engine.store import read_attempts, read_gradings
from evalcore.values.trial import SUCCESSES, Attempt, Grading

WORDS: Final[Mapping[str, str]] = {
    "pass": "passed",
    "fail": "failed",
    "declined": "rightly declined",
    "fabricated": "fabricated",
    "infra_error": "void (infrastructure)",
    "grader_error": "the grader failed",
    "ungraded": "not graded",
}


@frozen
class Trial:
    """One attempt and its verdict."""

    attempt: Attempt
    grading: Grading | None

    @property
    def outcome(self) -> str:
        """A key of WORDS."""
        if self.attempt.void is not None:
            return "infra_error"
        return self.grading.verdict.outcome if self.grading else "ungraded"

    @property
    def success(self) -> bool:
        """Whether it passed, or rightly declined."""
        return self.outcome in SUCCESSES

    @property
    def harm(self) -> bool:
        """Whether harm was recorded beside the outcome."""
        return self.grading is not None and self.grading.verdict.harm is True


def read_trials(run: Path, grading: str, only: Collection[str] | None = None) -> Iterator[Trial]:
    """The attempts of a run by one grading, in the order of commit; `only` those of these ids.

    Raises ConfigError if the ledgers cannot be read.
    """
    verdicts = {g.attempt: g for g in read_gradings(run, grading, only)}
    for attempt in read_attempts(run, only):
        yield Trial(attempt, verdicts.get(attempt.id))
