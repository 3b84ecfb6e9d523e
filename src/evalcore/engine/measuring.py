"""The metrics of plugins, made for a report or a comparison."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from evalcore.contracts import Metric
from evalcore.engine.services import LocalServices
from evalcore.plugins import Registry
from evalcore.values.descriptors import MetricInfo


def made_metrics(
    path: Path, registry: Registry, names: Collection[str] | None = None
) -> list[tuple[MetricInfo, Metric]]:
    """Every metric that a plugin provides, or those of these names."""
    services = LocalServices(registry, path)
    infos = [info for info in registry.all(MetricInfo).values() if names is None or info.name in names]
    return [(info, registry.factory(info)(services, info)) for info in infos]
