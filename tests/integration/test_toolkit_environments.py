"""Environments of toolkits: what was pinned or nothing, built once, and the overrides that stand in for it."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import attrs
import pytest

from evalcore.errors import ConfigError, ToolkitError
from evalcore.process.runner import run
from evalcore.toolkits.environment import Environment, ensure
from evalcore.toolkits.host import Toolkit
from evalcore.values.toolkit import Requirement, ToolkitSpec

SLOW_S = 60.0  # for what must happen, on however busy a machine

SIX = Requirement(
    "six", "1.17.0", ("sha256:4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274", "sha256:" + "1" * 64)
)
SIX_FILE = "c51c91f703d3d4b3696c923cb5fec213e05e75d9215393befac7f2fa6a3904df"
SIX_WORKER = "import six\ndef handlers(): return {'version': lambda params: [six.__version__, six.__file__]}"


@pytest.fixture
def pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToolkitSpec:
    """A toolkit that is one small package, with a cache of its own."""
    pack = tmp_path / "site" / "demo_pack"
    pack.mkdir(parents=True)
    (pack / "worker.py").write_text(SIX_WORKER)
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setenv("EVALCORE_CACHE", str(tmp_path / "cache"))
    return ToolkitSpec("demo", (SIX,), ">=3.10", "demo_pack.worker", {"six.py": SIX_FILE}, ("six",))


def build(spec: ToolkitSpec, **options: Any) -> Environment:
    return asyncio.run(ensure(spec, install=True, **options))


def ask_version(spec: ToolkitSpec, environment: Environment) -> list[str]:
    async def main() -> Any:
        async with Toolkit(spec, environment, 1) as toolkit:
            return await toolkit.request("version", {}, SLOW_S)

    version: list[str] = asyncio.run(main())
    return version


@pytest.mark.timeout(600)
def test_a_pinned_package_is_installed_verified_used_and_stamped(pinned: ToolkitSpec, tmp_path: Path) -> None:
    lines: list[str] = []
    environment = build(pinned, progress=lines.append)
    assert environment.folder is not None
    assert environment.folder.parent == tmp_path / "cache" / "toolkits"
    version, file = ask_version(pinned, environment)
    assert version == "1.17.0"
    assert Path(file).is_relative_to(environment.folder)
    assert any("six" in line for line in lines)
    assert environment.stamp() == {
        "name": "demo",
        "source": "pinned",
        "origin": None,
        "python": environment.python_version,
        "packages": ["six==1.17.0"],
        "files": {"six.py": SIX_FILE},
    }
    lines.clear()
    assert asyncio.run(ensure(pinned, install=False, progress=lines.append)) == environment
    assert lines == []


@pytest.mark.timeout(600)
def test_an_upstream_file_that_changed_is_refused_by_name_with_the_remedy(pinned: ToolkitSpec) -> None:
    environment = build(pinned)
    assert environment.folder is not None
    (file,) = environment.folder.glob("lib/*/site-packages/six.py")
    file.write_bytes(file.read_bytes() + b"# changed\n")

    def check(error: ToolkitError) -> None:
        assert SIX_FILE in error.message
        assert hashlib.sha256(file.read_bytes()).hexdigest() in error.message
        assert f"remove {environment.folder} and run `evalcore setup demo`" in str(error.hint)

    with pytest.raises(ToolkitError, match=r"six\.py is not the pinned file") as caught:
        asyncio.run(ensure(pinned, install=False))
    check(caught.value)
    with pytest.raises(ToolkitError, match=r"six\.py is not the pinned file") as caught:
        ask_version(pinned, environment)  # a worker's first start looks again
    check(caught.value)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "change, said",
    [
        (
            {"requirements": (attrs.evolve(SIX, hashes=("sha256:" + "2" * 64,)),)},
            r"download of six==1\.17\.0 is not what was pinned: sha256 4721f",
        ),
        ({"files": {"six.py": "3" * 64}}, r"six\.py is not the pinned file"),
        ({"files": {"seven.py": "3" * 64}}, "it is missing"),
        ({"imports": ("seven",)}, "does not import"),
        ({"requirements": (attrs.evolve(SIX, version="1.99999"),)}, r"no wheel of six==1\.99999 for this Python"),
    ],
    ids=["wheel", "file", "missing file", "import", "version"],
)
def test_what_is_not_as_pinned_is_never_taken_for_ready(pinned: ToolkitSpec, change: dict[str, Any], said: str) -> None:
    other = attrs.evolve(pinned, **change)
    for _ in range(2):
        with pytest.raises(ToolkitError, match=said) as caught:
            build(other)
        assert caught.value.exit_code == 4
        with pytest.raises(ToolkitError, match="is not set up here"):
            asyncio.run(ensure(other, install=False))


def test_what_is_absent_names_the_command_that_brings_it(pinned: ToolkitSpec) -> None:
    with pytest.raises(ToolkitError, match="demo is not set up here") as caught:
        asyncio.run(ensure(pinned, install=False, selector="demo-simple"))
    assert caught.value.hint == "run `evalcore setup demo-simple`"
    assert caught.value.exit_code == 4


def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)


def test_without_a_network_the_command_to_run_later_is_named(
    pinned: ToolkitSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    offline(monkeypatch)
    with pytest.raises(ToolkitError, match="demo cannot be downloaded") as caught:
        build(pinned, selector="demo-simple")
    assert "`evalcore setup demo-simple`" in str(caught.value.hint)
    assert caught.value.exit_code == 4


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_where_evalcore_has_no_pip_the_environment_gets_one(
    pinned: ToolkitSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("evalcore.toolkits.install.metadata", absent)
    environment = build(pinned)
    assert ask_version(pinned, environment)[0] == "1.17.0"
    assert environment.stamp()["packages"] == ["six==1.17.0"]


@pytest.mark.timeout(600)
def test_two_processes_that_build_at_once_build_once(pinned: ToolkitSpec, tmp_path: Path) -> None:
    code = f"""
import asyncio
from evalcore.toolkits.environment import ensure
from evalcore.values.toolkit import *
six = Requirement("six", "1.17.0", {SIX.hashes!r})
spec = ToolkitSpec("demo", (six,), ">=3.10", "demo_pack.worker", {{"six.py": {SIX_FILE!r}}}, ("six",))
print(asyncio.run(ensure(spec, install=True, progress=print)).folder)
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    async def main() -> list[list[str]]:
        runs = [run([sys.executable, "-c", code], timeout_s=10 * SLOW_S, env=env) for _ in range(2)]
        return [done.stdout.decode().splitlines() for done in await asyncio.gather(*runs)]

    outputs = asyncio.run(main())
    assert outputs[0][-1] == outputs[1][-1]
    made = [line for lines in outputs for line in lines if "making an environment" in line]
    assert len(made) == 1


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("damage", ["marker", "python"])
def test_a_half_built_or_broken_environment_is_built_anew(pinned: ToolkitSpec, damage: str) -> None:
    folder = build(pinned).folder
    assert folder is not None
    if damage == "marker":
        (folder / "evalcore-toolkit.json").unlink()
        (folder / "half").touch()
    else:
        (folder / "bin" / "python").unlink()
        (folder / "bin" / "python").symlink_to("/no/such/python")
    with pytest.raises(ToolkitError, match="is not set up"):
        asyncio.run(ensure(pinned, install=False))
    assert ask_version(pinned, build(pinned))[0] == "1.17.0"
    assert not (folder / "half").exists()


@pytest.mark.timeout(600)
def test_a_build_that_is_cancelled_leaves_nothing_that_looks_ready(pinned: ToolkitSpec, tmp_path: Path) -> None:
    async def main() -> None:
        began = asyncio.Event()
        building = asyncio.create_task(ensure(pinned, install=True, progress=lambda _: began.set()))
        await began.wait()
        building.cancel()
        with pytest.raises(asyncio.CancelledError):
            await building

    asyncio.run(main())
    assert [path.suffix for path in (tmp_path / "cache" / "toolkits").iterdir()] == [".lock"]
    assert ask_version(pinned, build(pinned))[0] == "1.17.0"


# ── overrides ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_checkout_goes_before_the_pinned_packages(
    pinned: ToolkitSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "six" / "src"
    source.mkdir(parents=True)
    (source / "six.py").write_text("__version__ = 'mine'")
    monkeypatch.setenv("EVALCORE_TOOLKIT_DEMO", str(tmp_path / "six"))
    with pytest.raises(ToolkitError, match="is not set up"):
        asyncio.run(ensure(pinned, install=False))
    environment = build(pinned)
    assert ask_version(pinned, environment) == ["mine", str(source / "six.py")]
    assert environment.stamp()["source"] == "checkout"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_requirement_takes_the_place_of_the_pinned_one(pinned: ToolkitSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    pinned_folder = build(pinned).folder
    monkeypatch.setenv("EVALCORE_TOOLKIT_DEMO", "six==1.16.0")
    environment = build(pinned)
    assert environment.folder != pinned_folder
    assert ask_version(pinned, environment)[0] == "1.16.0"
    stamp = environment.stamp()
    assert (stamp["source"], stamp["origin"], stamp["packages"]) == ("requirement", "six==1.16.0", ["six==1.16.0"])


@pytest.mark.parametrize("value", ["./no/such/folder", "six ==", "https://user:pass@example.test/x"])
def test_an_override_that_is_nothing_names_its_variable(
    pinned: ToolkitSpec, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("EVALCORE_TOOLKIT_DEMO", value)
    with pytest.raises(ConfigError, match="EVALCORE_TOOLKIT_DEMO") as caught:
        asyncio.run(ensure(pinned, install=False))
    assert "pass@" not in caught.value.message


def test_a_stamp_holds_no_password(pinned: ToolkitSpec, tmp_path: Path) -> None:
    origin = "pack @ git+https://user:token@example.test/repo"
    environment = Environment(pinned, "requirement", Path(sys.executable), "3.11.7", tmp_path, origin)
    assert environment.stamp()["origin"] == "pack @ git+https://***@example.test/repo"
