"""Runs in an environment with inspect_ai: says what Inspect reads in logs, and writes one of its own.

`read_logs.py FOLDER OWN`: prints, as JSON, of each log in FOLDER its header and samples as Inspect has them; then
writes the log OWN with Inspect's writer.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from inspect_ai.log import (  # type: ignore[import-not-found,unused-ignore]
    EvalConfig,
    EvalDataset,
    EvalLog,
    EvalPlan,
    EvalPlanStep,
    EvalSample,
    EvalSpec,
    list_eval_logs,
    read_eval_log,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
    write_eval_log,
)
from inspect_ai.model import (  # type: ignore[import-not-found,unused-ignore]
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.scorer import Score  # type: ignore[import-not-found,unused-ignore]
from inspect_ai.tool import ToolCall  # type: ignore[import-not-found,unused-ignore]


def told(path: str) -> dict[str, Any]:
    """A log as Inspect reads it, whole and sample by sample."""
    log = read_eval_log(path)
    return {
        "task": log.eval.task,
        "model": log.eval.model,
        "accuracy": log.results.scores[0].metrics["accuracy"].value,
        "summaries": len(read_eval_log_sample_summaries(path)),
        "samples": [sample(read_eval_log_sample(path, s.id, s.epoch)) for s in log.samples],
    }


def sample(one: Any) -> dict[str, Any]:
    return {
        "id": one.id,
        "epoch": one.epoch,
        "scores": {name: score.value for name, score in (one.scores or {}).items()},
        "error": one.error and one.error.message,
        "limit": one.limit and one.limit.type,
        "roles": [message.role for message in one.messages],
        "tokens": sum(usage.total_tokens for usage in one.model_usage.values()),
        "user_tokens": sum(usage.total_tokens for usage in one.role_usage.values()),
        "answer": one.output.completion,
    }


def written(identifier: str, epoch: int, value: Any) -> Any:
    """A sample made with Inspect's own classes."""
    call = ToolCall(id="c1", function="add", arguments={"x": 1})
    return EvalSample(
        id=identifier,
        epoch=epoch,
        input="1+1?",
        target="2",
        messages=[
            ChatMessageUser(content="1+1?"),
            ChatMessageAssistant(content="", tool_calls=[call]),
            ChatMessageTool(content="2", tool_call_id="c1", function="add"),
            ChatMessageAssistant(content="2"),
        ],
        output=ModelOutput.from_content("openai/gpt", "2"),
        scores={"match": Score(value=value, answer="2")},
        model_usage={"openai/gpt": ModelUsage(input_tokens=10, output_tokens=5, input_tokens_cache_read=20)},
        started_at="2026-05-01T10:00:00+00:00",
        total_time=1.5,
    )


def main() -> None:
    folder, own = Path(sys.argv[1]), sys.argv[2]
    print(json.dumps([told(info.name) for info in list_eval_logs(str(folder))]))
    spec = EvalSpec(
        created="2026-05-01T10:00:00+00:00",
        task="sums",
        dataset=EvalDataset(name="numbers"),
        model="openai/gpt",
        config=EvalConfig(epochs=2),
    )
    samples = [written("a/1", 1, "C"), written("a/1", 2, "I"), written("b", 1, 0.5)]
    plan = EvalPlan(steps=[EvalPlanStep(solver="generate")])
    write_eval_log(EvalLog(eval=spec, plan=plan, samples=samples, status="success"), own)


main()
