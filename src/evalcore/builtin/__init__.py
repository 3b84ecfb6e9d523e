"""The core's own parts, registered through the same hooks as any plugin's."""

from __future__ import annotations

from evalcore.hookspecs import AxisInfo, BridgeInfo, HarnessInfo, ModelInfo, hookimpl


@hookimpl
def evalcore_bridges() -> list[BridgeInfo]:
    """Declared tools."""
    return [
        BridgeInfo(
            "toolset", "tools declared in the task, answered as declared", "evalcore.builtin.toolset:ToolsetBridge"
        )
    ]


@hookimpl
def evalcore_harnesses() -> list[HarnessInfo]:
    """The reference loop and the two controls."""
    return [
        HarnessInfo(
            "react",
            "a plain tool-calling loop, in process: the reference agent",
            "evalcore.builtin.react:ReactHarness",
            axes=("max_turns", "tool_protocol"),
        ),
        HarnessInfo(
            "oracle",
            "control: plays the task's gold through the real tools; shows the ceiling",
            "evalcore.builtin.controls:OracleHarness",
            uses_model=False,
            control=True,
        ),
        HarnessInfo(
            "noop",
            "control: completes without a call or an answer; shows the floor",
            "evalcore.builtin.controls:NoopHarness",
            uses_model=False,
            control=True,
        ),
    ]


@hookimpl
def evalcore_models() -> list[ModelInfo]:
    """The scripted provider."""
    return [
        ModelInfo(
            "scripted",
            "answers from a playbook file: `scripted/PATH` (TOML or JSONL), offline and without a key",
            "evalcore.builtin.scripted:ScriptedProvider",
        )
    ]


@hookimpl
def evalcore_axes() -> list[AxisInfo]:
    """The knobs that every study has."""
    return [
        AxisInfo("harness", "the agent under test", "engine", boundary=True),
        AxisInfo("model", "provider/model of the agent", "engine", boundary=True),
        AxisInfo(
            "max_turns", "model calls after which react stops", "harness", "integer", default=50, of="react", low=1
        ),
        AxisInfo(
            "tool_protocol",
            "how react asks for calls: the provider's own tool calling, or plain text",
            "harness",
            default="native",
            values=("native", "text"),
            of="react",
        ),
        AxisInfo("temperature", "sampling temperature", "gateway", "number", low=0, high=2),
        AxisInfo("top_p", "nucleus sampling", "gateway", "number", low=0, high=1),
        AxisInfo("max_output_tokens", "output tokens of one model call at most", "gateway", "integer", low=1),
        AxisInfo(
            "reasoning_effort",
            "how long the model thinks",
            "gateway",
            values=("none", "minimal", "low", "medium", "high", "xhigh"),
        ),
    ]
