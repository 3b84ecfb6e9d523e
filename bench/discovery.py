"""What it costs to find and load plugins where 300 distributions are installed. `python bench/discovery.py`.

Each figure is the median of fresh processes, in which `evalcore.plugins` is imported already: with nothing else on the
import path, then with 300 distributions beside it, 10 of them plugins of evalcore. Nothing here passes or fails.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from run import calibrate  # bench/run.py: a figure means something beside this one

DISTRIBUTIONS = 300
PLUGINS = 10
ROUNDS = 9
TARGET_MS = 30

PROBE = """
import json, sys, time
from evalcore import plugins
began = time.perf_counter()
found = plugins.discover()
discovered = time.perf_counter()
registry = plugins.load()
loaded = time.perf_counter()
assert not registry.failures, registry.failures
figures = {"discover": discovered - began, "load": loaded - discovered, "plugins": len(registry.plugins)}
print(json.dumps(figures))
"""

ENTRY = """
from evalcore.hookspecs import AdapterInfo, hookimpl

@hookimpl
def evalcore_adapters():
    return [AdapterInfo("NAME", "a made-up benchmark", "NAME_parts:Adapter")]
"""


def install(folder: Path, number: int) -> None:
    """A distribution as pip leaves it; every other one has a script, and the first few are plugins."""
    name = f"made_up_{number}"
    info = folder / f"{name}-1.{number}.dist-info"
    info.mkdir()
    requires = "".join(f"Requires-Dist: something-{i}>={i}\n" for i in range(12))
    described = "What it is, at length.\n" * 200
    head = f"Metadata-Version: 2.4\nName: {name.replace('_', '-')}\nVersion: 1.{number}\n"
    if number < PLUGINS:
        requires += "Requires-Dist: evalcore-core>=0.1,<1\n"
        (folder / f"{name}.py").write_text(ENTRY.replace("NAME", name))
        (info / "entry_points.txt").write_text(f"[evalcore]\n{name} = {name}\n")
    elif number % 2:
        (info / "entry_points.txt").write_text(f"[console_scripts]\n{name} = {name}:main\n")
    (info / "METADATA").write_text(f"{head}{requires}\n{described}")
    (info / "RECORD").write_text(f"{name}.py,,\n" * 50)


def measure(folder: Path) -> dict[str, float]:
    """Median figures of fresh processes with a folder on their import path."""
    code = f"import sys; sys.path.insert(1, {str(folder)!r})\n{PROBE}"
    seen = [
        json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(ROUNDS)
    ]
    return {key: statistics.median(one[key] for one in seen) for key in seen[0]}


def main() -> None:
    """Measure and print."""
    print(f"{'calibration: 3,000,000 loop steps':<58} {calibrate():>8.3f} s CPU")
    with tempfile.TemporaryDirectory(prefix="evalcore-bench-") as name:
        empty, full = Path(name) / "empty", Path(name) / "full"
        for folder in (empty, full):
            folder.mkdir()
        for number in range(DISTRIBUTIONS):
            install(full, number)
        more = f"and {DISTRIBUTIONS} more, {PLUGINS} plugins"
        for title, folder in (("what is installed here", empty), (more, full)):
            figures = measure(folder)
            for key in ("discover", "load"):
                plugins = f", {figures['plugins']:.0f} plugins" if key == "load" else ""
                label = f"plugins.{key}(): {title}{plugins}"
                print(f"{label:<58} {figures[key] * 1000:>8.1f} ms    ≤ {TARGET_MS}")


if __name__ == "__main__":
    main()
