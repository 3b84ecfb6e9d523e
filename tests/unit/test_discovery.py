"""Plugins found by reading files are those that `importlib.metadata` finds; plain bounds mean what packaging says."""

from __future__ import annotations

import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from evalcore import plugins
from evalcore._installed import Entry, entries
from evalcore.plugins import PluginRef


def put(folder: Path, info: str, entry_points: str, about: str = "Name: zoo\nVersion: 1\n") -> None:
    (folder / info).mkdir(parents=True)
    (folder / info / ("METADATA" if info.endswith(".dist-info") else "PKG-INFO")).write_text(about)
    (folder / info / "entry_points.txt").write_text(entry_points)


def as_importlib(path: list[str], group: str) -> list[tuple[str, str, str]]:
    found: dict[str, metadata.Distribution] = {}
    for distribution in metadata.distributions(path=path):
        found.setdefault(distribution.metadata["Name"].lower().replace("-", "_"), distribution)
    return sorted((d.name, e.name, e.value) for d in found.values() for e in d.entry_points if e.group == group)


@pytest.mark.parametrize("group", ["evalcore", "console_scripts", "pytest11"])
def test_what_is_installed_here_is_found_as_importlib_finds_it(group: str) -> None:
    assert sorted((e.distribution, e.name, e.value) for e in entries(group)) == as_importlib(sys.path, group)


def test_requirements_and_version_are_those_of_the_metadata() -> None:
    (bfcl,) = [e for e in entries("evalcore") if e.name == "bfcl"]
    about = metadata.distribution("evalcore-bfcl")
    assert bfcl == Entry("bfcl", "evalcore_bfcl.plugin", about.name, about.version, tuple(about.requires or ()))


@pytest.mark.parametrize(
    "text",
    [
        "[console_scripts]\nx = y:z\n\n[evalcore]\nzoo = zoo.plugin\n",
        "# a comment\n[ evalcore ]\n# zoo = no\nzoo=zoo.plugin\n[other]\nzoo = no\n",
        "[evalcore]\r\nzoo = zoo.plugin\r\n",
        "zoo = of no section\n[evalcore]\nzoo = zoo.plugin\n[evalcore-not]\nno = no\n",
    ],
)
def test_an_entry_points_file_is_read_as_it_may_be_written(tmp_path: Path, text: str) -> None:
    put(tmp_path, "zoo-1.dist-info", text)
    assert entries("evalcore", [str(tmp_path)]) == [Entry("zoo", "zoo.plugin", "zoo", "1", ())]


def test_the_first_distribution_of_a_name_hides_later_ones(tmp_path: Path) -> None:
    put(tmp_path / "a", "ev_zoo-2.dist-info", "[evalcore]\nnew = a\n", "Name: ev-zoo\nVersion: 2\n")
    put(tmp_path / "b", "ev.zoo-1.dist-info", "[evalcore]\nold = b\n", "Name: ev.zoo\nVersion: 1\n")
    path = [str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "a")]
    assert [e.name for e in entries("evalcore", path)] == ["new"]


def test_a_folded_field_an_egg_and_an_archive_are_read(tmp_path: Path) -> None:
    folded = "Name: zoo\nVersion: 1\nRequires-Dist: evalcore-core\n  >=0.1\n\nRequires-Dist: none, this is prose\n"
    put(tmp_path / "a", "zoo-1.dist-info", "[evalcore]\nzoo = z\n", folded)
    put(tmp_path / "b", "pen.egg-info", "[evalcore]\npen = p\n", "Name: pen\nVersion: 3\n")
    (tmp_path / "b" / "pen.egg-info" / "requires.txt").write_text("evalcore-core>=0.1\n\n[extra]\nmore\n")
    with zipfile.ZipFile(tmp_path / "c.whl", "w") as archive:
        archive.writestr("cage-2.dist-info/METADATA", "Metadata-Version: 2.1\nName: cage\nVersion: 2\n")
        archive.writestr("cage-2.dist-info/entry_points.txt", "[evalcore]\ncage = c\n")
    assert entries("evalcore", [str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "c.whl")]) == [
        Entry("zoo", "z", "zoo", "1", ("evalcore-core >=0.1",)),
        Entry("pen", "p", "pen", "3", ("evalcore-core>=0.1",)),
        Entry("cage", "c", "cage", "2", ()),
    ]


def test_what_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    put(tmp_path, "zoo-1.dist-info", "[evalcore]\nzoo = z\n")
    (tmp_path / "bad-1.dist-info").mkdir()
    (tmp_path / "bad-1.dist-info" / "entry_points.txt").write_bytes(b"[evalcore]\n\xff\xfe = z\n")
    (tmp_path / "file-1.dist-info").write_text("a file where a folder should be")
    assert [e.name for e in entries("evalcore", [str(tmp_path), str(tmp_path / "not there")])] == ["zoo"]


def asked(requirement: str) -> bool:
    return plugins._version(PluginRef("zoo", "evalcore-zoo", "1", "zoo", ("attrs", requirement))) is None


versions = st.lists(st.integers(0, 3), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))
bounds = st.lists(st.tuples(st.sampled_from([">=", ">", "<", "<=", "==", "~=", "!="]), versions), max_size=3)


@given(bounds=bounds, version=versions, name=st.sampled_from(["evalcore-core", "evalcore_core", "Evalcore.Core"]))
def test_a_plugins_bounds_on_the_core_mean_what_they_mean_to_pip(
    bounds: list[tuple[str, str]], version: str, name: str
) -> None:
    kept = [(sign, v) for sign, v in bounds if sign != "~=" or "." in v]
    text = name + ",".join(f"{sign}{v}" for sign, v in kept)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plugins, "_core_version", lambda: version)
        assert asked(text) is Requirement(text).specifier.contains(version, prereleases=True)
        if plugins._plainly_met(text):
            assert Requirement(text).specifier.contains(version, prereleases=True)


@pytest.mark.parametrize("text", ["evalcore-core (>=0.1,<1)", "evalcore_core>=0.1", "evalcore-core-extras>=99"])
def test_bounds_that_hold_pass(text: str) -> None:
    assert asked(text)


def test_a_requirement_that_nobody_can_read_is_told() -> None:
    found = plugins._version(PluginRef("zoo", "evalcore-zoo", "1", "zoo", ("evalcore-core >= what",)))
    assert found is not None and "unreadable requirement 'evalcore-core >= what'" in found.message
