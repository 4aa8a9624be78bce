"""Optimal transport between populations, as sorting.

With equal weights the optimal plan in one dimension pairs order statistics, so a squared distance,
its gradient and its plan all come from one batched sort. Populations are arrays (n, d); projections
are stored as (N, n), one contiguous row per direction: the layout that sorts fastest.

Everything here is written on the array API standard and gives the same numbers in NumPy, torch and
array-api-strict.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy.sparse

from elsewise._arrays import Array, asarray_like, namespace, take_ranked, to_numpy, unsort

__all__ = [
    "MonotoneMaps",
    "Ranked",
    "Reference",
    "Segments",
    "coupling",
    "direction_blocks",
    "fit_monotone_maps",
    "project",
    "rank",
    "reference",
    "segments",
    "sliced_squared_distance",
    "sliced_squared_distance_and_gradient",
    "sorted_squared_distances",
]

PART = 1 << 20
"""Projections handled at once, so that they stay in the cache."""
MINIMUM_DIRECTIONS = 64
"""Directions are drawn in complete blocks until there are at least this many."""
TIE = 1e-9
"""Neighbouring values closer than this, relative to the largest, are ties."""


def direction_blocks(
    dimension: int, rng: np.random.Generator, minimum: int = MINIMUM_DIRECTIONS
) -> np.ndarray:
    """Draw complete orthonormal blocks of directions, uniform on the sphere.

    Complete blocks satisfy ``directions @ directions.T / N = I / d`` exactly: no null space in
    which rows could move unseen, and a far smaller variance than independent directions.

    Parameters
    ----------
    dimension
        d, the number of coordinates.
    rng
        Source of randomness.
    minimum
        The fewest directions wanted; N is the next multiple of d.

    Returns
    -------
    ndarray (d, N)

    Examples
    --------
    >>> theta = direction_blocks(3, np.random.default_rng(0))
    >>> theta.shape, bool(np.allclose(theta @ theta.T / 66, np.eye(3) / 3))
    ((3, 66), True)
    """
    blocks = -(-minimum // dimension) if dimension > 1 else 1
    gaussian = rng.standard_normal((blocks, dimension, dimension))
    q, r = np.linalg.qr(gaussian)
    # The sign of R's diagonal makes Q uniform on the orthogonal group.
    q = q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :]
    return np.ascontiguousarray(q.transpose(1, 0, 2).reshape(dimension, blocks * dimension))


def project(points: Array, directions: Array) -> Array:
    """Project points (n, d) on directions (d, N); returns (N, n), one contiguous row a direction.

    Examples
    --------
    >>> project(np.array([[1.0, 2.0], [3.0, 4.0]]), np.eye(2))
    array([[1., 3.],
           [2., 4.]])
    """
    xp = namespace(points, directions)
    return xp.matmul(xp.matrix_transpose(directions), xp.matrix_transpose(points))


class Ranked(NamedTuple):
    """Projections with their sort: done once, used by distances, plans and limits alike."""

    sorted: Array
    """Array (N, n), ascending along the last axis."""
    order: Array
    """int Array (N, n): the row at each rank."""

    @property
    def rows(self) -> Array:
        """The projections (N, n) in row order."""
        return unsort(self.sorted, self.order)


def rank(projections: Array) -> Ranked:
    """Sort projections (N, n), keeping which row is at which rank.

    Examples
    --------
    >>> rank(np.array([[3.0, 1.0, 2.0]])).order
    array([[1, 2, 0]])
    """
    xp = namespace(projections)
    order = xp.argsort(projections, axis=-1, stable=False)
    return Ranked(take_ranked(projections, order), order)


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
    middles = levels[:-1] + levels[1:]
    edges = np.clip(levels / total, trim, 1.0 - trim)
    weights = np.diff(edges) / (1.0 - 2.0 * trim)
    keep = weights > 0
    x = (middles[keep] * n) // (2 * total)
    y = (middles[keep] * m) // (2 * total)
    pieces = Segments(x, y, weights[keep])
    for array in pieces:
        array.flags.writeable = False
    return pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The fixed side of a distance, as n moving rows of equal weight see it.

    Over the quantile cell of rank i the fixed side has a mean (the partner) and a variance;
    the variances only add a constant: ``W_k^2 = sum_i w_i (x_(i) - partner_ki)^2 + spread_k``.
    """

    partners: Array
    """Array (N, n): mean of the fixed quantile function over the cell of each rank."""
    weights: Array
    """Array (n,): share of the trimmed range in each cell; trimmed cells weigh 0."""
    spread: Array
    """Array (N,): the weighted sum of the cells' variances."""


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
    pieces = segments(n, m, trim)
    cell = np.bincount(pieces.x, pieces.weights, minlength=n)
    weights = asarray_like(cell, fixed_sorted)
    if n == m:
        return Reference(
            partners=fixed_sorted, weights=weights, spread=xp.zeros_like(fixed_sorted[:, 0])
        )
    # Means over the pieces of a cell are differences of a cumulative sum at the cell's ends.
    ends = np.searchsorted(pieces.x, np.arange(n), side="right")
    starts = np.searchsorted(pieces.x, np.arange(n), side="left")
    safe = asarray_like(np.where(cell > 0, cell, 1.0), fixed_sorted)
    w = asarray_like(pieces.weights, fixed_sorted)
    y = xp.take(fixed_sorted, asarray_like(pieces.y, fixed_sorted), axis=-1)

    def cell_sums(values: Array) -> Array:
        running = xp.cumulative_sum(values, axis=-1, include_initial=True)
        upper = xp.take(running, asarray_like(ends, fixed_sorted), axis=-1)
        return upper - xp.take(running, asarray_like(starts, fixed_sorted), axis=-1)

    # Centring first keeps the differences of cumulative sums accurate.
    centre = xp.mean(fixed_sorted, axis=-1, keepdims=True)
    partners = cell_sums(w * (y - centre)) / safe + centre
    residuals = y - xp.take(partners, asarray_like(pieces.x, fixed_sorted), axis=-1)
    return Reference(
        partners=partners, weights=weights, spread=xp.sum(w * residuals * residuals, axis=-1)
    )


def sorted_squared_distances(moving_sorted: Array, fixed: Reference) -> Array:
    """Squared distances (N,) between sorted rows (N, n) and a prepared fixed side."""
    xp = namespace(moving_sorted, fixed.partners)
    gap = moving_sorted - fixed.partners
    return xp.matmul(gap * gap, fixed.weights) + fixed.spread


def sliced_squared_distance(x: Array, y: Array, directions: Array, trim: float = 0.0) -> float:
    """Squared sliced 2-Wasserstein distance, the mean over the given directions.

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
    xp = namespace(x, y, directions)
    total = 0.0
    for part in _parts(directions, max(x.shape[0], y.shape[0])):
        fixed = reference(xp.sort(project(y, part), axis=-1, stable=False), x.shape[0], trim)
        moving = xp.sort(project(x, part), axis=-1, stable=False)
        total += float(xp.sum(sorted_squared_distances(moving, fixed)))
    return total / int(directions.shape[-1])


def _parts(directions: Array, rows: int) -> list[Array]:
    """Split directions so that one part's projections fit in a cache, not only in memory."""
    count = directions.shape[-1]
    size = max(1, PART // rows)
    return [directions[:, k : min(k + size, count)] for k in range(0, count, size)]


def sliced_squared_distance_and_gradient(
    x: Array, y: Array, directions: Array, trim: float = 0.0
) -> tuple[float, Array]:
    """Squared sliced distance and its gradient with respect to the rows of x, in closed form.

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
    xp = namespace(x, y, directions)
    total, gradient = 0.0, xp.zeros_like(x)
    for part in _parts(directions, max(x.shape[0], y.shape[0])):
        fixed = reference(xp.sort(project(y, part), axis=-1, stable=False), x.shape[0], trim)
        moving, order = rank(project(x, part))
        gap = moving - fixed.partners
        pull = gap * fixed.weights
        total += float(xp.sum(pull * gap)) + float(xp.sum(fixed.spread))
        rows = unsort(pull, order)
        gradient += xp.matmul(xp.matrix_transpose(rows), xp.matrix_transpose(part))
    count = directions.shape[-1]
    return total / count, gradient * (2.0 / count)


@dataclass(frozen=True, slots=True, kw_only=True)
class MonotoneMaps:
    """Piecewise linear maps, one per direction, as small tables of displacements.

    Outside its knots a map has slope 1: it carries on with the displacement of the last knot.
    """

    knots: Array
    """Array (N, K), non-decreasing along the last axis."""
    displacements: Array
    """Array (N, K): value of the map minus the knot."""

    def displacement(self, points: Array) -> Array:
        """Return map(points) - points for points (N, n)."""
        xp = namespace(points, self.knots)
        count, size = self.knots.shape
        if size == 1:
            return xp.broadcast_to(self.displacements, points.shape)
        first = self.knots[:, :1]
        width = self.knots[:, -1:] - first
        width = xp.where(width > 0, width, xp.ones_like(width))
        rows = asarray_like(np.arange(count, dtype=np.float64)[:, None], points)
        # One flat search serves all directions: direction k's knots live in [k, k + 1/2].
        table = xp.reshape(rows + 0.5 * (self.knots - first) / width, (-1,))
        wanted = rows + 0.5 * xp.clip((points - first) / width, 0.0, 1.0)
        found = xp.searchsorted(table, xp.reshape(wanted, (-1,)), side="right")
        found = xp.reshape(found, points.shape)
        base = asarray_like(np.arange(count)[:, None] * size, found)
        left = xp.clip(found - 1, base, base + size - 2)
        left = xp.reshape(left, (-1,))

        def pick(values: Array, places: Array) -> Array:
            return xp.reshape(xp.take(xp.reshape(values, (-1,)), places), points.shape)

        start, end = pick(self.knots, left), pick(self.knots, left + 1)
        low, high = pick(self.displacements, left), pick(self.displacements, left + 1)
        gap = end - start
        share = xp.clip((points - start) / xp.where(gap > 0, gap, xp.ones_like(gap)), 0.0, 1.0)
        return low + share * (high - low)

    def __call__(self, points: Array) -> Array:
        """Return map(points) for points (N, n)."""
        return points + self.displacement(points)


def fit_monotone_maps(
    moving_sorted: Array, partners: Array, smoothing: float = 1.0
) -> MonotoneMaps:
    """Record the sorted pairing as maps that can be applied to any point.

    Partners of tied values are averaged, so the map is a function of the value; pairs are averaged
    over a window of about ``smoothing * sqrt(n)`` ranks, and a knot is kept every quarter window.

    Parameters
    ----------
    moving_sorted, partners
        Arrays (N, n): sorted values and where each rank should go.
    smoothing
        Width of the window in units of sqrt(n); 0 keeps every pair as a knot.

    Examples
    --------
    >>> x = np.sort(np.random.default_rng(0).normal(size=(1, 100)))
    >>> maps = fit_monotone_maps(x, x + 2.0)
    >>> bool(np.allclose(maps(np.array([[-9.0, 0.3, 9.0]])), [[-7.0, 2.3, 11.0]]))
    True
    """
    xp = namespace(moving_sorted, partners)
    displacements = _average_ties(moving_sorted, partners - moving_sorted)
    n = moving_sorted.shape[-1]
    half = round(smoothing * math.sqrt(n) / 2)
    if half == 0:
        return MonotoneMaps(knots=moving_sorted, displacements=displacements)
    count = min(n, int(4 * math.sqrt(n) / smoothing) + 1)
    centres = np.unique(np.round(np.linspace(0, n - 1, count)).astype(np.int64))
    # Windows shrink symmetrically at the ends, so the first and last knots are the extremes.
    reach = np.minimum(half, np.minimum(centres, n - 1 - centres))
    low, high = centres - reach, centres + reach + 1
    size = asarray_like((high - low).astype(np.float64), moving_sorted)

    def window_means(values: Array) -> Array:
        running = xp.cumulative_sum(values, axis=-1, include_initial=True)
        upper = xp.take(running, asarray_like(high, moving_sorted), axis=-1)
        return (upper - xp.take(running, asarray_like(low, moving_sorted), axis=-1)) / size

    middle = moving_sorted[:, n // 2 : n // 2 + 1]
    return MonotoneMaps(
        knots=window_means(moving_sorted - middle) + middle,
        displacements=window_means(displacements),
    )


def _average_ties(values_sorted: Array, attached: Array) -> Array:
    """Replace ``attached`` by its mean over each run of equal values, row by row.

    Rows that share a place differ in their last bits, so values closer than `TIE` are equal.
    """
    xp = namespace(values_sorted, attached)
    largest = xp.maximum(xp.abs(values_sorted[:, :1]), xp.abs(values_sorted[:, -1:]))
    tolerance = max(TIE, 16.0 * xp.finfo(values_sorted.dtype).eps) * largest
    tied = values_sorted[:, 1:] - values_sorted[:, :-1] <= tolerance
    if not bool(xp.any(tied)):
        return attached
    opens = xp.concat([xp.ones_like(tied[:, :1]), ~tied], axis=-1)
    flat = xp.reshape(opens, (-1,))
    runs = xp.cumulative_sum(xp.astype(flat, xp.int64)) - 1
    starts = xp.nonzero(flat)[0]
    total = asarray_like(np.array([flat.shape[0]]), starts)
    ends = xp.concat([starts[1:], total])
    running = xp.cumulative_sum(xp.reshape(attached, (-1,)), include_initial=True)
    sums = xp.take(running, ends) - xp.take(running, starts)
    means = sums / xp.astype(ends - starts, sums.dtype)
    return xp.reshape(xp.take(means, runs), values_sorted.shape)


def coupling(x: Array, y: Array) -> scipy.sparse.csr_array:
    """Optimal plan between projections, averaged over directions, as a sparse matrix of mass 1.

    Parameters
    ----------
    x, y
        Arrays (N, n) and (N, m). With N = 1 this is the paper's nu, else its mu averaged over k.

    Returns
    -------
    csr_array (n, m)

    Examples
    --------
    >>> coupling(np.array([[2.0, 1.0]]), np.array([[10.0, 20.0]])).toarray()
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    first, second = to_numpy(x), to_numpy(y)
    pieces = segments(first.shape[-1], second.shape[-1])
    rows = np.argsort(first, axis=-1, kind="stable")[:, pieces.x]
    columns = np.argsort(second, axis=-1, kind="stable")[:, pieces.y]
    mass = np.broadcast_to(pieces.weights / first.shape[0], rows.shape)
    plan = scipy.sparse.coo_array(
        (mass.ravel(), (rows.ravel(), columns.ravel())), shape=(first.shape[-1], second.shape[-1])
    )
    return plan.tocsr()
