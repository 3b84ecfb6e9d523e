"""An environment of upstream's stateful classes, as tools; its driver says what the user says, turn by turn.

The state lives in a worker, in a session of its own. A call that two workers do not survive (it computes where nothing
can interrupt it, or takes all memory) is the agent's: it fails, and the environment is led anew to where it was.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Final, cast

from evalcore.contracts import (
    End,
    InputRequired,
    OpenTrial,
    Services,
    ToolkitHandle,
    ToolkitSession,
    ToolResult,
    UserTurn,
    text_result,
)
from evalcore.errors import ConfigError, InfraError
from evalcore.toolkits.faults import WorkerLost
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import BridgeSpec, Message, ToolSpec
from evalcore.values.trial import Deliverable, HarnessExit
from evalcore_bfcl.adapter import as_text
from evalcore_bfcl.plugin import DIALOGUES, WEB_SEARCH, toolkit_of
from evalcore_bfcl.web import KEY, Web

KIND: Final = "bfcl-stateful"
MEMORY: Final = "memory"  # under which a deliverable holds what a session left
LOST: Final = "env.lost"  # the event of a call that the environment did not survive
OPEN_S: Final = 120.0  # the first session of a category loads it
CALL_S: Final = 200.0  # a call takes a millisecond; the worker itself stops at 10 s of processor time
TRIES: Final = 2  # workers that a call may cost
SURVIVED_BY_NOBODY: Final = "Error during execution: the environment did not survive this call"
OVER: Final = "Error during execution: the session is over"


class StatefulBridge:
    """Opens a `StatefulEpisode` for a task of a category."""

    def __init__(self, services: Services, info: object = None) -> None:
        self._services = services
        self._web: Web | None = None

    async def open(self, spec: BridgeSpec, trial: OpenTrial) -> StatefulEpisode:
        """The task's environment as it begins. Raises ConfigError, ToolkitError."""
        category, task = spec.config.get("category"), spec.config.get("id")
        if not isinstance(category, str) or category not in DIALOGUES or not isinstance(task, str):
            raise ConfigError(
                f"bridge {KIND}: `category` and `id` name a task of several turns, not {spec.config!r:.200}"
            )
        params: JSONObject = {"category": category, "id": task, "memory": left_by(trial.required)}
        toolkit = await self._services.toolkit(toolkit_of(category))
        environment = Environment(toolkit, params, self._the_web() if category in WEB_SEARCH else None)
        try:
            return StatefulEpisode(environment, await environment.begin(), trial)
        except BaseException:
            await environment.end()
            raise

    def _the_web(self) -> Web:
        if self._web is None:
            key = os.environ.get(KEY, "")
            self._services.hide(key)
            self._web = Web(key)
        return self._web

    async def close(self) -> None:
        """Let go of the web."""
        if self._web is not None:
            await self._web.close()


def left_by(required: Mapping[str, Deliverable]) -> JSONValue:
    """What the session before this one has left of its memory; None where there was none."""
    return next((left.data.get(MEMORY) for left in required.values()), None)


class Environment:
    """Upstream's instances in a worker; where that is lost, in another one, after all calls so far.

    With a `web` the class has no state: nothing is asked for twice.
    """

    def __init__(self, toolkit: ToolkitHandle, params: JSONObject, web: Web | None = None) -> None:
        self._toolkit = toolkit
        self._params = params
        self._web = web
        self._done: list[JSONObject] = []
        self._held = AsyncExitStack()
        self._session: ToolkitSession | None = None

    async def begin(self) -> JSONObject:
        """Open a session; returns what upstream says first. Raises ToolkitError."""
        answering = None if self._web is None else self._web.answer
        session = await self._held.enter_async_context(self._toolkit.session(on_callback=answering))
        opened = await session.request("open", self._params, OPEN_S)
        for params in self._done:
            await session.request("call", params, CALL_S)
        self._session = session
        return cast(JSONObject, opened)

    async def call(self, params: JSONObject) -> JSONObject | None:
        """Upstream's answer to a call; None if no worker survives it. Raises ToolkitError."""
        for _ in range(TRIES):
            try:
                if self._session is None:
                    await self.begin()
                answer = await self._asked("call", params)
            except WorkerLost as error:
                await self.end()
                if error.reason not in ("hung", "died"):
                    raise
                continue
            if self._web is None:
                self._done.append(params)
            return answer
        return None

    async def state(self) -> JSONObject:
        """What the instances hold. Raises ToolkitError."""
        if self._session is None:
            await self.begin()
        return await self._asked("state", {})

    async def _asked(self, method: str, params: JSONObject) -> JSONObject:
        assert self._session is not None
        answer = await self._session.request(method, params, CALL_S)
        if not isinstance(answer, dict):
            raise InfraError(f"the bfcl toolkit answered {method} with {type(answer).__name__}")
        return answer

    async def end(self) -> None:
        """Let go of the worker."""
        held, self._held, self._session = self._held, AsyncExitStack(), None
        await held.aclose()


class StatefulEpisode:
    """One trial's environment, and the driver of its turns."""

    def __init__(self, environment: Environment, opened: JSONObject, trial: OpenTrial) -> None:
        self._environment = environment
        self._trial = trial
        self._turns = cast("list[list[JSONObject]]", opened["turns"])
        self._added = cast("dict[str, list[JSONObject]]", opened["added"])
        self._replies = cast(int, opened["replies"])
        self._tools = [_spec(tool) for tool in cast("list[JSONObject]", opened["tools"])]
        self._turn = -1
        self._over = False

    def tools(self) -> Sequence[ToolSpec]:
        """Those that are there in the turn that was said last."""
        return tuple(self._tools)

    async def call(self, name: str, arguments: JSONValue) -> ToolResult | InputRequired:
        """Upstream's answer, word for word; an error where it says that the call failed."""
        if self._over:
            return text_result(OVER, error=True)
        answer = await self._environment.call({"name": name, "arguments": as_text(arguments)})
        if answer is None:
            self._trial.recorder.record(LOST, source="environment", tool=name)
            return text_result(SURVIVED_BY_NOBODY, error=True)
        return text_result(str(answer["text"]), error=answer["error"] is True)

    def driver(self) -> StatefulEpisode:
        """Itself."""
        return self

    async def next(self, reply: HarnessExit | None) -> UserTurn | End:
        """The dataset's next turn, whatever was answered; upstream bounds the replies of a model within it."""
        self._turn += 1
        if self._turn >= len(self._turns):
            return End("every turn was taken")
        added = self._added.get(str(self._turn), [])
        self._tools += [_spec(tool) for tool in added]
        said = tuple(Message(str(m["role"]), str(m["content"])) for m in self._turns[self._turn])
        return UserTurn(said, tools_changed=bool(added), model_calls=self._replies)

    async def state(self) -> JSONValue:
        """What upstream compares; of a memory, what the next session begins with."""
        return await self._environment.state()

    async def close(self) -> None:
        """Let go of the session."""
        self._over = True
        await self._environment.end()


def _spec(tool: JSONObject) -> ToolSpec:
    return ToolSpec(str(tool["name"]), str(tool["description"]), cast(JSONObject, tool["input_schema"]))
