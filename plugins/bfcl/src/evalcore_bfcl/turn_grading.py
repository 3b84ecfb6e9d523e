"""Verdicts on several turns: an agent's calls, executed again by upstream's own runner, beside the expected ones.

One task at a time, under a tag of its own; what the runner wrote is read back.
"""

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from evalcore_bfcl.native import CPU_SECONDS, Endless, JSONObject, processor_time, upstream
from evalcore_bfcl.stateful import (
    NOWHERE,
    class_of,
    entry_of,
    executable,
    forget,
    graded,
    is_agentic,
    new_tag,
    offered,
)

ECHOED = ("id", "model_name", "test_category", "prompt", "inference_log", "possible_answer", "last_non_fc_message")
RESULTS = ("model_result", "model_result_raw", "model_result_decoded")
"""Fields of a native verdict that repeat what the runner was given, as it was or decoded."""


class Reading:
    """An agent's steps as responses of upstream's handler: its calls as they were made, if they may be executed.

    A function that is not there yet is executed too if it is called, as upstream does, whatever the agent was told.
    """

    def __init__(self, category: str, entry: JSONObject) -> None:
        tools, added = offered(category, entry["id"])
        self._since = {tool["name"]: 0 for tool in tools}
        self._since |= {tool["name"]: int(turn) for turn, later in added.items() for tool in later}
        self.flags: dict[str, None] = {}

    def turns(self, turns: list[list[JSONObject]]) -> list[list[Any]]:
        """A list of steps for each turn."""
        return [[self._step(number, step) for step in steps] for number, steps in enumerate(turns)]

    def _step(self, number: int, step: JSONObject) -> Any:
        if "text" in step:
            return step["text"]
        calls = [executable(call, self._since) for call in step["calls"]]
        for call in calls:
            self._note(number, call)
        return [call for call in calls if call is not None]

    def _note(self, number: int, call: JSONObject | None) -> None:
        if call is None:
            self.flags["calls_unreadable"] = None
        elif call is not NOWHERE:
            ((name, arguments),) = call.items()
            if self._since[name] > number:
                self.flags["called_before_it_was_there"] = None
            if rewritten(name, arguments, self._since):
                self.flags["native_rewrites_arguments"] = None


def rewritten(name: str, arguments: str, names: Iterable[str]) -> bool:
    """Whether upstream puts an instance's name into the arguments too, where they speak of a function."""
    (text,) = upstream().handler.decode_execute([{name: arguments}], has_tool_call_tag=False)
    return any(found in names for found in re.findall(r"\b([a-zA-Z_]\w*)\s*(?=\()", text)[1:])


def run_native(category: str, identifier: str, result: Any) -> JSONObject:
    """A task's result through upstream's file runner: the verdict as it wrote it, less what it was given."""
    runner, tag = upstream().runner, new_tag()
    entry, answer = graded(category)[identifier]
    for name in entry["involved_classes"] if not is_agentic(category) else ():
        class_of(name)
    run = runner.agentic_runner if is_agentic(category) else runner.multi_turn_runner
    results, prompts = [{"id": identifier, "result": result}], [dict(entry)]  # the runner takes fields away
    scores = upstream().root / tag
    try:
        run(upstream().handler, results, prompts, [{"ground_truth": answer}], tag, category, scores)
        folder = scores / tag / runner.get_directory_structure_by_category(category)
        text = (folder / runner.get_file_name_by_category(category, is_score_file=True)).read_text(encoding="utf-8")
    finally:
        forget(tag)
    header, *failures = [json.loads(line) for line in text.split("\n") if line]
    if len(failures) + header["correct_count"] != 1:
        raise OSError("the native runner did not write one verdict")
    dropped = (*ECHOED, *RESULTS)
    return {k: v for k, v in failures[0].items() if k not in dropped} if failures else {"valid": True}


def abstained(category: str, identifier: str, result: Any) -> bool | None:
    """Whether no call was made in the turns in which none is right, by upstream's checker; None if there are none."""
    _, answer = graded(category)[identifier]
    if not upstream().runner.contain_multi_turn_irrelevance(category):
        return None
    if not isinstance(result, list) or len(result) != len(answer):
        return False
    decoded = [[["call"] for step in steps if isinstance(step, list) and step] for steps in result]
    return bool(upstream().runner.multi_turn_irrelevance_checker(decoded, answer)["valid"])


def dialogue_grade(params: JSONObject) -> JSONObject:
    """The native verdict on an agent's turns; `failure` is why it has none that could be graded."""
    category, entry = entry_of(params)
    identifier = entry["id"]
    reading = Reading(category, entry)
    failure = params.get("failure")
    result = reading.turns(params["turns"]) if failure is None else f"Error during inference: {failure}"
    try:
        with processor_time(CPU_SECONDS):
            native = run_native(category, identifier, result)
    except (OSError, MemoryError):
        raise  # the machine's fault
    except Exception as error:  # noqa: BLE001 - the agent's fault, whatever it is: natively it would end the run
        name = type(error).__name__
        raised = "native_runner_hangs" if isinstance(error, Endless) else f"native_runner_crashes:{name}"
        native = {"valid": False, "raised": name, "message": ascii(str(error))[:2000]}
        reading.flags[raised] = None
    return {
        "valid": bool(native["valid"]),
        "native": native,
        "abstained": abstained(category, identifier, result),
        "flags": list(reading.flags),
    }


def handlers() -> dict[str, Callable[..., object]]:
    """Each request's name and what answers it."""
    return {"dialogue_grade": dialogue_grade}
