"""The two controls: oracle plays the gold through the real tools, noop does nothing. They test the rig."""

from __future__ import annotations

from typing import Any

from evalcore.contracts import HarnessVersion, Job, Tools
from evalcore.errors import ConfigError
from evalcore.values.task import Call, Gold, GoldAnswer, GoldCalls
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
        doors = {spec.name: tools for tools in job.tools for spec in tools.list()}
        for turn in gold.turns:
            for call in turn:
                await _play(call, doors, job.tools)
        return HarnessExit(gold.answer)


async def _play(call: Call, doors: dict[str, Tools], tools: tuple[Tools, ...]) -> None:
    door = doors.get(call.name) or (tools[0] if tools else None)
    if door is None:
        raise ConfigError(f"gold calls {call.name!r}, and the task offers no tools")
    await door.call(call.name, call.arguments)


def playable(gold: Gold | None) -> GoldAnswer | GoldCalls:
    """The gold, if the oracle can play its form. Raises ConfigError."""
    if isinstance(gold, (GoldAnswer, GoldCalls)):
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
