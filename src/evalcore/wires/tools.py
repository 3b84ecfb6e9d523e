"""The tool wire over an episode, in memory: recorded, limited, serialised. The HTTP form serves the same object."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from evalcore.contracts import DEADLINE_S, Episode, InputRequired, TimedEpisode, ToolResult, text_result
from evalcore.errors import AgentError, InfraError, LimitReached
from evalcore.process.bounded import HungError, bounded
from evalcore.values.injection import Dropped, ToolError, ToolTimeout
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import ToolSpec
from evalcore.wires.meter import Meter
from evalcore.wires.recorder import AttemptRecorder
from evalcore.wires.results import OUTPUT_CAP, RECORD_CAP, capped

CALL_S: Final = 600.0  # where no deadline is set, a tool that takes longer has hung: the environment's failure
KEEPING_S: Final = 20.0  # what an episode that keeps the deadline by itself gets beyond it, to find out what is wrong


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
        cap: int = OUTPUT_CAP,
    ) -> None:
        self.bridge = bridge
        self._episode = episode
        self._recorder = recorder
        self._meter = meter
        self._faults = faults  # on purpose: what happens to a call of that tool and number
        self._cap = cap
        self._turn = asyncio.Lock()
        self._specs: tuple[ToolSpec, ...] = ()
        self._names: set[str] = set()
        self._watchers: list[Callable[[], None]] = []
        self._revision: object = None
        self.relist()

    def watch(self, watcher: Callable[[], None]) -> None:
        """Tell `watcher` whenever what is on offer has changed."""
        self._watchers.append(watcher)

    def relist(self) -> None:
        """Offer what the episode offers now. Raises InfraError for a name that is there twice."""
        before, self._specs = self._specs, tuple(self._episode.tools())
        self._revision = getattr(self._episode, "revision", None)
        self._names = {spec.name for spec in self._specs}
        if len(self._names) < len(self._specs):
            names = [spec.name for spec in self._specs]
            twice = sorted({n for n in names if names.count(n) > 1})
            raise InfraError(f"bridge {self.bridge!r} offers {', '.join(map(repr, twice))} more than once")
        if self._watchers and self._specs != before:
            for watcher in self._watchers:
                watcher()

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
                result = await self._carried_out(name, arguments)
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
            if getattr(self._episode, "revision", None) != self._revision:
                self.relist()
        if isinstance(result, InputRequired):
            result = self._declined(number, result)
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

    async def _carried_out(self, name: str, arguments: JSONValue) -> ToolResult | InputRequired:
        """The episode's answer. A call over the deadline of the study is an error to the agent, which can go on."""
        allowed = self._meter.tool_call_s
        if allowed is None:
            return await bounded(self._episode.call(name, arguments), CALL_S)
        token = DEADLINE_S.set(allowed)
        keeps = isinstance(self._episode, TimedEpisode)
        try:
            return await bounded(self._episode.call(name, arguments), allowed + (KEEPING_S if keeps else 0.0))
        except HungError:
            if keeps:
                raise
            self._recorder.record("env.timeout", tool=name, bridge=self.bridge, after_s=allowed)
            return text_result(f"the tool did not answer within {allowed:g} s", error=True)
        finally:
            DEADLINE_S.reset(token)

    def _declined(self, number: int, wanted: InputRequired) -> ToolResult:
        """Nobody is there to be asked: the agent is told, and the trace says so."""
        self._recorder.record(
            "tool.input_required", call=number, message=wanted.message, schema=wanted.schema, answer="declined"
        )
        return text_result(f"input required, and nobody is here to give it: {wanted.message}", error=True)

    def refuse(self, name: str, raw: str, reason: str) -> ToolResult:
        """Record a call whose arguments are no JSON: it never reaches the environment."""
        number = self._meter.begin_tool_call()
        self._recorder.record("tool.call", call=number, tool=name, raw=raw, bridge=self.bridge)
        return self._answer(number, text_result(f"arguments are no JSON: {reason}", error=True), 0.0, 0.0)

    def _answer(self, number: int, result: ToolResult, wall_s: float, queue_s: float) -> ToolResult:
        """Record a result, and give what the agent gets of it: the same on every wire."""
        if result.error:
            self._meter.tool_errors += 1
        given, size = capped(result, self._cap)
        kept = given if size > RECORD_CAP else result
        fields: JSONObject = {"content": list(kept.content), "wall_s": round(wall_s, 6)}
        if size:
            fields["cut"] = {"bytes": size, "cap": self._cap}
        if queue_s > 0.001:
            fields["queue_s"] = round(queue_s, 6)
        if kept.structured is not None:
            fields["structured"] = kept.structured
        self._recorder.record("tool.result", call=number, error=result.error, **fields)
        return given
