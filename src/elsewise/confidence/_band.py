"""Bands of equal local level, with the exact probability that they hold where they are used.

The F-value of the i-th of n order statistics is Beta(i, n - i + 1). A band that gives each of them
the same tail (the exact Berk-Jones band) is narrow near 0 and 1, where the DKW band wastes most of
its width, at the price of a little more in the middle. The trimmed ends need no band at all: what
would be spent on them is saved.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import betaincinv

from elsewise.confidence._comparison import Comparison
from elsewise.confidence._crossing import crossing_probability
from elsewise.confidence._limit import UpperLimit
from elsewise.confidence._quantiles import Support, Use, assumption_of, limit_from_bands

# Tails are halved in so many steps: the one chosen is within 2.2 % of the largest that holds.
STEPS = 32

# Past so many halvings the band is the support: the crossing probability of a smaller tail would
# come near its rounding errors.
HALVINGS = 30

# Added to crossing probabilities, far above their rounding errors.
ROUNDING = 1e-10

# At most so many order statistics carry a band; of more rows, every second, third, ... one.
RANKS = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class _LocalBands:
    """Bands of equal local level; at width w each tail has probability 2^(-1 - w / STEPS)."""

    use: Use

    @property
    def widest(self) -> int:
        return STEPS * HALVINGS

    def failing(self, width: int) -> float:
        crossings = (_crossing(self.use, n, width) + ROUNDING for n in self.use.sizes)
        return self.use.directions * sum(crossings)

    def ranks(self, sample: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        return _ranks(self.use, self.use.sizes[sample], width)


def _ranks(use: Use, n: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ranks (S,) of a sample of size n between which its quantile function lies."""
    starts, ends = use.cells.starts, use.cells.ends
    below, above = np.zeros(starts.size, dtype=np.int64), np.full(ends.size, n + 1)
    if width == STEPS * HALVINGS:
        return below, above
    stride = -(-n // RANKS)
    ranks, tail = np.arange(stride, n + 1, stride), 2.0 ** (-1.0 - width / STEPS)
    if use.below:
        # Q(u) >= x_(i) from the upper end h_i of the i-th interval on.
        upper = 1.0 - betaincinv(n - ranks + 1, ranks, tail)
        below = np.insert(ranks, 0, 0)[np.searchsorted(upper, starts, side="right")]
    if use.above:
        # Q(u) <= x_(i) up to the lower end l_i of the i-th interval.
        lower = betaincinv(ranks, n - ranks + 1, tail)
        above = np.append(ranks, n + 1)[np.searchsorted(lower, ends)]
    return below, above


@lru_cache(maxsize=4096)
def _crossing(use: Use, n: int, width: int) -> float:
    """Return how often the band of a sample of size n fails; kept, as no value of it enters.

    On a cell that ends at u the band holds if U_(above) >= u: of the cells that share a rank, the
    last one decides. A wider band takes higher ranks, so that it fails less often.
    """
    starts, ends = use.cells.starts, use.cells.ends
    below, above = _ranks(use, n, width)
    # One place more at either end takes the ranks 0 and n + 1, which never fail.
    lower, upper = np.zeros(n + 2), np.ones(n + 2)
    np.maximum.at(lower, above, ends)
    np.minimum.at(upper, below, starts)
    return crossing_probability(lower[1:-1], upper[1:-1])


def band_limit(comparison: Comparison, support: Support = None) -> UpperLimit:
    """Limit the distance by bands of equal local level, for every number of rows.

    The probability that the bands hold is exact, over those order statistics only that the trimmed
    range uses. Two samples share the error, N directions share it again
    (Bonferroni), and a known constant at an end of the support needs one side of the band only.

    The set-up for a sample size, trim and level is kept for later calls: under a second at 2000
    rows. Above 2048 rows only every second, third, ... order statistic carries the band, which
    stays exact and gets slightly wider.

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
    >>> comparison = Comparison.paired(x**2, x, 0.1)
    >>> round(band_limit(comparison, (0.0, 1.0)).upper(0.95), 2)
    0.4
    """
    return limit_from_bands(
        comparison,
        support,
        lambda use: _LocalBands(use=use),
        method="equal-local-level band",
        assumption=assumption_of(support),
    )
