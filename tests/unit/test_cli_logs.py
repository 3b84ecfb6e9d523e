"""Logs: their form with and without a terminal, their level, and what never stands in them."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator

import pytest

from evalcore.cli import logs
from evalcore.errors import ConfigError

log = logging.getLogger("evalcore")
SECRET = "sk-secret-value"


class Terminal(io.StringIO):
    """Standard error that says what it is."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        """As told."""
        return self._terminal


@pytest.fixture(autouse=True)
def logger() -> Iterator[None]:
    """The logger as it was."""
    before = (log.handlers, log.propagate, log.level)
    yield
    log.handlers, log.propagate, log.level = before


def logged(monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> str:
    """What a warning and an error with a traceback look like."""
    stream = Terminal(terminal=terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    logs.set_up({})
    log.warning("tool %s failed", "x\x1b[31m")
    log.info("not shown")
    try:
        fail(SECRET)
    except LookupError:
        log.exception("it broke")
    return stream.getvalue()


def fail(key: str) -> None:
    """Fail with a key in the frame."""
    raise LookupError(f"no\x1b[31m {len(key)}")


def test_without_a_terminal_each_line_is_a_json_object(monkeypatch: pytest.MonkeyPatch) -> None:
    text = logged(monkeypatch, terminal=False)
    first, second = (json.loads(line) for line in text.splitlines())
    assert (first["event"], first["level"]) == ("tool x\x1b[31m failed", "warning")
    assert first["timestamp"].endswith("Z")
    assert second["exception"][0]["exc_type"] == "LookupError"
    assert "sk-secret" not in text and '"locals"' not in text


def test_on_a_terminal_a_line_is_readable_and_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    text = logged(monkeypatch, terminal=True)
    assert "tool x\N{REPLACEMENT CHARACTER}[31m failed" in text
    assert "LookupError: no\N{REPLACEMENT CHARACTER}[31m 15" in text and "sk-secret" not in text
    assert "not shown" not in text


@pytest.mark.parametrize("level, shown", [("debug", True), ("INFO", True), ("", False), ("error", False)])
def test_the_level_is_the_environments(level: str, shown: bool) -> None:
    logs.set_up({"EVALCORE_LOG": level})
    assert log.isEnabledFor(logging.INFO) == shown


def test_a_level_that_is_none() -> None:
    with pytest.raises(ConfigError) as wrong:
        logs.set_up({"EVALCORE_LOG": "warn"})
    assert wrong.value.hint == "one of warning"
