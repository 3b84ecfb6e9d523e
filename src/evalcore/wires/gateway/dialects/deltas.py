"""How an answer grows: what any dialect's stream is read to, and any dialect's stream is written from.

A reader (`…Stream`) takes a provider's events: it gathers the whole response as it would have come without streaming,
and says what each event added. A writer (`…Writer`) says the same in an agent's dialect. Parts are numbered from 0 in
the order in which they begin; where a part's words come in pieces, `Closed` holds it whole.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from attrs import frozen

from evalcore.values.json import JSONObject
from evalcore.values.usage import Usage
from evalcore.wires.gateway.dialects.neutral import Answer, Part


@frozen
class Began:
    """The answer has begun; what it will have used is mostly not known yet."""

    id: str
    model: str
    created: int = 0
    usage: Usage = Usage()


@frozen
class Opened:
    """A part begins, as empty as it comes: a call has its id and name."""

    number: int
    part: Part


@frozen
class Grew:
    """More of an open part's words: text, thought, refusal, or a call's arguments."""

    number: int
    text: str


@frozen
class Closed:
    """A part is whole."""

    number: int
    part: Part


@frozen
class Finished:
    """The answer is whole."""

    answer: Answer


Delta: TypeAlias = Began | Opened | Grew | Closed | Finished


class Reader(Protocol):
    """Takes the events of a provider's stream. Raises ValueError for events that are none of the dialect."""

    ended: bool  # whether the answer came to its end: a stream that stops before was cut

    def add(self, event: JSONObject) -> list[Delta]: ...
    def whole(self) -> JSONObject: ...


class Writer(Protocol):
    """Writes the events of an agent's stream."""

    def write(self, delta: Delta) -> list[JSONObject]: ...
