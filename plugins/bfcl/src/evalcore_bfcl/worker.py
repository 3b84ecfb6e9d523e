"""BFCL's own code behind a few requests; standard library only, run inside the toolkit's environment.

evalcore's toolkit host loads this file by its path, in an environment that holds `bfcl-eval` and nothing of evalcore,
and calls what `handlers()` names. Verdicts come from the benchmark's own runner: its single-turn file runners are given
one task at a time, and what they wrote is read back. Text from an agent reaches only the decoder of tool calls
(`json.loads`) and the checkers (comparisons, regular expressions); nothing on that way evaluates it.
"""

import atexit
import collections
import contextlib
import functools
import hashlib
import importlib.metadata
import itertools
import json
import locale
import os
import signal
import sys
import tempfile
import threading
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

JSONObject: TypeAlias = dict[str, Any]

PACKAGE = "bfcl-eval"
MODEL = "evalcore"
"""Whose verdicts the runner thinks these are; upstream reads `_` in it as `/`, so it has none."""

REGISTRY = "bfcl_eval.constants.model_config"
FOR_APIS, FOR_TABLES = ("anthropic", "anthropic.types", "overrides", "tenacity"), ("dotenv", "numpy", "pandas", "tqdm")
FOR_TEXT = ("tree_sitter", "tree_sitter_java", "tree_sitter_javascript")
ABSENT = (*FOR_APIS, *FOR_TABLES, *FOR_TEXT)
"""Imported by upstream modules that we need, called only by parts of them that we do not."""

GIVEN = ("prompt", "possible_answer", "model_result", "model_result_raw")
ECHOED = (*GIVEN, "model_result_decoded", "decoded_result")
"""Fields of a native verdict that repeat what the runner was given, as it was or decoded."""

MALFORMED: JSONObject = {"malformed": ""}
"""A call that reached nobody in readable form: one whose arguments the native decoder cannot read either."""

CPU_SECONDS = 10.0
"""For one verdict, which takes a millisecond: some of upstream's patterns can be made to backtrack without end."""


# Importing upstream without what it does not need here


class StandIn(types.ModuleType):
    """An absent module, or any name in one: inert while upstream is being imported, an error once that is done."""

    sealed = False

    def __getattr__(self, name: str) -> "StandIn":
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(name)

    def __call__(self, *arguments: object, **named: object) -> object:
        if StandIn.sealed:
            raise RuntimeError(f"upstream called {self.__name__}, which this environment leaves out")
        decorates = len(arguments) == 1 and not named and callable(arguments[0])
        return arguments[0] if decorates else self

    def __or__(self, other: object) -> "StandIn":
        return self


def install_stand_ins() -> None:
    """Puts stand-ins where upstream will look for absent modules, and a registry that knows any model."""
    sys.modules.update({name: StandIn(name) for name in ABSENT})
    registry = types.ModuleType(REGISTRY)
    # As for every tool-calling model of upstream's whose API takes no dots: tools are named with `_` for `.`.
    model = types.SimpleNamespace(underscore_to_dot=True)
    registry.__dict__["MODEL_CONFIG_MAPPING"] = collections.defaultdict(lambda: model)
    sys.modules[REGISTRY] = registry


class Upstream:
    """The imported benchmark: its runner, its tool converter, a tool-calling handler, and a folder for scores."""

    def __init__(self, root: Path) -> None:
        # Importing upstream's settings makes folders under this root, by default inside site-packages.
        os.environ["BFCL_PROJECT_ROOT"] = str(root)
        install_stand_ins()
        self.runner: Any = importlib.import_module("bfcl_eval.eval_checker.eval_runner")
        self.conversion: Any = importlib.import_module("bfcl_eval.model_handler.utils")
        claude: Any = importlib.import_module("bfcl_eval.model_handler.api_inference.claude")
        StandIn.sealed = True
        # Not constructed, which would open a client. Decoding reads this one attribute.
        self.handler: Any = object.__new__(claude.ClaudeHandler)
        self.handler.is_fc_model = True
        self.scores = root / "score"
        self.categories: list[str] = self.runner.SINGLE_TURN_CATEGORY

    def tools(self, functions: list[JSONObject]) -> list[JSONObject]:
        """Function documents as the tools that native tool calling would send."""
        style, types_ = self.conversion.ModelStyle.ANTHROPIC, self.conversion.GORILLA_TO_OPENAPI
        return list(self.conversion.convert_to_tool(functions, types_, style))

    def entries(self, category: str, hints: bool) -> list[JSONObject]:
        """A category's tasks; with hints as models are shown them, without as the runner grades them."""
        load = self.runner.load_dataset_entry
        return list(load(category, include_prereq=False, include_language_specific_hint=hints))

    def ground_truth(self, category: str) -> list[JSONObject]:
        """A category's accepted answers, in the order of its tasks; none where only calling or not is graded."""
        ungraded = self.runner.is_relevance_or_irrelevance(category)
        return [] if ungraded else list(self.runner.load_ground_truth_entry(category))


@functools.cache
def upstream() -> Upstream:
    """Upstream's code, imported at the first use."""
    # Upstream opens its UTF-8 files in the locale's encoding.
    if locale.getpreferredencoding(False).lower() not in {"utf-8", "utf8"}:
        raise RuntimeError("the worker must run in UTF-8 mode: set PYTHONUTF8=1")
    # In the folder that the host made to work in: it goes with the host even if this process is killed.
    folder = tempfile.TemporaryDirectory(prefix="bfcl-", dir=Path.cwd())
    atexit.register(folder.cleanup)
    return Upstream(Path(folder.name))


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


class Endless(Exception):
    """Upstream's code used up the processor time of a verdict."""


@contextlib.contextmanager
def processor_time(seconds: float) -> Iterator[None]:
    """Raises `Endless` in the body when it computes longer; only where signals can be had, in a main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise Endless

    signal.signal(signal.SIGVTALRM, interrupt)  # regular expressions look for signals too
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 1.0)  # and again, should upstream catch it
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


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
    """Upstream's imported modules, and the data of every category served."""
    runner = upstream().runner
    origins = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    imported = {Path(origin).resolve() for origin in origins if origin}
    sources = {path for path in imported if runner.PACKAGE_ROOT in path.parents}
    names = [runner.get_file_name_by_category(category) for category in upstream().categories]
    data = [folder / name for folder in (runner.PROMPT_PATH, runner.POSSIBLE_ANSWER_PATH) for name in names]
    return sorted(sources | {path for path in data if path.exists()})


def stamp() -> JSONObject:
    """Which upstream code this is, and which modules were replaced."""
    with contextlib.redirect_stdout(sys.stderr):
        paths, site = files_used(), upstream().runner.PACKAGE_ROOT.parent
    digests = {path.relative_to(site).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    version = next((found.version for found in importlib.metadata.distributions(name=PACKAGE)), None)
    return {"package": PACKAGE, "version": version, "replaced": sorted([*ABSENT, REGISTRY]), "files": digests}


def quiet(handler: Callable[[JSONObject], object]) -> Callable[[JSONObject], object]:
    """The handler with everything that upstream prints sent to standard error."""

    @functools.wraps(handler)
    def call(params: JSONObject) -> object:
        with contextlib.redirect_stdout(sys.stderr):
            return handler(params)

    return call


def handlers() -> dict[str, Callable[[JSONObject], object]]:
    """Each request's name and what answers it."""
    return {handler.__name__: quiet(handler) for handler in (tasks, gold, grade, categories)}
