"""`react` speaks Chat Completions, and works with a model that is behind Messages: a trial, against a fake server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalcore.engine.plan import close_plan, make_plan
from evalcore.engine.run import RunOptions, start
from evalcore.engine.services import LocalServices
from evalcore.engine.store import TraceStore, read_attempts, read_gradings
from evalcore.plugins import PluginRef, load
from evalcore.testing import toy
from evalcore.values.json import JSONObject
from evalcore.values.study import Study
from evalcore.values.task import Limits
from tests.integration.upstreams import upstream
from tests.integration.wire_rig import on_loop

THOUGHT: JSONObject = {"type": "thinking", "thinking": "Look first.", "signature": "c2ln"}
CALL: JSONObject = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Bern"}}
USAGE: JSONObject = {"input_tokens": 20, "cache_read_input_tokens": 80, "output_tokens": 10}


def message(stop: str, *content: JSONObject) -> JSONObject:
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-served", "content": list(content),
        "stop_reason": stop, "stop_sequence": None, "usage": USAGE,
    }  # fmt: skip


@on_loop
async def test_react_does_a_trial_on_a_model_of_anthropic_and_hands_its_thoughts_back(tmp_path: Path) -> None:
    said: JSONObject = {"type": "text", "text": "It is 10 degrees in Bern."}
    async with upstream(message("tool_use", THOUGHT, CALL), message("end_turn", said)) as server:
        registry = load(only=())
        registry.add(PluginRef("toy", "toy", "1", "evalcore.testing.toy"), toy)
        services = LocalServices(registry, tmp_path)
        arms: dict[str, Any] = {
            "it": {
                "harness": "react",
                "model": "anthropic/claude-x",
                "base_url": server.url,
                "max_output_tokens": 700,
                "reasoning_effort": "low",
            }
        }
        study = Study(name="c", benchmarks=("toy-weather:1",), arms=arms, limits=Limits())
        try:
            plan = await make_plan(study, registry, services, "r")
            end = await start(plan, tmp_path / "r", registry, services, RunOptions())
            assert end.error is None
            await close_plan(plan)
        finally:
            await services.close()
        first, second = (body for _, _, body in server.asked)
    (attempt,) = read_attempts(tmp_path / "r")
    (grading,) = read_gradings(tmp_path / "r", plan.stamp.grading)
    assert grading.verdict.outcome == "pass"
    usage = attempt.usage["agent"]
    assert (usage.calls, usage.input, usage.output, usage.cache_read) == (2, 200, 20, 160)
    assert first["model"] == "claude-x" and first["max_tokens"] == 700
    assert first["output_config"] == {"effort": "low"}
    assert [tool["name"] for tool in first["tools"]] == ["get_weather"]
    assert second["messages"][-2] == {"role": "assistant", "content": [THOUGHT, CALL]}
    (result,) = second["messages"][-1]["content"]
    assert (result["type"], result["tool_use_id"]) == ("tool_result", "toolu_1")
    store = TraceStore(tmp_path / "r")
    responses = list(store.read(attempt.trace).events("model.response"))
    store.close()
    assert [e["upstream"] for e in responses] == [{"dialect": "anthropic-messages", "usage": USAGE}] * 2
