"""Logs on standard error: readable on a terminal, else one JSON object a line. `EVALCORE_LOG` is the level.

evalcore logs with the standard library; structlog gives the lines their form, and is imported for the first one.
Neither form shows the values of variables in a traceback: keys are among them.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Final

from evalcore.errors import ConfigError
from evalcore.values.faults import nearest

if TYPE_CHECKING:
    from structlog.typing import Processor

LEVEL: Final = "EVALCORE_LOG"
LEVELS: Final = ("debug", "info", "warning", "error")


def set_up(environ: Mapping[str, str]) -> None:
    """Send what evalcore logs to standard error. Raises ConfigError for a level that is none."""
    level = environ.get(LEVEL, "").strip().lower() or "warning"
    if level not in LEVELS:
        close = nearest(level, LEVELS)
        raise ConfigError(f"{LEVEL} is {level!r}", hint=f"one of {', '.join(close or LEVELS)}")
    logger = logging.getLogger("evalcore")
    logger.handlers = [_Lines()]
    logger.propagate = False
    logger.setLevel(level.upper())


class _Lines(logging.Handler):
    """Writes to whatever standard error is at the time: a progress display puts itself in its place."""

    def __init__(self) -> None:
        super().__init__()
        self._for_terminal: bool | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """One record, one line (a traceback on a terminal has more)."""
        try:
            terminal = sys.stderr.isatty()
            if self.formatter is None or terminal != self._for_terminal:
                self._for_terminal, self.formatter = terminal, _formatter(terminal)
            sys.stderr.write(f"{self.format(record)}\n")
        except Exception:  # noqa: BLE001  a log line is never worth a run
            self.handleError(record)


def _formatter(terminal: bool) -> logging.Formatter:
    import structlog

    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper("iso", utc=True),
    ]
    last: list[Processor]
    if terminal:
        plain = structlog.dev.plain_traceback
        last = [
            structlog.processors.format_exc_info,
            _cleaned,
            structlog.dev.ConsoleRenderer(exception_formatter=plain, colors=True),
        ]
    else:
        plain_tracebacks = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        last = [structlog.processors.ExceptionRenderer(plain_tracebacks), structlog.processors.JSONRenderer()]
    remove = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    return structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=[remove, *last])


def _cleaned(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Nothing in a line steers the terminal."""
    from evalcore.cli.output import clean

    return {k: clean(v) if isinstance(v, str) else v for k, v in event.items()}
