"""Passes an agent's turns to the leaderboard's own runners, which execute the calls again, and reads their verdict."""

from __future__ import annotations

from typing import Final, cast

from evalcore.contracts import JudgeReplies, Services
from evalcore.errors import GraderError
from evalcore.hookspecs import GraderInfo
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import Task
from evalcore.values.trace import TraceReader, exit_kind
from evalcore.values.trial import Deliverable, Evidence, Verdict
from evalcore_bfcl.grader import GRADE_S, native_stamp, shortened

ABSTAINED: Final = "no call while something is missing"
HANGS: Final = "native_runner_hangs"


class DialogueGrader:
    """The native verdict; for tasks where something is missing at first, whether the agent waited, as a second view."""

    def __init__(self, services: Services, info: GraderInfo) -> None:
        self._services = services
        self._toolkit = info.toolkits[0]

    async def grade(
        self, task: Task, deliverable: Deliverable, evidence: Evidence, trace: TraceReader, judge: JudgeReplies | None
    ) -> Verdict:
        """Pass or fail as upstream says. Raises ToolkitError, GraderError."""
        if lost := deliverable.data.get("lost"):  # natively the runner would not come back from it either
            return Verdict("fail", 0.0, details={"lost": lost}, flags=(HANGS,))
        request: JSONObject = {
            "category": task.data["category"],
            "id": task.id,
            "turns": deliverable.data["turns"],
        }
        if exit_kind(trace) == "crashed":
            request["failure"] = "the agent crashed"
        reply = await (await self._services.toolkit(self._toolkit)).request("dialogue_grade", request, GRADE_S)
        if not isinstance(reply, dict) or not isinstance(reply.get("valid"), bool) or "flags" not in reply:
            raise GraderError(f"bfcl gave no verdict on {task.id}: {str(reply)[:200]}")
        abstained = reply.get("abstained")
        return Verdict(
            "pass" if reply["valid"] else "fail",
            1.0 if reply["valid"] else 0.0,
            details={"native": shortened(reply["native"])},
            flags=tuple(str(f) for f in cast("list[JSONValue]", reply["flags"])),
            views={} if abstained is None else {ABSTAINED: abstained is True},
        )

    async def stamp(self) -> JSONObject:
        """What decides a verdict: upstream's version and files, what was replaced to import them, and our worker."""
        return await native_stamp(self._services, self._toolkit)
