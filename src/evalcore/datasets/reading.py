"""Reading somebody else's JSON: what is wrong is told with its file and place, and no size is taken on trust."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Final

from evalcore.errors import ConfigError
from evalcore.values.json import JSONObject, JSONValue, parse

MAX_BYTES: Final = 1 << 30


class Place:
    """An object of a file, and where it stands."""

    def __init__(self, value: JSONValue, where: str) -> None:
        if not isinstance(value, dict):
            raise ConfigError(f"{where}: expected an object, got {type(value).__name__}")
        self.value: JSONObject = value
        self.where = where

    def text(self, name: str, default: str | None = None) -> str:
        """A text. Raises ConfigError where there is none and no default."""
        value = self.value.get(name, default)
        if not isinstance(value, str):
            raise ConfigError(f"{self.where}.{name}: expected a text, got {type(value).__name__}")
        return value

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer, 0 or more."""
        value = self.value.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, int) or isinstance(value, bool):
            raise ConfigError(f"{self.where}.{name}: expected an integer, got {type(value).__name__}")
        if value < 0:
            raise ConfigError(f"{self.where}.{name}: expected 0 or more, got {value}")
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """A finite number, 0 or more."""
        value = self.value.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise ConfigError(f"{self.where}.{name}: expected a number, got {type(value).__name__}")
        if not 0 <= value < inf:
            raise ConfigError(f"{self.where}.{name}: expected 0 or more, got {value}")
        return float(value)

    def objects(self, name: str) -> list[Place]:
        """A list of objects; empty where there is none."""
        value = self.value.get(name) or []
        if not isinstance(value, list):
            raise ConfigError(f"{self.where}.{name}: expected a list, got {type(value).__name__}")
        return [Place(item, f"{self.where}.{name}[{i}]") for i, item in enumerate(value)]

    def object(self, name: str) -> Place:
        """An object; empty where there is none."""
        return Place(self.value.get(name) or {}, f"{self.where}.{name}")


def read_json(data: bytes, where: str) -> JSONValue:
    """The value of a JSON text. Raises ConfigError."""
    try:
        return parse(data)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: no JSON: {error}") from None


def read_file(path: Path) -> bytes:
    """A file's bytes. Raises ConfigError."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigError(f"{path} is larger than {MAX_BYTES >> 20} MiB")
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
