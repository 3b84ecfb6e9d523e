"""What this plugin provides."""

from __future__ import annotations

from collections.abc import Mapping

from evalcore.hookspecs import (
    AdapterInfo,
    BridgeInfo,
    GraderInfo,
    GroupInfo,
    RendererInfo,
    Requirement,
    ToolkitInfo,
    ToolkitSpec,
    hookimpl,
)
from evalcore_bfcl.requirements import AGENTIC as AGENTIC_PINS
from evalcore_bfcl.requirements import AGENTIC_IMPORTS, FILES, IMPORTS, PYTHON, REQUIREMENTS, Pins

NO_CALL_FLOOR = "every task here is passed by calling nothing: the floor is 100 %, and oracle and noop behave alike"

CATEGORIES = {
    "simple_python": "one call of one function, Python (400 tasks)",
    "simple_java": "one call of one function, arguments as Java literals (100 tasks)",
    "simple_javascript": "one call of one function, arguments as JavaScript literals (50 tasks)",
    "multiple": "one call, the right one of several functions (200 tasks)",
    "parallel": "several calls of one function (200 tasks)",
    "parallel_multiple": "several calls, the right ones of several functions (200 tasks)",
    "irrelevance": "no function fits: call nothing (240 tasks)",
    "live_simple": "one call of one function, from users (258 tasks)",
    "live_multiple": "one call, the right one of several functions, from users (1053 tasks)",
    "live_parallel": "several calls of one function, from users (16 tasks)",
    "live_parallel_multiple": "several calls, the right ones of several functions, from users (24 tasks)",
    "live_irrelevance": "no function fits: call nothing, from users (884 tasks)",
    "live_relevance": "some function fits: call any (16 tasks)",
}

MULTI_TURN = {
    "multi_turn_base": "several turns with stateful tools (200 tasks)",
    "multi_turn_miss_func": "the same, where a function is missing at first (200 tasks)",
    "multi_turn_miss_param": "the same, where the user leaves a value out at first (200 tasks)",
    "multi_turn_long_context": "the same, among far more files, orders and flights (200 tasks)",
}

MEMORY = {
    "memory_kv": "questions about 37 earlier sessions, remembered by key (155 tasks)",
    "memory_rec_sum": "questions about 37 earlier sessions, remembered as one text (155 tasks)",
    "memory_vector": "questions about 37 earlier sessions, remembered by meaning (155 tasks)",
}

WEB_SEARCH = {
    "web_search_base": "questions that take several searches of the live web (100 tasks)",
    "web_search_no_snippet": "the same, where a search shows titles and addresses only (100 tasks)",
}

AGENTIC_CATEGORIES = {**MEMORY, **WEB_SEARCH}
DIALOGUES = {**MULTI_TURN, **AGENTIC_CATEGORIES}

# Upstream's weights. Simple is the mean of three languages and counts as one of four; live counts tasks.
SIMPLE = dict.fromkeys(("simple_python", "simple_java", "simple_javascript"), 1 / 12)
NON_LIVE = {**SIMPLE, **dict.fromkeys(("multiple", "parallel", "parallel_multiple"), 1 / 4)}
LIVE = {"live_simple": 258, "live_multiple": 1053, "live_parallel": 16, "live_parallel_multiple": 24}
NO_CALL = {"irrelevance": 1 / 2, "live_irrelevance": 1 / 2}
SEVERAL_TURNS = dict.fromkeys(MULTI_TURN, 1 / 4)
AGENTIC = {**dict.fromkeys(WEB_SEARCH, 1 / 4), **dict.fromkeys(MEMORY, 1 / 6)}
PARTS = ((0.1, NON_LIVE), (0.1, LIVE), (0.1, NO_CALL), (0.3, SEVERAL_TURNS), (0.4, AGENTIC))
OVERALL = {category: share * weight / sum(part.values()) for share, part in PARTS for category, weight in part.items()}


def toolkit_of(category: str) -> str:
    """Which toolkit holds what a category's calls and verdicts need."""
    return "bfcl-agentic" if category in AGENTIC_CATEGORIES else "bfcl"


def grader_of(category: str) -> str:
    """What grades a category of several turns."""
    return "bfcl-agentic" if category in AGENTIC_CATEGORIES else "bfcl-multi-turn"


def benchmark_name(category: str) -> str:
    """What a user calls an upstream category."""
    return f"bfcl-{category.replace('_', '-')}"


@hookimpl
def evalcore_adapters() -> list[AdapterInfo | GroupInfo]:
    """One benchmark per category, and upstream's groups of them."""
    return [
        _group("bfcl-v4", "BFCL v4 overall, with upstream's weights; not called so while a member is missing", OVERALL),
        _group("bfcl-non-live", "BFCL v4 non-live single-turn, with upstream's weights", NON_LIVE),
        _group("bfcl-live", "BFCL v4 live single-turn, weighted by tasks as upstream does", LIVE),
        _group("bfcl-multi-turn", "BFCL v4 multi-turn, the mean of its four categories", SEVERAL_TURNS),
        _group("bfcl-agentic", "BFCL v4 memory and web search, half each", AGENTIC),
        *_benchmarks(),
    ]


def _group(name: str, summary: str, weights: Mapping[str, float]) -> GroupInfo:
    return GroupInfo(name, summary, {benchmark_name(category): weight for category, weight in weights.items()})


def _benchmarks() -> list[AdapterInfo]:
    return [
        AdapterInfo(
            benchmark_name(category),
            f"BFCL v4: {summary}",
            "evalcore_bfcl.adapter:BfclAdapter",
            parameters={"category": category},
            toolkits=("bfcl",),
            context_tokens=8_000,
            floor_note=NO_CALL_FLOOR if "irrelevance" in category else "",
        )
        for category, summary in CATEGORIES.items()
    ] + [
        AdapterInfo(
            benchmark_name(category),
            f"BFCL v4: {summary}",
            "evalcore_bfcl.dialogue:DialogueAdapter",
            parameters={
                "category": category,
                "grader": "bfcl-agentic" if category in AGENTIC_CATEGORIES else "bfcl-multi-turn",
            },
            toolkits=(toolkit_of(category),),
            context_tokens=32_000,
            tools_change=category == "multi_turn_miss_func",
        )
        for category, summary in DIALOGUES.items()
    ]


@hookimpl
def evalcore_graders() -> list[GraderInfo]:
    """The leaderboard's own runners."""
    single = "BFCL's own single-turn runner, on the calls of the first model response"
    several = "BFCL's own multi-turn runner, which executes the calls again and compares states and results"
    last = "BFCL's own agentic runner, on the last words"
    factory = "evalcore_bfcl.dialogue_grader:DialogueGrader"
    return [
        GraderInfo("bfcl-single-turn", single, "evalcore_bfcl.grader:BfclGrader", toolkits=("bfcl",)),
        GraderInfo("bfcl-multi-turn", several, factory, toolkits=("bfcl",)),
        GraderInfo("bfcl-agentic", last, factory, toolkits=("bfcl-agentic",)),
    ]


@hookimpl
def evalcore_bridges() -> list[BridgeInfo]:
    """Upstream's stateful classes."""
    summary = "BFCL's stateful classes, and the turns in which a user speaks"
    return [BridgeInfo("bfcl-stateful", summary, "evalcore_bfcl.bridge:StatefulBridge")]


@hookimpl
def evalcore_renderers() -> list[RendererInfo]:
    """Back to the leaderboard."""
    summary = "BFCL's own result files, one model folder per arm, for `bfcl evaluate`"
    return [RendererInfo("bfcl-results", summary, "evalcore_bfcl.export:BfclResults")]


@hookimpl
def evalcore_toolkits() -> list[ToolkitInfo]:
    """bfcl-eval in environments of its own: one for most, one with what memory and web search compute with."""
    return [
        ToolkitInfo("bfcl", "BFCL's data and checkers (bfcl-eval, 3 MB)", _toolkit("bfcl", REQUIREMENTS, IMPORTS)),
        ToolkitInfo(
            "bfcl-agentic",
            "the same for BFCL's memory and web-search tasks (with numpy, 20 MB)",
            _toolkit("bfcl-agentic", AGENTIC_PINS, AGENTIC_IMPORTS),
        ),
    ]


def _toolkit(name: str, pins: Pins, imports: tuple[str, ...]) -> ToolkitSpec:
    return ToolkitSpec(
        name=name,
        requirements=tuple(Requirement(*pin) for pin in pins),
        python=PYTHON,
        worker="evalcore_bfcl.worker",
        files=FILES,
        imports=imports,
    )
