"""Quantiles of times, some of which were cut off at a limit: those are known to be longer, and not by how much."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Final

from attrs import frozen

from evalcore.stats.bootstrap import percentile_bounds, resamples
from evalcore.stats.checks import check_level, check_share, same_length
from evalcore.stats.intervals import DEFAULT_LEVEL
from evalcore.stats.quantiles import quantile, quantile_ranks

if TYPE_CHECKING:
    from numpy import float64, int64
    from numpy.typing import NDArray

ORDER_STATISTICS: Final = "type 7; order statistics (exact, one run a task)"
CLUSTER_BOOTSTRAP: Final = "type 7 of all runs; percentile bootstrap of clusters ({} draws, seed {})"
NO_INTERVAL: Final = "type 7 of all runs; no interval"
DRAWS: Final = 1_999  # a quantile jumps between runs: more draws sharpen nothing that is printed
ENOUGH_CLUSTERS: Final = 20
BLOCK: Final = 32  # about the square root of the runs of a large cell
TOO_FEW: Final = "{} clusters with repeats: a bootstrap of quantiles needs 20"
UNAVAILABLE: Final = "p{:g} {} bound unavailable: {} independent runs are too few"
BEYOND: Final = "above {:g}, where runs were cut off"


@frozen
class TimeQuantile:
    """A quantile of times, in their unit. What is None is explained in `reason`.

    `beyond` is the limit at which runs were cut off, if any were: `value` is None where it lies above it, and so is
    `high` (and `low`), and is then printed as ">limit".
    """

    q: float
    value: float | None
    low: float | None
    high: float | None
    level: float
    method: str
    runs: int
    cut: int
    beyond: float | None = None
    reason: str | None = None


def time_quantiles(
    times: Sequence[float],
    cut: Sequence[bool],
    clusters: Sequence[Hashable],
    qs: Sequence[float] = (0.5, 0.95, 0.99),
    *,
    seed: int,
    level: float = DEFAULT_LEVEL,
    draws: int = DRAWS,
) -> list[TimeQuantile]:
    """Quantiles of all attempted runs, solved or not; `cut` marks those that a limit ended, `clusters` whose they are.

    A cut run is kept as longer than its limit (right-censored); the quantiles below the lowest limit are then exact,
    and those above are only known to be above. With one run a cluster the interval is that of order statistics; with
    more, runs are not independent, and whole clusters are resampled, from 20 clusters on. Raises ValueError for no run,
    a time that is negative or not finite, or q outside (0, 1).
    """
    check_level(level)
    same_length(times, cut, "times and marks")
    same_length(times, clusters, "times and cluster labels")
    if not times or not all(math.isfinite(x) and x >= 0 for x in times):
        raise ValueError("a quantile needs times, each a finite number of at least 0")
    for q in qs:
        check_share(q, "a quantile")
    limit = min((x for x, ended in zip(times, cut, strict=True) if ended), default=math.inf)
    # Above the lowest limit ranks are not known: a longer run there may be shorter than a cut one.
    known = [math.inf if ended or x > limit else float(x) for x, ended in zip(times, cut, strict=True)]
    groups = len(set(clusters))
    shape = (level, len(times), sum(cut), limit)
    if groups == len(times):
        return [_by_rank(sorted(known), q, shape) for q in qs]
    if groups < ENOUGH_CLUSTERS:
        return [_finish(q, quantile(known, q), None, None, NO_INTERVAL, shape, [TOO_FEW.format(groups)]) for q in qs]
    method = CLUSTER_BOOTSTRAP.format(f"{draws:,}", seed)
    replicates = _replicates(known, clusters, qs, seed, draws)
    return [
        _finish(q, quantile(known, q), *percentile_bounds(values, level), method, shape, [])
        for q, values in zip(qs, replicates, strict=True)
    ]


Shape = tuple[float, int, int, float]  # level, runs, cut runs, lowest limit


def _by_rank(ordered: Sequence[float], q: float, shape: Shape) -> TimeQuantile:
    ranks = quantile_ranks(len(ordered), q, shape[0])
    low, high = (None if rank is None else ordered[rank - 1] for rank in (ranks.low, ranks.high))
    missing = [
        UNAVAILABLE.format(100 * q, side, len(ordered))
        for side, rank in (("lower", ranks.low), ("upper", ranks.high))
        if rank is None
    ]
    return _finish(q, quantile(ordered, q), low, high, ORDER_STATISTICS, shape, missing)


def _finish(
    q: float, value: float, low: float | None, high: float | None, method: str, shape: Shape, reasons: list[str]
) -> TimeQuantile:
    """Infinite means above the limit: None, with the limit named."""
    level, runs, cut, limit = shape
    above = [name for name, x in (("value", value), ("low", low), ("high", high)) if x is not None and math.isinf(x)]
    if above:
        reasons = [*reasons, f"{', '.join(above)} {BEYOND.format(limit)}"]
    return TimeQuantile(
        q,
        None if math.isinf(value) else value,
        None if low is None or math.isinf(low) else low,
        None if high is None or math.isinf(high) else high,
        level,
        method,
        runs,
        cut,
        limit if cut else None,
        "; ".join(reasons) or None,
    )


def _replicates(
    known: Sequence[float], clusters: Sequence[Hashable], qs: Sequence[float], seed: int, draws: int
) -> list[list[float]]:
    """The quantiles of all runs in each resample of clusters, ascending, one list for each q."""
    import numpy as np

    members: dict[Hashable, list[float]] = {}
    for x, label in zip(known, clusters, strict=True):
        members.setdefault(label, []).append(x)
    groups = sorted(sorted(runs) for runs in members.values())  # nothing drawn depends on names or order
    pooled = sorted((x, i) for i, runs in enumerate(groups) for x in runs)
    runs = _Runs([x for x, _ in pooled], [i for _, i in pooled], len(groups))
    found: list[list[NDArray[float64]]] = [[] for _ in qs]
    for piece in resamples(len(groups), draws, seed):
        piece = np.concatenate([piece, np.zeros((len(piece), 1), dtype=piece.dtype)], axis=1)  # of nobody
        reached = runs.reached(piece)
        for place, q in enumerate(qs):
            found[place].append(_type_7(runs, piece, reached, q))
    return [[float(x) for x in np.sort(np.concatenate(parts))] for parts in found]


class _Runs:
    """All runs, ascending, in blocks of `BLOCK`: a rank is looked for among blocks first, then inside one."""

    def __init__(self, values: Sequence[float], owners: Sequence[int], clusters: int) -> None:
        import numpy as np

        blocks = -(-len(values) // BLOCK)
        padded = np.full(blocks * BLOCK, clusters)
        padded[: len(owners)] = owners
        self._values = np.asarray(values)
        self._owners = padded.reshape(blocks, BLOCK)  # beyond the last run stands a cluster that is never drawn
        self._inside = np.zeros((clusters + 1, blocks))  # how many runs of a cluster are in a block
        np.add.at(self._inside, (np.asarray(owners), np.arange(len(owners)) // BLOCK), 1.0)

    def reached(self, drawn: NDArray[int64]) -> NDArray[int64]:
        """How many runs of each resample are in its first blocks: rows × blocks. Exact: floats hold such integers."""
        import numpy as np

        found: NDArray[int64] = np.cumsum(drawn @ self._inside, axis=1).astype(np.int64)
        return found

    def at(self, rank: NDArray[int64], drawn: NDArray[int64], reached: NDArray[int64]) -> NDArray[float64]:
        """The run of that rank, from 0, in each resample."""
        import numpy as np

        row = np.arange(len(drawn))
        block = (reached <= rank[:, None]).sum(axis=1)
        before = np.where(block > 0, reached[row, block - 1], 0)
        within = np.cumsum(drawn[row[:, None], self._owners[block]], axis=1)
        found: NDArray[float64] = self._values[block * BLOCK + (within <= (rank - before)[:, None]).sum(axis=1)]
        return found


def _type_7(runs: _Runs, drawn: NDArray[int64], reached: NDArray[int64], q: float) -> NDArray[float64]:
    """The q-quantile of each row's resample."""
    import numpy as np

    last = reached[:, -1] - 1
    place = q * last
    below = np.floor(place).astype(np.int64)
    share = place - below
    low, high = (runs.at(rank, drawn, reached) for rank in (below, np.minimum(below + 1, last)))
    with np.errstate(invalid="ignore"):  # infinite less infinite, where the next line does not look
        between = low + share * (high - low)
    settled: NDArray[float64] = np.where((share == 0.0) | (low == high), low, between)
    return settled
