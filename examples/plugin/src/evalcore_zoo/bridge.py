"""The zoo: four tools over a state that lives as long as one trial."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from evalcore.contracts import Driver, OpenTrial, Services, ToolResult, text_result
from evalcore.errors import ConfigError
from evalcore.hookspecs import BridgeInfo
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import BridgeSpec, ToolSpec
from evalcore_zoo.data import animals

UNITS: Final[JSONObject] = {"type": "integer", "minimum": 1, "description": "how many units"}
ANIMAL: Final[JSONObject] = {"type": "string", "description": "its name, such as otter"}
FOOD: Final[JSONObject] = {"type": "string", "description": "such as fish"}


def _schema(**properties: JSONValue) -> JSONObject:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


TOOLS: Final = (
    ToolSpec("look", "Look at an animal: what it eats, its portion for a day, its house.", _schema(animal=ANIMAL)),
    ToolSpec("store", "What food is in the store, in units.", _schema()),
    ToolSpec("feed", "Give an animal food from the store.", _schema(animal=ANIMAL, food=FOOD, units=UNITS)),
    ToolSpec("order", "Order food; it comes tomorrow.", _schema(food=FOOD, units=UNITS)),
)


class ZooBridge:
    """Made once for a run; opens an episode for each trial. `store` in its configuration is the food there is."""

    def __init__(self, services: Services, info: BridgeInfo) -> None:
        pass

    async def open(self, spec: BridgeSpec, trial: OpenTrial) -> Zoo:
        """A zoo where nobody has been fed yet. Raises ConfigError for a store that is none."""
        store = spec.config.get("store")
        if not isinstance(store, dict):
            raise ConfigError("bridge zoo needs `store`, an object")
        units = {food: count for food, count in store.items() if type(count) is int and count >= 0}
        if len(units) < len(store):
            raise ConfigError("bridge zoo: `store` says how many units of each food there are")
        return Zoo(units)


class Zoo:
    """One trial's zoo. A tool's failure is a result; an exception would blame the machine, and void the trial."""

    def __init__(self, store: dict[str, int]) -> None:
        self._animals = animals()
        self._store = store
        self._fed: dict[str, dict[str, int]] = {}
        self._ordered: dict[str, int] = {}
        self._open = True
        self._tools: dict[str, Callable[[JSONObject], str]] = {
            "look": self._look,
            "store": lambda _: _listed(self._store),
            "feed": self._feed,
            "order": self._order,
        }

    def tools(self) -> Sequence[ToolSpec]:
        """All four, at any time."""
        return TOOLS

    async def call(self, name: str, arguments: JSONValue) -> ToolResult:
        """What the tool says."""
        try:
            if not self._open:
                raise Refused("the zoo is closed")
            if name not in self._tools:
                raise Refused(f"there is no tool {name!r}")
            if not isinstance(arguments, dict):
                raise Refused("arguments must be an object")
            return text_result(self._tools[name](arguments))
        except Refused as refused:
            return text_result(str(refused), error=True)

    def driver(self) -> Driver | None:
        """No dialogue: the task is one message."""
        return None

    async def state(self) -> JSONValue:
        """What the grader sees: a copy, so that it stays what it was when it was taken."""
        fed: JSONObject = {animal: dict(foods) for animal, foods in self._fed.items()}
        return {"fed": fed, "ordered": dict(self._ordered), "store": dict(self._store)}

    async def close(self) -> None:
        """The trial is over."""
        self._open = False

    def _look(self, arguments: JSONObject) -> str:
        name = self._animal(arguments)
        about = self._animals[name]
        return f"The {name} lives in: {about['house']}. It eats {about['eats']}, {about['portion']} units a day."

    def _feed(self, arguments: JSONObject) -> str:
        name, food, units = self._animal(arguments), _text(arguments, "food"), _units(arguments)
        if self._store.get(food, 0) < units:
            raise Refused(f"the store holds {self._store.get(food, 0)} units of {food}")
        self._store[food] -= units
        eaten = self._fed.setdefault(name, {})
        eaten[food] = eaten.get(food, 0) + units
        return f"The {name} got {units} units of {food}."

    def _order(self, arguments: JSONObject) -> str:
        food, units = _text(arguments, "food"), _units(arguments)
        if food not in {about["eats"] for about in self._animals.values()}:
            raise Refused(f"nobody here eats {food!r}")
        self._ordered[food] = self._ordered.get(food, 0) + units
        return f"{units} units of {food} will come tomorrow."

    def _animal(self, arguments: JSONObject) -> str:
        name = _text(arguments, "animal")
        if name not in self._animals:
            raise Refused(f"there is no animal {name!r}; there are {', '.join(self._animals)}")
        return name


class Refused(Exception):
    """Why a tool did nothing, in words for the agent."""


def _text(arguments: JSONObject, name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str):
        raise Refused(f"`{name}` must be a text")
    return value


def _units(arguments: JSONObject) -> int:
    value = arguments.get("units")
    if type(value) is not int or not 1 <= value <= 1000:
        raise Refused("`units` must be a whole number from 1 to 1000")
    return value


def _listed(store: dict[str, int]) -> str:
    return ", ".join(f"{food}: {units}" for food, units in store.items()) or "nothing"
