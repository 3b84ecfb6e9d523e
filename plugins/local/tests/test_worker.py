"""The model's process, with llama.cpp stood in for: what it is made with, and what it is asked."""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


class Server:
    """Notes with how many threads it was made, and what it was asked."""

    made: list[int] = []  # noqa: RUF012
    asked: list[Any] = []  # noqa: RUF012

    def __init__(self, params: Any) -> None:
        assert params.cpuparams.n_threads == params.cpuparams_batch.n_threads
        assert len(params.api_keys[0]) == 64 and params.hostnames == ["127.0.0.1"]
        self.made.append(params.cpuparams.n_threads)

    def handle_chat_completions(self, body: Any) -> Any:
        self.asked.append(body)
        return {"choices": [], "timings": {"predicted_ms": 5}}


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Any:
    fake = ModuleType("xllamacpp")
    fake.CommonParams = lambda: SimpleNamespace(  # type: ignore[attr-defined]
        model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace()
    )
    fake.Server = Server  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "xllamacpp", fake)
    monkeypatch.setattr(os, "environ", dict(os.environ))  # importing it sets a variable
    os.environ.pop("GOMP_SPINCOUNT", None)
    sys.modules.pop("evalcore_local.worker", None)
    module = importlib.import_module("evalcore_local.worker")
    monkeypatch.setattr(module, "_weights", lambda: "weights")
    Server.made.clear()
    Server.asked.clear()
    yield module
    sys.modules.pop("evalcore_local.worker", None)


def test_a_request_is_answered_as_if_it_were_the_first(worker: Any) -> None:
    answer = worker.Model().complete({"body": {"messages": [], "stream": True}})
    assert Server.asked == [{"messages": [], "stream": False, "cache_prompt": False}]
    assert answer == {"choices": []}  # timings differ from run to run: the trace has its own


def test_the_same_number_of_threads_whatever_the_machine_is_doing(worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    model = worker.Model()
    for _ in range(3):
        model.complete({"body": {"messages": []}})
    assert Server.made == [2]  # once: the order of sums, hence the answer, depends on it


def test_waiting_threads_sleep_soon(worker: Any) -> None:
    assert os.environ["GOMP_SPINCOUNT"] == worker.SPINS == "2000"


def test_a_model_that_cannot_speak_is_told_when_it_is_loaded(worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "handle_chat_completions", lambda self, body: {"error": {"message": "no"}})
    with pytest.raises(RuntimeError, match="no"):
        worker.Model().load({})


def test_it_is_loaded_once(worker: Any) -> None:
    model = worker.Model()
    model.complete({"body": {"messages": []}})
    model._server = kept = Server(_params(worker))
    asked = len(Server.asked)
    assert model.load({}) == {"threads": 2}
    assert model._server is kept and len(Server.asked) == asked


def _params(worker: Any) -> Any:
    params = worker.xllamacpp.CommonParams()
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.api_keys, params.hostnames = ["k" * 64], ["127.0.0.1"]
    return params
