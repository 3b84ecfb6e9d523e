"""The loop inside a toolkit's own interpreter: `python worker_main.py WORKER_FILE`. Standard library only.

It must run on every Python that an upstream asks for, and is started by path: it never sees evalcore. WORKER_FILE
defines `handlers() -> dict[str, Callable]` and perhaps `stamp() -> dict`; a handler takes `(params)` or
`(params, call)`, where `call(method, params)` asks the host and waits. A handler named `session.close` is told
`{"session": …}` when a session ends; `call.session` says which one a request belongs to.

One JSON object per line each way; requests are answered in order.

    host → worker   {"id": 7, "method": "grade", "params": {…}, "session": "3"}
    worker → host   {"id": 7, "ok": …}  or  {"id": 7, "fault": {"type": …, "text": …, "traceback": …}}
    worker → host   {"id": 7, "call": "model.complete", "params": {…}}, before its answer
    host → worker   {"answer": …}  or  {"error": "…"}, to the one call that waits

The first line is {"ready": {"methods": […], "stamp": {…}, "python": "3.12.1"}} or {"broken": "…"}.
"""

from __future__ import annotations

import json
import os
import sys
from collections import deque

MYPY = False
if MYPY:  # typing costs a fifth of a worker's start
    from collections.abc import Callable, Iterator
    from typing import Any

_CHUNK = 1 << 18
_TEXT_LIMIT = 20_000


class CallFailed(BaseException):
    """The host could not serve a call. No Exception, so that upstream's catch-alls cannot turn it into a score."""


class _Pipes:
    """Frames on two descriptors that upstream code cannot reach by printing or by starting programs."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._lines: deque[bytes] = deque()
        self._partial: list[bytes] = []
        self._requests: deque[bytes] = deque()

    def requests(self) -> Iterator[bytes]:
        """Requests in order, until the host closes the pipe."""
        while True:
            line = self._requests.popleft() if self._requests else self._line()
            if line is None:
                return
            yield line

    def answer(self) -> dict[str, Any]:
        """The answer to the call that waits; requests that arrive before it are kept."""
        while True:
            line = self._line()
            if line is None:
                os._exit(0)  # nobody is left to answer, or to hear of it
            if not line.startswith(b'{"id":'):
                answer: dict[str, Any] = json.loads(line)
                return answer
            self._requests.append(line)

    def send(self, frame: dict[str, Any]) -> None:
        """Write one frame whole. Raises what json raises, before a byte is written."""
        data = memoryview(json.dumps(frame, separators=(",", ":")).encode("ascii") + b"\n")
        try:
            while data:
                data = data[os.write(self._outgoing, data) :]
        except BrokenPipeError:
            os._exit(0)

    def _line(self) -> bytes | None:
        while not self._lines:
            chunk = os.read(self._incoming, _CHUNK)
            if not chunk:
                return None
            *lines, rest = chunk.split(b"\n")
            if lines:
                lines[0] = b"".join([*self._partial, lines[0]])
                self._partial = []
            self._partial.append(rest)
            self._lines.extend(lines)
        return self._lines.popleft()


class Call:
    """What a handler's second parameter is: ask the host; `session` is the session that the request belongs to."""

    def __init__(self, pipes: _Pipes, request: int, session: str | None) -> None:
        self.session = session
        self._pipes = pipes
        self._request: int | None = request
        self._lock: Any = None

    def __call__(self, method: str, params: dict[str, Any]) -> Any:
        """The host's answer. Callable from the handler's own threads, one at a time; not after the handler returned."""
        with self._one_at_a_time():
            if self._request is None:
                raise RuntimeError(f"{method} was called after its handler had returned")
            self._pipes.send({"id": self._request, "call": method, "params": params})
            answer = self._pipes.answer()
        if "error" in answer:
            raise CallFailed(answer["error"])
        return answer["answer"]

    def close(self) -> None:
        """The handler returned: a thread that it left behind must not read the pipe any more."""
        with self._one_at_a_time():
            self._request = None

    def _one_at_a_time(self) -> Any:
        if self._lock is None:
            import threading

            self._lock = threading.Lock()
        return self._lock


def main(worker: str) -> None:
    """Serve until the host closes the pipe."""
    pipes = _take_pipes()
    _end_with_host()
    try:
        handlers, ready = _load(worker)
        pipes.send({"ready": ready})
    except BaseException:
        pipes.send({"broken": _traceback()})
        raise
    for line in pipes.requests():
        _serve(pipes, handlers, line)


def _serve(pipes: _Pipes, handlers: dict[str, tuple[Callable[..., Any], bool]], line: bytes) -> None:
    number = int(line[6 : line.index(b",")])  # the host writes the id first: known even if the rest is unreadable
    try:
        request = json.loads(line)
        handler, calls_back = handlers[request["method"]]
        if calls_back:
            call = Call(pipes, number, request.get("session"))
            try:
                value = handler(request["params"], call)
            finally:
                call.close()
        else:
            value = handler(request["params"])
        pipes.send({"id": number, "ok": value})
    except BaseException as error:  # noqa: BLE001 - an upstream's sys.exit() too is its answer, not the worker's end
        pipes.send({"id": number, "fault": _fault(error)})


def _fault(error: BaseException) -> dict[str, str]:
    try:
        text = str(error)
    except Exception as second:  # noqa: BLE001 - an upstream's __str__ can raise anything
        text = f"(its text cannot be had: {type(second).__name__})"
    return {"type": type(error).__name__, "text": text[:_TEXT_LIMIT], "traceback": _traceback()}


def _traceback() -> str:
    import traceback

    try:
        return traceback.format_exc()[-_TEXT_LIMIT:]
    except Exception as error:  # noqa: BLE001 - the same
        return f"(no traceback: {type(error).__name__})"


def _load(worker: str) -> tuple[dict[str, tuple[Callable[..., Any], bool]], dict[str, Any]]:
    import importlib.util

    here, folder = (path.rpartition("/")[0] for path in (__file__, worker))
    # The worker's own folder comes last: its modules must not hide one that upstream code means.
    sys.path[:] = [*(path for path in sys.path if path != here), folder]
    spec = importlib.util.spec_from_file_location("evalcore_toolkit_worker", worker)
    if spec is None or spec.loader is None:
        raise ImportError(f"{worker} is no Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    handlers = {name: (handler, _calls_back(handler)) for name, handler in module.handlers().items()}
    stamp = module.stamp() if hasattr(module, "stamp") else {}
    version = ".".join(map(str, sys.version_info[:3]))
    return handlers, {"methods": sorted(handlers), "stamp": stamp, "python": version}


def _calls_back(handler: Callable[..., Any]) -> bool:
    if type(handler) is _Function and not hasattr(handler, "__wrapped__"):  # no import for what is usual
        return handler.__code__.co_argcount - len(handler.__defaults__ or ()) >= 2
    import inspect

    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(handler).parameters.values()
    return sum(p.kind in positional and p.default is p.empty for p in parameters) >= 2


_Function = type(_calls_back)


def _take_pipes() -> _Pipes:
    """Keep the host's pipes to ourselves; what upstream prints goes to standard error, what it reads is empty."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return _Pipes(incoming, outgoing)


def _end_with_host() -> None:
    """On Linux, be killed with the host: a handler that hangs would never see the pipe close."""
    if not sys.platform.startswith("linux"):
        return
    try:
        import ctypes

        ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL
    except (ImportError, OSError, AttributeError):
        return  # a Python without ctypes still ends when the pipe closes


if __name__ == "__main__":
    main(sys.argv.pop(1))  # upstream code that looks at arguments finds none
