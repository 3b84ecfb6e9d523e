"""Tasks whose calls are executed: several turns against upstream's stateful classes, and memory across sessions.

Upstream executes a call by `eval` of its text. What reaches it from an agent is a name that is on offer, keywords that
are identifiers, and values that went through JSON and `repr`; everything else is answered here and executed nowhere.
Every session, and every verdict, has instances under a tag of its own: upstream keeps them in its module's globals, and
a name that is used again goes on where the one before it stopped.
"""

import ast
import functools
import hashlib
import importlib
import inspect
import itertools
import json
import keyword
import shutil
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalcore_bfcl import remote
from evalcore_bfcl.native import CPU_SECONDS, Endless, JSONObject, is_here, processor_time, upstream

SOURCES = "eval_checker/multi_turn_eval/func_source_code"
SHARED = ("memory", "web_search")
FAILED = "Error during execution: "
"""How upstream begins the answer to a call that raised."""

NEEDS = {
    "memory_kv": ("numpy", "rank_bm25"),
    "memory_vector": ("sentence_transformers", "faiss"),
    "web_search": ("bs4", "html2text"),
}
"""What some classes compute with."""

NOWHERE: JSONObject = {"no_such_tool": "{}"}
"""A call of nothing, in the place of one that was executed nowhere: no result of an expected call is like its own."""


# Categories


def categories() -> list[str]:
    """Those whose calls are executed; see `backend` for what that takes."""
    mapping = constants("category_mapping")
    return [*mapping.MULTI_TURN_CATEGORY, *mapping.AGENTIC_CATEGORY]


def constants(name: str) -> Any:
    """One of upstream's modules of constants."""
    return importlib.import_module(f"bfcl_eval.constants.{name}")


def category_of(params: JSONObject) -> str:
    """The requested category, if it is one of these."""
    category, served = str(params["category"]), categories()
    if category not in served:
        raise ValueError(f"no category {category!r} with several turns; there are {', '.join(served)}")
    return category


def is_memory(category: str) -> bool:
    """Whether a category's tasks build on what earlier sessions left."""
    return bool(upstream().runner.is_memory(category))


def is_agentic(category: str) -> bool:
    """Whether only the last words of a category's tasks are graded."""
    return bool(upstream().runner.is_agentic(category))


def shared_name(category: str) -> str:
    """What a category's data is called: those of memory share a file, as do those of web search."""
    return next((name for name in SHARED if category.startswith(name)), category)


def files() -> list[str]:
    """What upstream's data files are called after."""
    return [*constants("category_mapping").MULTI_TURN_CATEGORY, *SHARED]


def sources() -> Iterator[Path]:
    """Upstream's files behind these categories, beside those named after them."""
    runner = upstream().runner
    yield from (runner.PACKAGE_ROOT / SOURCES).glob("*.py")
    yield from runner.MULTI_TURN_FUNC_DOC_PATH.glob("*.json")
    yield from runner.MEMORY_PREREQ_CONVERSATION_PATH.glob("*.json")


# Tasks


@functools.cache
def shown(category: str) -> Mapping[str, JSONObject]:
    """By id, in the dataset's order: the tasks as models are shown them, those that others require before these."""
    load = upstream().runner.load_dataset_entry
    return {entry["id"]: entry for entry in load(category, include_prereq=True, include_language_specific_hint=True)}


@functools.cache
def graded(category: str) -> Mapping[str, tuple[JSONObject, list[Any]]]:
    """By id: the tasks that the runner grades, and their ground truth.

    It would load them without hints in their function documents; those it takes away before it looks at anything.
    """
    is_required, answers = upstream().runner.is_memory_prereq, upstream().ground_truth(category)
    entries = [entry for entry in shown(category).values() if not is_required(entry["id"])]
    shared = shared_name(category)
    for entry, answer in itertools.zip_longest(entries, answers):
        if entry["id"].replace(category, shared) != answer["id"]:
            raise ValueError(f"{category}: the accepted answers are not in the order of the tasks")
    return {entry["id"]: (entry, answer["ground_truth"]) for entry, answer in zip(entries, answers, strict=True)}


def entry_of(params: JSONObject) -> tuple[str, JSONObject]:
    """The requested task: its category, and the task as it is shown."""
    category, identifier = category_of(params), params["id"]
    if not isinstance(identifier, str) or identifier not in shown(category):
        raise ValueError(f"no task {identifier!r} in {category}")
    return category, shown(category)[identifier]


def turns_of(entry: JSONObject) -> list[list[JSONObject]]:
    """What the user says, turn by turn; where functions are added, upstream's words for it."""
    added = entry.get("missed_function", {})
    words = constants("default_prompts").DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC
    news = [{"role": "user", "content": words}]
    return [news if str(number) in added else list(said) for number, said in enumerate(entry["question"])]


@functools.cache
def offered(category: str, identifier: str) -> tuple[list[JSONObject], dict[str, list[JSONObject]]]:
    """A task's tools: those at first, and those that a later turn adds, by the turn's number."""
    entry = shown(category)[identifier]
    added = entry.get("missed_function", {})
    return converted(entry["function"]), {turn: converted(documents) for turn, documents in added.items()}


def converted(documents: Iterable[JSONObject]) -> list[JSONObject]:
    """Function documents as tools; most are those of many tasks."""
    return [_tool(json.dumps(document)) for document in documents]


@functools.cache
def _tool(document: str) -> JSONObject:
    (tool,) = upstream().tools([json.loads(document)])
    return tool


def served_task(category: str, entry: JSONObject) -> JSONObject:
    """One task as it is served; the tools themselves come with its session."""
    tools, added = offered(category, entry["id"])
    expected = graded(category).get(entry["id"])
    return {
        "id": entry["id"],
        "turns": turns_of(entry),
        "tools": [tool["name"] for tool in tools],
        "added": {turn: [tool["name"] for tool in later] for turn, later in added.items()},
        "tools_sha256": sha256([tools, added]),
        "scenario": entry.get("scenario"),
        "requires": entry.get("depends_on", [])[-1:],  # which requires the one before it in turn
        "scored": expected is not None,
        "grader_sha256": grader_sha256(*expected) if expected else None,
    }


def grader_sha256(entry: JSONObject, answer: list[Any]) -> str:
    """A digest of what the environment and the grader know of a task: where it begins, and how it should end."""
    seen = {name: entry.get(name) for name in ("initial_config", "involved_classes", "scenario")}
    return sha256({**seen, "ground_truth": answer})


def sha256(value: Any) -> str:
    """A digest of something that is JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def dialogue_tasks(params: JSONObject) -> list[JSONObject]:
    """A category's tasks, in the dataset's order; those that others require come first."""
    category = category_of(params)
    return [served_task(category, entry) for entry in shown(category).values()]


# Gold: the ground truth's own calls, by the names of their parameters


def dialogue_gold(params: JSONObject) -> JSONObject:
    """The calls of each turn and the last words that solve a task; nothing where nothing is graded."""
    category, entry = entry_of(params)
    _, answer = graded(category).get(entry["id"], (None, []))
    if is_agentic(category):
        return {"turns": [], "answer": str(answer[0]) if answer else ""}
    signatures = parameters(entry["involved_classes"])
    return {"turns": [[call_of(text, signatures) for text in turn] for turn in answer], "answer": ""}


def parameters(classes: Iterable[str]) -> dict[str, list[str]]:
    """The parameters of every function of some classes, in order."""
    methods = itertools.chain.from_iterable(inspect.getmembers(class_of(name), inspect.isfunction) for name in classes)
    return {name: list(inspect.signature(method).parameters)[1:] for name, method in methods if name[0] != "_"}


def call_of(text: str, signatures: Mapping[str, Sequence[str]]) -> JSONObject:
    """A call that is written as Python, as a name and arguments."""
    call = ast.parse(text.strip(), mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise TypeError(f"the ground truth {text!r} is no call")
    name = call.func.id
    given = dict(zip(signatures[name], (ast.literal_eval(value) for value in call.args), strict=False))
    given |= {str(pair.arg): ast.literal_eval(pair.value) for pair in call.keywords}
    return {"name": name, "arguments": given}


# Upstream's classes and what keeps them apart


@functools.cache
def class_of(name: str) -> Any:
    """One of upstream's classes, imported at the first use."""
    if name == "WebSearchAPI":
        remote.install()
    with upstream().importing():
        module = importlib.import_module(constants("executable_backend_config").CLASS_FILE_PATH_MAPPING[name])
    return getattr(module, name)


@functools.cache
def executor() -> Any:
    """Upstream's module that executes calls, and holds the instances."""
    return importlib.import_module("bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils")


def new_tag() -> str:
    """A name for instances that nobody had before: it must be the beginning of an identifier."""
    return f"e{uuid.uuid4().hex}"


def forget(tag: str) -> None:
    """Drop the instances and the files under a tag."""
    held = vars(executor())
    for name in [name for name in held if name.startswith(tag)]:
        del held[name]
    shutil.rmtree(upstream().root / tag, ignore_errors=True)


# Sessions


class Session:
    """One trial's environment: a task, and upstream's instances under a tag of their own."""

    def __init__(self, category: str, entry: JSONObject, memory: JSONObject | None) -> None:
        self.tag = new_tag()
        self.category = category
        self.entry = entry
        tools, added = offered(category, entry["id"])
        self.names = {tool["name"] for tool in itertools.chain(tools, *added.values())}
        self.config: JSONObject = self._begin(memory)
        for name in entry["involved_classes"]:
            class_of(name)
        self.instances: dict[str, Any] = self._execute([])[1]

    def _begin(self, memory: JSONObject | None) -> JSONObject:
        """Where this environment begins; a memory in a folder of upstream's shape, with what was left there before."""
        runner, root = upstream().runner, upstream().root / self.tag
        if not is_memory(self.category):
            (entry,) = runner.populate_initial_settings_for_web_search_test_cases([dict(self.entry)])
            return dict(entry.get("initial_config", {}))
        (entry,) = runner.populate_initial_settings_for_memory_test_cases([dict(self.entry)], root)
        folder = root / runner.get_directory_structure_by_id(entry["id"]) / "memory_snapshot"
        self.left = folder / f"{entry['scenario']}_final.json"
        folder.mkdir(parents=True)
        if memory is not None:
            self.left.write_text(json.dumps(memory), encoding="utf-8")
        return dict(entry["initial_config"])

    def _execute(self, calls: list[str]) -> tuple[list[str], dict[str, Any]]:
        results, instances = executor().execute_multi_turn_func_call(
            func_call_list=calls,
            initial_config=self.config,
            involved_classes=self.entry["involved_classes"],
            model_name=self.tag,
            test_entry_id=self.entry["id"],
            long_context="long_context" in self.category,
            is_evaL_run=False,
        )
        return list(results), dict(instances)

    def turns(self) -> list[list[JSONObject]]:
        """What the user says; in a session with a memory, after upstream's account of it."""
        turns = turns_of(self.entry)
        if not is_memory(self.category):
            return turns
        told = [[dict(message) for message in turns[0]], *turns[1:]]
        (memory,) = self.instances.values()
        add = upstream().conversion.add_memory_instruction_system_prompt
        return list(add(told, self.category, self.entry["scenario"], memory))

    def call(self, name: str, arguments: str) -> str:
        """Upstream's answer to one call."""
        sent = sendable(name, arguments, self.names)
        if isinstance(sent, str):
            return FAILED + sent
        (text,) = upstream().handler.decode_execute([sent], has_tool_call_tag=False)
        with processor_time(CPU_SECONDS):
            (result,), _ = self._execute([text])
        return result

    def state(self) -> JSONObject:
        """What the instances hold; of a memory, what the next session begins with."""
        if is_memory(self.category):
            (memory,) = self.instances.values()
            memory._flush_memory_to_local_file()  # noqa: SLF001 - as upstream's loop does at a session's end
            left: JSONObject = json.loads(self.left.read_text(encoding="utf-8"))
            return left
        held = {name: public(instance) for name, instance in self.instances.items()}
        plain: JSONObject = upstream().runner.make_json_serializable(held)
        return plain


def public(instance: object) -> JSONObject:
    """The attributes that upstream compares."""
    return {name: value for name, value in vars(instance).items() if not name.startswith("_")}


def sendable(name: object, arguments: str, names: Iterable[str]) -> JSONObject | str:
    """A call as upstream's decoder takes it; or why it is not to be executed."""
    if not isinstance(name, str) or name not in names:
        return f"name {str(name)[:100]!r} is not defined"
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError) as error:
        return f"the arguments cannot be read: {str(error)[:200]}"
    if not isinstance(given, dict):
        return "the arguments are no object"
    wrong = next((key for key in given if not key.isidentifier() or keyword.iskeyword(key)), None)
    if wrong is not None:
        return f"{wrong[:100]!r} cannot be the name of an argument"
    try:
        repr(given)
    except (ValueError, RecursionError) as error:  # numbers too long to write, lists too deep
        return f"the arguments cannot be written: {str(error)[:200]}"
    return {name: arguments}


def executable(call: JSONObject, names: Iterable[str]) -> JSONObject | None:
    """A call as upstream's runner may execute it; None where even upstream could not read it."""
    sent = sendable(call["name"], call["arguments"], names)
    if isinstance(sent, dict):
        return sent
    return NOWHERE if is_object(call["arguments"]) else None


def is_object(arguments: str) -> bool:
    """Whether a text is the JSON of an object."""
    try:
        return isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return False


SESSIONS: dict[str, Session] = {}


def open_session(params: JSONObject, host: Any) -> JSONObject:
    """Begin a trial's environment: its turns, its tools, and how often a model may answer in a turn."""
    if host.session is None or host.session in SESSIONS:
        raise ValueError("a session is opened once")
    category, entry = entry_of(params)
    session = SESSIONS[host.session] = Session(category, entry, params.get("memory"))
    tools, added = offered(category, entry["id"])
    # Upstream counts after it has executed, and gives up when the count is beyond its limit.
    replies = constants("default_prompts").MAXIMUM_STEP_LIMIT + 1
    return {"turns": session.turns(), "tools": tools, "added": added, "replies": replies}


def call(params: JSONObject, host: Any) -> JSONObject:
    """Execute one call; its arguments come as JSON text."""
    try:
        with remote.answered_by(host):
            text = SESSIONS[host.session].call(params["name"], params["arguments"])
    except Endless as error:  # upstream's own code catches it in most cases
        text = FAILED + str(error)
    return {"text": text, "error": is_error(text)}


def is_error(text: str) -> bool:
    """Whether a call failed: it raised, or its result is an object that holds nothing but an error."""
    if text.startswith(FAILED):
        return True
    if not text.startswith('{"error":'):
        return False
    try:
        return list(json.loads(text)) == ["error"]
    except (ValueError, RecursionError):
        return False


def state(_params: JSONObject, host: Any) -> JSONObject:
    """The environment's state."""
    return SESSIONS[host.session].state()


def close_session(params: JSONObject) -> None:
    """Forget a session."""
    session = SESSIONS.pop(params["session"], None)
    if session is not None:
        forget(session.tag)


# What the host asks for


def backend(params: JSONObject) -> JSONObject:
    """Whether a category's calls can be executed here; if not, what is missing."""
    category = category_of(params)
    needs = NEEDS.get(shared_name(category), NEEDS.get(category, ()))
    missing = [name for name in needs if name not in sys.modules and not is_here(name)]
    return {"missing": missing}


def handlers() -> dict[str, Callable[..., object]]:
    """Each request's name and what answers it."""
    named: list[Callable[..., object]] = [dialogue_tasks, dialogue_gold, backend, call, state]
    sessions: dict[str, Callable[..., object]] = {"open": open_session, "session.close": close_session}
    return {**{handler.__name__: handler for handler in named}, **sessions}
