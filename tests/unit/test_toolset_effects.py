"""Bridge `toolset`: what a call answers, what its effect makes of the state, and what is wrong with a declaration."""

from __future__ import annotations

import copy
import json
from collections.abc import Coroutine
from typing import Any, TypeVar, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.builtin import toolset
from evalcore.builtin.toolset import ToolsetBridge, ToolsetEpisode
from evalcore.builtin.toolset_syntax import VERBS, read_effect
from evalcore.builtin.toolset_values import COMPARISONS, lookup, same
from evalcore.contracts import OpenTrial, ToolResult
from evalcore.values.faults import Faults
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import BridgeSpec

T = TypeVar("T")
NOBODY = cast(OpenTrial, None)  # the bridge asks nothing of a trial


def now(work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns that never waits: no event loop is needed for that."""
    try:
        work.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    raise AssertionError("it waits")


def opened(config: JSONObject, bridge: ToolsetBridge | None = None) -> ToolsetEpisode:
    return now((bridge or ToolsetBridge()).open(BridgeSpec("toolset", config), NOBODY))


def called(episode: ToolsetEpisode, arguments: JSONValue, name: str = "t") -> ToolResult:
    return now(episode.call(name, arguments))


def with_effect(effect: JSONValue, state: JSONObject | None = None, **tool: JSONValue) -> ToolsetEpisode:
    config: JSONObject = {"tools": [{"name": "t", "effect": effect, **tool}], "echo": True}
    return opened(config if state is None else {**config, "state": state})


def state_of(episode: ToolsetEpisode) -> Any:
    return now(episode.state())


# ── declared results ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_result_is_sent_as_text_and_anything_else_as_json() -> None:
    tools: list[JSONValue] = [
        {"name": "a", "result": "sunny"},
        {"name": "b", "result": {"sky": "clear"}},
        {"name": "c"},
    ]
    episode = opened({"tools": tools})
    texts = [called(episode, {}, name).text for name in "abc"]
    assert texts == ["sunny", '{"sky":"clear"}', "ok"]
    assert state_of(episode) == [{"name": name, "arguments": {}} for name in "abc"]


@pytest.mark.parametrize("arguments", [None, [], "text", 3])
def test_arguments_that_are_no_object_are_the_callers_error(arguments: JSONValue) -> None:
    result = called(with_effect({"set": "a"}), arguments)
    assert result.error and result.text.startswith("arguments must be an object")


def test_a_list_of_tools_is_read_once_and_another_one_is_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    real = toolset.read_tools
    monkeypatch.setattr(toolset, "read_tools", lambda *a, **k: read.append(1) or real(*a, **k))
    bridge, tools = ToolsetBridge(), cast("list[JSONValue]", [{"name": "t", "result": 1}])
    for _ in range(3):
        assert called(opened({"tools": tools}, bridge), {}).text == "1"
    assert len(read) == 1
    for value in range(2000):  # more than are remembered, and their identities are used again
        assert called(opened({"tools": [{"name": "t", "result": value}]}, bridge), {}).text == str(value)


def test_episodes_share_no_state_and_leave_the_declaration_as_it_was() -> None:
    state: JSONObject = {"log": ["first"]}
    config: JSONObject = {"tools": [{"name": "t", "effect": {"append": "log", "value_arg": "x"}}], "state": state}
    bridge = ToolsetBridge()
    one, other = opened(config, bridge), opened(config, bridge)
    called(one, {"x": 1})
    called(one, {"x": 2})
    called(other, {"x": 3})
    assert (state_of(one), state_of(other)) == ({"log": ["first", 1, 2]}, {"log": ["first", 3]})
    assert state == {"log": ["first"]}


# ── the language of other suites (facts of the format) ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "effect, before, arguments, after",
    [
        ({"set": "a.b", "value_arg": "x"}, {}, {"x": [1]}, {"a": {"b": [1]}}),
        ({"set": "a.b", "value_arg": "x"}, {"a": 3}, {"x": 1}, {"a": {"b": 1}}),  # what stands in the way gives way
        ({"set": "a", "value_arg": "x"}, {"a": 1}, {}, {"a": None}),  # a missing argument is null
        ({"set": "a"}, {}, {"x": 1, "y": 2}, {"a": {"x": 1, "y": 2}}),  # neither: all of them
        ({"append": "a", "value_arg": "x"}, {}, {"x": 1}, {"a": [1]}),
        ({"append": "a", "value_arg": "x"}, {"a": [0]}, {"x": 1}, {"a": [0, 1]}),
        ({"append": "a", "value_arg": "x"}, {"a": {"b": 1}}, {"x": 1}, {"a": [1]}),  # what is no array is replaced
        ({"return": "a"}, {"a": 1}, {}, {"a": 1}),
    ],
)
def test_what_other_suites_say_is_done(
    effect: JSONValue, before: JSONObject, arguments: JSONObject, after: JSONObject
) -> None:
    episode = with_effect(effect, before)
    assert not called(episode, arguments).error
    assert state_of(episode) == after


def test_an_answer_is_what_is_returned_else_the_result_else_an_echo() -> None:
    assert called(with_effect({"return": "a"}, {"a": {"b": 1}}, result="r"), {}).text == '{"b":1}'
    assert called(with_effect({"return": "a"}, {"a": False}, result="r"), {}).text == "false"
    assert called(with_effect({"return": "nowhere"}, {"a": 1}, result="r"), {}).text == "r"
    assert (
        called(with_effect({"return": "a"}, {"a": None}), {"x": 1}).text == '{"ok":true,"tool":"t","arguments":{"x":1}}'
    )


# ── what is ours ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "value, arguments, stored",
    [
        ("plain", {}, "plain"),
        ("{x}", {"x": [1, {"y": None}]}, [1, {"y": None}]),
        ("{x}", {}, None),
        ("<{x}> and {y}", {"x": 1, "y": {"z": True}}, '<1> and {"z":true}'),
        ("{{x}} {{}}", {"x": 1}, "{x} {}"),
        ({"a": ["{x}", "{x}{x}", 3]}, {"x": "é"}, {"a": ["é", "éé", 3]}),
        ({"a": {"$arg": "x"}, "b": {"$path": "n.0"}, "c": {"$path": "no"}}, {"x": 1.5}, {"a": 1.5, "b": 7, "c": None}),
        ({"$literal": {"$arg": "{x}"}}, {"x": 1}, {"$arg": "{x}"}),
        (["{{", 1], {}, ["{", 1]),
        ("__import__('os').system('true')", {}, "__import__('os').system('true')"),
        ("{x}", {"x": "{y}"}, "{y}"),  # what an agent writes is never read as a template
    ],
)
def test_values(value: JSONValue, arguments: JSONObject, stored: JSONValue) -> None:
    episode = with_effect({"set": "a", "value": value}, {"n": [7]})
    assert not called(episode, arguments).error
    assert state_of(episode) == {"n": [7], "a": stored}


def test_an_argument_in_a_path_is_one_segment_whatever_it_holds() -> None:
    episode = with_effect({"set": "mail.{to}.text", "value": 1}, {})
    for to in ("a.b@c.d", "{x}", 5, 5.0):
        assert not called(episode, {"to": to}).error
    assert state_of(episode) == {"mail": {"a.b@c.d": {"text": 1}, "{x}": {"text": 1}, "5": {"text": 1}}}


@pytest.mark.parametrize(
    "arguments, why",
    [
        ({}, "missing argument 'to'"),
        ({"to": True}, "argument 'to' must be text or a whole number"),
        ({"to": 1.5}, "argument 'to' must be text or a whole number"),
        ({"to": float("nan")}, "argument 'to' must be text or a whole number"),
        ({"to": ["a"]}, "argument 'to' must be text or a whole number"),
        ({"to": None}, "argument 'to' must be text or a whole number"),
        ({"to": 10**5000}, "argument 'to' is too large"),
        ({"to": ""}, "an empty text names nothing"),
    ],
)
def test_an_argument_that_names_nothing_is_the_callers_error(arguments: JSONObject, why: str) -> None:
    episode = with_effect({"set": "mail.{to}", "value": 1}, {"mail": {}})
    result = called(episode, arguments)
    assert (result.error, result.text, state_of(episode)) == (True, why, {"mail": {}})


def test_items_of_arrays_are_reached_by_their_index() -> None:
    state: JSONObject = {"a": [{"n": 1}, {"n": 2}]}
    episode = with_effect([{"set": "a.1.n", "value": 5}, {"delete": "a.0"}, {"return": "a.0"}], state)
    assert called(episode, {}).text == '{"n":5}'
    assert state_of(episode) == {"a": [{"n": 5}]}
    assert called(with_effect({"set": "a.7", "value": 5}, state), {}).text == "there is no item '7'"
    assert called(with_effect({"set": "a.x.y", "value": 5}, state), {}).error


def test_an_array_is_a_path_whose_parts_may_hold_dots() -> None:
    episode = with_effect({"set": ["by.mail", "{to}"], "value": 1}, {})
    called(episode, {"to": "x"})
    assert state_of(episode) == {"by.mail": {"x": 1}}


def test_deleting_what_is_not_there_does_nothing() -> None:
    for path in ("x", "a.x.y", "a.b.c", "l.9", "l.x"):
        episode = with_effect({"delete": path}, {"a": {"b": 1}, "l": [1]})
        assert not called(episode, {}).error
        assert state_of(episode) == {"a": {"b": 1}, "l": [1]}


def test_an_error_undoes_the_steps_before_it() -> None:
    effect: JSONValue = [
        {"set": "n", "value": 1},
        {"append": "log", "value": "x"},
        {"if": {"path": "n", "equals": 1}, "error": {"code": "no", "n": "{n}"}},
        {"set": "never", "value": 1},
    ]
    episode = with_effect(effect, {"n": 0})
    result = called(episode, {"n": 7})
    assert (result.error, json.loads(result.text)) == (True, {"code": "no", "n": 7})
    assert state_of(episode) == {"n": 0}


def test_branches_and_answers() -> None:
    effect: JSONValue = [
        {"respond": "neither"},
        {"if": {"arg": "n", "more_than": 0}, "then": [{"respond": "above"}, {"set": "n", "value": "{n}"}]},
        {"if": {"arg": "n", "less_than": 0}, "then": {"respond": "below"}, "else": {"respond": None}},
    ]
    texts = [called(with_effect(effect), {"n": n}).text for n in (1, -1, 0, "x")]
    assert texts == ["above", "below", "neither", "neither"]


@pytest.mark.parametrize(
    "condition, holds",
    [
        ({"path": "a", "exists": True}, True),
        ({"path": "none", "exists": True}, False),  # null is nothing
        ({"path": "missing", "exists": False}, True),
        ({"arg": "x", "exists": True}, True),
        ({"arg": "y", "exists": False}, True),
        ({"path": "a", "equals": 1}, True),
        ({"path": "a", "equals": 1.0}, True),
        ({"path": "yes", "equals": 1}, False),
        ({"path": "a", "not_equals": 2}, True),
        ({"path": "a", "in": [3, 1]}, True),
        ({"path": "a", "not_in": [3, 1]}, False),
        ({"path": "list", "contains": {"k": [1]}}, True),
        ({"path": "list", "contains": "{x}"}, False),
        ({"path": "table", "contains": "key"}, True),
        ({"path": "text", "contains": "or"}, True),
        ({"path": "text", "contains": 3}, False),
        ({"path": "a", "at_least": 1, "at_most": 1}, True),
        ({"path": "a", "more_than": 1}, False),
        ({"path": "a", "less_than": 2}, True),
        ({"path": "text", "less_than": "x"}, True),
        ({"path": "text", "less_than": 3}, False),  # between others there is no order
        ({"path": "yes", "at_least": 0}, False),
        ({"arg": "x", "equals": {"$path": "text"}}, True),
        ({"arg": "nan", "at_most": 1}, False),
        ([{"path": "a", "equals": 1}, {"path": "a", "equals": 2}], False),
        ({"all": [{"path": "a", "equals": 1}]}, True),
        ({"any": [{"path": "a", "equals": 2}, {"not": {"path": "a", "equals": 2}}]}, True),
    ],
)
def test_conditions(condition: JSONValue, holds: bool) -> None:
    state: JSONObject = {
        "a": 1, "none": None, "yes": True, "list": [{"k": [1]}], "table": {"key": 0}, "text": "word"
    }  # fmt: skip
    episode = with_effect({"if": condition, "respond": "holds"}, state, result="not")
    assert called(episode, {"x": "word", "nan": float("nan")}).text == ("holds" if holds else "not")


# ── whatever is declared, and whatever is called ─────────────────────────────────────────────────────────────────────

KEYS = st.sampled_from(["a", "b", "0", "1"])
LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=4)
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)
STATES = st.dictionaries(KEYS, VALUES, max_size=3)
PATHS = st.lists(KEYS, min_size=1, max_size=3).map(".".join)
STEPS = st.one_of(
    st.builds(lambda p, v: {"set": p, "value": {"$literal": v}}, PATHS, VALUES),
    st.builds(lambda p, v: {"append": p, "value": {"$literal": v}}, PATHS, VALUES),
    st.builds(lambda p: {"delete": p}, PATHS),
)


def plainly(step: Any, state: Any) -> None:
    """The same in the plainest way: change a copy in place. Raises LookupError where the call must fail."""
    verb = next(key for key in ("set", "append", "delete") if key in step)
    *way, last = step[verb].split(".")
    here = state
    for key in way:
        if isinstance(here, list):
            if not key.isdigit() or int(key) >= len(here):
                if verb == "delete":
                    return
                raise LookupError(key)
            position: Any = int(key)
        else:
            position = key
        if not isinstance(here[position] if isinstance(here, list) else here.get(position), (dict, list)):
            if verb == "delete":
                return
            here[position] = {}
        here = here[position]
    if isinstance(here, list):
        if not last.isdigit() or int(last) >= len(here):
            if verb == "delete":
                return
            raise LookupError(last)
        last = int(last)
    if verb == "delete":
        if isinstance(here, list) or last in here:
            del here[last]
        return
    value = copy.deepcopy(step["value"]["$literal"])
    before = here[last] if isinstance(here, list) else here.get(last)
    here[last] = value if verb == "set" else [*(before if isinstance(before, list) else []), value]


@given(STATES, st.lists(STEPS, min_size=1, max_size=5))
def test_steps_do_what_changing_a_copy_in_place_does(state: JSONObject, steps: list[Any]) -> None:
    declared = copy.deepcopy(state)
    wanted, failed = copy.deepcopy(state), False
    try:
        for step in steps:
            plainly(step, wanted)
    except LookupError:
        wanted, failed = copy.deepcopy(declared), True
    episode = with_effect(steps, state)
    assert called(episode, {}).error is failed
    assert repr(state_of(episode)) == repr(wanted)  # as text: NaN differs from itself
    assert repr(state) == repr(declared)


KEYWORDS = "if else value value_arg path arg all any not $arg $path"
WORDS = st.sampled_from((*VERBS, *COMPARISONS, *KEYWORDS.split()))
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    LEAVES | st.sampled_from(["a.{x}", "{x}", "{", "$path"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=12,
)


@given(ANYTHING, st.dictionaries(st.sampled_from(["x", "y"]), VALUES, max_size=2))
def test_any_effect_is_refused_or_carried_out(effect: JSONValue, arguments: JSONObject) -> None:
    faults = Faults()
    read = read_effect(effect, where="$", faults=faults)
    if not faults:
        outcome = read.apply({"a": {"b": [1]}}, arguments)
        assert outcome.error is None or outcome.state == {"a": {"b": [1]}}


@given(VALUES, VALUES)
def test_equality_is_that_of_json(one: JSONValue, other: JSONValue) -> None:
    def plain(a: Any, b: Any) -> bool:
        if isinstance(a, dict) and isinstance(b, dict):
            return a.keys() == b.keys() and all(plain(a[k], b[k]) for k in a)
        if isinstance(a, list) and isinstance(b, list):
            return len(a) == len(b) and all(map(plain, a, b))
        return isinstance(a, bool) is isinstance(b, bool) and bool(a == b)

    assert same(one, other) is plain(one, other)
    assert same(one, copy.deepcopy(one)) is plain(one, one)


def test_an_agent_cannot_overflow_the_stack() -> None:
    deep: JSONValue = 1
    for _ in range(50_000):
        deep = [deep]
    episode = with_effect(
        [{"append": "a", "value_arg": "x"}, {"if": {"path": "a", "contains": {"$arg": "x"}}, "respond": "seen"}]
    )
    assert called(episode, {"x": deep}).text == "seen"
    assert called(episode, {"x": deep}).text == "seen"
    assert lookup({"a": deep}, ["a", "0", "0"])[0]
