"""A run as upstream's own results files, for `tau2 view`, `tau2 evaluate-trajs` and upstream's metrics.

    out/<arm>/<benchmark>/results.json    upstream's `Results`: every simulation of an arm, with its reward
    out/evalcore.json                     which run and arms that was, and what is not in it

A simulation is the dialogue as the orchestrator left it, with the native reward as it was given. Left out are trials
that have no result: void ones, and those that wait for a judge.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

from attrs import Factory, define

from evalcore.contracts import Services
from evalcore.engine.store import TraceStore, read_attempts, read_gradings, read_stamp, write_durably
from evalcore.errors import ConfigError
from evalcore.hookspecs import RendererInfo
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.stamp import ArmStamp, RunStamp
from evalcore.values.trace import TraceReader
from evalcore.values.trial import RESULTS, Attempt, Grading
from evalcore_tau2.plugin import BENCHMARKS
from evalcore_tau2.worker.tau2_pins import VERSION

SCHEMA: Final = "evalcore.tau2-results/1"
ABOUT: Final = "evalcore.json"
RESULTS_FILE: Final = "results.json"
_POLICY: Final = re.compile(r"<policy>\n(.*?)\n</policy>", re.DOTALL)
_REWARD: Final = "reward"  # what a native reward has, and the note of an evaluator that raised has not


@define
class _File:
    """One arm on one benchmark."""

    tasks: dict[str, JSONValue] = Factory(dict)
    simulations: list[JSONValue] = Factory(list)
    policy: str = ""


class Tau2Results:
    """Renders runs; a `Renderer`."""

    def __init__(self, services: Services | None = None, info: RendererInfo | None = None) -> None:
        pass

    def render(self, run: Path, out: Path) -> list[Path]:
        """Write a run below `out`; returns the files. Raises ConfigError where it has nothing of τ²-bench."""
        stamp = read_stamp(run)
        if stamp.imported is not None:
            raise ConfigError(
                f"run {stamp.run} was imported from {stamp.imported}: not all that a results file says is here",
                hint="the file that it was made of is still upstream's" if stamp.imported == "tau2" else None,
            )
        wanted = {b.selector for b in stamp.benchmarks if _name(b.selector) in BENCHMARKS}
        if not wanted:
            raise ConfigError(f"run {stamp.run} has no τ²-bench benchmark", hint="`evalcore report` shows what it has")
        files: dict[tuple[str, str], _File] = {}
        traces = TraceStore(run)
        try:
            for attempt, grading in _results(run, stamp.grading):
                if attempt.key.benchmark in wanted:
                    file = files.setdefault((attempt.key.arm, attempt.key.benchmark), _File())
                    _add(file, attempt, grading, traces.read(attempt.trace))
        finally:
            traces.close()
        out.mkdir(parents=True, exist_ok=True)
        write_durably(out / ABOUT, _bytes(_about(stamp, files)))
        return [out / ABOUT, *_write(out, stamp, files)]


def _name(selector: str) -> str:
    return re.split("[@:]", selector, maxsplit=1)[0]


def _results(run: Path, grading: str) -> Iterator[tuple[Attempt, Grading]]:
    """The attempt that counts of every trial that has a result: the first one with a verdict stands."""
    verdicts = {g.attempt: g for g in read_gradings(run, grading) if g.verdict.outcome in RESULTS}
    seen = set()
    for attempt in read_attempts(run):
        found = verdicts.get(attempt.id)
        if found is not None and not attempt.key.faults and attempt.key not in seen:
            seen.add(attempt.key)
            yield attempt, found


def _add(file: _File, attempt: Attempt, grading: Grading, trace: TraceReader) -> None:
    left, evidence, start = trace.last("deliverable"), trace.last("evidence"), trace.last("trial.start")
    assert left is not None and evidence is not None and start is not None
    simulation = cast("dict[str, JSONObject]", left["data"])["simulation"]
    file.tasks[attempt.key.task] = cast(JSONObject, evidence["data"])["task"]
    file.policy = file.policy or _policy(start)
    costs = {role: usage.cost_usd for role, usage in attempt.usage.items()}
    file.simulations.append(
        {
            "id": attempt.id,
            "task_id": attempt.key.task,
            "timestamp": attempt.started,
            "start_time": attempt.started,
            "end_time": attempt.started,
            "duration": attempt.wall_s,
            "termination_reason": simulation["termination_reason"],
            "agent_cost": costs.get("agent"),
            "user_cost": costs.get("user"),
            "reward_info": _reward(grading),
            "messages": simulation["messages"],
            "trial": attempt.key.repeat - 1,
            "seed": start["seed"],
            "mode": "half_duplex",
            "info": {"evalcore": {"flags": [*attempt.flags, *grading.verdict.flags]}},
        }
    )


def _reward(grading: Grading) -> JSONObject:
    """The native reward; where upstream's evaluator raised, its nothing, with what it said."""
    native = grading.verdict.details
    return native if _REWARD in native else {"reward": 0.0, "reward_basis": None, "info": native}


def _policy(start: JSONObject) -> str:
    """The policy in the system prompt that the agent got."""
    messages = cast("list[JSONObject]", start["messages"])
    found = _POLICY.search(str(messages[0]["content"])) if messages else None
    return found[1] if found else ""


def _write(out: Path, stamp: RunStamp, files: dict[tuple[str, str], _File]) -> Iterator[Path]:
    folders = _folders(stamp)
    arms = {a.arm.digest: a for a in stamp.arms}
    for (arm, benchmark), file in files.items():
        path = out / folders[arm] / re.sub("[@:]", "-", benchmark) / RESULTS_FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, _bytes(_whole(stamp, arms[arm], benchmark, file)))
        yield path


def _whole(stamp: RunStamp, arm: ArmStamp, benchmark: str, file: _File) -> JSONObject:
    about, axes = BENCHMARKS[_name(benchmark)], arm.arm.axes
    roles = next(b.roles for b in stamp.benchmarks if b.selector == benchmark)
    user: JSONValue = axes.get("user_model") or roles.get("user")
    info: JSONObject = {
        "git_commit": f"v{VERSION}",
        "num_trials": stamp.repeats,
        "max_steps": 200,
        "max_errors": 10,
        "seed": stamp.seed,
        "agent_info": {
            "implementation": f"evalcore/{arm.arm.harness} {arm.harness_version}".strip(),
            "llm": arm.arm.model,
            "llm_args": {k: v for k, v in axes.items() if v is not None and k not in ("harness", "model")},
        },
        "user_info": {
            "implementation": "dummy_user" if about.solo else "scripted" if arm.control else "user_simulator",
            "llm": None if about.solo or arm.control else user,
            "llm_args": {"temperature": 0.0},
        },
        "retrieval_config": benchmark.partition(":")[2] or None,
        "environment_info": {"domain_name": about.domain, "policy": file.policy, "tool_defs": None},
    }
    return {
        "timestamp": stamp.created,
        "info": info,
        "tasks": list(file.tasks.values()),
        "simulations": file.simulations,
    }


def _folders(stamp: RunStamp) -> dict[str, str]:
    """A folder for each arm, by its digest."""
    names = {a.arm.digest: re.sub(r"[^A-Za-z0-9._-]+", "-", a.arm.handle).strip(".-") or "arm" for a in stamp.arms}
    seen = Counter(name.lower() for name in names.values())
    return {digest: n if seen[n.lower()] == 1 else f"{n}-{digest[:8]}" for digest, n in names.items()}


def _about(stamp: RunStamp, files: dict[tuple[str, str], _File]) -> JSONObject:
    folders, tasks = _folders(stamp), {b.selector: b.tasks for b in stamp.benchmarks}
    described: JSONObject = {}
    for arm in stamp.arms:
        digest = arm.arm.digest
        written = {b: len(f.simulations) for (a, b), f in files.items() if a == digest}
        counts: JSONObject = {
            b: {"simulations": n, "left_out": tasks[b] * stamp.repeats - n} for b, n in written.items()
        }
        described[folders[digest]] = {"label": arm.arm.label, "digest": digest, "benchmarks": counts}
    return {"schema": SCHEMA, "run": stamp.run, "grading": stamp.grading, "arms": described}


def _bytes(value: JSONObject) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()
