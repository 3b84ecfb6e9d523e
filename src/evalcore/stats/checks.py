"""What arguments must be, refused in the same words everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence


def check_level(level: float) -> None:
    """Raises ValueError unless 0 < level < 1."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"a confidence level lies between 0 and 1, not {level!r}")


def check_share(value: float, what: str) -> None:
    """Raises ValueError unless 0 < value < 1."""
    if not 0.0 < value < 1.0:
        raise ValueError(f"{what} lies between 0 and 1, not {value!r}")


def check_rate(value: float, what: str) -> None:
    """Raises ValueError unless 0 <= value <= 1."""
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{what} lies in [0, 1]: {value!r} is no rate")


def check_positive(value: float, what: str) -> None:
    """Raises ValueError unless value is finite and above 0."""
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{what} is a number above 0, not {value!r}")


def check_not_negative(value: float, what: str) -> None:
    """Raises ValueError unless value is finite and at least 0."""
    if not (value >= 0 and math.isfinite(value)):
        raise ValueError(f"{what} is a number of at least 0, not {value!r}")


def check_count(value: int, what: str, least: int = 0) -> None:
    """Raises ValueError unless value is a whole number of at least `least`."""
    if value != int(value) or value < least:
        raise ValueError(f"{what} is a whole number of at least {least}, not {value!r}")


def finite(values: Sequence[float], what: str) -> list[float]:
    """The values as floats. Raises ValueError if there is none, or one is NaN or infinite."""
    if len(values) == 0:
        raise ValueError(f"no {what}: there is nothing to compute from")
    if not all(map(math.isfinite, values)):
        raise ValueError(f"{what}: a value that is not a finite number")
    return [float(x) for x in values]


def same_length(a: Sequence[object], b: Sequence[object], what: str) -> None:
    """Raises ValueError unless both are as long."""
    if len(a) != len(b):
        raise ValueError(f"{what}: {len(a)} of one and {len(b)} of the other")
