"""The paper's own limit: Dvoretzky-Kiefer-Wolfowitz bands around quantile functions.

Limits as in eqs. (6) and (8), from bands as in eq. (5) by the footnote to eq. (10).

The band of every sample holds with the stated probability at every sample size. The levels are the
corrected ones: the gap uses both sides of both bands, of every direction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from elsewise.confidence import Comparison, UpperLimit
from elsewise.confidence._band import BandLimit, Support


@dataclass(frozen=True, slots=True, kw_only=True)
class _DKWLimit(BandLimit):
    """Bands of constant radius; the width is the radius around the first sample, in cells."""

    method: str = "dkw"

    @property
    def widest(self) -> int:
        sizes = self.use.sizes
        return math.ceil(self.use.count * math.sqrt(max(sizes) / sizes[0]))

    def failing(self, width: int) -> float:
        one_sided = self.use.directions * (self.use.below + self.use.above)
        total = 0.0
        for sample, size in enumerate(self.use.sizes):
            cells = self._radius(sample, width)
            if cells < self.use.count:
                fails = math.exp(-2.0 * size * (cells / self.use.count) ** 2)
                # Massart's inequality holds for one-sided bands that fail at most half the time.
                total += one_sided * fails if fails <= 0.5 else math.inf
        return total

    def ranks(self, sample: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        # With radius r, F(x_(i)) >= i/n - r gives Q(u) <= x_(i) from i = n (u + r) on, and
        # F(x) <= (i-1)/n + r below x_(i) gives Q(u) >= x_(i) up to i - 1 = n (u - r).
        n, use, radius = self.use.sizes[sample], self.use, self._radius(sample, width)
        below = np.maximum(n * (use.cells.used - radius) // use.count + 1, 0)
        above = np.minimum(-(-n * (use.cells.used + 1 + radius) // use.count), n + 1)
        return below, above

    def _radius(self, sample: int, width: int) -> int:
        """Return the radius of a sample's bands in cells: equally many fail for every sample."""
        sizes = self.use.sizes
        return math.ceil(width * math.sqrt(sizes[0] / sizes[sample]))


def dkw_limit(comparison: Comparison, support: Support = None) -> UpperLimit:
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
    return _DKWLimit.of(comparison, support)
