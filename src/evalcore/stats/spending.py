"""Looking at a study while it runs, at planned points, without spending more error than was declared.

Five looks that each test at .05 are wrong in 14 % of studies without an effect. A spending function says how much of
alpha may be used up by each look; the bounds follow from it. A look is a number of whole tasks (all their repeats) in
an order fixed before; fractions are of the planned number. Adding tasks after seeing results is a look.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

from evalcore.stats.checks import check_share
from evalcore.stats.distributions import normal_tail, solve, z_quantile

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

Spending = Literal["O'Brien-Fleming", "Pocock"]
FEWEST_NODES: Final = 128  # Gauss-Legendre nodes for the density between the bounds; 12 digits for usual designs
MOST_NODES: Final = 1_000
WIDEST_DENSITY: Final = 9.0  # standard deviations: what lies beyond is 1e-19
WIDEST_BOUND: Final = 37.0  # beyond, a normal tail is below the smallest double


def spent_obrien_fleming(fraction: float, alpha: float = 0.05, sides: int = 2) -> float:
    """The error that may be spent up to a fraction t of the study: little early, almost all at the end.

    One-sided 2(1 - Phi(z_{1-alpha/2}/sqrt(t))) (Lan and DeMets 1983); two-sided twice that at alpha/2, as gsDesign and
    ldbounds do: .00305 at t = .5. Raises ValueError for t outside (0, 1], alpha outside (0, 1), or sides not 1 or 2.
    """
    _check(fraction, alpha)
    if sides not in {1, 2}:
        raise ValueError(f"a test has one side or two, not {sides}")
    return sides * 2.0 * normal_tail(z_quantile(1.0 - alpha / sides / 2.0) / math.sqrt(fraction))


def spent_pocock(fraction: float, alpha: float = 0.05) -> float:
    """The same spent evenly: alpha ln(1 + (e-1) t) (Lan and DeMets 1983). Raises ValueError likewise."""
    _check(fraction, alpha)
    return alpha * math.log1p((math.e - 1.0) * fraction)


def look_bounds(fractions: Sequence[float], alpha: float = 0.05, spending: Spending = "O'Brien-Fleming") -> list[float]:
    """The two-sided bound on |z| at each look, so that all looks together err with the chance that was spent.

    By recursive integration of the joint normal density (Armitage, McPherson and Rowe 1969): two looks at .5 and 1 give
    2.963 and 1.969, as published; Pocock's 2.157 and 2.201. For t statistics of few clusters they are approximate.
    Raises ValueError for fractions not increasing in (0, 1], or a look so early that nothing may be spent.
    """
    spent = [spent_pocock(t, alpha) if spending == "Pocock" else spent_obrien_fleming(t, alpha) for t in fractions]
    walk, bounds = _Walk(fractions), list[float]()
    for look, (total, before) in enumerate(zip(spent, [0.0, *spent], strict=False)):
        rise = total - before
        if rise <= 0.0 or walk.crossing(WIDEST_BOUND) >= rise:
            raise ValueError(f"no error can be spent at fraction {fractions[look]}: leave that look out")
        bounds.append(_bound(walk, rise))
        walk.step(bounds[-1])
    return bounds


def _bound(walk: _Walk, rise: float) -> float:
    """The bound that is crossed at the present look, and not before, with the chance `rise`."""
    return solve(lambda bound: rise - walk.crossing(bound), 0.0, WIDEST_BOUND)


def error_of_looks(fractions: Sequence[float], bounds: Sequence[float]) -> float:
    """The chance that |z| crosses its bound at some look although there is no effect: .142 for five looks at 1.96.

    Raises ValueError for fractions not increasing in (0, 1], bounds not above 0, or different numbers of them.
    """
    if len(fractions) != len(bounds) or not all(0.0 < bound <= WIDEST_BOUND for bound in bounds):
        raise ValueError(f"a bound above 0 and at most {WIDEST_BOUND} for each look")
    walk, error = _Walk(fractions), 0.0
    for bound in bounds:
        error += walk.crossing(bound)
        walk.step(bound)
    return error


class _Walk:
    """The score process at the looks, B(t) = z sqrt(t), as the density of those that have not crossed yet."""

    def __init__(self, fractions: Sequence[float]) -> None:
        import numpy as np

        if not all(a < b for a, b in pairwise([0.0, *fractions])) or any(t > 1 for t in fractions):
            raise ValueError("looks are at increasing fractions above 0 and up to 1")
        self._fractions = list(fractions)
        self._look = 0
        self._places: NDArray[float64] = np.zeros(1)
        self._masses: NDArray[float64] = np.ones(1)

    def crossing(self, bound: float) -> float:
        """The chance to cross ±bound at the present look and not before."""
        import numpy as np
        from scipy.special import ndtr

        edge, spread = bound * math.sqrt(self._fractions[self._look]), math.sqrt(self._gap(self._look))
        tails = ndtr((self._places - edge) / spread) + ndtr((-self._places - edge) / spread)
        return float(np.dot(self._masses, tails))

    def step(self, bound: float) -> None:
        """Move on to the next look, without those that have crossed ±bound at the present one."""
        import numpy as np

        edge = min(bound, WIDEST_DENSITY) * math.sqrt(self._fractions[self._look])
        spread = math.sqrt(self._gap(self._look))
        narrowest = math.sqrt(min(map(self._gap, range(self._look, min(self._look + 2, len(self._fractions))))))
        count = min(MOST_NODES, max(FEWEST_NODES, math.ceil(8.0 * edge / narrowest)))
        nodes, weights = np.polynomial.legendre.leggauss(count)
        places = edge * nodes
        steps = (places[:, None] - self._places[None, :]) / spread
        density = np.exp(-0.5 * steps * steps) @ self._masses / (spread * math.sqrt(2.0 * math.pi))
        self._places, self._masses = places, density * weights * edge
        self._look += 1

    def _gap(self, look: int) -> float:
        return self._fractions[look] - (self._fractions[look - 1] if look else 0.0)


def _check(fraction: float, alpha: float) -> None:
    check_share(alpha, "alpha")
    if not 0.0 < fraction <= 1.0:
        raise ValueError(f"a fraction of the study lies above 0 and up to 1, not {fraction!r}")
