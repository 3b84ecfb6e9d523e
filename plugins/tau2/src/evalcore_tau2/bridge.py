"""A simulation as an episode: upstream's orchestrator in a worker, its agent on the two wires, its user on a third."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final, cast

from evalcore.contracts import (
    End,
    InputRequired,
    OpenTrial,
    Services,
    ToolkitSession,
    ToolResult,
    UserTurn,
    text_result,
)
from evalcore.errors import ConfigError, InfraError, LimitReached
from evalcore.toolkits.faults import WorkerFault
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import BridgeSpec, GoldDialogue, Message, ToolSpec
from evalcore.values.trial import HarnessExit
from evalcore_tau2.gold import SILENT_USER, subject
from evalcore_tau2.spoken import Listener

OPEN_S, MOVE_S = 300.0, 300.0  # of a busy machine: the worker itself stops at a fifth of that in processor time
LIMITS: Final = {"max_steps": ("steps", 200), "too_many_errors": ("tool_errors", 10)}
UNTAKEABLE: Final = frozenset({"ValidationError", "RecursionError", "UnicodeEncodeError", "ValueError", "TypeError"})
UNTAKEN: Final = "the agent sent what upstream cannot take in"
SERIAL: Final = "fidelity: serial-calls"
_FIXED_TEMPERATURE: Final = re.compile(r"(.*/)?(o\d|gpt-5)")  # upstream's client leaves the parameter out for these


def without_fixed(body: JSONObject, model: str | None) -> JSONObject:
    """A request of upstream's for another role's model, without what that model is known to refuse."""
    if model is not None and _FIXED_TEMPERATURE.match(model):
        return {k: v for k, v in body.items() if k != "temperature"}
    return body


class Tau2Bridge:
    """Opens simulations."""

    def __init__(self, services: Services, info: object = None) -> None:
        self._services = services

    async def open(self, spec: BridgeSpec, trial: OpenTrial) -> Tau2Episode:
        """A fresh environment and user, up to the agent's first turn. Raises ConfigError, ToolkitError."""
        solo, tools = _configured(spec.config)
        toolkit = await self._services.toolkit("tau2")
        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(toolkit.session())
            request: JSONObject = {
                **subject(trial.task),
                "seed": trial.seed % 2**31,
                "script": _script(trial),
            }
            first = await _ask(session, "open", request, OPEN_S)
            return Tau2Episode(session, trial, solo, tools, first, stack.pop_all())


def _script(trial: OpenTrial) -> list[JSONValue] | None:
    """What the user of a control does; None: its model is asked."""
    if not trial.control:
        return None
    if isinstance(trial.gold, GoldDialogue) and trial.arm.harness != "noop":
        return list(trial.gold.user)
    return list(SILENT_USER)


async def _ask(session: ToolkitSession, method: str, params: JSONObject, timeout_s: float) -> JSONObject:
    answer = await session.request(method, params, timeout_s)
    if not isinstance(answer, dict):
        raise InfraError(f"the tau2 toolkit answered {method} with no object")
    return answer


class Tau2Episode:
    """One simulation, and the driver of its dialogue."""

    answers_unknown_tools = True  # upstream has an answer of its own to a tool that is not there, and counts it

    def __init__(
        self,
        session: ToolkitSession,
        trial: OpenTrial,
        solo: bool,
        tools: tuple[ToolSpec, ...],
        first: JSONObject,
        stack: AsyncExitStack,
    ) -> None:
        self._session = session
        self._trial = trial
        self._solo = solo
        self._tools = tools
        self._news = first
        self._stack = stack
        self._listener = Listener()
        self._calls = 0
        self._malformed = 0
        self._over: str | None = None
        self._crash: str | None = None
        self._user_model = str(trial.arm.axes.get("user_model") or "") or None

    def tools(self) -> Sequence[ToolSpec]:
        """The agent's tools, their schemas as upstream makes them."""
        return self._tools

    async def call(self, name: str, arguments: JSONValue) -> ToolResult | InputRequired:
        """Upstream's answer, its errors in its words. Raises LimitReached where upstream's limits end it all."""
        if self._over is not None:
            return text_result(f"Error: the simulation is over ({self._over})", error=True)
        if not isinstance(arguments, dict):
            self._malformed += 1
            return text_result("Error: the arguments are no JSON object", error=True)
        self._calls += 1
        heard = self._listener.opens(self._trial.recorder.reader(), name, arguments)
        request: JSONObject = {"name": name, "arguments": arguments, "id": f"call_{self._calls}", "message": heard}
        news = await self._from_agent("call", request)
        self._note(news)
        if self._over in LIMITS:
            raise LimitReached(*LIMITS[self._over])
        result = news["result"]
        if not isinstance(result, dict):
            return text_result("The simulation has ended.")
        return text_result(str(result["content"]), error=bool(result["error"]))

    async def _from_agent(self, method: str, request: JSONObject) -> JSONObject:
        """The worker's answer to what the agent did. What upstream cannot take in ends it, as the agent's error."""
        try:
            return await _ask(self._session, method, request, MOVE_S)
        except WorkerFault as error:
            if error.type not in UNTAKEABLE:
                raise
            self._crash = error.type
            told: JSONObject = {"content": f"Error: {error.type}", "error": True}
            return {"end": "agent_error", "result": told, "events": []}

    def driver(self) -> Tau2Episode | None:
        """Itself; a solo agent has nobody to talk to."""
        return None if self._solo else self

    async def next(self, reply: HarnessExit | None) -> UserTurn | End:
        """Upstream's steps up to the agent's next turn, its user's model asked where it wants to be."""
        news = self._news
        if reply is not None:
            if reply.claim not in ("completed", "refused"):  # there is nothing that the user could have heard
                return End(reply.claim)
            news = await self._from_agent("say", {"content": reply.answer or ""})
        while isinstance(body := news.get("ask"), dict):
            self._note(news)
            model = self._user_model
            response = await self._trial.complete("user", without_fixed({"model": "user", **body}, model))
            news = await _ask(self._session, "reply", {"response": response}, MOVE_S)
        self._note(news)
        return UserTurn((Message("user", str(news["heard"])),)) if self._over is None else self._ended()

    async def state(self) -> JSONValue:
        """Upstream's digests of the databases: what its evaluator compares."""
        return await _ask(self._session, "digests", {}, MOVE_S)

    async def simulation(self, *, malformed: bool) -> JSONObject:
        """The simulation as it stands, ended as the agent ended where upstream's rules did not end it.

        `malformed` says that the tool wire refused calls, which therefore never came here.
        """
        ended = self._trial.exit
        if self._solo and self._over is None and ended is not None and ended.claim in ("completed", "refused"):
            self._note(await self._from_agent("say", {"content": ended.answer or ""}))
        crashed = ended is None or ended.claim == "crashed" or self._crash is not None
        reason = "agent_error" if crashed else "timeout"
        try:
            simulation = await _ask(self._session, "finish", {"reason": reason}, MOVE_S)
        except WorkerFault as error:
            if error.type not in UNTAKEABLE:
                raise
            self._crash = error.type  # upstream cannot even copy its own messages: those of the agent's
            simulation = {"messages": [], "termination_reason": "agent_error", "steps": 0, "errors": 0, "failure": None}
        return {**simulation, "flags": self._flags(simulation, malformed)}

    async def close(self) -> None:
        """The worker forgets the session."""
        await self._stack.aclose()

    def _flags(self, simulation: JSONObject, malformed: bool) -> list[JSONValue]:
        flags: list[JSONValue] = []
        if self._listener.hidden and not self._trial.control:
            flags.append(SERIAL)
        if self._malformed or malformed:
            flags.append("malformed_call")
        if simulation["failure"] is not None:
            flags.append("empty_message")
        if self._crash is not None:
            flags.append(f"native_runner_crashes:{self._crash}")
        return flags

    def _ended(self) -> End:
        """The end as the engine wants it."""
        reason = str(self._over)
        if reason in LIMITS:
            return End(reason, limit=LIMITS[reason][0])
        if reason == "agent_error":
            return End(reason, fault="the agent sent an empty message" if self._crash is None else UNTAKEN)
        return End(reason)

    def _note(self, news: JSONObject) -> None:
        """Put on record what the simulated user did, and whether the simulation is over."""
        self._over = str(news["end"]) if news.get("end") is not None else self._over
        for event in cast("list[JSONObject]", news["events"]):
            kind = "env.call" if "tool" in event else "env.result"
            self._trial.recorder.record(kind, source="user", requestor="user", **event)


def _configured(config: JSONObject) -> tuple[bool, tuple[ToolSpec, ...]]:
    """Whether the agent works alone, and its tools. Raises ConfigError for what is no configuration of this bridge."""
    solo, tools = config.get("solo"), config.get("tools")
    if not isinstance(solo, bool) or not isinstance(tools, list) or config.keys() != {"solo", "tools"}:
        raise ConfigError("the bridge tau2 is configured with `solo`, true or false, and a list of `tools`")
    return solo, tuple(_tool(tool) for tool in tools)


def _tool(value: JSONValue) -> ToolSpec:
    if not isinstance(value, dict) or not isinstance(schema := value.get("parameters"), dict):
        raise ConfigError("a tool of the bridge tau2 has `name`, `description` and `parameters`, a JSON Schema")
    return ToolSpec(str(value.get("name")), str(value.get("description")), schema)
