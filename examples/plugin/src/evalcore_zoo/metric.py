"""How much of the food that an agent gave out fed nobody who was to be fed."""

from __future__ import annotations

from collections.abc import Sequence

from evalcore.contracts import GradedTrial, Services
from evalcore.hookspecs import MetricInfo


class Waste:
    """Wasted units over units given out. evalcore makes the ratio over tasks of it, and the interval."""

    def __init__(self, services: Services | None = None, info: MetricInfo | None = None) -> None:
        pass

    def per_task(self, trials: Sequence[GradedTrial]) -> tuple[float, float] | None:
        """Sums over the trials of one task; None where no food was given out, which is not the same as 0."""
        wasted, given = _sum(trials, "wasted"), _sum(trials, "given")
        return (wasted, given) if given else None


def _sum(trials: Sequence[GradedTrial], name: str) -> float:
    """A count of the grader's, over all trials whose verdict has it."""
    counts = [trial.grading.verdict.details.get(name) for trial in trials]
    return float(sum(count for count in counts if isinstance(count, int)))
