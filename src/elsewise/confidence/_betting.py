"""A limit of a mean by betting, and of a distance by the mean cost of a coupling.

Moving row i from x'_i to x_i is one plan between the two populations, so its mean cost bounds the
squared distance, trimmed or not. The costs are bounded numbers, and a gambler who bets against
"their mean is m" at fair odds multiplies the stake by 1/a with probability a at most: a mean that
made the gambler that rich is rejected, at every number of rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from elsewise._arrays import Array, namespace, to_numpy
from elsewise.confidence._comparison import Comparison
from elsewise.confidence._limit import UpperLimit, checked_level, smallest_meeting
from elsewise.errors import InvalidInput

# Share of the capital at risk in one bet; below 1, so that no single row ruins the gambler.
LARGEST_STAKE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Bets:
    """Bets, placed one after the other, that the mean of numbers in [0, 1] is below a given one."""

    values: np.ndarray
    """ndarray (n,): the numbers, in the order of the bets."""
    stakes: np.ndarray
    """ndarray (n,): share of the capital at risk; each depends on earlier numbers only."""

    def level(self, mean: float) -> float:
        """Return the level at which the true mean is below ``mean``.

        Never falls as ``mean`` rises, in floating point too: every step of it is monotone.
        """
        if mean >= 1.0:
            return 1.0
        # inf is fine: the hypothesis is rejected at every level.
        with np.errstate(over="ignore"):
            capital = np.cumprod(1.0 - self.stakes * (self.values - mean))
        # Ville's inequality: a stake in a fair game is ever multiplied by a with probability 1 / a
        # at most. So the largest capital on the way counts, not only the last; below 1 it proves
        # nothing.
        return 1.0 - 1.0 / max(1.0, float(np.max(capital)))


def place_bets(values: np.ndarray, level: float, rng: np.random.Generator) -> Bets:
    """Bet on numbers (n,) in [0, 1] in random order, for the best limit of their mean at a level.

    The stakes are the "predictable plug-in" ones: ``sqrt(2 log(1 / (1 - level)) / (n v))``, v the
    variance of the numbers so far [1]_. They serve every other level as well.

    References
    ----------
    .. [1] I. Waudby-Smith and A. Ramdas, "Estimating means of bounded random variables by
       betting", Journal of the Royal Statistical Society B 86, 2024.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> bets = place_bets(rng.uniform(size=1000), 0.95, rng)
    >>> bool(bets.level(0.49) < 0.5 < 0.99 < bets.level(0.56))
    True
    """
    # Any order fixed beforehand is valid, but a file may be sorted, and then the variance seen so
    # far says nothing of the next numbers and the stakes are poor.
    values = rng.permutation(values)
    n, counts = values.size, np.arange(1, values.size + 1)
    # One made-up number of mean 1/2 and variance 1/4 starts both estimates, so that they exist from
    # the first bet on and early stakes are small.
    means = (0.5 + np.cumsum(values)) / (counts + 1)
    variances = (0.25 + np.cumsum((values - means) ** 2)) / (counts + 1)
    # A stake may only use what came before its number, or the bet would not be fair; 0.25 is the
    # largest variance of numbers in [0, 1].
    known = np.concatenate([[0.25], variances[:-1]])
    stakes = np.sqrt(-2.0 * math.log1p(-checked_level(level)) / (n * known))
    return Bets(values=values, stakes=np.minimum(stakes, LARGEST_STAKE))


@dataclass(frozen=True, slots=True, kw_only=True)
class _CouplingLimit(UpperLimit):
    """The smallest distance whose square the mean cost of the coupling is proven to stay under."""

    method: str = "coupling + betting"
    bets: Bets
    cap: float
    """Largest possible cost of a row."""
    trim: float

    def upper(self, level: float) -> float:
        wanted = checked_level(level)
        met = smallest_meeting(lambda bound: self._level(bound) >= wanted, self._largest)
        return max(self.estimate, met)

    def probability(self, bound: float) -> float:
        return self._level(bound) if bound >= self.estimate else 0.0

    @property
    def _largest(self) -> float:
        return math.sqrt(self.cap / (1.0 - 2.0 * self.trim))

    def _level(self, bound: float) -> float:
        if bound >= self._largest:
            return 1.0
        # The trimmed square is a part of an integral divided by 1 - 2 trim, the mean cost bounds
        # the whole integral: so distance^2 <= mean cost / (1 - 2 trim).
        return self.bets.level((1.0 - 2.0 * self.trim) * bound * bound / self.cap)


def coupling_limit(
    comparison: Comparison, cap: float, level: float, rng: np.random.Generator
) -> UpperLimit:
    """Limit the distance by the mean cost of moving each row to where it went, for every n.

    The cost of row i is ``mean_k (theta_k . (x_i - x'_i))^2``. For a known constant target it is
    the squared gap to the constant, whose mean is the squared distance itself where nothing is
    trimmed. On complete blocks of directions the cost is the same for every block, so the limit
    holds for the whole sphere. Rows that all stay where they are give a positive limit.

    Parameters
    ----------
    comparison
        Paired rows, or a known constant. Arrays of any library; the work is done in NumPy.
    cap
        Largest cost a row of the population can have, known before the rows are looked at: see
        `move_cap` and `support_cap`.
    level
        The level at which the limit is to be tightest; it holds at every other one too.
    rng
        Decides the order of the bets.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(1, 100))
    >>> limit = coupling_limit(Comparison.paired(x + 0.5 * (x > 0), x, 0.05), 1.0, 0.95, rng)
    >>> round(limit.estimate, 2), round(limit.upper(0.95), 2)
    (0.37, 0.43)
    """
    costs = row_costs(comparison)
    if costs is None:
        expected, received = "paired rows or a known constant", "rows without partners"
        raise InvalidInput("comparison", expected=expected, received=received, fix="use band_limit")
    # Costs may pass the cap by their rounding, those in single precision too.
    if not (0.0 < cap < math.inf and np.all(costs <= cap * (1.0 + 1e-6))):
        expected = f"a finite number, at least the largest cost of a row, {np.max(costs):.6g}"
        fix = "widen the ranges or support it comes from to all that can occur"
        raise InvalidInput("cap", expected=expected, received=cap, fix=fix)
    return _CouplingLimit(
        assumption=(
            "Rows are independent draws, and ranges or support let none of them be farther from "
            f"its partner than {math.sqrt(cap):.4g} (root mean square over directions); holds "
            "for every number of rows."
        ),
        estimate=comparison.distance,
        bets=place_bets(np.minimum(costs / cap, 1.0), level, rng),
        cap=cap,
        trim=comparison.trim,
    )


def move_cap(directions: Array, squared_move: float) -> float:
    """Return the largest cost of a move of at most this squared length, on directions (d, N).

    On complete blocks of directions it is ``squared_move / d``.

    Examples
    --------
    >>> move_cap(np.eye(4), 2.0)
    0.5
    """
    theta = directions if sparse.issparse(directions) else to_numpy(directions)
    # sum_k (theta_k . v)^2 = v' (theta theta') v, which is at most the largest eigenvalue times
    # |v|^2.
    product = theta @ theta.T
    if sparse.issparse(product):  # its row sums, which are 1, bound the largest eigenvalue
        largest = float(abs(product).sum(axis=1).max())
    else:
        largest = float(np.linalg.eigvalsh(product)[-1])
    return squared_move * largest / int(theta.shape[1])


def support_cap(comparison: Comparison, support: tuple[Array | float, Array | float]) -> float:
    """Return the largest cost of a row whose values stay in a support, numbers or arrays (N,).

    Examples
    --------
    >>> x = np.array([[0.2, 0.9, 0.4]])
    >>> support_cap(Comparison.paired(x, x, 0.0), (-1.0, 1.0))
    4.0
    """
    low, high = (np.asarray(end, dtype=np.float64) for end in support)
    gap = high - low
    if comparison.fixed is None:
        # From inside the range the farthest value is at its farther end, not the whole range away.
        constant = to_numpy(comparison.partners)[:, 0]
        gap = np.maximum(constant - low, high - constant)
    return float(np.mean(gap * gap))


def row_costs(comparison: Comparison) -> np.ndarray | None:
    """Return the mean cost over directions (n,) of moving each row to its partner, if it has one.

    Rows have partners where they are paired, or compared with a known constant.
    """
    partners = comparison.partners
    if partners is None:
        return None
    gap = comparison.moving.rows - partners
    return to_numpy(namespace(gap).mean(gap * gap, axis=0))
