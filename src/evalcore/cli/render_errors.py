"""Every error in words: one line of what is wrong, one for each fault or reason, one of what to do. No traceback.

`EVALCORE_DEBUG=1` adds the traceback. With `--json` the same goes to standard output as `{"error": {…}}`.

| what was raised                    | exit |
|------------------------------------|------|
| an EvalcoreError                   | its own (architecture §9) |
| click's complaint about usage      | 2 |
| Ctrl-C, or a question unanswered   | 130 |
| an OSError                         | 4 |
| anything else: a bug of ours       | 4, the details in a file |
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import click
from attrs import Factory, frozen

from evalcore.cli.output import tell
from evalcore.errors import ConfigError, EvalcoreError, Fault, RefusedError

INTERRUPTED: Final = 130
BUG: Final = 4


@frozen
class Rendered:
    """An error as it is told: `kind` is the class of the error, `lines` what stands below its message."""

    kind: str
    message: str
    exit_code: int
    faults: tuple[Fault, ...] = ()
    reasons: tuple[str, ...] = ()
    hint: str | None = None
    label: str = "error"
    details: Sequence[str] = Factory(tuple)

    def as_json(self) -> dict[str, object]:
        """The value of `error` in what `--json` prints."""
        whole: dict[str, object] = {
            "kind": self.kind,
            "message": self.message,
            "faults": [{"where": f.where, "message": f.message, "hint": f.hint} for f in self.faults],
            "hint": self.hint,
            "exit_code": self.exit_code,
        }
        return whole | ({"reasons": list(self.reasons)} if self.reasons else {})


def report_error(error: BaseException, *, as_json: bool) -> int:
    """Tell an error, and return the exit code that it means."""
    rendered = rendered_error(error)
    tell_error(rendered)
    if _debugging():
        tell("".join(traceback.format_exception(error)))
    if as_json:
        with suppress(OSError):  # standard output may be what failed
            click.echo(json.dumps({"error": rendered.as_json()}, indent=2))
    return rendered.exit_code


def tell_error(rendered: Rendered) -> None:
    """The error on standard error, a line for each part."""
    tell(f"{rendered.label}: {_line(rendered.message)}")
    for text in (*map(str, rendered.faults), *rendered.reasons, *rendered.details):
        tell(f"  {_line(text)}")
    if rendered.hint:
        tell(f"hint: {_line(rendered.hint)}")


def rendered_error(error: BaseException) -> Rendered:
    """The error as it is told, whatever it is."""
    error = _cause(error)
    kind = type(error).__name__
    if isinstance(error, EvalcoreError):
        faults = error.faults if isinstance(error, ConfigError) else ()
        reasons = error.reasons if isinstance(error, RefusedError) else ()
        return Rendered(kind, error.message, error.exit_code, faults, reasons, error.hint)
    if isinstance(error, click.NoSuchOption):
        close = f"; did you mean {' or '.join(error.possibilities)}?" if error.possibilities else ""
        return Rendered("UsageError", f"no such option {error.option_name}{close}", 2, hint=_usage_hint(error))
    if isinstance(error, click.UsageError):
        return Rendered("UsageError", _sentence(error.format_message()), 2, hint=_usage_hint(error))
    if isinstance(error, click.ClickException):
        return Rendered(kind, _sentence(error.format_message()), error.exit_code)
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return Rendered("Interrupted", "nothing more was done", INTERRUPTED, label="interrupted")
    if isinstance(error, OSError) and error.errno is not None:
        place = f": {error.filename}" if error.filename else ""
        return Rendered(kind, f"{error.strerror}{place}", BUG)
    return _bug(error)


def _cause(error: BaseException) -> BaseException:
    """Of several errors raised side by side, a deliberate one before any other, the first before the rest."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    inner = [_cause(e) for e in error.exceptions]
    return next((e for e in inner if isinstance(e, EvalcoreError)), inner[0])


def _bug(error: BaseException) -> Rendered:
    file = _write_details(error)
    hint = f"the details are in {file}" if file else "EVALCORE_DEBUG=1 shows the details"
    return Rendered(
        type(error).__name__,
        f"{type(error).__name__}: {str(error)[:500]}, please report",
        BUG,
        hint=hint,
        label="bug",
    )


def _write_details(error: BaseException) -> Path | None:
    """The traceback, without the values of any variable, in a file that only the user can read."""
    from evalcore import __version__
    from evalcore.datasets.cache import cache_root

    try:
        folder = cache_root() / "logs"
        folder.mkdir(exist_ok=True)
        file = folder / f"bug-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.getpid()}.txt"
        head = [f"evalcore {__version__}, Python {sys.version.split()[0]} on {sys.platform}", " ".join(sys.argv)]
        text = "\n".join([*head, "", *traceback.format_exception(error)])
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as out:
            out.write(text)
    except (OSError, EvalcoreError):
        return None
    return file


def _usage_hint(error: click.UsageError) -> str | None:
    return f"`{error.ctx.command_path} --help` shows what it takes" if error.ctx else None


def _sentence(text: str) -> str:
    """click's sentence as one of ours: lower case, no full stop."""
    text = _line(text).rstrip(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def _line(text: str) -> str:
    return " ".join(text.split("\n"))


def _debugging() -> bool:
    return os.environ.get("EVALCORE_DEBUG", "") not in ("", "0")
