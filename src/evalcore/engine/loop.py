"""The event loop of a verb that runs agents or graders: it ends when its work has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from evalcore.process.shield import shield

T = TypeVar("T")

LAST_S: Final = 2.0  # what tasks that were left behind get to clean up


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, which waits for ever for an agent in this process that ignores being cancelled.

    What runs beside us as the same user cannot read our keys out of this process any more.
    """
    shield()
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=LAST_S))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
