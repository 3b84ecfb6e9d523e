"""The linters see every breach of architecture §4: one of each kind is planted in a copy of the package, and named."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.oracles import ROOT
from tools import check_tree

ORDER = ["cli", "report", "engine", "toolkits", "wires", "datasets", "stats", "values", "errors"]
ALL = [*ORDER, "process", "hookspecs", "contracts", "plugins", "_guard"]


def packages_of(tree: Path) -> None:
    """Make each part of the architecture exist, so that the rules can be tested while some are being written."""
    package = tree / "src" / "evalcore"
    for name in [*ALL, "builtin", "testing"]:
        if not (package / f"{name}.py").exists():
            (package / name).mkdir(exist_ok=True)
            (package / name / "__init__.py").touch()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the checkout's sources and linter settings."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=ignored)
    shutil.copytree(ROOT / "plugins", tmp_path / "plugins", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    packages_of(tmp_path)
    return tmp_path


def plant(tree: Path, package: str, statement: str) -> str:
    """Add a module with one statement to a part of the core, or the statement to a module; its dotted name."""
    module = tree / "src" / "evalcore" / f"{package}.py"
    if module.exists():
        with module.open("a", encoding="utf-8") as file:
            file.write(f"\n{statement}\n")
        return f"evalcore.{package}"
    (tree / "src" / "evalcore" / package / "planted.py").write_text(f"{statement}\n", "utf-8")
    return f"evalcore.{package}.planted"


def lint_imports(tree: Path) -> tuple[int, str]:
    """import-linter's exit code and report for a tree."""
    program = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
    done = subprocess.run(
        [sys.executable, "-c", program, "--no-cache", "--no-logo"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_the_tree_as_it_is_keeps_the_order(tree: Path) -> None:
    code, report = lint_imports(tree)
    assert code == 0, report
    assert "0 broken" in report


UPWARD = [(lower, higher) for higher, lower in pairwise(ORDER)]


@pytest.mark.parametrize(
    "importer, imported, rule",
    [
        *((lower, higher, "imports point down the order") for lower, higher in UPWARD),
        ("errors", "cli", "imports point down the order"),
        ("stats", "process", "imports point down the order"),
        ("process", "wires", "imports point down the order"),
        ("process", "datasets", "imports point down the order"),
        ("datasets", "process", "imports point down the order"),
        ("wires", "plugins", "imports point down the order"),
        ("toolkits", "hookspecs", "imports point down the order"),
        ("stats", "contracts", "imports point down the order"),
        ("_guard", "values", "imports point down the order"),
        *(("hookspecs", part, "import only values and errors") for part in ("engine", "wires", "stats", "process")),
        *(("contracts", part, "import only values and errors") for part in ("engine", "toolkits", "datasets")),
        *(("plugins", part, "import only values and errors") for part in ("engine", "datasets", "stats")),
        ("hookspecs", "contracts", "import neither each other nor plugins"),
        ("contracts", "hookspecs", "import neither each other nor plugins"),
        ("hookspecs", "plugins", "import neither each other nor plugins"),
        ("builtin", "cli", "nothing imports cli"),
        ("testing", "cli", "nothing imports cli"),
        ("engine", "builtin", "nothing imports builtin"),
        ("plugins", "builtin", "nothing imports builtin"),
        ("cli", "builtin", "nothing imports builtin"),
        ("builtin", "testing", "nothing imports testing"),
        ("cli", "testing", "nothing imports testing"),
        ("__init__", "builtin", "nothing imports builtin"),
        ("__init__", "cli", "nothing imports cli"),
    ],
)
def test_a_forbidden_import_is_named_with_its_rule(tree: Path, importer: str, imported: str, rule: str) -> None:
    planted = plant(tree, importer, f"import evalcore.{imported}").removesuffix(".__init__")
    code, report = lint_imports(tree)
    assert code == 1, report
    assert f"{planted} -> evalcore.{imported}" in report
    assert any(rule in line and "BROKEN" in line for line in report.splitlines()), report


def test_an_import_inside_a_function_or_for_types_counts(tree: Path) -> None:
    plant(tree, "values", "def late() -> None:\n    import evalcore.engine")
    plant(tree, "stats", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import evalcore.wires")
    _, report = lint_imports(tree)
    assert "evalcore.values.planted -> evalcore.engine" in report
    assert "evalcore.stats.planted -> evalcore.wires" in report


def test_a_detour_through_the_root_package_counts(tree: Path) -> None:
    plant(tree, "__init__", "import evalcore.engine")
    plant(tree, "wires", "import evalcore")
    _, report = lint_imports(tree)
    assert "evalcore -> evalcore.engine" in report


def test_a_part_that_the_order_does_not_name_is_refused(tree: Path) -> None:
    (tree / "src" / "evalcore" / "helpers.py").touch()
    code, report = lint_imports(tree)
    assert code == 1
    assert "evalcore.helpers" in report


@pytest.mark.parametrize(
    "importer, imported",
    [
        ("cli", "report"),
        ("engine", "plugins"),
        ("plugins", "hookspecs"),
        ("plugins", "contracts"),
        ("hookspecs", "values"),
        ("wires", "contracts"),
        ("toolkits", "process"),
        ("builtin", "engine"),
        ("testing", "builtin"),
    ],
)
def test_what_the_architecture_allows_passes(tree: Path, importer: str, imported: str) -> None:
    planted = plant(tree, importer, f"import evalcore.{imported}")
    _, report = lint_imports(tree)
    assert "Contracts: " in report  # it ran
    assert f"{planted} -> " not in report


# ── what import-linter cannot say ────────────────────────────────────────────────────────────────────────────────────


def breaches(tree: Path) -> list[str]:
    """The import rules of tools/check_tree.py for a tree, as lines."""
    found = [*check_tree.check_core(tree), *check_tree.check_plugins(tree)]
    return [str(breach._replace(path=breach.path.relative_to(tree))) for breach in found]


def breaches_of(tree: Path, planted: str) -> list[str]:
    """Those that name a planted file, whatever else the tree may hold."""
    return [line for line in breaches(tree) if line.startswith(f"{planted}:")]


def test_the_tree_as_it_is_keeps_the_rules_of_the_house(tree: Path) -> None:
    assert breaches(tree) == []


@pytest.mark.parametrize("package", ["values", "stats"])
@pytest.mark.parametrize(
    "statement, named",
    [
        ("import os", "imports os"),
        ("import os.path", "imports os.path"),
        ("from pathlib import Path", "imports pathlib.Path"),
        ("import subprocess", "imports subprocess"),
        ("import socket", "imports socket"),
        ("def late():\n    import asyncio", "imports asyncio"),
        ("from httpx2 import get", "imports httpx2.get"),
        ("from urllib import request", "imports urllib.request"),
        ("text = open('x').read()", "calls open()"),
        ("print('x')", "calls print()"),
    ],
)
def test_values_and_stats_do_no_input_or_output(tree: Path, package: str, statement: str, named: str) -> None:
    plant(tree, package, statement)
    (line,) = breaches_of(tree, f"src/evalcore/{package}/planted.py")
    assert ": pure: " in line
    assert line.endswith(named)


def test_a_path_that_touches_no_file_is_pure(tree: Path) -> None:
    plant(tree, "values", "from pathlib import PurePosixPath")
    assert breaches_of(tree, "src/evalcore/values/planted.py") == []


@pytest.mark.parametrize("package", ["engine", "builtin", "cli", "values"])
@pytest.mark.parametrize("statement", ["import evalcore_bfcl", "from evalcore_zoo.adapter import Zoo"])
def test_the_core_imports_no_plugin(tree: Path, package: str, statement: str) -> None:
    plant(tree, package, statement)
    (line,) = breaches_of(tree, f"src/evalcore/{package}/planted.py")
    assert ":1: core-knows-no-plugin: " in line


@pytest.mark.parametrize(
    "module, statement, rule",
    [
        ("adapter.py", "from evalcore.builtin import bridges", "plugin-uses-hooks"),
        ("adapter.py", "import evalcore.cli.main", "plugin-uses-hooks"),
        ("adapter.py", "from evalcore import testing", "plugin-uses-hooks"),
        ("plugin.py", "from evalcore.engine import trial", "thin-plugin"),
        ("plugin.py", "import numpy", "thin-plugin"),
    ],
)
def test_a_plugin_uses_hooks_and_its_entry_module_is_thin(tree: Path, module: str, statement: str, rule: str) -> None:
    package = tree / "plugins" / "zoo" / "src" / "evalcore_zoo"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "plugin.py").write_text("from __future__ import annotations\nfrom evalcore.hookspecs import hookimpl\n")
    with (package / module).open("a", encoding="utf-8") as file:
        file.write(f"{statement}\n")
    (line,) = breaches_of(tree, f"plugins/zoo/src/evalcore_zoo/{module}")
    assert f": {rule}: " in line


@pytest.mark.parametrize("statement", ["from .animals import NAMES", "from evalcore_zoo import animals"])
def test_an_entry_module_may_import_data_of_its_own_and_answers_for_it(tree: Path, statement: str) -> None:
    package = tree / "plugins" / "zoo" / "src" / "evalcore_zoo"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "plugin.py").write_text(f"{statement}\n")
    (package / "animals.py").write_text("from typing import Final\nNAMES: Final = ('ape',)\n")
    assert breaches_of(tree, "plugins/zoo/src/evalcore_zoo/animals.py") == []
    assert breaches_of(tree, "plugins/zoo/src/evalcore_zoo/plugin.py") == []
    (package / "animals.py").write_text("import numpy\nNAMES = ('ape',)\n")
    (line,) = breaches_of(tree, "plugins/zoo/src/evalcore_zoo/animals.py")
    assert ":1: thin-plugin: an entry module imports numpy" in line
