"""The percentile bootstrap, without sorting again.

A resample of sorted values is the sorted values repeated, so each draw costs a gather and a repeat.
The percentile method is the valid one here: a distance is a norm, and the ball around the true
difference lies inside a half-space, so the limit covers at every distance, zero included, where
the "basic" method falls below the estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from elsewise._arrays import to_numpy
from elsewise.confidence._comparison import Comparison, Pairing
from elsewise.confidence._limit import ASYMPTOTIC, UpperLimit, checked_level
from elsewise.errors import InvalidInput
from elsewise.transport import Ranked, segments

__all__ = ["bootstrap_distances", "bootstrap_limit"]

BATCH = 1 << 17
"""Resampled projections handled at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _BootstrapLimit:
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
    return _BootstrapLimit(estimate=comparison.distance, distances=np.sort(distances))


def bootstrap_distances(comparison: Comparison, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Return the distances (draws,) of resampled rows, root scale."""
    directions, n = comparison.shape
    moving_rng, fixed_rng = rng.spawn(2)
    if comparison.fixed is None:
        side = comparison.side(comparison.trim)
        m, known, spread = n, to_numpy(side.partners), to_numpy(side.spread)
    else:
        m, known, spread = comparison.fixed.sorted.shape[1], None, np.zeros(directions)
    pieces = segments(n, m, comparison.trim)
    at_moving, at_fixed = (_ranks(ranks, consecutive=n == m) for ranks in (pieces.x, pieces.y))
    squares = []
    # Several draws at a time keep NumPy busy; a bounded number keeps memory and caches happy.
    batch = max(1, BATCH // (directions * max(n, m)))
    for start in range(0, draws, batch):
        size = min(batch, draws - start)
        counts = _counts(n, size, moving_rng)
        moved = _resample(comparison.moving, counts)[..., at_moving]
        if known is not None:
            gap = moved - known[:, at_fixed]
        else:
            if comparison.pairing is Pairing.INDEPENDENT:
                counts = _counts(m, size, fixed_rng)
            gap = moved - _resample(comparison.fixed, counts)[..., at_fixed]
        squares.append(np.mean((gap * gap) @ pieces.weights + spread, axis=-1))
    return np.asarray(np.sqrt(np.concatenate(squares)))


def _counts(n: int, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Draw n rows with replacement, several times; return how often each came, (draws, n)."""
    rows = rng.integers(n, size=(draws, n)) + n * np.arange(draws)[:, None]
    counts: np.ndarray = np.bincount(rows.ravel(), minlength=draws * n)
    return counts.reshape(draws, n)


def _resample(ranked: Ranked | None, counts: np.ndarray) -> np.ndarray:
    """Return the sorted resamples (draws, N, n), given how often each row is drawn (draws, n)."""
    assert ranked is not None  # a sample, not a known side
    order, values = to_numpy(ranked.order), to_numpy(ranked.sorted)
    shape = (len(counts), *order.shape)
    repeats = counts[:, order].ravel()
    return np.repeat(np.broadcast_to(values, shape).ravel(), repeats).reshape(shape)


def _ranks(ranks: np.ndarray, *, consecutive: bool) -> np.ndarray | slice:
    """Index consecutive ranks by a slice, which copies nothing."""
    return slice(int(ranks[0]), int(ranks[-1]) + 1) if consecutive else ranks
