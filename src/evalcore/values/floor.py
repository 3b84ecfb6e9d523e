"""What an agent that does nothing gets: the floor above which a score is read."""

from __future__ import annotations

from attrs import frozen

from evalcore.values.json import JSONObject


@frozen
class Floor:
    """Of `tasks` tasks, how many the noop control solved, how many wait for a judge, and how many gave no result.

    `why` says why it could not be measured; the numbers are then of no meaning.
    """

    tasks: int = 0
    solved: int = 0
    ungraded: int = 0
    lost: int = 0  # void, or the grader failed
    why: str = ""

    def as_json(self) -> JSONObject:
        """All of it by name."""
        return {
            "tasks": self.tasks,
            "solved": self.solved,
            "ungraded": self.ungraded,
            "lost": self.lost,
            "why": self.why,
        }
