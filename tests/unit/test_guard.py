"""Start-up refuses a system that evalcore does not support, and a stranger that owns its package."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from evalcore import _guard
from evalcore.errors import ConfigError


@pytest.mark.parametrize(
    "metadata",
    ["evalcore-2.6.1.dist-info", "evalcore-0.1.0.dist-info", "evalcore-1.0-py3.11.egg-info", "evalcore.egg-link"],
)
def test_a_foreign_evalcore_is_refused_by_name_place_and_remedy(tmp_path: Path, metadata: str) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / metadata).mkdir()
    with pytest.raises(ConfigError) as caught:
        _guard.check_owner([str(tmp_path / "nowhere"), str(tmp_path), str(tmp_path / "site")])
    assert metadata in caught.value.message
    assert str(tmp_path / "site") in caught.value.message
    assert caught.value.hint is not None
    assert "pip uninstall evalcore" in caught.value.hint
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "metadata",
    [
        "evalcore_core-0.1.0.dist-info",
        "evalcore-core-0.1.0.egg-info",  # as old tools write the same name
        "evalcore_bfcl-0.1.0.dist-info",
        "evalcore_kit-1.0.dist-info",
        "evalcorey-1.0.dist-info",
        "evalcore-notes-1.txt",
        "evalcore",
    ],
)
def test_our_own_distributions_and_other_names_pass(tmp_path: Path, metadata: str) -> None:
    (tmp_path / metadata).mkdir()
    _guard.check_owner([str(tmp_path)])


def test_an_archive_or_a_missing_folder_on_the_import_path_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "library.zip").touch()
    _guard.check_owner([str(tmp_path / "library.zip"), str(tmp_path / "missing")])


def test_the_current_folder_counts_where_the_import_path_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evalcore-9.dist-info").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError):
        _guard.check_owner([""])


@pytest.mark.parametrize("platform", ["win32", "cygwin"])
def test_windows_is_refused_in_one_line(platform: str) -> None:
    with pytest.raises(ConfigError, match="Windows") as caught:
        _guard.check_platform(platform, (3, 11))
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("version", [(3, 10), (3, 8), (2, 7)])
def test_an_old_python_is_refused_with_both_versions(version: tuple[int, int]) -> None:
    with pytest.raises(ConfigError, match=rf"3\.11 or newer, and this is {version[0]}\.{version[1]}"):
        _guard.check_platform("linux", version)


@pytest.mark.parametrize("platform", ["linux", "darwin"])
@pytest.mark.parametrize("version", [(3, 11), (3, 12), (3, 13), (3, 14)])
def test_linux_and_macos_pass(platform: str, version: tuple[int, int]) -> None:
    _guard.check_platform(platform, version)


def test_this_environment_passes() -> None:
    _guard.check()


def test_the_check_is_cheap_beside_a_thousand_packages(tmp_path: Path) -> None:
    for number in range(1000):
        (tmp_path / f"package_{number}-1.0.dist-info").mkdir()
    path = [*sys.path, str(tmp_path)]
    best = min(_seconds(path) for _ in range(20))
    assert best < 0.003


def _seconds(path: list[str]) -> float:
    start = time.perf_counter()
    _guard.check_owner(path)
    return time.perf_counter() - start


def test_the_guard_itself_imports_neither_package_metadata_nor_pathlib() -> None:
    package = Path(_guard.__file__).parent
    program = (
        "import sys, types\n"
        "package = types.ModuleType('evalcore')\n"  # without what evalcore/__init__.py imports
        f"package.__path__ = [{str(package)!r}]\n"
        "sys.modules['evalcore'] = package\n"
        "import evalcore._guard\n"
        "print(sorted({'importlib.metadata', 'pathlib', 're', 'typing'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-S", "-I", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
