"""JSON in, JSON out: nothing an agent can send is lost, changed or able to crash the recorder."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalcore.values.json import (
    EXACT,
    canonical,
    digest,
    dumps,
    exact_text,
    from_exact_text,
    has_odd_float,
    loads,
    parse,
)

text = st.text(st.characters(), max_size=20)  # lone surrogates too
numbers = st.integers() | st.integers(-(10**40), 10**40) | st.floats()
leaves = st.none() | st.booleans() | numbers | text
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4), max_leaves=20
)


def same(a: object, b: object) -> bool:
    """Equal in value and type, NaN being itself and -0.0 not 0.0; an object's keys in any order."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return a == b


def deep(levels: int, kind: str) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value] if kind == "list" else {"in": value}
    return value


@given(values)
@example(2**64)
@example(-(2**63) - 1)
@example(10**5000)
@example(-(10**5000))
@example([math.nan, math.inf, -math.inf, -0.0])
@example({"\ud800": "\udfff", "": None})
@example({"in": {EXACT: "1"}})
@example({"$int16": "0xff"})
@example({"$int16": "no number"})
@example({"$int16": 5})
@example({"$unencodable": "set"})
def test_what_is_dumped_comes_back(value: Any) -> None:
    data = dumps(value)
    assert b"\n" not in data
    json.loads(data)  # any JSON reader can parse it
    assert same(loads(data), value)


@pytest.mark.parametrize(
    "value",
    [
        {EXACT: "[1]"},
        {EXACT: {"x": 1}},
        {EXACT: "no JSON"},
        [{"$int16": "0x10"}, 10**5000],
        [{"$int16": "none"}, math.inf],
    ],
)
def test_an_agent_s_value_that_looks_like_a_tag_comes_back(value: Any) -> None:
    assert same(loads(dumps(value)), value)


@given(values)
def test_the_exact_form_is_ascii_and_comes_back(value: Any) -> None:
    form = exact_text(value)
    assert form.isascii()
    assert same(from_exact_text(form), value)


@given(values, values)
def test_canonical_bytes_are_equal_only_for_equal_values(a: Any, b: Any) -> None:
    assert (canonical(a) == canonical(b)) == same(a, b)


@given(st.dictionaries(text, leaves, max_size=6), st.randoms())
def test_the_order_of_keys_is_irrelevant(value: dict[str, Any], random: Any) -> None:
    items = list(value.items())
    random.shuffle(items)
    assert canonical(dict(items)) == canonical(value)
    assert digest(dict(items)) == digest(value)


def test_what_looks_alike_is_kept_apart() -> None:
    alike = [
        5,
        5.0,
        True,
        1,
        1.0,
        False,
        0,
        0.0,
        -0.0,
        None,
        math.nan,
        math.inf,
        -math.inf,
        "5",
        "NaN",
        "null",
        "",
        [],
        {},
        [None],
    ]
    assert len({canonical(value) for value in alike}) == len(alike)
    assert len({canonical([value]) for value in alike}) == len(alike)
    # Composed and decomposed é, half of a pair and the whole of it, are different texts.
    texts = ["\u00e9", "e\u0301", "\ud83d", "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")]
    assert len({canonical(value) for value in texts}) == len(texts)


def test_canonical_is_sorted_ascii_without_spaces() -> None:
    assert canonical({"b": [1, 2.0], "a": "é"}) == b'{"a":"\\u00e9","b":[1,2.0]}'
    assert digest(None) == "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"


@pytest.mark.parametrize("kind", ["list", "dict"])
@pytest.mark.parametrize("levels", [190, 260, 1_000, 50_000])
def test_deep_nesting_never_raises(levels: int, kind: str) -> None:
    value = deep(levels, kind)
    assert len(dumps(value)) > 0
    loads(dumps(value))
    assert len(digest(value)) == 64


@pytest.mark.parametrize("kind", ["list", "dict"])
def test_ordinary_nesting_comes_back_whole(kind: str) -> None:
    value = deep(190, kind)
    assert loads(dumps(value)) == value


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, b"bytes", {1: "a"}, (1, object()), [lambda: None], {"a": {None: 1}}]
)
def test_values_that_are_no_json_are_tagged_not_lost_in_an_exception(value: Any) -> None:
    json.loads(dumps(value))
    loads(dumps(value))
    assert len(digest(value)) == 64


def test_a_value_that_contains_itself_does_not_hang() -> None:
    value: list[Any] = []
    value.append(value)
    assert b"$unencodable" in dumps(value)
    assert len(digest(value)) == 64


@given(values)
def test_odd_floats_are_found_wherever_they_are(value: Any) -> None:
    assert has_odd_float(value) == any(odd in json.dumps(_without_text(value)) for odd in ("NaN", "Infinity"))


def _without_text(value: Any) -> Any:
    if isinstance(value, str):
        return ""
    if isinstance(value, dict):
        return [_without_text(inner) for inner in value.values()]
    return [_without_text(inner) for inner in value] if isinstance(value, list) else value


@given(values)
def test_parse_reads_what_json_writes(value: Any) -> None:
    assert same(parse(json.dumps(value)), value)


@pytest.mark.parametrize("bad", ["", "{", "[1,]", "nul", "'a'", "\ud800", "[" * 100_000, '{"a":' * 100_000])
def test_what_is_no_json_is_a_value_error(bad: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse(bad)
