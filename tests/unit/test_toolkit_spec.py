"""What a toolkit may ask for, and which Python it gets."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from evalcore.errors import ConfigError, ToolkitError
from evalcore.toolkits.environment import worker_file
from evalcore.toolkits.interpreters import current, find_interpreter
from evalcore.values.toolkit import Requirement, ToolkitSpec

HASH = "sha256:" + "0" * 64
THIS = f"=={sys.version_info[0]}.{sys.version_info[1]}.*"


def spec(**changes: Any) -> ToolkitSpec:
    fields: dict[str, Any] = {"name": "demo", "requirements": (), "python": ">=3.10", "worker": "pack.worker"}
    return ToolkitSpec(**(fields | changes))


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "six", "version": "1.17.0", "hashes": ()},
        {"name": "six", "version": "1.17.0", "hashes": ("0" * 64,)},
        {"name": "six", "version": ">=1", "hashes": (HASH,)},
        {"name": "six --index-url x", "version": "1", "hashes": (HASH,)},
        {"name": "six\n", "version": "1", "hashes": (HASH,)},
    ],
    ids=["no hash", "plain hash", "range", "option", "line"],
)
def test_a_requirement_that_pins_nothing_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"no distribution|hashes are"):
        Requirement(**fields)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "Demo"},
        {"name": "a/b"},
        {"worker": "pack/worker.py"},
        {"imports": ("os; print()",)},
        {"files": {"../x": "0" * 64}},
        {"files": {"x.py": "sha256:0"}},
        {"addresses": {"x.py": "https://example.invalid/x.py"}},
        {"files": {"x.py": "0" * 64}, "addresses": {"x.py": "file:///x.py"}},
        {"passes": ("a b",)},
    ],
    ids=str,
)
def test_a_spec_that_cannot_be_meant_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"is no |not 'sha256|toolkit's name|no digest"):
        spec(**change)


def test_a_spec_is_a_value() -> None:
    one = spec(requirements=[Requirement("six", "1.17.0", [HASH])], files={"six.py": "0" * 64})
    assert one == spec(requirements=(Requirement("six", "1.17.0", (HASH,)),), files={"six.py": "0" * 64})
    assert hash(one)
    assert str(one.requirements[0]) == "six==1.17.0"


def test_the_variable_of_a_toolkit_is_its_name_in_capitals() -> None:
    assert spec(name="mcp-universe").variable == "EVALCORE_TOOLKIT_MCP_UNIVERSE"


def test_the_worker_is_found_without_importing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack = tmp_path / "pack"
    pack.mkdir()
    for name in ("__init__.py", "worker.py"):
        (pack / name).write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    assert worker_file(spec()) == pack / "worker.py"
    assert "pack" not in sys.modules
    for absent in ("pack.other", "nowhere.worker", "pack.worker.more"):
        with pytest.raises(ToolkitError, match="is not installed"):
            worker_file(spec(worker=absent))


def find(wanted: str, **environ: str) -> tuple[Path, str]:
    found = asyncio.run(find_interpreter(spec(python=wanted), environ))
    return found.path, found.version


def fake_python(path: Path, version: str) -> Path:
    """A program that says it is a Python of this version."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\necho \'["{version}", "cpython", "linux-x86_64-glibc"]\'\n')
    path.chmod(0o755)
    return path


def test_this_python_serves_where_it_fits() -> None:
    assert find(THIS) == (Path(sys.executable), current().version)


def test_the_newest_fitting_python_on_the_path_serves_past_a_shim_that_fails(tmp_path: Path) -> None:
    shim = tmp_path / "shims" / "python3.98"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    fake_python(tmp_path / "bin" / "python3", "3.98.1")
    path = os.pathsep.join([str(shim.parent), str(tmp_path / "bin"), os.environ["PATH"]])
    assert find(">=3.98,<3.99", PATH=path, HOME=str(tmp_path)) == (tmp_path / "bin" / "python3", "3.98.1")


@pytest.mark.parametrize(
    "place",
    [".pyenv/versions/3.29.4/bin/python3", ".local/share/uv/python/cpython-3.29.4-linux-x86_64-gnu/bin/python3"],
)
def test_pythons_of_pyenv_and_uv_serve(tmp_path: Path, place: str) -> None:
    python = fake_python(tmp_path / place, "3.29.4")
    assert find(">=3.29,<3.30", PATH="/nowhere", HOME=str(tmp_path)) == (python, "3.29.4")


def test_a_python_named_by_the_user_goes_first_and_several_may_be_named(tmp_path: Path) -> None:
    old, new = (fake_python(tmp_path / v, f"3.{v}.0") for v in ("28", "29"))
    named = f"{old}{os.pathsep}{new}"
    assert find(">=3.29", EVALCORE_PYTHON=named) == (new, "3.29.0")
    assert find(">=3.10", EVALCORE_PYTHON=named) == (old, "3.28.0")
    with pytest.raises(ConfigError, match="does not run as a Python"):
        find(">=3.10", EVALCORE_PYTHON=str(tmp_path / "absent"))


def test_without_a_fitting_python_the_range_and_the_remedy_are_named(tmp_path: Path) -> None:
    with pytest.raises(ToolkitError, match=r"needs Python ==3\.28\.\*") as caught:
        find("==3.28.*", PATH=str(tmp_path), HOME=str(tmp_path))
    assert "EVALCORE_PYTHON" in str(caught.value.hint)
    assert caught.value.exit_code == 4
