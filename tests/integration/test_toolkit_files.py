"""Upstream files that no wheel brings: fetched one by one, kept only as pinned, and what a worker is told of them."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from evalcore.engine.services import LocalServices
from evalcore.errors import ToolkitError
from evalcore.hookspecs import ToolkitInfo, hookimpl
from evalcore.plugins import PluginRef, load
from evalcore.toolkits.environment import Environment, ensure
from evalcore.toolkits.host import Toolkit
from evalcore.values.toolkit import ToolkitSpec

SLOW_S = 60.0
WORKER = """
import os, pathlib, loose
def handlers():
    beside = pathlib.Path(loose.__file__).parent / "data" / "words.txt"
    seen = [os.environ.get(name) for name in ("DEMO_DATA", "HIDDEN")]
    return {"read": lambda params: [loose.WORD, beside.read_text(), *seen]}
"""
FILES = {"loose.py": b"WORD = 'loose'\n", "data/words.txt": b"alpha"}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[str]:
    """An address at which the files are."""
    for name, content in FILES.items():
        (tmp_path / "shelf" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "shelf" / name).write_bytes(content)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "shelf"))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def spec(tmp_path: Path, shelf: str, monkeypatch: pytest.MonkeyPatch) -> ToolkitSpec:
    """A toolkit of two loose files."""
    (tmp_path / "site" / "loose_pack").mkdir(parents=True)
    (tmp_path / "site" / "loose_pack" / "worker.py").write_text(WORKER)
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setenv("EVALCORE_CACHE", str(tmp_path / "cache"))
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
    addresses = {name: f"{shelf}/{name}" for name in FILES}
    return ToolkitSpec("loose", (), ">=3.10", "loose_pack.worker", digests, addresses=addresses, passes=("DEMO_DATA",))


def build(spec: ToolkitSpec) -> Environment:
    return asyncio.run(ensure(spec, install=True))


def read(spec: ToolkitSpec, environment: Environment) -> Any:
    async def main() -> Any:
        async with Toolkit(spec, environment, 1) as toolkit:
            return await toolkit.request("read", {}, SLOW_S)

    return asyncio.run(main())


def test_files_are_fetched_once_and_found_by_the_worker(spec: ToolkitSpec, tmp_path: Path) -> None:
    environment = build(spec)
    assert environment.source == "pinned"
    assert environment.files() == dict(spec.files)
    assert read(spec, environment)[:2] == ["loose", "alpha"]
    (tmp_path / "shelf" / "loose.py").unlink()
    assert asyncio.run(ensure(spec, install=False)) == environment


def test_a_file_that_is_not_the_pinned_one_is_refused_by_name_and_nothing_is_kept(
    spec: ToolkitSpec, tmp_path: Path
) -> None:
    (tmp_path / "shelf" / "data" / "words.txt").write_bytes(b"beta")
    with pytest.raises(ToolkitError, match=r"data/words\.txt is not the pinned"):
        build(spec)
    assert not list((tmp_path / "cache" / "toolkits").glob("loose-*/files"))


def test_a_fetched_file_that_was_changed_later_is_refused_by_name(spec: ToolkitSpec) -> None:
    environment = build(spec)
    (environment.search_path[0] / "loose.py").write_text("WORD = 'other'\n")
    with pytest.raises(ToolkitError, match=r"loose\.py is not the pinned file"):
        build(spec)


def test_an_address_that_does_not_answer_names_the_way_around_it(spec: ToolkitSpec) -> None:
    nowhere = attrs.evolve(spec, addresses={name: f"http://127.0.0.1:9/{name}" for name in FILES})
    with pytest.raises(ToolkitError, match="cannot download") as raised:
        build(nowhere)
    assert "EVALCORE_TOOLKIT_LOOSE" in str(raised.value.hint)


def test_a_checkout_needs_none_of_the_files(spec: ToolkitSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALCORE_TOOLKIT_LOOSE", str(tmp_path / "shelf"))
    nowhere = attrs.evolve(spec, addresses={name: f"http://127.0.0.1:9/{name}" for name in FILES})
    environment = build(nowhere)
    assert (environment.source, environment.folder) == ("checkout", None)
    assert read(nowhere, environment)[:2] == ["loose", "alpha"]


def test_a_worker_sees_the_variables_that_the_toolkit_passes_and_no_other(
    spec: ToolkitSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMO_DATA", "/somewhere")
    monkeypatch.setenv("HIDDEN", "secret")
    build(spec)
    registry = load(only=())
    provider = hookimpl(specname="evalcore_toolkits")(lambda: [ToolkitInfo("loose", "two files", spec)])
    registry.add(PluginRef("loose", "loose", "1", __name__), SimpleNamespace(evalcore_toolkits=provider))

    async def ask() -> Any:
        services = LocalServices(registry, tmp_path)
        try:
            return await (await services.toolkit("loose")).request("read", {}, SLOW_S)
        finally:
            await services.close()

    assert asyncio.run(ask())[2:] == ["/somewhere", None]
