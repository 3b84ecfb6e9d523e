"""The axis `instructions`: a skill or a prompt that the agent is given before the task.

It becomes a system message, after the benchmark's own policy where there is one: the policy says what the environment
allows, and what the user adds does not come before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from attrs import evolve

from evalcore.contracts import Services
from evalcore.errors import ConfigError
from evalcore.values.json import JSONValue
from evalcore.values.task import Assignment, Message

MAX_BYTES: Final = 1 << 20


class Instructions:
    """Reads each file once."""

    def __init__(self, services: Services, info: Any = None) -> None:
        self._base = services.base
        self._read: dict[Path, str] = {}

    def check(self, value: JSONValue) -> None:
        """Before a run: whether the file can be read. Raises ConfigError."""
        self._text(str(value))

    async def apply(self, assignment: Assignment, value: JSONValue) -> Assignment:
        """The assignment with the text in its system message. Raises ConfigError for what is no text."""
        text = self._text(str(value))
        return evolve(assignment, messages=_with(text, assignment.messages))

    def _text(self, value: str) -> str:
        path = self._base / value
        if path not in self._read:
            self._read[path] = _file(path, value)
        return self._read[path]


def _file(path: Path, shown: str) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        text = data.decode("utf-8-sig").strip()
    except OSError as error:
        raise ConfigError(f"cannot read {shown}: {error.strerror}", hint="instructions are a text file") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{shown}: not UTF-8 text: byte {error.start + 1}") from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{shown} is larger than {MAX_BYTES >> 20} MiB")
    if not text:
        raise ConfigError(f"{shown} is empty", hint="leave the axis out where the agent is told nothing")
    return text


def _with(text: str, messages: Sequence[Message]) -> tuple[Message, ...]:
    first = messages[0] if messages else None
    if first is None or first.role != "system":
        return (Message("system", text), *messages)
    if isinstance(first.content, str):
        return (Message("system", f"{first.content}\n\n{text}"), *messages[1:])
    return (Message("system", (*first.content, {"type": "text", "text": text})), *messages[1:])
