"""One simulation under upstream's own orchestrator, one step at a time, with an agent that lives elsewhere.

The orchestrator is made as upstream makes it and moved by its own `step`; what it asks its agent for is what was handed
in. Where upstream asks for a model's reply, the step is taken back and taken again once the reply is here: a step
begins with that question, so nothing but the user's list of messages has changed until then.
"""

from __future__ import annotations

import json
from typing import Any

MYPY = False
if MYPY:
    from evalcore_tau2.worker.tau2_upstream import JSONObject, Pending, Upstream
else:
    from tau2_upstream import Pending

MAX_STEPS, MAX_ERRORS = 200, 10
"""Upstream's defaults for a run (the orchestrator's own default of 100 steps is not what runs use)."""

SOLO_STOP = "done"


def agent_class(native: Upstream, solo: bool) -> Any:
    """Upstream's agent, whose next message is the one that was put into `said`."""
    base = native.agents.LLMSoloAgent if solo else native.agents.LLMAgent

    def generate_next_message(self: Any, _message: Any, state: Any) -> tuple[Any, Any]:
        said, self.said = self.said, None
        if solo and said.is_tool_call():
            said = self._check_if_stop_toolcall(said)
        return said, state

    return type("RelayedAgent", (base,), {"said": None, "generate_next_message": generate_next_message})


def make_agent(native: Upstream, environment: Any, task: Any, solo: bool) -> Any:
    """The agent with the tools and the policy that upstream gives to its own."""
    tools = environment.get_tools()
    more = {}
    if solo:
        tools += native.user_tools(environment, task) or []
        more = {"task": task}
    return agent_class(native, solo)(tools=tools, domain_policy=environment.get_policy(), llm="agent", **more)


def make_environment(native: Upstream, domain: str, task: Any, solo: bool, retrieval: str | None) -> Any:
    """A fresh environment, as upstream's runner makes it."""
    maker = native.environment_maker(domain)
    options = environment_options(task, retrieval)
    return maker(solo_mode=True, **options) if solo else maker(**options)


def environment_options(task: Any, retrieval: str | None) -> JSONObject:
    """What upstream's runner passes to the environments of a domain with a knowledge base, and to its evaluator.

    Of the read-only tools that an agent discovers, calls are logged in the database only where the reference actions
    use that tool.
    """
    if retrieval is None:
        return {}
    actions = (task.evaluation_criteria.actions if task.evaluation_criteria else None) or []
    logged = {a.arguments.get("agent_tool_name") for a in actions if a.name == "call_discoverable_agent_tool"}
    return {"retrieval_variant": retrieval, "task": task, "read_log_allowlist": logged - {None}}


class Dialogue:
    """One attempt's simulation. `script` holds the user model's replies of a control; None: they are asked for."""

    def __init__(
        self,
        native: Upstream,
        domain: str,
        raw_task: JSONObject,
        *,
        solo: bool,
        seed: int,
        script: list[JSONObject] | None,
        retrieval: str | None = None,
    ) -> None:
        self._native = native
        self.solo = solo
        task = native.tasks.Task.model_validate(raw_task)
        environment = make_environment(native, domain, task, solo, retrieval)
        self.agent = make_agent(native, environment, task, solo)
        self.orchestrator = native.orchestrator.Orchestrator(
            domain=domain,
            agent=self.agent,
            user=self._user(environment, task),
            environment=environment,
            task=task,
            max_steps=MAX_STEPS,
            max_errors=MAX_ERRORS,
            seed=seed,
            solo_mode=solo,
        )
        self._script = script
        self._replies: list[JSONObject] = []
        self._batch: Any = None  # the agent's message whose calls are still coming in
        self._reported = 0
        self._failure: str | None = None
        self.begun = False
        if not solo:  # a solo agent speaks first, so its simulation begins with its first message
            self._begin()

    def _user(self, environment: Any, task: Any) -> Any:
        if self.solo:
            return self._native.users.DummyUser()
        arguments = dict(self._native.config.DEFAULT_LLM_ARGS_USER)
        tools = self._native.user_tools(environment, task)
        return self._native.users.UserSimulator(
            tools=tools, instructions=str(task.user_scenario), llm="user", llm_args=arguments
        )

    def _begin(self) -> None:
        self.begun = True
        self.orchestrator.initialize()

    # ── what the host asks for ───────────────────────────────────────────────────────────────────────────────────────

    def listen(self) -> JSONObject:
        """Go on until the agent is to speak, the end, or a question to the user's model: what happened until then."""
        inner = self.orchestrator
        while not inner.done and not self._agent_is_next():
            before = list(inner.user_state.messages)
            script = self._script
            try:
                with self._native.models.with_replies(self._replies if script is None else script[:1]):
                    inner.step()
            except Pending as pending:
                inner.user_state.messages[:] = before
                if script is not None:
                    raise RuntimeError("the scripted user has nothing more to say, and the dialogue goes on") from None
                return {"ask": pending.body, **self._news()}
            if script and inner.from_role.value == "user":
                del script[0]
            self._replies.clear()
            self._check_termination()
        heard = None if inner.done else _said(inner.message)
        return {"heard": heard, "end": self._end(), **self._news()}

    def reply(self, response: JSONObject) -> JSONObject:
        """The user's model answered."""
        self._replies.append(response)
        return self.listen()

    def say(self, content: str) -> JSONObject:
        """The agent ended its turn with a text; one that is empty breaks the protocol."""
        if not self._settle():
            if content.strip():
                self._speak(self._message(content, None))
            else:
                self._fail_agent("the agent sent an empty message")
        return {"end": self._end(), **self._news()} if self.solo or self.orchestrator.done else self.listen()

    def call(self, name: str, arguments: JSONObject, *, identifier: str, message: JSONObject | None) -> JSONObject:
        """One call of the agent's. `message` opens one: its text, its calls' number and names; else it goes on."""
        inner = self.orchestrator
        opened = message is not None
        if opened and self._settle():
            return {"result": None, "end": self._end(), **self._news()}
        call = self._native.messages.ToolCall(id=identifier, name=name, arguments=arguments, requestor="assistant")
        if message is not None:
            names = message["names"]
            calls = [call]
            if self.solo and SOLO_STOP in names and name != SOLO_STOP:  # one `done` stops a message, all of it
                calls = [call.model_copy(update={"name": SOLO_STOP, "arguments": {}})]
            self._speak(self._message(message["content"], calls))
            if not inner.done:
                inner.step()
                self._batch = inner.trajectory[-2] if len(names) > 1 else None
            self._left = len(names) - 1
        else:
            self._go_on(call)
            self._left -= 1
        if not self._left and not inner.done:
            self._batch = None
            self._check_termination()
        last = inner.trajectory[-1]
        result = {"content": last.content, "error": bool(last.error)} if hasattr(last, "error") else None
        return {"result": result, "end": self._end(), **self._news()}

    def finish(self, reason: str | None) -> JSONObject:
        """The simulation as it stands; `reason` is why it ended, where it did not end by upstream's rules."""
        self._settle()
        ended = self._end() or reason
        policy = self.orchestrator.environment.get_policy()
        if not self.begun:
            return {"messages": [], "termination_reason": ended, "steps": 0, "errors": 0, "failure": self._failure}
        messages = [m.model_dump(mode="json", exclude_none=True) for m in self.orchestrator.get_trajectory()]
        return {
            "messages": messages,
            "termination_reason": ended,
            "steps": self.orchestrator.step_count,
            "errors": self.orchestrator.num_errors,
            "failure": self._failure,
            "policy_characters": len(policy),
        }

    def digests(self) -> JSONObject:
        """Upstream's digests of both databases; null for one that the domain does not have."""
        environment = self.orchestrator.environment
        return {"agent": environment.get_db_hash(), "user": environment.get_user_db_hash()}

    # ── upstream's steps ─────────────────────────────────────────────────────────────────────────────────────────────

    def _agent_is_next(self) -> bool:
        return bool(self.orchestrator.to_role.value == "agent")

    def _message(self, content: str | None, calls: list[Any] | None) -> Any:
        return self._native.messages.AssistantMessage(role="assistant", content=content, tool_calls=calls)

    def _speak(self, message: Any) -> None:
        self.agent.said = message
        if self.begun:
            self.orchestrator.step()
        else:
            self._begin()
        self._check_termination()

    def _go_on(self, call: Any) -> None:
        """A further call of the message that is being executed: no step of its own, as upstream counts."""
        inner = self.orchestrator
        if self._batch is None or inner.done:
            raise RuntimeError("no message of the agent's is open")
        self._batch.tool_calls.append(call)
        result = inner.environment.get_response(call)
        inner.num_errors += bool(result.error)
        inner.trajectory.append(result)
        inner.environment.sync_tools()

    def _settle(self) -> bool:
        """The agent went on: a message whose calls did not all come is closed. Whether that ended the simulation."""
        if self._batch is not None:
            self._batch = None
            self._check_termination()
        return bool(self.orchestrator.done)

    def _check_termination(self) -> None:
        inner = self.orchestrator
        if hasattr(inner, "_check_termination"):
            inner._check_termination()  # noqa: SLF001 - what upstream's own loop calls after each step
        elif inner.to_role.value != "env":  # the stand-in's older code has it within its loop
            reasons = self._native.simulations.TerminationReason
            if inner.step_count >= inner.max_steps:
                inner.done, inner.termination_reason = True, reasons.MAX_STEPS
            if inner.num_errors >= inner.max_errors:
                inner.done, inner.termination_reason = True, reasons.TOO_MANY_ERRORS

    def _fail_agent(self, why: str) -> None:
        self._failure = why
        self.orchestrator.done = True
        self.orchestrator.termination_reason = self._native.simulations.TerminationReason.AGENT_ERROR

    def _end(self) -> str | None:
        if not self.orchestrator.done:
            return None
        return str(self.orchestrator.termination_reason.value)

    def _news(self) -> JSONObject:
        """The user's own calls and what came of them, since the last time."""
        if not self.begun:
            return {"events": []}
        new = self.orchestrator.trajectory[self._reported :]
        self._reported = len(self.orchestrator.trajectory)
        return {"events": [event for message in new for event in _events(message)]}


def _said(message: Any) -> str:
    return message.content or ""


def _events(message: Any) -> list[JSONObject]:
    if message.role == "user" and message.tool_calls:
        return [{"call": c.id, "tool": c.name, "arguments": c.arguments} for c in message.tool_calls]
    if message.role == "tool" and message.requestor == "user":
        return [{"result": message.id, "content": message.content, "error": bool(message.error)}]
    return []


def scripted(turns: list[JSONObject]) -> list[JSONObject]:
    """A control's user turns as the replies of the user's model: each call a message of its own, then the text."""
    replies = []
    number = 0
    for turn in turns:
        for call in turn.get("calls", ()):
            number += 1
            function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
            calls = [{"id": f"user_{number}", "type": "function", "function": function}]
            replies.append({"role": "assistant", "content": None, "tool_calls": calls})
        replies.append({"role": "assistant", "content": turn["text"]})
    return [{"choices": [{"message": message, "finish_reason": "stop"}]} for message in replies]
