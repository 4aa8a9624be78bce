"""The percentile bootstrap, without sorting again.

A resample of sorted values is known by the ranks of its rows: each draw sorts 16-bit integers, by
radix, or counts how often each row was drawn.
The percentile method is the valid one here: a distance is a norm, and the ball around the true
difference lies inside a half-space, so the limit covers at every distance, zero included, where
the "basic" method falls below the estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from elsewise._arrays import inverse_permutation, to_numpy
from elsewise.confidence._comparison import Comparison, Pairing
from elsewise.confidence._limit import ASYMPTOTIC, UpperLimit, checked_level
from elsewise.errors import InvalidInput
from elsewise.transport import Ranked, segments

# Resampled projections handled at once.
BATCH = 1 << 17
# Fewest and most rows whose ranks are sorted; fewer or more are counted.
RADIX_ROWS = 64, 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapLimit(UpperLimit):
    """An order statistic of resampled distances."""

    method: str = "bootstrap"
    assumption: str = ASYMPTOTIC
    distances: np.ndarray
    """ndarray (B,): resampled distances, sorted."""

    def upper(self, level: float) -> float:
        draws = self.distances.size
        # The first share at or above the level, of the shares that `probability` reports.
        index = int(np.searchsorted(np.arange(1, draws + 1) / (draws + 1), checked_level(level)))
        if index == draws:
            expected = f"at least {math.ceil(level / (1.0 - level) - 1e-9)} for level {level}"
            fix = "draw more resamples or ask for a lower level"
            raise InvalidInput("draws", expected=expected, received=draws, fix=fix)
        return max(self.estimate, float(self.distances[index]))

    def probability(self, bound: float) -> float:
        if bound < self.estimate:
            return 0.0
        met = int(np.searchsorted(self.distances, bound, side="right"))
        return met / (self.distances.size + 1)


def bootstrap_limit(comparison: Comparison, draws: int, rng: np.random.Generator) -> BootstrapLimit:
    """Limit the distance by a percentile of its resampled values.

    Paired rows are resampled together, an independent sample on its own, a known target not at
    all. The limit is the order statistic ``ceil(level * (draws + 1))``.

    Parameters
    ----------
    comparison
        Arrays of any library; the work is done in NumPy.
    draws
        Number of resamples: 199 to look, 999 to publish.
    rng
        Source of randomness.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(1, 100))
    >>> limit = bootstrap_limit(Comparison.paired(x + np.abs(x), x, 0.1), 199, rng)
    >>> limit.estimate < limit.upper(0.9) < limit.upper(0.99)
    True
    """
    if draws < 1:
        raise InvalidInput("draws", expected="at least 1", received=draws, fix="try 199")
    distances = bootstrap_distances(comparison, draws, rng)
    return BootstrapLimit(estimate=comparison.distance, distances=np.sort(distances))


def bootstrap_distances(comparison: Comparison, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Return the distances (draws,) of resampled rows, root scale."""
    directions, n = comparison.shape
    # A stream for each sample: what one draws must not depend on the size of the other.
    moving_rng, fixed_rng = rng.spawn(2)
    if comparison.fixed is None:
        side = comparison.side(comparison.trim)
        m, known, spread = n, to_numpy(side.partners), to_numpy(side.spread)
    else:
        m, known, spread = comparison.fixed.sorted.shape[1], np.empty(0), np.zeros(directions)
    pieces = segments(n, m, comparison.trim)
    at_moving, at_fixed = (_ranks(ranks, consecutive=n == m) for ranks in (pieces.x, pieces.y))
    moving = _Table.of(comparison.moving)
    fixed = None if comparison.fixed is None else _Table.of(comparison.fixed)
    squares = []
    # Several draws at a time keep NumPy busy; a bounded number keeps memory and caches happy.
    batch = max(1, BATCH // (directions * max(n, m)))
    for start in range(0, draws, batch):
        size = min(batch, draws - start)
        # Rows of each draw, with replacement: int (size, n).
        rows = moving_rng.integers(n, size=(size, n))
        moved = _resample(moving, rows)[..., at_moving]
        if fixed is None:
            gap = moved - known[:, at_fixed]
        else:
            if comparison.pairing is Pairing.INDEPENDENT:
                rows = fixed_rng.integers(m, size=(size, m))
            gap = moved - _resample(fixed, rows)[..., at_fixed]
        gap *= gap
        squares.append(np.mean(gap @ pieces.weights + spread, axis=-1))
    return np.asarray(np.sqrt(np.concatenate(squares)))


class _Table(NamedTuple):
    """A sample, ready to be resampled."""

    order: np.ndarray
    """ndarray (N, n): the row at each rank."""
    ranks: np.ndarray | None
    """uint16 ndarray (N, n): rank of each row; None where counting is quicker than sorting them."""
    values: np.ndarray
    """ndarray (N, n): the sorted values."""

    @classmethod
    def of(cls, ranked: Ranked) -> _Table:
        order, values = to_numpy(ranked.order), to_numpy(ranked.sorted)
        if not RADIX_ROWS[0] <= order.shape[-1] <= RADIX_ROWS[1]:
            return cls(order, None, values)
        return cls(order, inverse_permutation(order).astype(np.uint16), values)


def _resample(table: _Table, rows: np.ndarray) -> np.ndarray:
    """Return the sorted resamples (draws, N, n) of the drawn rows (draws, n)."""
    count, n = table.values.shape
    if table.ranks is None:
        resamples = np.empty((len(rows), count, n))
        for drawn, resample in zip(rows, resamples, strict=True):
            times = np.bincount(drawn, minlength=n)[table.order]
            resample[:] = np.repeat(table.values.ravel(), times.ravel()).reshape(count, n)
        return resamples
    ranks = np.empty((len(rows), count, n), dtype=np.uint16)
    for drawn, sorted_ranks in zip(rows, ranks, strict=True):
        np.take(table.ranks, drawn, axis=1, out=sorted_ranks, mode="clip")
    # Stable: of integers of 16 bits that is a radix sort, also where there is no AVX-512.
    ranks.sort(axis=-1, kind="stable")
    return np.asarray(np.take(table.values, ranks + n * np.arange(count)[:, None]))


def _ranks(ranks: np.ndarray, *, consecutive: bool) -> np.ndarray | slice:
    """Index consecutive ranks by a slice, which copies nothing."""
    return slice(int(ranks[0]), int(ranks[-1]) + 1) if consecutive else ranks
