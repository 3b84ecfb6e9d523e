"""evalcore measures agents: a score belongs to a model × harness × packaging, on one dataset, over repeated trials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalcore.hookspecs import API_VERSION, hookimpl, hookspec
    from evalcore.report.frames import load

__all__ = ["API_VERSION", "__version__", "hookimpl", "hookspec", "load"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """The plugin interface and `load`, imported when first asked for: `evalcore --help` does without them."""
    if name not in __all__:
        raise AttributeError(f"module 'evalcore' has no attribute {name!r}")
    if name == "load":
        from evalcore.report.frames import load

        return load
    from evalcore import hookspecs

    return getattr(hookspecs, name)
