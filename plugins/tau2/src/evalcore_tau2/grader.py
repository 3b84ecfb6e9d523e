"""Passes a recorded simulation to upstream's evaluator, asks the judge what it wants to know, and reads its reward."""

from __future__ import annotations

from typing import Final, cast

from evalcore.contracts import JudgeReplies, Services
from evalcore.errors import GraderError, ToolkitError
from evalcore.toolkits.faults import WorkerFault
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import Task
from evalcore.values.trace import TraceReader
from evalcore.values.trial import Deliverable, Evidence, Outcome, Verdict
from evalcore_tau2.bridge import without_fixed
from evalcore_tau2.gold import subject

GRADE_S: Final = 600.0  # a verdict takes a second; the worker itself stops at two minutes of processor time
TOLERANCE: Final = 1e-6  # within which upstream calls a reward 1
WITHOUT_JUDGE: Final = "database only, without the judge"


class Tau2Grader:
    """The native reward: 1 passes, anything less fails. `ungraded` where only a judge that is missing could tell."""

    def __init__(self, services: Services, info: object = None) -> None:
        self._services = services

    async def grade(
        self, task: Task, deliverable: Deliverable, evidence: Evidence, trace: TraceReader, judge: JudgeReplies | None
    ) -> Verdict:
        """Pass or fail as upstream says. Raises ToolkitError, GraderError."""
        simulation = cast(JSONObject, deliverable.data["simulation"])
        request: JSONObject = {**subject(task), "simulation": simulation}
        reply: JSONObject | None = None
        if judge is not None:
            wanted = await self._ask("wanted_judgement", request)
            if isinstance(wanted, dict):
                reply = await judge.reply(without_fixed({"model": "judge", **wanted}, _model_of(judge)))
        native = await self._ask("verdict", {**request, "judge": reply})
        if not isinstance(native, dict):
            raise GraderError("the tau2 toolkit sent no verdict")
        return _verdict(native, cast("list[str]", simulation.get("flags") or []))

    async def _ask(self, method: str, request: JSONObject) -> JSONValue:
        """The worker's answer. What it raises, upstream raised over this simulation: another one may be graded."""
        try:
            return await (await self._services.toolkit("tau2")).request(method, request, GRADE_S)
        except WorkerFault as error:
            raise GraderError(error.message, hint=error.text) from error

    async def stamp(self) -> JSONObject:
        """Which upstream code and data judge, and what was replaced in it."""
        whole = await (await self._services.toolkit("tau2")).stamp()
        upstream = cast(JSONObject, whole["upstream"])
        if "version" not in upstream:
            raise ToolkitError("the tau2 toolkit does not say what it is")
        kept = ("package", "version", "stand_in", "replaced", "files", "data", "worker")
        return {"source": whole["source"], **{name: upstream[name] for name in kept}}


def _model_of(judge: JudgeReplies) -> str | None:
    """The judge's model, where it says."""
    model = getattr(judge, "model", None)
    return model if isinstance(model, str) else None


def _verdict(native: JSONObject, flags: list[str]) -> Verdict:
    reward, info = cast(float, native["reward"]), cast(JSONObject, native["reward_info"])
    solved = abs(reward - 1.0) <= TOLERANCE
    views = _views(info)
    if native["crash"] is not None:
        flags = [*flags, f"native_evaluator_crashes:{native['crash']}"]
    asked, answered = native["asked"], native["answered"]
    if solved and native["unjudged"]:
        return Verdict("ungraded", None, details=info, flags=tuple(flags), views=views, bounds=(0.0, 1.0))
    if not native["unjudged"] and asked != answered:
        flags = [*flags, f"judge: {answered} of {asked} assertions answered"]
    outcome: Outcome = "pass" if solved else "fail"
    return Verdict(outcome, reward if 0.0 <= reward <= 1.0 else None, details=info, flags=tuple(flags), views=views)


def _views(info: JSONObject) -> dict[str, bool]:
    """Where a judge is part of the reward: whether the database alone would have passed."""
    check: JSONValue = info.get("db_check")
    basis = info.get("reward_basis")
    if isinstance(check, dict) and isinstance(basis, list) and "NL_ASSERTION" in basis:
        return {WITHOUT_JUDGE: bool(check["db_match"])}
    return {}
