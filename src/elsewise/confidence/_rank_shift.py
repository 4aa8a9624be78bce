"""A limit for few movers: a share p of rows that moves shifts no quantile by more than p.

If at most a share p of a population changes, then ``Q(u - p) <= Q'(u) <= Q(u + p)`` in every
direction, wherever those rows go. The limit of p is Clopper-Pearson's, one for all directions, and
no cap on the moves is needed. What the other rows do, which hardly moved, is limited on its own:
the trimmed distance is a norm of quantile functions, so that both add up at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from elsewise._arrays import asarray_like, namespace, to_numpy
from elsewise.confidence._band import Support, ends_of
from elsewise.confidence._clt import clt_limit
from elsewise.confidence._comparison import Comparison
from elsewise.confidence._limit import ContinuousLimit, UpperLimit, best_of_two, share_above
from elsewise.transport import segments

# Share of the error that is spent on the rows that hardly moved.
REST = 0.125
# Of longer shifts, at most so many ways to share them between up and down are looked at.
SPLITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class RankShiftLimit(ContinuousLimit):
    """The largest distance that so many movers can make, plus a limit for the other rows."""

    method: str = "rank shift"
    assumption: str = (
        "Rows are independent draws, numerous enough for the sample's quantiles to stand for the "
        "population's; nothing is assumed of how far the few rows go that move."
    )
    movers: int
    rows: int
    squares: Callable[[int], float]
    """Largest squared distance when so many of the sample's ranks are passed."""
    rest: UpperLimit | None
    """Limit for the rows that hardly moved; None where they did not move at all."""

    def at(self, level: float) -> float:
        if level == 1.0:
            return math.inf
        if self.rest is None:
            return max(self.estimate, self._shifted(level))
        # Bonferroni between the number of movers and what the nudges add; the distances themselves
        # add up at most, by the triangle inequality.
        error = 1.0 - level
        nudged = self.rest.upper(1.0 - REST * error)
        return max(self.estimate, self._shifted(1.0 - (1.0 - REST) * error) + nudged)

    def _shifted(self, level: float) -> float:
        # A share of the population in ranks of the sample, which is rarely whole: interpolating
        # keeps the limit continuous in the level.
        passed = self.rows * share_above(self.movers, self.rows, level)
        whole = math.floor(passed)
        part, squared = passed - whole, self.squares(whole)
        if part > 0.0:
            squared = (1.0 - part) * squared + part * self.squares(whole + 1)
        return math.sqrt(squared)


def rank_shift_limit(
    comparison: Comparison, movers: np.ndarray, support: Support = None
) -> UpperLimit:
    """Limit the distance by how many ranks the rows that moved can pass.

    Of a share p that moves, some go up in a direction and the others down; the worst division is
    taken, direction by direction. Infinite where p reaches the trim, unless a support is known.

    Parameters
    ----------
    comparison
        Paired rows, or a known constant.
    movers
        Bool ndarray (n,): the rows that count as moved; the others may have moved a little.
    support
        Lower and upper end of all values, numbers or arrays (N,).

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(1, 1000))
    >>> far = np.arange(1000) < 3
    >>> limit = rank_shift_limit(Comparison.paired(np.where(far, 9.0, x), x, 0.05), far)
    >>> round(limit.estimate, 3), round(limit.upper(0.95), 3)
    (0.008, 0.03)
    """
    moving, partners = comparison.moving.rows, comparison.partners
    xp = namespace(moving)
    # Far movers are put back to their partners: what is left is the move of all other rows.
    still = comparison.of(xp.where(asarray_like(movers, moving) > 0, partners, moving))
    hardly = float(xp.max(xp.abs(still.moving.rows - partners))) > 0.0
    low, high = ends_of(support, comparison.shape[0])
    # Ranks beyond the sample end at the support, which is infinite where it is not known.
    values = np.concatenate([low, to_numpy(still.moving.sorted), high], axis=-1)
    return RankShiftLimit(
        estimate=comparison.distance,
        movers=int(np.sum(movers)),
        rows=comparison.shape[1],
        squares=lru_cache(lambda passed: _largest_square(values, passed, comparison.trim)),
        rest=clt_limit(still) if hardly else None,
    )


def few_movers_limit(
    comparison: Comparison, far: np.ndarray, support: Support, level: float, safe: UpperLimit | None
) -> UpperLimit | None:
    """Return the best limit where few rows moved far, or ``safe``; None if there is no finite one.

    Whether ranks are counted is decided by the number of rows, the level and the trim alone.
    """
    # So large a share may move though no row of the sample did. If it reaches the trim, the ranks
    # passed leave the trimmed range and the limit is infinite: no error is spent on it. The level
    # is that of half the error, which is what `best_of_two` leaves to each.
    if share_above(0, comparison.shape[1], (1.0 + level) / 2.0) >= comparison.trim:
        return safe
    shifted = rank_shift_limit(comparison, far, support)
    if safe is not None:
        return best_of_two(safe, shifted)
    return shifted if shifted.upper(level) < math.inf else None


def _largest_square(values: np.ndarray, passed: int, trim: float) -> float:
    """Return the largest squared distance when so many ranks are passed, up and down together.

    ``values`` (N, n + 2) are sorted, between the ends of their support.
    """
    n = values.shape[1] - 2
    pieces = segments(n, n, trim)
    own = values[:, pieces.x + 1]
    # Up by a and down by the rest; of a range of a, the far end counts on either side.
    edges = np.unique(np.linspace(0, passed, min(passed, SPLITS) + 1).astype(np.int64))
    exact = passed <= SPLITS
    ways = zip(edges, edges, strict=True) if exact else zip(edges[1:], edges[:-1], strict=True)
    largest = np.zeros(len(values))
    for up, least in ways:
        down = passed - least
        above, below = np.minimum(pieces.x + up, n) + 1, np.maximum(pieces.x - down, -1) + 1
        gap = np.maximum(values[:, above] - own, own - values[:, below])
        gap *= gap
        largest = np.maximum(largest, gap @ pieces.weights)
    return float(np.mean(largest))
