"""The two controls: oracle plays the gold through the real tools, noop does nothing. They test the rig."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from attrs import frozen

from evalcore.contracts import HarnessVersion, Job, Tools
from evalcore.errors import ConfigError
from evalcore.values.json import JSONValue
from evalcore.values.task import PLAYABLE, Call, Gold, GoldAnswer, GoldCalls, GoldDialogue, Message, Playable
from evalcore.values.trial import HarnessExit


class OracleHarness:
    """Plays the task's gold."""

    def __init__(self, services: object = None, info: object = None) -> None:
        pass

    async def probe(self) -> HarnessVersion:
        """The core's own."""
        return HarnessVersion("1")

    async def run(self, job: Job) -> HarnessExit:
        """Make the gold calls, give the gold answer. Raises ConfigError for a form of gold it cannot play yet."""
        gold = playable(job.gold)
        if isinstance(gold, GoldAnswer):
            return HarnessExit(gold.text)
        turns = played(gold)
        for turn in turns:
            await _play(turn.calls, job.tools)
        return HarnessExit(gold.answer if isinstance(gold, GoldCalls) else turns[-1].answer if turns else None)

    @asynccontextmanager
    async def session(self, job: Job) -> AsyncIterator[OracleSession]:
        """The same, a turn at a time."""
        gold = playable(job.gold)
        yield OracleSession(job.tools, gold)


@frozen
class PlayedTurn:
    """What the gold does and says in one turn."""

    calls: tuple[Call, ...]
    answer: str | None


def played(gold: GoldCalls | GoldDialogue) -> tuple[PlayedTurn, ...]:
    """The agent's turns. Raises ConfigError for a playbook that is none."""
    if isinstance(gold, GoldCalls):
        last = len(gold.turns) - 1
        return tuple(PlayedTurn(calls, gold.answer if i == last else "") for i, calls in enumerate(gold.turns))
    return tuple(PlayedTurn(_calls(turn.get("calls")), _text(turn.get("answer"))) for turn in gold.agent)


def _calls(value: JSONValue) -> tuple[Call, ...]:
    calls = value if isinstance(value, list) else []
    named = [(c, c.get("name")) for c in calls if isinstance(c, dict)]
    if value is not None and (len(named) != len(calls) or not all(isinstance(name, str) for _, name in named)):
        raise ConfigError("the gold's playbook is none: a turn's `calls` are objects with `name` and `arguments`")
    return tuple(Call(str(name), call.get("arguments", {})) for call, name in named)


def _text(value: JSONValue) -> str:
    return value if isinstance(value, str) else ""


class OracleSession:
    """Turn after turn of the gold; beyond it, nothing is done and nothing said."""

    def __init__(self, tools: tuple[Tools, ...], gold: Playable) -> None:
        self._tools = tools
        self._turns = iter([PlayedTurn((), gold.text)] if isinstance(gold, GoldAnswer) else played(gold))

    async def turn(self, messages: tuple[Message, ...], *, tools_changed: bool = False) -> HarnessExit:
        """The gold of this turn, whatever was said."""
        turn = next(self._turns, PlayedTurn((), ""))
        await _play(turn.calls, self._tools)
        return HarnessExit(turn.answer)


async def _play(calls: Sequence[Call], tools: tuple[Tools, ...]) -> None:
    doors = {spec.name: t for t in tools for spec in t.list()}
    for call in calls:
        door = doors.get(call.name) or (tools[0] if tools else None)
        if door is None:
            raise ConfigError(f"gold calls {call.name!r}, and the task offers no tools")
        await door.call(call.name, call.arguments)


def playable(gold: Gold | None) -> Playable:
    """The gold, if the oracle can play its form. Raises ConfigError."""
    if isinstance(gold, PLAYABLE):
        return gold
    what = "no gold" if gold is None else f"gold of the form {type(gold).__name__}"
    raise ConfigError(f"the oracle cannot play {what}", hint="leave `oracle` out for this benchmark")


class NoopHarness:
    """Completes at once."""

    def __init__(self, services: Any = None, info: Any = None) -> None:
        pass

    async def probe(self) -> HarnessVersion:
        """The core's own."""
        return HarnessVersion("1")

    async def run(self, job: Job) -> HarnessExit:
        """No call, no answer."""
        return HarnessExit()

    @asynccontextmanager
    async def session(self, job: Job) -> AsyncIterator[NoopSession]:
        """The same in every turn."""
        yield NoopSession()


class NoopSession:
    """Says nothing, does nothing."""

    async def turn(self, messages: tuple[Message, ...], *, tools_changed: bool = False) -> HarnessExit:
        """No call, no answer."""
        return HarnessExit()
