"""What a request and an answer say, whatever dialect they are written in: the middle of every translation.

A dialect's `read_*` functions make these values, its `write_*` functions turn them back. What a value here cannot
hold is refused or noted by the reader, what a dialect cannot say by the writer: nothing is left out without a word.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias

from attrs import frozen

from evalcore.values.json import JSONObject, JSONValue, parse
from evalcore.values.usage import Usage
from evalcore.wires.gateway.refused import RefusedRequest

Speaker: TypeAlias = Literal["system", "developer", "user", "assistant"]
Stop: TypeAlias = Literal["end", "length", "stop_sequence", "tools", "refusal", "filter", "pause"]

INVALID_JSON: Final = "INVALID_JSON"  # how Anthropic's guide wraps a call's arguments that are no JSON


@frozen
class Text:
    """Words."""

    text: str


@frozen
class Refusal:
    """Words with which a model declines."""

    text: str


@frozen
class Image:
    """A picture, at an https or a data URL."""

    url: str
    detail: str | None = None


@frozen
class File:
    """A document, at an https or a data URL."""

    url: str
    name: str | None = None


@frozen
class Reasoning:
    """What a model thought, as far as it shows; `seal` is what its provider wants back unchanged."""

    text: str = ""
    seal: str | None = None
    redacted: bool = False  # the seal holds the thought itself, encrypted


@frozen
class ToolUse:
    """A call that a model wants; `arguments` is JSON text, as it was written."""

    id: str
    name: str
    arguments: str


@frozen
class ToolOutput:
    """What a call gave."""

    id: str
    parts: tuple[Text | Image | File, ...]
    error: bool = False


Part: TypeAlias = Text | Refusal | Image | File | Reasoning | ToolUse | ToolOutput


@frozen
class Turn:
    """One speaker's parts. Outputs of tools are a user's."""

    speaker: Speaker
    parts: tuple[Part, ...]


@frozen
class Tool:
    """A function on offer; `schema` None takes nothing."""

    name: str
    description: str | None = None
    schema: JSONObject | None = None
    strict: bool | None = None


@frozen
class Choice:
    """Whether, and which, tools must be called."""

    mode: Literal["auto", "none", "required", "named"]
    name: str = ""


@frozen
class Format:
    """The form of the answer: any JSON object, or one that fits a schema."""

    schema: JSONObject | None = None
    name: str = "answer"
    description: str | None = None
    strict: bool | None = None


@frozen
class Request:
    """All that a translated request says. None is: not said."""

    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()
    choice: Choice | None = None
    parallel: bool | None = None
    bound: int | None = None  # output tokens
    temperature: JSONValue = None
    top_p: JSONValue = None
    stop: tuple[str, ...] = ()
    effort: str | None = None
    verbosity: str | None = None
    format: Format | None = None
    sealed: bool = False  # whether reasoning is to come with its seal, where that must be asked for


@frozen
class Answer:
    """All that a translated response says."""

    id: str
    model: str
    parts: tuple[Part, ...]
    stop: Stop
    usage: Usage
    created: int = 0
    stop_sequence: str | None = None


class Notes:
    """What a translation leaves out, adds, or refuses."""

    def __init__(self, source: str, target: str) -> None:
        self.source = source
        self.target = target
        self.dropped: list[str] = []
        self.added: JSONObject = {}

    def as_json(self) -> JSONObject:
        """What was left out and put in, for the trace; empty where all was exact."""
        left: JSONObject = {"hints_dropped": list(self.dropped)} if self.dropped else {}
        return {**left, "added": self.added} if self.added else left

    def drop(self, what: str) -> None:
        """A hint that the target has no word for."""
        if what not in self.dropped:
            self.dropped.append(what)

    def drop_others(self, value: JSONObject, known: Sequence[str], where: str) -> None:
        """Every field of an object that is not among those translated, and says something."""
        for key, inner in value.items():
            if key not in known and inner not in (None, [], {}):
                self.drop(f"{where}.{key}")

    def refuse(self, what: str, why: str) -> RefusedRequest:
        """The error to raise for what cannot be said faithfully."""
        return RefusedRequest(
            f"`{what}` cannot be translated from {self.source} to {self.target}, which this model speaks: {why}",
            code="not_translatable",
            param=what,
        )

    def malformed(self, what: str, right: str) -> RefusedRequest:
        """The error to raise for a request that is none in its own dialect."""
        return RefusedRequest(f"`{what}` must be {right}", code="invalid_request", param=what)

    # ── reading what an agent wrote ──────────────────────────────────────────────────────────────────────────────────

    def text(self, value: JSONValue, what: str) -> str:
        """A text. Raises RefusedRequest."""
        if not isinstance(value, str):
            raise self.malformed(what, "a text")
        return value

    def object(self, value: JSONValue, what: str) -> JSONObject:
        """An object. Raises RefusedRequest."""
        if not isinstance(value, dict):
            raise self.malformed(what, "an object")
        return value

    def texts(self, value: JSONValue, what: str) -> tuple[str, ...]:
        """A list of texts. Raises RefusedRequest."""
        if not isinstance(value, list):
            raise self.malformed(what, "a list of texts")
        return tuple(self.text(item, f"{what}[]") for item in value)

    def whole(self, value: JSONValue, what: str) -> int | None:
        """A whole number; None where nothing is said. Raises RefusedRequest."""
        if value is not None and type(value) is not int:
            raise self.malformed(what, "a whole number")
        return value

    def flag(self, value: JSONValue, what: str) -> bool | None:
        """Yes or no; None where nothing is said. Raises RefusedRequest."""
        if value is not None and not isinstance(value, bool):
            raise self.malformed(what, "true or false")
        return value

    def word(self, value: JSONValue, what: str) -> str | None:
        """A text; None where nothing is said. Raises RefusedRequest."""
        return None if value is None else self.text(value, what)

    def objects(self, value: JSONValue, what: str) -> Iterator[JSONObject]:
        """A list of objects. Raises RefusedRequest."""
        if not isinstance(value, list):
            raise self.malformed(what, "a list")
        for item in value:
            yield self.object(item, f"{what}[]")


def joined(parts: Sequence[Part], kind: type[Text | Refusal]) -> str:
    """The texts of one kind, one after the other."""
    return "".join(p.text for p in parts if isinstance(p, kind))


def input_of(arguments: str) -> JSONObject:
    """A call's arguments as an object; those that are none are wrapped, and so survive."""
    if not arguments.strip():
        return {}
    try:
        value = parse(arguments)
    except ValueError:
        return {INVALID_JSON: arguments}
    return value if isinstance(value, dict) else {INVALID_JSON: arguments}


def arguments_of(value: JSONObject) -> str:
    """The text behind `input_of`; of equal value where it was an object."""
    raw = value.get(INVALID_JSON)
    if isinstance(raw, str) and len(value) == 1:
        return raw
    return json.dumps(value, ensure_ascii=False)


def moment(value: JSONValue) -> int:
    """Seconds since 1970, as far as they are some."""
    return int(value) if isinstance(value, (int, float)) and abs(value) < 1e15 else 0


def data_url(media: str, data: str) -> str:
    """A data URL of base64 text."""
    return f"data:{media};base64,{data}"


def of_data_url(url: str) -> tuple[str, str] | None:
    """Media type and base64 text of a data URL, if it is one."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return head.removeprefix("data:").removesuffix(";base64"), data
