"""The cache, its lock, and downloads that are what was pinned or nothing."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from evalcore.datasets.cache import PinnedFile, cache_root, sha256_file, verify
from evalcore.datasets.download import fetch
from evalcore.datasets.lock import locked
from evalcore.errors import ConfigError, InfraError
from evalcore.process.runner import run

CONTENT = bytes(range(256)) * 4096
SHA256 = hashlib.sha256(CONTENT).hexdigest()
PINNED = PinnedFile("data/tasks.bin", SHA256, len(CONTENT), "https://example.test/tasks.bin")


@pytest.mark.parametrize(
    "environ, expected",
    [
        ({"EVALCORE_CACHE": "{tmp}/own", "XDG_CACHE_HOME": "{tmp}/xdg"}, "own"),
        ({"XDG_CACHE_HOME": "{tmp}/xdg"}, "xdg/evalcore"),
        ({"EVALCORE_CACHE": "", "XDG_CACHE_HOME": "{tmp}/xdg"}, "xdg/evalcore"),
    ],
)
def test_the_cache_is_where_the_environment_says(tmp_path: Path, environ: dict[str, str], expected: str) -> None:
    root = cache_root({name: value.format(tmp=tmp_path) for name, value in environ.items()})
    assert root == tmp_path / expected
    assert root.is_dir()


def test_without_a_word_the_cache_is_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_root({}) == tmp_path / ".cache" / "evalcore"


def test_an_unusable_cache_says_which_variable_to_set(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="file/cache cannot be used") as caught:
        cache_root({"EVALCORE_CACHE": str(tmp_path / "file" / "cache")})
    assert caught.value.hint is not None
    assert "EVALCORE_CACHE" in caught.value.hint


def test_verify_accepts_the_file_and_refuses_another(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(CONTENT)
    assert sha256_file(path) == SHA256
    verify(path, SHA256)
    path.write_bytes(b"other")
    with pytest.raises(InfraError, match=f"expected {SHA256}"):
        verify(path, SHA256)
    with pytest.raises(InfraError, match="cannot read"):
        verify(tmp_path / "missing", SHA256)


@pytest.mark.parametrize("name, digest", [("../x", SHA256), ("/x", SHA256), ("", SHA256), ("x", "ab"), ("x", "A" * 64)])
def test_a_pin_that_cannot_be_right_is_refused(name: str, digest: str) -> None:
    with pytest.raises(ValueError, match=r"relative path|hexadecimal"):
        PinnedFile(name, digest)


def test_a_lock_is_held_by_one_and_says_by_whom(tmp_path: Path) -> None:
    waits: list[str] = []

    async def scenario() -> None:
        async with locked(tmp_path / "thing.lock"):
            with pytest.raises(InfraError, match=r"locked for 0\.2 s by process"):
                async with locked(tmp_path / "thing.lock", 0.2, waits.append):
                    pytest.fail("two hold it")
        async with locked(tmp_path / "thing.lock", 0.2):
            pass

    asyncio.run(scenario())
    assert len(waits) == 1
    assert waits[0].startswith("waiting for thing, held by process")


def test_a_lock_ends_with_a_holder_that_was_killed(tmp_path: Path) -> None:
    code = """
import asyncio, os, pathlib, sys
from evalcore.datasets.lock import locked
async def main():
    async with locked(pathlib.Path(sys.argv[1])):
        os.kill(os.getpid(), 9)
asyncio.run(main())
"""

    async def scenario() -> None:
        argv = [sys.executable, "-c", code, str(tmp_path / "lock")]
        done = await run(argv, timeout_s=60, env={"PYTHONPATH": ":".join(sys.path)})
        assert done.signal == 9, done.stderr
        async with locked(tmp_path / "lock", 0.0):
            pass

    asyncio.run(scenario())


class Server:
    """Serves CONTENT; `cut` breaks each answer off after so many bytes; knows ranges unless `whole`."""

    def __init__(self, *, content: bytes = CONTENT, cut: int | None = None, whole: bool = False) -> None:
        self.content = content
        self.cut = cut
        self.whole = whole
        self.starts: list[int] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        start = int(request.headers.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        self.starts.append(start)
        if self.whole:
            start = 0
        if start >= len(self.content):
            return httpx2.Response(416)
        status = 206 if start else 200
        return httpx2.Response(status, content=self._body(self.content[start:]))

    async def _body(self, content: bytes) -> AsyncIterator[bytes]:
        yield content[: self.cut]
        if self.cut is not None and self.cut < len(content):
            raise httpx2.ReadError("cut")


def download(folder: Path, server: Server, pinned: PinnedFile = PINNED) -> tuple[Path, list[tuple[int, int | None]]]:
    progress: list[tuple[int, int | None]] = []

    async def scenario() -> Path:
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(server)) as client:
            return await fetch(pinned, folder, progress=lambda *step: progress.append(step), client=client)

    return asyncio.run(scenario()), progress


def test_a_file_is_downloaded_once_with_progress(tmp_path: Path) -> None:
    server = Server()
    path, progress = download(tmp_path, server)
    assert path == tmp_path / "data" / "tasks.bin"
    assert path.read_bytes() == CONTENT
    assert progress[-1] == (len(CONTENT), len(CONTENT))
    download(tmp_path, server)
    assert server.starts == [0]


@pytest.mark.parametrize("whole", [False, True])
def test_a_download_that_broke_off_is_gone_on_with(tmp_path: Path, whole: bool) -> None:
    with pytest.raises(InfraError, match="cannot download"):
        download(tmp_path, Server(cut=1000))
    assert not (tmp_path / "data" / "tasks.bin").exists()
    server = Server(whole=whole)
    path, _ = download(tmp_path, server)
    assert server.starts == [1000]
    assert path.read_bytes() == CONTENT


def test_a_part_that_is_complete_needs_no_more(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "tasks.bin.part").write_bytes(CONTENT)
    path, _ = download(tmp_path, Server())
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize("content", [b"changed", CONTENT + b"more" * 1_000_000])
def test_another_file_behind_the_address_is_refused_and_not_kept(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InfraError, match="is not the pinned"):
        download(tmp_path, Server(content=content))
    assert [path.name for path in (tmp_path / "data").iterdir()] == [".tasks.bin.lock"]


def test_a_file_without_address_says_where_to_put_it(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="missing") as caught:
        download(tmp_path, Server(), PinnedFile("x", SHA256))
    assert SHA256 in str(caught.value.hint)


def test_a_file_changed_in_the_cache_is_refused(tmp_path: Path) -> None:
    path, _ = download(tmp_path, Server())
    path.write_bytes(b"changed")
    with pytest.raises(InfraError, match="is not the pinned file"):
        download(tmp_path, Server())
