"""How a run is carried out: flags over environment over file. Nothing here changes a result."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from attrs import fields_dict, frozen

from evalcore.values.descriptors import AxisType
from evalcore.values.faults import Faults, Wrong, literal
from evalcore.values.json import JSONValue
from evalcore.values.study import Study

PREFIX: Final = "EVALCORE_"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_BOOLEANS: Final = {"true": True, "false": False}


@frozen
class SettingFlags:
    """The flags as given; None is a flag that was not."""

    out: str | None = None
    name: str | None = None
    concurrency: int | None = None
    yes: bool | None = None
    json: bool | None = None
    quiet: bool | None = None
    budget_usd: float | None = None
    outage_s: float | None = None


@frozen
class RunSettings:
    """What holds for this run."""

    out: Path = Path("runs")
    name: str | None = None  # None: `default_run_name`
    concurrency: int | None = None  # None: as many as the runner thinks right
    yes: bool = False
    json: bool = False
    quiet: bool = False
    budget_usd: float | None = None
    outage_s: float | None = None  # how long a provider that is down is waited for; None: as is usual


_TYPES: Final[Mapping[str, AxisType]] = {
    "out": "text",
    "name": "text",
    "concurrency": "integer",
    "yes": "boolean",
    "json": "boolean",
    "quiet": "boolean",
    "budget_usd": "number",
    "outage_s": "number",
}


def run_settings(flags: SettingFlags, environ: Mapping[str, str], study: Study | None = None) -> RunSettings:
    """Each setting from its flag, else `EVALCORE_<NAME>` (empty: not set), else the study, else as declared above."""
    faults = Faults()
    found: dict[str, Any] = {"budget_usd": study.budget_usd if study else None}
    for name in fields_dict(SettingFlags):
        variable, flag = PREFIX + name.upper(), getattr(flags, name)
        try:
            if flag is not None:
                found[name] = _checked(name, flag)
            elif text := environ.get(variable):
                found[name] = _checked(name, _from_environment(_TYPES[name], text))
        except Wrong as wrong:
            where = variable if flag is None else f"--{name.replace('_', '-')}"
            faults.add(where, wrong.message, wrong.hint)
    faults.raise_if_any("run settings")
    return RunSettings(**found)


def _from_environment(kind: AxisType, text: str) -> JSONValue:
    """As a flag's text, but that switches are set with 1 and 0 there too."""
    return text == "1" if kind == "boolean" and text in ("0", "1") else parse_text(kind, text)


def _checked(name: str, value: JSONValue) -> object:
    if name == "out":
        return Path(str(value)).expanduser()
    if name == "name":
        check_name(str(value))
    if name == "concurrency" and isinstance(value, int) and value < 1:
        raise Wrong(f"must be >= 1: {value}")
    if name in ("budget_usd", "outage_s"):
        check_positive(value)
    return value


def check_positive(value: JSONValue) -> None:
    """Wrong unless it is a finite number above zero."""
    if not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        raise Wrong(f"must be > 0: {value}")


def check_name(name: str) -> None:
    """A study's or a run's name is a folder's name too. Wrong if it could not be one everywhere."""
    if not _NAME.fullmatch(name) or ".." in name or name.endswith("."):
        raise Wrong(
            f"{literal(name)} cannot be a folder's name everywhere",
            "letters, digits and . _ + - after a letter or digit, no two dots in a row, at most 100 characters",
        )


def default_run_name(study: Study, now: str) -> str:
    """Time, study, short digest: `20261130-101500-which-harness-1a2b3c4d`. `now` is RFC 3339; the name is in UTC."""
    moment = datetime.fromisoformat(now).astimezone(UTC)
    return f"{moment:%Y%m%d-%H%M%S}-{study.name[:70].rstrip('.')}-{study.digest[:8]}"


def parse_text(kind: AxisType, text: str) -> JSONValue:
    """A value of that type from a command line or the environment, as strictly as in a file."""
    if kind == "boolean":
        if text not in _BOOLEANS:
            raise Wrong(f"expected true or false, got {literal(text)}")
        return _BOOLEANS[text]
    if kind == "integer":
        if not _INTEGER.fullmatch(text):
            raise Wrong(f"expected an integer, got {literal(text)}")
        return int(text)
    if kind == "number":
        if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
            raise Wrong(f"expected a number, got {literal(text)}")
        return float(text)
    return text
