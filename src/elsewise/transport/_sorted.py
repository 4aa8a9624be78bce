"""Distances between populations whose projections are sorted, with gradients.

The paper's eq. (4), y-quantile: in one dimension the squared distance is the integral over levels q
of the squared difference of the quantile functions. Its trimmed form divides the integral over
[delta, 1 - delta] by 1 - 2 delta, as in eqs. (6) and (8).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from elsewise._arrays import (
    Array,
    asarray_like,
    cached_asarray_like,
    double_sums,
    index_range,
    namespace,
    on_device,
    take,
    unsort,
)
from elsewise._resources import parallel
from elsewise.transport._directions import direction_parts, lift, part_size, project, row_tiles
from elsewise.transport._ranking import Ranked, rank

# Rows of a gradient added to at once, so that they stay in the cache.
GRADIENT_ROWS = 1 << 15


class Segments(NamedTuple):
    """The pieces of [trim, 1 - trim] on which two step quantile functions are both constant."""

    x: np.ndarray
    """ndarray (S,): rank in the first sample."""
    y: np.ndarray
    """ndarray (S,): rank in the second sample."""
    weights: np.ndarray
    """ndarray (S,): length of each piece divided by 1 - 2 trim; they sum to 1."""


@lru_cache(maxsize=64)
def segments(n: int, m: int, trim: float = 0.0) -> Segments:
    """Merge the quantile levels of samples of sizes n and m.

    Examples
    --------
    >>> segments(2, 3)
    Segments(x=array([0, 0, 1, 1]), y=array([0, 1, 1, 2]),
             weights=array([0.33333333, 0.16666667, 0.16666667, 0.33333333]))
    """
    common = math.gcd(n, m)
    # Levels i/n and j/m as integers over n*m/gcd, so that common levels merge exactly.
    levels = np.union1d(np.arange(n + 1) * (m // common), np.arange(m + 1) * (n // common))
    total = n * (m // common)
    # Twice the middle of each piece, as integers: its rank is a floor that no rounding can shift.
    middles = levels[:-1] + levels[1:]
    edges = np.clip(levels / total, trim, 1.0 - trim)
    weights = np.diff(edges) / (1.0 - 2.0 * trim)
    keep = weights > 0
    x = (middles[keep] * n) // (2 * total)
    y = (middles[keep] * m) // (2 * total)
    pieces = Segments(x, y, weights[keep])
    # Cached, and so shared by all callers.
    for array in pieces:
        array.flags.writeable = False
    return pieces


@dataclass(frozen=True, slots=True)
class Reference:
    """The fixed side of a distance, as n moving rows of equal weight see it.

    It turns the paper's eq. (4), an integral over levels, into a sum over ranks, trimmed or not.
    Over the quantile cell of rank i the fixed side has a mean (the partner) and a variance;
    the variances only add a constant: ``W_k^2 = sum_i w_i (x_(i) - partner_ki)^2 + spread_k``.
    """

    partners: Array
    """Array (N, n): mean of the fixed quantile function over the cell of each rank."""
    weights: Array
    """Array (n,): share of the trimmed range in each cell; trimmed cells weigh 0."""
    spread: Array
    """Array (N,): the weighted sum of the cells' variances."""

    def like(self, array: Array) -> Reference:
        """Return the same side in the library, on the device and in the precision of ``array``."""
        parts = self.partners, self.weights, self.spread
        return Reference(*(asarray_like(part, array) for part in parts))


def reference(fixed_sorted: Array, n: int, trim: float = 0.0) -> Reference:
    """Prepare a sorted fixed sample for distances to samples of size n.

    Parameters
    ----------
    fixed_sorted
        Array (N, m), sorted along the last axis.
    n
        Size of the samples that will be compared with it.
    trim
        Share of mass left out at either end.

    Examples
    --------
    >>> reference(np.array([[0.0, 1.0, 5.0, 6.0]]), 2).partners
    array([[0.5, 5.5]])
    """
    xp = namespace(fixed_sorted)
    m = fixed_sorted.shape[-1]
    # Rank i meets rank i alone: one value in each cell, and no variance within it.
    if n == m:
        weights, spread = cell_weights(n, trim, fixed_sorted), xp.zeros_like(fixed_sorted[:, 0])
        return Reference(fixed_sorted, weights, spread)
    pieces = segments(n, m, trim)
    cell = np.bincount(pieces.x, pieces.weights, minlength=n)
    weights = asarray_like(cell, fixed_sorted)
    # Means over the pieces of a cell are differences of a cumulative sum at the cell's ends.
    ends = np.searchsorted(pieces.x, np.arange(n), side="right")
    starts = np.searchsorted(pieces.x, np.arange(n), side="left")
    safe = asarray_like(np.where(cell > 0, cell, 1.0), fixed_sorted)
    w = asarray_like(pieces.weights, fixed_sorted)
    y = take(fixed_sorted, asarray_like(pieces.y, fixed_sorted), axis=-1)

    def cell_sums(values: Array) -> Array:
        running = xp.cumulative_sum(values, axis=-1, include_initial=True)
        upper = take(running, asarray_like(ends, fixed_sorted), axis=-1)
        return upper - take(running, asarray_like(starts, fixed_sorted), axis=-1)

    # Centring first keeps the differences of cumulative sums accurate.
    centre = xp.mean(fixed_sorted, axis=-1, keepdims=True)
    partners = cell_sums(w * (y - centre)) / safe + centre
    residuals = y - take(partners, asarray_like(pieces.x, fixed_sorted), axis=-1)
    return Reference(partners, weights, xp.sum(w * residuals * residuals, axis=-1))


def cell_weights(n: int, trim: float, like: Array) -> Array:
    """Share (n,) of the trimmed range in each of n quantile cells, made where ``like`` is.

    Examples
    --------
    >>> cell_weights(4, 0.25, np.ones(1))
    array([0. , 0.5, 0.5, 0. ])
    """
    return cached_asarray_like(like, _cells, n, trim)[0]


def _cells(n: int, trim: float) -> tuple[np.ndarray]:
    """Lengths (n,) of the cells between multiples of 1/n that are inside the trim."""
    edges = np.clip(np.arange(n + 1) / n, trim, 1.0 - trim)
    weights: np.ndarray = np.diff(edges) / (1.0 - 2.0 * trim)
    weights.flags.writeable = False
    return (weights,)


def sorted_squared_distances(moving_sorted: Array, fixed: Reference) -> Array:
    """Squared distances (N,), eq. (4), of sorted rows (N, n) to a prepared side, in float64."""
    xp = namespace(moving_sorted, fixed.partners)
    gap = moving_sorted - fixed.partners
    squares = gap * gap
    if gap.dtype == xp.float64:
        return xp.matmul(squares, fixed.weights) + fixed.spread
    # Sums over many rows need more digits than the rows themselves.
    squares *= fixed.weights
    return double_sums(squares) + fixed.spread


def sliced_squared_distance(x: Array, y: Array, directions: Array, trim: float = 0.0) -> float:
    """Squared sliced 2-Wasserstein distance, the mean over the given directions.

    The paper's eq. (2), eot, with the integral over the sphere replaced by that mean.

    Parameters
    ----------
    x, y
        Arrays (n, d) and (m, d), rows of equal weight.
    directions
        Array (d, N) of unit columns.
    trim
        Share of mass left out at either end of every projection.

    Examples
    --------
    >>> x = np.arange(6.0).reshape(3, 2)
    >>> sliced_squared_distance(x, x + [0.0, 2.0], np.eye(2))
    2.0
    """
    xp = namespace(x, y)

    def value(part: Array) -> float:
        fixed = reference(xp.sort(project(y, part), axis=-1, stable=False), x.shape[0], trim)
        moving = xp.sort(project(x, part), axis=-1, stable=False)
        return float(xp.sum(sorted_squared_distances(moving, fixed)))

    parts = direction_parts(directions, max(x.shape[0], y.shape[0]))
    return sum(parallel(value, parts)) / int(directions.shape[-1])


def sliced_squared_distance_and_gradient(
    x: Array, y: Array, directions: Array, trim: float = 0.0
) -> tuple[float, Array]:
    """Squared sliced distance and its gradient with respect to the rows of x, in closed form.

    The gradient of the paper's eq. (12), Q_mu, at its optimal plans: by the envelope theorem the
    plans count as constants, so that each row is pulled to its partners along each direction.

    Returns
    -------
    tuple of float and Array (n, d)
        The gradient is the Euclidean one; Otto's is n times as large.

    Examples
    --------
    >>> x = np.array([[0.0], [1.0]])
    >>> sliced_squared_distance_and_gradient(x, x + 3.0, np.eye(1))
    (9.0, array([[-3.],
           [-3.]]))
    """
    xp = namespace(x, y)

    def value_and_pulls(part: Array) -> tuple[float, Array, Array]:
        fixed = reference(xp.sort(project(y, part), axis=-1, stable=False), x.shape[0], trim)
        gap, order = rank(project(x, part))
        gap -= fixed.partners
        pull = gap * fixed.weights
        value = _sum_of_products(pull, gap) + float(xp.sum(fixed.spread))
        return value, unsort(pull, order), part

    total, gradient = 0.0, xp.zeros_like(x)
    parts = direction_parts(directions, max(x.shape[0], y.shape[0]))
    # A few rows at a time: an array as large as the gradient would be new memory for every part.
    tiles = row_tiles(x.shape[0], x.shape[0] if on_device(x) else GRADIENT_ROWS)
    for value, pulls, part in parallel(value_and_pulls, parts):
        total += value
        for rows in tiles:
            gradient[rows, :] += lift(pulls[:, rows], part)
    count = int(directions.shape[-1])
    return total / count, gradient * (2.0 / count)


def _sum_of_products(a: Array, b: Array) -> float:
    """Sum of a * b over all entries, in float64."""
    xp = namespace(a, b)
    if a.dtype == xp.float64:
        return float(xp.sum(xp.vecdot(a, b)))
    return float(xp.sum(double_sums(a * b)))


def potentials(own_sorted: Array, other_sorted: Array, trim: float = 0.0) -> Array:
    """Integrate the derivative of the squared distance along sorted values (N, n); 0 at the first.

    Moving mass across the jump of ``own`` at a quantile level changes the squared distance by
    ``(own+ - own-) * (own+ + own- - other+ - other-)``, the signs meaning just above and below.
    Untrimmed, ``f = potentials(x, y)`` and ``g = potentials(y, x)`` are optimal dual potentials:
    ``f_i + g_j + (x_0 - y_0)^2 <= (x_i - y_j)^2``, with equality for every pair of the plan.

    Parameters
    ----------
    own_sorted, other_sorted
        Arrays (N, n) and (N, m), sorted along the last axis.
    trim
        Share of mass left out at either end.

    Examples
    --------
    >>> x = np.array([[0.0, 1.0, 3.0]])
    >>> potentials(x, x + 1.0), potentials(x + 1.0, x)
    (array([[ 0., -2., -6.]]), array([[0., 2., 6.]]))
    """
    xp = namespace(own_sorted, other_sorted)
    n, m = own_sorted.shape[-1], other_sorted.shape[-1]
    if n == m:
        below, above = other_sorted[:, :-1], other_sorted[:, 1:]
    else:
        jumps = index_range(n, own_sorted)[1:]
        below = take(other_sorted, (jumps * m + n - 1) // n - 1, axis=-1)
        above = take(other_sorted, jumps * m // n, axis=-1)
    (scale,) = cached_asarray_like(own_sorted, _jump_weights, n, trim)
    low, high = own_sorted[:, :-1], own_sorted[:, 1:]
    # A jump between ranks i and i + 1 lies at level i / n: the other side is read just below and
    # just above that level, and where neither has a jump, below and above are the same value.
    steps = (high - low) * (high + low - below - above) * scale
    return xp.cumulative_sum(steps, axis=-1, include_initial=True)


def _jump_weights(n: int, trim: float) -> tuple[np.ndarray]:
    """Weights (n - 1,) of the jumps between n ranks: none outside the trim."""
    levels = np.arange(1, n) / n
    # The tolerance counts a jump at the trim itself, whatever the rounding of its level.
    return ((np.abs(levels - 0.5) <= 0.5 - trim + 1e-12) / (1.0 - 2.0 * trim),)


def squares_and_influence(
    moving: Ranked, fixed: Ranked | Array, side: Reference, trim: float
) -> tuple[Array, Array, Array | None]:
    """Squared distances, and how their mean answers to the weight of each row.

    Parameters
    ----------
    moving
        Projections (N, n), ranked.
    fixed
        The other sample (N, m), ranked, or the untrimmed cells (N, n) of a known distribution.
    side
        The fixed side prepared with this trim.
    trim
        Share of mass left out at either end.

    Returns
    -------
    tuple of Array (N,), Array (n,) and Array (m,) or None
        Squared distances; the influence of each moving row on their mean, that is, n times the
        derivative with respect to its weight, centred; the same for the rows of the other sample.

    Examples
    --------
    >>> x, y = rank(np.array([[0.0, 1.0]])), rank(np.array([[1.0, 4.0]]))
    >>> squares_and_influence(x, y, reference(y.sorted, 2), 0.0)
    (array([5.]), array([ 2., -2.]), array([-6.,  6.]))
    """
    other = fixed.sorted if isinstance(fixed, Ranked) else fixed
    squares = sorted_squared_distances(moving.sorted, side)
    own = _mean_potentials(moving, other, trim)
    if not isinstance(fixed, Ranked):
        return squares, own, None
    return squares, own, _mean_potentials(fixed, moving.sorted, trim)


def _mean_potentials(own: Ranked, other_sorted: Array, trim: float) -> Array:
    """Potentials (n,) in row order, averaged over directions, centred."""
    xp = namespace(own.sorted, other_sorted)
    count, n = own.sorted.shape

    def part(some: slice) -> Array:
        values = potentials(own.sorted[some, :], other_sorted[some, :], trim)
        return xp.sum(unsort(values, own.order[some, :]), axis=0)

    tiles = row_tiles(count, max(1, part_size(own.sorted) // n))
    total = sum(parallel(part, tiles)) / count
    # Potentials are known up to a constant. Weights of rows sum to 1, so that only what is left
    # after taking away the mean says how the distance answers to them.
    return total - xp.mean(total)
