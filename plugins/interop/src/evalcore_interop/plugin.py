"""What this plugin provides."""

from __future__ import annotations

from evalcore.hookspecs import ImporterInfo, RendererInfo, hookimpl


@hookimpl
def evalcore_renderers() -> list[RendererInfo]:
    """A run in other tools' formats."""
    return [
        RendererInfo(
            "inspect",
            "an Inspect log (.eval) for each benchmark and configuration: `inspect view` opens them",
            "evalcore_interop.inspect_export:InspectLogs",
        ),
        RendererInfo(
            "atif",
            "an ATIF trajectory (JSON) for each trial, as Harbor and others read them",
            "evalcore_interop.atif:Trajectories",
        ),
        RendererInfo(
            "otel",
            "OpenTelemetry spans by the GenAI conventions, as OTLP JSON lines that a collector reads",
            "evalcore_interop.otel:Spans",
        ),
        RendererInfo(
            "parquet",
            "every attempt as a row of a Parquet file (needs pandas with pyarrow, or polars)",
            "evalcore_interop.parquet:Table",
        ),
    ]


@hookimpl
def evalcore_importers() -> list[ImporterInfo]:
    """Old results, to be compared."""
    return [
        ImporterInfo("inspect", "an Inspect log: a .eval or .json file", "evalcore_interop.inspect_import:InspectLog"),
        ImporterInfo(
            "harness-lab",
            "harness-lab's results.jsonl, or the folder that it lies in",
            "evalcore_interop.harness_lab:HarnessLab",
        ),
    ]
