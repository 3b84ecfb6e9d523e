"""How what an agent did becomes a verdict: scripted agents, one task each, through the whole rig."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from attrs import field, frozen

from evalcore.contracts import ToolkitHandle
from evalcore.engine.run import regrade
from evalcore.engine.store import TraceStore, read_attempts
from evalcore.toolkits.environment import Environment
from evalcore.values.trial import Verdict
from evalcore_bfcl.adapter import RESULT
from evalcore_bfcl.grader import ALL_CALLS, LONGEST
from evalcore_bfcl.plugin import benchmark_name
from plugins.bfcl.tests.rig import (
    REACT,
    Trial,
    Trials,
    gold_of,
    registry,
    run,
    study,
    trials,
    with_toolkit,
    write_playbook,
)

Reply: TypeAlias = dict[str, Any]

DIGITS_30: Final = "123456789012345678901234567890"
DIGITS_5000: Final = "7" * 5000  # more than Python reads as a number
LONG: Final = "x" * 1_000_000


@frozen
class Played:
    """A task as a scene plays it, with the calls that solve it."""

    id: str
    tools: list[dict[str, Any]]
    gold: list[dict[str, Any]]

    @property
    def name(self) -> str:
        """The tool of the first right call, or any."""
        return str(self.gold[0]["name"] if self.gold else self.tools[0]["name"])


@frozen
class Scene:
    """What the model says to a task of a category, and what comes of it. `view` is over all calls of the loop."""

    category: str
    replies: Callable[[Played], list[Reply]]
    outcome: str
    view: bool
    flags: tuple[str, ...] = ()
    exit: str = "completed"
    fits: Callable[[Played], bool] = field(default=lambda task: len(task.tools) > 0)


def says(text: str) -> Reply:
    return {"text": text}


def calls(*made: dict[str, Any]) -> Reply:
    return {"tool_calls": list(made)}


def call(name: str, arguments: Any) -> dict[str, Any]:
    """Arguments that are a string are sent as they stand."""
    return {"name": name, "arguments": arguments}


def with_text(arguments: str) -> Callable[[Played], list[Reply]]:
    """One call of the right tool with this text for arguments."""
    return lambda task: [calls(call(task.name, arguments))]


def wrong(task: Played) -> dict[str, Any]:
    return call(task.name, {**task.gold[0]["arguments"], "not_a_parameter": 1})


def is_dotted(task: Played) -> bool:
    return "." in task.tools[0]["original_name"]


def takes(kind: type) -> Callable[[Played], bool]:
    """Whether the right call has an argument of this type."""
    return lambda task: any(type(value) is kind for value in task.gold[0]["arguments"].values())


def with_value(kind: type, text: str) -> Callable[[Played], list[Reply]]:
    """The right call, but for this text in the place of its first argument of a type."""

    def replies(task: Played) -> list[Reply]:
        arguments = dict(task.gold[0]["arguments"])
        first = next(name for name, value in arguments.items() if type(value) is kind)
        return [calls(call(task.name, json.dumps(arguments | {first: "@"}).replace('"@"', text)))]

    return replies


UNREADABLE: Final = ("calls_unreadable",)
PYTHON: Final = "simple_python"
NONE_FITS: Final = "irrelevance"

SCENES: Final[dict[str, Scene]] = {
    # the first response is graded, whatever follows
    "the right call": Scene(PYTHON, lambda t: [calls(*t.gold)], "pass", True),
    "the right call with a word before it": Scene(PYTHON, lambda t: [says("Well.") | calls(*t.gold)], "pass", True),
    "the right call, and again": Scene(PYTHON, lambda t: [calls(*t.gold), calls(*t.gold)], "pass", False),
    "the right call twice at once": Scene(PYTHON, lambda t: [calls(*t.gold, *t.gold)], "fail", False),
    "the wrong call, then the right one": Scene(PYTHON, lambda t: [calls(wrong(t)), calls(*t.gold)], "fail", False),
    "only text": Scene(PYTHON, lambda t: [says("It is 42.")], "fail", False),
    "nothing at all": Scene(PYTHON, lambda t: [{}], "fail", False),
    "a refusal": Scene(PYTHON, lambda t: [{"refusal": "I would rather not."}], "fail", False, exit="refused"),
    "calls side by side": Scene("parallel", lambda t: [calls(*t.gold)], "pass", True),
    "one call after the other": Scene(
        "parallel", lambda t: [calls(gold) for gold in t.gold], "fail", True, fits=lambda t: len(t.gold) > 1
    ),
    "the right one of several tools": Scene("multiple", lambda t: [calls(*t.gold)], "pass", True),
    # names
    "a dotted function under its tool's name": Scene(PYTHON, lambda t: [calls(*t.gold)], "pass", True, fits=is_dotted),
    "a dotted function under its own name": Scene(
        PYTHON,
        lambda t: [calls(call(t.tools[0]["original_name"], t.gold[0]["arguments"]))],
        "fail",
        False,
        fits=is_dotted,
    ),
    "an unknown tool": Scene(PYTHON, lambda t: [calls(call("rm", t.gold[0]["arguments"]))], "fail", False),
    # arguments that are none
    "arguments cut short": Scene(PYTHON, with_text('{"x": '), "fail", False, UNREADABLE),
    "arguments that are a list": Scene(PYTHON, with_text("[1, 2]"), "fail", False, UNREADABLE),
    "arguments that are a string": Scene(PYTHON, with_text('"hello"'), "fail", False, UNREADABLE),
    "arguments that are null": Scene(PYTHON, with_text("null"), "fail", False, UNREADABLE),
    "no arguments": Scene(PYTHON, with_text(""), "fail", False),
    "one call of two cut short": Scene(
        "parallel", lambda t: [calls(*t.gold[1:], call(t.name, "{"))], "fail", False, UNREADABLE
    ),
    # values that break encoders
    "NaN": Scene(PYTHON, with_value(int, "NaN"), "fail", False, fits=takes(int)),
    "infinity": Scene(PYTHON, with_value(int, "-Infinity"), "fail", False, fits=takes(int)),
    "an integer of 30 digits": Scene(PYTHON, with_value(int, DIGITS_30), "fail", False, fits=takes(int)),
    "an integer of 5,000 digits": Scene(
        PYTHON, with_value(int, DIGITS_5000), "fail", False, UNREADABLE, fits=takes(int)
    ),
    "a lone surrogate": Scene(
        PYTHON, with_text('{"x": "\\ud800"}'), "fail", False, ("native_runner_crashes:UnicodeEncodeError",)
    ),
    "500 levels": Scene(
        PYTHON,
        with_text('{"x": ' + "[" * 500 + "]" * 500 + "}"),
        "fail",
        False,
        ("native_runner_crashes:RecursionError",),
    ),
    "100,000 levels": Scene(PYTHON, with_text("[" * 100_000 + "]" * 100_000), "fail", False, UNREADABLE),
    "a string of 1 MB": Scene(PYTHON, with_value(str, f'"{LONG}"'), "fail", False, fits=takes(str)),
    # where no call is right
    "silence where none fits": Scene(NONE_FITS, lambda t: [{}], "declined", True),
    "text where none fits": Scene(NONE_FITS, lambda t: [says("No tool of mine does that.")], "declined", True),
    "a refusal where none fits": Scene(
        NONE_FITS, lambda t: [{"refusal": "I would rather not."}], "declined", True, exit="refused"
    ),
    "a call where none fits": Scene(NONE_FITS, lambda t: [calls(call(t.name, {}))], "fail", False),
    "an unknown tool where none fits": Scene(NONE_FITS, lambda t: [calls(call("search", {}))], "fail", False),
    "a call without tools": Scene(
        "live_irrelevance", lambda t: [calls(call("search", {}))], "fail", False, fits=lambda t: not t.tools
    ),
    # natively a pass (upstream #1362), but nothing was declined
    "an unreadable call where none fits": Scene(NONE_FITS, with_text('{"x": '), "pass", False, UNREADABLE),
    "a list of arguments where none fits": Scene(NONE_FITS, with_text("[1]"), "pass", False, UNREADABLE),
    "an unreadable call, then a readable one": Scene(
        NONE_FITS, lambda t: [calls(call(t.name, "{")), calls(call(t.name, {}))], "pass", False, UNREADABLE
    ),
    # a request that the provider calls broken: the agent's fault, and no decision
    "a crash where none fits": Scene(
        NONE_FITS,
        lambda t: [{"error": {"status": 400}}],
        "fail",
        False,
        ("called_nothing_but_crashed",),
        exit="crashed",
    ),
    "a crash after a call": Scene(
        PYTHON, lambda t: [calls(*t.gold), {"error": {"status": 400}}], "pass", True, exit="crashed"
    ),
    # where any call is right
    "any call where one fits": Scene("live_relevance", lambda t: [calls(call(t.name, {}))], "pass", True),
    "text where one fits": Scene("live_relevance", lambda t: [says("Hm.")], "fail", False),
    "an unreadable call where one fits": Scene("live_relevance", with_text("{"), "fail", False, UNREADABLE),
}


async def served(toolkit: ToolkitHandle) -> dict[str, list[Played]]:
    """The tasks of every category that a scene plays in, with their gold."""
    found: dict[str, list[Played]] = {}
    for category in {scene.category for scene in SCENES.values()}:
        tasks: Any = await toolkit.request("tasks", {"category": category}, 60)
        wanted = tasks[:60] if category != "live_irrelevance" else [task for task in tasks if not task["tools"]]
        found[category] = [Played(t["id"], t["tools"], await gold_of(toolkit, category, t["id"])) for t in wanted]
    return found


@frozen
class Stage:
    """A run of all scenes, and which task each had."""

    path: Path
    tasks: dict[str, Played]
    trials: Trials

    def of(self, name: str) -> Trial:
        return self.trials[benchmark_name(SCENES[name].category), "react", self.tasks[name].id]


@pytest.fixture(scope="module")
def stage(toolkit: Environment, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """Each scene on a task of its own, the first that fits."""
    folder, free = tmp_path_factory.mktemp("scenes"), with_toolkit(served)
    tasks: dict[str, Played] = {}
    replies: list[Reply] = []
    for name, scene in SCENES.items():
        task = tasks[name] = next(t for t in free[scene.category] if scene.fits(t))
        free[scene.category].remove(task)
        said = scene.replies(task)
        replies += [{"match": {"task": task.id, "call": n}} | reply for n, reply in enumerate(said, 1)]
    write_playbook(folder, [*replies, says("Done.")])
    chosen: dict[str, tuple[str, ...]] = {}
    for name, task in tasks.items():
        benchmark = benchmark_name(SCENES[name].category)
        chosen[benchmark] = (*chosen.get(benchmark, ()), task.id)
    path = run(study(tuple(chosen), REACT, tasks=chosen), folder)
    return Stage(path, tasks, trials(path))


@pytest.mark.parametrize("name", SCENES)
def test_the_native_verdict_is_on_the_first_response_and_the_view_on_all_calls(stage: Stage, name: str) -> None:
    scene, trial = SCENES[name], stage.of(name)
    assert trial.grading.error is None
    assert trial.attempt.exit is not None
    assert (trial.verdict.outcome, dict(trial.verdict.views), trial.verdict.flags, trial.attempt.exit.kind) == (
        scene.outcome,
        {ALL_CALLS: scene.view},
        scene.flags,
        scene.exit,
    )
    assert trial.verdict.score == (0.0 if scene.outcome == "fail" else 1.0)


class TestRecord:
    def test_values_are_kept_as_they_were_sent(self, stage: Stage) -> None:
        def value(name: str) -> Any:
            (made,) = stage.of(name).left.calls
            assert isinstance(made.arguments, dict)
            gold = stage.tasks[name].gold[0]["arguments"]
            return next((v for k, v in made.arguments.items() if k not in gold or v != gold[k]), None)

        assert math.isnan(value("NaN"))
        assert value("infinity") == -math.inf
        assert value("an integer of 30 digits") == int(DIGITS_30)
        assert value("a lone surrogate") == "\ud800"
        assert value("a string of 1 MB") == LONG

    def test_text_that_is_no_json_is_kept_as_text(self, stage: Stage) -> None:
        for name in ("an integer of 5,000 digits", "100,000 levels"):
            (made,) = stage.of(name).left.calls
            assert made.raw is not None and (DIGITS_5000 in made.raw or made.raw == "[" * 100_000 + "]" * 100_000)

    def test_all_calls_are_kept_apart_only_where_they_are_others(self, stage: Stage) -> None:
        assert "all_calls" not in stage.of("the right call").left.data
        over = stage.of("the right call, and again").left.data
        assert len(over["first_response"]) == 1 and len(over["all_calls"]) == 2  # type: ignore[arg-type]

    def test_a_native_message_is_kept_but_not_at_any_length(self, stage: Stage) -> None:
        def message(name: str) -> str:
            native = stage.of(name).verdict.details["native"]
            assert isinstance(native, dict) and isinstance(native["error"], list)
            return str(native["error"][0])

        assert message("the wrong call, then the right one") == "Unexpected parameter: 'not_a_parameter'."
        assert message("a string of 1 MB").startswith("Invalid value for parameter ")
        assert LONGEST < len(message("a string of 1 MB")) < LONGEST + 50

    def test_every_tool_answers_that_the_call_was_recorded(self, stage: Stage) -> None:
        assert RESULT == "The call was recorded."
        assert stage.of("the right call").attempt.tool_errors == 0
        assert stage.of("an unknown tool").attempt.tool_errors == 1


def test_grading_again_gives_equal_verdicts(stage: Stage) -> None:
    def verdicts(found: Trials) -> dict[tuple[str, str, str], Verdict]:
        return {key: trial.verdict for key, trial in found.items()}

    _, grading, count = asyncio.run(regrade(stage.path, registry()))

    assert count == len(SCENES)
    lines = (stage.path / "gradings" / f"{grading}.jsonl").read_bytes().splitlines()
    assert len(lines) == 2 * len(SCENES)
    assert verdicts(trials(stage.path)) == verdicts(stage.trials)


def test_names_of_tools_lead_back_to_those_of_functions(toolkit: Environment) -> None:
    async def every_name(of: ToolkitHandle) -> list[list[tuple[str, str]]]:
        found: Any = [await of.request("tasks", {"category": category}, 60) for category in (PYTHON, "multiple")]
        return [[(t["name"], t["original_name"]) for t in task["tools"]] for tasks in found for task in tasks]

    names = with_toolkit(every_name)
    assert len(names) == 600 and sum("." in original for task in names for _, original in task) > 100
    for task in names:
        assert len({name for name, _ in task}) == len(task)
        assert all(name == original.replace(".", "_") for name, original in task)


def test_the_model_is_told_upstreams_messages_and_tools_and_nothing_else(toolkit: Environment, tmp_path: Path) -> None:
    async def talks(of: ToolkitHandle) -> list[Any]:
        tasks: Any = await of.request("tasks", {"category": "live_irrelevance"}, 60)
        longest = max(tasks, key=lambda task: len(task["messages"][0]))
        return [longest, next(task for task in tasks if task["messages"][0][0]["role"] == "system" and task["tools"])]

    wanted = with_toolkit(talks)
    assert {"system", "assistant"} <= {m["role"] for task in wanted for m in task["messages"][0]}
    write_playbook(tmp_path, [says("No.")])
    ids = tuple(task["id"] for task in wanted)
    path = run(study(("bfcl-live-irrelevance",), REACT, tasks={"bfcl-live-irrelevance": ids}), tmp_path)

    store = TraceStore(path)
    asked = {a.key.task: store.read(a.trace).requests()[0] for a in read_attempts(path)}
    store.close()
    for task in wanted:
        request: Any = asked[task["id"]]
        assert request["messages"] == task["messages"][0]
        functions = [tool["function"] for tool in request.get("tools", [])]
        assert functions == [
            {"name": tool["name"], "description": tool["description"], "parameters": tool["input_schema"]}
            for tool in task["tools"]
        ]
