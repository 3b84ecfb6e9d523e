"""How many calls a provider gets at a time: as many as come, until it says that this is too many.

Additive increase, multiplicative decrease, as in TCP (Chiu and Jain 1989): at an overload the bound falls to half of
what was running, and each call that is answered raises it by one over itself, so by about one for each round of calls.
Calls that were on their way when the bound fell say nothing new when they fail too. A server that asks to be left alone
for some seconds is, by every call.
"""

from __future__ import annotations

import math
from typing import Final

from evalcore.errors import TransientError

OVERLOADED: Final = frozenset({429, 503, 529})


class Pacing:
    """The bound on calls to one provider, and the moment before which none begins. Seconds of the caller's clock."""

    __slots__ = ("bound", "fallen", "not_before", "running", "why")

    def __init__(self) -> None:
        self.bound = math.inf
        self.running = 0
        self.not_before = -math.inf
        self.why = ""  # what the provider said when it was last too much
        self.fallen = 0  # how often the bound fell

    @property
    def full(self) -> bool:
        """Whether one more call would be too many."""
        return self.running + 1 > self.bound

    def begin(self) -> int:
        """One more call runs; what to hand back when it ends."""
        self.running += 1
        return self.fallen

    def answered(self) -> None:
        """A call ended well."""
        self.running -= 1
        if self.bound < math.inf:
            self.bound += 1 / self.bound

    def ended(self) -> None:
        """A call ended in a way that says nothing about the load."""
        self.running -= 1

    def failed(self, failure: TransientError, begun: int, now: float, wait_s: float) -> None:
        """A call failed; `begun` is what `begin` gave, `wait_s` what the server asks for, within bounds."""
        if (failure.status in OVERLOADED or failure.wait_s is not None) and begun == self.fallen:
            self.fallen += 1
            self.bound = max(1.0, min(self.bound, self.running) / 2)
            self.why = failure.message
        if failure.wait_s is not None:
            self.not_before = max(self.not_before, now + wait_s)
            self.why = failure.message
        self.running -= 1
