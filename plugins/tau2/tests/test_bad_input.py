"""What a user who has other data, other code or nothing set up gets to read."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import attrs
import pytest

from evalcore.errors import ConfigError, ToolkitError
from evalcore.hookspecs import ToolkitInfo
from evalcore.toolkits.environment import Environment, ensure
from evalcore.toolkits.host import Toolkit
from evalcore_tau2.requirements import ADDRESSES, CODE, FILES
from evalcore_tau2.worker import tau2_pins
from plugins.tau2.tests.rig import SLOW_S, carry_out, registry, study


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


def start(folder: Path, benchmark: str = "tau2-retail") -> None:
    asyncio.run(carry_out(study((benchmark,), limit=1), folder))


@pytest.fixture
def data(toolkit: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Upstream's data, in a copy that the test may spoil; telecom's 14 MB left out."""
    origin = Path(os.environ["TAU2_DATA_DIR"]) / "tau2"
    copy = tmp_path / "data" / "tau2"
    shutil.copytree(origin, copy, ignore=shutil.ignore_patterns("telecom", "airline"))
    monkeypatch.setenv("TAU2_DATA_DIR", str(tmp_path / "data"))
    return copy


@pytest.mark.parametrize("file", ["domains/retail/db.json", "domains/retail/tasks.json", "domains/retail/policy.md"])
def test_a_changed_file_is_refused_by_name(data: Path, tmp_path: Path, file: str) -> None:
    with (data / file).open("ab") as changed:
        changed.write(b"\n")
    with pytest.raises(ToolkitError) as refused:
        start(tmp_path)
    assert f"{data / file} is not the file of τ²-bench 1.0.1" in refused.value.message
    assert tau2_pins.DATA[file] in str(refused.value.text if hasattr(refused.value, "text") else refused.value)
    assert not (tmp_path / "r").exists()


def test_a_changed_file_of_another_domain_disturbs_nobody(data: Path, tmp_path: Path) -> None:
    with (data / "domains" / "retail" / "db.json").open("ab") as changed:
        changed.write(b"\n")
    start(tmp_path, "tau2-mock")
    assert (tmp_path / "r").exists()


def test_a_missing_domain_is_named_with_the_variable(data: Path, tmp_path: Path) -> None:
    with pytest.raises(ToolkitError) as refused:
        start(tmp_path, "tau2-airline")
    assert "domains/airline" in refused.value.message
    assert "TAU2_DATA_DIR" in str(getattr(refused.value, "text", ""))


def test_a_folder_without_data_is_told_what_it_should_hold(
    toolkit: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAU2_DATA_DIR", str(tmp_path))
    with pytest.raises(ToolkitError, match=r"holds no tau2/domains: set TAU2_DATA_DIR"):
        start(tmp_path)


def test_the_unrelated_project_of_that_name_is_recognised(
    toolkit: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the package index `tau2` is about magnetism."""
    other = tmp_path / "other" / "tau2"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("raise SystemExit('this must not be imported')\n")
    spec = registry().get(ToolkitInfo, "toolkit", "tau2").spec
    (tmp_path / "other" / "tau2" / "config.py").touch()  # a name that both have
    assert "tau2/config.py" in spec.files
    monkeypatch.setenv("EVALCORE_TOOLKIT_TAU2", str(tmp_path / "other"))
    asyncio.run(ensure(spec, install=True))
    with pytest.raises(ToolkitError, match="is not τ²-bench") as refused:
        start(tmp_path)
    assert "unrelated project" in refused.value.message


def test_without_the_toolkit_it_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALCORE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("EVALCORE_TOOLKIT_TAU2")  # a checkout may bring an environment of its own
    with pytest.raises(ToolkitError) as missing:
        start(tmp_path)
    assert missing.value.message == "toolkit tau2 is not set up here"
    assert missing.value.hint is not None and "evalcore setup tau2" in missing.value.hint


def test_what_cannot_be_fetched_names_the_way_around_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pinned source is upstream's repository; a machine that reaches only a package index needs something else."""
    spec = registry().get(ToolkitInfo, "toolkit", "tau2").spec
    nowhere = attrs.evolve(
        spec, requirements=(), imports=(), addresses=dict.fromkeys(ADDRESSES, "http://127.0.0.1:9/x")
    )
    monkeypatch.setenv("EVALCORE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("EVALCORE_TOOLKIT_TAU2")
    with pytest.raises(ToolkitError, match="cannot download") as offline:
        asyncio.run(ensure(nowhere, install=True))
    assert "EVALCORE_TOOLKIT_TAU2" in str(offline.value.hint)


@pytest.mark.usefixtures("own_code")
@pytest.mark.slow
def test_the_pinned_files_make_a_toolkit(toolkit: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As fetched from the repository, here from a shelf that a checkout and the data make."""
    shelf, checkout = tmp_path / "shelf", Path(str(toolkit.origin))
    shelf.mkdir()
    (shelf / "src").symlink_to(checkout / "src")
    (shelf / "data").symlink_to(Path(os.environ["TAU2_DATA_DIR"]))
    spec = registry().get(ToolkitInfo, "toolkit", "tau2").spec
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(shelf))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here = f"http://127.0.0.1:{server.server_port}/"
        addresses = {name: here + address.partition("/v1.0.1/")[2] for name, address in ADDRESSES.items()}
        monkeypatch.setenv("EVALCORE_CACHE", str(tmp_path / "cache"))
        monkeypatch.delenv("EVALCORE_TOOLKIT_TAU2")
        monkeypatch.delenv("TAU2_DATA_DIR")
        built = asyncio.run(ensure(attrs.evolve(spec, addresses=addresses), install=True))
        server.shutdown()
    assert (built.source, built.files()) == ("pinned", dict(FILES))

    async def served() -> Any:
        async with Toolkit(spec, built, 1) as pinned:
            return await pinned.request("tasks", {"domain": "telecom", "split": "small"}, SLOW_S)

    assert len(asyncio.run(served())["tasks"]) == 20


def test_every_file_has_an_address_in_the_tagged_source() -> None:
    assert ADDRESSES.keys() == FILES.keys()
    assert ADDRESSES["tau2/orchestrator/orchestrator.py"].endswith("/v1.0.1/src/tau2/orchestrator/orchestrator.py")
    assert ADDRESSES["data/tau2/domains/retail/db.json"].endswith("/v1.0.1/data/tau2/domains/retail/db.json")


@pytest.mark.usefixtures("own_code")
def test_upstreams_own_code_is_the_pinned_one(toolkit: Environment) -> None:
    """Where a checkout is at hand: the digests here are those of its files."""
    assert {name: digest for name, digest in toolkit.files().items() if name in CODE} == CODE


def test_a_model_that_cannot_hold_the_policy_is_refused_before_anything_runs(
    toolkit: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    arms = {"small": {"harness": "react", "model": "openai/gpt-3.5-turbo"}}
    with pytest.raises(ConfigError, match="context of a model is too small") as small:
        asyncio.run(carry_out(study(("tau2-retail",), arms, limit=1), tmp_path))
    assert "it needs 32,000 tokens, the model holds 16,385" in str(small.value.faults[0])
    assert not (tmp_path / "r").exists()


def test_a_split_that_is_not_there_is_told_what_there_is(toolkit: Environment, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as wrong:
        start(tmp_path, "tau2-retail@hard")
    assert "base, train, test" in str(wrong.value.faults[0])
