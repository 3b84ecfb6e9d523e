"""What a report of 13,620 trials costs: ten arms, 460 tasks in 80 clusters, three repeats, with declared contrasts.

    .venv/bin/python bench/report.py

Nothing is run: the ledgers are written as a run would have. Each measurement is a process of its own, imports included.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ARMS, TASKS, CLUSTERS, REPEATS = 10, 460, 80, 3
MEASURE = """
import json, resource, sys, time
began, cpu = time.perf_counter(), time.process_time()
from pathlib import Path
from evalcore.report.load import load_report
from evalcore.report.scorecard import encode
report = load_report(Path(sys.argv[1]))
loaded = time.perf_counter()
size = len(encode(report))
done = time.perf_counter()
peak = next(int(x.split()[1]) for x in open("/proc/self/status") if x.startswith("VmHWM"))
print(json.dumps({"load_s": loaded - began, "scorecard_s": done - loaded, "cpu_s": time.process_time() - cpu,
                  "peak_mb": peak / 1024, "scorecard_mb": size / 1e6, "cells": len(report.cells),
                  "contrasts": len(report.contrasts)}))
"""


def main() -> None:
    """Write the run, measure three times, print the best."""
    with tempfile.TemporaryDirectory(prefix="evalcore-bench-") as folder:
        run = make_run(Path(folder) / "big")
        best: dict[str, float] = {}
        for _ in range(3):
            before = calibrate()
            out = subprocess.run([sys.executable, "-c", MEASURE, str(run)], check=True, capture_output=True, text=True)
            found = {**json.loads(out.stdout), "calibration": before}
            print(json.dumps({k: round(v, 3) for k, v in found.items()}), file=sys.stderr)
            best = found if not best or found["cpu_s"] < best["cpu_s"] else best
        print(
            f"report of {ARMS * TASKS * REPEATS:,} trials: {best['load_s']:.2f} s (asked for: < 3), processor "
            f"{best['cpu_s']:.2f} s with imports and scorecard, {best['peak_mb']:.0f} MB (asked for: < 300), "
            f"{best['scorecard_mb']:.1f} MB of scorecard; calibration {best['calibration']:.2f}"
        )


def calibrate() -> float:
    """CPU seconds of the fixed loop of `bench/run.py`."""
    began, total = time.process_time(), 0
    for step in range(3_000_000):
        total += step * step % 7
    return time.process_time() - began


def make_run(path: Path) -> Path:
    """A run's directory, as the engine leaves it."""
    from evalcore.engine.records import attempt_line, grading_line
    from evalcore.engine.store import create_run
    from evalcore.values.arm import Arm
    from evalcore.values.stamp import ArmStamp, BenchmarkStamp, RunStamp
    from evalcore.values.task import Dataset
    from evalcore.values.trial import Attempt, Exit, Grading, TraceRef, TrialKey, Verdict
    from evalcore.values.usage import Usage

    rng = random.Random(7)
    arms = [ArmStamp(Arm(f"arm{n}", {"harness": "react", "model": f"openai/m{n}"}), "1") for n in range(ARMS)]
    cluster_of = {f"t{t:03}": f"core-{t % CLUSTERS}" for t in range(TASKS)}
    benchmark = BenchmarkStamp(
        "bench", Dataset("bench", "1", "2026-01-01", "CC0-1.0", "made up"), TASKS, CLUSTERS, "cd" * 32, "g", {"g": "1"},
        of_tasks=TASKS, cluster_of=cluster_of,
    )  # fmt: skip
    contrasts = [{"a": f"arm{n}", "b": "arm0", "metric": "pass@1", "margin": 0.05} for n in range(1, ARMS)]
    create_run(path, RunStamp(
        "big", "2026-01-01T00:00:00Z", "bench", "ef" * 32, {"contrasts": contrasts}, 1, REPEATS, tuple(arms),
        (benchmark,), "12" * 32,
    ))  # fmt: skip
    ease = [rng.betavariate(2, 1) for _ in range(TASKS)]
    (path / "gradings").mkdir()
    with (path / "attempts.jsonl").open("wb") as ledger, (path / "gradings" / f"{'12' * 32}.jsonl").open("wb") as marks:
        for repeat in range(1, REPEATS + 1):
            for place, task in enumerate(cluster_of):
                for number, arm in enumerate(arms):
                    key = TrialKey("bench", task, arm.arm.digest, repeat)
                    name = f"{number}-{task}-{repeat}"
                    usage = Usage(3, rng.randrange(500, 5000), rng.randrange(50, 500), cost_usd=rng.random() / 50)
                    ledger.write(attempt_line(Attempt(
                        name, key, f"{task}-digest", 1, Exit("completed"), None, "2026-01-01T00:00:00Z",
                        rng.expovariate(0.1), {"agent": usage}, 3, int(rng.random() < 0.1), TraceRef("0", 0, 0),
                    )))  # fmt: skip
                    won = rng.random() < ease[place] * (0.7 + 0.03 * number)
                    marks.write(grading_line(Grading(name, Verdict("pass" if won else "fail"), 0.001)))
    return path


if __name__ == "__main__":
    main()
