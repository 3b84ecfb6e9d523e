"""Passes what an agent did to the leaderboard's own runner, and reads its verdict."""

from __future__ import annotations

from typing import Final, cast

from evalcore.contracts import JudgeReplies, Services
from evalcore.errors import GraderError
from evalcore.values.json import JSONObject, JSONValue, digest, exact_text
from evalcore.values.task import Task
from evalcore.values.trace import TraceReader, exit_kind
from evalcore.values.trial import Deliverable, Evidence, Verdict

GRADE_S: Final = 120.0  # a verdict takes 2 ms; the worker itself stops at 20 s of processor time
ALL_CALLS: Final = "all calls of the loop"
DECISIONS: Final = frozenset({"completed", "refused"})  # exits by which an agent can be said to have called nothing


class BfclGrader:
    """The native verdict on the calls of the first model response; on all calls of the loop as a second view."""

    def __init__(self, services: Services, info: object = None) -> None:
        self._services = services

    async def grade(
        self, task: Task, deliverable: Deliverable, evidence: Evidence, trace: TraceReader, judge: JudgeReplies | None
    ) -> Verdict:
        """Pass or fail as upstream says; on irrelevance a pass is `declined`. Raises GraderError, ToolkitError."""
        first = [_as_sent(c) for c in cast("list[JSONObject]", deliverable.data["first_response"])]
        every = [_as_sent(c.as_json()) for c in deliverable.calls]
        native = await self._native(task, first, deliverable.answer)
        whole = native if every == first else await self._native(task, every, deliverable.answer)
        flags = [str(f) for f in cast("list[JSONValue]", native.get("flags", []))]
        valid = native["valid"] is True
        outcome = "pass" if valid else "fail"
        if valid and "irrelevance" in str(task.data["category"]):
            ended = exit_kind(trace)
            outcome = "declined" if ended in DECISIONS else "fail"
            flags += [] if ended in DECISIONS else [f"called_nothing_but_{ended}"]
        return Verdict(
            outcome,  # type: ignore[arg-type]
            1.0 if outcome != "fail" else 0.0,
            details={"native": native.get("native")},
            flags=tuple(flags),
            views={ALL_CALLS: whole["valid"] is True},
        )

    async def _native(self, task: Task, calls: list[JSONObject], answer: str | None) -> JSONObject:
        toolkit = await self._services.toolkit("bfcl")
        request: JSONObject = {
            "category": task.data["category"],
            "id": task.id,
            "calls": cast("list[JSONValue]", calls),
            "answer": answer,
        }
        reply = await toolkit.request("grade", request, GRADE_S)
        if not isinstance(reply, dict) or not isinstance(reply.get("valid"), bool):
            raise GraderError(f"bfcl gave no verdict on {task.id}: {str(reply)[:200]}")
        return reply

    async def stamp(self) -> JSONObject:
        """What decides a verdict: upstream's version and files, the modules replaced to import them, and our worker."""
        whole = await (await self._services.toolkit("bfcl")).stamp()
        upstream = whole.get("upstream")
        native = upstream if isinstance(upstream, dict) else {}
        return {
            "source": whole.get("source"),
            "package": native.get("package"),
            "version": native.get("version"),
            "replaced": native.get("replaced"),
            "files": digest(native.get("files")),
            "worker": whole.get("worker"),
        }


def _as_sent(call: JSONObject) -> JSONObject:
    """A call for the native decoder, its arguments as JSON text: what no pipe can carry as a value, text can."""
    return {"name": call["name"], "arguments": call["raw"] if "raw" in call else exact_text(call["arguments"])}
