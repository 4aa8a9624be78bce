"""A plan as a function: piecewise linear maps, one per direction, that work on any point.

The plans of the paper's eqs. (12) and (13), mu and nu, pair ranks with ranks and so speak of the
fitted rows only. As a map from values to values a plan also says where other rows go.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from elsewise._arrays import (
    Array,
    asarray_like,
    cached_asarray_like,
    count_before,
    multiply_add,
    namespace,
    on_device,
    running_maximum,
    take,
    take_ranked,
)
from elsewise._resources import parallel
from elsewise.transport._directions import DEVICE_PART, lift, project, row_tiles

# Projections moved at once, so that they stay in the cache.
TILE = 1 << 17
# Neighbouring values closer than this, relative to the largest, are ties.
TIE = 1e-9
# Buckets per knot, so that few of them hold more than one; more where knots lie close together.
BUCKETS = 4, 64
# With more knots than this in one bucket, a binary search is quicker.
FEW_ROUNDS = 8

Locate = Callable[[Array], Array]
"""Points (N, n) to places, int (N, n), as `at_places` takes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonotoneMaps:
    """Piecewise linear maps, one per direction, as small tables of displacements.

    Outside its knots a map has slope 1: it carries on with the displacement of the last knot.
    """

    knots: Array
    """Array (N, K), non-decreasing along the last axis."""
    displacements: Array
    """Array (N, K): value of the map minus the knot."""

    def prepared(self) -> Callable[[Array], Array]:
        """Return points (N, n) -> map(points) - points, to be used for many blocks of points."""
        xp = namespace(self.knots)
        gaps = self.knots[:, 1:] - self.knots[:, :-1]
        rises = self.displacements[:, 1:] - self.displacements[:, :-1]
        # There is no slope between tied knots; a gap of 1 stands in, so that nothing divides by 0.
        open_gaps = gaps > 0
        slopes = xp.where(open_gaps, rises / xp.where(open_gaps, gaps, xp.ones_like(gaps)), 0.0)
        # What lies before all knots is at the first place, what lies after k of them at place k.
        tables = self.knots, self.displacements
        knots, starts = (xp.concat([table[:, :1], table], axis=-1) for table in tables)
        # Displacements are constant beyond the knots, where the map itself has slope 1.
        flat = xp.zeros_like(starts[:, :1])
        slopes = xp.concat([flat, slopes, flat], axis=-1)
        locate = locator(self.knots)

        def displacement(points: Array) -> Array:
            places = locate(points)
            along = points - at_places(knots, places)
            return multiply_add(at_places(starts, places), at_places(slopes, places), along)

        return displacement

    def __call__(self, points: Array) -> Array:
        """Return map(points) for points (N, n)."""
        return points + self.prepared()(points)


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
    # Less than one rank to either side: there is nothing to average.
    if round(window / 2) == 0:
        ones = xp.ones_like(moving_sorted[0, :])
        displacements = _average_ties(moving_sorted, partners - moving_sorted, ones)
        return MonotoneMaps(knots=moving_sorted, displacements=displacements)
    # Means of blocks first, then of a few blocks: the tables stay at about 5 sqrt(n) / smoothing
    # knots, whatever n is, and windows still overlap enough for a smooth map.
    size = max(1, math.ceil(window / 5))
    reach = max(1, round((window / size - 1) / 2))
    low, high, counts = cached_asarray_like(moving_sorted, _windows, n, size, reach)

    def window_means(values: Array) -> Array:
        # Running sums give every window by two look-ups, at a cost that does not depend on its
        # width.
        running = xp.cumulative_sum(_block_sums(values, size), axis=-1, include_initial=True)
        sums = take(running, high, axis=-1) - take(running, low, axis=-1)
        means = xp.astype(sums / counts[1:-1], values.dtype, copy=False)
        return xp.concat([values[:, :1], means, values[:, -1:]], axis=-1)

    means = window_means(moving_sorted)
    # Means of equal values may fall by a rounding error. Displacements are from the means as they
    # are, so that the identity stays exact.
    knots = running_maximum(means)
    displacements = _average_ties(knots, window_means(partners) - means, counts)
    return MonotoneMaps(knots=knots, displacements=displacements)


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
    """Sums (N, B) of sorted values (N, n) over the blocks of `_windows`, as float64.

    A block is short: it is summed in the precision of the values.
    """
    xp = namespace(values)
    rows, n = values.shape
    head, count = _head(n, size), n // size
    tail = head + count * size
    inner = xp.reshape(values[:, head:tail], (rows, count, size))
    sums = xp.sum(inner, axis=-1)
    if tail - head < n:
        sums[:, 0] += xp.sum(values[:, :head], axis=-1)
        sums[:, -1] += xp.sum(values[:, tail:], axis=-1)
    return xp.astype(sums, xp.float64, copy=False)


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
    knots = xp.concat([part.knots for part in parts])
    displacements = xp.concat([part.displacements for part in parts])
    return MonotoneMaps(knots=knots, displacements=displacements)


def _average_ties(values_sorted: Array, attached: Array, weights: Array) -> Array:
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
    # All directions in one flat array. The first value of a row opens a run, so none crosses from
    # one direction into the next.
    flat = xp.reshape(opens, (-1,))
    runs = xp.cumulative_sum(xp.astype(flat, xp.int64)) - 1
    starts = xp.nonzero(flat)[0]
    total = asarray_like(np.array([flat.shape[0]]), starts)
    ends = xp.concat([starts[1:], total])

    def run_sums(values: Array) -> Array:
        in_a_row = xp.reshape(values, (-1,))
        running = xp.cumulative_sum(in_a_row, dtype=xp.float64, include_initial=True)
        return take(running, ends) - take(running, starts)

    weight = xp.broadcast_to(weights, attached.shape)
    means = xp.astype(run_sums(attached * weight) / run_sums(weight), attached.dtype, copy=False)
    return xp.reshape(take(means, runs), values_sorted.shape)


def locator(knots: Array) -> Locate:
    """Return a function that counts, row by row, the ``knots`` at or before each point.

    Parameters
    ----------
    knots
        Array (N, K), non-decreasing along the last axis.

    Returns
    -------
    callable
        Points (N, n) to what `at_places` takes to read tables (N, K + 1): the counts, in NumPy as
        places in the flattened table.

    Examples
    --------
    >>> locator(np.array([[0.0, 1.0, 2.0], [5.0, 6.0, 7.0]]))(np.array([[-1.0, 1.5], [6.0, 9.0]]))
    array([[0, 2],
           [6, 7]])
    """
    if type(knots) is np.ndarray:
        return _numpy_locator(knots)
    return lambda points: count_before(knots, points)


def at_places(table: Array, places: Array) -> Array:
    """Read a table (N, K + 1) at the places (N, n) that a `locator` of K knots found.

    Examples
    --------
    >>> places = locator(np.array([[0.0], [5.0]]))(np.array([[-1.0, 1.0], [4.0, 6.0]]))
    >>> at_places(np.array([[1.0, 2.0], [3.0, 4.0]]), places)
    array([[1., 2.],
           [3., 4.]])
    """
    if type(table) is np.ndarray:
        return np.take(table, places)
    return take_ranked(table, places)


def _numpy_locator(knots: np.ndarray) -> Locate:
    """Look points up in buckets of equal width, then go on knot by knot: no binary search.

    The bucket of a value never falls as the value rises, rounding included, so every knot in an
    earlier bucket is below the point.
    """
    rows, size = knots.shape
    first, row = knots[:, :1], np.arange(rows)[:, None]
    table_start = row * (size + 1)

    def bucket(values: np.ndarray) -> np.ndarray:
        places = (values - first) * scale
        np.clip(places, 0, count - 1, out=places)
        return np.asarray(places.astype(np.int64) + row * count)

    for buckets in BUCKETS:
        count = buckets * size
        with np.errstate(divide="ignore", over="ignore"):
            scale = count / (knots[:, -1:] - first)
        # All knots are equal, or too close for a double to tell: one bucket takes everything.
        scale[~np.isfinite(scale)] = 0.0
        filled = np.bincount(bucket(knots).ravel(), minlength=rows * count).reshape(rows, count)
        rounds = int(filled.max())
        if rounds <= FEW_ROUNDS:
            break
    else:
        return lambda points: count_before(knots, points) + table_start
    # Knots in earlier buckets of the row, plus where the row's table begins.
    start = (np.cumsum(filled, axis=1) - filled + table_start).ravel()
    # The knot after each place; infinity after the last ends the search there.
    following = np.concatenate([knots, np.full_like(first, np.inf)], axis=1).ravel()

    def search(points: np.ndarray) -> np.ndarray:
        found: np.ndarray = start[bucket(points)]
        # No bucket holds more knots than this, and a place that is right already stays.
        for _ in range(rounds):
            found += following[found] <= points
        return found

    return search


def transported(maps: MonotoneMaps, points: Array, directions: Array) -> Array:
    """Move points (n, d) by the mean of their directional displacements.

    For complete orthonormal blocks this is the minimizer of mean_k (theta_k . z - t_ik)^2 over z,
    the part of row i in the paper's eq. (12) with its plans fixed.
    Rows are looked at a few at a time, in threads.

    Examples
    --------
    >>> from elsewise.transport import direction_blocks
    >>> theta = direction_blocks(2, np.random.default_rng(0))
    >>> x = np.random.default_rng(1).normal(size=(50, 2))
    >>> y = x + [1.0, 2.0]
    >>> plan = fit_monotone_maps(np.sort(project(x, theta)), np.sort(project(y, theta)))
    >>> bool(np.allclose(transported(plan, x, theta), y))
    True
    """
    xp = namespace(points)
    dimension, count = directions.shape
    displacement = maps.prepared()
    # The mean of theta theta' over a complete orthonormal block is I / d: d times the mean of
    # theta (t - theta . x) gives back a shift of all rows exactly.
    scaled = directions * (dimension / count)

    def move(rows: slice) -> Array:
        some = points[rows, :]
        shift = displacement(project(some, directions))
        return some + lift(shift, scaled)

    n = points.shape[0]
    # A power of two, so that rows are cut at the same places whatever block they come in.
    size = 1 << (max(1, (DEVICE_PART if on_device(points) else TILE) // count).bit_length() - 1)
    if n <= size:
        return move(slice(0, n))
    return xp.concat(list(parallel(move, row_tiles(n, size))))
