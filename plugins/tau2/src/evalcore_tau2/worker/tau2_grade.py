"""Upstream's evaluator on a simulation that was recorded, with a judge's reply that was recorded too."""

from __future__ import annotations

import json
import traceback
from typing import Any

MYPY = False
if MYPY:
    from evalcore_tau2.worker.tau2_dialogue import environment_options
    from evalcore_tau2.worker.tau2_upstream import JSONObject, Pending, Upstream
else:
    from tau2_dialogue import environment_options
    from tau2_upstream import Pending

GRADED = frozenset({"agent_stop", "user_stop"})
FOREIGN = "timeout"  # how endings that only we know are called towards upstream: any but a stop is worth nothing


UNREADABLE = (UnicodeError, RecursionError)
"""What upstream's digests raise over values that no database holds: an agent's, put there by its calls."""


class BadJudge(Exception):
    """The judge's reply is not what upstream can read."""


def judge_request(native: Upstream, raw_task: JSONObject, raw: JSONObject) -> JSONObject | None:
    """The Chat Completions body of upstream's question to its judge."""
    task = native.tasks.Task.model_validate(raw_task)
    if raw["termination_reason"] not in GRADED or not _is_judged(native, task):
        return None
    messages = _simulation(native, task, raw).messages
    try:
        with native.models.with_replies(()):
            native.judge.NLAssertionsEvaluator.evaluate_nl_assertions(messages, task.evaluation_criteria.nl_assertions)
    except Pending as pending:
        return pending.body
    raise RuntimeError("upstream judged without asking its judge")


def grade(native: Upstream, params: JSONObject) -> JSONObject:
    """The native reward as upstream's evaluator gives it, and what of the judge's reply went into it."""
    task = native.tasks.Task.model_validate(params["task"])
    simulation = _simulation(native, task, params["simulation"])
    judged = _is_judged(native, task) and simulation.termination_reason.value in GRADED
    response: JSONObject = params.get("judge") or {}
    unjudged = judged and not response
    if unjudged:  # what is asked is whether the rest of the reward has decided already
        response = _yes_to_all(task)
    if judged:
        _check_judge(response)
    kinds = native.evaluator.EvaluationType
    # ALL does the same in upstream's own code; a vendor's copy of an older one refuses a basis with assertions.
    kind = kinds.ALL_WITH_NL_ASSERTIONS if _has_basis(native, task) else kinds.ALL
    options = environment_options(task, params.get("retrieval"))
    try:
        with native.models.with_replies([response] if judged else []):
            info = native.evaluator.evaluate_simulation(
                simulation=simulation,
                task=task,
                evaluation_type=kind,
                solo_mode=bool(params.get("solo")),
                domain=str(params["domain"]),
                **({"env_kwargs": options} if options else {}),
            )
    except Exception as error:
        if not (isinstance(error, UNREADABLE) or _in_assertion(error)):
            raise
        name = type(error).__name__
        note = {"raised": name, "message": ascii(str(error))[:2000]}
        return {"reward": 0.0, "reward_info": note, "unjudged": False, "asked": 0, "answered": 0, "crash": name}
    reward_info = info.model_dump(mode="json")
    asked = len(task.evaluation_criteria.nl_assertions or ()) if judged else 0
    answered = len(info.nl_assertions or ()) if judged else 0
    if unjudged:
        reward_info["nl_assertions"] = None
    counts = {"asked": asked, "answered": answered}
    return {"reward": info.reward, "reward_info": reward_info, "unjudged": unjudged, "crash": None, **counts}


def _in_assertion(error: BaseException) -> bool:
    """Whether a check of the final state raised, which some do of a state that they do not expect: the agent's doing.

    Natively that ends the simulation as an error of the infrastructure.
    """
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_code.co_name == "run_env_assertion" for frame, _ in frames)


def _simulation(native: Upstream, task: Any, raw: JSONObject) -> Any:
    reasons = {reason.value for reason in native.simulations.TerminationReason}
    reason = raw["termination_reason"]
    if reason not in reasons:
        reason = FOREIGN if FOREIGN in reasons else "max_steps"
    return native.simulations.SimulationRun.model_validate(
        {
            "id": "evalcore",
            "task_id": task.id,
            "timestamp": "",
            "start_time": "",
            "end_time": "",
            "duration": 0.0,
            "termination_reason": reason,
            "messages": raw["messages"],
        }
    )


def _has_basis(native: Upstream, task: Any) -> bool:
    criteria = task.evaluation_criteria
    return criteria is not None and native.tasks.RewardType.NL_ASSERTION in criteria.reward_basis


def _is_judged(native: Upstream, task: Any) -> bool:
    return _has_basis(native, task) and bool(task.evaluation_criteria.nl_assertions)


def _yes_to_all(task: Any) -> JSONObject:
    results = [
        {"expectedOutcome": text, "metExpectation": True, "reasoning": "not judged"}
        for text in task.evaluation_criteria.nl_assertions
    ]
    message = {"role": "assistant", "content": json.dumps({"results": results})}
    return {"choices": [{"message": message, "finish_reason": "stop"}]}


def _check_judge(response: JSONObject) -> None:
    """Raise BadJudge where upstream's own reading of the reply would fail."""
    try:
        results = json.loads(response["choices"][0]["message"]["content"]).get("results", [])
        for result in results:
            _ = result["expectedOutcome"], result["metExpectation"], result["reasoning"]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise BadJudge(f"the judge's reply cannot be read: {type(error).__name__}: {error}") from error
