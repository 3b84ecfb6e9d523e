"""The worker of the toolkit `bell` in `test_hooks`: the standard library, and what stands beside it."""

from __future__ import annotations


def handlers():
    return {"ring": lambda params: "ding" * params["times"]}
