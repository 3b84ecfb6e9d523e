"""evalcore measures agents: a score belongs to a model × harness × packaging, on one dataset, over repeated trials."""

from __future__ import annotations

from evalcore.hookspecs import API_VERSION, hookimpl, hookspec

__all__ = ["API_VERSION", "__version__", "hookimpl", "hookspec"]

__version__ = "0.1.0"
