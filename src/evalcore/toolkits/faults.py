"""How a request to upstream code can fail.

ToolkitError
├── WorkerLost    the worker hung, died or would not start: whatever was asked is unanswered
└── WorkerFault   the worker lives, and its handler raised: upstream's own error, told as it was
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from evalcore.errors import ToolkitError

LossReason: TypeAlias = Literal["hung", "died", "start", "closed"]


class WorkerLost(ToolkitError):
    """The worker is gone; `reason` is hung (ended by us after the time-out), died, start (never ready), or closed."""

    def __init__(self, message: str, *, reason: LossReason, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


class WorkerFault(ToolkitError):
    """A handler raised: `type` is the exception's class name, `text` what it said, `traceback` where, in the worker."""

    def __init__(self, toolkit: str, method: str, *, type: str, text: str, traceback: str = "") -> None:  # noqa: A002
        first_line = text.strip().partition("\n")[0][:500]
        super().__init__(f"toolkit {toolkit}: {method} raised {type}{': ' if first_line else ''}{first_line}")
        self.toolkit = toolkit
        self.method = method
        self.type = type
        self.text = text
        self.traceback = traceback
