"""Bands of equal local level around quantile functions, and the limit of the distance they give.

A band says between which two order statistics the quantile function lies on each cell of [0, 1].
Where the bands of both sides hold, the largest gap between them bounds the gap of the quantile
functions, hence the distance.

The F-value of the i-th of n order statistics is Beta(i, n - i + 1). A band that gives each of them
the same tail (the exact Berk-Jones band) is narrow near 0 and 1, where the DKW band of eq. (5)
wastes most of its width, at the price of a little more in the middle. The trimmed ends need no band
at all: what would be spent on them is saved.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np
from scipy.special import betaincinv, gammaln, xlogy

from elsewise._arrays import Array, to_numpy
from elsewise.confidence._comparison import Comparison
from elsewise.confidence._limit import UpperLimit, level_below, level_on_grid
from elsewise.errors import InvalidInput

# The quantile range is cut into at least this many cells, and at least four a row.
CELLS = 4096

# Tails are halved in so many steps: the one chosen is within 2.2 % of the largest that holds.
STEPS = 32

# Past so many halvings the band is the support: the crossing probability of a smaller tail would
# come near its rounding errors.
HALVINGS = 30

# Added to crossing probabilities, far above their rounding errors.
ROUNDING = 1e-10

# At most so many order statistics carry a band; of more rows, every second, third, ... one.
RANKS = 2048

# Counts whose probability is under exp(-TAIL) are taken for crossings.
TAIL = 60.0

Support = tuple[Array | float, Array | float] | None
"""Lower and upper end of all values, numbers or arrays (N,); None where they are unknown."""


class Cells(NamedTuple):
    """Equal cells of [0, 1] inside the trim: the same at every level, so that limits rise in it."""

    used: np.ndarray
    """ndarray (S,): numbers of the cells that reach into the trimmed range."""
    starts: np.ndarray
    """ndarray (S,): where they start, inside the trimmed range."""
    ends: np.ndarray
    """ndarray (S,): where they end, inside the trimmed range."""
    weights: np.ndarray
    """ndarray (S,): share of the trimmed range in each."""


@lru_cache(maxsize=64)
def _cut(count: int, trim: float) -> Cells:
    edges = np.clip(np.arange(count + 1) / count, trim, 1.0 - trim)
    weights = np.diff(edges) / (1.0 - 2.0 * trim)
    used = np.flatnonzero(weights > 1e-12)
    return Cells(used, edges[used], edges[used + 1], weights[used])


@dataclass(frozen=True, slots=True)
class Use:
    """What of its bands a comparison uses."""

    sizes: tuple[int, ...]
    """Size of each sample: one, or two."""
    directions: int
    """Number of directions; each has bands of its own."""
    count: int
    """Number of equal cells of [0, 1]."""
    trim: float
    """Share left out at either end."""
    below: bool
    """Whether quantile functions have to be bounded from below."""
    above: bool
    """Whether quantile functions have to be bounded from above."""

    @property
    def cells(self) -> Cells:
        """Where the bands are compared."""
        return _cut(self.count, self.trim)


@dataclass(frozen=True, slots=True, kw_only=True)
class BandLimit(UpperLimit):
    """The root mean square of the largest gap between nested bands, numbered by their width.

    The paper's eqs. (6) to (9), with the gap squared as their proof has it, on the root scale.
    Another kind of band overrides `widest`, `failing` and `ranks`.
    """

    method: str = "equal-local-level band"
    use: Use
    values: tuple[np.ndarray, ...]
    """One or two ndarrays (N, n + 2): the support's lower end, the sorted sample, the upper end."""
    partners: np.ndarray
    """ndarray (N, S): a known side's mean in each cell; no columns if both sides are samples."""
    spread: np.ndarray
    """ndarray (N,): weighted sum of a known side's variances within its cells, or zeros."""

    @classmethod
    def of(cls, comparison: Comparison, support: Support) -> Self:
        """Return the limit of a comparison whose values stay in a support.

        Two samples use both sides of both bands, a known target both sides of one, a known constant
        at an end of the support only the side away from it; every direction uses bands of its own.
        """
        directions, n = comparison.shape
        low, high = ends = ends_of(support, directions)
        # A multiple of n, so that every cell lies within the quantile cell of one rank: a known
        # side is given rank by rank and has one value there.
        refine = max(4, -(-CELLS // n))
        count, trim = n * refine, comparison.trim
        below, above = True, True
        partners, spread = np.empty((directions, 0)), np.zeros(directions)
        if comparison.fixed is None:
            side = comparison.side(trim)
            spread = to_numpy(side.spread)
            partners = to_numpy(side.partners)[:, _cut(count, trim).used // refine]
            # A constant at an end of the support has all values on one side of it. The other half
            # of the band would spend error on nothing.
            if np.all(spread == 0.0):
                below, above = bool(np.any(partners != low)), bool(np.any(partners != high))
        return cls(
            assumption=_assumption(support),
            estimate=comparison.distance,
            use=Use(comparison.sizes, directions, count, trim, below, above),
            values=tuple(_between(to_numpy(side.sorted), ends) for side in comparison.samples),
            partners=partners,
            spread=spread,
        )

    @property
    def widest(self) -> int:
        """The last width, at which the bands are the support."""
        return STEPS * HALVINGS

    def failing(self, width: int) -> float:
        """Bound the probability that any of the bands used fails; falls with the width."""
        # Bonferroni, because projections of the same rows depend on each other in an unknown way.
        crossings = (_crossing(self.use, n, width) + ROUNDING for n in self.use.sizes)
        return self.use.directions * sum(crossings)

    def ranks(self, sample: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the ranks (S,) below and above the quantile function of a sample on each cell.

        Ranks 1 to n are order statistics, 0 and n + 1 the ends of the support.
        """
        return _ranks(self.use, self.use.sizes[sample], width)

    def upper(self, level: float) -> float:
        wanted, widths = level_on_grid(level), range(self.widest)
        return self._limit(bisect_left(widths, wanted, key=self._level))

    def probability(self, bound: float) -> float:
        # The widest band is the support: a bound that it meets is met for certain.
        if self._limit(self.widest) <= bound:
            return 1.0
        # Limits rise with the width: this is the widest band under the bound, so the largest level.
        width = bisect_right(range(self.widest), bound, key=self._limit) - 1
        return 0.0 if width < 0 else self._level(width)

    def _level(self, width: int) -> float:
        """Return the level at which the bands of this width hold."""
        return level_below(1.0 - self.failing(width))

    def _limit(self, width: int) -> float:
        """Return the limit from the bands of this width."""
        low, high = self._band(0, width)
        known = (self.partners, self.partners)
        fixed_low, fixed_high = self._band(1, width) if len(self.values) > 1 else known
        # D(u) of the paper's eqs. (7) and (9). It is squared below: eqs. (6) and (8) are printed
        # without the square that their proof takes.
        gap = np.maximum(high - fixed_low, fixed_high - low)
        # A known quantile function differs from its cell means by the spread (Minkowski).
        norms = np.sqrt(np.sum(gap * gap * self.use.cells.weights, axis=-1)) + np.sqrt(self.spread)
        return max(self.estimate, math.sqrt(float(np.mean(norms * norms))))

    def _band(self, sample: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        below, above = self.ranks(sample, width)
        return self.values[sample][:, below], self.values[sample][:, above]


def _ranks(use: Use, n: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ranks (S,) of a sample of size n between which its quantile function lies.

    At width w each tail has probability 2^(-1 - w / STEPS).
    """
    _, starts, ends, _ = use.cells
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
    """Return how often the band of a sample of size n fails; cached: it depends on sizes only.

    On a cell that ends at u the band holds if U_(above) >= u: of the cells that share a rank, the
    last one decides. A wider band takes higher ranks, so that it fails less often.
    """
    below, above = _ranks(use, n, width)
    # One place more at either end takes the ranks 0 and n + 1, which never fail.
    lower, upper = np.zeros(n + 2), np.ones(n + 2)
    np.maximum.at(lower, above, use.cells.ends)
    np.minimum.at(upper, below, use.cells.starts)
    return crossing_probability(lower[1:-1], upper[1:-1])


def band_limit(comparison: Comparison, support: Support = None) -> UpperLimit:
    """Limit the distance by bands of equal local level, for every number of rows.

    The probability that the bands hold is exact, over those order statistics only that the trimmed
    range uses. Two samples share the error, N directions share it again (Bonferroni), and a known
    constant at an end of the support needs one side of the band only.

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
    return BandLimit.of(comparison, support)


def _assumption(support: Support) -> str:
    """Return what bands assume, in one sentence.

    Examples
    --------
    >>> _assumption((0.0, 1.0))
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
    ends = (np.asarray(end, dtype=np.float64).reshape(-1, 1) for end in (lower, upper))
    low, high = (np.broadcast_to(end, (directions, 1)) for end in ends)
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
    # A value past an end by its rounding moves the end: the row has to stay sorted.
    low, high = np.minimum(low, first), np.maximum(high, last)
    return np.concatenate([low, values_sorted, high], axis=-1)


def crossing_probability(lower: np.ndarray, upper: np.ndarray) -> float:
    """Return the probability that some order statistic of n uniforms leaves its interval.

    The i-th smallest lies in [lower_i, upper_i] exactly if the count of values up to lower_i is
    below i and the count up to upper_i is at least i. The counts of a Poisson process of intensity
    n, given that all of it counts n, are those of the sample; they have independent increments, so
    the probability of keeping to all bounds is carried from one bound to the next by convolution
    [1]_. A count keeps within a few sqrt(n) of its mean, so all of it takes of the order of n^1.5
    operations.

    Parameters
    ----------
    lower, upper
        Non-decreasing ndarrays (n,); 0 and 1 leave an order statistic free.

    References
    ----------
    .. [1] A. Moscovich and B. Nadler, "Fast calculation of boundary crossing probabilities for
       Poisson processes", Statistics & Probability Letters 123, 2017.

    Examples
    --------
    >>> round(crossing_probability(np.array([0.2]), np.array([0.7])), 12)
    0.5
    >>> round(crossing_probability(np.array([0.0, 0.5]), np.array([1.0, 1.0])), 12)
    0.25
    """
    n = lower.size
    times, least, most = _bounds_of_the_count(lower, upper)
    means = n * np.diff(times, prepend=0.0)
    # Increments beyond these lengths count as crossings, which keeps the convolutions short and the
    # result on the safe side.
    lengths = np.ceil(means + _margin(means)).astype(np.int64)
    counts, log_factorials = np.arange(n + 1), gammaln(np.arange(1.0, n + 2))

    def poisson(mean: float, count: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(xlogy(count, mean) - mean - log_factorials[count]))

    # mass[j]: probability that the count is first + j and kept to all bounds so far.
    first, mass = 0, np.ones(1)
    for mean, length, fewest, largest in zip(means, lengths, least, most, strict=True):
        size = largest - first + 1
        mass = np.convolve(mass, poisson(mean, counts[: min(size, length)]))
        # What is cut off here has crossed a bound, and no later count can make up for it.
        mass, first = mass[fewest - first : size], fewest
        if mass.size == 0:
            return 1.0
    # Given that it counts n in all, a Poisson process is a sample of n uniforms: hence the
    # division.
    rest = n - n * (times[-1] if times.size else 0.0)
    kept = mass @ poisson(rest, n - first - counts[: mass.size])
    return float(np.clip(1.0 - kept / poisson(n, counts[n:])[0], 0.0, 1.0))


def _bounds_of_the_count(
    lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the times (T,) of the bounds, the fewest and the largest count allowed at each."""
    n = lower.size
    held_up, held_down = np.flatnonzero(lower > 0.0), np.flatnonzero(upper < 1.0)
    times = np.concatenate([lower[held_up], upper[held_down]])
    # X_(i) >= lower_i: at most i - 1 values lie below lower_i. X_(i) <= upper_i: at least i lie up
    # to upper_i. Ranks i start at 1, `held_up` and `held_down` at 0.
    least = np.concatenate([np.zeros_like(held_up), held_down + 1])
    most = np.concatenate([held_up, np.full_like(held_down, n)])
    order = np.argsort(times, kind="stable")
    times, least, most = times[order], least[order], most[order]
    # Counts never fall: a bound from below holds from then on, one from above up to then.
    least = np.maximum.accumulate(least)
    most = np.minimum.accumulate(most[::-1])[::-1]
    # Counts so far off are taken for crossings, which can only raise the probability returned.
    spread = _margin(n * times)
    least = np.maximum(least, np.floor(n * times - spread).astype(np.int64))
    most = np.minimum(most, np.ceil(n * times + spread).astype(np.int64))
    return times, least, most


def _margin(means: np.ndarray) -> np.ndarray:
    """Bound how far Poisson counts are from their means but for a probability of exp(-TAIL).

    By Bernstein, P(|count - mean| >= x) <= 2 exp(-x^2 / (2 mean + 2 x / 3)).
    """
    return TAIL / 3.0 + np.sqrt(TAIL**2 / 9.0 + 2.0 * TAIL * means)
