"""What this plugin provides."""

from __future__ import annotations

from typing import Literal, NamedTuple

from evalcore.hookspecs import (
    AdapterInfo,
    BridgeInfo,
    GraderInfo,
    ImporterInfo,
    RendererInfo,
    Requirement,
    ToolkitInfo,
    ToolkitSpec,
    hookimpl,
)
from evalcore_tau2.requirements import ADDRESSES, FILES, IMPORTS, PYTHON, REQUIREMENTS

MODEL = "openai/gpt-4.1-2025-04-14"
"""What upstream's code takes for the simulated user, and for its judge, unless it is told otherwise."""


class Benchmark(NamedTuple):
    """One benchmark: a domain of upstream's, and how its agent works. `floor` is what doing nothing solves."""

    summary: str
    domain: str
    splits: tuple[str, ...]
    floor: str
    context_tokens: int
    judged: bool = False
    solo: bool = False
    retrieval: tuple[str, ...] = ()


BENCHMARKS = {
    "tau2-retail": Benchmark(
        "orders of a shop, changed and cancelled for a simulated user (114 tasks)",
        "retail",
        ("base", "train", "test"),
        "an agent that does nothing solves 6 of the 114 tasks, 11 if the judge agrees to everything",
        32_000,
        judged=True,
    ),
    "tau2-airline": Benchmark(
        "flights, booked, changed and cancelled for a simulated user (50 tasks)",
        "airline",
        ("base", "train", "test"),
        "an agent that does nothing solves 23 of the 50 tasks",
        32_000,
    ),
    "tau2-telecom": Benchmark(
        "a phone that does not work: the agent and the simulated user both have tools (114 tasks; @full 2285)",
        "telecom",
        ("base", "train", "test", "small", "full"),
        "an agent that does nothing solves none of the 114 tasks",
        64_000,
    ),
    "tau2-telecom-solo": Benchmark(
        "the same phone with both sets of tools in the agent's hands, from a ticket, without a user (114 tasks)",
        "telecom",
        ("base", "train", "test", "small", "full"),
        "an agent that does nothing solves none of the 114 tasks",
        64_000,
        solo=True,
    ),
    "tau2-banking": Benchmark(
        "accounts and cards of a bank, from a knowledge base that the agent searches (97 tasks)",
        "banking_knowledge",
        (),
        "an agent that does nothing solves none of the 97 tasks",
        16_000,
        judged=True,
        retrieval=("no_knowledge", "full_kb", "golden_retrieval", "grep_only", "bm25", "bm25_grep"),
    ),
    "tau2-mock": Benchmark(
        "upstream's small example of a domain, for trying things out (10 tasks)",
        "mock",
        ("base",),
        "upstream's example, whose tasks test code: an agent that does nothing solves 1 of the 10",
        8_000,
    ),
}


@hookimpl
def evalcore_adapters() -> list[AdapterInfo]:
    """One benchmark per domain, and telecom without a user."""
    return [
        AdapterInfo(
            name,
            f"τ²-bench: {benchmark.summary}",
            "evalcore_tau2.adapter:Tau2Adapter",
            parameters={"domain": benchmark.domain, "solo": benchmark.solo, "retrieval": list(benchmark.retrieval)},
            takes_parameter="how the agent gets at the knowledge base" if benchmark.retrieval else "",
            splits=benchmark.splits,
            toolkits=("tau2",),
            context_tokens=benchmark.context_tokens,
            floor_note=benchmark.floor,
            measured_floor=True,
            roles=_roles(benchmark),
        )
        for name, benchmark in BENCHMARKS.items()
    ]


def _roles(benchmark: Benchmark) -> dict[Literal["agent", "user", "judge"], str]:
    roles: dict[Literal["agent", "user", "judge"], str] = {} if benchmark.solo else {"user": MODEL}
    return {**roles, "judge": MODEL} if benchmark.judged else roles


@hookimpl
def evalcore_bridges() -> list[BridgeInfo]:
    """A simulation."""
    return [BridgeInfo("tau2", "a τ²-bench environment and its user", "evalcore_tau2.bridge:Tau2Bridge")]


@hookimpl
def evalcore_graders() -> list[GraderInfo]:
    """Upstream's evaluator."""
    summary = "τ²-bench's own evaluator: final state, assertions, what was said, a judge's opinion"
    return [GraderInfo("tau2", summary, "evalcore_tau2.grader:Tau2Grader", toolkits=("tau2",))]


@hookimpl
def evalcore_renderers() -> list[RendererInfo]:
    """Back to upstream."""
    summary = "τ²-bench's own results files, one per arm and domain, for `tau2 view` and `tau2 evaluate-trajs`"
    return [RendererInfo("tau2-results", summary, "evalcore_tau2.export:Tau2Results")]


@hookimpl
def evalcore_importers() -> list[ImporterInfo]:
    """And from there."""
    summary = "τ²-bench's results: its results.json, or the folder that it lies in"
    return [ImporterInfo("tau2-results", summary, "evalcore_tau2.results:Tau2Files")]


@hookimpl
def evalcore_toolkits() -> list[ToolkitInfo]:
    """τ²-bench in an environment of its own."""
    spec = ToolkitSpec(
        name="tau2",
        requirements=tuple(Requirement(name, version, hashes) for name, version, hashes in REQUIREMENTS),
        python=PYTHON,
        worker="evalcore_tau2.worker.serve",
        files=FILES,
        imports=IMPORTS,
        addresses=ADDRESSES,
        passes=("TAU2_DATA_DIR",),
    )
    return [ToolkitInfo("tau2", "τ²-bench's environments, user simulator and evaluator (26 MB; packages 84 MB)", spec)]
