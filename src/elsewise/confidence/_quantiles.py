"""From bands around quantile functions to a limit of the distance, whatever the bands.

A band says between which two order statistics the quantile function lies on each cell of [0, 1].
Where the bands of both sides hold, the largest gap between them bounds the gap of the quantile
functions, hence the distance.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from elsewise._arrays import Array, to_numpy
from elsewise.confidence._comparison import Comparison
from elsewise.confidence._limit import level_below, level_on_grid
from elsewise.errors import InvalidInput

# The quantile range is cut into at least this many cells, and at least four a row.
CELLS = 4096

Support = tuple[Array | float, Array | float] | None
"""Lower and upper end of all values, numbers or arrays (N,); None where they are unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Equal cells of [0, 1]: the same at every level, which keeps a limit monotone."""

    count: int
    """Number of cells of [0, 1]."""
    trim: float
    """Share left out at either end."""

    @property
    def weights(self) -> np.ndarray:
        """Share (count,) of the trimmed range in each cell."""
        return np.diff(self._edges) / (1.0 - 2.0 * self.trim)

    @property
    def used(self) -> np.ndarray:
        """Numbers (S,) of the cells that reach into the trimmed range."""
        return np.flatnonzero(self.weights > 1e-12)

    @property
    def starts(self) -> np.ndarray:
        """Where the used cells start (S,), inside the trimmed range."""
        return np.asarray(self._edges[self.used])

    @property
    def ends(self) -> np.ndarray:
        """Where the used cells end (S,), inside the trimmed range."""
        return np.asarray(self._edges[self.used + 1])

    @property
    def _edges(self) -> np.ndarray:
        return np.clip(np.arange(self.count + 1) / self.count, self.trim, 1.0 - self.trim)


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What of its bands a comparison uses."""

    sizes: tuple[int, ...]
    """Size of each sample: one, or two."""
    directions: int
    """Number of directions; each has bands of its own."""
    cells: Cells
    """Where the bands are compared."""
    below: bool
    """Whether quantile functions have to be bounded from below."""
    above: bool
    """Whether quantile functions have to be bounded from above."""


class Bands(Protocol):
    """Nested bands around the quantile functions of all samples, numbered by their width."""

    @property
    def widest(self) -> int:
        """The last width, at which the bands are the support."""

    def failing(self, width: int) -> float:
        """Bound the probability that any of the bands used fails; falls with the width."""

    def ranks(self, sample: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the ranks (S,) below and above the quantile function of a sample on each cell.

        Ranks 1 to n are order statistics, 0 and n + 1 the ends of the support.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class BandLimit:
    """The root mean square of the largest gap between the bands."""

    method: str
    assumption: str
    estimate: float
    bands: Bands
    values: tuple[np.ndarray, ...]
    """One or two ndarrays (N, n + 2): the support's lower end, the sorted sample, the upper end."""
    partners: np.ndarray
    """ndarray (N, S): a known side's mean in each cell; no columns if both sides are samples."""
    spread: np.ndarray
    """ndarray (N,): weighted sum of a known side's variances within its cells, or zeros."""
    weights: np.ndarray
    """ndarray (S,): share of the trimmed range in each used cell."""

    def upper(self, level: float) -> float:
        wanted, widths = level_on_grid(level), range(self.bands.widest)
        return self._limit(bisect_left(widths, wanted, key=self._level))

    def probability(self, bound: float) -> float:
        if self._limit(self.bands.widest) <= bound:
            return 1.0
        width = bisect_right(range(self.bands.widest), bound, key=self._limit) - 1
        return 0.0 if width < 0 else self._level(width)

    def _level(self, width: int) -> float:
        """Return the level at which the bands of this width hold."""
        return level_below(1.0 - self.bands.failing(width))

    def _limit(self, width: int) -> float:
        """Return the limit from the bands of this width."""
        low, high = self._band(0, width)
        known = (self.partners, self.partners)
        fixed_low, fixed_high = self._band(1, width) if len(self.values) > 1 else known
        gap = np.maximum(high - fixed_low, fixed_high - low)
        # A known quantile function differs from its cell means by the spread (Minkowski).
        norms = np.sqrt(np.sum(gap * gap * self.weights, axis=-1)) + np.sqrt(self.spread)
        return max(self.estimate, math.sqrt(float(np.mean(norms * norms))))

    def _band(self, sample: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        below, above = self.bands.ranks(sample, width)
        return self.values[sample][:, below], self.values[sample][:, above]


def limit_from_bands(
    comparison: Comparison,
    support: Support,
    bands: Callable[[Use], Bands],
    *,
    method: str,
    assumption: str,
) -> BandLimit:
    """Limit the distance by bands.

    Two samples use both sides of both bands, a known target both sides of one, a known constant at
    an end of the support only the side away from it; every direction uses bands of its own.
    """
    moving = to_numpy(comparison.moving.sorted)
    directions, n = moving.shape
    low, high = ends = ends_of(support, directions)
    refine = max(4, -(-CELLS // n))
    cells = Cells(count=n * refine, trim=comparison.trim)
    samples, below, above = [moving], True, True
    if comparison.fixed is None:
        side = comparison.side(comparison.trim)
        partners, spread = to_numpy(side.partners)[:, cells.used // refine], to_numpy(side.spread)
        if np.all(spread == 0.0):
            below, above = bool(np.any(partners != low)), bool(np.any(partners != high))
    else:
        samples.append(to_numpy(comparison.fixed.sorted))
        partners, spread = np.empty((directions, 0)), np.zeros(directions)
    sizes = tuple(sample.shape[1] for sample in samples)
    use = Use(sizes=sizes, directions=directions, cells=cells, below=below, above=above)
    return BandLimit(
        method=method,
        assumption=assumption,
        estimate=comparison.distance,
        bands=bands(use),
        values=tuple(_between(sample, ends) for sample in samples),
        partners=partners,
        spread=spread,
        weights=cells.weights[cells.used],
    )


def assumption_of(support: Support) -> str:
    """Return what bands assume, in one sentence.

    Examples
    --------
    >>> assumption_of((0.0, 1.0))
    'Rows are independent draws, and no value can leave [0, 1]; holds for every number of rows.'
    """
    inside = ""
    if support is not None:
        low, high = (np.ravel(np.asarray(end, dtype=np.float64)) for end in support)
        one = low.size == 1 and high.size == 1
        ends = f"[{low[0]:.4g}, {high[0]:.4g}]" if one else "the support of its direction"
        inside = f", and no value can leave {ends}"
    return f"Rows are independent draws{inside}; holds for every number of rows."


def ends_of(support: Support, directions: int) -> tuple[np.ndarray, np.ndarray]:
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


def _between(values_sorted: np.ndarray, ends: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Put a sorted sample (N, n) between the ends of its support, refusing values outside."""
    low, high = ends
    first, last = values_sorted[:, :1], values_sorted[:, -1:]
    # Outputs may pass an end by their rounding, those in single precision too.
    known = (np.where(np.isfinite(end), end, 0.0) for end in (low, high, first, last))
    slack = 1e-6 * np.max([np.abs(end) for end in known], axis=0)
    if np.any(first < low - slack) or np.any(last > high + slack):
        expected, received = "every value inside it", f"values from {first.min()} to {last.max()}"
        fix = "widen the support to all values that can occur"
        raise InvalidInput("support", expected=expected, received=received, fix=fix)
    low, high = np.minimum(low, first), np.maximum(high, last)
    return np.concatenate([low, values_sorted, high], axis=-1)
