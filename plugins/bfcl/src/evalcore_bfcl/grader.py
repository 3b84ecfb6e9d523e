"""Passes what an agent did to the leaderboard's own runner, and reads its verdict."""

from __future__ import annotations

from typing import Final, cast

from evalcore.contracts import JudgeReplies, Services
from evalcore.errors import GraderError
from evalcore.values.json import JSONObject, JSONValue, digest
from evalcore.values.task import Task
from evalcore.values.trace import TraceReader, exit_kind
from evalcore.values.trial import Deliverable, Evidence, Outcome, Verdict

GRADE_S: Final = 120.0  # a verdict takes 2 ms; the worker itself stops at 10 s of processor time
ALL_CALLS: Final = "all calls of the loop"
DECISIONS: Final = frozenset({"completed", "refused"})  # exits by which an agent can be said to have called nothing
LONGEST: Final = 2_000  # characters kept of a native message: some repeat an argument, however long it is
MOST: Final = 100  # items kept of a list: some are the whole state of an environment


class BfclGrader:
    """The native verdict on the calls of the first model response; on all calls of the loop as a second view."""

    def __init__(self, services: Services, info: object = None) -> None:
        self._services = services

    async def grade(
        self, task: Task, deliverable: Deliverable, evidence: Evidence, trace: TraceReader, judge: JudgeReplies | None
    ) -> Verdict:
        """Pass or fail as upstream says; `declined` where no call was right. Raises ToolkitError, GraderError."""
        first = cast("list[JSONObject]", deliverable.data["first_response"])
        every = cast("list[JSONObject]", deliverable.data.get("all_calls", first))
        native = await self._native(task, first, deliverable.answer)
        flags = tuple(str(f) for f in cast("list[JSONValue]", native["flags"]))
        valid = native["valid"] is True
        outcome: Outcome = "pass" if valid else "fail"
        if "irrelevance" in str(task.data["category"]):
            ended = exit_kind(trace)
            decided = ended in DECISIONS
            view = decided and not every  # here a call that nobody can read counts as one
            if valid and not decided:
                outcome, flags = "fail", (*flags, called_nothing_but(ended))
            elif valid and not first:  # natively an unreadable call passes too, but it declines nothing
                outcome = "declined"
        else:
            whole = native if every == first else await self._native(task, every, deliverable.answer)
            view = whole["valid"] is True
        score = 0.0 if outcome == "fail" else 1.0
        return Verdict(outcome, score, details=_details(native), flags=flags, views={ALL_CALLS: view})

    async def _native(self, task: Task, calls: list[JSONObject], answer: str | None) -> JSONObject:
        toolkit = await self._services.toolkit("bfcl")
        request: JSONObject = {
            "category": task.data["category"],
            "id": task.id,
            "calls": cast("list[JSONValue]", calls),
            "answer": answer,
        }
        reply = await toolkit.request("grade", request, GRADE_S)
        if not isinstance(reply, dict) or not isinstance(reply.get("valid"), bool) or "flags" not in reply:
            raise GraderError(f"bfcl gave no verdict on {task.id}: {str(reply)[:200]}")
        return reply

    async def stamp(self) -> JSONObject:
        """What decides a verdict: upstream's version and files, the modules replaced to import them, and our worker."""
        return await native_stamp(self._services, "bfcl")


async def native_stamp(services: Services, toolkit: str) -> JSONObject:
    """The same of either toolkit."""
    whole = await (await services.toolkit(toolkit)).stamp()
    upstream = whole.get("upstream")
    native = upstream if isinstance(upstream, dict) else {}
    return {
        "source": whole.get("source"),
        "package": native.get("package"),
        "version": native.get("version"),
        "replaced": native.get("replaced"),
        "files": digest(native.get("files")),
        "worker": native.get("serving"),
    }


def called_nothing_but(ended: str | None) -> str:
    """The flag of a trial that passes natively for want of a call, when its agent decided nothing."""
    return f"called_nothing_but_{ended}"


def _details(native: JSONObject) -> JSONObject:
    return {"native": shortened(native["native"])}


def shortened(value: JSONValue) -> JSONValue:
    """A native verdict as it is, but for texts and lists that are longer than anybody reads."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST else f"{value[:LONGEST]}… ({len(value):,} characters)"
    if isinstance(value, list):
        shown = [shortened(item) for item in value[:MOST]]
        return shown if len(value) <= MOST else [*shown, f"… ({len(value):,} items)"]
    return {k: shortened(v) for k, v in value.items()} if isinstance(value, dict) else value
