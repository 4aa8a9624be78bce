"""The paper's own limit: Dvoretzky-Kiefer-Wolfowitz bands around quantile functions.

The band of every sample holds with the stated probability at every sample size, and the largest gap
between the bands bounds the gap of the quantile functions, hence the distance. The levels are the
corrected ones: the gap uses both sides of both bands, of every direction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from elsewise._arrays import Array, to_numpy
from elsewise.confidence._comparison import Comparison
from elsewise.confidence._limit import UpperLimit, attained_level, level_on_grid
from elsewise.errors import InvalidInput

__all__ = ["dkw_limit"]

CELLS = 4096
"""The quantile range is cut into at least this many cells, and at least four a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """A sorted sample between the ends of its support."""

    values: np.ndarray
    """ndarray (N, n + 2): the support's lower end, the sorted sample, the upper end."""

    def band(self, shift: int, cells: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Bound the quantile function on ``cells`` of ``count`` from both sides, (N, S) each.

        With radius r = shift / count, F(x_(i)) >= i/n - r gives Q(u) <= x_(i) from i = n (u + r)
        on, and F(x) <= (i-1)/n + r below x_(i) gives Q(u) >= x_(i) up to i - 1 = n (u - r).
        """
        n = self.values.shape[-1] - 2
        above = np.minimum(-(-n * (cells + 1 + shift) // count), n + 1)
        below = np.maximum(n * (cells - shift) // count + 1, 0)
        return self.values[:, below], self.values[:, above]


@dataclass(frozen=True, slots=True, kw_only=True)
class _DKWLimit:
    """The root mean square of the largest gap between the bands."""

    method: ClassVar[str] = "dkw"
    assumption: ClassVar[str] = (
        "Rows are independent draws and outputs or projections stay inside the stated support; "
        "holds for every number of rows."
    )
    estimate: float
    samples: tuple[_Sample, ...]
    """One or two samples; with one, the other side is known."""
    partners: np.ndarray
    """ndarray (N, S): a known side's mean in each cell; no columns if both sides are samples."""
    spread: np.ndarray
    """ndarray (N,): weighted sum of a known side's variances within its cells, or zeros."""
    cells: np.ndarray
    """ndarray (S,): the cells inside the trimmed range."""
    count: int
    """Number of cells of [0, 1]."""
    weights: np.ndarray
    """ndarray (S,): share of the trimmed range in each cell."""
    sides: int
    """Number of one-sided bands a direction needs."""

    def upper(self, level: float) -> float:
        return self._limit(self._shifts(level_on_grid(level)))

    def probability(self, bound: float) -> float:
        # Close levels share their shifts, so few limits are computed.
        limit = cache(self._limit)
        return attained_level(lambda level: limit(self._shifts(level)), bound)

    def _shifts(self, level: float) -> tuple[int, ...]:
        """Return the radius of each band, in cells, so that all together hold with ``level``.

        Radii are rounded up to whole cells: the same cells at every level keep the limit monotone.
        """
        # One-sided bands need a probability of missing of at most a half (Massart).
        miss = min(1.0 - level, 0.5)
        if miss == 0.0:
            return tuple(self.count for _ in self.samples)
        shapes = (sample.values.shape for sample in self.samples)
        radii = (math.sqrt(math.log(self.sides * N / miss) / (2 * (n - 2))) for N, n in shapes)
        return tuple(math.ceil(min(1.0, radius) * self.count) for radius in radii)

    def _limit(self, shifts: tuple[int, ...]) -> float:
        """Return the limit for bands of these radii."""
        bands = [
            sample.band(shift, self.cells, self.count)
            for sample, shift in zip(self.samples, shifts, strict=True)
        ]
        low, high = bands[0]
        fixed_low, fixed_high = bands[1] if len(bands) > 1 else (self.partners, self.partners)
        gap = np.maximum(high - fixed_low, fixed_high - low)
        # A known quantile function differs from its cell means by the spread (Minkowski).
        norms = np.sqrt(np.sum(gap * gap * self.weights, axis=-1)) + np.sqrt(self.spread)
        return max(self.estimate, math.sqrt(float(np.mean(norms * norms))))


def dkw_limit(
    comparison: Comparison, support: tuple[Array | float, Array | float] | None = None
) -> UpperLimit:
    """Limit the distance by DKW bands, for every number of rows.

    Two samples share the error between four one-sided bands, a known target needs two, a known
    constant at an end of the support one; N directions share it again (Bonferroni).

    Parameters
    ----------
    comparison
        Arrays of any library; the work is done in NumPy.
    support
        Lower and upper end of all values, numbers or arrays (N,). Without it the limit is infinite
        as soon as a band leaves the sample inside the trimmed range.

    Examples
    --------
    >>> x = np.random.default_rng(0).uniform(size=(1, 200))
    >>> comparison = Comparison.paired(x**2, x, 0.05)
    >>> dkw_limit(comparison).upper(0.95)
    inf
    >>> round(dkw_limit(comparison, (0.0, 1.0)).upper(0.95), 2)
    0.39
    """
    moving = to_numpy(comparison.moving.sorted)
    directions, n = moving.shape
    ends = _ends(support, directions)
    refine = max(4, -(-CELLS // n))
    count = n * refine
    edges = np.clip(np.arange(count + 1) / count, comparison.trim, 1.0 - comparison.trim)
    weights = np.diff(edges) / (1.0 - 2.0 * comparison.trim)
    cells = np.flatnonzero(weights > 1e-12)
    samples = [_sample(moving, ends)]
    partners, spread, sides = np.empty((directions, 0)), np.zeros(directions), 4
    if comparison.fixed is None:
        side = comparison.side(comparison.trim)
        partners = to_numpy(side.partners)[:, cells // refine]
        spread = to_numpy(side.spread)
        at_an_end = any(np.all(partners == end) for end in ends)
        sides = 1 if at_an_end and np.all(spread == 0.0) else 2
    else:
        samples.append(_sample(to_numpy(comparison.fixed.sorted), ends))
    return _DKWLimit(
        estimate=comparison.distance,
        samples=tuple(samples),
        partners=partners,
        spread=spread,
        cells=cells,
        count=count,
        weights=weights[cells],
        sides=sides,
    )


def _ends(
    support: tuple[Array | float, Array | float] | None, directions: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the support as (N, 1) arrays."""
    lower, upper = (-math.inf, math.inf) if support is None else support
    low, high = (
        np.broadcast_to(np.asarray(end, dtype=np.float64).reshape(-1, 1), (directions, 1))
        for end in (lower, upper)
    )
    if not np.all(low < high):
        raise InvalidInput(
            "support", expected="lower < upper", received=support, fix="swap or widen the ends"
        )
    return low, high


def _sample(values_sorted: np.ndarray, ends: tuple[np.ndarray, np.ndarray]) -> _Sample:
    """Put a sorted sample between the ends of its support, refusing values outside."""
    low, high = ends
    first, last = values_sorted[:, :1], values_sorted[:, -1:]
    # Projections may pass an end by their rounding.
    slack = 1e-9 * (1.0 + np.maximum(np.abs(first), np.abs(last)))
    if np.any(first < low - slack) or np.any(last > high + slack):
        raise InvalidInput(
            "support",
            expected="every value inside it",
            received=f"values from {first.min()} to {last.max()}",
            fix="widen the support to all values that can occur",
        )
    low, high = np.minimum(low, first), np.maximum(high, last)
    return _Sample(values=np.concatenate([low, values_sorted, high], axis=-1))
