"""What this plugin provides."""

from __future__ import annotations

from evalcore_bfcl.requirements import FILES, IMPORTS, PYTHON, REQUIREMENTS

from evalcore.hookspecs import AdapterInfo, GraderInfo, Requirement, ToolkitInfo, ToolkitSpec, hookimpl

NO_CALL_FLOOR = "every task here is passed by calling nothing: the floor is 100 %, and oracle and noop behave alike"

CATEGORIES = {
    "simple_python": "one call of one function, Python (BFCL v4, 400 tasks)",
    "multiple": "one call, the right one of several functions (BFCL v4, 200 tasks)",
    "irrelevance": "no function fits: call nothing (BFCL v4, 240 tasks)",
}


@hookimpl
def evalcore_adapters() -> list[AdapterInfo]:
    """One benchmark per category."""
    return [
        AdapterInfo(
            f"bfcl-{category.replace('_', '-')}",
            summary,
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
