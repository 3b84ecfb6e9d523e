"""The model's process, with llama.cpp stood in for: how many threads it takes."""

from __future__ import annotations

import importlib
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
    sys.modules.pop("evalcore_local.worker", None)
    module = importlib.import_module("evalcore_local.worker")
    monkeypatch.setattr(module, "cores", lambda: 4)
    monkeypatch.setattr(module, "_weights", lambda: "weights")
    Server.made.clear()
    Server.asked.clear()
    yield module
    sys.modules.pop("evalcore_local.worker", None)


def test_a_request_is_answered_as_if_it_were_the_first(worker: Any) -> None:
    answer = worker.Model().complete({"body": {"messages": [], "stream": True}})
    assert Server.asked == [{"messages": [], "stream": False, "cache_prompt": False}]
    assert answer == {"choices": []}  # timings differ from run to run: the trace has its own


@pytest.mark.parametrize(
    "shares, threads",
    [
        ([0.99], 4),  # a core of its own: every core
        ([0.5], 1),  # the machine is busy
        ([0.5, 0.99], 4),  # and is no more
        ([0.99, 0.9], 4),
        ([0.99, 0.4], 1),  # others came: back to one
        ([0.99, 0.4, 0.99], 4),  # they left
        ([0.99, 0.4] * 3 + [0.99], 1),  # they come and go: one, for good
    ],
    ids=repr,
)
def test_it_takes_every_core_only_where_nobody_else_wants_them(worker: Any, shares: list[float], threads: int) -> None:
    model = worker.Model()
    for share in shares:
        model._adapt(10.0, 10.0 * share * model.threads)
    assert model.threads == threads
    model.complete({"body": {"messages": []}})
    assert Server.made == [threads]


def test_a_short_answer_says_nothing_about_the_machine(worker: Any) -> None:
    model = worker.Model()
    model._adapt(10.0, 9.9)
    model._adapt(0.01, 0.0)
    assert model.threads == 4


def test_a_model_that_cannot_speak_is_told_when_it_is_loaded(worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "handle_chat_completions", lambda self, body: {"error": {"message": "no"}})
    with pytest.raises(RuntimeError, match="no"):
        worker.Model().load({})


def test_it_is_loaded_once(worker: Any) -> None:
    model = worker.Model()
    model.complete({"body": {"messages": []}})
    model._server = kept = Server(_params(worker))
    asked = len(Server.asked)
    assert model.load({}) == {"threads": model.threads}
    assert model._server is kept and len(Server.asked) == asked


def _params(worker: Any) -> Any:
    params = worker.xllamacpp.CommonParams()
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.api_keys, params.hostnames = ["k" * 64], ["127.0.0.1"]
    return params
