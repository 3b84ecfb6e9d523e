"""Upstream's tasks that are wrong or disputed. Their verdicts stand; the trials carry the reason as a flag."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_MISSING: Final = "the gold looks up a product that the shop does not have (#89)"

KNOWN_BAD: Final[Mapping[tuple[str, str], str]] = {
    ("retail", "2"): _MISSING,
    ("retail", "3"): _MISSING,
    ("retail", "4"): _MISSING,
    ("retail", "10"): "the gold leaves out returns that the user asks for: an agent that makes them fails (#316)",
    ("retail", "50"): "the transfer that the task is about is not checked (#320)",
    ("retail", "64"): "the gold's own exchange is refused by the environment, so that the wanted state is without it",
    ("airline", "6"): "the wanted outcome is disputed (#494)",
    ("airline", "7"): "the wanted total is disputed (#495)",
    ("airline", "9"): "the gold changes a flight that was flown already (#156)",
    ("airline", "35"): "the simulated user tends to invent a passenger (#172)",
    ("banking_knowledge", "task_026"): "what its tools return depends on the clock, so that a replay may differ (#387)",
    ("banking_knowledge", "task_028"): "what its tools return depends on the clock, so that a replay may differ (#387)",
}
"""By domain and task; numbers are issues of sierra-research/tau2-bench."""


def flags_of(domain: str, task: str) -> tuple[str, ...]:
    """The flags of a task: none, or the defect."""
    why = KNOWN_BAD.get((domain, task))
    return () if why is None else (f"upstream: {why}",)
