"""Where points lie between sorted knots, row by row, and reading tables there.

A place is the number of knots at or before a point, so K knots make K + 1 places.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from elsewise._arrays import Array, count_before, take_ranked

# Buckets per knot, so that few of them hold more than one; more where knots lie close together.
BUCKETS = 4, 64
# With more knots than this in one bucket, a binary search is quicker.
FEW_ROUNDS = 8

Locate = Callable[[Array], Array]
"""Points (N, n) to places, int (N, n), as `at_places` takes them."""


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
    for buckets in BUCKETS:
        count = buckets * size
        with np.errstate(divide="ignore", over="ignore"):
            scale = count / (knots[:, -1:] - first)
        # All knots are equal, or too close for a double to tell: one bucket takes everything.
        scale[~np.isfinite(scale)] = 0.0
        bucket = _bucket(first, scale, count, row)
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


def _bucket(
    first: np.ndarray, scale: np.ndarray, count: int, row: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function from values (N, n) to their buckets, ``count`` of equal width in a row."""

    def bucket(values: np.ndarray) -> np.ndarray:
        places = (values - first) * scale
        np.clip(places, 0, count - 1, out=places)
        return np.asarray(places.astype(np.int64) + row * count)

    return bucket
