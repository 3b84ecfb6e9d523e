"""What `evalcore.testing` gives to authors: nothing heavy before it is asked for, and fakes that do what they say."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from evalcore import testing
from evalcore.builtin.controls import NoopHarness, OracleHarness
from evalcore.contracts import Selector
from evalcore.errors import InfraError, LimitReached, ToolkitError
from evalcore.plugins import PluginRef, Registry, load
from evalcore.testing import (
    FakeClock,
    FakeServices,
    FakeTools,
    FakeTrial,
    MemoryBlobs,
    ScriptedChannel,
    called,
    graded_trial,
    play,
    said,
    toy,
)
from evalcore.values.descriptors import AdapterInfo
from evalcore.values.json import JSONValue
from evalcore.values.task import Assignment, Message, Task, ToolSpec
from evalcore.values.trial import BlobRef


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip() + done.stderr[-300:]


def test_the_toy_costs_no_import_of_pytest() -> None:
    code = "import sys, evalcore.testing.toy; print([m for m in ('pytest', 'evalcore.builtin') if m in sys.modules])"
    assert python(code) == "[]"


def test_the_suites_say_what_they_need_where_pytest_is_missing() -> None:
    code = "import sys; sys.modules['pytest'] = None\nfrom evalcore.testing import AdapterConformance"
    assert "the conformance suites need pytest: pip install pytest" in python(code)


def test_the_list_of_names_is_true_and_no_other_name_is_there() -> None:
    assert testing.__all__ == sorted(testing.__all__)
    assert all(getattr(testing, name) is not None for name in testing.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'AdaptorConformance'"):
        testing.AdaptorConformance  # noqa: B018 - the look-up is what is tested


def test_a_still_clock_moves_when_somebody_sleeps() -> None:
    clock = FakeClock()
    asyncio.run(clock.sleep(3.5))
    assert clock.monotonic() == 3.5
    assert clock.now() == clock.now()


def test_blobs_in_memory_are_what_was_put() -> None:
    async def look() -> None:
        blobs = MemoryBlobs()
        ref = await blobs.put(b"otter")
        assert await blobs.get(ref) == b"otter"
        with pytest.raises(InfraError):
            await blobs.get(BlobRef("0" * 64, 1))

    asyncio.run(look())


def test_services_have_the_toolkits_they_are_given_and_no_other() -> None:
    services = FakeServices()
    services.hide("secret")
    assert services.hidden == ["secret"]
    with pytest.raises(ToolkitError, match="toolkit zoo is not set up here"):
        asyncio.run(services.toolkit("zoo"))


def test_a_scripted_model_follows_its_script_and_keeps_what_it_was_sent() -> None:
    async def look() -> None:
        model = ScriptedChannel(
            ["hello", called(("look", {"at": 1})), lambda body: said(str(body["n"])), KeyError("no")]
        )
        texts: list[JSONValue] = []
        for number in range(3):
            body = await model.complete({"messages": [], "n": number})
            texts.append(body["choices"][0]["message"]["content"])  # type: ignore[index,call-overload]
        assert texts == ["hello", None, "2"]
        with pytest.raises(KeyError):
            await model.complete({})
        assert "the script is over" in str(await model.complete({}))
        assert [r.get("n") for r in model.requests] == [0, 1, 2, None, None]

    asyncio.run(look())


def test_a_request_is_kept_as_it_was_when_it_was_sent() -> None:
    async def look() -> None:
        model, messages = ScriptedChannel(), [{"role": "user", "content": "one"}]
        body: dict[str, JSONValue] = {"messages": messages}  # type: ignore[dict-item]
        await model.complete(body)
        messages.append({"role": "user", "content": "two"})
        assert model.requests[0]["messages"] == [{"role": "user", "content": "one"}]

    asyncio.run(look())


def test_fake_tools_answer_raise_and_remember() -> None:
    async def look() -> None:
        spec = ToolSpec("look", "Look.", {"type": "object"})
        tools = FakeTools((spec,), {"stop": LimitReached("tokens", 1)})
        assert (await tools.call("look", {"at": 1})).text == '{"at":1}'
        assert (await tools.call("leap", {})).error
        with pytest.raises(LimitReached):
            await tools.call("stop", None)
        assert tools.refuse("look", "{", "no JSON").error
        assert tools.calls == [("look", {"at": 1}), ("leap", {}), ("stop", None)]
        assert tools.refused == [("look", "{")]

    asyncio.run(look())


def test_a_fake_trial_has_a_folder_when_asked_and_none_after() -> None:
    trial = FakeTrial(Task("t", {}), Assignment((Message("user", "Go."),)))
    folder = trial.workdir()
    assert folder.is_dir() and trial.workdir() == folder
    asyncio.run(trial.close())
    assert not folder.exists()
    assert str(trial.key).startswith("conformance/t/")


def test_a_graded_trial_has_the_score_of_its_outcome() -> None:
    scores = [graded_trial(outcome).grading.verdict.score for outcome in ("pass", "declined", "fail", "ungraded")]
    assert scores == [1.0, 1.0, 0.0, None]
    assert graded_trial("fail", exit="limit").attempt.exit.limit == "tokens"  # type: ignore[union-attr]


def registry() -> Registry:
    found = load(only=())
    found.add(PluginRef("toy", "toy", "1", "evalcore.testing.toy"), toy)
    return found


def test_a_task_is_played_through_a_whole_trial() -> None:
    async def look() -> None:
        found, services = registry(), FakeServices()
        info = found.get(AdapterInfo, "benchmark", "toy-weather")
        adapter = toy.ToyAdapter(services, info, Selector("toy-weather", "toy-weather"))
        task = await anext(adapter.tasks())
        for harness, outcome in ((OracleHarness(), "pass"), (NoopHarness(), "fail")):
            left = await play(adapter, toy.ToyGrader(), task, harness, registry=found, services=services)
            assert left.verdict.outcome == outcome
            assert next(left.trace.events())["e"] == "trial.start"

    asyncio.run(look())


def test_a_void_trial_cannot_be_played() -> None:
    class Broken(toy.ToyAdapter):
        async def assign(self, *_: object) -> Assignment:
            raise KeyError("nothing here")

    async def look() -> None:
        found, services = registry(), FakeServices()
        info = found.get(AdapterInfo, "benchmark", "toy-weather")
        adapter = Broken(services, info, Selector("toy-weather", "toy-weather"))
        task = await anext(adapter.tasks())
        with pytest.raises(InfraError, match="is void: assign: KeyError"):
            await play(adapter, toy.ToyGrader(), task, NoopHarness(), registry=found, services=services)

    asyncio.run(look())
