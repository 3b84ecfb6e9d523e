"""What single trials of pass or fail can find: the power of McNemar's test.

`discordant` is the share of tasks that exactly one arm solves, `difference` what one arm solves more: p10 - p01.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from evalcore.stats.checks import check_count, check_positive, check_rate, check_share
from evalcore.stats.distributions import z_quantile

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

MOST_TASKS: Final = 20_000  # a search beyond is not worth its time: use the formula
SLACK: Final = 1e-12  # a p that equals alpha rejects, whatever rounding says


def mcnemar_tasks_needed(discordant: float, difference: float, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """Tasks by the large-sample formula (z_a sqrt(psi) + z_b sqrt(psi - d^2))^2 / d^2 (Connor 1987); round it up.

    A little short for the exact test: `mcnemar_tasks_needed_exact` searches. Raises ValueError unless 0 < d <= psi <=
    1.
    """
    _check(discordant, difference)
    z_a, z_b = _quantiles(alpha, power)
    root = z_a * math.sqrt(discordant) + z_b * math.sqrt(discordant - difference * difference)
    return (root / difference) ** 2


def mcnemar_detectable(n: int, discordant: float, *, alpha: float = 0.05, power: float = 0.8) -> float | None:
    """The difference that n tasks find by the same formula, solved for d; None where none up to psi is detectable.

    d = sqrt(psi) (z_a sqrt(n) + z_b sqrt(n + z_b^2 - z_a^2)) / (n + z_b^2). Raises ValueError for no task, or unless
    0 < psi <= 1.
    """
    check_count(n, "the number of tasks", 1)
    _check(discordant, discordant)
    z_a, z_b = _quantiles(alpha, power)
    inner = n + z_b * z_b - z_a * z_a
    if inner < 0.0:
        return None
    found = math.sqrt(discordant) * (z_a * math.sqrt(n) + z_b * math.sqrt(inner)) / (n + z_b * z_b)
    return found if found <= discordant else None


def mcnemar_power_exact(n: int, only_a: float, only_b: float, *, alpha: float = 0.05) -> float:
    """The power of the exact McNemar test with n tasks, of which each arm alone solves the shares p10 and p01.

    The sum over the number of discordant tasks m ~ Bin(n, p10 + p01) of the chance that B ~ Bin(m, p10/(p10+p01)) is
    significant. Raises ValueError for no task, or shares that are negative or add up to more than 1.
    """
    check_count(n, "the number of tasks", 1)
    discordant = _discordant(only_a, only_b)
    check_share(alpha, "alpha")
    if discordant == 0.0:
        return 0.0
    return _power(n, discordant, _rejected(n, only_a / discordant, alpha))


def mcnemar_tasks_needed_exact(only_a: float, only_b: float, *, alpha: float = 0.05, power: float = 0.8) -> int | None:
    """The number of tasks from which on the exact McNemar test has `power`; None for searches beyond 20,000.

    Exact power goes up and down with n, because counts are whole: the answer is the first number after the last
    shortfall, searched to twice the formula's. Raises ValueError for equal or impossible shares.
    """
    discordant = _discordant(only_a, only_b)
    if only_a == only_b:
        raise ValueError("equal shares: there is no difference to find")
    formula = math.ceil(mcnemar_tasks_needed(discordant, abs(only_a - only_b), alpha=alpha, power=power))
    limit = 2 * formula + 60
    if limit > MOST_TASKS:
        return None
    rejected = _rejected(limit, only_a / discordant, alpha)
    n = limit
    while n > 0 and _power(n, discordant, rejected) >= power:
        n -= 1
    return n + 1 if n < limit else None


def _power(n: int, discordant: float, rejected: NDArray[float64]) -> float:
    """The mean of `rejected` over m ~ Bin(n, discordant)."""
    import numpy as np
    from scipy.special import gammaln, xlog1py, xlogy

    m = np.arange(n + 1.0)
    ways = gammaln(n + 1.0) - gammaln(m + 1.0) - gammaln(n - m + 1.0)
    chances = np.exp(ways + xlogy(m, discordant) + xlog1py(n - m, -discordant))
    return float(np.dot(chances, rejected[: n + 1]))


def _rejected(most: int, share: float, alpha: float) -> NDArray[float64]:
    """For each number of discordant tasks from 0 to `most`, the chance that the exact test is significant."""
    import numpy as np
    from scipy.special import bdtr

    m = np.arange(most + 1)
    critical, reach = np.full(most + 1, -1.0), -1
    for count in range(most + 1):
        # The largest minority that is significant grows by at most one with each discordant task.
        if 2 * (reach + 1) < count and 2.0 * float(bdtr(float(reach + 1), count, 0.5)) <= alpha * (1.0 + SLACK):
            reach += 1
        critical[count] = reach
    some = critical >= 0.0
    tails = np.zeros(most + 1)
    tails[some] = bdtr(critical[some], m[some], share) + bdtr(critical[some], m[some], 1.0 - share)
    return tails


def _discordant(only_a: float, only_b: float) -> float:
    for share in (only_a, only_b):
        check_rate(share, "a share of tasks")
    check_rate(only_a + only_b, "the share of discordant tasks")
    return only_a + only_b


def _check(discordant: float, difference: float) -> None:
    check_rate(discordant, "the share of discordant tasks")
    check_positive(difference, "a difference to find")
    if difference > discordant:
        raise ValueError(f"a difference of {difference} with only {discordant} discordant")


def _quantiles(alpha: float, power: float) -> tuple[float, float]:
    check_share(alpha, "alpha")
    check_share(power, "power")
    return z_quantile(1.0 - alpha / 2.0), z_quantile(power)
