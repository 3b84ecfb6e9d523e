"""What a paired design can find, before anything is spent. Differences are of scores in [0, 1], or in any one unit.

The minimum detectable effect (MDE) is what a study finds with the power asked for. It is no threshold: a smaller
difference can be significant, and one below it is no tie. After the data there is only the interval: power computed
from a result ("observed power") says nothing that its p does not.

Two tasks of one cluster are worth less than two tasks: count clusters as n where they are what is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrs import frozen

from evalcore.stats.checks import check_count, check_not_negative, check_positive, check_rate, check_share
from evalcore.stats.distributions import noncentral_t_tail, solve, t_quantile, z_quantile


@frozen
class Design:
    """A paired design's variances: of tasks' true differences, of one run within a task in each arm; and its repeats.

    `repeats_b` and `repeats_a` may be infinite, to see what more tasks alone would give.
    """

    omega2: float
    sigma2_a: float
    sigma2_b: float
    repeats_a: float
    repeats_b: float

    @property
    def variance(self) -> float:
        """The variance of one task's difference: omega^2 + sigma_A^2/K_A + sigma_B^2/K_B (Miller 2024, section 5).

        Raises ValueError for a negative variance, fewer than 1 repeat, or no variance at all.
        """
        for value in (self.omega2, self.sigma2_a, self.sigma2_b):
            check_not_negative(value, "a variance")
        if not (self.repeats_a >= 1 and self.repeats_b >= 1):
            raise ValueError("a task runs at least once in each arm")
        variance = self.omega2 + self.sigma2_a / self.repeats_a + self.sigma2_b / self.repeats_b
        check_positive(variance, "the variance of a difference")
        return variance


@frozen
class Detectable:
    """One cell of a plan: with so many tasks and repeats, what difference is found with the power asked for."""

    tasks: int
    repeats: int
    effect: float


def within_variance(rate: float, correlation: float) -> float:
    """sigma^2 within a task without a pilot: p(1-p)(1-ICC) for pass or fail. Print both assumptions beside the result.

    Raises ValueError for a rate or an ICC outside [0, 1].
    """
    check_rate(rate, "a pass rate")
    check_rate(correlation, "an intraclass correlation")
    return rate * (1.0 - rate) * (1.0 - correlation)


def detectable_difference(n: int, design: Design, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """The MDE of n tasks: (z_{1-alpha/2} + z_power) sqrt(variance/n) (Miller 2024, section 5), large n.

    Below 50 tasks use `detectable_difference_t`. Raises ValueError for no task, or alpha or power outside (0, 1).
    """
    check_count(n, "the number of tasks", 1)
    return _z_sum(alpha, power) * math.sqrt(design.variance / n)


def tasks_needed(difference: float, design: Design, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """The tasks that find `difference` with `power`: (z_{1-alpha/2} + z_power)^2 variance/difference^2; round it up.

    Raises ValueError for a difference not above 0, or alpha or power outside (0, 1).
    """
    check_positive(difference, "a difference to find")
    return _z_sum(alpha, power) ** 2 * design.variance / difference**2


def power_t(n: int, difference: float, sd: float, *, alpha: float = 0.05) -> float:
    """The power of a two-sided paired t test with n tasks whose differences have mean `difference` and spread `sd`.

    Exact for normal differences, by the noncentral t with n-1 degrees of freedom: .777 where z promises .80 (80 tasks,
    alpha .0083). Raises ValueError for fewer than 2 tasks, a spread not above 0, or alpha outside (0, 1).
    """
    check_count(n, "the number of tasks", 2)
    check_positive(sd, "a spread")
    check_share(alpha, "alpha")
    critical, shift = t_quantile(1.0 - alpha / 2.0, n - 1), difference * math.sqrt(n) / sd
    return noncentral_t_tail(critical, n - 1, shift) + noncentral_t_tail(critical, n - 1, -shift)


def detectable_difference_t(n: int, design: Design, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """The MDE of n tasks by the noncentral t: what to print below 50 tasks. Larger than by z, and right for few tasks.

    Raises ValueError for fewer than 2 tasks, or unless alpha < power < 1.
    """
    sd = math.sqrt(design.variance)
    _check_power(alpha, power)
    check_count(n, "the number of tasks", 2)
    # t and noncentral t have heavier tails than z: the upper end holds both for one degree of freedom and any alpha.
    high = 2.0 * sd * (t_quantile(1.0 - alpha / 2.0, n - 1) + t_quantile((1.0 + power) / 2.0, n - 1))
    return solve(lambda difference: power_t(n, difference, sd, alpha=alpha) - power, 0.0, high)


def tasks_needed_t(difference: float, design: Design, *, alpha: float = 0.05, power: float = 0.8) -> int:
    """The fewest tasks whose paired t test finds `difference` with `power`, by the noncentral t.

    Raises ValueError for a difference not above 0, or unless alpha < power < 1.
    """
    _check_power(alpha, power)
    sd, n = math.sqrt(design.variance), max(2, int(tasks_needed(difference, design, alpha=alpha, power=power)))
    while n > 2 and power_t(n - 1, difference, sd, alpha=alpha) >= power:
        n -= 1
    while power_t(n, difference, sd, alpha=alpha) < power:
        n += 1
    return n


def plan(
    tasks: Sequence[int],
    repeats: Sequence[int],
    omega2: float,
    sigma2_a: float,
    sigma2_b: float,
    *,
    alpha: float = 0.05,
    power: float = 0.8,
) -> list[Detectable]:
    """The MDE of every number of tasks with every number of repeats (the same in both arms), by the noncentral t.

    Read along it before buying: repeats only shrink sigma^2, tasks shrink all. Raises ValueError as its parts do.
    """
    return [
        Detectable(n, k, detectable_difference_t(n, Design(omega2, sigma2_a, sigma2_b, k, k), alpha=alpha, power=power))
        for n in tasks
        for k in repeats
    ]


def detectable_by_cores(
    cores: int,
    *,
    repeats: int,
    terminals: int = 1,
    rate: float,
    correlation: float,
    heterogeneity: float,
    alpha: float = 0.05,
    power: float = 0.8,
    interaction: bool = False,
) -> float:
    """The MDE of a design in cores, each with `terminals` tasks run `repeats` times, from declared variances alone.

    (z_{1-alpha/2} + z_power) sqrt((2 p(1-p)(1-ICC)/(repeats × terminals) + heterogeneity)/cores); `heterogeneity` is
    the variance of cores' true differences. An interaction, the difference of two such differences, has twice the
    variance. Source: harness-lab's power.py, whose 7.106 points it reproduces. Raises ValueError for counts below 1,
    shares out of range or a negative heterogeneity.
    """
    for count, what in ((cores, "cores"), (repeats, "repeats"), (terminals, "terminals")):
        check_count(count, f"the number of {what}", 1)
    sigma2, runs = within_variance(rate, correlation), repeats * terminals
    variance = Design(heterogeneity, sigma2, sigma2, runs, runs).variance
    return _z_sum(alpha, power) * math.sqrt((2.0 if interaction else 1.0) * variance / cores)


def _z_sum(alpha: float, power: float) -> float:
    check_share(alpha, "alpha")
    check_share(power, "power")
    return z_quantile(1.0 - alpha / 2.0) + z_quantile(power)


def _check_power(alpha: float, power: float) -> None:
    _z_sum(alpha, power)
    if not alpha < power:
        raise ValueError(f"power {power!r} is reached without any difference at alpha {alpha!r}")
