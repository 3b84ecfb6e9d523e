"""When a failed try of a model call is followed by another, and after how long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from evalcore.errors import TransientError

TRIES: Final = 5
RETRY_S: Final = 300.0  # no further try of a call begins after this
BACKOFF_S: Final = 0.5  # before the second try; doubled for each one after it
MAX_WAIT_S: Final = 60.0  # what a Retry-After may ask for


def wait_s(failure: TransientError, number: int, random: Callable[[], float]) -> float:
    """Seconds after try `number`: what the server asked for, or a growing pause, spread out over its second half."""
    if failure.wait_s is not None:
        return min(failure.wait_s, MAX_WAIT_S)
    return min(BACKOFF_S * 2.0 ** (number - 1), MAX_WAIT_S) * (0.5 + 0.5 * random())


def may_try_again(number: int, waiting_s: float, passed_s: float) -> bool:
    """Whether try `number` is followed by another, `passed_s` after the first began."""
    return number < TRIES and passed_s + waiting_s <= RETRY_S


def exhausted(failure: TransientError, number: int) -> str:
    """What to say of a call that was given up."""
    return f"{failure.message} (after {number} tries)" if number > 1 else f"{failure.message} (after 1 try)"
