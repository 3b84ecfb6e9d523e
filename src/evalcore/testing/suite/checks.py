"""What is wrong with a value, as a line, or None: the rules that several suites share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Final

from evalcore.contracts import ToolResult
from evalcore.values.json import JSONObject, JSONValue, canonical, dumps, loads
from evalcore.values.task import ToolSpec
from evalcore.values.trial import BlobRef

_PARTS: Final[dict[str, tuple[str, ...]]] = {  # MCP content parts, and the texts that each must have
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "resource": (),
}
_TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_./-]{1,128}")


def json_fault(value: object, where: str = "$") -> str | None:
    """Why a value is no JSON, with its path. Plain types alone: a tuple or a subclass would come back as another."""
    if value is None or type(value) in (bool, int, float, str):
        return None
    if type(value) is list:
        return next((f for i, v in enumerate(value) if (f := json_fault(v, f"{where}[{i}]"))), None)
    if type(value) is dict:
        bad = next((k for k in value if type(k) is not str), None)
        if bad is not None:
            return f"{where} has the key {bad!r}, no text"
        return next((f for k, v in value.items() if (f := json_fault(v, f"{where}.{k}"))), None)
    return f"{where} is of type {type(value).__name__}, no JSON"


def record_fault(value: object) -> str | None:
    """Why a value does not come back from the ledger as it went in."""
    if (fault := json_fault(value)) is not None:
        return fault
    if canonical(loads(dumps(value))) != canonical(value):
        return "it comes back from the ledger as another value"
    return None


def schema_fault(schema: object) -> str | None:
    """Why a tool's input schema is none: it must be a valid JSON Schema (2020-12) of an object."""
    if not isinstance(schema, dict):
        return f"is of type {type(schema).__name__}, no object"
    if (fault := json_fault(schema)) is not None:
        return fault
    if schema.get("type") != "object":
        return f'must say "type": "object", and says {schema.get("type")!r}'
    jsonschema = import_module("jsonschema")  # comes with mcp
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        return f"{error.json_path}: {error.message}"
    return None


def tool_faults(tools: Sequence[ToolSpec]) -> Iterator[str]:
    """What is wrong with a list of tools."""
    for name, count in Counter(tool.name for tool in tools).items():
        if count > 1:
            yield f"{name!r} is there {count} times"
    for tool in tools:
        if not _TOOL_NAME.fullmatch(tool.name):
            yield f"{tool.name!r} is no tool's name: 1 to 128 letters, digits and _ . / -"
        if (fault := json_fault(tool.description)) is not None or not tool.description.strip():
            yield f"the description of {tool.name!r} says nothing" if fault is None else fault
        if (fault := schema_fault(tool.input_schema)) is not None:
            yield f"the input schema of {tool.name!r} {fault}"
        if tool.output_schema is not None and (fault := schema_fault(tool.output_schema)) is not None:
            yield f"the output schema of {tool.name!r} {fault}"


def result_fault(result: object) -> str | None:
    """Why something is no result of a tool."""
    if not isinstance(result, ToolResult):
        return f"it is of type {type(result).__name__}, no ToolResult"
    for name, value, kind in (("content", result.content, tuple), ("error", result.error, bool)):
        if type(value) is not kind:
            return f"its `{name}` is {value!r:.100}, no {kind.__name__}"
    parts = (fault for i, part in enumerate(result.content) if (fault := _part_fault(part, i)))
    return next(parts, None) or json_fault(result.structured, "structured")


def _part_fault(part: object, number: int) -> str | None:
    where = f"content[{number}]"
    if (fault := json_fault(part, where)) is not None or not isinstance(part, dict):
        return fault or f"{where} is no object"
    kind = part.get("type")
    if not isinstance(kind, str) or kind not in _PARTS:
        return f"{where} has the type {kind!r}; MCP knows {', '.join(_PARTS)}"
    for key in _PARTS[kind]:
        if not isinstance(part.get(key), str):
            return f"{where}, of type {kind}, needs the text `{key}`"
    return f"{where}, of type resource, needs the object `resource`" if _lacks_resource(part) else None


def _lacks_resource(part: JSONObject) -> bool:
    return part["type"] == "resource" and not isinstance(part.get("resource"), dict)


def state_fault(state: object) -> str | None:
    """Why something is no state of an episode."""
    return None if isinstance(state, BlobRef) else json_fault(state)


# ── what an agent can send ───────────────────────────────────────────────────────────────────────────────────────────


def _nested(depth: int) -> JSONValue:
    value: JSONValue = "core"
    for _ in range(depth):
        value = [value]
    return value


HOSTILE_TEXTS: Final[tuple[str, ...]] = (
    "",
    " \t\n",
    "\x00",
    "\x1b[31mred\x1b]0;title\x07",
    "\ud800",
    "\u202eright to left\u202c \u200b",
    "𝔞𝔫𝔰𝔴𝔢𝔯 🦦",
    "'; DROP TABLE trials; --",
    "__import__('os').system('true')",
    "{{7*7}} ${7*7} %s %n",
    "../../../../etc/passwd",
    "NaN",
    "-0",
    "1e999",
    "[" * 5_000,
    "x" * 300_000,
)
HOSTILE_VALUES: Final[tuple[JSONValue, ...]] = (
    None,
    True,
    -1,
    10**400,
    0.1 + 0.2,
    float("nan"),
    float("-inf"),
    "\ud800",
    "\x00",
    [],
    {},
    _nested(100),
    {"": {"\ud800": [None]}},
    ["x" * 1000] * 100,
)
"""Values that JSON can carry and nobody expects."""

NO_OBJECTS: Final[tuple[JSONValue, ...]] = (None, True, 7, 0.5, "text", "{}", [], [{}])


def hostile_objects(schema: JSONObject) -> Iterator[JSONObject]:
    """Arguments that are objects, and wrong: nothing, too much, and every declared property of every odd value."""
    yield {}
    yield {"no_such_argument": 1, "\ud800": None, "": {}}
    properties = schema.get("properties")
    names = list(properties) if isinstance(properties, dict) else []
    for value in (*HOSTILE_VALUES, *HOSTILE_TEXTS):
        if names:
            yield dict.fromkeys(names, value)
