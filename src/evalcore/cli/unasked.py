"""The model that runs beside the controls where nothing else is configured, because it is here and costs nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from attrs import frozen

from evalcore.cli import keys
from evalcore.engine.selectors import expand, find_benchmark
from evalcore.errors import ConfigError, ToolkitError
from evalcore.values.descriptors import ModelInfo, ToolkitInfo

if TYPE_CHECKING:
    from evalcore.plugins import Registry

VARIABLE: Final = "EVALCORE_BOX"  # 0: leave it out


@frozen
class Unasked:
    """Such models: `ready` is the one that runs, `absent` one that would if it were set up."""

    ready: ModelInfo | None = None
    absent: ModelInfo | None = None


def unasked(registry: Registry, environ: Mapping[str, str], selectors: Sequence[str]) -> Unasked:
    """What runs for these benchmarks: nothing where a key is set, or where one needs more context, or does not say."""
    models = [info for info in registry.all(ModelInfo).values() if info.unasked]
    if not models or environ.get(VARIABLE) == "0" or keys.seen(registry.all(ModelInfo).values(), environ):
        return Unasked()
    need = _need(registry, selectors)
    fitting = [info for info in models if need is not None and info.context_tokens and info.context_tokens >= need]
    ready = [info for info in fitting if asyncio.run(_is_set_up(registry, info.toolkits))]
    return Unasked(ready[0] if ready else None, fitting[0] if fitting and not ready else None)


def _need(registry: Registry, selectors: Sequence[str]) -> int | None:
    """The context that all of them need at least, in tokens; None where one does not say, or is not there."""
    try:
        needs = [find_benchmark(registry, text)[0].context_tokens for text in expand(registry, selectors)]
    except ConfigError:
        return None  # told when the study is made
    return max((n for n in needs if n is not None), default=None) if None not in needs else None


async def _is_set_up(registry: Registry, toolkits: Iterable[str]) -> bool:
    from evalcore.toolkits.environment import ensure  # only where there is such a model

    known = registry.all(ToolkitInfo)
    try:
        for name in toolkits:
            await ensure(known[name].spec, install=False)
    except (ToolkitError, ConfigError, KeyError):
        return False
    return True
