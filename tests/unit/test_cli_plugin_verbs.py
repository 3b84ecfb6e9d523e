"""Whether any plugin may have a verb is told from names and texts of files alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalcore.cli import plugin_verbs

WITH = "def evalcore_commands(): ...\n"
WITHOUT = "def evalcore_adapters(): ...\n"


def install(folder: Path, entry_points: str, **modules: str) -> list[str]:
    """A distribution in a folder; the import path that finds it."""
    info = folder / "some-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "entry_points.txt").write_text(entry_points)
    for name, text in modules.items():
        file = folder / f"{name.replace('__', '/')}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return [str(folder)]


@pytest.mark.parametrize("text, found", [(WITH, True), (WITHOUT, False)])
@pytest.mark.parametrize("module, file", [("entry", "entry"), ("pack.plugin", "pack__plugin")])
def test_a_module_that_names_the_hook_may_have_verbs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, found: bool, module: str, file: str
) -> None:
    path = install(tmp_path, f"[evalcore]\nsome = {module}\n", **{file: text})
    monkeypatch.syspath_prepend(tmp_path)
    assert plugin_verbs.may_exist(path) is found


@pytest.mark.parametrize("text", ["[console_scripts]\nsome = entry:main\n", "", "nonsense", "[evalcore]\n"])
def test_other_entry_points_are_nothing_to_us(tmp_path: Path, text: str) -> None:
    assert not plugin_verbs.may_exist(install(tmp_path, text, entry=WITH))


def test_a_module_that_is_not_found_may_have_verbs(tmp_path: Path) -> None:
    assert plugin_verbs.may_exist(install(tmp_path, "[evalcore]\nsome = nowhere_at_all.plugin\n"))


def test_folders_that_are_none_are_passed_over(tmp_path: Path) -> None:
    assert not plugin_verbs.may_exist([str(tmp_path / "nowhere"), str(tmp_path)])
