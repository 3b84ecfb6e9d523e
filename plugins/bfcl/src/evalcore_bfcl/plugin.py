"""What this plugin provides."""

from __future__ import annotations

from evalcore_bfcl.requirements import FILES, IMPORTS, PYTHON, REQUIREMENTS

from evalcore.hookspecs import AdapterInfo, GraderInfo, GroupInfo, Requirement, ToolkitInfo, ToolkitSpec, hookimpl

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

# Upstream's weights. Simple is the mean of three languages and counts as one of four; live counts tasks.
NON_LIVE = {
    "bfcl-simple-python": 1 / 12,
    "bfcl-simple-java": 1 / 12,
    "bfcl-simple-javascript": 1 / 12,
    "bfcl-multiple": 1 / 4,
    "bfcl-parallel": 1 / 4,
    "bfcl-parallel-multiple": 1 / 4,
}
LIVE = {"bfcl-live-simple": 258, "bfcl-live-multiple": 1053, "bfcl-live-parallel": 16, "bfcl-live-parallel-multiple": 24}


@hookimpl
def evalcore_adapters() -> list[AdapterInfo | GroupInfo]:
    """One benchmark per category, and upstream's two groups of them."""
    groups = [
        GroupInfo("bfcl-non-live", "BFCL v4 non-live single-turn, with upstream's weights", NON_LIVE),
        GroupInfo("bfcl-live", "BFCL v4 live single-turn, weighted by tasks as upstream does", LIVE),
    ]
    return [*groups, *_benchmarks()]


def _benchmarks() -> list[AdapterInfo]:
    return [
        AdapterInfo(
            f"bfcl-{category.replace('_', '-')}",
            f"BFCL v4: {summary}",
            "evalcore_bfcl.adapter:BfclAdapter",
            parameters={"category": category},
            toolkits=("bfcl",),
            context_tokens=8_000,
            floor_note=NO_CALL_FLOOR if "irrelevance" in category else "",
        )
        for category, summary in CATEGORIES.items()
    ]


@hookimpl
def evalcore_graders() -> list[GraderInfo]:
    """The leaderboard's own runner."""
    summary = "BFCL's own single-turn runner, on the calls of the first model response"
    return [GraderInfo("bfcl-single-turn", summary, "evalcore_bfcl.grader:BfclGrader", toolkits=("bfcl",))]


@hookimpl
def evalcore_toolkits() -> list[ToolkitInfo]:
    """bfcl-eval in an environment of its own."""
    spec = ToolkitSpec(
        name="bfcl",
        requirements=tuple(Requirement(name, version, hashes) for name, version, hashes in REQUIREMENTS),
        python=PYTHON,
        worker="evalcore_bfcl.worker",
        files=FILES,
        imports=IMPORTS,
    )
    return [ToolkitInfo("bfcl", "BFCL's data and checkers (bfcl-eval, 2 MB)", spec)]
