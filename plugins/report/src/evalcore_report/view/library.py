"""The runs of a directory, as they are on disk now. What has not changed is not read again."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final

from attrs import frozen, mutable

from evalcore.contracts import Metric
from evalcore.engine.services import SystemClock
from evalcore.engine.store import STAMP, read_stamp
from evalcore.errors import ConfigError, EvalcoreError, UnknownNameError
from evalcore.report.load import load_report, no_collector
from evalcore.report.looks import note_peek
from evalcore.report.model import Report
from evalcore.values.descriptors import MetricInfo
from evalcore.values.faults import nearest
from evalcore.values.stamp import RunStamp
from evalcore_report.draw import import_once
from evalcore_report.trials import Trial, read_trials
from evalcore_report.view.kept import KeptPages

ACTIVE_S: Final = 120  # a run that has written within this time, and is not whole, is taken to be running
PATIENCE_S: Final = 1.0  # what a request waits for a page that is being made
LATEST: Final = 5  # runs whose pages are made before somebody asks
REST: Final = 4  # a report of a running study is made again after so many times what making it took


@frozen
class Run:
    """One run: its stamp, how far it is, and a mark that changes with it."""

    name: str
    path: Path
    stamp: RunStamp
    attempts: int  # lines of the ledger: void and repeated attempts too
    planned: int
    changed: float  # seconds since the epoch
    mark: str

    @property
    def running(self) -> bool:
        """Whether it seems to be going on: no lock is taken to find out, for that would stop a run from starting."""
        return self.attempts < self.planned and time.time() - self.changed < ACTIVE_S


@mutable
class _Page:
    """A run's page as it was made the last time, and what makes the next one."""

    made: bytes | None = None
    mark: str = ""
    until: float = 0.0  # monotonic; before it, what was made is good enough
    coming: Future[None] | None = None
    report: Report | None = None
    looked: str = ""  # the mark of the last page that somebody read


class Library:
    """All runs below a directory, or one run. Safe to ask from several threads."""

    def __init__(
        self,
        path: Path,
        make: Callable[[Run, Report], bytes],
        metrics: Sequence[tuple[MetricInfo, Metric]] = (),
        kept: KeptPages | None = None,
        token: str = "",
    ) -> None:
        self.path = path
        self._make = make
        self._alone = (path / STAMP).is_file()
        self._metrics = metrics
        self._kept, self._token = kept, token
        self._stamps: dict[str, tuple[tuple[int, int], RunStamp]] = {}
        self._counts: dict[str, tuple[int, int]] = {}  # run -> (bytes of the ledger read, lines in them)
        self._pages: dict[str, _Page] = {}
        self._trials: dict[str, tuple[str, Mapping[str, Trial]]] = {}
        self._makers = ThreadPoolExecutor(2, "evalcore-view")
        self._lock = threading.RLock()

    def names(self) -> list[str]:
        """The runs by name, the latest first."""
        if self._alone:
            return [self.path.name]
        try:
            found = [p for p in self.path.iterdir() if (p / STAMP).is_file()]
        except OSError as error:
            raise ConfigError(f"cannot read {self.path}: {error.strerror}") from error
        return [p.name for p in sorted(found, key=lambda p: (-(p / STAMP).stat().st_mtime, p.name))]

    def run(self, name: str) -> Run:
        """A run by its name. Raises UnknownNameError, and ConfigError where its stamp cannot be read."""
        names = self.names()
        if name not in names:
            raise UnknownNameError("run", name, nearest=nearest(name, names))
        path = self.path if self._alone else self.path / name
        with self._lock:
            stamp = self._stamp(name, path)
            attempts = self._attempts(name, path)
        planned = sum(b.tasks for b in stamp.benchmarks) * len(stamp.arms) * stamp.repeats
        changed, mark = _mark(path)
        return Run(name, path, stamp, attempts, planned, changed, mark)

    def page(self, run: Run, wait_s: float = PATIENCE_S) -> bytes | None:
        """Its page; None if it is being made and takes longer than `wait_s`: ask again.

        Of a run that goes on it is not much older than what making it takes. Raises what making it raised.
        """
        kept = self._pages.setdefault(run.name, _Page())
        with self._lock:
            stale = kept.made is None or (kept.mark != run.mark and time.monotonic() >= kept.until)
            if stale and kept.coming is None:
                kept.coming = self._makers.submit(self._make_page, run, kept)
            coming = kept.coming
        if kept.made is None and coming is not None:
            try:
                coming.result(wait_s)
            except TimeoutError:
                return None
            finally:
                if coming.done() and kept.made is None:
                    kept.coming = None  # it failed: the next request tries again
        return kept.made

    def mark_of_page(self, run: Run, wait_s: float = 0.0) -> str:
        """The mark of what `page` gives now: changes when a page that is shown is out of date. Empty: none is made."""
        self.page(run, wait_s)
        return self._pages[run.name].mark

    def looked(self, run: Run) -> None:
        """Somebody reads the page: of a study that is not at its end the run keeps a record, once for each page."""
        kept = self._pages[run.name]
        if kept.report is not None and kept.looked != kept.mark:
            kept.looked = kept.mark
            note_peek(run.path, kept.report, SystemClock().now())

    def _make_page(self, run: Run, kept: _Page) -> None:
        began = time.monotonic()
        key = self._key(run)
        made, report = None if key is None or self._kept is None else self._kept.read(key, self._token), None
        if made is None:
            import_once()
            with no_collector():
                report = load_report(run.path, None, self._metrics)
                made = self._make(run, report)
            if self._kept is not None and key is not None and key == self._key(run) and _whole(report):
                self._kept.write(key, self._token, made)
        with self._lock:
            kept.made, kept.mark, kept.report, kept.coming = made, run.mark, report, None
            kept.until = time.monotonic() + REST * (time.monotonic() - began)

    def _key(self, run: Run) -> str | None:
        """Where the page of a whole run is kept. One that goes on is read as it is now."""
        whole = self._kept is not None and run.attempts >= run.planned
        return self._kept.key(run.path, run.name, run.stamp) if self._kept is not None and whole else None

    def kept_ahead(self, most: int = LATEST) -> bool:
        """Whether the pages of the latest runs are all kept, and were just read: then nothing has to be drawn soon."""
        for name in self.names()[:most]:
            try:
                run = self.run(name)
                key = self._key(run)
            except EvalcoreError:
                continue
            made = None if key is None or self._kept is None else self._kept.read(key, self._token)
            if made is None:
                return False
            self._pages[name] = _Page(made, run.mark)
        return True

    def make_now(self, name: str) -> None:
        """Make a run's page and keep it for the next view, if it can be kept. Raises what making it raises."""
        self._make_page(self.run(name), _Page())

    def prepare(self, most: int = LATEST) -> None:
        """Make the pages of the latest runs before somebody asks. What is wrong with one is told to who asks for it."""
        for name in self.names()[:most]:
            with contextlib.suppress(EvalcoreError):
                self.page(self.run(name), 0.0)

    def close(self) -> None:
        """Make no more pages."""
        self._makers.shutdown(wait=False, cancel_futures=True)

    def trials(self, run: Run) -> Mapping[str, Trial]:
        """Every attempt by its id, in the order of the ledger."""
        with self._lock:
            kept = self._trials.get(run.name)
            if kept is None or kept[0] != run.mark:
                found = {t.attempt.id: t for t in read_trials(run.path, run.stamp.grading)}
                kept = self._trials[run.name] = (run.mark, found)
            return kept[1]

    def _stamp(self, name: str, path: Path) -> RunStamp:
        status = (path / STAMP).stat()
        key = (status.st_mtime_ns, status.st_size)
        kept = self._stamps.get(name)
        if kept is None or kept[0] != key:
            kept = self._stamps[name] = (key, read_stamp(path))
        return kept[1]

    def _attempts(self, name: str, path: Path) -> int:
        """Lines of the ledger; only what was added is counted again."""
        ledger = path / "attempts.jsonl"
        read, lines = self._counts.get(name, (0, 0))
        try:
            with ledger.open("rb") as file:
                if file.seek(0, 2) < read:
                    read = lines = 0
                file.seek(read)
                while block := file.read(1 << 20):
                    read, lines = read + len(block), lines + block.count(b"\n")
        except OSError:
            return 0
        self._counts[name] = (read, lines)
        return lines


def _whole(report: Report) -> bool:
    """Whether nothing is missing: reading the page is then no look that would have to be recorded."""
    return not any(cell.not_run for cell in report.cells)


def _mark(path: Path) -> tuple[float, str]:
    """When a run was last written, and a digest of the sizes and times of what was."""
    changed = 0.0
    seen: list[str] = []
    for file in (path / "attempts.jsonl", *sorted((path / "gradings").glob("*.jsonl")), path / STAMP):
        try:
            status = file.stat()
        except OSError:
            continue
        if file.name != STAMP or not seen:
            changed = max(changed, status.st_mtime)
        seen.append(f"{file.name} {status.st_size} {status.st_mtime_ns}")
    return changed, hashlib.sha256("\n".join(seen).encode()).hexdigest()[:16]
