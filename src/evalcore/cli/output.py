"""The two streams. Results go to standard output, everything else to standard error; both clean what they are given."""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from evalcore.report.words import safe

if TYPE_CHECKING:
    from rich.console import Console

WIDEST: Final = 120  # columns that running text keeps to
LEAST: Final = 12  # columns that the last one of a table needs


def clean(text: str) -> str:
    """`text` with its line breaks, and without anything else that could steer a terminal."""
    return "\n".join(safe(line.expandtabs(4)) for line in text.split("\n"))


def say(text: str = "") -> None:
    """One or more lines of the result."""
    click.echo(clean(text))


def tell(text: str = "") -> None:
    """One or more lines beside the result."""
    click.echo(clean(text), err=True)


def say_json(value: object) -> None:
    """The result as one JSON document, in ASCII: a terminal has nothing to obey in it."""
    click.echo(json.dumps(strict(value), indent=2))


def strict(value: object) -> object:
    """`value` with NaN and the infinities, which JSON does not have, as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(k): strict(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [strict(v) for v in value]
    return value


def console() -> Console:
    """Standard output as rich sees it. What is printed to it must be clean already."""
    from rich.console import Console

    class Page(Console):
        def on_broken_pipe(self) -> None:  # rich would end with 1, which means that the answer is no
            raise BrokenPipeError

    return Page(highlight=False, markup=False, emoji=False)


def width() -> int:
    """Columns of text: the terminal's, or 100 where there is none."""
    return min(WIDEST, shutil.get_terminal_size((100, 24)).columns)


def table(rows: Sequence[Sequence[str]], head: Sequence[str] = (), indent: int = 0) -> str:
    """Aligned columns; the last one is wrapped to the width of the page. Where that is too narrow, rows are stacked."""
    shown = [[safe(cell) for cell in row] for row in ([head, *rows] if head else rows)]
    if not shown:
        return ""
    widths = [max(len(row[i]) for row in shown) for i in range(len(shown[0]) - 1)]
    margin = indent + sum(widths) + 2 * len(widths)
    if width() - margin < LEAST:
        return "\n".join(_stacked(shown, bool(head), indent))
    room = max(24, width() - margin)
    lines = []
    for row in shown:
        start = " " * indent + "".join(f"{cell:<{w}}  " for cell, w in zip(row, widths, strict=False))
        wrapped = textwrap.wrap(row[-1], room, break_long_words=False, break_on_hyphens=False) or [""]
        lines.append((start + wrapped[0]).rstrip())
        lines += [" " * margin + line for line in wrapped[1:]]
    return "\n".join(lines)


def _stacked(rows: Sequence[Sequence[str]], headed: bool, indent: int) -> Iterator[str]:
    """The first cell of a row, and a line for each of the others with the head of its column; all of them wrapped."""
    titles = rows[0] if headed else [""] * len(rows[0])
    for row in rows[1:] if headed else rows:
        for place, cell in enumerate(row):
            if not cell:
                continue
            title = f"{titles[place]}: " if titles[place] and place else ""
            start = " " * (indent + 2 * (place > 0))
            room = max(16, width() - len(start) - 2)
            first, *rest = textwrap.wrap(f"{title}{cell}", room, break_on_hyphens=False) or [""]
            yield f"{start}{first}"
            yield from (f"{start}  {line}" for line in rest)


def paragraph(text: str) -> str:
    """Running text, wrapped to the width of the page."""
    return textwrap.fill(" ".join(text.split()), width(), break_long_words=False, break_on_hyphens=False)


def on_terminal() -> bool:
    """Whether somebody is there to be asked, and to see the question."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
