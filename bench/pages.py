"""What the pages of a run of 13,620 trials cost: the file, and the live view in a real browser.

    .venv/bin/python bench/pages.py

Nothing is run: the ledgers are written as a run would have. Needs Chromium and its driver, as the tests do.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from plugins.report.tests import runs  # noqa: E402 - after the path
from plugins.report.tests.browser import Browser  # noqa: E402 - the same

ARMS, TASKS, REPEATS = 10, 454, 3
TURNS = 3
WRITE = """
import json, sys, time
began, cpu = time.perf_counter(), time.process_time()
from pathlib import Path
from evalcore.plugins import load
from evalcore.engine.services import LocalServices
from evalcore.values.descriptors import RendererInfo
run, out = Path(sys.argv[1]), Path(sys.argv[2])
registry = load(only=("report",))
info = registry.get(RendererInfo, "format", "html")
(page,) = registry.factory(info)(LocalServices(registry, run), info).render(run, out)
peak = next(int(x.split()[1]) for x in open("/proc/self/status") if x.startswith("VmHWM"))
print(json.dumps({"wall_s": time.perf_counter() - began, "cpu_s": time.process_time() - cpu, "peak_mb": peak / 1024,
                  "size_mb": page.stat().st_size / 1e6}))
"""
LOADED = "return document.readyState === 'complete' && document.querySelectorAll('svg.chart').length > 5"


def main() -> None:
    """Write the run, make its page, open it in the view."""
    with tempfile.TemporaryDirectory(prefix="evalcore-bench-") as name:
        folder = Path(name)
        contrasts = [(f"model-{chr(98 + i)}", "model-a") for i in range(ARMS - 1)]
        run = runs.sample(
            folder / "runs" / "big", arms=ARMS, tasks=TASKS, repeats=REPEATS, controls=False, contrasts=contrasts
        )
        for _ in range(TURNS):
            told = subprocess.run(
                [sys.executable, "-c", WRITE, str(run), str(folder / "out")], check=True, capture_output=True, text=True
            ).stdout
            figures = ", ".join(f"{k} {v:.2f}" for k, v in json.loads(told).items())
            print(f"report.html: {figures}; calibration {calibrate():.2f}", flush=True)
        browser = Browser()
        try:
            for turn in range(TURNS):  # the first has to make the page, the others find it in the cache
                view(folder / "runs", folder / "cache", browser, "kept" if turn else "cold")
        finally:
            browser.close()


def view(folder: Path, cache: Path, browser: Browser, what: str) -> None:
    """A fresh view: opened at once, opened again, and searched."""
    command = [str(Path(sys.executable).with_name("evalcore")), "view", str(folder)]
    began = time.perf_counter()
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "EVALCORE_CACHE": str(cache)},
    )  # fmt: skip
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        started = time.perf_counter() - began
        first = opened(browser, url + "run/big")
        browser.until(LOADED)
        whole = time.perf_counter() - first[0]
        again = [timed(browser, url + "run/big") for _ in range(TURNS)]
        began = time.perf_counter()
        browser.open(url + "run/big/trials?q=nowhere-to-be-found")
        searched = time.perf_counter() - began
        print(
            f"view ({what}): address after {started:.2f} s; from it, something to see {first[1]:.2f} s, "
            f"the whole report {whole:.2f} s; opened again {min(again):.2f} s; search {searched:.2f} s; "
            f"calibration {calibrate():.2f}",
            flush=True,
        )
    finally:
        server.terminate()
        server.wait(10)


def opened(browser: Browser, url: str) -> tuple[float, float]:
    """When it began, and how long it took until something was there."""
    began = time.perf_counter()
    browser.open(url)
    return began, time.perf_counter() - began


def timed(browser: Browser, url: str) -> float:
    """How long it takes until the whole report is there."""
    began = time.perf_counter()
    browser.open(url)
    browser.until(LOADED)
    return time.perf_counter() - began


def calibrate() -> float:
    """CPU seconds of a fixed loop, as in bench/run.py."""
    began, total = time.process_time(), 0
    for step in range(3_000_000):
        total += step * step % 7
    return time.process_time() - began


if __name__ == "__main__":
    main()
