"""The core's own harnesses keep the promises of harnesses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, cast

import pytest
from attrs import evolve

from evalcore.builtin.react_text import CLOSING, OPENING, render_call
from evalcore.contracts import Harness, HarnessVersion, Job
from evalcore.engine.services import LocalServices
from evalcore.errors import EvalcoreError
from evalcore.hookspecs import HarnessInfo
from evalcore.plugins import Registry
from evalcore.testing import HarnessConformance, said
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.trial import HarnessExit
from evalcore.wires.http import WireServer
from tests.oracles import ROOT


class TestReact(HarnessConformance):
    harness = "react"


class TestReactOverText(HarnessConformance):
    harness = "react"
    options: ClassVar[Mapping[str, JSONValue]] = {"tool_protocol": "text"}

    def wants(self, *calls: tuple[str, JSONValue]) -> JSONObject:
        """Call blocks, as a model without tool calling writes them."""
        return said("\n".join(_block(name, arguments) for name, arguments in calls))


def _block(name: str, arguments: JSONValue) -> str:
    if isinstance(arguments, str):
        return f'{OPENING}{{"name": "{name}", "arguments": {arguments}}}{CLOSING}'
    return render_call(name, arguments)


class Noting:
    """A channel or tools that keep what they raised, as the engine's meter does."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.url: str | None = None
        self.raised: EvalcoreError | None = None
        self.streams, self.aliases = False, None  # as a channel is served: whole, to whatever name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def complete(self, body: JSONObject, dialect: str = "openai-chat") -> JSONObject:
        assert dialect == "openai-chat"  # what the agents of these tests speak
        return await self._noted(self._inner.complete(body))

    async def call(self, name: str, arguments: JSONValue) -> Any:
        return await self._noted(self._inner.call(name, arguments))

    async def _noted(self, work: Any) -> Any:
        try:
            return await work
        except EvalcoreError as error:
            self.raised = error
            raise


class OverHttp:
    """A harness that takes its wires over HTTP, before those that the suite has in memory.

    What the wires raise never reaches its process as an exception: here as in the engine, it decides all the same.
    """

    def __init__(self, harness: Harness) -> None:
        self._harness = harness

    async def probe(self) -> HarnessVersion:
        return await self._harness.probe()

    async def run(self, job: Job) -> HarnessExit:
        server = WireServer()
        try:
            tools, model = [Noting(t) for t in job.tools], Noting(job.model)
            for wire in tools:
                wire.url = (await server.serve_tools(wire)).url
            model.url = (await server.serve_channel(model)).url
            done = await self._harness.run(evolve(job, tools=tuple(tools), model=model))
            for wire in (model, *tools):
                if wire.raised is not None:
                    raise wire.raised
            return done
        finally:
            await server.close()


@pytest.mark.slow
class TestCommand(HarnessConformance):
    harness = "command"
    options: ClassVar[Mapping[str, JSONValue]] = {"agent": str(ROOT / "examples" / "agents" / "plain-http.toml")}

    @pytest.fixture
    def agent(self, info: HarnessInfo, registry: Registry, services: LocalServices) -> Harness:
        return OverHttp(cast(Harness, registry.factory(info)(services, info)))


class TestOracle(HarnessConformance):
    harness = "oracle"


class TestNoop(HarnessConformance):
    harness = "noop"
