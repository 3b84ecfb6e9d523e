"""One worker process as the host sees it: requests in a row, answers in the same order, and a clock on the first."""

from __future__ import annotations

import asyncio
import contextvars
import json
import math
import re
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast

import attrs

from evalcore.errors import ToolkitError
from evalcore.process.running import Running, spawn
from evalcore.toolkits.faults import LossReason, WorkerFault, WorkerLost
from evalcore.values.json import JSONObject, JSONValue

Callback: TypeAlias = Callable[[str, JSONObject], Awaitable[JSONValue]]

_DEPTH = 8  # requests in the pipe at once, so that a worker never waits for this process …
_FAST_S = 0.005  # … but only behind quick ones: nothing should be stuck behind a slow one while another worker is idle
_LARGEST_REPLY = 1 << 30
_LAST_WORDS = 8192
_GRACE_S = 1.0
_LAST_LOOK_S = 0.05
_ID = re.compile(rb'\{"id":(\d+),')
_encode = json.JSONEncoder(separators=(",", ":")).encode


@attrs.frozen
class Command:
    """How a toolkit's workers are started. `start_timeout_s` in seconds, up to the first frame."""

    toolkit: str
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    start_timeout_s: float


class Request:
    """One request on its way. `timeout_s` bounds the worker's own time, without queue and callbacks."""

    __slots__ = ("context", "failure", "future", "line", "method", "number", "on_callback", "session", "timeout_s")

    def __init__(
        self,
        number: int,
        method: str,
        params: JSONObject,
        timeout_s: float,
        *,
        session: str | None,
        on_callback: Callback | None,
    ) -> None:
        self.number = number
        self.method = method
        self.timeout_s = timeout_s
        self.session = session
        self.on_callback = on_callback
        self.failure: BaseException | None = None
        frame = {"id": number, "method": method, "params": params}
        if session is not None:
            frame["session"] = session
        self.line = _encode(frame).encode("ascii") + b"\n"
        self.future: asyncio.Future[JSONValue] = asyncio.get_running_loop().create_future()
        # A callback runs in the context of the trial that asked.
        self.context = contextvars.copy_context() if on_callback else None

    def fail(self, error: BaseException) -> None:
        """Answer with an error, unless nobody waits any more."""
        if not self.future.done():
            self.future.set_exception(error)


class Worker:
    """A process and what was asked of it. `on_room` is called when it can take more, `on_end` once, when it is gone,
    with the requests that it had not begun and that any other worker may answer.
    """

    def __init__(
        self, command: Command, on_room: Callable[[], None], on_end: Callable[[Worker, list[Request]], None]
    ) -> None:
        self.in_flight: deque[Request] = deque()
        self.sessions = 0
        self.ready_frame: JSONObject = {}
        self.lost: tuple[LossReason, str] | None = None
        self._loop = asyncio.get_running_loop()
        self._command = command
        self._on_room = on_room
        self._on_end = on_end
        self._waiting: deque[Request] = deque()
        self._greeting: asyncio.Future[None] = self._loop.create_future()
        self._greeting.add_done_callback(_seen)
        self._doom: asyncio.Future[None] = self._loop.create_future()
        self._leaving = False
        self._running: Running | None = None
        self._partial: list[bytes] = []
        self._partial_size = 0
        self._last_words = b""
        self._average_s = math.inf
        self._began = 0.0
        self._deadline = math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._call: asyncio.Task[None] | None = None
        self._life = self._loop.create_task(self._live())

    @property
    def pid(self) -> int | None:
        """The process id, once there is one."""
        return self._running.pid if self._running else None

    @property
    def starting(self) -> bool:
        """Whether it has not said yet that it is ready."""
        return not self._greeting.done() and self.lost is None

    def has_room(self) -> bool:
        """Whether one more request would not have to wait for long."""
        if self._leaving or self.lost is not None or not self._greeting.done():
            return False
        return len(self.in_flight) < (_DEPTH if self._average_s < _FAST_S else 1)

    async def ready(self) -> None:
        """Wait for it to be ready. Raises WorkerLost if it never gets there."""
        await asyncio.shield(self._greeting)

    def submit(self, request: Request) -> None:
        """Take a request of one of its sessions, which no other worker can answer."""
        if self.lost is not None:
            request.fail(self._loss(request, "died", "the session's worker is gone"))
        elif self.has_room() and not self._waiting:
            self.send(request)
        else:
            self._waiting.append(request)

    def send(self, request: Request) -> None:
        """Write a request to the pipe."""
        assert self._running is not None
        self.in_flight.append(request)
        if len(self.in_flight) == 1:
            self._begin(request)
        self._running.write(request.line)

    async def end(self, reason: LossReason, message: str) -> None:
        """Kill it with all it started; what it was asked fails with `reason`. Idempotent."""
        self._condemn(reason, message)
        await asyncio.wait({self._life})

    # ── its life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _live(self) -> None:
        """Start it, wait for its end or for the decision to end it, and tell everyone; runs once per worker."""
        command = self._command
        try:
            running = self._running = await spawn(
                command.argv, cwd=command.cwd, env=command.env, on_stdout=self._feed, on_stderr=self._keep_last_words
            )
            exited = asyncio.ensure_future(running.wait())
            if not await _first_of(exited, self._doom, self._greeting, timeout_s=command.start_timeout_s):
                self._condemn("start", f"its worker was not ready after {command.start_timeout_s:g} s")
            await _first_of(exited, self._doom)
            self._leaving = True
            if self.lost is None:
                await running.kill_tree(_GRACE_S)  # a child that it forked holds the pipe open
                await running.drained(1.0)  # until then an answer may be on its way
                died: LossReason = "died" if self._greeting.done() else "start"
                self._condemn(died, f"its worker {'died' if died == 'died' else 'cannot start'} ({self._epitaph()})")
        except Exception as error:  # noqa: BLE001 - whatever it was, nobody may wait for this worker for ever
            self._condemn("died" if self._greeting.done() else "start", str(error))
        finally:
            if self._running:
                await self._running.close(_GRACE_S)
            self._finish()

    def _condemn(self, reason: LossReason, message: str) -> None:
        """Decide that it has to go; the first reason counts."""
        if self.lost is None:
            self.lost = (reason, message)
            self._deadline = math.inf
            self._doom.set_result(None)

    def _finish(self) -> None:
        reason, message = self.lost or ("died", "its worker ended")
        if self._timer:
            self._timer.cancel()
        if self._call:
            self._call.cancel()
        error = WorkerLost(f"toolkit {self._command.toolkit}: {message}", reason=reason)
        if not self._greeting.done():
            self._greeting.set_exception(error)
        unbegun: list[Request] = []
        for position, request in enumerate((*self.in_flight, *self._waiting)):
            if position == 0 and self.in_flight:
                request.fail(request.failure or self._loss(request, reason, message))
            elif request.session is not None or reason == "closed":
                request.fail(self._loss(request, "closed" if reason == "closed" else "died", message))
            elif not request.future.done():
                unbegun.append(request)
        self.in_flight.clear()
        self._waiting.clear()
        self._on_end(self, unbegun)

    def _loss(self, request: Request, reason: LossReason, message: str) -> WorkerLost:
        text = f"toolkit {self._command.toolkit}: {request.method} is unanswered: {message}"
        return WorkerLost(text, reason=reason)

    def _epitaph(self) -> str:
        ended = self._running.exit if self._running else None
        how = f"signal {ended.signal}" if ended and ended.signal else f"exit code {ended.exit_code if ended else '?'}"
        lines = [line.strip() for line in self._last_words.decode(errors="replace").splitlines() if line.strip()]
        return f"{how}: {lines[-1][:300]}" if lines else how

    def _keep_last_words(self, data: bytes) -> None:
        self._last_words = (self._last_words + data)[-_LAST_WORDS:]

    # ── its clock ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, request: Request) -> None:
        self._began = self._loop.time()
        self._arm(self._began + request.timeout_s)

    def _arm(self, deadline: float) -> None:
        """One timer serves many requests: it is moved only when it would come too late."""
        self._deadline = deadline
        if self._timer is None or self._timer.when() > deadline:
            if self._timer:
                self._timer.cancel()
            self._timer = self._loop.call_at(deadline, self._expire)

    def _expire(self, suspect: Request | None = None) -> None:
        self._timer = None
        if self._deadline == math.inf:
            return
        request = self.in_flight[0]
        if self._loop.time() < self._deadline:
            self._arm(self._deadline)
        elif request is not suspect:
            # If it was this process that stood still, the answer lies in the pipe and is read first.
            self._timer = self._loop.call_later(_LAST_LOOK_S, self._expire, request)
        else:
            self._hung(request)

    def _hung(self, request: Request) -> None:
        self._condemn("hung", f"its worker hung in {request.method} for {request.timeout_s:g} s and was ended")

    # ── its answers ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _feed(self, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = b"".join((*self._partial, lines[0]))
            self._partial.clear()
            self._partial_size = 0
        if rest:
            self._partial.append(rest)
            self._partial_size += len(rest)
        for line in lines:
            if self.lost is not None:
                return
            self._receive(line)
        if self._partial_size > _LARGEST_REPLY:
            self._partial.clear()
            self._condemn("died", f"its worker's answer was over {_LARGEST_REPLY >> 20} MiB, and it was ended")

    def _receive(self, line: bytes) -> None:
        if not self._greeting.done() and not line.startswith((b'{"ready":', b'{"broken":')):
            self._keep_last_words(line + b"\n")  # a .pth file of upstream's may print before our loop begins
            return
        try:
            frame = json.loads(line.decode("ascii"))
            if not self._greeting.done():
                self._greet(frame)
                return
            if frame["id"] != self.in_flight[0].number:
                raise LookupError("answers come in the order of the requests")
            if "call" in frame:
                self._serve_call(self.in_flight[0], frame)
            elif "fault" in frame:
                request = self._answered()
                request.fail(request.failure or self._fault(request, frame["fault"]))
            else:
                self._succeed(self._answered(), frame["ok"])
        except (ValueError, RecursionError, LookupError, TypeError) as error:
            self._garbled(line, error)

    def _greet(self, frame: dict[str, Any]) -> None:
        if "broken" in frame:
            text = str(frame["broken"]).strip()
            self._last_words = text.encode(errors="replace")
            self._condemn(
                "start", f"its worker cannot be loaded: {text.splitlines()[-1][:500] if text else 'no reason'}"
            )
            return
        self.ready_frame = cast(JSONObject, frame["ready"])
        self._greeting.set_result(None)
        self._pump()

    def _answered(self) -> Request:
        """Take the first request out: it is answered. The next one's time begins."""
        request = self.in_flight.popleft()
        took = self._loop.time() - self._began
        self._average_s = took if self._average_s == math.inf else 0.8 * self._average_s + 0.2 * took
        if self.in_flight:
            self._begin(self.in_flight[0])
        else:
            self._deadline = math.inf
        self._pump()
        return request

    def _pump(self) -> None:
        while self._waiting and self.has_room():
            self.send(self._waiting.popleft())
        self._on_room()

    def _succeed(self, request: Request, value: JSONValue) -> None:
        # Upstream code may have swallowed a callback's failure and gone on: what it then says is no result.
        if request.failure is not None:
            request.fail(request.failure)
        elif not request.future.done():
            request.future.set_result(value)

    def _fault(self, request: Request, fault: dict[str, str]) -> WorkerFault:
        return WorkerFault(
            self._command.toolkit,
            request.method,
            type=str(fault["type"]),
            text=str(fault["text"]),
            traceback=str(fault["traceback"]),
        )

    def _garbled(self, line: bytes, error: BaseException) -> None:
        """An answer that json cannot read (an integer beyond Python's limit, too deep) fails its request alone."""
        if isinstance(error, ValueError | RecursionError) and _ID.match(line) and self.in_flight:
            request = self._answered()
            text = f"its answer cannot be read: {error}"
            request.fail(WorkerFault(self._command.toolkit, request.method, type=type(error).__name__, text=text))
        else:
            self._condemn("died", f"its worker wrote something that is no answer, and was ended: {line[:100]!r}")

    # ── its callbacks ────────────────────────────────────────────────────────────────────────────────────────────────

    def _serve_call(self, request: Request, frame: dict[str, Any]) -> None:
        left_s = self._deadline - self._loop.time()
        self._deadline = math.inf
        work = self._answer_call(request, str(frame["call"]), cast(JSONObject, frame["params"]), left_s)
        self._call = self._loop.create_task(work, context=request.context)
        request.future.add_done_callback(self._call_off)

    def _call_off(self, _: asyncio.Future[JSONValue]) -> None:
        """Whoever asked is gone: so is the reason for the callback, and the worker must not wait for it."""
        if self._call:
            self._call.cancel()

    async def _answer_call(self, request: Request, method: str, params: JSONObject, left_s: float) -> None:
        answer = '{"error":"the request was cancelled"}'
        try:
            if request.on_callback is None:
                raise ToolkitError(f"toolkit {self._command.toolkit}: nothing here answers its {method}")
            answer = _encode({"answer": await request.on_callback(method, params)})
        except Exception as error:  # noqa: BLE001 - it is the answer to the request, whole
            request.failure = error
            answer = _encode({"error": f"{type(error).__name__}: {error}"})
        finally:
            request.future.remove_done_callback(self._call_off)
            self._call = None
            if self.lost is None and self._running:
                self._running.write(answer.encode("ascii") + b"\n")
                self._arm(self._loop.time() + left_s)


async def _first_of(*awaited: asyncio.Future[Any], timeout_s: float | None = None) -> bool:
    """Wait for any of them; False if none came in time."""
    done, _ = await asyncio.wait(awaited, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    return bool(done)


def _seen(future: asyncio.Future[None]) -> None:
    """Mark the exception as seen: a worker may fail to start while nobody waits for it."""
    if not future.cancelled():
        future.exception()
