"""A broken plugin is one line that says what and where; it never harms the others."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from evalcore.errors import PluginError, UnknownNameError
from evalcore.hookspecs import AdapterInfo, BridgeInfo, HarnessInfo
from evalcore.plugins import discover, load

Install = Callable[..., None]

GOOD = """
from evalcore.hookspecs import AdapterInfo, hookimpl

@hookimpl
def evalcore_adapters():
    return [AdapterInfo("zoo-feeding", "which animal eats what", "zoo_parts:Zoo")]
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a distribution with one entry point on the path."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def put(name: str, code: str, *, distribution: str = "", requires: str = "evalcore-core>=0.1") -> None:
        module = f"plugin_{(distribution or name).replace('-', '_')}"
        monkeypatch.delitem(sys.modules, module, raising=False)  # of an earlier test
        (tmp_path / f"{module}.py").write_text(code)
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        title = distribution or f"evalcore-{name}"
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {title}\nVersion: 1.0\nRequires-Dist: {requires}\n"
        )
        (info / "entry_points.txt").write_text(f"[evalcore]\n{name} = {module}\n")

    return put


def failures(*only: str) -> list[str]:
    return [str(f) for f in load(only=only).failures]


def test_a_sound_plugin_is_listed_without_its_parts_being_imported(install: Install) -> None:
    install("zoo", GOOD)
    found = load(only=("zoo",))
    assert found.failures == []
    assert found.all(AdapterInfo)["zoo-feeding"].summary == "which animal eats what"
    assert found.plugin_of(AdapterInfo, "zoo-feeding") == "zoo"


def test_the_built_in_parts_come_through_the_same_hooks() -> None:
    found = load(only=())
    assert [p.name for p in found.plugins] == ["builtin"]
    assert {"react", "oracle", "noop"} <= set(found.all(HarnessInfo))
    assert "toolset" in found.all(BridgeInfo)


@pytest.mark.parametrize(
    "code, stage, said",
    [
        ("raise ImportError('no module named heavy')", "import", "ImportError: no module named heavy"),
        ("import sys; sys.exit(3)", "import", "SystemExit: 3"),
        ("def broken(:", "import", "SyntaxError"),
        (GOOD.replace("evalcore_adapters", "evalcore_adaptors"), "validate", "did you mean 'evalcore_adapters'?"),
        (
            GOOD.replace("AdapterInfo(", "str(").replace(', "which animal eats what", "zoo_parts:Zoo"', ""),
            "validate",
            "not str",
        ),
        (GOOD.replace("return", "raise ValueError('boom') #"), "validate", "ValueError: boom"),
        (GOOD.replace("return [", "return 2 * ["), "validate", "'zoo-feeding' is there twice"),
        (GOOD.replace("zoo-feeding", "Zoo Feeding"), "validate", "'name' must match"),
        (GOOD.replace("()", "(surplus)"), "validate", "surplus"),
    ],
    ids=[
        "raises",
        "exits",
        "no Python",
        "unknown hook",
        "wrong type",
        "hook raises",
        "twice",
        "bad name",
        "surplus argument",
    ],
)
def test_a_broken_plugin_says_at_which_stage_and_why(install: Install, code: str, stage: str, said: str) -> None:
    install("zoo", code)
    (line,) = failures("zoo")
    assert f"plugin zoo (evalcore-zoo 1.0) failed at {stage}:" in line
    assert said in line
    assert "\n" not in line


def test_a_broken_plugin_leaves_the_others_alone(install: Install) -> None:
    install("zoo", GOOD)
    install("bad", "raise RuntimeError('no')")
    found = load(only=("zoo", "bad"))
    assert "zoo-feeding" in found.all(AdapterInfo)
    assert [f.ref.name for f in found.failures] == ["bad"]


def test_two_distributions_with_one_name_are_both_named(install: Install) -> None:
    install("zoo", GOOD)
    install("zoo", GOOD, distribution="evalcore-zoo-fork")
    assert failures("zoo") == [
        f"plugin zoo ({name} 1.0) failed at conflict: 2 distributions register 'zoo': evalcore-zoo, evalcore-zoo-fork"
        for name in ("evalcore-zoo", "evalcore-zoo-fork")
    ]


def test_a_plugin_for_a_newer_core_is_not_imported(install: Install) -> None:
    install("zoo", "raise AssertionError('imported')", requires="evalcore-core>=99,<100")
    (line,) = failures("zoo")
    assert "failed at version: needs evalcore-core" in line and "this is evalcore-core 0.1.0" in line


def test_a_benchmark_name_that_is_taken_is_refused_to_the_second(install: Install) -> None:
    install("zoo", GOOD)
    install("zoo2", GOOD)
    (line,) = failures("zoo", "zoo2")
    assert "'zoo-feeding' is already registered by 'zoo'" in line


def test_a_blocked_plugin_is_not_loaded(install: Install) -> None:
    install("zoo", GOOD)
    found = load(blocked=("zoo", "bfcl"))
    assert "zoo" not in [p.name for p in found.plugins]
    assert "zoo" in [r.name for r in discover()]


def test_an_optional_hook_of_a_newer_core_is_passed_over(install: Install) -> None:
    code = GOOD + "\n@hookimpl(optionalhook=True)\ndef evalcore_telepathy():\n    return []\n"
    install("zoo", code)
    assert failures("zoo") == []


def test_an_unknown_name_suggests_the_nearest_and_says_who_has_it(install: Install) -> None:
    install("zoo", GOOD)
    with pytest.raises(UnknownNameError) as unknown:
        load(only=("zoo",)).get(AdapterInfo, "benchmark", "zoo-feedin")
    assert str(unknown.value) == "unknown benchmark 'zoo-feedin'; did you mean 'zoo-feeding'?"
    assert unknown.value.hint == "'zoo-feeding' comes from the plugin 'zoo'"


def test_asking_for_a_part_of_a_broken_plugin_gives_its_failure(install: Install) -> None:
    install("zoo", "raise RuntimeError('no')")
    with pytest.raises(UnknownNameError) as unknown:
        load(only=("zoo",)).get(AdapterInfo, "benchmark", "zoo-feeding")
    assert unknown.value.hint is not None and "RuntimeError: no" in unknown.value.hint


def test_a_factory_that_cannot_be_imported_is_a_plugin_error(install: Install) -> None:
    install("zoo", GOOD)
    found = load(only=("zoo",))
    with pytest.raises(PluginError, match="cannot load zoo_parts:Zoo"):
        found.factory(found.all(AdapterInfo)["zoo-feeding"])
