"""Serves a domain's tasks: upstream's system prompt and greeting, then whatever its user says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, cast

from attrs import evolve

from evalcore.contracts import OpenTrial, Selector, Services
from evalcore.engine.trial import standard_deliverable
from evalcore.errors import ConfigError, InfraError
from evalcore.hookspecs import AdapterInfo
from evalcore.values.arm import Arm
from evalcore.values.json import JSONObject, exact_text
from evalcore.values.task import Assignment, BridgeSpec, Dataset, Gold, Message, Task
from evalcore.values.trial import Deliverable, Evidence
from evalcore_tau2.bridge import Tau2Episode
from evalcore_tau2.gold import CRITERIA, dialogue_of, solo_of, subject, whole
from evalcore_tau2.known import flags_of
from evalcore_tau2.worker.tau2_pins import VERSION

FOR_TASK: Final = "golden_retrieval"  # whose prompt holds the documents that a task needs
LOAD_S: Final = 300.0  # telecom's tasks are 14 MB, read in a second


class Tau2Adapter:
    """One domain, with a user or solo."""

    grader = "tau2"

    def __init__(self, services: Services, info: AdapterInfo, selector: Selector) -> None:
        self._services = services
        self._domain = str(info.parameters["domain"])
        self._solo = bool(info.parameters["solo"])
        self._split = selector.split or "base"
        self._retrieval = _retrieval(info, selector)
        self._served: JSONObject | None = None
        self._surface: JSONObject | None = None

    async def _tasks(self) -> JSONObject:
        if self._served is None:
            toolkit = await self._services.toolkit("tau2")
            served = await toolkit.request("tasks", {"domain": self._domain, "split": self._split}, LOAD_S)
            if not isinstance(served, dict):
                raise InfraError("the tau2 toolkit sent no tasks")
            self._served = served
        return self._served

    async def dataset(self) -> Dataset:
        """The domain's data, of the one version that is accepted."""
        files = cast("dict[str, str]", (await self._tasks())["files"])
        return Dataset(
            name=f"τ²-bench {self._domain}",
            version=VERSION,
            date="2026-07-16",
            licence="MIT",
            source=f"sierra-research/tau2-bench v{VERSION}",
            files=files,
        )

    async def tasks(self) -> AsyncIterator[Task]:
        """The split's tasks, in the order of upstream's file."""
        for raw in cast("list[JSONObject]", (await self._tasks())["tasks"]):
            identifier = str(raw["id"])
            shown = {name: value for name, value in raw.items() if name != CRITERIA}
            data: JSONObject = {"domain": self._domain, "solo": self._solo, "task": shown}
            if self._retrieval is not None:
                data["retrieval"] = self._retrieval
            yield Task(identifier, data, raw.get(CRITERIA), flags=flags_of(self._domain, identifier))

    async def assign(self, task: Task, arm: Arm) -> Assignment:
        """Upstream's prompt with the policy, and what was said before the agent's first turn."""
        surface = await self._surface_of(task)
        said = [Message("system", str(surface["system"]))]
        if not self._solo:
            said += _history(task) or [Message("assistant", str(surface["greeting"]))]
        config: JSONObject = {"solo": self._solo, "tools": surface["tools"]}
        return Assignment(tuple(said), (BridgeSpec("tau2", config),))

    async def _surface_of(self, task: Task) -> JSONObject:
        """What the agent is told and given: the same for all tasks, but for the ticket of a solo one."""
        if self._surface is None or self._solo or self._retrieval == FOR_TASK:
            toolkit = await self._services.toolkit("tau2")
            request = subject(task)
            self._surface = cast(JSONObject, await toolkit.request("surface", request, LOAD_S))
        return self._surface

    async def capture(self, trial: OpenTrial) -> Deliverable:
        """The whole simulation: every message, as upstream keeps them."""
        episode = next(e for e in trial.episodes if isinstance(e, Tau2Episode))
        left = standard_deliverable(trial)
        simulation = await episode.simulation(malformed=any(call.raw is not None for call in left.calls))
        return evolve(left, data={"simulation": simulation})

    async def collect(self, trial: OpenTrial) -> Evidence:
        """The task as upstream has it, so that a run can be read without upstream's data.

        Nothing else is left in an environment: the evaluator makes its state anew from the messages.
        """
        return Evidence({"task": whole(trial.task)})

    async def gold(self, task: Task) -> Gold | None:
        """The reference actions in turns; for a control's user its part of them."""
        return solo_of(whole(task)) if self._solo else dialogue_of(whole(task))


def _retrieval(info: AdapterInfo, selector: Selector) -> str | None:
    """The retrieval variant that the selector names. Raises ConfigError for one that cannot be had here."""
    variants = cast("list[str]", info.parameters["retrieval"])
    if not variants or selector.parameter in variants:
        return selector.parameter
    hint = f"one of {', '.join(f'{info.name}:{v}' for v in variants)}"
    if selector.parameter is None:
        what = f"upstream's default, `alltools`, needs {_needs('alltools')}, which are not here"
        raise ConfigError(f"{info.name} needs a retrieval variant: {what}", hint=hint)
    why = f": it needs {needed}" if (needed := _needs(selector.parameter)) else ""
    raise ConfigError(f"{info.name} has no retrieval variant {selector.parameter!r} here{why}", hint=hint)


def _needs(variant: str) -> str:
    """What a variant of upstream's needs that is not here; nothing for a name that upstream does not have either."""
    service, shell = "an embedding service", "a shell sandbox"
    base = variant.removesuffix("_grep")
    if variant in {"alltools", "alltools-qwen"}:
        return f"{service} and {shell}"
    if variant in {"terminal_use", "terminal_use_write"}:
        return shell
    if base in {"qwen_embeddings", "openai_embeddings"}:
        return service
    if base in {"qwen_embeddings_reranker", "openai_embeddings_reranker"}:
        return f"{service} and a model that ranks again"
    return "a model that ranks again" if base == "bm25_reranker" else ""


def _history(task: Task) -> list[Message]:
    """What a task says was said and done before, calls and results as text."""
    state = whole(task).get("initial_state")
    history = state.get("message_history") if isinstance(state, dict) else None
    messages = [m for m in history if isinstance(m, dict)] if isinstance(history, list) else []
    said: list[Message] = []
    for message in messages:
        role = "assistant" if message["role"] == "tool" else str(message["role"])
        text = f"[result: {message.get('content')}]" if message["role"] == "tool" else _text(message)
        if said and said[-1].role == role:
            said[-1] = Message(role, f"{said[-1].content}\n{text}")
        else:
            said.append(Message(role, text))
    return said


def _text(message: JSONObject) -> str:
    calls = cast("list[JSONObject]", message.get("tool_calls") or [])
    lines = [f"[called {call['name']}({exact_text(call['arguments'])})]" for call in calls]
    return "\n".join([*lines, str(message["content"])] if message.get("content") else lines)
