"""What is committed: short modules, small files, no package host, no path of one machine; and only our own packages."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.oracles import ROOT
from tools import check_tree, pin_constraints

HOST = "py" + "pi.org"
OTHER_HOST = "files.python" + "hosted.org"
MACHINE_PATH = "/" + "work/main/src"
HOME = "/" + "root/.cache"


def test_the_checkout_keeps_the_rules() -> None:
    assert [str(breach) for breach in check_tree.check_files(ROOT)] == []


@pytest.mark.parametrize(
    "name, content, rule",
    [
        ("src/long.py", "x = 1\n" * 601, "long-module"),
        ("data.json", "[" + "0," * 500_000 + "0]", "large-file"),
        ("README.md", f"pip install --index-url https://{HOST}/simple", "package-host"),
        ("uv.lock", f"https://{OTHER_HOST}/packages", "package-host"),
        ("docs/quickstart.md", f"cd {MACHINE_PATH}", "machine-path"),
        ("src/paths.py", f"CACHE = '{HOME}'", "machine-path"),
    ],
)
def test_a_breach_is_named(tmp_path: Path, name: str, content: str, rule: str) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(content, "utf-8")
    (breach,) = check_tree.check_files(tmp_path)
    assert breach.rule == rule
    assert breach.path == tmp_path / name


def test_what_git_ignores_may_be_anything(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("runs/\n")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "attempts.jsonl").write_text("x" * 2_000_000)
    assert list(check_tree.check_files(tmp_path)) == []


def test_a_module_of_600_lines_and_a_path_that_only_looks_like_one_pass(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "module.py").write_text("x = 1\n" * 600)
    (tmp_path / "README.md").write_text("see docs/work/plan.md and https://example.org/root/\n")
    assert list(check_tree.check_files(tmp_path)) == []


def test_the_command_prints_each_breach_and_exits_1(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "notes.md").write_text(f"see {HOST}\n")
    command = [sys.executable, str(ROOT / "tools" / "check_tree.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "notes.md:1: package-host: " in done.stdout


def test_every_installed_distribution_of_ours_comes_from_a_path() -> None:
    """A name of ours on an index would be a stranger's (facts/libraries.md §3.7)."""
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"].lower().replace("_", "-")
        if name == "evalcore" or name.startswith("evalcore-"):
            origin = json.loads(distribution.read_text("direct_url.json") or "{}")
            assert origin.get("url", "").startswith("file:"), f"{name} was installed from an index"


def test_the_constraints_pin_every_requirement_exactly_and_name_no_place() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines() if not line.startswith("#")]
    names = {line.partition("==")[0] for line in lines}
    assert all("==" in line for line in lines)
    assert not [line for line in lines if "://" in line or "@" in line or line.startswith("-")]
    wanted = {canonicalize_name(Requirement(text).name) for text in pin_constraints.requirements(ROOT)}
    assert wanted <= names, f"run `make constraints`: no pin for {sorted(wanted - names)}"
