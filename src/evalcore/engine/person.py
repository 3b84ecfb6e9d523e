"""Harness `person`: somebody plays the task through the wires with any client, and says when it is over.

Registered by `evalcore serve` alone: in a study it would wait for a person who does not know. The verb gives it a
stage, which shows what the agent of a trial is told and given.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Final, Protocol

from evalcore import __version__
from evalcore.contracts import HarnessVersion, Job
from evalcore.engine.services import LocalServices
from evalcore.errors import ConfigError
from evalcore.hookspecs import HarnessInfo, hookimpl
from evalcore.values.task import Message
from evalcore.values.trial import HarnessExit

NAME: Final = "person"
FACTORY: Final = "evalcore.engine.person:Person"


class Stage(Protocol):
    """Where the person sees the trial."""

    def opened(self, job: Job, done_url: str) -> None: ...
    def turn(self, messages: Sequence[Message]) -> None: ...


class Person:
    """Waits for a person, turn by turn. `end` may be called from a signal handler: no answer, and no further turn."""

    def __init__(self, services: LocalServices, info: object = None) -> None:
        self._services = services
        self._waiting: asyncio.Future[str | None] | None = None
        self.ended = False
        self.stage: Stage | None = None
        self.answer: str | None = None  # given beforehand: nobody is waited for
        self.for_s = 0.0

    async def probe(self) -> HarnessVersion:
        """A person has no version; the wires are the core's."""
        return HarnessVersion(__version__)

    async def run(self, job: Job) -> HarnessExit:
        """One task, all of it told at once. Raises ConfigError where there is no stage."""
        async with self._on_stage(job):
            return await self.wait(job.messages)

    @asynccontextmanager
    async def session(self, job: Job) -> AsyncIterator[PersonSession]:
        """A dialogue, turn by turn."""
        async with self._on_stage(job):
            if job.messages:
                self._show(job.messages)
            yield PersonSession(self)

    @asynccontextmanager
    async def _on_stage(self, job: Job) -> AsyncIterator[None]:
        if self.stage is None:
            raise ConfigError("nobody is here to play", hint="`evalcore serve SELECTOR --task ID` is for a person")
        server = await self._services.wire_server()
        door = server.serve_done(self.over)
        try:
            self.stage.opened(job, door.url)
            yield
        finally:
            await door.close()

    def _show(self, messages: Sequence[Message]) -> None:
        assert self.stage is not None
        self.stage.turn(messages)

    def over(self, answer: str | None) -> bool:
        """The turn is over, with this answer. Whether anybody waited for it."""
        if self._waiting is None or self._waiting.done():
            return False
        self._waiting.set_result(answer)
        return True

    def end(self) -> None:
        """The whole is over."""
        self.ended = True
        self.over(None)

    async def wait(self, messages: Sequence[Message]) -> HarnessExit:
        """Show what is said, and wait until the turn is over, or the time is."""
        self._show(messages)
        if self.answer is not None:
            return HarnessExit(self.answer)
        self._waiting = asyncio.get_running_loop().create_future()
        if self.ended:
            self.over(None)
        try:
            async with asyncio.timeout(self.for_s):
                return HarnessExit(await self._waiting)
        except TimeoutError:
            detail = f"nobody said within {self.for_s:g} s that it is over"
            return HarnessExit(claim="limit", evidence={"limit": "wall_s", "detail": detail})


class PersonSession:
    """One conversation."""

    def __init__(self, person: Person) -> None:
        self._person = person

    async def turn(self, messages: tuple[Message, ...], *, tools_changed: bool = False) -> HarnessExit:
        """Show what is said, and wait."""
        said = await self._person.wait(messages)
        if self._person.ended:  # the driver must not go on talking to nobody
            return HarnessExit(claim="limit", evidence={"limit": "turns", "detail": "the person ended the dialogue"})
        return said


def plugin(*, uses_model: bool) -> ModuleType:
    """The harness as a plugin, with or without a model wire."""

    class Parts(ModuleType):
        @hookimpl
        def evalcore_harnesses(self) -> list[HarnessInfo]:
            summary = "a person, playing through the wires with any client: `evalcore serve`"
            return [HarnessInfo(NAME, summary, FACTORY, uses_model=uses_model, wires="http", relists="per_turn")]

    return Parts("evalcore.engine.person.plugin")
