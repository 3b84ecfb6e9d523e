"""What a judge model says, asked once: each reply is kept with the verdict, and given again when it is graded anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evalcore.contracts import Clock
from evalcore.engine.live import RoleModel, channel_of
from evalcore.errors import EvalcoreError, GraderError
from evalcore.values.json import JSONObject, digest
from evalcore.values.task import Role
from evalcore.values.trial import Attempt, Grading
from evalcore.values.usage import Usage
from evalcore.wires.meter import Meter, RunBudget
from evalcore.wires.recorder import AttemptRecorder


class Judge:
    """The judge of one verdict: what it has said before, then the model, if there is one to ask.

    A request is known by its digest and how often it was made before in the same grading: a grader that asks again
    wants another reply. `replies` is what it said this time, to be kept; `usage` is what was asked anew.
    """

    def __init__(
        self,
        model: str,
        served: RoleModel | None,
        attempt: Attempt,
        clock: Clock,
        budget: RunBudget,
        known: Iterable[JSONObject] = (),
        seed: int = 0,
    ) -> None:
        self._model = model
        self._meter = Meter(budget)
        self._known: dict[str, list[JSONObject]] = {}
        for entry in known:
            reply = entry.get("reply")
            if entry.get("model") == model and isinstance(reply, dict):
                self._known.setdefault(str(entry.get("request")), []).append(reply)
        self._channel = None
        if served is not None:
            recorder = AttemptRecorder(clock)
            self._channel = channel_of("judge", served, recorder, self._meter, attempt.key, attempt.number, seed)
        self._asked: dict[str, int] = {}
        self.replies: list[JSONObject] = []

    @property
    def model(self) -> str:
        """The judge's model, `provider/name`."""
        return self._model

    async def reply(self, request: JSONObject) -> JSONObject:
        """The judge's answer to a Chat Completions request. Raises GraderError where there is none to be had."""
        named = digest(request)
        number = self._asked.get(named, 0)
        self._asked[named] = number + 1
        known = self._known.get(named, [])
        answer = known[number] if number < len(known) else await self._ask(request)
        self.replies.append({"model": self._model, "request": named, "reply": answer})
        return answer

    async def _ask(self, request: JSONObject) -> JSONObject:
        if self._channel is None:
            raise GraderError(f"the judge {self._model} has not answered this before, and cannot be asked now")
        try:
            return await self._channel.complete(request)
        except EvalcoreError as error:
            raise GraderError(f"the judge {self._model} did not answer: {error.message}") from error

    @property
    def usage(self) -> Mapping[Role, Usage]:
        """What was asked anew, of the role judge."""
        return self._meter.usage()


def replies_of(gradings: Iterable[Grading]) -> dict[str, tuple[JSONObject, ...]]:
    """By attempt, all that judges have said of it."""
    found: dict[str, tuple[JSONObject, ...]] = {}
    for grading in gradings:
        if grading.judge:
            found[grading.attempt] = (*found.get(grading.attempt, ()), *grading.judge)
    return found
