"""What a reader must know beside the numbers: about the run, about a benchmark, about one cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from evalcore.report.model import Exclusion, Note, RoleUsage
from evalcore.report.words import percent, plural
from evalcore.values.floor import Floor
from evalcore.values.stamp import ArmStamp, BenchmarkStamp, RunStamp
from evalcore.values.task import LIMIT_NAMES, Role

CONTROLS: Final = (
    "oracle and noop are controls: the oracle plays each task's known solution, noop does nothing. They show that the "
    "rig is sound, from the first wire to the grader; they are no score of any agent."
)
NO_AGENT: Final = "Only controls ran: no agent was measured. Name a model with --model PROVIDER/NAME to measure one."
NO_ISOLATION: Final = (
    "isolation none: no sandbox stood between the agents' processes and the files of this user, solutions included."
)
CONTROL: Final = "a control: it shows that the rig is sound, and is no score"


def of_run(stamp: RunStamp, isolations: set[str], floors: Mapping[str, Floor]) -> list[Note]:
    """Notes about the whole run, then about each of its benchmarks."""
    notes = []
    if any(arm.control for arm in stamp.arms):
        notes.append(Note(CONTROLS))
        if all(arm.control for arm in stamp.arms):
            notes.append(Note(NO_AGENT))
    if "none" in isolations:
        notes.append(Note(NO_ISOLATION))
    for benchmark in stamp.benchmarks:
        notes += [Note(text, benchmark.selector) for text in _of_benchmark(benchmark, floors.get(benchmark.selector))]
    return notes


def _of_benchmark(benchmark: BenchmarkStamp, floor: Floor | None) -> list[str]:
    texts = [benchmark.floor_note] if benchmark.floor_note else []
    if floor is not None:
        texts = [*texts, f"the floor could not be measured: {floor.why}"] if floor.why else [_of_floor(floor)]
    if benchmark.oracle_note:
        texts.append(f"the oracle is not applicable: {benchmark.oracle_note}")
    dataset = benchmark.dataset
    if dataset.status != "current":
        texts.append(f"dataset {dataset.name} {dataset.version} is {dataset.status}" + _after(dataset.status_note))
    if not benchmark.standard_limits:
        bounds = benchmark.limits.as_json()
        given = ", ".join(f"{name} {bounds[name]:,.10g}" for name in LIMIT_NAMES if bounds[name] is not None)
        texts.append(f"limits are stricter than the benchmark's own ({given}): not comparable with published results")
    return texts


def _of_floor(floor: Floor) -> str:
    text = (
        f"an agent that does nothing solves {percent(floor.solved / floor.tasks)} ({floor.solved:,} of {floor.tasks:,})"
    )
    if floor.ungraded:
        text += f", and {floor.ungraded:,} more are for a judge to say, who was not asked"
    if floor.lost:
        text += f"; {plural(floor.lost, 'trial')} of it failed for want of infrastructure or of a verdict"
    return text


def _after(text: str) -> str:
    return f": {text}" if text else ""


def of_cell(
    arm: ArmStamp,
    *,
    provenance: str | None,
    isolation: str,
    split: bool,
    excluded: Mapping[Exclusion, int],
    voids: int,
    unseen: int,
    not_yet_graded: int,
    why: str,
    grader_why: str,
    repeated: int,
    executed: int,
    usage: Mapping[Role, RoleUsage],
) -> tuple[str, ...]:
    """Notes about one cell: `unseen` trials were planned and have no attempt; `repeated` attempts followed a result;
    `usage` is of the `executed` ones; `why` most trials that were lost to infrastructure were, and
    `grader_why` most that a grader failed on.
    """
    texts = [CONTROL] if arm.control else [arm.model_note] if arm.model_note else []
    if split:
        texts.append(
            f"attempts of this configuration differ in provenance or isolation: these are {provenance}, isolation "
            f"{isolation}, and are not pooled with the others"
        )
    if provenance not in ("live", None):
        texts.append(f"provenance {provenance}: not from live trials")
    if unseen:
        texts.append(f"partial: {plural(unseen, 'planned trial')} not run")
    texts += _of_exclusions(excluded, not_yet_graded, grader_why)
    if voids:
        texts.append(_of_voids(voids, excluded["infra_error"], why))
    if repeated:
        texts.append(f"{plural(repeated, 'attempt')} left out: the trial already had a result")
    silent = executed - usage["agent"].trials
    if arm.uses_model and silent and provenance != "imported":  # a file may not tell calls
        texts.append(f"no answer of the model's in {silent:,} of {plural(executed, 'trial')}: they say little about it")
    for role, used in usage.items():
        if used.usage.unreported:
            calls = plural(used.usage.unreported, "model call")
            texts.append(f"{calls} without reported usage (role {role}): tokens are lower bounds")
    return tuple(texts)


def _of_voids(voids: int, lost: int, why: str) -> str:
    """Void attempts, and the trials that were left without a result by them: two counts, each with its name."""
    tried = f"{plural(voids, 'void attempt')} (infrastructure failed, not the agent)"
    if not lost:
        return f"{tried}: each was tried again"
    said = f"{tried}: {plural(lost, 'trial')} ended without a result, and {'is' if lost == 1 else 'are'} not counted"
    return f"{said}; most often: {why}" if why else said


def _of_exclusions(excluded: Mapping[Exclusion, int], not_yet_graded: int, grader_why: str) -> list[str]:
    texts = []
    if broken := excluded["grader_error"]:
        said = f"{plural(broken, 'trial')} not counted: the grader failed; `evalcore regrade` tries again"
        texts.append(f"{said}; most often: {grader_why}" if grader_why else said)
    if not_yet_graded:
        texts.append(f"{plural(not_yet_graded, 'trial')} not counted yet: run but not graded; `evalcore resume` grades")
    if undecided := excluded["ungraded"] - not_yet_graded:
        texts.append(f"{plural(undecided, 'trial')} not counted: ungraded, for want of a judge or a reference")
    return texts
