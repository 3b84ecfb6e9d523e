"""What the provider sends, refuses and gives back; no model is loaded."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from evalcore.contracts import CallContext
from evalcore.errors import ConfigError, EvalcoreError, InfraError
from evalcore.plugins import load
from evalcore.testing import FakeServices
from evalcore.values.descriptors import ModelInfo, ToolkitInfo
from evalcore.values.trial import TrialKey
from evalcore.wires.gateway.refused import RefusedRequest
from evalcore_local.provider import LocalProvider

CONTEXT = CallContext(TrialKey("b", "t", "a", 1), 1, "agent", 1, 7)
ANSWER = {"model": "/a/path", "choices": [{"message": {}}], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}


class Toolkit:
    """A worker that answers what it was made with."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer
        self.asked: list[tuple[str, Any]] = []
        self.inside = self.most = 0

    async def request(self, method: str, params: Any, timeout_s: float) -> Any:
        self.asked.append((method, params))
        self.inside += 1
        self.most = max(self.most, self.inside)
        await asyncio.sleep(0)
        self.inside -= 1
        return self._answer


def provider(toolkit: Toolkit) -> LocalProvider:
    class Services(FakeServices):
        async def toolkit(self, name: str) -> Any:
            assert name == "smollm2-135m"
            return toolkit

    return LocalProvider(Services(), load(only=("local",)).get(ModelInfo, "model provider", "local"))


def ask(answer: Any, body: Any, model: str = "smollm2-135m") -> tuple[Any, Any]:
    """What comes back, and the body that the worker was sent."""
    toolkit = Toolkit(answer)
    back = asyncio.run(provider(toolkit).complete(model, body, CONTEXT))
    ((_, params),) = toolkit.asked
    return back, params["body"]


def test_an_answer_says_what_model_it_is_of_and_that_nobody_bills_it() -> None:
    back, _ = ask(ANSWER, {"messages": []})
    assert back["model"] == "SmolLM2-135M-Instruct Q4_0 (demonstration model)"
    assert back["usage"] == {"prompt_tokens": 3, "completion_tokens": 2, "cost": 0}


@pytest.mark.parametrize(
    "given, bound",
    [
        ({}, 1024),
        ({"max_tokens": 5}, 5),
        ({"max_completion_tokens": 6, "max_tokens": 5}, 6),
        ({"max_output_tokens": 7, "max_tokens": 5}, 7),
    ],
    ids=repr,
)
def test_output_is_always_bounded(given: Any, bound: int) -> None:
    _, sent = ask(ANSWER, {"messages": [], **given})
    assert sent == {"messages": [], "seed": 7, "max_tokens": bound}


def test_a_seed_of_the_agents_own_holds() -> None:
    assert ask(ANSWER, {"messages": [], "seed": 5})[1]["seed"] == 5


def test_tools_are_refused_for_they_would_be_dropped_without_a_word() -> None:
    with pytest.raises(ConfigError, match="cannot call tools by itself") as raised:
        ask(ANSWER, {"messages": [], "tools": [{"type": "function"}]})
    assert "constrained" in (raised.value.hint or "")


def test_another_name_is_told_before_anything_runs() -> None:
    local = provider(Toolkit(ANSWER))
    with pytest.raises(ConfigError, match="no model local/smollm2"):
        local.content("smollm2")
    assert list(local.content("smollm2-135m")) == ["weights", "form"]


@pytest.mark.parametrize(
    "answer, kind",
    [
        ({"error": {"code": 400, "message": "too long", "type": "exceed_context_size_error"}}, RefusedRequest),
        ({"error": {"code": 500, "message": "broke"}}, InfraError),
        ({"error": "broke"}, InfraError),
        ("broke", InfraError),
    ],
)
def test_a_refused_request_is_the_agents_and_all_else_the_machines(answer: Any, kind: type[EvalcoreError]) -> None:
    with pytest.raises(kind):
        ask(answer, {"messages": []})


def test_one_question_at_a_time() -> None:
    toolkit = Toolkit(ANSWER)
    local = provider(toolkit)

    async def crowd() -> None:
        await asyncio.gather(*(local.complete("smollm2-135m", {"messages": []}, CONTEXT) for _ in range(5)))

    asyncio.run(crowd())
    assert (len(toolkit.asked), toolkit.most) == (5, 1)


def test_every_print_of_it_says_what_it_is() -> None:
    registry = load(only=("local",))
    info = registry.get(ModelInfo, "model provider", "local")
    kit = registry.get(ToolkitInfo, "toolkit", "smollm2-135m")
    assert all("demonstration model" in text for text in (info.summary, info.note, kit.summary))
    assert info.free and info.context_tokens == 8_192
