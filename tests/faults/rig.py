"""How tests of faults make a run, break it, and say what of it must be the same all the same."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evalcore.engine.plan import make_plan
from evalcore.engine.run import RunOptions, resume, start
from evalcore.engine.runner import RunEnd
from evalcore.engine.services import LocalServices
from evalcore.engine.store import TraceStore, gradings_of, read_attempts, read_gradings, read_stamp
from evalcore.plugins import PluginRef, Registry, load
from evalcore.report.load import load_report
from evalcore.report.scorecard import to_json
from evalcore.testing import toy
from evalcore.values.json import canonical
from evalcore.values.study import Study
from evalcore.values.trace import TraceReader
from evalcore.values.trial import Attempt, Grading
from tests.faults import parts
from tests.oracles import ROOT

PATIENCE_S = 100.0  # what anything that takes seconds may take on a busy machine

PLAYBOOK = """
[[reply]]
match = {{ call = 1 }}
text = "Let me look."
tool_calls = [{{ name = "get_weather", arguments = {{ city = "Bern" }} }}]
usage = {{ input = 100, output = 20, cost_usd = 0.001 }}
delay_s = {delay_s}

[[reply]]
match = {{ contains = "degrees in Bern" }}
text = "It is 10 degrees in Bern."
usage = {{ input = 150, output = 12, cost_usd = 0.002 }}
delay_s = {delay_s}

[[reply]]
text = "I do not know."
usage = {{ input = 150, output = 5, cost_usd = 0.002 }}
delay_s = {delay_s}
"""


def registry() -> Registry:
    """The built-ins, the toy benchmark and the parts of `parts`."""
    found = load(only=())
    found.add(PluginRef("toy", "toy", "1", "evalcore.testing.toy"), toy)
    found.add(PluginRef("in-test", "in-test", "1", "tests.faults.parts"), parts)
    assert found.failures == []
    return found


def study(benchmark: str = "toy-weather:2", *, model: str = "scripted/play.toml", **fields: Any) -> Study:
    """One benchmark, one arm `a`: react over the scripted model, unless said otherwise."""
    fields.setdefault("arms", {"a": {"harness": "react", "model": model}})
    return Study(**({"name": "toy", "benchmarks": (benchmark,)} | fields))


async def begin(what: Study, folder: Path, playbook: str = "", delay_s: float = 0.0, **options: Any) -> RunEnd:
    """Make the run `folder/r`. The playbook is the one above, or what is given."""
    if not (folder / "play.toml").exists():
        (folder / "play.toml").write_text(playbook or PLAYBOOK.format(delay_s=delay_s))
    found = registry()
    services = LocalServices(found, folder)
    try:
        plan = await make_plan(what, found, services, "r")
        return await start(plan, folder / "r", found, services, RunOptions(**options))
    finally:
        await services.close()


def ran(what: Study, folder: Path, **options: Any) -> RunEnd:
    """`begin`, to its end."""
    return asyncio.run(begin(what, folder, **options))


def resumed(run: Path, **options: Any) -> RunEnd:
    """Resume a run to its end."""
    return asyncio.run(resume(run, registry(), RunOptions(**options)))[1]


def attempts(run: Path) -> list[Attempt]:
    """The attempts on record; none before the first."""
    return list(read_attempts(run))


def verdicts(run: Path) -> dict[str, Grading]:
    """The verdict of each attempt that has one."""
    return {g.attempt: g for g in read_gradings(run, read_stamp(run).grading)}


def by_task(run: Path) -> dict[str, tuple[Attempt, Grading | None]]:
    """The last attempt of each task, and its verdict: for runs of one arm and one repeat."""
    found = verdicts(run)
    return {a.key.task: (a, found.get(a.id)) for a in attempts(run)}


@contextmanager
def trace(run: Path, attempt: Attempt) -> Iterator[TraceReader]:
    """The trace of an attempt."""
    store = TraceStore(run)
    try:
        yield store.read(attempt.trace)
    finally:
        store.close()


def events(run: Path, attempt: Attempt) -> list[dict[str, Any]]:
    """The same, decoded."""
    with trace(run, attempt) as reader:
        return list(reader.events())


def ledgers(run: Path) -> dict[str, bytes]:
    """Every ledger's bytes, by name."""
    files = [run / "attempts.jsonl", *sorted((run / "gradings").glob("*.jsonl"))]
    return {file.name: file.read_bytes() for file in files if file.exists()}


def whole_lines(data: bytes) -> bytes:
    """What of a ledger counts as committed."""
    return data[: data.rfind(b"\n") + 1]


def facts(run: Path) -> dict[str, Any]:
    """All that may not depend on when, how often or how hard a run was interrupted.

    Left out are times and what follows from them, the run's name and date, and the order in which trials ended.
    """
    told = verdicts(run)
    return {
        "scorecard": _timeless(to_json(load_report(run))),
        "trials": sorted(
            (
                str(a.key),
                a.number,
                a.task_digest,
                str(a.exit),
                str(a.void),
                sorted(a.usage.items()),
                (a.tool_calls, a.tool_errors, a.provenance, a.isolation, a.flags),
                repr(told[a.id].verdict) if a.id in told else None,
                _story(run, a),
            )
            for a in read_attempts(run)
        ),
    }


def _timeless(scorecard: Any) -> Any:
    """A scorecard without its run's name, its date, what is measured in time, and the runs that lie beside it."""
    cells = [
        {**cell, "latency": None, "metrics": {k: v for k, v in cell["metrics"].items() if not k.startswith("wall_s")}}
        for cell in scorecard["cells"]
    ]
    left = {k: v for k, v in scorecard.items() if k not in ("run", "created", "composites")}
    design = {k: v for k, v in (scorecard["design"] or {}).items() if k != "siblings"}
    return json.dumps({**left, "design": design, "cells": cells}, sort_keys=True)


def _story(run: Path, attempt: Attempt) -> str:
    """A digest of the trace, its times left out."""
    timed = ("t", "wall_s", "queue_s")
    story = [{k: v for k, v in event.items() if k not in timed} for event in events(run, attempt)]
    return hashlib.sha256(canonical(story)).hexdigest()


# ── a run in a process of its own ────────────────────────────────────────────────────────────────────────────────────


def spawned(verb: str, folder: Path, **options: Any) -> subprocess.Popen[str]:
    """`study_process`, in a process group of its own. Its standard error is the test's."""
    folder.mkdir(exist_ok=True)
    argv = [sys.executable, "-m", "tests.faults.study_process", verb, str(folder), json.dumps(options)]
    return subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True)


def outcome(process: subprocess.Popen[str], timeout_s: float = PATIENCE_S) -> tuple[int, str]:
    """Its exit code and all that it printed, once it has ended; it is killed if it does not."""
    try:
        text, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        killed(process)
        raise
    return process.returncode, text


def killed(process: subprocess.Popen[str]) -> None:
    """SIGKILL to the whole group, and wait."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def wait_until(true: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait for a condition while the process lives."""
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert process.poll() is None, f"ended too early, with {process.returncode}"
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


def executed_lines(run: Path) -> int:
    """How many attempts are committed now."""
    file = run / "attempts.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


# ── breaking one, and what must hold ─────────────────────────────────────────────────────────────────────────────────


def copy_of(run: Path, to: Path) -> Path:
    """A copy to break."""
    shutil.copytree(run, to)
    return to


def whole(run: Path, planned: int) -> None:
    """Assert that a run is complete: each trial executed once and graded once, and every ledger of whole lines."""
    for name, data in ledgers(run).items():
        assert data == whole_lines(data), f"{name} has a torn line"
        for line in data.splitlines():
            json.loads(line)
    ids = [a.id for a in attempts(run)]
    assert len(ids) == len(set(ids)) == planned
    (grading,) = gradings_of(run)
    graded = [g.attempt for g in read_gradings(run, grading)]
    assert sorted(graded) == sorted(ids)
