"""What this plugin provides."""

from __future__ import annotations

from evalcore.hookspecs import ModelInfo, Requirement, ToolkitInfo, ToolkitSpec, hookimpl
from evalcore_local.requirements import FILES, IMPORTS, PYTHON, REQUIREMENTS

MODEL = "smollm2-135m"
NOTE = "a demonstration model of 135 million parameters, run on this machine: it shows the method, and is no reference"


@hookimpl
def evalcore_models() -> list[ModelInfo]:
    """One small model."""
    return [
        ModelInfo(
            "local",
            f"`local/{MODEL}`: a demonstration model of 135 million parameters, on this machine, without a key",
            "evalcore_local.provider:LocalProvider",
            toolkits=(MODEL,),
            free=True,
            note=NOTE,
            unasked=f"local/{MODEL}",
            unasked_axes={"tool_protocol": "constrained", "temperature": 0.0, "max_turns": 1},
            context_tokens=8_192,
        )
    ]


@hookimpl
def evalcore_toolkits() -> list[ToolkitInfo]:
    """llama.cpp and the weights, in an environment of their own."""
    spec = ToolkitSpec(
        name=MODEL,
        requirements=tuple(Requirement(name, version, hashes) for name, version, hashes in REQUIREMENTS),
        python=PYTHON,
        worker="evalcore_local.worker",
        files=FILES,
        imports=IMPORTS,
    )
    return [ToolkitInfo(MODEL, "SmolLM2-135M-Instruct and llama.cpp (xllamacpp), 127 MB: a demonstration model", spec)]
