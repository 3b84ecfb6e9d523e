"""The constrained protocol: the schema admits what can be read back, wherever a tool's schema refers to itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.builtin.react import ReactHarness
from evalcore.builtin.react_constrained import instructions, read_reply, render_call, reply_schema, response_format
from evalcore.contracts import Job
from evalcore.values.task import Call, Limits, Message, ToolSpec
from tests.unit.test_react import Model, Tools, answer, run

WEATHER = ToolSpec(
    "get_weather",
    "Weather of a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
TREE = ToolSpec(
    "plant",
    "Plants a tree.",
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://example.org/plant",
        "type": "object",
        "$defs": {
            "tree": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}
        },
        "properties": {"root": {"$ref": "#/$defs/tree"}, "default": {"$ref": "#/$defs/tree"}},
        "required": ["root"],
        "additionalProperties": False,
    },
)

names = st.text(min_size=1, max_size=12)
leaves = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer"},
        {"type": "boolean"},
        {"enum": ["a", "#/b"]},
        {"const": {"$ref": "#/x"}},
        {},
    ]
)
schemas = st.recursive(
    leaves | st.just({"$ref": "#/$defs/here"}),
    lambda inner: (
        st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(lambda p: {"type": "object", "properties": p}, st.dictionaries(names, inner, max_size=3))
        | st.builds(lambda *of: {"anyOf": list(of)}, inner, inner)
    ),
    max_leaves=8,
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["a", "#/b", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def input_schemas(draw: st.DrawFn) -> dict[str, Any]:
    """Schemas of objects, with references into themselves; names of properties that are keywords, too."""
    properties = draw(
        st.dictionaries(names | st.sampled_from(["$ref", "enum", "default", "properties"]), schemas, max_size=3)
    )
    required = draw(st.sets(st.sampled_from(sorted(properties)))) if properties else set()
    return {
        "type": "object",
        "properties": properties,
        "required": sorted(required),
        "$defs": {"here": draw(leaves)},
    }


def accepts(schema: Any, value: Any) -> bool:
    return jsonschema.Draft202012Validator(schema).is_valid(value)


@given(st.lists(input_schemas(), min_size=1, max_size=3), st.data())
def test_a_call_is_admitted_exactly_where_its_tool_admits_the_arguments(own: list[Any], data: st.DataObject) -> None:
    tools = [ToolSpec(f"t{i}", "", schema) for i, schema in enumerate(own)]
    whole = reply_schema(tools)
    jsonschema.Draft202012Validator.check_schema(whole)
    for tool in tools:
        some = {
            n: data.draw(json_values)
            for n in data.draw(st.sets(st.sampled_from([*tool.input_schema["properties"], "x"])))
        }  # type: ignore[misc,arg-type]
        text = render_call(tool.name, some)  # type: ignore[arg-type]
        assert accepts(whole, json.loads(text)) == accepts(tool.input_schema, some)
        assert read_reply(text).call == Call(tool.name, some)  # type: ignore[arg-type]


@given(json_values | st.fixed_dictionaries({"name": json_values, "arguments": json_values}), st.text())
def test_what_no_branch_admits_is_no_call_and_no_answer(value: Any, text: str) -> None:
    free = ToolSpec("a", "", {"type": "object"})
    reply = read_reply(json.dumps(value))
    if accepts(reply_schema([free]), value):
        assert reply.call == Call("a", value["arguments"]) if "name" in value else reply.answer == value["answer"]
    elif reply.call is not None and reply.call.raw is None:
        assert reply.call.name != "a"  # another tool's name: the wire says that it is unknown
    else:
        assert reply.answer is None
    assert read_reply(text).call is not None or isinstance(json.loads(text)["answer"], str)


def test_references_of_a_tool_lead_to_where_its_schema_now_stands() -> None:
    whole = reply_schema([WEATHER, TREE])
    branch: Any = whole["anyOf"][1]  # type: ignore[index,call-overload]
    arguments = branch["properties"]["arguments"]
    assert arguments["properties"]["root"] == {"$ref": "#/anyOf/1/properties/arguments/$defs/tree"}
    assert arguments["properties"]["default"] == {"$ref": "#/anyOf/1/properties/arguments/$defs/tree"}
    assert "$id" not in arguments and "$schema" not in arguments
    assert accepts(whole, {"name": "plant", "arguments": {"root": {"kids": [{"kids": []}]}}})
    assert not accepts(whole, {"name": "plant", "arguments": {"root": {"kids": [{"kids": 5}]}}})
    assert not accepts(whole, {"name": "get_weather", "arguments": {"root": {}}})
    assert not accepts(whole, {"name": "fly", "arguments": {}})
    assert TREE.input_schema["properties"]["root"] == {"$ref": "#/$defs/tree"}  # type: ignore[index,call-overload]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "It is sunny.",
        '{"name": "get_weather", "arguments": {"city": "Be',
        '{"name": "get_weather"}',
        '{"name": "get_weather", "arguments": "{}"}',
        '{"name": 5, "arguments": {}}',
        '{"name": "get_weather", "arguments": {}, "why": "because"}',
        '{"answer": 5}',
        '{"answer": "a", "name": "get_weather"}',
        "[]",
        "[" * 100_000,
    ],
    ids=lambda text: text[:40],
)
def test_anything_else_is_a_malformed_call_with_its_text(text: str) -> None:
    assert read_reply(text).call == Call("", None, text)


# ── in the loop ──────────────────────────────────────────────────────────────────────────────────────────────────────


def say(value: Any) -> dict[str, Any]:
    return answer(json.dumps(value))


def test_a_call_is_made_its_result_told_and_the_answer_taken_out_of_its_object() -> None:
    tools = Tools("toy", "look", "take")
    model = Model(say({"name": "look", "arguments": {"at": 5}}), say({"answer": "A stone."}))
    ended = run(model, tools, tool_protocol="constrained")
    assert (ended.claim, ended.answer, tools.called) == ("completed", "A stone.", [("look", {"at": 5})])
    first, second = model.asked
    specs = tools.list()
    assert first["response_format"] == response_format(specs) == second["response_format"]
    assert "tools" not in first
    assert first["messages"][0] == {"role": "system", "content": "be brief\n\n" + instructions(specs)}
    assert second["messages"][2] == say({"name": "look", "arguments": {"at": 5}})
    assert "look done" in second["messages"][3]["content"] and second["messages"][3]["role"] == "user"


def test_a_reply_in_free_text_is_refused_and_the_model_is_told() -> None:
    tools = Tools("toy", "look")
    model = Model(answer("I will look."), say({"answer": "x"}))
    assert run(model, tools, tool_protocol="constrained").answer == "x"
    assert tools.refused == [("", "I will look.")]
    assert "no JSON" in model.asked[1]["messages"][3]["content"]


def test_without_tools_text_is_free() -> None:
    model = Model(answer("Five."))
    assert run(model, tool_protocol="constrained").answer == "Five."
    assert "response_format" not in model.asked[0]


def test_a_refusal_of_the_model_is_no_malformed_call() -> None:
    tools = Tools("toy", "look")
    ended = run(Model(answer(None, refusal="No.")), tools, tool_protocol="constrained")
    assert (ended.claim, ended.answer, tools.refused) == ("refused", "No.", [])


def test_the_schema_is_of_the_tools_offered_at_that_moment() -> None:
    class Growing(Tools):
        def list(self) -> Sequence[ToolSpec]:
            return super().list()[: 1 + len(self.called)]

    async def talk(model: Model) -> None:
        job = Job((Message("user", "hello"),), (Growing("toy", "look", "take"),), model, options, Limits(), Path)  # type: ignore[arg-type]
        async with ReactHarness().session(job) as session:
            await session.answer()
            await session.turn((Message("user", "and now?"),), tools_changed=True)

    options = {"tool_protocol": "constrained"}
    model = Model(say({"name": "look", "arguments": {}}), say({"answer": "x"}))
    asyncio.run(talk(model))
    schemas = [asked["response_format"]["json_schema"]["schema"] for asked in model.asked]
    assert [len(schema["anyOf"]) for schema in schemas] == [2, 2, 3]  # one more tool, and each time the answer
    offers = [asked["messages"][0]["content"] for asked in model.asked]
    assert [offer.count("does take") for offer in offers] == [0, 0, 1]
