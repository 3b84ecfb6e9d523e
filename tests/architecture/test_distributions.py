"""What a wheel carries: the whole package and its type marker, the licence, the entry points, and nothing else."""

from __future__ import annotations

import email
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.oracles import ROOT


def build(project: Path, folder: Path) -> zipfile.ZipFile:
    """The wheel of a distribution, built with what is installed: no index is asked."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(project)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    return zipfile.ZipFile(wheel)


def metadata(wheel: zipfile.ZipFile) -> email.message.Message:
    """Its METADATA."""
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return email.message_from_bytes(wheel.read(name))


def entry_points(wheel: zipfile.ZipFile) -> str:
    """Its entry_points.txt."""
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt")]
    return wheel.read(name).decode()


def sources(package: Path) -> set[str]:
    """The files of a package, as a wheel names them."""
    files = (path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(package.parent).as_posix() for path in files}


def test_the_core(tmp_path: Path) -> None:
    with build(ROOT, tmp_path) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        assert names == sources(ROOT / "src" / "evalcore")
        assert "evalcore/py.typed" in names
        assert any(name.endswith("/licenses/LICENSE") for name in wheel.namelist())
        assert "evalcore = evalcore.cli.main:main" in entry_points(wheel)
        about = metadata(wheel)
    assert about["Name"] == "evalcore-core"
    assert about["License-Expression"] == "Apache-2.0"
    assert about["Requires-Python"] == ">=3.11"
    assert "Private :: Do Not Upload" in about.get_all("Classifier", [])


@pytest.mark.parametrize("project", sorted(ROOT.glob("plugins/*/pyproject.toml")), ids=lambda path: path.parent.name)
def test_a_plugin(project: Path, tmp_path: Path) -> None:
    plugin = project.parent.name
    package = f"evalcore_{plugin.replace('-', '_')}"
    with build(project.parent, tmp_path) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        assert names == sources(project.parent / "src" / package)
        assert f"{package}/py.typed" in names
        assert entry_points(wheel).split() == ["[evalcore]", plugin, "=", f"{package}.plugin"]
        about = metadata(wheel)
    assert about["Name"] == f"evalcore-{plugin}"
    requirements = about.get_all("Requires-Dist", [])
    assert any(text.startswith("evalcore-core<") and ">=" in text for text in requirements), requirements
    assert "Private :: Do Not Upload" in about.get_all("Classifier", [])
