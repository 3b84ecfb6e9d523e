"""The core's own parts, registered through the same hooks as any plugin's."""

from __future__ import annotations

from evalcore.hookspecs import (
    AdapterInfo,
    AxisInfo,
    BridgeInfo,
    GraderInfo,
    HarnessInfo,
    ModelInfo,
    RendererInfo,
    SandboxInfo,
    TransformInfo,
    hookimpl,
)


@hookimpl
def evalcore_adapters() -> list[AdapterInfo]:
    """A file of one's own."""
    return [
        AdapterInfo(
            "suite",
            "tasks of your own, a file of JSON lines: `evalcore run ./tasks.jsonl`",
            "evalcore.builtin.suite.adapter:SuiteAdapter",
            takes_parameter="the file; its path alone names the benchmark, too",
        )
    ]


@hookimpl
def evalcore_bridges() -> list[BridgeInfo]:
    """Declared tools, and real servers."""
    return [
        BridgeInfo(
            "toolset",
            "tools declared in the task: results, and effects on a state",
            "evalcore.builtin.toolset:ToolsetBridge",
        ),
        BridgeInfo(
            "suite",
            "the same for a suite's task, and files in its sandbox",
            "evalcore.builtin.suite.bridge:SuiteBridge",
        ),
        BridgeInfo(
            "mcp",
            "real MCP servers, programs or addresses: one set of processes for each trial",
            "evalcore.builtin.mcp.bridge:McpBridge",
        ),
    ]


@hookimpl
def evalcore_graders() -> list[GraderInfo]:
    """What a suite's task asks for."""
    return [GraderInfo("suite", "all that a suite's task asks for holds", "evalcore.builtin.suite.grader:SuiteGrader")]


@hookimpl
def evalcore_sandboxes() -> list[SandboxInfo]:
    """No wall."""
    return [
        SandboxInfo(
            "none",
            "a folder on this machine, with no wall around it; only where it is demanded by name",
            "evalcore.builtin.sandbox_none:FolderSandboxes",
            isolation="none",
        )
    ]


@hookimpl
def evalcore_harnesses() -> list[HarnessInfo]:
    """The reference loop, any other agent, and the two controls."""
    return [
        HarnessInfo(
            "react",
            "a plain tool-calling loop, in process: the reference agent",
            "evalcore.builtin.react:ReactHarness",
            axes=("max_turns", "tool_protocol"),
            relists="per_turn",
        ),
        HarnessInfo(
            "command",
            "any agent that a file describes, as a process of its own: `--set agent=AGENT.toml`",
            "evalcore.builtin.command:CommandHarness",
            dialects=("openai-chat", "openai-responses", "anthropic-messages"),
            axes=("agent",),
            wires="http",
            relists="per_turn",  # it is run anew in every turn
        ),
        HarnessInfo(
            "oracle",
            "control: plays the task's gold through the real tools; shows the ceiling",
            "evalcore.builtin.controls:OracleHarness",
            uses_model=False,
            control=True,
            relists="per_turn",
        ),
        HarnessInfo(
            "noop",
            "control: completes without a call or an answer; shows the floor",
            "evalcore.builtin.controls:NoopHarness",
            uses_model=False,
            control=True,
            relists="per_turn",
        ),
    ]


@hookimpl
def evalcore_models() -> list[ModelInfo]:
    """The scripted provider, and those behind HTTP."""
    return [
        ModelInfo(
            "scripted",
            "answers from a playbook file: `scripted/PATH` (TOML or JSONL), offline and without a key",
            "evalcore.builtin.scripted:ScriptedProvider",
            free=True,
        ),
        _chat("openai", "OpenAI", "models of OpenAI", "OPENAI_API_KEY"),
        ModelInfo(
            "azure",
            "OpenAI's models in an Azure resource of your own, at `base_url`: `azure/DEPLOYMENT`",
            "evalcore.builtin.openai_compatible:AzureProvider",
            keys=("AZURE_OPENAI_API_KEY",),
            axes=("base_url", "api_version"),
        ),
        ModelInfo(
            "anthropic",
            "models of Anthropic",
            "evalcore.builtin.anthropic:AnthropicProvider",
            keys=("ANTHROPIC_API_KEY",),
            axes=("base_url",),
        ),
        _chat("openrouter", "OpenRouter", "models behind OpenRouter: `openrouter/VENDOR/NAME`", "OPENROUTER_API_KEY"),
        _chat(
            "google",
            "Google",
            "Gemini models, by Google's OpenAI-compatible endpoint",
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
        ),
        _chat(
            "openai-compatible",
            "OpenAICompatible",
            "any server that speaks Chat Completions (vLLM, Ollama, …), at `base_url`; a local one needs no key",
            "OPENAI_COMPATIBLE_API_KEY",
        ),
    ]


def _chat(name: str, kind: str, summary: str, *keys: str) -> ModelInfo:
    factory = f"evalcore.builtin.openai_compatible:{kind}Provider"
    return ModelInfo(name, summary, factory, keys=keys, axes=("base_url",))


@hookimpl
def evalcore_axes() -> list[AxisInfo]:
    """The knobs that every study has."""
    return [
        AxisInfo("harness", "the agent under test", "engine", boundary=True),
        AxisInfo("model", "provider/model of the agent", "engine", boundary=True),
        AxisInfo("user_model", "provider/model of the simulated user; else upstream's own", "engine", boundary=True),
        AxisInfo("judge_model", "provider/model of the judge; else upstream's own", "engine", boundary=True),
        AxisInfo(
            "sandbox",
            "where a task's files and commands live; tasks that have any are refused without",
            "engine",
            values=("none",),
            boundary=True,
        ),
        AxisInfo(
            "mcp_servers",
            "MCP servers that every trial gets, a file like .mcp.json",
            "transform",
            "file",
            boundary=True,
        ),
        AxisInfo(
            "instructions",
            "a skill or prompt that the agent is given before the task, a text file",
            "transform",
            "file",
            boundary=True,
        ),
        AxisInfo("agent", "the file that describes the agent", "harness", "file", boundary=True, of="command"),
        AxisInfo(
            "max_turns", "model calls after which react stops", "harness", "integer", default=50, of="react", low=1
        ),
        AxisInfo(
            "tool_protocol",
            "how react asks for calls: the provider's own tool calling, plain text, or JSON held to a schema",
            "harness",
            default="native",
            values=("native", "text", "constrained"),
            of="react",
        ),
        AxisInfo("base_url", "address of the model's server, up to and with /v1", "provider", boundary=True),
        AxisInfo("api_version", "dated version of Azure's API; without, the one that has none", "provider", of="azure"),
        AxisInfo(
            "model_aliases",
            "model names that an agent may ask for, with commas between; left out, any name is the arm's model",
            "gateway",
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


@hookimpl
def evalcore_transforms() -> list[TransformInfo]:
    """What a study adds to every task."""
    return [
        TransformInfo(
            "mcp-servers",
            "adds the servers of the axis `mcp_servers`",
            "evalcore.builtin.mcp.axes:McpServers",
            axis="mcp_servers",
        ),
        TransformInfo(
            "instructions",
            "puts the text of the axis `instructions` before the task",
            "evalcore.builtin.instructions:Instructions",
            axis="instructions",
        ),
    ]


@hookimpl
def evalcore_renderers() -> list[RendererInfo]:
    """The forms of a report that need no more than the core: `evalcore report RUN --format NAME`."""
    return [
        RendererInfo(
            "markdown",
            "the whole report as a page of Markdown",
            "evalcore.builtin.renderers:MarkdownPage",
        ),
        RendererInfo(
            "csv",
            "every number of the report, a row for each cell and metric",
            "evalcore.builtin.renderers:CsvTable",
        ),
        RendererInfo(
            "junit",
            "every task's outcome as JUnit XML, a suite for each cell",
            "evalcore.builtin.renderers:JUnitXml",
        ),
        RendererInfo(
            "github",
            "a short report with folded details, for the page of a GitHub Actions job",
            "evalcore.builtin.renderers:GitHubSummary",
        ),
    ]
