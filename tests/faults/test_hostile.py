"""What a model can say, and a provider do: recorded as it was, charged to whose fault it is, no other trial notices."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evalcore.contracts import CallContext
from evalcore.engine import runner
from evalcore.engine.runner import RunEnd
from evalcore.errors import AgentError, FatalInfraError
from evalcore.report.load import load_report
from evalcore.report.scorecard import encode
from evalcore.values.json import JSONObject, canonical
from evalcore.values.trial import Attempt, Exit, Grading
from tests.faults.parts import answer, behaving, called, said
from tests.faults.rig import attempts, by_task, events, ran, study, trace
from tests.faults.three_tasks import at_model_t1, deep, once_for_t1, single, spoiled
from tests.oracles import ROOT


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Void attempts are tried again at once."""
    monkeypatch.setattr(runner, "backoff_s", lambda *_: 0.0)


# ── what a model can say ─────────────────────────────────────────────────────────────────────────────────────────────

HUGE = "1" + "0" * 5000  # more digits than Python reads or prints by itself
LEVELS = 200_000

# arguments of a call of the one tool, as sent: text of JSON as it should be, or anything else
ARGUMENTS: dict[str, Any] = {
    "a huge integer": '{"city": 1000000000000000000000000000000}',
    "an integer of 5,000 digits": f'{{"city": {HUGE}}}',
    "an escaped lone surrogate": '{"city": "\\ud800"}',
    "a lone surrogate": '{"city": "\udfff"}',
    "NaN": '{"city": NaN, "limit": -Infinity}',
    "a number beyond floats": '{"city": 1e999}',
    "a list": "[1, 2]",
    "a string": '"Bern"',
    "a number": "5",
    "null": "null",
    "half an object": '{"city": ',
    "no JSON": "city=Bern",
    "nothing": "",
    "blanks": " \n ",
    "two objects": '{"city": "Bern"} {"city": "Oslo"}',
    "a key twice": '{"city": "Oslo", "city": "Bern"}',
    "lists 200,000 deep": "[" * LEVELS + "]" * LEVELS,
    "objects 200,000 deep": '{"a":' * LEVELS + "1" + "}" * LEVELS,
    "an escaped NUL": '{"city": "\\u0000"}',
    "a NUL": "\0",
    "what looks like a tag": '{"$int16": "no number", "$exact": "no JSON", "n": NaN}',
    "an object": {"city": "Bern"},
    "an object, not as text": {"city": 10**30, "n": math.nan, "s": "\ud800"},
    "a list, not as text": [1, 2],
    "an integer, not as text": 10**5000,
    "NaN, not as text": math.nan,
    "null, not as text": None,
    "300 levels, not as text": deep(300),
    "200,000 levels, not as text": deep(LEVELS),
}
NAMES: dict[str, Any] = {
    "no name": "",
    "a name of 100,000": "x" * 100_000,
    "a surrogate as name": "\ud800",
    "a NUL in the name": "get_weather\0",
    "a path": "../../etc/passwd",
    "a tag": "$exact",
    "a number as name": 5,
    "null as name": None,
    "a list as name": ["get_weather"],
    "a deep list as name": deep(LEVELS),
}


def call(**fields: Any) -> JSONObject:
    """A response of one call of the tool; `fields` stand in its place in the list."""
    good = {"id": "c0", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Bern"}'}}
    return said({"content": None, "tool_calls": [good | fields]})


CALLS: dict[str, JSONObject] = {
    "no id": call(id=None),
    "a number as id": call(id=10**5000),
    "a deep list as id": call(id=deep(LEVELS)),
    "a surrogate as id": call(id="\ud800"),
    "no function": call(function=None),
    "text for a function": call(function="get_weather"),
    "an empty function": call(function={}),
    "a hundred at once": said(
        {"content": None, "tool_calls": [call()["choices"][0]["message"]["tool_calls"][0]] * 100}
    ),  # type: ignore[index,call-overload]
    "a call among nonsense": said({"content": None, "tool_calls": [5, None, "x", {}, [], {"function": {"name": "t"}}]}),
}
# responses that end the conversation
LAST: dict[str, Any] = {
    "text for calls": said({"content": "no", "tool_calls": "get_weather"}),
    "an object for calls": said({"content": "no", "tool_calls": {"name": "get_weather"}}),
    "a number for calls": said({"content": "no", "tool_calls": 5}),
    "true for calls": said({"content": "no", "tool_calls": True}),
    "nonsense for calls": said({"content": "no", "tool_calls": [5, None, "x"]}),
    "no calls": said({"content": "no", "tool_calls": []}),
    "a number as content": said({"content": 10**30}),
    "NaN as content": said({"content": math.nan}),
    "an object as content": said({"content": {"text": "x"}}),
    "parts of no text": said({"content": [{"type": "text", "text": 5}, {"type": "image"}, 5, None]}),
    "a surrogate as content": said({"content": "\ud800"}),
    "a NUL as content": said({"content": "\0"}),
    "deep content": said({"content": deep(LEVELS)}),
    "a number as refusal": said({"content": "no", "refusal": 5}),
    "text for usage": {**said({"content": "no"}), "usage": "much"},
    "odd counts": said({"content": "no"}, prompt_tokens=-5, completion_tokens=1.5),
    "odder counts": said({"content": "no"}, prompt_tokens="7", completion_tokens=True, cost="much"),
    "counts beyond 64 bits": said({"content": "no"}, prompt_tokens=10**30),
    "a negative cost": said({"content": "no"}, cost=-1),
    "no number as cost": said({"content": "no"}, cost=math.nan),
    "tag-like fields": {**said({"content": "no"}), "$exact": "x", "$int16": "y", "n": 10**30},
}
NOT_KEPT = ("200,000 levels", "deep ", "a deep list", "300 levels")  # deeper than any reader of JSON follows
FIRST = (
    {f"arguments: {k}": called(("get_weather", v)) for k, v in ARGUMENTS.items()}
    | {f"name: {k}": called((v, "{}")) for k, v in NAMES.items()}
    | {f"call: {k}": v for k, v in CALLS.items()}
)
SAID = FIRST | {f"last: {k}": v for k, v in LAST.items()}
TASKS = {f"t{number}": name for number, name in enumerate(SAID)}
PEACEFUL = 2  # trials of other tasks, in the same run


async def say_it(body: JSONObject, context: CallContext) -> Any:
    """The task's own hostile response first, then the right answer."""
    name = TASKS.get(context.key.task)
    if name is None or context.call > 1:
        return await answer(body, context)
    return SAID[name]


@pytest.fixture(scope="module")
def all_said(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, tuple[Attempt, Grading | None]]]:
    """One run, in which each task's model says one of them."""
    folder = tmp_path_factory.mktemp("said")
    with behaving(model=say_it):
        end = ran(study(f"in-test:{len(TASKS) + PEACEFUL}", model="in-test/m"), folder)
    assert end == RunEnd("done")
    found = by_task(folder / "r")
    return folder / "r", {TASKS.get(task, task): pair for task, pair in found.items()}


def test_nothing_that_a_model_says_stops_a_run_or_touches_another_trial(
    all_said: tuple[Path, dict[str, tuple[Attempt, Grading | None]]],
) -> None:
    run, found = all_said
    assert len(found) == len(attempts(run)) == len(SAID) + PEACEFUL  # no attempt was void: each was made once
    for task in range(len(SAID), len(SAID) + PEACEFUL):
        attempt, grading = found[f"t{task}"]
        assert attempt.exit == Exit("completed")
        assert grading is not None and grading.verdict.outcome == "pass"
    encode(load_report(run))


@pytest.mark.parametrize("name", SAID)
def test_what_a_model_says_is_recorded_and_graded_as_the_agents(
    all_said: tuple[Path, dict[str, tuple[Attempt, Grading | None]]], name: str
) -> None:
    run, found = all_said
    attempt, grading = found[name]

    assert attempt.exit is not None and attempt.exit.kind == "completed"
    assert grading is not None and grading.error is None
    assert grading.verdict.outcome == ("pass" if name in FIRST else "fail")
    story = events(run, attempt)
    first = next(e for e in story if e["e"] == "model.response")
    if not any(mark in name for mark in NOT_KEPT):
        assert canonical(first["body"]) == canonical(SAID[name])
    with trace(run, attempt) as reader:
        assert len(reader.requests()) == attempt.usage["agent"].calls
    answered = [e for e in story if e["e"] == "tool.result"]
    assert len(answered) == attempt.tool_calls
    assert sum(e["error"] for e in answered) == attempt.tool_errors


@pytest.mark.parametrize("name", [n for n in ARGUMENTS if isinstance(ARGUMENTS[n], str)])
def test_arguments_are_recorded_as_sent(
    all_said: tuple[Path, dict[str, tuple[Attempt, Grading | None]]], name: str
) -> None:
    import json

    run, found = all_said
    sent = ARGUMENTS[name]
    (event,) = [e for e in events(run, found[f"arguments: {name}"][0]) if e["e"] == "tool.call"]

    assert event["tool"] == "get_weather"
    if "raw" in event:
        assert event["raw"] == sent
        with pytest.raises((ValueError, RecursionError)):
            json.loads(sent)
    else:
        assert canonical(event["arguments"]) == canonical(json.loads(sent) if sent.strip() else {})


NO_OBJECTS: list[Any] = [[], "x", None, 5, b"{}", [said({"content": "x"})]]


@pytest.mark.parametrize("response", NO_OBJECTS, ids=[type(r).__name__ for r in NO_OBJECTS[:-1]] + ["wrapped"])
def test_a_provider_that_answers_no_object_has_failed_and_not_the_agent(tmp_path: Path, response: Any) -> None:
    void = spoiled(tmp_path, model=once_for_t1(response))
    assert void.kind == "infra" and "no object" in void.message


@pytest.mark.parametrize("cost", [math.inf, 10**400], ids=["infinite", "beyond floats"])
def test_a_cost_that_is_no_amount_of_money_is_unknown(tmp_path: Path, cost: Any) -> None:
    attempt, _ = single(tmp_path, model=once_for_t1(said({"content": "x"}, cost=cost)))
    assert attempt.usage["agent"].cost_usd is None
    encode(load_report(tmp_path / "r"))


BIG = """
import asyncio, resource, sys
from pathlib import Path
from tests.faults import rig
from tests.faults.parts import answer, behaving, called, said

text = "x" * 50_000_000
what = {
    "arguments": called(("get_weather", '{"city": "%s"}' % text)),
    "malformed": called(("get_weather", '{"city": "%s' % text)),
    "name": called((text, "{}")),
    "content": said({"content": text}),
}[sys.argv[2]]

async def model(body, context):
    return what if (context.key.task, context.call) == ("t1", 1) else await answer(body, context)

with behaving(model=model):
    end = rig.ran(rig.study("in-test:3", model="in-test/m"), Path(sys.argv[1]))
print(end.reason, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["arguments", "malformed", "name", "content"])
def test_fifty_megabytes_in_one_place_are_kept_without_eating_the_machine(tmp_path: Path, where: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BIG, str(tmp_path), where], cwd=ROOT, capture_output=True, text=True, check=True
    )
    reason, mebibytes = done.stdout.split()

    assert reason == "done"
    assert int(mebibytes) < 1500
    found = by_task(tmp_path / "r")
    attempt, grading = found["t1"]
    assert attempt.exit == Exit("completed")
    assert grading is not None and grading.verdict.outcome == ("fail" if where == "content" else "pass")
    story = events(tmp_path / "r", attempt)
    assert sum(str(e).count("x" * 50_000_000) for e in story if e["e"] == "model.response") == 1
    assert (tmp_path / "r" / "attempts.jsonl").stat().st_size < 10_000
    assert all(g is not None and g.verdict.outcome == "pass" for t, (_, g) in found.items() if t != "t1")


def test_a_fatal_failure_stops_the_run_and_what_is_left_can_be_resumed(tmp_path: Path) -> None:
    with behaving(model=at_model_t1(FatalInfraError("401 bad key"))):
        end = ran(study("in-test:3", model="in-test/m"), tmp_path, concurrency=1)
    assert (end.reason, end.exit_code) == ("fatal", 4)
    assert end.error is not None and end.error.message == "401 bad key"
    assert [a.key.task for a in attempts(tmp_path / "r")] == ["t0", "t1"]


def test_a_request_that_the_provider_refuses_is_the_agents_doing(tmp_path: Path) -> None:
    attempt, grading = single(tmp_path, model=at_model_t1(AgentError("400 context too long")))
    assert attempt.exit == Exit("crashed", detail="400 context too long")
    assert grading.verdict.outcome == "fail"
