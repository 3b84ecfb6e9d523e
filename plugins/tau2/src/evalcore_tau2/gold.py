"""A task's reference actions as a playbook: who does what in which turn. The evaluator is never asked for its wish."""

from __future__ import annotations

from itertools import groupby
from typing import Final, cast

from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import GoldDialogue, Task

STOP: Final = "###STOP###"
SILENT_USER: Final[tuple[JSONObject, ...]] = ({"text": STOP},)
"""The user of an agent that does nothing: one that stops at once."""

_GOES_ON: Final = "Please go on."
_DONE: Final = "Done."
SOLO_STOP: Final = "done"


CRITERIA: Final = "evaluation_criteria"


def whole(task: Task) -> JSONObject:
    """A task as it stands in upstream's file: what is assigned from, and what is graded by."""
    shown = cast(JSONObject, task.data["task"])
    return {**shown, CRITERIA: task.reference} if isinstance(task.reference, dict) else shown


def subject(task: Task) -> JSONObject:
    """What a request about a task says of it."""
    named: JSONObject = {name: task.data[name] for name in ("domain", "solo", "retrieval") if name in task.data}
    return {**named, "task": whole(task)}


def actions_of(task: JSONObject) -> list[JSONObject]:
    """The reference actions, in their order."""
    criteria = task.get(CRITERIA)
    actions = criteria.get("actions") if isinstance(criteria, dict) else None
    return [a for a in actions if isinstance(a, dict)] if isinstance(actions, list) else []


def dialogue_of(task: JSONObject) -> GoldDialogue:
    """The actions in turns: the user acts and speaks, the agent acts and answers, and so on; at last the user stops.

    The agent's last answer holds what the task wants to be communicated.
    """
    runs = [(who, [_call(a) for a in run]) for who, run in groupby(actions_of(task), key=_requestor)]
    if not runs or runs[0][0] == "assistant":
        runs.insert(0, ("user", []))
    if runs[-1][0] == "user":
        runs.append(("assistant", []))
    answers: list[JSONValue] = [_DONE] * (len(runs) // 2)
    answers[-1] = " ".join([_DONE, *_wanted_words(task)])
    agent = tuple(
        cast(JSONObject, {"calls": calls, "answer": answer})
        for (_, calls), answer in zip(runs[1::2], answers, strict=True)
    )
    user = (*({"calls": calls, "text": _GOES_ON} for _, calls in runs[::2]), {"text": STOP})
    return GoldDialogue(agent, cast("tuple[JSONObject, ...]", user))


def solo_of(task: JSONObject) -> GoldDialogue:
    """All actions by the agent, which then says that it is done."""
    calls: list[JSONValue] = [*(_call(a) for a in actions_of(task)), {"name": SOLO_STOP, "arguments": {}}]
    return GoldDialogue(({"calls": calls, "answer": ""},))


def _call(action: JSONObject) -> JSONObject:
    return {"name": action["name"], "arguments": action["arguments"]}


def _requestor(action: JSONObject) -> JSONValue:
    return action.get("requestor", "assistant")


def _wanted_words(task: JSONObject) -> list[str]:
    criteria = cast(JSONObject, task.get(CRITERIA) or {})
    return [str(words) for words in cast("list[JSONValue]", criteria.get("communicate_info") or [])]
