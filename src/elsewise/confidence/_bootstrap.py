"""The percentile bootstrap: a resample of sorted values is known by the ranks of its rows.

The paper names it beside its bands, after eq. (11). Each draw sorts small integers, in the way
that this processor is quickest at.
The percentile method is the valid one here: a distance is a norm, and the ball around the true
difference lies inside a half-space, so the limit covers at every distance, zero included, where
the "basic" method falls below the estimate.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from elsewise._arrays import inverse_permutation, to_numpy
from elsewise.confidence._comparison import Comparison, Pairing
from elsewise.confidence._limit import ASYMPTOTIC, UpperLimit, checked_level
from elsewise.errors import InvalidInput
from elsewise.transport import Ranked, segments

# Resampled projections handled at once.
BATCH = 1 << 16
# Ways to sort ranks. Which is quickest depends on the instructions of the processor: radix where it
# has no AVX-512, its own sort of 16 bits with it. All give the same.
SORTS = (np.uint16, None), (np.uint16, "stable"), (np.int32, None)


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
        # One more than the draws, as if the sample itself were the worst of them: of B draws none
        # can claim more than B / (B + 1).
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
    m, known, spread = comparison.sizes[-1], np.empty(0), np.zeros(directions)
    if comparison.fixed is None:
        side = comparison.side(comparison.trim)
        known, spread = to_numpy(side.partners), to_numpy(side.spread)
    pieces = segments(n, m, comparison.trim)
    at_moving, at_fixed = (_ranks(ranks, consecutive=n == m) for ranks in (pieces.x, pieces.y))
    moving, *fixed = map(_Table.of, comparison.samples)
    squares = []
    # Several draws at a time keep NumPy busy; a bounded number keeps memory and caches happy.
    batch = max(1, BATCH // (directions * max(n, m)))
    for start in range(0, draws, batch):
        size = min(batch, draws - start)
        # Rows of each draw, with replacement: int (size, n).
        rows = moving_rng.integers(n, size=(size, n))
        moved = _resample(moving, rows)[..., at_moving]
        if not fixed:
            gap = moved - known[:, None, at_fixed]
        else:
            # Paired rows are drawn together, because a row and its counterfactual come from the
            # same draw.
            if comparison.pairing is Pairing.INDEPENDENT:
                rows = fixed_rng.integers(m, size=(size, m))
            gap = moved - _resample(fixed[0], rows)[..., at_fixed]
        gap *= gap
        # Squares are averaged over directions before the root is taken, as in eq. (2): the mean of
        # the roots would be smaller.
        squares.append(np.mean(gap @ pieces.weights + spread[:, None], axis=0))
    return np.asarray(np.sqrt(np.concatenate(squares)))


class _Table(NamedTuple):
    """A sample, ready to be resampled."""

    ranks: np.ndarray
    """Integers (N, n): rank of each row."""
    values: np.ndarray
    """ndarray (N, n): the sorted values."""
    kind: Any
    """How such ranks are sorted."""

    @classmethod
    def of(cls, ranked: Ranked) -> _Table:
        values = to_numpy(ranked.sorted)
        # Ranks of up to 65,536 rows fit in 16 bits, a quarter of what sorting the values would
        # move.
        dtype, kind = _quickest_sort() if values.shape[-1] <= 1 << 16 else (np.int32, None)
        return cls(inverse_permutation(to_numpy(ranked.order)).astype(dtype), values, kind)


def _resample(table: _Table, rows: np.ndarray) -> np.ndarray:
    """Return the sorted resamples (N, draws, n) of the drawn rows (draws, n)."""
    count, n = table.values.shape
    ranks = np.take(table.ranks, rows, axis=1)
    ranks.sort(axis=-1, kind=table.kind)
    return np.asarray(np.take(table.values, ranks + n * np.arange(count)[:, None, None]))


@lru_cache(maxsize=1)
def _quickest_sort() -> tuple[Any, Any]:
    """Try the ways to sort ranks once, which takes a millisecond."""
    ranks = np.random.default_rng(0).integers(500, size=(32, 500))

    def seconds(way: tuple[Any, Any]) -> float:
        spent = []
        for _ in range(4):
            copy = ranks.astype(way[0])
            start = time.perf_counter()
            copy.sort(axis=-1, kind=way[1])
            spent.append(time.perf_counter() - start)
        # Other work on the machine only ever makes a try slower, so the quickest one is compared.
        return min(spent)

    return min(SORTS, key=seconds)


def _ranks(ranks: np.ndarray, *, consecutive: bool) -> np.ndarray | slice:
    """Index consecutive ranks by a slice, which copies nothing."""
    return slice(int(ranks[0]), int(ranks[-1]) + 1) if consecutive else ranks
