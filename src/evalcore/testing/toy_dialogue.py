"""Toy dialogues: somebody asks for the weather of one city after the other. For tests of the engine, and to copy from.

`toy-dialogues`   two questions, a turn each
`toy-late`        the tool for the second city is offered only in the second turn
`toy-users`       what is asked is up to the role `user`, and whether that was right, to the role `judge`
`toy-memory`      what is asked in the second task was told in the first, which is not scored
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from evalcore.contracts import End, InputRequired, JudgeReplies, OpenTrial, Selector, Services, ToolResult, UserTurn
from evalcore.contracts import text_result as answer
from evalcore.engine.trial import standard_deliverable
from evalcore.errors import LimitReached
from evalcore.hookspecs import AdapterInfo
from evalcore.values.arm import Arm
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import (
    Assignment,
    BridgeSpec,
    Call,
    Dataset,
    Gold,
    GoldCalls,
    GoldDialogue,
    Limits,
    Message,
    Task,
    ToolSpec,
)
from evalcore.values.trace import TraceReader, assistant_message
from evalcore.values.trial import Deliverable, Evidence, HarnessExit, Verdict

CITIES: Final = ("Bern", "Oslo", "Lima", "Quito")
STOP: Final = "###STOP###"
STEPS: Final = 12  # calls that the toy's own rules allow in one dialogue
_SCHEMA: Final[JSONObject] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_FACTORY: Final = "evalcore.testing.toy_dialogue:TalkAdapter"

DIALOGUES: Final = (
    AdapterInfo("toy-dialogues", "two questions, a turn each (toy)", _FACTORY, parameters={"form": "fixed"}),
    AdapterInfo(
        "toy-late",
        "a tool appears in the second turn (toy)",
        _FACTORY,
        parameters={"form": "late"},
        tools_change=True,
    ),
    AdapterInfo(
        "toy-users",
        "a simulated user asks, a judge judges (toy)",
        _FACTORY,
        parameters={"form": "user"},
        roles={"user": "openai/toy-user", "judge": "openai/toy-judge"},
    ),
    AdapterInfo("toy-memory", "what was told before is asked later (toy)", _FACTORY, parameters={"form": "memory"}),
)


class TalkAdapter:
    """Tasks `d0`, `d1`, …: each about a pair of cities. In `toy-memory`, `m0` tells and `d0` asks."""

    grader = "toy-talk"

    def __init__(self, services: Services, info: AdapterInfo, selector: Selector) -> None:
        self._form = str(info.parameters["form"])

    async def dataset(self) -> Dataset:
        """Made up."""
        return Dataset("toy-dialogues", "1", "2026-01-01", "CC0-1.0", "made up")

    async def tasks(self) -> AsyncIterator[Task]:
        """The tasks in order."""
        for number, pair in enumerate(zip(CITIES[::2], CITIES[1::2], strict=True)):
            data: JSONObject = {"cities": list(pair), "form": self._form}
            if self._form == "memory":
                yield Task(f"m{number}", {**data, "told": pair[0]}, scored=False)
                yield Task(f"d{number}", data, list(pair), requires=(f"m{number}",))
            else:
                yield Task(f"d{number}", data, list(pair))

    async def assign(self, task: Task, arm: Arm) -> Assignment:
        """A word beforehand; the driver says the rest."""
        return Assignment(
            (Message("system", "You answer questions about the weather."),),
            (BridgeSpec("toy-talk", dict(task.data)),),
            limits=Limits(model_calls=20),
        )

    async def capture(self, trial: OpenTrial) -> Deliverable:
        """Answer, calls, and what an agent with a memory would know from now on."""
        return standard_deliverable(trial, {"knows": trial.task.data.get("told")})

    async def collect(self, trial: OpenTrial) -> Evidence:
        """Nothing to measure."""
        return Evidence()

    async def gold(self, task: Task) -> Gold | None:
        """Look up each city in its turn."""
        cities = [str(c) for c in _list(task.data["cities"])]
        if self._form == "user":
            turns: list[JSONObject] = [
                {"calls": [{"name": "look", "arguments": {"city": c}}], "answer": f"{c}: fine"} for c in cities
            ]
            return GoldDialogue(tuple(turns), tuple({"say": c} for c in cities))
        if self._form == "late":
            return GoldCalls(tuple((Call(f"look_{c.lower()}", {"city": c}),) for c in cities), "fine")
        wanted = cities[:1] if self._form == "memory" else cities
        return GoldCalls(tuple((Call("look", {"city": c}),) for c in wanted), "fine")


class TalkBridge:
    """Opens a `Talk`."""

    def __init__(self, services: Services | None = None, info: object = None) -> None:
        pass

    async def open(self, spec: BridgeSpec, trial: OpenTrial) -> Talk:
        """One dialogue."""
        return Talk(spec.config, trial)


class Talk:
    """The episode and its driver in one."""

    def __init__(self, config: JSONObject, trial: OpenTrial) -> None:
        self._cities = [str(c) for c in _list(config["cities"])]
        self._form = config["form"]
        self._trial = trial
        self._turn = 0
        self._steps = 0
        self._said: list[JSONValue] = []  # to the simulated user, who sees the agent as its own user

    def tools(self) -> Sequence[ToolSpec]:
        """One tool; in `toy-late`, one a city, the second from the second turn on."""
        if self._form != "late":
            return (ToolSpec("look", "Look up a city.", _SCHEMA),)
        there = self._cities[: max(1, self._turn)]
        return tuple(ToolSpec(f"look_{c.lower()}", f"Look up {c}.", _SCHEMA) for c in there)

    async def call(self, name: str, arguments: JSONValue) -> ToolResult | InputRequired:
        """Fine weather. Raises LimitReached past the toy's own bound on calls."""
        self._steps += 1
        if self._steps > STEPS:
            raise LimitReached("steps", STEPS)
        city = arguments.get("city") if isinstance(arguments, dict) else None
        return answer(f"{city}: fine") if isinstance(city, str) else answer("which city?", error=True)

    def driver(self) -> Talk:
        """Itself."""
        return self

    async def next(self, reply: HarnessExit | None) -> UserTurn | End:
        """The next question, or the end."""
        self._turn += 1
        if self._form == "user" and not self._trial.control:
            return await self._from_user(reply)
        return self._from_script()

    def _from_script(self) -> UserTurn | End:
        if self._form == "memory":
            told, known = self._trial.task.data.get("told"), [d.data["knows"] for d in self._trial.required.values()]
            asked = [f"I live in {told}."] if told else [f"Weather where I live? (Notes: {known[0]})"]
        elif self._trial.control and self._form == "user":
            gold = self._trial.gold
            asked = [str(turn["say"]) for turn in gold.user] if isinstance(gold, GoldDialogue) else []
        else:
            asked = [f"Weather of {city}?" for city in self._cities]
        if self._turn > len(asked):
            return End("all is said")
        message = Message("user", asked[self._turn - 1])
        return UserTurn((message,), tools_changed=self._form == "late" and self._turn > 1, model_calls=3)

    async def _from_user(self, reply: HarnessExit | None) -> UserTurn | End:
        if reply is not None:
            self._said.append({"role": "user", "content": reply.answer or ""})
        system: JSONObject = {"role": "system", "content": f"You want to know the weather of {self._cities}."}
        body: JSONObject = {"model": "toy", "messages": [system, *self._said]}
        said = assistant_message(await self._trial.complete("user", body))
        text = str(said.get("content"))
        self._said.append({"role": "assistant", "content": text})
        if STOP in text:
            return End("user_stop")
        if text == "give up":
            return End("too many errors", limit="tool_errors")
        return UserTurn((Message("user", text),))

    async def state(self) -> JSONValue:
        """How far it went."""
        return {"turn": self._turn}

    async def close(self) -> None:
        """Nothing is open."""


class TalkGrader:
    """Passes if the cities were looked up in their order; in `toy-users`, a judge has to agree."""

    def __init__(self, services: Services | None = None, info: object = None) -> None:
        pass

    async def grade(
        self, task: Task, deliverable: Deliverable, evidence: Evidence, trace: TraceReader, judge: JudgeReplies | None
    ) -> Verdict:
        """Pass or fail; ungraded where only a judge that is not there could tell."""
        form = task.data["form"]
        wanted = _list(task.reference)[:1] if form == "memory" else _list(task.reference)
        looked = [c.arguments.get("city") for c in deliverable.calls if isinstance(c.arguments, dict)]
        if looked != wanted:
            return Verdict("fail", 0.0, details={"looked": looked})
        if form != "user":
            return Verdict("pass", 1.0)
        if judge is None:
            return Verdict("ungraded", bounds=(0.0, 1.0))
        request: JSONObject = {"model": "toy", "messages": [{"role": "user", "content": f"Right? {looked}"}]}
        agreed = assistant_message(await judge.reply(request)).get("content") == "yes"
        return Verdict("pass" if agreed else "fail", float(agreed))

    async def stamp(self) -> JSONObject:
        """The toy's own version."""
        return {"toy": "1"}


def _list(value: JSONValue) -> list[JSONValue]:
    return value if isinstance(value, list) else []
