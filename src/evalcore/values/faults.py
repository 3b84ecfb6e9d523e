"""How faults are worded: paths into a file, what a value is in a reader's words, and what was probably meant."""

from __future__ import annotations

import datetime as dt
import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from evalcore.errors import ConfigError, Fault

ROOT: Final = "$"
_BARE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHOWN: Final = 60  # characters of a wrong value that a message repeats


class Wrong(ValueError):
    """A value that does not fit, before anyone knows where it stands: becomes a Fault."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Faults:
    """Faults as they are found, each once; `raise_if_any` reports them together."""

    def __init__(self) -> None:
        self._found: dict[Fault, None] = {}

    def __iter__(self) -> Iterator[Fault]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def add(self, where: str, message: str, hint: str | None = None) -> None:
        """One more fault, unless it is known."""
        self._found.setdefault(Fault(where, message, hint))

    def extend(self, faults: Iterable[Fault]) -> None:
        """Those of somebody else, as they are."""
        for fault in faults:
            self._found.setdefault(fault)

    def raise_if_any(self, source: str) -> None:
        """ConfigError with all of them; `source` is the file, or what else was read."""
        if self._found:
            raise faulty(source, self._found)


def faulty(source: str, faults: Iterable[Fault]) -> ConfigError:
    """The one ConfigError for everything wrong with `source`."""
    found = tuple(faults)
    return ConfigError(f"{source}: {len(found)} fault{'' if len(found) == 1 else 's'}", faults=found)


def key_path(where: str, key: str) -> str:
    """The path of a key, quoted unless it is a plain identifier."""
    return f"{where}.{key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)}"


def item_path(where: str, index: int) -> str:
    """The path of an item."""
    return f"{where}[{index}]"


def nearest(name: str, known: Iterable[str], limit: int = 2) -> tuple[str, ...]:
    """The known names that `name` was probably meant to be, best first; a poor second is left out."""
    by_lower = {k.lower(): k for k in known}
    close = difflib.get_close_matches(name.lower(), list(by_lower), n=limit, cutoff=0.6)
    likeness = [difflib.SequenceMatcher(None, name.lower(), c).ratio() for c in close]
    return tuple(by_lower[c] for c, ratio in zip(close, likeness, strict=True) if ratio > likeness[0] - 0.15)


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A hint with the nearest names, or None where nothing is near."""
    close = nearest(name, known)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else None


def suggestion(name: str, known: Iterable[str], plural: str) -> str:
    """The nearest names, or where none is near, all of them."""
    names = sorted(known)
    return did_you_mean(name, names) or (f"{plural}: {', '.join(names)}" if names else f"there are no {plural}")


def one_of(choices: Iterable[object]) -> str:
    """`'a', 'b' or 'c'`, as a reader of a file would write the values."""
    shown = [literal(c) for c in choices]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def literal(value: object) -> str:
    """A value as messages show it: true and false as in a file, anything long cut short."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def described(value: object) -> str:
    """What a value is in a reader's words, and the value itself where that helps."""
    if value is None:
        return "null"
    if isinstance(value, (bool, int, float)):
        return literal(value)
    if isinstance(value, str):
        return f"the text {literal(value)}"
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, (list, tuple)):
        return "an array"
    if isinstance(value, (dt.date, dt.time)):
        return "a date or time"
    return f"a {type(value).__name__}"
