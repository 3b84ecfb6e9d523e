"""What this plugin provides. It imports the hooks and nothing else: listing plugins must cost next to nothing."""

from __future__ import annotations

from evalcore.hookspecs import AdapterInfo, AxisInfo, BridgeInfo, GraderInfo, MetricInfo, hookimpl


@hookimpl
def evalcore_adapters() -> list[AdapterInfo]:
    """The benchmark `zoo-feeding`, and its two splits."""
    return [
        AdapterInfo(
            "zoo-feeding",
            "feed the animals of a small zoo; what counts is how it is left (10 tasks)",
            "evalcore_zoo.adapter:ZooAdapter",
            splits=("one", "several"),
            context_tokens=4_000,
        )
    ]


@hookimpl
def evalcore_bridges() -> list[BridgeInfo]:
    """The zoo itself."""
    return [BridgeInfo("zoo", "animals, and a store of food", "evalcore_zoo.bridge:ZooBridge")]


@hookimpl
def evalcore_graders() -> list[GraderInfo]:
    """Compares the zoo as it was left with what was asked for."""
    return [GraderInfo("zoo-state", "who was fed what, and what was ordered", "evalcore_zoo.grader:ZooGrader")]


@hookimpl
def evalcore_metrics() -> list[MetricInfo]:
    """How careful an agent is with food."""
    summary = "units of food that fed nobody, over all units given out"
    return [MetricInfo("zoo-waste", summary, "evalcore_zoo.metric:Waste", higher_is_better=False)]


@hookimpl
def evalcore_axes() -> list[AxisInfo]:
    """A knob of the adapter's own."""
    summary = "what the task tells of the animals: nothing, or what each eats"
    return [AxisInfo("zoo-notes", summary, "adapter", default="nothing", values=("nothing", "diets"))]
