"""Trials as ATIF trajectories (Agent Trajectory Interchange Format, v1.4), one JSON file each.

Steps count from 1 and alternate between what the agent was told and what it did; a tool's results stand in the step
that asked for them. evalcore's own facts are under `extra`, which the format leaves to whoever writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from evalcore.contracts import Services
from evalcore.engine.store import write_durably
from evalcore.values.descriptors import RendererInfo
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.redaction import RedactionRules
from evalcore.values.usage import usage_of
from evalcore_interop.trials import Said, Trial, Trials, at, conversation

SCHEMA: Final = "ATIF-v1.4"
_SOURCES: Final = {"system": "system", "user": "user", "assistant": "agent"}


class Trajectories:
    """Renderer `atif`."""

    def __init__(self, services: Services | None = None, info: RendererInfo | None = None) -> None:
        pass

    def render(
        self,
        run: Path,
        out: Path,
        grading: str | None = None,
        public: bool = False,
        rules: RedactionRules | None = None,
    ) -> Sequence[Path]:
        """Write a file for each attempt below `out`. Raises ConfigError if there is no such run."""
        out.mkdir(parents=True, exist_ok=True)
        files = []
        trials = Trials(run, grading, public=public, rules=rules)
        for trial in trials:
            path = out / f"{trial.name}.json"
            write_durably(path, trials.written(trajectory(trial)) + b"\n")
            files.append(path)
        return files


def trajectory(trial: Trial) -> JSONObject:
    """One attempt as a trajectory."""
    attempt, arm = trial.attempt, trial.arm
    usage = attempt.usage.get("agent")
    steps: list[JSONValue] = list(_steps(trial))
    agent: JSONObject = {"name": arm.arm.harness, "version": arm.harness_version or "unknown"}
    if arm.arm.model is not None:
        agent["model_name"] = arm.arm.model
    totals: JSONObject = {"total_steps": len(steps)}
    if usage is not None and not usage.unreported:
        totals["total_prompt_tokens"] = usage.input
        totals["total_completion_tokens"] = usage.output
        totals["total_cached_tokens"] = usage.cache_read
    if usage is not None and usage.cost_usd is not None:
        totals["total_cost_usd"] = usage.cost_usd
    return {
        "schema_version": SCHEMA,
        "session_id": attempt.id,
        "agent": agent,
        "steps": steps,
        "final_metrics": totals,
        "extra": {"evalcore": _facts(trial)},
    }


def _steps(trial: Trial) -> list[JSONObject]:
    steps: list[JSONObject] = []
    asking: dict[str, tuple[JSONObject, list[JSONValue]]] = {}  # the step that made a call, and its results, by id
    for said in conversation(trial.trace):
        if said.role == "tool":
            step, results = asking[said.call]
            results.append({"source_call_id": said.call, "content": said.text})
            step["observation"] = {"results": results}
            continue
        step = _step(trial, len(steps) + 1, said)
        results = []
        asking |= {str(call["id"]): (step, results) for call in said.calls}
        steps.append(step)
    return steps


def _step(trial: Trial, number: int, said: Said) -> JSONObject:
    step: JSONObject = {
        "step_id": number,
        "timestamp": at(trial.attempt.started, said.t).isoformat(),
        "source": _SOURCES.get(said.role, "user"),
        "message": said.text,
    }
    if said.calls:
        step["tool_calls"] = [
            {"tool_call_id": c["id"], "function_name": c["name"], "arguments": _arguments(c["arguments"])}
            for c in said.calls
        ]
    body = said.response.get("body") if said.response is not None else None
    if isinstance(body, dict) and said.response is not None:
        usage = usage_of(body, said.response.get("dialect"))
        if not usage.unreported:
            step["metrics"] = {
                "prompt_tokens": usage.input,
                "completion_tokens": usage.output,
                "cached_tokens": usage.cache_read,
                **({} if usage.cost_usd is None else {"cost_usd": usage.cost_usd}),
            }
        if isinstance(model := body.get("model"), str):
            step["model_name"] = model
    return step


def _arguments(value: JSONValue) -> JSONObject:
    """The format wants an object; what a model sent instead is kept under a name that says so."""
    return value if isinstance(value, dict) else {"not_an_object": value}


def _facts(trial: Trial) -> JSONObject:
    attempt = trial.attempt
    verdict = trial.grading.verdict if trial.grading is not None else None
    return {
        "benchmark": attempt.key.benchmark,
        "task": attempt.key.task,
        "repeat": attempt.key.repeat,
        "arm": trial.arm.arm.label,
        "exit": None if attempt.exit is None else attempt.exit.kind,
        "void": None if attempt.void is None else attempt.void.kind,
        "outcome": None if verdict is None else verdict.outcome,
        "score": None if verdict is None else verdict.score,
        "harm": None if verdict is None else verdict.harm,
        "provenance": attempt.provenance,
        "isolation": attempt.isolation,
    }
