"""The percentile bootstrap, without sorting again.

A resample of sorted values is known by the ranks of its rows, so each draw sorts small integers.
The percentile method is the valid one here: a distance is a norm, and the ball around the true
difference lies inside a half-space, so the limit covers at every distance, zero included, where
the "basic" method falls below the estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from elsewise._arrays import inverse_permutation, to_numpy
from elsewise.confidence._comparison import Comparison, Pairing
from elsewise.confidence._limit import ASYMPTOTIC, UpperLimit, checked_level
from elsewise.errors import InvalidInput
from elsewise.transport import Ranked, segments

__all__ = ["bootstrap_distances", "bootstrap_limit"]

BATCH = 1 << 17
"""Resampled projections handled at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapLimit:
    """An order statistic of resampled distances."""

    method: ClassVar[str] = "bootstrap"
    assumption: ClassVar[str] = ASYMPTOTIC
    estimate: float
    distances: np.ndarray
    """ndarray (B,): resampled distances, sorted."""

    def upper(self, level: float) -> float:
        draws = self.distances.size
        # The first share at or above the level, of the shares that `probability` reports.
        index = int(np.searchsorted(np.arange(1, draws + 1) / (draws + 1), checked_level(level)))
        if index == draws:
            raise InvalidInput(
                "draws",
                expected=f"at least {math.ceil(level / (1.0 - level) - 1e-9)} for level {level}",
                received=draws,
                fix="draw more resamples or ask for a lower level",
            )
        return max(self.estimate, float(self.distances[index]))

    def probability(self, bound: float) -> float:
        if bound < self.estimate:
            return 0.0
        met = int(np.searchsorted(self.distances, bound, side="right"))
        return met / (self.distances.size + 1)


def bootstrap_limit(comparison: Comparison, draws: int, rng: np.random.Generator) -> UpperLimit:
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
        rows = _draw(n, size, moving_rng)
        moved = _resample(moving, rows)[..., at_moving]
        if fixed is None:
            gap = moved - known[:, at_fixed]
        else:
            if comparison.pairing is Pairing.INDEPENDENT:
                rows = _draw(m, size, fixed_rng)
            gap = moved - _resample(fixed, rows)[..., at_fixed]
        gap *= gap
        squares.append(np.mean(gap @ pieces.weights + spread, axis=-1))
    return np.asarray(np.sqrt(np.concatenate(squares)))


def _draw(n: int, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Draw n rows with replacement, several times: int (draws, n)."""
    return rng.integers(n, size=(draws, n))


class _Table(NamedTuple):
    """A sample, ready to be resampled."""

    ranks: np.ndarray
    """ndarray (N, n) of the smallest integers that hold them: rank of each row."""
    values: np.ndarray
    """ndarray (N, n): the sorted values."""

    @classmethod
    def of(cls, ranked: Ranked) -> _Table:
        order, values = to_numpy(ranked.order), to_numpy(ranked.sorted)
        kind = np.int16 if order.shape[-1] <= np.iinfo(np.int16).max else np.int32
        return cls(inverse_permutation(order).astype(kind), values)


def _resample(table: _Table, rows: np.ndarray) -> np.ndarray:
    """Return the sorted resamples (draws, N, n) of the drawn rows (draws, n)."""
    # Sorting small integers is cheaper than anything that keeps the values together.
    ranks = np.ascontiguousarray(table.ranks[:, rows].transpose(1, 0, 2))
    ranks.sort(axis=-1)
    count, n = table.values.shape
    return np.asarray(np.take(table.values, ranks + n * np.arange(count)[:, None]))


def _ranks(ranks: np.ndarray, *, consecutive: bool) -> np.ndarray | slice:
    """Index consecutive ranks by a slice, which copies nothing."""
    return slice(int(ranks[0]), int(ranks[-1]) + 1) if consecutive else ranks
