"""A run as the leaderboard's own result files, for upstream's `bfcl evaluate` to read: one model folder per arm.

    out/result/<model>/<group>/BFCL_v4_<category>_result.json    a line per task: {"id", "result", token counts}
    out/evalcore.json                                            which run and arm that was, and what is not in it

A result is what was graded: the calls of the first model response, or its text; where there are several turns, the
steps of each. Token counts are those of the same responses. Some trials are not written as they were, since upstream
would count them otherwise or stop at them: those that have no result (left out: evaluate with `--partial-eval`), those
at which upstream's runner crashed or hung, and those of agents that crashed or met a limit where no call passes.
The latter two become a response that fails. Upstream evaluates the calls of several turns as Python: what this plugin
would not execute is not written either.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, cast

from attrs import Factory, define, frozen

from evalcore.contracts import Services
from evalcore.engine.store import TraceStore, read_attempts, read_gradings, read_stamp, write_durably
from evalcore.errors import ConfigError
from evalcore.hookspecs import RendererInfo
from evalcore.values.json import JSONObject, JSONValue, loads
from evalcore.values.stamp import RunStamp
from evalcore.values.trace import TraceReader, exit_kind
from evalcore.values.trial import RESULTS, Attempt, Grading
from evalcore.values.usage import Usage, usage_from_chat
from evalcore_bfcl.grader import called_nothing_but
from evalcore_bfcl.plugin import CATEGORIES, DIALOGUES, MEMORY, MULTI_TURN, WEB_SEARCH, benchmark_name
from evalcore_bfcl.stateful import executable
from evalcore_bfcl.worker import model_output

SCHEMA: Final = "evalcore.bfcl-results/1"
ABOUT: Final = "evalcore.json"
MALFUNCTIONS: Final = ("native_runner_", called_nothing_but(""))  # flags: how upstream's run would end or differ
UNDECIDED: Final = "evalcore: this trial fails, and its response is left out"
INFERENCE: Final = "Error during inference: "  # how upstream begins a result that is none
CATEGORY_OF: Final = {benchmark_name(category): category for category in (*CATEGORIES, *DIALOGUES)}


@frozen
class Exported:
    """One arm × category: its lines by task id, and how many of them stand in for a response."""

    lines: dict[str, bytes] = Factory(dict)
    replaced: list[str] = Factory(list)


@define
class _Model:
    """A model folder: its name, and what is in it by category."""

    folder: str
    categories: dict[str, Exported] = Factory(dict)


class BfclResults:
    """Renders runs; a `Renderer`."""

    def __init__(self, services: Services | None = None, info: RendererInfo | None = None) -> None:
        pass

    def render(self, run: Path, out: Path, repeat: int = 1) -> list[Path]:
        """Write one repeat of a run below `out`; returns the files. Raises ConfigError where there is none."""
        stamp = read_stamp(run)
        categories = {b.selector: CATEGORY_OF[b.selector] for b in stamp.benchmarks if b.selector in CATEGORY_OF}
        if not categories:
            raise ConfigError(f"run {stamp.run} has no BFCL benchmark", hint="`evalcore report` shows what it has")
        if not 1 <= repeat <= stamp.repeats:
            raise ConfigError(f"run {stamp.run} has no repeat {repeat}", hint=f"it has 1 to {stamp.repeats}")
        _refuse_another(out, stamp.run, repeat)
        models = _models(stamp)
        traces = TraceStore(run)
        try:
            for attempt, grading in _results(run, stamp.grading, repeat):
                if attempt.key.benchmark in categories:
                    category = categories[attempt.key.benchmark]
                    exported = models[attempt.key.arm].categories.setdefault(category, Exported())
                    _add(exported, category, attempt, grading, traces.read(attempt.trace))
        finally:
            traces.close()
        about = out / ABOUT
        out.mkdir(parents=True, exist_ok=True)
        write_durably(about, (json.dumps(_about(stamp, repeat, models, categories), indent=1) + "\n").encode())
        return [about, *_write(out, models)]


def _refuse_another(out: Path, run: str, repeat: int) -> None:
    """Files of two runs in one folder would be evaluated as one."""
    try:
        there = loads((out / ABOUT).read_bytes())
    except (OSError, ValueError):
        return
    if isinstance(there, dict) and (there.get("run"), there.get("repeat")) != (run, repeat):
        raise ConfigError(
            f"{out} holds the results of run {there.get('run')}, repeat {there.get('repeat')}",
            hint="name another folder for each run and repeat",
        )


def _models(stamp: RunStamp) -> dict[str, _Model]:
    """A folder for each arm, by its digest. Upstream takes the name for the model's, and reads `_` in it as `/`.

    It also begins identifiers with it.
    """
    plain = {a.arm.digest: re.sub(r"[^A-Za-z0-9.-]+", "-", a.arm.handle).strip(".-") or "arm" for a in stamp.arms}
    names = {digest: name if name[0].isalpha() else f"arm-{name}" for digest, name in plain.items()}
    seen = Counter(name.lower() for name in names.values())
    return {digest: _Model(n if seen[n.lower()] == 1 else f"{n}-{digest[:8]}") for digest, n in names.items()}


def _results(run: Path, grading: str, repeat: int) -> Iterator[tuple[Attempt, Grading]]:
    """The attempt that counts of every trial of a repeat that has a result: the first one with a verdict stands."""
    verdicts = {g.attempt: g for g in read_gradings(run, grading) if g.verdict.outcome in RESULTS}
    seen = set()
    for attempt in read_attempts(run):
        found = verdicts.get(attempt.id)
        if found is not None and attempt.key.repeat == repeat and attempt.key not in seen:
            seen.add(attempt.key)
            yield attempt, found


def _add(exported: Exported, category: str, attempt: Attempt, grading: Grading, trace: TraceReader) -> None:
    line: JSONObject = {"id": attempt.key.task}
    if category in DIALOGUES:
        line |= {"result": _turns(trace), **_tokens_by_turn(trace)}
    else:
        line |= {"result": _response(trace), **_tokens(trace)}
    if malfunctions := [flag for flag in grading.verdict.flags if flag.startswith(MALFUNCTIONS)]:
        line = {"id": attempt.key.task, "result": _failing(category), "evalcore": cast("list[JSONValue]", malfunctions)}
        exported.replaced.append(attempt.key.task)
    exported.lines[attempt.key.task] = json.dumps(line).encode() + b"\n"


def _response(trace: TraceReader) -> list[JSONValue]:
    """What was graded, in the shape in which upstream's handlers of tool-calling models leave it."""
    left = next(trace.events("deliverable"))
    graded = cast("list[dict[str, str]]", cast(JSONObject, left["data"])["first_response"])
    calls = [(call["name"], call["arguments"]) for call in graded]
    return model_output(calls, malformed=False, answer=cast("str | None", left["answer"]))


def _turns(trace: TraceReader) -> JSONValue:
    """The steps of each turn, as upstream's loop would have kept them; or that there was no end to it."""
    if (kind := exit_kind(trace)) == "crashed":
        return f"{INFERENCE}the agent {kind}"
    left = cast(JSONObject, next(trace.events("deliverable"))["data"])
    names = cast("list[str]", left["tools"])
    return [_steps(cast("list[JSONObject]", turn), names) for turn in cast("list[JSONValue]", left["turns"])]


def _steps(steps: list[JSONObject], names: list[str]) -> list[JSONValue]:
    kept: list[JSONValue] = []
    for step in steps:
        if "text" in step:
            kept.append(step["text"])
            continue
        made = (executable(call, names) for call in cast("list[JSONObject]", step["calls"]))
        kept.append([call for call in made if call is not None])
    return kept


def _failing(category: str) -> JSONValue:
    """A response that fails: a readable call where none is right, no result of several turns, and text elsewhere."""
    if category in DIALOGUES:
        return f"{INFERENCE}{UNDECIDED}"
    return [{"evalcore": "{}"}] if "irrelevance" in category else [UNDECIDED]


def _tokens(trace: TraceReader) -> JSONObject:
    """What the first model response used, where it said so. No latency: upstream's table cannot take a single one."""
    for event in trace.events("model.response"):
        if event["role"] == "agent" and isinstance(body := event["body"], dict):
            usage = usage_from_chat(body)
            return {} if usage.unreported else {"input_token_count": usage.input, "output_token_count": usage.output}
    return {}


def _tokens_by_turn(trace: TraceReader) -> JSONObject:
    """What each model response of each turn used, where all of them said so."""
    used: list[list[Usage]] = []
    for event in trace.events():
        if event["e"] == "dialogue.turn":
            used.append([])
        elif event["e"] == "model.response" and event["role"] == "agent" and isinstance(body := event["body"], dict):
            used[-1].append(usage_from_chat(body))
    if not any(used) or any(usage.unreported for turn in used for usage in turn):
        return {}
    return {
        "input_token_count": [[usage.input for usage in turn] for turn in used],
        "output_token_count": [[usage.output for usage in turn] for turn in used],
    }


def _number(task: str) -> int:
    """A task's place in its category, by which upstream sorts: 63 of `live_simple_63-24-0`."""
    return int(task.rpartition("_")[2].partition("-")[0])


def _write(out: Path, models: Mapping[str, _Model]) -> Iterator[Path]:
    for model in models.values():
        for category, exported in model.categories.items():
            file = out / "result" / model.folder / _group(category) / f"BFCL_v4_{category}_result.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            write_durably(file, b"".join(exported.lines[task] for task in sorted(exported.lines, key=_number)))
            yield file


def _group(category: str) -> str:
    """The folder in which upstream looks for a category."""
    if category in MEMORY:
        return f"agentic/memory/{category.removeprefix('memory_')}"
    if category in WEB_SEARCH:
        return "agentic"
    if category in MULTI_TURN:
        return "multi_turn"
    return "live" if category.startswith("live_") else "non_live"


def _about(stamp: RunStamp, repeat: int, models: Mapping[str, _Model], categories: Mapping[str, str]) -> JSONObject:
    arms = {a.arm.digest: a.arm for a in stamp.arms}
    tasks = {categories[b.selector]: b.tasks for b in stamp.benchmarks if b.selector in categories}
    described: JSONObject = {}
    for digest, model in models.items():
        if not model.categories:
            continue
        described[model.folder] = {
            "handle": arms[digest].handle,
            "label": arms[digest].label,
            "digest": digest,
            "categories": {
                category: {
                    "written": len(exported.lines),
                    "left_out": tasks[category] - len(exported.lines),
                    "replaced": [task for task in sorted(exported.lines, key=_number) if task in exported.replaced],
                }
                for category, exported in model.categories.items()
            },
        }
    return {"schema": SCHEMA, "run": stamp.run, "grading": stamp.grading, "repeat": repeat, "models": described}
