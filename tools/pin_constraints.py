"""Resolve every requirement of this checkout and write constraints.txt: `make constraints`.

The versions are those that pip resolves for the oldest supported Python; what only a newer one needs is added with a
marker. Nothing is installed. pip's own settings say where packages come from, and no such place is written down.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13")
OURS = "evalcore-"

HEADER = """\
# Exact versions of everything that evalcore, its plugins and their development need, for Python {first} to {last}.
# Written by `make constraints`, which resolves the ranges in the pyproject.toml files anew; never edited by hand.
# Used as `pip install -c constraints.txt …`; a toolkit's upstream code has pins of its own.
"""


def requirements(root: Path) -> list[str]:
    """What the core with its dev extra and the plugins ask for, and what builds them; ours left out."""
    found: set[str] = set()
    for path in (root / "pyproject.toml", *sorted(root.glob("plugins/*/pyproject.toml"))):
        document = tomllib.loads(path.read_text("utf-8"))
        found.update(document["build-system"]["requires"], document["project"].get("dependencies", ()))
        for extra in document["project"].get("optional-dependencies", {}).values():
            found.update(extra)
    return sorted(requirement for requirement in found if not requirement.startswith(OURS))


def resolve(wanted: list[str], python: str, constraints: dict[str, str]) -> dict[str, str]:
    """What pip would install for one version of Python, by name. The constraints hold what was resolved before."""
    with tempfile.TemporaryDirectory() as folder:
        pins = Path(folder, "pins.txt")
        pins.write_text("".join(f"{name}=={version}\n" for name, version in constraints.items()), "utf-8")
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "-qq"]
        command += ["--python-version", python, "--only-binary=:all:", "--target", folder, "--report", str(report)]
        subprocess.run([*command, "-c", str(pins), *wanted], check=True)
        installs = json.loads(report.read_text("utf-8"))["install"]
    return {entry["metadata"]["name"].lower().replace("_", "-"): entry["metadata"]["version"] for entry in installs}


def main() -> None:
    """Resolve for each version in turn, and write the file only when all of them succeed."""
    wanted = requirements(ROOT)
    pins: dict[str, str] = {}
    markers: dict[str, str] = {}
    for python in PYTHONS:
        for name, version in resolve(wanted, python, pins).items():
            if name not in pins:
                pins[name] = version
                markers[name] = f' ; python_version >= "{python}"' if python != PYTHONS[0] else ""
    lines = [f"{name}=={pins[name]}{markers[name]}\n" for name in sorted(pins)]
    Path(ROOT, "constraints.txt").write_text(
        HEADER.format(first=PYTHONS[0], last=PYTHONS[-1]) + "".join(lines), "utf-8"
    )
    print(f"constraints.txt: {len(pins)} pins")


if __name__ == "__main__":
    main()
