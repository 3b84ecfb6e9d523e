"""The tool wire over an episode, in memory: recorded, limited, serialised. The HTTP form serves the same object."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from evalcore.contracts import Episode, InputRequired, ToolResult, text_result
from evalcore.errors import AgentError, InfraError, LimitReached
from evalcore.process.bounded import HungError, bounded
from evalcore.values.injection import Dropped, ToolError, ToolTimeout
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import ToolSpec
from evalcore.wires.meter import Meter
from evalcore.wires.recorder import AttemptRecorder

CALL_S: Final = 600.0  # a tool that takes longer has hung: the environment's failure, not the agent's


LOST: Final = "the connection to the tool server was lost"

ToolFault: TypeAlias = ToolError | ToolTimeout | Dropped


class ConnectionDropped(AgentError):
    """A tool call whose HTTP connection is closed in the place of an answer, on purpose."""


class RecordedTools:
    """One bridge's tools as an agent reaches them."""

    url: str | None = None

    def __init__(
        self,
        bridge: str,
        episode: Episode,
        recorder: AttemptRecorder,
        meter: Meter,
        faults: Callable[[str, int], ToolFault | None] | None = None,
    ) -> None:
        self.bridge = bridge
        self._episode = episode
        self._recorder = recorder
        self._meter = meter
        self._faults = faults  # on purpose: what happens to a call of that tool and number
        self._turn = asyncio.Lock()
        self._specs: tuple[ToolSpec, ...] = ()
        self._names: set[str] = set()
        self.relist()

    def relist(self) -> None:
        """Offer what the episode offers now. Raises InfraError for a name that is there twice."""
        self._specs = tuple(self._episode.tools())
        self._names = {spec.name for spec in self._specs}
        if len(self._names) < len(self._specs):
            names = [spec.name for spec in self._specs]
            twice = sorted({n for n in names if names.count(n) > 1})
            raise InfraError(f"bridge {self.bridge!r} offers {', '.join(map(repr, twice))} more than once")

    def list(self) -> Sequence[ToolSpec]:
        """The tools on offer."""
        return self._specs

    async def call(self, name: str, arguments: JSONValue) -> ToolResult:
        """Call a tool. Its own failure is a result; raises LimitReached, or InfraError if the environment failed."""
        number = self._meter.begin_tool_call()
        self._recorder.record("tool.call", call=number, tool=name, arguments=arguments, bridge=self.bridge)
        if name not in self._names and not getattr(self._episode, "answers_unknown_tools", False):
            return self._answer(number, text_result(f"unknown tool: {name}", error=True), 0.0, 0.0)
        began = self._recorder.elapsed()
        fault = None if self._faults is None else self._faults(name, number)
        if fault is not None and not isinstance(fault, Dropped):
            return await self._failed(number, fault)
        async with self._turn:
            started = self._recorder.elapsed()
            try:
                result = await bounded(self._episode.call(name, arguments), CALL_S)
                if not isinstance(result, (ToolResult, InputRequired)):
                    raise TypeError(f"answered {type(result).__name__}, no ToolResult")
            except LimitReached as error:  # the environment's own rules have an end
                self._meter.stop(error)
            except AgentError:  # the call itself broke the contract
                raise
            except HungError as error:
                late = InfraError(f"tool {name!r} of bridge {self.bridge!r} did not answer within {CALL_S:g} s")
                raise self._meter.fail(late, "tool") from error
            except Exception as error:
                raise self._meter.fail(error, f"tool {name!r} of bridge {self.bridge!r}") from error
        if isinstance(result, InputRequired):  # a headless agent has nobody to ask
            result = text_result(f"input required: {result.message}", error=True)
        if fault is not None:  # it was made, and nobody is told
            result = text_result(LOST, error=True)
            self._answer(number, result, self._recorder.elapsed() - started, started - began)
            if self.url is not None:
                raise ConnectionDropped(LOST)
            return result
        return self._answer(number, result, self._recorder.elapsed() - started, started - began)

    async def _failed(self, number: int, fault: ToolError | ToolTimeout) -> ToolResult:
        """The result of a call that never reaches the environment, on purpose."""
        if isinstance(fault, ToolError):
            return self._answer(number, text_result(fault.message, error=True), 0.0, 0.0)
        await asyncio.sleep(fault.seconds)
        late = text_result(f"timed out after {fault.seconds:g} s", error=True)
        return self._answer(number, late, fault.seconds, 0.0)

    def refuse(self, name: str, raw: str, reason: str) -> ToolResult:
        """Record a call whose arguments are no JSON: it never reaches the environment."""
        number = self._meter.begin_tool_call()
        self._recorder.record("tool.call", call=number, tool=name, raw=raw, bridge=self.bridge)
        return self._answer(number, text_result(f"arguments are no JSON: {reason}", error=True), 0.0, 0.0)

    def _answer(self, number: int, result: ToolResult, wall_s: float, queue_s: float) -> ToolResult:
        if result.error:
            self._meter.tool_errors += 1
        fields: JSONObject = {"content": list(result.content), "wall_s": round(wall_s, 6)}
        if queue_s > 0.001:
            fields["queue_s"] = round(queue_s, 6)
        if result.structured is not None:
            fields["structured"] = result.structured
        self._recorder.record("tool.result", call=number, error=result.error, **fields)
        return result
