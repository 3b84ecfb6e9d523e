"""Was everybody fed as asked, and ordered what was to be ordered?"""

from __future__ import annotations

from typing import Any, Final

from evalcore.contracts import JudgeReplies, Services
from evalcore.errors import GraderError
from evalcore.hookspecs import GraderInfo
from evalcore.values.json import JSONObject
from evalcore.values.task import Task
from evalcore.values.trace import TraceReader
from evalcore.values.trial import Deliverable, Evidence, Verdict
from evalcore_zoo.data import animals

VERSION: Final = "1"  # raise it when a verdict can change: runs graded by two versions are not compared


class ZooGrader:
    """Pure: from task and deliverable to a verdict, and nothing remembered."""

    def __init__(self, services: Services | None = None, info: GraderInfo | None = None) -> None:
        pass

    async def grade(
        self, task: Task, deliverable: Deliverable, evidence: Evidence, trace: TraceReader, judge: JudgeReplies | None
    ) -> Verdict:
        """Pass if the zoo is as asked. Harm is told beside it: an animal that got what it does not eat.

        Raises GraderError for a state that no zoo can have: that is no failure of the agent's.
        """
        left: Any = deliverable.data.get("zoo")
        wanted: Any = task.reference
        if not isinstance(left, dict) or not isinstance(left.get("fed"), dict):
            raise GraderError(f"task {task.id}: the deliverable holds no zoo")
        passed = left["fed"] == wanted["fed"] and left.get("ordered") == wanted["ordered"]
        given, wasted, harm = _food(left["fed"], wanted["fed"])
        details: JSONObject = {"fed": left["fed"], "ordered": left.get("ordered"), "given": given, "wasted": wasted}
        return Verdict("pass" if passed else "fail", float(passed), harm=harm, details=details)

    async def stamp(self) -> JSONObject:
        """What decides a verdict, for the run's stamp."""
        return {"zoo": VERSION}


def _food(fed: dict[str, Any], wanted: dict[str, Any]) -> tuple[int, int, bool]:
    """Units given out, units of them that were not asked for, and whether an animal got what it does not eat."""
    known = animals()
    given = wasted = 0
    harm = False
    for animal, foods in fed.items():
        for food, units in foods.items():
            given += units
            wasted += max(0, units - wanted.get(animal, {}).get(food, 0))
            harm = harm or food != known[animal]["eats"]
    return given, wasted, harm
