"""The rules of the worker that are ours: how gold is written, names, and how a response is handed to the native runner.

The worker is loaded by its path, as the toolkit host loads it; none of this needs the toolkit.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from evalcore_bfcl.known import KNOWN_BAD, OUT_OF_REACH
from evalcore_bfcl.plugin import CATEGORIES, DIALOGUES, benchmark_name
from evalcore_bfcl.worker import OURS

REQUESTS = [
    *("backend", "call", "categories", "dialogue_gold", "dialogue_grade", "dialogue_tasks", "gold", "grade", "open"),
    *("session.close", "state", "tasks"),
]
SOURCES = Path(__file__).parents[1] / "src" / "evalcore_bfcl"


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"bfcl_{name}_by_path", SOURCES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def worker() -> Any:
    return load("worker")


@pytest.fixture
def native() -> Any:
    return load("native")


def document(name: str, required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    """A function document of our own making, in the benchmark's shape."""
    return {"name": name, "parameters": {"type": "dict", "properties": properties, "required": required or []}}


def gold(worker: Any, function: dict[str, Any], accepted: dict[str, Any], language: str = "python") -> Any:
    """The arguments of the one gold call."""
    (call,) = worker.gold_calls([function], [{function["name"]: accepted}], language)
    return call["arguments"]


class TestLoading:
    @pytest.mark.parametrize("name", OURS)
    def test_only_the_standard_library_and_each_other_are_imported(self, name: str) -> None:
        tree = ast.parse((SOURCES / name).read_text(encoding="utf-8"))
        imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        others = {name for name in imported if name.partition(".")[0] not in sys.stdlib_module_names}
        assert others <= {"evalcore_bfcl", *(f"evalcore_bfcl.{file.removesuffix('.py')}" for file in OURS)}

    def test_by_its_path_alone_it_finds_its_neighbours_and_nothing_else_of_ours(self, tmp_path: Path) -> None:
        lines = (
            "import importlib.util as u, json, sys",
            f"s = u.spec_from_file_location('worker', {str(SOURCES / 'worker.py')!r})",
            "m = u.module_from_spec(s)",
            "s.loader.exec_module(m)",
            "print(json.dumps([sorted(m.handlers()), [n for n in sys.modules if n.startswith('evalcore')]]))",
        )
        argv = [sys.executable, "-I", "-S", "-c", "\n".join(lines)]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
        handlers, ours = json.loads(done.stdout)
        assert handlers == REQUESTS
        assert sorted(ours) == ["evalcore_bfcl", *(f"evalcore_bfcl.{file.removesuffix('.py')}" for file in OURS[:-1])]

    def test_handlers_are_named_without_importing_upstream(self, worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("BFCL_PROJECT_ROOT", raising=False)
        assert sorted(worker.handlers()) == REQUESTS
        assert "bfcl_eval" not in sys.modules
        assert "BFCL_PROJECT_ROOT" not in os.environ

    def test_what_a_handler_prints_does_not_reach_standard_output(
        self, worker: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert worker.quiet(lambda params: print(params["said"]))({"said": "from upstream"}) is None
        assert capsys.readouterr() == ("", "from upstream\n")


class TestNames:
    @pytest.mark.parametrize(
        "name, expected",
        [("plain", "plain"), ("geo.area", "geo_area"), ("a.b.c_d", "a_b_c_d"), ("dash-ed", "dash-ed")],
    )
    def test_dots_become_underscores(self, worker: Any, name: str, expected: str) -> None:
        assert worker.tool_name(name) == expected

    def test_gold_calls_carry_the_tools_names_in_the_order_of_the_answers(self, worker: Any) -> None:
        functions = [document("shop.buy", item={"type": "string"}), document("shop.sell", item={"type": "string"})]
        answers = [{"shop.sell": {"item": ["tea"]}}, {"shop.buy": {"item": ["jam"]}}, {"shop.buy": {"item": ["rye"]}}]
        assert worker.gold_calls(functions, answers, "python") == [
            {"name": "shop_sell", "arguments": {"item": "tea"}},
            {"name": "shop_buy", "arguments": {"item": "jam"}},
            {"name": "shop_buy", "arguments": {"item": "rye"}},
        ]


class TestGoldValues:
    def test_a_parameter_that_may_be_left_out_is(self, worker: Any) -> None:
        function = document("brew", ["tea"], tea={"type": "string"}, minutes={"type": "integer"})
        assert gold(worker, function, {"tea": ["green"], "minutes": [3, ""]}) == {"tea": "green"}

    def test_unless_the_schema_requires_it(self, worker: Any) -> None:
        function = document("brew", ["minutes"], minutes={"type": "integer"})
        assert gold(worker, function, {"minutes": [3, ""]}) == {"minutes": 3}

    def test_leave_to_omit_is_no_value_while_there_is_another(self, worker: Any) -> None:
        function = document("brew", ["minutes"], minutes={"type": "integer"})
        assert gold(worker, function, {"minutes": ["", 4]}) == {"minutes": 4}
        assert gold(worker, function, {"minutes": [""]}) == {"minutes": ""}

    @pytest.mark.parametrize("first", [0, False, 5.0, [], {}, None, "zero"])
    def test_the_first_accepted_value_counts_even_if_it_is_falsy(self, worker: Any, first: Any) -> None:
        value = gold(worker, document("set", value={"type": "any"}), {"value": [first, 1]})["value"]
        assert (type(value), value) == (type(first), first)

    def test_dictionaries_are_followed_down_to_their_first_alternatives(self, worker: Any) -> None:
        function = document("place", order={"type": "dict"})
        accepted = {"order": [{"size": ["large", "L"], "to": [{"town": ["Ulm"], "door": ["3", ""]}], "gift": [""]}]}
        assert gold(worker, function, accepted) == {"order": {"size": "large", "to": {"town": "Ulm"}}}

    def test_dictionaries_inside_lists_are_followed_too(self, worker: Any) -> None:
        function = document("plot", points={"type": "array", "items": {"type": "dict"}})
        accepted = {"points": [[{"x": [1, 2], "y": [0.5]}, {"x": [3], "y": [4, ""]}]]}
        assert gold(worker, function, accepted) == {"points": [{"x": 1, "y": 0.5}, {"x": 3}]}

    def test_a_bare_leaf_is_its_own_only_alternative(self, worker: Any) -> None:
        assert gold(worker, document("log", meta={"type": "dict"}), {"meta": [{"level": "debug"}]}) == {
            "meta": {"level": "debug"}
        }


class TestJavaScript:
    @pytest.mark.parametrize(
        "value, kind, text",
        [
            ("clickHandler", "any", "clickHandler"),
            ("a 'quoted' word", "String", "a 'quoted' word"),
            (True, "Boolean", "true"),
            (7, "integer", "7"),
            (4.0, "float", "4.0"),
            (9007199254740993, "Bigint", "9007199254740993n"),
            (["a", "ü"], "array", '["a", "ü"]'),
            ([1.5, 2], "array", "[1.5, 2]"),
            ({}, "dict", "{}"),
        ],
    )
    def test_arguments_are_the_text_of_literals(self, worker: Any, value: Any, kind: str, text: str) -> None:
        assert gold(worker, document("f", v={"type": kind}), {"v": [value]}, "javascript") == {"v": text}

    def test_dictionaries_are_decided_first(self, worker: Any) -> None:
        accepted = {"v": [{"on": [True, "yes"], "note": [""], "list": [["a"]]}]}
        argument = gold(worker, document("f", v={"type": "dict"}), accepted, "javascript")["v"]
        assert json.loads(argument) == {"on": True, "list": ["a"]}


class TestJava:
    @pytest.mark.parametrize(
        "value, schema, text",
        [
            ("userId", {"type": "any"}, "userId"),
            ("plain words", {"type": "String"}, "plain words"),
            (True, {"type": "boolean"}, "true"),
            (12, {"type": "integer"}, "12"),
            (12, {"type": "long"}, "12L"),
            (-1.5, {"type": "float"}, "-1.5f"),
            (0.5, {"type": "double"}, "0.5"),
            ("Long.MAX_VALUE", {"type": "long"}, "Long.MAX_VALUE"),
            ([1, 2], {"type": "Array", "items": {"type": "integer"}}, "new int[]{1, 2}"),
            (["a", "b"], {"type": "Array", "items": {"type": "String"}}, "new String[]{a, b}"),
            (["a", 1], {"type": "Array", "items": {"type": "any"}}, "new Object[]{a, 1}"),
            (
                ["a", "b"],
                {"type": "ArrayList", "items": {"type": "String"}},
                'new ArrayList<>(Arrays.asList("a", "b"))',
            ),
            ([1, 2], {"type": "ArrayList", "items": {"type": "long"}}, "new ArrayList<>(Arrays.asList(1L, 2L))"),
            (["a", False], {"type": "ArrayList", "items": {"type": "any"}}, "new ArrayList<>(Arrays.asList(a, false))"),
            ([], {"type": "ArrayList", "items": {"type": "String"}}, "new ArrayList<>()"),
            ("aVariable", {"type": "ArrayList", "items": {"type": "String"}}, "aVariable"),
            ({}, {"type": "HashMap"}, "new HashMap<>()"),
        ],
    )
    def test_arguments_are_the_text_of_literals(self, worker: Any, value: Any, schema: Any, text: str) -> None:
        assert gold(worker, document("f", v=schema), {"v": [value]}, "java") == {"v": text}

    def test_a_map_quotes_its_strings_and_nothing_else(self, worker: Any) -> None:
        accepted = {"v": [{"name": ["Ada"], "age": [36], "admin": [True], "left out": [""]}]}
        assert gold(worker, document("f", v={"type": "HashMap"}), accepted, "java") == {
            "v": 'new HashMap<String, Object>() {{ put("name", "Ada"); put("age", 36); put("admin", true); }}'
        }


class TestResponses:
    def test_arguments_become_json_text_that_keeps_numbers_apart(self, worker: Any) -> None:
        calls = [("f", {"x": 5.0}), ("f", {"x": 5})]
        assert worker.model_output(calls, False, "ignored") == [{"f": '{"x": 5.0}'}, {"f": '{"x": 5}'}]

    @pytest.mark.parametrize("text", ["", "{", '{"x": 1}', "not json"])
    def test_a_string_is_such_text_already(self, worker: Any, text: str) -> None:
        assert worker.model_output([("f", text)], False, None) == [{"f": text}]

    def test_a_malformed_call_is_one_that_the_decoder_cannot_read(self, worker: Any) -> None:
        (call,) = worker.model_output([], True, "text")
        with pytest.raises(json.JSONDecodeError):
            json.loads(next(iter(call.values())))

    def test_text_counts_only_without_calls(self, worker: Any) -> None:
        assert worker.model_output([], False, "I cannot do that.") == ["I cannot do that."]
        assert worker.model_output([], False, None) == []
        assert worker.model_output([], False, "") == []

    @pytest.mark.parametrize(
        "category, native, expected",
        [
            ("irrelevance", {"valid": True}, True),
            ("live_irrelevance", {"valid": False}, False),
            ("live_relevance", {"valid": False}, True),
            ("live_relevance", {"valid": True}, False),
            ("multiple", {"valid": False, "error_type": "ast_decoder:decoder_failed"}, True),
            ("multiple", {"valid": False, "error_type": "value_error:string"}, False),
            ("multiple", {"valid": True}, False),
        ],
    )
    def test_calls_that_the_runner_could_not_read_are_noticed(
        self, worker: Any, category: str, native: dict[str, Any], expected: bool
    ) -> None:
        assert worker.unreadable(category, native) is expected

    def test_code_that_computes_without_end_is_ended(self, native: Any) -> None:
        with pytest.raises(native.Endless, match=r"0\.05 s"), native.processor_time(0.05):
            re.match(r"(a|a)*$", "a" * 60 + "b")


class TestStandIns:
    def test_they_are_inert_while_upstream_is_imported(self, native: Any) -> None:
        absent = native.StandIn("absent")
        assert isinstance(absent, ModuleType)
        assert isinstance(absent.Client(key="none").messages, native.StandIn)
        assert isinstance(absent.this | absent.that, native.StandIn)

    def test_as_decorators_they_give_back_what_they_decorate(self, native: Any) -> None:
        def decorated() -> int:
            return 3

        assert native.StandIn("absent").retry(attempts=2)(decorated) is decorated

    def test_afterwards_calling_one_is_an_error(self, native: Any) -> None:
        native.StandIn.sealed = True
        with pytest.raises(RuntimeError, match="upstream called parse"):
            native.StandIn("absent").parse("text")


def test_requirements_are_exact_pins_with_hashes_and_name_no_index() -> None:
    requirements = load("requirements")
    assert [name for name, _, _ in requirements.REQUIREMENTS] == ["bfcl-eval", "filelock", "mpmath"]
    assert set(requirements.REQUIREMENTS) < set(requirements.AGENTIC)
    for _, version, hashes in requirements.AGENTIC:
        assert re.fullmatch(r"[0-9.]+", version)
        assert hashes and all(re.fullmatch(r"sha256:[0-9a-f]{64}", value) for value in hashes)
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in requirements.FILES.values())
    assert "://" not in (SOURCES / "requirements.py").read_text(encoding="utf-8")


class TestReadme:
    TEXT = (SOURCES.parents[1] / "README.md").read_text(encoding="utf-8")

    def test_every_benchmark_is_there_with_its_tasks(self) -> None:
        for category, summary in {**CATEGORIES, **DIALOGUES}.items():
            tasks = re.search(r"\((\d+) tasks\)", summary)
            assert tasks is not None
            assert f"| `{benchmark_name(category)}` | {int(tasks[1]):,} |" in self.TEXT

    def test_so_is_every_replaced_module_and_every_known_bad_task(self, native: Any) -> None:
        for name in (*native.ABSENT, native.REGISTRY, *KNOWN_BAD, *OUT_OF_REACH):
            assert f"`{name}`" in self.TEXT

    def test_so_is_every_flag_that_a_verdict_can_carry(self) -> None:
        graders = [(SOURCES / name).read_text(encoding="utf-8") for name in ("turn_grading.py", "worker.py")]
        flags = {flag for text in graders for flag in re.findall(r"flags\[\"(\w+)\"\]|\"(native_runner_\w+)", text)}
        named = {name for pair in flags for name in pair if name}
        assert named >= {"calls_unreadable", "called_before_it_was_there", "native_rewrites_arguments"}
        assert not [name for name in named if name not in self.TEXT]
