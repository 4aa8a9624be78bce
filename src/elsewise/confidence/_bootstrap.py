"""The percentile bootstrap, without sorting again.

A resample of sorted values is the sorted values repeated, so each draw costs a gather and a repeat.
The percentile method is the valid one here: a distance is a norm, and the ball around the true
difference lies inside a half-space, so the limit covers at every distance, zero included, where
the "basic" method falls below the estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from elsewise._arrays import to_numpy
from elsewise.confidence._comparison import Comparison, Pairing
from elsewise.confidence._limit import UpperLimit, checked_level
from elsewise.errors import InvalidInput
from elsewise.transport import Ranked, segments

__all__ = ["bootstrap_distances", "bootstrap_limit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _BootstrapLimit:
    """An order statistic of resampled distances."""

    method: ClassVar[str] = "bootstrap"
    assumption: ClassVar[str] = (
        "Rows are independent draws, numerous enough for resampled rows to vary as new ones "
        "would; rows that all stay where they are give a limit of 0, which is no guarantee."
    )
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
    n = comparison.shape[1]
    resample_moving = _resampler(comparison.moving)
    if comparison.fixed is None:
        side = comparison.side(comparison.trim)
        m, partners, spread = n, to_numpy(side.partners), to_numpy(side.spread)
        resample_fixed: Callable[[np.ndarray], np.ndarray] = lambda counts: partners  # noqa: E731
    else:
        m, spread = comparison.fixed.sorted.shape[1], np.zeros(comparison.shape[0])
        resample_fixed = _resampler(comparison.fixed)
    pieces = segments(n, m, comparison.trim)
    at_moving, at_fixed = (_ranks(ranks, consecutive=n == m) for ranks in (pieces.x, pieces.y))
    squares = np.empty(draws)
    for draw in range(draws):
        counts = fixed_counts = _counts(n, rng)
        if comparison.pairing is Pairing.INDEPENDENT:
            fixed_counts = _counts(m, rng)
        gap = resample_moving(counts)[:, at_moving] - resample_fixed(fixed_counts)[:, at_fixed]
        squares[draw] = np.mean((gap * gap) @ pieces.weights + spread)
    return np.sqrt(squares)


def _counts(n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw n rows with replacement; return how often each came, (n,)."""
    return np.bincount(rng.integers(n, size=n), minlength=n)


def _resampler(ranked: Ranked) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function from how often each row is drawn (n,) to the sorted resample (N, n)."""
    order, flat = to_numpy(ranked.order), to_numpy(ranked.sorted).ravel()

    def resample(counts: np.ndarray) -> np.ndarray:
        return np.repeat(flat, np.take(counts, order).ravel()).reshape(order.shape)

    return resample


def _ranks(ranks: np.ndarray, *, consecutive: bool) -> np.ndarray | slice:
    """Index consecutive ranks by a slice, which copies nothing."""
    return slice(int(ranks[0]), int(ranks[-1]) + 1) if consecutive else ranks
