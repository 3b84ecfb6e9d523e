"""What a plugin can provide. This page is the reference; `docs/plugins.md` has a worked example of each hook.

A distribution declares one entry point in the group `evalcore`; its value is a thin module that imports nothing but
this one. Each function in it that is marked `@hookimpl` returns *descriptors*: a name, a line of summary, and the
factory as `"package.module:attr"`. Nothing heavy is imported before it is used.

    from evalcore.hookspecs import AdapterInfo, hookimpl

    @hookimpl
    def evalcore_adapters() -> list[AdapterInfo]:
        return [AdapterInfo("zoo-feeding", "which animal eats what", "evalcore_zoo.adapter:ZooAdapter")]

A factory is called as `factory(services, info)`, an adapter's as `factory(services, info, selector)`, and returns the
part whose Protocol stands in `evalcore.contracts`. Hooks are only ever added, and only ever gain arguments; a plugin
that knows a newer hook than the core it meets marks it `@hookimpl(optionalhook=True)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import pluggy

from evalcore.values.descriptors import (
    AdapterInfo,
    AxisInfo,
    BridgeInfo,
    CommandInfo,
    ExecutorInfo,
    GraderInfo,
    GroupInfo,
    HarnessInfo,
    ImporterInfo,
    MetricInfo,
    ModelInfo,
    RendererInfo,
    SandboxInfo,
    ToolkitInfo,
    TransformInfo,
)
from evalcore.values.toolkit import Requirement, ToolkitSpec

if TYPE_CHECKING:
    from pathlib import Path

    from evalcore.values.trial import Attempt, Grading

__all__ = [
    "API_VERSION",
    "GROUP",
    "AdapterInfo",
    "AxisInfo",
    "BridgeInfo",
    "CommandInfo",
    "ExecutorInfo",
    "GraderInfo",
    "GroupInfo",
    "HarnessInfo",
    "ImporterInfo",
    "MetricInfo",
    "ModelInfo",
    "RendererInfo",
    "Requirement",
    "SandboxInfo",
    "ToolkitInfo",
    "ToolkitSpec",
    "TransformInfo",
    "hookimpl",
    "hookspec",
]

GROUP: Final = "evalcore"
API_VERSION: Final = 1  # recorded in every run

hookspec = pluggy.HookspecMarker("evalcore")
hookimpl = pluggy.HookimplMarker("evalcore")


@hookspec
def evalcore_adapters() -> Sequence[AdapterInfo | GroupInfo]:  # type: ignore[empty-body]
    """Benchmarks, one AdapterInfo per name, and named groups of them. Factory makes an `Adapter`."""


@hookspec
def evalcore_bridges() -> Sequence[BridgeInfo]:  # type: ignore[empty-body]
    """Environments that serve tools. Factory makes a `Bridge`."""


@hookspec
def evalcore_graders() -> Sequence[GraderInfo]:  # type: ignore[empty-body]
    """Graders. Factory makes a `Grader`."""


@hookspec
def evalcore_metrics() -> Sequence[MetricInfo]:  # type: ignore[empty-body]
    """Values per task; the core makes intervals and contrasts of them. Factory makes a `Metric`."""


@hookspec
def evalcore_harnesses() -> Sequence[HarnessInfo]:  # type: ignore[empty-body]
    """Agents under test. Factory makes a `Harness`."""


@hookspec
def evalcore_models() -> Sequence[ModelInfo]:  # type: ignore[empty-body]
    """Providers behind the gateway; the name is what stands before the slash. Factory makes a `Provider`."""


@hookspec
def evalcore_sandboxes() -> Sequence[SandboxInfo]:  # type: ignore[empty-body]
    """Isolated trees. Factory makes a `SandboxKind`."""


@hookspec
def evalcore_executors() -> Sequence[ExecutorInfo]:  # type: ignore[empty-body]
    """Where attempts run. Factory makes an `Executor`."""


@hookspec
def evalcore_axes() -> Sequence[AxisInfo]:  # type: ignore[empty-body]
    """Knobs: values, default, boundary or not, and the owner that applies them."""


@hookspec
def evalcore_transforms() -> Sequence[TransformInfo]:  # type: ignore[empty-body]
    """How a third party's knob takes effect. Factory makes a `Transform`."""


@hookspec
def evalcore_toolkits() -> Sequence[ToolkitInfo]:  # type: ignore[empty-body]
    """Upstream code in an environment of its own: pinned requirements with hashes, a Python range, a worker module."""


@hookspec
def evalcore_commands() -> Sequence[CommandInfo]:  # type: ignore[empty-body]
    """CLI verbs. The factory itself is a click command."""


@hookspec
def evalcore_renderers() -> Sequence[RendererInfo]:  # type: ignore[empty-body]
    """Views of a report or run in some format. Factory makes a `Renderer`."""


@hookspec
def evalcore_importers() -> Sequence[ImporterInfo]:  # type: ignore[empty-body]
    """Readers of somebody else's result files. Factory makes an `Importer`."""


@hookspec
def evalcore_trial_finished(attempt: Attempt, grading: Grading | None) -> None:
    """An attempt is durable, and graded if it could be. Observers only watch: an error in one is logged."""


@hookspec
def evalcore_run_finished(run: Path) -> None:
    """A run has ended, whole or stopped; its directory is complete."""
