"""BFCL's own code behind a few requests; standard library only, run inside the toolkit's environment.

evalcore's toolkit host loads this file by its path, in an environment that holds `bfcl-eval` and nothing of evalcore,
and calls what `handlers()` names. Verdicts come from the benchmark's own runner: its single-turn file runners are given
one task at a time, and what they wrote is read back. Text from an agent reaches only the decoder of tool calls
(`json.loads`) and the checkers (comparisons, regular expressions); nothing on that way evaluates it.
"""

import contextlib
import functools
import hashlib
import importlib.metadata
import itertools
import json
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

if "evalcore_bfcl" not in sys.modules:  # loaded by its path: its neighbours are here, and nothing else of ours
    neighbours = types.ModuleType("evalcore_bfcl")
    neighbours.__path__ = [str(Path(__file__).parent)]
    sys.modules["evalcore_bfcl"] = neighbours

from evalcore_bfcl import stateful, turn_grading
from evalcore_bfcl.native import CPU_SECONDS, Endless, JSONObject, processor_time, upstream

PACKAGE = "bfcl-eval"
OURS = ("confine.py", "native.py", "remote.py", "stateful.py", "turn_grading.py", "worker.py")
"""Our files that serve requests; a change of one can change a verdict."""
MODEL = "evalcore"
"""Whose verdicts the runner thinks these are; upstream reads `_` in it as `/`, so it has none."""

GIVEN = ("prompt", "possible_answer", "model_result", "model_result_raw")
ECHOED = (*GIVEN, "model_result_decoded", "decoded_result")
"""Fields of a native verdict that repeat what the runner was given, as it was or decoded."""

MALFORMED: JSONObject = {"malformed": ""}
"""A call that reached nobody in readable form: one whose arguments the native decoder cannot read either."""


# Tasks


def category_of(params: JSONObject) -> str:
    """The requested category, if it is one that this worker serves."""
    category, served = str(params["category"]), upstream().categories
    if category not in served:
        raise ValueError(f"no single-turn category {category!r}; there are {', '.join(served)}")
    return category


def language_of(category: str) -> str:
    """The language in which a category's arguments are written."""
    runner = upstream().runner
    if runner.is_java(category):
        return "java"
    return "javascript" if runner.is_js(category) else "python"


@functools.cache
def graded(category: str) -> Mapping[str, tuple[JSONObject, JSONObject | None]]:
    """By task id: the task as the runner grades it, and its accepted answers where it has some."""
    entries, answers = upstream().entries(category, hints=False), upstream().ground_truth(category)
    if answers and [entry["id"] for entry in entries] != [answer["id"] for answer in answers]:
        raise ValueError(f"{category}: the accepted answers are not in the order of the tasks")
    return {entry["id"]: (entry, answer) for entry, answer in itertools.zip_longest(entries, answers)}


def entry_of(params: JSONObject) -> tuple[str, JSONObject, JSONObject | None]:
    """The requested task: its category, the task, its accepted answers."""
    category, identifier = category_of(params), params["id"]
    if identifier not in graded(category):
        raise ValueError(f"no task {identifier!r} in {category}")
    return (category, *graded(category)[identifier])


def grader_sha256(entry: JSONObject, answer: JSONObject | None) -> str:
    """A digest of what the grader knows of a task: function documents and accepted answers."""
    seen = {"function": entry["function"], "ground_truth": answer and answer["ground_truth"]}
    return hashlib.sha256(json.dumps(seen, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def served_task(category: str, shown: JSONObject) -> JSONObject:
    """One task as it is served."""
    tools = zip(upstream().tools(shown["function"]), shown["function"], strict=True)
    return {
        "id": shown["id"],
        "messages": shown["question"],
        "tools": [{**tool, "original_name": function["name"]} for tool, function in tools],
        "language": language_of(category),
        "grader_sha256": grader_sha256(*graded(category)[shown["id"]]),
    }


def tasks(params: JSONObject) -> list[JSONObject]:
    """A category's tasks, in the dataset's order."""
    category = category_of(params)
    return [served_task(category, shown) for shown in upstream().entries(category, hints=True)]


def categories(_params: JSONObject) -> list[JSONObject]:
    """The categories served here, and how many tasks each has."""
    return [{"name": name, "tasks": len(graded(name))} for name in upstream().categories]


# Gold: accepted answers as calls, by fixed rules from schema and answers; the checker is never asked


def tool_name(name: str) -> str:
    """A function's name as a tool's: tools may have no dots."""
    return name.replace(".", "_")


def preferred(alternatives: Sequence[Any]) -> Any:
    """The first accepted value; an empty string says "may be left out" and is no value while there is another."""
    return next((value for value in alternatives if value != ""), "")


def concrete(value: Any) -> Any:
    """An accepted value with every dictionary's alternatives decided, and its optional keys left out."""
    if isinstance(value, list):
        return [concrete(item) for item in value]
    if not isinstance(value, dict):
        return value
    # A few leaves are bare values where a list of alternatives should be (simple_java_64, live_multiple_121-46-0).
    leaves = {key: leaf if isinstance(leaf, list) else [leaf] for key, leaf in value.items()}
    return {key: concrete(preferred(leaf)) for key, leaf in leaves.items() if "" not in leaf}


def javascript_literal(value: Any, schema: JSONObject) -> str:
    """A value as the text of a JavaScript argument: strings and names bare, the rest as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False) + ("n" if schema.get("type") == "Bigint" else "")


def java_scalar(value: Any, kind: str) -> str:
    """A number, truth value, string or name as Java text, bare."""
    if isinstance(value, bool):
        return "true" if value else "false"
    suffix = {"long": "L", "float": "f"}.get(kind, "") if isinstance(value, int | float) else ""
    return f"{value}{suffix}"


def java_items(values: Iterable[Any], kind: str, quoted: bool) -> str:
    """Elements of a Java collection, separated by commas."""
    return ", ".join(f'"{item}"' if quoted and isinstance(item, str) else java_scalar(item, kind) for item in values)


def java_literal(value: Any, schema: JSONObject) -> str:
    """A value as the text of a Java argument."""
    kind, item = schema.get("type", "any"), schema.get("items", {}).get("type", "any")
    if isinstance(value, dict):
        puts = " ".join(f'put("{key}", {java_items([inner], "any", True)});' for key, inner in value.items())
        return f"new HashMap<String, Object>() {{{{ {puts} }}}}" if puts else "new HashMap<>()"
    if not isinstance(value, list):
        return java_scalar(value, kind)
    if kind == "Array":
        element = {"any": "Object", "integer": "int"}.get(item, item)
        return f"new {element}[]{{{java_items(value, item, False)}}}"
    items = java_items(value, item, item == "String")
    return f"new ArrayList<>(Arrays.asList({items}))" if items else "new ArrayList<>()"


def argument(value: Any, schema: JSONObject, language: str) -> Any:
    """A value as it is passed: itself in Python, the text of a literal in the other languages."""
    if language == "python":
        return value
    return java_literal(value, schema) if language == "java" else javascript_literal(value, schema)


def gold_arguments(accepted: JSONObject, parameters: JSONObject, language: str) -> JSONObject:
    """One call's arguments: every accepted parameter that may not be left out."""
    required, properties = parameters.get("required", ()), parameters["properties"]
    return {
        name: argument(concrete(preferred(alternatives)), properties.get(name, {}), language)
        for name, alternatives in accepted.items()
        if name in required or "" not in alternatives
    }


def gold_calls(functions: list[JSONObject], ground_truth: list[JSONObject], language: str) -> list[JSONObject]:
    """A task's accepted answers as calls of its tools."""
    parameters = {function["name"]: function["parameters"] for function in functions}
    return [
        {"name": tool_name(name), "arguments": gold_arguments(accepted, parameters[name], language)}
        for expected in ground_truth
        for name, accepted in expected.items()
    ]


def gold(params: JSONObject) -> JSONObject:
    """The calls that solve a task, or why there are none to give."""
    category, entry, answer = entry_of(params)
    if answer is not None:
        return {"calls": gold_calls(entry["function"], answer["ground_truth"], language_of(category))}
    if "irrelevance" in category:
        return {"calls": []}
    return {"calls": None, "reason": "any readable call passes; the benchmark names no right one"}


# Grading


def model_output(calls: list[tuple[str, Any]], malformed: bool, answer: str | None) -> list[Any]:
    """What an agent did, as a response of upstream's handler: its calls, their arguments as JSON text, or its text."""
    output: list[Any] = [{name: given if isinstance(given, str) else json.dumps(given)} for name, given in calls]
    return [*output, *([MALFORMED] if malformed else [])] or ([answer] if answer else [])


def run_native(category: str, entry: JSONObject, answer: JSONObject | None, output: list[Any]) -> JSONObject:
    """One response through upstream's file runner: the verdict as it wrote it, less what it was given."""
    native = upstream()
    results, prompts = [{"id": entry["id"], "result": output}], [entry]
    if answer is None:
        native.runner.relevance_file_runner(native.handler, results, prompts, MODEL, category, native.scores)
    else:
        native.runner.ast_file_runner(native.handler, results, prompts, [answer], category, MODEL, native.scores)
    folder = native.scores / MODEL / native.runner.get_directory_structure_by_category(category)
    written = folder / native.runner.get_file_name_by_category(category, is_score_file=True)
    header, *failures = [json.loads(line) for line in written.read_text(encoding="utf-8").split("\n") if line]
    if len(failures) + header["correct_count"] != 1:
        raise OSError(f"{written.name} does not hold one verdict")
    return {key: value for key, value in failures[0].items() if key not in ECHOED} if failures else {"valid": True}


def unreadable(category: str, native: JSONObject) -> bool:
    """Whether the runner read no call, on the assumption that the response held some."""
    if "relevance" in category:
        return bool(native["valid"]) == ("irrelevance" in category)
    return str(native.get("error_type")).startswith("ast_decoder:")


def grade(params: JSONObject) -> JSONObject:
    """The native verdict on an agent's calls and answer."""
    category, entry, answer = entry_of(params)
    calls, malformed = [(call["name"], call["arguments"]) for call in params["calls"]], bool(params.get("malformed"))
    flags = ["malformed_call"] if malformed else []
    try:
        with processor_time(CPU_SECONDS):
            native = run_native(category, entry, answer, model_output(calls, malformed, params.get("answer")))
    except (OSError, MemoryError):
        raise  # the machine's fault
    except Exception as error:  # noqa: BLE001 - the response's fault, whatever it is: natively it would end the run
        name = type(error).__name__
        flags.append("native_runner_hangs" if isinstance(error, Endless) else f"native_runner_crashes:{name}")
        return {"valid": False, "native": {"raised": name, "message": ascii(str(error))[:2000]}, "flags": flags}
    if (calls or malformed) and unreadable(category, native):
        flags.append("calls_unreadable")
    return {"valid": bool(native["valid"]), "native": native, "flags": flags}


# What the host asks for


def files_used() -> list[Path]:
    """Upstream's imported modules, the classes that calls run against, and the data of every category served."""
    runner = upstream().runner
    origins = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    imported = {Path(origin).resolve() for origin in origins if origin}
    sources = {path for path in imported if runner.PACKAGE_ROOT in path.parents}
    names = [runner.get_file_name_by_category(category) for category in (*upstream().categories, *stateful.files())]
    data = [folder / name for folder in (runner.PROMPT_PATH, runner.POSSIBLE_ANSWER_PATH) for name in names]
    return sorted({*sources, *stateful.sources(), *(path for path in data if path.exists())})


def stamp() -> JSONObject:
    """Which upstream code this is, which modules were replaced, what confines it, and which files of ours serve it."""
    with contextlib.redirect_stdout(sys.stderr):
        paths, site = files_used(), upstream().runner.PACKAGE_ROOT.parent
    version = next((found.version for found in importlib.metadata.distributions(name=PACKAGE)), None)
    return {
        "package": PACKAGE,
        "version": version,
        "replaced": upstream().replaced,
        "confined": upstream().confined,
        "files": {path.relative_to(site).as_posix(): sha256(path) for path in paths},
        "serving": {name: sha256(Path(__file__).with_name(name)) for name in OURS},
    }


def sha256(path: Path) -> str:
    """A file's digest."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def quiet(handler: Callable[..., object]) -> Callable[..., object]:
    """The handler with everything that upstream prints sent to standard error."""

    @functools.wraps(handler)
    def call(*given: object) -> object:
        with contextlib.redirect_stdout(sys.stderr):
            return handler(*given)

    return call


def handlers() -> dict[str, Callable[..., object]]:
    """Each request's name and what answers it."""
    own = {handler.__name__: handler for handler in (tasks, gold, grade, categories)}
    return {name: quiet(handler) for name, handler in {**own, **stateful.handlers(), **turn_grading.handlers()}.items()}
