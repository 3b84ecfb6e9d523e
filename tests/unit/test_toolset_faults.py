"""Bridge `toolset`: everything wrong with a declaration is told, each fault with its path."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from evalcore.builtin.toolset import ToolsetBridge
from evalcore.builtin.toolset_syntax import MAX_DEPTH, VERBS, read_effect
from evalcore.builtin.toolset_values import COMPARISONS
from evalcore.contracts import OpenTrial
from evalcore.errors import InfraError
from evalcore.values.faults import Faults
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import BridgeSpec


def faults_of(effect: JSONValue, arguments: frozenset[str] | None = None) -> list[str]:
    faults = Faults()
    read_effect(effect, where="$", faults=faults, arguments=arguments)
    return [str(fault) for fault in faults]


CONDITION: JSONObject = {"path": "a", "equals": 1}


@pytest.mark.parametrize(
    "effect, where, message",
    [
        (3, "$", "expected a step, got 3 (for example"),
        ([], "$", "has no step"),
        ([{"set": "a"}, "x"], "$[1]", "expected a step, got the text 'x' (for example"),
        ({}, "$", f"does nothing: expected one of {', '.join(VERBS)}"),
        ({"sett": "a"}, "$", f"does nothing: expected one of {', '.join(VERBS)} (did you mean 'set'?)"),
        ({"set": "a", "return": "a"}, "$", "set and return in one step (one step does one thing"),
        ({"set": "a", "vallue": 1}, "$.vallue", "unknown key (did you mean 'value'?)"),
        ({"delete": "a", "value": 1}, "$.value", "does not belong to 'delete'"),
        ({"set": "a", "value": 1, "value_arg": "x"}, "$", "has both value and value_arg (value: '{name}' is"),
        ({"set": ""}, "$.set", "a path, and each part of it, is at least one character long"),
        ({"set": "a..b"}, "$.set", "a path, and each part of it, is at least one character long"),
        ({"set": 3}, "$.set", 'expected a path, got 3 (for example "orders.{id}.status")'),
        ({"set": ["a", 3]}, "$.set", "expected a path, got an array (for example"),
        ({"set": "a.{b"}, "$.set", "a brace that names no argument in '{b' (a brace itself is written twice: {{)"),
        ({"error": "a } b"}, "$.error", "a brace that names no argument in 'a } b' (a brace itself"),
        ({"set": "a", "value": {"$arg": 1}}, '$.value."$arg"', "expected an argument's name, got 1"),
        ({"respond": {"$arg": "x", "y": 1}}, "$.respond", "expected '$arg', '$path' or '$literal' alone (an object"),
        ({"then": [{"set": "a"}]}, "$.if", "missing: expected a condition"),
        ({"if": 1, "set": "a"}, "$.if", "expected a condition, got 1 (for example"),
        ({"if": {"equals": 1}, "set": "a"}, "$.if", "expected exactly one of path, arg, all, any and not"),
        ({"if": {"path": "a", "is": 1}, "set": "a"}, "$.if.is", "unknown key"),
        ({"if": {"path": "a"}, "set": "a"}, "$.if", f"compares nothing: expected one of {', '.join(COMPARISONS)}"),
        ({"if": {"path": "a", "exists": 1}, "set": "a"}, "$.if.exists", "expected true or false, got 1"),
        ({"if": {"all": []}, "set": "a"}, "$.if.all", "expected an array of conditions"),
        ({"if": {"not": CONDITION, "equals": 1}, "set": "a"}, "$.if.equals", "does not belong to 'not'"),
        ({"if": {"any": [CONDITION, 5]}, "set": "a"}, "$.if.any[1]", "expected a condition, got 5 (for example"),
    ],
)
def test_a_fault_is_told_with_its_path(effect: JSONValue, where: str, message: str) -> None:
    found = faults_of(effect)
    assert [fault for fault in found if fault.startswith(f"{where}: {message}")], found


def test_every_fault_of_an_effect_is_told() -> None:
    effect: JSONValue = [
        {"set": "a.{nmae}", "value": "{x}"},
        {"if": {"arg": "nam", "equals": "{"}, "delete": "..", "else": 1},
    ]
    found = faults_of(effect, frozenset({"name"}))
    assert [fault.partition(": ")[0] for fault in found] == [
        "$[0].value", "$[0].set", "$[1].else", "$[1].delete", "$[1].if.arg", "$[1].if.equals"
    ]  # fmt: skip
    assert found[1] == "$[0].set: no argument 'nmae' in the tool's schema (did you mean 'name'?)"


def test_an_effect_nested_without_end_is_a_fault() -> None:
    effect: JSONValue = {"set": "a"}
    for _ in range(MAX_DEPTH + 5):
        effect = {"if": {"path": "a", "exists": True}, "then": [effect]}
    assert any("nested deeper than" in fault for fault in faults_of(effect))


@pytest.mark.parametrize(
    "config, message",
    [
        ({}, "$.tools: expected an array of tools, got null"),
        ({"tools": [3]}, "$.tools[0]: expected a tool, got 3"),
        ({"tools": [{"name": "a"}, {"name": "a"}]}, "$.tools[1].name: 'a' is the name of another tool, too"),
        ({"tools": [{"name": ""}, {}]}, "$.tools[0].name: missing: expected text (and 1 more)"),
        ({"tools": [{"name": "a", "input_schema": 3}]}, "$.tools[0].input_schema: expected a JSON Schema, got 3"),
        ({"tools": [{"name": "a", "output_schema": 3}]}, "$.tools[0].output_schema: expected a JSON Schema, got 3"),
        ({"tools": [{"name": "a", "description": 3}]}, "$.tools[0].description: expected text, got 3"),
        ({"tools": [], "stat": {}}, "$.stat: unknown key (did you mean 'state'?)"),
        ({"tools": [], "state": []}, "$.state: expected an object, got an array"),
        ({"tools": [{"name": "a", "effect": {"delete": ""}}]}, "$.tools[0].effect.delete: a path, and each part"),
    ],
)
def test_an_adapter_that_declares_nonsense_is_told_where(config: JSONObject, message: str) -> None:
    with pytest.raises(InfraError) as refused:
        asyncio.run(ToolsetBridge().open(BridgeSpec("toolset", config), cast(OpenTrial, None)))
    assert refused.value.message.startswith(f"bridge toolset: {message}")
