"""Makes the page of a large run when the run ends, so that the first view of it has it at once."""

from __future__ import annotations

import atexit
import logging
from pathlib import Path
from typing import Final

MANY: Final = 2_000  # attempts: the page of fewer is made in a second
_log = logging.getLogger("evalcore")


def at_the_end(run: Path) -> None:
    """Make it when the program ends: its last words are said first, and Ctrl-C then only leaves the page for later."""
    if _attempts(run) >= MANY:
        atexit.register(keep_page, run)


def keep_page(run: Path) -> None:
    """Make the page and keep it. What goes wrong is told to whoever opens the run."""
    try:
        _keep_page(run)
    except KeyboardInterrupt:
        pass
    except Exception as error:  # noqa: BLE001 - it only saves time
        _log.debug("the page of %s could not be made ahead: %s: %s", run, type(error).__name__, error)


def _keep_page(run: Path) -> None:
    from evalcore.engine.services import LocalServices
    from evalcore.plugins import load
    from evalcore_report.renderer import metrics_of
    from evalcore_report.view.kept import kept_pages
    from evalcore_report.view.pages import Pages

    run = run.resolve()
    metrics = metrics_of(LocalServices(load(), run))
    kept = kept_pages(metrics)
    if kept is not None:
        Pages.nowhere(run.parent, metrics, kept).library.make_now(run.name)


def _attempts(run: Path) -> int:
    try:
        with (run / "attempts.jsonl").open("rb") as ledger:
            return sum(1 for _ in ledger)
    except OSError:
        return 0
