"""What evalcore itself costs, measured through `evalcore run` on the installed package. `make bench` runs it.

Prints one line a figure, and with `--json FILE` writes them. Nothing here passes or fails: targets stand beside
the figures. `bench/README.md` says what was measured where, and what limits it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
EVALCORE = Path(sys.executable).with_name("evalcore")
TURNS = 3  # noise only ever slows: the best of a few is nearest to what the code costs


def main() -> None:
    """Measure, print, perhaps write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--quick", action="store_true", help="a tenth of the trials")
    options = parser.parse_args()
    scale = 0.1 if options.quick else 1.0
    with tempfile.TemporaryDirectory(prefix="evalcore-bench-") as name:
        figures = measure(Path(name), scale)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


def measure(folder: Path, scale: float) -> dict[str, float]:
    """All figures by name."""
    figures: dict[str, float] = {}

    def say(name: str, value: float, unit: str, target: str = "", note: str = "") -> None:
        figures[name] = value
        print(f"{name:<52} {value:>10.4g} {unit:<10} {target:<8} {note}", flush=True)

    say("calibration: 3,000,000 loop steps", calibrate(), "s CPU")
    say("evalcore --help", start_up(folder), "s", "≤ 0.12")
    environment = install_load(folder)
    say("start, plan and end of a run of a hundred trials", fixed_cost(folder, environment), "s")
    for name, size, ways, count, target in (
        ("small trials, 64 ways", "small", 64, 20_000, "≥ 3,000"),
        ("small trials, 8 ways", "small", 8, 10_000, "≥ 1,000"),
        ("30 turns, 14 tools, 64 ways", "big", 64, 2_000, "≥ 400"),
    ):
        rates, calibrations = [], [calibrate()]
        for turn in range(TURNS):
            rates.append(throughput(folder, environment, size, int(count * scale), ways, f"{size}-{ways}-{turn}")[0])
            calibrations.append(calibrate())
        span = f"{min(calibrations):.2f}–{max(calibrations):.2f}"
        note = f"best of {', '.join(f'{r:.0f}' for r in rates)}; calibration {span}"
        say(name, max(rates), "trials/s", target, note)
    _, slope = throughput(folder, environment, "small", int(27_000 * scale), 64, "slope")
    say("resident memory between 5,000th and 25,000th trial", slope, "KiB/trial", "≤ 2")
    for run, size, target in (("slope", "small", "≤ 0.2"), ("big-64-0", "big", "≤ 0.5")):
        ledger, traces = read_back(folder / "runs" / run)
        note = f"calibration {calibrate():.2f}"
        say(f"read back ledgers, {size}", ledger, "ms/trial", "≤ 0.03", note)
        say(f"read back with traces, {size}", traces, "ms/trial", target, note)
    return figures


def calibrate() -> float:
    """CPU seconds of a fixed loop: compare figures of two machines, or of a busy and a quiet one, by it."""
    began, total = time.process_time(), 0
    for step in range(3_000_000):
        total += step * step % 7
    return time.process_time() - began


def start_up(folder: Path) -> float:
    """Median wall time of `evalcore --help`."""
    return statistics.median(timed([str(EVALCORE), "--help"], folder, dict(os.environ)) for _ in range(15))


def timed(command: list[str], folder: Path, environment: dict[str, str]) -> float:
    """Wall time of a command that must succeed."""
    began = time.perf_counter()
    done = subprocess.run(
        command, check=False, cwd=folder, env=environment, capture_output=True, text=True, timeout=900
    )
    if done.returncode != 0:
        raise SystemExit(
            f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        )
    return time.perf_counter() - began


def install_load(folder: Path) -> dict[str, str]:
    """Put the load benchmarks on the path as a plugin, and write the playbooks."""
    site = folder / "site"
    info = site / "evalcore_load-1.0.dist-info"
    info.mkdir(parents=True)
    shutil.copy(HERE / "load" / "evalcore_load.py", site)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: evalcore-load\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[evalcore]\nload = evalcore_load\n")
    compileall = [sys.executable, "-m", "compileall", "-q", str(site)]
    subprocess.run(compileall, check=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""})
    for size, turns in (("small", 2), ("big", 30)):
        (folder / f"{size}.toml").write_text(playbook("get_weather_0", turns))
    return {**os.environ, "PYTHONPATH": str(site)}


def playbook(tool: str, turns: int) -> str:
    """A model that calls one tool until its last turn."""
    call = (
        f'tool_calls = [{{ name = "{tool}", arguments = {{ city = "Bern" }} }}]\nusage = {{ input = 200, output = 20 }}'
    )
    answer = 'text = "It is sunny."\nusage = { input = 250, output = 8 }'
    return f"[[reply]]\nmatch = {{ call = {turns} }}\n{answer}\n\n[[reply]]\n{call}\n"


def command(size: str, repeats: int, ways: int, name: str) -> list[str]:
    """`evalcore run` of a load benchmark, progress on (plain lines, as where there is no terminal)."""
    study = [f"load-{size}", "--model", f"scripted/{size}.toml", "--harness", "react", "--trials", str(repeats)]
    return [str(EVALCORE), "run", *study, "--concurrency", str(ways), "--yes", "--out", "runs", "--name", name]


def fixed_cost(folder: Path, environment: dict[str, str]) -> float:
    """Wall time of a run of a hundred trials, nearly all of it start, plan and report."""
    return min(timed(command("small", 1, 64, f"one-{n}"), folder, environment) for n in range(3))


def throughput(
    folder: Path, environment: dict[str, str], size: str, trials: int, ways: int, name: str
) -> tuple[float, float]:
    """Trials a second between the first and the last attempt's commit, and the slope of resident memory."""
    arguments = command(size, max(1, trials // 100), ways, name)
    process = subprocess.Popen(
        arguments, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    ledger = folder / "runs" / name / "attempts.jsonl"
    samples: list[tuple[float, float, float]] = []  # seconds, trials, KiB
    line = 0.0
    while process.poll() is None:
        time.sleep(0.02)
        if ledger.exists() and (size_now := ledger.stat().st_size):
            line = line or _line_length(ledger)
            if line:
                samples.append((time.perf_counter(), size_now / line, _resident(process.pid)))
    if process.returncode != 0:
        error = process.stderr.read().decode() if process.stderr else ""
        raise SystemExit(f"{' '.join(arguments)} ended with {process.returncode}:\n{error[-2000:]}")
    return _rate(samples), _slope(samples)


def _line_length(ledger: Path) -> float:
    """Mean bytes of a line so far; 0 before there are twenty."""
    head = ledger.read_bytes()[:200_000]
    lines = head.count(b"\n")
    return (head.rindex(b"\n") + 1) / lines if lines >= 20 else 0.0


def _resident(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 1024 if len(fields) > 1 else 0.0


def _rate(samples: list[tuple[float, float, float]]) -> float:
    """From the first sample to the one at which the ledger stopped growing."""
    last = next(s for s in samples if s[1] == samples[-1][1])
    first = samples[0]
    return (last[1] - first[1]) / (last[0] - first[0]) if last[0] > first[0] else float("nan")


def _slope(samples: list[tuple[float, float, float]]) -> float:
    """KiB a trial between the 5,000th and the 25,000th trial (if there are fewer: a fifth of the way and the end)."""
    total = samples[-1][1]
    low, high = (5_000.0, 25_000.0) if total > 25_000 else (total / 5, total * 0.95)
    inside = [s for s in samples if low <= s[1] <= high]
    return (inside[-1][2] - inside[0][2]) / (inside[-1][1] - inside[0][1]) if len(inside) > 1 else float("nan")


def read_back(run: Path) -> tuple[float, float]:
    """Milliseconds a trial to make a report from the ledgers, and to read every event and request of every trace."""
    from evalcore.engine.store import TraceStore, read_attempts
    from evalcore.report.load import load_report

    load_report(run)  # imports are paid once
    began = time.perf_counter()
    load_report(run)
    ledger = time.perf_counter() - began
    store, count = TraceStore(run), 0
    began = time.perf_counter()
    for attempt in read_attempts(run):
        reader = store.read(attempt.trace)
        sum(1 for _ in reader.events())
        count += 1
    traces = time.perf_counter() - began
    store.close()
    return ledger / count * 1000, (ledger + traces) / count * 1000


if __name__ == "__main__":
    main()
