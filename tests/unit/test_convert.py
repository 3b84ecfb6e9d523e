"""The strict converter: every fault at once, each with its path; and values that come back as they went."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, cast

import pytest
from attrs import Factory, field, frozen, validators
from hypothesis import given
from hypothesis import strategies as st

from evalcore.errors import ConfigError
from evalcore.values.arm import Arm
from evalcore.values.convert import from_toml, structure, tag_union, to_toml, unstructure
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.stamp import ArmStamp, BenchmarkStamp, RunStamp
from evalcore.values.study import BenchmarkChoice, Contrast, RoleChoice, Study
from evalcore.values.task import ROLES, Call, Dataset, Gold, GoldAnswer, GoldCalls, GoldPatch, Limits, Message


@frozen
class Exact:
    key: str


@frozen
class Judged:
    rubric: str
    model: str | None = None


@frozen
class Range:
    low: int
    high: int

    def __attrs_post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError(f"low is above high: {self.low} > {self.high}")


def _not_first(instance: Suite, _: object, value: str) -> None:
    if value == instance.title:
        raise ValueError("is the title")


@frozen
class Case:
    id: str = field(validator=validators.matches_re(r"[a-z]+"))
    weight: float = field(default=1.0, validator=validators.gt(0))
    attempts: int = field(default=1, validator=validators.ge(1))
    level: Literal["easy", "hard"] = "easy"
    pair: tuple[int, int] = (0, 1)
    grader: Exact | Judged = Exact("x")
    text: str | tuple[str, ...] = ""
    active: bool = True
    extra: JSONValue = None
    computed: int = field(init=False, default=0)


@frozen
class Suite:
    title: str
    cases: tuple[Case, ...]
    by_name: Mapping[str, Case] = Factory(dict)
    budgets: Mapping[Literal["low", "high"], float] = Factory(dict)
    range: Range | None = None
    data: JSONObject = Factory(dict)
    tags: list[str] = Factory(list)
    other: str = field(default="", validator=_not_first)


tag_union({"exact": Exact, "judged": Judged}, key="type")

EVERY_FAULT = """
titel = "a suite"
tags = "none"
data = 3
other = 4

[range]
low = 3
high = 1

[budgets]
low = nan
hihg = 1

[[cases]]
id = 3
weight = -2
attempts = "3"
level = "eesy"
pair = [1]
text = 5
active = 1
computed = 3
extra = { when = 2024-01-01, list = [1, 2024-01-01] }
grader = { type = "jugded" }

[[cases]]
id = "UPPER"
weight = true
attempts = 0
pair = [1, "2"]
text = ["a", 3]
grader = { rubric = "r" }

[by_name.plain-one]
id = "a"
attempts = 2.0
levle = "hard"
grader = { type = "judged", rubric = 1, modle = "m" }

[by_name."with space"]
wieght = 1
grader = { type = "exact" }
"""


def faults_of(call: Callable[[], object]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        call()
    return [str(f) for f in caught.value.faults]


def test_a_file_with_every_kind_of_fault_tells_all_of_them_each_with_its_path() -> None:
    assert faults_of(lambda: from_toml(EVERY_FAULT, Suite)) == [
        "$.title: missing: expected text",
        "$.cases[0].id: expected text, got 3",
        "$.cases[0].weight: must be > 0: -2.0",
        "$.cases[0].attempts: expected an integer, got the text '3'",
        "$.cases[0].level: expected 'easy' or 'hard', got the text 'eesy' (did you mean 'easy'?)",
        "$.cases[0].pair: expected an array of 2, got one of 1",
        "$.cases[0].grader.type: expected 'exact' or 'judged', got the text 'jugded' (did you mean 'judged'?)",
        "$.cases[0].text: expected text or an array, got 5",
        "$.cases[0].active: expected true or false, got 1",
        "$.cases[0].extra.when: expected text, a number, true or false, an array or a table, got a date or time",
        "$.cases[0].extra.list[1]: expected text, a number, true or false, an array or a table, got a date or time",
        "$.cases[0].computed: unknown key",
        "$.cases[1].id: must match regex '[a-z]+' ('UPPER' doesn't)",
        "$.cases[1].weight: expected a number, got true",
        "$.cases[1].attempts: must be >= 1: 0",
        "$.cases[1].pair[1]: expected an integer, got the text '2'",
        "$.cases[1].grader: missing key 'type': expected 'exact' or 'judged'",
        "$.cases[1].text[1]: expected text, got 3",
        '$.by_name."plain-one".attempts: expected an integer, got 2.0',
        '$.by_name."plain-one".grader.rubric: expected text, got 1',
        "$.by_name.\"plain-one\".grader.modle: unknown key (did you mean 'model'?)",
        "$.by_name.\"plain-one\".levle: unknown key (did you mean 'level'?)",
        '$.by_name."with space".id: missing: expected text',
        '$.by_name."with space".grader.key: missing: expected text',
        "$.by_name.\"with space\".wieght: unknown key (did you mean 'weight'?)",
        "$.budgets.low: expected a finite number, got nan",
        "$.budgets.hihg: expected 'low' or 'high', got the text 'hihg' (did you mean 'high'?)",
        "$.range: low is above high: 3 > 1",
        "$.data: expected a table, got 3",
        "$.tags: expected an array, got the text 'none'",
        "$.other: expected text, got 4",
        "$.titel: unknown key (did you mean 'title'?)",
    ]


def test_the_error_names_the_source_and_counts_the_faults() -> None:
    with pytest.raises(ConfigError) as caught:
        structure({"role": 1}, Message, source="talk.json")
    assert str(caught.value) == "talk.json: 2 faults"
    assert caught.value.exit_code == 2


def test_a_validator_that_looks_at_other_fields_still_runs() -> None:
    raw = {"title": "x", "cases": [], "other": "x"}
    assert faults_of(lambda: structure(raw, Suite)) == ["$: is the title"]


@pytest.mark.parametrize("raw", [None, 3, "text", [], True])
def test_what_is_no_table_is_no_value(raw: object) -> None:
    (fault,) = faults_of(lambda: structure(raw, Suite, where="$.suite"))
    assert fault.startswith("$.suite: expected a table, got ")


def test_an_integer_stands_for_a_number_and_nothing_else_is_coerced() -> None:
    case = structure({"id": "a", "weight": 2}, Case)
    assert case.weight == 2.0 and type(case.weight) is float
    assert faults_of(lambda: structure({"id": "a", "weight": 10**400}, Case)) == ["$.weight: too large for a number"]
    assert faults_of(lambda: structure({"id": "a", "weight": float("inf")}, Case)) == [
        "$.weight: expected a finite number, got inf"
    ]


def test_json_fields_pass_through_untouched() -> None:
    extra: JSONValue = {"nan": [float("inf"), 5, 5.0, 10**40, None, "\ud800"], "deep": {"a": []}}
    case = structure({"id": "a", "extra": extra}, Case)
    assert case.extra is extra
    assert structure({"a": extra}, JSONObject) == {"a": extra}


def test_json_nested_beyond_reason_is_a_fault() -> None:
    deep: JSONValue = []
    for _ in range(300):
        deep = [deep]
    (fault,) = faults_of(lambda: structure({"id": "a", "extra": deep}, Case))
    assert fault.endswith("nested deeper than 200 levels")


def test_tagged_unions_come_back_with_their_tag() -> None:
    gold = cast(type[Gold], Gold)
    for value in (
        GoldAnswer("x"),
        GoldPatch("+a"),
        GoldCalls(((Call("f", {"a": [1]}), Call("g", None, "{")),), "done"),
    ):
        plain = unstructure(value)
        assert isinstance(plain, dict) and plain["kind"] in ("answer", "patch", "calls")
        assert structure(plain, gold) == value
        assert structure(plain, type(value)) == value


def test_null_is_a_value_only_where_none_is_allowed() -> None:
    assert structure({"type": "judged", "rubric": "r", "model": None}, Judged).model is None
    assert faults_of(lambda: structure({"type": "judged", "rubric": None}, Judged)) == [
        "$.rubric: expected text, got null"
    ]


def test_importing_the_converter_imports_no_cattrs() -> None:
    code = "import sys, evalcore.hookspecs, evalcore.values.convert; print('cattrs' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": ":".join(sys.path)}
    )
    assert done.stdout == "False\n"


# ── TOML ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text, fault",
    [
        ("a = \nb = 1\n", "line 1, column 5: Invalid value"),
        ("a = 1\n[b\n", "line 2, column 3: Expected ']' at the end of a table declaration"),
        ('a = "', "end of file: Unterminated string"),
        ("a = 1\na = 2\n", "line 2, column 6: Cannot overwrite a value"),
    ],
)
def test_a_syntax_error_is_a_fault_with_line_and_column(text: str, fault: str) -> None:
    assert faults_of(lambda: from_toml(text, Suite)) == [fault]


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a = " + "9" * 5000])
def test_toml_that_breaks_its_reader_is_a_fault(text: str) -> None:
    assert len(faults_of(lambda: from_toml(text, Suite))) == 1


def test_a_file_is_read_by_its_path_and_named_in_the_error(tmp_path: Path) -> None:
    path = tmp_path / "message.toml"
    path.write_text('\ufeffrole = "user"\ncontent = "hi"\n', encoding="utf-8")
    assert from_toml(path, Message) == Message("user", "hi")
    path.write_bytes(b'role = "\xff"')
    with pytest.raises(ConfigError, match=r"message\.toml: 1 fault"):
        from_toml(path, Message)
    with pytest.raises(ConfigError, match=r"no such file: .*other\.toml"):
        from_toml(tmp_path / "other.toml", Message)
    with pytest.raises(ConfigError, match="cannot read"):
        from_toml(tmp_path, Message)


def test_what_toml_cannot_say_survives_it() -> None:
    odd: JSONObject = {"null": None, "list": [None, 1], "lone \ud800": "\udfff", "big": 10**5000, "$exact": "text"}
    case = Case("a", extra={"odd": odd, "one": {"$exact": "3"}})
    assert from_toml(to_toml(case), Case) == case
    to_toml(case).encode("utf-8")


def test_a_broken_exact_form_is_a_fault() -> None:
    assert faults_of(lambda: from_toml('[extra]\n"$exact" = "{"', Case))[0].startswith("$: $exact holds no JSON")


# ── round trips ──────────────────────────────────────────────────────────────────────────────────────────────────────

TEXT = st.text(max_size=8)
COUNT = st.integers(1, 10**6)
AMOUNT = st.floats(0.001, 1e9)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(TEXT, JSON, max_size=3)
LIMITS = st.builds(
    Limits,
    tokens=st.none() | COUNT,
    cost_usd=st.none() | AMOUNT,
    model_calls=st.none() | COUNT,
    tool_calls=st.none() | COUNT,
    turns=st.none() | COUNT,
    wall_s=st.none() | AMOUNT,
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT
AXES = st.dictionaries(TEXT, SCALARS, max_size=3)
ARMS = st.builds(Arm, TEXT, AXES, AXES, st.dictionaries(TEXT, TEXT, max_size=2))
STATUS = st.sampled_from(["current", "superseded", "retired"])
FILES = st.dictionaries(TEXT, TEXT, max_size=2)
DATASETS = st.builds(Dataset, TEXT, TEXT, TEXT, TEXT, TEXT, STATUS, TEXT, FILES)
BENCHMARKS = st.builds(BenchmarkStamp, TEXT, DATASETS, COUNT, COUNT, TEXT, TEXT, OBJECTS, LIMITS, st.booleans(), TEXT)
STAMPS = st.builds(
    RunStamp,
    run=TEXT,
    created=TEXT,
    study_name=TEXT,
    study_digest=TEXT,
    study=OBJECTS,
    seed=COUNT,
    repeats=COUNT,
    arms=st.lists(st.builds(ArmStamp, ARMS, TEXT, TEXT, st.booleans(), st.booleans()), max_size=2).map(tuple),
    benchmarks=st.lists(BENCHMARKS, max_size=2).map(tuple),
    grading=TEXT,
    versions=OBJECTS,
    host=OBJECTS,
    parent=st.none() | TEXT,
)
CHOICES = st.builds(
    BenchmarkChoice,
    st.none() | st.tuples(COUNT, st.none() | COUNT),
    st.lists(TEXT, max_size=2).map(tuple),
)
STUDIES = st.builds(
    Study,
    name=TEXT,
    benchmarks=st.lists(TEXT, max_size=2).map(tuple),
    arms=st.dictionaries(TEXT, OBJECTS, max_size=2),
    repeats=COUNT,
    seed=COUNT,
    budget_usd=st.none() | AMOUNT,
    choices=st.dictionaries(TEXT, CHOICES, max_size=2),
    limits=LIMITS,
    roles=st.dictionaries(st.sampled_from(ROLES), st.builds(RoleChoice, st.none() | TEXT, LIMITS), max_size=2),
    sweep=st.dictionaries(TEXT, st.lists(JSON, max_size=2).map(tuple), max_size=2),
    contrasts=st.lists(st.builds(Contrast, TEXT, TEXT, TEXT, st.none() | AMOUNT), max_size=2).map(tuple),
)


@given(STAMPS)
def test_a_stamp_comes_back_from_toml_as_it_was(stamp: RunStamp) -> None:
    back = from_toml(to_toml(stamp), RunStamp)
    assert back == stamp
    assert [a.arm.digest for a in back.arms] == [a.arm.digest for a in stamp.arms]


@given(STUDIES)
def test_a_study_comes_back_from_plain_data_and_toml_as_it_was(study: Study) -> None:
    assert structure(unstructure(study), Study) == study
    assert from_toml(to_toml(study), Study) == study
