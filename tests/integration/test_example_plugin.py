"""The example plugin as a stranger has it: a wheel in a fresh environment, on a core that knows nothing of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from evalcore.plugins import PluginRef, load
from tests.oracles import ROOT

EXAMPLE = ROOT / "examples" / "plugin"
OURS = ("evalcore", "__editable__", "_editable")


@frozen
class Fresh:
    """A virtual environment that holds the two wheels, and what they depend on."""

    folder: Path

    def run(self, *command: str, cwd: Path, code: int = 0) -> str:
        """What a program of the environment prints."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("EVALCORE_", "PYTHON", "PYTEST"))}
        environ: Mapping[str, str] = {**kept, "EVALCORE_CACHE": str(cwd / "cache"), "COLUMNS": "100"}
        program = self.folder / "bin" / command[0]
        done = subprocess.run(
            [str(program), *command[1:]], cwd=cwd, env=environ, capture_output=True, text=True, timeout=250, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout


def wheel_of(project: Path, folder: Path) -> Path:
    """The wheel of a distribution, built with what is installed: no index is asked."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(project)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


def dependencies(folder: Path) -> None:
    """Everything that is installed here but ourselves, by links: installing it again would take minutes."""
    folder.mkdir()
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if not entry.name.startswith(OURS) and entry.suffix != ".pth":
            (folder / entry.name).symlink_to(entry)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Fresh:
    """Core and example, built as wheels and installed by pip."""
    folder = tmp_path_factory.mktemp("fresh")
    wheels = [wheel_of(ROOT, folder / "core"), wheel_of(EXAMPLE, folder / "zoo")]
    dependencies(folder / "dependencies")
    venv.create(folder / "venv", with_pip=True)
    environment = Fresh(folder / "venv")
    quiet = ("-qq", "--no-deps", "--no-index", "--disable-pip-version-check")
    environment.run("python", "-m", "pip", "install", *quiet, *map(str, wheels), cwd=folder)
    (site,) = environment.folder.glob("lib/*/site-packages")
    (site / "dependencies.pth").write_text(f"{folder / 'dependencies'}\n")
    return environment


pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_it_is_there_once_it_is_installed(fresh: Fresh, tmp_path: Path) -> None:
    listed: Any = json.loads(fresh.run("evalcore", "plugins", "--load", "--json", cwd=tmp_path))
    rows = {row["name"]: (row["distribution"], row["status"]) for row in listed["plugins"]}
    assert rows == {"builtin": ("evalcore-core", "loaded"), "zoo": ("evalcore-zoo", "loaded")}
    place = fresh.run("python", "-c", "import evalcore; print(evalcore.__file__)", cwd=tmp_path)
    assert place.startswith(str(fresh.folder))


def test_both_controls_run_to_a_scorecard(fresh: Fresh, tmp_path: Path) -> None:
    run: Any = json.loads(fresh.run("evalcore", "run", "zoo-feeding", "--yes", "--json", cwd=tmp_path))
    cells = {cell["arm"]["handle"]: cell for cell in run["scorecard"]["cells"]}
    assert cells["oracle"]["outcomes"] == {"pass": 10, "fail": 0, "declined": 0, "fabricated": 0}
    assert cells["noop"]["outcomes"] == {"pass": 0, "fail": 10, "declined": 0, "fabricated": 0}
    assert cells["oracle"]["metrics"]["zoo-waste"]["value"] == 0
    assert cells["oracle"]["dataset"]["name"] == "zoo-feeding" and cells["oracle"]["clusters"] == 7


def test_its_axis_and_its_splits_are_known(fresh: Fresh, tmp_path: Path) -> None:
    words = ("--harness", "noop", "--set", "zoo-notes=diets", "--yes", "--json")
    run: Any = json.loads(fresh.run("evalcore", "run", "zoo-feeding@one", *words, cwd=tmp_path))
    (cell,) = run["scorecard"]["cells"]
    assert cell["tasks"] == 5 and cell["arm"]["axes"]["zoo-notes"] == "diets"
    fresh.run("evalcore", "run", "zoo-feeding@none", "--yes", cwd=tmp_path, code=2)


def test_its_own_tests_pass(fresh: Fresh, tmp_path: Path) -> None:
    copy = tmp_path / "zoo"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("src", "__pycache__"))
    said = fresh.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=copy)
    assert " passed" in said and "failed" not in said


def test_its_wheel_is_whole(fresh: Fresh) -> None:
    (package,) = fresh.folder.glob("lib/*/site-packages/evalcore_zoo")
    names = {path.name for path in package.iterdir() if path.is_file()}
    assert names == {path.name for path in (EXAMPLE / "src" / "evalcore_zoo").iterdir() if path.is_file()}


def test_nothing_of_it_is_installed_beside_us() -> None:
    """Else the tests above would show nothing."""
    assert PluginRef("zoo", "evalcore-zoo", "0.1.0", "evalcore_zoo.plugin") not in load().plugins
