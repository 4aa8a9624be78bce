"""Optimal transport between populations, as sorting.

With equal weights the optimal plan in one dimension pairs order statistics, so a squared distance,
its gradient and its plan all come from one batched sort. Populations are arrays (n, d); projections
are stored as (N, n), one contiguous row per direction: the layout that sorts fastest.

Everything here is written on the array API standard and gives the same numbers in NumPy, torch and
array-api-strict.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse

from elsewise._arrays import (
    Array,
    asarray_like,
    index_range,
    locator,
    namespace,
    on_device,
    take_ranked,
    to_numpy,
    unsort,
)
from elsewise._resources import parallel

__all__ = [
    "MonotoneMaps",
    "Ranked",
    "Reference",
    "Segments",
    "cell_weights",
    "coupling",
    "direction_blocks",
    "direction_parts",
    "fit_monotone_maps",
    "join_maps",
    "potentials",
    "project",
    "rank",
    "reference",
    "row_tiles",
    "segments",
    "sliced_squared_distance",
    "sliced_squared_distance_and_gradient",
    "sorted_squared_distances",
    "transported",
]

PART, FEWEST = 1 << 18, 8
"""Projections handled at once, so that they stay in the cache, and directions at least."""
TILE = 1 << 17
"""The same where rows are moved."""
DEVICE_PART = 1 << 28
"""The same on an accelerator, which has to be kept busy."""
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
    if n == m:
        return Reference(
            partners=fixed_sorted,
            weights=cell_weights(n, trim, fixed_sorted),
            spread=xp.zeros_like(fixed_sorted[:, 0]),
        )
    pieces = segments(n, m, trim)
    cell = np.bincount(pieces.x, pieces.weights, minlength=n)
    weights = asarray_like(cell, fixed_sorted)
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


def cell_weights(n: int, trim: float, like: Array) -> Array:
    """Share (n,) of the trimmed range in each of n quantile cells, made where ``like`` is.

    Examples
    --------
    >>> cell_weights(4, 0.25, np.ones(1))
    array([0. , 0.5, 0.5, 0. ])
    """
    if isinstance(like, np.ndarray):
        return asarray_like(_numpy_weights(n, trim), like)
    return asarray_like(_weights(index_range(n + 1, like), n, trim), like)


@lru_cache(maxsize=16)
def _numpy_weights(n: int, trim: float) -> np.ndarray:
    weights: np.ndarray = _weights(np.arange(n + 1), n, trim)
    weights.flags.writeable = False
    return weights


def _weights(places: Array, n: int, trim: float) -> Array:
    """Lengths of the cells between places 0 to n, over n, that are inside the trim."""
    xp = namespace(places)
    levels = xp.astype(places, xp.float64) / n
    edges = xp.clip(levels, trim, 1.0 - trim)
    return (edges[1:] - edges[:-1]) / (1.0 - 2.0 * trim)


def sorted_squared_distances(moving_sorted: Array, fixed: Reference) -> Array:
    """Squared distances (N,) between sorted rows (N, n) and a prepared fixed side, in float64."""
    xp = namespace(moving_sorted, fixed.partners)
    gap = moving_sorted - fixed.partners
    if gap.dtype == xp.float64:
        return xp.matmul(gap * gap, fixed.weights) + fixed.spread
    # Sums over many rows need more digits than the rows themselves.
    return xp.sum(gap * gap * fixed.weights, axis=-1, dtype=xp.float64) + fixed.spread


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

    def value(part: Array) -> float:
        fixed = reference(xp.sort(project(y, part), axis=-1, stable=False), x.shape[0], trim)
        moving = xp.sort(project(x, part), axis=-1, stable=False)
        return float(xp.sum(sorted_squared_distances(moving, fixed)))

    parts = direction_parts(directions, max(x.shape[0], y.shape[0]))
    return sum(parallel(value, parts)) / int(directions.shape[-1])


def direction_parts(directions: Array, rows: int) -> list[Array]:
    """Split directions (d, N) so that one part's projections fit in a cache, not only in memory.

    The parts depend on the sizes alone, never on threads or memory, so results do not either.

    Examples
    --------
    >>> [part.shape for part in direction_parts(np.eye(23), 100_000)]
    [(23, 6), (23, 6), (23, 6), (23, 5)]
    """
    count = int(directions.shape[-1])
    size = max(FEWEST, (DEVICE_PART if on_device(directions) else PART) // rows)
    # An even number of pieces is shared by two threads without one waiting for the other.
    pieces = 1 if count <= size else min(count, 2 * -(-count // (2 * size)))
    ends = [-(-count * k // pieces) for k in range(pieces + 1)]
    return [directions[:, low:high] for low, high in pairwise(ends)]


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

    def value_and_pull(part: Array) -> tuple[float, Array]:
        fixed = reference(xp.sort(project(y, part), axis=-1, stable=False), x.shape[0], trim)
        moving, order = rank(project(x, part))
        gap = moving - fixed.partners
        pull = gap * fixed.weights
        value = float(xp.sum(pull * gap, dtype=xp.float64)) + float(xp.sum(fixed.spread))
        rows = unsort(pull, order)
        return value, xp.matmul(xp.matrix_transpose(rows), xp.matrix_transpose(part))

    total, gradient = 0.0, xp.zeros_like(x)
    for value, pull in parallel(
        value_and_pull, direction_parts(directions, max(x.shape[0], y.shape[0]))
    ):
        total += value
        gradient += pull
    count = int(directions.shape[-1])
    return total / count, gradient * (2.0 / count)


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
    jumps = index_range(n, own_sorted)[1:]
    if n == m:
        below, above = other_sorted[:, :-1], other_sorted[:, 1:]
    else:
        below = xp.take(other_sorted, (jumps * m + n - 1) // n - 1, axis=-1)
        above = xp.take(other_sorted, jumps * m // n, axis=-1)
    # The tolerance counts a jump at the trim itself, whatever the rounding of its level.
    inside = xp.abs(xp.astype(jumps, xp.float64) / n - 0.5) <= 0.5 - trim + 1e-12
    scale = xp.astype(inside, own_sorted.dtype) / (1.0 - 2.0 * trim)
    low, high = own_sorted[:, :-1], own_sorted[:, 1:]
    steps = (high - low) * (high + low - below - above) * scale
    return xp.cumulative_sum(steps, axis=-1, include_initial=True)


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
        return self.prepared()(points)

    def prepared(self) -> Callable[[Array], Array]:
        """Return `displacement` with its tables ready, to be used for many blocks of points."""
        xp = namespace(self.knots)
        if self.knots.shape[-1] == 1:
            return lambda points: xp.broadcast_to(self.displacements, points.shape)
        gaps = self.knots[:, 1:] - self.knots[:, :-1]
        rises = self.displacements[:, 1:] - self.displacements[:, :-1]
        open_gaps = gaps > 0
        slopes = xp.where(open_gaps, rises / xp.where(open_gaps, gaps, xp.ones_like(gaps)), 0.0)
        slopes = xp.concat([slopes, xp.zeros_like(slopes[:, :1])], axis=-1)
        tables = [xp.reshape(t, (-1,)) for t in (self.knots, self.displacements, slopes)]
        first, last = self.knots[:, :1], self.knots[:, -1:]
        locate = locator(self.knots)

        def displacement(points: Array) -> Array:
            places = xp.reshape(locate(points), (-1,))
            knot, start, slope = (xp.reshape(xp.take(t, places), points.shape) for t in tables)
            return start + slope * (xp.minimum(xp.maximum(points, first), last) - knot)

        return displacement

    def __call__(self, points: Array) -> Array:
        """Return map(points) for points (N, n)."""
        return points + self.displacement(points)


def fit_monotone_maps(
    moving_sorted: Array, partners: Array, smoothing: float = 1.0
) -> MonotoneMaps:
    """Record the sorted pairing as maps that can be applied to any point.

    Pairs are averaged over windows of about ``smoothing * sqrt(n)`` ranks, five windows to a
    window's width; the first and last knots are the extreme pairs. Where knots are tied their
    displacements are averaged, so the map is a function of the value.

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
    n = moving_sorted.shape[-1]
    window = smoothing * math.sqrt(n)
    if round(window / 2) == 0:
        ones = np.ones(n)
        return MonotoneMaps(
            knots=moving_sorted,
            displacements=_average_ties(moving_sorted, partners - moving_sorted, ones),
        )
    size = max(1, math.ceil(window / 5))
    low, high, counts = _windows(n, size, max(1, round((window / size - 1) / 2)))

    def window_means(values: Array) -> Array:
        running = xp.cumulative_sum(_block_sums(values, size), axis=-1, include_initial=True)
        upper = xp.take(running, asarray_like(high, values), axis=-1)
        sums = upper - xp.take(running, asarray_like(low, values), axis=-1)
        means = xp.astype(sums / asarray_like(counts[1:-1], sums), values.dtype, copy=False)
        return xp.concat([values[:, :1], means, values[:, -1:]], axis=-1)

    knots = window_means(moving_sorted)
    return MonotoneMaps(
        knots=knots, displacements=_average_ties(knots, window_means(partners) - knots, counts)
    )


@lru_cache(maxsize=16)
def _windows(n: int, size: int, reach: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """First and last end (B - 2,) of each window of blocks of n ranks, and pairs behind each knot.

    Windows reach over so many blocks on either side of their own, fewer at the ends. The blocks at
    either end have no window: the extreme pairs stand in for them.
    """
    count = n // size
    ends = _head(n, size) + size * np.arange(count + 1)
    ends[0], ends[-1] = 0, n
    blocks = np.arange(1, count - 1)
    reaches = np.minimum(reach, np.minimum(blocks, count - 1 - blocks))
    low, high = blocks - reaches, blocks + reaches + 1
    return low, high, np.concatenate([[1.0], ends[high] - ends[low], [1.0]])


def _head(n: int, size: int) -> int:
    """Ranks more in the first block: half of those that fill no block."""
    return (n % size) // 2


def _block_sums(values: Array, size: int) -> Array:
    """Sums (N, B) of sorted values (N, n) over the blocks of `_windows`, in float64."""
    xp = namespace(values)
    rows, n = values.shape
    head, count = _head(n, size), n // size
    tail = head + count * size
    inner = xp.reshape(values[:, head:tail], (rows, count, size))
    sums = xp.sum(inner, axis=-1, dtype=xp.float64)
    if tail - head < n:
        sums[:, 0] += xp.sum(values[:, :head], axis=-1, dtype=xp.float64)
        sums[:, -1] += xp.sum(values[:, tail:], axis=-1, dtype=xp.float64)
    return sums


def join_maps(parts: list[MonotoneMaps]) -> MonotoneMaps:
    """Return the maps of all directions from those of some directions each.

    Examples
    --------
    >>> one = MonotoneMaps(knots=np.array([[0.0, 1.0]]), displacements=np.zeros((1, 2)))
    >>> join_maps([one, one]).knots.shape
    (2, 2)
    """
    if len(parts) == 1:
        return parts[0]
    xp = namespace(parts[0].knots)
    return MonotoneMaps(
        knots=xp.concat([part.knots for part in parts]),
        displacements=xp.concat([part.displacements for part in parts]),
    )


def _average_ties(values_sorted: Array, attached: Array, weights: np.ndarray) -> Array:
    """Replace ``attached`` by its weighted mean over each run of equal values, row by row.

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

    def run_sums(values: Array) -> Array:
        running = xp.cumulative_sum(
            xp.reshape(values, (-1,)), dtype=xp.float64, include_initial=True
        )
        return xp.take(running, ends) - xp.take(running, starts)

    weight = xp.broadcast_to(asarray_like(weights, attached), attached.shape)
    means = xp.astype(run_sums(attached * weight) / run_sums(weight), attached.dtype, copy=False)
    return xp.reshape(xp.take(means, runs), values_sorted.shape)


def transported(maps: MonotoneMaps, points: Array, directions: Array) -> Array:
    """Move points (n, d) by the mean of their directional displacements.

    For complete orthonormal blocks this is the minimizer of mean_k (theta_k . z - t_ik)^2 over z.
    Rows are looked at a few at a time, in threads.

    Examples
    --------
    >>> theta = direction_blocks(2, np.random.default_rng(0))
    >>> x = np.random.default_rng(1).normal(size=(50, 2))
    >>> y = x + [1.0, 2.0]
    >>> plan = fit_monotone_maps(np.sort(project(x, theta)), np.sort(project(y, theta)))
    >>> bool(np.allclose(transported(plan, x, theta), y))
    True
    """
    xp = namespace(points, directions)
    dimension, count = directions.shape
    displacement = maps.prepared()
    back = xp.matrix_transpose(directions) * (dimension / count)

    def move(rows: slice) -> Array:
        some = points[rows, :]
        shift = displacement(project(some, directions))
        return some + xp.matmul(xp.matrix_transpose(shift), back)

    n = points.shape[0]
    # A power of two, so that rows are cut at the same places whatever block they come in.
    size = 1 << (max(1, (DEVICE_PART if on_device(points) else TILE) // count).bit_length() - 1)
    if n <= size:
        return move(slice(0, n))
    return xp.concat(list(parallel(move, row_tiles(n, size))))


def row_tiles(n: int, size: int) -> list[slice]:
    """Cut n rows into slices of at most ``size``.

    Examples
    --------
    >>> row_tiles(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(first, min(first + size, n)) for first in range(0, n, size)]


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
