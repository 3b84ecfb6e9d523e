"""A person as the agent: turn by turn, an end that holds for the whole, and nobody waited for who is not there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evalcore.contracts import Job
from evalcore.engine.person import Person
from evalcore.errors import ConfigError
from evalcore.values.task import Limits, Message
from evalcore.values.trial import HarnessExit


class Door:
    url = "http://127.0.0.1:1/d/token"
    closed = False

    async def close(self) -> None:
        self.closed = True


class Screen:
    def __init__(self) -> None:
        self.shown: list[str] = []

    def opened(self, job: Job, done_url: str) -> None:
        self.shown.append(done_url)

    def turn(self, messages: Sequence[Message]) -> None:
        self.shown += [str(m.content) for m in messages]


def person(door: Door, screen: Screen | None) -> Person:
    async def wire_server() -> Any:
        def serve_done(over: Callable[[str | None], bool]) -> Door:
            return door

        return SimpleNamespace(serve_done=serve_done)

    made = Person(SimpleNamespace(wire_server=wire_server))  # type: ignore[arg-type]
    made.stage, made.for_s = screen, 60.0
    return made


def job(*texts: str) -> Job:
    return Job(tuple(Message("user", text) for text in texts), (), None, {}, Limits(), Path)


async def soon(said: Callable[[], object]) -> None:
    for _ in range(5):
        await asyncio.sleep(0)
    said()


def test_each_turn_is_shown_and_ends_with_its_answer() -> None:
    door, screen = Door(), Screen()
    played = person(door, screen)

    async def play() -> list[HarnessExit]:
        async with played.session(job("policy")) as session:
            one, _ = await asyncio.gather(session.turn(job("hello").messages), soon(lambda: played.over("first")))
            two, _ = await asyncio.gather(session.turn(job("and?").messages), soon(lambda: played.over("second")))
            assert not door.closed
            return [one, two]

    assert asyncio.run(play()) == [HarnessExit("first"), HarnessExit("second")]
    assert screen.shown == [Door.url, "policy", "hello", "and?"]
    assert door.closed


def test_an_answer_that_nobody_waits_for_is_not_taken() -> None:
    played = person(Door(), Screen())
    assert played.over("too early") is False

    async def play() -> HarnessExit:
        said, _ = await asyncio.gather(played.run(job("hello")), soon(lambda: played.over("now")))
        return said

    assert asyncio.run(play()).answer == "now"
    assert played.over("too late") is False


def test_the_end_of_a_task_is_no_answer() -> None:
    played = person(Door(), Screen())

    async def play() -> HarnessExit:
        said, _ = await asyncio.gather(played.run(job("hello")), soon(played.end))
        return said

    assert asyncio.run(play()) == HarnessExit(None)


def test_the_end_of_a_dialogue_ends_all_of_it() -> None:
    played = person(Door(), Screen())

    async def play() -> tuple[HarnessExit, HarnessExit]:
        async with played.session(job()) as session:
            said, _ = await asyncio.gather(session.turn(job("hello").messages), soon(played.end))
            return said, await session.turn(
                job("are you there?").messages
            )  # a driver that asks again is not waited for

    for said in asyncio.run(play()):
        assert (said.claim, said.evidence["detail"]) == ("limit", "the person ended the dialogue")


def test_without_a_stage_nobody_is_there() -> None:
    with pytest.raises(ConfigError, match="nobody is here to play"):
        asyncio.run(person(Door(), None).run(job("hello")))
