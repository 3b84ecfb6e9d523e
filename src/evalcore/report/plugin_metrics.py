"""The metrics of plugins that a comparison may be by."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from evalcore.engine.measuring import made_metrics
from evalcore.plugins import Registry
from evalcore.report.sides import Metrics
from evalcore.values.descriptors import MetricInfo
from evalcore.values.measure import measures_of


def plugin_metrics(registry: Registry, path: Path, names: Iterable[str]) -> Metrics:
    """All that are known, and made those of `names`: a metric that nobody asks for costs nothing."""
    known = measures_of(registry.all(MetricInfo).values())
    return Metrics(known, tuple(made_metrics(path, registry, {name for name in names if name in known})))
