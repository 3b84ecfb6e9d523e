"""A toolkit at work: a pool of workers, requests to any of them, and sessions that stay on one."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import shutil
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias

from evalcore.datasets.cache import sha256_file
from evalcore.process.environment import clean_environment
from evalcore.toolkits import worker_main
from evalcore.toolkits.environment import Environment, worker_file
from evalcore.toolkits.faults import WorkerFault, WorkerLost
from evalcore.toolkits.worker import Callback, Command, Request, Worker
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.toolkit import ToolkitSpec

_SESSION_CLOSE = "session.close"
_SESSION_CLOSE_S = 60.0
_Make: TypeAlias = Callable[[str, JSONObject, float, Callback | None], Request]
_log = logging.getLogger(__name__)


class Toolkit:
    """Upstream code behind up to `workers` processes, started when they are needed. Close it, or use it as a context.

    A request fails with WorkerLost (hung, died), WorkerFault (its handler raised), or what `on_callback` raised. A lost
    worker is replaced; its other requests go on elsewhere, its sessions fail. `variables` are added to the clean
    environment that workers see.
    """

    def __init__(
        self,
        spec: ToolkitSpec,
        environment: Environment,
        workers: int,
        start_timeout_s: float = 60.0,
        *,
        on_callback: Callback | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.spec = spec
        self.environment = environment
        self._limit = max(1, workers)
        self._start_timeout_s = start_timeout_s
        self._on_callback = on_callback
        self._variables = dict(variables or {})
        self._workers: list[Worker] = []
        self._queue: deque[Request] = deque()
        self._numbers = itertools.count(1)
        self._session_numbers = itertools.count(1)
        self._command: Command | None = None
        self._opening = asyncio.Lock()
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def request(
        self, method: str, params: JSONObject, timeout_s: float, *, on_callback: Callback | None = None
    ) -> JSONValue:
        """Ask any worker. `timeout_s` bounds the seconds that the worker itself takes, without queue and callbacks."""
        await self._open()
        request = self._make(None, method, params, timeout_s, on_callback or self._on_callback)
        self._queue.append(request)
        self._dispatch()
        return await request.future

    @asynccontextmanager
    async def session(self, on_callback: Callback | None = None) -> AsyncIterator[Session]:
        """Requests that all go to one worker, in order. At the end its `session.close` handler runs, if it has one."""
        await self._open()
        worker = self._worker_for_session()
        worker.sessions += 1
        name = str(next(self._session_numbers))
        session = Session(name, worker, partial(self._make, name), on_callback or self._on_callback)
        try:
            await worker.ready()
            yield session
        finally:
            worker.sessions -= 1
            session.end()

    async def stamp(self) -> JSONObject:
        """What a run records about this toolkit: environment, worker, and what the worker says about upstream."""
        await self._open()
        worker = next((w for w in self._workers if w.lost is None), None) or self._add_worker()
        await worker.ready()
        digest = await asyncio.to_thread(sha256_file, worker_file(self.spec))
        environment = await asyncio.to_thread(self.environment.stamp)
        return {**environment, "worker": digest, "upstream": worker.ready_frame.get("stamp")}

    async def close(self) -> None:
        """End every worker; what is unanswered fails with WorkerLost. Idempotent."""
        self._closed = True
        message = "the toolkit was closed"
        await asyncio.gather(*(worker.end("closed", message) for worker in list(self._workers)))
        self._fail_queue(WorkerLost(f"toolkit {self.spec.name}: {message}", reason="closed"))
        if self._command is not None:
            await asyncio.to_thread(shutil.rmtree, self._command.cwd, ignore_errors=True)
            self._command = None

    def pids(self) -> list[int]:
        """Process ids of the workers that live."""
        return [worker.pid for worker in self._workers if worker.pid is not None and worker.lost is None]

    # ── the pool ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _open(self) -> None:
        """Once, before the first worker: verify the files, and choose an empty folder to work in."""
        if self._command is None and not self._closed:
            async with self._opening:
                if self._command is None:
                    await asyncio.to_thread(self.environment.verify)
                    self._command = self._make_command()
        if self._closed:
            raise WorkerLost(f"toolkit {self.spec.name} was closed", reason="closed")

    def _make_command(self) -> Command:
        worker = worker_file(self.spec)
        # Not the user's folder: upstream code reads .env files and leaves its own where it runs.
        cwd = Path(tempfile.mkdtemp(prefix=f"evalcore-{self.spec.name}-"))
        argv = (str(self.environment.python), "-s", str(Path(worker_main.__file__)), str(worker))
        return Command(self.spec.name, argv, cwd, self._worker_environment(), self._start_timeout_s)

    def _worker_environment(self) -> dict[str, str]:
        # A fixed hash seed and encoding: the same verdict whoever asks, wherever.
        own = {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1", "PYTHONNOUSERSITE": "1"}
        if self.environment.search_path:
            own["PYTHONPATH"] = os.pathsep.join(map(str, self.environment.search_path))
        return clean_environment({**own, **self._variables})

    def _make(
        self, session: str | None, method: str, params: JSONObject, timeout_s: float, on_callback: Callback | None
    ) -> Request:
        try:
            return Request(next(self._numbers), method, params, timeout_s, session=session, on_callback=on_callback)
        except (TypeError, ValueError, RecursionError) as error:
            text = f"its parameters cannot be sent: {error}"
            raise WorkerFault(self.spec.name, method, type=type(error).__name__, text=text) from error

    def _dispatch(self) -> None:
        while self._queue:
            if self._queue[0].future.done():  # cancelled while it waited
                self._queue.popleft()
                continue
            worker = self._choose()
            if worker is None:
                return
            worker.send(self._queue.popleft())

    def _choose(self) -> Worker | None:
        """The worker with the fewest requests that can take one; where none is idle, another is started."""
        best: Worker | None = None
        starting = 0
        for worker in self._workers:
            starting += worker.starting
            if worker.has_room() and (best is None or len(worker.in_flight) < len(best.in_flight)):
                best = worker
        if (best is None or best.in_flight) and starting < len(self._queue) and self._may_grow():
            self._add_worker()
        return best

    def _worker_for_session(self) -> Worker:
        alive = [worker for worker in self._workers if worker.lost is None]
        best = min(alive, key=lambda worker: worker.sessions, default=None)
        if best is None or (best.sessions and self._may_grow()):
            return self._add_worker()
        return best

    def _may_grow(self) -> bool:
        return not self._closed and len(self._workers) < self._limit

    def _add_worker(self) -> Worker:
        assert self._command is not None
        worker = Worker(self._command, self._dispatch, self._gone)
        self._workers.append(worker)
        return worker

    def _gone(self, worker: Worker, unbegun: list[Request]) -> None:
        self._workers.remove(worker)
        self._queue.extendleft(reversed(unbegun))
        if worker.lost and worker.lost[0] == "start":
            # No endless attempts: those that run go on alone, and without any, whoever waits is told why.
            self._limit = max(1, len(self._workers))
            if not self._workers:
                self._fail_queue(WorkerLost(f"toolkit {self.spec.name}: {worker.lost[1]}", reason="start"))
        if not self._closed:
            self._dispatch()

    def _fail_queue(self, error: WorkerLost) -> None:
        while self._queue:
            self._queue.popleft().fail(WorkerLost(error.message, reason=error.reason))


class Session:
    """A part of a toolkit's work that stays on one worker: a `ToolkitSession`. Once that worker is lost, so is this."""

    def __init__(self, name: str, worker: Worker, make: _Make, on_callback: Callback | None) -> None:
        self.name = name
        self._worker = worker
        self._make = make
        self._on_callback = on_callback

    @property
    def pid(self) -> int | None:
        """The process id of its worker."""
        return self._worker.pid

    async def request(
        self, method: str, params: JSONObject, timeout_s: float, *, on_callback: Callback | None = None
    ) -> JSONValue:
        """Ask its worker; requests are answered in order. Fails as `Toolkit.request` does."""
        request = self._make(method, params, timeout_s, on_callback or self._on_callback)
        self._worker.submit(request)
        return await request.future

    def end(self) -> None:
        """Let the worker forget it. Nobody waits for that, and it fails no trial: its outcome is known by now."""
        methods = self._worker.ready_frame.get("methods")
        if self._worker.lost is None and isinstance(methods, list) and _SESSION_CLOSE in methods:
            request = self._make(_SESSION_CLOSE, {"session": self.name}, _SESSION_CLOSE_S, None)
            request.future.add_done_callback(_note_failure)
            self._worker.submit(request)


def _note_failure(future: asyncio.Future[JSONValue]) -> None:
    error = None if future.cancelled() else future.exception()
    if error is not None:
        _log.warning("%s", error)
