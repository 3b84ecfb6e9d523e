"""A run as Inspect logs, one `.eval` file for each benchmark and configuration (log schema 2; inspect_ai >= 0.3.200).

A sample is a trial: its id the task's, its epoch the repeat. The score is `C` or `I`, with evalcore's own outcome
beside it; a trial that was not graded has none, one without a result is a sample with an error. Of several attempts the
one that counts is told. Gold is never in a run, so a sample's target is empty. What Inspect has no place for stands
under `metadata.evalcore`, from where the importer takes it again.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from evalcore.contracts import Services
from evalcore.engine.store import write_durably
from evalcore.values.descriptors import RendererInfo
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.redaction import RedactionRules
from evalcore.values.trial import RESULTS, SUCCESSES
from evalcore.values.usage import Usage
from evalcore_interop.trials import Said, Trial, Trials, at, conversation, plain, together

LOG_VERSION: Final = 2
NO_MODEL: Final = "none/none"  # Inspect's word for a task without a model
LIMITS: Final[Mapping[str, str]] = {"tokens": "token", "wall_s": "time", "cost_usd": "cost", "turns": "turn"}


class InspectLogs:
    """Renderer `inspect`."""

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
        """Write the logs below `out`. Raises ConfigError if there is no such run."""
        trials = Trials(run, grading, public=public, rules=rules)
        cells: dict[tuple[str, str], dict[tuple[str, int], Trial]] = {}
        for trial in trials:
            key = trial.attempt.key
            counted = cells.setdefault((key.benchmark, key.arm), {})
            before = counted.get((key.task, key.repeat))
            if before is None or before.attempt.void is not None:  # the first result stands, else the latest void
                counted[key.task, key.repeat] = trial
        out.mkdir(parents=True, exist_ok=True)
        return [_write(out, trials, list(cell.values())) for cell in cells.values()]


def _write(out: Path, trials: Trials, cell: list[Trial]) -> Path:
    first = cell[0]
    name = f"{plain(first.benchmark.selector)}--{plain(first.arm.arm.handle)}.eval"
    path = out / name
    part = path.with_suffix(".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        spec = _spec(trials, first, cell)
        start: JSONObject = {"version": LOG_VERSION, "eval": spec, "plan": _plan(first)}
        archive.writestr("_journal/start.json", trials.written(start))
        summaries = []
        for trial in cell:
            sample = _sample(trial)
            archive.writestr(_member(trial), trials.written(sample))
            summaries.append(trials.written(_summary(sample)))
        archive.writestr("summaries.json", b"[" + b",".join(summaries) + b"]")
        archive.writestr("header.json", trials.written(_header(first, cell, spec)))
    write_durably(path, part.read_bytes())
    part.unlink()
    return path


def _member(trial: Trial) -> str:
    """Inspect looks a sample up by this name, made of the id as it is."""
    key = trial.attempt.key
    return f"samples/{key.task}_epoch_{key.repeat}.json"


def _spec(trials: Trials, first: Trial, cell: list[Trial]) -> JSONObject:
    stamp, benchmark, arm = trials.stamp, first.benchmark, first.arm
    ids: list[JSONValue] = list(dict.fromkeys(t.attempt.key.task for t in cell))
    return {
        "eval_id": f"{stamp.run}-{arm.arm.digest[:12]}",
        "run_id": stamp.run,
        "created": stamp.created,
        "task": benchmark.selector,
        "task_id": f"{benchmark.selector}@{benchmark.tasks_digest[:12]}",
        "task_version": benchmark.dataset.version,
        "solver": arm.arm.harness,
        "solver_args": {k: v for k, v in arm.arm.axes.items() if k not in ("harness", "model")},
        "dataset": {"name": benchmark.dataset.name, "samples": len(ids), "sample_ids": ids, "shuffled": False},
        "model": arm.arm.model or NO_MODEL,
        "config": {"epochs": stamp.repeats},
        "packages": {"evalcore": str(stamp.versions.get("evalcore", ""))},
        "scorers": [{"name": benchmark.grader, "metrics": [{"name": "accuracy", "options": {}}]}],
        "metadata": {
            "evalcore": {
                "run": stamp.run,
                "arm": arm.arm.label,
                "arm_digest": arm.arm.digest,
                "study_digest": stamp.study_digest,
                "dataset_digest": benchmark.dataset.digest,
                "grading": trials.grading,
                "grader_stamp": benchmark.grader_stamp,
                "isolation": stamp.isolation,
                "control": arm.control,
            }
        },
    }


def _plan(first: Trial) -> JSONObject:
    return {"name": "plan", "steps": [{"solver": first.arm.arm.harness, "params": {}}], "config": {}}


def _header(first: Trial, cell: list[Trial], spec: JSONObject) -> JSONObject:
    graded = [t for t in cell if t.grading is not None and t.grading.verdict.outcome in RESULTS]
    passed = [t for t in graded if t.grading is not None and t.grading.verdict.outcome in SUCCESSES]
    done = [t for t in cell if t.attempt.void is None]
    results: JSONObject = {"total_samples": len(cell), "completed_samples": len(done), "scores": []}
    if graded:
        accuracy: JSONObject = {"name": "accuracy", "value": len(passed) / len(graded)}
        name = first.benchmark.grader
        results["scores"] = [{"name": name, "scorer": name, "metrics": {"accuracy": accuracy}, "params": {}}]
    return {
        "version": LOG_VERSION,
        "status": "success",
        "eval": spec,
        "plan": _plan(first),
        "results": results,
        "stats": {
            "started_at": min(at(t.attempt.started, 0.0) for t in cell).isoformat(),
            "completed_at": max(at(t.attempt.started, t.attempt.wall_s) for t in cell).isoformat(),
            "model_usage": _model_usage(cell),
            "role_usage": _role_usage(cell),
        },
    }


def _sample(trial: Trial) -> JSONObject:
    attempt = trial.attempt
    steps = conversation(trial.trace)
    told = 0
    while told < len(steps) and steps[told].role in ("system", "user"):
        told += 1
    messages = [_message(number, step, first=number < told) for number, step in enumerate(steps)]
    sample: JSONObject = {
        "id": attempt.key.task,
        "epoch": attempt.key.repeat,
        "input": list(messages[:told]) if told else "",
        "target": "",
        "messages": list(messages),
        "output": _output(trial),
        "scores": _scores(trial),
        "metadata": {
            "evalcore": {
                "attempt": attempt.id,
                "task_digest": attempt.task_digest,
                "cluster": trial.benchmark.cluster_of.get(attempt.key.task, attempt.key.task),
                "provenance": attempt.provenance,
                "isolation": attempt.isolation,
                "exit": None if attempt.exit is None else attempt.exit.kind,
                "limit": None if attempt.exit is None else attempt.exit.limit,
                "void": None if attempt.void is None else attempt.void.kind,
                "tool_calls": attempt.tool_calls,
                "tool_errors": attempt.tool_errors,
                "usage": {role: usage.as_json() for role, usage in trial.usage.items()},
                "flags": list(attempt.flags),
            }
        },
        "store": {},
        "events": [],
        "model_usage": _model_usage([trial]),
        "role_usage": _role_usage([trial]),
        "started_at": at(attempt.started, 0.0).isoformat(),
        "completed_at": at(attempt.started, attempt.wall_s).isoformat(),
        "total_time": attempt.wall_s,
        "working_time": attempt.wall_s,
        "uuid": attempt.id,
        "attachments": {},
    }
    if attempt.void is not None:
        why = f"{attempt.void.kind}: {attempt.void.message}"
        sample["error"] = {"message": why, "traceback": why, "traceback_ansi": why}
    if attempt.exit is not None and attempt.exit.kind == "limit":
        limit = str(attempt.exit.limit)
        allowed = trial.benchmark.limits.as_json().get(limit)
        reason = attempt.exit.detail or limit
        sample["limit"] = {"type": LIMITS.get(limit, "custom"), "limit": allowed or 0.0, "reason": reason}
    return sample


def _message(number: int, step: Said, *, first: bool) -> JSONObject:
    message: JSONObject = {"id": f"m{number}", "role": step.role, "content": step.text}
    if first:
        message["source"] = "input"
    if step.role == "assistant":
        message["source"] = "generate"
        if step.calls:
            message["tool_calls"] = [
                {
                    "id": call["id"],
                    "function": call["name"],
                    "arguments": call["arguments"] if isinstance(call["arguments"], dict) else {},
                    **({} if isinstance(call["arguments"], dict) else {"parse_error": str(call["arguments"])}),
                    "type": "function",
                }
                for call in step.calls
            ]
    if step.role == "tool":
        message |= {"tool_call_id": step.call, "function": step.tool}
        if step.failed:
            message["error"] = {"type": "unknown", "message": step.text}
    return message


def _output(trial: Trial) -> JSONObject:
    model = trial.arm.arm.model or NO_MODEL
    left = trial.trace.last("deliverable") or {}
    answer = left.get("answer")
    if not isinstance(answer, str):
        return {"model": model, "choices": [], "completion": ""}
    message: JSONObject = {"id": "answer", "role": "assistant", "content": answer, "source": "generate"}
    return {"model": model, "choices": [{"message": message, "stop_reason": "stop"}], "completion": answer}


def _scores(trial: Trial) -> JSONObject:
    if trial.grading is None or trial.grading.verdict.outcome not in RESULTS:
        return {}
    verdict = trial.grading.verdict
    left = (trial.trace.last("deliverable") or {}).get("answer")
    score: JSONObject = {
        "value": "C" if verdict.outcome in SUCCESSES else "I",
        "answer": left if isinstance(left, str) else None,
        "metadata": {
            "outcome": verdict.outcome,
            "score": verdict.score,
            "harm": verdict.harm,
            "details": verdict.details,
            "flags": list(verdict.flags),
            "views": dict(verdict.views),
        },
    }
    return {trial.benchmark.grader: score}


def _summary(sample: JSONObject) -> JSONObject:
    names = ("id", "epoch", "input", "target", "metadata", "scores", "model_usage", "started_at", "completed_at")
    summary: JSONObject = {name: sample[name] for name in (*names, "total_time", "working_time", "uuid")}
    error, limit = sample.get("error"), sample.get("limit")
    if isinstance(error, dict):
        summary["error"] = error["message"]
    if isinstance(limit, dict):
        summary["limit"] = limit["type"]
    messages = sample["messages"]
    summary |= {"completed": True, "message_count": len(messages) if isinstance(messages, list) else 0}
    return summary


def _model_usage(trials: Iterable[Trial]) -> JSONObject:
    """Tokens by model, of all roles. A role whose model nobody names goes by the role's own name."""
    return _sums((trial.model_of(role) or role, usage) for trial in trials for role, usage in trial.usage.items())


def _role_usage(trials: Iterable[Trial]) -> JSONObject:
    """Tokens of those that are not the agent, by role: they are in the models' as well, as Inspect has it."""
    return _sums((role, usage) for trial in trials for role, usage in trial.usage.items() if role != "agent")


def _sums(usages: Iterable[tuple[str, Usage]]) -> JSONObject:
    sums: dict[str, Usage] = {}
    for name, usage in usages:
        sums[name] = together(sums[name], usage) if name in sums else usage
    return {name: _counts(usage) for name, usage in sums.items()}


def _counts(usage: Usage) -> JSONObject:
    """A usage as Inspect counts: there, input is what was neither read from a cache nor written to one."""
    counts: JSONObject = {
        "input_tokens": max(usage.input - usage.cache_read - usage.cache_write, 0),
        "output_tokens": usage.output,
        "total_tokens": usage.tokens,
        "input_tokens_cache_read": usage.cache_read,
        "input_tokens_cache_write": usage.cache_write,
        "reasoning_tokens": usage.reasoning,
    }
    return counts if usage.cost_usd is None else {**counts, "total_cost": usage.cost_usd}
