"""What is particular to the zoo."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from evalcore_zoo.bridge import Zoo
from evalcore_zoo.grader import ZooGrader
from evalcore_zoo.metric import Waste

from evalcore.contracts import ToolResult
from evalcore.errors import GraderError
from evalcore.testing import graded_trial
from evalcore.values.json import JSONValue
from evalcore.values.task import Task
from evalcore.values.trace import TraceReader
from evalcore.values.trial import Deliverable, Evidence, Verdict

TASK = Task("otter", {}, {"fed": {"otter": {"fish": 2}}, "ordered": {}})


def call(zoo: Zoo, name: str, **arguments: JSONValue) -> ToolResult:
    return asyncio.run(zoo.call(name, dict(arguments)))


def grade(zoo: Any) -> Verdict:
    left = Deliverable("Done.", (), {"zoo": zoo})
    return asyncio.run(ZooGrader().grade(TASK, left, Evidence(), TraceReader(()), None))


def test_feeding_takes_from_the_store() -> None:
    zoo = Zoo({"fish": 3})
    assert call(zoo, "feed", animal="otter", food="fish", units=2).text == "The otter got 2 units of fish."
    assert call(zoo, "store").text == "fish: 1"
    refused = call(zoo, "feed", animal="otter", food="fish", units=2)
    assert refused.error and refused.text == "the store holds 1 units of fish"


@pytest.mark.parametrize("units", [0, -1, 1.0, True, "2", None, 10**30])
def test_units_are_whole_numbers(units: JSONValue) -> None:
    assert call(Zoo({"fish": 9}), "feed", animal="otter", food="fish", units=units).error


def test_an_animal_that_is_not_there_is_told_with_those_that_are() -> None:
    refused = call(Zoo({}), "look", animal="unicorn")
    assert refused.error and refused.text.startswith("there is no animal 'unicorn'; there are bat, camel")


def test_the_right_end_passes() -> None:
    assert grade({"fed": {"otter": {"fish": 2}}, "ordered": {}}).outcome == "pass"


@pytest.mark.parametrize(
    "fed, harm, wasted",
    [({}, False, 0), ({"otter": {"fish": 3}}, False, 1), ({"otter": {"fish": 2}, "camel": {"fish": 1}}, True, 1)],
    ids=["unfed", "too much", "another animal, too, and it does not eat fish"],
)
def test_another_end_fails_with_what_was_wasted(fed: Any, harm: bool, wasted: int) -> None:
    verdict = grade({"fed": fed, "ordered": {}})
    assert (verdict.outcome, verdict.harm, verdict.details["wasted"]) == ("fail", harm, wasted)


def test_a_state_that_is_none_is_no_failure_of_the_agent() -> None:
    with pytest.raises(GraderError, match="the deliverable holds no zoo"):
        grade(None)


def test_waste_is_a_share_of_what_was_given() -> None:
    trials = [graded_trial(details={"given": 4, "wasted": 1}), graded_trial(details={"given": 2, "wasted": 2})]
    assert Waste().per_task(trials) == (3.0, 6.0)
    assert Waste().per_task([graded_trial(details={"given": 0, "wasted": 0})]) is None
