"""`react` for servers with structured output: each reply is held to a JSON Schema made from the tools on offer.

The system message lists the tools, and each request carries `response_format` of type `json_schema`. The schema admits
one branch per tool, and one for an answer in text:

    {"name": "get_weather", "arguments": {"city": "Bern"}}
    {"answer": "It is sunny in Bern."}

so a server that enforces it (llama.cpp, vLLM, SGLang, Ollama, LM Studio) can give nothing else: no unknown tool, no
missing argument, no broken JSON. One reply makes one call. What comes back is read strictly all the same: a server that
does not enforce the schema, or stops in the middle of a reply, makes a malformed call, which the model is told and the
tool-error rate counts. Results travel as in `react_text`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from attrs import frozen

from evalcore.values.json import JSONObject, JSONValue, parse
from evalcore.values.task import Call, ToolSpec

SCHEMA_NAME: Final = "reply"
_OF_A_WHOLE: Final = ("$schema", "$id", "$vocabulary")  # what a schema inside another must not say
_NAMED: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")  # names, then schemas
_LITERALS: Final = ("const", "enum", "default", "examples", "example")  # what stands there is data, never a schema

_HOW: Final = """You can call functions. Reply with one JSON object and nothing else. To call a function:

{"name": "the function's name", "arguments": {...}}

with `arguments` an object that fits the function's parameters. You are then given its result. When you need no more \
calls, answer:

{"answer": "your answer"}

The functions, one a line, as JSON:
"""


@frozen
class ConstrainedReply:
    """A reply taken apart: the call that it makes, or its answer; both None never."""

    call: Call | None
    answer: str | None


def instructions(tools: Sequence[ToolSpec]) -> str:
    """The part of the system message that offers the tools."""
    lines = [
        json.dumps({"name": t.name, "description": t.description, "parameters": t.input_schema}, ensure_ascii=False)
        for t in tools
    ]
    return _HOW + "\n".join(lines)


def reply_schema(tools: Sequence[ToolSpec]) -> JSONObject:
    """The schema of a reply: `anyOf` a call of each tool, its name fixed by `const`, and an answer in text."""
    branches: list[JSONValue] = [_call_branch(tool, f"#/anyOf/{i}") for i, tool in enumerate(tools)]
    return {"anyOf": [*branches, _closed({"answer": {"type": "string"}})]}


def response_format(tools: Sequence[ToolSpec]) -> JSONObject:
    """The request's `response_format`. Without `strict`: the schemas of tools are anybody's, and need not be of the
    narrow form that some providers demand with it.
    """
    return {"type": "json_schema", "json_schema": {"name": SCHEMA_NAME, "schema": reply_schema(tools)}}


def read_reply(text: str) -> ConstrainedReply:
    """The call or the answer of a reply. Never raises: a reply that is neither becomes a call with `raw` set."""
    try:
        value = parse(text)
    except ValueError:
        value = None
    if isinstance(value, dict):
        name, answer = value.get("name"), value.get("answer")
        if value.keys() == {"name", "arguments"} and isinstance(name, str) and isinstance(value["arguments"], dict):
            return ConstrainedReply(Call(name, value["arguments"]), None)
        if value.keys() == {"answer"} and isinstance(answer, str):
            return ConstrainedReply(None, answer)
    return ConstrainedReply(Call("", None, text), None)


def render_call(name: str, arguments: JSONValue) -> str:
    """A call, as a model would write it; for playbooks and tests."""
    return json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)


def _call_branch(tool: ToolSpec, place: str) -> JSONObject:
    arguments = _embedded(tool.input_schema, f"{place}/properties/arguments")
    return _closed({"name": {"const": tool.name}, "arguments": {"type": "object", **arguments}})


def _closed(properties: JSONObject) -> JSONObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _embedded(schema: JSONObject, place: str) -> JSONObject:
    """A tool's schema as part of a larger one: its local references lead to where it now stands."""
    return _moved({key: value for key, value in schema.items() if key not in _OF_A_WHOLE}, place)


def _moved(schema: JSONObject, place: str) -> JSONObject:
    if "$id" in schema:  # references inside are relative to that
        return schema
    return {key: _moved_value(key, value, place) for key, value in schema.items()}


def _moved_value(key: str, value: JSONValue, place: str) -> JSONValue:
    if key == "$ref" and isinstance(value, str) and (value == "#" or value.startswith("#/")):
        return place + value[1:]
    if key in _LITERALS:
        return value
    if key in _NAMED and isinstance(value, dict):
        return {name: _moved(inner, place) if isinstance(inner, dict) else inner for name, inner in value.items()}
    if isinstance(value, list):
        return [_moved(item, place) if isinstance(item, dict) else item for item in value]
    return _moved(value, place) if isinstance(value, dict) else value
