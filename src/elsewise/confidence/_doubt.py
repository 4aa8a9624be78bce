"""Where an asymptotic limit is not to be trusted, and how it says so."""

from __future__ import annotations

from elsewise._arrays import namespace
from elsewise.confidence._comparison import Comparison
from elsewise.confidence._limit import UpperLimit

# With fewer rows than this and nothing trimmed, the limit is a finite-sample one.
FEW_ROWS = 100
# From so many rows, of either sample, on the default limit was found to hold.
FEWEST_ROWS = 50
# With fewer rows than this clearly away from where they were, the default is not trusted.
FEW_MOVERS = 10
# Rows nearer to their partner than this, in root mean square spreads, only count as nudged.
NUDGE = 0.05
# Rows nearer to their partner than this, relative to the largest value, are where it is.
ROUNDING = 1e-6
# Trimmed less than this, it does not hold with tails heavier than exponential ones (kurtosis).
ENOUGH_TRIM, HEAVY_TAILS = 0.05, 9.0
REMEDY = (
    "more rows help (or values of the target, or sample(values, exact=True)), a trim of 0.05 or "
    "more against heavy tails, and method='finite-sample' holds for every number of rows where the "
    "range of the outputs is known (support)"
)


def notice_of(limit: UpperLimit) -> str:
    """Return why a limit may be too small, and what would help; nothing if there is no reason.

    Examples
    --------
    >>> import numpy as np
    >>> from elsewise.confidence import certificate_limit
    >>> x = np.random.default_rng(0).standard_normal((1, 30))
    >>> limit = certificate_limit(
    ...     Comparison.paired(x + x**2, x, 0.05), 199, np.random.default_rng(0)
    ... )
    >>> notice_of(limit).partition(":")[0]
    'the limit may be too small, because there are only 30 rows'
    """
    return limit.doubt and f"the limit may be too small, because {limit.doubt}: {REMEDY}"


def is_small(comparison: Comparison) -> bool:
    """Whether nothing is trimmed and a sample is too small for that."""
    return comparison.trim == 0.0 and min(comparison.sizes) < FEW_ROWS


def doubt_of(comparison: Comparison, *, known_range: bool = False) -> str:
    """Return why the default limit may be too small, though enough rows moved.

    Without a known range (a support, or a cap on the moves) a trim under 0.05 is always doubted:
    a sample does not show the tail that it missed.
    """
    fewest = min(comparison.sizes)
    which = f"{fewest} rows" if fewest == comparison.shape[1] else f"{fewest} values of the target"
    # Only one reason is told: the one that matters most is looked for first.
    if is_small(comparison):
        return f"nothing is trimmed and there are only {which}"
    if fewest < FEWEST_ROWS:
        return f"there are only {which}"
    if comparison.trim >= ENOUGH_TRIM:
        return ""
    if not known_range:
        return "less than 5% is trimmed and the range of the values is not known"
    tails = _kurtosis(comparison)
    heavy = tails > HEAVY_TAILS
    return f"tails are heavy (kurtosis {tails:.2g}) and less than 5% is trimmed" if heavy else ""


def _kurtosis(comparison: Comparison) -> float:
    """Return the mean over directions of the larger kurtosis of both sides; 3 for normal ones."""
    found = []
    for side in comparison.samples:
        xp = namespace(side.sorted)
        squares = (side.sorted - xp.mean(side.sorted, axis=-1, keepdims=True)) ** 2
        second, fourth = xp.mean(squares, axis=-1), xp.mean(squares**2, axis=-1)
        # A direction in which nothing varies has no tails; 0 / 0 would be NaN and hide the others.
        flat = second == 0
        found.append(xp.mean(xp.where(flat, fourth, fourth / xp.where(flat, 1.0, second) ** 2)))
    return max(map(float, found))
