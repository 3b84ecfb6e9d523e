"""The reference loop: the provider's own message protocol, calls side by side, and an honest account of the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from evalcore.builtin.react import ReactHarness
from evalcore.contracts import Job, ToolResult, text_result
from evalcore.errors import AgentError, InfraError, LimitReached
from evalcore.values.task import Limits, Message, ToolSpec
from evalcore.values.trial import HarnessExit


def wanted(*calls: tuple[Any, Any]) -> list[dict[str, Any]]:
    return [
        {"id": f"c{i}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for i, (name, arguments) in enumerate(calls)
    ]


def calling(*calls: tuple[Any, Any], content: Any = None) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": wanted(*calls)}


class Model:
    """Gives its messages one after another; keeps the requests."""

    role = "agent"
    model = "in-test/m"
    dialect = "openai-chat"
    parameters: dict[str, Any] = {}  # noqa: RUF012
    url = None

    def __init__(self, *messages: Any, finish: str | None = "stop") -> None:
        self._messages = list(messages)
        self._finish = finish
        self.asked: list[Any] = []

    async def complete(self, body: Any) -> Any:
        self.asked.append({**body, "messages": list(body["messages"])})
        message = self._messages.pop(0) if len(self._messages) > 1 else self._messages[0]
        if isinstance(message, BaseException):
            raise message
        return {"choices": [{"message": message, "finish_reason": self._finish}]}


class Tools:
    """A door whose tools answer with their name."""

    url = None

    def __init__(self, bridge: str, *names: str, answer: Callable[[str, Any], Any] | None = None) -> None:
        self.bridge = bridge
        self._names = names
        self._answer = answer
        self.called: list[tuple[str, Any]] = []
        self.refused: list[tuple[str, str]] = []

    def list(self) -> Sequence[ToolSpec]:
        return [ToolSpec(name, f"does {name}", {"type": "object", "title": name}) for name in self._names]

    async def call(self, name: str, arguments: Any) -> ToolResult:
        self.called.append((name, arguments))
        return await self._answer(name, arguments) if self._answer else text_result(f"{name} done")

    def refuse(self, name: str, raw: str, reason: str) -> ToolResult:
        self.refused.append((name, raw))
        return text_result(f"arguments are no JSON: {reason}", error=True)


def run(model: Model | None, *tools: Tools, **options: Any) -> HarnessExit:
    job = Job(
        messages=(Message("system", "be brief"), Message("user", "hello")),
        tools=tools,
        model=model,  # type: ignore[arg-type]
        options=options,
        limits=Limits(),
        workdir=Path,
    )
    return asyncio.run(ReactHarness().run(job))


def answer(text: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **fields}


# ── how it ends ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_answer_ends_it() -> None:
    model = Model(answer("hi"))
    assert run(model) == HarnessExit("hi", evidence={"finish_reason": "stop"})
    assert model.asked[0]["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hello"},
    ]
    assert "tools" not in model.asked[0]  # an empty list is an error to some providers


def test_a_refusal_of_the_model_is_claimed_as_one() -> None:
    ended = run(Model(answer(None, refusal="I would rather not.")))
    assert (ended.claim, ended.answer) == ("refused", "I would rather not.")


@pytest.mark.parametrize(
    "content, text",
    [
        (None, None),
        ("", ""),
        (5, None),
        ({"text": "x"}, None),
        ([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}, 5], "ab"),
        ([{"text": 5}], ""),
        ("\ud800\0", "\ud800\0"),
    ],
    ids=repr,
)
def test_whatever_the_content_is_the_answer_is_its_text(content: Any, text: str | None) -> None:
    assert run(Model(answer(content))).answer == text


@pytest.mark.parametrize("message", [None, "x", [], {}])
def test_a_response_without_a_message_is_an_empty_answer(message: Any) -> None:
    assert run(Model(message)).answer is None


def test_it_stops_after_its_turns_and_says_so() -> None:
    model = Model(calling(("look", "{}")))
    ended = run(model, Tools("toy", "look"), max_turns=3)
    assert (ended.claim, ended.evidence["limit"]) == ("limit", "turns")
    assert len(model.asked) == 3


def test_it_stops_by_itself_where_nobody_said_when() -> None:
    model = Model(calling(("look", "{}")))
    ended = run(model, Tools("toy", "look"))
    assert ended.evidence == {"limit": "turns", "detail": "react stops after 50 turns"}
    assert len(model.asked) == 50


def test_without_a_model_it_cannot_work() -> None:
    with pytest.raises(AgentError, match="needs a model"):
        run(None)


@pytest.mark.parametrize("error", [InfraError("503"), LimitReached("tokens", 5), AgentError("400")], ids=type)
def test_what_the_wires_raise_goes_through(error: Exception) -> None:
    with pytest.raises(type(error)):
        run(Model(error))


# ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_tools_are_offered_as_declared_from_every_door() -> None:
    model = Model(answer("hi"))
    run(model, Tools("one", "look", "take"), Tools("two", "wait"))
    assert [t["function"]["name"] for t in model.asked[0]["tools"]] == ["look", "take", "wait"]
    assert model.asked[0]["tools"][0] == {
        "type": "function",
        "function": {"name": "look", "description": "does look", "parameters": {"type": "object", "title": "look"}},
    }


def test_a_call_is_made_and_its_result_follows_the_message_that_asked() -> None:
    tools, message = Tools("toy", "look"), calling(("look", '{"at": 5}'), content="Let me look.")
    model = Model(message, answer("done"))
    assert run(model, tools).answer == "done"
    assert tools.called == [("look", {"at": 5})]
    assert model.asked[1]["messages"][2:] == [
        message,
        {"role": "tool", "tool_call_id": "c0", "content": "look done"},
    ]


def test_each_call_goes_to_the_door_that_has_it() -> None:
    one, two = Tools("one", "look"), Tools("two", "wait")
    run(Model(calling(("wait", "{}"), ("look", "{}"), ("fly", "{}")), answer("x")), one, two)
    assert [name for name, _ in one.called] == ["look", "fly"]  # who is unknown is told so by the first door
    assert [name for name, _ in two.called] == ["wait"]


def test_calls_of_one_response_run_side_by_side_and_answer_in_their_order() -> None:
    inside, most = 0, 0

    async def slowly(name: str, arguments: Any) -> ToolResult:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0.01 * (4 - arguments["n"]))  # the first called answers last
        inside -= 1
        return text_result(f"answer {arguments['n']}")

    model = Model(calling(*(("look", f'{{"n": {n}}}') for n in (1, 2, 3))), answer("x"))
    run(model, Tools("toy", "look", answer=slowly))
    assert most == 3
    given = model.asked[1]["messages"][3:]
    assert [(m["tool_call_id"], m["content"]) for m in given] == [
        ("c0", "answer 1"),
        ("c1", "answer 2"),
        ("c2", "answer 3"),
    ]


def test_one_call_that_cannot_be_made_stops_those_beside_it() -> None:
    ended: list[str] = []

    async def half(name: str, arguments: Any) -> ToolResult:
        if name == "fail":
            raise InfraError("no server")
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(name)
        return text_result("late")

    with pytest.raises(BaseExceptionGroup) as raised:
        run(Model(calling(("look", "{}"), ("fail", "{}"))), Tools("toy", "look", "fail", answer=half))
    assert raised.group_contains(InfraError, match="no server")
    assert ended == ["look"]


def test_arguments_that_are_no_json_are_refused_and_the_model_is_told() -> None:
    tools = Tools("toy", "look")
    model = Model(calling(("look", '{"at": '), ("look", "{}")), answer("x"))
    run(model, tools)
    assert tools.refused == [("look", '{"at": ')]
    assert tools.called == [("look", {})]
    assert "no JSON" in model.asked[1]["messages"][3]["content"]


@pytest.mark.parametrize("arguments", [[1, 2], 5, None, 10**30, "[1, 2]"], ids=repr)
def test_arguments_that_are_no_object_are_passed_on_as_they_are(arguments: Any) -> None:
    tools = Tools("toy", "look")
    run(Model(calling(("look", arguments)), answer("x")), tools)
    assert tools.called == [("look", [1, 2] if arguments == "[1, 2]" else arguments)]


def test_without_tools_a_call_is_answered_and_reaches_nobody() -> None:
    model = Model(calling(("look", "{}")), answer("x"))
    assert run(model).answer == "x"
    assert model.asked[1]["messages"][3]["content"] == "unknown tool: look"


@pytest.mark.parametrize(
    "identifier", [None, 5, 10**5000, ["c"], {"a": 1}, ""], ids=["null", "int", "huge", "list", "dict", "empty"]
)
def test_a_result_carries_the_id_that_the_model_gave(identifier: Any) -> None:
    message = calling(("look", "{}"))
    message["tool_calls"][0]["id"] = identifier
    model = Model(message, answer("x"))
    run(model, Tools("toy", "look"))
    assert model.asked[1]["messages"][3]["tool_call_id"] == identifier


@pytest.mark.parametrize("calls", [[], "look", {"name": "look"}, 5, True, [5, None, "look"]], ids=repr)
def test_what_is_no_list_of_calls_ends_it_with_the_text(calls: Any) -> None:
    tools = Tools("toy", "look")
    assert run(Model(answer("hi", tool_calls=calls)), tools).answer == "hi"
    assert tools.called == []


def test_an_earlier_message_is_never_changed() -> None:
    """What was asked stays a prefix of what is asked next: so it is stored once, and cached by providers."""
    model = Model(calling(("look", "{}")), calling(("look", "{}")), answer("x"))
    run(model, Tools("toy", "look"))
    first, second, third = (asked["messages"] for asked in model.asked)
    assert second[: len(first)] == first and third[: len(second)] == second
