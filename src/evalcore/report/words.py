"""Numbers and foreign text as people read them; what every renderer for people shares."""

from __future__ import annotations

import math
from collections.abc import Mapping

UNKNOWN = "–"
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def safe(text: str) -> str:
    """`text` on one line, without anything that could steer a terminal: controls, escapes, bidirectional marks."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else _REPLACEMENT for c in text)


def percent(rate: float) -> str:
    """`87.3 %`; nothing but 0 and 1 themselves reads as 0 or 100 %."""
    if 0.0 < rate < 0.0005:
        return "<0.1 %"
    if 0.9995 <= rate < 1.0:
        return ">99.9 %"
    return f"{100.0 * rate:.1f} %"


def percent_range(low: float, high: float) -> str:
    """`84.1–90.0 %`."""
    return f"{100.0 * low:.1f}–{100.0 * high:.1f} %"


def seconds(value: float) -> str:
    """`0.42 s`, `3.2 s`, `2 min 03 s`."""
    if value < 0.0095:
        return f"{1000.0 * value:.1f} ms"
    if value < 0.995:
        return f"{value:.2f} s"
    if value < 59.95:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest:02d} s"


def dollars(value: float) -> str:
    """`$0.0031`, `$0.42`, `$1,234`: never rounded to nothing."""
    if value == 0.0:
        return "$0"
    if value >= 100.0:
        return f"${value:,.0f}"
    if value >= 0.1:
        return f"${value:.2f}"
    places = 1 - math.floor(math.log10(value))  # two significant digits
    return f"${value:.{places}f}"


def plural(n: int, noun: str) -> str:
    """`1 task`, `2,000 tasks`."""
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def counted(counts: Mapping[str, int]) -> list[str]:
    """`["1,998 completed", "2 limit"]`, without zeros."""
    return [f"{n:,} {name}" for name, n in counts.items() if n]
