"""Pages of whole runs, kept in the user's cache, so that a view that has just been started need not make them again.

A page is found by what it was made from: the content of the run's ledgers, the runs beside it, and the code that made
it. It lies in the cache and never in the run, for a run may be a stranger's. What is damaged, or somebody else's, is
made again. The view's token is not in what is kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from evalcore.datasets.cache import cache_root
from evalcore.engine.store import STAMP
from evalcore.errors import ConfigError
from evalcore.report.looks import siblings_of
from evalcore.values.descriptors import MetricInfo
from evalcore.values.stamp import RunStamp

FORMAT: Final = b"evalcore.page/1"
MOST: Final = 100  # pages; the oldest go
DERIVED: Final = frozenset({"scorecard.json", "report.html"})
LIBRARIES: Final = ("altair", "vl-convert-python", "numpy", "scipy")  # that numbers and pictures come from
_MARK: Final = 32  # bytes of what stands for the token


@frozen
class KeptPages:
    """A folder of pages, each named by the digest of what it was made from."""

    folder: Path
    code: str  # a digest of the code that makes pages

    def key(self, path: Path, name: str, stamp: RunStamp) -> str | None:
        """The digest of everything that the page of this run is made from. None where the run cannot be read."""
        made_from = hashlib.sha256(FORMAT)
        try:
            for text in (self.code, name, str(path.resolve()), repr(siblings_of(path, stamp))):
                made_from.update(hashlib.sha256(text.encode("utf-8", "replace")).digest())
            for file in _ledgers(path):
                with file.open("rb") as stream:
                    content = hashlib.file_digest(stream, "sha256").digest()
                made_from.update(hashlib.sha256(file.name.encode("utf-8", "replace")).digest() + content)
        except OSError:
            return None
        return made_from.hexdigest()

    def read(self, key: str, token: str) -> bytes | None:
        """The page with this view's token in it; None where there is none that is whole and this user's own."""
        try:
            descriptor = os.open(self.folder / key, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
            with os.fdopen(descriptor, "rb") as file:
                if os.fstat(file.fileno()).st_uid != os.getuid():
                    return None
                head, _, rest = file.read().partition(b"\n")
        except OSError:
            return None
        mark, _, content = rest.partition(b"\n")
        if head != FORMAT + b" " + hashlib.sha256(rest).hexdigest().encode() or len(mark) != 2 * _MARK:
            return None
        return content.replace(mark, token.encode())

    def write(self, key: str, token: str, page: bytes) -> None:
        """Keep a page. Where that is not possible it is made again another time."""
        mark = secrets.token_hex(_MARK).encode()  # nobody can have written it into a run beforehand
        rest = mark + b"\n" + page.replace(token.encode(), mark)
        part = self.folder / f".{key}.{secrets.token_hex(8)}"
        try:
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(FORMAT + b" " + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest)
            part.replace(self.folder / key)
            self._prune()
        except OSError:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)

    def _prune(self) -> None:
        pages = sorted(self.folder.iterdir(), key=lambda p: p.stat().st_mtime, reverse=True)
        for old in pages[MOST:]:
            old.unlink(missing_ok=True)


def kept_pages(metrics: Sequence[tuple[MetricInfo, Any]] = ()) -> KeptPages | None:
    """The pages in the user's cache. None where it cannot be written to: then none is kept."""
    try:
        folder = cache_root() / "pages"
        folder.mkdir(mode=0o700, exist_ok=True)
    except (ConfigError, OSError):
        return None
    return KeptPages(folder, _code(metrics))


def _code(metrics: Sequence[tuple[MetricInfo, Any]]) -> str:
    """Everything that decides what a page says of a run: versions, the files of our code, and plugins' metrics."""
    packages = {"evalcore", "evalcore_report", *(type(made).__module__.partition(".")[0] for _, made in metrics)}
    parts = [sys.version, *(f"{name} {_version(name)}" for name in LIBRARIES), *(repr(info) for info, _ in metrics)]
    for name in sorted(packages):
        parts += _files(getattr(sys.modules.get(name), "__path__", ()))
    return hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).hexdigest()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _files(roots: Iterable[str]) -> Iterator[str]:
    for root in roots:
        for file in sorted(Path(root).rglob("*")):
            if file.suffix in (".py", ".js", ".css") and file.is_file():
                status = file.stat()
                yield f"{file} {status.st_size} {status.st_mtime_ns}"


def _ledgers(path: Path) -> list[Path]:
    """The files of a run that its report may be read from; what an agent left, in traces and blobs, is not on it."""
    beside = [p for p in path.iterdir() if p.name not in DERIVED and p.suffix in (".jsonl", ".json", ".toml")]
    found = [*beside, *(path / "gradings").glob("*")]
    return sorted(p for p in found if p.is_file() or p.name == STAMP)
