"""What τ²-bench costs through evalcore, beside upstream's evaluator alone, both on this machine and in this minute.

    TAU2_DATA_DIR=… EVALCORE_TOOLKIT_TAU2=… .venv/bin/python bench/tau2.py [--json FILE]

114 retail trials of the oracle (fresh environment, dialogue, every message recorded, verdict), start and plan included,
in processor time of the whole process tree; then upstream's `evaluate_simulation` once on each of the same simulations.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

STUDY = """
[study]
name = "bench"
benchmarks = ["tau2-retail"]
{choice}
[roles.judge]
model = "scripted/yes.toml"
[arms.oracle]
harness = "oracle"
"""
YES = """
[[reply]]
text = '{"results": [{"expectedOutcome": "x", "reasoning": "", "metExpectation": true}]}'
"""
TARGET = 2.0


def main() -> None:
    """Measure, print, perhaps write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--limit", type=int, help="only so many tasks")
    parser.add_argument("--upstream", nargs=2, help=argparse.SUPPRESS)  # this file again, in the toolkit's environment
    options = parser.parse_args()
    if options.upstream:
        print(json.dumps(upstream(*options.upstream)))
        return
    with tempfile.TemporaryDirectory(prefix="evalcore-tau2-") as name:
        figures = measure(Path(name), options.limit)
    for figure, value in figures.items():
        print(f"{figure:<52} {value:>10.4g}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


def measure(folder: Path, limit: int | None) -> dict[str, float]:
    """Processor seconds of both, and their ratio."""
    from evalcore_tau2.export import Tau2Results

    choice = "" if limit is None else f'[benchmarks."tau2-retail"]\nlimit = "0-{limit}"\n'
    (folder / "yes.toml").write_text(YES)
    (folder / "study.toml").write_text(STUDY.format(choice=choice))
    figures = {"calibration: 3,000,000 loop steps, s CPU": calibrate()}
    evalcore = Path(sys.executable).with_name("evalcore")
    before = spent()
    argv = [str(evalcore), "run", str(folder / "study.toml"), "--out", str(folder), "--name", "r", "--yes"]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    figures["retail oracle trials through evalcore, s CPU"] = spent() - before
    (results,) = [p for p in Tau2Results().render(folder / "r", folder / "out") if p.name == "results.json"]
    python, path, worker = asyncio.run(toolkit())
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONUTF8": "1"}
    argv = [python, __file__, "--upstream", worker, str(results)]
    told: Any = json.loads(subprocess.run(argv, check=True, capture_output=True, env=environment).stdout)
    assert told["rewards"] == 1.0, "upstream's evaluator gives the gold another reward"
    figures["trials"] = told["trials"]
    figures["upstream's evaluator once per task, s CPU"] = told["evaluated"]
    ratio = figures["retail oracle trials through evalcore, s CPU"] / told["evaluated"]
    figures[f"ratio (asked for: at most {TARGET:g})"] = ratio
    figures["calibration after, s CPU"] = calibrate()
    return figures


async def toolkit() -> tuple[str, str, str]:
    """The toolkit's Python, what goes first on its path, and the worker's file."""
    from evalcore.hookspecs import ToolkitInfo
    from evalcore.plugins import load
    from evalcore.toolkits.environment import ensure, worker_file

    spec = load(only=("tau2",)).get(ToolkitInfo, "toolkit", "tau2").spec
    environment = await ensure(spec, install=False)
    return str(environment.python), os.pathsep.join(map(str, environment.search_path)), str(worker_file(spec))


def upstream(worker: str, results: str) -> dict[str, float]:
    """Upstream's evaluator on every simulation, with upstream imported as the worker does it."""
    sys.path[:1] = []  # this file's folder: here it is called `tau2` too
    sys.path.append(str(Path(worker).parent))
    import serve  # type: ignore[import-not-found]

    native: Any = serve.upstream()
    native.domain("retail")
    whole = native.simulations.Results.load(Path(results))
    tasks = {task.id: task for task in whole.tasks}
    kinds = native.evaluator.EvaluationType
    yes = {"choices": [{"message": {"role": "assistant", "content": YES.split("'")[1]}}]}
    judged = native.tasks.RewardType.NL_ASSERTION
    began, rewards = time.process_time(), []
    for simulation in whole.simulations:
        task = tasks[simulation.task_id]
        kind = kinds.ALL_WITH_NL_ASSERTIONS if judged in task.evaluation_criteria.reward_basis else kinds.ALL
        with native.models.with_replies([yes]):
            given = native.evaluator.evaluate_simulation(
                simulation=simulation, task=task, evaluation_type=kind, solo_mode=False, domain="retail"
            )
        rewards.append(given.reward)
    took = time.process_time() - began
    return {"evaluated": took, "trials": len(rewards), "rewards": sum(rewards) / len(rewards)}


def spent() -> float:
    """Processor seconds of every program that was started here and has ended, with all that it started."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def calibrate() -> float:
    """CPU seconds of a fixed loop: compare figures of two machines, or of a busy and a quiet one, by it."""
    began, total = time.process_time(), 0
    for step in range(3_000_000):
        total += step * step % 7
    return time.process_time() - began


if __name__ == "__main__":
    main()
