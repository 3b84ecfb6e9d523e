"""Reads upstream's results files as a run: one file, or `results.json` with a folder `simulations` beside it.

A file is one benchmark and one configuration, a simulation is a trial. The reward is the verdict: 1 passes, as upstream
counts it. What ended a simulation says whose result it is: `_ENDS` and `_VOID`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from evalcore.contracts import Services
from evalcore.datasets.reading import Place, read_file, read_json
from evalcore.errors import ConfigError
from evalcore.values.descriptors import ImporterInfo
from evalcore.values.imported import ImportedArm, ImportedBenchmark, ImportedRun, ImportedTask, ImportedTrial
from evalcore.values.json import JSONObject, JSONValue, dumps
from evalcore.values.task import Call, Dataset, Role
from evalcore.values.trial import Deliverable, Evidence, Exit, Verdict, Void
from evalcore.values.usage import Usage
from evalcore_tau2.grader import TOLERANCE
from evalcore_tau2.plugin import BENCHMARKS

RESULTS_FILE: Final = "results.json"
SIMULATIONS: Final = "simulations"
_ENDS: Final[Mapping[str, Exit]] = {
    "agent_stop": Exit("completed"),
    "user_stop": Exit("completed"),
    "max_steps": Exit("limit", "steps"),
    "too_many_errors": Exit("limit", "tool_errors"),
    "timeout": Exit("limit", "wall_s"),
    "context_window_exceeded": Exit("limit", "context"),
    "agent_error": Exit("crashed"),
}
_VOID: Final = ("infrastructure_error", "unexpected_error", "user_error")
_SECRET: Final = re.compile(r"key|secret|password|auth|headers|token$", re.IGNORECASE)  # an argument that is no axis
_AXES: Final = ("harness", "model", "user_model")  # said elsewhere in the file
_HEAD: Final = 4096


class Tau2Files:
    """Importer `tau2-results`."""

    def __init__(self, services: Services | None = None, info: ImporterInfo | None = None) -> None:
        pass

    def knows(self, source: Path) -> bool:
        """A JSON file, or a folder with a `results.json`, that begins as upstream's results do."""
        file = source / RESULTS_FILE if source.is_dir() else source
        if file.suffix != ".json" or not file.is_file():
            return False
        with file.open("rb") as opened:
            head = opened.read(_HEAD)
        return b'"git_commit"' in head and b'"num_trials"' in head

    def read(self, source: Path) -> ImportedRun:
        """The run. Raises ConfigError for what is not upstream's, or not whole."""
        file = source / RESULTS_FILE if source.is_dir() else source
        whole = Place(read_json(read_file(file), str(file)), f"{file}: $")
        simulations = _simulations(whole, file.parent / SIMULATIONS)
        if not simulations:
            raise ConfigError(f"{file}: it holds no simulation", hint="was the run stopped before its first one ended?")
        info = whole.object("info")
        benchmark, arm = _benchmark(whole, info, _created(whole, simulations)), _arm(info)
        repeats = _repeats(simulations)
        return ImportedRun(
            name=f"{benchmark.name}-{arm.axes.get('model', arm.handle)}",
            created=_created(whole, simulations),
            source={"tool": "tau2", "version": info.text("git_commit"), "format": "results"},
            benchmarks=(benchmark,),
            arms=(arm,),
            trials=_trials(info, benchmark.name, arm.handle, simulations),
            repeats=max([info.integer("num_trials"), *(repeat for repeat, _ in repeats)]),
            seed=info.integer("seed", 0),
        )


def _simulations(whole: Place, folder: Path) -> list[Place]:
    """Every simulation. Raises ConfigError where upstream's index names others than are there."""
    inside = whole.objects("simulations")
    if not folder.is_dir():
        return inside
    if inside:
        raise ConfigError(
            f"{whole.where}.simulations: simulations stand here and in {folder} too",
            hint="keep one of the two: upstream would read the folder",
        )
    files = sorted(folder.glob("*.json"))
    if whole.value.get("simulation_index") is not None:
        named = {entry.text("id") for entry in whole.objects("simulation_index")}
        if apart := sorted(named ^ {file.stem for file in files}):
            raise ConfigError(
                f"{whole.where}.simulation_index and the files of {folder} differ in {', '.join(apart[:5])}",
                hint="every simulation of the index has its file, and every file its entry",
            )
    return [Place(read_json(read_file(file), str(file)), f"{file}: $") for file in files]


# ── what it says ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _created(whole: Place, simulations: list[Place]) -> str:
    return _moment(whole, "timestamp") if whole.value.get("timestamp") else _moment(simulations[0], "start_time")


def _moment(place: Place, name: str) -> str:
    """A time of RFC 3339. Upstream's have no zone, and are taken for UTC."""
    text = place.text(name)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{place.where}.{name}: expected a time as 2026-01-31T12:00:00, got {text!r}") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).isoformat()


def _arm(info: Place) -> ImportedArm:
    agent, user = info.object("agent_info"), info.object("user_info")
    implementation = agent.text("implementation")
    axes: dict[str, JSONValue] = {"harness": implementation}
    if (model := _model(agent)) is not None:
        axes["model"] = model
    axes |= {name: value for name, value in agent.object("llm_args").value.items() if _is_axis(name, value)}
    if (model := _model(user)) is not None:
        axes["user_model"] = model
    kind = user.text("implementation", "")
    if kind not in ("", "user_simulator", "dummy_user"):
        axes["user"] = kind
    handle = implementation.split()[0].rsplit("/", 1)[-1] if implementation.strip() else ""
    return ImportedArm(handle or "agent", axes, info.text("git_commit"))


def _model(one: Place) -> str | None:
    """The model of an agent or a user; None where there is none."""
    return None if one.value.get("llm") is None else one.text("llm")


def _is_axis(name: str, value: JSONValue) -> bool:
    return value is not None and name not in _AXES and not _SECRET.search(name)


def _benchmark(whole: Place, info: Place, created: str) -> ImportedBenchmark:
    domain = info.object("environment_info").text("domain_name")
    solo = info.object("user_info").text("implementation", "") == "dummy_user"
    name = next((n for n, b in BENCHMARKS.items() if (b.domain, b.solo) == (domain, solo)), f"tau2-{domain}")
    if info.value.get("retrieval_config"):
        name += f":{info.text('retrieval_config')}"
    version = info.text("git_commit")
    tasks = tuple(ImportedTask(_id(task, "id"), task.value) for task in whole.objects("tasks"))
    if twice := [t for t, n in Counter(task.id for task in tasks).items() if n > 1]:
        raise ConfigError(f"{whole.where}.tasks: task {twice[0]!r} stands there twice")
    return ImportedBenchmark(
        name=name,
        dataset=Dataset(f"τ²-bench {domain}", version, created[:10], "MIT", "a τ²-bench results file"),
        tasks=tasks,
        grader="tau2",
        grader_stamp={"tau2": version},
    )


def _id(place: Place, name: str) -> str:
    """An identifier; in files of older versions some are numbers."""
    value = place.value.get(name)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else place.text(name)


def _repeats(simulations: list[Place]) -> list[tuple[int, int]]:
    """Of each simulation its repeat and its attempt, both from 1. One that follows a void one is its next attempt.

    Where the file does not say which trial it is, simulations of a task are counted.
    """
    seen: Counter[str] = Counter()
    voids: Counter[tuple[str, int]] = Counter()
    found = []
    for simulation in simulations:
        task = _id(simulation, "task_id")
        seen[task] += 1
        repeat = seen[task] if simulation.value.get("trial") is None else simulation.integer("trial") + 1
        found.append((repeat, voids[task, repeat] + 1))
        voids[task, repeat] += simulation.value.get("termination_reason") in _VOID
    return found


def _trials(info: Place, benchmark: str, arm: str, simulations: list[Place]) -> Iterator[ImportedTrial]:
    models: dict[Role, str | None] = {
        "agent": _model(info.object("agent_info")),
        "user": _model(info.object("user_info")),
    }
    for simulation, (repeat, number) in zip(simulations, _repeats(simulations), strict=True):
        task, messages = _id(simulation, "task_id"), _messages(simulation)
        exit_, void = _end(simulation)
        answers = [m for m in messages if m.value["role"] == "tool" and _requestor(m) == "assistant"]
        yield ImportedTrial(
            benchmark=benchmark,
            task=task,
            arm=arm,
            repeat=repeat,
            exit=exit_,
            void=void,
            verdict=None if void else _verdict(simulation),
            started=_moment(simulation, "start_time"),
            wall_s=simulation.number("duration"),
            usage={role: _usage(simulation, messages, role) for role, model in models.items() if model is not None},
            tool_calls=sum(len(m.objects("tool_calls")) for m in messages if m.value["role"] == "assistant"),
            tool_errors=sum(m.value.get("error") is True for m in answers),
            events=tuple(_events(simulation, task, messages)),
            number=number,
        )


def _messages(simulation: Place) -> list[Place]:
    """What was said, each with a role that is known. Raises ConfigError, also for a simulation by voice."""
    if simulation.text("mode", "half_duplex") != "half_duplex":
        raise ConfigError(f"{simulation.where}.mode: a simulation by voice is not read, only half_duplex ones")
    found = simulation.objects("messages")
    for message in found:
        if (role := message.text("role")) not in ("system", "assistant", "user", "tool"):
            raise ConfigError(
                f"{message.where}.role: {role!r} is none of system, assistant, user, tool", hint="is it upstream's?"
            )
    return found


def _requestor(message: Place) -> str:
    return message.text("requestor", "assistant")


def _end(simulation: Place) -> tuple[Exit | None, Void | None]:
    reason = simulation.text("termination_reason")
    if reason in _VOID:
        return None, Void("imported", reason)
    if reason not in _ENDS:
        known = ", ".join([*_ENDS, *_VOID])
        raise ConfigError(f"{simulation.where}.termination_reason: {reason!r} is not known", hint=f"one of {known}")
    return _ENDS[reason], None


def _verdict(simulation: Place) -> Verdict:
    """By the reward; where there is none it was not graded."""
    info = simulation.object("reward_info")
    if info.value.get("reward") is None:
        return Verdict("ungraded", details=info.value, flags=_flags(simulation), bounds=(0.0, 1.0))
    reward = info.number("reward")
    solved = abs(reward - 1.0) <= TOLERANCE
    within = reward if reward <= 1.0 else None
    return Verdict("pass" if solved else "fail", within, details=info.value, flags=_flags(simulation))


def _flags(simulation: Place) -> tuple[str, ...]:
    """What evalcore wrote there, if it did."""
    flags = simulation.object("info").object("evalcore").value.get("flags")
    return tuple(flag for flag in flags if isinstance(flag, str)) if isinstance(flags, list) else ()


def _usage(simulation: Place, messages: list[Place], role: Role) -> Usage:
    """Tokens as the messages of a role tell them, and its cost as upstream sums it: null is unknown."""
    name = "assistant" if role == "agent" else "user"
    mine = [m for m in messages if m.value["role"] == name]
    if role == "agent" and mine and mine[0] is messages[0] and _is_greeting(mine[0]):
        del mine[0]
    told = [m.object("usage") for m in mine if m.value.get("usage") is not None]
    cost = f"{role}_cost"
    return Usage(
        calls=len(mine),
        input=sum(u.integer("prompt_tokens", 0) for u in told),
        output=sum(u.integer("completion_tokens", 0) for u in told),
        unreported=len(mine) - len(told),
        cost_usd=None if simulation.value.get(cost) is None else simulation.number(cost),
    )


def _is_greeting(message: Place) -> bool:
    """Whether it is upstream's own first line, which no model made."""
    return message.value.get("usage") is None and not message.value.get("tool_calls")


# ── what was said, as a trace ────────────────────────────────────────────────────────────────────────────────────────


def _events(simulation: Place, task: str, messages: list[Place]) -> Iterator[JSONObject]:
    """The dialogue as a trace, without times; whole in the deliverable."""
    seed = None if simulation.value.get("seed") is None else simulation.integer("seed")
    said = list(messages)
    first: list[JSONValue] = []
    if said and said[0].value["role"] == "assistant" and _is_greeting(said[0]):
        greeting = said.pop(0)
        first.append({"role": "assistant", "content": greeting.value.get("content")})
    yield {"t": 0.0, "e": "trial.start", "task": task, "seed": seed, "messages": first}
    made: list[Call] = []
    names: dict[str, tuple[str, JSONValue]] = {}
    counts: Counter[str] = Counter()
    for message in said:
        role, calls = message.value["role"], message.objects("tool_calls")
        for call in calls:
            names[call.text("id", "")] = call.text("name"), call.object("arguments").value
        if role == "assistant":
            counts["model"] += 1
            made += [Call(call.text("name"), call.object("arguments").value) for call in calls]
            body: JSONObject = {"choices": [{"message": _chat(message, calls)}]}
            yield {
                "t": 0.0, "e": "model.response", "role": "agent", "call": counts["model"], "body": body,
                "wall_s": message.number("generation_time_seconds", 0.0),
            }  # fmt: skip
        elif role == "tool":
            yield from _result(message, names, counts)
        elif calls:
            for call in calls:
                name, arguments = names[call.text("id", "")]
                yield {
                    "t": 0.0, "e": "env.call", "source": "user", "requestor": "user", "call": call.text("id", ""),
                    "tool": name, "arguments": arguments,
                }  # fmt: skip
        else:
            counts["turn"] += 1
            turn: list[JSONValue] = [{"role": role, "content": message.value.get("content")}]
            yield {"t": 0.0, "e": "dialogue.turn", "turn": counts["turn"], "messages": turn}
    reason = simulation.text("termination_reason")
    yield {"t": 0.0, "e": "dialogue.end", "reason": reason, "limit": None, "fault": None}
    whole: JSONObject = {"termination_reason": reason, "messages": [m.value for m in messages]}
    yield {"t": 0.0, "e": "deliverable", **Deliverable(None, tuple(made), {"simulation": whole}).as_json()}
    yield {"t": 0.0, "e": "evidence", **Evidence().as_json()}


def _result(message: Place, names: Mapping[str, tuple[str, JSONValue]], counts: Counter[str]) -> Iterator[JSONObject]:
    """A tool's answer: to the agent with its call, to the user as what the environment did."""
    identifier, content, failed = message.text("id", ""), message.value.get("content"), message.value.get("error")
    if _requestor(message) == "user":
        yield {
            "t": 0.0, "e": "env.result", "source": "user", "requestor": "user", "result": identifier,
            "error": failed is True, "content": content,
        }  # fmt: skip
        return
    counts["tool"] += 1
    name, arguments = names.get(identifier, ("tool", None))
    parts: list[JSONValue] = [{"type": "text", "text": content}] if isinstance(content, str) else []
    number = counts["tool"]
    yield {"t": 0.0, "e": "tool.call", "call": number, "tool": name, "arguments": arguments, "bridge": "tau2"}
    yield {"t": 0.0, "e": "tool.result", "call": number, "error": failed is True, "content": parts, "wall_s": 0.0}


def _chat(message: Place, calls: list[Place]) -> JSONObject:
    """An assistant message as Chat Completions has it."""
    chat: JSONObject = {"role": "assistant", "content": message.value.get("content")}
    if calls:
        chat["tool_calls"] = [
            {
                "id": call.text("id", ""),
                "type": "function",
                "function": {"name": call.text("name"), "arguments": dumps(call.object("arguments").value).decode()},
            }
            for call in calls
        ]
    return chat
