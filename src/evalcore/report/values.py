"""One number as a report says it. A number that is not known is None with a reason, never 0 or NaN."""

from __future__ import annotations

import math

from attrs import frozen


@frozen
class MetricValue:
    """One number with what it takes to read it. `reason` says why the value or its interval is missing or limited.

    `method` states the estimand (what is averaged over what) and how the interval was made; `n` counts the trials
    behind it; `validated` says where it was shown to measure what it claims, empty if nowhere; `bounds` are the value
    if every ungraded trial failed, and if every one passed.
    """

    value: float | None
    method: str
    n: int
    low: float | None = None
    high: float | None = None
    level: float | None = None
    unit: str = ""
    validated: str = ""
    reason: str | None = None
    bounds: tuple[float, float] | None = None

    def __attrs_post_init__(self) -> None:
        numbers = (self.value, self.low, self.high, self.level, *(self.bounds or ()))
        if any(x is not None and not math.isfinite(x) for x in numbers):
            raise ValueError(f"a metric is a finite number or None, not one of {numbers}")
        if (self.low is None) != (self.high is None) or (self.low is not None and self.value is None):
            raise ValueError("an interval has two ends, and a value between them")
        if self.low is None and self.reason is None:
            raise ValueError("what is missing has a reason")
