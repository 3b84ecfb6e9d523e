"""HTML made of elements, so that no text can become markup: whatever is not `Markup` already is escaped.

Text of agents, models and datasets may hold anything: controls and marks that change the direction of writing are shown
as what they are, and have no effect.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

_VOID: Final = frozenset({"meta", "input", "br", "hr", "link"})
_PICTURES: Final = 0x2400  # the Unicode block that pictures each C0 control
_PLAIN: Final = frozenset("\n\t\N{NO-BREAK SPACE}")
_READ: Final = frozenset({"title", "aria_label"})  # attributes that people read: cleaned as text is


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child: TypeAlias = "str | Markup | Iterable[Child] | None"
Value: TypeAlias = "str | int | float | bool | None"

EMPTY: Final = Markup("")


def visible(text: str) -> str:
    """`text` with every character that a reader could not see, or that could steer what is shown, made visible."""
    if text.isprintable():
        return text
    return "".join(c if c in _PLAIN or c.isprintable() else _shown(c) for c in text.replace("\r\n", "\n"))


def _shown(c: str) -> str:
    code = ord(c)
    if code < 0x20:
        return chr(_PICTURES + code)
    if code == 0x7F:
        return "\u2421"
    if c.isspace():
        return " "
    return f"⟦U+{code:04X}⟧"


def escaped(text: str) -> Markup:
    """Text as HTML, in an element or between double quotes."""
    return Markup(html.escape(visible(text), quote=True))


class Html:
    """Makes elements. `clean` is applied to every text first: it takes out what may not be shown."""

    __slots__ = ("clean",)

    def __init__(self, clean: Callable[[str], str] | None = None) -> None:
        self.clean = clean

    def text(self, text: str) -> Markup:
        """A text, cleaned and escaped."""
        return escaped(self.clean(text) if self.clean else text)

    def prose(self, text: str) -> Markup:
        """A sentence in which commands stand between backticks."""
        parts = text.split("`")
        if len(parts) % 2 == 0:  # a backtick that nothing closes is a backtick
            return self.text(text)
        return self.join(self("code", part) if i % 2 else part for i, part in enumerate(parts))

    def join(self, children: Iterable[Child]) -> Markup:
        """Several children as one."""
        return Markup("".join(self._child(child) for child in children))

    def __call__(self, name: str, /, *children: Child, **attributes: Value) -> Markup:
        """An element. `class_` is `class`, `data_x` is `data-x`; None and False are left out, True stands alone."""
        start = f"<{name}{''.join(self._attribute(k, v) for k, v in attributes.items())}>"
        if name in _VOID:
            return Markup(start)
        return Markup(f"{start}{''.join(self._child(child) for child in children)}</{name}>")

    def _child(self, child: Child) -> str:
        if child is None:
            return ""
        if isinstance(child, Markup):
            return child
        if isinstance(child, str):
            return self.text(child)
        return "".join(self._child(c) for c in child)

    def _attribute(self, name: str, value: Value) -> str:
        if value is None or value is False:
            return ""
        plain = name.rstrip("_").replace("_", "-")
        if value is True:
            return f" {plain}"
        if isinstance(value, str):
            return f' {plain}="{self.text(value) if name in _READ else escaped(value)}"'
        return f' {plain}="{value}"'
